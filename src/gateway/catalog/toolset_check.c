/* SPDX-License-Identifier: Apache-2.0 */

/* Rejects a registration that is wrong, before anything is made of it. */

#include "gateway/catalog/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "pegboard/cleanup.h"
#include "pegboard/v1/registry.pb-c.h"
#include "wire/wire.h"
#include "json/json.h"

typedef Pegboard__V1__RegisterRequest request_msg;
typedef Pegboard__V1__Tool tool_msg;

static peg_status missing(const char *field, const char *what, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EINVAL, "E_MISSING_FIELD", "\"%s\" is missing from message: %s",
                     field, what);
}

static peg_status check_tool_name(const char *name, const char *what, peg_error *reterr)
{
    const peg_str s = peg__str(name);

    if (s.len == 0)
        return missing("name", "give each toolset and each tool a name", reterr);
    if (s.len > PEG_LIMIT_NAME_BYTES)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_LENGTH", "%s has %zu bytes: use at most %d",
                         what, s.len, PEG_LIMIT_NAME_BYTES);
    return wire_check_name(s, what, reterr);
}

static peg_status check_description_length(const char *text, peg_error *reterr)
{
    const size_t n = peg__utf8_length(peg__str(text));

    if (n <= PEG_LIMIT_GATEWAY_DESCRIPTION)
        return PEG_OK;
    return peg__fail(reterr, PEG_EINVAL, "E_INVALID_LENGTH",
                     "the description has %zu characters: use at most %d", n,
                     PEG_LIMIT_GATEWAY_DESCRIPTION);
}

static peg_status check_all_tags(char *const *tags, size_t n, peg_error *reterr)
{
    if (n > PEG_LIMIT_GATEWAY_TAGS)
        return wire_check_tags(NULL, n, reterr);
    for (size_t i = 0; i < n; i++) {
        const peg_str tag = peg__str(tags[i]);
        const peg_status status = wire_check_tags(&tag, 1, reterr);

        if (status)
            return status;
    }
    return PEG_OK;
}

peg_status gw_check_timeout(int64_t timeout_ms, peg_error *reterr)
{
    if (timeout_ms >= 0 && timeout_ms <= PEG_LIMIT_GATEWAY_MAX_CALL_MS)
        return PEG_OK;
    return peg__fail(reterr, PEG_EINVAL, "E_INVALID_RANGE",
                     "timeout_ms is %lld: use 0 (the gateway's) to %d", (long long)timeout_ms,
                     PEG_LIMIT_GATEWAY_MAX_CALL_MS);
}

static peg_status check_tool_words(const tool_msg *tool, peg_error *reterr)
{
    const struct {
        const char *text;
        const char *field;
    } words[] = {
        {tool->title, "title"}, {tool->version, "version"}, {tool->artifact_kind, "artifact_kind"}};
    peg_status status = PEG_OK;

    for (size_t i = 0; !status && i < sizeof(words) / sizeof(words[0]); i++) {
        if (words[i].text[0])
            status = wire_check_id(peg__str(words[i].text), words[i].field, reterr);
    }
    if (!status && tool->artifact_kind[0])
        status = wire_check_name(peg__str(tool->artifact_kind), "artifact_kind", reterr);
    return status;
}

static peg_status reject_examples(const char *why, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                     "the examples are no JSON array of argument objects, such as [{}]: %s", why);
}

/* Whether each is valid is for those who show them: defaults may have to be filled in. */
static peg_status check_tool_examples(ProtobufCBinaryData examples, peg_error *reterr)
{
    const peg_str text = peg__strn((const char *)examples.data, examples.len);
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    peg_error why;

    if (!text.len)
        return PEG_OK;
    if (text.len > PEG_LIMIT_META_BYTES)
        return peg__fail(reterr, PEG_ELIMIT, "E_TOOLSET_TOO_LARGE",
                         "the examples of a tool have %zu bytes: use at most %d", text.len,
                         PEG_LIMIT_META_BYTES);
    if (memchr(text.ptr, '\0', text.len))
        return reject_examples("there is a NUL", reterr);
    if (peg_json_parse(text, &peg__json_refuse_duplicates, &doc, &why))
        return why.status == PEG_ENOMEM ? peg__fail_nomem(reterr)
                                        : reject_examples(why.message, reterr);
    if (peg_json_root(doc)->kind != PEG_JSON_ARRAY)
        return reject_examples("it is another value", reterr);
    PEG_JSON_EACH_ITEM (peg_json_root(doc), example) {
        if (example->kind != PEG_JSON_OBJECT)
            return reject_examples("an item is no object", reterr);
    }
    return PEG_OK;
}

static peg_status check_tool(const tool_msg *tool, peg_error *reterr)
{
    peg_status status = check_tool_name(tool->name, "the tool's name", reterr);

    if (!status)
        status = check_description_length(tool->description, reterr);
    if (!status)
        status = check_all_tags(tool->tags, tool->n_tags, reterr);
    if (!status)
        status = gw_check_timeout(tool->timeout_ms, reterr);
    if (!status)
        status = check_tool_words(tool, reterr);
    if (!status)
        status = check_tool_examples(tool->examples, reterr);
    return status;
}

void gw_toolset_error_at(size_t i, peg_error *reterr)
{
    char where[64];

    snprintf(where, sizeof(where), "/tools/%zu", i);
    peg__error_where(reterr, peg__str(where));
}

static peg_status check_tools(const request_msg *request, peg_error *reterr)
{
    if (request->n_tools == 0)
        return missing("tools", "a toolset has at least one tool", reterr);
    if (request->n_tools > PEG_LIMIT_GATEWAY_TOOLS)
        return peg__fail(reterr, PEG_ELIMIT, "E_TOOLSET_TOO_LARGE",
                         "the toolset has %zu tools: use at most %d, and register several toolsets",
                         request->n_tools, PEG_LIMIT_GATEWAY_TOOLS);
    for (size_t i = 0; i < request->n_tools; i++) {
        const peg_status status = check_tool(request->tools[i], reterr);

        if (status) {
            gw_toolset_error_at(i, reterr);
            return status;
        }
    }
    return PEG_OK;
}

static peg_status check_toolset_kind(const request_msg *request, peg_error *reterr)
{
    if (request->kind >= PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_UNSPECIFIED &&
        request->kind <= PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_DIRECT)
        return PEG_OK;
    return peg__fail(reterr, PEG_EINVAL, "E_INVALID_RANGE",
                     "%d is no kind of toolset: use TOOLSET_KIND_ATTACHED or TOOLSET_KIND_DIRECT",
                     (int)request->kind);
}

peg_status gw_toolset_check(const request_msg *request, peg_error *reterr)
{
    peg_status status = check_tool_name(request->name, "the toolset's name", reterr);

    if (!status)
        status = check_description_length(request->description, reterr);
    if (!status)
        status = wire_check_version(peg__str(request->version), reterr);
    if (!status)
        status = check_all_tags(request->tags, request->n_tags, reterr);
    if (!status)
        status = check_toolset_kind(request, reterr);
    if (!status)
        status = check_tools(request, reterr);
    return status;
}
