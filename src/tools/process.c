/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One loop: look at the context, the clock and the child; sleep in poll(); read and write. Read it
 * from peg__process_run() at the bottom.
 *
 *   GOING -> TERMINATED (SIGTERM was sent) -> KILLED
 *
 * The child is waited for only at the very end: until then its pid is not given to another process,
 * so that a signal to its group cannot hit somebody else.
 *
 * The pipe to the child may break. SIGPIPE is blocked in this thread meanwhile, and taken back
 * when it came from us.
 */

#include "tools/internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "core/context/context.h"

enum {
    READ_BYTES = 16 << 10,
    /* What is still read when everybody is dead: more than a pipe ever holds. */
    LAST_READS = 128,
    /* A budget may stand still or be taken up again without waking us. */
    MAX_SLEEP_MS = 1000,
};

enum phase { GOING, TERMINATED, KILLED };

struct run {
    const struct peg__process_def *def;
    struct peg__process_result *result;
    peg_ctx *ctx;
    struct peg__child child;
    struct peg__family family;
    int pidfd;     /* readable when the child has exited; -1 where the kernel has none */
    int wake;      /* readable when the token has fired */
    peg_str input; /* what is left of it */
    enum phase phase;
    bool is_ended; /* result->end is set: by us, not by the child */
    bool has_exited;
    bool is_lost;        /* somebody else has waited for it */
    int64_t kill_at_ns;  /* TERMINATED: the end of the grace */
    int64_t leave_at_ns; /* once it has exited: no more waiting for the pipes */
};

/* ---- ending it ------------------------------------------------------------------------ */

static void signal_group(const struct run *run, int number)
{
    if (!run->is_lost)
        kill(-run->child.pid, number);
}

/* What has left the group is found by its parents: before these are gone. */
static void kill_group(struct run *run)
{
    peg__family_signal(&run->family, SIGKILL);
    signal_group(run, SIGKILL);
    run->phase = KILLED;
    peg__close(&run->child.in);
}

static void terminate_group(struct run *run)
{
    peg__family_signal(&run->family, SIGTERM);
    signal_group(run, SIGTERM);
    peg__family_signal(&run->family, SIGCONT);
    signal_group(run, SIGCONT); /* a stopped process would not see it */
    run->phase = TERMINATED;
    run->kill_at_ns = peg__mono_ns() + run->def->grace_ms * PEG_NS_PER_MS;
    peg__close(&run->child.in);
}

static void set_end(struct run *run, enum peg__process_end end)
{
    run->result->end = end;
    run->is_ended = true;
}

/* Once it has exited or was signaled, the context does not matter any more. */
static bool can_be_stopped(const struct run *run)
{
    return run->phase == GOING && !run->has_exited;
}

/* While it was not stopped: has the context ended, or has it written too much? */
static void check_reasons(struct run *run)
{
    const peg_status stop = peg_ctx_check(run->ctx, NULL);

    if (run->result->output.status) {
        set_end(run, PEG__PROCESS_OUTPUT);
        kill_group(run);
    } else if (stop) {
        set_end(run, stop == PEG_ECANCELED ? PEG__PROCESS_CANCELED : PEG__PROCESS_TIMEOUT);
        terminate_group(run);
    }
}

static void check_child(struct run *run)
{
    siginfo_t info = {.si_pid = 0};

    if (waitid(P_PID, (id_t)run->child.pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        run->is_lost = errno == ECHILD;
    if (!run->is_lost && info.si_pid == 0)
        return;
    if (run->is_lost)
        peg__family_lose(&run->family);
    run->has_exited = true;
    run->leave_at_ns = peg__mono_ns() + PEG_LIMIT_COMMAND_DRAIN_MS * PEG_NS_PER_MS;
    /* What it started has the rest of the grace. */
    if (run->phase == TERMINATED && run->kill_at_ns > run->leave_at_ns)
        run->leave_at_ns = run->kill_at_ns;
}

static void check_process(struct run *run)
{
    if (!run->has_exited)
        check_child(run);
    if (can_be_stopped(run))
        check_reasons(run);
    if (run->phase == TERMINATED && peg__mono_ns() >= run->kill_at_ns)
        kill_group(run);
}

static bool has_pipes(const struct run *run)
{
    return run->child.out >= 0 || run->child.err >= 0;
}

static bool is_run_over(const struct run *run)
{
    return run->has_exited && (!has_pipes(run) || peg__mono_ns() >= run->leave_at_ns);
}

/* ---- reading and writing ------------------------------------------------------------------ */

static void write_input(struct run *run)
{
    const ssize_t n = write(run->child.in, run->input.ptr, run->input.len);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        run->input.ptr += n;
        run->input.len -= (size_t)n;
    }
    /* A command that does not read all of its input may have good reasons. */
    if (n < 0 || run->input.len == 0)
        peg__close(&run->child.in);
}

/* False when there is nothing to read now; closes the pipe at its end. */
static bool read_some(int *fd, char bytes[READ_BYTES], size_t *ret_n)
{
    ssize_t n;

    if (*fd < 0)
        return false;
    n = read(*fd, bytes, READ_BYTES);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        peg__close(fd);
        return false;
    }
    *ret_n = (size_t)n;
    return true;
}

static void report_output(const struct run *run, enum peg__process_stream stream, const char *bytes,
                          size_t n)
{
    if (run->def->on_output)
        run->def->on_output(stream, peg__strn(bytes, n), run->def->user);
}

static bool read_output(struct run *run)
{
    char bytes[READ_BYTES];
    size_t n;

    if (!read_some(&run->child.out, bytes, &n))
        return false;
    /* What it writes after the signal does not count. */
    if (run->is_ended)
        return true;
    peg__buf_add(&run->result->output, bytes, n);
    report_output(run, PEG__PROCESS_STDOUT, bytes, n);
    return true;
}

static void keep_tail(struct peg__process_result *result, const char *bytes, size_t n)
{
    size_t kept = result->tail_len;

    if (n >= sizeof(result->tail)) {
        result->is_tail_cut |= n > sizeof(result->tail) || kept > 0;
        bytes += n - sizeof(result->tail);
        n = sizeof(result->tail);
        kept = 0;
    } else if (kept + n > sizeof(result->tail)) {
        result->is_tail_cut = true;
        memmove(result->tail, result->tail + kept + n - sizeof(result->tail),
                sizeof(result->tail) - n);
        kept = sizeof(result->tail) - n;
    }
    memcpy(result->tail + kept, bytes, n);
    result->tail_len = kept + n;
}

static bool read_errors(struct run *run)
{
    char bytes[READ_BYTES];
    size_t n;

    if (!read_some(&run->child.err, bytes, &n))
        return false;
    keep_tail(run->result, bytes, n);
    report_output(run, PEG__PROCESS_STDERR, bytes, n);
    return true;
}

/* ---- sleeping -------------------------------------------------------------------------------- */

static int64_t min_ns(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How long nothing can happen that no descriptor tells of. */
static int sleep_ms(const struct run *run)
{
    const peg_clock *clock = peg_ctx_clock(run->ctx);
    const int64_t now = peg__mono_ns();
    int64_t left_ns = MAX_SLEEP_MS * PEG_NS_PER_MS;

    if (run->has_exited)
        left_ns = min_ns(left_ns, run->leave_at_ns - now);
    else if (run->pidfd < 0)
        left_ns = PEG_LIMIT_COMMAND_STEP_MS * PEG_NS_PER_MS;
    if (run->phase == TERMINATED)
        left_ns = min_ns(left_ns, run->kill_at_ns - now);
    if (can_be_stopped(run) && clock != peg_clock_system())
        left_ns = min_ns(left_ns, PEG_LIMIT_COMMAND_STEP_MS * PEG_NS_PER_MS);
    else if (can_be_stopped(run) && peg__ctx_stop_ns(run->ctx) != INT64_MAX)
        left_ns = min_ns(left_ns, peg__ctx_stop_ns(run->ctx) - now);
    return left_ns <= 0 ? 0 : (int)((left_ns + PEG_NS_PER_MS - 1) / PEG_NS_PER_MS);
}

static void sleep_and_serve(struct run *run)
{
    enum { IN, OUT, ERR, CHILD, WAKE, N };
    struct pollfd fds[N] = {
        [IN] = {.fd = run->child.in, .events = POLLOUT},
        [OUT] = {.fd = run->child.out, .events = POLLIN},
        [ERR] = {.fd = run->child.err, .events = POLLIN},
        [CHILD] = {.fd = run->has_exited ? -1 : run->pidfd, .events = POLLIN},
        [WAKE] = {.fd = can_be_stopped(run) ? run->wake : -1, .events = POLLIN},
    };

    if (poll(fds, N, sleep_ms(run)) <= 0)
        return;
    if (fds[IN].revents)
        write_input(run);
    if (fds[OUT].revents)
        read_output(run);
    if (fds[ERR].revents)
        read_errors(run);
}

/* ---- SIGPIPE ---- */

struct sigpipe {
    sigset_t before;
    bool was_pending;
};

static void block_sigpipe(struct sigpipe *ret)
{
    sigset_t set;

    sigpending(&set);
    ret->was_pending = sigismember(&set, SIGPIPE);
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, &ret->before);
}

static void restore_sigpipe(const struct sigpipe *sigpipe)
{
    const struct timespec at_once = {0, 0};
    sigset_t set;

    sigpending(&set);
    if (!sigpipe->was_pending && sigismember(&set, SIGPIPE)) {
        sigemptyset(&set);
        sigaddset(&set, SIGPIPE);
        while (sigtimedwait(&set, NULL, &at_once) < 0 && errno == EINTR)
            continue;
    }
    pthread_sigmask(SIG_SETMASK, &sigpipe->before, NULL);
}

/* ---- the whole ---- */

static void wake_up(void *user)
{
    const struct run *run = user;

    eventfd_write(run->wake, 1);
}

/* The last of the output is in the pipes, and no process is left that could write without end. */
static void read_rest(struct run *run)
{
    int n = 0;

    while (n++ < LAST_READS && read_output(run))
        continue;
    n = 0;
    while (n++ < LAST_READS && read_errors(run))
        continue;
}

static void reap(struct run *run)
{
    siginfo_t info = {.si_pid = 0};
    int failed;

    do {
        failed = waitid(P_PID, (id_t)run->child.pid, &info, WEXITED);
    } while (failed && errno == EINTR);
    if (run->is_ended)
        return;
    run->result->number = info.si_status;
    if (failed)
        run->result->end = PEG__PROCESS_LOST;
    else
        run->result->end = info.si_code == CLD_EXITED ? PEG__PROCESS_EXITED : PEG__PROCESS_SIGNALED;
}

static void serve_process(struct run *run)
{
    struct peg__cancel_hook hook = {.fn = wake_up, .user = run};

    if (!run->input.len)
        peg__close(&run->child.in);
    peg__cancel_hook(&hook, peg_ctx_cancel(run->ctx));
    for (check_process(run); !is_run_over(run); check_process(run))
        sleep_and_serve(run);
    peg__cancel_unhook(&hook);

    if (has_pipes(run) || run->phase != GOING) {
        kill_group(run);
        peg__family_kill(&run->family);
    }
    read_rest(run);
    if (run->result->output.status && !run->is_ended)
        set_end(run, PEG__PROCESS_OUTPUT);
    reap(run);
}

static int start_process(struct run *run)
{
    int error;

    run->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (run->wake < 0)
        return errno;
    error = peg__family_spawn(&run->family, &run->def->program, &run->child);
    if (!error)
        run->pidfd = pidfd_open(run->child.pid, 0);
    return error;
}

static void close_all(struct run *run)
{
    peg__close(&run->child.in);
    peg__close(&run->child.out);
    peg__close(&run->child.err);
    peg__close(&run->pidfd);
    peg__close(&run->wake);
}

peg_status peg__process_run(const struct peg__process_def *def, peg_ctx *ctx,
                            struct peg__process_result *ret_result, peg_error *reterr)
{
    struct run run = {.def = def,
                      .result = ret_result,
                      .ctx = ctx,
                      .child = {.pid = -1, .in = -1, .out = -1, .err = -1},
                      .pidfd = -1,
                      .wake = -1,
                      .input = def->input};
    struct sigpipe sigpipe;
    int error;

    *ret_result = (struct peg__process_result){.output = PEG__BUF(def->max_output)};
    block_sigpipe(&sigpipe);
    error = start_process(&run);
    if (error) {
        ret_result->end = PEG__PROCESS_NOT_STARTED;
        ret_result->number = error;
    } else {
        serve_process(&run);
        peg__family_leave(&run.family);
    }
    close_all(&run);
    restore_sigpipe(&sigpipe);
    if (ret_result->output.status != PEG_ENOMEM)
        return PEG_OK;
    peg__buf_free(&ret_result->output);
    return peg__fail_nomem(reterr);
}
