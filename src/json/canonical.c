/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The canonical form (RFC 8785): like writing, but members go by the order of their names.
 * Objects whose members stand in order already, as those of canonical text do, are walked
 * as they are; for the others their keys are sorted onto a stack that all levels share.
 */

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "json/internal.h"
#include "json/json.h"
#include "json/number/number.h"

struct level {
    const peg_json *next; /* in document order: the item or key that comes next */
    size_t keys;          /* sorted: where its keys start on the stack of keys */
    size_t n_done;
    size_t n;
    bool is_object;
    bool is_sorted_apart;
};

struct canonical {
    struct peg__buf *out;
    struct level *levels;
    size_t depth;
    size_t n_levels; /* allocated */
    const peg_json **keys;
    size_t keys_used;
    size_t n_keys; /* allocated */
};

static bool push_sorted_keys(struct canonical *c, const peg_json *object)
{
    const size_t n = object->len;
    const peg_json **to;

    /* Twice the capacity: the upper half is for the sort. */
    if (!PEG__RESERVE(c->keys, c->keys_used + 2 * n, c->n_keys))
        return false;
    to = c->keys + c->keys_used;
    c->keys_used += n;
    PEG_JSON_EACH_MEMBER (object, key)
        *to++ = key;
    peg__keys_sort(to - n, to, n, peg__key_order_utf16);
    return true;
}

static bool push_level(struct canonical *c, const peg_json *value)
{
    const bool is_object = value->kind == PEG_JSON_OBJECT;
    const struct level level = {.next = value + 1,
                                .keys = c->keys_used,
                                .n = value->len,
                                .is_object = is_object,
                                .is_sorted_apart =
                                    is_object && !peg__keys_in_order(value, peg__key_order_utf16)};

    if (!PEG__RESERVE(c->levels, c->depth + 1, c->n_levels))
        return false;
    if (level.is_sorted_apart && !push_sorted_keys(c, value))
        return false;
    c->levels[c->depth++] = level;
    return true;
}

static void write_canonical_head(struct canonical *c, const peg_json *value)
{
    switch (peg_json_kind_of(value)) {
    case PEG_JSON_INTEGER:
    case PEG_JSON_DECIMAL:
        peg__number_canonical(value, c->out);
        break;
    case PEG_JSON_ARRAY:
    case PEG_JSON_OBJECT:
        peg__buf_putc(c->out, value->kind == PEG_JSON_OBJECT ? '{' : '[');
        if (!push_level(c, value))
            c->out->status = PEG_ENOMEM;
        break;
    case PEG_JSON_STRING:
        peg__json_write_doc_string(value, c->out);
        break;
    default:
        peg__json_write(value, PEG_JSON_COMPACT, c->out);
    }
}

/* The next item, or the next key in the order of this level. */
static const peg_json *take_next(const struct canonical *c, struct level *level)
{
    const peg_json *taken =
        level->is_sorted_apart ? c->keys[level->keys + level->n_done] : level->next;

    level->n_done++;
    if (!level->is_sorted_apart)
        level->next = peg_json_next(level->is_object ? taken + 1 : taken);
    return taken;
}

static void step(struct canonical *c)
{
    struct level *level = &c->levels[c->depth - 1];
    const peg_json *value;

    if (level->n_done == level->n) {
        peg__buf_putc(c->out, level->is_object ? '}' : ']');
        c->keys_used = level->keys;
        c->depth--;
        return;
    }
    if (level->n_done)
        peg__buf_putc(c->out, ',');
    value = take_next(c, level);
    if (level->is_object) {
        peg__json_write_doc_string(value++, c->out);
        peg__buf_putc(c->out, ':');
    }
    write_canonical_head(c, value);
}

void peg__json_canonical(const peg_json *value, struct peg__buf *out)
{
    struct canonical c = {.out = out};

    write_canonical_head(&c, value);
    while (c.depth && !out->status)
        step(&c);
    peg__free(c.levels);
    peg__free(c.keys);
}

peg_status peg_json_canonical(const peg_json *value, char **ret_text, size_t *ret_len,
                              peg_error *reterr)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__json_canonical(peg__json_or_null(value), &out);
    return peg__buf_take(&out, ret_text, ret_len, reterr);
}

peg_status peg_json_digest(const peg_json *value, char ret_hex[65], peg_error *reterr)
{
    PEG_CLEANUP(peg__freep) char *text = NULL;
    unsigned char digest[PEG_SHA256_BYTES];
    size_t len;
    const peg_status status = peg_json_canonical(value, &text, &len, reterr);

    if (status)
        return status;
    if (!peg__sha256(peg__strn(text, len), digest))
        return peg__fail_nomem(reterr);
    peg__hex(digest, sizeof(digest), ret_hex);
    return PEG_OK;
}
