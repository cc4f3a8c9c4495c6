/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Processes that save are killed at any moment, and several save at once. Goal: what is loaded is
 * always one whole state that was saved, and never older than the last one that a save has
 * returned for.
 */

#include <signal.h>
#include <sys/wait.h>
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
        _exit(1);
    if (!turn)
        turn = turn_named(peg_cstr("t1"));
    for (n = state_of(turn) + 1;; n++) {
        add_state(turn, n);
        if (peg_turn_store_save(store, turn, PEG_PHASE_POST_CALL, NULL) ||
            write(acks, &n, sizeof(n)) != (ssize_t)sizeof(n))
            _exit(1);
    }
}

/* Lets a process save until a moment by chance; returns the last state that it knew to be saved. */
static unsigned run_and_kill(const struct world *w, unsigned last, long wait_us)
{
    const struct timespec wait = {.tv_nsec = wait_us * 1000};
    int acks[2];
    int status = 0;
    pid_t child;

    CHECK_INT(pipe(acks), 0);
    fflush(stdout);
    child = fork();
    if (child == 0)
        save_for_ever(w, acks[1]);
    close(acks[1]);
    /* One state at least, so that each round gets on; then some time, not a condition: the moment
     * is what is to be by chance. */
    CHECK_INT(read(acks[0], &last, sizeof(last)), sizeof(last));
    nanosleep(&wait, NULL);
    CHECK_INT(kill(child, SIGKILL), 0);
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
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
    for (int round = 0; round < N_KILLS; round++) {
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
static bool save_beside(const struct world *w, const char *own)
{
    peg_turn_store *store = NULL;
    peg_turn *mine = turn_named(peg_cstr(own));
    peg_turn *shared = turn_named(peg_cstr("shared"));
    bool is_well = !w->kind->open(w->folder, &store, NULL);

    for (unsigned n = 1; is_well && n <= N_SAVES; n++) {
        peg_turn *loaded = NULL;

        add_state(mine, n);
        add_state(shared, n);
        is_well = !peg_turn_store_save(store, mine, PEG_PHASE_FINAL, NULL) &&
                  !peg_turn_store_save(store, shared, PEG_PHASE_FINAL, NULL) &&
                  !peg_turn_store_load(store, peg_cstr(own), &loaded, NULL, NULL) && loaded &&
                  state_of(loaded) == n &&
                  (n % 7 || !peg_turn_store_remove(store, peg_cstr("shared"), NULL)) &&
                  (n % 5 || !peg_turn_store_list(store, peg_cstr(""), hear_all, NULL, NULL));
        peg_turn_free(loaded);
    }
    peg_turn_free(mine);
    peg_turn_free(shared);
    peg_turn_store_unref(store);
    return is_well;
}

static void save_together(const struct store_kind *kind)
{
    static const char *const names[] = {"left", "right"};
    struct world w = {.kind = kind};
    pid_t children[2];

    folder_make(w.folder);
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(save_beside(&w, names[i]) ? 0 : 1);
    }
    for (int i = 0; i < 2; i++) {
        int status = -1;

        CHECK_INT(waitpid(children[i], &status, 0), children[i]);
        CHECK_INT(status, 0);
    }
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
