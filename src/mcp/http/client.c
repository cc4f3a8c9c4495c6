/* SPDX-License-Identifier: Apache-2.0 */

/* Clients. A legacy one that has initialized has a session, which other requests name; all others
 * are known for one request. */

#include <string.h>
#include <time.h>

#include "base/limits/mcp.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "mcp/http/internal.h"

struct mcp__web_client *mcp__web_client_new(struct mcp_web *web, const char *principal,
                                            const struct mcp_peer_ops *ops)
{
    const size_t len = strlen(principal);
    struct mcp__web_client *client = peg__alloc_zero(1, sizeof(*client) + len + 1);

    if (!client)
        return NULL;
    memcpy(client->principal, principal, len + 1);
    client->web = web;
    client->used_ms = mcp__now_ms();
    if (mcp_peer_new(web->protocol, ops, client, principal, &client->peer)) {
        peg__free(client);
        return NULL;
    }
    PEG_LIST_PUSH(web->clients, client, next, prev);
    return client;
}

struct mcp__web_client *mcp__web_client_find(struct mcp_web *web, peg_str id, const char *principal)
{
    struct mcp__web_client *client = peg__map_get(&web->sessions, id);

    if (!client || strcmp(client->principal, principal) != 0)
        return NULL;
    client->used_ms = mcp__now_ms();
    return client;
}

/* The one that was not used for the longest time, of those of the principal without an open
 * request: a principal ends no sessions of others. */
static struct mcp__web_client *find_idlest(const struct mcp_web *web, const char *principal)
{
    struct mcp__web_client *idlest = NULL;

    PEG__MAP_EACH(&web->sessions, entry)
    {
        struct mcp__web_client *client = entry->value;

        if (!client->exchanges && strcmp(client->principal, principal) == 0 &&
            (!idlest || client->used_ms < idlest->used_ms))
            idlest = client;
    }
    return idlest;
}

void mcp__web_client_keep(struct mcp__web_client *client)
{
    struct mcp_web *web = client->web;

    if (web->sessions.n >= PEG_LIMIT_MCP_SESSIONS) {
        struct mcp__web_client *idlest = find_idlest(web, client->principal);

        if (!idlest)
            return;
        mcp__web_client_end(idlest);
    }
    if (!peg__id_hex(client->id) || peg__map_add(&web->sessions, peg__str(client->id), client))
        client->id[0] = '\0';
}

void mcp__web_client_end(struct mcp__web_client *client)
{
    if (client->id[0])
        peg__map_remove(&client->web->sessions, peg__str(client->id), NULL);
    client->id[0] = '\0';
    client->peer = mcp_peer_free(client->peer);
    for (struct mcp__exchange *exchange = client->exchanges; exchange; exchange = exchange->next)
        mcp__wake(exchange);
}

/* ---- its requests ---- */

struct mcp__exchange *mcp__exchange_new(struct mcp__web_client *client, const peg_mcp_http *http)
{
    struct mcp__exchange *exchange = peg__alloc_zero(1, sizeof(*exchange));
    pthread_condattr_t attributes;

    if (!exchange)
        return NULL;
    exchange->client = client;
    exchange->http = http;
    exchange->out = (struct peg__buf)PEG__BUF(2 * (size_t)PEG_LIMIT_MCP_RESULT_BYTES);
    exchange->written_ms = mcp__now_ms();
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&exchange->woken, &attributes);
    pthread_condattr_destroy(&attributes);
    PEG_LIST_PUSH(client->exchanges, exchange, next, prev);
    return exchange;
}

static void free_exchange(struct mcp__exchange *exchange)
{
    PEG_LIST_REMOVE(exchange->client->exchanges, exchange, next, prev);
    pthread_cond_destroy(&exchange->woken);
    peg__buf_free(&exchange->out);
    peg__free(exchange);
}

/* Those that were lost, and are answered or will not be. */
static void free_lost(struct mcp__web_client *client)
{
    struct mcp__exchange *next;

    for (struct mcp__exchange *exchange = client->exchanges; exchange; exchange = next) {
        next = exchange->next;
        if (!exchange->http && (exchange->stage == MCP__ANSWERED || !client->peer ||
                                !mcp_peer_awaits(client->peer, exchange)))
            free_exchange(exchange);
    }
}

/* ---- those that nothing keeps ---- */

static bool is_kept(const struct mcp__web_client *client)
{
    return client->exchanges ||
           (client->id[0] && client->used_ms + PEG_LIMIT_MCP_SESSION_MS > mcp__now_ms());
}

void mcp__web_reap(struct mcp_web *web)
{
    struct mcp__web_client *next;

    for (struct mcp__web_client *client = web->clients; client; client = next) {
        next = client->next;
        free_lost(client);
        if (is_kept(client))
            continue;
        mcp__web_client_end(client);
        PEG_LIST_REMOVE(web->clients, client, next, prev);
        peg__free(client);
    }
}
