/* SPDX-License-Identifier: Apache-2.0 */

/* Watch streams of a whole gateway. */

#include "base/limits.h"
#include "t.h"

#include "gateway_world.h"

static struct stream watch;

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

    if (pegboard_v1_registry_watch_call(g.channel, request, NULL, &stream_events, &watch,
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

TEST(a_reader_that_is_too_slow_hears_that_it_lost_something_and_starts_over)
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
