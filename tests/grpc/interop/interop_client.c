/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The interop cases of gRPC, and a few of our own, with our client.
 *
 *   interop_client --addr TARGET --case NAME [--tls-ca PEM] [--tls-cert PEM --tls-key PEM]
 *   interop_client --list
 *
 * Ends with 0 if the case passes; otherwise it says what was wrong.
 */

#include <getopt.h>

#include "talk.h"

enum {
    LARGE_REQUEST = 271828,
    LARGE_RESPONSE = 314159,
    N_PING_PONGS = 4,
    N_AT_ONCE = 100,
    N_MANY = 2000,
    N_SOAK = 100,
    N_CHANNELS = 30,
};

static uint8_t zeros[LARGE_REQUEST];
static const int32_t request_sizes[N_PING_PONGS] = {27182, 8, 1828, 45904};
static const int32_t response_sizes[N_PING_PONGS] = {31415, 9, 2653, 58979};
static const struct grpc_rpc_options gzipped = {.uses_gzip = true};

/* ---- requests ----------------------------------------------------------------------------- */

static void fill_payload(Grpc__Testing__Payload *payload, int32_t size)
{
    grpc__testing__payload__init(payload);
    payload->body = (ProtobufCBinaryData){.len = (size_t)size, .data = zeros};
}

static Grpc__Testing__BoolValue *bool_value(Grpc__Testing__BoolValue *value, bool is_true)
{
    grpc__testing__bool_value__init(value);
    value->value = is_true;
    return value;
}

/* A SimpleRequest and what it points to. */
struct simple {
    Grpc__Testing__SimpleRequest request;
    Grpc__Testing__Payload payload;
    Grpc__Testing__BoolValue flag;
};

static void make_large(struct simple *simple)
{
    grpc__testing__simple_request__init(&simple->request);
    fill_payload(&simple->payload, LARGE_REQUEST);
    simple->request.payload = &simple->payload;
    simple->request.response_size = LARGE_RESPONSE;
}

static void call_simple(struct world *world, const struct simple *simple,
                        const struct grpc_rpc_options *options, struct talk *talk)
{
    start_unary(world, method_of(GRPC_TESTING_TEST_SERVICE_UNARY_CALL), &simple->request.base,
                options, talk);
    await_end(talk);
}

static void say_input(struct talk *talk, int32_t size, Grpc__Testing__BoolValue *is_compressed)
{
    Grpc__Testing__StreamingInputCallRequest request =
        GRPC__TESTING__STREAMING_INPUT_CALL_REQUEST__INIT;
    Grpc__Testing__Payload payload;

    fill_payload(&payload, size);
    request.payload = &payload;
    request.expect_compressed = is_compressed;
    say(talk, &request.base);
}

/* A request for one answer. */
static void say_output(struct talk *talk, int32_t size, int32_t response_size)
{
    Grpc__Testing__StreamingOutputCallRequest request =
        GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    Grpc__Testing__ResponseParameters parameters = GRPC__TESTING__RESPONSE_PARAMETERS__INIT;
    Grpc__Testing__ResponseParameters *list[] = {&parameters};
    Grpc__Testing__Payload payload;

    fill_payload(&payload, size);
    parameters.size = response_size;
    request.payload = &payload;
    request.response_parameters = list;
    request.n_response_parameters = 1;
    say(talk, &request.base);
}

/* ---- unary -------------------------------------------------------------------------------- */

static void empty_unary(struct world *world)
{
    const Grpc__Testing__Empty empty = GRPC__TESTING__EMPTY__INIT;
    struct talk talk;

    start_unary(world, method_of(GRPC_TESTING_TEST_SERVICE_EMPTY_CALL), &empty.base, NULL, &talk);
    await_code(&talk, GRPC_OK);
    SAME(talk.n_got, 1);
}

static void cacheable_unary(struct world *world)
{
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    struct grpc_metadata_entry entry = {PEG_LIT("x-user-ip"), PEG_LIT("1.2.3.4")};
    const struct grpc_metadata metadata = {.entries = &entry, .n = 1};
    const struct grpc_rpc_options options = {.metadata = &metadata};
    struct talk talk;

    request.response_size = 1;
    start_unary(world, method_of(GRPC_TESTING_TEST_SERVICE_CACHEABLE_UNARY_CALL), &request.base,
                &options, &talk);
    await_code(&talk, GRPC_OK);
    SAME(talk.got[0].size, 1);
}

static void large_unary(struct world *world)
{
    struct simple simple;
    struct talk talk;

    make_large(&simple);
    call_simple(world, &simple, NULL, &talk);
    await_code(&talk, GRPC_OK);
    SAME(talk.n_got, 1);
    SAME(talk.got[0].size, LARGE_RESPONSE);
}

static void client_compressed_unary(struct world *world)
{
    struct simple simple;
    struct talk talk;

    make_large(&simple);
    simple.request.expect_compressed = bool_value(&simple.flag, true);
    call_simple(world, &simple, NULL, &talk); /* does the server look at all? */
    await_code(&talk, GRPC_INVALID_ARGUMENT);

    call_simple(world, &simple, &gzipped, &talk);
    await_code(&talk, GRPC_OK);
    SAME(talk.got[0].size, LARGE_RESPONSE);

    simple.request.expect_compressed = bool_value(&simple.flag, false);
    call_simple(world, &simple, NULL, &talk);
    await_code(&talk, GRPC_OK);
    SAME(talk.got[0].size, LARGE_RESPONSE);
}

static void server_compressed_unary(struct world *world)
{
    for (int is_compressed = 1; is_compressed >= 0; is_compressed--) {
        struct simple simple;
        struct talk talk;

        make_large(&simple);
        simple.request.response_compressed = bool_value(&simple.flag, is_compressed);
        call_simple(world, &simple, NULL, &talk);
        await_code(&talk, GRPC_OK);
        SAME(talk.got[0].size, LARGE_RESPONSE);
        SAME(talk.got[0].was_compressed, is_compressed);
    }
}

/* ---- streams ------------------------------------------------------------------------------ */

static void client_streaming(struct world *world)
{
    struct talk talk;

    start(world, method_of(GRPC_TESTING_TEST_SERVICE_STREAMING_INPUT_CALL), NULL, &talk);
    for (unsigned i = 0; i < N_PING_PONGS; i++)
        say_input(&talk, request_sizes[i], NULL);
    grpc_rpc_half_close(talk.rpc);
    await_code(&talk, GRPC_OK);
    SAME(talk.n_got, 1);
    SAME(talk.got[0].size, 74922);
}

static void client_compressed_streaming(struct world *world)
{
    const struct grpc_method *method = method_of(GRPC_TESTING_TEST_SERVICE_STREAMING_INPUT_CALL);
    Grpc__Testing__BoolValue yes;
    Grpc__Testing__BoolValue no;
    struct talk talk;

    bool_value(&yes, true);
    bool_value(&no, false);
    start(world, method, NULL, &talk);
    say_input(&talk, 27182, &yes); /* it is not */
    grpc_rpc_half_close(talk.rpc);
    await_code(&talk, GRPC_INVALID_ARGUMENT);

    start(world, method, &gzipped, &talk);
    say_input(&talk, 27182, &yes);
    grpc_rpc_skip_gzip(talk.rpc, true);
    say_input(&talk, 45904, &no);
    grpc_rpc_half_close(talk.rpc);
    await_code(&talk, GRPC_OK);
    SAME(talk.got[0].size, 73086);
}

/* One request for all the answers; the first `n_compressed` of them compressed. */
static void call_output(struct world *world, const int32_t *sizes, size_t n, size_t n_compressed,
                        struct talk *talk)
{
    Grpc__Testing__StreamingOutputCallRequest request =
        GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    Grpc__Testing__ResponseParameters parameters[N_PING_PONGS];
    Grpc__Testing__ResponseParameters *list[N_PING_PONGS];
    Grpc__Testing__BoolValue flags[N_PING_PONGS];

    for (size_t i = 0; i < n; i++) {
        grpc__testing__response_parameters__init(&parameters[i]);
        parameters[i].size = sizes[i];
        if (n_compressed > 0)
            parameters[i].compressed = bool_value(&flags[i], i < n_compressed);
        list[i] = &parameters[i];
    }
    request.response_parameters = list;
    request.n_response_parameters = n;
    start_unary(world, method_of(GRPC_TESTING_TEST_SERVICE_STREAMING_OUTPUT_CALL), &request.base,
                NULL, talk);
    await_code(talk, GRPC_OK);
    SAME(talk->n_got, n);
    for (size_t i = 0; i < n; i++)
        SAME(talk->got[i].size, sizes[i]);
}

static void server_streaming(struct world *world)
{
    struct talk talk;

    call_output(world, response_sizes, N_PING_PONGS, 0, &talk);
}

static void server_compressed_streaming(struct world *world)
{
    static const int32_t sizes[] = {31415, 92653};
    struct talk talk;

    call_output(world, sizes, 2, 1, &talk);
    SAME(talk.got[0].was_compressed, true);
    SAME(talk.got[1].was_compressed, false);
}

static void ping_pong(struct world *world)
{
    struct talk talk;

    start(world, method_of(GRPC_TESTING_TEST_SERVICE_FULL_DUPLEX_CALL), NULL, &talk);
    for (unsigned i = 0; i < N_PING_PONGS; i++) {
        say_output(&talk, request_sizes[i], response_sizes[i]);
        SAME(await_message(&talk).size, response_sizes[i]);
    }
    grpc_rpc_half_close(talk.rpc);
    await_code(&talk, GRPC_OK);
    SAME(talk.n_got, N_PING_PONGS);
}

static void half_duplex(struct world *world)
{
    struct talk talk;

    start(world, method_of(GRPC_TESTING_TEST_SERVICE_HALF_DUPLEX_CALL), NULL, &talk);
    for (unsigned i = 0; i < N_PING_PONGS; i++)
        say_output(&talk, request_sizes[i], response_sizes[i]);
    grpc_rpc_half_close(talk.rpc);
    await_code(&talk, GRPC_OK);
    SAME(talk.n_got, N_PING_PONGS);
    for (unsigned i = 0; i < N_PING_PONGS; i++)
        SAME(talk.got[i].size, response_sizes[i]);
}

static void empty_stream(struct world *world)
{
    struct talk talk;

    start(world, method_of(GRPC_TESTING_TEST_SERVICE_FULL_DUPLEX_CALL), NULL, &talk);
    grpc_rpc_half_close(talk.rpc);
    await_code(&talk, GRPC_OK);
    SAME(talk.n_got, 0);
}

/* ---- metadata and status ------------------------------------------------------------------ */

static void check_echo(const struct talk *talk)
{
    SAME(strcmp(talk->header, "test_initial_metadata_value"), 0);
    SAME(talk->trailer_len, 3);
    SAME(memcmp(talk->trailer, "\xab\xab\xab", 3), 0);
}

static void custom_metadata(struct world *world)
{
    struct grpc_metadata_entry entries[] = {
        {PEG_LIT("x-grpc-test-echo-initial"), PEG_LIT("test_initial_metadata_value")},
        {PEG_LIT("x-grpc-test-echo-trailing-bin"), PEG_LIT("\xab\xab\xab")},
    };
    const struct grpc_metadata metadata = {.entries = entries, .n = 2};
    const struct grpc_rpc_options options = {.metadata = &metadata};
    struct simple simple;
    struct talk talk;

    make_large(&simple);
    call_simple(world, &simple, &options, &talk);
    await_code(&talk, GRPC_OK);
    check_echo(&talk);

    start(world, method_of(GRPC_TESTING_TEST_SERVICE_FULL_DUPLEX_CALL), &options, &talk);
    say_output(&talk, LARGE_REQUEST, LARGE_RESPONSE);
    grpc_rpc_half_close(talk.rpc);
    await_code(&talk, GRPC_OK);
    SAME(talk.got[0].size, LARGE_RESPONSE);
    check_echo(&talk);
}

static void call_for_status(struct world *world, Grpc__Testing__EchoStatus *status)
{
    Grpc__Testing__SimpleRequest request = GRPC__TESTING__SIMPLE_REQUEST__INIT;
    struct talk talk;

    request.response_status = status;
    start_unary(world, method_of(GRPC_TESTING_TEST_SERVICE_UNARY_CALL), &request.base, NULL, &talk);
    await_code(&talk, GRPC_UNKNOWN);
    SAME(strcmp(talk.words, status->message), 0);
}

static void status_code_and_message(struct world *world)
{
    Grpc__Testing__StreamingOutputCallRequest request =
        GRPC__TESTING__STREAMING_OUTPUT_CALL_REQUEST__INIT;
    Grpc__Testing__EchoStatus status = GRPC__TESTING__ECHO_STATUS__INIT;
    char words[] = "test status message";
    struct talk talk;

    status.code = GRPC_UNKNOWN;
    status.message = words;
    call_for_status(world, &status);

    request.response_status = &status;
    start(world, method_of(GRPC_TESTING_TEST_SERVICE_FULL_DUPLEX_CALL), NULL, &talk);
    say(&talk, &request.base);
    grpc_rpc_half_close(talk.rpc);
    await_code(&talk, GRPC_UNKNOWN);
    SAME(strcmp(talk.words, words), 0);
}

static void special_status_message(struct world *world)
{
    Grpc__Testing__EchoStatus status = GRPC__TESTING__ECHO_STATUS__INIT;
    char words[] = "\t\ntest with whitespace\r\nand Unicode BMP \u263a and non-BMP \U0001f608\t\n";

    status.code = GRPC_UNKNOWN;
    status.message = words;
    call_for_status(world, &status);
}

static void unimplemented_method(struct world *world)
{
    const Grpc__Testing__Empty empty = GRPC__TESTING__EMPTY__INIT;
    struct talk talk;

    start_unary(world, method_of(GRPC_TESTING_TEST_SERVICE_UNIMPLEMENTED_CALL), &empty.base, NULL,
                &talk);
    await_code(&talk, GRPC_UNIMPLEMENTED);
}

static void unimplemented_service(struct world *world)
{
    const Grpc__Testing__Empty empty = GRPC__TESTING__EMPTY__INIT;
    struct talk talk;

    start_unary(world, &grpc_testing_unimplemented_service_methods[0], &empty.base, NULL, &talk);
    await_code(&talk, GRPC_UNIMPLEMENTED);
}

/* ---- ends that come early ----------------------------------------------------------------- */

static void cancel_after_begin(struct world *world)
{
    struct talk talk;

    start(world, method_of(GRPC_TESTING_TEST_SERVICE_STREAMING_INPUT_CALL), NULL, &talk);
    grpc_rpc_cancel(talk.rpc);
    await_code(&talk, GRPC_CANCELLED);
    empty_unary(world); /* others do not suffer */
}

static void cancel_after_first_response(struct world *world)
{
    struct talk talk;

    start(world, method_of(GRPC_TESTING_TEST_SERVICE_FULL_DUPLEX_CALL), NULL, &talk);
    say_output(&talk, request_sizes[0], response_sizes[0]);
    SAME(await_message(&talk).size, response_sizes[0]);
    grpc_rpc_cancel(talk.rpc);
    await_code(&talk, GRPC_CANCELLED);
    empty_unary(world);
}

static void timeout_on_sleeping_server(struct world *world)
{
    const struct grpc_rpc_options options = {.timeout_ms = 1};
    struct talk talk;

    start(world, method_of(GRPC_TESTING_TEST_SERVICE_FULL_DUPLEX_CALL), &options, &talk);
    say_output(&talk, request_sizes[0], response_sizes[0]);
    await_code(&talk, GRPC_DEADLINE_EXCEEDED);
    empty_unary(world);
}

/* ---- many --------------------------------------------------------------------------------- */

static void call_at_once(struct world *world, const struct grpc_method *method,
                         const ProtobufCMessage *request, unsigned n, int32_t response_size)
{
    struct talk *talks = peg__alloc_zero(n, sizeof(*talks));

    if (!talks)
        give_up(__LINE__, "out of memory");
    for (unsigned i = 0; i < n; i++)
        start_unary(world, method, request, NULL, &talks[i]);
    for (unsigned i = 0; i < n; i++) {
        await_code(&talks[i], GRPC_OK);
        SAME(talks[i].n_got, 1);
        SAME(talks[i].got[0].size, response_size);
    }
    peg__free(talks);
}

static void concurrent_large_unary(struct world *world)
{
    struct simple simple;

    make_large(&simple);
    call_at_once(world, method_of(GRPC_TESTING_TEST_SERVICE_UNARY_CALL), &simple.request.base,
                 N_AT_ONCE, LARGE_RESPONSE);
}

/* More than a server takes at once: the rest must wait for their turn. */
static void many_calls(struct world *world)
{
    const Grpc__Testing__Empty empty = GRPC__TESTING__EMPTY__INIT;

    call_at_once(world, method_of(GRPC_TESTING_TEST_SERVICE_EMPTY_CALL), &empty.base, N_MANY, 0);
}

static void rpc_soak(struct world *world)
{
    for (unsigned i = 0; i < N_SOAK; i++)
        large_unary(world);
}

static void open_channel(struct world *world)
{
    peg_error error;

    MUST(grpc_channel_new(world->loop, peg__str(world->target), &world->options, &world->channel,
                          &error),
         error);
}

static void channel_soak(struct world *world)
{
    for (unsigned i = 0; i < N_CHANNELS; i++) {
        large_unary(world);
        grpc_channel_free(world->channel);
        open_channel(world);
    }
}

/* ---- the program -------------------------------------------------------------------------- */

static const struct test_case {
    const char *name;
    void (*run)(struct world *world);
} cases[] = {
    {"empty_unary", empty_unary},
    {"cacheable_unary", cacheable_unary},
    {"large_unary", large_unary},
    {"client_compressed_unary", client_compressed_unary},
    {"server_compressed_unary", server_compressed_unary},
    {"client_streaming", client_streaming},
    {"client_compressed_streaming", client_compressed_streaming},
    {"server_streaming", server_streaming},
    {"server_compressed_streaming", server_compressed_streaming},
    {"ping_pong", ping_pong},
    {"half_duplex", half_duplex},
    {"empty_stream", empty_stream},
    {"custom_metadata", custom_metadata},
    {"status_code_and_message", status_code_and_message},
    {"special_status_message", special_status_message},
    {"unimplemented_method", unimplemented_method},
    {"unimplemented_service", unimplemented_service},
    {"cancel_after_begin", cancel_after_begin},
    {"cancel_after_first_response", cancel_after_first_response},
    {"timeout_on_sleeping_server", timeout_on_sleeping_server},
    {"concurrent_large_unary", concurrent_large_unary},
    {"many_calls", many_calls},
    {"rpc_soak", rpc_soak},
    {"channel_soak", channel_soak},
};

enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };

struct options {
    const char *target;
    const char *case_name;
    struct net_tls_options tls;
};

static void list_cases(void)
{
    for (size_t i = 0; i < N_CASES; i++)
        puts(cases[i].name);
    exit(0);
}

static struct options parse_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"addr", required_argument, NULL, 'a'},
        {"case", required_argument, NULL, 'n'},
        {"tls-ca", required_argument, NULL, 'r'},
        {"tls-cert", required_argument, NULL, 'c'},
        {"tls-key", required_argument, NULL, 'k'},
        {"list", no_argument, NULL, 'l'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {.target = "127.0.0.1:0", .case_name = "", .tls.is_client = true};

    for (int c = 0; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (c == 'a')
            options.target = optarg;
        else if (c == 'n')
            options.case_name = optarg;
        else if (c == 'r')
            options.tls.ca_file = optarg;
        else if (c == 'c')
            options.tls.cert_file = optarg;
        else if (c == 'k')
            options.tls.key_file = optarg;
        else if (c == 'l')
            list_cases();
        else
            exit(2);
    }
    return options;
}

static const struct test_case *find_case(const char *name)
{
    for (size_t i = 0; i < N_CASES; i++)
        if (strcmp(cases[i].name, name) == 0)
            return &cases[i];
    give_up(__LINE__, "there is no case '%s': --list names them", name);
}

int main(int argc, char **argv)
{
    const struct options options = parse_options(argc, argv);
    const struct test_case *test_case = find_case(options.case_name);
    struct world world = {.target = options.target};
    peg_error error;

    if (options.tls.ca_file)
        MUST(net_tls_config_new(&options.tls, &world.options.tls, &error), error);
    MUST(net_loop_new(&world.loop, &error), error);
    open_channel(&world);
    test_case->run(&world);
    grpc_channel_free(world.channel);
    net_loop_free(world.loop);
    net_tls_config_unref(world.options.tls);
    return 0;
}
