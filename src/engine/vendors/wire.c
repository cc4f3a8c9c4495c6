/* SPDX-License-Identifier: Apache-2.0 */

/* The table of vendors, and a request with what the host adds to it. */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "engine/engine.h"
#include "pegboard/tool_config.h"
#include "json/json.h"

const struct peg__wire *peg__wire_of(peg_vendor vendor)
{
    switch (vendor) {
    case PEG_VENDOR_OPENAI_CHAT:
        return &peg__wire_chat;
    case PEG_VENDOR_OPENAI_RESPONSES:
        return &peg__wire_responses;
    case PEG_VENDOR_ANTHROPIC:
        return &peg__wire_anthropic;
    case PEG_VENDOR_GEMINI:
        return &peg__wire_gemini;
    default:
        return NULL;
    }
}

void peg__wire_path(const struct peg__wire *wire, const peg_model_options *options,
                    bool is_streaming, struct peg__buf *out)
{
    if (wire->path)
        peg__buf_puts(out, wire->path);
    else
        wire->write_path(options, is_streaming, out);
}

void peg__wire_headers(const struct peg__wire *wire, const char *api_key, struct peg__buf *out)
{
    peg__buf_puts(out, wire->headers);
    if (api_key && api_key[0])
        peg__buf_printf(out, "%s%s\n", wire->key_header, api_key);
}

/* ---- members that a host adds ---------------------------------------------------------------- */

/* Deeper objects are replaced, not merged: generationConfig.thinkingConfig is the deepest there
 * is. */
enum { MERGE_DEPTH = 8 };

struct merge {
    struct peg__out out;
    bool has_no_tools; /* the turn wants none: neither ours nor the vendor's own */
};

static bool is_object(const peg_json *value)
{
    return value && peg_json_kind_of(value) == PEG_JSON_OBJECT;
}

/* Tools that a vendor runs itself stand beside ours. */
static void join_tools(struct merge *merge, const peg_json *ours, const peg_json *theirs)
{
    peg__out_array(&merge->out);
    PEG_JSON_EACH_ITEM (ours, tool) {
        peg__out_value(&merge->out, tool);
    }
    PEG_JSON_EACH_ITEM (theirs, tool) {
        peg__out_value(&merge->out, tool);
    }
    peg__out_end_array(&merge->out);
}

static bool are_tools(peg_str name, unsigned depth, const peg_json *ours, const peg_json *theirs)
{
    return depth == 0 && peg__str_is(name, "tools") && peg_json_kind_of(ours) == PEG_JSON_ARRAY &&
           peg_json_kind_of(theirs) == PEG_JSON_ARRAY;
}

static void put_merged(struct merge *merge, const peg_json *ours, const peg_json *theirs,
                       unsigned depth);

/* One of our members, which theirs may replace or, with null, remove.
 * NOLINTNEXTLINE(misc-no-recursion): at most MERGE_DEPTH deep */
static void put_our_member(struct merge *merge, const peg_json *key, const peg_json *theirs,
                           unsigned depth)
{
    const peg_str name = peg_json_str(key);
    const peg_json *other = peg_json_get_str(theirs, name);

    if (other && peg_json_kind_of(other) == PEG_JSON_NULL)
        return;
    peg__out_key_str(&merge->out, name);
    if (!other)
        peg__out_value(&merge->out, key + 1);
    else if (are_tools(name, depth, key + 1, other))
        join_tools(merge, key + 1, other);
    else if (is_object(key + 1) && is_object(other) && depth + 1 < MERGE_DEPTH)
        put_merged(merge, key + 1, other, depth + 1);
    else
        peg__out_value(&merge->out, other);
}

/* NOLINTNEXTLINE(misc-no-recursion): at most MERGE_DEPTH deep */
static void put_merged(struct merge *merge, const peg_json *ours, const peg_json *theirs,
                       unsigned depth)
{
    peg__out_object(&merge->out);
    PEG_JSON_EACH_MEMBER (ours, key) {
        put_our_member(merge, key, theirs, depth);
    }
    PEG_JSON_EACH_MEMBER (theirs, key) {
        const peg_str name = peg_json_str(key);
        const bool is_tools = depth == 0 && peg__str_is(name, "tools");

        if (peg_json_get_str(ours, name) || peg_json_kind_of(key + 1) == PEG_JSON_NULL ||
            (is_tools && merge->has_no_tools))
            continue;
        peg__out_key_str(&merge->out, name);
        peg__out_value(&merge->out, key + 1);
    }
    peg__out_end_object(&merge->out);
}

static peg_status parse_extra(const char *extra, peg_json_doc **ret_doc, peg_error *reterr)
{
    peg_error error;
    peg_json_doc *doc;
    const peg_status status = peg_json_parse(peg_cstr(extra), NULL, &doc, &error);

    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status)
        return peg__fail_because(reterr, PEG_EINVAL, "E_ENGINE_CONFIG", &error,
                                 "the option 'extra' is no JSON");
    if (is_object(peg_json_root(doc))) {
        *ret_doc = doc;
        return PEG_OK;
    }
    peg_json_doc_free(doc);
    return peg__fail(reterr, PEG_EINVAL, "E_ENGINE_CONFIG",
                     "the option 'extra' is no JSON object: write members of the request, such as "
                     "{\"seed\": 1}");
}

static peg_status merge_extra(const struct peg__request *request, struct peg__buf *body,
                              struct peg__buf *out, peg_error *reterr)
{
    const peg_json_options options = {PEG_JSON_OPTIONS_INIT, .max_bytes = PEG_LIMIT_TEXT_BYTES,
                                      .max_depth = 4096};
    struct merge merge = {.out = {.buf = out}};
    peg_json_doc *ours = NULL;
    peg_json_doc *theirs = NULL;
    peg_status status = parse_extra(request->options->extra, &theirs, reterr);

    if (!status)
        status = peg_json_parse(peg__buf_view(body), &options, &ours, reterr);
    if (!status) {
        merge.has_no_tools =
            !request->config->is_enabled || request->config->choice == PEG_CHOICE_NONE;
        put_merged(&merge, peg_json_root(ours), peg_json_root(theirs), 0);
    }
    peg_json_doc_free(ours);
    peg_json_doc_free(theirs);
    return status;
}

/* ---- requests ------------------------------------------------------------------------------- */

static peg_status fail_body(peg_status status, peg_error *reterr)
{
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return peg__fail(
        reterr, status, "E_TEXT_TOO_LARGE",
        "the request has more than 256 MiB: leave out blocks, or send media by its uri");
}

static peg_status write_merged(const struct peg__wire *wire, const struct peg__request *request,
                               struct peg__buf *out, peg_error *reterr)
{
    struct peg__buf body = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const bool has_extra = request->options->extra && request->options->extra[0];
    struct peg__buf *first = has_extra ? &body : out;
    peg_status status = peg__wire_write_body(wire, request, first, reterr);

    if (!status && first->status)
        status = fail_body(first->status, reterr);
    if (!status && has_extra)
        status = merge_extra(request, &body, out, reterr);
    if (!status && out->status)
        status = fail_body(out->status, reterr);
    peg__buf_free(&body);
    return status;
}

static peg_status write_with_history(const struct peg__wire *wire,
                                     const struct peg__request *partial, struct peg__buf *out,
                                     peg_error *reterr)
{
    struct peg__request request = *partial;
    struct peg__history history;
    peg_status status;

    if (request.history)
        return write_merged(wire, &request, out, reterr);
    status = peg__history_make(request.turn, request.options->unanswered, &history, reterr);
    if (status)
        return status;
    request.history = &history;
    status = write_merged(wire, &request, out, reterr);
    peg__history_free(&history);
    return status;
}

peg_status peg__wire_write(const struct peg__wire *wire, const struct peg__request *partial,
                           struct peg__buf *out, peg_error *reterr)
{
    const peg_definitions_options options = {PEG_DEFINITIONS_OPTIONS_INIT, .vendor = wire->vendor};
    struct peg__request request = *partial;
    struct peg__names *names = NULL;
    peg_status status;

    if (!request.options->model || !request.options->model[0])
        return peg__fail(reterr, PEG_EINVAL, "E_ENGINE_CONFIG", "a model has to be named");
    if (!request.names) {
        status = peg__names_new(request.definitions, request.turn, &options, &names, reterr);
        if (status)
            return status;
        request.names = names;
    }
    status = write_with_history(wire, &request, out, reterr);
    peg__names_free(names);
    return status;
}

// NOLINTNEXTLINE(readability-function-size): its parameters are all that a request is made from
peg_status peg_engine_render(peg_vendor vendor, const peg_model_options *options,
                             const peg_turn *turn, const peg_json *definitions, bool is_streaming,
                             char **ret_text, size_t *ret_len, peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_MODEL_OPTIONS_INIT, reterr);
    const struct peg__wire *wire = peg__wire_of(vendor);
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_tool_config config;
    struct peg__request request = {.options = options,
                                   .turn = turn,
                                   .definitions = definitions,
                                   .config = &config,
                                   .is_streaming = is_streaming};
    peg_status status;

    if (!wire || !options || !turn || !ret_text)
        return peg__fail(reterr, PEG_EINVAL, "E_ENGINE_CONFIG",
                         "a vendor that takes requests, options, a turn and a place for the text "
                         "are required");
    status = peg_turn_tool_config(turn, &config, NULL, reterr);
    if (!status && !definitions)
        status = peg_turn_definitions(turn, &request.definitions, reterr);
    if (!status)
        status = peg__wire_write(wire, &request, &out, reterr);
    if (status) {
        peg__buf_free(&out);
        return status;
    }
    return peg__buf_take(&out, ret_text, ret_len, reterr);
}
