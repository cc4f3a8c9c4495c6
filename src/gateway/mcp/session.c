/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sessions of legacy clients, on the loop that made them: what the client can be asked for, the
 * level of its log messages, and which loops had requests of it, since what it cancels or answers
 * may be at any of them. Nothing else is kept, so every loop of every node serves its requests.
 *
 * The id of a session is sealed under the registry's secret, and names its owner:
 *
 *   node 8 | loop 4 | key 16 | abilities 1
 */

#include <endian.h>
#include <string.h>

#include "base/id.h"
#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "gateway/access/access.h"
#include "gateway/mcp/internal.h"

enum {
    PLAIN_BYTES = 8 + 4 + GW_MCP_SESSION_KEY + 1,
    SEALED_BYTES = PLAIN_BYTES + PEG_SEAL_EXTRA,
    SWEEP_MS = 60 * 1000, /* between two looks for those that are over */
};
_Static_assert((SEALED_BYTES + 2) / 3 * 4 + 1 == (int)GW_MCP_SESSION_TEXT, "its text");

/* ---- ids ---- */

static const char PURPOSE[] = "Mcp-Session-Id of MCP";

static bool write_id(const struct gw_mcp_sessions *sessions, const struct gw_mcp_session_id *id,
                     char ret_text[GW_MCP_SESSION_TEXT])
{
    const uint64_t node = htole64(id->owner.node);
    const uint32_t loop = htole32(id->owner.loop);
    char plain[PLAIN_BYTES];
    char sealed[SEALED_BYTES];

    memcpy(plain, &node, 8);
    memcpy(plain + 8, &loop, 4);
    memcpy(plain + 12, id->key, sizeof(id->key));
    plain[PLAIN_BYTES - 1] = (char)id->abilities;
    if (!peg__seal(sessions->secret, PURPOSE, peg__strn(plain, sizeof(plain)), sealed))
        return false;
    peg__base64_encode(peg__strn(sealed, sizeof(sealed)), ret_text);
    return true;
}

bool gw_mcp_session_parse(const struct gw_mcp_sessions *sessions, peg_str text,
                          struct gw_mcp_session_id *ret_id)
{
    char sealed[GW_MCP_SESSION_TEXT];
    char plain[PLAIN_BYTES];
    uint64_t node;
    uint32_t loop;
    size_t len = 0;

    if (text.len != GW_MCP_SESSION_TEXT - 1 || !peg__base64_decode(text, sealed, &len) ||
        len != SEALED_BYTES ||
        !peg__unseal(sessions->secret, PURPOSE, peg__strn(sealed, len), plain))
        return false;
    memcpy(&node, plain, 8);
    memcpy(&loop, plain + 8, 4);
    ret_id->owner = (struct bus_address){le64toh(node), le32toh(loop)};
    memcpy(ret_id->key, plain + 12, sizeof(ret_id->key));
    ret_id->abilities = (unsigned char)plain[PLAIN_BYTES - 1];
    return true;
}

/* ---- its life ---- */

static peg_str view_key(const unsigned char key[GW_MCP_SESSION_KEY])
{
    return peg__strn((const char *)key, GW_MCP_SESSION_KEY);
}

void gw_mcp_session_end(struct gw_mcp_sessions *sessions, struct gw_mcp_session *session)
{
    peg__map_remove(&sessions->by_key, view_key(session->key), NULL);
    peg__quota_give_back(sessions->quota, session->quota_key, 1);
    peg__free(session);
}

static struct gw_mcp_session *new_session(const char *principal, uint16_t quota_key)
{
    const size_t len = strlen(principal);
    struct gw_mcp_session *session = peg__alloc_zero(1, sizeof(*session) + len + 1);

    if (!session)
        return NULL;
    session->log_level = MCP_N_LEVELS;
    session->quota_key = quota_key;
    memcpy(session->principal, principal, len + 1);
    return session;
}

peg_status gw_mcp_session_make(struct gw_mcp_sessions *sessions, const char *principal,
                               uint16_t quota_key, unsigned abilities, int64_t now_ms,
                               char ret_text[GW_MCP_SESSION_TEXT])
{
    struct gw_mcp_session_id id = {.owner = sessions->self, .abilities = abilities};
    struct gw_mcp_session *session;
    peg_status status;

    if (peg__quota_take(sessions->quota, quota_key, 1, PEG__QUOTA_BEGIN))
        return PEG_ELIMIT;
    session = new_session(principal, quota_key);
    status = session && peg__random(id.key, sizeof(id.key)) && write_id(sessions, &id, ret_text)
                 ? peg__map_add(&sessions->by_key, view_key(id.key), session)
                 : PEG_ENOMEM;
    if (status) {
        peg__quota_give_back(sessions->quota, quota_key, 1);
        peg__free(session);
        return status;
    }
    memcpy(session->key, id.key, sizeof(id.key));
    session->used_ms = now_ms;
    if (!sessions->sweep_ms)
        sessions->sweep_ms = now_ms + SWEEP_MS;
    return PEG_OK;
}

static bool is_idle(const struct gw_mcp_session *session, int64_t now_ms)
{
    return session->used_ms + PEG_LIMIT_GATEWAY_MCP_SESSION_IDLE_MS <= now_ms;
}

struct gw_mcp_session *gw_mcp_session_find(struct gw_mcp_sessions *sessions,
                                           const unsigned char key[GW_MCP_SESSION_KEY],
                                           peg_str principal, int64_t now_ms)
{
    struct gw_mcp_session *session = peg__map_get(&sessions->by_key, view_key(key));

    if (!session || !peg__str_is(principal, session->principal) || is_idle(session, now_ms))
        return NULL;
    session->used_ms = now_ms;
    return session;
}

/* The one that came last is first; beyond the limit the oldest is forgotten. */
void gw_mcp_session_note(struct gw_mcp_session *session, struct bus_address loop)
{
    size_t i = 0;

    while (i < session->n_loops && !bus_address_equal(session->loops[i], loop))
        i++;
    if (i == session->n_loops && i < PEG_LIMIT_GATEWAY_MCP_SESSION_LOOPS)
        session->n_loops++;
    if (i == PEG_LIMIT_GATEWAY_MCP_SESSION_LOOPS)
        i--;
    memmove(&session->loops[1], &session->loops[0], i * sizeof(loop));
    session->loops[0] = loop;
}

/* ---- those that are over ---- */

void gw_mcp_sessions_sweep(struct gw_mcp_sessions *sessions, int64_t now_ms)
{
    if (!sessions->sweep_ms || sessions->sweep_ms > now_ms)
        return;
    PEG__MAP_EACH(&sessions->by_key, entry)
    {
        if (is_idle(entry->value, now_ms))
            gw_mcp_session_end(sessions, entry->value);
    }
    sessions->sweep_ms = sessions->by_key.n ? now_ms + SWEEP_MS : 0;
}

void gw_mcp_sessions_end_unknown(struct gw_mcp_sessions *sessions, const struct gw_auth *auth)
{
    PEG__MAP_EACH(&sessions->by_key, entry)
    {
        struct gw_mcp_session *session = entry->value;

        if (!gw_auth_knows(auth, peg__str(session->principal)))
            gw_mcp_session_end(sessions, session);
    }
}

void gw_mcp_sessions_clear(struct gw_mcp_sessions *sessions)
{
    PEG__MAP_EACH(&sessions->by_key, entry)
    gw_mcp_session_end(sessions, entry->value);
    peg__map_free(&sessions->by_key);
}
