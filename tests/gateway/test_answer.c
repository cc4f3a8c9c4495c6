/* SPDX-License-Identifier: Apache-2.0 */

/* What was refused before a service heard of it has a name, too. */

#include "t.h"

#include "base/text/str.h"
#include "gateway/rpc/rpc.h"
#include "grpc/client/client.h"
#include "grpc/server/server.h"
#include "net/address.h"
#include "wire/wire.h"

static const struct grpc_method method = {.name = "Say", .path = "/answer.Answer/Say"};
static const struct grpc_service service = {"answer.Answer", &method, 1, NULL};

/* As the server itself would, with words alone. */
static void refuse(struct grpc_call *call, void *status)
{
    grpc_call_finish(call, status);
}

static void say(struct grpc_call *call, const void *message, void *user)
{
    (void)user;
    grpc_call_reply(call, *(const peg_str *)message);
}

/* The code of the answer, and the name in its details; "": there are none. */
static enum grpc_code name_of(struct grpc_status refusal, char ret_name[32])
{
    const struct grpc_interceptor refusing = {.on_start = refuse, .user = &refusal};
    const struct grpc_server_options options = {
        .interceptors = &refusing, .n_interceptors = 1, .describe = gw_describe};
    const struct grpc_handler handler = {.on_message = say};
    const peg_str request = peg__str("x");
    char text[NET_ADDRESS_TEXT];
    struct net_loops *loops;
    struct grpc_server *server;
    struct net_address at;
    struct grpc_channel *channel;
    struct grpc_answer answer;
    enum grpc_code code;
    peg_str name;

    CHECK_INT(net_loops_new(2, &loops, NULL), PEG_OK); /* the second one is the client's */
    CHECK_INT(grpc_server_new(loops, &options, &server, NULL), PEG_OK);
    CHECK_INT(grpc_server_add(server, &service, &handler, NULL, NULL), PEG_OK);
    CHECK_INT(grpc_server_listen(server, peg__str("127.0.0.1:0"), NULL, &at, NULL), PEG_OK);
    net_address_format(&at, text);
    CHECK_INT(grpc_channel_new_wait(net_loops_at(loops, 1), peg__str(text), NULL, &channel, NULL),
              PEG_OK);
    CHECK_INT(grpc_call_wait(channel, &method, &request, NULL, &answer, NULL), PEG_OK);
    code = answer.status.code;
    (void)wire_error_from_status(&answer.status, &answer.arena, &name);
    snprintf(ret_name, 32, "%.*s", answer.status.details.len ? (int)name.len : 0, name.ptr);
    grpc_answer_free(&answer);
    grpc_channel_free_wait(channel);
    grpc_server_free(server);
    net_loops_free(loops);
    return code;
}

TEST(what_is_refused_with_words_alone_has_a_name_and_its_code)
{
    static const struct {
        enum grpc_code code;
        const char *words;
        const char *name;
        enum grpc_code sent;
    } cases[] = {
        {GRPC_INTERNAL, "this is no message", "validation_error", GRPC_INVALID_ARGUMENT},
        {GRPC_INVALID_ARGUMENT, "this is no time", "validation_error", GRPC_INVALID_ARGUMENT},
        {GRPC_RESOURCE_EXHAUSTED, "it is larger than PEG_LIMIT_X", "limit_exceeded",
         GRPC_RESOURCE_EXHAUSTED},
        /* Providers give up for what is over a limit, and try again for want of memory. */
        {GRPC_RESOURCE_EXHAUSTED, "out of memory: try again later", "overloaded",
         GRPC_RESOURCE_EXHAUSTED},
        {GRPC_RESOURCE_EXHAUSTED, "the request cannot be read: out of memory; try", "overloaded",
         GRPC_RESOURCE_EXHAUSTED},
        {GRPC_UNIMPLEMENTED, "there is no such method", "", GRPC_UNIMPLEMENTED},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char name[32];

        CHECK_INT(name_of((struct grpc_status){.code = cases[i].code,
                                               .message = peg__str(cases[i].words)},
                          name),
                  cases[i].sent);
        CHECK_STR(peg__str(name), cases[i].name);
    }
}

TEST(each_error_of_a_call_has_one_of_the_registry)
{
    bool is_used[WIRE_N_ERRORS] = {false};

    for (enum calls_error error = CALLS_OK; error < CALLS_N_ERRORS; error++) {
        const enum wire_error wire = gw_error_of_call(error);

        CHECK(!is_used[wire] && (wire == WIRE_OK) == (error == CALLS_OK));
        is_used[wire] = true;
    }
    CHECK_STR(peg__str(wire_error_name(gw_error_of_call(CALLS_OUTCOME_UNKNOWN))),
              "outcome_unknown");
    CHECK_INT(gw_error_of_call(CALLS_N_ERRORS), WIRE_FAULT);
}
