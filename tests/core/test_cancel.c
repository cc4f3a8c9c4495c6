/* SPDX-License-Identifier: Apache-2.0 */

#include "core/context/context.h"

#include <pthread.h>
#include <sched.h>

#include "../t.h"

/* ---- fixture ------------------------------------------------------------------ */

static peg_cancel *token(peg_cancel *parent)
{
    peg_cancel *cancel = NULL;

    CHECK(peg_cancel_new(parent, &cancel, NULL) == PEG_OK);
    return cancel;
}

static void count(void *user)
{
    atomic_fetch_add((atomic_int *)user, 1);
}

static peg_cancel_hook *hook_on(peg_cancel *cancel, void (*fn)(void *), void *user)
{
    peg_cancel_hook *hook = NULL;

    CHECK(peg_cancel_on_fire(cancel, fn, user, &hook, NULL) == PEG_OK);
    return hook;
}

/* ---- the tree ------------------------------------------------------------------- */

TEST(token_starts_unfired_without_a_reason)
{
    peg_cancel *cancel = token(NULL);

    CHECK(!peg_cancel_fired(cancel));
    CHECK_STR(peg_cstr(peg_cancel_reason(cancel)), "");
    CHECK(peg_cancel_unref(cancel) == NULL);
    CHECK(peg_cancel_unref(NULL) == NULL);
}

TEST(firing_fires_everything_below_and_nothing_above_or_beside)
{
    peg_cancel *run = token(NULL);
    peg_cancel *turn = token(run);
    peg_cancel *other_turn = token(run);
    peg_cancel *dispatch = token(turn);
    peg_cancel *call = token(dispatch);

    peg_cancel_fire(turn, "the user left");

    CHECK(peg_cancel_fired(turn) && peg_cancel_fired(dispatch) && peg_cancel_fired(call));
    CHECK(!peg_cancel_fired(run) && !peg_cancel_fired(other_turn));
    CHECK_STR(peg_cstr(peg_cancel_reason(call)), "the user left");
    peg_cancel_unref(run);
    peg_cancel_unref(turn);
    peg_cancel_unref(other_turn);
    peg_cancel_unref(dispatch);
    peg_cancel_unref(call);
}

TEST(late_child_of_a_fired_token_starts_fired_with_the_reason)
{
    peg_cancel *parent = token(NULL);
    peg_cancel *child;
    peg_cancel *grandchild;

    peg_cancel_fire(parent, "too late");
    child = token(parent);
    grandchild = token(child);

    CHECK(peg_cancel_fired(child) && peg_cancel_fired(grandchild));
    CHECK_STR(peg_cstr(peg_cancel_reason(grandchild)), "too late");
    peg_cancel_unref(parent);
    peg_cancel_unref(child);
    CHECK_STR(peg_cstr(peg_cancel_reason(grandchild)), "too late");
    peg_cancel_unref(grandchild);
}

/* G147 */
TEST(only_the_first_firing_counts)
{
    peg_cancel *parent = token(NULL);
    peg_cancel *child = token(parent);

    peg_cancel_fire(child, "first");
    peg_cancel_fire(parent, "second");
    peg_cancel_fire(child, "third");

    CHECK_STR(peg_cstr(peg_cancel_reason(child)), "first");
    CHECK_STR(peg_cstr(peg_cancel_reason(parent)), "second");
    peg_cancel_unref(parent);
    peg_cancel_unref(child);
}

TEST(reason_is_canceled_if_none_is_given)
{
    peg_cancel *cancel = token(NULL);

    peg_cancel_fire(cancel, NULL);

    CHECK_STR(peg_cstr(peg_cancel_reason(cancel)), "canceled");
    peg_cancel_unref(cancel);
}

TEST(long_reason_is_cut_at_a_character)
{
    peg_cancel *fits = token(NULL);
    peg_cancel *is_cut = token(NULL);
    char reason[200];

    memset(reason, 'x', sizeof(reason));
    reason[159] = '\0';
    peg_cancel_fire(fits, reason);
    memcpy(reason + 158, "\xc3\xa9", 3);
    peg_cancel_fire(is_cut, reason);

    CHECK_INT(strlen(peg_cancel_reason(fits)), 159);
    CHECK_INT(strlen(peg_cancel_reason(is_cut)), 158);
    peg_cancel_unref(fits);
    peg_cancel_unref(is_cut);
}

TEST(child_keeps_its_parent_alive)
{
    peg_cancel *parent = token(NULL);
    peg_cancel *child = token(parent);

    peg_cancel_unref(parent);
    peg_cancel_fire(parent, "still there");

    CHECK(peg_cancel_fired(child));
    CHECK_STR(peg_cstr(peg_cancel_reason(child)), "still there");
    peg_cancel_unref(child);
}

TEST(child_that_is_gone_is_not_fired)
{
    peg_cancel *parent = token(NULL);
    peg_cancel *first = token(parent);
    peg_cancel *middle = token(parent);
    peg_cancel *last = token(parent);

    peg_cancel_unref(middle);
    peg_cancel_unref(first);
    peg_cancel_fire(parent, NULL);

    CHECK(peg_cancel_fired(last));
    peg_cancel_unref(last);
    peg_cancel_unref(parent);
}

/* As deep as a recursion could not go. */
TEST(deep_and_wide_trees_fire_and_go_without_a_stack)
{
    enum { DEPTH = 200000, WIDTH = 20000 };
    peg_cancel *root = token(NULL);
    peg_cancel *deepest = peg_cancel_ref(root);
    peg_cancel **leaves = peg__alloc(WIDTH * sizeof(*leaves));

    for (int i = 0; i < DEPTH; i++) {
        peg_cancel *child = token(deepest);

        peg_cancel_unref(deepest);
        deepest = child;
    }
    for (int i = 0; i < WIDTH; i++)
        leaves[i] = token(deepest);
    peg_cancel_fire(root, "all of you");

    for (int i = 0; i < WIDTH; i++) {
        CHECK_STR(peg_cstr(peg_cancel_reason(leaves[i])), "all of you");
        peg_cancel_unref(leaves[i]);
    }
    peg_cancel_unref(deepest);
    peg_cancel_unref(root);
    peg__free(leaves);
}

/* ---- hooks ------------------------------------------------------------------------- */

TEST(hook_is_called_once_when_the_token_or_one_above_fires)
{
    peg_cancel *parent = token(NULL);
    peg_cancel *child = token(parent);
    atomic_int n = 0;
    peg_cancel_hook *hook = hook_on(child, count, &n);

    CHECK_INT(n, 0);
    peg_cancel_fire(parent, NULL);
    peg_cancel_fire(child, NULL);
    CHECK_INT(n, 1);
    CHECK(peg_cancel_unhook(hook) == NULL);
    CHECK(peg_cancel_unhook(NULL) == NULL);
    peg_cancel_unref(parent);
    peg_cancel_unref(child);
}

TEST(hook_on_a_fired_token_is_called_at_once)
{
    peg_cancel *cancel = token(NULL);
    atomic_int n = 0;
    peg_cancel_hook *hook;

    peg_cancel_fire(cancel, NULL);
    hook = hook_on(cancel, count, &n);

    CHECK_INT(n, 1);
    peg_cancel_unhook(hook);
    peg_cancel_unref(cancel);
}

TEST(hook_that_is_unhooked_is_not_called)
{
    peg_cancel *cancel = token(NULL);
    atomic_int n = 0;
    peg_cancel_hook *hooks[3];

    for (int i = 0; i < 3; i++)
        hooks[i] = hook_on(cancel, count, &n);
    peg_cancel_unhook(hooks[1]);
    peg_cancel_unhook(hooks[2]);
    peg_cancel_fire(cancel, NULL);

    CHECK_INT(n, 1);
    peg_cancel_unhook(hooks[0]);
    peg_cancel_unref(cancel);
}

TEST(hook_keeps_its_token_alive)
{
    peg_cancel *cancel = token(NULL);
    atomic_int n = 0;
    peg_cancel_hook *hook = hook_on(cancel, count, &n);

    peg_cancel_unref(cancel);
    peg_cancel_fire(cancel, NULL);

    CHECK_INT(n, 1);
    peg_cancel_unhook(hook);
}

TEST(hook_without_a_token_does_nothing)
{
    atomic_int n = 0;
    struct peg__cancel_hook hook = {.fn = count, .user = &n};

    peg__cancel_hook(&hook, NULL);
    peg__cancel_unhook(&hook);

    CHECK_INT(n, 0);
}

struct order {
    int seen[3];
    int n;
};

struct numbered {
    struct order *order;
    int number;
};

static void note(void *user)
{
    struct numbered *numbered = user;

    numbered->order->seen[numbered->order->n++] = numbered->number;
}

TEST(hooks_run_in_the_order_in_which_they_came)
{
    struct order order = {0};
    struct numbered users[3] = {{&order, 0}, {&order, 1}, {&order, 2}};
    peg_cancel_hook *hooks[3];
    peg_cancel *cancel = token(NULL);

    for (int i = 0; i < 3; i++)
        hooks[i] = hook_on(cancel, note, &users[i]);
    peg_cancel_fire(cancel, NULL);

    for (int i = 0; i < 3; i++) {
        CHECK_INT(order.seen[i], i);
        peg_cancel_unhook(hooks[i]);
    }
    peg_cancel_unref(cancel);
}

struct self_hook {
    peg_cancel *cancel;
    peg_cancel *child;
    peg_cancel_hook *hook;
    bool saw_child_fired;
};

static void leave(void *user)
{
    struct self_hook *self = user;

    self->saw_child_fired = peg_cancel_fired(self->child);
    peg_cancel_fire(self->cancel, "again");
    self->hook = peg_cancel_unhook(self->hook);
    self->cancel = peg_cancel_unref(self->cancel);
    self->child = peg_cancel_unref(self->child);
}

TEST(hook_may_fire_unhook_itself_and_drop_the_token_and_sees_the_tree_fired)
{
    struct self_hook self = {0};
    peg_cancel *cancel = token(NULL);

    self.cancel = cancel;
    self.child = token(cancel);
    self.hook = hook_on(cancel, leave, &self);
    peg_cancel_fire(cancel, NULL);

    CHECK(self.saw_child_fired);
    CHECK(!self.hook && !self.cancel);
}

TORTURE(tokens_and_hooks_survive_any_allocation_failure)
{
    peg_cancel *parent = NULL;
    peg_cancel *child = NULL;
    peg_cancel_hook *hook = NULL;
    atomic_int n = 0;
    peg_error error;
    peg_status status = peg_cancel_new(NULL, &parent, &error);

    if (!status)
        status = peg_cancel_new(parent, &child, &error);
    if (!status)
        status = peg_cancel_on_fire(child, count, &n, &hook, &error);
    if (!status) {
        peg_cancel_fire(parent, NULL);
        CHECK_INT(n, 1);
    }
    peg_cancel_unhook(hook);
    peg_cancel_unref(child);
    peg_cancel_unref(parent);
    return status;
}

/* ---- threads ------------------------------------------------------------------------- */

struct slow_hook {
    peg_cancel *cancel;
    atomic_bool is_running;
    atomic_bool may_end;
    atomic_bool has_ended;
};

static void run_until_told(void *user)
{
    struct slow_hook *slow = user;

    atomic_store(&slow->is_running, true);
    while (!atomic_load(&slow->may_end))
        sched_yield();
    atomic_store(&slow->has_ended, true);
}

static void *fire_slow(void *user)
{
    peg_cancel_fire(((struct slow_hook *)user)->cancel, NULL);
    return NULL;
}

static void *let_end(void *user)
{
    /* Gives unhooking a chance to return too early. */
    for (int i = 0; i < 1000; i++)
        sched_yield();
    atomic_store(&((struct slow_hook *)user)->may_end, true);
    return NULL;
}

TEST(unhooking_waits_for_a_hook_that_runs)
{
    struct slow_hook slow = {.cancel = token(NULL)};
    peg_cancel_hook *hook = hook_on(slow.cancel, run_until_told, &slow);
    pthread_t firing;
    pthread_t ending;

    CHECK_INT(pthread_create(&firing, NULL, fire_slow, &slow), 0);
    while (!atomic_load(&slow.is_running))
        sched_yield();
    CHECK_INT(pthread_create(&ending, NULL, let_end, &slow), 0);
    peg_cancel_unhook(hook);

    CHECK(atomic_load(&slow.has_ended));
    CHECK_INT(pthread_join(firing, NULL), 0);
    CHECK_INT(pthread_join(ending, NULL), 0);
    peg_cancel_unref(slow.cancel);
}

enum { N_THREADS = 4, N_ROUNDS = 300, N_CHILDREN = 20 };

struct crowd {
    peg_cancel *_Atomic root; /* of this round */
    atomic_int n_called;
    atomic_int n_hooked;
    atomic_int n_unfired_children; /* of a fired root: must stay 0 */
    pthread_barrier_t start;
    pthread_barrier_t end;
};

/* Makes and drops children, grandchildren and hooks while somebody fires. */
static void grow_and_drop(struct crowd *crowd, peg_cancel *root)
{
    for (int i = 0; i < N_CHILDREN; i++) {
        const bool was_fired = peg_cancel_fired(root);
        peg_cancel *child = token(root);
        peg_cancel *grandchild = token(child);
        struct peg__cancel_hook on_stack = {.fn = count, .user = &crowd->n_called};
        peg_cancel_hook *hook = hook_on(grandchild, count, &crowd->n_called);

        if (was_fired && !peg_cancel_fired(grandchild))
            atomic_fetch_add(&crowd->n_unfired_children, 1);
        peg__cancel_hook(&on_stack, child);
        peg_cancel_unref(child);
        peg__cancel_unhook(&on_stack);
        peg_cancel_unhook(hook);
        if (i % 5 == 0)
            peg_cancel_fire(grandchild, "one of them");
        peg_cancel_unref(grandchild);
        atomic_fetch_add(&crowd->n_hooked, 2);
    }
}

static void *join_crowd(void *user)
{
    struct crowd *crowd = user;

    for (int i = 0; i < N_ROUNDS; i++) {
        pthread_barrier_wait(&crowd->start);
        grow_and_drop(crowd, atomic_load(&crowd->root));
        pthread_barrier_wait(&crowd->end);
    }
    return NULL;
}

TEST(firing_is_safe_while_others_grow_and_drop_the_tree)
{
    static struct crowd crowd;
    pthread_t threads[N_THREADS];

    pthread_barrier_init(&crowd.start, NULL, N_THREADS + 1);
    pthread_barrier_init(&crowd.end, NULL, N_THREADS + 1);
    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, join_crowd, &crowd), 0);
    for (int i = 0; i < N_ROUNDS; i++) {
        peg_cancel *root = token(NULL);

        atomic_store(&crowd.root, root);
        pthread_barrier_wait(&crowd.start);
        for (int spin = 0; spin < i % 50; spin++)
            sched_yield();
        peg_cancel_fire(root, "everybody out");
        pthread_barrier_wait(&crowd.end);
        peg_cancel_unref(root);
    }
    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    pthread_barrier_destroy(&crowd.start);
    pthread_barrier_destroy(&crowd.end);

    CHECK_INT(atomic_load(&crowd.n_unfired_children), 0);
    /* Each hook at most once. */
    CHECK(atomic_load(&crowd.n_called) <= atomic_load(&crowd.n_hooked));
}

struct racer {
    peg_cancel *cancel;
    const char *reason;
    pthread_barrier_t *start;
};

static void *race(void *user)
{
    struct racer *racer = user;

    pthread_barrier_wait(racer->start);
    peg_cancel_fire(racer->cancel, racer->reason);
    return NULL;
}

TEST(of_two_that_fire_at_once_one_gives_the_reason_and_hooks_run_once)
{
    for (int i = 0; i < 50; i++) {
        peg_cancel *parent = token(NULL);
        peg_cancel *child = token(parent);
        atomic_int n = 0;
        peg_cancel_hook *hook = hook_on(child, count, &n);
        pthread_barrier_t start;
        struct racer a = {parent, "a", &start};
        struct racer b = {child, "b", &start};
        pthread_t threads[2];

        pthread_barrier_init(&start, NULL, 2);
        CHECK_INT(pthread_create(&threads[0], NULL, race, &a), 0);
        CHECK_INT(pthread_create(&threads[1], NULL, race, &b), 0);
        CHECK_INT(pthread_join(threads[0], NULL), 0);
        CHECK_INT(pthread_join(threads[1], NULL), 0);
        pthread_barrier_destroy(&start);

        CHECK_INT(n, 1);
        CHECK(strchr("ab", *peg_cancel_reason(child)) && *peg_cancel_reason(child));
        CHECK_STR(peg_cstr(peg_cancel_reason(parent)), "a");
        peg_cancel_unhook(hook);
        peg_cancel_unref(child);
        peg_cancel_unref(parent);
    }
}
