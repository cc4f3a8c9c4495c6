// SPDX-License-Identifier: Apache-2.0

// Where the gateway is, and what we show it: options, or else the variables that `pegboard` reads, too. The messages
// are read from the .proto files in the package: no code is generated.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import protoLoader from "@grpc/proto-loader";

const PROTO = fileURLToPath(new URL("../proto", import.meta.url));
const CHANNEL = {
  "grpc.keepalive_time_ms": 20000,
  "grpc.keepalive_timeout_ms": 10000,
  "grpc.initial_reconnect_backoff_ms": 500,
  "grpc.max_reconnect_backoff_ms": 2000,
  "grpc.max_receive_message_length": 16 << 20,
  "grpc.use_local_subchannel_pool": 1, // a new client connects anew
};
const DEFAULT = "127.0.0.1:9090";

export const protos = grpc.loadPackageDefinition(
  protoLoader.loadSync(["pegboard/v1/registry.proto", "google/rpc/status.proto", "goapb/goa.proto"],
    { includeDirs: [PROTO], longs: Number, enums: String, defaults: true, oneofs: true }));
export { grpc };

export class Link {
  constructor({ registry, token, tlsCa, tlsCert, tlsKey } = {}) {
    const { env } = process;
    const listed = registry?.length ? registry : env.PEGBOARD_REGISTRY || DEFAULT;
    this.addresses = (typeof listed === "string" ? listed.split(",") : listed).map((one) => withPort(one.trim()));
    this.token = token || env.PEGBOARD_TOKEN;
    this.credentials = credentials(tlsCa || env.PEGBOARD_TLS_CA, tlsCert || env.PEGBOARD_TLS_CERT,
      tlsKey || env.PEGBOARD_TLS_KEY);
    this.epoch = ""; // of what the registry remembers of calls, as last reported; "": not known
    this.asked = new Map(); // the epochs of calls whose end is not known, by their identity
  }

  open(address) {
    return new protos.pegboard.v1.Registry(address, this.credentials, CHANNEL);
  }

  metadata() {
    const made = new grpc.Metadata();
    if (this.token) made.set("authorization", `Bearer ${this.token}`);
    return made;
  }
}

function withPort(address) {
  if (!address) throw new TypeError("an address of the registry is empty");
  return address.startsWith("unix:") || /:\d+$/.test(address.replace(/^\[.*\]/, "")) ? address : `${address}:9090`;
}

function credentials(ca, cert, key) {
  if (!ca && !cert) return grpc.credentials.createInsecure();
  const read = (path) => (path ? readFileSync(path) : null);
  return grpc.credentials.createSsl(read(ca), read(key), read(cert));
}
