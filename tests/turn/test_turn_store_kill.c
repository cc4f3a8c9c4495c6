/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Processes that save are killed at any moment, and several save at once. Goal: what is loaded is
 * always one whole state that was saved, and never older than the last one that a save has
 * returned for.
 */

#include <time.h>

#include "store_world.h"

enum { N_KILLS = 50, SPREAD_US = 1500 };

/* ---- states: the n-th has n numbered blocks, and an image after each fourth -------------------
 */

static void add_state(peg_turn *turn, unsigned n)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", n);
    say(turn, text);
    if (n % 4 == 0)
        add_image(turn, 5000 + n);
}

/* Which state this is; fails if it is none. Reads all bytes. */
static unsigned state_of(const peg_turn *turn)
{
    unsigned n = 0;
    char text[16];
    char *all;

    for (size_t i = 0; i < peg_turn_len(turn); i++) {
        snprintf(text, sizeof(text), "%u", ++n);
        CHECK_STR(peg_block_text(peg_turn_at(turn, i)), text);
        if (n % 4 == 0) {
            const peg_block *image = peg_turn_at(turn, ++i);

            CHECK(image && peg_block_n_media(image) == 1);
            CHECK_INT(peg_reader_byte_length(peg_media_reader(peg_block_media(image, 0))),
                      5000 + n);
        }
    }
    all = text_of_turn(turn);
    peg_free(all);
    return n;
}

/* ---- the process that is killed
 * ------------------------------------------------------------------ */

/* A CHECK that fails in here ends in a process that was not killed: the parent sees it. */
static void save_for_ever(const struct world *w, int acks)
{
    peg_turn_store *store = NULL;
    peg_turn *turn = NULL;
    unsigned n;

    if (w->kind->open(w->folder, &store, NULL) ||
        peg_turn_store_load(store, peg_cstr("t1"), &turn, NULL, NULL))
        child_end(0, 2);
    if (!turn)
        turn = turn_named(peg_cstr("t1"));
    for (n = state_of(turn) + 1;; n++) {
        add_state(turn, n);
        if (peg_turn_store_save(store, turn, PEG_PHASE_POST_CALL, NULL) ||
            write(acks, &n, sizeof(n)) != (ssize_t)sizeof(n))
            child_end(0, 3);
    }
}

/* Lets a process save until a moment by chance; returns the last state that it knew to be saved. */
static unsigned run_and_kill(const struct world *w, unsigned last, long wait_us)
{
    const struct timespec wait = {.tv_nsec = wait_us * 1000};
    int acks[2];
    pid_t child;

    CHECK_INT(pipe(acks), 0);
    child = child_start(0);
    if (child == 0)
        save_for_ever(w, acks[1]);
    close(acks[1]);
    /* One state at least, so that each round gets on; then some time, not a condition: the moment
     * is what is to be by chance. */
    CHECK_INT(read(acks[0], &last, sizeof(last)), sizeof(last));
    nanosleep(&wait, NULL);
    CHECK_INT(kill(child, SIGKILL), 0);
    CHECK_INT(child_wait(0, child), CHILD_KILLED);
    while (read(acks[0], &last, sizeof(last)) == (ssize_t)sizeof(last))
        continue;
    close(acks[0]);
    return last;
}

static void kill_again_and_again(const struct store_kind *kind)
{
    struct world w = {.kind = kind};
    unsigned seed = 99;
    unsigned last = 0;

    folder_make(w.folder);
    for (unsigned round = 0; round < t_rounds(N_KILLS); round++) {
        TURN loaded = NULL;
        unsigned found;

        seed = seed * 1664525U + 1013904223U;
        last = run_and_kill(&w, last, (long)(seed >> 8) % SPREAD_US);
        world_open(&w);
        loaded = load(&w, peg_cstr("t1"));
        CHECK(loaded);
        found = state_of(loaded);
        /* The one in the midst of being saved may be there or not. */
        CHECK(found == last || found == last + 1);
        w.store = peg_turn_store_unref(w.store);
    }
    world_done(&w);
}

TEST(a_killed_process_leaves_whole_states_in_files)
{
    kill_again_and_again(&store_kinds[1]);
}

TEST(a_killed_process_leaves_whole_states_in_sqlite)
{
    kill_again_and_again(&store_kinds[2]);
}

/* ---- two at once
 * ----------------------------------------------------------------------------------- */

enum { N_SAVES = 40 };

static bool hear_all(const peg_turn_info *info, void *user)
{
    (void)user;
    return info->id.len > 0;
}

/* Saves a turn of its own and one that both have, which is also removed. */
static peg_status save_both(peg_turn_store *store, const peg_turn *mine, const peg_turn *shared,
                            unsigned n, peg_error *reterr)
{
    TURN loaded = NULL;
    peg_status status = peg_turn_store_save(store, mine, PEG_PHASE_FINAL, reterr);

    if (!status)
        status = peg_turn_store_save(store, shared, PEG_PHASE_FINAL, reterr);
    if (!status)
        status = peg_turn_store_load(store, peg_turn_id(mine), &loaded, NULL, reterr);
    if (!status)
        CHECK(loaded && state_of(loaded) == n);
    if (!status && n % 7 == 0)
        status = peg_turn_store_remove(store, peg_turn_id(shared), reterr);
    if (!status && n % 5 == 0)
        status = peg_turn_store_list(store, peg_cstr(""), hear_all, NULL, reterr);
    return status;
}

static bool save_beside(const struct world *w, const char *own)
{
    TURN mine = turn_named(peg_cstr(own));
    TURN shared = turn_named(peg_cstr("shared"));
    PEG_CLEANUP(peg_turn_store_unrefp) peg_turn_store *store = NULL;
    peg_error error;
    peg_status status = w->kind->open(w->folder, &store, &error);

    for (unsigned n = 1; !status && n <= N_SAVES; n++) {
        add_state(mine, n);
        add_state(shared, n);
        status = save_both(store, mine, shared, n, &error);
    }
    if (status)
        printf("# %s: %s\n", own, error.message);
    fflush(stdout);
    return !status;
}

static void save_together(const struct store_kind *kind)
{
    static const char *const names[] = {"left", "right"};
    struct world w = {.kind = kind};
    pid_t children[2];

    folder_make(w.folder);
    for (int i = 0; i < 2; i++) {
        children[i] = child_start(i);
        if (children[i] == 0)
            child_end(i, save_beside(&w, names[i]) ? CHILD_WELL : 2);
    }
    for (int i = 0; i < 2; i++)
        CHECK_INT(child_wait(i, children[i]), CHILD_WELL);
    world_open(&w);
    for (int i = 0; i < 2; i++) {
        TURN loaded = load(&w, peg_cstr(names[i]));

        CHECK(loaded);
        CHECK_INT(state_of(loaded), N_SAVES);
    }
    {
        TURN shared = load(&w, peg_cstr("shared"));

        CHECK(!shared || state_of(shared) <= N_SAVES);
    }
    world_done(&w);
}

TEST(two_processes_save_side_by_side_in_files)
{
    save_together(&store_kinds[1]);
}

TEST(two_processes_save_side_by_side_in_sqlite)
{
    save_together(&store_kinds[2]);
}
