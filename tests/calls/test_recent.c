/* SPDX-License-Identifier: Apache-2.0 */

/* Calls that ended lately: what is kept of them, and for how long. */

#include "../t.h"

#include "../gateway/calls_world.h"
#include "base/limits/recent.h"
#include "base/text/str.h"
#include "calls/recent.h"

static struct calls_summary summary_of(unsigned n, peg_str principal, peg_str tool)
{
    struct calls_summary summary = {
        .id.len = 16,
        .begun_ns = n,
        .took_ns = 2 * (int64_t)n,
        .attempt = 1,
        .has_ended = true,
        .code = {"", 0},
        .principal = principal,
        .toolset = peg_cstr("sums"),
        .tool = tool,
        .provider = peg_cstr("incarnation-1"),
    };

    memcpy(summary.id.bytes, &n, sizeof(n));
    return summary;
}

static void add(struct calls_recent *recent, unsigned n, peg_str principal, peg_str tool)
{
    const struct calls_summary summary = summary_of(n, principal, tool);

    calls_recent_add(recent, &summary);
}

TEST(the_last_one_that_ended_is_the_first)
{
    struct calls_recent *recent = calls_recent_new();
    struct calls_summary found;

    CHECK(!calls_recent_get(recent, 0, &found));
    add(recent, 1, peg_cstr("ada"), peg_cstr("add"));
    add(recent, 2, peg_cstr("bob"), peg_cstr("subtract"));
    CHECK(calls_recent_get(recent, 0, &found));
    CHECK_INT(found.begun_ns, 2);
    CHECK_INT(found.took_ns, 4);
    CHECK_STR(found.principal, "bob");
    CHECK_STR(found.toolset, "sums");
    CHECK_STR(found.tool, "subtract");
    CHECK_STR(found.provider, "incarnation-1");
    CHECK_STR(found.code, "");
    CHECK(calls_recent_get(recent, 1, &found));
    CHECK_STR(found.principal, "ada");
    CHECK(!calls_recent_get(recent, 2, &found));
    calls_recent_free(recent);
}

/* Numbers go down without a gap, as far as there are any. */
static size_t count_kept(const struct calls_recent *recent, unsigned last)
{
    struct calls_summary found;
    size_t n = 0;

    for (; calls_recent_get(recent, n, &found); n++)
        CHECK_INT(found.begun_ns, last - n);
    return n;
}

TEST(the_oldest_is_overwritten_when_there_are_too_many)
{
    struct calls_recent *recent = calls_recent_new();
    const unsigned last = 3 * PEG_LIMIT_GATEWAY_RECENT_CALLS + 7;

    for (unsigned i = 1; i <= last; i++)
        add(recent, i, peg_cstr("ada"), peg_cstr("add"));
    CHECK_INT(count_kept(recent, last), PEG_LIMIT_GATEWAY_RECENT_CALLS);
    calls_recent_free(recent);
}

/* Texts of any length stay whole, or their record is gone. */
TEST(long_names_make_it_keep_fewer)
{
    struct calls_recent *recent = calls_recent_new();
    struct calls_summary found;
    char name[2 * PEG_LIMIT_TLS_NAME_BYTES + 2];
    unsigned last = 0;

    memset(name, 'x', sizeof(name));
    for (unsigned len = 0; len < 2000; len += 7) {
        add(recent, ++last, peg__strn(name, len), peg_cstr("add"));
        CHECK(calls_recent_get(recent, 0, &found));
        CHECK_INT(found.principal.len, len);
        CHECK_STR(found.provider, "incarnation-1");
    }
    CHECK(count_kept(recent, last) > 60 && count_kept(recent, last) < 90);
    for (size_t i = 0; calls_recent_get(recent, i, &found); i++)
        CHECK(!found.principal.len || memcmp(found.principal.ptr, name, found.principal.len) == 0);

    /* No principal has such a name; a tool's code may be as long as its provider likes. */
    add(recent, 9999, peg__strn(name, sizeof(name)), peg_cstr("add"));
    CHECK(count_kept(recent, last) > 60);
    calls_recent_free(recent);
}

TEST(the_code_of_a_tools_own_error_is_kept)
{
    static const char response[] = "\x1a\x0b\x0a\x05"
                                   "E_SUM"
                                   "\x12\x02"
                                   "no";
    const struct calls_outcome failed = {.kind = CALLS_KIND_ERROR,
                                         .response = {response, sizeof(response) - 1}};
    const struct calls_outcome late = {.kind = CALLS_KIND_TIMEOUT, .error = CALLS_TIMEOUT};
    struct calls_summary summary = summary_of(1, peg_cstr("ada"), peg_cstr("add"));

    calls_summary_set_outcome(&summary, &failed);
    CHECK(summary.has_ended && summary.kind == CALLS_KIND_ERROR);
    CHECK_STR(summary.code, "E_SUM");
    summary = summary_of(1, peg_cstr("ada"), peg_cstr("add"));
    calls_summary_set_outcome(&summary, &late);
    CHECK_INT(summary.error, CALLS_TIMEOUT);
    CHECK_STR(summary.code, "");
}

TEST(a_code_that_is_too_long_is_left_out_and_the_rest_is_kept)
{
    struct calls_recent *recent = calls_recent_new();
    struct calls_summary summary = summary_of(1, peg_cstr("ada"), peg_cstr("add"));
    struct calls_summary found;
    char code[PEG_LIMIT_GATEWAY_RECENT_CODE_BYTES + 1];

    memset(code, 'E', sizeof(code));
    summary.code = peg__strn(code, sizeof(code) - 1);
    calls_recent_add(recent, &summary);
    CHECK(calls_recent_get(recent, 0, &found));
    CHECK_INT(found.code.len, sizeof(code) - 1);
    summary.code = peg__strn(code, sizeof(code));
    calls_recent_add(recent, &summary);
    CHECK(calls_recent_get(recent, 0, &found));
    CHECK_STR(found.code, "");
    CHECK_STR(found.tool, "add");
    calls_recent_free(recent);
}

/* ---- of a loop ---- */

struct listed {
    unsigned n;
    unsigned n_ended;
    struct calls_summary last;
};

static void note(void *user, const struct calls_summary *summary)
{
    struct listed *listed = (struct listed *)user;

    listed->n++;
    listed->n_ended += summary->has_ended;
    listed->last = *summary;
}

static struct listed list(struct world *world, const char *principal)
{
    struct listed listed = {0};

    CHECK(calls_list(world->calls, peg__str(principal), note, &listed));
    return listed;
}

TEST(a_call_is_listed_once_while_it_runs_and_when_it_has_ended)
{
    struct world world;
    struct player player;
    struct caller caller;
    struct listed listed;
    const struct calls_options options = {0};

    world_open(&world, &options);
    attach(&world, &player, "incarnation-1", 4);
    settle(&world);
    call_as(&world, &caller, "add", "key", 5000);
    settle(&world);
    listed = list(&world, "local");
    CHECK_INT(listed.n, 1);
    CHECK_INT(listed.n_ended, 0);
    CHECK(listed.last.was_sent && listed.last.attempt == 1);
    CHECK_INT(list(&world, "token:other").n, 0);

    answer(&world, &player, &player.handed[0], "5");
    settle(&world);
    listed = list(&world, "local");
    CHECK_INT(listed.n, 1);
    CHECK_INT(listed.n_ended, 1);
    CHECK_INT(listed.last.kind, CALLS_KIND_RESULT);
    CHECK_INT(list(&world, "token:other").n, 0);
    world_close(&world);
}

TORTURE(a_ring_survives_any_allocation_failure)
{
    struct calls_recent *recent = calls_recent_new();
    struct calls_summary found;

    if (!recent)
        return PEG_ENOMEM;
    add(recent, 1, peg_cstr("ada"), peg_cstr("add"));
    CHECK(calls_recent_get(recent, 0, &found));
    calls_recent_free(recent);
    return PEG_OK;
}
