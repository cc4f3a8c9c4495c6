/* SPDX-License-Identifier: Apache-2.0 */

/* What gRPC sends is nearly always the same: a field is remembered by both sides the first time, or
 * the second if it is unknown, and is a byte from then on. Static blocks are cached. Huffman is not
 * used: it would save a third of bytes that are hardly ever sent. */

#include "base/text/str.h"
#include "grpc/http2/http2.h"
#include "grpc/http2/session.h"

enum {
    MAX_REMEMBERED = 1024, /* bytes of a field; larger ones would push out the rest */
    NUMBER_BYTES = 6,      /* the most that a number takes */
    FIELD_BYTES = 3 * NUMBER_BYTES,
    RESIZE_BYTES = 2 * NUMBER_BYTES,
    INDEXED = 0x80,
    REMEMBERED = 0x40,
    RESIZED = 0x20,
    NEVER = 0x10, /* nor by anybody who hands it on */
    LITERAL = 0x00,
};

void grpc_hpack_encoder_init(struct grpc_hpack_encoder *encoder)
{
    *encoder = (struct grpc_hpack_encoder){
        .table.max_size = GRPC_HPACK_TABLE_BYTES,
        .wanted = GRPC_HPACK_TABLE_BYTES,
        .smallest = GRPC_HPACK_TABLE_BYTES,
    };
}

void grpc_hpack_encoder_free(struct grpc_hpack_encoder *encoder)
{
    grpc_hpack_table_free(&encoder->table);
}

void grpc_hpack_encoder_limit(struct grpc_hpack_encoder *encoder, uint32_t max_size)
{
    encoder->wanted = max_size < GRPC_HPACK_TABLE_BYTES ? max_size : GRPC_HPACK_TABLE_BYTES;
    if (encoder->wanted < encoder->smallest)
        encoder->smallest = encoder->wanted;
}

size_t grpc_hpack_bound(const struct grpc_field *fields, size_t n)
{
    size_t most = RESIZE_BYTES;

    for (size_t i = 0; i < n; i++)
        most += fields[i].name.len + fields[i].value.len + FIELD_BYTES;
    return most;
}

/* ---- numbers and strings ------------------------------------------------------------------ */

static uint8_t *put_hpack_number(uint8_t *to, uint8_t first, uint8_t mask, size_t n)
{
    if (n < mask) {
        *to++ = (uint8_t)(first | n);
        return to;
    }
    *to++ = first | mask;
    for (n -= mask; n >= 128; n >>= 7)
        *to++ = (uint8_t)(128 | (n & 127));
    *to++ = (uint8_t)n;
    return to;
}

static uint8_t *put_hpack_string(uint8_t *to, peg_str s)
{
    to = put_hpack_number(to, 0, 0x7f, s.len);
    if (s.len > 0)
        memcpy(to, s.ptr, s.len);
    return to + s.len;
}

/* ---- finding ------------------------------------------------------------------------------ */

static uint64_t eight(const char *at)
{
    uint64_t n;

    memcpy(&n, at, sizeof(n));
    return n;
}

/* Of its ends and its length: what is found is compared. */
static uint32_t hash_text(peg_str s, uint32_t seed)
{
    uint64_t h = seed + s.len * UINT64_C(0x9e3779b97f4a7c15);

    if (s.len >= 8) {
        h ^= eight(s.ptr) + eight(s.ptr + s.len - 8) * UINT64_C(0xff51afd7ed558ccd);
    } else {
        for (size_t i = 0; i < s.len; i++)
            h = h * 31 + (uint8_t)s.ptr[i];
    }
    h *= UINT64_C(0xc4ceb9fe1a85ec53);
    return (uint32_t)(h >> 32);
}

/* The number of a field that was sent before, or 0; *ret_name that of one of the same name. */
static uint32_t find_sent(const struct grpc_hpack_table *table, const struct grpc_field *field,
                          const struct grpc_hpack_entry *hashes, uint32_t *ret_name)
{
    for (uint32_t i = 0; i < table->n; i++) {
        const struct grpc_hpack_entry *entry = grpc_hpack_table_at(table, i);

        if (entry->name_hash != hashes->name_hash ||
            !peg__str_eq(grpc_hpack_name(table, entry), field->name))
            continue;
        if (entry->hash == hashes->hash &&
            peg__str_eq(grpc_hpack_value(table, entry), field->value))
            return GRPC_HPACK_STATIC + 1 + i;
        if (*ret_name == 0)
            *ret_name = GRPC_HPACK_STATIC + 1 + i;
    }
    return 0;
}

/* ---- remembering -------------------------------------------------------------------------- */

/* Fields of the protocol whose values come again, and those whose values do not. */
static const peg_str usual[] = {
    PEG_LIT(":path"),         PEG_LIT(":authority"),  PEG_LIT("te"),
    PEG_LIT("content-type"),  PEG_LIT("user-agent"),  PEG_LIT("grpc-accept-encoding"),
    PEG_LIT("grpc-encoding"), PEG_LIT("grpc-status"),
};
static const peg_str unusual[] = {
    PEG_LIT("grpc-timeout"),
    PEG_LIT("grpc-message"),
    PEG_LIT("grpc-status-details-bin"),
    PEG_LIT("content-length"),
};
/* Secrets: what else is sent must not tell how much of them was guessed. */
static const peg_str secret[] = {
    PEG_LIT("authorization"),
    PEG_LIT("cookie"),
    PEG_LIT("set-cookie"),
    PEG_LIT("proxy-authorization"),
};

static bool is_any_name(peg_str name, const peg_str *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (peg__str_eq(name, names[i]))
            return true;
    }
    return false;
}
#define IS_ONE_OF(name, names) is_any_name(name, names, sizeof(names) / sizeof((names)[0]))

/* Others are remembered when they come a second time: what is different in each call is not. */
static bool comes_again(struct grpc_hpack_encoder *encoder, uint32_t hash)
{
    uint32_t *seen = &encoder->seen[hash % GRPC_HPACK_SEEN];
    const bool is_seen = *seen == hash;

    *seen = hash;
    return is_seen;
}

static uint8_t form_of(struct grpc_hpack_encoder *encoder, const struct grpc_field *field,
                       const struct grpc_hpack_entry *hashes, uint32_t name)
{
    if (field->name.len + field->value.len > MAX_REMEMBERED)
        return IS_ONE_OF(field->name, secret) ? NEVER : LITERAL;
    if (IS_ONE_OF(field->name, usual))
        return REMEMBERED;
    if (IS_ONE_OF(field->name, secret))
        return NEVER;
    /* Once, so that at least its name is a number. */
    if (IS_ONE_OF(field->name, unusual))
        return name || field->value.len > 64 ? LITERAL : REMEMBERED;
    return comes_again(encoder, hashes->hash) ? REMEMBERED : LITERAL;
}

/* ---- fields ------------------------------------------------------------------------------- */

static uint8_t *put_literal(uint8_t *to, uint8_t form, uint32_t name,
                            const struct grpc_field *field)
{
    to = put_hpack_number(to, form, form == REMEMBERED ? 0x3f : 0x0f, name);
    if (name == 0)
        to = put_hpack_string(to, field->name);
    return put_hpack_string(to, field->value);
}

static uint8_t *put_hpack_field(struct grpc_hpack_encoder *encoder, uint8_t *to,
                                const struct grpc_field *field)
{
    struct grpc_hpack_entry hashes = {.name_hash = hash_text(field->name, 0)};
    uint32_t name = 0;
    uint32_t number = 0;
    uint8_t form;

    hashes.hash = hash_text(field->value, hashes.name_hash);
    if (field->name.len > 0 && field->name.ptr[0] == ':')
        number = grpc_hpack_static_find(field->name, field->value, &name);
    if (number == 0)
        number = find_sent(&encoder->table, field, &hashes, &name);
    if (number == 0 && name == 0)
        number = grpc_hpack_static_find(field->name, field->value, &name);
    if (number)
        return put_hpack_number(to, INDEXED, 0x7f, number);
    form = form_of(encoder, field, &hashes, name);
    /* Without memory to remember it the peer must not either. A table that is too small for it
     * would be emptied. */
    if (form == REMEMBERED &&
        (field->name.len + field->value.len + GRPC_HPACK_FIELD_BYTES > encoder->table.max_size ||
         grpc_hpack_table_add(&encoder->table, field->name, field->value, hashes)))
        form = LITERAL;
    return put_literal(to, form, name, field);
}

/* ---- blocks ------------------------------------------------------------------------------- */

static uint8_t *put_resize(struct grpc_hpack_encoder *encoder, uint8_t *to)
{
    if (encoder->smallest < encoder->table.max_size) {
        grpc_hpack_table_resize(&encoder->table, encoder->smallest);
        to = put_hpack_number(to, RESIZED, 0x1f, encoder->smallest);
    }
    if (encoder->wanted > encoder->table.max_size) {
        grpc_hpack_table_resize(&encoder->table, encoder->wanted);
        to = put_hpack_number(to, RESIZED, 0x1f, encoder->wanted);
    }
    encoder->smallest = encoder->wanted;
    return to;
}

static struct grpc_hpack_cached *cached_of(struct grpc_hpack_encoder *encoder,
                                           const struct grpc_field *fields)
{
    for (size_t i = 0; i < GRPC_HPACK_CACHED; i++) {
        struct grpc_hpack_cached *cached = &encoder->cached[i];

        if (cached->fields == fields || !cached->fields)
            return cached;
    }
    return &encoder->cached[0];
}

static uint8_t *put_fields(struct grpc_hpack_encoder *encoder, const struct grpc_field *fields,
                           size_t n, uint8_t *to)
{
    for (size_t i = 0; i < n; i++)
        to = put_hpack_field(encoder, to, &fields[i]);
    return to;
}

/* The second time the table does not change any more, and its bytes are always the same. */
static uint8_t *put_static(struct grpc_hpack_encoder *encoder, const struct grpc_field *fields,
                           size_t n, uint8_t *to)
{
    struct grpc_hpack_cached *cached = cached_of(encoder, fields);
    const uint32_t n_changes = encoder->table.n_changes;
    uint8_t *end;

    if (cached->fields == fields && cached->len > 0 && cached->n_changes == n_changes) {
        memcpy(to, cached->bytes, cached->len);
        return to + cached->len;
    }
    end = put_fields(encoder, fields, n, to);
    *cached = (struct grpc_hpack_cached){.fields = fields};
    if (encoder->table.n_changes != n_changes || end - to > GRPC_HPACK_CACHED_BYTES)
        return end;
    cached->n_changes = n_changes;
    cached->len = (uint8_t)(end - to);
    memcpy(cached->bytes, to, cached->len);
    return end;
}

size_t grpc_hpack_encode(struct grpc_hpack_encoder *encoder, const struct grpc_field *fields,
                         size_t n, bool is_static, uint8_t *ret_bytes)
{
    uint8_t *to = ret_bytes;

    if (encoder->smallest < encoder->table.max_size || encoder->wanted > encoder->table.max_size)
        to = put_resize(encoder, to);
    to = is_static ? put_static(encoder, fields, n, to) : put_fields(encoder, fields, n, to);
    return (size_t)(to - ret_bytes);
}
