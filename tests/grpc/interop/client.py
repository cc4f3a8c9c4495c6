#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The interop cases with Debian's python3-grpcio.

    client.py ADDRESS DESCRIPTORS [CA [CERT KEY]]
    client.py --drain PID ADDRESS DESCRIPTORS

DESCRIPTORS is what protoc --descriptor_set_out wrote. Prints one line of JSON for each case: its
name, and what was wrong or "".
"""

import json
import os
import signal
import sys
import threading
import traceback

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

LARGE_REQUEST, LARGE_RESPONSE = 271828, 314159
REQUEST_SIZES = [27182, 8, 1828, 45904]
RESPONSE_SIZES = [31415, 9, 2653, 58979]
TIMEOUT_S = 30
GZIP = grpc.Compression.Gzip
UNKNOWN = grpc.StatusCode.UNKNOWN.value[0]


# ---- messages and methods --------------------------------------------------------------

class Descriptors:
    """Makes messages and callables from descriptors: no code is generated."""

    def __init__(self, path):
        files = descriptor_pb2.FileDescriptorSet()
        with open(path, "rb") as file:
            files.ParseFromString(file.read())
        self.pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            self.pool.Add(file)
        self.factory = message_factory.MessageFactory(self.pool)

    def type_of(self, descriptor):
        if hasattr(message_factory, "GetMessageClass"):
            return message_factory.GetMessageClass(descriptor)
        return self.factory.GetPrototype(descriptor)

    def message(self, name):
        return self.type_of(self.pool.FindMessageTypeByName(name))

    def method(self, channel, name, kind):
        """`kind` as grpcio calls it, such as unary_stream."""
        method = self.pool.FindMethodByName(name)
        service, _, verb = name.rpartition(".")
        return getattr(channel, kind)(
            f"/{service}/{verb}",
            request_serializer=self.type_of(method.input_type).SerializeToString,
            response_deserializer=self.type_of(method.output_type).FromString)


class World:
    def __init__(self, address, descriptors, credentials):
        self.address, self.credentials = address, credentials
        self.made = Descriptors(descriptors)
        self.channel = self.connect()

    def connect(self):
        if self.credentials:
            return grpc.secure_channel(self.address, self.credentials)
        return grpc.insecure_channel(self.address)

    def message(self, name, **fields):
        return self.made.message(f"grpc.testing.{name}")(**fields)

    def payload(self, size):
        return self.message("Payload", body=bytes(size))

    def flag(self, value):
        return self.message("BoolValue", value=value)

    def large(self, **more):
        return self.message("SimpleRequest", response_size=LARGE_RESPONSE,
                            payload=self.payload(LARGE_REQUEST), **more)

    def parameters(self, size, **more):
        return self.message("ResponseParameters", size=size, **more)

    def output(self, size, response_size, **more):
        return self.message("StreamingOutputCallRequest", payload=self.payload(size),
                            response_parameters=[self.parameters(response_size, **more)])

    def stub(self, name, kind, service="grpc.testing.TestService"):
        return self.made.method(self.channel, f"{service}.{name}", kind)

    def empty_call(self):
        return self.stub("EmptyCall", "unary_unary")(self.message("Empty"), timeout=TIMEOUT_S)

    def unary_call(self, request, **more):
        return self.stub("UnaryCall", "unary_unary")(request, timeout=TIMEOUT_S, **more)

    def input_call(self, requests, **more):
        return self.stub("StreamingInputCall", "stream_unary")(iter(requests), timeout=TIMEOUT_S,
                                                               **more)

    def output_call(self, *parameters):
        request = self.message("StreamingOutputCallRequest", response_parameters=parameters)
        return self.stub("StreamingOutputCall", "unary_stream")(request, timeout=TIMEOUT_S)

    def duplex_call(self, requests, timeout=TIMEOUT_S, **more):
        return self.stub("FullDuplexCall", "stream_stream")(requests, timeout=timeout, **more)


def same(got, wanted):
    assert got == wanted, f"{got!r} should be {wanted!r}"


def sizes(messages):
    return [len(message.payload.body) for message in messages]


def code_of(call, *args, **more):
    """The status with which a call fails, and its words."""
    try:
        call(*args, **more)
    except grpc.RpcError as error:
        return error.code(), error.details()
    return grpc.StatusCode.OK, ""


# ---- one request, one answer -----------------------------------------------------------

def empty_unary(world):
    world.empty_call()


def cacheable_unary(world):
    call = world.stub("CacheableUnaryCall", "unary_unary")
    answer = call(world.message("SimpleRequest", response_size=1), timeout=TIMEOUT_S,
                  metadata=[("x-user-ip", "1.2.3.4")])
    same(len(answer.payload.body), 1)


def large_unary(world):
    same(len(world.unary_call(world.large()).payload.body), LARGE_RESPONSE)


def client_compressed_unary(world):
    compressed = world.large(expect_compressed=world.flag(True))
    same(code_of(world.unary_call, compressed)[0], grpc.StatusCode.INVALID_ARGUMENT)
    same(len(world.unary_call(compressed, compression=GZIP).payload.body), LARGE_RESPONSE)
    plain = world.large(expect_compressed=world.flag(False))
    same(len(world.unary_call(plain).payload.body), LARGE_RESPONSE)


def server_compressed_unary(world):
    for is_compressed in (True, False):
        request = world.large(response_compressed=world.flag(is_compressed))
        same(len(world.unary_call(request).payload.body), LARGE_RESPONSE)


# ---- streams ---------------------------------------------------------------------------

def client_streaming(world):
    answer = world.input_call(
        world.message("StreamingInputCallRequest", payload=world.payload(size))
        for size in REQUEST_SIZES)
    same(answer.aggregated_payload_size, 74922)


def client_compressed_streaming(world):
    def requests(is_compressed):
        return [world.message("StreamingInputCallRequest", payload=world.payload(size),
                              expect_compressed=world.flag(is_compressed))
                for size in (27182, 45904)]

    same(code_of(world.input_call, requests(True))[0], grpc.StatusCode.INVALID_ARGUMENT)
    same(world.input_call(requests(True), compression=GZIP).aggregated_payload_size, 73086)
    same(world.input_call(requests(False)).aggregated_payload_size, 73086)


def server_streaming(world):
    same(sizes(world.output_call(*map(world.parameters, RESPONSE_SIZES))), RESPONSE_SIZES)


def server_compressed_streaming(world):
    call = world.output_call(world.parameters(31415, compressed=world.flag(True)),
                             world.parameters(92653, compressed=world.flag(False)))
    same(sizes(call), [31415, 92653])


def ping_pong(world):
    answered, got = threading.Semaphore(1), []

    def requests():
        for size, response_size in zip(REQUEST_SIZES, RESPONSE_SIZES):
            assert answered.acquire(timeout=TIMEOUT_S)
            yield world.output(size, response_size)

    for message in world.duplex_call(requests()):
        got.append(message)
        answered.release()
    same(sizes(got), RESPONSE_SIZES)


def half_duplex(world):
    call = world.stub("HalfDuplexCall", "stream_stream")
    same(sizes(call(map(world.output, REQUEST_SIZES, RESPONSE_SIZES), timeout=TIMEOUT_S)),
         RESPONSE_SIZES)


def empty_stream(world):
    same(list(world.duplex_call(iter(()))), [])


# ---- metadata and status ---------------------------------------------------------------

METADATA = [("x-grpc-test-echo-initial", "test_initial_metadata_value"),
            ("x-grpc-test-echo-trailing-bin", b"\xab\xab\xab")]


def check_echo(call):
    same([tuple(pair) for pair in call.initial_metadata() if pair[0] == METADATA[0][0]],
         METADATA[:1])
    same([tuple(pair) for pair in call.trailing_metadata() if pair[0] == METADATA[1][0]],
         METADATA[1:])


def custom_metadata(world):
    stub = world.stub("UnaryCall", "unary_unary")
    _, call = stub.with_call(world.large(), metadata=METADATA, timeout=TIMEOUT_S)
    check_echo(call)
    call = world.duplex_call(iter([world.output(LARGE_REQUEST, LARGE_RESPONSE)]),
                             metadata=METADATA)
    same(sizes(call), [LARGE_RESPONSE])
    check_echo(call)


def check_status(world, words):
    status = world.message("EchoStatus", code=UNKNOWN, message=words)
    wanted = (grpc.StatusCode.UNKNOWN, words)
    same(code_of(world.unary_call, world.message("SimpleRequest", response_status=status)), wanted)
    request = world.message("StreamingOutputCallRequest", response_status=status)
    same(code_of(lambda: list(world.duplex_call(iter([request])))), wanted)


def status_code_and_message(world):
    check_status(world, "test status message")


def special_status_message(world):
    check_status(world, "\t\ntest with whitespace\r\nand Unicode BMP \u263a and non-BMP "
                        "\U0001f608\t\n")


def spaces_at_the_ends(world):
    """grpcio sends values as they are, and takes them so. A request with spaces around a value is
    malformed (RFC 9113, 8.2.1); in a status we encode them."""
    check_status(world, " not found: ")
    stub = world.stub("UnaryCall", "unary_unary")
    same(code_of(stub, world.large(), timeout=TIMEOUT_S,
                 metadata=(("x-grpc-test-echo-initial", "  a b "),))[0],
         grpc.StatusCode.INTERNAL)


def unimplemented_method(world):
    call = world.stub("UnimplementedCall", "unary_unary")
    same(code_of(call, world.message("Empty"), timeout=TIMEOUT_S)[0],
         grpc.StatusCode.UNIMPLEMENTED)


def unimplemented_service(world):
    call = world.stub("UnimplementedCall", "unary_unary", "grpc.testing.UnimplementedService")
    same(code_of(call, world.message("Empty"), timeout=TIMEOUT_S)[0],
         grpc.StatusCode.UNIMPLEMENTED)


# ---- ends that come early --------------------------------------------------------------

def cancel_after_begin(world):
    never = threading.Event()

    def requests():
        never.wait(TIMEOUT_S)
        yield world.message("StreamingInputCallRequest")

    call = world.stub("StreamingInputCall", "stream_unary").future(requests())
    call.cancel()
    never.set()
    same(call.code(), grpc.StatusCode.CANCELLED)
    world.empty_call()


def cancel_after_first_response(world):
    got = threading.Event()

    def requests():
        yield world.output(REQUEST_SIZES[0], RESPONSE_SIZES[0])
        got.wait(TIMEOUT_S)

    call = world.duplex_call(requests())
    same(len(next(call).payload.body), RESPONSE_SIZES[0])
    call.cancel()
    got.set()
    same(code_of(next, call)[0], grpc.StatusCode.CANCELLED)
    world.empty_call()


def timeout_on_sleeping_server(world):
    request = world.output(REQUEST_SIZES[0], RESPONSE_SIZES[0], interval_us=20_000_000)
    same(code_of(lambda: list(world.duplex_call(iter([request]), timeout=0.05)))[0],
         grpc.StatusCode.DEADLINE_EXCEEDED)
    world.empty_call()


# ---- many ------------------------------------------------------------------------------

def concurrent_large_unary(world):
    stub, request = world.stub("UnaryCall", "unary_unary"), world.large()
    for call in [stub.future(request, timeout=TIMEOUT_S) for _ in range(50)]:
        same(len(call.result().payload.body), LARGE_RESPONSE)


def many_calls(world):
    stub, request = world.stub("EmptyCall", "unary_unary"), world.message("Empty")
    for call in [stub.future(request, timeout=TIMEOUT_S) for _ in range(2000)]:
        call.result()


def health(world):
    service, serving = "grpc.health.v1.Health", 1
    request = world.made.message("grpc.health.v1.HealthCheckRequest")
    check = world.stub("Check", "unary_unary", service)
    same(check(request(service="grpc.testing.TestService"), timeout=TIMEOUT_S).status, serving)
    same(code_of(check, request(service="nobody"), timeout=TIMEOUT_S)[0],
         grpc.StatusCode.NOT_FOUND)
    watch = world.stub("Watch", "unary_stream", service)(request(), timeout=TIMEOUT_S)
    same(next(watch).status, serving)
    watch.cancel()


CASES = [
    empty_unary, cacheable_unary, large_unary, client_compressed_unary, server_compressed_unary,
    client_streaming, client_compressed_streaming, server_streaming, server_compressed_streaming,
    ping_pong, half_duplex, empty_stream, custom_metadata, status_code_and_message,
    special_status_message, spaces_at_the_ends, unimplemented_method, unimplemented_service,
    cancel_after_begin, cancel_after_first_response, timeout_on_sleeping_server,
    concurrent_large_unary, many_calls, health,
]


# ---- the end of the server -------------------------------------------------------------

def drain(world, pid):
    """What runs goes on to its end when the server is asked to stop; new calls are refused."""
    wait_us = 300_000
    call = world.output_call(*(world.parameters(size, interval_us=wait_us)
                               for size in RESPONSE_SIZES))
    got = [next(call)]
    os.kill(pid, signal.SIGTERM)
    got += call
    same(sizes(got), RESPONSE_SIZES)
    same(call.code(), grpc.StatusCode.OK)
    same(code_of(world.empty_call)[0], grpc.StatusCode.UNAVAILABLE)


# ---- running them ----------------------------------------------------------------------

def read(path):
    with open(path, "rb") as file:
        return file.read()


def credentials_of(files):
    if not files:
        return None
    ca, cert, key = [read(path) for path in files] + [None] * (3 - len(files))
    return grpc.ssl_channel_credentials(root_certificates=ca, private_key=key,
                                        certificate_chain=cert)


def run(name, case):
    error = ""
    try:
        case()
    except Exception:  # pylint: disable=broad-except
        error = traceback.format_exc()
    print(json.dumps({"name": name, "error": error}), flush=True)
    return bool(error)


def main():
    args = sys.argv[1:]
    if args[0] == "--drain":
        world = World(args[2], args[3], None)
        return run("drain", lambda: drain(world, int(args[1])))
    world = World(args[0], args[1], credentials_of(args[2:]))
    failed = [run(case.__name__, lambda case=case: case(world)) for case in CASES]
    return 1 if any(failed) else 0


if __name__ == "__main__":
    sys.exit(main())
