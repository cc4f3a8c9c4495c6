// SPDX-License-Identifier: Apache-2.0

// Calls the tools of forecast.yaml through a gateway: node dist/client.js [ADDRESS]

import { connect, ToolError, ValidationError } from "pegboard";
import { WeatherClient } from "./gen/client.js";

const gateway = connect(process.argv[2]);
const weather = new WeatherClient(gateway);

async function showWeather(): Promise<void> {
    const { result, serverData } = await weather.get({ city: "Rome", days: 2, units: "fahrenheit" });
    console.log(`${result.city}:`);
    for (const { date, high, low } of result.days) {
        console.log(`  ${date} ${high.toFixed(1)}, ${low === null ? "no low" : "with a low"}`);
    }
    console.log(
        `  ${serverData.forecastChart?.length ?? 0} points of a chart, from ${serverData.forecastEvidence.station}`,
    );
}

async function subscribe(): Promise<void> {
    const { id } = await weather.alert({ to: { kind: "hook", url: "https://a.example" }, labels: { team: "ops" } });
    console.log(`alert ${id}`);
}

async function listStations(): Promise<void> {
    for (const { name, below = [] } of await weather.stations())
        console.log(`station ${name} with ${below.length} below`);
}

/** The tool refuses, and says why; and what does not fit the schema does not reach it. */
async function askTooMuch(): Promise<void> {
    await weather.get({ city: "Llanfairpwllgwyngyllgogerychwyrndrobwll" }).catch((error: unknown) => {
        if (!(error instanceof ToolError)) throw error;
        console.log(`refused: ${error.message}`);
    });
    await weather.get({ city: "Rome", days: 9 }).catch((error: unknown) => {
        if (!(error instanceof ValidationError)) throw error;
        console.log(`does not fit: ${error.message}`);
    });
}

await showWeather();
await subscribe();
await listStations();
await askTooMuch();
gateway.close();
