/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clients that want the server to hold much: headers and messages that are too large, announced
 * or real, messages that are never answered because their call never ends, gzip bombs, answers
 * that nobody takes. What it holds stays below what the options say.
 */

#include "t.h"

#include <zlib.h>

#include "grpc/battle.h"
#include "grpc/raw.h"

enum { MB = 1 << 20, WAIT_MS = 60000 };

static struct battle battle;

/* Bounds that are small enough to be seen. */
static const struct battle_setup small = {
    .server = {.max_message_bytes = 4 * MB, .max_held_bytes = 16 * MB, .max_send_bytes = 8 * MB},
};

static struct raw *new_raw(void)
{
    struct raw *raw = malloc(sizeof(*raw));

    if (!raw || !raw_open(raw, battle.server.ports[0])) {
        printf("# no connection: %s\n", strerror(errno));
        abort();
    }
    raw_hello(&raw->out);
    return raw;
}

static void free_raw(struct raw *raw)
{
    raw_close(raw);
    free(raw);
}

static void wait_for(struct raw *raw, const unsigned *counter, unsigned n)
{
    const int64_t until = raw_now_ms() + WAIT_MS;

    while (*counter < n && !raw->is_closed && raw_now_ms() < until)
        raw_read(raw, 50);
}

/* ---- headers ----------------------------------------------------------------------------------
 */

static void send_large_headers(void *user, unsigned number)
{
    static char large[12000];
    unsigned *ret_n_answered = user;
    struct raw *raw = new_raw();

    (void)number;
    memset(large, 'x', sizeof(large));
    for (uint32_t id = 1; id < 400 && !raw->is_closed; id += 2) {
        struct peg__buf block = PEG__BUF(100000);

        raw_fields(&block, "/b.B/Echo");
        raw_field(&block, 0, peg__str("x-one"), peg__strn(large, sizeof(large)));
        raw_frame(&raw->out, RAW_HEADERS, RAW_END_STREAM, id, block.ptr, block.len);
        peg__buf_clear(&block);
        raw_field(&block, 0, peg__str("x-two"), peg__strn(large, sizeof(large)));
        raw_frame(&raw->out, RAW_CONTINUATION, RAW_END_HEADERS, id, block.ptr, block.len);
        peg__buf_free(&block);
        raw_send(raw);
        while (raw_read(raw, 0))
            ;
    }
    wait_for(raw, &raw->n_ended, 200);
    *ret_n_answered = raw->n_ended;
    free_raw(raw);
}

TEST(headers_that_are_too_large_are_answered)
{
    unsigned n_answered = 0;

    battle_begin(&battle, &small);
    battle_fight(&battle, send_large_headers, &n_answered, 1);
    battle_end(&battle, 16);
    CHECK_INT(n_answered, 200);
}

/* ---- messages ---------------------------------------------------------------------------------
 */

static void announce(void *user, unsigned number)
{
    unsigned *ret_n_answered = user;
    struct raw *raw = new_raw();

    (void)number;
    /* As much as may be, and one byte of it: 900 of them would be 3.6 GB. */
    for (uint32_t id = 1; id < 1800; id += 2) {
        raw_headers(&raw->out, id, 0, "/b.B/Echo", peg__str(""));
        raw_message(&raw->out, id, 0, peg__str("x"), 4 * MB, false);
    }
    /* More than may be. */
    raw_headers(&raw->out, 1801, 0, "/b.B/Echo", peg__str(""));
    raw_message(&raw->out, 1801, 0, peg__str("x"), UINT32_MAX, false);
    raw_send(raw);
    wait_for(raw, &raw->n_ended, 1);
    *ret_n_answered = raw->n_ended;
    free_raw(raw);
}

TEST(messages_that_are_announced_take_no_memory_before_they_come)
{
    unsigned n_answered = 0;

    battle_begin(&battle, &small);
    battle_fight(&battle, announce, &n_answered, 1);
    battle_end(&battle, 16);
    CHECK_INT(n_answered, 1);
}

/* Sends a message of so many bytes, as far as the windows go: the server opens them as it reads. */
static void send_bytes(struct raw *raw, uint32_t id, size_t len, bool is_last)
{
    static const char piece[16000];
    size_t sent = 0;

    raw_head(&raw->out, 5, RAW_DATA, 0, id);
    peg__buf_putc(&raw->out, 0);
    raw_put_u32(&raw->out, (uint32_t)len);
    while (sent < len && !raw->is_closed) {
        const size_t n = len - sent < sizeof(piece) ? len - sent : sizeof(piece);

        sent += n;
        raw_frame(&raw->out, RAW_DATA, is_last && sent == len ? RAW_END_STREAM : 0, id, piece, n);
        if (raw->out.len > 128 << 10) {
            raw_send(raw);
            raw_read(raw, 1);
        }
    }
    raw_send(raw);
    while (raw_read(raw, 0))
        ;
}

/* Whole messages of calls that do not end: they wait for the end of the client's side. */
static void leave_open(void *user, unsigned number)
{
    unsigned *ret_n_answered = user;
    struct raw *raw = new_raw();

    (void)number;
    for (uint32_t id = 1; id < 80; id += 2) {
        raw_headers(&raw->out, id, 0, "/b.B/Echo", peg__str(""));
        send_bytes(raw, id, 4 * MB, false);
    }
    wait_for(raw, &raw->n_ended, 36);
    *ret_n_answered = raw->n_ended;
    free_raw(raw);
}

TEST(messages_of_calls_that_do_not_end_are_held_within_the_limit)
{
    unsigned n_answered = 0;

    battle_begin(&battle, &small);
    battle_fight(&battle, leave_open, &n_answered, 1);
    battle_end(&battle, 48);
    /* 160 MB came, 16 MB are held: the rest was refused. */
    CHECK(n_answered >= 36);
}

/* The same, not whole. */
static void leave_unfinished(void *user, unsigned number)
{
    static const char piece[16000];
    unsigned *ret_n_answered = user;
    struct raw *raw = new_raw();

    (void)number;
    for (uint32_t id = 1; id < 1200 && !raw->is_closed; id += 2) {
        raw_headers(&raw->out, id, 0, "/b.B/Echo", peg__str(""));
        raw_message(&raw->out, id, 0, peg__strn(piece, 16000), 4 * MB, false);
        for (unsigned i = 0; i < 12; i++)
            raw_frame(&raw->out, RAW_DATA, 0, id, piece, sizeof(piece));
        raw_send(raw);
        while (raw_read(raw, 0))
            ;
    }
    wait_for(raw, &raw->n_ended, 500);
    *ret_n_answered = raw->n_ended;
    free_raw(raw);
}

TEST(messages_that_are_not_whole_are_held_within_the_limit)
{
    unsigned n_answered = 0;

    battle_begin(&battle, &small);
    battle_fight(&battle, leave_unfinished, &n_answered, 1);
    battle_end(&battle, 48);
    /* 125 MB came, in pieces of 208 KB. */
    CHECK(n_answered >= 500);
}

/* ---- gzip -------------------------------------------------------------------------------------
 */

/* So many zeros, as gzip: a thousandth of it. */
static void make_bomb(struct peg__buf *out, size_t len)
{
    static uint8_t zeros[MB];
    uint8_t piece[4096];
    z_stream z = {0};

    deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    for (size_t at = 0; at < len; at += MB) {
        z.next_in = zeros;
        z.avail_in = MB;
        do {
            z.next_out = piece;
            z.avail_out = sizeof(piece);
            deflate(&z, at + MB >= len ? Z_FINISH : Z_NO_FLUSH);
            peg__buf_add(out, piece, sizeof(piece) - z.avail_out);
        } while (z.avail_out == 0);
    }
    deflateEnd(&z);
}

static void send_gzip_bombs(void *user, unsigned number)
{
    unsigned *ret_n_answered = user;
    struct peg__buf bomb = PEG__BUF(4 * MB);
    struct peg__buf more = PEG__BUF(100);
    struct raw *raw;

    (void)number;
    make_bomb(&bomb, 32 * MB); /* before a connection would be idle: it takes long */
    raw = new_raw();
    raw_field(&more, 0, peg__str("grpc-encoding"), peg__str("gzip"));
    for (uint32_t id = 1; id < 100; id += 2) {
        raw_headers(&raw->out, id, 0, "/b.B/Echo", peg__buf_view(&more));
        raw_head(&raw->out, 5, RAW_DATA, 0, id);
        peg__buf_putc(&raw->out, 1);
        raw_put_u32(&raw->out, (uint32_t)bomb.len);
        for (size_t at = 0; at < bomb.len; at += 16384) {
            const size_t n = bomb.len - at < 16384 ? bomb.len - at : 16384;

            raw_frame(&raw->out, RAW_DATA, at + n == bomb.len, id, bomb.ptr + at, n);
        }
        raw_send(raw);
        while (raw_read(raw, 0))
            ;
    }
    wait_for(raw, &raw->n_ended, 50);
    *ret_n_answered = raw->n_ended;
    free_raw(raw);
    peg__buf_free(&bomb);
    peg__buf_free(&more);
}

TEST(gzip_bombs_are_refused)
{
    unsigned n_answered = 0;

    battle_begin(&battle, &small);
    battle_fight(&battle, send_gzip_bombs, &n_answered, 1);
    battle_end(&battle, 32);
    CHECK_INT(n_answered, 50);
}

/* ---- answers that nobody takes ----------------------------------------------------------------
 */

/* Large answers, and no window for them. Of 100 KB each: handlers run on the loop, and one that
 * answers with a megabyte keeps everybody waiting for as long as copying it takes. */
static void shut_windows(void *user, unsigned number)
{
    unsigned *ret_n_answered = user;
    struct raw *raw = new_raw();

    (void)number;
    raw_setting(&raw->out, 4, 0);
    for (uint32_t id = 1; id < 1600; id += 2)
        raw_call(&raw->out, id, "/b.B/Large", "100000");
    raw_send(raw);
    wait_for(raw, &raw->n_headers, 800);
    *ret_n_answered = raw->n_headers;
    free_raw(raw);
}

TEST(answers_without_a_window_are_held_within_the_limit)
{
    unsigned n_answered = 0;

    battle_begin(&battle, &small);
    battle_fight(&battle, shut_windows, &n_answered, 1);
    battle_end(&battle, 48);
    /* 160 of them wait; the others were told why they get none. */
    CHECK(n_answered >= 800);
}

/* The same with streams that are filled as far as they take it. */
static void shut_windows_of_streams(void *user, unsigned number)
{
    unsigned *ret_n_answered = user;
    struct raw *raw = new_raw();

    (void)number;
    raw_setting(&raw->out, 4, 0);
    for (uint32_t id = 1; id < 400; id += 2)
        raw_call(&raw->out, id, "/b.B/Fill", "x");
    raw_send(raw);
    wait_for(raw, &raw->n_headers, 200);
    *ret_n_answered = raw->n_headers;
    free_raw(raw);
}

TEST(streams_without_a_window_are_held_within_the_limit)
{
    unsigned n_answered = 0;

    battle_begin(&battle, &small);
    battle_fight(&battle, shut_windows_of_streams, &n_answered, 1);
    battle_end(&battle, 48);
    CHECK(n_answered >= 200);
}

/* All the window that there can be, and nobody who reads. */
static void read_nothing(void *user, unsigned number)
{
    struct raw *raw = new_raw();
    struct pollfd fd = {.fd = raw->fd, .events = POLLOUT};
    const int64_t until = raw_now_ms() + BATTLE_MS;
    unsigned *ret_n_asked = user;

    (void)number;
    raw_setting(&raw->out, 4, 0x7fffffff);
    raw_u32_frame(&raw->out, RAW_WINDOW_UPDATE, 0, 0x7fff0000 - 65535);
    for (uint32_t id = 1; (id == 1 || raw_now_ms() < until) && poll(&fd, 1, 300) == 1; id += 2) {
        raw_call(&raw->out, id, "/b.B/Large", "100000");
        raw_send(raw);
        (*ret_n_asked)++;
    }
    free_raw(raw);
}

TEST(a_client_that_does_not_read_is_held_within_the_limit)
{
    unsigned n_asked = 0;

    battle_begin(&battle, &small);
    battle_fight(&battle, read_nothing, &n_asked, 1);
    battle_end(&battle, 48);
    CHECK(n_asked > 0);
}

/* Twenty of them, with streams that go on for ever. */
static void read_nothing_on_many(void *user, unsigned number)
{
    struct raw *raws[20];
    unsigned *ret_n_asked = user;

    (void)number;
    *ret_n_asked = 0;
    for (unsigned i = 0; i < 20; i++) {
        raws[i] = new_raw();
        raw_setting(&raws[i]->out, 4, 0x7fffffff);
        raw_u32_frame(&raws[i]->out, RAW_WINDOW_UPDATE, 0, 0x7fff0000 - 65535);
        raw_call(&raws[i]->out, 1, "/b.B/Fill", "x");
        raw_send(raws[i]);
        (*ret_n_asked)++;
    }
    usleep(300000); /* the neighbour's time, not the test's */
    for (unsigned i = 0; i < 20; i++)
        free_raw(raws[i]);
}

TEST(streams_that_nobody_reads_wait)
{
    unsigned n_asked = 0;

    battle_begin(&battle, &small);
    battle_fight(&battle, read_nothing_on_many, &n_asked, 1);
    battle_end(&battle, 24);
    CHECK_INT(n_asked, 20);
}

/* A client of a chat that talks and does not listen. */
static void talk_only(void *user, unsigned number)
{
    static const char piece[16000];
    struct raw *raw = new_raw();
    struct pollfd fd = {.fd = raw->fd, .events = POLLOUT};
    unsigned *ret_n_said = user;

    (void)number;
    raw_setting(&raw->out, 4, 0x7fffffff);
    raw_u32_frame(&raw->out, RAW_WINDOW_UPDATE, 0, 0x7fff0000 - 65535);
    raw_headers(&raw->out, 1, 0, "/b.B/Chat", peg__str(""));
    *ret_n_said = 0;
    while (*ret_n_said < 2000 && poll(&fd, 1, 300) == 1) {
        raw_message(&raw->out, 1, 0, peg__strn(piece, sizeof(piece)), sizeof(piece), false);
        raw_send(raw);
        (*ret_n_said)++;
    }
    free_raw(raw);
}

TEST(who_talks_and_does_not_listen_has_to_stop)
{
    unsigned n_said = 0;

    battle_begin(&battle, &small);
    battle_fight(&battle, talk_only, &n_said, 1);
    battle_end(&battle, 48);
    CHECK(n_said > 0);
}
