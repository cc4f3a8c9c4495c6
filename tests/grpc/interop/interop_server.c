/* SPDX-License-Identifier: Apache-2.0 */

/*
 * grpc.testing.TestService as the interop tests of gRPC describe it, with health and reflection,
 * and /page, a page.
 *
 *   interop_server [--addr 127.0.0.1:0] [--threads N] [--max-streams N]
 *                  [--tls-cert PEM --tls-key PEM [--tls-ca PEM]]
 *
 * Prints "ready ADDRESS"; ends in good order at SIGTERM.
 */

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/server/server.h"
#include "grpc/testing/test.grpc.h"

enum {
    MAX_ANSWERS = 100000, /* that one call may ask for and not have got */
    NS_PER_US = 1000,
    DRAIN_MS = 5000,
};

/* What payloads are made of. */
static uint8_t zeros[PEG_LIMIT_GRPC_MESSAGE_BYTES];
static char server_id[64];

/* ---- what all methods share --------------------------------------------------------------- */

static bool fill_payload(struct grpc_call *call, int32_t size, Grpc__Testing__Payload *ret_payload)
{
    if (size < 0 || size > (int32_t)sizeof(zeros)) {
        grpc_call_fail(call, GRPC_INVALID_ARGUMENT, "a payload has 0 to %zu bytes, not %d",
                       sizeof(zeros), (int)size);
        return false;
    }
    grpc__testing__payload__init(ret_payload);
    ret_payload->body = (ProtobufCBinaryData){.len = (size_t)size, .data = zeros};
    return true;
}

/* Sends back what the two keys of custom_metadata hold. */
static void echo_metadata(struct grpc_call *call)
{
    static const char header[] = "x-grpc-test-echo-initial";
    static const char trailer[] = "x-grpc-test-echo-trailing-bin";
    const peg_str initial = grpc_metadata_get(grpc_call_metadata(call), header);
    const peg_str trailing = grpc_metadata_get(grpc_call_metadata(call), trailer);
    peg_status status = PEG_OK;
    peg_error error;

    if (initial.ptr)
        status = grpc_call_add_header(call, peg__str(header), initial, &error);
    if (!status && trailing.ptr)
        status = grpc_call_add_trailer(call, peg__str(trailer), trailing, &error);
    if (status)
        grpc_call_fail(call, GRPC_INTERNAL, "%s", error.message);
}

/* True: the client asked for this status, and has it. */
static bool echo_status(struct grpc_call *call, const Grpc__Testing__EchoStatus *asked)
{
    struct grpc_status status;

    if (!asked || asked->code == 0)
        return false;
    status = (struct grpc_status){.code = (enum grpc_code)asked->code,
                                  .message = peg__str(asked->message)};
    grpc_call_finish(call, &status);
    return true;
}

/* Did the message come as the client says it has sent it? If not, the call has failed. */
static bool check_compression(struct grpc_call *call, const Grpc__Testing__BoolValue *expected)
{
    if (!expected || (bool)expected->value == grpc_call_was_compressed(call))
        return true;
    grpc_call_fail(call, GRPC_INVALID_ARGUMENT, "the message was %s compressed",
                   expected->value ? "not" : "in fact");
    return false;
}

/* ---- one answer --------------------------------------------------------------------------- */

static void empty_call(struct grpc_call *call, const Grpc__Testing__Empty *request, void *user)
{
    const Grpc__Testing__Empty empty = GRPC__TESTING__EMPTY__INIT;

    (void)request, (void)user;
    echo_metadata(call);
    grpc_testing_test_service_empty_call_reply(call, &empty);
}

static void unary_call(struct grpc_call *call, const Grpc__Testing__SimpleRequest *request,
                       void *user)
{
    Grpc__Testing__SimpleResponse response = GRPC__TESTING__SIMPLE_RESPONSE__INIT;
    Grpc__Testing__Payload payload;

    (void)user;
    echo_metadata(call);
    if (!check_compression(call, request->expect_compressed) ||
        echo_status(call, request->response_status) ||
        !fill_payload(call, request->response_size, &payload))
        return;
    response.payload = &payload;
    if (request->fill_server_id)
        response.server_id = server_id;
    if (request->response_compressed && request->response_compressed->value)
        grpc_call_use_gzip(call);
    grpc_testing_test_service_unary_call_reply(call, &response);
}

/* ---- the client streams ------------------------------------------------------------------- */

static void input_started(struct grpc_call *call, void *user)
{
    int32_t *size = peg__arena_alloc_zero(grpc_call_arena(call), sizeof(*size));

    (void)user;
    grpc_call_set_state(call, size);
    if (!size)
        grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, "out of memory: try again later");
    else
        echo_metadata(call);
}

static void input_came(struct grpc_call *call,
                       const Grpc__Testing__StreamingInputCallRequest *request, void *user)
{
    int32_t *size = grpc_call_state(call);

    (void)user;
    if (check_compression(call, request->expect_compressed) && request->payload)
        *size += (int32_t)request->payload->body.len;
}

static void input_ended(struct grpc_call *call, void *user)
{
    Grpc__Testing__StreamingInputCallResponse response =
        GRPC__TESTING__STREAMING_INPUT_CALL_RESPONSE__INIT;
    const int32_t *size = grpc_call_state(call);

    (void)user;
    response.aggregated_payload_size = *size;
    grpc_testing_test_service_streaming_input_call_reply(call, &response);
}

/* ---- the server streams ------------------------------------------------------------------- */

struct answer {
    int32_t size;
    int32_t interval_us;
    bool is_compressed;
};

/* Answers that a client has asked for. Of what may be pending, the timer is disarmed at the end of
 * the call. */
struct answers {
    struct grpc_call *call;
    struct answer *list; /* owned */
    size_t n;
    size_t n_sent;
    size_t capacity;
    struct net_timer timer; /* the interval before the next one */
    bool has_waited;
    bool is_last; /* the client asks for nothing more */
    bool is_paused;
};

static void go_on(struct answers *answers);

static void interval_passed(struct net_timer *timer)
{
    struct answers *answers = (void *)((char *)timer - offsetof(struct answers, timer));

    answers->has_waited = true;
    go_on(answers);
}

static bool must_wait(struct answers *answers, const struct answer *next)
{
    struct net_loop *loop = grpc_call_loop(answers->call);

    if (answers->timer.is_armed)
        return true;
    if (next->interval_us <= 0 || answers->has_waited)
        return false;
    answers->timer.fn = interval_passed;
    net_loop_arm(loop, &answers->timer,
                 net_loop_now_ns(loop) + next->interval_us * (int64_t)NS_PER_US);
    return true;
}

/* False: the call has failed. */
static bool send_answer(struct grpc_call *call, const struct answer *answer)
{
    Grpc__Testing__StreamingOutputCallResponse response =
        GRPC__TESTING__STREAMING_OUTPUT_CALL_RESPONSE__INIT;
    Grpc__Testing__Payload payload;
    peg_error error;

    if (!fill_payload(call, answer->size, &payload))
        return false;
    response.payload = &payload;
    grpc_call_skip_gzip(call, !answer->is_compressed);
    if (!grpc_testing_test_service_full_duplex_call_send(call, &response, &error))
        return true;
    grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, "%s", error.message);
    return false;
}

/* Sends what can be sent now; then reads on, or ends the call. */
static void go_on(struct answers *answers)
{
    struct grpc_call *call = answers->call;

    while (answers->n_sent < answers->n) {
        const struct answer *next = &answers->list[answers->n_sent];

        if (must_wait(answers, next) || !grpc_call_is_writable(call) || !send_answer(call, next))
            return;
        answers->has_waited = false;
        answers->n_sent++;
    }
    answers->n = answers->n_sent = 0;
    if (answers->is_last) {
        grpc_call_finish(call, &(struct grpc_status){.code = GRPC_OK});
    } else if (answers->is_paused) {
        answers->is_paused = false;
        grpc_call_resume(call);
    }
}

/* Notes what a request asks for. False: the call has failed. */
static bool ask_for(struct answers *answers,
                    const Grpc__Testing__StreamingOutputCallRequest *request)
{
    const size_t n = request->n_response_parameters;
    struct answer *list;

    if (n > MAX_ANSWERS - answers->n) {
        grpc_call_fail(answers->call, GRPC_RESOURCE_EXHAUSTED, "a call gets at most %d answers",
                       MAX_ANSWERS);
        return false;
    }
    list = peg__grow(answers->list, sizeof(*list), answers->n + n + 1, &answers->capacity);
    if (!list) {
        grpc_call_fail(answers->call, GRPC_RESOURCE_EXHAUSTED, "out of memory: try again later");
        return false;
    }
    answers->list = list;
    for (size_t i = 0; i < n; i++) {
        const Grpc__Testing__ResponseParameters *asked = request->response_parameters[i];
        const bool is_compressed = asked->compressed && asked->compressed->value;

        if (is_compressed)
            grpc_call_use_gzip(answers->call);
        list[answers->n++] = (struct answer){
            .size = asked->size, .interval_us = asked->interval_us, .is_compressed = is_compressed};
    }
    return true;
}

static void output_started(struct grpc_call *call, void *user)
{
    struct answers *answers = peg__arena_alloc_zero(grpc_call_arena(call), sizeof(*answers));

    (void)user;
    grpc_call_set_state(call, answers);
    if (!answers) {
        grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, "out of memory: try again later");
        return;
    }
    answers->call = call;
    echo_metadata(call);
}

static void output_writable(struct grpc_call *call, void *user)
{
    (void)user;
    go_on(grpc_call_state(call));
}

static void output_ended(struct grpc_call *call, void *user)
{
    struct answers *answers = grpc_call_state(call);

    (void)user;
    if (!answers)
        return;
    net_loop_disarm(grpc_call_loop(call), &answers->timer);
    peg__free(answers->list);
}

static void output_call(struct grpc_call *call,
                        const Grpc__Testing__StreamingOutputCallRequest *request, void *user)
{
    struct answers *answers;

    output_started(call, user);
    answers = grpc_call_state(call);
    if (!answers || echo_status(call, request->response_status) || !ask_for(answers, request))
        return;
    answers->is_last = true;
    go_on(answers);
}

/* One request after the other: the next is read when this one has all its answers. */
static void duplex_came(struct grpc_call *call,
                        const Grpc__Testing__StreamingOutputCallRequest *request, void *user)
{
    struct answers *answers = grpc_call_state(call);

    (void)user;
    if (echo_status(call, request->response_status) || !ask_for(answers, request))
        return;
    go_on(answers);
    if (answers->n > 0) {
        answers->is_paused = true;
        grpc_call_pause(call);
    }
}

/* All answers after all requests. */
static void half_duplex_came(struct grpc_call *call,
                             const Grpc__Testing__StreamingOutputCallRequest *request, void *user)
{
    (void)user;
    ask_for(grpc_call_state(call), request);
}

static void requests_ended(struct grpc_call *call, void *user)
{
    struct answers *answers = grpc_call_state(call);

    (void)user;
    answers->is_last = true;
    go_on(answers);
}

static const struct grpc_testing_test_service_handlers handlers = {
    .empty_call = empty_call,
    .unary_call = unary_call,
    .cacheable_unary_call = unary_call,
    .streaming_output_call = output_call,
    .streaming_output_call_on_writable = output_writable,
    .streaming_output_call_on_end = output_ended,
    .streaming_input_call_on_start = input_started,
    .streaming_input_call_on_message = input_came,
    .streaming_input_call_on_half_close = input_ended,
    .full_duplex_call_on_start = output_started,
    .full_duplex_call_on_message = duplex_came,
    .full_duplex_call_on_half_close = requests_ended,
    .full_duplex_call_on_writable = output_writable,
    .full_duplex_call_on_end = output_ended,
    .half_duplex_call_on_start = output_started,
    .half_duplex_call_on_message = half_duplex_came,
    .half_duplex_call_on_half_close = requests_ended,
    .half_duplex_call_on_writable = output_writable,
    .half_duplex_call_on_end = output_ended,
};

/* ---- a page ------------------------------------------------------------------------------- */

/* For h2spec, which knows no gRPC: it asks for a page, and looks at how its bytes come. */
static void answer_page(struct net_http_request *request, peg_str body, void *user)
{
    (void)body;
    (void)user;
    net_http_reply_text(request, 200, "a page that is longer than a window of h2spec");
}

/* As h2spec posts it, too. */
static const struct net_http_handler page = {.on_request = answer_page};
static const struct net_http_route pages[] = {{"GET", "/page", &page}, {"POST", "/page", &page}};

/* ---- the program -------------------------------------------------------------------------- */

struct options {
    const char *address;
    unsigned n_threads;
    unsigned max_streams;
    struct net_tls_options tls;
};

static void must(peg_status status, const peg_error *error)
{
    if (!status)
        return;
    fprintf(stderr, "interop_server: %s\n", error->message);
    exit(1);
}

static struct options parse_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"addr", required_argument, NULL, 'a'},
        {"threads", required_argument, NULL, 't'},
        {"max-streams", required_argument, NULL, 'm'},
        {"tls-cert", required_argument, NULL, 'c'},
        {"tls-key", required_argument, NULL, 'k'},
        {"tls-ca", required_argument, NULL, 'r'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {.address = "127.0.0.1:0", .n_threads = 1};

    for (int c = 0; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (c == 'a')
            options.address = optarg;
        else if (c == 't')
            options.n_threads = (unsigned)strtoul(optarg, NULL, 10);
        else if (c == 'm')
            options.max_streams = (unsigned)strtoul(optarg, NULL, 10);
        else if (c == 'c')
            options.tls.cert_file = optarg;
        else if (c == 'k')
            options.tls.key_file = optarg;
        else if (c == 'r')
            options.tls.ca_file = optarg;
        else
            exit(2);
    }
    return options;
}

static struct net_tls_config *make_tls(const struct options *options)
{
    struct net_tls_config *config = NULL;
    peg_error error;

    if (options->tls.cert_file)
        must(net_tls_config_new(&options->tls, &config, &error), &error);
    return config;
}

static void listen_and_tell(struct grpc_server *server, const struct options *options)
{
    struct net_listener_options listening = {.stream.tls = make_tls(options)};
    struct net_address address;
    char text[NET_ADDRESS_TEXT];
    peg_error error;

    must(grpc_server_listen(server, peg__str(options->address), &listening, &address, &error),
         &error);
    net_tls_config_unref(listening.stream.tls);
    net_address_format(&address, text);
    printf("ready %s\n", text);
    fflush(stdout);
}

static void wait_for_the_end(const sigset_t *ends)
{
    int got = 0;

    sigwait(ends, &got);
}

int main(int argc, char **argv)
{
    const struct options options = parse_options(argc, argv);
    const struct net_http_options http_options = {.routes = pages, .n_routes = 2};
    struct grpc_server_options server_options = {.max_streams = options.max_streams};
    struct net_loops *loops;
    struct grpc_server *server;
    struct grpc_health *health;
    struct grpc_reflection *reflection;
    peg_error error;
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    snprintf(server_id, sizeof(server_id), "pegboard-%ld", (long)getpid());

    must(net_loops_new(options.n_threads, &loops, &error), &error);
    must(net_http_server_new(&http_options, &server_options.http, &error), &error);
    must(grpc_server_new(loops, &server_options, &server, &error), &error);
    must(grpc_testing_test_service_add(server, &handlers, &error), &error);
    must(grpc_health_new(server, &health, &error), &error);
    must(grpc_health_set(health, peg__str(grpc_testing_test_service_service.name), GRPC_SERVING,
                         &error),
         &error);
    must(grpc_reflection_new(server, &reflection, &error), &error);
    listen_and_tell(server, &options);

    wait_for_the_end(&ends);
    grpc_health_shut_down(health);
    const bool is_clean = grpc_server_drain(server, DRAIN_MS);
    grpc_server_free(server);
    net_http_server_free(server_options.http);
    grpc_health_free(health);
    grpc_reflection_free(reflection);
    net_loops_free(loops);
    return is_clean ? 0 : 3;
}
