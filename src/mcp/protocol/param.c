/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Headers of arguments: a tool may say with `x-mcp-header` in the schema of an argument that HTTP
 * requests repeat it in Mcp-Param-{Name}, for what stands between client and server. A request
 * whose headers say something else than its arguments is refused.
 *
 * Clients leave tools out whose declarations break the rules. Of such a tool no header is checked,
 * as there is nothing that a client could go by.
 */

#include <string.h>
#include <strings.h>

#include "base/limits/mcp.h"
#include "base/text/str.h"
#include "mcp/protocol/internal.h"

enum { MAX_PARAMS = PEG_LIMIT_MCP_PARAMS };

struct param {
    peg_str name;
    const peg_json *value; /* that the arguments have; NULL: none */
};

struct params {
    const struct mcp_http *http;
    struct param params[MAX_PARAMS];
    size_t n;
    bool is_valid; /* all declarations, so far */
};

/* ---- declarations ---- */

/* RFC 9110, 5.6.2 */
static bool is_token(peg_str text)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];

        if (!peg__is_digit(c) && !((c | 32) >= 'a' && (c | 32) <= 'z') &&
            (!c || !strchr(others, c)))
            return false;
    }
    return text.len > 0;
}

static bool is_same_header(peg_str a, peg_str b)
{
    return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

static bool is_primitive(const peg_json *schema)
{
    const peg_str type = peg_json_str(peg_json_get(schema, "type"));

    return peg__str_is(type, "string") || peg__str_is(type, "integer") ||
           peg__str_is(type, "boolean");
}

static void add_param(struct params *params, const peg_json *schema, const peg_json *name,
                      const peg_json *value)
{
    const peg_str text = peg_json_str(name);

    if (!is_token(text) || !is_primitive(schema) || params->n == MAX_PARAMS)
        params->is_valid = false;
    for (size_t i = 0; i < params->n; i++) {
        if (is_same_header(params->params[i].name, text))
            params->is_valid = false;
    }
    if (params->is_valid)
        params->params[params->n++] = (struct param){text, value};
}

/* Only properties of properties can be declared: an argument has one place then. */
// NOLINTNEXTLINE(misc-no-recursion): as deep as a document may be, and each step goes one deeper
static void find_params(struct params *params, const peg_json *schema, const peg_json *args)
{
    const peg_json *properties = peg_json_get(schema, "properties");

    if (peg_json_kind_of(properties) != PEG_JSON_OBJECT)
        return;
    PEG_JSON_EACH_MEMBER (properties, key) {
        const peg_json *name = peg_json_get(key + 1, "x-mcp-header");
        const peg_json *value = peg_json_get_str(args, peg_json_str(key));

        if (name)
            add_param(params, key + 1, name, value);
        find_params(params, key + 1, value);
    }
}

/* ---- values ---- */

static bool is_plain(peg_str header)
{
    for (size_t i = 0; i < header.len; i++) {
        const unsigned char c = (unsigned char)header.ptr[i];

        if (c != '\t' && (c < ' ' || c > '~'))
            return false;
    }
    return true;
}

/* 42 and 42.0 are one; what a double cannot tell apart are two. */
static bool is_number_of(peg_str text, const peg_json *value)
{
    peg_json_doc *doc = NULL;
    const peg_json *number;
    bool is_equal;

    if (peg_json_parse(text, NULL, &doc, NULL))
        return false;
    number = peg_json_root(doc);
    is_equal = peg_json_is_number(number) && peg_json_compare_numbers(number, value) == 0;
    peg_json_doc_free(doc);
    return is_equal;
}

/* What can be no argument is refused as one, whatever its header says. */
static bool says_same(peg_str header, const peg_json *value)
{
    struct peg__buf bytes = PEG__BUF(PEG_LIMIT_MCP_MESSAGE_BYTES);
    peg_str text;
    bool is_same = is_plain(header) && mcp__decode_header(header, &bytes, &text);

    if (is_same && value->kind == PEG_JSON_STRING)
        is_same = peg__str_eq(text, peg_json_str(value));
    else if (is_same && peg_json_is_number(value))
        is_same = is_number_of(text, value);
    else if (is_same && value->kind == PEG_JSON_BOOL)
        is_same = peg__str_is(text, peg_json_is_true(value) ? "true" : "false");
    peg__buf_free(&bytes);
    return is_same;
}

/* The header of that name; *ret_n counts how often it came. */
static peg_str find_param_header(const struct mcp_http *http, peg_str name, size_t *ret_n)
{
    peg_str found = {"", 0};

    *ret_n = 0;
    for (size_t i = 0; i < http->n_params; i++) {
        if (!is_same_header(http->params[i].name, name))
            continue;
        found = http->params[i].value;
        (*ret_n)++;
    }
    return found;
}

/* NULL: nothing is wrong. */
static const char *find_header_fault(const struct mcp_http *http, const struct param *param)
{
    const bool has_value = param->value && param->value->kind != PEG_JSON_NULL;
    size_t n;
    const peg_str header = find_param_header(http, param->name, &n);

    if (n > 1)
        return "came more than once";
    if (!has_value)
        return n ? "has no argument that it repeats" : NULL;
    if (!n)
        return "is missing";
    return says_same(header, param->value) ? NULL : "does not say what the argument says";
}

bool mcp_call_check_params(struct mcp_call *call, const peg_json *input_schema)
{
    const struct mcp__request *rq = &call->request;
    struct params params = {.http = rq->peer ? rq->peer->http : NULL, .is_valid = true};
    struct mcp_result result = {0};

    if (!params.http || rq->era != MCP_MODERN)
        return true;
    find_params(&params, input_schema, call->face.args);
    for (size_t i = 0; params.is_valid && i < params.n; i++) {
        const char *fault = find_header_fault(params.http, &params.params[i]);

        if (!fault)
            continue;
        mcp_result_fail(&result, MCP_HEADER_MISMATCH, "the header Mcp-Param-%.*s %s",
                        PEG_ARG(params.params[i].name), fault);
        mcp_call_end(call, &result);
        return false;
    }
    return true;
}
