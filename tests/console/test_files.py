#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: the gateway serves the console whole, small, and so that a browser runs nothing else; and not at all with
--no-console.

    test_files.py PEGBOARD
"""

import gzip
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))

from gateways import gateway  # noqa: E402
from scenario import ROOT, check, main, scenario  # noqa: E402

VERSIONS = ("--http1.1", "--http2-prior-knowledge")
SENT_BYTES = 100_000
ALL_BYTES = 110_000
TYPES = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
         "svg": "image/svg+xml"}


def sources():
    folder = os.path.join(ROOT, "console")
    found = {}
    for name in os.listdir(folder):
        if name != "meson.build":
            with open(os.path.join(folder, name), "rb") as file:
                found[name] = file.read()
    return found


def fetch(w, path, *arguments, version=VERSIONS[0]):
    """(status, headers, body)"""
    ran = subprocess.run(["curl", "-sS", "-i", version, "-m", "60", *arguments, f"http://{w.at}{path}"], capture_output=True,
                         check=False)
    check(ran.returncode == 0, path, ran.stderr)
    head, _, body = ran.stdout.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    return int(lines[0].split()[1]), headers, body


def path_of(name):
    return "/" if name == "index.html" else "/console/" + name


@scenario
def every_file_comes_as_it_is_or_by_gzip_in_both_versions_of_http(w):
    with gateway(w):
        for version in VERSIONS:
            for name, data in sources().items():
                status, headers, body = fetch(w, path_of(name), version=version)
                check(status == 200 and body == data, name, status, headers)
                check(headers["content-type"] == TYPES[name.rsplit(".", 1)[1]], name, headers)
                check("content-encoding" not in headers and headers["vary"] == "accept-encoding", name, headers)
                status, packed, body = fetch(w, path_of(name), "-H", "accept-encoding: gzip, br", version=version)
                check(status == 200 and packed["content-encoding"] == "gzip", name, packed)
                check(gzip.decompress(body) == data and len(body) < len(data), name)
                check(packed["etag"] != headers["etag"], name, packed)


@scenario
def a_browser_that_has_a_file_is_told_so(w):
    with gateway(w):
        for more in ((), ("-H", "accept-encoding: gzip")):
            _, headers, _ = fetch(w, "/console/main.js", *more)
            check(headers["cache-control"] == "no-cache", headers)
            for known in (headers["etag"], "W/" + headers["etag"], '"other", ' + headers["etag"]):
                status, again, body = fetch(w, "/console/main.js", *more, "-H", "if-none-match: " + known)
                check(status == 304 and body == b"" and again["etag"] == headers["etag"], known, status, again)
                check("content-security-policy" in again and "content-encoding" not in again, again)
            check(fetch(w, "/console/main.js", *more, "-H", 'if-none-match: "other"')[0] == 200)
        status, headers, body = fetch(w, "/", "-I")
        check(status == 200 and body == b"" and int(headers["content-length"]) == len(sources()["index.html"]), headers)


@scenario
def nothing_inline_and_no_other_host_can_run_in_it(w):
    with gateway(w):
        for name, data in sources().items():
            _, headers, _ = fetch(w, path_of(name))
            policy = headers["content-security-policy"]
            check("unsafe" not in policy and "*" not in policy and "http" not in policy, policy)
            for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'none'",
                         "base-uri 'none'", "require-trusted-types-for 'script'"):
                check(part in policy, part, policy)
            check(headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY", headers)
            check(headers["cross-origin-resource-policy"] == "same-origin", headers)
            text = data.decode()
            check(not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), name)
            others = set(re.findall(r"https?://[^\s\"'`)]+", text)) - {"http://www.w3.org/2000/svg"}
            check(not others, name, others)
        page = sources()["index.html"].decode()
        check(not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page), "something is inline")


@scenario
def all_of_it_is_small_and_every_file_is_preloaded(w):
    files = sources()
    total = sum(map(len, files.values()))
    packed = sum(len(gzip.compress(data, 9)) for data in files.values())
    print(f"# the console: {len(files)} files, {total} bytes, {packed} by gzip")
    check(packed < SENT_BYTES and total < ALL_BYTES, packed, total)
    page = files["index.html"].decode()
    for name in files:
        check(name == "index.html" or f"/console/{name}" in page, "index.html does not name", name)


@scenario
def what_is_not_there_is_404_and_so_is_all_without_a_console(w):
    with gateway(w):
        for path in ("/console/none.js", "/console/", "/console", "/console/..%2Fmeson.build", "/console/meson.build"):
            check(fetch(w, path, "--path-as-is")[0] == 404, path)
        status, headers, _ = fetch(w, "/", "-d", "{}", "-H", "content-type: application/json")
        check(status == 405 and headers["allow"] == "GET, HEAD", status, headers)
    with gateway(w, "--no-console") as serving:
        check(fetch(w, "/")[0] == 404 and fetch(w, "/console/main.js")[0] == 404)
        check(fetch(w, "/v1/toolsets")[0] == 200, "the API is still there")
        serving.end()
        check("Console" not in serving.read.decode() + serving.line(), "it names a page that is not there")


@scenario
def the_page_needs_no_token_and_what_it_shows_does(w):
    w.pegboard("token", "new", "--token-file", "tokens", "ada").exits(0)
    with gateway(w, "--token-file", w.path("tokens")):
        check(fetch(w, "/")[0] == 200 and fetch(w, "/console/main.js")[0] == 200)
        check(fetch(w, "/v1/toolsets")[0] == 401)


main()
