/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Imports toolsets as tools of a local registry. One call of such a tool is one call behind the
 * gateway, with the deadline, cancellation and trace of the context, and an identity that survives
 * this process:
 *
 *   run_id (or turn_id) of the context, and the key of the call's record
 *
 * A further attempt of the same record, which a host makes after a failure, first attaches to the
 * earlier attempts: one with an unknown outcome must not be started again. Only after a known end
 * does the attempt become a call of its own, "<key>#<attempt>".
 */

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "core/artifact/artifact.h"
#include "core/context/context.h"
#include "core/run/run.h"
#include "pegboard/cleanup.h"
#include "remote/client/remote.h"
#include "json/json.h"

enum { KEY_BYTES = 320 };

/* What its handler needs; dies with the tool. */
struct imported {
    peg_client *client; /* a reference */
    const char *registry;
    const char *toolset;
    const char *tool;
    bool with_output;
    bool has_output_schema;
    bool is_trusted;
    struct peg__arena arena; /* of the names */
};

/* ---- while it runs ---- */

static void add_string_member(peg_json_builder *b, const char *key, peg_str value)
{
    peg_json_add_key(b, peg__str(key));
    peg_json_add_string(b, value);
}

/* To the listener of the context, such as a client behind an MCP server. What it does not take is
 * gone, and a text is never waited for. */
static void relay_delta(peg_call *call, peg_str stream, peg_str delta)
{
    const struct peg__listener *listener = peg__ctx_listener(peg_call_ctx(call));
    char name[PEG_LIMIT_REMOTE_STREAM_NAME_BYTES + 1];

    if (!listener || stream.len >= sizeof(name))
        return;
    snprintf(name, sizeof(name), PEG_FMT, PEG_ARG(stream));
    (void)listener->say(call, name, delta);
}

static void report_output(peg_str stream, peg_str delta, void *user)
{
    peg_call *call = user;
    peg_json_builder *b;
    peg_json_doc *payload = NULL;
    peg_event event = {.kind = PEG_EVENT_LOG};

    relay_delta(call, stream, delta);
    if (!peg__ctx_has_sink(peg_call_ctx(call)))
        return;
    b = peg_json_builder_new();
    peg_json_open_object(b);
    add_string_member(b, "tool", peg__str(peg_tool_name(peg_call_tool(call))));
    add_string_member(b, "call_id", peg_call_id(call));
    add_string_member(b, "stream", stream);
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
static void reply_json(peg_call *call, const struct imported *imported, peg_str json)
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

static void fail_imported(peg_call *call, const peg_remote_result *result)
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

static void answer_call(peg_call *call, const struct imported *imported,
                        const peg_remote_result *result)
{
    if (pass_server_data(call, result))
        return;
    if (result->outcome == PEG_REMOTE_RESULT && result->n_content)
        remote__content_reply(call, result, imported->is_trusted);
    else if (result->outcome == PEG_REMOTE_RESULT)
        reply_json(call, imported, result->json);
    else
        fail_imported(call, result);
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

static peg_status call_once(peg_call *call, const struct imported *imported,
                            const peg_remote_request *request, peg_remote_result **ret_result,
                            peg_error *reterr)
{
    const peg_remote_output output = {.fn = report_output, .user = call};

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

static peg_status call_attempts(peg_call *call, const struct imported *imported, peg_str args,
                                peg_remote_result **ret_result, peg_error *reterr)
{
    peg_remote_request request = {PEG_REMOTE_REQUEST_INIT,
                                  .registry = imported->registry,
                                  .toolset = imported->toolset,
                                  .tool = imported->tool,
                                  .args = args,
                                  .accepts_content = true};
    const unsigned n = peg_call_attempt(call);
    char key[KEY_BYTES];

    remote__import_questions(call, &request);
    for (unsigned attempt = 1;; attempt++) {
        peg_status status;

        set_identity(&request, call, attempt, key);
        status = call_once(call, imported, &request, ret_result, reterr);
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

static void run_imported(peg_call *call, const peg_json *args, void *user)
{
    const struct imported *imported = user;
    peg_remote_result *result = NULL;
    char *owned;
    peg_str text;
    peg_error why;
    peg_status status = text_of_args(call, args, &owned, &text, &why);

    if (!status)
        status = call_attempts(call, imported, text, &result, &why);
    if (status == PEG_ENOMEM)
        peg__call_out_of_memory(call);
    else if (status)
        peg_call_fail_with(call, &why);
    else
        answer_call(call, imported, result);
    peg_remote_result_free(result);
    peg__free(owned);
}

static const peg_import_options default_options = {PEG_IMPORT_OPTIONS_INIT};

struct importing {
    peg_client *client;
    peg_ctx *ctx;
    const peg_import_options *options;
    peg_registry *registry; /* what is made */
};

/* ---- one tool ---- */

static void free_imported(void *user)
{
    struct imported *imported = user;

    if (!imported)
        return;
    peg_client_unref(imported->client);
    peg__arena_free(&imported->arena);
    peg__free(imported);
}

static peg_status make_imported(const struct importing *i, const peg_toolset *toolset,
                                const peg_toolset_tool *tool, struct imported **ret_imported,
                                peg_error *reterr)
{
    struct imported *m = peg__alloc_zero(1, sizeof(*m));

    if (!m)
        return peg__fail_nomem(reterr);
    m->client = peg_client_ref(i->client);
    m->with_output = i->options->with_output;
    m->is_trusted = i->options->trusted;
    m->has_output_schema = tool->output_schema.len > 0;
    m->registry = peg__arena_copy(&m->arena, peg__str(toolset->info.registry));
    m->toolset = peg__arena_copy(&m->arena, peg__str(toolset->info.name));
    m->tool = peg__arena_copy(&m->arena, peg__str(tool->name));
    if (!m->registry || !m->toolset || !m->tool) {
        free_imported(m);
        return peg__fail_nomem(reterr);
    }
    *ret_imported = m;
    return PEG_OK;
}

/* The texts of a definition, copied into an arena for as long as it takes. */
static peg_status name_tool(const struct importing *i, const peg_toolset *toolset, const char *tool,
                            struct peg__arena *arena, const char **ret_name)
{
    struct peg__buf name = PEG__BUF(4 * (size_t)PEG_LIMIT_NAME_BYTES);
    char own[PEG_LIMIT_NAME_BYTES + 1];
    peg_status status;

    if (i->options->name) {
        if (!i->options->name(toolset->info.name, tool, own, i->options->user))
            return PEG_ELIMIT;
        *ret_name = peg__arena_copy(arena, peg__str(own));
        return *ret_name ? PEG_OK : PEG_ENOMEM;
    }
    peg__buf_puts(&name, i->options->prefix ? i->options->prefix : "");
    if (i->options->qualifies)
        peg__buf_printf(&name, "%s.", toolset->info.name);
    peg__buf_puts(&name, tool);
    *ret_name = name.status ? NULL : peg__arena_copy(arena, peg__buf_view(&name));
    status = name.status == PEG_ELIMIT ? PEG_ELIMIT : PEG_ENOMEM;
    peg__buf_free(&name);
    return *ret_name ? PEG_OK : status;
}

static const char **copy_import_tags(const peg_toolset_tool *tool, struct peg__arena *arena)
{
    const char **tags = peg__arena_alloc(arena, (tool->n_tags + 1) * sizeof(*tags));

    if (!tags)
        return NULL;
    if (tool->n_tags)
        memcpy(tags, tool->tags, tool->n_tags * sizeof(*tags));
    tags[tool->n_tags] = NULL;
    return tags;
}

static const char *describe_tool(const peg_toolset *toolset, const peg_toolset_tool *tool)
{
    if (*tool->description)
        return tool->description;
    return *toolset->info.description ? toolset->info.description : tool->name;
}

/* Of what says nothing about itself it is not known, and one that may be repeated does no more harm
 * the second time. */
static bool is_destructive(const peg_toolset_tool *tool)
{
    return tool->is_destructive ||
           !(tool->is_read_only || tool->is_idempotent || tool->is_additive);
}

/* {"title": ...}, where MCP servers look for it; "" if there is none. NULL: no memory. */
static const char *make_title_meta(const char *title, struct peg__arena *arena)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_META_BYTES);
    struct peg__out out = {.buf = &text};
    const char *copy;

    if (!*title)
        return "";
    peg__out_object(&out);
    peg__out_cmember(&out, "title", title);
    peg__out_end_object(&out);
    copy = text.status ? NULL : peg__arena_copy(arena, peg__buf_view(&text));
    peg__buf_free(&text);
    return copy;
}

static peg_status fill_def(const struct importing *i, const peg_toolset *toolset,
                           const peg_toolset_tool *tool, struct peg__arena *arena,
                           peg_tool_def *ret_def)
{
    const char *name;
    const char *input = peg__arena_copy(arena, tool->input_schema);
    const char *output = peg__arena_copy(arena, tool->output_schema);
    const char **tags = copy_import_tags(tool, arena);
    const char *version = *tool->version ? tool->version : toolset->info.version;
    const char *examples = peg__arena_copy(arena, tool->examples);
    const char *meta = make_title_meta(tool->title, arena);
    const peg_status status = name_tool(i, toolset, tool->name, arena, &name);

    if (status)
        return status;
    if (!input || !output || !tags || !examples || !meta)
        return PEG_ENOMEM;
    *ret_def = (peg_tool_def){
        PEG_TOOL_DEF_INIT,
        .name = name,
        .description = describe_tool(toolset, tool),
        .input_schema = *input ? input : "{\"type\":\"object\"}",
        .output_schema = *output ? output : NULL,
        .run = run_imported,
        .user_free = free_imported,
        .open_arguments = true,
        .trusted = i->options->trusted,
        .inline_result = i->options->inline_result,
        .read_only = tool->is_read_only,
        .idempotent = tool->is_idempotent,
        .destructive = is_destructive(tool),
        .additive = tool->is_additive,
        .artifact_kind = peg__kind_named(peg__str(tool->artifact_kind)),
        .timeout_ms = tool->timeout_ms > 0 ? tool->timeout_ms : i->options->timeout_ms,
        .version = *version ? version : NULL,
        .tags = tags,
        .examples = *examples ? examples : NULL,
        .meta = *meta ? meta : NULL,
    };
    return PEG_OK;
}

/* An example that the schema refuses is no reason to go without the tool. */
static peg_status new_without_bad_examples(peg_tool_def *def, peg_tool **ret_tool,
                                           peg_error *reterr)
{
    peg_error why;
    peg_status status = peg_tool_new(def, ret_tool, &why);

    if (status == PEG_EINVAL && peg__str_starts(peg__str(why.where), peg__str("/examples"))) {
        def->examples = NULL;
        status = peg_tool_new(def, ret_tool, &why);
    }
    if (status && reterr)
        *reterr = why;
    return status;
}

static peg_status make_tool(const struct importing *i, const peg_toolset *toolset,
                            const peg_toolset_tool *tool, peg_tool **ret_tool, peg_error *reterr)
{
    struct peg__arena arena = {0};
    struct imported *imported = NULL;
    peg_tool_def def;
    peg_status status = fill_def(i, toolset, tool, &arena, &def);

    if (status == PEG_ELIMIT)
        peg__fail(reterr, PEG_ELIMIT, "E_CLIENT",
                  "it has no name here: with prefix and toolset it is too long, or `name` refused");
    else if (status)
        peg__fail_nomem(reterr);
    if (!status)
        status = make_imported(i, toolset, tool, &imported, reterr);
    if (!status) {
        def.user = imported;
        status = new_without_bad_examples(&def, ret_tool, reterr);
        if (status)
            free_imported(imported);
    }
    peg__arena_free(&arena);
    return status;
}

/* ---- one toolset ---- */

static peg_status fail_tool(const struct importing *i, const peg_toolset *toolset, const char *tool,
                            const peg_error *why, peg_error *reterr)
{
    if (why->status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (i->options->skips_unusable && why->status != PEG_EEXISTS) {
        peg__log(PEG_LOG_WARN, "E_CLIENT", "the tool %s of %s is left out: %s", tool,
                 toolset->info.name, why->message);
        return PEG_OK;
    }
    return peg__fail_because(reterr, why->status, why->code, why,
                             "the tool %.64s of the toolset %.64s cannot be a tool here%s", tool,
                             toolset->info.name,
                             why->status == PEG_EEXISTS ? " (set qualifies or a prefix)" : "");
}

static peg_status import_tool(const struct importing *i, const peg_toolset *toolset,
                              const peg_toolset_tool *tool, peg_error *reterr)
{
    PEG_CLEANUP(peg_tool_unrefp) peg_tool *made = NULL;
    peg_error why;
    peg_status status = make_tool(i, toolset, tool, &made, &why);

    if (!status)
        status = peg_registry_register(i->registry, made, false, &why);
    return status ? fail_tool(i, toolset, tool->name, &why, reterr) : PEG_OK;
}

static peg_status import_toolset(const struct importing *i, const char *registry, const char *name,
                                 peg_error *reterr)
{
    PEG_CLEANUP(peg_toolset_unrefp) peg_toolset *toolset = NULL;
    peg_status status = peg_client_get(i->client, i->ctx, registry, name, &toolset, reterr);

    for (size_t k = 0; !status && k < toolset->n_tools; k++)
        status = import_tool(i, toolset, &toolset->tools[k], reterr);
    return status;
}

/* ---- many ---- */

/* The first registry that has a name has it for all. Within one registry there is each once. */
static bool is_first_of_name(const peg_toolset_list *list, size_t at)
{
    const peg_toolset_info *info = &list->items[at];

    for (size_t k = 0; strcmp(list->items[k].registry, info->registry) != 0; k++) {
        if (strcmp(list->items[k].name, info->name) == 0)
            return false;
    }
    return true;
}

/* The list says of which version it is: an older one is not to be taken from the cache. One that
 * was unregistered since is none of those that the glob names. */
static peg_status import_listed(const struct importing *i, const peg_toolset_info *info,
                                size_t *n_imported, peg_error *reterr)
{
    struct remote__registry *registry = NULL;
    peg_error why;
    peg_status status = remote__registry_only(i->client, info->registry, &registry, &why);

    if (!status) {
        remote__cache_check(registry, peg__str(info->name), info->revision);
        status = import_toolset(i, info->registry, info->name, &why);
    }
    *n_imported += !status;
    if (status == PEG_ENOTFOUND)
        return PEG_OK;
    if (status && reterr)
        *reterr = why;
    return status;
}

static peg_status import_glob(const struct importing *i, const char *glob, peg_error *reterr)
{
    PEG_CLEANUP(peg_toolset_list_freep) peg_toolset_list *list = NULL;
    size_t n = 0;
    peg_status status =
        peg_client_list(i->client, i->ctx, i->options->registry, NULL, &list, reterr);

    if (status)
        return status;
    for (size_t k = 0; k < list->n_failures; k++)
        peg__log(PEG_LOG_WARN, "E_CLIENT", "the registry %s is left out: %s",
                 list->failures[k].registry, list->failures[k].error.message);
    for (size_t k = 0; k < list->len && !status; k++) {
        const peg_toolset_info *info = &list->items[k];

        if (!remote__glob_matches(peg__str(glob), peg__str(info->name)) ||
            !is_first_of_name(list, k))
            continue;
        status = import_listed(i, info, &n, reterr);
    }
    if (!status && n == 0)
        return peg__fail(reterr, PEG_ENOTFOUND, "E_NOT_FOUND",
                         "no toolset fits '%.64s': peg_client_list() tells those that there are",
                         glob);
    return status;
}

peg_status peg_client_import(peg_client *client, peg_ctx *ctx, const char *toolset,
                             const peg_import_options *options, peg_registry **ret_registry,
                             peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_IMPORT_OPTIONS_INIT, reterr);
    struct importing i = {
        .client = client, .ctx = ctx, .options = options ? options : &default_options};
    peg_status status;

    if (!toolset)
        return peg__fail(reterr, PEG_EINVAL, "E_CLIENT", "toolset is required: a name, or a glob");
    status = peg_registry_new(NULL, 0, &i.registry, reterr);
    if (status)
        return status;
    if (remote__glob_is_name(peg__str(toolset)))
        status = import_toolset(&i, i.options->registry, toolset, reterr);
    else
        status = import_glob(&i, toolset, reterr);
    if (status)
        peg_registry_unref(i.registry);
    else
        *ret_registry = i.registry;
    return status;
}
