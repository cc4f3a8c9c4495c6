// SPDX-License-Identifier: Apache-2.0
// The tool `echo` as a service in Express, its arguments checked by ajv against the schema of gateway/provider.c. Run
// where node_modules is. Prints where it listens.

import { createRequire } from "node:module";
import path from "node:path";

const load = createRequire(path.join(process.cwd(), "package.json"));
const express = load("express");
const Ajv = load("ajv");

const check = new Ajv().compile({
  type: "object", properties: { text: { type: "string" } }, required: ["text"], additionalProperties: false,
});

const app = express();
app.use(express.json({ limit: "1mb" }));
app.post("/echo", (request, response) => {
  if (!check(request.body)) response.status(422).json({ errors: check.errors });
  else response.json(request.body);
});

const server = app.listen(0, "127.0.0.1", () => console.log(`listening on 127.0.0.1:${server.address().port}`));
process.stdin.on("end", () => process.exit(0)).resume();
