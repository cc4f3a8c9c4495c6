# SPDX-License-Identifier: Apache-2.0
"""A month as text: {"year", "month"} on standard input."""

import calendar
import json
import sys

call = json.load(sys.stdin)
print(calendar.TextCalendar().formatmonth(call["year"], call["month"]), end="")
