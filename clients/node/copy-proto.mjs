// SPDX-License-Identifier: Apache-2.0

// Before the package is packed: puts the .proto files that it reads into it, from proto/ of the repository.

import { cpSync, mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const FILES = ["pegboard/v1/registry.proto", "goapb/goa.proto", "google/rpc/status.proto", "google/protobuf/any.proto"];
const from = (name) => fileURLToPath(new URL(`../../proto/${name}`, import.meta.url));
const to = (name) => fileURLToPath(new URL(`proto/${name}`, import.meta.url));

rmSync(to(""), { recursive: true, force: true });
for (const name of FILES) {
  mkdirSync(dirname(to(name)), { recursive: true });
  cpSync(from(name), to(name));
}
