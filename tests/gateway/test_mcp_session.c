/* SPDX-License-Identifier: Apache-2.0 */

/* Sessions of legacy clients on the loop that owns them. */

#include "base/text/str.h"
#include "gateway/mcp/internal.h"
#include "t.h"

#include "requests.h"

enum { ABILITIES = 5, IDLE_MS = PEG_LIMIT_GATEWAY_MCP_SESSION_IDLE_MS };

struct world {
    struct peg__quota quota;
    struct gw_mcp_sessions sessions;
    struct gw_mcp_session_id id;    /* of the last one that was made */
    char text[GW_MCP_SESSION_TEXT]; /* likewise */
};

static peg_status world_init(struct world *w, bool has_shares)
{
    *w = (struct world){.sessions = {.by_key = PEG__MAP(PEG_LIMIT_GATEWAY_MCP_SESSIONS),
                                     .quota = &w->quota,
                                     .self = {.node = 0x1122334455667788, .loop = 3},
                                     .secret = "a secret of the registry"}};
    return peg__quota_init(&w->quota,
                           &(struct peg__quota_limits){.max = PEG_LIMIT_GATEWAY_MCP_SESSIONS,
                                                       .has_shares = has_shares});
}

static void world_free(struct world *w)
{
    gw_mcp_sessions_clear(&w->sessions);
    CHECK_INT(peg__quota_used(&w->quota), 0);
    peg__quota_destroy(&w->quota);
}

static peg_status make(struct world *w, const char *principal, uint16_t key, int64_t now_ms)
{
    const peg_status status =
        gw_mcp_session_make(&w->sessions, principal, key, ABILITIES, now_ms, w->text);

    if (!status && !gw_mcp_session_parse(&w->sessions, peg__str(w->text), &w->id))
        return PEG_ENOMEM; /* whatever was sealed can be opened, given memory */
    return status;
}

static struct gw_mcp_session *find(struct world *w, const char *principal, int64_t now_ms)
{
    return gw_mcp_session_find(&w->sessions, w->id.key, peg__str(principal), now_ms);
}

TEST(an_id_names_the_owner_and_what_the_client_can_be_asked)
{
    struct world w;

    CHECK_INT(world_init(&w, false), PEG_OK);
    CHECK_INT(make(&w, "token:a", 0, 1), PEG_OK);

    CHECK(bus_address_equal(w.id.owner, w.sessions.self));
    CHECK_INT(w.id.abilities, ABILITIES);
    CHECK_INT(strlen(w.text), GW_MCP_SESSION_TEXT - 1);
    for (const char *at = w.text; *at; at++)
        CHECK(*at > 0x20 && *at < 0x7f);
    world_free(&w);
}

TEST(an_id_that_was_changed_or_sealed_elsewhere_is_none)
{
    struct gw_mcp_session_id id;
    struct world w;

    CHECK_INT(world_init(&w, false), PEG_OK);
    CHECK_INT(make(&w, "token:a", 0, 1), PEG_OK);

    CHECK(!gw_mcp_session_parse(&w.sessions, peg__str(""), &id));
    CHECK(!gw_mcp_session_parse(&w.sessions, peg__strn(w.text, GW_MCP_SESSION_TEXT - 2), &id));
    for (size_t i = 0; i < GW_MCP_SESSION_TEXT - 1; i++) {
        const char before = w.text[i];

        w.text[i] = before == 'A' ? 'B' : 'A';
        CHECK(!gw_mcp_session_parse(&w.sessions, peg__str(w.text), &id));
        w.text[i] = before;
    }
    w.sessions.secret[0] ^= 1;
    CHECK(!gw_mcp_session_parse(&w.sessions, peg__str(w.text), &id));
    world_free(&w);
}

TEST(a_session_is_its_principals_until_it_ends)
{
    struct world w;
    struct gw_mcp_session *session;

    CHECK_INT(world_init(&w, false), PEG_OK);
    CHECK_INT(make(&w, "token:a", 0, 1), PEG_OK);

    CHECK(!find(&w, "token:b", 2));
    CHECK(!find(&w, "token:aa", 2));
    session = find(&w, "token:a", 2);
    CHECK(session);
    CHECK_INT(session->log_level, MCP_N_LEVELS);
    gw_mcp_session_end(&w.sessions, session);
    CHECK(!find(&w, "token:a", 3));
    world_free(&w);
}

TEST(an_idle_session_ends_and_one_that_is_used_does_not)
{
    struct world w;
    struct gw_mcp_session_id used;

    CHECK_INT(world_init(&w, false), PEG_OK);
    CHECK_INT(make(&w, "token:a", 0, 1), PEG_OK);
    used = w.id;
    CHECK_INT(make(&w, "token:a", 0, 1), PEG_OK);

    CHECK(gw_mcp_session_find(&w.sessions, used.key, peg__str("token:a"), IDLE_MS));
    CHECK(!find(&w, "token:a", IDLE_MS + 1));
    CHECK_INT(w.sessions.by_key.n, 2);
    gw_mcp_sessions_sweep(&w.sessions, 2);
    CHECK_INT(w.sessions.by_key.n, 2);
    gw_mcp_sessions_sweep(&w.sessions, IDLE_MS + 1);
    CHECK_INT(w.sessions.by_key.n, 1);
    CHECK(w.sessions.sweep_ms > IDLE_MS + 1);
    gw_mcp_sessions_sweep(&w.sessions, 3 * (int64_t)IDLE_MS);
    CHECK_INT(w.sessions.by_key.n, 0);
    CHECK_INT(w.sessions.sweep_ms, 0);
    CHECK_INT(peg__quota_used(&w.quota), 0);
    world_free(&w);
}

TEST(a_node_has_so_many_sessions_and_no_more)
{
    struct world w;

    CHECK_INT(world_init(&w, false), PEG_OK);
    for (int i = 0; i < PEG_LIMIT_GATEWAY_MCP_SESSIONS; i++)
        CHECK_INT(make(&w, "anybody", 0, 1), PEG_OK);

    CHECK_INT(make(&w, "anybody", 0, 1), PEG_ELIMIT);
    gw_mcp_session_end(&w.sessions, find(&w, "anybody", 2));
    CHECK_INT(make(&w, "anybody", 0, 1), PEG_OK);
    world_free(&w);
}

TEST(a_principal_with_many_sessions_leaves_some_to_others)
{
    struct world w;
    int n = 0;

    CHECK_INT(world_init(&w, true), PEG_OK);
    while (make(&w, "token:a", 7, 1) == PEG_OK)
        n++;

    CHECK_INT(n, PEG_LIMIT_GATEWAY_MCP_SESSIONS / 4 * 3);
    CHECK_INT(make(&w, "token:a", 7, 1), PEG_ELIMIT);
    CHECK_INT(make(&w, "token:b", 8, 1), PEG_OK);
    world_free(&w);
}

TEST(the_loops_of_a_session_are_noted_the_last_one_first)
{
    enum { MOST = PEG_LIMIT_GATEWAY_MCP_SESSION_LOOPS };
    struct world w;
    struct gw_mcp_session *session;

    CHECK_INT(world_init(&w, false), PEG_OK);
    CHECK_INT(make(&w, "token:a", 0, 1), PEG_OK);
    session = find(&w, "token:a", 1);
    CHECK(session);

    for (uint32_t i = 0; i < MOST; i++)
        gw_mcp_session_note(session, (struct bus_address){.node = 9, .loop = i});
    gw_mcp_session_note(session, (struct bus_address){.node = 9, .loop = 1});
    CHECK_INT(session->n_loops, MOST);
    CHECK_INT(session->loops[0].loop, 1);
    CHECK_INT(session->loops[1].loop, MOST - 1);
    CHECK_INT(session->loops[MOST - 1].loop, 0);
    gw_mcp_session_note(session, (struct bus_address){.node = 9, .loop = 99});
    CHECK_INT(session->n_loops, MOST);
    CHECK_INT(session->loops[0].loop, 99);
    CHECK_INT(session->loops[MOST - 1].loop, 2);
    world_free(&w);
}

TORTURE(making_a_session_survives_any_allocation_failure)
{
    struct world w;
    peg_status status = world_init(&w, true);

    if (!status)
        status = make(&w, "token:a", 7, 1);
    if (!status && !find(&w, "token:a", 1))
        status = PEG_EIO;
    gw_mcp_sessions_clear(&w.sessions);
    peg__quota_destroy(&w.quota);
    return status;
}

/* ---- messages ---- */

static struct gw_mcp_peeked peek(const char *text)
{
    struct gw_mcp_peeked peeked;

    gw_mcp_peek(peg__str(text), &peeked);
    return peeked;
}

TEST(an_answer_names_the_loop_that_asked)
{
    struct gw_mcp_peeked peeked =
        peek("{\"jsonrpc\":\"2.0\",\"id\":\"9f86d081884c7d65.2/abc:k\",\"result\":{}}");

    CHECK(peeked.is_answer && !peeked.is_cancellation);
    CHECK(bus_address_equal(peeked.asker,
                            (struct bus_address){.node = 0x9f86d081884c7d65, .loop = 2}));
    peeked = peek("{\"jsonrpc\":\"2.0\",\"id\":\"9f86d081884c7d65.2/a\",\"error\":{\"code\":1}}");
    CHECK(peeked.is_answer && peeked.asker.loop == 2);
    for (size_t i = 0; i < 5; i++) {
        static const char *const ids[] = {"7", "\"\"", "\"/\"", "\"x.1/a\"",
                                          "\"9f86d081884c7d65.2\""};
        char text[128];

        snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}", ids[i]);
        peeked = peek(text);
        CHECK(peeked.is_answer && !peeked.asker.node);
    }
}

TEST(other_messages_concern_other_loops_if_they_cancel_or_set_a_level)
{
    CHECK(peek("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}").is_cancellation);
    CHECK(!peek("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}").is_cancellation);
    CHECK(!peek("{\"jsonrpc\":\"2.0\",\"id\":\"9f86d081884c7d65.2/a\",\"method\":\"ping\"}")
               .is_answer);
    CHECK_INT(peek("{\"method\":\"logging/setLevel\",\"params\":{\"level\":\"error\"}}").log_level,
              MCP_LEVEL_ERROR);
    CHECK_INT(peek("{\"method\":\"logging/setLevel\",\"params\":{\"level\":\"x\"}}").log_level,
              MCP_N_LEVELS);
    CHECK_INT(peek("{\"method\":\"ping\",\"params\":{\"level\":\"error\"}}").log_level,
              MCP_N_LEVELS);
    CHECK_INT(peek("{").log_level, MCP_N_LEVELS);
}
