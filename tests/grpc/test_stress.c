/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Goal: whatever happens to calls and connections, every call ends exactly once on both sides,
 * none is stuck and nothing is left behind. 100,000 calls of all kinds, from two client loops to
 * a server with two, with random cancellations and deadlines, while a thread cuts connections; a
 * tenth as many over TLS. PEG_STRESS_SEED replays the choices (not the threads).
 *
 * Blocks of ours that are left are counted by t.h, in every build. Those of libuv, OpenSSL and zlib
 * are found by LeakSanitizer, in a build with AddressSanitizer: tests/meson.build switches it on
 * for this test.
 */

#include "t.h"

#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text/str.h"
#include "grpc/client/client.h"
#include "grpc/server/server.h"
#include "net/certs.h"

enum {
    N_CALLS = 100000,
    N_TLS_CALLS = N_CALLS / 10,
    N_CLIENTS = 2,
    IN_FLIGHT = 64,
    MAX_MESSAGES = 20,
    N_METHODS = 4
};

static const struct grpc_method methods[N_METHODS] = {
    {.name = "Unary", .path = "/stress.S/Unary"},
    {.name = "Repeat", .path = "/stress.S/Repeat", .server_streams = true},
    {.name = "Collect", .path = "/stress.S/Collect", .client_streams = true},
    {.name = "Chat", .path = "/stress.S/Chat", .client_streams = true, .server_streams = true},
};
static const struct grpc_service service = {"stress.S", methods, N_METHODS, NULL};

static uint32_t random_below(uint32_t *state, uint32_t n)
{
    *state = *state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)*state * n) >> 32);
}

/* ---- the server: the first byte of a message says what to do
 * --------------------------------------- */

static atomic_uint n_handled;
static atomic_uint n_handler_ends;

static void handler_ended(struct grpc_call *call, void *user)
{
    (void)user;
    (void)call;
    n_handler_ends++;
}

static void handler_started(struct grpc_call *call, void *user)
{
    (void)user;
    if (n_handled++ % 4 == 0)
        grpc_call_use_gzip(call);
}

static void unary(struct grpc_call *call, const void *message, void *user)
{
    const peg_str text = *(const peg_str *)message;

    (void)user;
    if (text.len > 0 && text.ptr[0] == 'w')
        return; /* until the client gives up */
    grpc_call_reply(call, text);
}

static void go_on(struct grpc_call *call, void *user)
{
    intptr_t left = (intptr_t)grpc_call_state(call);
    static const char bytes[5000];

    (void)user;
    while (left > 0 && grpc_call_is_writable(call) &&
           !grpc_call_send(call, peg__strn(bytes, sizeof(bytes)), NULL))
        left--;
    grpc_call_set_state(call, (void *)left);
    if (left == 0)
        grpc_call_finish(call, &GRPC_STATUS(GRPC_OK, ""));
}

static void repeat(struct grpc_call *call, const void *message, void *user)
{
    grpc_call_set_state(call, (void *)(intptr_t)((const peg_str *)message)->len);
    go_on(call, user);
}

static void collect(struct grpc_call *call, const void *message, void *user)
{
    (void)call;
    (void)message;
    (void)user;
}

static void collected(struct grpc_call *call, void *user)
{
    (void)user;
    grpc_call_reply(call, peg__str("all"));
}

static void chat(struct grpc_call *call, const void *message, void *user)
{
    (void)user;
    grpc_call_send(call, *(const peg_str *)message, NULL);
}

static void chatted(struct grpc_call *call, void *user)
{
    (void)user;
    grpc_call_finish(call, &GRPC_STATUS(GRPC_OK, ""));
}

static const struct grpc_handler handlers[N_METHODS] = {
    {.on_start = handler_started, .on_message = unary, .on_end = handler_ended},
    {.on_start = handler_started,
     .on_message = repeat,
     .on_writable = go_on,
     .on_end = handler_ended},
    {.on_start = handler_started,
     .on_message = collect,
     .on_half_close = collected,
     .on_end = handler_ended},
    {.on_start = handler_started,
     .on_message = chat,
     .on_half_close = chatted,
     .on_end = handler_ended},
};

/* ---- a client
 * ------------------------------------------------------------------------------------------- */

struct client;

struct call {
    struct client *client;
    struct grpc_rpc *rpc;
    struct net_timer cancel;
    unsigned n_ends;
    bool cancels_at_message;
    bool is_used;
};

struct client {
    struct net_loop *loop;
    struct grpc_channel *channel;
    const char *target;
    struct net_tls_config *tls; /* NULL: without */
    struct net_message begin;
    struct net_message free_channel;
    struct net_later more;
    uint32_t random;
    unsigned n_left;
    unsigned n_running;
    struct call calls[IN_FLIGHT];
    uint64_t n_by_code[GRPC_UNAUTHENTICATED + 1];
    unsigned n_double_ends;
    unsigned n_refused_starts;
    sem_t done;
};

static void on_message(struct grpc_rpc *rpc, const void *message, void *user)
{
    const struct call *call = user;

    (void)message;
    if (call->cancels_at_message)
        grpc_rpc_cancel(rpc);
}

static void on_rpc_end(struct grpc_rpc *rpc, const struct grpc_status *status,
                       const struct grpc_metadata *trailers, void *user)
{
    struct call *call = user;
    struct client *client = call->client;

    (void)rpc;
    (void)trailers;
    if (call->n_ends++ > 0)
        client->n_double_ends++;
    net_loop_disarm(client->loop, &call->cancel);
    call->rpc = NULL;
    call->is_used = false;
    client->n_by_code[status->code]++;
    client->n_running--;
    net_loop_later(client->loop, &client->more);
}

static const struct grpc_rpc_events events = {.on_message = on_message, .on_end = on_rpc_end};

static void cancel_now(struct net_timer *timer)
{
    struct call *call = (struct call *)((char *)timer - offsetof(struct call, cancel));

    grpc_rpc_cancel(call->rpc);
}

static void say_something(struct client *client, struct call *call, unsigned kind)
{
    static const char bytes[40000];
    const bool streams = methods[kind].client_streams;
    const unsigned n = streams ? random_below(&client->random, MAX_MESSAGES) : 1;

    for (unsigned i = 0; i < n; i++) {
        const unsigned size = random_below(&client->random, 4) ? 100 : sizeof(bytes);
        const peg_str text = kind == 0 && random_below(&client->random, 8) == 0
                                 ? peg__str("wait")
                                 : peg__strn(bytes, kind == 1 ? size / 1000 : size);

        (void)!grpc_rpc_send(call->rpc, text, NULL);
    }
    if (random_below(&client->random, 10) > 0)
        grpc_rpc_half_close(call->rpc);
}

/* Every call has an end of its own in sight: "wait" and streams that are left open need one. */
static void begin_call(struct client *client, struct call *call)
{
    const unsigned kind = random_below(&client->random, N_METHODS);
    const struct grpc_rpc_options options = {
        .timeout_ms = 1 + random_below(&client->random, 300),
        .waits_for_ready = random_below(&client->random, 2) == 0,
        .uses_gzip = random_below(&client->random, 16) == 0,
    };

    *call = (struct call){.client = client,
                          .is_used = true,
                          .cancel = {.fn = cancel_now},
                          .cancels_at_message = random_below(&client->random, 8) == 0};
    client->n_left--;
    if (grpc_rpc_start(client->channel, &methods[kind], &options, &events, call, &call->rpc,
                       NULL)) {
        client->n_refused_starts++;
        call->is_used = false;
        return;
    }
    client->n_running++;
    say_something(client, call, kind);
    if (random_below(&client->random, 16) == 0)
        grpc_rpc_cancel(call->rpc);
    else if (random_below(&client->random, 4) == 0)
        net_loop_arm(client->loop, &call->cancel,
                     net_loop_now_ns(client->loop) + random_below(&client->random, 5000000));
}

static void more_calls(struct net_later *later)
{
    struct client *client = (struct client *)((char *)later - offsetof(struct client, more));

    for (unsigned i = 0; i < IN_FLIGHT && client->n_left > 0; i++) {
        if (!client->calls[i].is_used)
            begin_call(client, &client->calls[i]);
    }
    if (client->n_left == 0 && client->n_running == 0)
        sem_post(&client->done);
}

static void begin(struct net_message *message)
{
    struct client *client = (struct client *)((char *)message - offsetof(struct client, begin));
    const struct grpc_channel_options options = {
        .n_connections = 4, .backoff_ms = 5, .tls = client->tls, .tls_host = "localhost"};

    if (grpc_channel_new(client->loop, peg__str(client->target), &options, &client->channel, NULL))
        abort();
    more_calls(&client->more);
}

static void free_channel(struct net_message *message)
{
    struct client *client =
        (struct client *)((char *)message - offsetof(struct client, free_channel));

    client->channel = grpc_channel_free(client->channel);
    sem_post(&client->done);
}

/* ---- who cuts connections
 * ---------------------------------------------------------------------------------- */

static atomic_bool cutting;
static atomic_uint n_cut;

static bool leads_to(int fd, uint16_t port)
{
    struct sockaddr_in peer;
    socklen_t len = sizeof(peer);

    return getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && peer.sin_family == AF_INET &&
           ntohs(peer.sin_port) == port;
}

struct cutter {
    pthread_t thread;
    uint16_t port;
    uint32_t random;
};

static void *cut_connections(void *user)
{
    struct cutter *cutter = user;

    while (cutting) {
        const struct timespec nap = {.tv_nsec = 20000000};

        for (int fd = 3; fd < 256; fd++) {
            if (leads_to(fd, cutter->port) && random_below(&cutter->random, 8) == 0 &&
                shutdown(fd, SHUT_RDWR) == 0)
                n_cut++;
        }
        nanosleep(&nap, NULL);
    }
    return NULL;
}

/* ---- the test
 * --------------------------------------------------------------------------------------------------
 */

static struct client clients[N_CLIENTS];

/* What it is about: how many calls, and over what. */
struct stress {
    unsigned n_calls;
    struct net_tls_config *at_server; /* NULL, both: without TLS */
    struct net_tls_config *at_client;
};

static void start_client(struct client *client, const struct stress *stress, const char *target,
                         uint32_t seed)
{
    *client = (struct client){.target = target,
                              .tls = stress->at_client,
                              .random = seed,
                              .n_left = stress->n_calls / N_CLIENTS,
                              .begin = {.fn = begin},
                              .free_channel = {.fn = free_channel},
                              .more = {.fn = more_calls}};
    sem_init(&client->done, 0, 0);
    CHECK_INT(net_loop_new(&client->loop, NULL), PEG_OK);
    CHECK_INT(net_loop_start(client->loop, NULL), PEG_OK);
    net_loop_post(client->loop, &client->begin);
}

static uint64_t end_client(struct client *client)
{
    uint64_t n = client->n_refused_starts;

    net_loop_post(client->loop, &client->free_channel);
    sem_wait(&client->done);
    client->loop = net_loop_free(client->loop);
    CHECK_INT(client->n_double_ends, 0);
    for (unsigned code = 0; code <= GRPC_UNAUTHENTICATED; code++) {
        n += client->n_by_code[code];
        if (client->n_by_code[code])
            printf("# %s: %llu\n", grpc_code_name(code),
                   (unsigned long long)client->n_by_code[code]);
    }
    return n;
}

static uint32_t choose_seed(void)
{
    const char *given = getenv("PEG_STRESS_SEED");
    const uint32_t seed = given ? (uint32_t)strtoul(given, NULL, 10) : 1;

    printf("# PEG_STRESS_SEED=%u\n", seed);
    fflush(stdout); /* whatever becomes of it */
    return seed;
}

/* Until all of them have ended. Returns how many did. */
static uint64_t run_clients(const struct stress *stress, const struct net_address *at)
{
    const uint32_t seed = choose_seed();
    struct cutter cutter = {.port = ntohs(at->at.ip4.sin_port), .random = seed + N_CLIENTS};
    char target[NET_ADDRESS_TEXT];
    uint64_t n_ended = 0;

    net_address_format(at, target);
    cutting = true;
    pthread_create(&cutter.thread, NULL, cut_connections, &cutter);
    for (unsigned i = 0; i < N_CLIENTS; i++)
        start_client(&clients[i], stress, target, seed + i);
    for (unsigned i = 0; i < N_CLIENTS; i++)
        sem_wait(&clients[i].done);
    cutting = false;
    pthread_join(cutter.thread, NULL);
    for (unsigned i = 0; i < N_CLIENTS; i++)
        n_ended += end_client(&clients[i]);
    return n_ended;
}

static void check_stress(const struct stress *stress)
{
    const struct grpc_server_options options = {.reset_burst = 100000, .reset_per_s = 100000};
    const struct net_listener_options listen = {.stream.tls = stress->at_server};
    struct net_loops *loops;
    struct grpc_server *server;
    struct grpc_server_counts counts;
    struct net_address at;
    uint64_t n_ended;

    n_handled = n_handler_ends = n_cut = 0;
    CHECK_INT(net_loops_new(2, &loops, NULL), PEG_OK);
    CHECK_INT(grpc_server_new(loops, &options, &server, NULL), PEG_OK);
    CHECK_INT(grpc_server_add(server, &service, handlers, NULL, NULL), PEG_OK);
    CHECK_INT(grpc_server_listen(server, peg__str("127.0.0.1:0"), &listen, &at, NULL), PEG_OK);
    n_ended = run_clients(stress, &at);
    CHECK(grpc_server_drain(server, 60000));
    grpc_server_counts(server, &counts);
    server = grpc_server_free(server);
    loops = net_loops_free(loops);

    printf("# %u connections cut, %llu calls reached the server\n", (unsigned)n_cut,
           (unsigned long long)counts.n_started);
    CHECK_INT(n_ended, stress->n_calls);
    CHECK_INT(clients[0].n_by_code[GRPC_INTERNAL] + clients[1].n_by_code[GRPC_INTERNAL], 0);
    CHECK(counts.n_started > 0);
    CHECK_INT(counts.n_ended, counts.n_started);
    CHECK_INT(counts.n_calls, 0);
    CHECK_INT(counts.n_connections, 0);
    CHECK_INT(n_handler_ends, n_handled);
}

TEST(every_call_ends_once_under_cancellations_deadlines_and_cut_connections)
{
    const struct stress stress = {.n_calls = N_CALLS};

    check_stress(&stress);
}

TEST(every_call_ends_once_over_tls)
{
    struct stress stress = {.n_calls = N_TLS_CALLS};
    struct net_tls_options tls = {0};
    struct certs certs;

    certs_make(&certs);
    tls = (struct net_tls_options){.cert_file = certs.server_cert, .key_file = certs.server_key};
    CHECK_INT(net_tls_config_new(&tls, &stress.at_server, NULL), PEG_OK);
    tls = (struct net_tls_options){.ca_file = certs.ca, .is_client = true};
    CHECK_INT(net_tls_config_new(&tls, &stress.at_client, NULL), PEG_OK);
    check_stress(&stress);
    net_tls_config_unref(stress.at_server);
    net_tls_config_unref(stress.at_client);
    certs_remove(&certs);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
int __lsan_do_recoverable_leak_check(void);

static bool may_trace(void)
{
    const pid_t child = fork();
    int status = 1;

    if (child == 0)
        _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 ? 0 : 1);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* The last one, when all of the above is over. */
TEST(no_library_has_kept_anything)
{
    if (!may_trace())
        SKIP("LeakSanitizer needs ptrace, which is not allowed here");
    CHECK_INT(__lsan_do_recoverable_leak_check(), 0);
}
#endif
#endif
