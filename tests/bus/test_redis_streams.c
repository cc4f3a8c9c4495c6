/* SPDX-License-Identifier: Apache-2.0 */

/* Streams of a real Redis, as loops of a gateway see them; the client beside them is a peer. */

#include "bus/redis/streams.h"
#include "redis_world.h"

#define KEY "pulse:stream:toolset:t:requests"
#define RESULT "pulse:stream:result:1"

/* ---- one question at a time ------------------------------------------------------------------ */

struct question {
    struct bus_stream_wait wait; /* first */
    void (*ask)(struct question *question);
    struct bus_stream_call call;
    struct bus_stream_add add;
    const char *key;
    const char *text;
    unsigned loop;
    atomic_bool is_answered;
    peg_status status;
    char answer[256];
    char entries[BUS_STREAM_ENTRIES][64]; /* "name payload" */
    char ids[BUS_STREAM_ENTRIES][64];
    const char *last; /* of these */
    size_t n_entries;
    size_t n_texts;
    bool is_undelivered;
};

static void on_reply(struct bus_stream_wait *wait, const struct bus_stream_reply *reply)
{
    struct question *question = (struct question *)wait;

    question->status = reply->status;
    snprintf(question->answer, sizeof(question->answer), PEG_FMT, PEG_ARG(reply->text));
    question->n_entries = reply->n_entries;
    for (size_t i = 0; i < reply->n_entries; i++) {
        snprintf(question->entries[i], sizeof(question->entries[i]), PEG_FMT " " PEG_FMT,
                 PEG_ARG(reply->entries[i].name), PEG_ARG(reply->entries[i].payload));
        snprintf(question->ids[i], sizeof(question->ids[i]), PEG_FMT,
                 PEG_ARG(reply->entries[i].id));
        question->last = question->ids[i];
    }
    question->n_texts = reply->n_texts;
    question->is_undelivered = reply->is_undelivered;
    atomic_store(&question->is_answered, true);
}

static void run_question(void *user)
{
    struct question *question = (struct question *)user;

    question->wait.fn = on_reply;
    question->ask(question);
}

static void ask(struct question *question, void (*fn)(struct question *question))
{
    atomic_store(&question->is_answered, false);
    question->ask = fn;
    c_do(question->loop, run_question, question);
    while (!atomic_load(&question->is_answered))
        c_pass();
}

static struct bus *bus_of(const struct question *question)
{
    return buses[question->loop];
}

static void ask_begin(struct question *question)
{
    bus_stream_begin_call(bus_of(question), &question->call, &question->wait);
}

static void ask_add(struct question *question)
{
    bus_stream_add(bus_of(question), &question->add, &question->wait);
}

static void ask_read(struct question *question)
{
    bus_stream_read(bus_of(question), peg__str(question->key), peg__str(question->text),
                    &question->wait);
}

static void ask_group(struct question *question)
{
    bus_stream_make_group(bus_of(question), peg__str(question->key), peg__str("provider"), "$",
                          &question->wait);
}

static void ask_withdraw(struct question *question)
{
    bus_stream_withdraw(bus_of(question), peg__str(question->key), peg__str(question->text),
                        &question->wait);
}

static void ask_get(struct question *question)
{
    bus_key_get(bus_of(question), peg__str(question->key), &question->wait);
}

static void ask_scan(struct question *question)
{
    bus_key_scan(bus_of(question), peg__str("0"), question->text, 1000, &question->wait);
}

static void ask_hash(struct question *question)
{
    bus_hash_scan(bus_of(question), peg__str(question->key), peg__str("0"), 1000, &question->wait);
}

/* ---- keys that are tracked ------------------------------------------------------------------- */

struct tracking {
    struct bus_tracked tracked; /* first */
    const char *key;
    peg_status status;
    atomic_uint n_changes;
};

static void on_tracked(struct bus_tracked *tracked)
{
    atomic_fetch_add(&((struct tracking *)tracked)->n_changes, 1);
}

static void begin_tracking(void *user)
{
    struct tracking *tracking = (struct tracking *)user;

    tracking->tracked.fn = on_tracked;
    tracking->status = bus_track(buses[0], peg__str(tracking->key), &tracking->tracked);
}

static void end_tracking(void *user)
{
    bus_untrack(buses[0], &((struct tracking *)user)->tracked);
}

static void await_changes(struct tracking *tracking, unsigned n)
{
    while (atomic_load(&tracking->n_changes) < n)
        c_pass();
}

/* Flushed before, since buses that find their leases gone connect again. */
static void begin_world(void)
{
    rs_open();
    rs_do("FLUSHALL");
    c_open();
}

static const struct bus_stream_call a_call = {
    .mapping_key = PEG_LIT("registry:result-stream:1"),
    .mapping_value = PEG_LIT("result:1"),
    .mapping_s = 300,
    .result_key = PEG_LIT(RESULT),
    .result_s = 900,
    .request_key = PEG_LIT(KEY),
    .request_name = PEG_LIT("call"),
    .request = PEG_LIT("{\"type\":\"call\"}"),
};

/* ---- calls ----------------------------------------------------------------------------------- */

TEST(begun_call_has_a_mapping_a_result_stream_that_expires_and_a_request)
{
    struct question question = {.call = a_call, .key = KEY, .text = ""};
    char id[256];

    begin_world();
    ask(&question, ask_begin);
    CHECK_INT(question.status, PEG_OK);
    snprintf(id, sizeof(id), "%s", question.answer);
    CHECK(strchr(id, '-'));
    CHECK_STR(peg__str(rs_text("GET registry:result-stream:1")), "result:1");
    CHECK(rs_do("TTL registry:result-stream:1") > 290);
    CHECK(rs_do("TTL " RESULT) > 890);
    ask(&question, ask_read);
    CHECK_INT(question.n_entries, 1);
    CHECK_STR(peg__str(question.entries[0]), "call {\"type\":\"call\"}");
    CHECK_STR(peg__str(question.last), id);
    question.key = RESULT;
    ask(&question, ask_read);
    CHECK_INT(question.n_entries, 1);
    CHECK_STR(peg__str(question.entries[0]), "init {}");
    c_close();
}

TEST(result_that_comes_with_the_request_is_reported)
{
    struct tracking tracking = {.key = RESULT};
    struct question question = {.call = a_call, .key = RESULT, .text = ""};
    unsigned n;

    begin_world();
    c_do(0, begin_tracking, &tracking);
    CHECK_INT(tracking.status, PEG_OK);
    ask(&question, ask_begin);
    /* Its beginning may be a change, too; what was reported is watched again when it is read. */
    n = atomic_load(&tracking.n_changes);
    if (n)
        ask(&question, ask_read);
    rs_do("XADD " RESULT " NOMKSTREAM * n result p {}");
    await_changes(&tracking, n + 1);
    ask(&question, ask_read);
    CHECK_INT(question.n_entries, 2);
    CHECK_STR(peg__str(question.entries[1]), "result {}");
    /* Read, so it is watched again; and the loop's own changes count, too. */
    question.add = (struct bus_stream_add){
        .key = PEG_LIT(RESULT), .name = PEG_LIT("result"), .payload = PEG_LIT("{}")};
    ask(&question, ask_add);
    await_changes(&tracking, n + 2);
    c_do(0, end_tracking, &tracking);
    c_close();
}

TEST(key_is_tracked_once_and_can_be_tracked_again)
{
    struct tracking first = {.key = RESULT};
    struct tracking second = {.key = RESULT};

    begin_world();
    c_do(0, begin_tracking, &first);
    c_do(0, begin_tracking, &second);
    CHECK_INT(second.status, PEG_EEXISTS);
    c_do(0, end_tracking, &second);
    c_do(0, end_tracking, &first);
    c_do(0, begin_tracking, &second);
    CHECK_INT(second.status, PEG_OK);
    c_do(0, end_tracking, &second);
    c_close();
}

TEST(lost_connection_reports_all_that_is_tracked)
{
    struct tracking tracking = {.key = RESULT};

    begin_world();
    c_do(0, begin_tracking, &tracking);
    rs_do("CLIENT KILL TYPE pubsub");
    await_changes(&tracking, 1);
    await_connected(0);
    c_do(0, end_tracking, &tracking);
    c_close();
}

TEST(flushed_server_reports_all_that_is_tracked)
{
    struct tracking tracking = {.key = RESULT};
    struct question question = {.call = a_call};

    begin_world();
    c_do(0, begin_tracking, &tracking);
    ask(&question, ask_begin);
    rs_do("FLUSHALL");
    await_changes(&tracking, 1);
    c_do(0, end_tracking, &tracking);
    c_close();
}

/* ---- withdrawal ------------------------------------------------------------------------------ */

TEST(request_that_no_group_has_got_is_withdrawn)
{
    struct question question = {.call = a_call, .key = KEY};
    char id[256];

    begin_world();
    ask(&question, ask_group);
    ask(&question, ask_begin);
    snprintf(id, sizeof(id), "%s", question.answer);
    question.text = id;
    ask(&question, ask_withdraw);
    CHECK_INT(question.status, PEG_OK);
    CHECK(question.is_undelivered);
    CHECK_INT(rs_do("XLEN " KEY), 0);
    ask(&question, ask_withdraw); /* now nothing is known of it */
    CHECK(!question.is_undelivered);
    c_close();
}

TEST(request_that_a_group_has_got_may_have_begun)
{
    struct question question = {.call = a_call, .key = KEY};
    char id[256];

    begin_world();
    ask(&question, ask_group);
    ask(&question, ask_begin);
    snprintf(id, sizeof(id), "%s", question.answer);
    question.text = id;
    rs_do("XREADGROUP GROUP provider me COUNT 1 STREAMS " KEY " >");
    ask(&question, ask_withdraw);
    CHECK_INT(question.status, PEG_OK);
    CHECK(!question.is_undelivered);
    c_close();
}

TEST(request_on_a_stream_without_groups_proves_nothing)
{
    struct question question = {.call = a_call, .key = KEY};
    char id[256];

    begin_world();
    ask(&question, ask_begin);
    snprintf(id, sizeof(id), "%s", question.answer);
    question.text = id;
    ask(&question, ask_withdraw);
    CHECK(!question.is_undelivered);
    c_close();
}

/* ---- entries and keys ------------------------------------------------------------------------ */

TEST(entry_for_a_stream_that_is_gone_makes_none)
{
    struct question question = {
        .add = {.key = PEG_LIT(RESULT), .name = PEG_LIT("result"), .payload = PEG_LIT("{}")},
        .key = RESULT,
        .text = ""};

    begin_world();
    ask(&question, ask_add);
    CHECK_INT(question.status, PEG_ENOTFOUND);
    CHECK_INT(rs_do("EXISTS " RESULT), 0);
    ask(&question, ask_read);
    CHECK_INT(question.status, PEG_OK);
    CHECK_INT(question.n_entries, 0);
    question.key = "registry:result-stream:1";
    ask(&question, ask_get);
    CHECK_INT(question.status, PEG_ENOTFOUND);
    c_close();
}

TEST(read_gives_what_is_behind_an_entry_and_so_many_at_once)
{
    struct question question = {.key = RESULT, .text = ""};
    char last[64];

    begin_world();
    for (unsigned i = 0; i < BUS_STREAM_ENTRIES + 3; i++)
        rs_do("XADD " RESULT " * other 1 p x n output_delta");
    ask(&question, ask_read);
    CHECK_INT(question.n_entries, BUS_STREAM_ENTRIES);
    CHECK_STR(peg__str(question.entries[0]), "output_delta x");
    snprintf(last, sizeof(last), "%s", question.last);
    question.text = last;
    ask(&question, ask_read);
    CHECK_INT(question.n_entries, 3);
    c_close();
}

TEST(group_that_is_there_stays_as_it_is)
{
    struct question question = {.key = KEY};

    begin_world();
    ask(&question, ask_group);
    rs_do("XADD " KEY " * n ping p {}");
    ask(&question, ask_group);
    CHECK_INT(question.status, PEG_OK);
    CHECK_INT(rs_do("XLEN " KEY), 1);
    c_close();
}

static void trim_key(void *user)
{
    bus_stream_trim(buses[0], peg__str((const char *)user));
}

/* Reads come behind the steps of the trimming. */
static void trim_and_wait(struct question *question)
{
    c_do(0, trim_key, (void *)(uintptr_t)KEY);
    for (unsigned i = 0; i < 4; i++)
        ask(question, ask_read);
}

static void acknowledge(const char *id)
{
    char words[256];

    snprintf(words, sizeof(words), "XACK " KEY " provider %s", id);
    CHECK_INT(rs_do(words), 1);
}

/* Approximate trimming goes by nodes, which have one entry here. */
TEST(trimming_keeps_what_is_unread_and_what_is_unacknowledged)
{
    struct question question = {.key = KEY, .text = ""};

    begin_world();
    rs_do("CONFIG SET stream-node-max-entries 1");
    ask(&question, ask_group);
    for (unsigned i = 0; i < 10; i++)
        rs_do("XADD " KEY " * n call p {}");
    trim_and_wait(&question);
    CHECK_INT(rs_do("XLEN " KEY), 10); /* none was read */
    rs_do("XREADGROUP GROUP provider me COUNT 6 STREAMS " KEY " >");
    trim_and_wait(&question);
    CHECK_INT(rs_do("XLEN " KEY), 10); /* the first is unacknowledged */
    for (unsigned i = 0; i < 6; i++) {
        if (i != 4)
            acknowledge(question.ids[i]);
    }
    trim_and_wait(&question);
    CHECK_INT(rs_do("XLEN " KEY), 6); /* the fifth is */
    acknowledge(question.ids[0]);
    trim_and_wait(&question);
    CHECK_INT(rs_do("XLEN " KEY), 4); /* these were not read */
    rs_do("CONFIG SET stream-node-max-entries 100");
    c_close();
}

TEST(trimming_leaves_a_stream_without_groups_alone)
{
    struct question question = {.key = KEY, .text = ""};

    begin_world();
    rs_do("XADD " KEY " * n call p {}");
    trim_and_wait(&question);
    CHECK_INT(rs_do("XLEN " KEY), 1);
    rs_do("DEL " KEY);
    trim_and_wait(&question);
    CHECK_INT(rs_do("EXISTS " KEY), 0);
    c_close();
}

static void clean_keys(void *user)
{
    (void)user;
    bus_key_expire(buses[0], peg__str("pulse:stream:result:a"), 900);
    bus_key_expire(buses[0], peg__str("pulse:stream:result:a"), 100);
    bus_hash_remove(buses[0], peg__str("map:sink:agent:keepalive:content"), peg__str("a"));
}

TEST(scan_gives_keys_and_fields_and_an_expiry_is_set_once)
{
    struct question question = {.key = "map:sink:agent:keepalive:content",
                                .text = "pulse:stream:result:*"};

    begin_world();
    rs_do("XADD pulse:stream:result:a * n result p {}");
    rs_do("XADD pulse:stream:result:b * n result p {}");
    rs_do("XADD pulse:stream:other * n result p {}");
    ask(&question, ask_scan);
    CHECK_INT(question.n_texts, 2);
    CHECK_STR(peg__str(question.answer), "0");
    rs_do("HSET map:sink:agent:keepalive:content a 1 b 2");
    ask(&question, ask_hash);
    CHECK_INT(question.n_texts, 4);
    c_do(0, clean_keys, NULL);
    ask(&question, ask_hash);
    CHECK_INT(question.n_texts, 2);
    CHECK(rs_do("TTL pulse:stream:result:a") > 890);
    CHECK_INT(rs_do("TTL pulse:stream:result:b"), -1);
    c_close();
}

/* ---- large entries --------------------------------------------------------------------------- */

enum { N_LARGE = 24, LARGE_BYTES = 6 << 20 };

struct large {
    struct bus_stream_wait wait; /* first */
    struct bus_tracked tracked;
    char key[64];
    bool is_read; /* of the loop */
};

static struct large larges[N_LARGE];
static atomic_uint n_larges;

static void read_large(struct large *large);

static void on_large(struct bus_stream_wait *wait, const struct bus_stream_reply *reply)
{
    struct large *large = (struct large *)wait;

    if (reply->status)
        return; /* read again with the next connection */
    CHECK_INT(reply->n_entries, 1);
    CHECK_INT(reply->entries[0].payload.len, LARGE_BYTES);
    large->is_read = true;
    bus_untrack(buses[0], &large->tracked);
    atomic_fetch_add(&n_larges, 1);
}

static void on_large_tracked(struct bus_tracked *tracked)
{
    read_large(peg__container_of(tracked, struct large, tracked));
}

static void read_large(struct large *large)
{
    large->wait.fn = on_large;
    bus_forget_wait(buses[0], &large->wait.wait);
    bus_stream_read(buses[0], peg__str(large->key), peg__str(""), &large->wait);
}

static void read_larges(void *user)
{
    (void)user;
    for (unsigned i = 0; i < N_LARGE; i++) {
        larges[i].tracked.fn = on_large_tracked;
        if (bus_track(buses[0], peg__str(larges[i].key), &larges[i].tracked))
            abort();
        read_large(&larges[i]);
    }
}

/* Redis cuts off a subscriber for whom more than 32 MiB wait. */
TEST(many_large_entries_are_read_in_spite_of_the_buffer_of_subscribers)
{
    char words[256];

    begin_world();
    for (unsigned i = 0; i < N_LARGE; i++) {
        snprintf(larges[i].key, sizeof(larges[i].key), "pulse:stream:result:large%u", i);
        snprintf(words, sizeof(words),
                 "EVAL \"return redis.call('XADD',KEYS[1],'*','n','result','p',string.rep('x',%d))"
                 "\" 1 %s",
                 LARGE_BYTES, larges[i].key);
        CHECK(strchr(rs_text(words), '-'));
    }
    c_do(0, read_larges, NULL);
    while (atomic_load(&n_larges) < N_LARGE)
        c_pass();
    rs_do("FLUSHALL");
    c_close();
}
