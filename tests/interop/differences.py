# SPDX-License-Identifier: Apache-2.0
"""Where our gateway does other things on Redis than goa-ai's registry did in the captures. Each has its reason, stands in
docs/goa.md in the same words, and must be seen in a replay: one that is not seen any more fails the test.

`kind`: "not sent", a command of theirs that we do not send; "sent", one of ours that is not in the captures; "changed",
a command that both send, with `pattern` replaced by `becomes` in theirs. Commands are in the form of commands.py; own
keys of the gateway, peg:<name>:*, are not looked at: nothing of theirs reads them.
"""

import re


class Difference:
    def __init__(self, kind, pattern, becomes, what, why):
        self.kind, self.pattern, self.becomes = kind, re.compile(pattern), becomes
        self.what, self.why = what, why
        self.n_seen = 0


REQUESTS = r"pulse:stream:toolset:\S+:requests"
RESULTS = r"pulse:stream:result:\S+"

DIFFERENCES = (
    Difference("not sent", r"map:registry:|SCRIPT LOAD|^PING$", None,
               "No `map:registry:*`: toolsets, health and tickers are in keys of the gateway's own, `peg:<name>:*`.",
               "Agents and providers never read them. A start takes 157 scripts and 13 connections there."),
    Difference("not sent", r"registry:(pool|node):?|sink:events:", None,
               "No `pulse:stream:registry:pool`, no streams of nodes, no sink `events`.",
               "The node that holds a lease pings; there is no pool of workers to keep."),
    Difference("sent", rf"^XGROUP CREATE {REQUESTS} provider \$ MKSTREAM$", None,
               "Register makes the group `provider` at `$`.",
               "A ping or a call that is added before the provider has made its group is lost otherwise."),
    Difference("sent", rf"^XADD {REQUESTS} \* n ping ", None,
               "The first ping comes with Register, later ones at the interval.",
               "A toolset is healthy as soon as its provider reads, not 10 s later."),
    Difference("changed", r'"ping_id":"<id>(/<id>)?"', '"ping_id":"<ping>"',
               "`ping_id` is a time and 32 hex digits, not a UUID or two.",
               "A pong of a ping that is older than the registration can be told by it. Providers send it back as it is."),
    Difference("changed", rf"^(XADD {REQUESTS}) MAXLEN ~ 1000 ", r"\1 ",
               "Requests are added without `MAXLEN ~ 1000`; the stream is trimmed by `XTRIM MINID` below what the group has "
               "not read or not acknowledged.",
               "A length drops calls that no provider has read."),
    Difference("changed", rf"^(XADD {RESULTS}) MAXLEN ~ 1000 ", r"\1 ",
               "`init` is added without `MAXLEN ~ 1000`.",
               "It is the first entry."),
    Difference("changed", rf"^(EXPIRE {RESULTS}) 900 NX$", r"\1 960 NX",
               "A result stream expires after 960 s, not 900 s.",
               "A call has 900 s; a result that comes at the last moment can still be read."),
    Difference("sent", rf"^XADD {RESULTS} NOMKSTREAM \* n result ", None,
               "A result is added again, with `NOMKSTREAM`: after 100 ms, and while the stream is there up to four times more.",
               "Agents drop a result that they read before they listen, one call in some hundreds, and then take 20 s."),
    Difference("sent", r"^(SET|GET|DEL) registry:result-stream:", None,
               "`registry:result-stream:<id>` is written for every call, with an expiry.",
               "v0.31.0 writes it. `EmitToolResult` finds any call by it, at any node."),
    Difference("sent", rf"^(XRANGE|EXISTS) {RESULTS}", None,
               "The gateway watches result streams (client tracking) and reads them when they change.",
               "It adds the result again, and keeps it for callers that wait or ask once more."),
    Difference("sent", rf"^(XINFO GROUPS|XPENDING|XTRIM) {REQUESTS}", None,
               "The node that pings looks at the group and trims.",
               "See above: nothing unread is dropped."),
    Difference("sent", r"^(SCAN|HSCAN|HDEL|EXPIRE) (.* )?(map:sink:(agent|gateway):|map:stream:result:|pulse:stream:result:\*)",
               None,
               "The node that pings removes what agents leave: old fields of `map:sink:agent:keepalive:content` and "
               "`map:sink:gateway:keepalive:content`; maps and streams of results without an expiry get one.",
               "Agents read the whole hash at every call: 3 times the latency after 9,000 calls."),
)
