/* SPDX-License-Identifier: Apache-2.0 */

#include "calls/call.h"

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"

/* Registers outlive the deadline of a call by so much, so that a message that comes late finds
 * them: provider sides take none after its deadline, and clocks of nodes differ by less. */
enum { KEEP_UNNAMED_MS = 15000 };

enum { MAX_WHO = 64 }; /* an incarnation, or what calls_claim_token_is_coordinator() knows */

struct calls_call *calls_call_new(struct calls_loop *calls, const struct bus_id *id,
                                  uint16_t account)
{
    struct calls_call *call = (struct calls_call *)peg__alloc_zero(1, sizeof(*call));

    if (!call)
        return NULL;
    call->entry.id = *id;
    if (calls_table_add(&calls->by_id, &call->entry)) {
        peg__free(call);
        return NULL;
    }
    call->calls = calls;
    call->account = account;
    call->begun_ns = bus_now_ns(calls->bus);
    call->deadline_ns = NET_NEVER;
    call->deadline.fn = calls_settle_on_deadline;
    call->again.fn = calls_recheck_on_timer;
    call->next = calls->first_call;
    if (call->next)
        call->next->prev = call;
    calls->first_call = call;
    calls_quota_count_call(call, true);
    return call;
}

static void unlink_call(struct calls_call *call)
{
    struct calls_loop *calls = call->calls;

    if (call->prev)
        call->prev->next = call->next;
    else
        calls->first_call = call->next;
    if (call->next)
        call->next->prev = call->prev;
    calls_quota_count_call(call, false);
    calls->n_dropped++;
    calls_table_remove(&calls->by_id, &call->entry);
}

void calls_call_drop(struct calls_call *call)
{
    struct bus *bus = call->calls->bus;

    while (call->callers)
        calls_call_take_caller(call->callers);
    calls_send_release(call);
    bus_forget_wait(bus, &call->wait);
    bus_forget_wait(bus, &call->recheck_wait);
    bus_forget_wait(bus, &call->post);
    bus_forget_wait(bus, &call->waiters);
    bus_disarm(bus, &call->deadline);
    bus_disarm(bus, &call->again);
    bus_disarm(bus, &call->away);
    if (call->check)
        calls_check_forget(call->check);
    unlink_call(call);
    peg__blob_unref(call->request);
    peg__blob_unref(call->identity);
    peg__blob_unref(call->outcome);
    peg__blob_unref(call->token);
    peg__free(call->listeners);
    call->calls->env->unref_toolset(call->calls->user, call->toolset);
    peg__free(call);
}

bool calls_call_is_keyed(const struct calls_call *call)
{
    return call->entry.id.len == sizeof(call->entry.id.bytes);
}

/* Whoever knows a random id is its coordinator, and a provider side that it wrote to. So if that is
 * a loop of this node, nobody else asks for the registers. */
struct bus_key calls_call_key(const struct calls_call *call, char what, uint32_t n)
{
    return (struct bus_key){
        .id = call->entry.id,
        .what = what,
        .n = n,
        .is_node_local = calls_id_is_node_local(&call->entry.id),
        .admits = what == BUS_IDENTITY,
        .account = call->account,
    };
}

int64_t calls_keep_until(const struct calls_loop *calls, const struct bus_id *id,
                         int64_t deadline_ms)
{
    const bool is_keyed = id->len == sizeof(id->bytes);

    return deadline_ms + (is_keyed ? calls->options.keep_ms : (int64_t)KEEP_UNNAMED_MS);
}

int64_t calls_call_keep_until(const struct calls_call *call)
{
    return calls_keep_until(call->calls, &call->entry.id, call->deadline_ms);
}

/* ---- callers ------------------------------------------------------------------------------ */

void calls_call_add_caller(struct calls_call *call, struct calls_caller *caller)
{
    caller->call = call;
    caller->id = call->entry.id;
    caller->prev = NULL;
    caller->next = call->callers;
    if (caller->next)
        caller->next->prev = caller;
    call->callers = caller;
}

void calls_call_take_caller(struct calls_caller *caller)
{
    struct calls_call *call = caller->call;

    if (!call)
        return;
    if (caller->prev)
        caller->prev->next = caller->next;
    else
        call->callers = caller->next;
    if (caller->next)
        caller->next->prev = caller->prev;
    caller->call = NULL;
    caller->next = NULL;
    caller->prev = NULL;
}

/* A caller may go away when it hears this, and with it the call: nothing is touched after it. There
 * is but one, as long as nobody can join on the same call. */
void calls_call_report_admitted(struct calls_call *call, bool is_follower)
{
    struct calls_caller *caller = call->callers;

    if (!caller)
        return;
    caller->is_follower = is_follower;
    if (call->has_notified_admitted)
        return;
    call->has_notified_admitted = true;
    if (caller->events->on_admitted)
        caller->events->on_admitted(caller, &call->entry.id, call->deadline_ms, is_follower);
}

static void notify_end(struct calls_call *call, const struct calls_outcome *outcome)
{
    while (call->callers) {
        struct calls_caller *caller = call->callers;

        calls_call_take_caller(caller);
        caller->events->on_end(caller, outcome);
    }
}

/* A call that nobody can ask for again has no use for them; and what was never started, for want of
 * a provider or of room, may be asked for anew, also by one who had joined and missed the message
 * about its end: he finds no name. */
static bool may_forget_registers(const struct calls_call *call, const struct calls_outcome *outcome)
{
    const bool is_final =
        outcome->error != CALLS_OVERLOADED && outcome->error != CALLS_SERVICE_UNAVAILABLE;

    return call->step != CALLS_FOLLOWING && (!calls_call_is_keyed(call) || !is_final);
}

/* Tells every caller, and is gone. Messages that may still arrive find the registers, and see that
 * there is nothing to start. */
static void finish_call(struct calls_call *call, const struct calls_outcome *outcome,
                        bool may_forget)
{
    struct bus *bus = call->calls->bus;
    const struct bus_key key = calls_call_key(call, BUS_RESULT, 0);
    const uint32_t n_attempts = call->attempt + 1; /* with the one that closes it */
    const bool forgets = may_forget && !call->n_outstanding;

    if (may_forget && call->n_outstanding)
        calls_outstanding_count(call);
    notify_end(call, outcome);
    calls_call_drop(call);
    if (forgets)
        bus_forget(bus, &key, n_attempts);
}

void calls_call_end(struct calls_call *call, struct peg__blob *blob)
{
    struct peg__blob *kept = peg__blob_ref(blob);
    struct calls_outcome outcome = {
        .kind = CALLS_KIND_UNKNOWN,
        .error = CALLS_OUTCOME_UNKNOWN,
        .message = PEG_LIT("the terminal of this call cannot be read: a newer gateway wrote it"),
        .was_started = true,
    };

    calls_outcome_read(kept, &outcome);
    if (call->is_admitted)
        call->calls->env->count_ended(call->meter, outcome.kind,
                                      bus_now_ns(call->calls->bus) - call->begun_ns);
    finish_call(call, &outcome, may_forget_registers(call, &outcome));
    peg__blob_unref(kept);
}

/* That nothing is known of a call does not say that it has not run; that a wait is over neither. */
static bool may_have_started(bool is_anothers, enum calls_error error)
{
    return error == CALLS_OUTCOME_UNKNOWN ||
           (is_anothers && (error == CALLS_TIMEOUT || error == CALLS_NOT_FOUND));
}

/* Who asked for an identity and did not get it has nothing there. One that did gives up by an end
 * that is written, and that is the one to forget; but for want of memory, which leaves all there
 * is. */
void calls_call_refuse(struct calls_call *call, enum calls_error error, peg_str message,
                       int64_t retry_after_ms)
{
    const bool is_anothers = call->step == CALLS_RESOLVING || call->step == CALLS_FOLLOWING;
    const struct calls_outcome outcome = {
        .kind = CALLS_KIND_REFUSED,
        .error = error,
        .message = message,
        .was_started = may_have_started(is_anothers, error),
        .retry_after_ms = retry_after_ms,
    };
    const bool forgets = !calls_call_is_keyed(call) && call->attempt > 0;

    if (call->is_admitted)
        call->calls->env->count_ended(call->meter, CALLS_KIND_REFUSED,
                                      bus_now_ns(call->calls->bus) - call->begun_ns);
    else if (!is_anothers)
        call->calls->env->count_refused(call->meter);
    finish_call(call, &outcome, forgets && may_forget_registers(call, &outcome));
}

/* ---- tokens: values of registers ------------------------------------------------------------ */

struct peg__blob *calls_claim_token(struct calls_loop *calls, const char *who)
{
    const peg_str name = peg__str(who);
    char text[MAX_WHO + 1 + BUS_ADDRESS_TEXT + 20];
    char *at = text;

    memcpy(at, name.ptr, name.len);
    at += name.len;
    *at++ = ' ';
    bus_address_print(calls->bus->self, at);
    at += strlen(at);
    *at++ = ' ';
    at = peg__put_decimal(at, ++calls->n_tokens);
    return peg__blob_copy(peg__strn(text, (size_t)(at - text)));
}

bool calls_claim_token_is_coordinator(peg_str who)
{
    return peg__str_is(who, CALLS_TOKEN_REVOKED) || peg__str_is(who, CALLS_TOKEN_ENDED);
}

peg_str calls_claim_token_owner(const struct peg__blob *token, struct bus_address *ret_address)
{
    const peg_str text = peg__blob_str(token);
    const char *space = (const char *)memchr(text.ptr, ' ', text.len);
    const char *end;
    peg_str rest;

    *ret_address = (struct bus_address){0};
    if (!space)
        return (peg_str){"", 0};
    rest = peg__str_from(text, (size_t)(space - text.ptr) + 1);
    end = (const char *)memchr(rest.ptr, ' ', rest.len);
    bus_address_parse((peg_str){rest.ptr, end ? (size_t)(end - rest.ptr) : rest.len}, ret_address);
    return (peg_str){text.ptr, (size_t)(space - text.ptr)};
}
