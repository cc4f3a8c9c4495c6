# SPDX-License-Identifier: Apache-2.0
"""Holds a history against the promises. What concerns one call and its registers the simulator's own
checker does (check_history.c: once, start, unstarted, result, output); here is what needs time and faults:

  lost      every caller gets an end, by name, from the gateway; cut off is only who asked a node that went
  deadline  no provider is handed a call whose time is over by cluster time
  fence     a node that stood still hands no call over on a claim whose answer it cannot have read before
  unknown   an outcome is unknown only if a provider was handed the call, or the registers that would
            tell belong to another epoch, or have expired
  rolling   if nodes are only drained, one after the other, no call fails: who is refused, or finds no node at
            an address, asks another
  well      a call that no fault comes near ends as its tool says, or at its own deadline
"""

import collections
import subprocess

from providers import TOOLS

# A node may hand a call over just before its deadline; then it is on its way between two processes of a busy machine.
ON_ITS_WAY_S = 1.0
# After the last fault leases end, nodes and providers connect again, with back-off.
RECOVERY_S = 8.0
CLAIM_TRUST_S = 1.0
# Of registers of a call without an identity, after its deadline (src/calls/value.c); how far clocks may differ.
KEEP_UNKEYED_S = 15.0
SKEW_S = 1.0
STARVED_S = 0.1
# After its deadline, or the last fault: for nodes to connect again and learn what became of the call.
LATE_S = 15.0
# A loop that is connected reads the epoch each second; one that connects again, with back-off, when it does.
EPOCH_S = 6.0
KINDS = {"result": "result", "error": "error", "timeout": "timeout", "canceled": "canceled",
         "outcome_unknown": "outcome_unknown"}


def check(world, program):
    """The promises that were not kept, each with what shows it, and counts."""
    history = world.history
    asks = collections.defaultdict(list)  # by the number of the call
    for ask in history.asks:
        asks[ask.n].append(ask)
    ids = collections.defaultdict(set)
    for call in history.calls.values():
        if call.n is not None:
            ids[call.n].add(call.id)
    for ask in history.asks:
        if ask.call_id:
            history.call(ask.call_id).n = ask.n
            history.call(ask.call_id).tool = ask.tool
            ids[ask.n].add(ask.call_id)
    problems = []
    for ask in history.asks:
        problems += check_ask(world, ask, [history.calls[i] for i in ids[ask.n]])
    if world.plan.kind == "rolling":
        for mine in asks.values():
            problems += check_rolling(mine)
    for call in history.calls.values():
        problems += check_handed(world, call)
    problems += replay(history, asks, ids, program)
    return problems, count(history, asks)


# ---- callers ----

def check_ask(world, ask, calls):
    history = world.history
    if ask.end is None or ask.end == "lost":
        yield "lost", repr(ask)
        return
    if ask.verb != "AwaitTool" and is_late(history, ask):
        yield "lost", f"its end came late: {ask}"
    if ask.end == "cut" and not was_down(world, ask):
        yield "lost", f"cut off by a node that did not go: {ask}"
    if ask.end == "not_found" and not may_be_missing(history, ask, calls):
        yield "lost", f"it is not known any more: {ask}"
    if ask.end == "outcome_unknown" and not is_truly_unknown(history, ask, calls):
        yield "unknown", repr(ask)
    if is_calm(world, ask) and not is_well(ask, calls):
        yield "well", repr(ask)


def is_late(history, ask):
    """A call that was started waits for Redis: no node may tell an end that it cannot write."""
    repaired = [fault["until"] for fault in history.faults if fault["until"] and fault["until"] <= ask.ended]
    return ask.ended > max([ask.asked + ask.timeout_s, *repaired]) + LATE_S


def may_be_missing(history, ask, calls):
    """Toolsets are there again when other nodes have written them; calls that could not run are forgotten."""
    if history.lost_between(ask.asked - RECOVERY_S, ask.ended):
        return True
    return not ask.message.startswith("toolset") and not any(call.starts for call in calls)


def is_calm(world, ask):
    """Nothing was wrong with what it needs, nor had this machine too little time for leases."""
    history = world.history
    return (not history.disturbed(ask.asked, ask.ended, RECOVERY_S + world.plan.lease_s) and
            max(history.lag(ask.asked), history.lag(ask.ended)) < world.plan.lease_s / 10)


def was_down(world, ask):
    """A client that does not reach a node fails for a while with what it learned last."""
    since = 10 if "failed to connect" in ask.message else 2
    node = world.nodes[ask.node]
    return any(begin <= ask.ended and ask.asked <= (until or ask.ended) + since for begin, until in node.downs)


def is_truly_unknown(history, ask, calls):
    """A claim that a provider side has written counts: the call may be on its way to its provider. Claims of
    calls that stay in a node are not seen."""
    if history.epoch_changed(ask.asked, ask.ended) or outlived_its_registers(ask):
        return True
    if any(call.starts or any(letter == "k" and is_claim(value) for _, letter, _, value, _ in call.puts) or
           was_taken_over(call) for call in calls):
        return True
    if not ask.call_id or not is_node_local(ask.call_id):
        return False
    return bool(history.disturbed(ask.asked, ask.ended, 2)) or was_starved(ask)


def was_starved(ask):
    """This machine had no time for its node: its deadline was long over when that noticed. So it may have been
    claimed, and its provider have received it too late to start it."""
    return ask.ended - ask.asked > ask.timeout_s + STARVED_S


def outlived_its_registers(ask):
    """Its node had no Redis until they had expired: an absent claim proves nothing then."""
    return not ask.key and ask.ended >= ask.asked + ask.timeout_s + KEEP_UNKEYED_S - SKEW_S


def was_taken_over(call):
    """A coordinator that takes a call over cannot tell which further attempts the one before it made: an
    attempt that its provider side refused leaves no register behind."""
    decided = [bytes.fromhex(value)[32:40] for _, letter, _, value, _ in call.puts if letter == "c"]
    revoked = [bytes.fromhex(value).split(b" ")[1].split(b".")[0].decode() for _, letter, _, value, _ in call.puts
               if letter == "k" and value != "-" and not is_claim(value)]
    return any(address != node[::-1].hex() for address in revoked for node in decided)


def is_claim(value):
    owner = bytes.fromhex(value).split(b" ")[0] if value != "-" else b""
    return owner not in (b"revoked", b"ended", b"")


def is_ended(value):
    return value != "-" and bytes.fromhex(value).startswith(b"ended ")


def is_node_local(call_id):
    return len(call_id) == 32 and int(call_id[-1], 16) & 1


def is_well(ask, calls):
    if ask.end in ("result", "error"):
        return (ask.end == "error") == (ask.tool == "fails")
    if ask.end in ("timeout", "outcome_unknown") and ask.ended - ask.asked >= 0.9 * ask.timeout_s - 0.05:
        return True
    if ask.end in ("canceled", "timeout", "outcome_unknown"):  # by another of its callers, or at its deadline
        return bool(ask.key)
    return ask.end == "left" or (ask.end == "overloaded" and not any(call.starts for call in calls))


def check_rolling(mine):
    for ask in mine:
        if ask.end == "cut" and "failed to connect" not in ask.message:
            yield "rolling", f"its connection was cut: {ask}"
        is_short = ask.timeout_s < TOOLS[ask.tool][2] + 1.0
        is_failed = ask.end not in ("result", "error", "left", "cut") and not ask.is_refused
        if is_failed and not is_short and ask.verb != "AwaitTool":
            yield "rolling", repr(ask)
    if mine[-1].is_refused and mine[-1].is_patient:
        yield "rolling", f"nobody took it: {mine[-1]}"


# ---- providers ----

def check_handed(world, call):
    history = world.history
    for when, attempt, provider, deadline, now, node in call.starts:
        if stood_still(history, call, when, attempt, node):
            yield "fence", f"{call.id} attempt {attempt} was handed to {provider} by node {node}, which had stood still"
        if any(-1 < when - step < world.plan.lease_s + 6 for step in history.steps):
            continue  # nodes have yet to learn what time it is
        if history.disturbed(when - (now - deadline) - ON_ITS_WAY_S, when, 0.1, ("stop",)):
            continue  # it stood still between its last look at the clock and the write
        late = now - deadline - ON_ITS_WAY_S - history.lag(when)
        if late > 0:
            yield "deadline", (f"{call.id} attempt {attempt} was handed to {provider} {now - deadline:.3f} s past its "
                               "deadline")


def stood_still(history, call, when, attempt, node):
    """Its claim was on its way back when the node was stopped, for longer than a claim is trusted."""
    claimed = [put[0] for put in call.puts if put[1] == "k" and put[2] == attempt and is_claim(put[3]) and
               put[0] <= when][-1:]  # after registers were lost there is another
    for fault in history.faults:
        if fault["what"] == "stop" and fault["node"] == node and fault["delay"] and "stopped" in fault:
            is_on_its_way = any(fault["stopped"] - 0.5 * fault["delay"] < at < fault["until"] for at in claimed)
            is_asked_again = any(at > fault["stopped"] + fault["delay"] for at, n in call.claims if n == attempt)
            if is_on_its_way and not is_asked_again and fault["until"] - fault["stopped"] > CLAIM_TRUST_S + 0.2 and when > fault["until"]:
                return True
    return False


# ---- the simulator's checker ----

def replay(history, asks, ids, program):
    lines, sole = [], {}
    for call in history.calls.values():
        mine = asks.get(call.n, [])
        lines += lines_of(history, call, mine)
        sole[call.id] = mine
    done = subprocess.run([program], input="".join(lines), capture_output=True, text=True, check=False)
    if done.returncode:
        yield "harness", f"{program}: {done.returncode} {done.stderr[-300:]}"
    for line in done.stdout.splitlines():
        call_id, promise, message = line.split(" ", 2)
        yield promise, f"{message}; {call_id} {history.calls[call_id].tool} {sole[call_id]}"


def is_lost(history, call, mine):
    """Registers were lost, or may have been, while it lived."""
    times = [ask.asked for ask in mine] + [ask.ended for ask in mine if ask.ended]
    times += [put[0] for put in call.puts] + [start[0] for start in call.starts]
    return bool(times) and history.lost_between(min(times) - EPOCH_S, max(times))


def is_of_an_unseen_call(history, letter, n, value, since, when):
    """Its coordinator sent nothing, so it has just written an identity, which was lost before MONITOR showed it:
    between a restart and a flush, for instance."""
    return letter == "k" and n == 1 and is_ended(value) and history.lost_between(since, when)


def lines_of(history, call, mine):
    """Registers first, then providers, then callers: who saw them saw them in another order."""
    yield f"call {call.id} {int(bool(call.tool and TOOLS[call.tool][0]))} {int(is_lost(history, call, mine))}\n"
    identity = None
    for when, letter, n, value, _ in call.puts:
        if letter == "c":
            identity = (when, value)
        elif identity and is_of_an_unseen_call(history, letter, n, value, identity[0], when):
            identity = (when, identity[1])
            yield f"put c 0 {identity[1]}\n"
        yield f"put {letter} {n} {value}\n"
    for _, attempt, provider, _, _, _ in call.starts:
        yield f"start {attempt} {provider}\n"
    for token in call.produced:
        yield f"produce {token}\n"
    for token in call.outputs:
        yield f"output {token}\n"
    for ask in mine:
        yield from line_of_end(ask, call, len(mine))
    yield "end\n"


def line_of_end(ask, call, n_asks):
    if ask.end in (None, "lost", "cut", "left"):
        return
    if ask.is_refused:
        if not ask.started and n_asks == 1 and ask.end != "not_found":
            yield "refused\n"
    elif ask.call_id == call.id:
        error = "-" if ask.end in ("result", "error") else ask.end
        yield f"notify {KINDS.get(ask.end, 'error')} {error} {int(bool(ask.started))} {ask.response}\n"


# ---- counts ----

def count_again(history, counts, call, mine):
    """Second starts and second ends of an identity: only where registers were lost, which the checker sees to."""
    where = "across lost registers" if is_lost(history, call, mine) else "with all registers kept"
    is_idempotent = bool(call.tool) and TOOLS[call.tool][0]
    ends = {(ask.end, ask.response) for ask in mine if ask.call_id == call.id and not ask.is_refused and
            ask.end not in ("cut", "left", "lost", "service_unavailable", "overloaded")}
    for what, is_so in (("started", len(call.starts) > 1 and not is_idempotent), ("ended", len(ends) > 1)):
        name = f"{what} again {where}"
        counts[name] = counts.get(name, 0) + is_so


def count(history, asks):
    ends = collections.Counter(ask.end for ask in history.asks)
    counts = {f"end:{end}": n for end, n in ends.items()}
    counts["asks"] = len(history.asks)
    counts["calls"] = sum(any(not ask.is_refused and ask.end != "cut" for ask in mine) for mine in asks.values())
    counts["identities"] = sum(any(ask.key for ask in mine) for mine in asks.values())
    counts["starts"] = sum(len(call.starts) for call in history.calls.values())
    for call in history.calls.values():
        count_again(history, counts, call, asks.get(call.n, []))
    counts["started again, idempotent"] = sum(
        len(call.starts) > 1 and bool(call.tool) and TOOLS[call.tool][0] for call in history.calls.values())
    for fault in history.faults:
        counts["fault:" + fault["what"]] = counts.get("fault:" + fault["what"], 0) + 1
    return counts
