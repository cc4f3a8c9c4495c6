/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/http/internal.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/v1/admin.pb-c.h"
#include "pegboard/v1/registry.pb-c.h"
#include "t.h"

/* ---- fixture: a text is read as a message, and written again ---- */

struct world {
    struct peg__arena arena;
    struct peg__buf text;
    ProtobufCMessage *message;
    peg_error error;
};

static peg_status world_read(struct world *w, const ProtobufCMessageDescriptor *type,
                             const char *json)
{
    peg_json_doc *doc = NULL;
    peg_status status;

    *w = (struct world){.text.max = 1 << 20};
    status = peg_json_parse(peg__str(json), NULL, &doc, &w->error);
    if (!status)
        status = gw_message_read(&w->arena, type, peg_json_root(doc), &w->message, &w->error);
    peg_json_doc_free(doc);
    return status;
}

static peg_str world_write(struct world *w, const ProtobufCMessage *message)
{
    struct peg__out out = {.buf = &w->text};

    gw_message_write(&out, message);
    return peg__buf_view(&w->text);
}

static void world_done(struct world *w)
{
    peg__arena_free(&w->arena);
    peg__buf_free(&w->text);
}

static const char registration[] =
    "{\"description\":\"d\",\"tags\":[\"a\",\"b\"],\"tools\":[{\"name\":\"t\",\"input_schema\":"
    "{\"type\":\"object\",\"const\":1.50},\"idempotent\":true,\"timeout_ms\":-7},{}],"
    "\"kind\":\"direct\"}";

/* ---- reading ---- */

TEST(message_is_read_with_its_lists_messages_words_and_json)
{
    struct world w;
    const Pegboard__V1__RegisterRequest *request;

    CHECK_INT(world_read(&w, &pegboard__v1__register_request__descriptor, registration), PEG_OK);

    request = (const Pegboard__V1__RegisterRequest *)w.message;
    CHECK_STR(peg__str(request->description), "d");
    CHECK_STR(peg__str(request->name), "");
    CHECK_INT(request->n_tags, 2);
    CHECK_STR(peg__str(request->tags[1]), "b");
    CHECK_INT(request->n_tools, 2);
    CHECK_STR(peg__str(request->tools[0]->name), "t");
    CHECK_STR(peg__strn((const char *)request->tools[0]->input_schema.data,
                        request->tools[0]->input_schema.len),
              "{\"type\":\"object\",\"const\":1.50}");
    CHECK(request->tools[0]->idempotent);
    CHECK_INT(request->tools[0]->timeout_ms, -7);
    CHECK_STR(peg__str(request->tools[1]->name), "");
    CHECK_INT(request->kind, PEGBOARD__V1__TOOLSET_KIND__TOOLSET_KIND_DIRECT);
    world_done(&w);
}

TEST(message_refuses_what_it_has_no_place_for_and_names_it)
{
    static const struct {
        const char *json;
        const char *word;
    } cases[] = {
        {"[]", "object"},
        {"null", "object"},
        {"{\"nam\":\"x\"}", "'nam'"},
        {"{\"name\\u0000\":\"x\"}", "'name'"},
        {"{\"name\":1}", "'name'"},
        {"{\"name\":null}", "'name'"},
        {"{\"name\":\"a\\u0000b\"}", "'name'"},
        {"{\"tags\":\"a\"}", "'tags'"},
        {"{\"tags\":[[]]}", "'tags'"},
        {"{\"kind\":\"round\"}", "'kind'"},
        {"{\"kind\":1}", "'kind'"},
        {"{\"tools\":[1]}", "object"},
        {"{\"tools\":[{\"idempotent\":1}]}", "'idempotent'"},
        {"{\"tools\":[{\"timeout_ms\":1.5}]}", "'timeout_ms'"},
        {"{\"tools\":[{\"timeout_ms\":1e30}]}", "'timeout_ms'"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct world w;

        CHECK_INT(world_read(&w, &pegboard__v1__register_request__descriptor, cases[i].json),
                  PEG_EINVAL);
        CHECK(strstr(w.error.message, cases[i].word) != NULL);
        world_done(&w);
    }
}

TEST(message_refuses_numbers_beyond_their_type)
{
    static const char *const cases[] = {"{\"number\":-1}", "{\"number\":4294967296}"};

    for (size_t i = 0; i < 2; i++) {
        struct world w;

        CHECK_INT(world_read(&w, &pegboard__v1__answer_call_request__descriptor, cases[i]),
                  PEG_EINVAL);
        world_done(&w);
    }
}

/* Some 4 MiB, the longest body, would become a message of more than 200. */
TEST(message_that_takes_too_much_memory_is_refused)
{
    enum { N_TOOLS = 1300000, ROOM = 2 << 20 };
    struct peg__buf json = PEG__BUF(PEG_LIMIT_NET_HTTP_BODY_BYTES);
    struct world w;

    peg__buf_puts(&json, "{\"tools\":[{}");
    for (int i = 1; i < N_TOOLS; i++)
        peg__buf_puts(&json, ",{}");
    peg__buf_puts(&json, "]}");
    CHECK_INT(json.status, PEG_OK);

    CHECK_INT(world_read(&w, &pegboard__v1__register_request__descriptor, json.ptr), PEG_ELIMIT);
    CHECK(strstr(w.error.message, "PEG_LIMIT_GRPC_UNPACKED_BYTES") != NULL);
    CHECK(w.arena.held <= (size_t)PEG_LIMIT_GRPC_UNPACKED_BYTES + ROOM);
    world_done(&w);
    peg__buf_free(&json);
}

/* ---- writing ---- */

TEST(message_is_written_as_it_was_read_with_defaults)
{
    struct world w;

    CHECK_INT(world_read(&w, &pegboard__v1__register_request__descriptor,
                         "{\"tags\":[\"\\\"\"],\"kind\":\"attached\"}"),
              PEG_OK);

    CHECK_STR(world_write(&w, w.message),
              "{\"name\":\"\",\"description\":\"\",\"version\":\"\",\"tags\":[\"\\\"\"],"
              "\"tools\":[],\"kind\":\"attached\"}");
    world_done(&w);
}

TEST(message_has_bytes_in_base_64_and_json_as_json)
{
    struct world w = {.text.max = 1 << 20};
    Pegboard__V1__Content content = PEGBOARD__V1__CONTENT__INIT;
    Pegboard__V1__ServerData data = PEGBOARD__V1__SERVER_DATA__INIT;

    content.part_case = PEGBOARD__V1__CONTENT__PART_BYTES;
    content.bytes = (ProtobufCBinaryData){.len = 3, .data = (uint8_t *)peg__unconst("\0\1\2")};
    CHECK_STR(world_write(&w, &content.base), "{\"bytes\":\"AAEC\"}");
    peg__buf_clear(&w.text);
    data.data = (ProtobufCBinaryData){.len = 9, .data = (uint8_t *)peg__unconst("{\"a\":[1]}")};
    CHECK_STR(world_write(&w, &data.base),
              "{\"kind\":\"\",\"audience\":\"\",\"data\":{\"a\":[1]}}");
    world_done(&w);
}

TEST(message_has_numbers_and_words_of_every_kind)
{
    struct world w = {.text.max = 1 << 20};
    Pegboard__V1__Health health = PEGBOARD__V1__HEALTH__INIT;
    Pegboard__V1__RegistryTotals totals = PEGBOARD__V1__REGISTRY_TOTALS__INIT;

    health.state = PEGBOARD__V1__HEALTH__STATE__STATE_UNHEALTHY;
    health.last_pong_unix_ms = 1794961256267;
    health.providers = UINT32_MAX;
    CHECK_STR(world_write(&w, &health.base),
              "{\"state\":\"unhealthy\",\"last_pong_unix_ms\":1794961256267,"
              "\"providers\":4294967295,\"draining\":0,\"reason\":\"\"}");
    peg__buf_clear(&w.text);
    totals.calls_per_s = 1.5;
    CHECK_STR(world_write(&w, &totals.base),
              "{\"nodes\":0,\"in_flight\":0,\"queued\":0,\"calls_per_s\":1.5}");
    world_done(&w);
}

TORTURE(message_survives_any_allocation_failure)
{
    struct world w;
    peg_status status = world_read(&w, &pegboard__v1__register_request__descriptor, registration);

    if (!status) {
        (void)world_write(&w, w.message);
        status = w.text.status;
    }
    world_done(&w);
    return status;
}

TORTURE(message_of_bytes_survives_any_allocation_failure)
{
    struct world w = {.text.max = 1 << 20};
    Pegboard__V1__Content content = PEGBOARD__V1__CONTENT__INIT;
    peg_status status;

    content.part_case = PEGBOARD__V1__CONTENT__PART_BYTES;
    content.bytes = (ProtobufCBinaryData){.len = 3, .data = (uint8_t *)peg__unconst("abc")};
    (void)world_write(&w, &content.base);
    status = w.text.status;
    world_done(&w);
    return status;
}
