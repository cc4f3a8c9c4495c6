# SPDX-License-Identifier: Apache-2.0
"""Commands to Redis as MONITOR shows them and as the captures have them, brought to one form so that runs can be
compared: ids, times and lengths of a run are replaced, JSON has its members in order, options are in capitals."""

import json
import os
import re
import threading

import tap

HERE = os.path.dirname(os.path.abspath(__file__))
CAPTURES = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(HERE))), "shared", "data", "goa-capture")

OPTIONS = {"create", "createconsumer", "delconsumer", "mkstream", "nomkstream", "group", "groups", "consumers", "count",
           "block", "streams", "maxlen", "minid", "nx", "px", "ex", "load"}
ULID = re.compile(r"(?<![0-9A-Z])[0-9A-HJKMNP-TV-Z]{26}(?![0-9A-Z])")
RUN_ONLY = ((re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<id>"), (ULID, "<ulid>"),
            (re.compile(r"\b\d{19}\b"), "<ns>"), (re.compile(r"\b\d{16}(?=\|)"), "<us>"),
            (re.compile(r"\b\d{13}-\d+\b"), "<entry>"), (re.compile(r"\b\d{13}\b"), "<ms>"),
            (re.compile(r"<ms>/[0-9a-f]{32}"), "<ping>"),  # ours
            (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "<date>"))
# What comes again and again whatever else happens: compared as a set, not in its place.
PERIODIC = re.compile(r"^(PING|XREADGROUP|XREAD|XAUTOCLAIM|GET sink:|SET sink:|EVALSHA 1 sink:"
                      r"|[A-Z]+ .*map:registry:node-keepalive:)")
# A value that a capture cuts off is compared so far.
SHORT = 120


class Command:
    def __init__(self, who, words, scene=""):
        self.who, self.words, self.scene = who, words, scene
        self.role = ""

    def text(self, ids=()):
        """In the form of all. `ids` are texts to be taken for ids."""
        words = [self.words[0].upper()] + [option_or(word, ids) for word in self.words[1:]]
        if words[0].startswith("EVALSHA"):
            words = ["EVALSHA"] + words[1 if "<" in self.words[0] else 2:]
        return " ".join(words)

    def __repr__(self):
        return f"{self.role or self.who} {self.text()}"


def option_or(word, ids):
    if word.lower() in OPTIONS:
        return word.upper()
    for known in ids:
        word = word.replace(known, "<id>")
    for pattern, name in RUN_ONLY:
        word = pattern.sub(name, word)
    if '"PayloadSchema"' in word:  # its length differs, too
        return re.sub(r"(‹..›|.)(‹..›|.)‹00›‹00›(?=\{)", "", word)[:SHORT]
    if word.startswith("{"):
        try:
            return json.dumps(json.loads(word), sort_keys=True, separators=(",", ":"))
        except ValueError:
            pass
    return word


# ---- the captures ----

LINE = re.compile(r"^ *([\d.]+) +(\S+) +(\S.*?) ?$")
LOADS = re.compile(r"^ +SCRIPT LOAD x(\d+)$")


def split_words(text):
    """Words are separated by spaces; one in single quotes has some, and its end may be missing."""
    words = []
    while text:
        if text.startswith("'"):
            end = text.find("' ")
            word, text = (text[1:], "") if end < 0 else (text[1:end], text[end + 2:])
            words.append(word.removesuffix("'"))
        else:
            word, _, text = text.partition(" ")
            words.append(word)
    return [re.sub(r"\\x([0-9a-f]{2})", r"‹\1›", word) for word in words]


def read_capture(version):
    """Its commands, with roles."""
    path = os.path.join(CAPTURES, version + ".txt")
    if not os.path.exists(path):
        raise tap.Skip(f"the capture of {version} is not beside this repository (shared/data/goa-capture)")
    commands, scene, last, loads = [], "", "", []
    with open(path, encoding="utf-8") as file:
        for line in file:
            line = line.rstrip("\n")
            if line.startswith("#### "):
                scene = line[5:]
            elif match := LOADS.match(line):
                loads += [Command("", ["SCRIPT", "LOAD"], scene) for _ in range(int(match[1]))]
            elif match := LINE.match(line):
                who = last if match[2] == "lua" else match[2]
                command = Command(who, split_words(match[3]), scene)
                if loads and command.words[0] in ("SUBSCRIBE", "HGETALL"):
                    commands += [set_who(load, who) for load in loads]
                    loads = []
                commands.append(command)
                last = who
    return set_roles(commands)


def set_who(command, who):
    command.who = who
    return command


# The first pattern that a connection's commands match says whose it is.
ROLES = (("provider", r"XREADGROUP group provider|XACK \S+ provider|sink:provider:|stream:toolset:\S+:sinks"),
         ("agent", r"(XREADGROUP group|XACK \S+) agent|sink:agent:|map:stream:result:|DEL pulse:stream:result:"),
         ("registry", r"EVALSHA.* map:registry:|SUBSCRIBE map:|XADD|events|XREAD "))


def set_roles(commands):
    said = {}
    for command in commands:
        said[command.who] = said.get(command.who, "") + " ".join(command.words) + "\n"
    roles = {who: next((role for role, pattern in ROLES if re.search(pattern, text)), "test")
             for who, text in said.items()}
    for command in commands:
        command.role = roles[command.who]
    return commands


# ---- a run ----

WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')
ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|.)")
ESCAPES = {"n": "‹0a›", "r": "‹0d›", "t": "‹09›", "a": "‹07›", "b": "‹08›"}
SHOWN = re.compile(r'^[\d.]+ \[\d+ ([^\]]+)\] (.*)$')


def unescape(match):
    what = match[1]
    return f"‹{what[1:]}›" if len(what) == 3 else ESCAPES.get(what, what)


class Monitor:
    """What a server is asked, by scenes: mark() begins one. Connections that `whose` has a role for are told by it."""

    def __init__(self, make_connection, whose):
        self.whose = whose
        self.connection, self.marker = make_connection(), make_connection()
        self.connection.call("MONITOR")
        self.commands, self.scene, self.last = [], "", ""
        self.seen = threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            while True:
                shown = SHOWN.match(self.connection.finish().decode("utf-8", "backslashreplace"))
                self.take(shown[1], [ESCAPE.sub(unescape, word) for word in WORD.findall(shown[2])])
        except OSError:
            pass

    def take(self, who, words):
        with self.seen:
            if who == self.marker.name:
                self.scene = words[1]
            elif who == "lua":
                self.commands.append(Command(self.last, words, self.scene))
            elif words[0].upper() not in ("HELLO", "AUTH", "CLIENT", "SELECT"):
                is_load = [word.upper() for word in words[:2]] == ["SCRIPT", "LOAD"]
                self.commands.append(Command(who, words[:2] if is_load else words, self.scene))
                self.last = who
            self.seen.notify_all()

    def mark(self, scene):
        """All that was asked before is read when it returns, and belongs to the scene before."""
        self.marker.call("ECHO", scene)
        with self.seen:
            assert self.seen.wait_for(lambda: self.scene == scene, 20), "MONITOR is silent"

    def of(self, role):
        self.mark("end")
        with self.seen:
            for command in self.commands:
                command.role = self.whose(command.who)
            return [command for command in self.commands if command.role == role]

    def close(self):
        self.connection.socket.shutdown(2)
        self.marker.close()


def split_periodic(commands, ids=()):
    """The commands in their order, and the set of those that come again and again."""
    once, again, last = [], set(), {}
    for command in commands:
        text = command.text(ids)
        is_sweep = text.startswith("XINFO CONSUMERS") and last.get(command.who) == "XAUTOCLAIM"
        last[command.who] = command.words[0].upper()
        if is_sweep or PERIODIC.match(text):
            again.add(text)
        else:
            once.append(text)
    return once, again
