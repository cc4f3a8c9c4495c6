/* SPDX-License-Identifier: Apache-2.0 */

/* The fields that everybody knows (RFC 7541, appendix A), and those that a connection remembers. */

#include "base/text/str.h"
#include "grpc/http2/session.h"

/* ---- those that everybody knows ----------------------------------------------------------- */

#define FIELD(name, value, kind)                                                                   \
    {                                                                                              \
        PEG_LIT(name), PEG_LIT(value), GRPC_FIELD_##kind                                           \
    }

/* A kind is that of the field as it stands here: a value that may not be empty is BAD without
 * one. */
static const struct grpc_hpack_static fields[GRPC_HPACK_STATIC] = {
    FIELD(":authority", "", AUTHORITY),
    FIELD(":method", "GET", METHOD),
    FIELD(":method", "POST", METHOD),
    FIELD(":path", "/", PATH),
    FIELD(":path", "/index.html", PATH),
    FIELD(":scheme", "http", SCHEME),
    FIELD(":scheme", "https", SCHEME),
    FIELD(":status", "200", STATUS),
    FIELD(":status", "204", STATUS),
    FIELD(":status", "206", STATUS),
    FIELD(":status", "304", STATUS),
    FIELD(":status", "400", STATUS),
    FIELD(":status", "404", STATUS),
    FIELD(":status", "500", STATUS),
    FIELD("accept-charset", "", PLAIN),
    FIELD("accept-encoding", "gzip, deflate", PLAIN),
    FIELD("accept-language", "", PLAIN),
    FIELD("accept-ranges", "", PLAIN),
    FIELD("accept", "", PLAIN),
    FIELD("access-control-allow-origin", "", PLAIN),
    FIELD("age", "", PLAIN),
    FIELD("allow", "", PLAIN),
    FIELD("authorization", "", PLAIN),
    FIELD("cache-control", "", PLAIN),
    FIELD("content-disposition", "", PLAIN),
    FIELD("content-encoding", "", PLAIN),
    FIELD("content-language", "", PLAIN),
    FIELD("content-length", "", BAD),
    FIELD("content-location", "", PLAIN),
    FIELD("content-range", "", PLAIN),
    FIELD("content-type", "", PLAIN),
    FIELD("cookie", "", PLAIN),
    FIELD("date", "", PLAIN),
    FIELD("etag", "", PLAIN),
    FIELD("expect", "", PLAIN),
    FIELD("expires", "", PLAIN),
    FIELD("from", "", PLAIN),
    FIELD("host", "", HOST),
    FIELD("if-match", "", PLAIN),
    FIELD("if-modified-since", "", PLAIN),
    FIELD("if-none-match", "", PLAIN),
    FIELD("if-range", "", PLAIN),
    FIELD("if-unmodified-since", "", PLAIN),
    FIELD("last-modified", "", PLAIN),
    FIELD("link", "", PLAIN),
    FIELD("location", "", PLAIN),
    FIELD("max-forwards", "", PLAIN),
    FIELD("proxy-authenticate", "", PLAIN),
    FIELD("proxy-authorization", "", PLAIN),
    FIELD("range", "", PLAIN),
    FIELD("referer", "", PLAIN),
    FIELD("refresh", "", PLAIN),
    FIELD("retry-after", "", PLAIN),
    FIELD("server", "", PLAIN),
    FIELD("set-cookie", "", PLAIN),
    FIELD("strict-transport-security", "", PLAIN),
    FIELD("transfer-encoding", "", BAD),
    FIELD("user-agent", "", PLAIN),
    FIELD("vary", "", PLAIN),
    FIELD("via", "", PLAIN),
    FIELD("www-authenticate", "", PLAIN),
};

const struct grpc_hpack_static *grpc_hpack_static_at(uint32_t number)
{
    return &fields[number - 1];
}

/* Pseudo-fields stand first, the rest in alphabetical order: the first letter gives the place. */
static uint32_t first_of(char letter)
{
    static const uint8_t starts[26] = {
        ['a' - 'a'] = 14, ['c' - 'a'] = 23, ['d' - 'a'] = 32, ['e' - 'a'] = 33,
        ['f' - 'a'] = 36, ['h' - 'a'] = 37, ['i' - 'a'] = 38, ['l' - 'a'] = 43,
        ['m' - 'a'] = 46, ['p' - 'a'] = 47, ['r' - 'a'] = 49, ['s' - 'a'] = 53,
        ['t' - 'a'] = 56, ['u' - 'a'] = 57, ['v' - 'a'] = 58, ['w' - 'a'] = 60};

    if (letter == ':')
        return 0;
    if (letter < 'a' || letter > 'z' || starts[letter - 'a'] == 0)
        return GRPC_HPACK_STATIC;
    return starts[letter - 'a'];
}

uint32_t grpc_hpack_static_find(peg_str name, peg_str value, uint32_t *ret_name)
{
    *ret_name = 0;
    if (name.len == 0)
        return 0;
    for (uint32_t i = first_of(name.ptr[0]); i < GRPC_HPACK_STATIC; i++) {
        if (fields[i].name.ptr[0] != name.ptr[0])
            break;
        if (!peg__str_eq(fields[i].name, name))
            continue;
        if (fields[i].value.len > 0 && peg__str_eq(fields[i].value, value))
            return i + 1;
        if (*ret_name == 0)
            *ret_name = i + 1;
    }
    return 0;
}

/* ---- those that a connection remembers ---------------------------------------------------- */

enum { FIRST_BYTES = 512, MAX_BYTES = 2 * GRPC_HPACK_TABLE_BYTES, FIRST_SLOTS = 16 };

void grpc_hpack_table_free(struct grpc_hpack_table *table)
{
    peg__free(table->bytes);
    peg__free(table->entries);
    *table = (struct grpc_hpack_table){.max_size = table->max_size};
}

static const struct grpc_hpack_entry *oldest(const struct grpc_hpack_table *table)
{
    return &table->entries[table->first];
}

static size_t tail_of(const struct grpc_hpack_table *table)
{
    return table->n ? (uint16_t)(oldest(table)->at - table->base) : table->head;
}

static void forget_oldest(struct grpc_hpack_table *table)
{
    const struct grpc_hpack_entry *entry = oldest(table);

    table->size -= (uint32_t)entry->name_len + entry->value_len + GRPC_HPACK_FIELD_BYTES;
    table->first = (table->first + 1) & (table->n_slots - 1);
    table->n--;
}

void grpc_hpack_table_resize(struct grpc_hpack_table *table, uint32_t max_size)
{
    table->max_size = max_size;
    table->n_changes++;
    while (table->size > max_size)
        forget_oldest(table);
}

static void copy_bytes(char *to, peg_str s)
{
    if (s.len > 0)
        memcpy(to, s.ptr, s.len);
}

/* Space behind the newest. The fields move to the front, or to twice as much memory. */
static peg_status make_space(struct grpc_hpack_table *table, size_t need)
{
    const size_t tail = tail_of(table);
    const size_t live = table->head - tail;
    size_t capacity = table->capacity ? table->capacity : FIRST_BYTES;
    char *bytes = table->bytes;

    if (table->bytes && table->capacity - table->head >= need)
        return PEG_OK;
    while (capacity < MAX_BYTES && live + need > capacity / 2)
        capacity *= 2;
    if (!bytes || capacity != table->capacity) {
        bytes = peg__alloc(capacity);
        if (!bytes)
            return PEG_ENOMEM;
        if (table->bytes && live > 0)
            memcpy(bytes, table->bytes + tail, live);
        peg__free(table->bytes);
    } else if (live > 0) {
        memmove(bytes, bytes + tail, live);
    }
    table->bytes = bytes;
    table->capacity = capacity;
    table->base = (uint16_t)(table->base + tail);
    table->head = live;
    return PEG_OK;
}

static peg_status make_slot(struct grpc_hpack_table *table)
{
    const uint32_t n_slots = table->n_slots ? 2 * table->n_slots : FIRST_SLOTS;
    struct grpc_hpack_entry *entries;

    if (table->n < table->n_slots)
        return PEG_OK;
    entries = peg__alloc(n_slots * sizeof(*entries));
    if (!entries)
        return PEG_ENOMEM;
    for (uint32_t i = 0; i < table->n; i++)
        entries[i] = table->entries[(table->first + i) & (table->n_slots - 1)];
    peg__free(table->entries);
    table->entries = entries;
    table->n_slots = n_slots;
    table->first = 0;
    return PEG_OK;
}

peg_status grpc_hpack_table_add(struct grpc_hpack_table *table, peg_str name, peg_str value,
                                struct grpc_hpack_entry entry)
{
    const size_t size = name.len + value.len + GRPC_HPACK_FIELD_BYTES;
    const bool is_own =
        table->bytes && name.ptr >= table->bytes && name.ptr < table->bytes + table->capacity;
    /* The letters of a name of our own move with the others. */
    const size_t name_at = is_own ? (size_t)(name.ptr - table->bytes) - tail_of(table) : 0;

    table->n_changes++;
    if (size > table->max_size) {
        while (table->n > 0)
            forget_oldest(table);
        return PEG_OK;
    }
    if (make_slot(table) || make_space(table, name.len + value.len))
        return PEG_ENOMEM;
    if (is_own)
        name.ptr = table->bytes + tail_of(table) + name_at;
    entry.at = (uint16_t)(table->base + table->head);
    entry.name_len = (uint16_t)name.len;
    entry.value_len = (uint16_t)value.len;
    copy_bytes(table->bytes + table->head, name);
    copy_bytes(table->bytes + table->head + name.len, value);
    table->head += name.len + value.len;
    while (table->size + size > table->max_size)
        forget_oldest(table);
    table->entries[(table->first + table->n) & (table->n_slots - 1)] = entry;
    table->n++;
    table->size += (uint32_t)size;
    return PEG_OK;
}
