/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: blocks of headers, each after a byte that is its length (0: 256). In one piece or in many
 * it gives the same fields and ends in the same way; the table stays within its size, its fields
 * keep their kinds, and what is written of the fields again is read as the same.
 */

#include "fuzz.h"
#include "grpc/http2/http2.h"
#include "grpc/http2/session.h"

enum { MAX_LOG = 1 << 24, MAX_FIELDS = 64 };

static void note(struct peg__buf *log, const struct grpc_hpack_field *field)
{
    peg__buf_printf(log, "%d %zu ", (int)field->kind, field->name.len);
    peg__buf_str(log, field->name);
    peg__buf_putc(log, '=');
    peg__buf_str(log, field->value);
    peg__buf_putc(log, '\n');
}

static void check_table(const struct grpc_hpack_table *table)
{
    size_t size = 0;

    REQUIRE(table->max_size <= GRPC_HPACK_TABLE_BYTES, "%u", table->max_size);
    REQUIRE(table->size <= table->max_size, "%u of %u", table->size, table->max_size);
    REQUIRE(table->capacity <= 2 * GRPC_HPACK_TABLE_BYTES, "%zu", table->capacity);
    for (uint32_t i = 0; i < table->n; i++) {
        const struct grpc_hpack_entry *entry = grpc_hpack_table_at(table, i);
        const peg_str name = grpc_hpack_name(table, entry);
        const peg_str value = grpc_hpack_value(table, entry);

        REQUIRE(value.ptr + value.len <= table->bytes + table->head, "a field beyond the others");
        size += name.len + value.len + GRPC_HPACK_FIELD_BYTES;
    }
    REQUIRE(size == table->size, "%zu is not %u", size, table->size);
}

/* One block; false: it was none. */
static bool read_block(struct grpc_hpack_decoder *decoder, peg_str block, size_t piece,
                       struct peg__buf *log)
{
    /* A copy, so that what is read beyond its end is noticed. */
    uint8_t *bytes = malloc(block.len + 1);
    const uint8_t *at = bytes;
    size_t there = 0;
    enum grpc_hpack_step step = GRPC_HPACK_MORE;

    REQUIRE(bytes, "memory");
    memcpy(bytes, block.ptr, block.len);
    grpc_hpack_decode_begin(decoder);
    while (step == GRPC_HPACK_MORE && there < block.len) {
        struct grpc_hpack_field field;

        there = there + piece < block.len ? there + piece : block.len;
        while ((step = grpc_hpack_decode(decoder, &at, bytes + there, &field)) ==
               GRPC_HPACK_FIELD) {
            if (field.kind != GRPC_FIELD_BAD)
                REQUIRE(field.kind == grpc_field_kind_of(field.name, field.value), "%d",
                        (int)field.kind);
            note(log, &field);
        }
    }
    grpc_hpack_decode_end(decoder);
    check_table(&decoder->table);
    if (at < bytes + block.len)
        step = GRPC_HPACK_BAD;
    free(bytes);
    REQUIRE(step != GRPC_HPACK_NOMEM, "memory");
    return step == GRPC_HPACK_MORE;
}

static void read_all(peg_str input, size_t piece, struct peg__buf *log)
{
    struct grpc_hpack_decoder decoder;
    bool is_good = true;

    grpc_hpack_decoder_init(&decoder);
    while (is_good && input.len > 0) {
        const size_t told = (uint8_t)input.ptr[0] ? (uint8_t)input.ptr[0] : 256;
        const size_t len = told < input.len - 1 ? told : input.len - 1;

        is_good = read_block(&decoder, peg__strn(input.ptr + 1, len), piece, log);
        peg__buf_puts(log, is_good ? "block\n" : "bad\n");
        input = peg__str_from(input, len + 1);
    }
    grpc_hpack_decoder_free(&decoder);
}

/* The input as fields: what is written is read again. */
static void write_and_read(peg_str input)
{
    struct grpc_hpack_encoder encoder;
    struct grpc_hpack_decoder decoder;
    struct grpc_field fields[MAX_FIELDS];
    struct peg__buf expected = PEG__BUF(MAX_LOG);
    struct peg__buf got = PEG__BUF(MAX_LOG);

    grpc_hpack_encoder_init(&encoder);
    grpc_hpack_decoder_init(&decoder);
    while (input.len > 0) {
        struct peg__buf block = PEG__BUF(MAX_LOG);
        size_t n = 0;

        if (input.ptr[0] == 1)
            grpc_hpack_encoder_limit(&encoder, (uint32_t)input.len * 16);
        while (n < MAX_FIELDS && input.len > 0) {
            const peg_str line = fuzz_line(&input);
            const char *value = line.len ? memchr(line.ptr, ':', line.len) : NULL;
            const size_t name_len = value ? (size_t)(value - line.ptr) : line.len;

            if (line.len == 0)
                break;
            fields[n].name = peg__strn(line.ptr, name_len);
            fields[n].value = value ? peg__str_from(line, name_len + 1) : peg__str("");
            note(&expected,
                 &(struct grpc_hpack_field){fields[n].name, fields[n].value,
                                            grpc_field_kind_of(fields[n].name, fields[n].value)});
            n++;
        }
        REQUIRE(peg__buf_reserve(&block, grpc_hpack_bound(fields, n)), "memory");
        block.len = grpc_hpack_encode(&encoder, fields, n, false, (uint8_t *)block.ptr);
        REQUIRE(block.len <= grpc_hpack_bound(fields, n), "%zu bytes", block.len);
        check_table(&encoder.table);
        REQUIRE(read_block(&decoder, peg__buf_view(&block), block.len + 1, &got), "own bytes");
        peg__buf_free(&block);
    }
    REQUIRE(peg__str_eq(peg__buf_view(&expected), peg__buf_view(&got)), "%.*s---\n%.*s",
            PEG_ARG(peg__buf_view(&expected)), PEG_ARG(peg__buf_view(&got)));
    grpc_hpack_encoder_free(&encoder);
    grpc_hpack_decoder_free(&decoder);
    peg__buf_free(&expected);
    peg__buf_free(&got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t live = peg__mem_live();
    const peg_str input = fuzz_input(data, size);
    struct peg__buf whole = PEG__BUF(MAX_LOG);
    struct peg__buf pieces = PEG__BUF(MAX_LOG);

    read_all(input, SIZE_MAX / 2, &whole);
    read_all(input, 1 + size % 7, &pieces);
    REQUIRE(peg__str_eq(peg__buf_view(&whole), peg__buf_view(&pieces)), "pieces:\n%.*s---\n%.*s",
            PEG_ARG(peg__buf_view(&whole)), PEG_ARG(peg__buf_view(&pieces)));
    peg__buf_free(&whole);
    peg__buf_free(&pieces);
    write_and_read(input);
    REQUIRE(peg__mem_live() == live, "memory is left");
    return 0;
}
