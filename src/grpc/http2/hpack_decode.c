/* SPDX-License-Identifier: Apache-2.0 */

/* Field by field, from the front of a block. Names and values are borrowed from the bytes, the
 * table, or, decoded, from `text`. An incomplete field is read again from its beginning. */

#include "base/text/str.h"
#include "grpc/http2/session.h"

enum { KEPT_TEXT = 512, MAX_SHIFT = 28 };

void grpc_hpack_decoder_init(struct grpc_hpack_decoder *decoder)
{
    *decoder = (struct grpc_hpack_decoder){.table.max_size = GRPC_HPACK_TABLE_BYTES};
}

static void free_text(struct grpc_hpack_decoder *decoder)
{
    peg__free(decoder->text);
    decoder->text = NULL;
    decoder->text_capacity = 0;
}

void grpc_hpack_decoder_free(struct grpc_hpack_decoder *decoder)
{
    grpc_hpack_table_free(&decoder->table);
    free_text(decoder);
}

void grpc_hpack_decode_begin(struct grpc_hpack_decoder *decoder)
{
    decoder->may_resize = true;
}

void grpc_hpack_decode_end(struct grpc_hpack_decoder *decoder)
{
    if (decoder->text_capacity > KEPT_TEXT)
        free_text(decoder);
}

/* ---- numbers and strings ------------------------------------------------------------------ */

/* What is being read; `at` goes forward as long as it is there. */
struct input {
    const uint8_t *at;
    const uint8_t *end;
};

/* GRPC_HPACK_FIELD: *ret_n is a number whose first bits are the last ones of the next byte. */
static enum grpc_hpack_step read_hpack_number(struct input *in, uint8_t mask, uint32_t *ret_n)
{
    uint64_t n;

    if (in->at == in->end)
        return GRPC_HPACK_MORE;
    n = *in->at++ & mask;
    if (n < mask) {
        *ret_n = (uint32_t)n;
        return GRPC_HPACK_FIELD;
    }
    for (unsigned shift = 0; shift <= MAX_SHIFT; shift += 7) {
        uint8_t byte;

        if (in->at == in->end)
            return GRPC_HPACK_MORE;
        byte = *in->at++;
        n += (uint64_t)(byte & 127) << shift;
        if (byte & 128)
            continue;
        *ret_n = (uint32_t)n;
        return n <= INT32_MAX ? GRPC_HPACK_FIELD : GRPC_HPACK_BAD;
    }
    return GRPC_HPACK_BAD;
}

/* The memory of both strings of a field: the first must not move when the second is unpacked. */
static bool make_text(struct grpc_hpack_decoder *decoder, size_t most)
{
    char *text;

    if (decoder->text_capacity >= most)
        return true;
    text = peg__alloc(most);
    if (!text)
        return false;
    peg__free(decoder->text);
    decoder->text = text;
    decoder->text_capacity = most;
    return true;
}

static enum grpc_hpack_step decode_huffman(struct grpc_hpack_decoder *decoder, const uint8_t *bytes,
                                           size_t len, size_t rest, peg_str *ret)
{
    char *text;
    size_t text_len;

    /* Unpacked name and value are no longer than all of what is left of the block would be. */
    if (decoder->text_len == 0 && !make_text(decoder, grpc_huffman_most(rest)))
        return GRPC_HPACK_NOMEM;
    text = decoder->text + decoder->text_len;
    if (!grpc_huffman_decode(bytes, len, text, &text_len))
        return GRPC_HPACK_BAD;
    decoder->text_len += text_len;
    *ret = peg__strn(text, text_len);
    return GRPC_HPACK_FIELD;
}

static enum grpc_hpack_step read_hpack_string(struct grpc_hpack_decoder *decoder, struct input *in,
                                              peg_str *ret)
{
    const bool is_packed = in->at < in->end && *in->at & 0x80;
    const size_t rest = (size_t)(in->end - in->at);
    const uint8_t *bytes;
    uint32_t len;
    const enum grpc_hpack_step step = read_hpack_number(in, 0x7f, &len);

    if (step != GRPC_HPACK_FIELD)
        return step;
    if (len > (size_t)(in->end - in->at))
        return GRPC_HPACK_MORE;
    bytes = in->at;
    in->at += len;
    if (is_packed && len > 0)
        return decode_huffman(decoder, bytes, len, rest, ret);
    *ret = peg__strn((const char *)bytes, len);
    return GRPC_HPACK_FIELD;
}

/* ---- fields ------------------------------------------------------------------------------- */

static enum grpc_hpack_step find_field(const struct grpc_hpack_decoder *decoder, uint32_t number,
                                       struct grpc_hpack_field *ret_field)
{
    const struct grpc_hpack_table *table = &decoder->table;

    if (number > GRPC_HPACK_STATIC) {
        const struct grpc_hpack_entry *entry;

        if (number - GRPC_HPACK_STATIC > table->n)
            return GRPC_HPACK_BAD;
        entry = grpc_hpack_table_at(table, number - GRPC_HPACK_STATIC - 1);
        ret_field->name = grpc_hpack_name(table, entry);
        ret_field->value = grpc_hpack_value(table, entry);
        ret_field->kind = entry->kind;
    } else if (number > 0) {
        const struct grpc_hpack_static *known = grpc_hpack_static_at(number);

        ret_field->name = known->name;
        ret_field->value = known->value;
        ret_field->kind = known->kind;
    } else {
        return GRPC_HPACK_BAD;
    }
    return GRPC_HPACK_FIELD;
}

static enum grpc_hpack_step remember_field(struct grpc_hpack_decoder *decoder,
                                           struct grpc_hpack_field *field)
{
    const struct grpc_hpack_entry entry = {.kind = (uint8_t)field->kind};
    const size_t size = field->name.len + field->value.len + GRPC_HPACK_FIELD_BYTES;

    if (grpc_hpack_table_add(&decoder->table, field->name, field->value, entry))
        return GRPC_HPACK_NOMEM;
    /* The name may have moved with the table. */
    return size <= decoder->table.max_size ? find_field(decoder, GRPC_HPACK_STATIC + 1, field)
                                           : GRPC_HPACK_FIELD;
}

/* A field with its value in letters, and perhaps its name. */
static enum grpc_hpack_step read_literal_field(struct grpc_hpack_decoder *decoder, struct input *in,
                                               uint8_t mask, struct grpc_hpack_field *ret_field)
{
    uint32_t number;
    enum grpc_hpack_step step = read_hpack_number(in, mask, &number);

    decoder->text_len = 0;
    if (step == GRPC_HPACK_FIELD)
        step = number ? find_field(decoder, number, ret_field)
                      : read_hpack_string(decoder, in, &ret_field->name);
    if (step == GRPC_HPACK_FIELD)
        step = read_hpack_string(decoder, in, &ret_field->value);
    if (step == GRPC_HPACK_FIELD)
        ret_field->kind = grpc_field_kind_of(ret_field->name, ret_field->value);
    return step;
}

/* How large the table is from now on: within what we allow, which is what it begins with. */
static enum grpc_hpack_step resize(struct grpc_hpack_decoder *decoder, struct input *in)
{
    uint32_t size;
    const enum grpc_hpack_step step = read_hpack_number(in, 0x1f, &size);

    if (step != GRPC_HPACK_FIELD)
        return step;
    if (!decoder->may_resize || size > GRPC_HPACK_TABLE_BYTES)
        return GRPC_HPACK_BAD;
    grpc_hpack_table_resize(&decoder->table, size);
    return GRPC_HPACK_FIELD;
}

static enum grpc_hpack_step read_field(struct grpc_hpack_decoder *decoder, struct input *in,
                                       struct grpc_hpack_field *ret_field)
{
    const uint8_t first = *in->at;
    enum grpc_hpack_step step;
    uint32_t number;

    if (first & 0x80) {
        step = read_hpack_number(in, 0x7f, &number);
        return step == GRPC_HPACK_FIELD ? find_field(decoder, number, ret_field) : step;
    }
    if (!(first & 0x40))
        return read_literal_field(decoder, in, 0x0f, ret_field);
    step = read_literal_field(decoder, in, 0x3f, ret_field);
    return step == GRPC_HPACK_FIELD ? remember_field(decoder, ret_field) : step;
}

enum grpc_hpack_step grpc_hpack_decode(struct grpc_hpack_decoder *decoder, const uint8_t **at,
                                       const uint8_t *end, struct grpc_hpack_field *ret_field)
{
    struct input in = {*at, end};
    enum grpc_hpack_step step;

    /* Nearly all fields are a byte that is their number. */
    if (in.at<end && * in.at> 0x80 && *in.at < 0xff) {
        decoder->may_resize = false;
        *at = in.at + 1;
        return find_field(decoder, *in.at & 0x7f, ret_field);
    }
    while (in.at < end && (*in.at & 0xe0) == 0x20) {
        step = resize(decoder, &in);
        if (step != GRPC_HPACK_FIELD)
            return step;
        *at = in.at;
    }
    if (in.at == end)
        return GRPC_HPACK_MORE;
    decoder->may_resize = false;
    step = read_field(decoder, &in, ret_field);
    if (step == GRPC_HPACK_FIELD)
        *at = in.at;
    return step;
}
