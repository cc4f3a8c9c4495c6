# SPDX-License-Identifier: Apache-2.0
"""Counts: {"text"} on standard input, an object with figures on standard output."""

import collections
import json
import re
import sys

text = json.load(sys.stdin)["text"]
words = re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text)
counted = collections.Counter(word.lower() for word in words)
frequent = sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:5]
json.dump({"characters": len(text), "words": len(words), "lines": len(text.splitlines()),
           "longest_word": max(words, key=len, default=""), "frequent": dict(frequent)}, sys.stdout)
