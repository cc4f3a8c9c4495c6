// SPDX-License-Identifier: Apache-2.0

// The interop cases with grpc-js.
//
//   node client.mjs ADDRESS PROTOS [CA [CERT KEY]]
//
// PROTOS are folders, with ':' between them. Prints one line of JSON for each case: its name, and
// what was wrong or "".

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import grpc from "@grpc/grpc-js";
import protoLoader from "@grpc/proto-loader";

const [address, protos, ca, cert, key] = process.argv.slice(2);
const { status } = grpc;
const LARGE = { responseSize: 314159, payload: { body: Buffer.alloc(271828) } };
const REQUEST_SIZES = [27182, 8, 1828, 45904];
const RESPONSE_SIZES = [31415, 9, 2653, 58979];
const GZIP = 2;

const world = grpc.loadPackageDefinition(
  protoLoader.loadSync(["grpc/testing/test.proto", "grpc/health/v1/health.proto"],
    { includeDirs: protos.split(":"), enums: String }));
const { TestService, UnimplementedService } = world.grpc.testing;
const { Health } = world.grpc.health.v1;

function read(path) {
  return path ? readFileSync(path) : null;
}

function credentials() {
  return ca ? grpc.credentials.createSsl(read(ca), read(key), read(cert))
    : grpc.credentials.createInsecure();
}

function connect(Client, options = {}) {
  return new Client(address, credentials(), options);
}

const client = connect(TestService);
const gzipped = connect(TestService, { "grpc.default_compression_algorithm": GZIP });

// ---- calls as promises ---------------------------------------------------------------------

/** What became of a call: {code, details, messages, headers, trailers}. */
function outcome(call, messages = []) {
  return new Promise((resolve) => {
    const got = { messages, headers: null };
    call.on("metadata", (metadata) => { got.headers = metadata; });
    call.on("data", (message) => messages.push(message));
    call.on("error", () => {});
    call.on("status", (ended) =>
      resolve({ ...got, code: ended.code, details: ended.details, trailers: ended.metadata }));
  });
}

function unary(method, request, { from = client, metadata = new grpc.Metadata(), options = {} } = {}) {
  const messages = [];
  const call = from[method](request, metadata, options,
    (error, message) => { if (!error) messages.push(message); });
  // The status may come before the callback has been called.
  return outcome(call, messages).then((got) => new Promise((resolve) => {
    setImmediate(() => resolve(got));
  }));
}

/** A call of a client that streams and gets one answer. */
function streamIn(from, requests) {
  const messages = [];
  const call = from.streamingInputCall(new grpc.Metadata(), {},
    (error, message) => { if (!error) messages.push(message); });
  const ended = outcome(call, messages);
  for (const request of requests)
    call.write(request);
  call.end();
  return ended.then((got) => new Promise((resolve) => { setImmediate(() => resolve(got)); }));
}

function output(size, responseSize, more = {}) {
  return { responseParameters: [{ size: responseSize, ...more }], payload: { body: Buffer.alloc(size) } };
}

function sizes(got) {
  return got.messages.map((message) => message.payload.body.length);
}

async function expectOk(promise, ...wanted) {
  const got = await promise;
  assert.equal(got.code, status.OK, got.details);
  assert.deepEqual(sizes(got), wanted);
  return got;
}

async function emptyUnary() {
  const got = await unary("emptyCall", {});
  assert.equal(got.code, status.OK, got.details);
  assert.equal(got.messages.length, 1);
}

// ---- the cases -----------------------------------------------------------------------------

const TRAILING = Buffer.from([0xab, 0xab, 0xab]);

function checkEcho(got) {
  assert.deepEqual(got.headers.get("x-grpc-test-echo-initial"), ["test_initial_metadata_value"]);
  assert.deepEqual(got.trailers.get("x-grpc-test-echo-trailing-bin"), [TRAILING]);
}

async function checkStatus(message) {
  const responseStatus = { code: status.UNKNOWN, message };
  const one = await unary("unaryCall", { responseStatus });
  assert.deepEqual([one.code, one.details], [status.UNKNOWN, message]);
  const call = client.fullDuplexCall();
  const ended = outcome(call);
  call.write({ responseStatus });
  call.end();
  const two = await ended;
  assert.deepEqual([two.code, two.details], [status.UNKNOWN, message]);
}

async function atOnce(n, make) {
  await Promise.all(Array.from({ length: n }, make));
}

const cases = {
  empty_unary: emptyUnary,
  async cacheable_unary() {
    const metadata = new grpc.Metadata();
    metadata.set("x-user-ip", "1.2.3.4");
    await expectOk(unary("cacheableUnaryCall", { responseSize: 1 }, { metadata }), 1);
  },
  async large_unary() {
    await expectOk(unary("unaryCall", LARGE), 314159);
  },
  async client_compressed_unary() {
    const compressed = { ...LARGE, expectCompressed: { value: true } };
    assert.equal((await unary("unaryCall", compressed)).code, status.INVALID_ARGUMENT);
    await expectOk(unary("unaryCall", compressed, { from: gzipped }), 314159);
    await expectOk(unary("unaryCall", { ...LARGE, expectCompressed: { value: false } }), 314159);
  },
  async server_compressed_unary() {
    await expectOk(unary("unaryCall", { ...LARGE, responseCompressed: { value: true } }), 314159);
    await expectOk(unary("unaryCall", { ...LARGE, responseCompressed: { value: false } }), 314159);
  },
  async client_streaming() {
    const got = await streamIn(client,
      REQUEST_SIZES.map((size) => ({ payload: { body: Buffer.alloc(size) } })));
    assert.equal(got.code, status.OK, got.details);
    assert.equal(got.messages[0].aggregatedPayloadSize, 74922);
  },
  async client_compressed_streaming() {
    const requests = (value) => [27182, 45904].map((size) =>
      ({ payload: { body: Buffer.alloc(size) }, expectCompressed: { value } }));
    assert.equal((await streamIn(client, requests(true))).code, status.INVALID_ARGUMENT);
    for (const [from, value] of [[gzipped, true], [client, false]]) {
      const got = await streamIn(from, requests(value));
      assert.equal(got.code, status.OK, got.details);
      assert.equal(got.messages[0].aggregatedPayloadSize, 73086);
    }
  },
  async server_streaming() {
    const responseParameters = RESPONSE_SIZES.map((size) => ({ size }));
    await expectOk(outcome(client.streamingOutputCall({ responseParameters })), ...RESPONSE_SIZES);
  },
  async server_compressed_streaming() {
    const responseParameters = [{ size: 31415, compressed: { value: true } },
      { size: 92653, compressed: { value: false } }];
    const got = await expectOk(outcome(client.streamingOutputCall({ responseParameters })),
      31415, 92653);
    assert.equal(got.code, status.OK);
  },
  async ping_pong() {
    const call = client.fullDuplexCall();
    const ended = outcome(call);
    let n = 0;
    const say = () => {
      if (n === REQUEST_SIZES.length)
        call.end();
      else
        call.write(output(REQUEST_SIZES[n], RESPONSE_SIZES[n++]));
    };
    call.on("data", say);
    say();
    await expectOk(ended, ...RESPONSE_SIZES);
  },
  async half_duplex() {
    const call = client.halfDuplexCall();
    const ended = outcome(call);
    REQUEST_SIZES.forEach((size, i) => call.write(output(size, RESPONSE_SIZES[i])));
    call.end();
    await expectOk(ended, ...RESPONSE_SIZES);
  },
  async empty_stream() {
    const call = client.fullDuplexCall();
    const ended = outcome(call);
    call.end();
    await expectOk(ended);
  },
  async custom_metadata() {
    const metadata = new grpc.Metadata();
    metadata.set("x-grpc-test-echo-initial", "test_initial_metadata_value");
    metadata.set("x-grpc-test-echo-trailing-bin", TRAILING);
    checkEcho(await expectOk(unary("unaryCall", LARGE, { metadata }), 314159));
    const call = client.fullDuplexCall(metadata);
    const ended = outcome(call);
    call.write(output(271828, 314159));
    call.end();
    checkEcho(await expectOk(ended, 314159));
  },
  async status_code_and_message() {
    await checkStatus("test status message");
  },
  async special_status_message() {
    await checkStatus("\t\ntest with whitespace\r\nand Unicode BMP \u263a and non-BMP \u{1f608}\t\n");
  },
  async unimplemented_method() {
    assert.equal((await unary("unimplementedCall", {})).code, status.UNIMPLEMENTED);
  },
  async unimplemented_service() {
    const from = connect(UnimplementedService);
    assert.equal((await unary("unimplementedCall", {}, { from })).code, status.UNIMPLEMENTED);
    from.close();
  },
  async cancel_after_begin() {
    const call = client.streamingInputCall(() => {});
    const ended = outcome(call);
    call.cancel();
    assert.equal((await ended).code, status.CANCELLED);
    await emptyUnary();
  },
  async cancel_after_first_response() {
    const call = client.fullDuplexCall();
    const ended = outcome(call);
    call.on("data", () => call.cancel());
    call.write(output(27182, 31415));
    const got = await ended;
    assert.equal(got.code, status.CANCELLED);
    assert.deepEqual(sizes(got), [31415]);
    await emptyUnary();
  },
  async timeout_on_sleeping_server() {
    const call = client.fullDuplexCall(new grpc.Metadata(), { deadline: Date.now() + 50 });
    const ended = outcome(call);
    call.write(output(27182, 31415, { intervalUs: 20_000_000 }));
    assert.equal((await ended).code, status.DEADLINE_EXCEEDED);
    await emptyUnary();
  },
  async concurrent_large_unary() {
    await atOnce(50, () => expectOk(unary("unaryCall", LARGE), 314159));
  },
  async many_calls() {
    await atOnce(2000, emptyUnary);
  },
  async health() {
    const from = connect(Health);
    const got = await unary("check", { service: "grpc.testing.TestService" }, { from });
    assert.equal(got.messages[0].status, "SERVING");
    assert.equal((await unary("check", { service: "nobody" }, { from })).code, status.NOT_FOUND);
    const call = from.watch({ service: "" });
    const ended = outcome(call);
    call.on("data", () => call.cancel());
    const watched = await ended;
    assert.equal(watched.code, status.CANCELLED);
    assert.equal(watched.messages[0].status, "SERVING");
    from.close();
  },
};

// ---- running them --------------------------------------------------------------------------

const PATIENCE_MS = 30_000;

function late() {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`not done within ${PATIENCE_MS} ms`)), PATIENCE_MS).unref();
  });
}

let failed = false;
for (const [name, run] of Object.entries(cases)) {
  let error = "";
  try {
    await Promise.race([run(), late()]);
  } catch (thrown) {
    error = thrown.stack || String(thrown);
    failed = true;
  }
  console.log(JSON.stringify({ name, error }));
}
// Not process.exitCode: grpc-js never closes a connection on which a call was canceled before it
// began, whoever the server is.
process.exit(failed ? 1 : 0);
