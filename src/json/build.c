/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Building a document value by value. Each add checks that a value may stand where it comes
 * (place_value), appends it to the flat array and copies its text; the first thing that goes
 * wrong is kept in the builder, and every later add does nothing.
 */

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/cleanup.h"
#include "json/internal.h"
#include "json/number/number.h"

enum {
    /* A text can't hold more values than this either: each takes a byte and a separator. */
    MAX_VALUES = PEG_LIMIT_JSON_BYTES_MAX / 2,
    MAX_STRING_BYTES = PEG_LIMIT_JSON_BYTES_MAX,
    /* Strings are packed into blocks; longer ones have a block of their own. */
    STRING_BLOCK = 1024,
    /* Names are looked through up to here, then found by a hash table. */
    FEW_MEMBERS = 16,
};

struct key_slot {
    uint32_t hash;
    uint32_t key; /* index of the key; 0: empty, for the first value is never a key */
};

struct open_container {
    size_t at;              /* index of the container */
    struct key_slot *slots; /* owned; NULL while an object has few members */
    size_t n_slots;         /* a power of two */
};

/* Owned. */
struct peg_json_builder {
    peg_error error; /* the first failure; status 0: none */
    peg_json_doc *doc;
    size_t n; /* values in doc */
    struct open_container *open;
    size_t depth;
    size_t n_open; /* allocated */
    bool has_key;  /* a key waits for its value */
    char *block;   /* what strings are packed into */
    size_t block_left;
    size_t string_bytes;
};

peg_json_builder *peg_json_builder_new(void)
{
    peg_json_builder *b = peg__alloc_zero(1, sizeof(*b));

    if (!b)
        return NULL;
    b->doc = peg__json_doc_new(0);
    return b->doc ? b : peg_json_builder_free(b);
}

peg_json_builder *peg_json_builder_free(peg_json_builder *b)
{
    if (!b)
        return NULL;
    for (size_t i = 0; i < b->depth; i++)
        peg__free(b->open[i].slots);
    peg__free(b->open);
    peg_json_doc_free(b->doc);
    peg__free(b);
    return NULL;
}

/* ---- memory ----------------------------------------------------------------------------- */

static bool is_usable(const peg_json_builder *b)
{
    return b && !b->error.status;
}

static bool keep_nomem(peg_json_builder *b)
{
    peg__fail_nomem(&b->error);
    return false;
}

static bool keep_too_large(peg_json_builder *b)
{
    peg__fail(&b->error, PEG_ELIMIT, "E_JSON_TOO_LARGE",
              "a document holds at most %d values and %d bytes of strings; build a smaller one",
              MAX_VALUES, MAX_STRING_BYTES);
    return false;
}

static bool reserve_values(peg_json_builder *b, size_t n)
{
    if (n > MAX_VALUES - b->n)
        return keep_too_large(b);
    return PEG__RESERVE(b->doc->values, b->n + n, b->doc->capacity) || keep_nomem(b);
}

/* Room for so many bytes of strings, their NULs counted, with padding behind them. */
static char *reserve_string(peg_json_builder *b, size_t n)
{
    char *taken;

    if (n > MAX_STRING_BYTES - b->string_bytes) {
        keep_too_large(b);
        return NULL;
    }
    if (b->block_left < n + PEG_JSON_PADDING) {
        const size_t wanted = n + PEG_JSON_PADDING;
        const size_t size = wanted > STRING_BLOCK ? wanted : STRING_BLOCK;

        b->block = peg__arena_alloc_zero(&b->doc->strings, size);
        if (!b->block) {
            keep_nomem(b);
            return NULL;
        }
        b->block_left = size;
    }
    taken = b->block;
    b->block += n;
    b->block_left -= n;
    b->string_bytes += n;
    return taken;
}

static const char *own_string(peg_json_builder *b, peg_str s)
{
    char *copy;

    if (s.len >= MAX_STRING_BYTES) {
        keep_too_large(b);
        return NULL;
    }
    copy = reserve_string(b, s.len + 1);
    if (copy && s.len)
        memcpy(copy, s.ptr, s.len);
    return copy; /* the block was zero, so a NUL follows */
}

/* Makes open[depth] exist. */
static bool reserve_level(peg_json_builder *b, size_t depth)
{
    if (depth >= PEG_LIMIT_JSON_DEPTH_MAX) {
        peg__fail(&b->error, PEG_ELIMIT, "E_JSON_TOO_DEEP",
                  "containers nest at most %d deep; build a flatter document",
                  PEG_LIMIT_JSON_DEPTH_MAX);
        return false;
    }
    return PEG__RESERVE(b->open, depth + 1, b->n_open) || keep_nomem(b);
}

/* ---- places ------------------------------------------------------------------------------- */

static peg_json *innermost(const peg_json_builder *b)
{
    return b->depth ? &b->doc->values[b->open[b->depth - 1].at] : NULL;
}

static bool may_place(peg_json_builder *b)
{
    const peg_json *container;

    if (!is_usable(b))
        return false;
    container = innermost(b);
    if (!container && b->n) {
        peg__fail(&b->error, PEG_EINVAL, "E_JSON_BUILD",
                  "a document has one root; add further values inside an array or object");
        return false;
    }
    if (container && container->kind == PEG_JSON_OBJECT && !b->has_key) {
        peg__fail(&b->error, PEG_EINVAL, "E_JSON_BUILD",
                  "a value inside an object needs a name; add its key first");
        return false;
    }
    return true;
}

/* The next n values, of which the first is a root, item or member. Requires may_place() and
 * reserved values. */
static peg_json *place_values(peg_json_builder *b, size_t n)
{
    peg_json *container = innermost(b);
    peg_json *placed = &b->doc->values[b->n];

    if (container)
        container->len++;
    b->has_key = false;
    b->n += n;
    return placed;
}

static void place_value(peg_json_builder *b, peg_json value)
{
    if (may_place(b) && reserve_values(b, 1))
        *place_values(b, 1) = value;
}

/* ---- scalars ------------------------------------------------------------------------------ */

void peg_json_add_null(peg_json_builder *b)
{
    place_value(b, (peg_json){.kind = PEG_JSON_NULL});
}

void peg_json_add_bool(peg_json_builder *b, bool truth)
{
    place_value(b, (peg_json){.kind = PEG_JSON_BOOL, .u.truth = truth});
}

void peg_json_add_integer(peg_json_builder *b, int64_t number)
{
    place_value(b, (peg_json){.kind = PEG_JSON_INTEGER, .u.number = number});
}

void peg_json_add_double(peg_json_builder *b, double number)
{
    struct peg__shortest s;
    peg_json value = {.kind = PEG_JSON_DECIMAL, .form = PEG_JSON_FORM_SCALED};
    int64_t whole;

    if (!is_usable(b))
        return;
    if (!isfinite(number)) {
        peg__fail(&b->error, PEG_EINVAL, "E_JSON_NUMBER",
                  "JSON has no number for NaN and infinity; add null or a string instead");
        return;
    }
    s = peg__double_shortest(fabs(number));
    value.exponent = (int16_t)s.exponent;
    value.u.number = signbit(number) ? -(int64_t)s.mantissa : (int64_t)s.mantissa;
    if (s.mantissa == 0 && signbit(number))
        value.form = PEG_JSON_FORM_MINUS0;
    else if (peg_json_int64(&value, &whole))
        value = (peg_json){.kind = PEG_JSON_INTEGER, .u.number = whole};
    place_value(b, value);
}

void peg_json_add_number(peg_json_builder *b, peg_str text)
{
    peg_json value;

    if (!is_usable(b))
        return;
    switch (peg__number_read(text, PEG_LIMIT_NUMBER_DIGITS, PEG_LIMIT_NUMBER_EXPONENT, &value)) {
    case PEG__NUMBER_SYNTAX:
        peg__fail(&b->error, PEG_EINVAL, "E_JSON_NUMBER",
                  "this is not the JSON text of a number; write it like -1, 0.5 or 1e6");
        return;
    case PEG__NUMBER_LIMIT:
        peg__fail(&b->error, PEG_ELIMIT, "E_JSON_TOO_LARGE",
                  "a number has at most %d digits and an exponent of at most %d; shorten it or add "
                  "it as a string",
                  PEG_LIMIT_NUMBER_DIGITS, PEG_LIMIT_NUMBER_EXPONENT);
        return;
    case PEG__NUMBER_OK:
        break;
    }
    if (value.form == PEG_JSON_FORM_TEXT)
        value.u.ptr = own_string(b, text);
    place_value(b, value);
}

/* A string value with its own copy of the bytes; on failure the builder's error is set. */
static peg_json make_string(peg_json_builder *b, peg_str utf8)
{
    if (!peg__utf8_is_valid(utf8)) {
        peg__fail(&b->error, PEG_EINVAL, "E_JSON_UTF8",
                  "a string is not valid UTF-8; convert it, or encode bytes as base64");
        return (peg_json){0};
    }
    return (peg_json){
        .kind = PEG_JSON_STRING, .u.ptr = own_string(b, utf8), .len = (uint32_t)utf8.len};
}

void peg_json_add_string(peg_json_builder *b, peg_str utf8)
{
    if (may_place(b))
        place_value(b, make_string(b, utf8));
}

/* ---- keys --------------------------------------------------------------------------------- */

static void put_slot(struct key_slot *slots, size_t n_slots, struct key_slot slot)
{
    size_t i = slot.hash & (n_slots - 1);

    while (slots[i].key)
        i = (i + 1) & (n_slots - 1);
    slots[i] = slot;
}

static uint32_t hash_key_name(const peg_json_builder *b, peg_str name)
{
    /* The seed is an address, which the author of the names does not know. */
    return (uint32_t)peg__hash_bytes(name, (uintptr_t)b);
}

/* Makes a table for n keys at least, with what the old one or the object holds. */
static bool grow_table(peg_json_builder *b, struct open_container *open, size_t n)
{
    const peg_json *key = &b->doc->values[open->at] + 1;
    size_t n_slots = open->n_slots ? open->n_slots * 2 : 4 * (size_t)FEW_MEMBERS;
    struct key_slot *slots;

    while (n_slots < 2 * n)
        n_slots *= 2;
    slots = peg__alloc_zero(n_slots, sizeof(*slots));
    if (!slots)
        return keep_nomem(b);
    for (size_t i = 0; i < open->n_slots; i++)
        if (open->slots[i].key)
            put_slot(slots, n_slots, open->slots[i]);
    for (size_t i = 1; !open->slots && i < n; i++) {
        put_slot(slots, n_slots,
                 (struct key_slot){hash_key_name(b, peg_json_str(key)),
                                   (uint32_t)(key - b->doc->values)});
        key = peg_json_next(key + 1);
    }
    peg__free(open->slots);
    open->slots = slots;
    open->n_slots = n_slots;
    return true;
}

static bool table_has(const peg_json_builder *b, const struct open_container *open, peg_str name,
                      uint32_t hash)
{
    for (size_t i = hash & (open->n_slots - 1); open->slots[i].key;
         i = (i + 1) & (open->n_slots - 1))
        if (open->slots[i].hash == hash &&
            peg__str_eq(peg_json_str(&b->doc->values[open->slots[i].key]), name))
            return true;
    return false;
}

static bool is_among_few(const peg_json *object, peg_str name)
{
    const peg_json *key = object + 1;

    for (uint32_t i = 0; i < object->len; i++) {
        if (peg__str_eq(peg_json_str(key), name))
            return true;
        key = peg_json_next(key + 1);
    }
    return false;
}

/* Enters the name that the next value is going to be the key of. False: taken or no memory. */
static bool claim_name(peg_json_builder *b, const peg_json *object, peg_str name)
{
    struct open_container *open = &b->open[b->depth - 1];
    const size_t n = (size_t)object->len + 1;
    uint32_t hash;
    bool is_taken;

    if (n <= FEW_MEMBERS) {
        is_taken = is_among_few(object, name);
    } else {
        if (2 * n > open->n_slots && !grow_table(b, open, n))
            return false;
        hash = hash_key_name(b, name);
        is_taken = table_has(b, open, name, hash);
        if (!is_taken)
            put_slot(open->slots, open->n_slots, (struct key_slot){hash, (uint32_t)b->n});
    }
    if (is_taken)
        peg__fail(&b->error, PEG_EEXISTS, "E_JSON_DUPLICATE_KEY",
                  "an object has this name already; give each member a name of its own");
    return !is_taken;
}

void peg_json_add_key(peg_json_builder *b, peg_str name)
{
    const peg_json *object;
    peg_json key;

    if (!is_usable(b))
        return;
    object = innermost(b);
    if (!object || object->kind != PEG_JSON_OBJECT || b->has_key) {
        peg__fail(&b->error, PEG_EINVAL, "E_JSON_BUILD",
                  "a key stands only inside an object, before each value; add the value or the "
                  "object first");
        return;
    }
    key = make_string(b, name);
    if (b->error.status || !claim_name(b, object, name) || !reserve_values(b, 1))
        return;
    b->doc->values[b->n++] = key;
    b->has_key = true;
}

/* ---- containers ---------------------------------------------------------------------------- */

static void open_kind(peg_json_builder *b, peg_json_kind kind)
{
    const size_t at = b ? b->n : 0;

    if (!is_usable(b) || !reserve_level(b, b->depth))
        return;
    place_value(b, (peg_json){.kind = (uint8_t)kind});
    if (!b->error.status)
        b->open[b->depth++] = (struct open_container){.at = at};
}

void peg_json_open_array(peg_json_builder *b)
{
    open_kind(b, PEG_JSON_ARRAY);
}

void peg_json_open_object(peg_json_builder *b)
{
    open_kind(b, PEG_JSON_OBJECT);
}

void peg_json_close(peg_json_builder *b)
{
    peg_json *container;

    if (!is_usable(b))
        return;
    container = innermost(b);
    if (!container || b->has_key) {
        peg__fail(&b->error, PEG_EINVAL, "E_JSON_BUILD",
                  container ? "the last key has no value; add one before you close the object"
                            : "nothing is open; close each array and object once");
        return;
    }
    b->depth--;
    container->u.extent = b->n - b->open[b->depth].at;
    peg__free(b->open[b->depth].slots);
}

/* ---- copies -------------------------------------------------------------------------------- */

/* Uses the levels above the open containers as a stack of where containers end. */
static bool depth_fits(peg_json_builder *b, const peg_json *value, size_t n)
{
    size_t depth = b->depth;

    for (size_t i = 0; i < n; i++) {
        while (depth > b->depth && b->open[depth - 1].at == i)
            depth--;
        if (value[i].kind < PEG_JSON_ARRAY)
            continue;
        if (!reserve_level(b, depth))
            return false;
        b->open[depth++].at = i + (size_t)value[i].u.extent;
    }
    return true;
}

static bool has_text(const peg_json *value)
{
    return value->kind == PEG_JSON_STRING || value->form == PEG_JSON_FORM_TEXT;
}

static size_t text_len(const peg_json *value, size_t n)
{
    size_t len = 0;

    for (size_t i = 0; i < n; i++)
        if (has_text(&value[i]))
            len += (size_t)value[i].len + 1;
    return len;
}

void peg_json_add_copy(peg_json_builder *b, const peg_json *value)
{
    const peg_json *from = peg__json_or_null(value);
    const size_t n = peg_json_extent(from);
    const size_t len = text_len(from, n);
    peg_json *copy;
    char *text;

    if (!may_place(b) || !reserve_values(b, n) || !depth_fits(b, from, n))
        return;
    text = reserve_string(b, len);
    if (!text)
        return;
    copy = place_values(b, n);
    memcpy(copy, from, n * sizeof(*copy));
    for (size_t i = 0; i < n; i++)
        if (has_text(&copy[i])) {
            memcpy(text, copy[i].u.ptr, copy[i].len); /* the block was zero: a NUL follows */
            copy[i].u.ptr = text;
            text += (size_t)copy[i].len + 1;
        }
}

/* ---- finishing ------------------------------------------------------------------------------ */

peg_status peg_json_builder_finish(peg_json_builder *b, peg_json_doc **ret_doc, peg_error *reterr)
{
    PEG_CLEANUP(peg_json_builder_freep) peg_json_builder *owned = b;

    if (!owned)
        return peg__fail_nomem(reterr);
    if (!owned->error.status && owned->depth)
        peg__fail(&owned->error, PEG_EINVAL, "E_JSON_BUILD",
                  "%zu arrays or objects are still open; close each of them", owned->depth);
    if (!owned->error.status && owned->n == 0)
        peg__fail(&owned->error, PEG_EINVAL, "E_JSON_BUILD",
                  "nothing was added; add a value before finishing");
    if (owned->error.status) {
        if (reterr)
            *reterr = owned->error;
        return owned->error.status;
    }
    *ret_doc = owned->doc;
    owned->doc = NULL;
    return PEG_OK;
}

/* ---- copies of whole values ------------------------------------------------------------------ */

peg_status peg__json_copy(const peg_json *value, peg_json_doc **ret_doc, peg_error *reterr)
{
    peg_json_builder *b = peg_json_builder_new();

    peg_json_add_copy(b, value);
    return peg_json_builder_finish(b, ret_doc, reterr);
}

peg_status peg__shared_copy(const peg_json *value, struct peg__shared **ret_shared,
                            peg_error *reterr)
{
    peg_json_doc *doc = NULL;
    const peg_status status = peg__json_copy(value, &doc, reterr);
    struct peg__shared *shared;

    if (status)
        return status;
    shared = peg__shared_new(doc);
    if (!shared)
        return peg__fail_nomem(reterr);
    *ret_shared = shared;
    return PEG_OK;
}
