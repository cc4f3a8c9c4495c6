/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a JSON artifact can be asked. A JSON or JSON5 text is one record; JSON Lines have one for
 * each line that is not blank.
 *
 *   type    json, json5 or jsonl
 *   length  how many records
 *   keys    the names of the root's members, "(undefined)" if it is no object; of lines the names
 *           in all records that are objects, each once, where it first appears
 *   get     what a path finds, as a list: in the one record, or in all one after the other
 *   pluck   the same; both names are there because models look for either
 *   filter  the records in which a path finds anything, as a list
 *   slice   the records from start to before end, as a list; a text that is one record ignores
 *           the range
 *
 * Paths come from models: a step limit bounds each record, peg__query_check() all of them.
 */

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/artifact/query.h"
#include "pegboard/cleanup.h"
#include "json/json.h"

/* ---- records ----------------------------------------------------------------------------- */

/*
 * Finds out how an artifact is JSON: as a whole, line by line, or as JSON5. Lines are first parsed
 * one by one, into one document that is used again and again; then the text becomes one array, a
 * comma for each line end, and is parsed once more. So a million lines are one document.
 */

static const char blanks[] = " \t\r";

struct peg__records *peg__records_free(struct peg__records *records)
{
    if (records)
        peg_json_doc_free(records->doc);
    peg__free(records);
    return NULL;
}

/* Takes over the document, in either case. */
static peg_status finish(enum peg__json_format format, peg_json_doc *doc,
                         struct peg__records **ret_records, peg_error *reterr)
{
    struct peg__records *records = peg__alloc(sizeof(*records));
    const peg_json *root;

    if (!records) {
        peg_json_doc_free(doc);
        return peg__fail_nomem(reterr);
    }
    peg__json_doc_trim(doc);
    root = peg_json_root(doc);
    *records = (struct peg__records){
        .format = format, .doc = doc, .first = root, .end = peg_json_next(root), .n = 1};
    if (format == PEG__FORMAT_LINES) {
        records->first = root + 1;
        records->n = peg_json_len(root);
    }
    *ret_records = records;
    return PEG_OK;
}

/* ---- lines ------------------------------------------------------------------------------ */

/* The first line of *rest without its LF; *rest becomes what follows. */
static peg_str take_line(peg_str *rest)
{
    const char *end = memchr(rest->ptr, '\n', rest->len);
    const peg_str line = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};

    *rest = peg__str_from(*rest, end ? line.len + 1 : line.len);
    return line;
}

/* Is each line that is not blank a JSON text? */
static peg_status check_lines(peg_str text, peg_error *reterr)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;

    for (unsigned n = 1; text.len; n++) {
        const peg_str line = take_line(&text);
        peg_status status = PEG_OK;

        if (peg__str_span(line, blanks) < line.len)
            status = doc ? peg_json_reparse(doc, line, NULL, reterr)
                         : peg_json_parse(line, NULL, &doc, reterr);
        if (status) {
            reterr->line = n;
            return status;
        }
    }
    return PEG_OK;
}

static peg_status read_lines(peg_str text, struct peg__records **ret_records, peg_error *reterr)
{
    const peg_json_options options = {PEG_JSON_OPTIONS_INIT, .max_bytes = text.len + 2,
                                      .max_depth = PEG_LIMIT_JSON_DEPTH + 1};
    struct peg__buf array = PEG__BUF(text.len + 2);
    peg_json_doc *doc = NULL;
    peg_status status = check_lines(text, reterr);

    if (status)
        return status;
    peg__buf_putc(&array, '[');
    while (text.len) {
        const peg_str line = take_line(&text);

        if (peg__str_span(line, blanks) == line.len)
            continue;
        if (array.len > 1)
            peg__buf_putc(&array, ',');
        peg__buf_str(&array, line);
    }
    peg__buf_putc(&array, ']');
    status = array.status ? peg__fail_nomem(reterr)
                          : peg_json_parse(peg__buf_view(&array), &options, &doc, reterr);
    peg__buf_free(&array);
    return status ? status : finish(PEG__FORMAT_LINES, doc, ret_records, reterr);
}

/* ---- which of them ------------------------------------------------------------------------ */

static peg_status read_json(peg_str text, struct peg__records **ret_records, peg_error *reterr)
{
    peg_json_doc *doc = NULL;
    const peg_status status = peg_json_parse(text, NULL, &doc, reterr);

    return status ? status : finish(PEG__FORMAT_JSON, doc, ret_records, reterr);
}

static peg_status read_json5(peg_str text, struct peg__records **ret_records, peg_error *reterr)
{
    peg_json_doc *doc = NULL;
    const peg_status status = peg__json5_parse(text, NULL, &doc, reterr);

    return status ? status : finish(PEG__FORMAT_JSON5, doc, ret_records, reterr);
}

typedef peg_status (*read_fn)(peg_str text, struct peg__records **ret_records, peg_error *reterr);

enum { N_FORMATS = 3 };

/* In this order: what is strict JSON is never taken for something else. */
static const read_fn readers[N_FORMATS] = {read_json, read_lines, read_json5};

static peg_status try_each(peg_str text, struct peg__records **ret_records, peg_error *reterr)
{
    peg_error why[N_FORMATS];

    for (size_t i = 0; i < N_FORMATS; i++) {
        const peg_status status = readers[i](text, ret_records, &why[i]);

        if (status && status != PEG_EPARSE && reterr)
            *reterr = why[i];
        if (status != PEG_EPARSE)
            return status;
    }
    return peg__fail(reterr, PEG_EPARSE, "E_JSON_SYNTAX",
                     "the artifact is not JSON (line %u, column %u: %.80s), not JSON Lines (see "
                     "line %u) and not JSON5 (see line %u, column %u); read it with artifact_head, "
                     "artifact_cat or artifact_grep",
                     why[0].line, why[0].column, why[0].message, why[1].line, why[2].line,
                     why[2].column);
}

peg_status peg__records_new(peg_str text, struct peg__records **ret_records, peg_error *reterr)
{
    static const peg_str bom = PEG_LIT("\xEF\xBB\xBF");
    peg_str rest;

    if (peg__str_starts(text, bom))
        text = peg__str_from(text, bom.len);
    for (rest = text; rest.len && strchr(" \t\r\n", rest.ptr[0]) && rest.ptr[0];)
        rest = peg__str_from(rest, 1);
    if (rest.len == 0)
        return peg__fail(reterr, PEG_EPARSE, "E_JSON_SYNTAX",
                         "the artifact is empty, so there is no JSON to ask about");
    return try_each(text, ret_records, reterr);
}

enum { RECORDS_PER_CHECK = 64 };

static const char narrower[] = "write a narrower path, or read the records one by one with "
                               "artifact_json_slice";

static peg_status records_of(const struct peg__query *query, const struct peg__records **ret,
                             peg_error *reterr)
{
    void *parsed;
    const peg_status status = peg_artifact_parsed(query->artifact, &parsed, reterr);

    if (status == PEG_OK)
        *ret = parsed;
    return status;
}

static peg_status check_now_and_then(const struct peg__query *query, size_t i, peg_error *reterr)
{
    return i % RECORDS_PER_CHECK ? PEG_OK : peg__query_check(query, reterr);
}

/* ---- what it is --------------------------------------------------------------------------- */

static peg_status type(const struct peg__query *query, struct peg__buf *out, peg_error *reterr)
{
    static const char *const names[] = {
        [PEG__FORMAT_JSON] = "json",
        [PEG__FORMAT_LINES] = "jsonl",
        [PEG__FORMAT_JSON5] = "json5",
    };
    const struct peg__records *records;
    const peg_status status = records_of(query, &records, reterr);

    if (status == PEG_OK)
        peg__buf_puts(out, names[records->format]);
    return status;
}

static peg_status length(const struct peg__query *query, struct peg__buf *out, peg_error *reterr)
{
    const struct peg__records *records;
    const peg_status status = records_of(query, &records, reterr);

    if (status == PEG_OK)
        peg__buf_printf(out, "%zu", records->n);
    return status;
}

/* ---- keys --------------------------------------------------------------------------------- */

static peg_status add_keys(const peg_json *object, struct peg__map *seen,
                           struct peg__query_list *keys, peg_error *reterr)
{
    PEG_JSON_EACH_MEMBER (object, key) {
        peg_status status = peg__map_add(seen, peg_json_str(key), NULL);

        if (status == PEG_EEXISTS)
            continue;
        if (status == PEG_ENOMEM)
            return peg__fail_nomem(reterr);
        status = peg__query_list_add(keys, key, reterr);
        if (status)
            return status;
    }
    return PEG_OK;
}

static peg_status collect_keys(const struct peg__query *query, const struct peg__records *records,
                               struct peg__query_list *keys, peg_error *reterr)
{
    struct peg__map seen = PEG__MAP(PEG_LIMIT_QUERY_VALUES);
    peg_status status = PEG_OK;
    size_t i = 0;

    PEG__RECORDS_EACH(records, record)
    {
        status = check_now_and_then(query, i++, reterr);
        if (!status && record->kind == PEG_JSON_OBJECT)
            status = add_keys(record, &seen, keys, reterr);
        if (status || keys->is_cut)
            break;
    }
    peg__map_free(&seen);
    return status;
}

static bool has_object(const struct peg__records *records)
{
    PEG__RECORDS_EACH(records, record)
    {
        if (record->kind == PEG_JSON_OBJECT)
            return true;
    }
    return false;
}

static peg_status keys(const struct peg__query *query, struct peg__buf *out, peg_error *reterr)
{
    const struct peg__records *records;
    struct peg__query_list list = {0};
    peg_status status = records_of(query, &records, reterr);

    if (status)
        return status;
    if (!has_object(records)) {
        peg__query_render(NULL, out);
        return PEG_OK;
    }
    status = collect_keys(query, records, &list, reterr);
    if (status == PEG_OK)
        peg__query_render_list(&list, "find members with artifact_json_get and a path", out);
    peg__query_list_free(&list);
    return status;
}

/* ---- paths ---------------------------------------------------------------------------------- */

static peg_status read_path(const struct peg__query *query, peg_json_path **ret_path,
                            peg_error *reterr)
{
    peg_error why;
    const peg_status status = peg_json_path_new(peg__query_string(query, "path"), ret_path, &why);

    if (status == PEG_OK)
        return PEG_OK;
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return peg__fail(reterr, status, why.code,
                     "'path' cannot be used: %s; write JSONPath such as $.user.name, $..id or "
                     "$.items[?(@.price < 10)]",
                     why.message);
}

static bool is_code(const peg_error *error, const char *code)
{
    return strcmp(error->code, code) == 0;
}

static peg_status fail_find(const peg_error *why, peg_error *reterr)
{
    if (why->status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return peg__fail(reterr, why->status, why->code, "%s", why->message);
}

/* Adds what the path finds in one record; a record that alone finds too much fails. */
static peg_status find_in(const peg_json_path *path, const peg_json *record,
                          struct peg__query_list *list, peg_error *reterr)
{
    const size_t left = PEG_LIMIT_QUERY_VALUES - list->len;
    peg_json_nodes nodes;
    peg_error why;
    peg_status status =
        left ? peg_json_path_find(path, record, left, PEG_LIMIT_QUERY_STEPS, &nodes, &why)
             : PEG_ELIMIT;

    if (!left || (status && list->len && is_code(&why, "E_JSON_PATH_NODES"))) {
        list->is_cut = true;
        return PEG_OK;
    }
    if (status)
        return fail_find(&why, reterr);
    for (size_t i = 0; i < nodes.len && !status; i++)
        status = peg__query_list_add(list, nodes.items[i], reterr);
    peg_free(nodes.items);
    return status;
}

/* Adds the record if the path finds anything in it. */
static peg_status keep_if_found(const peg_json_path *path, const peg_json *record,
                                struct peg__query_list *list, peg_error *reterr)
{
    peg_json_nodes nodes = {0};
    peg_error why;
    const peg_status status =
        peg_json_path_find(path, record, 1, PEG_LIMIT_QUERY_STEPS, &nodes, &why);
    const bool found = status ? is_code(&why, "E_JSON_PATH_NODES") : nodes.len > 0;

    if (status == PEG_OK)
        peg_free(nodes.items);
    if (status && !found)
        return fail_find(&why, reterr);
    return found ? peg__query_list_add(list, record, reterr) : PEG_OK;
}

typedef peg_status (*record_fn)(const peg_json_path *path, const peg_json *record,
                                struct peg__query_list *list, peg_error *reterr);

static peg_status each_record(const struct peg__query *query, record_fn fn, struct peg__buf *out,
                              peg_error *reterr)
{
    PEG_CLEANUP(peg_json_path_freep) peg_json_path *path = NULL;
    const struct peg__records *records;
    struct peg__query_list list = {0};
    size_t i = 0;
    peg_status status;

    if ((status = read_path(query, &path, reterr)) ||
        (status = records_of(query, &records, reterr)))
        return status;
    PEG__RECORDS_EACH(records, record)
    {
        status = check_now_and_then(query, i++, reterr);
        if (!status)
            status = fn(path, record, &list, reterr);
        if (status || list.is_cut)
            break;
    }
    if (status == PEG_OK)
        peg__query_render_list(&list, narrower, out);
    peg__query_list_free(&list);
    return status;
}

static peg_status get(const struct peg__query *query, struct peg__buf *out, peg_error *reterr)
{
    return each_record(query, find_in, out, reterr);
}

static peg_status filter(const struct peg__query *query, struct peg__buf *out, peg_error *reterr)
{
    return each_record(query, keep_if_found, out, reterr);
}

static peg_status slice(const struct peg__query *query, struct peg__buf *out, peg_error *reterr)
{
    size_t start = peg__query_size(query, "start", 0);
    size_t end = peg__query_size(query, "end", SIZE_MAX);
    const struct peg__records *records;
    struct peg__query_list list = {0};
    size_t i = 0;
    peg_status status = records_of(query, &records, reterr);

    if (status)
        return status;
    if (records->format != PEG__FORMAT_LINES) {
        start = 0;
        end = 1;
    }
    PEG__RECORDS_EACH(records, record)
    {
        if (i >= end || list.is_cut || status)
            break;
        if (i++ >= start)
            status = peg__query_list_add(&list, record, reterr);
    }
    if (status == PEG_OK)
        peg__query_render_list(&list,
                               "ask for fewer records, or for parts with "
                               "artifact_json_get",
                               out);
    peg__query_list_free(&list);
    return status;
}

/* ---- the kind ----------------------------------------------------------------------------------
 */

PEG__DEFINE_QUERY(run_type, type)
PEG__DEFINE_QUERY(run_keys, keys)
PEG__DEFINE_QUERY(run_length, length)
PEG__DEFINE_QUERY(run_get, get)
PEG__DEFINE_QUERY(run_filter, filter)
PEG__DEFINE_QUERY(run_slice, slice)

#define PATH_ARGUMENT(description)                                                                 \
    "{\"path\":{\"type\":\"string\",\"description\":\"" description "\"}}"

static const peg_artifact_query queries[] = {
    {
        .name = "artifact_json_type",
        .description = "Return how a JSON artifact is written: json or json5 (one value) or jsonl "
                       "(one value a line).",
        .run = run_type,
    },
    {
        .name = "artifact_json_keys",
        .description = "Return the names of the members of a JSON artifact, one a line: of the "
                       "root object, or of all records of a jsonl artifact together. "
                       "\"(undefined)\" means that there is no object, such as in an array.",
        .run = run_keys,
    },
    {
        .name = "artifact_json_length",
        .description = "Return how many records a JSON artifact has: the lines of jsonl; a json or "
                       "json5 artifact is always one record, also if it is an array.",
        .run = run_length,
    },
    {
        .name = "artifact_json_get",
        .description = "Return all values that a JSONPath finds in a JSON artifact, as a list; in "
                       "jsonl the path is applied to each record. Use this to read a member, an "
                       "item or all items that satisfy a condition.",
        .properties = PATH_ARGUMENT("JSONPath (RFC 9535) such as $.user.name, $.items[0:5], $..id "
                                    "or $.items[?(@.price < 10)].name; $ is the whole value."),
        .required = "[\"path\"]",
        .run = run_get,
    },
    {
        .name = "artifact_json_filter",
        .description = "Return the whole records of a jsonl artifact in which a JSONPath finds "
                       "anything. A json artifact is one record: use artifact_json_get to filter "
                       "the items of its arrays.",
        .properties = PATH_ARGUMENT("JSONPath (RFC 9535), applied to each record, such as $.error "
                                    "(records that have it) or $[?(@.level == 'warn')] (records "
                                    "with a member or item like that); $ is the record."),
        .required = "[\"path\"]",
        .run = run_filter,
    },
    {
        .name = "artifact_json_slice",
        .description = "Return the records from start to before end of a jsonl artifact, counted "
                       "from 0. A json or json5 artifact is one record, which is returned whole: "
                       "use artifact_json_get with a path such as $[0:10] for a part of it.",
        .properties = "{\"start\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"First "
                      "record, counted from 0. Left out: from the first.\"},"
                      "\"end\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"Record to "
                      "stop before. Left out, or beyond the last: to the end.\"}}",
        .run = run_slice,
    },
    {
        .name = "artifact_json_pluck",
        .description = "Return one list of the values that a JSONPath finds in all records of a "
                       "JSON artifact, such as one member of every record.",
        .properties = PATH_ARGUMENT("JSONPath (RFC 9535), applied to each record, such as $.id or "
                                    "$..name; $ is the record."),
        .required = "[\"path\"]",
        .run = run_get,
    },
};

static peg_status parse_records(peg_artifact *artifact, void **ret_parsed, peg_error *reterr)
{
    struct peg__records *records = NULL;
    peg_str bytes;
    peg_status status = peg_artifact_bytes(artifact, &bytes, reterr);

    if (status == PEG_OK)
        status = peg__records_new(bytes, &records, reterr);
    if (status == PEG_OK)
        *ret_parsed = records;
    return status;
}

static void parsed_free(void *parsed)
{
    peg__records_free(parsed);
}

const peg_artifact_kind peg_artifact_json = {
    .name = "json",
    .queries = queries,
    .n_queries = sizeof(queries) / sizeof(*queries),
    .parse = parse_records,
    .parsed_free = parsed_free,
};
