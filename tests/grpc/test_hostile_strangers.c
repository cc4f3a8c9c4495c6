/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clients without a token, where tokens are required, and clients with one that want all of the
 * memory. However many they are, together they hold no more than their part, the largest are cut,
 * and when they have left the server is as large as before.
 */

#include "t.h"

#include "grpc/battle.h"
#include "grpc/raw.h"

enum { N_CONNECTIONS = 100, N_STREAMS = 1000, REST_KB = 10 << 10 };

static struct battle battle;

/* The defaults: an eighth of 256 MiB is for those without a token. */
static const struct battle_setup guarded = {.asks_who = true};

struct attack {
    void (*fill)(struct raw *raw);
    unsigned n_cut;
    bool is_over;
};

static struct raw *new_raw(void)
{
    struct raw *raw = malloc(sizeof(*raw));

    if (!raw || !raw_open(raw, battle.server.ports[0])) {
        printf("# no connection: %s\n", strerror(errno));
        abort();
    }
    return raw;
}

/* All of them stay until the last has come, and as long as the server answers. */
static void attack_together(void *user, unsigned number)
{
    struct attack *attack = user;
    struct raw *raws[N_CONNECTIONS];

    (void)number;
    if (attack->is_over)
        return; /* once is enough: it is the peak that counts */
    attack->is_over = true;
    for (unsigned i = 0; i < N_CONNECTIONS; i++) {
        raws[i] = new_raw();
        attack->fill(raws[i]);
        while (raw_read(raws[i], 0))
            ;
    }
    for (unsigned i = 0; i < N_CONNECTIONS; i++) {
        while (raw_read(raws[i], 1))
            ;
        attack->n_cut += raws[i]->is_closed;
        raw_close(raws[i]);
        free(raws[i]);
    }
}

static unsigned fight_together(void (*fill)(struct raw *raw), long max_mb)
{
    struct attack attack = {.fill = fill};
    long rest_kb;

    battle_begin(&battle, &guarded);
    battle_fight(&battle, attack_together, &attack, 1);
    printf("# %u of %d connections were cut\n", attack.n_cut, N_CONNECTIONS);
    rest_kb = battle_rest_kb(&battle, REST_KB);
    printf("# %ld KB more when all have left\n", rest_kb);
    battle_end(&battle, max_mb);
    if (!T_SANITIZED)
        CHECK(rest_kb <= REST_KB);
    return attack.n_cut;
}

/* ---- without a window -------------------------------------------------------------------------
 */

static const char reflection_path[] = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
/* file_containing_symbol: its answer has some ten KiB. */
static const char question[] = "\x22\x15"
                               "grpc.health.v1.Health";

static void ask_reflection(struct raw *raw, uint32_t window)
{
    raw_preface(&raw->out);
    raw_head(&raw->out, 0, RAW_SETTINGS, 0, 0);
    raw_setting(&raw->out, 4, window);
    raw_u32_frame(&raw->out, RAW_WINDOW_UPDATE, 0, 1 << 30);
    for (uint32_t id = 1; id < 2 * N_STREAMS; id += 2) {
        raw_headers(&raw->out, id, 0, reflection_path, peg__str(""));
        raw_message(&raw->out, id, 0, peg__str(question), sizeof(question) - 1, false);
    }
    raw_send(raw);
}

static void ask_without_a_window(struct raw *raw)
{
    ask_reflection(raw, 0);
}

static void ask_with_a_small_window(struct raw *raw)
{
    ask_reflection(raw, 1);
}

VOLUME_TEST(reflection_without_a_window_costs_strangers_their_connections)
{
    CHECK(fight_together(ask_without_a_window, 64) > 0);
}

VOLUME_TEST(reflection_with_a_window_of_a_byte_costs_strangers_their_connections)
{
    CHECK(fight_together(ask_with_a_small_window, 64) > 0);
}

/* ---- messages that do not end ------------------------------------------------------------------
 */

static void begin_messages(struct raw *raw)
{
    static char bytes[16000];
    const char head[] = {0, 0, 0x3f, (char)0xff, (char)0xff}; /* some 4 MiB */

    raw_hello(&raw->out);
    for (uint32_t id = 1; id < 200; id += 2) {
        raw_headers(&raw->out, id, 0, id % 4 == 1 ? "/b.B/Echo" : reflection_path, peg__str(""));
        raw_frame(&raw->out, RAW_DATA, 0, id, head, sizeof(head));
        raw_frame(&raw->out, RAW_DATA, 0, id, bytes, sizeof(bytes));
    }
    raw_send(raw);
}

VOLUME_TEST(messages_of_strangers_that_do_not_end_are_not_held)
{
    (void)fight_together(begin_messages, 64);
}

/* ---- headers ----------------------------------------------------------------------------------
 */

/* Each call takes one byte for each KiB of its headers, which stand in the table. */
static void send_headers(struct raw *raw)
{
    static char large[3800];
    struct peg__buf block = PEG__BUF(100000);

    memset(large, 'x', sizeof(large));
    raw_hello(&raw->out);
    raw_setting(&raw->out, 4, 0);
    raw_fields(&block, "/grpc.health.v1.Health/Watch");
    raw_field(&block, 0x40, peg__str("x-large"), peg__strn(large, sizeof(large)));
    raw_frame(&raw->out, RAW_HEADERS, RAW_END_HEADERS, 1, block.ptr, block.len);
    for (uint32_t id = 3; id < 2 * N_STREAMS; id += 2) {
        peg__buf_clear(&block);
        raw_fields(&block, "/grpc.health.v1.Health/Watch");
        peg__buf_add(&block, "\xbe\xbe\xbe", 3); /* number 62: the newest */
        raw_frame(&raw->out, RAW_HEADERS, RAW_END_HEADERS, id, block.ptr, block.len);
    }
    raw_send(raw);
    peg__buf_free(&block);
}

VOLUME_TEST(headers_of_strangers_cost_them_their_connections)
{
    CHECK(fight_together(send_headers, 64) > 0);
}

/* ---- watches of health ------------------------------------------------------------------------
 */

static void watch_health(struct raw *raw)
{
    raw_hello(&raw->out);
    raw_setting(&raw->out, 4, 0);
    for (uint32_t id = 1; id < 2 * N_STREAMS; id += 2)
        raw_call(&raw->out, id, "/grpc.health.v1.Health/Watch", "");
    raw_send(raw);
}

VOLUME_TEST(watches_of_strangers_cost_them_their_connections)
{
    CHECK(fight_together(watch_health, 64) > 0);
}

/* ---- with a token -----------------------------------------------------------------------------
 */

static void begin_messages_with_a_token(struct raw *raw)
{
    static char bytes[16000];
    const char head[] = {0, 0, 0x3f, (char)0xff, (char)0xff};
    struct peg__buf token = PEG__BUF(1000);

    raw_field(&token, 0, peg__str("authorization"), peg__str("Bearer attacker"));
    raw_hello(&raw->out);
    for (uint32_t id = 1; id < 128; id += 2) {
        raw_headers(&raw->out, id, 0, "/b.B/Echo", peg__buf_view(&token));
        raw_frame(&raw->out, RAW_DATA, 0, id, head, sizeof(head));
        for (unsigned i = 0; i < 10; i++)
            raw_frame(&raw->out, RAW_DATA, 0, id, bytes, sizeof(bytes));
    }
    raw_send(raw);
    peg__buf_free(&token);
}

/* 100 connections with 64 messages of 160,000 bytes each would be 1 GB; the spare calls of a loop
 * alone could keep the memory of 256 messages. */
VOLUME_TEST(messages_that_do_not_end_cost_their_principal_its_connections)
{
    CHECK(fight_together(begin_messages_with_a_token, 300) > 0);
}

/* ---- time -------------------------------------------------------------------------------------
 */

static bool wait_for_close(struct raw *raw)
{
    const int64_t until = raw_now_ms() + 60000;

    while (!raw->is_closed && raw_now_ms() < until)
        raw_read(raw, 50);
    return raw->is_closed;
}

/* Whether a call on it is answered. */
static bool is_alive(struct raw *raw, uint32_t id)
{
    const unsigned n_ended = raw->n_ended;
    const int64_t until = raw_now_ms() + 60000;

    raw_call(&raw->out, id, "/grpc.health.v1.Health/Check", "");
    raw_send(raw);
    while (raw->n_ended == n_ended && !raw->is_closed && raw_now_ms() < until)
        raw_read(raw, 50);
    return raw->n_ended > n_ended;
}

TEST(a_connection_that_does_not_authenticate_ends)
{
    const struct battle_setup hurried = {.asks_who = true, .server.unauthenticated_ms = 300};
    struct peg__buf token = PEG__BUF(1000);
    struct raw *with_token;
    struct raw *watching;
    struct raw *without;

    battle_begin(&battle, &hurried);
    with_token = new_raw();
    raw_hello(&with_token->out);
    raw_field(&token, 0, peg__str("authorization"), peg__str("Bearer me"));
    raw_headers(&with_token->out, 1, RAW_END_STREAM, "/b.B/Echo", peg__buf_view(&token));
    raw_send(with_token);
    watching = new_raw();
    raw_hello(&watching->out);
    raw_call(&watching->out, 1, "/grpc.health.v1.Health/Watch", "");
    raw_send(watching);
    for (int i = 0; i < 3; i++) {
        without = new_raw();
        raw_hello(&without->out);
        CHECK(is_alive(without, 1));
        CHECK(wait_for_close(without));
        raw_close(without);
        free(without);
    }
    CHECK(is_alive(with_token, 3));
    CHECK(is_alive(watching, 3));
    raw_close(with_token);
    raw_close(watching);
    free(with_token);
    free(watching);
    peg__buf_free(&token);
    battle_end(&battle, 16);
}

static const struct battle_setup impatient = {.server.stall_ms = 200};

TEST(a_message_that_is_not_finished_ends_its_call)
{
    struct raw *raw;
    const int64_t until = raw_now_ms() + 60000;

    battle_begin(&battle, &impatient);
    raw = new_raw();
    raw_hello(&raw->out);
    raw_headers(&raw->out, 1, 0, "/b.B/Echo", peg__str(""));
    raw_message(&raw->out, 1, 0, peg__str("a part"), 100, false);
    raw_headers(&raw->out, 3, 0, "/b.B/Chat", peg__str("")); /* says nothing: may take its time */
    raw_send(raw);
    while (raw->n_ended < 1 && !raw->is_closed && raw_now_ms() < until)
        raw_read(raw, 50);
    CHECK_INT(raw->n_ended, 1);
    CHECK(is_alive(raw, 5));
    raw_message(&raw->out, 3, RAW_END_STREAM, peg__str("late"), 4, false);
    raw_send(raw);
    while (raw->n_ended < 3 && !raw->is_closed && raw_now_ms() < until)
        raw_read(raw, 50);
    CHECK_INT(raw->n_ended, 3);
    raw_close(raw);
    free(raw);
    battle_end(&battle, 16);
}

TEST(an_answer_that_is_not_taken_ends_its_call)
{
    struct raw *raw;
    const int64_t until = raw_now_ms() + 60000;

    battle_begin(&battle, &impatient);
    raw = new_raw();
    raw_hello(&raw->out);
    raw_setting(&raw->out, 4, 0);
    raw_call(&raw->out, 1, "/b.B/Large", "1000");
    raw_call(&raw->out, 3, reflection_path, question);
    raw_call(&raw->out, 5, "/grpc.health.v1.Health/Check", "");
    raw_send(raw);
    while (raw->n_resets < 3 && !raw->is_closed && raw_now_ms() < until)
        raw_read(raw, 50);
    CHECK_INT(raw->n_resets, 3);
    CHECK(!raw->is_closed);
    raw_close(raw);
    free(raw);
    battle_end(&battle, 16);
}
