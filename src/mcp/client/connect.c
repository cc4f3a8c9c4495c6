/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds out the era of a server, as the protocol's page on versioning says. server/discover goes
 * first. A result that names our version, or an error that only modern servers have, is a modern
 * server; anything else, a refusal of HTTP, or silence, is a legacy one, and gets initialize. A
 * modern server that is slow to start may answer later than that: then its answer counts.
 */

#include <stdio.h>

#include "base/error.h"
#include "base/text/str.h"
#include "mcp/client/internal.h"

enum {
    HEADER_MISMATCH = -32020,
};

enum verdict { IS_MODERN, IS_LEGACY, IS_UNKNOWN_VERSION, IS_ERROR };

/* The latest first. On a pipe the older ones list and call tools in the same way. */
static const char *const legacy_versions[] = {MCP_VERSION_LEGACY, MCP_VERSION_OLDEST, "2025-03-26",
                                              "2024-11-05"};

static const char *find_legacy(peg_str version)
{
    for (size_t i = 0; i < sizeof(legacy_versions) / sizeof(legacy_versions[0]); i++) {
        if (peg__str_is(version, legacy_versions[i]))
            return legacy_versions[i];
    }
    return NULL;
}

/* ---- what it says of itself ---- */

static void take_server(peg_mcp_client *client, const peg_json *info, const peg_json *capabilities,
                        const char *version)
{
    const peg_str name = peg_json_str(peg_json_get(info, "name"));
    const peg_json *tools = peg_json_get(capabilities, "tools");
    peg_mcp_client_state *state = &client->state;
    const size_t len = name.len < sizeof(state->server)
                           ? name.len
                           : peg__utf8_cut(name.ptr, sizeof(state->server) - 1);

    client->has_tools = tools;
    client->tells_changes = peg_json_is_true(peg_json_get(tools, "listChanged"));
    pthread_mutex_lock(&client->wait.lock);
    snprintf(state->server, sizeof(state->server), "%.*s", (int)len, len ? name.ptr : "");
    snprintf(state->version, sizeof(state->version), "%s", version);
    pthread_mutex_unlock(&client->wait.lock);
}

static peg_status reject_version(peg_error *reterr)
{
    return peg__fail(reterr, PEG_EHOST, "E_MCP_VERSION",
                     "the MCP server speaks no version of the protocol that is known here (%s, %s "
                     "or before): another version of it may",
                     MCP_VERSION_MODERN, MCP_VERSION_LEGACY);
}

/* ---- modern ---- */

static enum verdict choose_version(const peg_json *versions)
{
    enum verdict verdict = IS_UNKNOWN_VERSION;

    PEG_JSON_EACH_ITEM (versions, version) {
        if (peg__str_is(peg_json_str(version), MCP_VERSION_MODERN))
            return IS_MODERN;
        if (find_legacy(peg_json_str(version)))
            verdict = IS_LEGACY;
    }
    return verdict;
}

static enum verdict judge_probe(const struct mcp__exchange *probe)
{
    const peg_json *message = peg_json_root(probe->answer);
    const peg_json *versions = peg_json_get(peg_json_get(message, "result"), "supportedVersions");
    const peg_json *error = peg_json_get(message, "error");
    const peg_json *supported = peg_json_get(peg_json_get(error, "data"), "supported");
    const int64_t code = peg_json_int64_or(peg_json_get(error, "code"), 0);

    if (peg_json_kind_of(versions) == PEG_JSON_ARRAY)
        return choose_version(versions);
    if (code == MCP_UNSUPPORTED_VERSION && peg_json_kind_of(supported) == PEG_JSON_ARRAY)
        return choose_version(supported);
    return code == MCP_MISSING_CAPABILITY || code == HEADER_MISMATCH ? IS_ERROR : IS_LEGACY;
}

static peg_status become_modern(peg_mcp_client *client, const struct mcp__exchange *probe,
                                peg_error *reterr)
{
    const peg_json *result = mcp__exchange_result(probe, reterr);

    if (!result)
        return reterr->status;
    client->era = MCP_MODERN;
    take_server(client,
                peg_json_get(peg_json_get(result, "_meta"), "io.modelcontextprotocol/serverInfo"),
                peg_json_get(result, "capabilities"), MCP_VERSION_MODERN);
    return PEG_OK;
}

/* ---- legacy ---- */

static peg_status take_initialized(peg_mcp_client *client, const peg_json *result,
                                   peg_error *reterr)
{
    const char *version = find_legacy(peg_json_str(peg_json_get(result, "protocolVersion")));
    struct mcp__message m = MCP__MESSAGE;

    if (!version)
        return reject_version(reterr);
    take_server(client, peg_json_get(result, "serverInfo"), peg_json_get(result, "capabilities"),
                version);
    mcp__open_request(&m, 0, "notifications/initialized");
    mcp__close_request(&m);
    if (!m.text.status)
        client->link->send(client, peg__buf_view(&m.text), true);
    mcp__message_free(&m);
    return PEG_OK;
}

static peg_status initialize(peg_mcp_client *client, peg_ctx *ctx, peg_error *reterr)
{
    struct mcp__exchange x = {.client = client, .method = "initialize", .is_repeatable = true};
    struct mcp__message m = MCP__MESSAGE;
    const peg_json *result = NULL;
    peg_status status = mcp__exchange_begin(&x, reterr);

    client->era = MCP_LEGACY;
    if (!status) {
        mcp__open_request(&m, x.id, x.method);
        peg__out_cmember(&m.out, "protocolVersion", MCP_VERSION_LEGACY);
        peg__out_key(&m.out, "capabilities");
        peg__out_raw(&m.out, peg__str("{\"elicitation\":{}}"));
        mcp__put_client_info(&m, "clientInfo");
        mcp__close_request(&m);
        status = mcp__exchange_run(&x, ctx, &m.text, reterr);
    }
    if (!status) {
        result = mcp__exchange_result(&x, reterr);
        status = result ? take_initialized(client, result, reterr) : reterr->status;
    }
    mcp__exchange_end(&x);
    mcp__message_free(&m);
    return status;
}

/* ---- both ---- */

static peg_status send_probe(struct mcp__exchange *probe, peg_ctx *ctx, peg_error *reterr)
{
    struct mcp__message m = MCP__MESSAGE;
    peg_ctx *patient = NULL;
    peg_status status = peg_ctx_with_deadline(ctx, PEG_LIMIT_MCP_IMPORT_PROBE_MS, &patient, reterr);

    probe->client->era = MCP_MODERN;
    if (!status)
        status = mcp__exchange_begin(probe, reterr);
    if (!status) {
        mcp__open_request(&m, probe->id, probe->method);
        mcp__put_request_meta(&m, probe->client, false, 0);
        mcp__close_request(&m);
        status = mcp__exchange_run(probe, patient, &m.text, reterr);
    }
    mcp__message_free(&m);
    peg_ctx_unref(patient);
    return status;
}

/* A server that refuses our version, and names it among those that it takes, is asked once more. */
static peg_status connect_modern(peg_mcp_client *client, struct mcp__exchange *probe, peg_ctx *ctx,
                                 peg_error *reterr)
{
    peg_status status = PEG_OK;

    if (peg_json_get(peg_json_root(probe->answer), "error")) {
        mcp__exchange_end(probe);
        *probe = (struct mcp__exchange){.client = client, .method = "server/discover"};
        status = send_probe(probe, ctx, reterr);
    }
    return status ? status : become_modern(client, probe, reterr);
}

/* The server did not answer in time, or is a legacy one. */
static peg_status connect_legacy(peg_mcp_client *client, const struct mcp__exchange *probe,
                                 peg_ctx *ctx, peg_error *reterr)
{
    peg_error why;
    const peg_status status = initialize(client, ctx, &why);
    bool is_late;

    if (!status)
        return PEG_OK;
    pthread_mutex_lock(&client->wait.lock);
    is_late = probe->answer && judge_probe(probe) == IS_MODERN;
    pthread_mutex_unlock(&client->wait.lock);
    if (is_late && why.status == PEG_EHOST)
        return become_modern(client, probe, reterr);
    *reterr = why;
    return status;
}

peg_status mcp__connect(peg_mcp_client *client, peg_ctx *ctx, peg_error *reterr)
{
    struct mcp__exchange probe = {.client = client, .method = "server/discover"};
    enum verdict verdict = IS_LEGACY;
    peg_status status = send_probe(&probe, ctx, reterr);

    if (!status)
        verdict = judge_probe(&probe);
    else if (probe.is_refused || (status == PEG_ETIMEOUT && !peg_ctx_check(ctx, NULL)))
        status = PEG_OK; /* silence, or a refusal by HTTP */
    if (!status && verdict == IS_LEGACY)
        status = connect_legacy(client, &probe, ctx, reterr);
    else if (!status && verdict == IS_UNKNOWN_VERSION)
        status = reject_version(reterr);
    else if (!status)
        status = connect_modern(client, &probe, ctx, reterr);
    mcp__exchange_end(&probe);
    return status;
}
