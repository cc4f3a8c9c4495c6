/* SPDX-License-Identifier: Apache-2.0 */

/* The Huffman code of RFC 7541, appendix B. It is canonical: codes of one length are numbers in a
 * row, in the order of their letters, and continue those of the shorter ones. So the letters in
 * that order, and where each length begins, are all of it. */

/* Field by field, from the front of a block. Names and values are borrowed from the bytes, the
 * table, or, decoded, from `text`. An incomplete field is read again from its beginning. */

#include <endian.h>
#include <string.h>

#include "base/text/str.h"
#include "grpc/http2/session.h"

enum { END = 256, N_SYMBOLS = 257, LONGEST = 30, SHORTEST = 5, MAX_PADDING = 7 };

static const uint16_t symbols[N_SYMBOLS] = {
    '0',  '1', '2', 'a',  'c', 'e', 'i', 'o', 's', 't', ' ', '%', '-', '.', '/', '3', '4', '5', '6',
    '7',  '8', '9', '=',  'A', '_', 'b', 'd', 'f', 'g', 'h', 'l', 'm', 'n', 'p', 'r', 'u', ':', 'B',
    'C',  'D', 'E', 'F',  'G', 'H', 'I', 'J', 'K', 'L', 'M', 'N', 'O', 'P', 'Q', 'R', 'S', 'T', 'U',
    'V',  'W', 'Y', 'j',  'k', 'q', 'v', 'w', 'x', 'y', 'z', '&', '*', ',', ';', 'X', 'Z', '!', '"',
    '(',  ')', '?', '\'', '+', '|', '#', '>', 0,   '$', '@', '[', ']', '~', '^', '}', '<', '`', '{',
    '\\', 195, 208, 128,  130, 131, 162, 184, 194, 224, 226, 153, 161, 167, 172, 176, 177, 179, 209,
    216,  217, 227, 229,  230, 129, 132, 133, 134, 136, 146, 154, 156, 160, 163, 164, 169, 170, 173,
    178,  181, 185, 186,  187, 189, 190, 196, 198, 228, 232, 233, 1,   135, 137, 138, 139, 140, 141,
    143,  147, 149, 150,  151, 152, 155, 157, 158, 165, 166, 168, 174, 175, 180, 182, 183, 188, 191,
    197,  231, 239, 9,    142, 144, 145, 148, 159, 171, 206, 215, 225, 236, 237, 199, 207, 234, 235,
    192,  193, 200, 201,  202, 205, 210, 213, 218, 219, 238, 240, 242, 243, 255, 203, 204, 211, 212,
    214,  221, 222, 223,  241, 244, 245, 246, 247, 248, 250, 251, 252, 253, 254, 2,   3,   4,   5,
    6,    7,   8,   11,   12,  14,  15,  16,  17,  18,  19,  20,  21,  23,  24,  25,  26,  27,  28,
    29,   30,  31,  127,  220, 249, 10,  13,  22,  END,
};

/* Codes of one length, from the shortest to the longest. */
struct length {
    uint32_t above; /* the first 32 bits of all longer codes are at least this; 0: none is longer */
    uint32_t first; /* code */
    uint16_t index; /* of its letter */
    uint8_t bits;
};

#define ABOVE(code, bits) ((uint32_t)(code) << (32 - (bits)))
static const struct length lengths[] = {
    {ABOVE(0xa, 5), 0x0, 0, 5},
    {ABOVE(0x2e, 6), 0x14, 10, 6},
    {ABOVE(0x7c, 7), 0x5c, 36, 7},
    {ABOVE(0xfe, 8), 0xf8, 68, 8},
    {ABOVE(0x3fd, 10), 0x3f8, 74, 10},
    {ABOVE(0x7fd, 11), 0x7fa, 79, 11},
    {ABOVE(0xffc, 12), 0xffa, 82, 12},
    {ABOVE(0x1ffe, 13), 0x1ff8, 84, 13},
    {ABOVE(0x3ffe, 14), 0x3ffc, 90, 14},
    {ABOVE(0x7fff, 15), 0x7ffc, 92, 15},
    {ABOVE(0x7fff3, 19), 0x7fff0, 95, 19},
    {ABOVE(0xfffee, 20), 0xfffe6, 98, 20},
    {ABOVE(0x1fffe9, 21), 0x1fffdc, 106, 21},
    {ABOVE(0x3fffec, 22), 0x3fffd2, 119, 22},
    {ABOVE(0x7ffff5, 23), 0x7fffd8, 145, 23},
    {ABOVE(0xfffff6, 24), 0xffffea, 174, 24},
    {ABOVE(0x1fffff0, 25), 0x1ffffec, 186, 25},
    {ABOVE(0x3ffffef, 26), 0x3ffffe0, 190, 26},
    {ABOVE(0x7fffff1, 27), 0x7ffffde, 205, 27},
    {ABOVE(0xfffffff, 28), 0xfffffe2, 224, 28},
    {0, 0x3ffffffc, 253, LONGEST},
};

/* The first five bits tell how long most codes are, and what to add to a code for its letter; all
 * ones are eight bits or more. */
static const struct {
    uint8_t bits;
    uint8_t shift; /* 64 less the bits */
    int8_t add;
} fives[31] = {
    {5, 59, 0},   {5, 59, 0},   {5, 59, 0},   {5, 59, 0},   {5, 59, 0},   {5, 59, 0},
    {5, 59, 0},   {5, 59, 0},   {5, 59, 0},   {5, 59, 0},   {6, 58, -10}, {6, 58, -10},
    {6, 58, -10}, {6, 58, -10}, {6, 58, -10}, {6, 58, -10}, {6, 58, -10}, {6, 58, -10},
    {6, 58, -10}, {6, 58, -10}, {6, 58, -10}, {6, 58, -10}, {6, 58, -10}, {7, 57, -56},
    {7, 57, -56}, {7, 57, -56}, {7, 57, -56}, {7, 57, -56}, {7, 57, -56}, {7, 57, -56},
    {7, 57, -56},
};
enum { EIGHT_BITS = 3 }; /* in `lengths` */

/* What is being read: bits that were not used, the next one at the top, and bytes behind them. */
struct bits {
    uint64_t held;
    unsigned n_held;
    const uint8_t *at;
    const uint8_t *end;
};

/* At least 56 bits, as long as there are. */
static inline void refill(struct bits *bits)
{
    if (bits->end - bits->at >= 8) {
        uint64_t eight;

        memcpy(&eight, bits->at, sizeof(eight));
        bits->held |= be64toh(eight) >> bits->n_held;
        bits->at += (63 - bits->n_held) >> 3;
        bits->n_held |= 56;
        return;
    }
    while (bits->n_held < 56 && bits->at < bits->end) {
        bits->held |= (uint64_t)*bits->at++ << (56 - bits->n_held);
        bits->n_held += 8;
    }
}

/* The letter of a code of eight bits or more; END, which is not taken, also for an incomplete one.
 * Behind the end there are ones, as the padding is: only END consists of them. */
static uint16_t take_long(struct bits *bits)
{
    const uint32_t top = (uint32_t)((bits->held | UINT64_MAX >> bits->n_held) >> 32);
    const struct length *length = &lengths[EIGHT_BITS];
    uint16_t symbol;

    while (length->above && top >= length->above)
        length++;
    symbol = symbols[length->index + (top >> (32 - length->bits)) - length->first];
    if (symbol == END || length->bits > bits->n_held)
        return END;
    bits->held <<= length->bits;
    bits->n_held -= length->bits;
    return symbol;
}

/* Letters as long as there are bits for any. */
static char *take_letters(struct bits *bits, char *to)
{
    while (bits->n_held >= SHORTEST || bits->at < bits->end) {
        unsigned five;

        if (bits->n_held < LONGEST)
            refill(bits);
        five = (unsigned)(bits->held >> 59);
        if (five == 31) {
            const uint16_t symbol = take_long(bits);

            if (symbol == END)
                break;
            *to++ = (char)symbol;
            continue;
        }
        if (fives[five].bits > bits->n_held)
            break;
        *to++ = (char)symbols[(int)(bits->held >> fives[five].shift) + fives[five].add];
        bits->held <<= fives[five].bits;
        bits->n_held -= fives[five].bits;
    }
    return to;
}

/* Writes at most grpc_huffman_most() letters. False: it is no Huffman code, or badly ended. */
static bool decode_symbols(const uint8_t *bytes, size_t len, char *ret_text, size_t *ret_len)
{
    struct bits bits = {.at = bytes, .end = bytes + len};

    *ret_len = (size_t)(take_letters(&bits, ret_text) - ret_text);
    /* What is left must be padding: ones, and less than a byte of them. */
    return bits.at == bits.end && bits.n_held <= MAX_PADDING &&
           (bits.held | UINT64_MAX >> bits.n_held) == UINT64_MAX;
}

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
    if (!decode_symbols(bytes, len, text, &text_len))
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
