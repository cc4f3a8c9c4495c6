/* SPDX-License-Identifier: Apache-2.0 */

#include "base/limits.h"
#include "base/text/str.h"
#include "grpc/message.h"
#include "t.h"

enum { MAX_MESSAGE = 1 << 20 };

static void add_frame(struct peg__buf *wire, bool is_compressed, peg_str message)
{
    uint8_t prefix[GRPC_PREFIX_BYTES];

    grpc_prefix_write(prefix, is_compressed, (uint32_t)message.len);
    peg__buf_add(wire, prefix, sizeof(prefix));
    peg__buf_str(wire, message);
}

static void add_gzip(struct peg__buf *wire, peg_str message)
{
    struct peg__buf packed = PEG__BUF(MAX_MESSAGE);
    peg_error error;

    CHECK_STATUS(grpc_gzip(message, &packed, &error), PEG_OK, error);
    add_frame(wire, true, peg__buf_view(&packed));
    peg__buf_free(&packed);
}

/* The next message; there must be one. */
static peg_str next(struct grpc_reader *reader, peg_str *bytes)
{
    bool has_message = false;
    peg_str message = {NULL, 0};
    peg_error error;

    CHECK_STATUS(grpc_reader_next(reader, bytes, &has_message, &message, &error), PEG_OK, error);
    CHECK(has_message);
    CHECK(message.ptr);
    return message;
}

/* There must be none: all bytes are taken. */
static void check_no_more(struct grpc_reader *reader, peg_str *bytes)
{
    bool has_message = true;
    peg_str message = {NULL, 0};
    peg_error error;

    CHECK_STATUS(grpc_reader_next(reader, bytes, &has_message, &message, &error), PEG_OK, error);
    CHECK(!has_message);
    CHECK_INT(bytes->len, 0);
}

static void feed(struct grpc_reader *reader, const char *bytes, size_t len)
{
    peg_str rest = {bytes, len};

    check_no_more(reader, &rest);
}

static void check_fails(enum grpc_encoding encoding, peg_str bytes, peg_status expected,
                        const char *code)
{
    struct grpc_reader reader = {0};
    bool has_message;
    peg_str message;
    peg_error error;

    grpc_reader_init(&reader, 100);
    reader.encoding = encoding;
    CHECK_STATUS(grpc_reader_next(&reader, &bytes, &has_message, &message, &error), expected,
                 error);
    CHECK_STR(peg__str(error.code), code);
    grpc_reader_free(&reader);
}

/* ---- whole messages ------------------------------------------------------------------------- */

TEST(a_prefix_is_a_flag_and_four_bytes_of_length)
{
    uint8_t prefix[GRPC_PREFIX_BYTES];

    grpc_prefix_write(prefix, true, 0x01020304);
    CHECK(memcmp(prefix, "\1\1\2\3\4", 5) == 0);
    grpc_prefix_write(prefix, false, 0xFFFFFFFF);
    CHECK(memcmp(prefix, "\0\xFF\xFF\xFF\xFF", 5) == 0);
}

TEST(a_message_that_lies_whole_in_the_bytes_is_not_copied)
{
    struct grpc_reader reader = {0};
    const char wire[] = "\0\0\0\0\5hello";
    peg_str bytes = {wire, sizeof(wire) - 1};

    grpc_reader_init(&reader, MAX_MESSAGE);
    CHECK(next(&reader, &bytes).ptr == wire + 5);
    check_no_more(&reader, &bytes);
    CHECK(!reader.piece.ptr);
    grpc_reader_free(&reader);
}

TEST(several_messages_in_one_piece_come_one_after_the_other)
{
    struct grpc_reader reader = {0};
    struct peg__buf wire = PEG__BUF(MAX_MESSAGE);
    peg_str bytes;

    grpc_reader_init(&reader, MAX_MESSAGE);
    add_frame(&wire, false, peg__str("one"));
    add_frame(&wire, false, peg__str(""));
    add_frame(&wire, false, peg__str("three"));
    bytes = peg__buf_view(&wire);
    CHECK_STR(next(&reader, &bytes), "one");
    CHECK_STR(next(&reader, &bytes), "");
    CHECK_STR(next(&reader, &bytes), "three");
    CHECK_INT(grpc_reader_held(&reader), 0);
    check_no_more(&reader, &bytes);
    peg__buf_free(&wire);
    grpc_reader_free(&reader);
}

TEST(no_bytes_are_no_message)
{
    struct grpc_reader reader = {0};

    grpc_reader_init(&reader, MAX_MESSAGE);
    feed(&reader, NULL, 0);
    CHECK_INT(grpc_reader_held(&reader), 0);
    grpc_reader_free(&reader);
}

/* ---- pieces --------------------------------------------------------------------------------- */

static void check_in_pieces(peg_str wire, size_t piece)
{
    static const char *const expected[] = {"first", "", "third message", "x"};
    struct grpc_reader reader = {0};
    size_t n = 0;

    grpc_reader_init(&reader, MAX_MESSAGE);
    reader.encoding = GRPC_GZIP;
    while (wire.len) {
        const size_t len = piece < wire.len ? piece : wire.len;
        char *copy = malloc(len);
        peg_str bytes = {copy, len};
        bool has_message = true;

        memcpy(copy, wire.ptr, len);
        wire = peg__str_from(wire, len);
        while (has_message) {
            peg_str message;
            peg_error error;

            CHECK_STATUS(grpc_reader_next(&reader, &bytes, &has_message, &message, &error), PEG_OK,
                         error);
            if (has_message) {
                CHECK(n < 4);
                CHECK_STR(message, expected[n]);
                n++;
            }
        }
        free(copy);
    }
    CHECK_INT(n, 4);
    CHECK_INT(grpc_reader_held(&reader), 0);
    grpc_reader_free(&reader);
}

TEST(messages_are_the_same_in_pieces_of_any_size)
{
    struct peg__buf wire = PEG__BUF(MAX_MESSAGE);

    add_frame(&wire, false, peg__str("first"));
    add_frame(&wire, false, peg__str(""));
    add_gzip(&wire, peg__str("third message"));
    add_frame(&wire, false, peg__str("x"));
    for (size_t piece = 1; piece <= wire.len; piece++)
        check_in_pieces(peg__buf_view(&wire), piece);
    peg__buf_free(&wire);
}

TEST(a_message_whose_prefix_alone_was_split_is_not_copied)
{
    struct grpc_reader reader = {0};
    const char rest[] = "\5hello";
    peg_str bytes = {rest, sizeof(rest) - 1};

    grpc_reader_init(&reader, MAX_MESSAGE);
    feed(&reader, "\0\0\0\0", 4);
    CHECK_INT(grpc_reader_held(&reader), 4);
    CHECK(next(&reader, &bytes).ptr == rest + 1);
    CHECK(!reader.piece.ptr);
    grpc_reader_free(&reader);
}

TEST(held_counts_what_came_of_an_unfinished_message)
{
    struct grpc_reader reader = {0};
    peg_str bytes = {"lo", 2};

    grpc_reader_init(&reader, MAX_MESSAGE);
    feed(&reader, "\0\0\0\0\5hel", 8);
    CHECK_INT(grpc_reader_held(&reader), 8);
    CHECK_STR(next(&reader, &bytes), "hello");
    CHECK_INT(grpc_reader_held(&reader), 0);
    grpc_reader_free(&reader);
}

/* ---- memory --------------------------------------------------------------------------------- */

TEST(an_announced_length_costs_nothing_until_bytes_come)
{
    struct grpc_reader reader = {0};

    grpc_reader_init(&reader, 4 << 20);
    feed(&reader, "\0\0\x40\0\0", 5);
    CHECK_INT(reader.piece.capacity, 0);
    feed(&reader, "0123456789", 10);
    CHECK(reader.piece.capacity <= 1024);
    grpc_reader_free(&reader);
}

TEST(a_piece_grows_with_what_came_and_never_beyond_the_message)
{
    struct grpc_reader reader = {0};
    char chunk[1000] = {0};
    const size_t len = 300000;
    uint8_t prefix[GRPC_PREFIX_BYTES];
    peg_str bytes = {chunk, sizeof(chunk)};

    grpc_reader_init(&reader, MAX_MESSAGE);
    grpc_prefix_write(prefix, false, (uint32_t)len);
    feed(&reader, (const char *)prefix, sizeof(prefix));
    for (size_t n = sizeof(chunk); n < len; n += sizeof(chunk)) {
        feed(&reader, chunk, sizeof(chunk));
        CHECK_INT(grpc_reader_held(&reader), n + GRPC_PREFIX_BYTES);
        CHECK(reader.piece.capacity <= 4 * n || reader.piece.capacity <= 1024);
        CHECK(reader.piece.capacity <= len);
    }
    CHECK_INT(next(&reader, &bytes).len, len);
    grpc_reader_free(&reader);
}

TEST(a_message_that_came_in_pieces_can_be_taken)
{
    struct grpc_reader reader = {0};
    char half[500];
    uint8_t prefix[GRPC_PREFIX_BYTES];
    peg_str bytes = {half, sizeof(half)};
    peg_str message;
    char *taken;

    memset(half, 'h', sizeof(half));
    grpc_reader_init(&reader, MAX_MESSAGE);
    grpc_prefix_write(prefix, false, 2 * sizeof(half));
    feed(&reader, (const char *)prefix, sizeof(prefix));
    feed(&reader, half, sizeof(half));
    message = next(&reader, &bytes);
    taken = grpc_reader_take(&reader, message);
    CHECK(taken == message.ptr);
    grpc_reader_release(&reader);
    CHECK_INT(taken[2 * sizeof(half) - 1], 'h'); /* it is ours */
    peg__free(taken);

    /* One that came whole lies in the bytes that were fed. */
    bytes = peg__strn("\0\0\0\0\3abc", 8);
    message = next(&reader, &bytes);
    CHECK_STR(message, "abc");
    CHECK(!grpc_reader_take(&reader, message));
    grpc_reader_free(&reader);
}

/* Leaves a reader that has handed out one large message in pieces. */
static void read_large(struct grpc_reader *reader)
{
    static char wire[5 + 100000];
    peg_str bytes = {wire + 50000, sizeof(wire) - 50000};

    grpc_prefix_write((uint8_t *)wire, false, 100000);
    grpc_reader_init(reader, MAX_MESSAGE);
    feed(reader, wire, 50000);
    CHECK_INT(next(reader, &bytes).len, 100000);
    CHECK(reader->piece.capacity >= 100000);
}

TEST(the_memory_of_a_large_message_goes_when_the_next_one_begins)
{
    struct grpc_reader reader = {0};

    read_large(&reader);
    feed(&reader, "\0\0\0", 3);
    CHECK_INT(reader.piece.capacity, 0);
    grpc_reader_free(&reader);
}

TEST(the_memory_of_a_large_message_can_be_released_before)
{
    struct grpc_reader reader = {0};
    peg_str bytes = {"\0\0\0\0\1x", 6};

    read_large(&reader);
    grpc_reader_release(&reader);
    CHECK_INT(reader.piece.capacity, 0);
    CHECK_STR(next(&reader, &bytes), "x");
    grpc_reader_free(&reader);
}

TEST(releasing_does_not_forget_an_unfinished_message)
{
    struct grpc_reader reader = {0};
    peg_str bytes = {"lo", 2};

    grpc_reader_init(&reader, MAX_MESSAGE);
    feed(&reader, "\0\0\0\0\5hel", 8);
    grpc_reader_release(&reader);
    CHECK_STR(next(&reader, &bytes), "hello");
    grpc_reader_free(&reader);
}

TEST(a_reader_used_again_forgets_all_but_small_buffers)
{
    struct grpc_reader reader = {0};
    peg_str bytes = {"\0\0\0\0\2hi", 7};

    grpc_reader_init(&reader, MAX_MESSAGE);
    reader.encoding = GRPC_GZIP;
    feed(&reader, "\0\0\0\0\5hel", 8);
    grpc_reader_init(&reader, MAX_MESSAGE);
    CHECK(reader.piece.capacity > 0);
    CHECK_INT(grpc_reader_held(&reader), 0);
    CHECK_INT(reader.encoding, GRPC_IDENTITY);
    CHECK_STR(next(&reader, &bytes), "hi");

    read_large(&reader);
    grpc_reader_init(&reader, MAX_MESSAGE);
    CHECK_INT(reader.piece.capacity, 0);
    grpc_reader_free(&reader);
}

/* ---- refusals ------------------------------------------------------------------------------- */

TEST(a_message_above_the_limit_is_refused_when_its_length_is_seen)
{
    struct grpc_reader reader = {0};
    char wire[5 + 100] = "\0\0\0\0\x64";
    peg_str bytes = {wire, sizeof(wire)};

    check_fails(GRPC_IDENTITY, peg__strn("\0\0\0\0\x65", 5), PEG_ELIMIT, "E_MESSAGE_TOO_LARGE");
    check_fails(GRPC_IDENTITY, peg__strn("\0\xFF\xFF\xFF\xFF", 5), PEG_ELIMIT,
                "E_MESSAGE_TOO_LARGE");
    grpc_reader_init(&reader, 100);
    CHECK_INT(next(&reader, &bytes).len, 100);
    grpc_reader_free(&reader);
}

TEST(a_flag_that_is_none_is_refused)
{
    check_fails(GRPC_GZIP, peg__strn("\2\0\0\0\0", 5), PEG_EPARSE, "E_GRPC_FRAME");
    check_fails(GRPC_IDENTITY, peg__strn("\xFF\0\0\0\0", 5), PEG_EPARSE, "E_GRPC_FRAME");
}

TEST(a_compressed_message_where_none_was_announced_is_refused)
{
    check_fails(GRPC_IDENTITY, peg__strn("\1\0\0\0\0", 5), PEG_EPARSE, "E_GRPC_FRAME");
}

TEST(a_compression_that_is_not_known_is_unsupported)
{
    check_fails(GRPC_ENCODING_UNKNOWN, peg__strn("\1\0\0\0\0", 5), PEG_EUNSUPPORTED,
                "E_GRPC_FRAME");
}

TEST(messages_in_the_clear_may_come_whatever_was_announced)
{
    struct grpc_reader reader = {0};
    peg_str bytes = {"\0\0\0\0\1x", 6};

    grpc_reader_init(&reader, MAX_MESSAGE);
    reader.encoding = GRPC_ENCODING_UNKNOWN;
    CHECK_STR(next(&reader, &bytes), "x");
    grpc_reader_free(&reader);
}

TEST(a_reader_tells_which_messages_were_compressed)
{
    struct grpc_reader reader = {0};
    struct peg__buf wire = PEG__BUF(MAX_MESSAGE);
    peg_str bytes;

    grpc_reader_init(&reader, MAX_MESSAGE);
    reader.encoding = GRPC_GZIP;
    add_gzip(&wire, peg__str("packed"));
    add_frame(&wire, false, peg__str("clear"));
    bytes = peg__buf_view(&wire);
    CHECK_STR(next(&reader, &bytes), "packed");
    CHECK(grpc_reader_was_compressed(&reader));
    CHECK_STR(next(&reader, &bytes), "clear");
    CHECK(!grpc_reader_was_compressed(&reader));
    grpc_reader_free(&reader);
    peg__buf_free(&wire);
}

TEST(a_compressed_message_that_is_damaged_is_refused)
{
    check_fails(GRPC_GZIP, peg__strn("\1\0\0\0\5hello", 10), PEG_EPARSE, "E_GRPC_FRAME");
    check_fails(GRPC_GZIP, peg__strn("\1\0\0\0\0", 5), PEG_EPARSE, "E_GRPC_FRAME");
}

TEST(a_compressed_message_that_unpacks_to_too_much_is_refused)
{
    struct peg__buf wire = PEG__BUF(MAX_MESSAGE);
    char zeros[101] = {0};

    add_gzip(&wire, peg__strn(zeros, sizeof(zeros)));
    check_fails(GRPC_GZIP, peg__buf_view(&wire), PEG_ELIMIT, "E_MESSAGE_TOO_LARGE");
    peg__buf_free(&wire);
}

/* ---- compressed messages in pieces ---------------------------------------------------------- */

enum { TEXT_BYTES = 3000, SMALL_STEP = 16 };

/* Text that gzip makes shorter, with matches and without. */
static peg_str sample_text(void)
{
    static char text[TEXT_BYTES];
    uint32_t state = 1;

    for (size_t i = 0; i < sizeof(text); i++) {
        state = state * 1664525 + 1013904223;
        text[i] = (char)(i % 500 < 400 ? 'a' + i % 7 : state >> 24);
    }
    return peg__strn(text, sizeof(text));
}

static void ready_for_gzip(struct grpc_reader *reader, size_t max_message)
{
    grpc_reader_init(reader, max_message);
    reader->encoding = GRPC_GZIP;
}

/* Feeds so many bytes at a time, from copies that are gone afterwards, until a message or a failure
 * comes, which is returned. *bytes is what was not fed. */
static peg_status feed_until(struct grpc_reader *reader, peg_str *bytes, size_t step,
                             peg_str *ret_message, peg_error *reterr)
{
    peg_status status = PEG_OK;
    bool has_message = false;

    while (bytes->len && !status && !has_message) {
        const size_t n = step < bytes->len ? step : bytes->len;
        char *copy = malloc(n);
        peg_str piece = {copy, n};

        memcpy(copy, bytes->ptr, n);
        status = grpc_reader_next(reader, &piece, &has_message, ret_message, reterr);
        free(copy);
        *bytes = peg__str_from(*bytes, n - piece.len);
    }
    CHECK(status || has_message);
    return status;
}

/* It must not unpack, and that must be told when exactly so many bytes are not fed. */
static void check_damaged(peg_str wire, size_t left)
{
    struct grpc_reader reader = {0};
    peg_str message;
    peg_error error;

    ready_for_gzip(&reader, MAX_MESSAGE);
    CHECK_STATUS(feed_until(&reader, &wire, 1, &message, &error), PEG_EPARSE, error);
    CHECK_STR(peg__str(error.code), "E_GRPC_FRAME");
    CHECK_INT(wire.len, left);
    CHECK(!reader.inflater);
    grpc_reader_free(&reader);
}

TEST(a_compressed_message_is_the_same_wherever_it_is_split)
{
    struct grpc_reader reader = {0};
    struct peg__buf wire = PEG__BUF(MAX_MESSAGE);

    add_gzip(&wire, sample_text());
    CHECK(wire.len < TEXT_BYTES);
    ready_for_gzip(&reader, TEXT_BYTES);
    for (size_t at = 1; at < wire.len; at++) {
        peg_str bytes = {wire.ptr + at, wire.len - at};

        feed(&reader, wire.ptr, at);
        CHECK(peg__str_eq(next(&reader, &bytes), sample_text()));
        CHECK_INT(bytes.len, 0);
        CHECK_INT(reader.piece.capacity, 0);
        CHECK(!reader.inflater);
    }
    grpc_reader_free(&reader);
    peg__buf_free(&wire);
}

TEST(compressed_messages_and_others_follow_each_other_in_pieces_of_any_size)
{
    struct peg__buf wire = PEG__BUF(MAX_MESSAGE);

    add_gzip(&wire, peg__str("first"));
    add_gzip(&wire, peg__str(""));
    add_frame(&wire, false, peg__str("third message"));
    add_gzip(&wire, peg__str("x"));
    for (size_t piece = 1; piece <= wire.len; piece++)
        check_in_pieces(peg__buf_view(&wire), piece);
    peg__buf_free(&wire);
}

TEST(held_counts_what_was_unpacked_and_what_unpacking_takes)
{
    struct grpc_reader reader = {0};
    struct peg__buf wire = PEG__BUF(MAX_MESSAGE);
    peg_str bytes;

    add_gzip(&wire, sample_text());
    ready_for_gzip(&reader, MAX_MESSAGE);
    feed(&reader, wire.ptr, GRPC_PREFIX_BYTES);
    CHECK_INT(grpc_reader_held(&reader), GRPC_PREFIX_BYTES);
    CHECK(!reader.inflater);
    for (size_t at = GRPC_PREFIX_BYTES; at < wire.len - 1; at++) {
        feed(&reader, wire.ptr + at, 1);
        CHECK_INT(grpc_reader_held(&reader),
                  GRPC_PREFIX_BYTES + GRPC_INFLATER_BYTES + reader.unpacked.len);
        CHECK(reader.unpacked.capacity <= 2 * (reader.unpacked.len + 256));
    }
    CHECK_INT(reader.unpacked.len, TEXT_BYTES); /* only the trailer is missing */
    bytes = peg__str_from(peg__buf_view(&wire), wire.len - 1);
    CHECK(peg__str_eq(next(&reader, &bytes), sample_text()));
    CHECK_INT(grpc_reader_held(&reader), 0);
    grpc_reader_free(&reader);
    peg__buf_free(&wire);
}

TEST(an_unfinished_compressed_message_is_kept_forgotten_and_freed)
{
    struct grpc_reader reader = {0};
    struct peg__buf wire = PEG__BUF(MAX_MESSAGE);
    peg_str bytes;

    add_gzip(&wire, sample_text());
    ready_for_gzip(&reader, MAX_MESSAGE);
    feed(&reader, wire.ptr, wire.len / 2);
    grpc_reader_release(&reader);
    bytes = peg__str_from(peg__buf_view(&wire), wire.len / 2);
    CHECK(peg__str_eq(next(&reader, &bytes), sample_text()));

    feed(&reader, wire.ptr, wire.len / 2);
    ready_for_gzip(&reader, MAX_MESSAGE);
    CHECK_INT(grpc_reader_held(&reader), 0);
    bytes = peg__strn("\0\0\0\0\2hi", 7);
    CHECK_STR(next(&reader, &bytes), "hi");
    bytes = peg__buf_view(&wire);
    CHECK(peg__str_eq(next(&reader, &bytes), sample_text()));

    feed(&reader, wire.ptr, wire.len / 2);
    grpc_reader_free(&reader);
    CHECK_INT(grpc_reader_held(&reader), 0);
    peg__buf_free(&wire);
}

TEST(a_compressed_message_may_unpack_to_the_limit_in_pieces_of_any_size)
{
    static const char zeros[MAX_MESSAGE + 1];
    static const size_t steps[] = {1, 7, 16, 64, 1024, 4096};
    struct peg__buf wire = PEG__BUF(MAX_MESSAGE);
    struct grpc_reader reader = {0};
    peg_str message;
    peg_error error;

    for (size_t i = 0; i < 2 * sizeof(steps) / sizeof(steps[0]); i++) {
        const size_t beyond = i % 2;
        peg_str bytes;

        peg__buf_clear(&wire);
        add_gzip(&wire, peg__strn(zeros, MAX_MESSAGE + beyond));
        bytes = peg__buf_view(&wire);
        ready_for_gzip(&reader, MAX_MESSAGE);
        CHECK_STATUS(feed_until(&reader, &bytes, steps[i / 2], &message, &error),
                     beyond ? PEG_ELIMIT : PEG_OK, error);
        if (!beyond)
            CHECK(peg__str_eq(message, peg__strn(zeros, MAX_MESSAGE)));
    }
    grpc_reader_free(&reader);
    peg__buf_free(&wire);
}

TEST(a_bomb_is_refused_before_its_end_has_come)
{
    enum { BOMB_BYTES = 16 * MAX_MESSAGE };
    char *zeros = calloc(1, BOMB_BYTES);
    struct grpc_reader reader = {0};
    struct peg__buf wire = PEG__BUF(MAX_MESSAGE);
    size_t largest = 0;
    peg_status status = PEG_OK;
    size_t at = 0;

    add_gzip(&wire, peg__strn(zeros, BOMB_BYTES));
    ready_for_gzip(&reader, MAX_MESSAGE);
    for (; !status && at < wire.len; at += SMALL_STEP) {
        peg_str bytes = {wire.ptr + at, SMALL_STEP};
        const size_t before = reader.unpacked.len;
        bool has_message;
        peg_str message;

        status = grpc_reader_next(&reader, &bytes, &has_message, &message, NULL);
        CHECK(status || reader.unpacked.len - before <= SMALL_STEP * 1032 + 258);
        if (reader.unpacked.capacity > largest)
            largest = reader.unpacked.capacity;
    }
    CHECK_INT(status, PEG_ELIMIT);
    CHECK(at < wire.len / 8);
    CHECK(largest <= 2 * MAX_MESSAGE);
    CHECK(reader.unpacked.capacity <= PEG_LIMIT_GRPC_READER_SPARE_BYTES);
    CHECK(!reader.inflater);
    grpc_reader_free(&reader);
    peg__buf_free(&wire);
    free(zeros);
}

TEST(a_compressed_message_that_is_cut_off_is_refused_at_its_end)
{
    struct peg__buf packed = PEG__BUF(MAX_MESSAGE);

    CHECK_INT(grpc_gzip(peg__str("cut off"), &packed, NULL), PEG_OK);
    for (size_t len = 0; len < packed.len; len++) {
        struct peg__buf wire = PEG__BUF(MAX_MESSAGE);

        add_frame(&wire, true, peg__strn(packed.ptr, len));
        check_damaged(peg__buf_view(&wire), 0);
        peg__buf_free(&wire);
    }
    peg__buf_free(&packed);
}

TEST(what_is_no_gzip_or_goes_on_behind_it_is_refused_at_once)
{
    struct peg__buf packed = PEG__BUF(MAX_MESSAGE);
    struct peg__buf wire = PEG__BUF(MAX_MESSAGE);

    check_damaged(peg__strn("\1\0\0\0\5hello", 10), 3);
    CHECK_INT(grpc_gzip(peg__str("whole"), &packed, NULL), PEG_OK);
    peg__buf_puts(&packed, "rest");
    add_frame(&wire, true, peg__buf_view(&packed));
    check_damaged(peg__buf_view(&wire), 3);
    /* A wrong checksum: told with its last byte, before the length. */
    wire.ptr[wire.len - 4 - 5] ^= 1;
    check_damaged(peg__buf_view(&wire), 4 + 4);
    peg__buf_free(&packed);
    peg__buf_free(&wire);
}

/* The same message twice, and one in the clear. The pieces are so small that the buffer grows and
 * zlib needs its window. */
static peg_status read_in_pieces(struct grpc_reader *reader, peg_str packed)
{
    struct peg__buf wire = PEG__BUF(MAX_MESSAGE);
    peg_status status = PEG_ENOMEM;
    peg_str bytes;

    add_frame(&wire, true, packed);
    add_frame(&wire, true, packed);
    add_frame(&wire, false, peg__str("clear"));
    bytes = peg__buf_view(&wire);
    for (int i = 0; i < 3 && !wire.status; i++) {
        peg_str message;
        peg_error error;

        status = feed_until(reader, &bytes, i == 2 ? 1 : SMALL_STEP, &message, &error);
        if (status)
            break;
        CHECK(peg__str_eq(message, i == 2 ? peg__str("clear") : sample_text()));
    }
    peg__buf_free(&wire);
    return status;
}

TORTURE(unpacking_in_pieces_survives_any_allocation_failure)
{
    struct grpc_reader reader = {0};
    struct peg__buf packed = PEG__BUF(MAX_MESSAGE);
    peg_str bytes = {"\0\0\0\0\2hi", 7};
    peg_status status = grpc_gzip(sample_text(), &packed, NULL);

    ready_for_gzip(&reader, MAX_MESSAGE);
    if (!status)
        status = read_in_pieces(&reader, peg__buf_view(&packed));
    CHECK(!reader.inflater);
    grpc_reader_init(&reader, MAX_MESSAGE); /* whatever failed, it can be used again */
    CHECK_STR(next(&reader, &bytes), "hi");
    grpc_reader_free(&reader);
    peg__buf_free(&packed);
    return status;
}

TORTURE(a_reader_survives_any_allocation_failure)
{
    static const char packed[] = "\1\0\0\0\x19\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd"
                                 "\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05\x00\x00\x00";
    struct grpc_reader reader = {0};
    peg_status status = PEG_OK;
    size_t n = 0;

    grpc_reader_init(&reader, MAX_MESSAGE);
    reader.encoding = GRPC_GZIP;
    for (size_t at = 0; at < sizeof(packed) - 1 && !status; at += 10) {
        const size_t left = sizeof(packed) - 1 - at;
        peg_str bytes = {packed + at, left < 10 ? left : 10};
        bool has_message;
        peg_str message;
        peg_error error;

        status = grpc_reader_next(&reader, &bytes, &has_message, &message, &error);
        n += !status && has_message;
        if (!status && has_message)
            CHECK_STR(message, "hello");
    }
    CHECK_INT(n, status == PEG_OK);
    grpc_reader_free(&reader);
    return status;
}
