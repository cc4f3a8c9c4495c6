/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Many threads read while one changes. What they see is always one of the states that the writer
 * made, and every tool they hold is alive.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "registry_world.h"

enum { N_READERS = 3, N_CHANGES = 3000, N_LASTING = 100 };

struct shared {
    peg_registry *registry;
    atomic_bool is_over;
    atomic_size_t n_reads;
    atomic_size_t n_wrong;
};

static void expect(struct shared *shared, bool is_right)
{
    if (!is_right)
        atomic_fetch_add(&shared->n_wrong, 1);
}

static bool is_lasting(const char *name)
{
    return name[0] == 'n';
}

/* Lasting tools are in every list, in order; of the two that come and go together, both or none. */
static void read_list(struct shared *shared)
{
    peg_tool_list list;
    size_t n_lasting = 0;
    int n_pair = 0;

    if (peg_registry_all(shared->registry, &list, NULL))
        return;
    for (size_t i = 0; i < list.len; i++) {
        const char *name = peg_tool_name(list.items[i]);

        n_lasting += is_lasting(name);
        n_pair += !strncmp(name, "pair", 4);
    }
    expect(shared, n_lasting == N_LASTING);
    expect(shared, n_pair == 0 || n_pair == 2);
    peg_tool_list_free(&list);
}

static void read_one(struct shared *shared, unsigned i)
{
    char name[16];
    peg_tool *tool;

    snprintf(name, sizeof(name), "n%u", i % N_LASTING);
    tool = get(shared->registry, name);
    expect(shared, tool && !strcmp(peg_tool_name(tool), name));
    peg_tool_unref(tool);
    tool = get(shared->registry, "comes-and-goes");
    expect(shared, !tool || !strcmp(peg_tool_name(tool), "comes-and-goes"));
    peg_tool_unref(tool);
    expect(shared, !has(shared->registry, "never"));
    expect(shared, peg_registry_len(shared->registry) >= N_LASTING);
}

/* A copy is the reader's own: it may be changed while the original is. */
static void read_copy(struct shared *shared)
{
    peg_registry *copy = NULL;

    if (peg_registry_copy(shared->registry, &copy, NULL))
        return;
    expect(shared, unregister(copy, "n0") == PEG_OK);
    expect(shared, !has(copy, "n0"));
    peg_registry_prune_ephemeral(copy);
    peg_registry_unref(copy);
}

static void *read_on(void *user)
{
    struct shared *shared = user;

    for (unsigned i = 0; !atomic_load(&shared->is_over); i++) {
        read_one(shared, i);
        if (i % 8 == 0)
            read_list(shared);
        if (i % 16 == 0)
            read_copy(shared);
        atomic_fetch_add(&shared->n_reads, 1);
    }
    return NULL;
}

static void change(struct shared *shared, peg_tool *tool, peg_registry *pair, int i)
{
    const char *const name = "n5";
    peg_registry *registry = shared->registry;

    expect(shared, give(registry, tool_named("comes-and-goes")) == PEG_OK);
    expect(shared, peg_registry_register(registry, tool, true, NULL) == PEG_OK);
    expect(shared, peg_registry_hide(registry, &name, 1, NULL) == PEG_OK);
    expect(shared, peg_registry_absorb(registry, pair, PEG_COLLISION_FAIL, NULL) == PEG_OK);
    if (i % 2)
        expect(shared, peg_registry_clear_hidden(registry, NULL) == PEG_OK);
    peg_registry_prune_ephemeral(registry);
    expect(shared, unregister(registry, "comes-and-goes") == PEG_OK);
}

static void let_readers_start(struct shared *shared)
{
    while (atomic_load(&shared->n_reads) < N_READERS)
        sched_yield();
}

/* G45 */
TEST(registry_may_be_read_by_many_threads_while_one_changes_it)
{
    struct shared shared = {.registry = registry_of("")};
    peg_registry *pair = registry_of("~pair1 ~pair2");
    pthread_t readers[N_READERS];
    peg_tool *tool = tool_named("n7");
    char name[16];

    for (int i = 0; i < N_LASTING; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        CHECK_INT(give(shared.registry, tool_named(name)), PEG_OK);
    }
    for (int i = 0; i < N_READERS; i++)
        CHECK_INT(pthread_create(&readers[i], NULL, read_on, &shared), 0);
    let_readers_start(&shared);

    for (int i = 0; i < N_CHANGES; i++)
        change(&shared, tool, pair, i);
    atomic_store(&shared.is_over, true);
    for (int i = 0; i < N_READERS; i++)
        pthread_join(readers[i], NULL);

    CHECK_INT(atomic_load(&shared.n_wrong), 0);
    CHECK_INT(peg_registry_len(shared.registry), N_LASTING);
    peg_tool_unref(tool);
    peg_registry_unref(pair);
    peg_registry_unref(shared.registry);
}

/* ---- turns: each thread has a copy of one baseline ------------------------------------------- */

static void *run_turns(void *user)
{
    struct shared *shared = user;
    peg_registry *turn = NULL;
    peg_registry *dispatch = NULL;

    for (int i = 0; i < 300; i++) {
        if (peg_registry_copy(shared->registry, &turn, NULL))
            break;
        expect(shared, give(turn, ephemeral_named("mine")) == PEG_OK);
        expect(shared, unregister(turn, "n1") == PEG_OK);
        if (peg_registry_copy(turn, &dispatch, NULL))
            break;
        expect(shared, peg_registry_len(dispatch) == N_LASTING);
        peg_registry_prune_ephemeral(dispatch);
        expect(shared, peg_registry_len(dispatch) == N_LASTING - 1);
        expect(shared, has(turn, "mine"));
        dispatch = peg_registry_unref(dispatch);
        turn = peg_registry_unref(turn);
    }
    peg_registry_unref(turn);
    return NULL;
}

TEST(copies_of_one_registry_are_changed_by_many_threads_at_once)
{
    enum { N_THREADS = 4 };
    struct shared shared = {.registry = registry_of("")};
    pthread_t threads[N_THREADS];
    char name[16];

    for (int i = 0; i < N_LASTING; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        CHECK_INT(give(shared.registry, tool_named(name)), PEG_OK);
    }
    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, run_turns, &shared), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);

    CHECK_INT(atomic_load(&shared.n_wrong), 0);
    CHECK_INT(peg_registry_len(shared.registry), N_LASTING);
    CHECK(has(shared.registry, "n1"));
    peg_registry_unref(shared.registry);
}

/* ---- one tool, many threads ------------------------------------------------------------------ */

static void *validate_on(void *user)
{
    struct shared *shared = user;
    peg_tool *tool = get(shared->registry, "counted");
    peg_json_doc *good = NULL;
    peg_json_doc *bad = NULL;
    peg_json_doc *filled = NULL;

    if (peg_json_parse(peg__str("{\"n\":1}"), NULL, &good, NULL) == PEG_OK &&
        peg_json_parse(peg__str("{\"n\":\"x\"}"), NULL, &bad, NULL) == PEG_OK)
        for (int i = 0; i < 500; i++) {
            expect(shared, peg_tool_validate(tool, peg_json_root(good), &filled, NULL) == PEG_OK);
            expect(shared,
                   peg_tool_validate(tool, peg_json_root(bad), &filled, NULL) == PEG_ESCHEMA);
        }
    peg_json_doc_free(good);
    peg_json_doc_free(bad);
    peg_tool_unref(tool);
    return NULL;
}

TEST(tool_checks_arguments_of_many_threads_at_once)
{
    enum { N_THREADS = 4 };
    const peg_tool_def def = {
        PEG_TOOL_DEF_INIT,
        .input_schema = "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}"};
    struct shared shared = {.registry = registry_of("")};
    pthread_t threads[N_THREADS];

    CHECK_INT(give(shared.registry, tool_of(&def, "counted", NULL)), PEG_OK);
    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, validate_on, &shared), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);

    CHECK_INT(atomic_load(&shared.n_wrong), 0);
    peg_registry_unref(shared.registry);
}
