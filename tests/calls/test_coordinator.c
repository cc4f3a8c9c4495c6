/* SPDX-License-Identifier: Apache-2.0 */

/* The machine of a call on its callers' side: no world, no clock. The table is in
 * coordinator_rows.h; coordinator_text.h prints what happened as its rows say it. */

#include "../t.h"

#include "coordinator_rows.h"
#include "coordinator_text.h"

#include "base/text/str.h"

static const struct bus_address SELF = {1, 0};
static const struct bus_address COORDINATOR = {2, 0};
static const struct bus_address PROVIDER = {3, 0};
static const struct bus_address TAKER = {4, 0};

/* ---- what a row does not say ---- */

static struct peg__blob *make_value(enum value value)
{
    static const struct calls_outcome outcome = {.kind = CALLS_KIND_TIMEOUT};
    struct calls_identity identity = {
        .coordinator = COORDINATOR,
        .deadline_ms = DEADLINE_MS + (value == NEXT ? 1000 : 0),
        .epoch = 1,
        .number = (uint64_t)value,
        .digest = {value == OTHER_REQUEST},
    };

    switch (value) {
    case NOTHING:
        return NULL;
    case SAME:
    case NEXT:
    case OTHER_REQUEST:
        return calls_identity_write(&identity, NULL);
    case OTHER_VERSION:
        return peg__blob_copy(peg__str("v9"));
    case OUTCOME:
        return calls_outcome_write(&outcome);
    case PLACEHOLDER:
        return calls_outcome_placeholder(1, 10, false);
    case BY_PROVIDER:
        return calls_claim_token(PROVIDER, "incarnation-1", 7);
    case BY_ANOTHER:
        return calls_claim_token(PROVIDER, "incarnation-2", 8);
    case BY_COORDINATOR:
        return calls_claim_token(TAKER, CALLS_TOKEN_REVOKED, 9);
    case BY_ENDED:
        return calls_claim_token(TAKER, CALLS_TOKEN_ENDED, 9);
    }
    return NULL;
}

static void set_incarnation(char incarnation[65], uint32_t attempt)
{
    if (attempt && !incarnation[0])
        snprintf(incarnation, 65, "incarnation-1");
}

static void complete_sent(struct calls_machine *m)
{
    m->attempt = m->attempt ? m->attempt : 1;
    m->attempt = m->attempt == NO_ATTEMPT ? 0 : m->attempt;
    set_incarnation(m->incarnation, m->attempt);
    m->address = PROVIDER;
    m->sent_epoch = m->sent_epoch ? m->sent_epoch : 1;
    m->n_sent = m->n_sent ? m->n_sent : m->attempt != 0;
    m->n_outstanding = m->n_outstanding ? m->n_outstanding : m->n_sent;
}

static void complete_followed(struct calls_machine *m)
{
    m->identity = (struct calls_identity){
        .coordinator = COORDINATOR, .deadline_ms = DEADLINE_MS, .epoch = 1, .number = SAME};
    if (m->coordinator.node == NO_ATTEMPT)
        m->coordinator = (struct bus_address){0};
    else if (!m->coordinator.node)
        m->coordinator = COORDINATOR;
    if (m->state >= CALLS_WALKING && !m->walk)
        m->walk = 1;
}

static struct calls_machine complete_machine(const struct calls_machine *before)
{
    struct calls_machine m = *before;

    if (!m.id.len)
        m.id.len = sizeof(m.id.bytes);
    m.deadline_ms = DEADLINE_MS;
    if (m.state >= CALLS_SENT && m.state <= CALLS_NOTIFYING)
        complete_sent(&m);
    else if (calls_state_follows(m.state))
        complete_followed(&m);
    return m;
}

static void complete_message(struct bus_message *message)
{
    message->attempt = message->attempt ? message->attempt : 1;
    message->attempt = message->attempt == NO_ATTEMPT ? 0 : message->attempt;
    set_incarnation(message->incarnation, message->attempt);
    message->epoch = message->epoch ? message->epoch : 1;
    if (!message->from.node)
        message->from = PROVIDER;
}

static void step(struct calls_machine *m, const struct input *on, struct calls_actions *ret_actions)
{
    struct peg__blob *current = make_value(on->value);
    struct bus_message message = on->message;
    const struct bus_answer answer = {
        .status = on->status,
        .written = on->written,
        .current = current,
        .epoch = on->epoch ? on->epoch : 1,
        .addresses = &on->lease,
        .n_addresses = 1,
    };
    const struct calls_event event = {
        .kind = on->kind,
        .now_ms = on->now_ms ? on->now_ms : NOW_MS,
        .epoch = 1,
        .self = SELF,
        .grace_ms = GRACE_MS,
        .keep_until_ms = KEEP_UNTIL_MS,
        .is_fenced = on->is_fenced,
        .wants_output = on->wants_output,
        .bar = on->bar,
        .answer = on->kind == CALLS_ANSWER ? &answer : NULL,
        .is_own_token = on->is_own_token,
        .is_owner = on->is_owner,
        .message = on->kind == CALLS_MESSAGE ? &message : NULL,
        .address = PROVIDER,
        .incarnation = "incarnation-1",
    };

    complete_message(&message);
    ret_actions->n = 0;
    calls_machine_step(m, &event, ret_actions);
    m->event = NULL;
    m->out = NULL;
    peg__blob_unref(current);
}

/* ---- the table ---- */

static void check_row(const struct row *row)
{
    const struct calls_machine before = complete_machine(&row->before);
    struct calls_machine machine = before;
    struct calls_actions actions;
    struct text done;
    struct text changes;

    step(&machine, &row->on, &actions);
    print_actions(&machine, &actions, &done);
    print_changes(&before, &machine, &changes);
    if (strcmp(done.bytes, row->actions) != 0 || machine.state != row->after ||
        strcmp(changes.bytes, row->changes) != 0)
        T_FAIL("%s, %s (event %d): {%s} \"%s\" \"%s\", expected {%s} \"%s\" \"%s\"",
               calls_state_names[row->before.state], row->about, (int)row->on.kind,
               calls_state_names[machine.state], done.bytes, changes.bytes,
               calls_state_names[row->after], row->actions, row->changes);
}

TEST(each_event_has_the_actions_the_state_and_the_changes_that_the_table_says)
{
    for (size_t i = 0; i < N_ROWS; i++)
        check_row(&ROWS[i]);
}

TEST(every_legal_transition_is_in_the_table)
{
    for (unsigned from = 0; from < CALLS_N_STATES; from++)
        for (unsigned to = 0; to < CALLS_N_STATES; to++) {
            size_t n =
                from == to || !calls_state_may_become((enum calls_state)from, (enum calls_state)to);

            for (size_t i = 0; i < N_ROWS; i++)
                n += ROWS[i].before.state == from && ROWS[i].after == to;
            if (!n)
                T_FAIL("no row from %s to %s", calls_state_names[from], calls_state_names[to]);
        }
}

TEST(every_transition_that_is_not_in_the_list_is_refused)
{
#define BIT(name, text, next) name = 1 << CALLS_##name,
    enum { CALLS_COORDINATOR_STATES(BIT) };
#define NEXT(name, text, next) [CALLS_##name] = (next),
    static const unsigned LEGAL[] = {CALLS_COORDINATOR_STATES(NEXT)};

    for (unsigned from = 0; from < CALLS_N_STATES; from++)
        for (unsigned to = 0; to < CALLS_N_STATES; to++)
            CHECK_INT(calls_state_may_become((enum calls_state)from, (enum calls_state)to),
                      from == to || LEGAL[from] & 1U << to);
}

/* ---- what holds for all of them ---- */

/* It may be answered before it returns. */
static bool is_request(enum calls_action_kind kind)
{
    return kind <= CALLS_READ_WAITERS || kind == CALLS_CHOOSE || kind == CALLS_FIND ||
           kind == CALLS_SEND_CALL || kind == CALLS_READMIT;
}

static bool is_end(enum calls_action_kind kind)
{
    return kind >= CALLS_END_CURRENT || kind == CALLS_SEND_STOP;
}

static void check_actions(const struct calls_machine *machine, const struct calls_actions *actions)
{
    CHECK(actions->n <= CALLS_MAX_ACTIONS);
    for (unsigned i = 0; i < actions->n; i++) {
        const enum calls_action_kind kind = actions->list[i].kind;

        CHECK(i + 1 == actions->n || (!is_request(kind) && !is_end(kind)));
        CHECK(is_end(kind) ? machine->state == CALLS_OVER : true);
    }
    if (machine->state == CALLS_OVER)
        CHECK(actions->n && is_end(actions->list[actions->n - 1].kind));
}

TEST(a_request_or_an_end_is_the_last_action)
{
    unsigned most = 0;

    for (size_t i = 0; i < N_ROWS; i++) {
        struct calls_machine machine = complete_machine(&ROWS[i].before);
        struct calls_actions actions;

        step(&machine, &ROWS[i].on, &actions);
        check_actions(&machine, &actions);
        most = actions.n > most ? actions.n : most;
    }
    CHECK_INT(most, 4);
}

/* One that pauses before it repeats its request does so in the state that asks for it. */
TEST(a_state_that_pauses_asks_again_when_the_pause_is_over)
{
    static const struct input over = {.kind = CALLS_TIMER};
    unsigned n_states = 0;
    bool is_seen[CALLS_N_STATES] = {0};

    for (size_t i = 0; i < N_ROWS; i++) {
        struct calls_machine machine = complete_machine(&ROWS[i].before);
        struct calls_actions again = {0};
        struct calls_actions asked = {0};
        struct text a;
        struct text b;

        if (strcmp(ROWS[i].actions, "arm 50") != 0)
            continue;
        CHECK_INT(ROWS[i].after, ROWS[i].before.state);
        n_states += !is_seen[machine.state];
        is_seen[machine.state] = true;
        step(&machine, &over, &again);
        machine.out = &asked;
        calls_request(&machine);
        print_actions(&machine, &again, &a);
        print_actions(&machine, &asked, &b);
        CHECK_INT(again.n, 1);
        CHECK(is_request(again.list[0].kind));
        CHECK_STR(peg__str(a.bytes), b.bytes);
    }
    CHECK_INT(n_states, 6);
}

/* ---- any event that may come in a state ---- */

enum { N_VALUES = BY_ENDED + 1 };

static bool may_be_answered(const struct calls_machine *m)
{
    struct calls_actions asked = {0};
    struct calls_machine copy = *m;

    copy.out = &asked;
    calls_request(&copy);
    return m->recheck || m->state == CALLS_PROBING ||
           (asked.n && asked.list[0].kind != CALLS_CHOOSE);
}

static bool may_happen(const struct calls_machine *m, const struct input *on)
{
    switch (on->kind) {
    case CALLS_ADMIT:
    case CALLS_LOCATE:
        return m->state == CALLS_CHECKING;
    case CALLS_PROVIDER:
    case CALLS_NO_PROVIDER:
        return m->state == CALLS_CHOOSING || (m->state == CALLS_SENT && !m->recheck);
    case CALLS_ANSWER:
        return may_be_answered(m);
    default:
        return true;
    }
}

static const enum calls_recheck SENT_RECHECKS[] = {CALLS_RECHECK_NONE, CALLS_RECHECK_RESULT,
                                                   CALLS_RECHECK_CLAIM, CALLS_RECHECK_LEASE,
                                                   CALLS_RECHECK_LOST};
static const enum calls_recheck FOLLOWING_RECHECKS[] = {
    CALLS_RECHECK_NONE, CALLS_RECHECK_RESULT, CALLS_RECHECK_IDENTITY, CALLS_RECHECK_LEASE};

/* `bits` choose among the machines that may be in that state. */
static struct calls_machine make_machine(enum calls_state state, unsigned bits)
{
    const bool must_end = state >= CALLS_TELLING && state <= CALLS_GIVING_UP;
    const bool may_end = state != CALLS_CHECKING && state != CALLS_CHOOSING && state != CALLS_SENT;
    struct calls_machine m = {
        .state = state,
        .is_idempotent = bits & 1,
        .must_recheck = bits & 2,
        .is_owner_lost = bits & 4,
        .may_have_run = state >= CALLS_CHOOSING && (bits & 8),
        .why = CALLS_WHY_TIMEOUT,
        .walk = bits & 16 ? LAST_WALK : 0,
    };

    if (must_end || (may_end && (bits & 32)))
        m.ending = bits & 64 ? BUS_DEADLINE : BUS_CANCELED;
    if (state == CALLS_SENT)
        m.recheck = SENT_RECHECKS[(bits >> 7) % 5];
    else if (state == CALLS_FOLLOWING)
        m.recheck = FOLLOWING_RECHECKS[(bits >> 7) % 4];
    if (calls_state_follows(state))
        m.origin = (enum calls_origin)((bits >> 10) % 3);
    else if (state == CALLS_PEEKING)
        m.origin = bits & 1024 ? CALLS_ATTACHES : CALLS_STARTS;
    else if (state == CALLS_LOCATING)
        m.origin = bits & 1024 ? CALLS_AWAITS : CALLS_STOPS;
    else if (state >= CALLS_CHOOSING && state <= CALLS_WRITING && state != CALLS_CLOSING)
        m.id.len = bits & 1024 ? 16 : 32;
    return complete_machine(&m);
}

static void try_answers(const struct calls_machine *before, struct input *on)
{
    static const peg_status STATUSES[] = {PEG_OK, PEG_EIO, PEG_ELIMIT, PEG_ENOMEM};

    for (unsigned i = 0; i < 4 * N_VALUES * 16; i++) {
        struct calls_machine machine = *before;
        struct calls_actions actions;

        on->status = STATUSES[i % 4];
        on->value = (enum value)(i / 4 % N_VALUES);
        on->written = i / 4 / N_VALUES & 1;
        on->lease = i / 4 / N_VALUES & 2 ? PROVIDER : (struct bus_address){0};
        on->is_owner = on->is_own_token = on->value && (i / 4 / N_VALUES & 4);
        on->epoch = i / 4 / N_VALUES & 8 ? 2 : 1;
        step(&machine, on, &actions);
        check_actions(&machine, &actions);
    }
}

static void try_messages(const struct calls_machine *before, struct input *on)
{
    static const enum bus_message_kind KINDS[] = {BUS_NAK, BUS_HAVE, BUS_LOST, BUS_DONE};

    for (unsigned i = 0; i < 4 * 16 * 8; i++) {
        struct calls_machine machine = *before;
        struct calls_actions actions;

        on->message = (struct bus_message){
            .kind = KINDS[i % 4],
            .reason = (enum bus_reason)(i / 4 % 16 % (BUS_DUPLICATE + 1)),
            .was_claimed = i / 64 & 1,
            .attempt = i / 64 & 2 ? NO_ATTEMPT : before->attempt,
            .body = i / 64 & 4 ? &some_body : NULL,
        };
        step(&machine, on, &actions);
        check_actions(&machine, &actions);
    }
}

/* Each step asserts that its transition is in the list. Of the 4096 machines of a state it takes
 * some, spread evenly. */
TEST(any_event_in_any_state_is_legal)
{
    enum { N_EACH = 256 };

    for (unsigned i = 0; i < CALLS_OVER * N_EACH; i++) {
        const unsigned bits = i % N_EACH * UINT32_C(2654435761) >> 20;
        const struct calls_machine before = make_machine((enum calls_state)(i / N_EACH), bits);

        for (unsigned kind = 0; kind < CALLS_N_EVENTS; kind++) {
            struct input on = {.kind = (enum calls_event_kind)kind};
            struct calls_machine machine = before;
            struct calls_actions actions;

            if (!may_happen(&before, &on))
                continue;
            if (kind == CALLS_ANSWER) {
                try_answers(&before, &on);
            } else if (kind == CALLS_MESSAGE) {
                try_messages(&before, &on);
            } else {
                step(&machine, &on, &actions);
                check_actions(&machine, &actions);
            }
        }
    }
}
