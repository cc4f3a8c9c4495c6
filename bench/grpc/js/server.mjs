// SPDX-License-Identifier: Apache-2.0
// The echo service on grpc-js. Messages stay bytes: nothing is parsed.
//
//   node server.mjs --addr 127.0.0.1:0 [--tls-cert PEM --tls-key PEM]    prints "ready PORT"
//
// Run where the packages of package.json are installed.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import path from "node:path";

const require = createRequire(path.join(process.cwd(), "here.js"));
const grpc = require("@grpc/grpc-js");
const N_ANSWERS = 1000;

const { values } = parseArgs({
  options: { addr: { type: "string", default: "127.0.0.1:0" }, "tls-cert": { type: "string" }, "tls-key": { type: "string" } },
});

const same = (bytes) => bytes;
const method = (name, requestStream, responseStream) => ({
  path: `/pegboard.test.Echo/${name}`,
  requestStream,
  responseStream,
  requestSerialize: same,
  requestDeserialize: same,
  responseSerialize: same,
  responseDeserialize: same,
});

const server = new grpc.Server();
server.addService(
  { Echo: method("Echo", false, false), Chat: method("Chat", true, true), Stream: method("Stream", false, true) },
  {
    Echo: (call, callback) => callback(null, call.request),
    Chat: (call) => {
      call.on("data", (message) => call.write(message));
      call.on("end", () => call.end());
    },
    Stream: (call) => {
      let left = N_ANSWERS;
      const more = () => {
        while (left > 0) {
          left--;
          if (!call.write(call.request) && left > 0) {
            call.once("drain", more);
            return;
          }
        }
        call.end();
      };
      more();
    },
  },
);

const credentials = values["tls-cert"]
  ? grpc.ServerCredentials.createSsl(null, [
      { cert_chain: readFileSync(values["tls-cert"]), private_key: readFileSync(values["tls-key"]) },
    ])
  : grpc.ServerCredentials.createInsecure();

server.bindAsync(values.addr, credentials, (error, port) => {
  if (error) throw error;
  console.log(`ready ${port}`);
});
