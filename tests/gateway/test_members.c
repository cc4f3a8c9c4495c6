/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/members/members.h"

#include "base/limits.h"
#include "t.h"

#include "fake_bus.h"

/* ---- fixture: the first loops of two nodes --------------------------------------------------- */

enum { LEASE_MS = 9000 };

struct world {
    struct fake_hub hub;
    struct fake_bus buses[2];
    struct gw_members *members[2];
    enum gw_member_state states[2];
};

static struct world w;

static void describe(void *user, struct gw_member *member)
{
    const unsigned i = *(const unsigned *)user;

    snprintf(member->version, sizeof(member->version), "1.2.3");
    snprintf(member->address, sizeof(member->address), "10.0.0.%u:9090", i + 1);
    member->state = w.states[i];
    member->providers = 7;
}

static peg_status start_node(unsigned i)
{
    static unsigned numbers[2] = {0, 1};
    const struct gw_members_options options = {.bus = &w.buses[i].bus,
                                               .is_home = true,
                                               .lease_ms = LEASE_MS,
                                               .describe = describe,
                                               .user = &numbers[i]};

    fake_init(&w.buses[i], &w.hub, 0xA + i, 0);
    return gw_members_new(&options, &w.members[i], NULL);
}

static void world_start(void)
{
    w = (struct world){.states = {GW_MEMBER_SERVING, GW_MEMBER_SERVING}};
    CHECK_INT(start_node(0), PEG_OK);
}

static void world_stop(void)
{
    gw_members_free(w.members[0]);
    gw_members_free(w.members[1]);
    fake_hub_free(&w.hub);
}

static size_t n_listed(unsigned i)
{
    size_t n;

    gw_members_list(w.members[i], &n);
    return n;
}

static enum gw_admission admission(unsigned i)
{
    const struct gw_member *other;

    return gw_members_admission(w.members[i], &other);
}

static void plant(const char *key, int protocol, int64_t age_ms)
{
    char text[200];

    snprintf(text, sizeof(text),
             "{\"protocol\":%d,\"version\":\"9.9.9\",\"address\":\"far:1\",\"written_ms\":%lld,"
             "\"lease_ms\":%d,\"later\":{\"a\":[1]}}",
             protocol, (long long)(fake_now_ms(&w.buses[0].bus) - age_ms), LEASE_MS);
    fake_put(&w.hub, BUS_MAP_NODES, key, text);
}

/* ---- an entry -------------------------------------------------------------------------------- */

TEST(an_entry_is_read_as_it_was_written)
{
    const struct gw_member member = {.node = 0xABCDEF,
                                     .protocol = 3,
                                     .version = "1.2.3",
                                     .address = "10.0.0.1:9090",
                                     .store = "memory",
                                     .state = GW_MEMBER_DRAINING,
                                     .started_ms = 1,
                                     .written_ms = 2,
                                     .lease_ms = 3,
                                     .threads = 4,
                                     .providers = 5,
                                     .in_flight = 6,
                                     .queued = 7,
                                     .settled = 8,
                                     .unknown = 9,
                                     .lag_us = 10,
                                     .results = 11,
                                     .errors = 12,
                                     .timeouts = 13,
                                     .canceled = 14,
                                     .refused = 15,
                                     .rate = 16};
    struct peg__blob *value = gw_member_write(&member);
    char key[GW_MEMBER_KEY];
    struct gw_member got;

    gw_member_key(member.node, key);
    CHECK_STR(peg__str(key), "0000000000abcdef");
    CHECK_INT(gw_member_read(peg__str(key), value, &got), PEG_OK);

    CHECK(got.node == member.node && got.protocol == 3 && got.state == GW_MEMBER_DRAINING);
    CHECK_STR(peg__str(got.version), "1.2.3");
    CHECK_STR(peg__str(got.address), "10.0.0.1:9090");
    CHECK_STR(peg__str(got.store), "memory");
    CHECK(got.started_ms == 1 && got.written_ms == 2 && got.lease_ms == 3 && got.threads == 4);
    CHECK(got.providers == 5 && got.in_flight == 6 && got.queued == 7 && got.settled == 8);
    CHECK(got.unknown == 9 && got.lag_us == 10 && got.results == 11 && got.errors == 12);
    CHECK(got.timeouts == 13 && got.canceled == 14 && got.refused == 15 && got.rate == 16);
    peg__blob_unref(value);
}

TEST(entries_that_are_none_are_refused)
{
    static const char *const keys[] = {"", "abc", "00000000000000000", "000000000000000g",
                                       "0000000000000000"};
    static const char *const values[] = {
        "",
        "[]",
        "{}",
        "{\"protocol\":1}",
        "{\"protocol\":\"1\",\"lease_ms\":1}",
        "{\"protocol\":1,\"lease_ms\":-1}",
        "{\"protocol\":1,\"lease_ms\":1,\"version\":7}",
        "{\"protocol\":1,\"lease_ms\":1,\"version\":\"\\u001b[2J\"}",
        "{\"protocol\":1,\"lease_ms\":1,\"version\":\"0123456789012345678901234567890123456789\"}",
    };
    struct peg__blob *good = peg__blob_copy(peg__str("{\"protocol\":1,\"lease_ms\":1}"));
    struct gw_member member;

    CHECK_INT(gw_member_read(peg__str("000000000000000a"), good, &member), PEG_OK);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        CHECK_INT(gw_member_read(peg__str(keys[i]), good, &member), PEG_EPARSE);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct peg__blob *value = peg__blob_copy(peg__str(values[i]));

        CHECK_INT(gw_member_read(peg__str("000000000000000a"), value, &member), PEG_EPARSE);
        peg__blob_unref(value);
    }
    peg__blob_unref(good);
}

/* ---- who there is ---------------------------------------------------------------------------- */

TEST(nodes_know_each_other_in_the_order_of_their_ids)
{
    size_t n;
    const struct gw_member *members;

    world_start();
    CHECK_INT(start_node(1), PEG_OK);
    members = gw_members_list(w.members[0], &n);

    CHECK_INT(n, 2);
    CHECK(members[0].node == 0xA && members[1].node == 0xB);
    CHECK_STR(peg__str(members[1].address), "10.0.0.2:9090");
    CHECK_INT(members[1].providers, 7);
    CHECK_INT(members[1].protocol, GW_PROTOCOL);
    CHECK_INT(n_listed(1), 2);
    world_stop();
}

TEST(a_node_that_ends_takes_itself_out)
{
    world_start();
    CHECK_INT(start_node(1), PEG_OK);
    w.members[1] = gw_members_free(w.members[1]);

    CHECK_INT(n_listed(0), 1);
    world_stop();
}

TEST(a_node_reports_again_while_it_lives)
{
    world_start();
    CHECK_INT(start_node(1), PEG_OK);
    fake_run(&w.hub, 20 * LEASE_MS);

    CHECK_INT(n_listed(0), 2);
    CHECK(gw_members_is_live(w.members[0], gw_members_find(w.members[0], 0xB)));
    world_stop();
}

TEST(what_a_node_is_now_is_reported_at_once_if_it_says_so)
{
    world_start();
    CHECK_INT(start_node(1), PEG_OK);
    w.states[1] = GW_MEMBER_DRAINING;
    CHECK_INT(gw_members_find(w.members[0], 0xB)->state, GW_MEMBER_SERVING);
    gw_members_refresh(w.members[1]);

    CHECK_INT(gw_members_find(w.members[0], 0xB)->state, GW_MEMBER_DRAINING);
    world_stop();
}

TEST(a_node_that_is_reported_lost_is_taken_out_and_comes_back_if_it_lives)
{
    world_start();
    CHECK_INT(start_node(1), PEG_OK);
    gw_members_on_node_lost(w.members[0], (struct bus_address){.node = 0xB, .loop = 1});
    CHECK_INT(n_listed(0), 2);
    gw_members_on_node_lost(w.members[0], (struct bus_address){.node = 0xB});
    CHECK_INT(n_listed(0), 1);
    fake_run(&w.hub, LEASE_MS / 2);

    CHECK_INT(n_listed(0), 2);
    world_stop();
}

TEST(a_node_that_died_unseen_is_taken_out_after_its_lease)
{
    world_start();
    plant("00000000000000ff", GW_PROTOCOL, LEASE_MS / 2);
    CHECK_INT(n_listed(0), 2);
    fake_run(&w.hub, LEASE_MS / 3);
    CHECK_INT(n_listed(0), 2);
    fake_run(&w.hub, LEASE_MS);

    CHECK_INT(n_listed(0), 1);
    world_stop();
}

TEST(a_map_that_was_lost_is_filled_again)
{
    world_start();
    plant("00000000000000ff", GW_PROTOCOL, 0);
    CHECK_INT(n_listed(0), 2);
    fake_lose(&w.hub);

    CHECK_INT(n_listed(0), 1);
    CHECK(fake_find(&w.hub, BUS_MAP_NODES, peg__str("000000000000000a"))->value != NULL);
    world_stop();
}

TEST(an_entry_that_could_not_be_written_is_written_later)
{
    w = (struct world){.hub = {.fails = PEG_EIO}};
    CHECK_INT(start_node(0), PEG_OK);
    CHECK_INT(admission(0), GW_ADMISSION_PENDING);
    w.hub.fails = PEG_OK;
    fake_run(&w.hub, LEASE_MS / 2);

    CHECK_INT(n_listed(0), 1);
    CHECK_INT(admission(0), GW_ADMITTED);
    world_stop();
}

/* ---- protocols ------------------------------------------------------------------------------- */

TEST(a_node_is_admitted_when_its_entry_is_written)
{
    w = (struct world){.hub = {.is_slow = true}};
    CHECK_INT(start_node(0), PEG_OK);
    CHECK_INT(admission(0), GW_ADMISSION_PENDING);
    fake_answer_all(&w.hub);

    CHECK_INT(admission(0), GW_ADMITTED);
    world_stop();
}

TEST(a_node_is_refused_for_a_live_one_of_another_protocol)
{
    const struct gw_member *other = NULL;

    w = (struct world){.states = {GW_MEMBER_STARTING}};
    fake_init(&w.buses[0], &w.hub, 0xA, 0);
    plant("00000000000000ff", GW_PROTOCOL + 1, 0);
    CHECK_INT(start_node(0), PEG_OK);

    CHECK_INT(gw_members_admission(w.members[0], &other), GW_NOT_ADMITTED);
    CHECK(other && other->node == 0xFF && other->protocol == GW_PROTOCOL + 1);
    world_stop();
}

TEST(a_dead_node_of_another_protocol_is_no_reason_to_refuse)
{
    w = (struct world){.states = {GW_MEMBER_STARTING}};
    fake_init(&w.buses[0], &w.hub, 0xA, 0);
    plant("00000000000000ff", GW_PROTOCOL + 1, LEASE_MS + 1);
    CHECK_INT(start_node(0), PEG_OK);

    CHECK_INT(admission(0), GW_ADMITTED);
    world_stop();
}

TEST(of_two_nodes_that_start_at_once_the_later_write_sees_the_other)
{
    w = (struct world){.hub = {.is_slow = true}};
    fake_init(&w.buses[0], &w.hub, 0xA, 0);
    CHECK_INT(start_node(0), PEG_OK);
    plant("00000000000000ff", GW_PROTOCOL + 1, 0); /* before the answer to ours comes */
    fake_answer_all(&w.hub);

    CHECK_INT(admission(0), GW_NOT_ADMITTED);
    world_stop();
}

TEST(a_node_that_was_admitted_stays_so)
{
    world_start();
    CHECK_INT(admission(0), GW_ADMITTED);
    plant("00000000000000ff", GW_PROTOCOL + 1, 0);
    fake_run(&w.hub, LEASE_MS / 2);

    CHECK_INT(admission(0), GW_ADMITTED);
    world_stop();
}

TORTURE(members_survive_any_allocation_failure)
{
    peg_status status;

    w = (struct world){.states = {GW_MEMBER_SERVING}};
    fake_init(&w.buses[0], &w.hub, 0xA, 0);
    status = start_node(0);
    if (!status) {
        fake_run(&w.hub, 3 * LEASE_MS);
        if (n_listed(0) != 1 || admission(0) != GW_ADMITTED)
            status = PEG_ENOMEM;
    }
    world_stop();
    return status;
}
