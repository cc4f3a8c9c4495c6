/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_BUS_CONTRACT_H
#define PEG_TESTS_BUS_CONTRACT_H

/*
 * What every bus promises. A test of a kind of bus defines the functions below for it and includes
 * contract_tests.h. There are C_N buses, each on a loop of its own; questions are asked on that
 * loop, and their answers are looked at by the test's thread.
 */

#include <pthread.h>
#include <time.h>

#include "../t.h"
#include "base/text/str.h"
#include "bus/bus.h"

enum { C_N = 3, C_MAX_ADDRESSES = 8, C_MAX_HEARD = 64 };

static void c_open(void);
static void c_close(void);
static struct bus *c_bus(unsigned i);
/* Runs it on the loop of bus i; returns when it has returned. */
static void c_do(unsigned i, void (*fn)(void *user), void *user);
/* Something may happen meanwhile: time passes, other loops run. */
static void c_pass(void);
/* Everything that is on its way arrives; leases of a second without a loop end. */
static void c_settle(void);
/* Frees bus i. */
static void c_end(unsigned i);

/* ---- questions and their answers ----------------------------------------------------------- */

static pthread_mutex_t c_lock = PTHREAD_MUTEX_INITIALIZER;

/* A question, its answer, and what the answer borrowed. */
struct c_asked {
    struct bus_wait wait; /* first */
    struct bus *bus;
    enum { C_ONCE, C_READ, C_SEND, C_WAIT, C_WAITERS, C_LEASE, C_LEASES, C_SET } what;
    struct bus_key key;
    struct bus_address to;
    struct bus_message message;
    struct peg__blob *value;
    peg_str names[C_MAX_ADDRESSES];
    size_t n_names;
    int64_t lease_ms;
    enum bus_lease_mode mode;
    enum bus_map map;
    uint64_t expected;

    unsigned n_answers;
    struct bus_answer answer;
    bool has_standing;
    char current[64];
    struct bus_address addresses[C_MAX_ADDRESSES];
    unsigned n_heard_before; /* changes that this test's watches heard before the answer */
};

static unsigned c_n_changes; /* heard by all watches */

static void c_on_answer(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct c_asked *asked = (struct c_asked *)wait;

    pthread_mutex_lock(&c_lock);
    asked->n_answers++;
    asked->answer = *answer;
    asked->has_standing = answer->current != NULL;
    snprintf(asked->current, sizeof(asked->current), "%s",
             answer->current ? answer->current->bytes : "");
    for (size_t i = 0; i < answer->n_addresses && i < C_MAX_ADDRESSES; i++)
        asked->addresses[i] = answer->addresses[i];
    asked->n_heard_before = c_n_changes;
    pthread_mutex_unlock(&c_lock);
}

static void c_ask_here(void *user)
{
    struct c_asked *asked = (struct c_asked *)user;
    const int64_t keep_until_ms = bus_now_ms(asked->bus) + 60000;

    asked->wait.fn = c_on_answer;
    switch (asked->what) {
    case C_ONCE:
        bus_put_if_absent(asked->bus, &asked->key, asked->value, keep_until_ms, &asked->wait);
        break;
    case C_READ:
        bus_read(asked->bus, &asked->key, &asked->wait);
        break;
    case C_SEND:
        bus_send(asked->bus, asked->to, &asked->message, &asked->wait);
        break;
    case C_WAIT:
        bus_wait_add(asked->bus, &asked->key, keep_until_ms, &asked->wait);
        break;
    case C_WAITERS:
        bus_waiters(asked->bus, &asked->key, &asked->wait);
        break;
    case C_LEASE:
        bus_lease(asked->bus, asked->names[0], asked->lease_ms, asked->mode, &asked->wait);
        break;
    case C_LEASES:
        bus_leases(asked->bus, asked->names, asked->n_names, &asked->wait);
        break;
    case C_SET:
        bus_map_set(asked->bus, asked->map, asked->names[0], asked->value, asked->expected,
                    &asked->wait);
        break;
    }
}

static unsigned c_n_answers(const struct c_asked *asked)
{
    unsigned n;

    pthread_mutex_lock(&c_lock);
    n = asked->n_answers;
    pthread_mutex_unlock(&c_lock);
    return n;
}

static void c_ask(unsigned i, struct c_asked *asked)
{
    asked->bus = c_bus(i);
    c_do(i, c_ask_here, asked);
    while (c_n_answers(asked) == 0)
        c_pass();
    CHECK_INT(asked->n_answers, 1);
    CHECK(!asked->wait.pending);
}

/* ---- in words ------------------------------------------------------------------------------ */

static struct bus_id c_id(unsigned number)
{
    struct bus_id id = {.len = 16};

    memcpy(id.bytes, &number, sizeof(number));
    return id;
}

static struct bus_key c_key(unsigned number, char what, uint32_t n)
{
    return (struct bus_key){.id = c_id(number), .what = what, .n = n};
}

/* Of a call with an identity. */
static struct bus_key c_named_key(unsigned number, char what, uint32_t n)
{
    struct bus_key key = c_key(number, what, n);

    key.id.len = sizeof(key.id.bytes);
    return key;
}

static struct c_asked c_once(unsigned i, struct bus_key key, const char *value)
{
    struct c_asked asked = {.what = C_ONCE, .key = key, .value = peg__blob_copy(peg__str(value))};

    c_ask(i, &asked);
    CHECK_INT(asked.answer.status, PEG_OK);
    peg__blob_unref(asked.value);
    return asked;
}

static struct c_asked c_read(unsigned i, struct bus_key key)
{
    struct c_asked asked = {.what = C_READ, .key = key};

    c_ask(i, &asked);
    CHECK_INT(asked.answer.status, PEG_OK);
    return asked;
}

static bool c_send(unsigned i, struct bus_address to, const struct bus_message *message)
{
    struct c_asked asked = {.what = C_SEND, .to = to, .message = *message};

    c_ask(i, &asked);
    CHECK_INT(asked.answer.status, PEG_OK);
    return asked.answer.written;
}

static void c_wait_add(unsigned i, struct bus_key key)
{
    struct c_asked asked = {.what = C_WAIT, .key = key};

    c_ask(i, &asked);
    CHECK_INT(asked.answer.status, PEG_OK);
}

static struct c_asked c_waiters(unsigned i, struct bus_key key)
{
    struct c_asked asked = {.what = C_WAITERS, .key = key};

    c_ask(i, &asked);
    CHECK_INT(asked.answer.status, PEG_OK);
    return asked;
}

static void c_lease(unsigned i, const char *name, int64_t lease_ms)
{
    struct c_asked asked = {.what = C_LEASE, .names = {peg__str(name)}, .lease_ms = lease_ms};

    c_ask(i, &asked);
    CHECK_INT(asked.answer.status, PEG_OK);
}

static struct bus_address c_holder(unsigned i, const char *name)
{
    struct c_asked asked = {.what = C_LEASES, .names = {peg__str(name)}, .n_names = 1};

    c_ask(i, &asked);
    CHECK_INT(asked.answer.status, PEG_OK);
    CHECK_INT(asked.answer.n_addresses, 1);
    return asked.addresses[0];
}

/* `value` NULL: it is removed. */
static struct c_asked c_set(unsigned i, const char *key, const char *value, uint64_t expected)
{
    struct c_asked asked = {.what = C_SET,
                            .map = BUS_MAP_PROVIDERS,
                            .names = {peg__str(key)},
                            .value = value ? peg__blob_copy(peg__str(value)) : NULL,
                            .expected = expected};

    c_ask(i, &asked);
    CHECK_INT(asked.answer.status, PEG_OK);
    peg__blob_unref(asked.value);
    return asked;
}

/* ---- what is heard ------------------------------------------------------------------------- */

/* Messages that came to one bus; the first ones are kept. And lost nodes. */
struct c_messages {
    unsigned n_lost;
    struct bus_address last_lost;
    unsigned n;
    struct bus_message first[C_MAX_HEARD];
    char bodies[C_MAX_HEARD][16];
};

static struct c_messages c_messages[C_N];

static void c_on_message(void *user, const struct bus_message *message)
{
    struct c_messages *messages = (struct c_messages *)user;

    pthread_mutex_lock(&c_lock);
    if (messages->n < C_MAX_HEARD) {
        messages->first[messages->n] = *message;
        messages->first[messages->n].body = NULL;
        snprintf(messages->bodies[messages->n], sizeof(messages->bodies[0]), "%s",
                 message->body ? message->body->bytes : "(none)");
    }
    messages->n++;
    pthread_mutex_unlock(&c_lock);
}

static void c_on_reset(void *user)
{
    (void)user;
}

static void c_on_node_lost(void *user, struct bus_address address)
{
    struct c_messages *messages = (struct c_messages *)user;

    pthread_mutex_lock(&c_lock);
    messages->n_lost++;
    messages->last_lost = address;
    pthread_mutex_unlock(&c_lock);
}

static unsigned c_n_lost(unsigned i)
{
    unsigned n;

    pthread_mutex_lock(&c_lock);
    n = c_messages[i].n_lost;
    pthread_mutex_unlock(&c_lock);
    return n;
}

/* For c_open(). */
static void c_listen(unsigned i)
{
    static const struct bus_events events = {
        .on_message = c_on_message, .on_reset = c_on_reset, .on_node_lost = c_on_node_lost};

    c_messages[i] = (struct c_messages){0};
    bus_listen(c_bus(i), &events, &c_messages[i]);
}

static unsigned c_n_messages(unsigned i)
{
    unsigned n;

    pthread_mutex_lock(&c_lock);
    n = c_messages[i].n;
    pthread_mutex_unlock(&c_lock);
    return n;
}

static void c_await_messages(unsigned i, unsigned n)
{
    while (c_n_messages(i) < n)
        c_pass();
    CHECK_INT(c_n_messages(i), n);
}

/* A watch that writes down what it hears: "a=1;" in a snapshot, "b=2!" later, "b-" for a key that
 * is gone, "ready;". */
struct c_watch {
    struct bus_watch watch; /* first */
    unsigned i;
    char text[1024];
    uint64_t last_revision;
    bool is_in_order;
};

static void c_note(struct c_watch *watch, const char *text)
{
    const size_t len = strlen(watch->text);

    snprintf(watch->text + len, sizeof(watch->text) - len, "%s", text);
}

static void c_on_change(struct bus_watch *bus_watch, const struct bus_change *change)
{
    struct c_watch *watch = (struct c_watch *)bus_watch;
    char text[128];

    if (change->value)
        snprintf(text, sizeof(text), "%.*s=%s%c", PEG_ARG(change->key), change->value->bytes,
                 change->is_snapshot ? ';' : '!');
    else
        snprintf(text, sizeof(text), "%.*s-", PEG_ARG(change->key));
    pthread_mutex_lock(&c_lock);
    watch->is_in_order &= change->revision > watch->last_revision;
    watch->last_revision = change->revision;
    c_note(watch, text);
    c_n_changes++;
    pthread_mutex_unlock(&c_lock);
}

static void c_on_ready(struct bus_watch *bus_watch)
{
    pthread_mutex_lock(&c_lock);
    c_note((struct c_watch *)bus_watch, "ready;");
    pthread_mutex_unlock(&c_lock);
}

static void c_watch_here(void *user)
{
    struct c_watch *watch = (struct c_watch *)user;

    bus_map_watch(c_bus(watch->i), BUS_MAP_PROVIDERS, &watch->watch);
}

static void c_watch(unsigned i, struct c_watch *watch)
{
    *watch = (struct c_watch){
        .watch = {.on_change = c_on_change, .on_ready = c_on_ready}, .i = i, .is_in_order = true};
    c_do(i, c_watch_here, watch);
}

static void c_unwatch_here(void *user)
{
    struct c_watch *watch = (struct c_watch *)user;

    bus_map_unwatch(c_bus(watch->i), BUS_MAP_PROVIDERS, &watch->watch);
}

static void c_unwatch(struct c_watch *watch)
{
    c_do(watch->i, c_unwatch_here, watch);
}

/* What it has written down so far. */
static peg_str c_told(struct c_watch *watch)
{
    static char text[sizeof(watch->text)];

    pthread_mutex_lock(&c_lock);
    snprintf(text, sizeof(text), "%s", watch->text);
    pthread_mutex_unlock(&c_lock);
    return peg__str(text);
}

static void c_await_told(struct c_watch *watch, const char *text)
{
    while (c_told(watch).len < strlen(text))
        c_pass();
    CHECK_STR(c_told(watch), text);
}

#endif
