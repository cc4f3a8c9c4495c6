# SPDX-License-Identifier: Apache-2.0
"""The tools of forecast.yaml, offered through a gateway until SIGTERM: provider.py [ADDRESS]

    pegboard generate examples/typed/forecast.yaml --lang python --provider --client --out gen
    PYTHONPATH=gen python3 examples/typed/python/provider.py
"""

from __future__ import annotations

import sys

import pegboard
from forecast.toolsets.weather import provider, types  # generated

STATIONS = [
    types.StationsResultStation(
        name="Rome",
        below=[
            types.StationsResultStation(name="Ciampino", parent=types.StationsResultStation(name="Italy")),
            types.StationsResultStation(name="Fiumicino", default=True),
        ],
    )
]


class Weather:
    def get(self, args: types.GetArgs, _: pegboard.Call) -> types.GetResult:
        if len(args.city) > 20:
            raise pegboard.ToolError("no_city", "there is no city with so long a name")
        celsius = [20.0 + n for n in range(args.days or 1)]
        highs = [c * 1.8 + 32 if args.units == "fahrenheit" else c for c in celsius]
        return types.GetResult(
            city=args.city,
            # None is null: no station has told.
            days=[types.GetResultDay(date=f"2026-11-{18 + n:02}", high=high, low=None) for n, high in enumerate(highs)],
            server_data=types.GetServerData(
                forecast_chart=highs if len(highs) > 1 else None,
                forecast_evidence=types.GetForecastEvidence(station="LIRF", readings=24),
            ),
        )

    async def alert(self, args: types.AlertArgs, _: pegboard.Call) -> types.AlertResult:
        to = args.to
        size = len(to.address) if isinstance(to, types.AlertArgsMail) else 1000 + len(to.url)
        return types.AlertResult(id=size + 100 * len(args.labels or {}))

    def stations(self, _: types.StationsArgs, __: pegboard.Call) -> types.StationsResult:
        return types.StationsResult(value=STATIONS)


if __name__ == "__main__":
    provider.serve(Weather(), registry=sys.argv[1] if len(sys.argv) > 1 else None, log=lambda line: print(line, flush=True))
