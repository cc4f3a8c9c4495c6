/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keys and bags: which ids are keys, which values a key takes, and the keys of the library itself.
 *
 * A bag is one allocation: entries in the order of their ids, and behind them the ids. It never
 * changes: another value makes another bag that shares the values it keeps. Bags are small, and
 * copying a few pointers costs less than a table would.
 */

#include "turn/file/file.h"
#include "turn/turn.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "json/json.h"

const char *peg__bag_kind_name(peg_bag_kind kind)
{
    switch (kind) {
    case PEG_BAG_DATA:
        return "data";
    case PEG_BAG_METADATA:
        return "metadata";
    case PEG_BAG_BLOCK:
        return "block metadata";
    }
    return "unknown bag";
}

/* ---- ids ------------------------------------------------------------------------ */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* "v1", "v20"; what is left of an id behind the '@'. */
static bool is_version(peg_str s)
{
    if (s.len < 2 || s.len > 10 || s.ptr[0] != 'v' || s.ptr[1] == '0')
        return false;
    for (size_t i = 1; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
    }
    return true;
}

bool peg__key_id_is_canonical(peg_str id)
{
    const char *at = id.len ? memchr(id.ptr, '@', id.len) : NULL;
    const size_t len = at ? (size_t)(at - id.ptr) : 0;
    size_t n_words = 1;
    bool is_in_word = false;

    if (!len || id.len > PEG_LIMIT_KEY_BYTES || !is_version(peg__str_from(id, len + 1)))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (id.ptr[i] == '.' && is_in_word) {
            is_in_word = false;
            n_words++;
        } else if (is_word(id.ptr[i])) {
            is_in_word = true;
        } else {
            return false;
        }
    }
    return is_in_word && n_words >= 2;
}

static peg_status fail_id(const char *id, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EINVAL, "E_KEY",
                     "'%.64s' is no key: write namespace.slug@vN, such as myapp.user_name@v1, in "
                     "lower case, at most %d bytes",
                     id ? id : "", PEG_LIMIT_KEY_BYTES);
}

peg_status peg_key_check(const peg_key *key, peg_error *reterr)
{
    if (!key)
        return peg__fail(reterr, PEG_EINVAL, "E_KEY", "there is no key: give one");
    if (key->bag < PEG_BAG_DATA || key->bag > PEG_BAG_BLOCK)
        return peg__fail(reterr, PEG_EINVAL, "E_KEY",
                         "the key '%.64s' belongs to no bag: set .bag to one of peg_bag_kind",
                         key->id ? key->id : "");
    if (!key->id || !peg__key_id_is_canonical(peg__str(key->id)))
        return fail_id(key->id, reterr);
    if ((unsigned)key->type > PEG_KEY_OBJECT)
        return peg__fail(reterr, PEG_EINVAL, "E_KEY", "the type of '%.64s' is no peg_key_type",
                         key->id);
    if (key->n_older && !key->older)
        return peg__fail(reterr, PEG_EINVAL, "E_KEY", "'%.64s': n_older is set but older is NULL",
                         key->id);
    for (size_t i = 0; i < key->n_older; i++) {
        if (!key->older[i].id || !key->older[i].id[0])
            return peg__fail(reterr, PEG_EINVAL, "E_KEY", "'%.64s': older[%zu] has no id", key->id,
                             i);
    }
    return PEG_OK;
}

peg_status peg__key_check_bag(const peg_key *key, peg_bag_kind kind, peg_error *reterr)
{
    const peg_status status = peg_key_check(key, reterr);

    if (status || key->bag == kind)
        return status;
    return peg__fail(reterr, PEG_EINVAL, "E_KEY",
                     "'%.64s' is a key of %s and was used on %s: use it where it belongs", key->id,
                     peg__bag_kind_name(key->bag), peg__bag_kind_name(kind));
}

/* ---- values --------------------------------------------------------------------- */

static bool is_strings(const peg_json *value)
{
    if (value->kind != PEG_JSON_ARRAY)
        return false;
    PEG_JSON_EACH_ITEM (value, item) {
        if (item->kind != PEG_JSON_STRING)
            return false;
    }
    return true;
}

static bool fits_type(peg_key_type type, const peg_json *value)
{
    switch (type) {
    case PEG_KEY_ANY:
        return true;
    case PEG_KEY_STRING:
        return value->kind == PEG_JSON_STRING;
    case PEG_KEY_INTEGER:
        return peg_json_is_whole(value);
    case PEG_KEY_NUMBER:
        return peg_json_is_number(value);
    case PEG_KEY_BOOL:
        return value->kind == PEG_JSON_BOOL;
    case PEG_KEY_STRINGS:
        return is_strings(value);
    case PEG_KEY_ARRAY:
        return value->kind == PEG_JSON_ARRAY;
    case PEG_KEY_OBJECT:
        return value->kind == PEG_JSON_OBJECT;
    }
    return false;
}

static const char *type_name(peg_key_type type)
{
    static const char *const names[] = {"anything", "a string",  "an integer",
                                        "a number", "a boolean", "a list of strings",
                                        "a list",   "an object"};

    return names[type];
}

static peg_status fail_unfit(const peg_key *key, peg_verdict verdict, const peg_report *report,
                             peg_error *reterr)
{
    const peg_failure *first = peg_report_len(report) ? peg_report_at(report, 0) : NULL;

    if (verdict == PEG_VALID)
        return PEG_OK;
    peg__fail(reterr, PEG_ESCHEMA, "E_KEY_VALUE", "%s: the value of '%s' does not fit: %.*s",
              peg__bag_kind_name(key->bag), key->id,
              PEG_ARG(first ? first->message : peg__str("the check reached a limit")));
    if (first)
        peg__error_where(reterr, first->instance);
    return PEG_ESCHEMA;
}

static peg_status check_schema(const peg_key *key, const peg_json *value, peg_error *reterr)
{
    peg_checker *checker;
    peg_report *report;
    peg_status status = peg_checker_new(NULL, &checker, reterr);

    if (status)
        return status;
    status = peg_report_new(&report, reterr);
    if (!status) {
        status =
            fail_unfit(key, peg_schema_report(key->schema, checker, value, report), report, reterr);
        peg_report_free(report);
    }
    peg_checker_free(checker);
    return status;
}

static peg_status check_key_value(const peg_key *key, const peg_json *value, peg_error *reterr)
{
    if (!fits_type(key->type, value))
        return peg__fail(reterr, PEG_ESCHEMA, "E_KEY_VALUE", "%s: '%s' has to be %s, this is %s",
                         peg__bag_kind_name(key->bag), key->id, type_name(key->type),
                         value->kind == PEG_JSON_ARRAY && key->type == PEG_KEY_STRINGS
                             ? "a list with something else in it"
                             : peg_json_kind_name(peg_json_kind_of(value)));
    return key->schema ? check_schema(key, value, reterr) : PEG_OK;
}

struct entry {
    peg_str id;
    struct peg__shared *value; /* one reference */
};

struct peg_bag {
    atomic_uint n_refs;
    size_t n;
    struct entry entries[];
};

/* ---- life ----------------------------------------------------------------------- */

peg_bag *peg_bag_ref(peg_bag *bag)
{
    if (bag)
        atomic_fetch_add_explicit(&bag->n_refs, 1, memory_order_relaxed);
    return bag;
}

peg_bag *peg_bag_unref(peg_bag *bag)
{
    if (!bag || !peg__refs_drop(&bag->n_refs))
        return NULL;
    for (size_t i = 0; i < bag->n; i++)
        peg__shared_unref(bag->entries[i].value);
    peg__free(bag);
    return NULL;
}

/* Of entries in order; ids are copied, values get a reference each. */
static peg_status make(const struct entry *entries, size_t n, peg_bag **ret_bag, peg_error *reterr)
{
    size_t size = sizeof(peg_bag) + n * sizeof(struct entry);
    peg_bag *bag;
    char *at;

    if (!n) {
        *ret_bag = NULL;
        return PEG_OK;
    }
    for (size_t i = 0; i < n; i++)
        size += entries[i].id.len + 1;
    bag = peg__alloc(size);
    if (!bag)
        return peg__fail_nomem(reterr);
    atomic_init(&bag->n_refs, 1);
    bag->n = n;
    at = (char *)&bag->entries[n];
    for (size_t i = 0; i < n; i++) {
        const peg_str id = entries[i].id;

        memcpy(at, id.ptr, id.len);
        at[id.len] = '\0';
        bag->entries[i] = (struct entry){{at, id.len}, peg__shared_ref(entries[i].value)};
        at += id.len + 1;
    }
    *ret_bag = bag;
    return PEG_OK;
}

/* ---- reading -------------------------------------------------------------------- */

static struct peg__shared *find(const peg_bag *bag, peg_str id)
{
    size_t low = 0;
    size_t high = bag ? bag->n : 0;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = peg__str_compare(id, bag->entries[middle].id);

        if (!order)
            return bag->entries[middle].value;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

size_t peg_bag_len(const peg_bag *bag)
{
    return bag ? bag->n : 0;
}

bool peg_bag_at(const peg_bag *bag, size_t i, peg_str *ret_id, const peg_json **ret_value)
{
    if (i >= peg_bag_len(bag))
        return false;
    if (ret_id)
        *ret_id = bag->entries[i].id;
    if (ret_value)
        *ret_value = peg__shared_root(bag->entries[i].value);
    return true;
}

const peg_json *peg_bag_find(const peg_bag *bag, peg_str id)
{
    return peg__shared_root(find(bag, id));
}

struct peg__shared *peg__bag_shared(const peg_bag *bag, const peg_key *key)
{
    return find(bag, peg__str(key->id));
}

/* The first older id that is there; NULL if none. */
static const peg_key_older *find_older(const peg_bag *bag, const peg_key *key)
{
    for (size_t i = 0; i < key->n_older; i++) {
        if (find(bag, peg__str(key->older[i].id)))
            return &key->older[i];
    }
    return NULL;
}

peg_status peg_bag_get(const peg_bag *bag, peg_bag_kind kind, const peg_key *key,
                       const peg_json **ret_value, peg_error *reterr)
{
    const peg_json *value;
    peg_status status = peg__key_check_bag(key, kind, reterr);

    if (status)
        return status;
    value = peg_bag_find(bag, peg__str(key->id));
    if (!value) {
        const peg_key_older *older = find_older(bag, key);

        if (older && older->upgrade)
            return peg__fail(reterr, PEG_ESCHEMA, "E_KEY_OLD",
                             "%s has '%s', an older version of '%s': upgrade it first "
                             "(peg_turn_upgrade, peg_bag_upgraded)",
                             peg__bag_kind_name(kind), older->id, key->id);
        value = older ? peg_bag_find(bag, peg__str(older->id)) : NULL;
    }
    if (value && (status = check_key_value(key, value, reterr)))
        return status;
    *ret_value = value;
    return PEG_OK;
}

/* ---- limits --------------------------------------------------------------------- */

/* Values inside each other: 1 for a scalar. Stops counting beyond the limit. */
static size_t depth_of(const peg_json *value)
{
    const peg_json *ends[PEG_LIMIT_BAG_DEPTH + 1];
    const peg_json *end = peg_json_next(value);
    size_t depth = 0;
    size_t deepest = 1;

    for (const peg_json *at = value; at < end && deepest <= PEG_LIMIT_BAG_DEPTH; at++) {
        while (depth && at >= ends[depth - 1])
            depth--;
        if (depth + 1 > deepest)
            deepest = depth + 1;
        if (at->kind >= PEG_JSON_ARRAY && depth <= PEG_LIMIT_BAG_DEPTH)
            ends[depth++] = peg_json_next(at);
    }
    return deepest;
}

static peg_status too_large(peg_error *reterr, peg_str id, const char *what, int max)
{
    return peg__fail(reterr, PEG_ELIMIT, "E_BAG_TOO_LARGE", "'%.*s': %s, at most %d",
                     (int)(id.len < 80 ? id.len : 80), id.ptr, what, max);
}

/* A list of a thousand tools is put on every turn that is run with them: it is walked once. */
static unsigned depth_once(struct peg__shared *value)
{
    unsigned depth = atomic_load_explicit(&value->depth, memory_order_relaxed);

    if (!depth) {
        depth = (unsigned)depth_of(peg__shared_root(value));
        atomic_store_explicit(&value->depth, depth, memory_order_relaxed);
    }
    return depth;
}

static peg_status check_value_size(peg_str id, struct peg__shared *value, peg_error *reterr)
{
    if (depth_once(value) > PEG_LIMIT_BAG_DEPTH)
        return too_large(reterr, id, "the value nests too deep", PEG_LIMIT_BAG_DEPTH);
    return PEG_OK;
}

static peg_status check_size(const struct entry *entries, size_t n, peg_error *reterr)
{
    size_t n_bytes = 0;

    if (n > PEG_LIMIT_BAG_KEYS)
        return too_large(reterr, entries[n - 1].id, "the bag has too many keys",
                         PEG_LIMIT_BAG_KEYS);
    for (size_t i = 0; i < n; i++) {
        n_bytes += peg_json_doc_bytes(entries[i].value->doc);
        if (n_bytes > PEG_LIMIT_BAG_BYTES)
            return too_large(reterr, entries[i].id, "the bag has too many bytes",
                             PEG_LIMIT_BAG_BYTES);
    }
    return PEG_OK;
}

/* ---- changing ------------------------------------------------------------------- */

static bool is_id_of(const peg_key *key, peg_str id)
{
    if (peg__str_is(id, key->id))
        return true;
    for (size_t i = 0; i < key->n_older; i++) {
        if (peg__str_is(id, key->older[i].id))
            return true;
    }
    return false;
}

/* The entries of a bag without those of the key and, if there is a value, with it in its place. */
static peg_status replace(const peg_bag *bag, const peg_key *key, struct peg__shared *value,
                          peg_bag **ret_bag, peg_error *reterr)
{
    const size_t len = peg_bag_len(bag);
    const struct entry added = {peg__str(key->id), value};
    struct entry *entries = peg__alloc((len + 1) * sizeof(*entries));
    bool is_added = !value;
    size_t n = 0;
    peg_status status = PEG_OK;

    if (!entries)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < len; i++) {
        if (is_id_of(key, bag->entries[i].id))
            continue;
        if (!is_added && peg__str_compare(added.id, bag->entries[i].id) < 0) {
            entries[n++] = added;
            is_added = true;
        }
        entries[n++] = bag->entries[i];
    }
    if (!is_added)
        entries[n++] = added;
    if (value)
        status = check_size(entries, n, reterr);
    if (!status)
        status = make(entries, n, ret_bag, reterr);
    peg__free(entries);
    return status;
}

peg_status peg__bag_with_shared(peg_bag *bag, const peg_key *key, struct peg__shared *shared,
                                peg_bag **ret_bag, peg_error *reterr)
{
    /* Refused here, where the caller gets the error, rather than when it is read back. */
    const peg_status status = check_value_size(peg__str(key->id), shared, reterr);

    return status ? status : replace(bag, key, shared, ret_bag, reterr);
}

/* Takes the document over. */
static peg_status with_doc(peg_bag *bag, const peg_key *key, peg_json_doc *doc, peg_bag **ret_bag,
                           peg_error *reterr)
{
    struct peg__shared *shared = peg__shared_new(doc);
    peg_status status;

    if (!shared)
        return peg__fail_nomem(reterr);
    status = check_key_value(key, peg_json_root(doc), reterr);
    if (!status)
        status = check_value_size(peg__str(key->id), shared, reterr);
    if (!status)
        status = replace(bag, key, shared, ret_bag, reterr);
    peg__shared_unref(shared);
    return status;
}

peg_status peg_bag_with_built(peg_bag *bag, const peg_key *key, peg_json_builder *builder,
                              peg_bag **ret_bag, peg_error *reterr)
{
    peg_json_doc *doc;
    peg_error why;
    peg_status status = peg_key_check(key, reterr);

    if (status) {
        peg_json_builder_free(builder);
        return status;
    }
    status = peg_json_builder_finish(builder, &doc, &why);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status)
        return peg__fail_because(reterr, PEG_EINVAL, "E_KEY_VALUE", &why,
                                 "%s: the value for '%s' is not serializable",
                                 peg__bag_kind_name(key->bag), key->id);
    return with_doc(bag, key, doc, ret_bag, reterr);
}

peg_status peg_bag_with(peg_bag *bag, const peg_key *key, const peg_json *value, peg_bag **ret_bag,
                        peg_error *reterr)
{
    peg_json_builder *b;

    if (!value)
        return peg__fail(reterr, PEG_EINVAL, "E_KEY_VALUE",
                         "'%.64s': there is no value: give one, or take the key out",
                         key && key->id ? key->id : "");
    b = peg_json_builder_new();
    peg_json_add_copy(b, value);
    return peg_bag_with_built(bag, key, b, ret_bag, reterr);
}

static bool has_any(const peg_bag *bag, const peg_key *key)
{
    return find(bag, peg__str(key->id)) || find_older(bag, key);
}

peg_status peg_bag_without(peg_bag *bag, const peg_key *key, peg_bag **ret_bag, peg_error *reterr)
{
    const peg_status status = peg_key_check(key, reterr);

    if (status)
        return status;
    if (!has_any(bag, key)) {
        *ret_bag = peg_bag_ref(bag);
        return PEG_OK;
    }
    return replace(bag, key, NULL, ret_bag, reterr);
}

peg_status peg_bag_upgraded(peg_bag *bag, const peg_key *key, peg_bag **ret_bag, peg_error *reterr)
{
    const peg_key_older *older;
    const peg_json *old;
    peg_json_builder *b;
    peg_error why = {.status = PEG_EHOST, .code = "E_KEY_UPGRADE", .cause = ""};
    peg_status status = peg_key_check(key, reterr);

    if (status)
        return status;
    older = find(bag, peg__str(key->id)) ? NULL : find_older(bag, key);
    if (!older) {
        *ret_bag = peg_bag_ref(bag);
        return PEG_OK;
    }
    old = peg_bag_find(bag, peg__str(older->id));
    b = peg_json_builder_new();
    if (!older->upgrade)
        peg_json_add_copy(b, old);
    else if (older->upgrade(old, b, &why)) {
        peg_json_builder_free(b);
        return peg__fail_because(reterr, PEG_EHOST, "E_KEY_UPGRADE", &why,
                                 "'%s' cannot be made '%s'", older->id, key->id);
    }
    return peg_bag_with_built(bag, key, b, ret_bag, reterr);
}

/* ---- files ---------------------------------------------------------------------- */

static peg_status fail_member(peg_str id, const char *why, peg_error *reterr)
{
    struct peg__buf where = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__json_pointer_push(id, &where);
    peg__fail(reterr, PEG_EPARSE, "E_TURN_FORMAT", "'%.*s': %s", (int)(id.len < 80 ? id.len : 80),
              id.ptr, why);
    peg__error_where(reterr, peg__buf_view(&where));
    peg__buf_free(&where);
    return PEG_EPARSE;
}

static int by_id(const void *a, const void *b)
{
    return peg__str_compare(((const struct entry *)a)->id, ((const struct entry *)b)->id);
}

static peg_status read_member(const peg_json *key, bool is_strict, struct entry *ret_entry,
                              peg_error *reterr)
{
    const peg_str id = peg_json_str(key);
    peg_status status;

    if (id.len > PEG_LIMIT_FOREIGN_KEY_BYTES)
        return fail_member(id, "the key is longer than 1024 bytes", reterr);
    if (is_strict && !peg__key_id_is_canonical(id))
        return fail_member(id, "is no key: write namespace.slug@vN", reterr);
    *ret_entry = (struct entry){.id = id};
    status = peg__shared_copy(key + 1, &ret_entry->value, reterr);
    return status ? status : check_value_size(id, ret_entry->value, reterr);
}

peg_status peg__bag_from_json(const peg_json *object, bool is_strict, peg_bag **ret_bag,
                              peg_error *reterr)
{
    const size_t len = peg_json_len(object);
    struct entry *entries;
    size_t n = 0;
    peg_status status = PEG_OK;

    if (!len) {
        *ret_bag = NULL;
        return PEG_OK;
    }
    entries = peg__alloc_zero(len, sizeof(*entries));
    if (!entries)
        return peg__fail_nomem(reterr);
    PEG_JSON_EACH_MEMBER (object, key) {
        status = read_member(key, is_strict, &entries[n++], reterr);
        if (status)
            break;
    }
    if (!status) {
        qsort(entries, n, sizeof(*entries), by_id);
        status = check_size(entries, n, reterr);
    }
    if (!status)
        status = make(entries, n, ret_bag, reterr);
    for (size_t i = 0; i < n; i++)
        peg__shared_unref(entries[i].value);
    peg__free(entries);
    return status;
}

/* ---- the library's own ---------------------------------------------------------- */

#define OLDER(name, text) static const peg_key_older name[] = {{.id = (text)}}

OLDER(older_definitions, "geppetto.tool_definitions@v1");
OLDER(older_config, "geppetto.tool_config@v1");
OLDER(older_session, "geppetto.session_id@v1");
OLDER(older_inference, "geppetto.inference_id@v1");
OLDER(older_result, "geppetto.inference_result@v1");
OLDER(older_middleware, "geppetto.middleware@v1");

#define KEY(kind, name, kind_of_value, former)                                                     \
    {                                                                                              \
        .bag = (kind), .id = (name), .type = (kind_of_value), .older = (former), .n_older = 1      \
    }

const peg_key peg_key_tool_definitions =
    KEY(PEG_BAG_DATA, "pegboard.tool_definitions@v1", PEG_KEY_ARRAY, older_definitions);
const peg_key peg_key_tool_config =
    KEY(PEG_BAG_DATA, "pegboard.tool_config@v1", PEG_KEY_OBJECT, older_config);
const peg_key peg_key_session_id =
    KEY(PEG_BAG_METADATA, "pegboard.session_id@v1", PEG_KEY_STRING, older_session);
const peg_key peg_key_inference_id =
    KEY(PEG_BAG_METADATA, "pegboard.inference_id@v1", PEG_KEY_STRING, older_inference);
const peg_key peg_key_inference_result =
    KEY(PEG_BAG_METADATA, "pegboard.inference_result@v1", PEG_KEY_OBJECT, older_result);
const peg_key peg_key_calls_started = {
    .bag = PEG_BAG_METADATA, .id = "pegboard.calls_started@v1", .type = PEG_KEY_STRINGS};
const peg_key peg_key_block_inference =
    KEY(PEG_BAG_BLOCK, "pegboard.inference_result@v1", PEG_KEY_OBJECT, older_result);
const peg_key peg_key_middleware =
    KEY(PEG_BAG_BLOCK, "pegboard.middleware@v1", PEG_KEY_STRING, older_middleware);
const peg_key peg_key_gemini_thought = {
    .bag = PEG_BAG_BLOCK, .id = "gemini.thought_signature@v1", .type = PEG_KEY_STRING};

const peg_key *const peg__own_keys[] = {
    &peg_key_tool_definitions, &peg_key_tool_config,
    &peg_key_session_id,       &peg_key_inference_id,
    &peg_key_inference_result, &peg_key_calls_started,
    &peg_key_block_inference,  &peg_key_middleware,
    &peg_key_gemini_thought,   NULL,
};
