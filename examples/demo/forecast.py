# SPDX-License-Identifier: Apache-2.0
"""Sample weather: {"city", "days", "unit"} on standard input, a forecast on standard output."""

import json
import sys

SAMPLES = {  # low and high in celsius, and what the sky does in turn
    "Bergen": (4, 9, ["rain", "heavy rain", "rain", "showers"]),
    "Cairo": (16, 28, ["sunny", "sunny", "haze"]),
    "Lima": (15, 19, ["fog", "cloudy"]),
    "Oslo": (-2, 5, ["cloudy", "snow", "sunny"]),
    "Rome": (9, 18, ["sunny", "cloudy", "showers", "sunny", "sunny"]),
}

call = json.load(sys.stdin)
city = next((name for name in SAMPLES if name.lower() == call["city"].strip().lower()), None)
if not city:
    sys.exit(f"no sample data for '{call['city']}'; there is some for {', '.join(SAMPLES)}")
low, high, sky = SAMPLES[city]


def degrees(celsius):
    return celsius if call["unit"] == "celsius" else round(celsius * 9 / 5 + 32)


days = [{"day": i + 1, "sky": sky[i % len(sky)], "low": degrees(low + i % 2), "high": degrees(high - i % 3)}
        for i in range(call["days"])]
json.dump({"city": city, "unit": call["unit"], "days": days}, sys.stdout)
