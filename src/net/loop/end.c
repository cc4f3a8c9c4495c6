/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The end of loops. Their threads are stopped and joined; from then on this thread runs them:
 *
 *   end    closes what is open and cancels work, and runs rounds until nothing is left
 *   shut   closes the loop's own handles, and any that somebody forgot
 *
 * Either may make one loop post to another, so both are repeated until all are quiet.
 */

#include "base/mem.h"
#include "net/loop/internal.h"

static bool is_quiet(const struct net_loop *loop)
{
    return net_mailbox_is_empty(&loop->mailbox) && loop->laters.next == &loop->laters &&
           loop->turns.n == 0 && loop->opens.next == &loop->opens &&
           loop->closing.next == &loop->closing && !loop->works;
}

/* Each is told once. Those that are opened meanwhile are told in the next round. */
static void close_opens(struct net_loop *loop)
{
    struct net_open ring = loop->opens;

    if (ring.next == &loop->opens)
        return;
    ring.next->prev = &ring;
    ring.prev->next = &ring;
    loop->opens.next = loop->opens.prev = &loop->opens;
    while (ring.next != &ring) {
        struct net_open *open = ring.next;

        net_loop_closed(loop, open);
        open->next = &loop->closing;
        open->prev = loop->closing.prev;
        open->prev->next = open;
        loop->closing.prev = open;
        open->close(open);
    }
}

static void join(struct net_loop *loop)
{
    if (!loop->has_thread)
        return;
    net_loop_stop(loop);
    pthread_join(loop->thread, NULL);
    loop->has_thread = false;
}

static void end(struct net_loop *loop)
{
    struct net_loop *before = net_loop_enter(loop);

    loop->is_ending = true;
    while (!is_quiet(loop)) {
        loop->is_now_fresh = false;
        net_loop_run_posted(loop);
        close_opens(loop);
        net_loop_cancel_works(loop);
        net_loop_run_later(loop);
        net_loop_run_fair_queue(loop);
        if (!is_quiet(loop))
            uv_run(&loop->uv, UV_RUN_ONCE);
    }
    net_loop_enter(before);
}

static void close_handle(uv_handle_t *handle, void *user)
{
    (void)user;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void shut(struct net_loop *loop)
{
    struct net_loop *before = net_loop_enter(loop);

    loop->is_shut = true;
    do {
        uv_walk(&loop->uv, close_handle, NULL);
        uv_run(&loop->uv, UV_RUN_DEFAULT);
        loop->is_now_fresh = false;
        net_loop_run_posted(loop);
        net_loop_run_later(loop);
        net_loop_run_fair_queue(loop);
        close_opens(loop);
    } while (uv_loop_alive(&loop->uv) || !is_quiet(loop));
    net_loop_enter(before);
}

static bool repeat(void (*step)(struct net_loop *loop), struct net_loop **loops, size_t n)
{
    bool was_quiet = true;

    for (size_t i = 0; i < n; i++) {
        if (is_quiet(loops[i]))
            continue;
        step(loops[i]);
        was_quiet = false;
    }
    return !was_quiet;
}

static void finish(void (*step)(struct net_loop *loop), struct net_loop **loops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        step(loops[i]);
    while (repeat(step, loops, n))
        continue;
}

void net_loops_end(struct net_loop **loops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        net_loop_stop(loops[i]);
    for (size_t i = 0; i < n; i++)
        join(loops[i]);
    finish(end, loops, n);
    for (size_t i = 0; i < n; i++)
        net_loop_end_offload(loops[i]); /* it may still be about to wake the loop */
    finish(shut, loops, n);
    for (size_t i = 0; i < n; i++) {
        uv_loop_close(&loops[i]->uv);
        peg__free(loops[i]->scratch);
        peg__free(loops[i]);
    }
}
