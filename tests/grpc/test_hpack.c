/* SPDX-License-Identifier: Apache-2.0 */

/* HPACK: the examples of RFC 7541, what is no HPACK, and nghttp2 at the other end. */

#include "t.h"

#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/http2/http2.h"
#include "grpc/http2/session.h"

/* ---- fixture: blocks as lines of text ----------------------------------------------------------
 */

enum { MAX_TEXT = 1 << 20 };

static char got[MAX_TEXT]; /* the block that was read last */
static size_t got_len;
static const uint8_t no_bytes[1];

static size_t from_hex(const char *hex, uint8_t *ret_bytes)
{
    size_t n = 0;

    for (; *hex; hex++) {
        if (*hex == ' ')
            continue;
        ret_bytes[n++] = (uint8_t)(peg__hex_value(hex[0]) << 4 | peg__hex_value(hex[1]));
        hex++;
    }
    return n;
}

static void note(peg_str s)
{
    memcpy(got + got_len, s.ptr, s.len);
    got_len += s.len;
}

/* "name: value\n" for each field. In pieces of `piece` bytes; 0: in one. */
static enum grpc_hpack_step decode(struct grpc_hpack_decoder *decoder, const uint8_t *bytes,
                                   size_t len, size_t piece)
{
    const uint8_t *at = bytes;
    size_t there = piece ? 0 : len;
    enum grpc_hpack_step step = GRPC_HPACK_MORE;

    got_len = 0;
    grpc_hpack_decode_begin(decoder);
    do {
        struct grpc_hpack_field field;

        there = there + piece < len ? there + piece : len;
        while ((step = grpc_hpack_decode(decoder, &at, bytes + there, &field)) ==
               GRPC_HPACK_FIELD) {
            note(field.name);
            note(peg__str(": "));
            note(field.value);
            note(peg__str("\n"));
        }
    } while (step == GRPC_HPACK_MORE && there < len);
    grpc_hpack_decode_end(decoder);
    if (step == GRPC_HPACK_MORE && at < bytes + len)
        return GRPC_HPACK_BAD;
    return step;
}

static enum grpc_hpack_step decode_hex(struct grpc_hpack_decoder *decoder, const char *hex)
{
    uint8_t bytes[512];

    return decode(decoder, bytes, from_hex(hex, bytes), 0);
}

#define CHECK_BLOCK(decoder, hex, text)                                                            \
    do {                                                                                           \
        CHECK_INT(decode_hex(decoder, hex), GRPC_HPACK_MORE);                                      \
        CHECK_STR(peg__strn(got, got_len), text);                                                  \
    } while (0)

#define CHECK_BAD(hex)                                                                             \
    do {                                                                                           \
        struct grpc_hpack_decoder bad;                                                             \
        grpc_hpack_decoder_init(&bad);                                                             \
        CHECK_INT(decode_hex(&bad, hex), GRPC_HPACK_BAD);                                          \
        grpc_hpack_decoder_free(&bad);                                                             \
    } while (0)

/* ---- RFC 7541, appendix C ----------------------------------------------------------------------
 */

TEST(fields_of_appendix_c2_are_read)
{
    struct grpc_hpack_decoder decoder;

    grpc_hpack_decoder_init(&decoder);
    CHECK_BLOCK(&decoder, "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
                "custom-key: custom-header\n");
    CHECK_INT(decoder.table.size, 55);
    CHECK_BLOCK(&decoder, "040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path\n");
    CHECK_BLOCK(&decoder, "1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret\n");
    CHECK_BLOCK(&decoder, "82", ":method: GET\n");
    CHECK_INT(decoder.table.n, 1);
    grpc_hpack_decoder_free(&decoder);
}

static const char request_1[] = ":method: GET\n:scheme: http\n:path: /\n"
                                ":authority: www.example.com\n";
static const char request_2[] = ":method: GET\n:scheme: http\n:path: /\n"
                                ":authority: www.example.com\ncache-control: no-cache\n";
static const char request_3[] = ":method: GET\n:scheme: https\n:path: /index.html\n"
                                ":authority: www.example.com\ncustom-key: custom-value\n";

TEST(requests_of_appendix_c3_are_read)
{
    struct grpc_hpack_decoder decoder;

    grpc_hpack_decoder_init(&decoder);
    CHECK_BLOCK(&decoder, "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", request_1);
    CHECK_BLOCK(&decoder, "8286 84be 5808 6e6f 2d63 6163 6865", request_2);
    CHECK_BLOCK(&decoder,
                "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
                request_3);
    CHECK_INT(decoder.table.n, 3);
    CHECK_INT(decoder.table.size, 164);
    grpc_hpack_decoder_free(&decoder);
}

TEST(requests_with_huffman_of_appendix_c4_are_read)
{
    struct grpc_hpack_decoder decoder;

    grpc_hpack_decoder_init(&decoder);
    CHECK_BLOCK(&decoder, "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", request_1);
    CHECK_BLOCK(&decoder, "8286 84be 5886 a8eb 1064 9cbf", request_2);
    CHECK_BLOCK(&decoder, "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", request_3);
    CHECK_INT(decoder.table.size, 164);
    grpc_hpack_decoder_free(&decoder);
}

static const char response_1[] = ":status: 302\ncache-control: private\n"
                                 "date: Mon, 21 Oct 2013 20:13:21 GMT\n"
                                 "location: https://www.example.com\n";
static const char response_2[] = ":status: 307\ncache-control: private\n"
                                 "date: Mon, 21 Oct 2013 20:13:21 GMT\n"
                                 "location: https://www.example.com\n";
static const char response_3[] =
    ":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\n"
    "location: https://www.example.com\ncontent-encoding: gzip\n"
    "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1\n";

/* As a decoder that was told to remember 256 bytes. */
static void small_decoder(struct grpc_hpack_decoder *decoder)
{
    grpc_hpack_decoder_init(decoder);
    CHECK_BLOCK(decoder, "3fe1 01", "");
    CHECK_INT(decoder->table.max_size, 256);
}

TEST(responses_of_appendix_c5_are_read_and_the_oldest_fields_forgotten)
{
    struct grpc_hpack_decoder decoder;

    small_decoder(&decoder);
    CHECK_BLOCK(&decoder,
                "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 "
                "2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 "
                "6c65 2e63 6f6d",
                response_1);
    CHECK_INT(decoder.table.size, 222);
    CHECK_BLOCK(&decoder, "4803 3330 37c1 c0bf", response_2);
    CHECK_INT(decoder.table.size, 222);
    CHECK_BLOCK(&decoder,
                "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d "
                "54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 "
                "5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e "
                "3d31",
                response_3);
    CHECK_INT(decoder.table.size, 215);
    CHECK_INT(decoder.table.n, 3);
    grpc_hpack_decoder_free(&decoder);
}

TEST(responses_with_huffman_of_appendix_c6_are_read)
{
    struct grpc_hpack_decoder decoder;

    small_decoder(&decoder);
    CHECK_BLOCK(&decoder,
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 "
                "2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                response_1);
    CHECK_BLOCK(&decoder, "4883 640e ffc1 c0bf", response_2);
    CHECK_BLOCK(&decoder,
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab "
                "77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f "
                "9587 3160 65c0 03ed 4ee5 b106 3d50 07",
                response_3);
    CHECK_INT(decoder.table.size, 215);
    grpc_hpack_decoder_free(&decoder);
}

/* ---- what is no HPACK --------------------------------------------------------------------------
 */

TEST(what_is_no_hpack_is_refused)
{
    CHECK_BAD("80");                         /* number 0 */
    CHECK_BAD("be");                         /* nothing is remembered */
    CHECK_BAD("ff ff 01");                   /* far beyond */
    CHECK_BAD("ff ff ff ff ff ff ff");       /* a number without an end */
    CHECK_BAD("ff 80 80 80 80 80 80 80 01"); /* so many zeros */
    CHECK_BAD("ff ff ff ff ff 7f");          /* too large a number */
    CHECK_BAD("7f 01 00");                   /* a name that is not there */
    CHECK_BAD("3f e2 1f");                   /* a table of 4,097 bytes */
    CHECK_BAD("82 20");                      /* a new size behind a field */
    CHECK_BAD("40 0a 61 62");                /* cut off */
    CHECK_BAD("40");
    CHECK_BAD("3f");
    CHECK_BAD("04 84 ff ff ff ff"); /* the end within Huffman */
    CHECK_BAD("04 82 1f ff");       /* more padding than seven bits */
    CHECK_BAD("04 81 18");          /* padding that is not all ones */
    CHECK_BAD("04 81 fe");          /* eight bits of a code that is longer */
}

TEST(a_new_size_may_come_twice_before_the_first_field)
{
    struct grpc_hpack_decoder decoder;

    grpc_hpack_decoder_init(&decoder);
    CHECK_BLOCK(&decoder, "40 01 61 01 62", "a: b\n");
    CHECK_BLOCK(&decoder, "20 3f e1 1f 82", ":method: GET\n");
    CHECK_INT(decoder.table.n, 0);
    CHECK_INT(decoder.table.max_size, GRPC_HPACK_TABLE_BYTES);
    grpc_hpack_decoder_free(&decoder);
}

TEST(a_field_larger_than_the_table_empties_it_and_is_read)
{
    struct grpc_hpack_decoder decoder;
    struct peg__buf block = PEG__BUF(MAX_TEXT);

    grpc_hpack_decoder_init(&decoder);
    CHECK_BLOCK(&decoder, "40 01 61 01 62", "a: b\n");
    peg__buf_add(&block, "\x7e\x7f\x81\x1f", 4); /* its name is the one of the field before */
    peg__buf_repeat(&block, 'x', 4096);
    CHECK_INT(decode(&decoder, (const uint8_t *)block.ptr, block.len, 0), GRPC_HPACK_MORE);
    CHECK_INT(got_len, 1 + 2 + 4096 + 1);
    CHECK_INT(got[0], 'a');
    CHECK_INT(decoder.table.n, 0);
    CHECK_INT(decoder.table.size, 0);
    grpc_hpack_decoder_free(&decoder);
    peg__buf_free(&block);
}

/* Each pushes out the one whose name it has. */
TEST(a_name_may_be_that_of_the_field_that_is_forgotten)
{
    struct grpc_hpack_decoder decoder;
    struct peg__buf block = PEG__BUF(MAX_TEXT);

    grpc_hpack_decoder_init(&decoder);
    peg__buf_add(&block, "\x40\x04name\x7f\x81\x1e", 9);
    peg__buf_repeat(&block, 'x', 3968);
    CHECK_INT(decode(&decoder, (const uint8_t *)block.ptr, block.len, 0), GRPC_HPACK_MORE);
    for (int i = 0; i < 20; i++) {
        peg__buf_clear(&block);
        peg__buf_add(&block, "\x7e\x7f\x81\x1e", 4);
        peg__buf_repeat(&block, (char)('a' + i), 3968);
        CHECK_INT(decode(&decoder, (const uint8_t *)block.ptr, block.len, 0), GRPC_HPACK_MORE);
        CHECK_INT(memcmp(got, "name: ", 6), 0);
        CHECK_INT(got[6], 'a' + i);
        CHECK_INT(got[3973], 'a' + i);
        CHECK_INT(decoder.table.n, 1);
    }
    CHECK(decoder.table.capacity <= 2 * GRPC_HPACK_TABLE_BYTES);
    grpc_hpack_decoder_free(&decoder);
    peg__buf_free(&block);
}

TEST(a_field_keeps_its_kind_when_it_comes_by_number)
{
    struct grpc_hpack_decoder decoder;
    struct grpc_hpack_field field;
    uint8_t bytes[64];
    const size_t len = from_hex("40 01 41 01 62 be 82 04 01 2f", bytes); /* A: b */
    const uint8_t *at = bytes;

    grpc_hpack_decoder_init(&decoder);
    grpc_hpack_decode_begin(&decoder);
    CHECK_INT(grpc_hpack_decode(&decoder, &at, bytes + len, &field), GRPC_HPACK_FIELD);
    CHECK_INT(field.kind, GRPC_FIELD_BAD);
    CHECK_INT(grpc_hpack_decode(&decoder, &at, bytes + len, &field), GRPC_HPACK_FIELD);
    CHECK_INT(field.kind, GRPC_FIELD_BAD);
    CHECK_INT(grpc_hpack_decode(&decoder, &at, bytes + len, &field), GRPC_HPACK_FIELD);
    CHECK_INT(field.kind, GRPC_FIELD_METHOD);
    CHECK_INT(grpc_hpack_decode(&decoder, &at, bytes + len, &field), GRPC_HPACK_FIELD);
    CHECK_INT(field.kind, GRPC_FIELD_PATH);
    grpc_hpack_decoder_free(&decoder);
}

TEST(the_fields_that_everybody_knows_have_the_kind_that_they_would_be_given)
{
    for (uint32_t i = 1; i <= GRPC_HPACK_STATIC; i++) {
        const struct grpc_hpack_static *field = grpc_hpack_static_at(i);
        uint32_t name;

        CHECK_INT(field->kind, grpc_field_kind_of(field->name, field->value));
        CHECK(grpc_hpack_static_find(field->name, field->value, &name) == i ||
              (field->value.len == 0 && name == i));
    }
}

/* ---- writing ------------------------------------------------------------------------------------
 */

#define FIELD(a_name, a_value)                                                                     \
    {                                                                                              \
        PEG_LIT(a_name), PEG_LIT(a_value)                                                          \
    }

static const struct grpc_field answer[] = {FIELD(":status", "200"),
                                           FIELD("content-type", "application/grpc")};
static const struct grpc_field trailers[] = {FIELD("grpc-status", "0")};

TEST(the_usual_answer_is_a_byte_for_each_field_the_second_time)
{
    struct grpc_hpack_encoder encoder;
    uint8_t bytes[128];

    grpc_hpack_encoder_init(&encoder);
    CHECK(grpc_hpack_encode(&encoder, answer, 2, true, bytes) > 2);
    CHECK(grpc_hpack_encode(&encoder, trailers, 1, true, bytes) > 1);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(grpc_hpack_encode(&encoder, answer, 2, true, bytes), 2);
        CHECK_INT(bytes[0], 0x88);
        CHECK_INT(bytes[1], 0xbf);
        CHECK_INT(grpc_hpack_encode(&encoder, trailers, 1, true, bytes), 1);
        CHECK_INT(bytes[0], 0xbe);
    }
    grpc_hpack_encoder_free(&encoder);
}

TEST(what_is_different_in_each_call_is_not_remembered)
{
    struct grpc_hpack_encoder encoder;
    uint8_t bytes[256];

    grpc_hpack_encoder_init(&encoder);
    for (unsigned i = 0; i < 100; i++) {
        char id[16];
        const struct grpc_field fields[] = {
            {PEG_LIT("x-request-id"), {id, (size_t)snprintf(id, sizeof(id), "%u", i * 7919)}},
            {PEG_LIT("x-tenant"), PEG_LIT("acme")},
        };

        grpc_hpack_encode(&encoder, fields, 2, false, bytes);
    }
    CHECK_INT(encoder.table.n, 1);
    grpc_hpack_encoder_free(&encoder);
}

TEST(a_secret_is_never_remembered)
{
    const struct grpc_field fields[] = {FIELD("authorization", "Bearer x")};
    struct grpc_hpack_encoder encoder;
    uint8_t bytes[64];

    grpc_hpack_encoder_init(&encoder);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(grpc_hpack_encode(&encoder, fields, 1, false, bytes), 11);
        CHECK_INT(bytes[0], 0x1f); /* never, and its name by number */
    }
    CHECK_INT(encoder.table.n, 0);
    grpc_hpack_encoder_free(&encoder);
}

/* The first byte tells every proxy on the way, too. */
TEST(a_secret_that_is_too_large_to_be_remembered_is_one_for_everybody)
{
    static char token[3000];
    const struct grpc_field fields[] = {
        {PEG_LIT("authorization"), {token, sizeof(token)}},
        {PEG_LIT("x-large"), {token, sizeof(token)}},
    };
    struct grpc_hpack_encoder encoder;
    uint8_t bytes[2 * sizeof(token) + 100];

    memset(token, 'x', sizeof(token));
    grpc_hpack_encoder_init(&encoder);
    grpc_hpack_encode(&encoder, fields, 1, false, bytes);
    CHECK_INT(bytes[0], 0x1f); /* never, and its name by number */
    grpc_hpack_encode(&encoder, fields + 1, 1, false, bytes);
    CHECK_INT(bytes[0], 0x00); /* not now */
    CHECK_INT(encoder.table.n, 0);
    grpc_hpack_encoder_free(&encoder);
}

TEST(a_peer_that_remembers_nothing_is_told_everything)
{
    struct grpc_hpack_encoder encoder;
    uint8_t bytes[128];
    size_t len;

    grpc_hpack_encoder_init(&encoder);
    grpc_hpack_encode(&encoder, answer, 2, true, bytes);
    grpc_hpack_encoder_limit(&encoder, 0);
    len = grpc_hpack_encode(&encoder, answer, 2, true, bytes);
    CHECK_INT(bytes[0], 0x20);
    CHECK(len > 16);
    CHECK_INT(grpc_hpack_encode(&encoder, answer, 2, true, bytes), len - 1);
    CHECK_INT(encoder.table.n, 0);
    grpc_hpack_encoder_limit(&encoder, 1 << 20);
    CHECK_INT(grpc_hpack_encode(&encoder, answer, 2, true, bytes),
              len - 1 + 3 - 1); /* the name takes a byte less */
    CHECK_INT(encoder.table.max_size, GRPC_HPACK_TABLE_BYTES);
    CHECK_INT(encoder.table.n, 1);
    grpc_hpack_encoder_free(&encoder);
}

/* ---- nghttp2 at the other end -------------------------------------------------------------------
 */

static uint64_t seed;

static unsigned chance(unsigned n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(seed >> 33) % n;
}

enum { MAX_FIELDS = 30, MAX_VALUE = 6000 };
static char values[MAX_FIELDS][MAX_VALUE];
static struct grpc_field random_fields[MAX_FIELDS];

static peg_str random_name(void)
{
    static const char *const names[] = {
        ":path",        ":method",      ":status", ":authority",   "te",
        "content-type", "grpc-timeout", "x-a",     "x-b",          "authorization",
        "cookie",       "user-agent",   "accept",  "grpc-message", "a-name-that-is-rather-long"};

    return peg__str(names[chance(sizeof(names) / sizeof(names[0]))]);
}

static peg_str random_value(char *text)
{
    static const size_t lengths[] = {0, 1, 3, 20, 20, 20, 100, 127, 1000, 4000, MAX_VALUE};
    const size_t len = chance(8) ? lengths[chance(7)] : lengths[chance(11)];
    const unsigned kind = chance(4);

    if (kind == 0)
        return peg__str("a value that comes again and again");
    for (size_t i = 0; i < len; i++)
        text[i] = (char)(kind == 1 ? chance(256) : 'a' + chance(26));
    return peg__strn(text, len);
}

static size_t random_block(struct peg__buf *ret_text)
{
    const size_t n = chance(MAX_FIELDS);

    peg__buf_clear(ret_text);
    for (size_t i = 0; i < n; i++) {
        random_fields[i] = (struct grpc_field){random_name(), random_value(values[i])};
        peg__buf_str(ret_text, random_fields[i].name);
        peg__buf_puts(ret_text, ": ");
        peg__buf_str(ret_text, random_fields[i].value);
        peg__buf_puts(ret_text, "\n");
    }
    return n;
}

static bool nghttp2_reads(nghttp2_hd_inflater *inflater, const uint8_t *bytes, size_t len,
                          struct peg__buf *out)
{
    int flags = 0;

    while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
        nghttp2_nv nv;
        const ssize_t n = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, bytes, len, 1);

        if (n < 0)
            return false;
        bytes += n;
        len -= (size_t)n;
        if (!(flags & NGHTTP2_HD_INFLATE_EMIT))
            continue;
        peg__buf_add(out, nv.name, nv.namelen);
        peg__buf_puts(out, ": ");
        peg__buf_add(out, nv.value, nv.valuelen);
        peg__buf_puts(out, "\n");
    }
    nghttp2_hd_inflate_end_headers(inflater);
    return true;
}

static uint8_t wire[MAX_FIELDS * (MAX_VALUE + 200)];

static void write_and_let_nghttp2_read(unsigned n_blocks)
{
    struct peg__buf expected = PEG__BUF(MAX_TEXT);
    struct peg__buf read = PEG__BUF(MAX_TEXT);
    struct grpc_hpack_encoder encoder;
    nghttp2_hd_inflater *inflater;

    grpc_hpack_encoder_init(&encoder);
    CHECK_INT(nghttp2_hd_inflate_new(&inflater), 0);
    for (unsigned i = 0; i < n_blocks; i++) {
        const size_t n = random_block(&expected);
        size_t len;

        if (chance(50) == 0) {
            const uint32_t size = chance(3) ? chance(5000) : 0;

            grpc_hpack_encoder_limit(&encoder, size);
            nghttp2_hd_inflate_change_table_size(inflater, size);
        }
        len = grpc_hpack_encode(&encoder, random_fields, n, false, wire);
        CHECK(len <= grpc_hpack_bound(random_fields, n));
        peg__buf_clear(&read);
        CHECK(nghttp2_reads(inflater, len ? wire : no_bytes, len, &read));
        CHECK(peg__str_eq(peg__buf_view(&read), peg__buf_view(&expected)));
        CHECK_INT(encoder.table.size, nghttp2_hd_inflate_get_dynamic_table_size(inflater));
    }
    nghttp2_hd_inflate_del(inflater);
    grpc_hpack_encoder_free(&encoder);
    peg__buf_free(&expected);
    peg__buf_free(&read);
}

TEST(nghttp2_reads_what_is_written)
{
    for (unsigned i = 1; i < 20; i++) {
        seed = i;
        write_and_let_nghttp2_read(300);
    }
}

static void read_what_nghttp2_writes(unsigned n_blocks)
{
    struct peg__buf expected = PEG__BUF(MAX_TEXT);
    struct grpc_hpack_decoder decoder;
    nghttp2_hd_deflater *deflater;

    grpc_hpack_decoder_init(&decoder);
    CHECK_INT(nghttp2_hd_deflate_new(&deflater, GRPC_HPACK_TABLE_BYTES), 0);
    for (unsigned i = 0; i < n_blocks; i++) {
        const size_t n = random_block(&expected);
        nghttp2_nv nva[MAX_FIELDS];
        ssize_t len;

        for (size_t j = 0; j < n; j++)
            nva[j] = (nghttp2_nv){
                peg__unconst(random_fields[j].name.ptr), peg__unconst(random_fields[j].value.ptr),
                random_fields[j].name.len, random_fields[j].value.len, NGHTTP2_NV_FLAG_NONE};
        if (chance(50) == 0)
            nghttp2_hd_deflate_change_table_size(deflater, chance(3) ? chance(4097) : 0);
        len = nghttp2_hd_deflate_hd(deflater, wire, sizeof(wire), nva, n);
        CHECK(len >= 0);
        CHECK_INT(decode(&decoder, wire, (size_t)len, chance(3) ? 0 : 1 + chance(50)),
                  GRPC_HPACK_MORE);
        CHECK(peg__str_eq(peg__strn(got, got_len), peg__buf_view(&expected)));
        CHECK_INT(decoder.table.size, nghttp2_hd_deflate_get_dynamic_table_size(deflater));
        CHECK(decoder.table.capacity <= 2 * GRPC_HPACK_TABLE_BYTES);
    }
    nghttp2_hd_deflate_del(deflater);
    grpc_hpack_decoder_free(&decoder);
    peg__buf_free(&expected);
}

TEST(what_nghttp2_writes_is_read)
{
    for (unsigned i = 101; i < 120; i++) {
        seed = i;
        read_what_nghttp2_writes(300);
    }
}

/* Bytes of chance: both read the same fields, and stop at the same. */
TEST(what_is_no_hpack_for_nghttp2_is_none_here)
{
    struct peg__buf read = PEG__BUF(MAX_TEXT);

    seed = 7;
    for (unsigned i = 0; i < 100000; i++) {
        struct grpc_hpack_decoder decoder;
        nghttp2_hd_inflater *inflater;
        uint8_t bytes[24];
        const size_t len = 1 + chance(sizeof(bytes));
        bool is_good;

        for (size_t j = 0; j < len; j++)
            bytes[j] = (uint8_t)chance(256);
        grpc_hpack_decoder_init(&decoder);
        CHECK_INT(nghttp2_hd_inflate_new(&inflater), 0);
        peg__buf_clear(&read);
        is_good = nghttp2_reads(inflater, bytes, len, &read);
        CHECK_INT(decode(&decoder, bytes, len, 0) == GRPC_HPACK_MORE, is_good);
        CHECK(peg__str_eq(peg__strn(got, got_len), peg__buf_view(&read)));
        nghttp2_hd_inflate_del(inflater);
        grpc_hpack_decoder_free(&decoder);
    }
    peg__buf_free(&read);
}

/* ---- out of memory ------------------------------------------------------------------------------
 */

TORTURE(reading_survives_any_allocation_failure)
{
    struct grpc_hpack_decoder decoder;
    const uint8_t *at;
    uint8_t bytes[512];
    struct grpc_hpack_field field;
    enum grpc_hpack_step step;
    const size_t len = from_hex("4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", bytes);

    grpc_hpack_decoder_init(&decoder);
    grpc_hpack_decode_begin(&decoder);
    at = bytes;
    do
        step = grpc_hpack_decode(&decoder, &at, bytes + len, &field);
    while (step == GRPC_HPACK_FIELD);
    grpc_hpack_decode_end(&decoder);
    grpc_hpack_decoder_free(&decoder);
    CHECK(step == GRPC_HPACK_MORE || step == GRPC_HPACK_NOMEM);
    return step == GRPC_HPACK_MORE ? PEG_OK : PEG_ENOMEM;
}

/* Without memory it remembers nothing, and what it writes can be read all the same. */
TORTURE(writing_survives_any_allocation_failure)
{
    struct grpc_hpack_encoder encoder;
    struct grpc_hpack_decoder decoder;
    uint8_t bytes[256];
    peg_status status = PEG_OK;

    grpc_hpack_encoder_init(&encoder);
    grpc_hpack_decoder_init(&decoder);
    for (int i = 0; i < 3; i++) {
        const size_t len = grpc_hpack_encode(&encoder, answer, 2, true, bytes);
        const uint8_t *at = bytes;
        struct grpc_hpack_field field;

        if (encoder.table.n == 0) {
            status = PEG_ENOMEM;
            continue;
        }
        grpc_hpack_decode_begin(&decoder);
        CHECK_INT(grpc_hpack_decode(&decoder, &at, bytes + len, &field), GRPC_HPACK_FIELD);
        if (grpc_hpack_decode(&decoder, &at, bytes + len, &field) != GRPC_HPACK_FIELD) {
            status = PEG_ENOMEM;
            break;
        }
        CHECK_STR(field.value, "application/grpc");
    }
    grpc_hpack_encoder_free(&encoder);
    grpc_hpack_decoder_free(&decoder);
    return status;
}
