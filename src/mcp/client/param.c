/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Arguments that travel as headers, too: those whose schema has x-mcp-header. Only a chain of
 * `properties` leads to such a mark; anywhere else it is a mistake of the server, and its tool is
 * left out.
 */

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include "base/error.h"
#include "base/text/str.h"
#include "mcp/client/internal.h"

#define MARK "x-mcp-header"

enum { MAX_PARAMS = 64 };

/* ---- reading a schema ---- */

struct marks {
    peg_str names[MAX_PARAMS];
    size_t n;     /* along properties */
    size_t n_all; /* anywhere */
    peg_error *reterr;
};

static peg_status reject_mark(const struct marks *m, const char *why)
{
    return peg__fail(m->reterr, PEG_EINVAL, "E_MCP_HEADER", "a " MARK " of its schema %s", why);
}

static bool is_token(peg_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (!peg__is_alnum(name.ptr[i]) &&
            (!name.ptr[i] || !strchr("!#$%&'*+-.^_`|~", name.ptr[i])))
            return false;
    }
    return name.len;
}

static bool is_one_of(peg_str word, const char *const *words)
{
    for (; *words; words++) {
        if (peg__str_is(word, *words))
            return true;
    }
    return false;
}

static peg_status take_mark(struct marks *m, const peg_json *property, const peg_json *mark)
{
    static const char *const types[] = {"string", "integer", "boolean", NULL};
    const peg_str name = peg_json_str(mark);

    if (peg_json_kind_of(mark) != PEG_JSON_STRING || !is_token(name))
        return reject_mark(m, "is no name of a header");
    if (!is_one_of(peg_json_str(peg_json_get(property, "type")), types))
        return reject_mark(m, "stands at what is no string, integer or boolean");
    for (size_t i = 0; i < m->n; i++) {
        if (m->names[i].len == name.len && !strncasecmp(m->names[i].ptr, name.ptr, name.len))
            return reject_mark(m, "is there twice");
    }
    if (m->n == MAX_PARAMS)
        return reject_mark(m, "is the 65th, and 64 are allowed");
    m->names[m->n++] = name;
    return PEG_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): PEG_LIMIT_MCP_PARAM_DEPTH */
static peg_status read_properties(struct marks *m, const peg_json *schema, unsigned depth)
{
    peg_status status = PEG_OK;

    if (depth > PEG_LIMIT_MCP_PARAM_DEPTH)
        return PEG_OK; /* a mark below it is counted, and missing here */
    PEG_JSON_EACH_MEMBER (peg_json_get(schema, "properties"), key) {
        const peg_json *mark = peg_json_get(key + 1, MARK);

        if (mark)
            status = take_mark(m, key + 1, mark);
        if (!status)
            status = read_properties(m, key + 1, depth + 1);
        if (status)
            return status;
    }
    return status;
}

/* `is_map`: its keys are names, not keywords. The parser bounds the nesting. */
/* NOLINTNEXTLINE(misc-no-recursion): the depth of JSON */
static void count_marks(struct marks *m, const peg_json *value, bool is_map)
{
    static const char *const maps[] = {"properties",  "patternProperties", "$defs",
                                       "definitions", "dependentSchemas",  NULL};
    static const char *const data[] = {"default", "const", "enum", "examples", NULL};

    PEG_JSON_EACH_ITEM (value, item)
        count_marks(m, item, false);
    PEG_JSON_EACH_MEMBER (value, key) {
        const peg_str name = peg_json_str(key);

        if (is_map) {
            count_marks(m, key + 1, false);
        } else if (!is_one_of(name, data)) {
            m->n_all += peg__str_is(name, MARK);
            count_marks(m, key + 1, is_one_of(name, maps));
        }
    }
}

peg_status mcp__check_params(const peg_json *schema, bool *ret_has_some, peg_error *reterr)
{
    struct marks m = {.reterr = reterr};
    peg_status status;

    count_marks(&m, schema, false);
    *ret_has_some = m.n_all > 0;
    if (!m.n_all)
        return PEG_OK;
    status = read_properties(&m, schema, 0);
    if (!status && m.n != m.n_all)
        status = reject_mark(&m, "stands where no chain of properties leads");
    return status;
}

/* ---- writing headers ---- */

static peg_status put_param(struct peg__buf *out, peg_str mark, const peg_json *value,
                            peg_error *reterr)
{
    const int64_t most = ((int64_t)1 << 53) - 1; /* what every JSON library keeps */
    char name[300];
    char digits[32];
    int64_t number = 0;
    peg_str text = {digits, 0};

    snprintf(name, sizeof(name), "Mcp-Param-%.*s", (int)mark.len, mark.ptr);
    if (peg_json_kind_of(value) == PEG_JSON_STRING) {
        text = peg_json_str(value);
    } else if (peg_json_is_number(value)) {
        if (!peg_json_int64(value, &number) || number > most || number < -most)
            return peg__fail(reterr, PEG_EINVAL, "E_MCP_HEADER",
                             "the argument for the header %s is beyond 9007199254740991", name);
        text.len = (size_t)snprintf(digits, sizeof(digits), "%" PRId64, number);
    } else {
        text = peg__str(peg_json_is_true(value) ? "true" : "false");
    }
    mcp__put_header(out, name, text);
    return PEG_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): PEG_LIMIT_MCP_PARAM_DEPTH, which mcp__check_params() keeps */
static peg_status put_params(struct peg__buf *out, const peg_json *schema, const peg_json *args,
                             peg_error *reterr)
{
    peg_status status = PEG_OK;

    if (peg_json_kind_of(args) != PEG_JSON_OBJECT)
        return PEG_OK;
    PEG_JSON_EACH_MEMBER (peg_json_get(schema, "properties"), key) {
        const peg_json *mark = peg_json_get(key + 1, MARK);
        const peg_json *value = peg_json_get_str(args, peg_json_str(key));

        if (!value || peg_json_kind_of(value) == PEG_JSON_NULL)
            continue;
        if (mark)
            status = put_param(out, peg_json_str(mark), value, reterr);
        if (!status)
            status = put_params(out, key + 1, value, reterr);
        if (status)
            return status;
    }
    return status;
}

peg_status mcp__put_params(struct peg__buf *out, const peg_json *schema, const peg_json *args,
                           peg_error *reterr)
{
    const peg_status status = put_params(out, schema, args, reterr);

    if (status || !out->status)
        return status;
    if (out->status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return peg__fail(reterr, PEG_ELIMIT, "E_MCP_LIMIT",
                     "the arguments that travel as headers have more than %d KiB: send less",
                     PEG_LIMIT_MCP_IMPORT_HEADER_BYTES >> 10);
}
