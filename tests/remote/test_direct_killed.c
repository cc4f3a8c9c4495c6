/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Goal: a direct provider that is killed in the middle of a call loses nothing. The first provider
 * is another process of this program; a second one takes its call over, and there is one result.
 */

#include "../t.h"
#include "remote/direct_world.h"

/* Holds for ever in the process that is killed, and answers in the other one. */
static void run_fatal(peg_call *call, const peg_json *args, void *user)
{
    const peg_provider_call *about = peg_provider_call_of(call);

    (void)args;
    (void)user;
    if (getenv("PEG_DIRECT_REDIS")) { // NOLINT(concurrency-mt-unsafe): nobody sets it
        peg_provider_delta(call, "stdout", peg_cstr("begun"));
        pause();
    }
    peg_call_replyf(call, "attempt %u", about->attempt);
}

static peg_registry *make_fatal_registry(void)
{
    peg_registry *registry = NULL;

    if (peg_registry_new(NULL, 0, &registry, NULL))
        abort();
    add(registry, "fatal", run_fatal, NULL);
    add(registry, "echo", run_echo, NULL);
    return registry;
}

/* The other process: before main(), as t.h has that. */
__attribute__((constructor)) static void serve_as_child(void)
{
    const char *redis = getenv("PEG_DIRECT_REDIS");     // NOLINT(concurrency-mt-unsafe)
    const char *gateway = getenv("PEG_DIRECT_GATEWAY"); // NOLINT(concurrency-mt-unsafe)
    const peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT, .toolset = "tools",
                                          .address = gateway};
    const peg_provider_streams streams = {PEG_PROVIDER_STREAMS_INIT, .redis_url = redis,
                                          .grace_ms = DIRECT_GRACE_MS};
    peg_error error;

    if (!redis)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (peg_provider_serve_streams(make_fatal_registry(), &options, &streams, &error))
        fprintf(stderr, "# %s\n", error.message);
    _exit(1);
}

static pid_t start_child(const struct direct_world *d)
{
    char redis[320];
    char gateway[320];
    char program[512] = "";
    const char *args[] = {"child", NULL};
    const char *environment[] = {redis, gateway, NULL};
    pid_t pid;

    snprintf(redis, sizeof(redis), "PEG_DIRECT_REDIS=%s", rs.url);
    snprintf(gateway, sizeof(gateway), "PEG_DIRECT_GATEWAY=%s", d->w.gateway->address);
    /* Under valgrind the link itself is valgrind's. */
    CHECK(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        execve(program, (char *const *)(uintptr_t)args, (char *const *)(uintptr_t)environment);
        _exit(127);
    }
    return pid;
}

static void kill_child(pid_t pid)
{
    CHECK_INT(kill(pid, SIGKILL), 0);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static void prepare(struct direct_world *d)
{
    direct_prepare(d);
    peg_registry_unref(d->w.registry);
    d->w.registry = make_fatal_registry();
    rs_text("XGROUP CREATE " REQUESTS " provider $ MKSTREAM");
}

TEST(a_call_of_a_killed_provider_runs_at_another_one_and_has_one_end)
{
    struct direct_world d;
    pid_t child;

    prepare(&d);
    child = start_child(&d);
    add_call("c1", "fatal", "{}");
    await_results("c1", 1);
    d.w.provider = start_direct(&d, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT},
                                (peg_provider_streams){PEG_PROVIDER_STREAMS_INIT});
    kill_child(child);

    CHECK_STR(peg_cstr(await_results("c1", 2)),
              "output_delta {\"tool_use_id\":\"c1\",\"stream\":\"stdout\",\"delta\":\"begun\"}\n"
              "result {\"tool_use_id\":\"c1\",\"result_json\":\"attempt 2\"}\n");
    await_number(PENDING, 0);
    await_number(CONSUMERS, 1); /* the dead one is gone, too */
    CHECK_INT(t_count(results_of("c1"), "result {"), 1);
    direct_stop(&d);
}

TEST(no_call_is_lost_while_providers_are_killed_and_started)
{
    enum { N_CALLS = 60, N_KILLS = 3 };
    struct direct_world d;
    char id[16];

    prepare(&d);
    d.w.provider = start_direct(&d, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT},
                                (peg_provider_streams){PEG_PROVIDER_STREAMS_INIT});
    for (unsigned i = 0; i < N_KILLS; i++) {
        const pid_t child = start_child(&d);

        await_number(CONSUMERS, 2);
        for (unsigned j = 0; j < N_CALLS / N_KILLS; j++) {
            snprintf(id, sizeof(id), "c%u", i * (N_CALLS / N_KILLS) + j);
            add_call(id, "echo", "{}");
        }
        kill_child(child);
        await_number(PENDING, 0);
        await_number(CONSUMERS, 1);
    }

    for (unsigned i = 0; i < N_CALLS; i++) {
        snprintf(id, sizeof(id), "c%u", i);
        CHECK(t_count(await_results(id, 1), "result {") >= 1);
    }
    direct_stop(&d);
}
