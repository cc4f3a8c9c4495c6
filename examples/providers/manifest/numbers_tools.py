# SPDX-License-Identifier: Apache-2.0
"""The commands of numbers.yaml: arguments as JSON on standard input, the result on standard output."""

import json
import sys
import time

args = json.load(sys.stdin)
if sys.argv[1] == "stats":
    numbers = args["numbers"]
    if not numbers:
        sys.exit("give at least one number")  # to standard error, and with exit status 1: the call has failed
    print(json.dumps({"n": len(numbers), "mean": sum(numbers) / len(numbers)}))
elif sys.argv[1] == "squares":
    print(json.dumps([n * n for n in range(args["n"])]))
else:
    time.sleep(args["to"] * args.get("pause_ms", 0) / 1000)
    print(args["to"])
