/* SPDX-License-Identifier: Apache-2.0 */

/* How a call ends that does not complete: its error, and what its caller can do about it. */

#include "calls/caller/call.h"

#include "base/text/str.h"

enum { RETRY_MS = 250 };

#define ENDED(how, code, text, retry_ms)                                                           \
    {                                                                                              \
        .kind = (how), .error = (code), .message = PEG_LIT(text), .retry_after_ms = (retry_ms)     \
    }
#define REFUSED(code, text) ENDED(CALLS_KIND_REFUSED, code, text, 0)
#define RAN(text)                                                                                  \
    ENDED(CALLS_KIND_UNKNOWN, CALLS_OUTCOME_UNKNOWN,                                               \
          text "; it may have taken effect: check before you retry", 0)

/* Those that are refused are no states of a call that was admitted. */
static const struct calls_outcome reasons[CALLS_N_WHY] = {
    [CALLS_WHY_UNSTARTED] = REFUSED(CALLS_CANCELED, "it was not started"),
    [CALLS_WHY_UNREAD] = REFUSED(
        CALLS_TIMEOUT, "the registry did not say in time whether this call was begun before, "
                       "and it may run: ask again with the same identity"),
    [CALLS_WHY_UNANSWERED] =
        REFUSED(CALLS_TIMEOUT, "the registry did not answer, and the call may go on: ask again"),
    [CALLS_WHY_UNSETTLED] =
        REFUSED(CALLS_OUTCOME_UNKNOWN, "the deadline passed, and the registry does not answer; the "
                                       "call may have taken effect: check before you retry"),
    [CALLS_WHY_UNKNOWN_CALL] =
        REFUSED(CALLS_NOT_FOUND, "there is no such call (any more): it ended too long ago (results "
                                 "are kept for RESULT_STREAM_MAPPING_TTL), the gateway was "
                                 "restarted since, or it was not started for want of a provider or "
                                 "of room; it may have run: check before you retry"),
    [CALLS_WHY_OTHER_VERSION] =
        REFUSED(CALLS_FAULT, "this identity was used by another version of the gateway"),
    [CALLS_WHY_OTHER_REQUEST] =
        REFUSED(CALLS_VALIDATION, "this identity (run_id and tool_call_id, or idempotency_key) was "
                                  "used for a call with another tool or payload: choose a new one"),
    [CALLS_WHY_WAIT_OVER] =
        REFUSED(CALLS_TIMEOUT, "the wait is over and the call goes on: ask again"),
    [CALLS_WHY_COORDINATOR_LOST] = REFUSED(
        CALLS_SERVICE_UNAVAILABLE, "the call was not started, and the node that should have was "
                                   "lost: ask again later, or with another identity"),
    [CALLS_WHY_FORGOTTEN] =
        ENDED(CALLS_KIND_ERROR, CALLS_SERVICE_UNAVAILABLE,
              "no provider took the call, and it was not started: ask again", 0),
    [CALLS_WHY_TIMEOUT] =
        ENDED(CALLS_KIND_TIMEOUT, CALLS_TIMEOUT,
              "the deadline passed before a provider was free; the call was not started", 0),
    [CALLS_WHY_CANCELED] = ENDED(CALLS_KIND_CANCELED, CALLS_CANCELED,
                                 "the call was canceled before it was started", 0),
    [CALLS_WHY_RAN_LATE] = RAN("the deadline passed while the tool was running"),
    [CALLS_WHY_RAN_CANCELED] = RAN("the call was canceled, and the tool has not said how it ended"),
    [CALLS_WHY_PROVIDER_LOST] = RAN("the provider was lost while the tool was running"),
    [CALLS_WHY_NOBODY_ELSE] =
        RAN("the provider was lost while the tool was running, and no other can run it now"),
    [CALLS_WHY_PROVIDER_MOVED] =
        RAN("the provider went to another node while the tool was running"),
    [CALLS_WHY_NODE_LOST] = RAN("the provider, or the gateway it was attached to, was lost while "
                                "the tool was running"),
    [CALLS_WHY_STATE_LOST] = RAN("the registry lost its state while the call was under way"),
    [CALLS_WHY_HALTED] = RAN("the gateway was halted, or had no connection to Redis, until long "
                             "after the deadline"),
    [CALLS_WHY_NO_ROOM] = RAN("there is no room to take the call back (PEG_LIMIT_BUS_REGISTERS, "
                              "PEG_LIMIT_BUS_REGISTER_BYTES)"),
};

/* Without a message: it depends on the call. */
static const struct calls_outcome bars[] = {
    [CALLS_NO_BAR] = {.kind = CALLS_KIND_REFUSED, .error = CALLS_SERVICE_UNAVAILABLE},
    [CALLS_BAR_UNHEALTHY] = {.kind = CALLS_KIND_REFUSED, .error = CALLS_SERVICE_UNAVAILABLE},
    [CALLS_BAR_DRAINING] =
        ENDED(CALLS_KIND_REFUSED, CALLS_SERVICE_UNAVAILABLE, CALLS_SHUTTING_DOWN, 1000),
    /* Unless it has a reason of its own: one that has got a request since has none any more. */
    [CALLS_BAR_QUOTA] = ENDED(CALLS_KIND_REFUSED, CALLS_OVERLOADED,
                              "there was no quota for the call to begin: try again", 1000),
    [CALLS_BAR_ASKED_BEFORE] =
        REFUSED(CALLS_OUTCOME_UNKNOWN,
                "this gateway does not know the call: it was asked for before the gateway was "
                "restarted and lost what it knew of calls; it may have taken effect: check before "
                "you retry with a new identity"),
    [CALLS_BAR_FULL] = {.kind = CALLS_KIND_REFUSED,
                        .error = CALLS_OVERLOADED,
                        .retry_after_ms = 1000},
    [CALLS_BAR_NO_MEMORY] = ENDED(CALLS_KIND_REFUSED, CALLS_OVERLOADED,
                                  "the gateway is out of memory: try again later", 1000),
};

/* Registers of calls that are kept fill their quota, but for what those need that were admitted; or
 * as much of it as one principal may have. */
static peg_str explain_full_registers(const struct calls_call *call)
{
    return peg__str(
        call->account
            ? "calls with an identity (run_id and tool_call_id, or idempotency_key) of this "
              "principal would hold more than three times what is free (PEG_LIMIT_QUOTA_SHARE) of "
              "PEG_LIMIT_BUS_REGISTERS or PEG_LIMIT_BUS_REGISTER_BYTES: they are kept until "
              "--result-mapping-ttl after their deadline; try again later, give an identity to "
              "fewer calls, shorter deadlines, or smaller results"
            : "the gateway keeps as many calls with an identity (run_id and tool_call_id, or "
              "idempotency_key) as it has room for (PEG_LIMIT_BUS_REGISTERS, "
              "PEG_LIMIT_BUS_REGISTER_BYTES): try again later, give an identity to fewer calls, or "
              "shorten --result-mapping-ttl");
}

static void explain_health(const struct calls_call *call)
{
    struct calls_loop *calls = call->calls;

    peg__buf_clear(&calls->text);
    calls->env->explain_health(calls->user, call->toolset->name, &calls->text);
}

static struct calls_outcome explain_bar(const struct calls_call *call)
{
    const enum calls_bar bar = call->machine.bar;
    struct calls_outcome outcome = bars[bar];

    if (bar == CALLS_BAR_QUOTA && call->reject_reason)
        outcome.message = peg__str(call->reject_reason);
    else if (bar == CALLS_BAR_FULL)
        outcome.message = explain_full_registers(call);
    else if (bar <= CALLS_BAR_UNHEALTHY)
        explain_health(call);
    return outcome;
}

/* RETRY_MS is in the words. */
static const char *full_message(const struct calls_call *call)
{
    return call->account
               ? "there is no room to note who runs the call, or no memory: calls of this "
                 "principal would hold more than three times what is free (PEG_LIMIT_QUOTA_SHARE) "
                 "of PEG_LIMIT_BUS_REGISTERS or PEG_LIMIT_BUS_REGISTER_BYTES: try again in 250 ms, "
                 "with fewer calls at once"
               : "the gateway has no room to note who runs the call (PEG_LIMIT_BUS_REGISTERS, "
                 "PEG_LIMIT_BUS_REGISTER_BYTES), or no memory: try again in 250 ms, with fewer "
                 "calls at once";
}

static void explain_refusal(const struct calls_call *call, struct peg__buf *out)
{
    const char *reason = "did not take the call: try again";

    if (call->machine.refusal == BUS_OUTDATED)
        reason = "have other versions of it than the one that is registered: restart them with "
                 "that one";
    else if (call->machine.refusal == BUS_DRAINING)
        reason = "give calls back because they drain: start another";
    peg__buf_printf(out, "the providers of toolset \"%.*s\" that are attached %s",
                    PEG_ARG(call->toolset->name), reason);
}

static struct calls_outcome explain_no_provider(const struct calls_call *call)
{
    struct calls_loop *calls = call->calls;
    const enum bus_reason refusal = call->machine.refusal;
    const peg_str toolset = call->toolset->name;
    const bool is_full = refusal == BUS_OVERLOADED || refusal == BUS_FULL;

    peg__buf_clear(&calls->text);
    if (refusal == BUS_FULL)
        peg__buf_puts(&calls->text, full_message(call));
    else if (is_full)
        peg__buf_printf(&calls->text,
                        "every provider of toolset \"%.*s\" has as many calls waiting as it "
                        "takes: try again in %d ms",
                        PEG_ARG(toolset), RETRY_MS);
    else if (refusal == BUS_OUTDATED || calls->env->is_healthy(calls->user, toolset))
        explain_refusal(call, &calls->text);
    else
        explain_health(call);
    return (struct calls_outcome){
        .kind = CALLS_KIND_ERROR,
        .error = is_full ? CALLS_OVERLOADED : CALLS_SERVICE_UNAVAILABLE,
        .retry_after_ms = is_full ? RETRY_MS : 0,
    };
}

static struct calls_outcome find_reason(const struct calls_call *call, enum calls_why why)
{
    switch (why) {
    case CALLS_WHY_BARRED:
        return explain_bar(call);
    case CALLS_WHY_NO_PROVIDER:
        return explain_no_provider(call);
    case CALLS_WHY_UNKNOWN_CALL:
        return call->asked_before ? bars[CALLS_BAR_ASKED_BEFORE] : reasons[why];
    default:
        return reasons[why];
    }
}

/* That nothing is known of a call does not say that it has not run; nor does the end of a wait. */
static bool may_have_started(bool is_anothers, enum calls_error error)
{
    return error == CALLS_OUTCOME_UNKNOWN ||
           (is_anothers && (error == CALLS_TIMEOUT || error == CALLS_NOT_FOUND));
}

void calls_explain(struct calls_call *call, enum calls_why why, bool is_anothers,
                   struct calls_outcome *ret_outcome)
{
    *ret_outcome = find_reason(call, why);
    if (!ret_outcome->message.ptr)
        ret_outcome->message = peg__buf_view(&call->calls->text);
    ret_outcome->was_started = may_have_started(is_anothers, ret_outcome->error);
    if (why == CALLS_WHY_UNSTARTED && call->machine.ending == BUS_DEADLINE)
        ret_outcome->error = CALLS_TIMEOUT;
}

void calls_reject_caller(struct calls_caller *caller, enum calls_error error, peg_str message,
                         int64_t retry_after_ms)
{
    const struct calls_outcome outcome = {
        .kind = CALLS_KIND_REFUSED,
        .error = error,
        .message = message,
        .retry_after_ms = retry_after_ms,
    };

    caller->events->on_end(caller, &outcome);
}

void calls_reject_barred(struct calls_caller *caller, enum calls_bar bar)
{
    caller->events->on_end(caller, &bars[bar]);
}
