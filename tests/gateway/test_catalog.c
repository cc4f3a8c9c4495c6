/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/catalog/catalog.h"

#include "base/clock.h"
#include "base/limits.h"
#include "t.h"

#include "catalog_world.h"
#include "gateway/catalog/internal.h"

static struct world w;

static const char *error_name(void)
{
    return wire_error_name(gw_wire_error(&w.error));
}

/* ---- registering -------------------------------------------------------------------------------
 */

TEST(an_empty_catalog_is_told_to_all_loops)
{
    world_start(&w, NULL);

    CHECK_STR(seen_by(&w, 0), "");
    CHECK_STR(seen_by(&w, 1), "");
    on_loop(loop_at(&w, 1), look_now, &(struct look){.state = &w.states[1]});
    CHECK_INT(w.states[1].n_snapshots, 1);
    world_stop(&w, false);
}

TEST(a_toolset_is_seen_by_the_asker_when_it_is_answered_and_by_others)
{
    world_start(&w, NULL);

    CHECK_INT(add_named(&w, "weather"), PEG_OK);
    CHECK_STR(peg__str(w.name), "weather");
    CHECK(w.revision > 0);
    CHECK(w.registered_at_ms > 0);
    CHECK_STR(seen_by(&w, 1), "weather ");
    CHECK_STR(seen_by(&w, 0), "weather ");
    world_stop(&w, false);
}

TEST(toolsets_stand_by_name)
{
    world_start(&w, NULL);
    add_named(&w, "m");
    add_named(&w, "z");
    add_named(&w, "a");
    add_named(&w, "mm");

    CHECK_STR(seen_by(&w, 0), "a m mm z ");
    world_stop(&w, false);
}

TEST(an_equal_registration_changes_nothing)
{
    uint64_t revision;
    int64_t at_ms;
    unsigned n_puts;

    world_start(&w, NULL);
    add_named(&w, "weather");
    revision = w.revision;
    at_ms = w.registered_at_ms;
    n_puts = atomic_load(&w.n_puts);

    CHECK_INT(add_named(&w, "weather"), PEG_OK);
    CHECK_INT(w.revision, revision);
    CHECK_INT(w.registered_at_ms, at_ms);
    CHECK_INT(atomic_load(&w.n_puts), n_puts);
    world_stop(&w, false);
}

TEST(another_registration_gets_a_new_revision)
{
    struct req req = {0};
    uint64_t revision;

    world_start(&w, NULL);
    add_named(&w, "weather");
    revision = w.revision;
    req_init(&req, "weather");
    req.msg.description = req_text("new");

    CHECK_INT(add(&w, &req), PEG_OK);
    CHECK(w.revision > revision);
    CHECK_STR(seen_by(&w, 0), "weather ");
    world_stop(&w, false);
}

TEST(a_registration_that_is_wrong_leaves_no_trace)
{
    struct req req = {0};

    world_start(&w, NULL);
    req_init(&req, "weather");
    req_tool(&req, "bad", "{\"type\":1}");

    CHECK_INT(add(&w, &req), PEG_ESCHEMA);
    CHECK(strstr(w.error.message, "invalid tool schema: tool \"bad\""));
    CHECK_STR(seen_by(&w, 1), "");
    CHECK_INT(atomic_load(&w.n_puts), 0);
    world_stop(&w, false);
}

TEST(another_principal_cannot_register_over_a_toolset)
{
    struct req req = {0};
    struct question q = {.world = &w, .req = &req, .principal = "token:eve"};

    world_start(&w, NULL);
    add_named(&w, "weather");
    req_init(&req, "weather");
    ask(&q);

    CHECK_INT(answer(&w), PEG_EEXISTS);
    CHECK_STR(peg__str(error_name()), "permission_denied");
    world_stop(&w, false);
}

TEST(a_toolset_with_live_providers_does_not_change_its_kind)
{
    struct req req = {0};
    struct question q = {.world = &w, .req = &req, .principal = "local", .has_live = true};

    world_start(&w, NULL);
    add_named(&w, "weather");
    req_init(&req, "weather");
    req.msg.kind = PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_DIRECT;

    ask(&q);
    CHECK_INT(answer(&w), PEG_ESTATE);
    CHECK_STR(peg__str(error_name()), "conflict");
    q.has_live = false;
    ask(&q);
    CHECK_INT(answer(&w), PEG_OK);
    world_stop(&w, false);
}

/* ---- unregistering -----------------------------------------------------------------------------
 */

TEST(a_toolset_that_was_unregistered_is_gone)
{
    world_start(&w, NULL);
    add_named(&w, "a");
    add_named(&w, "b");

    CHECK_INT(take_away(&w, "a"), PEG_OK);
    CHECK_STR(seen_by(&w, 1), "b ");
    CHECK_INT(take_away(&w, "a"), PEG_ENOTFOUND);
    CHECK_STR(peg__str(w.error.message), "toolset \"a\" not found");
    CHECK_STR(peg__str(error_name()), "not_found");
    world_stop(&w, false);
}

TEST(another_principal_cannot_unregister)
{
    const struct question q = {.world = &w, .name = "a", .principal = "token:eve"};

    world_start(&w, NULL);
    add_named(&w, "a");
    ask(&q);

    CHECK_INT(answer(&w), PEG_EEXISTS);
    CHECK_STR(seen_by(&w, 1), "a ");
    world_stop(&w, false);
}

TEST(a_name_can_be_registered_again_by_anybody)
{
    struct req req = {0};
    const struct question q = {.world = &w, .req = &req, .principal = "token:bob"};
    uint64_t revision;

    world_start(&w, NULL);
    add_named(&w, "a");
    revision = w.revision;
    take_away(&w, "a");
    req_init(&req, "a");
    ask(&q);

    CHECK_INT(answer(&w), PEG_OK);
    CHECK(w.revision > revision + 1);
    CHECK_STR(seen_by(&w, 1), "a ");
    world_stop(&w, false);
}

/* ---- the store ---------------------------------------------------------------------------------
 */

TEST(toolsets_outlive_the_catalog)
{
    struct world *again = &w;
    peg_store store;
    uint64_t revision;
    int64_t at_ms;

    world_start(&w, NULL);
    add_named(&w, "b");
    add_named(&w, "gone");
    add_named(&w, "a");
    revision = w.revision;
    at_ms = w.registered_at_ms;
    take_away(&w, "gone");
    store = w.inner;
    world_stop(&w, true);

    world_start(again, &store);
    CHECK_STR(seen_by(again, 0), "a b ");
    CHECK_STR(seen_by(again, 1), "a b ");
    CHECK_INT(atomic_load(&again->n_puts), 0);
    CHECK_INT(add_named(again, "a"), PEG_OK);
    CHECK_INT(again->revision, revision);
    CHECK_INT(again->registered_at_ms, at_ms);
    world_stop(again, false);
}

TEST(a_store_that_fails_leaves_everything_as_it_was)
{
    world_start(&w, NULL);
    add_named(&w, "a");
    atomic_store(&w.fails_with, PEG_EIO);

    CHECK_INT(add_named(&w, "b"), PEG_EIO);
    CHECK(strstr(w.error.message, "the disk is full"));
    CHECK_STR(peg__str(error_name()), "service_unavailable");
    CHECK_INT(take_away(&w, "a"), PEG_EIO);
    CHECK_STR(seen_by(&w, 1), "a ");
    atomic_store(&w.fails_with, PEG_OK);
    CHECK_INT(add_named(&w, "b"), PEG_OK);
    CHECK_STR(seen_by(&w, 1), "a b ");
    world_stop(&w, false);
}

TEST(a_change_that_the_store_has_moved_past_gets_a_greater_revision)
{
    world_start(&w, NULL);
    atomic_store(&w.n_outdated, 2);
    CHECK_INT(add_named(&w, "a"), PEG_OK);
    CHECK_INT(atomic_load(&w.n_puts), 3);
    CHECK_STR(seen_by(&w, 1), "a ");
    atomic_store(&w.n_outdated, 2);
    CHECK_INT(take_away(&w, "a"), PEG_OK);
    CHECK_STR(seen_by(&w, 1), "");

    atomic_store(&w.n_outdated, 1000);
    CHECK_INT(add_named(&w, "b"), PEG_EIO);
    CHECK(strstr(w.error.message, "another node was quicker"));
    CHECK_STR(seen_by(&w, 1), "");
    atomic_store(&w.n_outdated, 0);
    CHECK_INT(add_named(&w, "b"), PEG_OK);
    CHECK_STR(seen_by(&w, 1), "b ");
    world_stop(&w, false);
}

static void put_stored(const char *name, uint64_t revision, const char *body)
{
    const peg_store_record record = {.name = peg__str(name),
                                     .revision = revision,
                                     .at_ms = 1,
                                     .is_removed = !body,
                                     .body = peg__str(body ? body : "")};

    if (w.inner.put(w.inner.self, &record, &w.error))
        T_FAIL("not stored: %s", w.error.message);
}

#define GOOD_BODY(name)                                                                            \
    "{\"format\":1,\"owner\":\"local\",\"name\":\"" name                                           \
    "\",\"revision\":3,\"registered_at_ms\":5,\"tools\":[{\"name\":\"t\",\"input_schema\":\"{}\"}" \
    "]}"

TEST(a_record_that_cannot_be_read_does_not_poison_the_others)
{
    world_prepare(&w, NULL);
    put_stored("bad-json", 9, "{");
    put_stored("bad-schema", 9,
               "{\"format\":1,\"name\":\"bad-schema\",\"tools\":[{\"name\":\"t\",\"input_schema\":"
               "\"{\\\"type\\\":1}\"}]}");
    put_stored("future", 9, "{\"format\":99}");
    put_stored("good", 3, GOOD_BODY("good"));
    put_stored("other", 3, GOOD_BODY("good"));

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_STR(seen_by(&w, 1), "good ");
    world_stop(&w, false);
}

TEST(a_record_that_cannot_be_read_can_be_registered_over)
{
    world_prepare(&w, NULL);
    put_stored("bad", UINT64_C(9000000000000000), "{");

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(add_named(&w, "bad"), PEG_OK);
    CHECK(w.revision > UINT64_C(9000000000000000));
    CHECK_STR(seen_by(&w, 1), "bad ");
    world_stop(&w, false);
}

static void put_in_map(void *value)
{
    struct peg__blob *blob = peg__blob_copy(peg__str(value));

    bus_map_set(w.buses[0], BUS_MAP_TOOLSETS, peg__str("x"), blob, BUS_ANY_REVISION, NULL);
    peg__blob_unref(blob);
}

TEST(what_the_map_has_with_a_greater_revision_wins_over_the_store)
{
    static char newer[] =
        "{\"format\":1,\"owner\":\"local\",\"name\":\"x\",\"revision\":7,\"registered_at_ms\":5,"
        "\"description\":\"new\",\"tools\":[{\"name\":\"t\",\"input_schema\":\"{}\"}]}";
    struct look look = {.state = &w.states[1], .wants = "x"};

    world_prepare(&w, NULL);
    put_stored("x", 3, GOOD_BODY("x"));
    on_loop(loop_at(&w, 0), put_in_map, newer);
    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    on_loop(loop_at(&w, 1), look_now, &look);

    CHECK_INT(look.toolset->revision, 7);
    CHECK_STR(look.toolset->description, "new");
    CHECK_INT(atomic_load(&w.n_puts), 1); /* the store has heard of it */
    gw_toolset_unref(look.toolset);
    world_stop(&w, false);
}

static void count_message(peg_log_level level, const char *code, const char *message, void *user)
{
    (void)level, (void)code, (void)message;
    atomic_fetch_add((atomic_uint *)user, 1);
}

TEST(what_another_node_has_written_to_a_store_that_they_share_is_no_failure)
{
    static char newer[] = GOOD_BODY("x");
    atomic_uint n_messages = 0;

    world_prepare(&w, NULL);
    on_loop(loop_at(&w, 0), put_in_map, newer);
    atomic_store(&w.n_outdated, 1);
    CHECK_INT(peg_log_set(count_message, PEG_LOG_WARN, &n_messages), PEG_OK);
    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(add_named(&w, "y"), PEG_OK); /* behind the other */
    CHECK_INT(peg_log_set(NULL, PEG_LOG_WARN, NULL), PEG_OK);

    CHECK_INT(atomic_load(&n_messages), 0);
    CHECK_INT(atomic_load(&w.n_puts), 2);
    CHECK_STR(seen_by(&w, 1), "x y ");
    world_stop(&w, false);
}

TEST(what_the_store_has_with_a_greater_revision_wins_over_the_map)
{
    static char older[] = GOOD_BODY("x");
    struct look look = {.state = &w.states[1], .wants = "x"};

    world_prepare(&w, NULL);
    put_stored("x", 8, GOOD_BODY("x"));
    on_loop(loop_at(&w, 0), put_in_map, older);
    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    on_loop(loop_at(&w, 1), look_now, &look);

    CHECK_INT(look.toolset->revision, 8);
    gw_toolset_unref(look.toolset);
    world_stop(&w, false);
}

TEST(a_tombstone_wins_over_an_older_record_of_the_map)
{
    static char older[] = GOOD_BODY("x");

    world_prepare(&w, NULL);
    put_stored("x", 8, NULL);
    on_loop(loop_at(&w, 0), put_in_map, older);
    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STR(seen_by(&w, 1), "");
    world_stop(&w, false);
}

TEST(garbage_in_the_map_is_ignored)
{
    static char garbage[] = "removed 7 x";

    world_start(&w, NULL);
    add_named(&w, "y");
    on_loop(loop_at(&w, 0), put_in_map, garbage);
    add_named(&w, "z");

    CHECK_STR(seen_by(&w, 1), "y z ");
    world_stop(&w, false);
}

TEST(a_store_that_cannot_be_read_stops_the_start)
{
    world_prepare(&w, NULL);
    put_stored("x", 3, GOOD_BODY("x"));

    peg__mem_fail_at(6);
    CHECK_INT(world_open(&w), PEG_ENOMEM);
    peg__mem_fail_at(0);
    world_close(&w);
    w.inner.free(w.inner.self);
}

/* ---- many, and ends ----------------------------------------------------------------------------
 */

TEST(hundreds_of_toolsets_come_and_go)
{
    char name[16];
    struct look look = {.state = &w.states[0], .wants = "t0199"};

    world_start(&w, NULL);
    for (unsigned i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "t%04u", i * 77 % 300);
        CHECK_INT(add_named(&w, name), PEG_OK);
    }
    for (unsigned i = 0; i < 300; i += 2) {
        snprintf(name, sizeof(name), "t%04u", i);
        CHECK_INT(take_away(&w, name), PEG_OK);
    }
    on_loop(loop_at(&w, 0), look_now, &look);

    CHECK(look.toolset != NULL);
    CHECK_INT(w.states[0].snapshot->n, 150);
    CHECK_INT(w.states[0].snapshot->n_tools, 150);
    gw_toolset_unref(look.toolset);
    world_stop(&w, false);
}

static void forget_now(void *arg)
{
    (void)arg;
    gw_change_forget(&w.wait);
}

/* ---- shares ------------------------------------------------------------------------------------
 */

static struct {
    size_t toolsets;
    size_t records;
    size_t bytes;
} most;

static void set_limits(void *arg)
{
    (void)arg;
    w.catalog->n_toolsets.limits.max = most.toolsets;
    w.catalog->n_records.limits.max = most.records;
    w.catalog->n_bytes.limits.max = most.bytes;
}

/* With principals, and limits that are reached soon. */
static void start_with_shares(size_t toolsets, size_t records, size_t bytes)
{
    world_prepare(&w, NULL);
    w.has_principals = true;
    if (world_open(&w))
        T_FAIL("no catalog: %s", w.error.message);
    most.toolsets = toolsets;
    most.records = records;
    most.bytes = bytes;
    on_loop(loop_at(&w, 0), set_limits, NULL);
}

static peg_status add_as(const char *principal, const char *name, const char *description)
{
    struct req req = {0};
    const struct question q = {.world = &w, .loop = 1, .req = &req, .principal = principal};

    req_init(&req, name);
    req.msg.description = req_text(description);
    ask(&q);
    return answer(&w);
}

static peg_status end_as(const char *principal, const char *name)
{
    const struct question q = {.world = &w, .loop = 1, .name = name, .principal = principal};

    ask(&q);
    return answer(&w);
}

/* Until it is refused; how many there are then. */
static unsigned add_many(const char *principal, const char *description)
{
    unsigned n = 0;
    char name[64];

    do {
        snprintf(name, sizeof(name), "%s-%u", principal, n);
    } while (add_as(principal, name, description) == PEG_OK && ++n < 1000);
    CHECK_INT(w.status, PEG_ELIMIT);
    CHECK_STR(peg__str(w.error.code), "E_TOOLSETS");
    CHECK(strstr(w.error.message, "quota exceeded: "));
    return n;
}

TEST(who_registers_all_the_toolsets_it_may_leaves_some_to_others)
{
    start_with_shares(16, 1000, 1 << 20);
    CHECK_INT(add_many("anna", "x"), 12); /* three quarters */
    CHECK(strstr(w.error.message, "too many toolsets of anna"));
    CHECK_INT(add_many("ben", "x"), 3);
    CHECK_INT(add_as("carla", "carla-0", "x"), PEG_OK);

    CHECK_INT(add_as("anna", "anna-3", "changed"), PEG_OK); /* what stands may be changed */
    CHECK_INT(end_as("anna", "anna-3"), PEG_OK);
    CHECK_INT(add_as("anna", "anna-new", "x"), PEG_ELIMIT); /* others came meanwhile */
    CHECK_INT(end_as("anna", "anna-4"), PEG_OK);
    CHECK_INT(end_as("anna", "anna-5"), PEG_OK);
    CHECK_INT(add_as("ben", "ben-new", "x"), PEG_OK);
    world_stop(&w, false);
}

TEST(who_registers_and_unregisters_without_an_end_leaves_names_to_others)
{
    char name[64];
    unsigned n = 0;

    start_with_shares(1000, 16, 1 << 20);
    do {
        snprintf(name, sizeof(name), "anna-%u", n);
    } while (add_as("anna", name, "x") == PEG_OK && end_as("anna", name) == PEG_OK && ++n < 1000);
    CHECK_INT(n, 12);
    CHECK(strstr(w.error.message, "too many names of toolsets of anna"));
    CHECK_INT(add_as("ben", "ben-0", "x"), PEG_OK);
    CHECK_INT(add_as("anna", "anna-3", "x"), PEG_OK); /* a name that it has used before */
    CHECK_INT(add_as("ben", "anna-4", "x"), PEG_OK);  /* and one of hers goes to who takes it */
    world_stop(&w, false);
}

TEST(who_registers_large_toolsets_leaves_room_to_others)
{
    static char large[2000];

    memset(large, 'x', sizeof(large) - 1);
    start_with_shares(1000, 1000, 32000);
    CHECK(add_many("anna", large) >= 8);
    CHECK(strstr(w.error.message, "too many bytes of toolsets of anna"));
    CHECK_INT(add_as("ben", "ben-0", large), PEG_OK);
    CHECK_INT(add_as("anna", "anna-0", "small"), PEG_OK); /* to shrink is always allowed */
    CHECK_INT(end_as("anna", "anna-1"), PEG_OK);
    world_stop(&w, false);
}

static void count_records(void *arg)
{
    *(size_t *)arg = w.catalog->records.n;
}

TEST(a_registration_that_is_refused_leaves_no_name_behind)
{
    static char large[2000];
    size_t before = 0;
    size_t after = 0;

    memset(large, 'x', sizeof(large) - 1);
    start_with_shares(1000, 1000, 8000);
    (void)add_many("anna", large);
    on_loop(loop_at(&w, 0), count_records, &before);
    for (int i = 0; i < 20; i++) {
        char name[64];

        snprintf(name, sizeof(name), "more-%d", i);
        CHECK_INT(add_as("anna", name, large), PEG_ELIMIT);
    }
    on_loop(loop_at(&w, 0), count_records, &after);
    CHECK_INT(after, before);
    world_stop(&w, false);
}

TEST(shares_are_the_same_after_a_restart)
{
    peg_store store;

    start_with_shares(16, 1000, 1 << 20);
    CHECK_INT(add_many("anna", "x"), 12);
    store = w.inner;
    world_stop(&w, true);

    world_prepare(&w, &store);
    w.has_principals = true;
    CHECK_INT(world_open(&w), PEG_OK);
    on_loop(loop_at(&w, 0), set_limits, NULL);
    CHECK_INT(add_as("anna", "anna-new", "x"), PEG_ELIMIT);
    CHECK_INT(add_as("ben", "ben-0", "x"), PEG_OK);
    world_stop(&w, false);
}

TEST(where_nobody_is_asked_all_toolsets_may_be_taken)
{
    char name[64];

    world_start(&w, NULL);
    most.toolsets = most.records = 16;
    most.bytes = 1 << 20;
    on_loop(loop_at(&w, 0), set_limits, NULL);
    for (int i = 0; i < 16; i++) {
        snprintf(name, sizeof(name), "t-%d", i);
        CHECK_INT(add_as("local", name, "x"), PEG_OK);
    }
    CHECK_INT(add_as("local", "t-16", "x"), PEG_ELIMIT);
    world_stop(&w, false);
}

TEST(an_asker_that_forgets_hears_nothing_and_the_change_is_made)
{
    struct req req = {0};
    const struct question q = {.world = &w, .loop = 1, .req = &req, .principal = "local"};
    int value;

    world_start(&w, NULL);
    atomic_store(&w.is_held, true);
    req_init(&req, "a");
    ask(&q);
    await_sem(&w.reached);
    on_loop(loop_at(&w, 1), forget_now, NULL);
    atomic_store(&w.is_held, false);
    sem_post(&w.held);

    CHECK_INT(add_named(&w, "b"), PEG_OK); /* behind it */
    CHECK_STR(seen_by(&w, 1), "a b ");
    sem_getvalue(&w.answered, &value);
    CHECK_INT(value, 0);
    world_stop(&w, false);
}

static void *free_catalog(void *arg)
{
    (void)arg;
    gw_catalog_free(w.catalog);
    return NULL;
}

TEST(a_catalog_that_ends_waits_for_the_store_and_answers)
{
    struct req req = {0};
    const struct question q = {.world = &w, .loop = 1, .req = &req, .principal = "local"};
    pthread_t thread;

    world_start(&w, NULL);
    atomic_store(&w.is_held, true);
    req_init(&req, "a");
    ask(&q);
    await_sem(&w.reached);
    pthread_create(&thread, NULL, free_catalog, NULL);
    atomic_store(&w.is_held, false);
    sem_post(&w.held);
    answer(&w);
    pthread_join(thread, NULL);

    CHECK_INT(w.status, PEG_OK); /* it is in the store */
    world_close(&w);
    w.inner.free(w.inner.self);
}

/* ---- memory ------------------------------------------------------------------------------------
 */

static void fail_at(void *nth)
{
    peg__mem_fail_at(*(unsigned *)nth);
}

static void register_made(void *toolset)
{
    w.wait.fn = on_answer;
    gw_catalog_register(w.catalog, loop_at(&w, 1), toolset, false, &w.wait);
}

/* Waits for the answer; one that waits for memory comes when there is some again. */
static peg_status answer_with_memory(int64_t wait_ns)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (until.tv_nsec + wait_ns) / PEG_NS_PER_S;
    until.tv_nsec = (until.tv_nsec + wait_ns) % PEG_NS_PER_S;
    if (sem_timedwait(&w.answered, &until) == 0) {
        on_loop(loop_at(&w, 0), fail_at, &(unsigned){0});
        return w.status;
    }
    on_loop(loop_at(&w, 0), fail_at, &(unsigned){0});
    return answer(&w);
}

/* How many registrations failed of which one allocation did. */
static unsigned n_failed_of(unsigned n, int64_t wait_ns)
{
    unsigned n_failed = 0;

    world_start(&w, NULL);
    for (unsigned nth = 1; nth <= n; nth++) {
        struct req req = {0};
        char name[16];
        struct look look = {.state = &w.states[1], .wants = name};
        peg_status status;

        snprintf(name, sizeof(name), "t%02u", nth);
        req_init(&req, name);
        on_loop(loop_at(&w, 0), fail_at, &nth);
        on_loop(loop_at(&w, 1), register_made, req_toolset(&req));
        status = answer_with_memory(wait_ns);
        if (status != PEG_OK && status != PEG_ENOMEM)
            T_FAIL("allocation %u gave %d: %s", nth, (int)status, w.error.message);
        n_failed += status == PEG_ENOMEM;
        on_loop(loop_at(&w, 1), look_now, &look);
        CHECK_INT(look.toolset != NULL, status == PEG_OK);
        gw_toolset_unref(look.toolset);
        CHECK_INT(add_named(&w, name), PEG_OK);
    }
    world_stop(&w, false);
    return n_failed;
}

/* On a slow machine there may be memory again before the home has asked for any: then later. */
TEST(home_survives_any_allocation_failure)
{
    int64_t wait_ns = 20 * PEG_NS_PER_MS;
    unsigned n_failed = n_failed_of(24, wait_ns);

    for (; !n_failed && wait_ns < PEG_NS_PER_S; n_failed = n_failed_of(24, wait_ns))
        wait_ns *= 4;
    CHECK(n_failed > 0 && n_failed < 24);
}
