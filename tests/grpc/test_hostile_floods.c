/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Floods: frames that cost the sender little and the server, perhaps, much. Each is sent as fast
 * as it goes, on one connection after the other, by two threads. What no client needs ends the
 * connection; memory stays where it was; the neighbour's calls succeed.
 */

#include "t.h"

#include "grpc/battle.h"
#include "grpc/raw.h"

enum {
    FLOOD_MS = 400,
    MAX_FLOOD_MS = 60000,   /* for what must end, on a machine that is busy */
    MAX_CONNECTIONS = 2000, /* of one thread */
    PIECE = 32 << 10,
    REFUSED_STREAM = 7,
    CANCEL = 8,
};

struct flood {
    /* Once on each connection, after the preface and SETTINGS. May be NULL. */
    void (*open)(struct peg__buf *out, uint32_t *id);
    /* Once more of it; *id is the next stream's. */
    void (*put)(struct peg__buf *out, uint32_t *id);
    unsigned port;
    int64_t began_ms;
    bool ends;         /* the server sends such a client away */
    bool skips_ack;    /* of the server's SETTINGS */
    unsigned max_open; /* streams that wait for an answer or a reset; 0: any number */
    atomic_uint n_connections;
    atomic_uint n_sent_away; /* by the server */
    atomic_uint n_told;      /* with GOAWAY */
    atomic_ullong n_bytes;
    atomic_ullong n_times; /* that `put` was called */
};

static const char zeros[16384];

/* ---- the flood --------------------------------------------------------------------------------
 */

static bool has_room(const struct flood *flood, const struct raw *raw, unsigned n_put)
{
    const unsigned n_done = raw->n_ended > raw->n_resets ? raw->n_ended : raw->n_resets;

    return flood->max_open == 0 || n_put < n_done + flood->max_open;
}

static bool goes_on(struct flood *flood)
{
    const bool is_waiting =
        flood->ends ? atomic_load(&flood->n_sent_away) == 0 : atomic_load(&flood->n_times) == 0;

    return raw_now_ms() < flood->began_ms + (is_waiting ? MAX_FLOOD_MS : FLOOD_MS);
}

static void flood_connection(struct flood *flood, struct raw *raw)
{
    uint32_t id = 1;
    unsigned n_put = 0;
    unsigned n_counted = 0;

    raw_preface(&raw->out);
    raw_head(&raw->out, 0, RAW_SETTINGS, 0, 0);
    if (!flood->skips_ack)
        raw_head(&raw->out, 0, RAW_SETTINGS, RAW_ACK, 0);
    if (flood->open)
        flood->open(&raw->out, &id);
    while (!raw->is_closed && !raw->n_goaways && goes_on(flood)) {
        while (raw->out.len < PIECE && has_room(flood, raw, n_put)) {
            flood->put(&raw->out, &id);
            n_put++;
        }
        atomic_fetch_add(&flood->n_times, n_put - n_counted);
        n_counted = n_put;
        raw_send(raw);
        raw_read(raw, has_room(flood, raw, n_put) ? 0 : 100);
        while (raw_read(raw, 0))
            ;
    }
    raw_read_all(raw, raw->n_goaways ? 1000 : 0);
}

static void attack(void *user, unsigned number)
{
    struct flood *flood = user;
    struct raw *raw = malloc(sizeof(*raw));

    (void)number;
    for (unsigned i = 0; raw && i < MAX_CONNECTIONS && goes_on(flood); i++) {
        if (!raw_open(raw, flood->port))
            break;
        flood_connection(flood, raw);
        atomic_fetch_add(&flood->n_connections, 1);
        atomic_fetch_add(&flood->n_sent_away, raw->is_closed || raw->n_goaways);
        atomic_fetch_add(&flood->n_told, raw->n_goaways > 0);
        atomic_fetch_add(&flood->n_bytes, raw->n_sent);
        raw_close(raw);
    }
    free(raw);
}

static struct battle battle;

static void fight(struct flood *flood, unsigned n_threads, long max_mb)
{
    battle_begin(&battle, NULL);
    flood->port = battle.server.ports[0];
    flood->began_ms = raw_now_ms();
    battle_fight(&battle, attack, flood, n_threads);
    printf("# %u connections, %u sent away (%u were told), %llu KB, %llu times\n",
           atomic_load(&flood->n_connections), atomic_load(&flood->n_sent_away),
           atomic_load(&flood->n_told), atomic_load(&flood->n_bytes) / 1024,
           atomic_load(&flood->n_times));
    battle_end(&battle, max_mb);
    CHECK(atomic_load(&flood->n_times) > 0);
    CHECK((atomic_load(&flood->n_sent_away) > 0) == flood->ends);
}

/* ---- what there is to compare with ------------------------------------------------------------
 */

static void put_call(struct peg__buf *out, uint32_t *id)
{
    raw_call(out, *id, "/b.B/Echo", "hello");
    *id += 2;
}

/* For comparison: this many calls are nobody's fault. */
TEST(a_busy_client_leaves_room_for_its_neighbour)
{
    struct flood flood = {.put = put_call, .max_open = 100};

    fight(&flood, 1, 64);
}

/* ---- streams that begin and end ---------------------------------------------------------------
 */

static void put_rapid_reset(struct peg__buf *out, uint32_t *id)
{
    raw_headers(out, *id, 0, "/b.B/Wait", peg__str(""));
    raw_u32_frame(out, RAW_RST_STREAM, *id, CANCEL);
    *id += 2;
}

TEST(a_rapid_reset_ends_the_connection)
{
    struct flood flood = {.put = put_rapid_reset, .ends = true};

    fight(&flood, 2, 64);
}

/* The server is made to reset the stream itself: its window overflows. */
static void put_made_you_reset(struct peg__buf *out, uint32_t *id)
{
    raw_headers(out, *id, 0, "/b.B/Wait", peg__str(""));
    raw_u32_frame(out, RAW_WINDOW_UPDATE, *id, 0x7fffffff);
    *id += 2;
}

TEST(making_the_server_reset_its_streams_ends_the_connection)
{
    struct flood flood = {.put = put_made_you_reset, .max_open = 500, .ends = true};

    fight(&flood, 2, 64);
}

static void put_bad_field(struct peg__buf *out, uint32_t *id)
{
    struct peg__buf more = PEG__BUF(1000);

    raw_field(&more, 0, peg__str("X-Capital"), peg__str("x"));
    raw_headers(out, *id, 0, "/b.B/Wait", peg__buf_view(&more));
    peg__buf_free(&more);
    *id += 2;
}

TEST(headers_that_are_wrong_again_and_again_end_the_connection)
{
    struct flood flood = {.put = put_bad_field, .max_open = 500, .ends = true};

    fight(&flood, 2, 64);
}

static void put_waiting_call(struct peg__buf *out, uint32_t *id)
{
    raw_headers(out, *id, 0, "/b.B/Wait", peg__str(""));
    *id += 2;
}

/* Who has not acknowledged our SETTINGS may not know how many streams there may be. */
TEST(streams_beyond_the_maximum_end_the_connection_sooner_or_later)
{
    struct flood flood = {.put = put_waiting_call, .skips_ack = true, .ends = true};

    fight(&flood, 2, 64);
}

static void put_unknown_method(struct peg__buf *out, uint32_t *id)
{
    raw_headers(out, *id, 0, "/no.Such/Method", peg__str(""));
    *id += 2;
}

/* Each is answered, and the client never ends what it began: so the server does. */
TEST(calls_of_methods_that_do_not_exist_are_answered)
{
    struct flood flood = {.put = put_unknown_method, .max_open = 500};

    fight(&flood, 2, 64);
}

/* ---- frames that bring nobody further ---------------------------------------------------------
 */

static void open_stream(struct peg__buf *out, uint32_t *id)
{
    raw_headers(out, 1, 0, "/b.B/Wait", peg__str(""));
    *id = 1;
}

static void put_ping(struct peg__buf *out, uint32_t *id)
{
    (void)id;
    raw_frame(out, RAW_PING, 0, 0, zeros, 8);
}

TEST(a_flood_of_pings_ends_the_connection)
{
    struct flood flood = {.put = put_ping, .ends = true};

    fight(&flood, 2, 64);
}

static void put_settings(struct peg__buf *out, uint32_t *id)
{
    (void)id;
    raw_setting(out, 4, 65535);
}

TEST(a_flood_of_settings_ends_the_connection)
{
    struct flood flood = {.put = put_settings, .ends = true};

    fight(&flood, 2, 64);
}

static void open_many(struct peg__buf *out, uint32_t *id)
{
    for (; *id < 1999; *id += 2)
        raw_headers(out, *id, 0, "/b.B/Wait", peg__str(""));
    *id = 1;
}

/* Each opens or shuts the windows of a thousand streams, and a byte of a message between them
 * makes it look like work. */
static void put_settings_and_byte(struct peg__buf *out, uint32_t *id)
{
    raw_setting(out, 4, 1000 + *id % 2);
    raw_frame(out, RAW_DATA, 0, *id, zeros, 1);
    *id = *id < 1997 ? *id + 2 : 1;
}

TEST(settings_for_many_streams_with_a_byte_between_them_leave_the_neighbour_alone)
{
    struct flood flood = {.open = open_many, .put = put_settings_and_byte, .ends = true};

    fight(&flood, 2, 64);
}

static void put_priority(struct peg__buf *out, uint32_t *id)
{
    raw_frame(out, RAW_PRIORITY, 0, *id, "\0\0\0\0\1", 5);
    *id += 2;
}

TEST(a_flood_of_priorities_ends_the_connection)
{
    struct flood flood = {.put = put_priority, .ends = true};

    fight(&flood, 2, 64);
}

static void put_empty_data(struct peg__buf *out, uint32_t *id)
{
    raw_head(out, 0, RAW_DATA, 0, *id);
}

TEST(a_flood_of_empty_data_ends_the_connection)
{
    struct flood flood = {.open = open_stream, .put = put_empty_data, .ends = true};

    fight(&flood, 2, 64);
}

static void put_data_for_nobody(struct peg__buf *out, uint32_t *id)
{
    raw_frame(out, RAW_DATA, 0, *id, zeros, sizeof(zeros));
}

TEST(data_for_nobody_end_the_connection)
{
    struct flood flood = {.put = put_data_for_nobody, .ends = true};

    fight(&flood, 2, 64);
}

/* Padding is no more than that. */
static void put_padding(struct peg__buf *out, uint32_t *id)
{
    raw_frame(out, RAW_DATA, RAW_PADDED, *id, "\x00", 1);
}

TEST(a_flood_of_padding_ends_the_connection)
{
    struct flood flood = {.open = open_stream, .put = put_padding, .ends = true};

    fight(&flood, 2, 64);
}

static void put_window_update(struct peg__buf *out, uint32_t *id)
{
    (void)id;
    raw_u32_frame(out, RAW_WINDOW_UPDATE, 0, 1);
}

TEST(a_flood_of_window_updates_ends_the_connection)
{
    struct flood flood = {.put = put_window_update, .ends = true};

    fight(&flood, 2, 64);
}

/* 180 KB of answers on a connection that takes 64: hundreds of them wait for its window. */
static void ask_much(struct peg__buf *out, uint32_t *id)
{
    char text[201];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (; *id < 1799; *id += 2)
        raw_call(out, *id, "/b.B/Echo", text);
}

/* Each lets one byte go, of one of them: that is work, and must not be that of all who wait. Then
 * there is nothing more, and it ends as any other flood. */
TEST(windows_that_open_by_a_byte_for_many_that_wait_leave_the_neighbour_alone)
{
    struct flood flood = {.open = ask_much, .put = put_window_update, .ends = true};

    fight(&flood, 2, 64);
}

static void put_unknown_frame(struct peg__buf *out, uint32_t *id)
{
    (void)id;
    raw_head(out, 0, 0xbe, 0, 0);
}

TEST(a_flood_of_frames_that_nobody_knows_ends_the_connection)
{
    struct flood flood = {.put = put_unknown_frame, .ends = true};

    fight(&flood, 2, 64);
}

/* ---- headers ----------------------------------------------------------------------------------
 */

static void open_headers(struct peg__buf *out, uint32_t *id)
{
    struct peg__buf block = PEG__BUF(1000);

    raw_fields(&block, "/b.B/Echo");
    raw_frame(out, RAW_HEADERS, 0, *id, block.ptr, block.len);
    peg__buf_free(&block);
}

static void put_continuation(struct peg__buf *out, uint32_t *id)
{
    struct peg__buf block = PEG__BUF(10000);

    raw_field(&block, 0, peg__str("x-more"), peg__strn(zeros, 0));
    raw_frame(out, RAW_CONTINUATION, 0, *id, block.ptr, block.len);
    peg__buf_free(&block);
}

TEST(a_flood_of_continuations_ends_the_connection)
{
    struct flood flood = {.open = open_headers, .put = put_continuation, .ends = true};

    fight(&flood, 2, 64);
}

static void put_empty_continuation(struct peg__buf *out, uint32_t *id)
{
    raw_head(out, 0, RAW_CONTINUATION, 0, *id);
}

TEST(a_flood_of_empty_continuations_ends_the_connection)
{
    struct flood flood = {.open = open_headers, .put = put_empty_continuation, .ends = true};

    fight(&flood, 2, 64);
}

/* One byte for each 4,000: an entry of the table, over and over. */
static void open_bomb(struct peg__buf *out, uint32_t *id)
{
    char large[3900];
    struct peg__buf more = PEG__BUF(10000);

    memset(large, 'x', sizeof(large));
    raw_field(&more, 0x40, peg__str("x-bomb"), peg__strn(large, sizeof(large)));
    raw_headers(out, *id, 0, "/b.B/Wait", peg__buf_view(&more));
    peg__buf_free(&more);
    *id += 2;
}

static void put_bomb(struct peg__buf *out, uint32_t *id)
{
    struct peg__buf more = PEG__BUF(20000);

    peg__buf_repeat(&more, (char)0xbe, 16000);
    raw_headers(out, *id, 0, "/b.B/Wait", peg__buf_view(&more));
    peg__buf_free(&more);
    *id += 2;
}

TEST(an_hpack_bomb_ends_the_connection)
{
    struct flood flood = {.open = open_bomb, .put = put_bomb, .ends = true};

    fight(&flood, 2, 64);
}

/* Fields that are not even passed on, since they are wrong at their end. */
static void open_wrong_bomb(struct peg__buf *out, uint32_t *id)
{
    char large[3900];
    struct peg__buf more = PEG__BUF(10000);

    memset(large, 'x', sizeof(large));
    large[sizeof(large) - 1] = 1;
    raw_field(&more, 0x40, peg__str("x-bomb"), peg__strn(large, sizeof(large)));
    raw_headers(out, *id, 0, "/b.B/Wait", peg__buf_view(&more));
    peg__buf_free(&more);
    *id += 2;
}

TEST(an_hpack_bomb_of_wrong_fields_ends_the_connection)
{
    struct flood flood = {.open = open_wrong_bomb, .put = put_bomb, .ends = true};

    fight(&flood, 2, 64);
}

/* What is just too large is answered; it must not be worth more than its bytes. */
static void put_small_bomb(struct peg__buf *out, uint32_t *id)
{
    struct peg__buf more = PEG__BUF(20000);

    peg__buf_repeat(&more, (char)0xbe, 6);
    raw_headers(out, *id, RAW_END_STREAM, "/b.B/Wait", peg__buf_view(&more));
    peg__buf_free(&more);
    *id += 2;
}

TEST(headers_that_are_a_little_too_large_are_answered)
{
    struct flood flood = {.open = open_bomb, .put = put_small_bomb, .max_open = 500};

    fight(&flood, 1, 64);
}
