/* SPDX-License-Identifier: Apache-2.0 */

/* Stores under pressure: several threads, no memory, and the bounds of the one in memory. */

#include <pthread.h>
#include <stdatomic.h>

#include "store_world.h"

/* ---- several threads ---------------------------------------------------------------------------
 */

enum { N_THREADS = 4, N_SAVES = 25 };

struct crowd {
    struct world *world;
    const peg_turn *states[N_THREADS]; /* of one turn */
    atomic_int n_failed;
};

struct member {
    struct crowd *crowd;
    int number;
};

static bool is_one_of(const struct crowd *crowd, const peg_turn *turn)
{
    for (int i = 0; i < N_THREADS; i++)
        if (peg_turn_len(turn) == peg_turn_len(crowd->states[i]))
            return true;
    return false;
}

static void *save_and_load(void *user)
{
    const struct member *m = user;
    struct crowd *crowd = m->crowd;
    peg_turn_store *store = crowd->world->store;

    for (int i = 0; i < N_SAVES; i++) {
        peg_turn *own = NULL;
        peg_turn *loaded = NULL;
        char id[16];

        snprintf(id, sizeof(id), "own-%d", m->number);
        if (peg_turn_store_save(store, crowd->states[m->number], PEG_PHASE_FINAL, NULL) ||
            peg_turn_store_load(store, peg_cstr("shared"), &loaded, NULL, NULL) || !loaded ||
            !is_one_of(crowd, loaded) || peg_turn_copy(crowd->states[m->number], &own, NULL) ||
            peg_turn_set_id(own, peg_cstr(id), NULL) ||
            peg_turn_store_save(store, own, PEG_PHASE_FINAL, NULL) ||
            (i % 5 == 4 && peg_turn_store_remove(store, peg_cstr(id), NULL)))
            atomic_fetch_add(&crowd->n_failed, 1);
        peg_turn_free(loaded);
        peg_turn_free(own);
    }
    return NULL;
}

STORE_TEST(threads_that_save_one_turn_leave_one_of_their_states)
{
    struct crowd crowd = {.world = w};
    struct member members[N_THREADS];
    pthread_t threads[N_THREADS];
    peg_turn *states[N_THREADS];

    for (int i = 0; i < N_THREADS; i++) {
        states[i] = turn_saying("shared", "x");
        for (int n = 0; n < i; n++)
            say(states[i], "more");
        crowd.states[i] = states[i];
    }
    for (int i = 0; i < N_THREADS; i++) {
        members[i] = (struct member){&crowd, i};
        CHECK_INT(pthread_create(&threads[i], NULL, save_and_load, &members[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_join(threads[i], NULL), 0);

    CHECK_INT(crowd.n_failed, 0);
    for (int i = 0; i < N_THREADS; i++)
        peg_turn_free(states[i]);
}

/* ---- memory -------------------------------------------------------------------------------------
 */

static bool hear_nothing(const peg_turn_info *info, void *user)
{
    (void)info;
    (void)user;
    return true;
}

static peg_status use_store(peg_turn_store *store, const peg_turn *turn)
{
    peg_turn *loaded = NULL;
    peg_status status = peg_turn_store_save(store, turn, PEG_PHASE_FINAL, NULL);

    if (!status)
        status = peg_turn_store_load(store, peg_turn_id(turn), &loaded, NULL, NULL);
    if (!status)
        status = peg_turn_store_list(store, peg_cstr(""), hear_nothing, NULL, NULL);
    if (!status)
        status = peg_turn_store_remove(store, peg_turn_id(turn), NULL);
    peg_turn_free(loaded);
    return status;
}

static peg_turn *small_turn(void)
{
    peg_turn *turn = turn_saying("t1", "one");

    add_result(turn, "c1", 5000);
    set_json(turn, PEG_BAG_DATA, "test.numbers@v1", "[1]");
    set_session(turn, "s");
    return turn;
}

static peg_status make_turn(peg_turn **ret_turn)
{
    peg_status status = peg_turn_new(ret_turn, NULL);

    if (!status)
        status = peg_turn_set_id(*ret_turn, peg_cstr("t1"), NULL);
    if (!status)
        status = peg_turn_set_string(*ret_turn, &peg_key_session_id, peg_cstr("s"), NULL);
    return status ? status : peg_turn_add_text(*ret_turn, PEG_BLOCK_USER, peg_cstr("x"), NULL);
}

/* One folder for all rounds: what a failed one leaves must not disturb the next. */
static peg_status torture(const struct store_kind *kind)
{
    static char folder[64];
    peg_turn_store *store = NULL;
    peg_turn *turn = NULL;
    peg_status status;

    if (!folder[0])
        folder_make(folder);
    status = make_turn(&turn);
    if (!status)
        status = kind->open(folder, &store, NULL);
    if (!status)
        status = use_store(store, turn);
    peg_turn_store_unref(store);
    peg_turn_free(turn);
    if (!status) {
        folder_remove(AT_FDCWD, folder);
        folder[0] = '\0';
    }
    return status;
}

TORTURE(a_store_in_memory_survives_any_allocation_failure)
{
    return torture(&store_kinds[0]);
}

TORTURE(a_store_in_files_survives_any_allocation_failure)
{
    return torture(&store_kinds[1]);
}

TORTURE(a_store_in_sqlite_survives_any_allocation_failure)
{
    return torture(&store_kinds[2]);
}

/* What a failed save leaves is the state before, in memory and on the disk. */
STORE_TEST(a_save_that_runs_out_of_memory_changes_nothing)
{
    TURN before = small_turn();
    TURN after = NULL;
    peg_status status = PEG_ENOMEM;

    save(w, before);
    CHECK_INT(peg_turn_copy(before, &after, NULL), PEG_OK);
    say(after, "more");
    add_result(after, "c2", 6000);

    for (unsigned nth = 1; status; nth++) {
        peg__mem_fail_at(nth);
        status = peg_turn_store_save(w->store, after, PEG_PHASE_FINAL, NULL);
        peg__mem_fail_at(0);
        CHECK(status == PEG_OK || status == PEG_ENOMEM);
        if (status && nth % 8 == 0)
            check_loads(w, before);
    }
    check_loads(w, after);
}

STORE_TEST(a_load_that_runs_out_of_memory_gives_nothing)
{
    TURN turn = small_turn();
    peg_status status = PEG_ENOMEM;

    save(w, turn);
    world_reopen(w);

    for (unsigned nth = 1; status; nth++) {
        peg_turn *loaded = NULL;

        peg__mem_fail_at(nth);
        status = peg_turn_store_load(w->store, peg_cstr("t1"), &loaded, NULL, NULL);
        peg__mem_fail_at(0);
        CHECK(status == PEG_OK ? loaded != NULL : status == PEG_ENOMEM && !loaded);
        peg_turn_free(loaded);
    }
}

/* ---- bounds of the store in memory
 * ---------------------------------------------------------------- */

TEST(a_store_in_memory_takes_so_many_turns_and_no_more)
{
    struct world w;
    peg_error error;

    world_init(&w, &store_kinds[0]);
    for (int i = 0; i < PEG_LIMIT_MEMORY_TURNS; i++) {
        TURN turn = NULL;
        char id[16];

        snprintf(id, sizeof(id), "%d", i);
        turn = turn_named(peg_cstr(id));
        save(&w, turn);
    }
    {
        TURN more = turn_named(peg_cstr("more"));
        TURN same = turn_named(peg_cstr("7"));

        CHECK_INT(peg_turn_store_save(w.store, more, PEG_PHASE_FINAL, &error), PEG_ELIMIT);
        CHECK_STR(peg_cstr(error.code), "E_TURN_STORE_FULL");
        CHECK(strstr(error.message, " turns: remove some"));
        save(&w, same);
        CHECK_INT(peg_turn_store_remove(w.store, peg_cstr("7"), NULL), PEG_OK);
        save(&w, more);
    }
    world_done(&w);
}

TEST(a_store_in_memory_takes_so_many_blocks_and_no_more)
{
    enum { LEN = 10000 };
    TURN turn = turn_named(peg_cstr("0"));
    struct world w;
    peg_error error;
    char id[16];

    world_init(&w, &store_kinds[0]);
    for (int i = 0; i < LEN; i++)
        say(turn, "x");
    for (int i = 0; i < PEG_LIMIT_STORE_BLOCKS / LEN; i++) {
        snprintf(id, sizeof(id), "%d", i);
        CHECK_INT(peg_turn_set_id(turn, peg_cstr(id), NULL), PEG_OK);
        save(&w, turn);
    }

    CHECK_INT(peg_turn_set_id(turn, peg_cstr("more"), NULL), PEG_OK);
    CHECK_INT(peg_turn_store_save(w.store, turn, PEG_PHASE_FINAL, &error), PEG_ELIMIT);
    CHECK(strstr(error.message, " blocks in all"));
    CHECK_INT(peg_turn_store_remove(w.store, peg_cstr("3"), NULL), PEG_OK);
    save(&w, turn);
    world_done(&w);
}
