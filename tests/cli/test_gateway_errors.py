#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: who uses the command for the first time and gets something wrong is told what, in words of
the command, and what to do: no field of the C library, no address said three times."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading

from gateways import NOWHERE, ask, gateway, make_certificate, provided, running, until
from scenario import check, main, scenario


@contextlib.contextmanager
def listener(answer):
    """A server on this machine that is no gateway; `answer` gets each connection."""
    def serve(server):
        with contextlib.suppress(OSError):
            while True:
                answer(server.accept()[0])

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,), daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


# ---- nobody answers ----------------------------------------------------------------------


@scenario
def a_refused_connection_suggests_to_start_a_gateway_or_name_another(w):
    ran = w.pegboard("list", "--registry", NOWHERE).exits(3).complains(
        f"pegboard: no gateway answers at {NOWHERE}: connection refused; start one with `pegboard "
        "serve`, or name another with --registry or PEGBOARD_REGISTRY (")
    check(ran.stderr.count(NOWHERE) == 1, ran)
    path = "unix:" + w.path("nope")
    ran = w.pegboard("list", "--registry", path).exits(3).complains(
        f"no gateway answers at {path}: no such file or directory; start one")
    check("localhost" not in ran.stderr, ran)


@scenario
def a_server_that_ends_the_connection_at_once_may_speak_tls(w):
    with gateway(w, *make_certificate(w)):
        ask(w, "list").exits(3).complains(
            f"something listens at {w.at}, but ended the connection at once: if it speaks TLS, add "
            "--tls or --tls-ca FILE")
    with listener(lambda connection: connection.close()) as at:
        w.pegboard("list", "--registry", at).exits(3).complains(f"something listens at {at}")


@scenario
def a_server_without_tls_differs_from_a_missing_one(w):
    with gateway(w):
        ask(w, "list", "--tls").exits(3).complains(f"{w.at} does not speak TLS: leave out --tls (")
        make_certificate(w)
        ask(w, "list", "--tls-ca", "cert.pem").exits(3).complains(
            f"{w.at} does not speak TLS: leave out --tls-ca, and unset PEGBOARD_TLS_CA")


@scenario
def a_certificate_that_is_not_accepted_says_which_option_helps(w):
    with gateway(w, *make_certificate(w, "other.example", "DNS:other.example")):
        ask(w, "list", "--tls").exits(3).complains(
            f"the certificate of {w.at} is not accepted: self", "trust it with --tls-ca FILE")
        ask(w, "list", "--tls-ca", "cert.pem").exits(3).complains(
            f"the certificate of {w.at} is not accepted: IP address mismatch; give --registry a name")


@scenario
def a_server_of_another_protocol_is_no_gateway(w):
    def speak_http1(connection):
        connection.recv(9)  # what was not read would end it with a reset
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")
        connection.recv(65536)
        connection.shutdown(socket.SHUT_WR)

    with listener(speak_http1) as at:
        w.pegboard("list", "--registry", at).exits(3).complains(
            f"what listens at {at} is no gateway: this is no HTTP/2", "--registry")


@scenario
def a_host_without_a_port_has_a_gateway_at_9090(w):
    w.pegboard("list", "--registry", "127.99.0.1").exits(3).complains("at 127.99.0.1:9090: ")
    w.pegboard("list", "--registry", "[::1]:1").exits(3).complains("at [::1]:1: ")


@scenario
def a_port_without_a_host_is_one_of_this_machine(w):
    with gateway(w):
        port = ":" + w.at.rsplit(":", 1)[1]
        w.pegboard("list", "--registry", port).exits(0)
        w.pegboard("list", env={"PEGBOARD_REGISTRY": port}).exits(0)
    w.pegboard("list", "--registry", ":1").exits(3).complains("no gateway answers at :1: ")


# ---- watch -------------------------------------------------------------------------------


@scenario
def a_watch_ends_when_refused_and_waits_for_a_missing_gateway(w):
    w.pegboard("token", "new", "--token-file", "tokens", "ci").exits(0)
    with gateway(w, "--token-file", w.path("tokens")):
        for env in ({}, {"PEGBOARD_TOKEN": "peg_" + "x" * 43}):
            ask(w, "watch", env=env).exits(3).prints("").complains("(unauthenticated)")
    with running(w, "watch", "--registry", NOWHERE) as watching:
        watching.line_with("lost", f"no gateway answers at {NOWHERE}", "; waiting for it")
        check(watching.end() == 0, "it was stopped")


# ---- serve -------------------------------------------------------------------------------


@scenario
def what_a_gateway_prints_to_be_typed_works_with_its_tokens_and_certificates(w):
    token = w.pegboard("token", "new", "--token-file", "tokens", "ci").exits(0).stdout
    w.write("FILE", token)
    with gateway(w, "--token-file", w.path("tokens")) as serving:
        line = serving.line_with("pegboard list ").split()
        check(line[-2:] == ["--token", "FILE"], line)
        w.pegboard(*line[1:]).exits(0)
        serving.line_with("pegboard token new --token-file")
    with gateway(w, *make_certificate(w)) as serving:
        os.replace(w.path("cert.pem"), w.path("FILE"))
        line = serving.line_with("pegboard list ").split()
        check(line[-2:] == ["--tls-ca", "FILE"], line)
        w.pegboard(*line[1:]).exits(0)


@scenario
def a_cluster_keeps_its_toolsets_on_redis(w):
    w.pegboard("serve", "--store", "sqlite", "--addr", "127.0.0.1:0", "--redis", "redis://x").exits(2).complains(
        "--store sqlite is for one node", "--redis or REDIS_URL")
    w.pegboard("serve", "--addr", "127.0.0.1:0", "--redis", "http://x").exits(2).complains("E_REDIS_URL")


@scenario
def an_address_that_is_a_name_is_not_reported_as_reached(w):
    for more in ([], ["--insecure"]):
        w.pegboard("serve", "--store", "memory", "--addr", "nohost.invalid:1", *more).exits(2).complains(
            "'nohost.invalid' is a name: listen on an address, such as 127.0.0.1:1 or :1 (E_LISTEN)")


@scenario
def a_file_in_the_way_of_a_socket_is_reported_and_stays(w):
    w.write("notes", "mine")
    w.pegboard("serve", "--store", "memory", "--addr", "unix:notes").exits(2).complains(
        "cannot listen on unix:notes: what is there is not a socket",
        "; remove it, or choose another path (E_LISTEN)")
    with open(w.path("notes"), encoding="utf-8") as file:
        check(file.read() == "mine", "the file is as it was")


@scenario
def an_address_of_no_use_leaves_no_folder_behind(w):
    w.write("notes", "mine")
    with listener(lambda connection: connection.close()) as taken:
        for words, code in (
                (["--addr", "nonsense"], "E_ADDRESS"),
                (["--addr", "nohost.invalid:1"], "E_LISTEN"),
                (["--addr", "0.0.0.0:0"], "E_LISTEN_INSECURE"),
                (["--addr", taken], "E_LISTEN"),
                (["--addr", "unix:notes"], "E_LISTEN"),
                (["--addr", "unix:missing/socket"], "E_LISTEN"),
                (["--addr", "systemd"], "E_LISTEN"),
                (["--addr", "unix:s", "--admin-addr", "nonsense"], "E_ADDRESS"),
                (["--addr", "unix:s", "--admin-addr", "0.0.0.0:0"], "E_LISTEN_INSECURE"),
                (["--addr", "unix:s", "--admin-addr", taken], "E_LISTEN")):
            w.pegboard("serve", "--data-dir", "data", *words).exits(2).complains(f"({code})")
            check(os.listdir(w.directory) == ["notes"], words, os.listdir(w.directory))


@scenario
def a_path_of_no_use_says_what_would_be(w):
    start = ("serve", "--store", "memory", "--addr")
    for words, told in (
            (["unix:nope/s"], "(ENOENT); make its folder, or choose another path (E_LISTEN)"),
            (["192.0.2.1:0"], "(EADDRNOTAVAIL); listen on an address of this machine, such as "
             "127.0.0.1 (E_LISTEN)"),
            (["unix:s", "--token-file", "nope"],
             "the token file 'nope' cannot be opened: No such file or directory: `pegboard token "
             "new --token-file FILE NAME` makes one (E_TOKEN_FILE)"),
            (["unix:s", "--log-file", "nope/log"],
             "No such file or directory; make its folder, and let the user that runs this write "
             "there (E_LOG_FILE)"),
            (["unix:s", "--tls-cert", "nope", "--tls-key", "nope"],
             "the certificate file 'nope' cannot be read: No such file or directory; check its "
             "name, and that the user that runs this may read it (E_TLS_CONFIG)")):
        insecure = ["--insecure"] if words[0][0] == "1" else []
        w.pegboard(*start, *words, *insecure).exits(2).complains(told)
    cert, key = make_certificate(w)[1::2]
    w.pegboard(*start, "unix:s", "--tls-cert", cert, "--tls-key", "nope").exits(2).complains(
        "the key file 'nope'")
    w.pegboard(*start, "unix:s", "--tls-cert", cert, "--tls-key", key, "--tls-client-ca",
               "nope").exits(2).complains("the CA file 'nope'")
    w.write("text", "no certificate")
    w.pegboard(*start, "unix:s", "--tls-cert", "text", "--tls-key", key).exits(2).complains(
        "text: no certificate can be read from it", "; name a PEM file that has it (E_TLS_CONFIG)")
    w.pegboard("list", "--token", "nope").exits(2).complains(
        "the token file 'nope' cannot be read: ", "; see pegboard-token(1)")


def drop_privileges():
    """For a child: root may write everywhere."""
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)


@scenario
def a_folder_that_cannot_be_written_to_says_what_to_do(w):
    words = ("cannot be written to: ", "; give it to the user that runs this, use --data-dir, or "
             "--store memory (E_FILE)")
    w.write("file", "")
    w.pegboard("serve", "--addr", "127.0.0.1:0", "--data-dir", "file").exits(2).complains(
        "the folder 'file' for the store", "Not a directory", *words)
    os.mkdir(w.path("closed"), 0o555)
    os.chmod(w.directory, 0o755)
    with contextlib.suppress(subprocess.SubprocessError, PermissionError):  # the command is not theirs
        w.pegboard("--version", preexec_fn=drop_privileges).exits(0)
        w.pegboard("serve", "--addr", "127.0.0.1:0", "--data-dir", "closed",
                   preexec_fn=drop_privileges).exits(2).complains(
            "the folder 'closed' for the store", "Permission denied", *words)
        w.pegboard("serve", "--store", "memory", "--addr", "unix:closed/s",
                   preexec_fn=drop_privileges).exits(2).complains(
            "(EACCES); let the user that runs this write to its folder, or choose another path")


# ---- names that are not known ------------------------------------------------------------


@scenario
def a_name_that_is_nearly_right_is_answered_with_the_right_one(w):
    w.pegboard("serv").exits(2).complains("did you mean 'serve'? `pegboard help` lists them")
    w.pegboard("lst").exits(2).complains("did you mean 'list'?")
    w.pegboard("zzz").exits(2).complains("there is no command 'zzz'; `pegboard help` lists them")
    with gateway(w), provided(w):
        for command in (["call", "weathr", "say"], ["get", "weathr"], ["unregister", "we"]):
            ask(w, *command).exits(1).complains(
                "; did you mean 'weather'? `pegboard list` shows all (not_found)")
        ask(w, "get", "dentist").exits(1).complains("not found; `pegboard list` shows all (not_found)")
        for command in ("call", "get"):
            ask(w, command, "weather", "ech").exits(1).complains(
                "toolset 'weather' has no tool 'ech'; did you mean 'echo'? `pegboard get weather` "
                "shows those it has (not_found)")


# ---- arguments ---------------------------------------------------------------------------


@scenario
def an_at_reads_a_file_unless_it_is_doubled(w):
    with gateway(w), provided(w):
        ran = ask(w, "call", "weather", "echo", "city=@@alice").exits(0)
        check(json.loads(ran.stdout) == {"city": "@alice"}, ran)
        ask(w, "call", "weather", "echo", "city=@alice").exits(2).complains(
            "cannot be opened", "; for the text itself write city=@@alice")
        ran = ask(w, "call", "weather", "echo", "--args", "-", stdin='{"city": "Oslo"}').exits(0)
        check(json.loads(ran.stdout) == {"city": "Oslo"}, ran)
        w.write("bad.json", '{"city":\n  Oslo}')
        ask(w, "call", "weather", "echo", "--args", "@bad.json").exits(2).complains(
            "--args: bad.json:2:3: ")
        ask(w, "call", "weather", "echo", "--args", "-", stdin="{").exits(2).complains(
            "--args: <stdin>:1:2: ")


@scenario
def a_file_that_is_too_large_names_no_missing_option(w):
    with open(w.path("huge.json"), "wb") as file:
        file.truncate(3 << 30)  # a hole: nothing of it is read
    with gateway(w), provided(w):
        for words in (["--args", "@huge.json"], ["city=@huge.json"]):
            ran = ask(w, "call", "weather", "echo", *words).exits(2).complains(
                "the file is larger than ", " bytes, which is the most: give a smaller one")
            check("--max-bytes" not in ran.stderr, ran)
    w.pegboard("definitions", "--provider", "neutral", "huge.json").exits(2).complains(
        "give a smaller one")
    w.pegboard("validate", "huge.json", "huge.json").exits(2).complains("; raise it with --max-bytes")


@scenario
def a_value_that_does_not_fit_is_exit_status_1_however_it_was_given(w):
    with gateway(w), provided(w):
        for words in (["days=abc"], ["days:=\"abc\""], ["--args", '{"city":"x","days":"abc"}']):
            given = words if words[0] == "--args" else ["city=x", *words]
            ask(w, "call", "weather", "echo", *given).exits(1).prints("").complains(
                "days", "integer", "(validation_error)")
        for words in (["days"], ["days:={"], ["days=@missing"], ["--args", "{"],
                      ["--args", "@missing"]):
            ask(w, "call", "weather", "echo", *words).exits(2).prints("")


# ---- what became of a call that was not made ---------------------------------------------


def envelope(w, status, *arguments, **more):
    """The one object that a call prints, however it ended."""
    ran = w.pegboard("call", "--json", *arguments, **more).exits(status).is_silent()
    (told,) = ran.objects()
    check(told["call_id"] == "" and told["result"] is None and not told["started"], ran)
    return told


@scenario
def every_refusal_is_an_envelope_with_a_name_of_the_wire(w):
    told = envelope(w, 3, "weather", "say", "--registry", NOWHERE)
    check(told["outcome"] == "refused" and told["error"]["name"] == "service_unavailable", told)
    check("pegboard serve" in told["error"]["message"], told)
    told = envelope(w, 2, "weather", "say", "--token", "missing")
    check(told["outcome"] == "refused" and "missing" in told["error"]["message"], told)
    with gateway(w), provided(w):
        at = ("--registry", w.at)
        w.write("large.json", '{"city":"' + "x" * (20 << 20) + '"}')
        for status, name, arguments in (
                (1, "not_found", ["nowhere", "say"]),
                (1, "not_found", ["weather", "nope"]),
                (1, "validation_error", ["weather", "echo", "days=five"]),
                (1, "validation_error", ["weather", "echo", "--args", '{"days":"five"}']),
                (2, "validation_error", ["weather", "echo", "--args", "{"]),
                (2, "limit_exceeded", ["weather", "echo", "--args", "@large.json"])):
            told = envelope(w, status, *arguments, *at)
            check(told["outcome"] == "refused" and told["error"]["name"] == name, arguments, told)
        told = envelope(w, 1, "weather", "nope", "--stream", *at)
        check(told["event"] == "end", told)


@scenario
def an_unauthenticated_caller_reads_which_option_helps(w):
    w.pegboard("token", "new", "--token-file", "tokens", "ci").exits(0)
    with gateway(w, "--token-file", w.path("tokens")):
        ask(w, "list").exits(3).complains("(--token FILE or PEGBOARD_TOKEN) (unauthenticated)")
        w.write("m.yaml", SLOW)
        ask(w, "provide", "m.yaml").exits(3).complains(
            "`pegboard token new` (--token FILE or PEGBOARD_TOKEN) (E_PROVIDER_REFUSED)")
        told = envelope(w, 3, "weather", "say", "--registry", w.at)
        check(told["error"]["name"] == "unauthenticated", told)
        ran = ask(w, "list", env={"PEGBOARD_TOKEN": "peg_" + "x" * 43}).exits(3)
        check("--token FILE" not in ran.stderr, ran)


@scenario
def a_token_where_a_file_is_expected_is_not_repeated(w):
    token = w.pegboard("token", "new", "--token-file", "tokens", "ci").exits(0).stdout.strip()
    w.write("m.yaml", "toolset: t\ndescription: d\ntools: []\n")
    for command in (["list"], ["call", "a", "b", "--json"], ["provide", "m.yaml"], ["watch"]):
        ran = w.pegboard(*command, "--token", token, "--registry", NOWHERE).exits(2).complains(
            "--token takes a file, and there is none of that name: PEGBOARD_TOKEN has the token "
            "itself; see `pegboard ")
        check(token not in ran.stderr + ran.stdout, ran)
    serve = ["serve", "--store", "memory", "--addr", "127.0.0.1:0"]
    for command in (serve, ["token", "new", "bob"]):
        ran = w.pegboard(*command, "--token-file", token).exits(2).complains(
            "there is none of the name given, which looks like a token itself", "(E_TOKEN_FILE)")
        check(token not in ran.stderr + ran.stdout, ran)
    check(token not in os.listdir(w.directory), "a file has the name of the token")
    w.write("peg_file", token + "\n")
    with gateway(w, "--token-file", w.path("tokens")):
        ask(w, "list", "--token", "peg_file").exits(0)


@scenario
def a_server_that_says_nothing_is_waited_for_as_long_as_the_call_may_take(w):
    held = []
    with listener(held.append) as at:
        w.pegboard("call", "a", "b", "--timeout", "300ms", "--registry", at).exits(3).complains(
            f"{at} did not answer within 300 ms: see whether a gateway listens there (timeout)")
        told = envelope(w, 3, "a", "b", "--timeout", "1s", "--registry", at)
        check(told["outcome"] == "timeout" and "within 1 s" in told["error"]["message"], told)


# ---- nobody reads what it prints -----------------------------------------------------------


@scenario
def without_a_reader_it_works_and_ends_as_ever(w):
    tool = "  - {name: t%d, description: " + "x" * 200 + ", command: [cat]}\n"
    w.write("many.yaml", "toolset: many\ndescription: d\ntools:\n"
            + "".join(tool % i for i in range(50)))  # more than what is held back
    read_end, write_end = os.pipe()
    os.close(read_end)
    w.pegboard("provide", "--check", "many.yaml", stdout=write_end).exits(0).is_silent()
    w.pegboard("token", "new", "--token-file", "tokens", "ci").exits(0)
    with gateway(w, "--token-file", w.path("tokens")):
        ran = w.pegboard("provide", "many.yaml", "--registry", w.at, stdout=write_end).exits(3)
        check("could not be written" not in ran.stderr, ran)
    os.close(write_end)


# ---- a tool that takes too long ------------------------------------------------------------


SLOW = """
toolset: slow
description: Tools that sleep
tools:
  - {name: short, description: Sleeps, timeout: 3s, command: [sleep, "60"]}
  - {name: again, description: Sleeps, timeout: 3s, idempotent: true, command: [sleep, "60"]}
"""


@scenario
def a_tool_that_was_ended_halfway_is_always_exit_status_4(w):
    w.write("slow.yaml", SLOW)
    with gateway(w), running(w, "provide", "slow.yaml", "--registry", w.at,
                             stderr=subprocess.DEVNULL):
        until(w, lambda a: a["health"]["state"] == "healthy", "get", "slow")
        # Provider and gateway each see that time is over: either may be first.
        for tool, words in (("short", "part of its effect"), ("again", "again is harmless")):
            ran = ask(w, "call", "slow", tool).exits(4).prints("")
            check("outcome unknown" in ran.stderr
                  or f"slow {tool} ran for its whole 3 s and was ended; " in ran.stderr
                  and words in ran.stderr, ran)
        told = json.loads(ask(w, "call", "slow", "short", "--json").exits(4).stdout)
        check(told["outcome"] in ("error", "outcome_unknown") and told["started"], told)


# ---- a gateway that runs ------------------------------------------------------------------


@scenario
def inherited_sockets_need_authentication_and_have_no_address(w):
    def serve(server, *arguments):
        hand_over = f'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@" 3<&{server.fileno()}'
        return running(w, "-c", hand_over, w.executable, "serve", "--addr", "systemd", "--store",
                       "memory", *arguments, program="sh", stderr=subprocess.PIPE,
                       pass_fds=[server.fileno()])

    with socket.create_server(("127.0.0.1", 0)) as server:
        with serve(server) as serving:
            check(serving.wait() == 2, "it does not start")
            words = serving.process.stderr.read().decode()
            check("give --token-file" in words and "set --insecure" in words, words)
        with serve(server, "--insecure") as serving:
            check("listens on the sockets of systemd" in serving.line(), "where it listens")
            serving.line_with("pegboard list --registry ADDR\n")
            w.pegboard("list", "--registry", f"127.0.0.1:{server.getsockname()[1]}").exits(0)


@scenario
def a_log_that_cannot_be_opened_again_keeps_no_token_in_force(w):
    w.pegboard("token", "new", "--token-file", "tokens", "--out", "ci.token", "ci").exits(0)
    os.mkdir(w.path("logs"))
    with gateway(w, "--token-file", w.path("tokens"), "--log-file", w.path("logs/log"),
                 stderr=subprocess.PIPE) as serving:
        ask(w, "list", "--token", "ci.token").exits(0)
        os.rename(w.path("logs"), w.path("elsewhere"))
        w.write("tokens", "")
        os.chmod(w.path("tokens"), 0o600)
        serving.send(signal.SIGHUP)
        words = serving.process.stderr.readline().decode()
        check("SIGHUP: the log file" in words and "cannot be opened" in words, words)
        ask(w, "list", "--token", "ci.token").exits(3).complains("unauthenticated")


@scenario
def a_disk_that_takes_no_more_is_reported_in_the_log(w):
    schema = {"type": "object", "description": "d" * 3000}
    tools = [{"name": f"t{i}", "description": "d", "input_schema": schema, "command": ["true"]}
             for i in range(40)]
    w.write("large.json", {"toolset": "large", "tools": tools})
    small_files = "trap '' XFSZ; ulimit -f 160; exec \"$0\" \"$@\""  # in blocks of 512 bytes
    with running(w, "-c", small_files, w.executable, "serve", "--addr", "unix:s", "--data-dir",
                 "data", "--log-file", "log", program="sh") as serving:
        serving.line_with("listens on")
        with running(w, "provide", "large.json", "--registry", "unix:s", stderr=subprocess.PIPE) as \
                providing:
            while b"event=lost" not in (line := providing.process.stderr.readline()):
                check(line, "it is not lost")
        check(serving.end() == 0, "it goes on")
    with open(w.path("log"), encoding="utf-8") as log:
        lines = [line for line in log if "code=store_failed" in line]
    check(lines and "level=error" in lines[0] and 'toolset \\"large\\"' in lines[0], lines)


if __name__ == "__main__":
    main()
