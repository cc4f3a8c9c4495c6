/* SPDX-License-Identifier: Apache-2.0 */

/* Who we are and what we can do: the handshake of legacy clients, discovery of modern ones. */

#include "base/text/str.h"
#include "mcp/protocol/internal.h"

static void put_changing(struct peg__out *out, const char *name, bool subscribes)
{
    peg__out_key(out, name);
    peg__out_object(out);
    peg__out_key(out, "listChanged");
    peg__out_bool(out, true);
    if (subscribes) {
        peg__out_key(out, "subscribe");
        peg__out_bool(out, true);
    }
    peg__out_end_object(out);
}

static void put_plain(struct peg__out *out, const char *name)
{
    peg__out_key(out, name);
    peg__out_object(out);
    peg__out_end_object(out);
}

static void put_capabilities(const struct mcp__request *rq, struct peg__out *out)
{
    const struct mcp_config *config = &rq->peer->server->config;
    const unsigned offers = config->source->offers;
    const bool has_state = rq->era == MCP_MODERN || !rq->peer->is_stateless || rq->can;

    peg__out_key(out, "capabilities");
    peg__out_object(out);
    if (offers & MCP_OFFERS_TOOLS)
        put_changing(out, "tools", false);
    if (offers & MCP_OFFERS_RESOURCES)
        put_changing(out, "resources", (offers & MCP_OFFERS_UPDATES) && has_state);
    if (offers & MCP_OFFERS_PROMPTS)
        put_changing(out, "prompts", false);
    if (rq->era == MCP_MODERN && (offers & MCP_OFFERS_EMPTY_LISTS)) {
        put_plain(out, "resources");
        put_plain(out, "prompts");
    }
    if (offers & MCP_OFFERS_COMPLETION)
        put_plain(out, "completions");
    if ((offers & MCP_OFFERS_LOG) && has_state)
        put_plain(out, "logging");
    if (rq->era == MCP_MODERN && mcp__has_tasks(rq->peer->server)) {
        peg__out_key(out, "extensions");
        peg__out_object(out);
        put_plain(out, MCP_TASKS);
        peg__out_end_object(out);
    }
    peg__out_end_object(out);
}

static void put_instructions(const struct mcp__request *rq, struct peg__out *out)
{
    if (rq->peer->server->config.instructions)
        peg__out_cmember(out, "instructions", rq->peer->server->config.instructions);
}

/* The client's version if we speak it, else our latest of its era. */
static const char *choose_version(peg_str wanted)
{
    return peg__str_is(wanted, MCP_VERSION_OLDEST) ? MCP_VERSION_OLDEST : MCP_VERSION_LEGACY;
}

void mcp__initialize(struct mcp__request *rq)
{
    struct mcp_peer *peer = rq->peer;
    const peg_json *version = peg_json_get(rq->params, "protocolVersion");
    const peg_json *capabilities = peg_json_get(rq->params, "capabilities");
    struct peg__out *out;

    if (peg_json_kind_of(version) != PEG_JSON_STRING ||
        peg_json_kind_of(capabilities) != PEG_JSON_OBJECT) {
        mcp__send_errorf(rq, MCP_INVALID_PARAMS,
                         "initialize needs protocolVersion, a string, and capabilities, an object");
        return;
    }
    if (peer->version) {
        mcp__send_errorf(rq, MCP_INVALID_REQUEST, "initialize was sent before: once is enough");
        return;
    }
    peer->version = choose_version(peg_json_str(version));
    peer->abilities = rq->can = mcp__abilities_of(capabilities);
    out = mcp__open_result(rq, "complete");
    peg__out_cmember(out, "protocolVersion", peer->version);
    put_capabilities(rq, out);
    peg__out_key(out, "serverInfo");
    peg__out_raw(out, peer->server->info);
    put_instructions(rq, out);
    mcp__send_result(rq, (peg_str){"", 0});
}

void mcp__discover(struct mcp__request *rq)
{
    struct peg__out *out = mcp__open_result(rq, "complete");

    peg__out_key(out, "supportedVersions");
    peg__out_array(out);
    peg__out_cstring(out, MCP_VERSION_MODERN);
    peg__out_end_array(out);
    put_capabilities(rq, out);
    put_instructions(rq, out);
    mcp__put_cache_hints(rq, out);
    mcp__send_result(rq, (peg_str){"", 0});
}

void mcp__ping(struct mcp__request *rq)
{
    mcp__send_empty(rq);
}

void mcp__set_level(struct mcp__request *rq)
{
    const int level = mcp_level_of(peg_json_str(peg_json_get(rq->params, "level")));

    if (level == MCP_N_LEVELS) {
        mcp__send_errorf(rq, MCP_INVALID_PARAMS,
                         "level must be debug, info, notice, warning, error, critical, alert or "
                         "emergency");
        return;
    }
    rq->peer->log_level = level;
    rq->peer->has_set_level = true;
    mcp__send_empty(rq);
}
