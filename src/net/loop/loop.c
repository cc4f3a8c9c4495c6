/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A round of the loop, as libuv runs it:
 *
 *   poll         waits; reads, writes and the mailbox are served
 *   after_poll   what the loop posted to itself, timers that are due, then what was to be done
 *                later, then turns (turns.c)
 *   closing      handles that were closed are gone
 *   before_poll  again what was to be done later; then decides how long to wait
 *
 * The clock is read when somebody first asks in a round, so a round in which no time matters
 * costs none. libuv's own timers count milliseconds: one of them, the alarm, ends the polling when
 * the first of ours is due, rounded up. It is moved only to be earlier; a deadline that was
 * disarmed, as nearly all are, costs one round for nothing much later.
 */

#include "net/loop/loop.h"

#include <sched.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "net/loop/internal.h"
#include "net/loop/scheduling.h"

/* What is asked for while it is run is done in the same round, but not for ever: a connection with
 * much to send asks for its next turn that way, and others wait to be read. */
enum { MAX_PASSES = 2 };

/* The loop that this thread runs. Asked for all the time: without the model it would be a call in
 * a shared library. */
static _Thread_local struct net_loop *here __attribute__((tls_model("initial-exec")));

struct net_loop *net_loop_enter(struct net_loop *loop)
{
    struct net_loop *before = here;

    here = loop;
    return before;
}

bool net_loop_is_here(const struct net_loop *loop)
{
    return here == loop;
}

/* ---- messages ----------------------------------------------------------------------------- */

/* uv_async_send() first looks, without a barrier, whether the loop is being woken already. The
 * loop forgets that before it looks at what we have just written: so must we write before we look,
 * or on some processors both would see the old state, and nobody would wake. */
static void wake_up(struct net_loop *loop)
{
    atomic_thread_fence(memory_order_seq_cst);
    uv_async_send(&loop->wake);
}

void net_loop_post(struct net_loop *loop, struct net_message *message)
{
    /* On its own thread the loop looks by itself before it waits. */
    if (!net_mailbox_post(&loop->mailbox, message) || here == loop || loop->is_shut)
        return;
    atomic_fetch_add_explicit(&loop->n_wakes, 1, memory_order_relaxed);
    wake_up(loop);
}

uint64_t net_loop_n_wakes(const struct net_loop *loop)
{
    return atomic_load_explicit(&loop->n_wakes, memory_order_relaxed);
}

void net_loop_run_posted(struct net_loop *loop)
{
    struct net_message *message = net_mailbox_take_all(&loop->mailbox);

    while (message) {
        struct net_message *next = message->next; /* fn may free it */

        message->fn(message);
        message = next;
    }
}

static void on_wake(uv_async_t *wake)
{
    struct net_loop *loop = (struct net_loop *)wake->data;

    /* Whoever sees it also sees what its sender posted before. */
    if (atomic_exchange_explicit(&loop->must_stop, false, memory_order_acquire))
        uv_stop(&loop->uv);
    net_loop_run_posted(loop);
}

/* ---- later -------------------------------------------------------------------------------- */

static void unlink_later(struct net_later *later)
{
    later->prev->next = later->next;
    later->next->prev = later->prev;
    later->is_waiting = false;
}

static void link_later(struct net_later *ring, struct net_later *later)
{
    later->next = ring;
    later->prev = ring->prev;
    ring->prev->next = later;
    ring->prev = later;
    later->is_waiting = true;
}

static void clear_laters(struct net_later *ring)
{
    ring->next = ring;
    ring->prev = ring;
}

static bool has_laters(const struct net_later *ring)
{
    return ring->next != ring;
}

void net_loop_later(struct net_loop *loop, struct net_later *later)
{
    if (!later->is_waiting)
        link_later(&loop->laters, later);
}

void net_loop_not_later(struct net_loop *loop, struct net_later *later)
{
    (void)loop;
    if (later->is_waiting)
        unlink_later(later);
}

/* Those that wait now, in a ring of their own: what is asked for meanwhile waits for the next
 * pass, and what is taken back leaves whichever ring it is in. */
static void run_later_pass(struct net_loop *loop)
{
    struct net_later ring = loop->laters;

    ring.next->prev = &ring;
    ring.prev->next = &ring;
    clear_laters(&loop->laters);
    while (has_laters(&ring)) {
        struct net_later *later = ring.next;

        unlink_later(later);
        later->fn(later);
    }
}

void net_loop_run_later(struct net_loop *loop)
{
    for (unsigned i = 0; i < MAX_PASSES && has_laters(&loop->laters); i++)
        run_later_pass(loop);
}

/* ---- time --------------------------------------------------------------------------------- */

int64_t net_loop_now_ns(struct net_loop *loop)
{
    if (!loop->is_now_fresh) {
        loop->now_ns = (int64_t)uv_hrtime();
        loop->is_now_fresh = here == loop; /* before it runs there are no rounds */
    }
    return loop->now_ns;
}

void net_loop_arm(struct net_loop *loop, struct net_timer *timer, int64_t due_ns)
{
    const int64_t now_ns = net_loop_now_ns(loop);

    /* After now, so that no timer that arms itself can hold up the round. */
    net_timers_arm(&loop->timers, timer, due_ns > now_ns ? due_ns : now_ns + 1);
}

void net_loop_disarm(struct net_loop *loop, struct net_timer *timer)
{
    net_timers_disarm(&loop->timers, timer);
}

static void run_timers(struct net_loop *loop)
{
    struct net_timer *timer;
    int64_t now_ns;

    if (net_timers_next_ns(&loop->timers) == NET_NEVER)
        return;
    now_ns = net_loop_now_ns(loop);
    while ((timer = net_timers_take_due(&loop->timers, now_ns)))
        timer->fn(timer);
}

/* Polling has ended, which is all that it is for. */
static void on_alarm(uv_timer_t *alarm)
{
    struct net_loop *loop = (struct net_loop *)alarm->data;

    loop->alarm_ns = NET_NEVER;
}

/* Polling ends in the first millisecond that does not begin before the timer is due. */
static void set_alarm(struct net_loop *loop)
{
    const int64_t next_ns = net_timers_next_ns(&loop->timers);
    const int64_t next_ms = next_ns / PEG_NS_PER_MS + (next_ns % PEG_NS_PER_MS > 0);
    const int64_t now_ms = (int64_t)uv_now(&loop->uv);

    if (next_ns >= loop->alarm_ns)
        return;
    uv_timer_start(&loop->alarm, on_alarm, next_ms > now_ms ? (uint64_t)(next_ms - now_ms) : 0, 0);
    loop->alarm_ns = next_ns;
}

/* ---- rounds ------------------------------------------------------------------------------- */

/* It only keeps polling from waiting. */
static void on_busy(uv_idle_t *busy)
{
    (void)busy;
}

static bool has_work(const struct net_loop *loop)
{
    return has_laters(&loop->laters) || loop->turns.n > 0 || !net_mailbox_is_empty(&loop->mailbox);
}

static bool spins(struct net_loop *loop)
{
    return loop->may_spin && (loop->spin.n_awaited || loop->spin.since_ns) &&
           net_busy_poll_goes_on(&loop->spin, (int64_t)uv_hrtime());
}

static void on_before_poll(uv_prepare_t *before_poll)
{
    struct net_loop *loop = (struct net_loop *)before_poll->data;

    net_loop_run_later(loop);
    set_alarm(loop);
    if (has_work(loop) || spins(loop))
        uv_idle_start(&loop->busy, on_busy);
    else
        uv_idle_stop(&loop->busy);
    loop->is_now_fresh = false;
}

void net_loop_await(struct net_loop *loop, int n)
{
    loop->spin.n_awaited += n;
}

void net_loop_note_event(struct net_loop *loop)
{
    if (loop->spin.since_ns)
        net_busy_poll_note_event(&loop->spin, net_loop_now_ns(loop));
}

static void on_after_poll(uv_check_t *after_poll)
{
    struct net_loop *loop = (struct net_loop *)after_poll->data;

    net_loop_run_posted(loop);
    run_timers(loop);
    net_loop_run_later(loop);
    net_loop_run_fair_queue(loop);
}

void net_loop_run(struct net_loop *loop)
{
    struct net_loop *before = net_loop_enter(loop);

    uv_run(&loop->uv, UV_RUN_DEFAULT);
    loop->is_now_fresh = false;
    net_loop_enter(before);
}

void net_loop_stop(struct net_loop *loop)
{
    atomic_store_explicit(&loop->must_stop, true, memory_order_release);
    wake_up(loop);
}

void net_block_signals(sigset_t *ret_before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked;

    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, ret_before);
}

static void *run_thread(void *user)
{
    pthread_setname_np(pthread_self(), "net-loop");
    net_schedule_loop();
    net_loop_run((struct net_loop *)user);
    return NULL;
}

peg_status net_loop_start(struct net_loop *loop, peg_error *reterr)
{
    sigset_t before;
    int error;

    if (loop->has_thread)
        return peg__fail(reterr, PEG_ESTATE, "E_LOOP_STARTED",
                         "this loop has a thread already: start each loop once");
    net_block_signals(&before);
    error = pthread_create(&loop->thread, NULL, run_thread, loop);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return peg__fail(reterr, PEG_EIO, "E_LOOP",
                         "no thread for an event loop could be started: %s; allow more threads "
                         "(ulimit -u) or use fewer loops",
                         uv_strerror(uv_translate_sys_error(error)));
    loop->has_thread = true;
    return PEG_OK;
}

/* ---- what hangs on it ---------------------------------------------------------------------- */

/* The loop's own thread needs no locked instruction for a number that it alone writes. */
void net_loop_add_load(struct net_loop *loop, ptrdiff_t n)
{
    if (here != loop) {
        atomic_fetch_add_explicit(&loop->load_by_others, n, memory_order_relaxed);
        return;
    }
    atomic_store_explicit(&loop->load, atomic_load_explicit(&loop->load, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

size_t net_loop_load(const struct net_loop *loop)
{
    const ptrdiff_t load = atomic_load_explicit(&loop->load, memory_order_relaxed) +
                           atomic_load_explicit(&loop->load_by_others, memory_order_relaxed);

    return load > 0 ? (size_t)load : 0; /* the two are not read at one moment */
}

void net_loop_opened(struct net_loop *loop, struct net_open *open)
{
    open->next = &loop->opens;
    open->prev = loop->opens.prev;
    open->prev->next = open;
    loop->opens.prev = open;
}

void net_loop_closed(struct net_loop *loop, struct net_open *open)
{
    (void)loop;
    if (!open->next)
        return;
    open->prev->next = open->next;
    open->next->prev = open->prev;
    open->next = NULL;
    open->prev = NULL;
}

bool net_loop_is_ending(const struct net_loop *loop)
{
    return loop->is_ending;
}

uint8_t *net_loop_scratch(struct net_loop *loop)
{
    return loop->scratch;
}

uint8_t *net_loop_read_buffer(struct net_loop *loop)
{
    return loop->scratch + NET_SCRATCH_BYTES;
}

struct uv_loop_s *net_loop_uv(struct net_loop *loop)
{
    return &loop->uv;
}

/* ---- beginning and end --------------------------------------------------------------------- */

static peg_status fail_uv(int error, peg_error *reterr)
{
    if (error == UV_ENOMEM)
        return peg__fail_nomem(reterr);
    return peg__fail(reterr, PEG_EIO, "E_LOOP",
                     "an event loop could not be made: %s; allow more open files (ulimit -n)",
                     uv_strerror(error));
}

/* Only the handle that wakes it keeps the loop running: an error is one of uv_async_init(), the
 * others have nothing to fail with. */
static int start_handles(struct net_loop *loop)
{
    const int error = uv_async_init(&loop->uv, &loop->wake, on_wake);

    if (error)
        return error;
    uv_prepare_init(&loop->uv, &loop->before_poll);
    uv_check_init(&loop->uv, &loop->after_poll);
    uv_idle_init(&loop->uv, &loop->busy);
    uv_timer_init(&loop->uv, &loop->alarm);
    loop->wake.data = loop;
    loop->before_poll.data = loop;
    loop->after_poll.data = loop;
    loop->alarm.data = loop;
    uv_prepare_start(&loop->before_poll, on_before_poll);
    uv_check_start(&loop->after_poll, on_after_poll);
    uv_unref((uv_handle_t *)&loop->before_poll);
    uv_unref((uv_handle_t *)&loop->after_poll);
    uv_unref((uv_handle_t *)&loop->busy);
    uv_unref((uv_handle_t *)&loop->alarm);
    return 0;
}

static int start_uv(struct net_loop *loop)
{
    int error = uv_loop_init(&loop->uv);

    if (error)
        return error;
    error = start_handles(loop);
    if (error)
        uv_loop_close(&loop->uv);
    return error;
}

/* Who spins on the only one keeps the answer from being made. */
static bool has_processors(void)
{
    cpu_set_t here_set;

    return sched_getaffinity(0, sizeof(here_set), &here_set) == 0 && CPU_COUNT(&here_set) > 1;
}

peg_status net_loop_new(struct net_loop **ret_loop, peg_error *reterr)
{
    PEG_CLEANUP(peg__freep) struct net_loop *loop = NULL;
    PEG_CLEANUP(peg__freep) uint8_t *scratch = NULL;
    int error;

    loop = (struct net_loop *)peg__alloc_zero(1, sizeof(*loop));
    scratch = (uint8_t *)peg__alloc(NET_SCRATCH_BYTES + NET_READ_BYTES);
    if (!loop || !scratch)
        return peg__fail_nomem(reterr);
    loop->alarm_ns = NET_NEVER;
    loop->may_spin = has_processors();
    clear_laters(&loop->laters);
    loop->opens.next = loop->opens.prev = &loop->opens;
    loop->closing.next = loop->closing.prev = &loop->closing;
    error = start_uv(loop);
    if (error)
        return fail_uv(error, reterr);
    loop->scratch = scratch;
    *ret_loop = loop;
    scratch = NULL;
    loop = NULL;
    return PEG_OK;
}

struct net_loop *net_loop_free(struct net_loop *loop)
{
    if (loop)
        net_loops_end(&loop, 1);
    return NULL;
}
