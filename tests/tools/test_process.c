/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/internal.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "../t.h"
#include "base/text/str.h"
#include "child.h"

/* ---- fixture: one run of a script ------------------------------------------------------ */

enum { PLENTY = 1 << 20, SHORT_GRACE_MS = 50, LONG_GRACE_MS = 60000 };

static const char *const plain_env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", NULL};

static struct peg__process_def script(const char *const argv[4])
{
    return (struct peg__process_def){.program = {.argv = argv, .env = plain_env},
                                     .max_output = PLENTY,
                                     .grace_ms = LONG_GRACE_MS};
}

#define SH(text)                                                                                   \
    (const char *const[4])                                                                         \
    {                                                                                              \
        "sh", "-c", (text), NULL                                                                   \
    }

/* Runs it below a context that never says stop. */
static struct peg__process_result run(const struct peg__process_def *def)
{
    struct peg__process_result result;
    peg_ctx *ctx;

    CHECK_INT(peg_ctx_new(&ctx, NULL), PEG_OK);
    CHECK_INT(peg__process_run(def, ctx, &result, NULL), PEG_OK);
    peg_ctx_unref(ctx);
    CHECK(has_no_children());
    return result;
}

static struct peg__process_result run_script(const char *text)
{
    const struct peg__process_def def = script(SH(text));

    return run(&def);
}

#define CHECK_EXITED(result, status)                                                               \
    do {                                                                                           \
        CHECK_INT((result).end, PEG__PROCESS_EXITED);                                              \
        CHECK_INT((result).number, status);                                                        \
    } while (0)

static peg_str output_of(const struct peg__process_result *result)
{
    return peg__buf_view(&result->output);
}

/* ---- ends --------------------------------------------------------------------------------- */

TEST(process_gives_output_and_exit_status)
{
    struct peg__process_result result = run_script("echo hello; exit 3");

    CHECK_EXITED(result, 3);
    CHECK_STR(output_of(&result), "hello\n");
    CHECK_INT(result.tail_len, 0);
    peg__buf_free(&result.output);
}

TEST(process_reports_the_signal_that_ended_it)
{
    struct peg__process_result result = run_script("kill -SEGV $$");

    CHECK_INT(result.end, PEG__PROCESS_SIGNALED);
    CHECK_INT(result.number, SIGSEGV);
    peg__buf_free(&result.output);
}

TEST(process_that_does_not_exist_is_not_started)
{
    const char *const argv[4] = {"peg-no-such-program", NULL};
    const struct peg__process_def def = script(argv);
    const int n_fds = n_open_fds();
    struct peg__process_result result = run(&def);

    CHECK_INT(result.end, PEG__PROCESS_NOT_STARTED);
    CHECK_INT(result.number, ENOENT);
    CHECK_INT(n_open_fds(), n_fds);
}

TEST(process_that_may_not_be_executed_is_not_started)
{
    static const char *const names[] = {"/etc/passwd", "/tmp"};

    for (size_t i = 0; i < 2; i++) {
        const char *const argv[4] = {names[i], NULL};
        const struct peg__process_def def = script(argv);
        struct peg__process_result result = run(&def);

        CHECK_INT(result.end, PEG__PROCESS_NOT_STARTED);
        CHECK_INT(result.number, EACCES);
    }
}

TEST(process_is_not_started_without_descriptors)
{
    const struct peg__process_def def = script(SH("exit 0"));
    struct peg__process_result result;
    struct rlimit before;
    struct rlimit tight;
    peg_ctx *ctx;
    int first_free;

    CHECK_INT(peg_ctx_new(&ctx, NULL), PEG_OK);
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &before), 0);
    first_free = dup(STDERR_FILENO);
    close(first_free);
    tight = (struct rlimit){(rlim_t)first_free, before.rlim_max};
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &tight), 0);
    CHECK_INT(peg__process_run(&def, ctx, &result, NULL), PEG_OK);
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &before), 0);

    CHECK_INT(result.end, PEG__PROCESS_NOT_STARTED);
    CHECK_INT(result.number, EMFILE);
    CHECK(has_no_children());
    peg_ctx_unref(ctx);
}

TEST(process_is_lost_when_the_host_ignores_its_children)
{
    const struct peg__process_def def = script(SH("echo hello"));
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    struct peg__process_result result = run(&def);

    signal(SIGCHLD, before);
    CHECK_INT(result.end, PEG__PROCESS_LOST);
    peg__buf_free(&result.output);
}

/* ---- what it gets ---------------------------------------------------------------------------- */

TEST(process_gets_the_environment_it_is_given_and_nothing_else)
{
    static const char *const env[] = {"A=1", "PATH=/bin:/usr/bin", "B=", NULL};
    const char *const argv[4] = {"env", NULL};
    struct peg__process_def def = script(argv);
    struct peg__process_result result;

    CHECK_INT(setenv("PEG_TEST_SECRET", "hidden", 1), 0);
    def.program.env = env;
    result = run(&def);
    unsetenv("PEG_TEST_SECRET");

    CHECK_EXITED(result, 0);
    CHECK_STR(output_of(&result), "A=1\nPATH=/bin:/usr/bin\nB=\n");
    peg__buf_free(&result.output);
}

TEST(process_is_looked_up_in_the_path_of_its_own_environment)
{
    static const char *const nowhere[] = {"PATH=/nonexistent::bin:relative", NULL};
    struct peg__process_def def = script(SH("exit 0"));
    struct peg__process_result result;

    def.program.env = nowhere;
    def.program.directory = "/";
    result = run(&def);

    CHECK_INT(result.end, PEG__PROCESS_NOT_STARTED);
    CHECK_INT(result.number, ENOENT);
}

TEST(process_runs_in_its_directory)
{
    const char *const argv[4] = {"bin/sh", "-c", "pwd", NULL};
    struct peg__process_def def = script(argv);
    struct peg__process_result result;

    def.program.directory = "/";
    result = run(&def);

    CHECK_EXITED(result, 0);
    CHECK_STR(output_of(&result), "/\n");
    peg__buf_free(&result.output);
}

TEST(process_gets_its_arguments_as_they_are)
{
    const char *const argv[4] = {"printf", "%s", "$HOME `id` \"*\" ;|&", NULL};
    const struct peg__process_def def = script(argv);
    struct peg__process_result result = run(&def);

    CHECK_STR(output_of(&result), "$HOME `id` \"*\" ;|&");
    peg__buf_free(&result.output);
}

TEST(process_gets_no_descriptor_of_the_host)
{
    const char *const argv[4] = {"ls", "/proc/self/fd", NULL};
    const struct peg__process_def def = script(argv);
    struct peg__process_result result;

    CHECK_INT(dup2(STDERR_FILENO, 77), 77); /* not close-on-exec */
    result = run(&def);
    close(77);

    CHECK_EXITED(result, 0);
    CHECK_STR(output_of(&result), "0\n1\n2\n3\n"); /* 3 is the folder that it lists */
    peg__buf_free(&result.output);
}

TEST(process_has_default_signals_and_a_group_of_its_own)
{
    /* The C library ignores two signals of its own, 32 and 33, in what it spawns. */
    const unsigned long long glibc_own = 3ull << 31;
    unsigned long long blocked;
    unsigned long long ignored;
    void (*before)(int) = signal(SIGUSR2, SIG_IGN);
    struct peg__process_result result;
    sigset_t usr1;
    sigset_t mask;

    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, &mask);
    result = run_script("grep -e SigBlk -e SigIgn /proc/self/status;"
                        "read -r pid name state parent group rest </proc/self/stat;"
                        "test $group = $$");
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    signal(SIGUSR2, before);

    CHECK_EXITED(result, 0);
    CHECK_INT(sscanf(result.output.ptr, "SigBlk: %llx SigIgn: %llx", &blocked, &ignored), 2);
    CHECK_INT(blocked, 0);
    CHECK_INT(ignored & ~glibc_own, 0);
    peg__buf_free(&result.output);
}

/* ---- input and output -------------------------------------------------------------------------
 */

TEST(process_reads_and_writes_much_at_the_same_time)
{
    enum { BYTES = 5 << 20 };
    const char *const argv[4] = {"cat", NULL};
    struct peg__process_def def = script(argv);
    char *input = malloc(BYTES);
    struct peg__process_result result;

    CHECK(input);
    for (size_t i = 0; i < BYTES; i++)
        input[i] = (char)(i * 7 >> 3);
    def.input = peg__strn(input, BYTES);
    def.max_output = BYTES;
    result = run(&def);

    CHECK_EXITED(result, 0);
    CHECK_INT(result.output.len, BYTES);
    CHECK(!memcmp(result.output.ptr, input, BYTES));
    peg__buf_free(&result.output);
    free(input);
}

TEST(process_may_close_its_input_early)
{
    enum { BYTES = 1 << 20 };
    struct peg__process_def def = script(SH("exec <&-; echo done"));
    char *input = calloc(1, BYTES);
    struct peg__process_result result;
    sigset_t pending;

    CHECK(input);
    def.input = peg__strn(input, BYTES);
    result = run(&def);

    CHECK_EXITED(result, 0);
    CHECK_STR(output_of(&result), "done\n");
    sigpending(&pending);
    CHECK(!sigismember(&pending, SIGPIPE));
    pthread_sigmask(SIG_BLOCK, NULL, &pending);
    CHECK(!sigismember(&pending, SIGPIPE));
    peg__buf_free(&result.output);
    free(input);
}

TEST(process_leaves_a_sigpipe_that_was_pending_before)
{
    struct peg__process_def def = script(SH("exec <&-; echo done"));
    const struct timespec at_once = {0, 0};
    struct peg__process_result result;
    sigset_t sigpipe;
    sigset_t before;

    sigemptyset(&sigpipe);
    sigaddset(&sigpipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
    raise(SIGPIPE);
    def.input = peg__str("x\n");
    result = run(&def);

    CHECK_INT(sigtimedwait(&sigpipe, NULL, &at_once), SIGPIPE);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    peg__buf_free(&result.output);
}

TEST(process_without_input_reads_its_end_at_once)
{
    struct peg__process_result result = run_script("wc -c");

    CHECK_EXITED(result, 0);
    CHECK_STR(output_of(&result), "0\n");
    peg__buf_free(&result.output);
}

TEST(process_keeps_the_last_of_its_standard_error)
{
    struct peg__process_result result = run_script("seq 1 100000 >&2; exit 1");

    CHECK_EXITED(result, 1);
    CHECK_INT(result.tail_len, PEG__TAIL_BYTES);
    CHECK(result.is_tail_cut);
    CHECK_STR(peg__strn(result.tail + PEG__TAIL_BYTES - 13, 13), "99999\n100000\n");
    peg__buf_free(&result.output);
}

TEST(process_keeps_short_pieces_of_standard_error_in_order)
{
    struct peg__process_result result =
        run_script("for i in 1 2 3 4 5 6 7 8; do printf '%s' $i >&2; sleep 0.001; done");

    CHECK_STR(peg__strn(result.tail, result.tail_len), "12345678");
    CHECK(!result.is_tail_cut);
    peg__buf_free(&result.output);
}

TEST(process_may_write_exactly_as_much_as_is_allowed)
{
    struct peg__process_def def = script(SH("head -c 70000 /dev/zero"));
    struct peg__process_result result;

    def.max_output = 70000;
    result = run(&def);

    CHECK_EXITED(result, 0);
    CHECK_INT(result.output.len, 70000);
    peg__buf_free(&result.output);
}

TEST(process_that_writes_too_much_is_killed)
{
    static const char *const texts[] = {"head -c 100000000 /dev/zero", "yes", "printf 123456789"};

    for (size_t i = 0; i < 3; i++) {
        struct peg__process_def def = script(SH(texts[i]));
        struct peg__process_result result;

        def.max_output = 8;
        result = run(&def);

        CHECK_INT(result.end, PEG__PROCESS_OUTPUT);
        CHECK(result.output.len <= 8);
        peg__buf_free(&result.output);
    }
}

/* ---- what it started
 * ------------------------------------------------------------------------------ */

TEST(process_is_over_when_it_exits_though_its_children_hold_the_pipes)
{
    struct peg__process_result result = run_script("sleep 1000 & echo $!");

    CHECK_EXITED(result, 0);
    CHECK(result.output.len > 1);
    await_death(atoi(result.output.ptr)); // NOLINT(cert-err34-c)
    peg__buf_free(&result.output);
}

/* It has let go of them when it has become another program. */
TEST(process_may_leave_children_that_let_go_of_the_pipes)
{
    struct peg__process_result result =
        run_script("sleep 1000 </dev/null >/dev/null 2>&1 & echo $!; "
                   "until read name </proc/$!/comm && [ $name = sleep ]; do :; done");
    pid_t pid;

    CHECK_EXITED(result, 0);
    pid = atoi(result.output.ptr); // NOLINT(cert-err34-c)
    CHECK(is_alive(pid));
    kill(pid, SIGKILL);
    peg__buf_free(&result.output);
}

/* ---- deadline and cancellation -----------------------------------------------------------------
 */

/* Time passes, or the token fires, when the script says that it is ready. */
struct stopper {
    struct signs signs;
    peg_clock *clock;
    peg_cancel *cancel;
    bool cancels;
    pthread_t thread;
};

static void *stop_when_ready(void *user)
{
    struct stopper *stopper = user;

    signs_await(&stopper->signs);
    if (stopper->cancels)
        peg_cancel_fire(stopper->cancel, "enough");
    else
        peg_clock_manual_advance(stopper->clock, 1000);
    return NULL;
}

/* `text` is a format for the file that says ready. The context has a deadline in a second and a
 * token. */
static struct peg__process_result run_until_stopped(const char *text, bool cancels,
                                                    int64_t grace_ms)
{
    struct stopper stopper = {.cancels = cancels};
    struct peg__process_result result;
    struct peg__process_def def;
    char words[512];
    peg_ctx *root;
    peg_ctx *timed;
    peg_ctx *late;
    peg_ctx *ctx;

    signs_init(&stopper.signs);
    snprintf(words, sizeof(words), "ready=%s; %s", stopper.signs.file, text);
    def = script(SH(words));
    def.grace_ms = grace_ms;
    CHECK_INT(peg_ctx_new(&root, NULL), PEG_OK);
    CHECK_INT(peg_clock_manual_new(0, &stopper.clock, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_clock(root, cancels ? peg_clock_system() : stopper.clock, &timed, NULL),
              PEG_OK);
    CHECK_INT(peg_ctx_with_deadline(timed, cancels ? 1000000 : 1000, &late, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_cancel(late, &ctx, &stopper.cancel, NULL), PEG_OK);
    CHECK_INT(pthread_create(&stopper.thread, NULL, stop_when_ready, &stopper), 0);

    CHECK_INT(peg__process_run(&def, ctx, &result, NULL), PEG_OK);

    pthread_join(stopper.thread, NULL);
    CHECK(has_no_children());
    peg_cancel_unref(stopper.cancel);
    peg_ctx_unref(ctx);
    peg_ctx_unref(late);
    peg_ctx_unref(timed);
    peg_ctx_unref(root);
    peg_clock_manual_free(stopper.clock);
    signs_done(&stopper.signs);
    return result;
}

TEST(a_deadline_ends_a_process_that_listens)
{
    struct peg__process_result result = run_until_stopped(
        "trap 'echo bye >&2; exit 0' TERM; : >$ready; while :; do sleep 0.01; done", false,
        LONG_GRACE_MS);

    CHECK_INT(result.end, PEG__PROCESS_TIMEOUT);
    CHECK(result.tail_len >= 4);
    CHECK_STR(peg__strn(result.tail + result.tail_len - 4, 4), "bye\n");
    peg__buf_free(&result.output);
}

TEST(a_cancellation_ends_a_process_at_once)
{
    struct peg__process_result result =
        run_until_stopped(": >$ready; exec sleep 1000", true, LONG_GRACE_MS);

    CHECK_INT(result.end, PEG__PROCESS_CANCELED);
    peg__buf_free(&result.output);
}

/* Numbers that a script wrote to standard error, which is kept to the end. */
static void await_death_of_written(const struct peg__process_result *result, int n_pids)
{
    char text[PEG__TAIL_BYTES + 1];
    char *rest = text;

    memcpy(text, result->tail, result->tail_len);
    text[result->tail_len] = '\0';
    for (int i = 0; i < n_pids; i++) {
        const long pid = strtol(rest, &rest, 10);

        CHECK(pid > 1);
        await_death((pid_t)pid);
    }
}

TEST(a_process_that_ignores_sigterm_is_killed_with_all_it_started)
{
    struct peg__process_result result = run_until_stopped(
        "trap '' TERM; sleep 1000 & echo $! >&2; (sleep 1000; :) & echo $! >&2; : >$ready; wait",
        false, SHORT_GRACE_MS);

    CHECK_INT(result.end, PEG__PROCESS_TIMEOUT);
    await_death_of_written(&result, 2);
    peg__buf_free(&result.output);
}

/* It exits when it is told to; what it started holds no pipe and would live on. */
TEST(what_an_ended_process_started_is_killed_too)
{
    struct peg__process_result result = run_until_stopped(
        "(trap '' TERM; sleep 1000) </dev/null >/dev/null 2>&1 & echo $! >&2; : >$ready; wait",
        false, SHORT_GRACE_MS);

    CHECK_INT(result.end, PEG__PROCESS_TIMEOUT);
    await_death_of_written(&result, 1);
    peg__buf_free(&result.output);
}

TEST(a_stopped_process_is_ended)
{
    struct peg__process_result result = run_until_stopped(
        "(sleep 0.05; : >$ready) & kill -STOP $$; sleep 1000", true, SHORT_GRACE_MS);

    CHECK_INT(result.end, PEG__PROCESS_CANCELED);
    peg__buf_free(&result.output);
}

TEST(a_process_below_a_context_that_has_said_stop_is_ended)
{
    const struct peg__process_def def = script(SH("exec sleep 1000"));
    struct peg__process_result result;
    peg_cancel *cancel;
    peg_ctx *root;
    peg_ctx *ctx;

    CHECK_INT(peg_ctx_new(&root, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_cancel(root, &ctx, &cancel, NULL), PEG_OK);
    peg_cancel_fire(cancel, "before");
    CHECK_INT(peg__process_run(&def, ctx, &result, NULL), PEG_OK);

    CHECK_INT(result.end, PEG__PROCESS_CANCELED);
    CHECK(has_no_children());
    peg__buf_free(&result.output);
    peg_cancel_unref(cancel);
    peg_ctx_unref(ctx);
    peg_ctx_unref(root);
}

/* ---- strange hosts
 * --------------------------------------------------------------------------------- */

/* Runs `body` in a process of its own, which may be spoiled. */
static int in_a_fork(int (*body)(void))
{
    const pid_t pid = fork();
    int status = 0;

    CHECK(pid >= 0);
    if (pid == 0)
        _exit(body());
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run_without_standard_descriptors(void)
{
    const char *const argv[4] = {"cat", NULL};
    struct peg__process_def def = script(argv);
    struct peg__process_result result;
    bool is_good;

    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    def.input = peg__str("through");
    result = run(&def);
    is_good = result.end == PEG__PROCESS_EXITED && peg__str_is(output_of(&result), "through");
    peg__buf_free(&result.output);
    return is_good ? 0 : 1;
}

TEST(process_runs_for_a_host_without_standard_descriptors)
{
    CHECK_INT(in_a_fork(run_without_standard_descriptors), 0);
}

/* A kernel, or a sandbox, that has no pidfd_open(). */
static int run_without_pidfd(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
    struct peg__process_result result;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program))
        return 2;
    if (syscall(SYS_pidfd_open, getpid(), 0) >= 0 || errno != ENOSYS)
        return 2;
    result = run_script("exec >&- 2>&-; sleep 0.05; exit 7");
    return result.end == PEG__PROCESS_EXITED && result.number == 7 ? 0 : 1;
}

TEST(process_is_waited_for_in_steps_where_there_is_no_pidfd)
{
    const int status = in_a_fork(run_without_pidfd);

    if (status == 2)
        SKIP("no seccomp filter here");
    CHECK_INT(status, 0);
}

/* ---- many
 * ---------------------------------------------------------------------------------------------- */

enum { N_THREADS = 8, N_ROUNDS = 5 };

static void *run_often(void *user)
{
    int *n_good = user;
    const struct peg__process_def def = script(SH("cat; exit 5"));
    struct peg__process_def mine = def;
    peg_ctx *ctx;

    mine.input = peg__str("hello");
    if (peg_ctx_new(&ctx, NULL) != PEG_OK)
        return NULL;
    for (int i = 0; i < N_ROUNDS; i++) {
        struct peg__process_result result;

        if (peg__process_run(&mine, ctx, &result, NULL) == PEG_OK &&
            result.end == PEG__PROCESS_EXITED && result.number == 5 &&
            peg__str_is(output_of(&result), "hello"))
            (*n_good)++;
        peg__buf_free(&result.output);
    }
    peg_ctx_unref(ctx);
    return NULL;
}

TEST(processes_of_eight_threads_leave_no_descriptor_and_no_child)
{
    const int n_fds = n_open_fds();
    pthread_t threads[N_THREADS];
    int n_good[N_THREADS] = {0};

    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, run_often, &n_good[i]), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);

    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(n_good[i], N_ROUNDS);
    CHECK_INT(n_open_fds(), n_fds);
    CHECK(has_no_children());
}

TORTURE(process_survives_any_allocation_failure)
{
    const struct peg__process_def def = script(SH("head -c 20000 /dev/zero; sleep 0.01; seq 9"));
    struct peg__process_result result;
    peg_status status;
    peg_ctx *ctx;

    status = peg_ctx_new(&ctx, NULL);
    if (status)
        return status;
    status = peg__process_run(&def, ctx, &result, NULL);
    if (!status) {
        CHECK_EXITED(result, 0);
        peg__buf_free(&result.output);
    }
    CHECK(has_no_children());
    peg_ctx_unref(ctx);
    return status;
}
