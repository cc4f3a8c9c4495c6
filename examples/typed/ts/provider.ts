// SPDX-License-Identifier: Apache-2.0

// The tools of forecast.yaml, offered through a gateway until SIGTERM: node dist/provider.js [ADDRESS]

import { ToolError } from "pegboard";
import { serve, type WeatherTools } from "./gen/provider.js";

const weather: WeatherTools = {
    get({ city, days = 1, units }) {
        if (Buffer.byteLength(city) > 20) throw new ToolError("no_city", "there is no city with so long a name");
        const forecast = Array.from({ length: days }, (_, i) => ({
            date: `2026-11-${18 + i}`,
            high: units === "fahrenheit" ? (20 + i) * 1.8 + 32 : 20 + i,
            low: null, // no station has told
        }));
        return {
            result: { city, days: forecast },
            serverData: {
                ...(days > 1 ? { forecastChart: forecast.map(({ high }) => high) } : {}),
                forecastEvidence: { station: "LIRF", readings: 24 },
            },
        };
    },

    alert({ to, labels = {} }) {
        const id = to.kind === "mail" ? to.address.length : 1000 + to.url.length;
        return { id: id + 100 * Object.keys(labels).length };
    },

    stations() {
        const italy = { name: "Italy" };
        return [
            {
                name: "Rome",
                below: [
                    { name: "Ciampino", parent: italy },
                    { name: "Fiumicino", default: true },
                ],
            },
        ];
    },
};

const registry = process.argv[2];
await serve(weather, registry ? { registry, log: console.log } : { log: console.log });
