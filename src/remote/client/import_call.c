/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The handler of imported tools: one call here is one call there, with the deadline, cancellation
 * and trace of the context, and an identity that survives this process:
 *
 *   run_id (or turn_id) of the context, and the key of the call's record
 *
 * A further attempt of the same record, which a host asks for after a failure, first attaches to
 * the attempts before it: one whose end is not known must not be started a second time. Only behind
 * an end that is known does the attempt become a call of its own, "<key>#<attempt>".
 */

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "core/context/ctx.h"
#include "core/run/call.h"
#include "remote/client/import.h"
#include "json/json.h"

enum { KEY_BYTES = 320 };

/* ---- while it runs ---- */

static void add_member(peg_json_builder *b, const char *key, peg_str value)
{
    peg_json_add_key(b, peg__str(key));
    peg_json_add_string(b, value);
}

static void tell_output(peg_str stream, peg_str delta, void *user)
{
    const peg_call *call = user;
    peg_json_builder *b;
    peg_json_doc *payload = NULL;
    peg_event event = {.kind = PEG_EVENT_LOG};

    if (!peg__ctx_has_sink(peg_call_ctx(call)))
        return;
    b = peg_json_builder_new();
    peg_json_open_object(b);
    add_member(b, "tool", peg__str(peg_tool_name(peg_call_tool(call))));
    add_member(b, "call_id", peg_call_id(call));
    add_member(b, "stream", stream);
    peg_json_close(b);
    if (peg_json_builder_finish(b, &payload, NULL))
        return; /* one event less */
    event.u.log = (peg_log_event){.level = "info",
                                  .kind = peg__str("tool_output"),
                                  .message = delta,
                                  .payload = peg_json_root(payload)};
    peg_ctx_emit(peg_call_ctx(call), &event);
    peg_json_doc_free(payload);
}

/* ---- how it ended ---- */

static peg_status pass_server_data(peg_call *call, const peg_remote_result *result)
{
    for (size_t i = 0; i < result->n_server_data; i++) {
        const peg_remote_data *data = &result->server_data[i];
        peg_json_doc *doc = NULL;
        peg_error why;
        peg_status status = peg_json_parse(data->data, &peg__json_refuse_duplicates, &doc, &why);

        if (status == PEG_ENOMEM)
            return peg__call_out_of_memory(call);
        if (status)
            return peg_call_fail(call, "the server-data that came with the result is no JSON: %s",
                                 why.message);
        status = peg_call_add_server_data(call, data->kind, data->audience, peg_json_root(doc));
        peg_json_doc_free(doc);
        if (status)
            return status;
    }
    return PEG_OK;
}

/* What was text at the provider is text here: a string, unless a schema speaks of JSON. */
static void reply(peg_call *call, const struct remote__imported *imported, peg_str json)
{
    peg_json_doc *doc = NULL;
    peg_error why;
    const peg_status status = peg_json_parse(json, &peg__json_refuse_duplicates, &doc, &why);
    const peg_json *root;

    if (status == PEG_ENOMEM) {
        peg__call_out_of_memory(call);
        return;
    }
    if (status) {
        peg_call_fail(call, "the tool's answer is no JSON: %s", why.message);
        return;
    }
    root = peg_json_root(doc);
    if (peg_json_kind_of(root) == PEG_JSON_STRING && !imported->has_output_schema)
        peg_call_reply(call, peg_json_str(root));
    else
        peg_call_reply_json(call, root);
    peg_json_doc_free(doc);
}

static void fail(peg_call *call, const peg_remote_result *result)
{
    struct peg__buf sentence = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);
    const bool is_tools = result->outcome == PEG_REMOTE_ERROR && *result->error_name;
    const size_t len = strlen(result->error_message);
    const size_t kept = len <= PEG_LIMIT_FAILURE_BYTES
                            ? len
                            : peg__utf8_cut(result->error_message, PEG_LIMIT_FAILURE_BYTES);

    peg__buf_str(&sentence, peg__strn(result->error_message, kept));
    if (sentence.len == 0)
        peg__buf_puts(&sentence, result->error.message);
    peg__call_fail_because(call, is_tools ? result->error_name : result->error.code, &sentence);
}

static void answer(peg_call *call, const struct remote__imported *imported,
                   const peg_remote_result *result)
{
    if (pass_server_data(call, result))
        return;
    if (result->outcome == PEG_REMOTE_RESULT)
        reply(call, imported, result->json);
    else
        fail(call, result);
}

/* ---- calling ---- */

static void set_identity(peg_remote_request *request, const peg_call *call, unsigned attempt,
                         char text[KEY_BYTES])
{
    const peg_ids *ids = peg_ctx_ids(peg_call_ctx(call));
    const peg_str key = peg_record_key(call->task->record);

    if (attempt > 1)
        snprintf(text, KEY_BYTES, "%.*s#%u", PEG_ARG(key), attempt);
    else
        snprintf(text, KEY_BYTES, "%.*s", PEG_ARG(key));
    request->run_id = *ids->run_id ? ids->run_id : ids->turn_id;
    request->turn_id = ids->turn_id;
    request->tool_call_id = text;
    if (!*request->run_id)
        request->idempotency_key = text;
}

static peg_status ask(peg_call *call, const struct remote__imported *imported,
                      const peg_remote_request *request, peg_remote_result **ret_result,
                      peg_error *reterr)
{
    const peg_remote_output output = {.fn = tell_output, .user = call};

    if (!imported->with_output)
        return peg_client_call(imported->client, peg_call_ctx(call), request, ret_result, reterr);
    return peg_client_call_stream(imported->client, peg_call_ctx(call), request, &output,
                                  ret_result, reterr);
}

/* Is this how an earlier attempt ended, so that the next one may be made? */
static bool is_past(const peg_remote_result *result)
{
    return (result->outcome == PEG_REMOTE_ERROR && result->was_attached) ||
           result->outcome == PEG_REMOTE_TIMEOUT || result->outcome == PEG_REMOTE_CANCELED;
}

static peg_status ask_attempts(peg_call *call, const struct remote__imported *imported,
                               peg_str args, peg_remote_result **ret_result, peg_error *reterr)
{
    peg_remote_request request = {PEG_REMOTE_REQUEST_INIT, .registry = imported->registry,
                                  .toolset = imported->toolset, .tool = imported->tool,
                                  .args = args};
    const unsigned n = peg_call_attempt(call);
    char key[KEY_BYTES];

    for (unsigned attempt = 1;; attempt++) {
        peg_status status;

        set_identity(&request, call, attempt, key);
        status = ask(call, imported, &request, ret_result, reterr);
        if (status || attempt >= n || !is_past(*ret_result))
            return status;
        peg_remote_result_free(*ret_result);
    }
}

/* As the model wrote them; with defaults filled in if some were missing, as the gateway fills in
 * none; or what a host put in their place. */
static peg_status text_of_args(const peg_call *call, const peg_json *args, char **ret_owned,
                               peg_str *ret_text, peg_error *reterr)
{
    size_t len;
    peg_status status;

    *ret_owned = NULL;
    *ret_text = peg_record_args_text(call->task->record);
    if (!call->task->replaced && !call->task->filled)
        return PEG_OK;
    status = peg_json_write(args, PEG_JSON_COMPACT, ret_owned, &len, reterr);
    if (!status)
        *ret_text = peg__strn(*ret_owned, len);
    return status;
}

void remote__imported_run(peg_call *call, const peg_json *args, void *user)
{
    const struct remote__imported *imported = user;
    peg_remote_result *result = NULL;
    char *owned;
    peg_str text;
    peg_error why;
    peg_status status = text_of_args(call, args, &owned, &text, &why);

    if (!status)
        status = ask_attempts(call, imported, text, &result, &why);
    if (status == PEG_ENOMEM)
        peg__call_out_of_memory(call);
    else if (status)
        peg_call_fail_with(call, &why);
    else
        answer(call, imported, result);
    peg_remote_result_free(result);
    peg__free(owned);
}
