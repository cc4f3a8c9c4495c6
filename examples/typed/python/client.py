# SPDX-License-Identifier: Apache-2.0
"""Calls the tools of forecast.yaml through a gateway: client.py [ADDRESS]. provider.py says how to make what it imports."""

from __future__ import annotations

import asyncio
import sys

import pegboard
from forecast.toolsets.weather import types  # generated
from forecast.toolsets.weather.client import AsyncClient, Client
from pegboard import aio


def show(weather: types.GetResult) -> None:
    print(f"{weather.city}:")
    for day in weather.days:
        print(f"  {day.date} {day.high:.1f}, {'no low' if day.low is None else 'with a low'}")
    chart = weather.server_data.forecast_chart or []
    print(f"  {len(chart)} points of a chart, from {weather.server_data.forecast_evidence.station}")


async def subscribe(address: str | None) -> None:
    async with aio.connect(address) as gateway:
        to = types.AlertArgsHook(url="https://a.example")
        made = await AsyncClient(gateway).alert(types.AlertArgs(to=to, labels={"team": "ops"}))
    print("alert", made.id)


def ask_too_much(client: Client) -> None:
    """The tool refuses, and says why; and what does not fit the schema does not reach it."""
    try:
        client.get(types.GetArgs(city="Llanfairpwllgwyngyllgogerychwyrndrobwll"))
    except pegboard.ToolError as error:
        print("refused:", error)
    try:
        client.get(types.GetArgs(city="Rome", days=9))
    except pegboard.ValidationError as error:
        print("does not fit:", error)


def main(address: str | None) -> None:
    with pegboard.connect(address) as gateway:
        client = Client(gateway)
        show(client.get(types.GetArgs(city="Rome", days=2, units="fahrenheit")))
        asyncio.run(subscribe(address))
        for station in client.stations(types.StationsArgs()).value:
            print(f"station {station.name} with {len(station.below or [])} below")
        ask_too_much(client)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
