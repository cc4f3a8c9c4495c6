/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/status.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/text/base64.h"
#include "base/text/str.h"

enum { FIRST_ENTRIES = 8, COUNTED_FOR_EACH = 32 };

#define IS(s, literal)                                                                             \
    ((s).len == sizeof(literal) - 1 && memcmp((s).ptr, (literal), sizeof(literal) - 1) == 0)

/* ---- keys ----------------------------------------------------------------------------------- */

bool grpc_metadata_is_binary(peg_str key)
{
    return key.len >= 4 && memcmp(key.ptr + key.len - 4, "-bin", 4) == 0;
}

static bool is_of_protocol(peg_str key)
{
    switch (key.len) {
    case 2:
        return IS(key, "te");
    case 4:
        return IS(key, "host");
    case 7:
        return IS(key, "upgrade");
    case 10:
        return IS(key, "user-agent") || IS(key, "connection") || IS(key, "keep-alive");
    case 12:
        return IS(key, "content-type");
    case 14:
        return IS(key, "content-length");
    case 16:
        return IS(key, "proxy-connection");
    case 17:
        return IS(key, "transfer-encoding");
    default:
        return false;
    }
}

bool grpc_metadata_is_ours(peg_str key)
{
    if (key.len == 0 || key.ptr[0] == ':')
        return false;
    if (key.len >= 5 && memcmp(key.ptr, "grpc-", 5) == 0)
        return IS(key, "grpc-trace-bin") || IS(key, "grpc-tags-bin");
    return !is_of_protocol(key);
}

/* The letter that a key has in its place, or 0 if it may have none such. */
static char key_char(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c | 0x20);
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.')
        return c;
    return 0;
}

static bool lower_key(peg_str key, char *ret_key)
{
    for (size_t i = 0; i < key.len; i++) {
        ret_key[i] = key_char(key.ptr[i]);
        if (!ret_key[i])
            return false;
    }
    ret_key[key.len] = '\0';
    return key.len > 0;
}

/* ---- values --------------------------------------------------------------------------------- */

static bool is_printable(peg_str text)
{
    unsigned is_other = 0;

    for (size_t i = 0; i < text.len; i++)
        is_other |= (unsigned char)(text.ptr[i] - 0x20) > 0x7e - 0x20;
    return !is_other;
}

static peg_str trim_spaces(peg_str text)
{
    while (text.len && text.ptr[text.len - 1] == ' ')
        text.len--;
    while (text.len && text.ptr[0] == ' ')
        text = peg__str_from(text, 1);
    return text;
}

static size_t count_joined(peg_str value)
{
    size_t n = 1;

    for (size_t i = 0; i < value.len; i++)
        n += value.ptr[i] == ',';
    return n;
}

size_t grpc_metadata_wire_bytes(peg_str key, peg_str value)
{
    const size_t n = grpc_metadata_is_binary(key) ? count_joined(value) : 1;

    return n * (key.len + COUNTED_FOR_EACH) + value.len;
}

size_t grpc_metadata_encode_bin(peg_str bytes, char *ret_text)
{
    size_t len = peg__base64_len(bytes.len);

    peg__base64_encode(bytes, ret_text);
    while (len && ret_text[len - 1] == '=')
        len--;
    ret_text[len] = '\0';
    return len;
}

/* ---- entries -------------------------------------------------------------------------------- */

/* Room for n more. The arena keeps the smaller array until the call ends. */
static bool reserve(struct grpc_metadata *metadata, struct peg__arena *arena, size_t n)
{
    size_t capacity = metadata->capacity ? metadata->capacity : FIRST_ENTRIES;
    struct grpc_metadata_entry *entries;

    if (metadata->n + n <= metadata->capacity)
        return true;
    while (capacity < metadata->n + n)
        capacity *= 2;
    entries = peg__arena_alloc(arena, capacity * sizeof(*entries));
    if (!entries)
        return false;
    if (metadata->n)
        memcpy(entries, metadata->entries, metadata->n * sizeof(*entries));
    metadata->entries = entries;
    metadata->capacity = capacity;
    return true;
}

static void append_entry(struct grpc_metadata *metadata, peg_str key, peg_str value)
{
    metadata->entries[metadata->n++] = (struct grpc_metadata_entry){.key = key, .value = value};
    metadata->bytes += key.len + value.len + COUNTED_FOR_EACH;
}

/* Puts both into one piece of the arena, and a NUL behind each; the caller writes the key. */
static char *place_entry(struct grpc_metadata *metadata, struct peg__arena *arena, peg_str key,
                         peg_str value)
{
    char *to =
        reserve(metadata, arena, 1) ? peg__arena_alloc(arena, key.len + value.len + 2) : NULL;

    if (!to)
        return NULL;
    if (value.len)
        memcpy(to + key.len + 1, value.ptr, value.len);
    to[key.len] = '\0';
    to[key.len + 1 + value.len] = '\0';
    return to;
}

static peg_status check_metadata_value(const struct grpc_metadata *metadata, peg_str key,
                                       peg_str value, peg_error *reterr)
{
    const size_t left = PEG_LIMIT_GRPC_METADATA_BYTES > metadata->bytes
                            ? PEG_LIMIT_GRPC_METADATA_BYTES - metadata->bytes
                            : 0;

    if (key.len > left || value.len > left || key.len + value.len + COUNTED_FOR_EACH > left)
        return peg__fail(
            reterr, PEG_ELIMIT, "E_METADATA",
            "metadata with '%.64s' would have more than %d bytes: send it in a message", key.ptr,
            PEG_LIMIT_GRPC_METADATA_BYTES);
    if (!grpc_metadata_is_binary(key) && !is_printable(value))
        return peg__fail(reterr, PEG_EINVAL, "E_METADATA",
                         "the metadata '%.64s' has a value that is not printable ASCII; give it "
                         "a key that ends in -bin",
                         key.ptr);
    return PEG_OK;
}

peg_status grpc_metadata_add(struct grpc_metadata *metadata, struct peg__arena *arena, peg_str key,
                             peg_str value, peg_error *reterr)
{
    char lowered[256];
    const peg_str ours = {lowered, key.len};
    peg_status status;
    char *to;

    if (key.len >= sizeof(lowered) || !lower_key(key, lowered))
        return peg__fail(reterr, PEG_EINVAL, "E_METADATA",
                         "the metadata key '%.*s' is not [a-z0-9_.-]{1,255}; give it another name",
                         (int)(key.len < 64 ? key.len : 64), key.len ? key.ptr : "");
    if (!grpc_metadata_is_ours(ours))
        return peg__fail(reterr, PEG_EINVAL, "E_METADATA",
                         "the metadata key '%.64s' belongs to the protocol; give it another name",
                         lowered);
    if (!grpc_metadata_is_binary(ours))
        value = trim_spaces(value);
    status = check_metadata_value(metadata, ours, value, reterr);
    if (status)
        return status;

    to = place_entry(metadata, arena, ours, value);
    if (!to)
        return peg__fail_nomem(reterr);
    memcpy(to, lowered, key.len);
    append_entry(metadata, peg__strn(to, key.len), peg__strn(to + key.len + 1, value.len));
    return PEG_OK;
}

/* ---- from the wire -------------------------------------------------------------------------- */

static peg_str take_joined(peg_str *rest)
{
    const char *comma = rest->len ? memchr(rest->ptr, ',', rest->len) : NULL;
    const peg_str first = {rest->ptr, comma ? (size_t)(comma - rest->ptr) : rest->len};

    *rest = comma ? peg__str_from(*rest, first.len + 1) : (peg_str){NULL, 0};
    return first;
}

/* Key and decoded values lie in one piece of the arena. */
static peg_status add_binary(struct grpc_metadata *metadata, struct peg__arena *arena, peg_str key,
                             peg_str value, peg_error *reterr)
{
    const struct grpc_metadata before = *metadata;
    const size_t n = count_joined(value);
    char *to = peg__arena_alloc(arena, key.len + 1 + value.len / 4 * 3 + 3 * n);

    if (!to || !reserve(metadata, arena, n))
        return peg__fail_nomem(reterr);
    memcpy(to, key.ptr, key.len);
    to[key.len] = '\0';
    key.ptr = to;
    to += key.len + 1;
    for (size_t i = 0; i < n; i++) {
        size_t len;

        if (!peg__base64_decode(take_joined(&value), to, &len)) {
            metadata->n = before.n;
            metadata->bytes = before.bytes;
            return peg__fail(reterr, PEG_EPARSE, "E_METADATA",
                             "the metadata '%.64s' is not base 64, as a key that ends in -bin must "
                             "be; correct the peer",
                             key.ptr);
        }
        append_entry(metadata, key, peg__strn(to, len));
        to += len;
    }
    return PEG_OK;
}

peg_status grpc_metadata_add_wire(struct grpc_metadata *metadata, struct peg__arena *arena,
                                  peg_str key, peg_str value, peg_error *reterr)
{
    char *to;

    if (grpc_metadata_is_binary(key))
        return add_binary(metadata, arena, key, value, reterr);
    if (!is_printable(value))
        return PEG_OK;
    to = place_entry(metadata, arena, key, value);
    if (!to)
        return peg__fail_nomem(reterr);
    if (key.len)
        memcpy(to, key.ptr, key.len);
    append_entry(metadata, peg__strn(to, key.len), peg__strn(to + key.len + 1, value.len));
    return PEG_OK;
}

peg_str grpc_metadata_get(const struct grpc_metadata *metadata, const char *key)
{
    const peg_str wanted = peg__str(key);

    for (size_t i = 0; i < metadata->n; i++)
        if (peg__str_eq(metadata->entries[i].key, wanted))
            return metadata->entries[i].value;
    return (peg_str){NULL, 0};
}
