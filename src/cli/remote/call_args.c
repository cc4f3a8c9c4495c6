/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/remote/remote.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/cli.h"
#include "pegboard/json.h"
#include "json/json.h"

/* ---- which types a schema allows ---- */

/* A set of these; 0: the schema does not say. */
enum {
    T_NULL = 1 << 0,
    T_BOOLEAN = 1 << 1,
    T_INTEGER = 1 << 2,
    T_NUMBER = 1 << 3,
    T_STRING = 1 << 4,
    T_ARRAY = 1 << 5,
    T_OBJECT = 1 << 6,
};

static const struct {
    const char *name;
    unsigned type;
} type_names[] = {
    {"null", T_NULL},     {"boolean", T_BOOLEAN}, {"integer", T_INTEGER}, {"number", T_NUMBER},
    {"string", T_STRING}, {"array", T_ARRAY},     {"object", T_OBJECT},
};

enum { N_TYPES = sizeof(type_names) / sizeof(type_names[0]) };

static unsigned type_named(const peg_json *name)
{
    for (size_t i = 0; i < N_TYPES && peg_json_kind_of(name) == PEG_JSON_STRING; i++) {
        if (peg__str_is(peg_json_str(name), type_names[i].name))
            return type_names[i].type;
    }
    return 0;
}

static unsigned type_of(const peg_json *value)
{
    switch (peg_json_kind_of(value)) {
    case PEG_JSON_NULL:
        return T_NULL;
    case PEG_JSON_BOOL:
        return T_BOOLEAN;
    case PEG_JSON_INTEGER:
        return T_INTEGER | T_NUMBER;
    case PEG_JSON_DECIMAL:
        return peg_json_is_whole(value) ? T_INTEGER | T_NUMBER : T_NUMBER;
    case PEG_JSON_STRING:
        return T_STRING;
    case PEG_JSON_ARRAY:
        return T_ARRAY;
    case PEG_JSON_OBJECT:
        break;
    }
    return T_OBJECT;
}

/* Schemas that are still to be looked at: a few, since this only guesses what was meant. */
struct work {
    const peg_json *root;
    const peg_json *items[32];
    size_t n;
    size_t n_seen; /* bounds references in circles */
};

static void push_schema(struct work *work, const peg_json *schema)
{
    if (schema && work->n < sizeof(work->items) / sizeof(work->items[0]))
        work->items[work->n++] = schema;
}

static void push_all(struct work *work, const peg_json *schemas)
{
    if (!schemas || peg_json_kind_of(schemas) != PEG_JSON_ARRAY)
        return;
    PEG_JSON_EACH_ITEM (schemas, schema)
        push_schema(work, schema);
}

/* A reference within the document, "#/$defs/city". */
static const peg_json *follow_ref(const peg_json *root, const peg_json *schema)
{
    const peg_json *ref = peg_json_get(schema, "$ref");
    const peg_json *found = NULL;
    peg_str pointer;

    if (!ref || peg_json_kind_of(ref) != PEG_JSON_STRING)
        return NULL;
    pointer = peg_json_str(ref);
    if (pointer.len == 0 || pointer.ptr[0] != '#' ||
        peg_json_pointer(root, peg__str_from(pointer, 1), &found, NULL))
        return NULL;
    return found;
}

static unsigned types_here(const peg_json *schema)
{
    const peg_json *type = peg_json_get(schema, "type");
    const peg_json *fixed = peg_json_get(schema, "const");
    const peg_json *choice = peg_json_get(schema, "enum");
    unsigned types = fixed ? type_of(fixed) : 0;

    if (type && peg_json_kind_of(type) == PEG_JSON_ARRAY) {
        PEG_JSON_EACH_ITEM (type, item)
            types |= type_named(item);
        return types;
    }
    if (type)
        return type_named(type);
    if (choice && peg_json_kind_of(choice) == PEG_JSON_ARRAY) {
        PEG_JSON_EACH_ITEM (choice, item)
            types |= type_of(item);
    }
    return types;
}

static unsigned types_of(const peg_json *root, const peg_json *schema)
{
    enum { MOST = 256 };
    struct work work = {.root = root};
    unsigned types = 0;

    push_schema(&work, schema);
    while (work.n && work.n_seen++ < MOST) {
        const peg_json *now = work.items[--work.n];

        types |= types_here(now);
        push_schema(&work, follow_ref(root, now));
        push_all(&work, peg_json_get(now, "anyOf"));
        push_all(&work, peg_json_get(now, "oneOf"));
        push_all(&work, peg_json_get(now, "allOf"));
    }
    return types;
}

/* The schema behind its references, for a look at its members. */
static const peg_json *resolve_refs(const peg_json *root, const peg_json *schema)
{
    enum { MOST = 16 };

    for (int i = 0; schema && i < MOST; i++) {
        const peg_json *next = follow_ref(root, schema);

        if (!next)
            break;
        schema = next;
    }
    return schema;
}

/* Of a schema that may be missing. */
static const peg_json *items_of(const peg_json *root, const peg_json *schema)
{
    const peg_json *behind = resolve_refs(root, schema);

    return behind ? peg_json_get(behind, "items") : NULL;
}

/* ---- values ---- */

struct pair {
    peg_str key;
    const char *value;
    bool is_json; /* key:=JSON */
};

static peg_status split_pair(const char *text, struct pair *ret_pair, peg_error *reterr)
{
    const char *equals = strchr(text, '=');

    if (!equals || equals == text || (equals == text + 1 && *text == ':'))
        return peg__fail(reterr, PEG_EINVAL, "E_ARGUMENT",
                         "'%.80s' is no argument: write key=value, or key:=JSON", text);
    ret_pair->is_json = equals[-1] == ':';
    ret_pair->key = peg__strn(text, (size_t)(equals - text) - ret_pair->is_json);
    ret_pair->value = equals + 1;
    return PEG_OK;
}

static peg_status load_file(const char *path, struct peg__buf *ret_text, peg_error *reterr)
{
    const peg_status status = cli_read_file(path, ret_text, reterr);

    peg__buf_puts(ret_text, ""); /* ends it with a NUL, which reading does not */
    if (!status && ret_text->status)
        return peg__fail_nomem(reterr);
    return status ? peg__fail_because(reterr, status, "E_ARGUMENT", reterr, "'%.80s'",
                                      cli_file_label(path))
                  : PEG_OK;
}

static peg_status load_text(const char *text, struct peg__buf *ret_text, peg_error *reterr)
{
    peg__buf_puts(ret_text, text);
    return ret_text->status ? peg__fail_nomem(reterr) : PEG_OK;
}

/* @FILE, @- and @@TEXT, or itself. An error shows how to write a text that begins with @. */
static peg_status load_value(const struct pair *pair, struct peg__buf *ret_text, peg_error *reterr)
{
    const char *value = pair->value;
    const int key_len = (int)(pair->key.len < 80 ? pair->key.len : 80);
    peg_status status;
    size_t len;

    if (value[0] != '@')
        return load_text(value, ret_text, reterr);
    if (value[1] == '@')
        return load_text(value + 1, ret_text, reterr);
    status = load_file(value + 1, ret_text, reterr);
    if (status != PEG_ENOTFOUND || !reterr)
        return status;
    len = strlen(reterr->message);
    snprintf(reterr->message + len, sizeof(reterr->message) - len,
             "; for the text itself write %.*s=@@%.40s", key_len, pair->key.ptr, value + 1);
    return status;
}

static void name_types(unsigned types, char *ret_names, size_t size)
{
    size_t len = 0;

    ret_names[0] = '\0';
    for (size_t i = 0; i < N_TYPES; i++) {
        if (!(types & type_names[i].type) || len + 16 > size)
            continue;
        len += (size_t)snprintf(ret_names + len, size - len, "%s%s", len ? " or " : "",
                                type_names[i].name);
    }
}

struct building {
    const peg_json *root; /* of the schema */
    peg_json_builder *out;
    peg_error *reterr;
};

static peg_status add_json(struct building *b, const struct pair *pair, peg_str text)
{
    peg_json_doc *doc = NULL;
    peg_status status = peg_json_parse(text, &peg__json_refuse_duplicates, &doc, b->reterr);

    if (status)
        return peg__fail_because(b->reterr, status, "E_ARGUMENT", b->reterr,
                                 "what stands behind %.*s:= is no JSON",
                                 (int)(pair->key.len < 80 ? pair->key.len : 80), pair->key.ptr);
    peg_json_add_copy(b->out, peg_json_root(doc));
    peg_json_doc_free(doc);
    return PEG_OK;
}

/* If it is JSON of one of these types (any, for none), other than a string. PEG_ENOMEM. */
static peg_status add_if_fits(struct building *b, unsigned types, peg_str text, bool *ret_fits)
{
    peg_json_doc *doc = NULL;
    const peg_status status = peg_json_parse(text, NULL, &doc, NULL);
    unsigned type;

    *ret_fits = false;
    if (status)
        return status == PEG_ENOMEM ? peg__fail_nomem(b->reterr) : PEG_OK;
    type = type_of(peg_json_root(doc));
    *ret_fits = type != T_STRING && (!types || (types & type));
    if (*ret_fits)
        peg_json_add_copy(b->out, peg_json_root(doc));
    peg_json_doc_free(doc);
    return PEG_OK;
}

static peg_status fail_type(struct building *b, const struct pair *pair, unsigned types)
{
    char wanted[96];

    name_types(types, wanted, sizeof(wanted));
    return peg__fail(
        b->reterr, PEG_EINVAL, "E_VALIDATION", "%.*s is '%.60s', but the tool takes %s there",
        (int)(pair->key.len < 80 ? pair->key.len : 80), pair->key.ptr, pair->value, wanted);
}

/* One value of these types; *ret_fits is false if it is of none of them. */
static peg_status add_one(struct building *b, unsigned types, peg_str text, bool *ret_fits)
{
    peg_status status = add_if_fits(b, types, text, ret_fits);

    if (status || *ret_fits || (types && !(types & T_STRING)))
        return status;
    peg_json_add_string(b->out, text);
    *ret_fits = true;
    return PEG_OK;
}

static peg_status add_text_value(struct building *b, const struct pair *pair,
                                 const peg_json *schema, peg_str text)
{
    const unsigned types = types_of(b->root, schema);
    const unsigned item_types = types_of(b->root, items_of(b->root, schema));
    bool fits;
    peg_status status = add_one(b, types, text, &fits);

    if (status || fits)
        return status;
    if (!(types & T_ARRAY))
        return fail_type(b, pair, types);
    peg_json_open_array(b->out);
    status = add_one(b, item_types, text, &fits);
    if (!status && !fits)
        return fail_type(b, pair, item_types);
    peg_json_close(b->out);
    return status;
}

static peg_status add_value(struct building *b, const struct pair *pair, const peg_json *schema)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_JSON_BYTES);
    peg_status status = load_value(pair, &text, b->reterr);

    if (!status && pair->is_json)
        status = add_json(b, pair, peg__buf_view(&text));
    else if (!status)
        status = add_text_value(b, pair, schema, peg__buf_view(&text));
    peg__buf_free(&text);
    return status;
}

/* ---- all of them ---- */

/* The value of a key: that of its only pair, or an array of all that have it. */
static peg_status add_key(struct building *b, const struct pair *pairs, size_t n, size_t first)
{
    const peg_json *properties = peg_json_get(resolve_refs(b->root, b->root), "properties");
    const peg_str key = pairs[first].key;
    const peg_json *schema =
        properties ? resolve_refs(b->root, peg_json_get_str(properties, key)) : NULL;
    peg_status status = PEG_OK;
    size_t n_same = 0;

    for (size_t i = first; i < n; i++)
        n_same += peg__str_eq(pairs[i].key, key);
    peg_json_add_key(b->out, key);
    if (n_same == 1)
        return add_value(b, &pairs[first], schema);
    peg_json_open_array(b->out);
    for (size_t i = first; !status && i < n; i++) {
        if (peg__str_eq(pairs[i].key, key))
            status = add_value(b, &pairs[i], items_of(b->root, schema));
    }
    peg_json_close(b->out);
    return status;
}

static bool is_first_of_key(const struct pair *pairs, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (peg__str_eq(pairs[i].key, pairs[at].key))
            return false;
    }
    return true;
}

static peg_status build_args(struct building *b, const struct pair *pairs, size_t n,
                             char **ret_json)
{
    peg_json_doc *doc = NULL;
    peg_status status = PEG_OK;

    b->out = peg_json_builder_new();
    peg_json_open_object(b->out);
    for (size_t i = 0; !status && i < n; i++) {
        if (is_first_of_key(pairs, i))
            status = add_key(b, pairs, n, i);
    }
    if (status) {
        peg_json_builder_free(b->out);
        return status;
    }
    peg_json_close(b->out);
    status = peg_json_builder_finish(b->out, &doc, b->reterr);
    if (!status)
        status = peg_json_write(peg_json_root(doc), PEG_JSON_COMPACT, ret_json, NULL, b->reterr);
    peg_json_doc_free(doc);
    return status;
}

/* A second value from standard input would be empty. */
static peg_status check_stdin(const struct pair *pairs, size_t n_pairs, peg_error *reterr)
{
    size_t n = 0;

    for (size_t i = 0; i < n_pairs; i++)
        n += pairs[i].value[0] == '@' && cli_is_stdin(pairs[i].value + 1);
    return n > 1 ? peg__fail(reterr, PEG_EINVAL, "E_ARGUMENT",
                             "standard input can be read only once: write @- for one value, and "
                             "@FILE for others")
                 : PEG_OK;
}

peg_status call_args_build(peg_str schema, const char *const *pairs, size_t n_pairs,
                           char **ret_json, peg_error *reterr)
{
    PEG_CLEANUP(peg__freep) struct pair *split_pairs = NULL;
    struct building b = {.reterr = reterr};
    peg_json_doc *doc = NULL;
    peg_status status = PEG_OK;

    split_pairs = peg__alloc_zero(n_pairs + 1, sizeof(*split_pairs));
    if (!split_pairs)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; !status && i < n_pairs; i++)
        status = split_pair(pairs[i], &split_pairs[i], reterr);
    if (!status)
        status = check_stdin(split_pairs, n_pairs, reterr);
    if (!status)
        status = peg_json_parse(schema.len ? schema : peg__str("{}"), NULL, &doc, reterr);
    if (status)
        return status;
    b.root = peg_json_root(doc);
    status = build_args(&b, split_pairs, n_pairs, ret_json);
    peg_json_doc_free(doc);
    return status;
}

/* The place in the file goes before the message. */
static peg_status fail_in_file(const char *path, peg_status status, peg_error *reterr)
{
    peg_error why;

    if (!reterr || !reterr->line)
        return status;
    why = *reterr;
    return peg__fail(reterr, status, why.code, "%.100s:%u:%u: %s", cli_file_label(path), why.line,
                     why.column, why.message);
}

peg_status call_args_read(const char *given, char **ret_json, peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_JSON_BYTES);
    const char *path = cli_is_stdin(given) ? given : NULL;
    peg_json_doc *doc = NULL;
    peg_status status;

    if (given[0] == '@')
        path = given + 1;
    status = path ? load_file(path, &text, reterr) : load_text(given, &text, reterr);
    if (!status) {
        status = peg_json_parse(peg__buf_view(&text), &peg__json_refuse_duplicates, &doc, reterr);
        if (status && path)
            fail_in_file(path, status, reterr);
    }
    peg_json_doc_free(doc);
    if (!status)
        return peg__buf_take(&text, ret_json, NULL, reterr);
    peg__buf_free(&text);
    return status;
}
