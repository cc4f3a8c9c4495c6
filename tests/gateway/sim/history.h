/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_SIM_HISTORY_H
#define PEG_TESTS_GATEWAY_SIM_HISTORY_H

/*
 * What happened to each call of a run, as an observer of everything records it, and whether the
 * promises were kept:
 *
 *   once      exactly one outcome: callers get what the register holds, not before it is written,
 *             and all callers of one call get the same; an identity is decided upon again only if
 *             what it named was not started
 *   start     a provider starts it at most once, unless its tool is idempotent
 *   unstarted reported as not started: it was not, and will not be; also to a follower of a call
 *             that runs
 *   result    reported with a result: a provider produced exactly that one for this call
 *   output    a caller gets only outputs of its own call, and none after its end
 *   notified  a caller that waits on a node that lives gets its end in time
 *   health    a caller of a toolset that is known to be unhealthy is rejected at once
 *   drain     a provider is handed nothing new once its loop knows that it drains
 *   cancel    what is canceled while nothing goes wrong is canceled at its provider, soon
 *   lease     a loop does not take the lease of a provider that has left it for another one
 *   well      if nothing goes wrong, or only what calls survive, each ends with its result or its
 *             tool's own error: a provider drains; its stream or its node is lost and it comes back
 *             in time; a caller's connection breaks and it asks again in time; the lease of a node
 *             that lives lapses
 *   leak      nothing is left at the loops, and no register of a call without an identity
 *   kept      nor a call at a provider that has answered it and is attached
 *   home      the calls of an identity are on one loop of each node
 *
 * A call is known by its id. An identity whose registers were forgotten or lost, and which is asked
 * for again, is a new call under the same id: `n_named` counts them.
 */

#include <stdarg.h>

#include "../../bus/sim/sim.h"
#include "base/clock.h"
#include "base/text/str.h"
#include "calls/caller/call.h"
#include "calls/outcome.h"
#include "gateway/rpc/rpc.h"

/* What a harness does to see that a check finds it. */
enum h_plant {
    H_NONE,
    H_HOLDS_UNHEALTHY,   /* calls of an unhealthy toolset do not reach the loop */
    H_IGNORES_DRAIN,     /* nor does it reach it that a provider drains */
    H_DROPS_CANCEL,      /* nor a provider that a call is canceled */
    H_DROPS_ACK,         /* nor that it need not keep what it has answered */
    H_DROPS_RESULT,      /* nor the loop what a provider answers */
    H_GARBLES_RESULT,    /* or it gets something else */
    H_LOSES_END,         /* the first caller does not get its end */
    H_LOSES_RELAYED_END, /* nor do callers whose calls are on other loops */
    H_DROPS_LOST_CALLER, /* one whose connection breaks is not expected back */
    H_QUITS_AT_DRAIN,    /* a provider that drains does not finish what it runs */
    H_RETURNS_EMPTY,     /* one that comes back has forgotten what it runs */
    H_SPLITS_HOMES,      /* each loop has its own directory of homes */
    /* sim/plants.h */
    H_WRITES_ITS_OWN,  /* each loop has a register of its own for how a call ended */
    H_CLAIMS_ANYWAY,   /* each claim has one: whoever wants to start an attempt may */
    H_REVOKES_STARTED, /* coordinators take calls back that somebody has started */
    H_KEEPS_REGISTERS, /* nothing is ever forgotten */
    H_FORGETS_ENDED,   /* all is, once a caller has its end */
    H_RENEWS_OTHERS,   /* a lease is renewed though another loop has it */
    H_BELIEVES_LOST,   /* a loop that is reported as lost counts as lost: its lease is not read */
    H_COMPARES_NAMES,  /* owners of claims are compared without their nodes */
    H_TRUSTS_ANY_NAK,  /* a Nak under another epoch proves that a call was not started */
    H_TAKES_UNCLAIMED, /* a follower takes over without writing the claim */
};

enum {
    H_CALLS = 96,
    H_WRITTEN = 24,
    H_TOKENS = 24,
    H_TOKEN = 24,
    H_PLACES = 64,
    H_KINDS = BUS_LOST + 1,
};

struct h_outcome_seen {
    enum calls_outcome_kind kind;
    enum calls_error error;
    bool was_started;
    char response[H_TOKEN];
    unsigned identity; /* written: of which decision about the identity it is the end */
    bool is_placeholder;
    char stands_for[H_TOKEN]; /* a placeholder: the response that callers got in messages */
};

/* Where a provider has been. */
struct h_place {
    const char *provider;
    struct bus_address loop;
    int64_t left_ns; /* 0: it is there */
};

struct h_call {
    struct bus_id id;
    bool is_idempotent;
    unsigned n_named; /* decisions about its identity; 1 for a call without */
    unsigned n_claims;
    unsigned n_starts;
    unsigned n_unstarted; /* of the calls under this id, those reported to be so */
    struct h_outcome_seen written[H_WRITTEN];
    unsigned n_written;
    bool was_notified[H_WRITTEN];
    char tokens[H_TOKENS][H_TOKEN]; /* results and outputs that providers produced */
    unsigned n_tokens;
    struct bus_address coordinator; /* the last loop that decided about it */
    int64_t answered_ns;            /* by a provider; 0: not yet */
    int64_t canceled_ns;            /* since then nobody wants it; 0: somebody does */
    int64_t cancel_sent_ns;         /* to its provider */
};

/* The owner of a run learns of each register when it is written. */
typedef void h_written_fn(const struct bus_key *key, bool is_coordinator, struct bus_address by);

static struct {
    struct h_call calls[H_CALLS];
    unsigned n_calls;
    bool is_broken;
    char promise[16]; /* the one that was not kept */
    char message[256];
    bool is_verbose;
    enum h_plant plant;
    struct bus_sim *sim;
    int64_t begun_ns;
    bool has_lost_registers; /* another epoch: what it knew of calls is gone */
    struct h_place places[H_PLACES];
    unsigned n_places;
    h_written_fn *on_written; /* NULL: it does not */
} h;

/* Over all runs. */
static struct {
    uint64_t node_lost;
    uint64_t node_lost_alive;
    uint64_t placeholders;
    uint64_t outputs;
} h_count;

/* ---- reporting what happens ---------------------------------------------------------------- */

static void PEG_PRINTF(1, 2) h_log(const char *fmt, ...)
{
    va_list args;

    if (!h.is_verbose)
        return;
    printf("# %10.3f ms  ", (double)(bus_sim_now_ns(h.sim) - h.begun_ns) / 1e6);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
}

/* The first one counts: the others may follow from it. */
static void PEG_PRINTF(2, 3) h_break(const char *promise, const char *fmt, ...)
{
    va_list args;

    if (h.is_broken)
        return;
    h.is_broken = true;
    snprintf(h.promise, sizeof(h.promise), "%s", promise);
    va_start(args, fmt);
    vsnprintf(h.message, sizeof(h.message), fmt, args);
    va_end(args);
    h_log("BROKEN (%s): %s", h.promise, h.message);
}

/* A few digits of it. */
static const char *h_id(const struct bus_id *id)
{
    static char texts[4][BUS_ID_TEXT];
    static unsigned next;
    char *text = texts[next++ % 4];

    bus_id_print(id, text);
    text[6] = '\0';
    return text;
}

static void h_begin(struct bus_sim *sim, bool is_verbose)
{
    h.n_calls = 0;
    h.n_places = 0;
    h.is_broken = false;
    h.is_verbose = is_verbose;
    h.has_lost_registers = false;
    h.sim = sim;
    h.begun_ns = bus_sim_now_ns(sim);
}

/* ---- what is known of a call --------------------------------------------------------------- */

static struct h_call *h_call(const struct bus_id *id)
{
    struct h_call *call = h.calls;

    while (call < h.calls + h.n_calls && !bus_id_equal(&call->id, id))
        call++;
    if (call == h.calls + H_CALLS) {
        h_break("harness", "more than %d calls in one run", H_CALLS);
        return h.calls;
    }
    if (call == h.calls + h.n_calls) {
        h.n_calls++;
        call->id = *id;
        call->is_idempotent = false;
        call->n_named = id->len == 16;
        call->n_claims = 0;
        call->n_starts = 0;
        call->n_unstarted = 0;
        call->n_written = 0;
        call->n_tokens = 0;
        call->answered_ns = 0;
        call->canceled_ns = 0;
        call->cancel_sent_ns = 0;
        call->coordinator = (struct bus_address){0};
    }
    return call;
}

static void h_read_outcome(const struct calls_outcome *outcome, struct h_outcome_seen *ret_read)
{
    *ret_read = (struct h_outcome_seen){
        .kind = outcome->kind,
        .error = outcome->error,
        .was_started = outcome->was_started,
        .is_placeholder = outcome->is_placeholder,
    };
    snprintf(ret_read->response, sizeof(ret_read->response), "%.*s", PEG_ARG(outcome->response));
}

static bool h_is_same(const struct h_outcome_seen *a, const struct h_outcome_seen *b)
{
    return a->kind == b->kind && a->error == b->error && a->was_started == b->was_started &&
           strcmp(a->response, b->response) == 0;
}

static const char *h_outcome(const struct h_outcome_seen *outcome)
{
    static char text[64];

    snprintf(text, sizeof(text), "%s%s%s %s", gw_outcome_kind_name(outcome->kind),
             outcome->error ? " " : "",
             outcome->error ? wire_error_name(gw_error_of_call(outcome->error)) : "",
             outcome->response);
    return text;
}

/* ---- what happens -------------------------------------------------------------------------- */

/* A decision about an identity may be forgotten if nobody has started what it named, for want of a
 * provider or of room, and the next one who asks decides anew. */
static void h_named(struct h_call *call)
{
    const struct h_outcome_seen *last =
        call->n_written ? &call->written[call->n_written - 1] : NULL;
    const bool may_be_forgotten =
        last && !last->was_started &&
        (last->error == CALLS_OVERLOADED || last->error == CALLS_SERVICE_UNAVAILABLE);

    if (++call->n_named > 1 && !may_be_forgotten && !h.has_lost_registers)
        h_break("once", "%s was decided upon again, as if it had not been", h_id(&call->id));
}

static bool h_is_claim(const struct peg__blob *token)
{
    struct bus_address address;

    return !calls_claim_token_is_coordinator(calls_claim_token_owner(token, &address));
}

static void h_on_written(void *user, const struct bus_key *key, struct peg__blob *value,
                         struct bus_address by)
{
    struct h_call *call = h_call(&key->id);
    const bool is_claim = key->what == BUS_CLAIM && h_is_claim(value);
    struct calls_outcome outcome;

    (void)user;
    h_log("%s: %c%u written by %llx.%u%s%s", h_id(&key->id), key->what, key->n,
          (unsigned long long)by.node, by.loop, key->what == BUS_CLAIM ? ": " : "",
          key->what == BUS_CLAIM ? value->bytes : "");
    if (key->what == BUS_IDENTITY)
        h_named(call);
    call->n_claims += is_claim;
    if (key->what == BUS_IDENTITY || (key->what == BUS_CLAIM && !is_claim))
        call->coordinator = by;
    if (h.on_written)
        h.on_written(key, !is_claim, by);
    if (key->what != BUS_RESULT)
        return;
    if (call->n_written == H_WRITTEN) {
        h_break("harness", "more than %d outcomes of one id", H_WRITTEN);
        return;
    }
    if (!calls_outcome_read(value, &outcome)) {
        h_break("once", "%s: an outcome that cannot be read", h_id(&key->id));
        return;
    }
    h_count.placeholders += outcome.is_placeholder;
    h_read_outcome(&outcome, &call->written[call->n_written]);
    call->written[call->n_written].identity = call->n_named;
    call->was_notified[call->n_written] = false;
    h_log("%s: its outcome: %s", h_id(&key->id), h_outcome(&call->written[call->n_written]));
    call->n_written++;
}

static void h_on_forgotten(void *user, const struct bus_id *id)
{
    (void)user;
    h_log("%s: forgotten", h_id(id));
}

static void h_on_message(void *user, struct bus_address to, const struct bus_message *message)
{
    static const char *const kinds[H_KINDS] = {"?",       "CALL",     "CANCEL", "ASK",  "HAVE",
                                               "NAK",     "DELTA",    "DONE",   "EMIT", "EMITTED",
                                               "WAITING", "FOLLOWER", "LOST"};

    (void)user;
    h_log("%s: %s %u (reason %d) %llx.%u -> %llx.%u", h_id(&message->id), kinds[message->kind],
          message->attempt, message->reason, (unsigned long long)message->from.node,
          message->from.loop, (unsigned long long)to.node, to.loop);
}

/* ---- where providers are ---- */

static struct h_place *h_place(const char *provider, struct bus_address loop)
{
    for (unsigned i = 0; i < h.n_places; i++)
        if (strcmp(h.places[i].provider, provider) == 0 &&
            bus_address_equal(h.places[i].loop, loop))
            return &h.places[i];
    return NULL;
}

static void h_attached(const char *provider, struct bus_address loop)
{
    struct h_place *place = h_place(provider, loop);

    if (!place && h.n_places == H_PLACES) {
        h_break("harness", "more than %d places of providers", H_PLACES);
        return;
    }
    if (!place)
        place = &h.places[h.n_places++];
    *place = (struct h_place){.provider = provider, .loop = loop};
}

static void h_left(const char *provider, struct bus_address loop)
{
    struct h_place *place = h_place(provider, loop);

    if (place)
        place->left_ns = bus_sim_now_ns(h.sim);
}

static void h_on_taken(void *user, const char *name, struct bus_address from, struct bus_address by,
                       int64_t asked_ns)
{
    const struct h_place *place = h_place(name, by);

    (void)user;
    if (from.node && place && place->left_ns && asked_ns >= place->left_ns)
        h_break("lease", "%llx.%u took the lease of %s, which has left it for %llx.%u",
                (unsigned long long)by.node, by.loop, name, (unsigned long long)from.node,
                from.loop);
}

static void h_on_node_lost(void *user, struct bus_address lost, bool is_alive)
{
    (void)user;
    h_log("%llx.%u is reported as lost%s", (unsigned long long)lost.node, lost.loop,
          is_alive ? ", and is alive" : "");
    h_count.node_lost++;
    h_count.node_lost_alive += is_alive;
}

static const struct bus_sim_hooks h_hooks = {
    .on_written = h_on_written,
    .on_forgotten = h_on_forgotten,
    .on_taken = h_on_taken,
    .on_node_lost = h_on_node_lost,
    .on_message = h_on_message,
};

/* A provider acts upon a call that it was handed. */
static void h_started(const struct bus_id *id, uint32_t attempt, const char *provider)
{
    struct h_call *call = h_call(id);

    call->n_starts++;
    h_log("%s: STARTED by %s, attempt %u", h_id(id), provider, attempt);
    if (!call->is_idempotent && call->n_starts > call->n_named)
        h_break("start", "%s was started %u times", h_id(id), call->n_starts);
}

static void h_produced_output(const struct bus_id *id, const char *token)
{
    struct h_call *call = h_call(id);

    if (call->n_tokens < H_TOKENS)
        snprintf(call->tokens[call->n_tokens++], H_TOKEN, "%s", token);
    else
        h_break("harness", "more than %d results and outputs of one id", H_TOKENS);
}

static void h_produced(const struct bus_id *id, const char *token)
{
    struct h_call *call = h_call(id);

    h_produced_output(id, token);
    if (!call->answered_ns)
        call->answered_ns = bus_sim_now_ns(h.sim);
}

/* Its only caller has left, or knows that it took too long. */
static void h_canceled(const struct bus_id *id)
{
    h_call(id)->canceled_ns = bus_sim_now_ns(h.sim);
}

static void h_cancel_sent(const struct bus_id *id)
{
    h_call(id)->cancel_sent_ns = bus_sim_now_ns(h.sim);
}

static bool h_was_produced(const struct h_call *call, const char *response)
{
    for (unsigned i = 0; i < call->n_tokens; i++)
        if (strcmp(call->tokens[i], response) == 0)
            return true;
    return false;
}

static void h_output(const struct bus_id *id, peg_str output)
{
    char text[H_TOKEN];

    h_count.outputs++;
    snprintf(text, sizeof(text), "%.*s", PEG_ARG(output));
    if (!h_was_produced(h_call(id), text))
        h_break("output", "a caller of %s got an output of no provider of it: %s", h_id(id), text);
}

/* Neither started, nor kept: a follower that finds the call forgotten cannot tell which it was. */
static bool h_are_both_forgotten(const struct h_outcome_seen *a, const struct h_outcome_seen *b)
{
    return !a->was_started && !b->was_started &&
           (a->error == CALLS_OVERLOADED || a->error == CALLS_SERVICE_UNAVAILABLE) &&
           (b->error == CALLS_OVERLOADED || b->error == CALLS_SERVICE_UNAVAILABLE);
}

/* Other callers got another one of the outcomes that were written for it. */
static void h_check_alike(const struct h_call *call, const struct h_outcome_seen *notified)
{
    for (unsigned i = 0; i < call->n_written && !h.has_lost_registers; i++) {
        const struct h_outcome_seen *other = &call->written[i];

        if (call->was_notified[i] && other->identity == notified->identity &&
            !h_is_same(other, notified) && !h_are_both_forgotten(other, notified))
            h_break("once", "%s was reported as \"%s\", and also otherwise", h_id(&call->id),
                    h_outcome(notified));
    }
}

/* Messages bring the outcome that a placeholder stands for; all bring the same. */
static bool h_is_behind(struct h_outcome_seen *written, const struct h_outcome_seen *notified)
{
    if (!written->is_placeholder || notified->error || !notified->was_started)
        return false;
    if (!written->stands_for[0])
        snprintf(written->stands_for, sizeof(written->stands_for), "%s", notified->response);
    return strcmp(written->stands_for, notified->response) == 0;
}

static void h_check_written(struct h_call *call, const struct h_outcome_seen *notified)
{
    for (unsigned i = call->n_written; i > 0; i--) {
        if (h_is_same(&call->written[i - 1], notified) ||
            h_is_behind(&call->written[i - 1], notified)) {
            call->was_notified[i - 1] = true;
            h_check_alike(call, &call->written[i - 1]);
            return;
        }
    }
    h_break("once", "%s was reported as \"%s\", which no register holds", h_id(&call->id),
            h_outcome(notified));
}

/* A caller gets an outcome; rejections are none. */
static void h_notified(const struct bus_id *id, const struct calls_outcome *outcome)
{
    struct h_call *call = h_call(id);
    struct h_outcome_seen notified;

    h_read_outcome(outcome, &notified);
    h_log("%s: REPORTED %s", h_id(id), h_outcome(&notified));
    /* A call without an identity that was never started has one caller, and no other loop could
     * report otherwise: no register is needed. */
    if (id->len == 32 || notified.was_started)
        h_check_written(call, &notified);
    else
        call->n_unstarted++;
    if (notified.was_started && !notified.error && !h_was_produced(call, notified.response))
        h_break("result", "%s was reported with a result that no provider produced: %s", h_id(id),
                notified.response);
    if (notified.kind != CALLS_KIND_ERROR &&
        notified.was_started !=
            (notified.kind == CALLS_KIND_RESULT || notified.kind == CALLS_KIND_UNKNOWN))
        h_break("unstarted", "%s was reported as %s with the wrong `started`", h_id(id),
                h_outcome(&notified));
}

/* The first caller of an id learns that no provider took its call. */
static void h_refused(const struct bus_id *id)
{
    h_call(id)->n_unstarted++;
}

/* ---- at the end ---------------------------------------------------------------------------- */

static void h_check_call(const struct h_call *call)
{
    unsigned n_unstarted = call->n_unstarted;

    for (unsigned i = 0; i < call->n_written; i++)
        n_unstarted += call->was_notified[i] && !call->written[i].was_started;
    /* Of an identity whose registers were lost and that was asked for again, the late outcome of
     * the first call may become that of the second: a limit that DESIGN 5.8 names. */
    if (call->n_starts && n_unstarted && call->n_named == 1)
        h_break("unstarted", "%s was reported as not started, and was started", h_id(&call->id));
}

/* In a run in which nothing went wrong: two seconds are many times the way there. */
static void h_check_cancel(const struct h_call *call)
{
    const int64_t until_ns = call->canceled_ns + 2 * PEG_NS_PER_S;
    const bool was_answered = call->answered_ns && call->answered_ns <= until_ns;
    const bool was_notified = call->cancel_sent_ns && call->cancel_sent_ns <= until_ns;

    if (call->canceled_ns && call->n_starts && !was_answered && !was_notified)
        h_break("cancel", "%s was canceled, and not at its provider", h_id(&call->id));
}

static void h_check_calls(void)
{
    for (unsigned i = 0; i < h.n_calls; i++)
        h_check_call(&h.calls[i]);
}

#endif
