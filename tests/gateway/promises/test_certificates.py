#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Client certificates through a whole gateway: whose a toolset is, who runs the gateway, tokens
beside them, certificates that are replaced, and `pegboard provide` with one.

    test_certificates.py PEGBOARD
"""

import atexit
import contextlib
import http.client
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import types

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it would tell of each refusal

import grpc  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(os.path.dirname(HERE))]
sys.dont_write_bytecode = True

import tap  # noqa: E402
from certificates import Certificates, own_address  # noqa: E402
from world import (PEGBOARD, Caller, Failed, Gateway, Provider, await_true,  # noqa: E402
                   fails_as, make_token, outcome, toolset, token_file, v1)

MANIFEST = "toolset: texts\ntools:\n  - {name: echo, description: Says it., command: [cat]}\n"

SIGNED = None


def signed():
    """A CA, the gateway, anna and ben: made once."""
    global SIGNED  # pylint: disable=global-statement
    if not SIGNED:
        SIGNED = Certificates(tempfile.mkdtemp(prefix="certificates-"))
        atexit.register(shutil.rmtree, SIGNED.folder)
        SIGNED.make_ca().sign_server().sign("anna").sign("ben")
    return SIGNED


@contextlib.contextmanager
def gateway_of(certs, *arguments, tokens=(), address=None):
    """A gateway that asks for certificates that the CA signed; its folder is theirs."""
    gateway = Gateway("--tls-cert", certs.path("server.pem"), "--tls-key",
                      certs.path("server.key"), "--tls-client-ca", certs.path("ca.pem"), *arguments)
    gateway.tokens = {name: make_token(gateway, name) for name in tokens}
    if tokens:
        gateway.arguments += ("--token-file", token_file(gateway))
    gateway.address = f"{address or '127.0.0.1'}:{gateway.port}"
    with gateway:
        yield gateway


def caller_of(gateway, certs, name, token=None, ca="ca"):
    return Caller(gateway, token, credentials=certs.credentials(name, ca))


def owner_of(caller, name):
    return caller.ask("GetToolset", v1("GetToolsetRequest", name=name)).toolset.owner


def is_let_in(caller):
    """Or it cannot connect at all."""
    try:
        caller.method("ListToolsets")(v1("ListToolsetsRequest"), timeout=30)
        return True
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNAVAILABLE, error
        return False
    finally:
        caller.close()


# ---- whose it is ----------------------------------------------------------------------------

def test_a_toolset_is_of_the_certificate_that_registered_it():
    certs = signed()
    with gateway_of(certs) as gateway, caller_of(gateway, certs, "anna") as anna, \
            caller_of(gateway, certs, "ben") as ben, \
            Provider(gateway, "sums", caller=anna) as provider:
        assert owner_of(ben, "sums") == "cert:anna"
        with fails_as("permission_denied"):
            ben.ask("Register", toolset("sums", version="9.9.9"))
        with fails_as("permission_denied"):
            ben.ask("Unregister", v1("UnregisterRequest", name="sums"))
        for registers in (True, False):
            intruder = Provider(gateway, "sums", caller=ben, registers=registers)
            with fails_as("permission_denied"):
                intruder.ready()
        future = ben.start_call("sums")
        call = provider.next_call()
        assert call.caller == "cert:ben"
        thief = Provider(gateway, "other", caller=ben).ready()
        thief.answer(call, b"666")
        with fails_as("not_found"):
            ben.ask("EmitToolResult", v1("EmitToolResultRequest", call_id=call.call_id,
                                         attempt=call.attempt, result=b"666"))
        provider.answer(call, b"1")
        assert outcome(future).result == b"1"
        anna.ask("Unregister", v1("UnregisterRequest", name="sums"))


def test_who_has_no_certificate_or_one_of_somebody_else_does_not_connect():
    certs = signed()
    certs.make_ca("other").sign("eve", ca="other")
    with gateway_of(certs) as gateway:
        assert is_let_in(caller_of(gateway, certs, "anna"))
        assert not is_let_in(caller_of(gateway, certs, None))
        eve = grpc.ssl_channel_credentials(certs.read("ca.pem"), certs.read("eve.key"),
                                           certs.read("eve.pem"))
        assert not is_let_in(Caller(gateway, credentials=eve))
        assert not is_let_in(Caller(gateway))


# ---- tokens beside them ---------------------------------------------------------------------

def test_with_tokens_and_certificates_each_does_and_a_token_goes_first():
    certs = signed()
    with gateway_of(certs, tokens=("ci",)) as gateway:
        token = gateway.tokens["ci"]
        for name, shown, owner in (("anna", None, "cert:anna"), (None, token, "token:ci"),
                                   ("anna", token, "token:ci")):
            with caller_of(gateway, certs, name, shown) as caller:
                caller.ask("Register", toolset("sums"))
                assert owner_of(caller, "sums") == owner
                caller.ask("Unregister", v1("UnregisterRequest", name="sums"))
        for name, shown in ((None, None), ("anna", "peg_" + "A" * 43)):
            with caller_of(gateway, certs, name, shown) as caller, fails_as("unauthenticated"):
                caller.ask("ListToolsets", v1("ListToolsetsRequest"))


def metrics_status(gateway, certs, name, shown=None):
    """What GET /metrics is answered with, over TLS with that certificate and token, if any."""
    context = ssl.create_default_context(cafile=certs.path("ca.pem"))
    if name:
        context.load_cert_chain(certs.path(name + ".pem"), certs.path(name + ".key"))
    headers = {"Authorization": "Bearer " + shown} if shown else {}
    connection = http.client.HTTPSConnection("127.0.0.1", gateway.port, timeout=30, context=context)
    with contextlib.closing(connection):
        connection.request("GET", "/metrics", headers=headers)
        answer = connection.getresponse()
        assert (b"pegboard_build_info" in answer.read()) == (answer.status == 200)
        return answer.status


def test_metrics_take_a_certificate_or_a_token_as_every_rpc_does():
    certs = signed()
    wrong = "peg_" + "A" * 43
    with gateway_of(certs, tokens=("ci",)) as gateway:
        token = gateway.tokens["ci"]
        for name, shown, status in (("anna", None, 200), (None, token, 200), ("anna", token, 200),
                                    (None, None, 401), (None, wrong, 401), ("anna", wrong, 401)):
            assert metrics_status(gateway, certs, name, shown) == status, (name, shown)
            with caller_of(gateway, certs, name, shown) as caller, \
                    fails_as("permission_denied" if status == 200 else "unauthenticated"):
                caller.ask("Status", v1("StatusRequest"), service="pegboard.v1.Admin")
    with gateway_of(certs) as gateway:
        assert metrics_status(gateway, certs, "anna") == 200


def test_operators_are_the_certificates_of_admin_names_and_the_tokens_of_admin():
    certs = signed()
    far_address = own_address() or "127.0.0.1"
    with gateway_of(certs, "--admin-names", "somebody,anna", tokens=("ci",),
                    address="0.0.0.0") as gateway:
        admin = make_token(gateway, "ops", "--admin")
        gateway.process.send_signal(signal.SIGHUP)
        await_true(lambda: "event=reload" in gateway.said(), "the new token is known")
        for host in ("127.0.0.1", far_address):
            far = types.SimpleNamespace(address=f"{host}:{gateway.port}")
            for name, token in ((None, gateway.tokens["ci"]), ("anna", gateway.tokens["ci"]),
                                ("ben", None)):
                with caller_of(far, certs, name, token) as caller:
                    caller.ask("ListToolsets", v1("ListToolsetsRequest"))
                    for verb in ("Status", "Nodes", "DrainNode"):
                        with fails_as("permission_denied"):
                            caller.ask(verb, v1(verb + "Request"), service="pegboard.v1.Admin")
            with caller_of(far, certs, None, admin) as caller:
                assert not caller.ask("Status", v1("StatusRequest"),
                                      service="pegboard.v1.Admin").node.draining
        with caller_of(far, certs, "anna") as caller:
            assert not caller.ask("Status", v1("StatusRequest"),
                                  service="pegboard.v1.Admin").node.draining
            caller.ask("DrainNode", v1("DrainNodeRequest"), service="pegboard.v1.Admin")
        assert gateway.process.wait(30) == 0


# ---- new ones -------------------------------------------------------------------------------

def test_sighup_takes_new_certificates_for_new_connections():
    with tempfile.TemporaryDirectory() as folder:
        certs = Certificates(folder).make_ca().sign_server().sign("anna")
        certs.make_ca("next").sign_server("fresh", ca="next").sign("cleo", ca="next")
        with gateway_of(certs) as gateway, caller_of(gateway, certs, "anna") as anna:
            anna.ask("Register", toolset("sums"))
            old, new = (certs.read(name).decode() for name in ("server.pem", "fresh.pem"))
            assert served_by(gateway) == old
            replace(certs, "fresh.pem", "server.pem")  # its key is another's: the old one goes on
            read_again(gateway, "result=failed")
            assert served_by(gateway) == old and is_let_in(caller_of(gateway, certs, "anna"))
            replace(certs, "fresh.key", "server.key")
            replace(certs, "next.pem", "ca.pem")
            read_again(gateway, "result=ok")
            assert served_by(gateway) == new
            assert owner_of(anna, "sums") == "cert:anna", "who is connected stays"
            with caller_of(gateway, certs, "cleo", ca="next") as cleo:
                cleo.ask("Register", toolset("more"))
                assert owner_of(cleo, "more") == "cert:cleo"
            assert not is_let_in(caller_of(gateway, certs, "anna", ca="next"))


def replace(certs, new, old):
    shutil.copy(certs.path(new), certs.path(old + ".new"))
    os.replace(certs.path(old + ".new"), certs.path(old))


def read_again(gateway, said):
    gateway.process.send_signal(signal.SIGHUP)
    await_true(lambda: said in gateway.said(), "the log has " + said)


def served_by(gateway):
    """The certificate that a new connection is shown."""
    return ssl.get_server_certificate(("127.0.0.1", gateway.port))


# ---- the command ----------------------------------------------------------------------------

def test_provide_and_call_show_a_certificate():
    certs = signed()
    with open(certs.path("tools.yaml"), "w", encoding="ascii") as file:
        file.write(MANIFEST)

    def command(who, *arguments):
        return [PEGBOARD, *arguments, "--registry", gateway.address, "--tls-ca",
                certs.path("ca.pem"), "--tls-cert", certs.path(who + ".pem"), "--tls-key",
                certs.path(who + ".key")]

    def run(who, *arguments):
        return subprocess.run(command(who, *arguments), capture_output=True, text=True, timeout=60,
                              check=False)

    with gateway_of(certs) as gateway, caller_of(gateway, certs, "ben") as ben, \
            subprocess.Popen(command("anna", "provide", certs.path("tools.yaml")),
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as providing:
        try:
            await_true(lambda: is_provided(ben, "texts"), "it is provided")
            assert owner_of(ben, "texts") == "cert:anna"
            called = run("ben", "call", "texts", "echo")
            assert called.stdout == "{}\n", called
            refused = run("ben", "provide", certs.path("tools.yaml"))
            assert refused.returncode == 3 and "permission_denied" in refused.stderr, refused
        finally:
            providing.terminate()
        assert providing.wait(30) == 0


def is_provided(caller, name):
    try:
        return caller.health(name).state == 1
    except Failed:
        return False


if __name__ == "__main__":
    sys.exit(tap.run(globals()))
