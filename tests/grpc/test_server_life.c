/* SPDX-License-Identifier: Apache-2.0 */

/* Connections of a server: how they begin, what is asked of them, and how they end. */

#include "t.h"

#include <poll.h>

#include "grpc/pages.h"
#include "grpc/world.h"
#include "net/certs.h"

/* ---- fixture ----------------------------------------------------------------------------------
 */

static sem_t started;
static struct grpc_call *_Atomic waiting;

static void unary(struct grpc_call *call, const void *message, void *user)
{
    const peg_str text = *(const peg_str *)message;

    (void)user;
    if (peg__str_is(text, "wait"))
        waiting = call;
    else if (peg__str_is(text, "who"))
        grpc_call_reply(call, grpc_call_peer_name(call));
    else
        grpc_call_reply(call, text);
    sem_post(&started);
}

static const struct grpc_handler handlers[N_METHODS] = {[UNARY] = {.on_message = unary}};
static struct world w;

static void start(const struct grpc_server_options *options,
                  const struct grpc_channel_options *channel)
{
    const struct world_setup setup = {.server = options, .handlers = handlers, .channel = channel};

    sem_init(&started, 0, 0);
    world_start(&w, &setup);
}

static void run_until_started(void)
{
    while (sem_trywait(&started)) {
        net_loop_stop(w.loop);
        net_loop_run(w.loop);
    }
}

/* For servers that give little time to begin: a client that was too slow tries again. */
static const struct grpc_rpc_options patient = {.waits_for_ready = true};

static uint64_t n_connections(void)
{
    struct grpc_server_counts counts;

    grpc_server_counts(w.server, &counts);
    return counts.n_connections;
}

/* A bare socket to the server. */
static int connect_plain(void)
{
    struct net_endpoint endpoint;
    struct net_address at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK_INT(net_endpoint_parse(peg__str(w.address), &endpoint, NULL), PEG_OK);
    CHECK(net_endpoint_is_numeric(&endpoint, &at));
    CHECK_INT(connect(fd, &at.at.any, at.len), 0);
    return fd;
}

/* Everything until the server closes. */
static size_t read_all(int fd, char *bytes, size_t max)
{
    size_t len = 0;

    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        ssize_t n;

        CHECK(poll(&ready, 1, 20000) > 0);
        n = read(fd, bytes + len, max - len);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    bytes[len < max ? len : max - 1] = '\0';
    return len;
}

/* ---- HTTP/1.1 on the same port ------------------------------------------------------------------
 */

static void show_path(struct net_http_request *request, peg_str body, void *user)
{
    (void)body;
    (void)user;
    net_http_reply_text(request, 200, "path %.*s", PEG_ARG(request->path));
}

TEST(http1_is_answered_beside_grpc)
{
    const struct grpc_server_options options = {.http = open_pages(show_path, NULL)};
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    char bytes[1000];
    int fd;

    start(&options, NULL);
    fd = connect_plain();
    CHECK_INT(write(fd, request, sizeof(request) - 1), sizeof(request) - 1);
    read_all(fd, bytes, sizeof(bytes));

    CHECK(strncmp(bytes, "HTTP/1.1 200 ", 13) == 0);
    CHECK(strstr(bytes, "path /metrics") != NULL);
    CHECK_INT(world_call(&w, UNARY, "x", NULL)->code, GRPC_OK);
    close(fd);
    world_stop(&w);
    close_pages();
}

TEST(a_request_cut_into_single_bytes_is_told_apart)
{
    const struct grpc_server_options options = {.http = open_pages(show_path, NULL)};
    static const char request[] = "PUT /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    char bytes[1000];
    int fd;

    start(&options, NULL);
    fd = connect_plain();
    for (size_t i = 0; i < sizeof(request) - 1; i++)
        (void)!send(fd, request + i, 1, MSG_NOSIGNAL);
    read_all(fd, bytes, sizeof(bytes));

    CHECK(strncmp(bytes, "HTTP/1.1 405 ", 13) == 0);
    close(fd);
    world_stop(&w);
    close_pages();
}

TEST(a_flood_that_begins_like_http2_is_dropped)
{
    const struct grpc_server_options options = {.http = open_pages(show_path, NULL)};
    static char flood[300 << 10];
    int fd;

    start(&options, NULL);
    fd = connect_plain();
    memset(flood, 'x', sizeof(flood));
    CHECK_INT(send(fd, "PR", 2, MSG_NOSIGNAL), 2);
    (void)!send(fd, flood, sizeof(flood), MSG_NOSIGNAL);
    while (n_connections() > 0)
        sched_yield();

    CHECK_INT(world_call(&w, UNARY, "x", NULL)->code, GRPC_OK);
    close(fd);
    world_stop(&w);
    close_pages();
}

TEST(without_a_handler_http1_is_told_what_is_spoken_here)
{
    char bytes[1000];
    int fd;

    start(NULL, NULL);
    fd = connect_plain();
    CHECK_INT(write(fd, "GET / HTTP/1.1\r\n\r\n", 18), 18);
    read_all(fd, bytes, sizeof(bytes));

    CHECK(strstr(bytes, "gRPC over HTTP/2") != NULL);
    close(fd);
    world_stop(&w);
}

TEST(a_server_with_http1_connections_ends)
{
    const struct grpc_server_options options = {.http = open_pages(show_path, NULL)};
    static const char request[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
    char bytes[1000];
    int fd;

    start(&options, NULL);
    fd = connect_plain();
    CHECK_INT(write(fd, request, sizeof(request) - 1), sizeof(request) - 1);
    CHECK(read(fd, bytes, sizeof(bytes)) > 0);
    CHECK(grpc_server_drain(w.server, 20000));

    CHECK_INT(read_all(fd, bytes, sizeof(bytes)), 0);
    close(fd);
    world_stop(&w);
    close_pages();
}

/* A loop that stands still: what comes meanwhile comes together, in its next round. */
struct hold {
    struct net_message message;
    sem_t holds;
    sem_t goes_on;
};

static void stand_still(struct net_message *message)
{
    struct hold *hold = (struct hold *)message; /* its first member */

    net_loop_now_ns(net_loops_at(w.loops, 0)); /* for this round no time passes */
    sem_post(&hold->holds);
    sem_wait(&hold->goes_on);
}

static void hold_still(struct hold *hold)
{
    sem_init(&hold->holds, 0, 0);
    sem_init(&hold->goes_on, 0, 0);
    net_loop_post(net_loops_at(w.loops, 0), &hold->message);
    sem_wait(&hold->holds);
}

static bool has_something_to_read(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    return poll(&ready, 1, 0) > 0;
}

/* Two requests, the first of which is readable in the very round in which the time of the
 * connection has come. False: the machine was so slow that the time had come before. */
static bool ask_at_the_last_moment(int64_t until_ms, char *ret_bytes, size_t max)
{
    static const char first[] = "GET /first HTTP/1.1\r\nHost: x\r\n\r\n";
    static const char second[] = "GET /second HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    struct hold hold = {.message = {.fn = stand_still}};
    const int fd = connect_plain();

    while (n_connections() == 0 && !has_something_to_read(fd)) /* its end, if it came and went */
        sched_yield();
    hold_still(&hold);
    (void)!send(fd, first, sizeof(first) - 1, MSG_NOSIGNAL);
    usleep((useconds_t)until_ms * 1000);
    sem_post(&hold.goes_on);
    if (read(fd, ret_bytes, max) > 0) {
        (void)!send(fd, second, sizeof(second) - 1, MSG_NOSIGNAL);
        read_all(fd, ret_bytes, max);
    } else {
        ret_bytes[0] = '\0';
    }
    close(fd);
    while (n_connections() > 0)
        sched_yield();
    return ret_bytes[0] != '\0';
}

/* Its first bytes tell that it speaks HTTP/1.1, and then the turn comes in which HTTP/2 would have
 * been told that its time is over. */
static void check_last_moment(const struct grpc_server_options *options, int64_t until_ms)
{
    const struct world_setup setup = {.server = options, .handlers = handlers, .n_loops = 1};
    char bytes[1000] = "";

    sem_init(&started, 0, 0);
    world_start(&w, &setup);
    for (int i = 0; i < 20 && !ask_at_the_last_moment(until_ms, bytes, sizeof(bytes)); i++)
        ;

    CHECK(strstr(bytes, "path /second") != NULL);
    CHECK_INT(world_call(&w, UNARY, "x", &patient)->code, GRPC_OK);
    world_stop(&w);
}

TEST(http1_that_begins_when_the_time_for_a_preface_is_over_is_served)
{
    const struct grpc_server_options options = {.http = open_pages(show_path, NULL),
                                                .preface_ms = 200};

    check_last_moment(&options, 210);
    close_pages();
}

TEST(http1_that_begins_at_the_greatest_age_of_a_connection_is_served)
{
    const struct grpc_server_options options = {.http = open_pages(show_path, NULL),
                                                .max_age_ms = 200};

    check_last_moment(&options, 230);
    close_pages();
}

/* ---- the end of a server
 * --------------------------------------------------------------------------- */

static void *drain(void *result)
{
    *(bool *)result = grpc_server_drain(w.server, 20000);
    return NULL;
}

static void finish(struct net_message *message)
{
    (void)message;
    grpc_call_reply(waiting, peg__str("done"));
}

TEST(draining_waits_for_what_runs_and_takes_nothing_new)
{
    struct net_message message = {.fn = finish};
    bool is_drained = false;
    pthread_t thread;
    const struct answer *a;

    start(NULL, NULL);
    a = world_ask(&w, UNARY, "wait", NULL);
    run_until_started();
    pthread_create(&thread, NULL, drain, &is_drained);
    while (n_connections() == 0)
        sched_yield();
    net_loop_post(net_loops_at(w.loops, 0), &message);
    world_run(&w);
    pthread_join(thread, NULL);

    CHECK(is_drained);
    CHECK_STR(peg__strn(a->log, a->log_len), "headers message:done end:OK ");
    CHECK_INT(n_connections(), 0);
    CHECK_INT(world_call(&w, UNARY, "x", NULL)->code, GRPC_UNAVAILABLE);
    world_stop(&w);
}

TEST(draining_gives_up_when_its_time_is_over)
{
    start(NULL, NULL);
    world_ask(&w, UNARY, "wait", NULL);
    run_until_started();

    CHECK(!grpc_server_drain(w.server, 10));
    w.server = grpc_server_free(w.server);
    world_run(&w);
    CHECK_INT(w.answers[0].code, GRPC_UNAVAILABLE);
    world_stop(&w);
}

/* Its loop has not even heard of the first time. Without a listener: to close one waits for it. */
TEST(a_server_that_was_asked_to_drain_may_be_asked_again)
{
    struct hold hold = {.message = {.fn = stand_still}};

    w = (struct world){0};
    CHECK_INT(net_loops_new(1, &w.loops, NULL), PEG_OK);
    CHECK_INT(grpc_server_new(w.loops, NULL, &w.server, NULL), PEG_OK);
    hold_still(&hold);
    CHECK(!grpc_server_drain(w.server, 1));
    CHECK(!grpc_server_drain(w.server, 1));
    sem_post(&hold.goes_on);
    alarm(60); /* a loop that finds the same message for ever would hold up the end for ever */
    w.server = grpc_server_free(w.server);
    w.loops = net_loops_free(w.loops);
    alarm(0);
}

/* ---- times
 * ------------------------------------------------------------------------------------------- */

TEST(a_connection_that_says_nothing_is_closed)
{
    const struct grpc_server_options options = {.preface_ms = 20};
    char bytes[100];
    int fd;

    start(&options, NULL);
    fd = connect_plain();

    CHECK_INT(read_all(fd, bytes, sizeof(bytes)), 0);
    close(fd);
    world_stop(&w);
}

TEST(an_old_connection_is_asked_to_go_and_calls_go_on_over_a_new_one)
{
    const struct grpc_server_options options = {.max_age_ms = 30};
    struct grpc_server_counts counts;

    start(&options, NULL);
    for (int i = 0; i < 20; i++) {
        struct timespec nap = {.tv_nsec = 5000000};

        CHECK_INT(world_call(&w, UNARY, "x", &patient)->code, GRPC_OK);
        nanosleep(&nap, NULL); /* connections have to age */
    }
    grpc_server_counts(w.server, &counts);
    CHECK_INT(counts.n_ended, 20);
    world_stop(&w);
}

TEST(an_idle_connection_is_asked_to_go)
{
    const struct grpc_server_options options = {.max_idle_ms = 20};

    start(&options, NULL);
    CHECK_INT(world_call(&w, UNARY, "x", NULL)->code, GRPC_OK);
    while (n_connections() > 0) {
        net_loop_stop(w.loop);
        net_loop_run(w.loop);
    }
    CHECK_INT(world_call(&w, UNARY, "x", NULL)->code, GRPC_OK);
    world_stop(&w);
}

/* Whether it was given up while its call ran, and not before. */
static bool was_given_up_with_its_call(int64_t ms)
{
    const struct grpc_server_options options = {.keepalive_ms = ms, .keepalive_timeout_ms = ms};
    bool has_started = false;

    start(&options, NULL);
    world_ask(&w, UNARY, "wait", NULL);
    while (!has_started && w.n_running > 0) {
        net_loop_stop(w.loop);
        net_loop_run(w.loop);
        has_started = sem_trywait(&started) == 0;
    }
    while (n_connections() > 0) /* the client's loop does not run: nobody answers */
        sched_yield();
    world_run(&w);

    CHECK_INT(w.answers[0].code, GRPC_UNAVAILABLE);
    world_stop(&w);
    return has_started;
}

/* A machine that is slow may need more time to begin a call. */
TEST(a_client_that_does_not_answer_a_ping_is_given_up)
{
    t_try_with_more_time(was_given_up_with_its_call, 20);
}

static void stop_loop(struct net_timer *timer)
{
    (void)timer;
    net_loop_stop(w.loop);
}

TEST(a_client_that_answers_pings_is_kept)
{
    const struct grpc_server_options options = {.keepalive_ms = 10, .keepalive_timeout_ms = 10000};
    struct net_timer enough = {.fn = stop_loop};

    start(&options, NULL);
    world_ask(&w, UNARY, "wait", NULL);
    run_until_started();
    net_loop_arm(w.loop, &enough, net_loop_now_ns(w.loop) + INT64_C(150000000));
    net_loop_run(w.loop);

    CHECK_INT(w.n_running, 1);
    CHECK_INT(n_connections(), 1);
    net_loop_disarm(w.loop, &enough);
    world_stop(&w);
}

TEST(a_client_that_pings_too_often_is_sent_away)
{
    const struct grpc_server_options options = {.min_ping_ms = 60000};
    static const char greeting[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                   "\0\0\0\x04\0\0\0\0\0";
    static const char ping[] = "\0\0\x08\x06\0\0\0\0\0"
                               "12345678";
    char bytes[2000];
    size_t len;
    int fd;

    start(&options, NULL);
    fd = connect_plain();
    CHECK_INT(write(fd, greeting, sizeof(greeting) - 1), sizeof(greeting) - 1);
    for (int i = 0; i < 4; i++)
        CHECK_INT(write(fd, ping, sizeof(ping) - 1), sizeof(ping) - 1);
    len = read_all(fd, bytes, sizeof(bytes));

    CHECK(memmem(bytes, len, "too_many_pings", 14) != NULL);
    close(fd);
    world_stop(&w);
}

/* ---- who is at the other end
 * --------------------------------------------------------------------------- */

TEST(a_call_tells_the_name_in_the_certificate_of_its_client)
{
    struct certs certs;
    struct net_tls_options tls = {0};
    struct net_tls_config *at_server;
    struct net_tls_config *at_client;
    struct net_listener_options listen = {0};
    struct grpc_channel_options channel = {.tls_host = "localhost"};
    struct world_setup setup = {.handlers = handlers, .listen = &listen, .channel = &channel};

    certs_make(&certs);
    tls = (struct net_tls_options){
        .cert_file = certs.server_cert, .key_file = certs.server_key, .ca_file = certs.ca};
    CHECK_INT(net_tls_config_new(&tls, &at_server, NULL), PEG_OK);
    tls = (struct net_tls_options){.cert_file = certs.client_cert,
                                   .key_file = certs.client_key,
                                   .ca_file = certs.ca,
                                   .is_client = true};
    CHECK_INT(net_tls_config_new(&tls, &at_client, NULL), PEG_OK);
    listen.stream.tls = at_server;
    channel.tls = at_client;
    sem_init(&started, 0, 0);
    world_start(&w, &setup);

    CHECK_STR(peg__str(world_call(&w, UNARY, "who", NULL)->log),
              "headers message:spiffe://test/client end:OK ");
    world_stop(&w);
    net_tls_config_unref(at_server);
    net_tls_config_unref(at_client);
    certs_remove(&certs);
}

/* ---- interceptors
 * ---------------------------------------------------------------------------------------- */

static char order[200];
static const char principal_key;

static void note(const char *what, const char *who)
{
    strncat(order, what, sizeof(order) - strlen(order) - 1);
    strncat(order, who, sizeof(order) - strlen(order) - 1);
    strncat(order, " ", sizeof(order) - strlen(order) - 1);
}

static void outer_start(struct grpc_call *call, void *user)
{
    note("start:", user);
    CHECK_INT(grpc_call_put(call, &principal_key, order), PEG_OK);
}

static void inner_start(struct grpc_call *call, void *user)
{
    note("start:", user);
    if (grpc_call_get(call, &principal_key) != order ||
        grpc_metadata_get(grpc_call_metadata(call), "x-refuse").ptr)
        grpc_call_fail(call, GRPC_PERMISSION_DENIED, "not you");
}

static void last_start(struct grpc_call *call, void *user)
{
    (void)call;
    note("start:", user);
}

static void any_end(struct grpc_call *call, const struct grpc_status *status, void *user)
{
    (void)call;
    note("end:", user);
    note("=", grpc_code_name(status->code));
}

static char outer_name[] = "outer";
static char inner_name[] = "inner";
static char last_name[] = "last";
static const struct grpc_interceptor interceptors[] = {
    {outer_start, any_end, outer_name},
    {inner_start, any_end, inner_name},
    {last_start, any_end, last_name},
};
static const struct grpc_server_options intercepted = {.interceptors = interceptors,
                                                       .n_interceptors = 3};

TEST(interceptors_stand_around_a_call_in_their_order)
{
    order[0] = '\0';
    start(&intercepted, NULL);
    CHECK_INT(world_call(&w, UNARY, "x", NULL)->code, GRPC_OK);
    world_stop(&w);

    CHECK_STR(peg__str(order), "start:outer start:inner start:last "
                               "end:last =OK end:inner =OK end:outer =OK ");
}

TEST(an_interceptor_that_refuses_is_the_last_to_hear_of_a_call)
{
    struct peg__arena arena = {0};
    struct grpc_metadata metadata = {0};
    const struct grpc_rpc_options options = {.metadata = &metadata};

    order[0] = '\0';
    start(&intercepted, NULL);
    grpc_metadata_add(&metadata, &arena, peg__str("x-refuse"), peg__str("1"), NULL);
    CHECK_INT(world_call(&w, UNARY, "x", &options)->code, GRPC_PERMISSION_DENIED);
    world_stop(&w);

    CHECK_STR(peg__str(order), "start:outer start:inner "
                               "end:inner =PERMISSION_DENIED end:outer =PERMISSION_DENIED ");
    peg__arena_free(&arena);
}

/* ---- addresses
 * --------------------------------------------------------------------------------------------- */

TEST(a_name_is_no_address_to_listen_on)
{
    peg_error error;

    start(NULL, NULL);
    CHECK_INT(grpc_server_listen(w.server, peg__str("example.org:1"), NULL, NULL, &error),
              PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_LISTEN");
    CHECK_INT(grpc_server_listen(w.server, peg__str("nonsense"), NULL, NULL, &error), PEG_EPARSE);
    CHECK_STR(peg__str(error.code), "E_ADDRESS");
    world_stop(&w);
}

TEST(a_server_listens_on_several_addresses)
{
    struct net_address second;
    char first[NET_ADDRESS_TEXT];

    start(NULL, NULL);
    CHECK_INT(grpc_server_listen(w.server, peg__str("127.0.0.1:0"), NULL, &second, NULL), PEG_OK);
    strcpy(first, w.address);
    net_address_format(&second, w.address);
    CHECK(strcmp(first, w.address) != 0);
    close(connect_plain());

    CHECK_INT(world_call(&w, UNARY, "x", NULL)->code, GRPC_OK);
    world_stop(&w);
}
