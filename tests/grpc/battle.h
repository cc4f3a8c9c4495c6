/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GRPC_BATTLE_H
#define PEG_TESTS_GRPC_BATTLE_H

/*
 * A server in a process of its own, somebody who attacks it, and a neighbour: a well-behaved
 * client of the same server whose calls must all succeed meanwhile.
 *
 *   battle_begin(&b, &setup);           the server, the neighbour, how long its calls take now
 *   battle_fight(&b, attack, user, 2);  attack(user, number) in two threads, calls beside it;
 *                                       one that is short comes again and again, for 400 ms
 *   battle_end(&b, 64);                 figures; the server lives and ends in good order
 *
 * In the battle every other call of the neighbour goes to a second server, which nobody attacks:
 * what it waits for there the machine does, which all share, and not the server.
 *
 * Figures are told as TAP comments, and at the end of the program in how many battles the
 * neighbour's p99 stayed within twice of what it is without an attack, and of what it is at the
 * second server. Memory is asserted (the peak above what the server took before the attack), times
 * are not: machines have other things to do. Include it behind t.h.
 *
 * Attackers are not slowed down as a link would slow them: they send as fast as the kernel takes
 * it, on the processors of the server and the neighbour. They only stand back when one of these
 * wants a processor (SCHED_IDLE), since they would have their own.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../instrumented.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/client/client.h"
#include "grpc/server/server.h"

enum {
    BATTLE_THREADS = 4,
    BATTLE_TIMES = 100000,
    BATTLE_CALLS = 1000,
    BATTLE_MS = 400,
    BATTLE_CALM_MS = T_SANITIZED ? 0 : 200,
    BATTLE_GUARD_S = 120
};

struct battle_setup {
    struct grpc_server_options server;
    const char *cert_file; /* NULL: no TLS */
    const char *key_file;
    int64_t open_ms; /* of a TLS handshake */
    bool asks_who;   /* only health and reflection are open to clients without a token */
};

struct battle_times {
    int64_t ns[BATTLE_TIMES];
    unsigned n;
    unsigned n_failed;
    unsigned wanted;
    int64_t until_ns;
    int64_t p50;
    int64_t p99;
};

/* The process of a server. */
struct battle_server {
    pid_t pid;
    int leash;         /* closed: the server ends */
    unsigned ports[2]; /* plain, TLS */
};

struct battle {
    struct battle_server server;
    struct battle_server other; /* nobody attacks it */
    clockid_t cpu;
    long rss_before_kb;
    int64_t cpu_before_ns;
    int64_t cpu_ns; /* of the server while it was attacked */
    int64_t fight_ns;
    /* The neighbour. */
    struct net_loop *loop;
    struct grpc_channel *channel;
    struct grpc_channel *to_other;
    struct net_timer guard;
    struct battle_times *times; /* of the measurement that runs */
    struct battle_times calm;
    struct battle_times stormy;
    struct battle_times aside; /* in the storm, of the server that nobody attacks */
    bool is_stormy;
    bool has_greeted; /* until then a connection that was too slow to begin is made again */
    bool asks_other;  /* the call that runs does */
    int64_t began_ns;
    char words[256]; /* of its first call that failed */
    /* The attack. */
    void (*attack)(void *user, unsigned number);
    void *user;
    atomic_uint n_fighting;
    unsigned n_threads;
};

/* ---- the server ------------------------------------------------------------------------------ */

static const struct grpc_method battle_methods[] = {
    {.name = "Echo", .path = "/b.B/Echo"},
    {.name = "Large", .path = "/b.B/Large"},                       /* an answer of so many bytes */
    {.name = "Fill", .path = "/b.B/Fill", .server_streams = true}, /* as much as is taken */
    {.name = "Chat", .path = "/b.B/Chat", .client_streams = true, .server_streams = true},
    {.name = "Wait", .path = "/b.B/Wait"}, /* never answers */
};
static const struct grpc_service battle_service = {"b.B", battle_methods, 5, NULL};

static inline void battle_echo(struct grpc_call *call, const void *message, void *user)
{
    (void)user;
    grpc_call_reply(call, *(const peg_str *)message);
}

static inline void battle_large(struct grpc_call *call, const void *message, void *user)
{
    static const char bytes[1 << 20];
    char digits[16] = "";
    const peg_str text = *(const peg_str *)message;
    size_t len;

    (void)user;
    memcpy(digits, text.ptr, text.len < 15 ? text.len : 15);
    len = strtoul(digits, NULL, 10);
    grpc_call_reply(call, peg__strn(bytes, len < sizeof(bytes) ? len : sizeof(bytes)));
}

static inline void battle_fill_more(struct grpc_call *call, void *user)
{
    static char bytes[1000];

    (void)user;
    while (grpc_call_is_writable(call))
        if (grpc_call_send(call, peg__strn(bytes, sizeof(bytes)), NULL))
            break;
}

static inline void battle_fill(struct grpc_call *call, const void *message, void *user)
{
    (void)message;
    battle_fill_more(call, user);
}

static inline void battle_chat(struct grpc_call *call, const void *message, void *user)
{
    (void)user;
    if (grpc_call_send(call, *(const peg_str *)message, NULL))
        grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, "nobody reads");
}

static inline void battle_chat_ends(struct grpc_call *call, void *user)
{
    const struct grpc_status ok = {.code = GRPC_OK};

    (void)user;
    grpc_call_finish(call, &ok);
}

static inline void battle_wait(struct grpc_call *call, const void *message, void *user)
{
    (void)call;
    (void)message;
    (void)user;
}

static const struct grpc_handler battle_handlers[] = {
    {.on_message = battle_echo},
    {.on_message = battle_large},
    {.on_message = battle_fill, .on_writable = battle_fill_more},
    {.on_message = battle_chat, .on_half_close = battle_chat_ends},
    {.on_message = battle_wait},
};

static inline void battle_page(struct net_http_request *request, peg_str body, void *user)
{
    (void)body;
    (void)user;
    net_http_reply_text(request, 200, "fine");
}

static const struct net_http_handler battle_http = {.on_request = battle_page};
static const struct net_http_route battle_routes[] = {
    {"GET", "/", &battle_http}, {"GET", "/{page}", &battle_http}, {"POST", "/", &battle_http}};
static const struct net_http_options battle_http_options = {.routes = battle_routes, .n_routes = 3};

static inline peg_status battle_listen(struct grpc_server *server, struct net_tls_config *tls,
                                       const struct battle_setup *setup, unsigned *ret_port,
                                       peg_error *reterr)
{
    const struct net_listener_options listen = {.stream = {.tls = tls, .open_ms = setup->open_ms}};
    struct net_address at;
    const peg_status status =
        grpc_server_listen(server, peg__str("127.0.0.1:0"), &listen, &at, reterr);

    if (!status)
        *ret_port = ntohs(at.at.ip4.sin_port);
    return status;
}

static inline void battle_authenticate(struct grpc_call *call, void *user)
{
    const peg_str token = grpc_metadata_get(grpc_call_metadata(call), "authorization");

    (void)user;
    if (peg__str_starts(peg__str(grpc_call_method(call)->path), peg__str("/grpc.")))
        return;
    if (token.len)
        grpc_call_authenticate(call, token);
    else
        grpc_call_fail(call, GRPC_UNAUTHENTICATED, "no token");
}

static const struct grpc_interceptor battle_interceptor = {.on_start = battle_authenticate};

/* What a gateway has beside its own services. */
static inline peg_status battle_open_services(struct grpc_server *server,
                                              struct grpc_health **ret_health,
                                              struct grpc_reflection **ret_reflection)
{
    const peg_status status = grpc_health_new(server, ret_health, NULL);

    return status ? status : grpc_reflection_new(server, ret_reflection, NULL);
}

/* Memory goes back to the system when the server has nothing to do, as `pegboard serve` has it. */
static inline void battle_trim(int signal)
{
    (void)signal;
}

/* All that the server's process does: says where it listens, and waits for the end. */
static inline int battle_serve(const struct battle_setup *setup, int said, int leash)
{
    struct grpc_server_options options = setup->server;
    const struct net_tls_options files = {.cert_file = setup->cert_file,
                                          .key_file = setup->key_file};
    const size_t live = peg__mem_live();
    struct net_tls_config *tls = NULL;
    struct net_loops *loops = NULL;
    struct grpc_server *server = NULL;
    struct grpc_health *health = NULL;
    struct grpc_reflection *reflection = NULL;
    unsigned ports[2] = {0};
    peg_error error = {.message = ""};
    char nothing;
    peg_status status = net_loops_new(1, &loops, &error);

    /* Meson has malloc fill what it hands out (MALLOC_PERTURB_): memory that nobody touches would
     * be counted. */
    mallopt(M_PERTURB, 0);
    if (!status)
        status = net_http_server_new(&battle_http_options, &options.http, &error);
    options.asks_who = setup->asks_who;
    options.interceptors = &battle_interceptor;
    options.n_interceptors = setup->asks_who;
    if (!status && setup->cert_file)
        status = net_tls_config_new(&files, &tls, &error);
    if (!status)
        status = grpc_server_new(loops, &options, &server, &error);
    if (!status)
        status = grpc_server_add(server, &battle_service, battle_handlers, NULL, &error);
    if (!status)
        status = battle_open_services(server, &health, &reflection);
    if (!status)
        status = battle_listen(server, NULL, setup, &ports[0], &error);
    if (!status && tls)
        status = battle_listen(server, tls, setup, &ports[1], &error);
    if (status || write(said, ports, sizeof(ports)) != sizeof(ports)) {
        fprintf(stderr, "no server: %s\n", error.message);
        return 1;
    }
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = battle_trim}, NULL);
    while (read(leash, &nothing, 1) < 0 && errno == EINTR)
        malloc_trim(0);
    grpc_server_free(server);
    grpc_health_free(health);
    grpc_reflection_free(reflection);
    net_loops_free(loops);
    net_http_server_free(options.http);
    net_tls_config_unref(tls);
    if (peg__mem_live() == live)
        return 0;
    fprintf(stderr, "the server leaves %zd blocks\n", (ssize_t)(peg__mem_live() - live));
    return 2;
}

static inline void battle_start_server(struct battle_server *server,
                                       const struct battle_setup *setup)
{
    int said[2];
    int leash[2];

    fflush(stdout);
    CHECK(pipe2(said, O_CLOEXEC) == 0 && pipe2(leash, O_CLOEXEC) == 0);
    server->pid = fork();
    CHECK(server->pid >= 0);
    if (server->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(leash[1]);
        _exit(battle_serve(setup, said[1], leash[0]));
    }
    close(said[1]);
    close(leash[0]);
    server->leash = leash[1];
    CHECK_INT(read(said[0], server->ports, sizeof(server->ports)), sizeof(server->ports));
    close(said[0]);
}

/* ---- figures ----------------------------------------------------------------------------------
 */

static inline int64_t battle_now_ns(clockid_t clock)
{
    struct timespec now = {0};

    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* "VmRSS:" or "VmHWM:" of the server. */
static inline long battle_memory_kb(const struct battle *b, const char *name)
{
    char path[64];
    char line[256];
    long kb = -1;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)b->server.pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, name, strlen(name)) == 0)
            kb = strtol(line + strlen(name), NULL, 10);
    }
    if (file)
        fclose(file);
    return kb;
}

/* From here on the peak is that of the attack. */
static inline void battle_forget_peak(const struct battle *b)
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/clear_refs", (int)b->server.pid);
    file = fopen(path, "we");
    if (!file)
        return;
    fputs("5", file);
    fclose(file);
}

static inline int battle_compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static inline void battle_sort(struct battle_times *times)
{
    if (times->n == 0)
        return;
    qsort(times->ns, times->n, sizeof(times->ns[0]), battle_compare);
    times->p50 = times->ns[times->n / 2];
    times->p99 = times->ns[times->n * 99 / 100];
}

/* ---- the neighbour ----------------------------------------------------------------------------
 */

static inline void battle_next_call(struct battle *b);

static inline void battle_on_message(struct grpc_rpc *rpc, const void *message, void *user)
{
    (void)rpc;
    (void)message;
    (void)user;
}

static inline void battle_on_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                                 const struct grpc_metadata *trailers, void *user)
{
    struct battle *b = user;
    struct battle_times *times = b->asks_other ? &b->aside : b->times;
    const int64_t now = battle_now_ns(CLOCK_MONOTONIC);
    const bool is_done = times == b->times && times->n + 1 >= times->wanted &&
                         now >= times->until_ns && atomic_load(&b->n_fighting) == 0;

    (void)rpc;
    (void)trailers;
    if (status->code != GRPC_OK && times->n_failed++ == 0)
        snprintf(b->words, sizeof(b->words), "%s: %.*s", grpc_code_name(status->code),
                 (int)(status->message.len < 200 ? status->message.len : 200), status->message.ptr);
    times->ns[times->n++] = now - b->began_ns;
    if (is_done || times->n == BATTLE_TIMES || times->n_failed > 10)
        net_loop_stop(b->loop);
    else
        battle_next_call(b);
}

static const struct grpc_rpc_events battle_events = {
    .on_message = battle_on_message,
    .on_end = battle_on_end,
};

static inline void battle_next_call(struct battle *b)
{
    static const char bytes[500] = "hello";
    const peg_str request = peg__strn(bytes, sizeof(bytes));
    struct grpc_metadata_entry token = {.key = peg__str("authorization"),
                                        .value = peg__str("Bearer neighbour")};
    const struct grpc_metadata metadata = {.entries = &token, .n = 1};
    const struct grpc_rpc_options options = {
        .timeout_ms = 60000, .waits_for_ready = !b->has_greeted, .metadata = &metadata};
    struct grpc_rpc *rpc;

    b->asks_other = b->is_stormy && !b->asks_other;
    b->began_ns = battle_now_ns(CLOCK_MONOTONIC);
    if (!grpc_rpc_unary(b->asks_other ? b->to_other : b->channel, &battle_methods[0], &request,
                        &options, &battle_events, b, &rpc, NULL))
        return;
    b->times->n_failed++;
    net_loop_stop(b->loop);
}

/* One call after the other, until there are enough, the time is over and no attacker is left. They
 * add to those that were measured before. */
static inline void battle_measure_more(struct battle *b, struct battle_times *times,
                                       unsigned wanted, int64_t ms)
{
    times->wanted = times->n + wanted;
    times->until_ns = battle_now_ns(CLOCK_MONOTONIC) + ms * INT64_C(1000000);
    b->times = times;
    battle_next_call(b);
    net_loop_run(b->loop);
    battle_sort(times);
}

static inline void battle_measure(struct battle *b, struct battle_times *times, unsigned wanted)
{
    times->n = 0;
    battle_measure_more(b, times, wanted, 0);
}

static inline void battle_stuck(struct net_timer *timer)
{
    (void)timer;
    printf("# a call of the neighbour does not end, or the attack does not\n");
    fflush(stdout);
    abort();
}

/* Attackers come from elsewhere: here they get what server and neighbour leave of the cores. */
static inline void battle_step_back(void)
{
    const struct sched_param none = {0};

    sched_setscheduler(gettid(), SCHED_IDLE, &none);
}

static inline struct grpc_channel *battle_connect(struct battle *b,
                                                  const struct battle_server *server)
{
    struct grpc_channel *channel = NULL;
    char address[64];
    peg_error error = {.message = ""};

    snprintf(address, sizeof(address), "127.0.0.1:%u", server->ports[0]);
    if (grpc_channel_new(b->loop, peg__str(address), NULL, &channel, &error))
        T_FAIL("no neighbour: %s", error.message);
    return channel;
}

static inline void battle_greet(struct battle *b)
{
    peg_error error = {.message = ""};

    if (net_loop_new(&b->loop, &error))
        T_FAIL("no neighbour: %s", error.message);
    b->channel = battle_connect(b, &b->server);
    b->to_other = battle_connect(b, &b->other);
    b->guard.fn = battle_stuck;
    net_loop_arm(b->loop, &b->guard,
                 net_loop_now_ns(b->loop) + BATTLE_GUARD_S * INT64_C(1000000000));
    b->is_stormy = true;
    battle_measure(b, &b->calm, 100); /* connects to both, warms up */
    b->is_stormy = false;
    b->has_greeted = true;
    b->aside.n = 0;
    b->calm.n = 0;
    battle_measure_more(b, &b->calm, BATTLE_CALLS, BATTLE_CALM_MS);
    if (b->calm.n_failed)
        T_FAIL("a call fails before anything happened: %s", b->words);
}

/* ---- the battle -------------------------------------------------------------------------------
 */

static inline void battle_begin(struct battle *b, const struct battle_setup *setup)
{
    static const struct battle_setup plain;

    memset(b, 0, sizeof(*b));
    signal(SIGPIPE, SIG_IGN);
    battle_start_server(&b->server, setup ? setup : &plain);
    battle_start_server(&b->other, &plain);
    CHECK(clock_getcpuclockid(b->server.pid, &b->cpu) == 0);
    battle_greet(b);
    battle_forget_peak(b);
    b->rss_before_kb = battle_memory_kb(b, "VmRSS:");
    b->cpu_before_ns = battle_now_ns(b->cpu);
}

struct battle_fighter {
    struct battle *battle;
    unsigned number;
    int64_t until_ns;
    pthread_t thread;
};

static inline void *battle_run_fighter(void *user)
{
    const struct battle_fighter *fighter = user;

    battle_step_back();
    do
        fighter->battle->attack(fighter->battle->user, fighter->number);
    while (battle_now_ns(CLOCK_MONOTONIC) < fighter->until_ns);
    atomic_fetch_sub(&fighter->battle->n_fighting, 1);
    return NULL;
}

static inline void battle_fight(struct battle *b, void (*attack)(void *user, unsigned number),
                                void *user, unsigned n_threads)
{
    struct battle_fighter fighters[BATTLE_THREADS];
    const int64_t began = battle_now_ns(CLOCK_MONOTONIC);

    b->attack = attack;
    b->user = user;
    atomic_store(&b->n_fighting, n_threads);
    for (unsigned i = 0; i < n_threads; i++) {
        fighters[i] = (struct battle_fighter){
            .battle = b, .number = i, .until_ns = began + BATTLE_MS * INT64_C(1000000)};
        CHECK(pthread_create(&fighters[i].thread, NULL, battle_run_fighter, &fighters[i]) == 0);
    }
    b->is_stormy = true;
    battle_measure(b, &b->stormy, BATTLE_CALLS / 2);
    b->is_stormy = false;
    battle_sort(&b->aside);
    for (unsigned i = 0; i < n_threads; i++)
        pthread_join(fighters[i].thread, NULL);
    b->fight_ns = battle_now_ns(CLOCK_MONOTONIC) - began;
    b->cpu_ns = battle_now_ns(b->cpu) - b->cpu_before_ns;
}

static inline double battle_us(int64_t ns)
{
    return (double)ns / 1000.0;
}

/* All battles of this program. */
static struct {
    unsigned n;
    unsigned n_calm; /* p99 within twice of what it is calm */
    unsigned n_fair; /* or of what the storm does to those who ask another server */
    double worst;
    double worst_fair;
} battle_sum;

static inline void battle_tell_sum(void)
{
    printf("# in %u of %u battles the neighbour's p99 stays within twice of what it is calm, at "
           "worst it is %.1f times that; in %u within twice of that of calls to a server on this "
           "machine that nobody attacks, at worst %.1f times\n",
           battle_sum.n_calm, battle_sum.n, battle_sum.worst, battle_sum.n_fair,
           battle_sum.worst_fair);
}

static inline double battle_max(double a, double b)
{
    return a > b ? a : b;
}

static inline void battle_add(double ratio, double fair_ratio)
{
    if (battle_sum.n++ == 0)
        atexit(battle_tell_sum); /* not for the server, which leaves by _exit() */
    battle_sum.n_calm += ratio <= 2;
    battle_sum.n_fair += fair_ratio <= 2;
    battle_sum.worst = battle_max(battle_sum.worst, ratio);
    battle_sum.worst_fair = battle_max(battle_sum.worst_fair, fair_ratio);
}

static inline void battle_tell(const struct battle *b, long grown_kb)
{
    const int64_t base = b->calm.p99 > b->aside.p99 ? b->calm.p99 : b->aside.p99;
    const double ratio = (double)b->stormy.p99 / (double)(b->calm.p99 + !b->calm.p99);
    const double fair_ratio = (double)b->stormy.p99 / (double)(base + !base);

    printf("# %u calls beside it: p50 %.0f us, p99 %.0f us; without it p50 %.0f us, p99 %.0f us; "
           "beside it to another server p50 %.0f us, p99 %.0f us\n",
           b->stormy.n, battle_us(b->stormy.p50), battle_us(b->stormy.p99), battle_us(b->calm.p50),
           battle_us(b->calm.p99), battle_us(b->aside.p50), battle_us(b->aside.p99));
    printf("# p99 beside it is %.1f times that without it, %.1f times the larger of the others\n",
           ratio, fair_ratio);
    battle_add(ratio, fair_ratio);
    printf("# server: %ld KB before, peak %ld KB more, %ld KB more at the end; %.0f ms of CPU in "
           "%.0f ms\n",
           b->rss_before_kb, grown_kb, battle_memory_kb(b, "VmRSS:") - b->rss_before_kb,
           battle_us(b->cpu_ns) / 1000, battle_us(b->fight_ns) / 1000);
}

static inline void battle_stop_server(const struct battle_server *server)
{
    int how = -1;

    close(server->leash);
    CHECK_INT(waitpid(server->pid, &how, 0), server->pid);
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0)
        T_FAIL("the server ended badly: %s %d", WIFSIGNALED(how) ? "signal" : "exit",
               WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
}

/* All attackers have gone: how much larger is the server than before, once it has given back what
 * it does not need? Waits until it is at most `max_kb`. */
static inline long battle_rest_kb(struct battle *b, long max_kb)
{
    const int64_t until_ns = battle_now_ns(CLOCK_MONOTONIC) + 20 * INT64_C(1000000000);
    long kb;

    do {
        battle_measure_more(b, &b->calm, 10, 0);
        kill(b->server.pid, SIGUSR1);
        kb = battle_memory_kb(b, "VmRSS:") - b->rss_before_kb;
    } while (kb > max_kb && battle_now_ns(CLOCK_MONOTONIC) < until_ns);
    return kb;
}

static inline void battle_end(struct battle *b, long max_mb)
{
    const long grown_kb = battle_memory_kb(b, "VmHWM:") - b->rss_before_kb;

    /* A machine is not the same from second to second: calm is before it and after it. */
    battle_measure_more(b, &b->calm, BATTLE_CALLS / 10, BATTLE_CALM_MS);
    battle_tell(b, grown_kb);
    net_loop_disarm(b->loop, &b->guard);
    b->channel = grpc_channel_free(b->channel);
    b->to_other = grpc_channel_free(b->to_other);
    b->loop = net_loop_free(b->loop);
    battle_stop_server(&b->other); /* first: as a fork it has a hand on the leash of the first */
    battle_stop_server(&b->server);
    if (b->stormy.n_failed)
        T_FAIL("%u calls of the neighbour failed: %s", b->stormy.n_failed, b->words);
    if (!T_SANITIZED && grown_kb > max_mb * 1024)
        T_FAIL("the server grew by %ld KB, expected at most %ld MB", grown_kb, max_mb);
}

#endif
