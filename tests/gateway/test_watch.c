/* SPDX-License-Identifier: Apache-2.0 */

/* Watch streams of a whole gateway. */

#include <sys/socket.h>

#include "base/limits.h"
#include "gateway/access/tokens.h"
#include "net/address.h"
#include "t.h"

#include "gateway_world.h"

static struct stream watch;
static const struct grpc_rpc_options *watch_as; /* NULL: nobody is asked who he is */

static void print_watch(struct stream *stream, const void *message)
{
    const Pegboard__V1__WatchResponse *response = message;
    const char *kind = protobuf_c_enum_descriptor_get_value(
                           &pegboard__v1__watch_response__kind__descriptor, (int)response->kind)
                           ->name +
                       strlen("KIND_");
    const Pegboard__V1__ToolsetInfo *toolset = response->toolset;
    char what[64];

    snprintf(what, sizeof(what), "%s%s", kind,
             !toolset || !toolset->health || strcmp(kind, "HEALTH") != 0            ? ""
             : toolset->health->state == PEGBOARD__V1__HEALTH__STATE__STATE_HEALTHY ? "=healthy"
                                                                                    : "=unhealthy");
    stream_say(stream, what, toolset ? toolset->name : "-");
}

static void watch_now(void *request)
{
    peg_error error;

    if (pegboard_v1_registry_watch_call(g.channel, request, watch_as, &stream_events, &watch,
                                        &watch.rpc, &error))
        abort();
}

static void start(const char *tag, bool changes_only)
{
    Pegboard__V1__WatchRequest request = PEGBOARD__V1__WATCH_REQUEST__INIT;
    char *tags[] = {req_text(tag)};

    stream_init(&watch, print_watch);
    request.tags = tags;
    request.n_tags = tag ? 1 : 0;
    request.changes_only = changes_only;
    on_client(watch_now, &request);
}

static void stop(void)
{
    stream_cancel(&watch);
    stream_free(&watch);
}

TEST(a_watch_tells_what_is_there_and_then_what_changes)
{
    struct req req = {0};

    world_open();
    register_named("b", NULL);
    register_named("a", NULL);
    start(NULL, false);
    stream_await(&watch, "READY - ");
    CHECK_STR(peg__str(watch.text), "PRESENT a PRESENT b READY - ");

    register_named("c", NULL);
    stream_await(&watch, "REGISTERED c ");
    req_init(&req, "b");
    req.msg.description = req_text("other");
    register_req(&req);
    stream_await(&watch, "CHANGED b ");
    unregister_named("a");
    stream_await(&watch, "UNREGISTERED a ");
    register_req(&req); /* equal: nothing has changed */
    unregister_named("c");
    stream_await(&watch, "UNREGISTERED c ");
    CHECK_STR(peg__str(watch.text), "PRESENT a PRESENT b READY - REGISTERED c CHANGED b "
                                    "UNREGISTERED a UNREGISTERED c ");
    stop();
    world_shut();
}

TEST(a_watch_of_changes_leaves_out_what_is_there)
{
    world_open();
    register_named("a", NULL);
    start(NULL, true);
    stream_await(&watch, "READY - ");
    register_named("b", NULL);
    stream_await(&watch, "REGISTERED b ");

    CHECK_STR(peg__str(watch.text), "READY - REGISTERED b ");
    stop();
    world_shut();
}

TEST(a_watch_by_tag_sees_toolsets_come_and_go_by_their_tags)
{
    world_open();
    register_named("a", "eu");
    register_named("b", "us");
    start("eu", false);
    stream_await(&watch, "READY - ");
    register_named("b", "eu");
    stream_await(&watch, "REGISTERED b ");
    register_named("a", "us");
    stream_await(&watch, "UNREGISTERED a ");

    CHECK_STR(peg__str(watch.text), "PRESENT a READY - REGISTERED b UNREGISTERED a ");
    stop();
    world_shut();
}

/* ---- health ------------------------------------------------------------------------------------
 */

static struct stream attached;

static void print_attached(struct stream *stream, const void *message)
{
    const Pegboard__V1__AttachResponse *frame = message;

    stream_say(stream,
               frame->frame_case == PEGBOARD__V1__ATTACH_RESPONSE__FRAME_WELCOME ? "welcome"
                                                                                 : "frame",
               "");
}

static void attach_now(void *arg)
{
    Pegboard__V1__AttachRequest frame = PEGBOARD__V1__ATTACH_REQUEST__INIT;
    Pegboard__V1__Hello hello = PEGBOARD__V1__HELLO__INIT;

    (void)arg;
    hello.toolset = req_text("a");
    hello.incarnation = req_text("incarnation-1");
    hello.credits = 1;
    frame.frame_case = PEGBOARD__V1__ATTACH_REQUEST__FRAME_HELLO;
    frame.hello = &hello;
    if (pegboard_v1_registry_attach_call(g.channel, NULL, &stream_events, &attached, &attached.rpc,
                                         NULL) ||
        pegboard_v1_registry_attach_say(attached.rpc, &frame, NULL))
        abort();
}

TEST(a_watch_tells_when_a_toolset_becomes_healthy_and_when_it_does_not)
{
    world_open();
    register_named("a", NULL);
    start(NULL, false);
    stream_await(&watch, "READY - ");
    stream_init(&attached, print_attached);
    on_client(attach_now, NULL);
    stream_await(&attached, "welcome");
    stream_await(&watch, "HEALTH=healthy a ");
    stream_cancel(&attached);
    stream_await(&watch, "HEALTH=unhealthy a ");

    stop();
    stream_free(&attached);
    world_shut();
}

/* ---- slow readers ------------------------------------------------------------------------------
 */

static void pause_now(void *arg)
{
    (void)arg;
    grpc_rpc_pause(watch.rpc);
}

static void resume_now(void *arg)
{
    (void)arg;
    grpc_rpc_resume(watch.rpc);
}

static void register_many(unsigned n)
{
    static char text[PEG_LIMIT_GATEWAY_DESCRIPTION + 1];

    memset(text, 'x', PEG_LIMIT_GATEWAY_DESCRIPTION);
    for (unsigned i = 0; i < n; i++) {
        struct req req = {0};
        char name[16];

        snprintf(name, sizeof(name), "t%04u", i);
        req_init(&req, name);
        req.msg.description = text;
        CHECK_STR(register_req(&req), "ok");
    }
}

VOLUME_TEST(a_reader_that_is_too_slow_hears_that_it_lost_something_and_starts_over)
{
    enum { N = PEG_LIMIT_GATEWAY_WATCH_EVENTS + 300 };
    const char *lost;

    world_open();
    start(NULL, false);
    stream_await(&watch, "READY - ");
    on_client(pause_now, NULL);
    register_many(N);
    on_client(resume_now, NULL);
    stream_await(&watch, "LOST - ");
    stream_await(&watch, " t1299 ");

    lost = strstr(watch.text, "LOST - ");
    CHECK(strncmp(lost, "LOST - PRESENT t0000 PRESENT t0001 ", 35) == 0);
    register_named("last", NULL);
    stream_await(&watch, "REGISTERED last ");
    stop();
    world_shut();
}

TEST(a_gateway_that_stops_ends_its_watches)
{
    world_open();
    start(NULL, false);
    stream_await(&watch, "READY - ");
    CHECK_STATUS(peg_gateway_drain(g.gateway, &g.error), PEG_OK, g.error);
    stream_await(&watch, "end UNAVAILABLE");

    stream_free(&watch);
    world_shut();
}

/* ---- tokens that are taken out -----------------------------------------------------------------
 */

enum { N_LOOPS = 2, N_PEERS = 16 };

/* Hooks on all loops wait for each other, then each of them reloads. */
struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned n_here;
    sem_t reloaded;
};

static struct timespec in_seconds(time_t n)
{
    struct timespec at;

    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += n;
    return at;
}

static void meet_and_reload(peg_log_level level, const char *code, const char *message, void *user)
{
    static _Thread_local bool was_here;
    const struct timespec until = in_seconds(20);
    struct meeting *meeting = user;

    (void)level;
    (void)code;
    (void)message;
    if (was_here)
        return;
    was_here = true;
    pthread_mutex_lock(&meeting->lock);
    meeting->n_here++;
    pthread_cond_broadcast(&meeting->changed);
    while (meeting->n_here < N_LOOPS &&
           pthread_cond_timedwait(&meeting->changed, &meeting->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&meeting->lock);
    if (peg_gateway_reload(g.gateway, NULL) == PEG_OK)
        sem_post(&meeting->reloaded);
}

/* One that a loop has answered. */
static int connect_peer(void)
{
    static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
    struct net_endpoint endpoint;
    struct net_address at;
    char first;
    int fd;

    CHECK_INT(net_endpoint_parse(peg__str(peg_gateway_address(g.gateway)), &endpoint, NULL),
              PEG_OK);
    CHECK(net_endpoint_is_numeric(&endpoint, &at));
    fd = socket(at.at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(connect(fd, &at.at.any, at.len), 0);
    CHECK_INT(write(fd, hello, sizeof(hello)), sizeof(hello));
    CHECK_INT(read(fd, &first, 1), 1);
    return fd;
}

/* Each loop has something to log: a frame of settings that is none. */
static void make_all_loops_log(void)
{
    static const char bad[] = "\0\0\1\4\0\0\0\0\0";
    int peers[N_PEERS];

    for (unsigned i = 0; i < N_PEERS; i++)
        peers[i] = connect_peer();
    for (unsigned i = 0; i < N_PEERS; i++)
        CHECK_INT(write(peers[i], bad, sizeof(bad)), sizeof(bad));
    for (unsigned i = 0; i < N_PEERS; i++)
        close(peers[i]);
}

static void bear(const char *token, struct peg__arena *arena, struct grpc_metadata *ret_metadata)
{
    char header[64 + GW_TOKEN_TEXT];

    snprintf(header, sizeof(header), "Bearer %s", token);
    CHECK_INT(
        grpc_metadata_add(ret_metadata, arena, peg__str("authorization"), peg__str(header), NULL),
        PEG_OK);
}

TEST(hooks_on_all_loops_may_reload_at_once)
{
    char folder[] = "/tmp/peg-watch-XXXXXX";
    char tokens[64];
    char token[GW_TOKEN_TEXT];
    struct peg__arena arena = {0};
    struct grpc_metadata metadata = {0};
    const struct grpc_rpc_options options = {.metadata = &metadata};
    struct meeting meeting = {.lock = PTHREAD_MUTEX_INITIALIZER,
                              .changed = PTHREAD_COND_INITIALIZER};
    const peg_gateway_config config = {PEG_GATEWAY_CONFIG_INIT, .threads = N_LOOPS,
                                       .drain_ms = 1000, .log_file = "/dev/null",
                                       .token_file = tokens};

    CHECK(mkdtemp(folder) != NULL);
    snprintf(tokens, sizeof(tokens), "%s/tokens", folder);
    CHECK_INT(gw_token_new(tokens, peg__str("anna"), token, NULL), PEG_OK);
    world_open_with(&config);
    bear(token, &arena, &metadata);
    watch_as = &options;
    start(NULL, false);
    watch_as = NULL;
    stream_await(&watch, "READY - ");
    unlink(tokens);
    CHECK_INT(gw_token_new(tokens, peg__str("ben"), token, NULL), PEG_OK);

    sem_init(&meeting.reloaded, 0, 0);
    CHECK_INT(peg_log_set(meet_and_reload, PEG_LOG_INFO, &meeting), PEG_OK);
    make_all_loops_log();
    for (unsigned i = 0; i < N_LOOPS; i++) {
        const struct timespec until = in_seconds(40);

        CHECK_INT(sem_timedwait(&meeting.reloaded, &until), 0);
    }
    CHECK_INT(peg_log_set(NULL, PEG_LOG_INFO, NULL), PEG_OK);
    CHECK_INT(meeting.n_here, N_LOOPS);
    stream_await(&watch, "end UNAUTHENTICATED ");
    stream_free(&watch);
    world_shut();
    sem_destroy(&meeting.reloaded);
    peg__arena_free(&arena);
    unlink(tokens);
    rmdir(folder);
}

/* ---- shares ------------------------------------------------------------------------------------
 */

static unsigned n_said(const char *words)
{
    unsigned n;

    pthread_mutex_lock(&watch.lock);
    n = t_count(watch.text, words);
    pthread_mutex_unlock(&watch.lock);
    return n;
}

static void await_said(const char *words, unsigned n)
{
    const struct timespec pause = {.tv_nsec = 10000000};

    for (unsigned i = 0; i < 6000 && n_said(words) < n; i++)
        nanosleep(&pause, NULL);
    CHECK_INT(n_said(words), n);
}

/* All of one connection are on one loop. */
TEST(who_watches_with_all_streams_it_may_leaves_room_for_others)
{
    enum { MAX = PEG_LIMIT_GATEWAY_WATCHERS, SHARE = MAX / 4 * 3, MORE = 20 };
    char folder[] = "/tmp/peg-watch-XXXXXX";
    char tokens[64];
    char token[2][GW_TOKEN_TEXT];
    struct peg__arena arena = {0};
    struct grpc_metadata metadata[2] = {{0}, {0}};
    const struct grpc_rpc_options annas = {.metadata = &metadata[0]};
    const struct grpc_rpc_options bens = {.metadata = &metadata[1]};
    const peg_gateway_config config = {PEG_GATEWAY_CONFIG_INIT, .threads = 1, .drain_ms = 60000,
                                       .log_file = "/dev/null", .token_file = tokens};
    Pegboard__V1__WatchRequest request = PEGBOARD__V1__WATCH_REQUEST__INIT;

    CHECK(mkdtemp(folder) != NULL);
    snprintf(tokens, sizeof(tokens), "%s/tokens", folder);
    CHECK_INT(gw_token_new(tokens, peg__str("anna"), token[0], NULL), PEG_OK);
    CHECK_INT(gw_token_new(tokens, peg__str("ben"), token[1], NULL), PEG_OK);
    bear(token[0], &arena, &metadata[0]);
    bear(token[1], &arena, &metadata[1]);
    world_open_with(&config);
    stream_init(&watch, print_watch);

    watch_as = &annas;
    for (unsigned i = 0; i < SHARE + MORE; i++)
        on_client(watch_now, &request);
    await_said("READY - ", SHARE);
    await_said("end RESOURCE_EXHAUSTED ", MORE);
    watch_as = &bens;
    on_client(watch_now, &request);
    await_said("READY - ", SHARE + 1);
    watch_as = NULL;

    CHECK_INT(peg_gateway_drain(g.gateway, NULL), PEG_OK);
    await_said("end UNAVAILABLE ", SHARE + 1);
    stream_free(&watch);
    world_shut();
    peg__arena_free(&arena);
    unlink(tokens);
    rmdir(folder);
}
