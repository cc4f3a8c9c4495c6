# SPDX-License-Identifier: Apache-2.0
"""Units: {"value", "from", "to"} on standard input, a number on standard output."""

import json
import sys

UNITS = {  # unit -> what it measures, its size in the first of its kind, and what is added
    "m": ("length", 1, 0), "mm": ("length", 0.001, 0), "cm": ("length", 0.01, 0), "km": ("length", 1000, 0),
    "in": ("length", 0.0254, 0), "ft": ("length", 0.3048, 0), "mi": ("length", 1609.344, 0),
    "kg": ("mass", 1, 0), "g": ("mass", 0.001, 0), "oz": ("mass", 0.028349523125, 0), "lb": ("mass", 0.45359237, 0),
    "l": ("volume", 1, 0), "ml": ("volume", 0.001, 0), "gal": ("volume", 3.785411784, 0),
    "K": ("temperature", 1, 0), "C": ("temperature", 1, 273.15), "F": ("temperature", 5 / 9, 459.67 * 5 / 9),
}

call = json.load(sys.stdin)
kind, size, offset = UNITS[call["from"]]
other, other_size, other_offset = UNITS[call["to"]]
if kind != other:
    sys.exit(f"{call['from']} is a {kind} and {call['to']} is a {other}: choose two of one kind")
print(f"{(call['value'] * size + offset - other_offset) / other_size:.10g}")
