/* SPDX-License-Identifier: Apache-2.0 */

/* How a call ends that does not complete: its error, and what its caller can do about it. */

#include "calls/caller/call.h"

#include "base/text/str.h"

enum { RETRY_MS = 250 };

struct reason {
    enum calls_outcome_kind kind; /* CALLS_KIND_REFUSED: not a state of a call that was admitted */
    enum calls_error error;
    const char *message; /* NULL: it depends */
    int retry_after_ms;
};

#define MAY_HAVE_RUN                                                                               \
    "; the call was started, and may have had its effect: look before you repeat it"

static const struct reason reasons[CALLS_N_WHY] = {
    [CALLS_WHY_UNSTARTED] = {CALLS_KIND_REFUSED, CALLS_CANCELED, "it was not started", 0},
    [CALLS_WHY_UNREAD] = {CALLS_KIND_REFUSED, CALLS_TIMEOUT,
                          "the registry did not say in time whether this call was begun before, "
                          "and it may run: ask again with the same identity",
                          0},
    [CALLS_WHY_UNANSWERED] = {CALLS_KIND_REFUSED, CALLS_TIMEOUT,
                              "the registry did not answer, and the call may go on: ask again", 0},
    [CALLS_WHY_UNKNOWN_CALL] = {CALLS_KIND_REFUSED, CALLS_NOT_FOUND,
                                "there is no such call (any more): it ended too long ago (results "
                                "are kept for RESULT_STREAM_MAPPING_TTL), the gateway was "
                                "restarted since, or it was not started for want of a provider or "
                                "of room; it may have run: look before you repeat it",
                                0},
    [CALLS_WHY_OTHER_VERSION] = {CALLS_KIND_REFUSED, CALLS_FAULT,
                                 "this identity was used by another version of the gateway", 0},
    [CALLS_WHY_OTHER_REQUEST] = {CALLS_KIND_REFUSED, CALLS_VALIDATION,
                                 "this identity (run_id and tool_call_id, or idempotency_key) was "
                                 "used for a call with another tool or payload: choose a new one",
                                 0},
    [CALLS_WHY_WAIT_OVER] = {CALLS_KIND_REFUSED, CALLS_TIMEOUT,
                             "the wait is over and the call goes on: ask again", 0},
    [CALLS_WHY_COORDINATOR_LOST] = {CALLS_KIND_REFUSED, CALLS_SERVICE_UNAVAILABLE,
                                    "the call was not started, and the node that should have was "
                                    "lost: ask again later, or with another identity",
                                    0},
    [CALLS_WHY_FORGOTTEN] = {CALLS_KIND_ERROR, CALLS_SERVICE_UNAVAILABLE,
                             "no provider took the call, and it was not started: ask again", 0},
    [CALLS_WHY_TIMEOUT] = {CALLS_KIND_TIMEOUT, CALLS_TIMEOUT,
                           "the deadline passed before a provider was free; the call was not "
                           "started",
                           0},
    [CALLS_WHY_CANCELED] = {CALLS_KIND_CANCELED, CALLS_CANCELED,
                            "the call was canceled before it was started", 0},
    [CALLS_WHY_RAN_LATE] = {CALLS_KIND_UNKNOWN, CALLS_OUTCOME_UNKNOWN,
                            "the deadline passed while the tool was running" MAY_HAVE_RUN, 0},
    [CALLS_WHY_RAN_CANCELED] = {CALLS_KIND_UNKNOWN, CALLS_OUTCOME_UNKNOWN,
                                "the call was canceled, and the tool has not said how it "
                                "ended" MAY_HAVE_RUN,
                                0},
    [CALLS_WHY_PROVIDER_LOST] = {CALLS_KIND_UNKNOWN, CALLS_OUTCOME_UNKNOWN,
                                 "the provider was lost while the tool was running" MAY_HAVE_RUN,
                                 0},
    [CALLS_WHY_NOBODY_ELSE] = {CALLS_KIND_UNKNOWN, CALLS_OUTCOME_UNKNOWN,
                               "the provider was lost while the tool was running, and nobody else "
                               "can run it now" MAY_HAVE_RUN,
                               0},
    [CALLS_WHY_PROVIDER_MOVED] = {CALLS_KIND_UNKNOWN, CALLS_OUTCOME_UNKNOWN,
                                  "the provider went to another node while the tool was "
                                  "running" MAY_HAVE_RUN,
                                  0},
    [CALLS_WHY_NODE_LOST] = {CALLS_KIND_UNKNOWN, CALLS_OUTCOME_UNKNOWN,
                             "the provider, or the gateway it was attached to, was lost while the "
                             "tool was running" MAY_HAVE_RUN,
                             0},
    [CALLS_WHY_STATE_LOST] = {CALLS_KIND_UNKNOWN, CALLS_OUTCOME_UNKNOWN,
                              "the registry lost its state while the call was under "
                              "way" MAY_HAVE_RUN,
                              0},
    [CALLS_WHY_HALTED] = {CALLS_KIND_UNKNOWN, CALLS_OUTCOME_UNKNOWN,
                          "the gateway was halted, or had no connection to Redis, until long after "
                          "the deadline" MAY_HAVE_RUN,
                          0},
    [CALLS_WHY_NO_ROOM] = {CALLS_KIND_UNKNOWN, CALLS_OUTCOME_UNKNOWN,
                           "there is no room to take the call back (PEG_LIMIT_BUS_REGISTERS, "
                           "PEG_LIMIT_BUS_REGISTER_BYTES)" MAY_HAVE_RUN,
                           0},
};

static const struct reason asked_before = {
    CALLS_KIND_REFUSED, CALLS_OUTCOME_UNKNOWN,
    "this gateway does not know the call: it was asked for before the gateway was restarted and "
    "lost what it knew of calls; it may have been started, and have had its effect: look before "
    "you repeat it with a new identity",
    0};

/* Registers of calls that are kept fill their quota, but for what those need that were admitted; or
 * as much of it as one principal may have. */
static struct reason no_room_for_identity(const struct calls_call *call)
{
    struct reason reason = {CALLS_KIND_REFUSED, CALLS_OVERLOADED, NULL, 1000};

    reason.message =
        call->account
            ? "calls with an identity (run_id and tool_call_id, or idempotency_key) of this "
              "principal would hold more than three times what is free (PEG_LIMIT_QUOTA_SHARE) of "
              "PEG_LIMIT_BUS_REGISTERS or PEG_LIMIT_BUS_REGISTER_BYTES: they are kept until "
              "--result-mapping-ttl after their deadline; try again later, give an identity to "
              "fewer calls, shorter deadlines, or smaller results"
            : "the gateway keeps as many calls with an identity (run_id and tool_call_id, or "
              "idempotency_key) as it has room for (PEG_LIMIT_BUS_REGISTERS, "
              "PEG_LIMIT_BUS_REGISTER_BYTES): try again later, give an identity to fewer calls, or "
              "shorten --result-mapping-ttl";
    return reason;
}

static void explain_health(const struct calls_call *call)
{
    struct calls_loop *calls = call->calls;

    peg__buf_clear(&calls->text);
    calls->env->explain_health(calls->user, call->toolset->name, &calls->text);
}

static struct reason explain_bar(const struct calls_call *call)
{
    struct reason reason = {CALLS_KIND_REFUSED, CALLS_SERVICE_UNAVAILABLE, NULL, 0};

    switch (call->machine.bar) {
    case CALLS_BAR_DRAINING:
        reason.message = CALLS_SHUTTING_DOWN;
        reason.retry_after_ms = 1000;
        break;
    case CALLS_BAR_QUOTA:
        reason.error = CALLS_OVERLOADED;
        reason.message = call->reject_reason;
        reason.retry_after_ms = 1000;
        break;
    case CALLS_BAR_ASKED_BEFORE:
        return asked_before;
    case CALLS_BAR_FULL:
        return no_room_for_identity(call);
    case CALLS_BAR_NO_MEMORY:
        reason.error = CALLS_OVERLOADED;
        reason.message = "the gateway is out of memory: try again later";
        reason.retry_after_ms = 1000;
        break;
    default:
        explain_health(call);
        break;
    }
    return reason;
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

static struct reason explain_no_provider(const struct calls_call *call)
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
    return (struct reason){
        .kind = CALLS_KIND_ERROR,
        .error = is_full ? CALLS_OVERLOADED : CALLS_SERVICE_UNAVAILABLE,
        .retry_after_ms = is_full ? RETRY_MS : 0,
    };
}

static struct reason find_reason(const struct calls_call *call, enum calls_why why)
{
    switch (why) {
    case CALLS_WHY_BARRED:
        return explain_bar(call);
    case CALLS_WHY_NO_PROVIDER:
        return explain_no_provider(call);
    case CALLS_WHY_UNKNOWN_CALL:
        return call->asked_before ? asked_before : reasons[why];
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
    const struct reason reason = find_reason(call, why);

    *ret_outcome = (struct calls_outcome){
        .kind = reason.kind,
        .error = reason.error,
        .message = reason.message ? peg__str(reason.message) : peg__buf_view(&call->calls->text),
        .retry_after_ms = reason.retry_after_ms,
        .was_started = may_have_started(is_anothers, reason.error),
    };
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
