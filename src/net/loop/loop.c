/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A round of the loop, as libuv runs it:
 *
 *   poll         waits; reads, writes and the mailbox are served
 *   after_poll   what the loop posted to itself, timers that are due, then what was to be done
 *                later, then jobs of the fair queue
 *   closing      handles that were closed are gone
 *   before_poll  again what was to be done later; then decides how long to wait
 *
 * The clock is read on first use in a round. libuv's own timers count milliseconds: one of them,
 * the alarm, ends the polling when the first of ours is due, rounded up. It is moved only to be
 * earlier; a deadline that was disarmed, as nearly all are, costs one idle round much later.
 *
 * At the end the threads are stopped and joined, and the caller's thread runs the loops: first
 * until all that is open is closed and all work done or canceled, then without handles. Either may
 * make one loop post to another, so both are repeated until all are quiet.
 */

#include <sched.h>

#include "base/clock.h"
#include "base/error.h"
#include "net/loop/internal.h"

/* What is requested meanwhile runs in the same round, but not for ever: a connection with much to
 * send goes on that way, and others wait to be read. */
enum { MAX_PASSES = 2 };

/* The loop that this thread runs. Without the model, reading it would be a call in a shared
 * library. */
static _Thread_local struct net_loop *here __attribute__((tls_model("initial-exec")));

/* Returns the loop that this thread ran before. */
static struct net_loop *enter_loop(struct net_loop *loop)
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

/*
 * The mailbox is a stack that grows by compare-and-swap and is taken whole by an exchange, so that
 * no thread ever reads a message that another may have taken (no ABA). The loop reverses it.
 *
 * True if it was empty: that sender wakes the loop, all others need not.
 */
static bool push_message(struct net_loop *loop, struct net_message *message)
{
    struct net_message *before = atomic_load_explicit(&loop->mailbox, memory_order_relaxed);

    do {
        message->next = before;
    } while (!atomic_compare_exchange_weak_explicit(&loop->mailbox, &before, message,
                                                    memory_order_release, memory_order_relaxed));
    /* Not message->next: the message is the loop's now. */
    return !before;
}

static bool has_messages(const struct net_loop *loop)
{
    return atomic_load_explicit(&loop->mailbox, memory_order_relaxed) != NULL;
}

/* In the order of posting. */
static struct net_message *take_messages(struct net_loop *loop)
{
    struct net_message *message;
    struct net_message *first = NULL;

    /* An exchange is a locked instruction, and the mailbox is empty in most rounds. */
    if (!has_messages(loop))
        return NULL;
    message = atomic_exchange_explicit(&loop->mailbox, NULL, memory_order_acquire);
    while (message) {
        struct net_message *before = message->next;

        message->next = first;
        first = message;
        message = before;
    }
    return first;
}

/* uv_async_send() first checks, without a barrier, whether the loop is being woken already. The
 * loop clears that before it reads what we have just written: without the fence both could see the
 * old state, and the loop would sleep. */
static void wake_up(struct net_loop *loop)
{
    atomic_thread_fence(memory_order_seq_cst);
    uv_async_send(&loop->wake);
}

void net_loop_post(struct net_loop *loop, struct net_message *message)
{
    /* On its own thread the loop checks before it waits. */
    if (!push_message(loop, message) || here == loop || loop->is_shut)
        return;
    atomic_fetch_add_explicit(&loop->n_wakes, 1, memory_order_relaxed);
    wake_up(loop);
}

uint64_t net_loop_n_wakes(const struct net_loop *loop)
{
    return atomic_load_explicit(&loop->n_wakes, memory_order_relaxed);
}

static void run_posted(struct net_loop *loop)
{
    struct net_message *message = take_messages(loop);

    while (message) {
        struct net_message *next = message->next; /* fn may free it */

        message->fn(message);
        message = next;
    }
}

static void on_async(uv_async_t *wake)
{
    struct net_loop *loop = (struct net_loop *)wake->data;

    /* Acquires what its sender posted before. */
    if (atomic_exchange_explicit(&loop->must_stop, false, memory_order_acquire))
        uv_stop(&loop->uv);
    run_posted(loop);
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

/* Those that wait now, in a ring of their own: what is requested meanwhile waits for the next pass,
 * and what is taken back leaves whichever ring it is in. */
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
    return has_laters(&loop->laters) || loop->fair_queue.n > 0 || has_messages(loop);
}

static bool should_busy_poll(struct net_loop *loop)
{
    return loop->may_busy_poll && (loop->busy_poll.n_awaited || loop->busy_poll.since_ns) &&
           net_busy_poll_goes_on(&loop->busy_poll, (int64_t)uv_hrtime());
}

static void on_before_poll(uv_prepare_t *before_poll)
{
    struct net_loop *loop = (struct net_loop *)before_poll->data;

    net_loop_run_later(loop);
    set_alarm(loop);
    if (has_work(loop) || should_busy_poll(loop))
        uv_idle_start(&loop->busy, on_busy);
    else
        uv_idle_stop(&loop->busy);
    loop->is_now_fresh = false;
}

void net_loop_await(struct net_loop *loop, int n)
{
    loop->busy_poll.n_awaited += n;
}

void net_loop_note_event(struct net_loop *loop)
{
    if (loop->busy_poll.since_ns)
        net_busy_poll_note_event(&loop->busy_poll, net_loop_now_ns(loop));
}

static void on_after_poll(uv_check_t *after_poll)
{
    struct net_loop *loop = (struct net_loop *)after_poll->data;

    run_posted(loop);
    run_timers(loop);
    net_loop_run_later(loop);
    net_loop_run_fair_queue(loop);
}

void net_loop_run(struct net_loop *loop)
{
    struct net_loop *before = enter_loop(loop);

    uv_run(&loop->uv, UV_RUN_DEFAULT);
    loop->is_now_fresh = false;
    enter_loop(before);
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
        return peg__fail(reterr, PEG_ESTATE, "E_LOOP",
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

/* ---- the beginning ------------------------------------------------------------------------- */

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
    const int error = uv_async_init(&loop->uv, &loop->wake, on_async);

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

/* Polling on the only processor would keep the peer from answering. */
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
    loop->may_busy_poll = has_processors();
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

/* ---- the end ------------------------------------------------------------------------------- */

static bool is_quiet(const struct net_loop *loop)
{
    return !has_messages(loop) && loop->laters.next == &loop->laters && loop->fair_queue.n == 0 &&
           loop->opens.next == &loop->opens && loop->closing.next == &loop->closing && !loop->works;
}

/* Closes each once; what is opened meanwhile is closed in the next round. */
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

static void join_thread(struct net_loop *loop)
{
    if (!loop->has_thread)
        return;
    net_loop_stop(loop);
    pthread_join(loop->thread, NULL);
    loop->has_thread = false;
}

static void end_loop(struct net_loop *loop)
{
    struct net_loop *before = enter_loop(loop);

    loop->is_ending = true;
    while (!is_quiet(loop)) {
        loop->is_now_fresh = false;
        run_posted(loop);
        close_opens(loop);
        net_loop_cancel_works(loop);
        net_loop_run_later(loop);
        net_loop_run_fair_queue(loop);
        if (!is_quiet(loop))
            uv_run(&loop->uv, UV_RUN_ONCE);
    }
    enter_loop(before);
}

static void close_handle(uv_handle_t *handle, void *user)
{
    (void)user;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void shut_loop(struct net_loop *loop)
{
    struct net_loop *before = enter_loop(loop);

    loop->is_shut = true;
    do {
        uv_walk(&loop->uv, close_handle, NULL);
        uv_run(&loop->uv, UV_RUN_DEFAULT);
        loop->is_now_fresh = false;
        run_posted(loop);
        net_loop_run_later(loop);
        net_loop_run_fair_queue(loop);
        close_opens(loop);
    } while (uv_loop_alive(&loop->uv) || !is_quiet(loop));
    enter_loop(before);
}

/* For each loop, and again for those that another one has posted to. */
static void run_end_step(void (*step)(struct net_loop *loop), struct net_loop **loops, size_t n)
{
    bool is_repeated = false;
    bool were_quiet;

    do {
        were_quiet = true;
        for (size_t i = 0; i < n; i++) {
            if (is_repeated && is_quiet(loops[i]))
                continue;
            step(loops[i]);
            were_quiet = false;
        }
        is_repeated = true;
    } while (!were_quiet);
}

void net_loops_end(struct net_loop **loops, size_t n)
{
    for (size_t i = 0; i < n; i++)
        net_loop_stop(loops[i]);
    for (size_t i = 0; i < n; i++)
        join_thread(loops[i]);
    run_end_step(end_loop, loops, n);
    for (size_t i = 0; i < n; i++)
        net_loop_end_offload(loops[i]); /* it may still be about to wake the loop */
    run_end_step(shut_loop, loops, n);
    for (size_t i = 0; i < n; i++) {
        uv_loop_close(&loops[i]->uv);
        peg__free(loops[i]->scratch);
        peg__free(loops[i]);
    }
}

struct net_loop *net_loop_free(struct net_loop *loop)
{
    if (loop)
        net_loops_end(&loop, 1);
    return NULL;
}
