// SPDX-License-Identifier: Apache-2.0

// pegboard.v1.Registry as grpc-js knows it, read from the .proto files: no code is generated.

import { fileURLToPath } from "node:url";

async function need(name) {
  try {
    return (await import(name)).default;
  } catch (error) {
    if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
    const here = fileURLToPath(new URL(".", import.meta.url));
    console.error(`${name} is missing: cd ${here} && npm install`);
    process.exit(1);
  }
}

export const grpc = await need("@grpc/grpc-js");
const protoLoader = await need("@grpc/proto-loader");
const PROTO = process.env.PEGBOARD_PROTO ?? fileURLToPath(new URL("../../../proto", import.meta.url));
const world = grpc.loadPackageDefinition(
  protoLoader.loadSync(["pegboard/v1/registry.proto", "google/rpc/status.proto", "goapb/goa.proto"],
    { includeDirs: [PROTO], longs: Number, enums: String, defaults: true, oneofs: true }));
const OPTIONS = {
  "grpc.keepalive_time_ms": 20000,
  "grpc.keepalive_timeout_ms": 10000,
  "grpc.initial_reconnect_backoff_ms": 500,
  "grpc.max_reconnect_backoff_ms": 2000,
  "grpc.max_receive_message_length": 16 << 20,
};

export function connect(address) {
  return new world.pegboard.v1.Registry(address, grpc.credentials.createInsecure(), OPTIONS);
}

/** With PEGBOARD_TOKEN, if there is one. */
export function metadata() {
  const made = new grpc.Metadata();
  if (process.env.PEGBOARD_TOKEN) made.set("authorization", `Bearer ${process.env.PEGBOARD_TOKEN}`);
  return made;
}

/** Of an error of the gateway, such as validation_error. */
export function nameOf(error) {
  const [details] = error.metadata?.get("grpc-status-details-bin") ?? [];
  if (!details) return grpc.status[error.code].toLowerCase();
  const [detail] = world.google.rpc.Status.deserialize(details).details;
  return world.goapb.ErrorResponse.deserialize(detail.value).name;
}
