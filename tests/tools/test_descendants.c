/* SPDX-License-Identifier: Apache-2.0 */

/* This process adopts what commands leave behind, as `pegboard provide` does. */

#include "tools/internal.h"
#include "tools/tools.h"

#include <pthread.h>
#include <sys/prctl.h>

#include "../t.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "child.h"

enum { GRACE_MS = 50 };

static const char *const plain_env[] = {"PATH=/usr/local/bin:/usr/bin:/bin",
                                        "PEGBOARD_COMMAND_ID=somebody-elses", NULL};

/* What the scripts start: says who it is, then that it is there, and stays. */
#define STAY                                                                                       \
    "sh -c 'trap \"\" TERM; echo $$ >$0/pid; mv $0/pid $0/ready; exec sleep 1000' $0 "             \
    ">/dev/null 2>&1 </dev/null"

/* ---- fixture: a command that is ended as soon as it says that it is ready ---- */

struct canceler {
    struct signs signs;
    peg_ctx *ctx;
    peg_cancel *cancel;
    pthread_t thread;
};

static void *cancel_when_ready(void *user)
{
    struct canceler *c = user;

    signs_await(&c->signs);
    peg_cancel_fire(c->cancel, "enough");
    return NULL;
}

static pid_t read_pid(const struct signs *signs)
{
    FILE *file = fopen(signs->file, "r");
    int pid = 0;

    CHECK(file);
    CHECK_INT(fscanf(file, "%d", &pid), 1);
    fclose(file);
    return pid;
}

static struct peg__process_result run_in(const struct signs *signs, const char *script,
                                         peg_ctx *below)
{
    const char *const argv[] = {"sh", "-c", script, signs->folder, NULL};
    const struct peg__process_def def = {
        .program = {.argv = argv, .env = plain_env}, .max_output = 1 << 20, .grace_ms = GRACE_MS};
    struct peg__process_result result;
    peg_ctx *ctx = peg_ctx_ref(below);

    CHECK(peg__descendants_adopt());
    if (!ctx)
        CHECK_INT(peg_ctx_new(&ctx, NULL), PEG_OK);
    CHECK_INT(peg__process_run(&def, ctx, &result, NULL), PEG_OK);
    peg_ctx_unref(ctx);
    return result;
}

/* Ends it when it is ready. The pid of what it started. */
static pid_t run_canceled(const char *script)
{
    struct canceler c = {.ctx = NULL};
    struct peg__process_result result;
    pid_t pid;

    signs_init(&c.signs);
    CHECK_INT(peg_ctx_with_cancel(NULL, &c.ctx, &c.cancel, NULL), PEG_OK);
    pthread_create(&c.thread, NULL, cancel_when_ready, &c);
    result = run_in(&c.signs, script, c.ctx);
    pthread_join(c.thread, NULL);
    peg_cancel_unref(c.cancel);
    peg_ctx_unref(c.ctx);
    CHECK_INT(result.end, PEG__PROCESS_CANCELED);
    peg__buf_free(&result.output);
    pid = read_pid(&c.signs);
    signs_done(&c.signs);
    return pid;
}

/* Orphans are our children: none may be alive. */
static void check_all_are_dead(void)
{
    pid_t pid;

    do {
        pid = waitpid(-1, NULL, WNOHANG);
    } while (pid > 0);
    CHECK_INT(pid, -1);
}

/* ---- ends ---- */

TEST(what_has_left_the_group_ends_with_its_command)
{
    static const char *const scripts[] = {
        "setsid " STAY " & wait",
        "(setsid " STAY " &); sleep 1000",        /* its parent is gone */
        "(env -i setsid " STAY " &); sleep 1000", /* and its environment */
        "(setsid sh -c '(setsid \"$@\" &)' sh " STAY " &); sleep 1000",
        "trap '(setsid sleep 1000 >/dev/null 2>&1 </dev/null &); exit' TERM; (setsid " STAY
        " &); sleep 1000 & wait", /* and one that begins when it is told to end */
    };

    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        const pid_t pid = run_canceled(scripts[i]);

        CHECK(pid > 1);
        if (is_alive(pid)) {
            kill(pid, SIGKILL);
            T_FAIL("it lives on: %s", scripts[i]);
        }
    }
    check_all_are_dead();
}

TEST(what_holds_the_output_from_outside_of_the_group_is_ended)
{
    struct signs signs;
    struct peg__process_result result;
    pid_t pid;

    signs_init(&signs);
    result = run_in(&signs,
                    "setsid sh -c 'echo $$ >$0/pid; mv $0/pid $0/ready; exec sleep 1000' $0 &"
                    "while ! test -e $0/ready; do :; done; echo done",
                    NULL);
    CHECK_INT(result.end, PEG__PROCESS_EXITED);
    CHECK_STR(peg__buf_view(&result.output), "done\n");
    pid = read_pid(&signs);
    CHECK(!is_alive(pid));
    peg__buf_free(&result.output);
    signs_done(&signs);
    check_all_are_dead();
}

/* ---- what lives on ---- */

/* One that a command has left behind on purpose, as daemons do. */
static pid_t leave_daemon(const char *how)
{
    struct signs signs;
    struct peg__process_result result;
    char script[512];
    pid_t pid;

    signs_init(&signs);
    snprintf(script, sizeof(script), "(%s " STAY " &); while ! test -e $0/ready; do :; done", how);
    result = run_in(&signs, script, NULL);
    CHECK_INT(result.end, PEG__PROCESS_EXITED);
    CHECK_INT(result.number, 0);
    peg__buf_free(&result.output);
    pid = read_pid(&signs);
    signs_done(&signs);
    return pid;
}

TEST(a_daemon_of_a_command_that_ended_well_lives_on_also_when_others_are_ended)
{
    const pid_t daemons[] = {leave_daemon("setsid"), leave_daemon("env -i setsid")};
    const pid_t other = run_canceled("(setsid " STAY " &); sleep 1000");

    CHECK(!is_alive(other));
    for (size_t i = 0; i < 2; i++) {
        CHECK(is_alive(daemons[i]));
        CHECK_INT(kill(daemons[i], SIGKILL), 0);
        await_death(daemons[i]);
    }
    check_all_are_dead();
}

struct other_run {
    struct signs signs;
    peg_ctx *ctx;
    peg_cancel *cancel;
    enum peg__process_end end;
};

static void *run_other(void *user)
{
    struct other_run *o = user;
    struct peg__process_result result =
        run_in(&o->signs, "(setsid " STAY " &); sleep 1000", o->ctx);

    o->end = result.end;
    peg__buf_free(&result.output);
    return NULL;
}

TEST(ending_a_command_leaves_alone_what_another_one_started)
{
    struct other_run other = {.ctx = NULL};
    pthread_t thread;
    pid_t pid;

    signs_init(&other.signs);
    CHECK_INT(peg_ctx_with_cancel(NULL, &other.ctx, &other.cancel, NULL), PEG_OK);
    pthread_create(&thread, NULL, run_other, &other);
    signs_await(&other.signs);
    pid = read_pid(&other.signs);
    CHECK(!is_alive(run_canceled("(setsid " STAY " &); sleep 1000")));
    CHECK(is_alive(pid));
    peg_cancel_fire(other.cancel, "enough");
    pthread_join(thread, NULL);
    CHECK_INT(other.end, PEG__PROCESS_CANCELED);
    CHECK(!is_alive(pid));
    peg_cancel_unref(other.cancel);
    peg_ctx_unref(other.ctx);
    signs_done(&other.signs);
    check_all_are_dead();
}

/* ---- what it hears ---- */

TEST(a_process_in_the_group_gets_the_signal_once)
{
    struct canceler c = {.ctx = NULL};
    struct peg__process_result result;

    signs_init(&c.signs);
    CHECK_INT(peg_ctx_with_cancel(NULL, &c.ctx, &c.cancel, NULL), PEG_OK);
    pthread_create(&c.thread, NULL, cancel_when_ready, &c);
    result = run_in(&c.signs,
                    "sh -c 'trap \"echo heard >&2\" TERM; : >$0/ready; while :; do sleep 1000 & "
                    "wait; done' $0; sleep 1000",
                    c.ctx);
    pthread_join(c.thread, NULL);
    peg_cancel_unref(c.cancel);
    peg_ctx_unref(c.ctx);
    CHECK_STR(peg__strn(result.tail, result.tail_len < 6 ? result.tail_len : 6), "heard\n");
    CHECK_INT(result.tail_len, 6);
    peg__buf_free(&result.output);
    signs_done(&c.signs);
    check_all_are_dead();
}

TEST(a_command_has_an_id_of_its_own_in_its_environment)
{
    struct signs signs;
    struct peg__process_result first;
    struct peg__process_result second;

    signs_init(&signs);
    first = run_in(&signs, "echo $PEGBOARD_COMMAND_ID; env | grep -c ^PEGBOARD_", NULL);
    second = run_in(&signs, "echo $PEGBOARD_COMMAND_ID; env | grep -c ^PEGBOARD_", NULL);
    CHECK(memmem(first.output.ptr, first.output.len, "\n1\n", 3));
    CHECK(!memmem(first.output.ptr, first.output.len, "somebody", 8));
    CHECK(!peg__str_eq(peg__buf_view(&first.output), peg__buf_view(&second.output)));
    peg__buf_free(&first.output);
    peg__buf_free(&second.output);
    signs_done(&signs);
}

TORTURE(descendants_survive_any_allocation_failure)
{
    const char *const argv[] = {"sh", "-c", "(setsid sleep 1 &); echo x", NULL};
    const struct peg__process_def def = {
        .program = {.argv = argv, .env = plain_env}, .max_output = 1 << 20, .grace_ms = GRACE_MS};
    struct peg__process_result result = {.end = PEG__PROCESS_NOT_STARTED};
    peg_ctx *ctx = NULL;
    peg_status status;

    CHECK(peg__descendants_adopt());
    status = peg_ctx_new(&ctx, NULL);
    if (!status)
        status = peg__process_run(&def, ctx, &result, NULL);
    if (!status && result.end == PEG__PROCESS_NOT_STARTED)
        status = PEG_ENOMEM;
    peg__buf_free(&result.output);
    peg_ctx_unref(ctx);
    return status;
}
