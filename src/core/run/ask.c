/* SPDX-License-Identifier: Apache-2.0 */

/* Questions that an MCP client can answer, as one gate: they are its payload, and its schema says
 * that none may be left out but optional ones. */

#include "core/run/ask.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "core/context/context.h"
#include "pegboard/call.h"
#include "pegboard/cleanup.h"

#define REQUESTS "pegboard/requests"

const peg_json *peg__gate_requests(const peg_gate *gate)
{
    return peg_json_get(peg_gate_payload(gate), REQUESTS);
}

static void add_ask(peg_json_builder *b, const peg_ask *ask)
{
    peg_json_add_key(b, peg__str(ask->key));
    peg_json_open_object(b);
    peg_json_add_key(b, peg__str("method"));
    peg_json_add_string(b, peg__str(ask->method));
    if (ask->params) {
        peg_json_add_key(b, peg__str("params"));
        peg_json_add_copy(b, ask->params);
    }
    if (ask->is_optional) {
        peg_json_add_key(b, peg__str("optional"));
        peg_json_add_bool(b, true);
    }
    peg_json_close(b);
}

static peg_status make_payload(const peg_ask *asks, size_t n_asks, peg_json_doc **ret_doc,
                               peg_error *reterr)
{
    peg_json_builder *b = peg_json_builder_new();

    peg_json_open_object(b);
    peg_json_add_key(b, peg__str(REQUESTS));
    peg_json_open_object(b);
    for (size_t i = 0; i < n_asks; i++)
        add_ask(b, &asks[i]);
    peg_json_close(b);
    peg_json_close(b);
    return peg_json_builder_finish(b, ret_doc, reterr);
}

/* {"type": "object", "required": [KEY, ...]} */
static peg_status make_schema(const peg_ask *asks, size_t n_asks, peg_schema **ret_schema,
                              peg_error *reterr)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    peg_json_builder *b = peg_json_builder_new();
    peg_status status;

    peg_json_open_object(b);
    peg_json_add_key(b, peg__str("type"));
    peg_json_add_string(b, peg__str("object"));
    peg_json_add_key(b, peg__str("required"));
    peg_json_open_array(b);
    for (size_t i = 0; i < n_asks; i++) {
        if (!asks[i].is_optional)
            peg_json_add_string(b, peg__str(asks[i].key));
    }
    peg_json_close(b);
    peg_json_close(b);
    status = peg_json_builder_finish(b, &doc, reterr);
    if (!status)
        status = peg_schema_compile_value(peg_json_root(doc), NULL, ret_schema, reterr);
    return status;
}

static peg_status check_asks(const peg_ask *asks, size_t n_asks, peg_error *reterr)
{
    bool is_usable = n_asks > 0;

    for (size_t i = 0; is_usable && i < n_asks; i++)
        is_usable = asks[i].key && asks[i].key[0] && asks[i].method && asks[i].method[0];
    if (is_usable)
        return PEG_OK;
    return peg__fail(reterr, PEG_EINVAL, "E_INVALID_INITIAL_TURN_GATE_VALUE",
                     "a question needs a key and a method, and there must be one");
}

/* A gateway reads from it which capabilities its client would need: gateway/mcp/call.c. */
static peg_status fail_unsupported(const peg_ask *asks, size_t n_asks, peg_error *reterr)
{
    struct peg__buf names = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    for (size_t i = 0; i < n_asks; i++) {
        const bool has_url = peg__str_is(peg_json_str(peg_json_get(asks[i].params, "mode")), "url");

        if (asks[i].is_optional)
            continue;
        peg__buf_printf(&names, "%s%s%s", names.len ? ", " : "", asks[i].method,
                        has_url                                 ? " (url)"
                        : peg_json_get(asks[i].params, "tools") ? " (tools)"
                                                                : "");
    }
    peg__fail(reterr, PEG_EUNSUPPORTED, "E_GATE_UNSUPPORTED",
              "no one can be asked for %.*s: the context has no listener for gates; set one with "
              "peg_ctx_with_gates()",
              PEG_ARG(peg__buf_view(&names)));
    peg__buf_free(&names);
    return PEG_EUNSUPPORTED;
}

peg_status peg_gate_ask(peg_ctx *ctx, const peg_ask *asks, size_t n_asks,
                        peg_json_doc **ret_answers, peg_error *reterr)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *payload = NULL;
    PEG_CLEANUP(peg_schema_unrefp) peg_schema *schema = NULL;
    peg_status status = check_asks(asks, n_asks, reterr);
    void *user;

    if (!status && !peg__ctx_gate_listener(ctx, &user))
        return fail_unsupported(asks, n_asks, reterr);
    if (!status)
        status = make_payload(asks, n_asks, &payload, reterr);
    if (status == PEG_EEXISTS)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_INITIAL_TURN_GATE_VALUE",
                         "two questions have one key: give each its own");
    if (!status)
        status = make_schema(asks, n_asks, &schema, reterr);
    if (status)
        return status;
    return peg_gate_wait(ctx,
                         &(peg_gate_def){PEG_GATE_DEF_INIT, .reason = "a tool asks its caller",
                                         .payload = peg_json_root(payload), .schema = schema},
                         ret_answers, reterr);
}

peg_status peg_call_ask(peg_call *call, const peg_ask *asks, size_t n_asks,
                        peg_json_doc **ret_answers, peg_error *reterr)
{
    return peg_gate_ask(peg_call_ctx(call), asks, n_asks, ret_answers, reterr);
}
