/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/server/server.h"

#include "../t.h"
#include "base/limits.h"
#include "grpc/reflection/v1/reflection.grpc.h"
#include "grpc/reflection/v1alpha/reflection.grpc.h"
#include "grpc/testing/test.grpc.h"
#include "peer.h"
#include "pegboard/test/odd.grpc.h"

#define V1_PATH "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
#define ALPHA_PATH "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
#define KIND(name) GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##name

typedef Grpc__Reflection__V1__ServerReflectionRequest request_t;
typedef Grpc__Reflection__V1__ServerReflectionResponse response_t;

/* ---- fixture: a server with services that do nothing but exist ------------------------------- */

static const struct grpc_service secret_service = {.name = "a.service.without.a.File"};

struct world {
    struct net_loops *loops;
    struct grpc_server *server;
    struct grpc_reflection *reflection;
    struct net_address address;
    struct peer peer;
    struct peer_call call;
};

static peg_status add_services(struct grpc_server *server)
{
    static const struct grpc_handler handlers[8];
    static const struct grpc_service *const services[] = {
        &grpc_testing_test_service_service,
        &pegboard_test_odd_ones_service,
        &secret_service,
    };
    peg_status status = PEG_OK;

    for (size_t i = 0; !status && i < sizeof(services) / sizeof(services[0]); i++)
        status = grpc_server_add(server, services[i], handlers, NULL, NULL);
    return status;
}

static void world_init(struct world *w, const char *path)
{
    peg_error error;

    *w = (struct world){0};
    CHECK_STATUS(net_loops_new(1, &w->loops, &error), PEG_OK, error);
    CHECK_STATUS(grpc_server_new(w->loops, NULL, &w->server, &error), PEG_OK, error);
    CHECK_INT(add_services(w->server), PEG_OK);
    CHECK_STATUS(grpc_reflection_new(w->server, &w->reflection, &error), PEG_OK, error);
    CHECK_STATUS(grpc_server_listen(w->server, peg__str("127.0.0.1:0"), NULL, &w->address, &error),
                 PEG_OK, error);
    peer_open(&w->peer, &w->address);
    peer_call(&w->call, &w->peer, path);
}

static void world_free(struct world *w)
{
    peer_close(&w->peer);
    grpc_server_free(w->server);
    grpc_reflection_free(w->reflection);
    net_loops_free(w->loops);
}

/* Ends the questions: the stream must end in good order. */
static void world_done(struct world *w)
{
    peer_half_close(&w->call);
    CHECK_INT(peer_end(&w->call), GRPC_OK);
    world_free(w);
}

static void ask(struct world *w, int kind, char *name)
{
    request_t request = GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__INIT;
    char host[] = "example.org";

    request.host = host;
    request.message_request_case = kind;
    request.file_by_filename = name;
    peer_send(&w->call, &request.base);
}

static const response_t *hear(struct world *w)
{
    return peer_next(&w->call, &grpc__reflection__v1__server_reflection_response__descriptor);
}

static const response_t *ask_for(struct world *w, int kind, const char *name)
{
    char copy[128];

    snprintf(copy, sizeof(copy), "%s", name);
    ask(w, kind, copy);
    return hear(w);
}

static const response_t *ask_for_file(struct world *w, const char *name)
{
    return ask_for(
        w, GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME, name);
}

static const response_t *ask_for_symbol(struct world *w, const char *name)
{
    return ask_for(
        w, GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL,
        name);
}

static const response_t *ask_for_numbers(struct world *w, const char *type)
{
    return ask_for(
        w,
        GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_ALL_EXTENSION_NUMBERS_OF_TYPE,
        type);
}

static const response_t *ask_for_services(struct world *w)
{
    return ask_for(
        w, GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES, "*");
}

static const response_t *ask_for_extension(struct world *w, const char *type, int32_t number)
{
    request_t request = GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__INIT;
    Grpc__Reflection__V1__ExtensionRequest extension =
        GRPC__REFLECTION__V1__EXTENSION_REQUEST__INIT;
    char copy[128];

    snprintf(copy, sizeof(copy), "%s", type);
    extension.containing_type = copy;
    extension.extension_number = number;
    request.message_request_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_EXTENSION;
    request.file_containing_extension = &extension;
    peer_send(&w->call, &request.base);
    return hear(w);
}

static bool is_file(const ProtobufCBinaryData *bytes, const struct grpc_file *file)
{
    return bytes->len == file->len && memcmp(bytes->data, file->bytes, file->len) == 0;
}

static void check_file(const response_t *response, const struct grpc_file *file)
{
    CHECK_INT(response->message_response_case, KIND(FILE_DESCRIPTOR_RESPONSE));
    CHECK(is_file(&response->file_descriptor_response->file_descriptor_proto[0], file));
}

static void check_error(const response_t *response, enum grpc_code code, const char *words)
{
    CHECK_INT(response->message_response_case, KIND(ERROR_RESPONSE));
    CHECK_INT(response->error_response->error_code, code);
    CHECK_STR(peg__str(response->error_response->error_message), words);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void check_services(const response_t *response)
{
    static const char *const expected[] = {
        "grpc.testing.TestService",
        "pegboard.test.OddOnes",
        "a.service.without.a.File",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    };
    const size_t n = sizeof(expected) / sizeof(expected[0]);

    CHECK_INT(response->message_response_case, KIND(LIST_SERVICES_RESPONSE));
    CHECK_INT(response->list_services_response->n_service, n);
    for (size_t i = 0; i < n; i++)
        CHECK_STR(peg__str(response->list_services_response->service[i]->name), expected[i]);
}

TEST(reflection_lists_all_services_and_itself)
{
    struct world w;

    world_init(&w, V1_PATH);

    check_services(ask_for_services(&w));
    world_done(&w);
}

TEST(reflection_finds_a_file_by_its_name_with_its_imports)
{
    struct world w;
    const response_t *response;

    world_init(&w, V1_PATH);
    response = ask_for_file(&w, "grpc/testing/test.proto");

    check_file(response, &grpc_testing_test_proto);
    CHECK_INT(response->file_descriptor_response->n_file_descriptor_proto, 3);
    for (size_t i = 0; i < grpc_testing_test_proto.n_imports; i++)
        CHECK(is_file(&response->file_descriptor_response->file_descriptor_proto[i + 1],
                      grpc_testing_test_proto.imports[i]));
    world_done(&w);
}

TEST(reflection_finds_the_file_of_a_symbol)
{
    struct world w;

    world_init(&w, V1_PATH);

    check_file(ask_for_symbol(&w, "grpc.testing.TestService"), &grpc_testing_test_proto);
    check_file(ask_for_symbol(&w, "grpc.testing.TestService.UnaryCall"), &grpc_testing_test_proto);
    check_file(ask_for_symbol(&w, "grpc.testing.Empty"), grpc_testing_test_proto.imports[0]);
    check_file(ask_for_symbol(&w, "grpc.reflection.v1.ServerReflection"),
               &grpc_reflection_v1_reflection_proto);
    world_done(&w);
}

TEST(reflection_says_what_it_was_asked)
{
    struct world w;
    const response_t *response;

    world_init(&w, V1_PATH);
    response = ask_for_symbol(&w, "grpc.testing.Empty");

    CHECK_STR(peg__str(response->valid_host), "example.org");
    CHECK_STR(peg__str(response->original_request->host), "example.org");
    CHECK_STR(peg__str(response->original_request->file_containing_symbol), "grpc.testing.Empty");
    world_done(&w);
}

TEST(reflection_goes_on_after_a_question_without_an_answer)
{
    struct world w;

    world_init(&w, V1_PATH);

    check_error(ask_for_symbol(&w, "no.Such"), GRPC_NOT_FOUND, "there is no symbol 'no.Such'");
    check_error(ask_for_file(&w, "no.proto"), GRPC_NOT_FOUND, "there is no file 'no.proto'");
    check_error(ask_for_symbol(&w, "a.service.without.a.File"), GRPC_NOT_FOUND,
                "there is no symbol 'a.service.without.a.File'");
    check_file(ask_for_symbol(&w, "grpc.testing.TestService"), &grpc_testing_test_proto);
    world_done(&w);
}

TEST(reflection_finds_extensions)
{
    struct world w;
    const response_t *response;

    world_init(&w, V1_PATH);

    check_file(ask_for_extension(&w, "pegboard.test.Outer", 100), &pegboard_test_odd_proto);
    check_error(ask_for_extension(&w, "pegboard.test.Outer", 99), GRPC_NOT_FOUND,
                "there is no extension of that number for 'pegboard.test.Outer'");
    response = ask_for_numbers(&w, "pegboard.test.Outer");
    CHECK_INT(response->message_response_case, KIND(ALL_EXTENSION_NUMBERS_RESPONSE));
    CHECK_STR(peg__str(response->all_extension_numbers_response->base_type_name),
              "pegboard.test.Outer");
    CHECK_INT(response->all_extension_numbers_response->n_extension_number, 2);
    world_done(&w);
}

TEST(reflection_tells_types_without_extensions_from_no_types)
{
    struct world w;
    const response_t *response;

    world_init(&w, V1_PATH);

    response = ask_for_numbers(&w, "grpc.testing.Empty");
    CHECK_INT(response->message_response_case, KIND(ALL_EXTENSION_NUMBERS_RESPONSE));
    CHECK_INT(response->all_extension_numbers_response->n_extension_number, 0);
    check_error(ask_for_numbers(&w, "no.Type"), GRPC_NOT_FOUND, "there is no type 'no.Type'");
    world_done(&w);
}

TEST(reflection_v1alpha_answers_as_v1_does)
{
    struct world w;

    world_init(&w, ALPHA_PATH);

    check_services(ask_for_services(&w));
    check_file(ask_for_symbol(&w, "grpc.reflection.v1alpha.ServerReflection"),
               &grpc_reflection_v1alpha_reflection_proto);
    check_error(ask_for_symbol(&w, "no.Such"), GRPC_NOT_FOUND, "there is no symbol 'no.Such'");
    world_done(&w);
}

/* ---- hostile questions ----------------------------------------------------------------------- */

TEST(reflection_refuses_a_question_of_no_kind)
{
    struct world w;

    world_init(&w, V1_PATH);

    check_error(ask_for(&w, 0, ""), GRPC_INVALID_ARGUMENT,
                "the request asks for nothing known here");
    check_services(ask_for_services(&w));
    world_done(&w);
}

TEST(reflection_cuts_long_names_in_its_words)
{
    struct world w;
    const response_t *response;
    const size_t len = PEG_LIMIT_GRPC_REFLECTION_BYTES - 100;
    char *name = peg__alloc(len + 1);

    memset(name, 'x', len);
    memcpy(name + 99, "\xc3\xa9", 2); /* a character that must not be cut in two */
    name[len] = '\0';
    world_init(&w, V1_PATH);
    ask(&w, GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL,
        name);
    response = hear(&w);

    CHECK_INT(response->message_response_case, KIND(ERROR_RESPONSE));
    CHECK_INT(strlen(response->error_response->error_message),
              strlen("there is no symbol ''") + 99);
    CHECK_INT(strlen(response->original_request->file_containing_symbol), len);
    world_done(&w);
    peg__free(name);
}

TEST(reflection_refuses_a_question_that_no_name_needs)
{
    struct world w;
    char name[PEG_LIMIT_GRPC_REFLECTION_BYTES + 1];

    memset(name, 'x', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    world_init(&w, V1_PATH);
    ask(&w, GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL,
        name);

    CHECK_INT(peer_end(&w.call), GRPC_RESOURCE_EXHAUSTED);
    world_free(&w);
}

TEST(reflection_ends_the_call_of_a_message_that_is_none)
{
    struct world w;

    world_init(&w, V1_PATH);
    CHECK_INT(grpc_stream_send(&w.call.stream, peg__strn("\x3a\xff", 2), NULL), PEG_OK);

    CHECK_INT(peer_end(&w.call), GRPC_INTERNAL);
    world_free(&w);
}

TEST(reflection_waits_for_a_client_that_does_not_read)
{
    enum { N = 2000 };
    struct world w;
    size_t n_answers = 0;

    world_init(&w, V1_PATH);
    grpc_stream_pause(&w.call.stream);
    for (int i = 0; i < N; i++)
        ask(&w, GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES,
            w.call.words);
    while (w.call.stream.waiting.len < 60000)
        CHECK(peer_pump(&w.peer)); /* a window full of answers, and no more of them */
    grpc_stream_resume(&w.call.stream);
    peer_half_close(&w.call);

    for (const response_t *response = hear(&w); response; response = hear(&w)) {
        check_services(response);
        n_answers++;
    }
    CHECK_INT(n_answers, N);
    CHECK_INT(peer_end(&w.call), GRPC_OK);
    world_free(&w);
}

/* ---- making it ------------------------------------------------------------------------------- */

TEST(reflection_is_added_once)
{
    struct grpc_reflection *first = NULL;
    struct grpc_reflection *second = NULL;
    struct net_loops *loops = NULL;
    struct grpc_server *server = NULL;
    peg_error error;

    CHECK_INT(net_loops_new(1, &loops, NULL), PEG_OK);
    CHECK_INT(grpc_server_new(loops, NULL, &server, NULL), PEG_OK);
    CHECK_STATUS(grpc_reflection_new(server, &first, &error), PEG_OK, error);

    CHECK_INT(grpc_reflection_new(server, &second, &error), PEG_EEXISTS);
    CHECK_STR(peg__str(error.code), "E_GRPC_SERVICE");
    CHECK(!second);
    grpc_server_free(server);
    grpc_reflection_free(first);
    net_loops_free(loops);
}

TORTURE(reflection_survives_any_allocation_failure)
{
    struct net_loops *loops = NULL;
    struct grpc_server *server = NULL;
    struct grpc_reflection *reflection = NULL;
    peg_status status = net_loops_new(1, &loops, NULL);

    if (!status)
        status = grpc_server_new(loops, NULL, &server, NULL);
    if (!status)
        status = add_services(server);
    if (!status)
        status = grpc_reflection_new(server, &reflection, NULL);
    grpc_server_free(server);
    grpc_reflection_free(reflection);
    net_loops_free(loops);
    return status;
}

/* Asks with the n-th allocation of the server failing; true once it is answered. */
static bool ask_without_memory(unsigned nth)
{
    struct world w;
    bool is_answered;

    world_init(&w, V1_PATH);
    check_services(ask_for_services(&w)); /* the connection and the call have all they need */

    peer_fail_at(net_loops_at(w.loops, 0), nth);
    is_answered = ask_for_numbers(&w, "pegboard.test.Outer") != NULL;
    peer_fail_at(net_loops_at(w.loops, 0), 0);
    peer_drop(&w.call);
    world_free(&w);
    return is_answered;
}

TEST(reflection_fails_a_question_without_memory)
{
    unsigned nth = 1;

    while (!ask_without_memory(nth))
        CHECK(++nth < 1000);
    CHECK(nth > 1);
}
