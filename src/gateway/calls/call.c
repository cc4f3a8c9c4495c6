/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/calls/call.h"

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"

/* Registers outlive the deadline of a call by so much, so that a letter that comes late finds them:
 * holders take none after its deadline, and clocks of nodes differ by less. */
enum { KEEP_UNNAMED_MS = 15000 };

enum { MAX_WHO = 64 }; /* an incarnation, or what gw_claim_token_is_coordinator() knows */

struct gw_call *gw_call_new(struct gw_calls *desk, const struct bus_id *id, uint16_t account)
{
    struct gw_call *call = (struct gw_call *)peg__alloc_zero(1, sizeof(*call));

    if (!call)
        return NULL;
    call->entry.id = *id;
    if (gw_table_add(&desk->calls, &call->entry)) {
        peg__free(call);
        return NULL;
    }
    call->desk = desk;
    call->account = account;
    call->begun_ns = bus_now_ns(desk->bus);
    call->deadline_ns = NET_NEVER;
    call->deadline.fn = gw_settle_on_deadline;
    call->again.fn = gw_recheck_on_timer;
    call->next = desk->first_call;
    if (call->next)
        call->next->prev = call;
    desk->first_call = call;
    gw_quota_count_call(call, true);
    return call;
}

static void unlink_call(struct gw_call *call)
{
    struct gw_calls *desk = call->desk;

    if (call->prev)
        call->prev->next = call->next;
    else
        desk->first_call = call->next;
    if (call->next)
        call->next->prev = call->prev;
    gw_quota_count_call(call, false);
    desk->n_dropped++;
    gw_table_remove(&desk->calls, &call->entry);
}

void gw_call_drop(struct gw_call *call)
{
    struct bus *bus = call->desk->bus;

    while (call->callers)
        gw_call_take_caller(call->callers);
    gw_send_release(call);
    bus_forget_wait(bus, &call->wait);
    bus_forget_wait(bus, &call->look);
    bus_forget_wait(bus, &call->post);
    bus_forget_wait(bus, &call->waiters);
    bus_disarm(bus, &call->deadline);
    bus_disarm(bus, &call->again);
    bus_disarm(bus, &call->away);
    if (call->check)
        gw_check_forget(call->check);
    unlink_call(call);
    peg__blob_unref(call->request);
    peg__blob_unref(call->named);
    peg__blob_unref(call->terminal);
    peg__blob_unref(call->mark);
    peg__free(call->listeners);
    gw_toolset_unref(call->toolset);
    peg__free(call);
}

bool gw_call_is_keyed(const struct gw_call *call)
{
    return call->entry.id.len == sizeof(call->entry.id.bytes);
}

/* Whoever knows a random id is its driver, and a holder that it wrote to. So if that is a loop of
 * this node, nobody else asks for the registers. */
struct bus_key gw_call_key(const struct gw_call *call, char what, uint32_t n)
{
    return (struct bus_key){
        .id = call->entry.id,
        .what = what,
        .n = n,
        .is_node_local = gw_id_is_node_local(&call->entry.id),
        .admits = what == BUS_IDENTITY,
        .account = call->account,
    };
}

int64_t gw_calls_keep_until(const struct gw_calls *desk, const struct bus_id *id,
                            int64_t deadline_ms)
{
    const bool is_keyed = id->len == sizeof(id->bytes);

    return deadline_ms + (is_keyed ? desk->options.keep_ms : (int64_t)KEEP_UNNAMED_MS);
}

int64_t gw_call_keep_until(const struct gw_call *call)
{
    return gw_calls_keep_until(call->desk, &call->entry.id, call->deadline_ms);
}

/* ---- callers ------------------------------------------------------------------------------ */

void gw_call_add_caller(struct gw_call *call, struct gw_caller *caller)
{
    caller->call = call;
    caller->id = call->entry.id;
    caller->prev = NULL;
    caller->next = call->callers;
    if (caller->next)
        caller->next->prev = caller;
    call->callers = caller;
}

void gw_call_take_caller(struct gw_caller *caller)
{
    struct gw_call *call = caller->call;

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
void gw_call_report_admitted(struct gw_call *call, bool is_joined)
{
    struct gw_caller *caller = call->callers;

    if (!caller)
        return;
    caller->is_joined = is_joined;
    if (call->has_told_admitted)
        return;
    call->has_told_admitted = true;
    if (caller->events->on_admitted)
        caller->events->on_admitted(caller, &call->entry.id, call->deadline_ms, is_joined);
}

static void tell_end(struct gw_call *call, const struct gw_outcome *terminal)
{
    while (call->callers) {
        struct gw_caller *caller = call->callers;

        gw_call_take_caller(caller);
        caller->events->on_end(caller, terminal);
    }
}

/* A call that nobody can ask for again has no use for them; and what was never started, for want of
 * a provider or of room, may be asked for anew, also by one who had joined and missed the letter
 * about its end: he finds no name. */
static bool may_forget_registers(const struct gw_call *call, const struct gw_outcome *terminal)
{
    const bool is_final =
        terminal->error != WIRE_OVERLOADED && terminal->error != WIRE_SERVICE_UNAVAILABLE;

    return call->step != GW_FOLLOWING && (!gw_call_is_keyed(call) || !is_final);
}

/* Tells every caller, and is gone. Letters that may still arrive find the registers, and see that
 * there is nothing to start. */
static void finish_call(struct gw_call *call, const struct gw_outcome *terminal, bool may_forget)
{
    struct bus *bus = call->desk->bus;
    const struct bus_key key = gw_call_key(call, BUS_RESULT, 0);
    const uint32_t n_attempts = call->attempt + 1; /* with the one that closes it */
    const bool forgets = may_forget && !call->n_astray;

    if (may_forget && call->n_astray)
        gw_outstanding_count(call);
    tell_end(call, terminal);
    gw_call_drop(call);
    if (forgets)
        bus_forget(bus, &key, n_attempts);
}

void gw_call_end(struct gw_call *call, struct peg__blob *blob)
{
    struct peg__blob *kept = peg__blob_ref(blob);
    struct gw_outcome terminal = {
        .outcome = GW_OUTCOME_UNKNOWN,
        .error = WIRE_OUTCOME_UNKNOWN,
        .message = PEG_LIT("the terminal of this call cannot be read: a newer gateway wrote it"),
        .was_started = true,
    };

    gw_outcome_read(kept, &terminal);
    if (call->is_admitted)
        gw_meter_ended(call->meter, terminal.outcome, bus_now_ns(call->desk->bus) - call->begun_ns);
    finish_call(call, &terminal, may_forget_registers(call, &terminal));
    peg__blob_unref(kept);
}

/* That nothing is known of a call does not say that it has not run; that a wait is over neither. */
static bool may_have_started(bool is_anothers, enum wire_error error)
{
    return error == WIRE_OUTCOME_UNKNOWN ||
           (is_anothers && (error == WIRE_TIMEOUT || error == WIRE_NOT_FOUND));
}

/* Who asked for an identity and did not get it has nothing there. One that did gives up by an end
 * that is written, and that is the one to forget; but for want of memory, which leaves all there
 * is. */
void gw_call_refuse(struct gw_call *call, enum wire_error error, peg_str message,
                    int64_t retry_after_ms)
{
    const bool is_anothers = call->step == GW_ASKING || call->step == GW_FOLLOWING;
    const struct gw_outcome terminal = {
        .outcome = GW_REFUSED,
        .error = error,
        .message = message,
        .was_started = may_have_started(is_anothers, error),
        .retry_after_ms = retry_after_ms,
    };
    const bool forgets = !gw_call_is_keyed(call) && call->attempt > 0;

    if (call->is_admitted)
        gw_meter_ended(call->meter, GW_REFUSED, bus_now_ns(call->desk->bus) - call->begun_ns);
    else if (!is_anothers)
        gw_meter_refused(call->meter);
    finish_call(call, &terminal, forgets && may_forget_registers(call, &terminal));
}

/* ---- marks: values of registers ------------------------------------------------------------ */

struct peg__blob *gw_calls_claim_token(struct gw_calls *desk, const char *who)
{
    const peg_str name = peg__str(who);
    char text[MAX_WHO + 1 + BUS_ADDRESS_TEXT + 20];
    char *at = text;

    memcpy(at, name.ptr, name.len);
    at += name.len;
    *at++ = ' ';
    bus_address_print(desk->bus->self, at);
    at += strlen(at);
    *at++ = ' ';
    at = peg__put_decimal(at, ++desk->n_marks);
    return peg__blob_copy(peg__strn(text, (size_t)(at - text)));
}

bool gw_claim_token_is_coordinator(peg_str who)
{
    return peg__str_is(who, GW_REVOKED) || peg__str_is(who, GW_ENDED);
}

peg_str gw_claim_token_owner(const struct peg__blob *mark, struct bus_address *ret_address)
{
    const peg_str text = peg__blob_str(mark);
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
