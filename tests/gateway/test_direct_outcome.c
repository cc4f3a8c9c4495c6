/* SPDX-License-Identifier: Apache-2.0 */

/* What a provider writes to a result stream, as the outcome that callers are told. */

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/direct/internal.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"

static struct gw_direct direct;
static struct direct_call call;

static void open_call(void)
{
    direct = (struct gw_direct){.text = PEG__BUF(PEG_LIMIT_PULSE_ENTRY_BYTES),
                                .packed = PEG__BUF(PEG_LIMIT_PULSE_ENTRY_BYTES)};
    call = (struct direct_call){.direct = &direct};
}

static void close_call(void)
{
    call.outcome = peg__blob_unref(call.outcome);
    peg__buf_free(&direct.text);
    peg__buf_free(&direct.packed);
}

static struct calls_outcome read_outcome(void)
{
    struct calls_outcome outcome;

    CHECK(calls_outcome_read(call.outcome, &outcome));
    return outcome;
}

static peg_str field(unsigned number)
{
    return wire_find_bytes(read_outcome().response, number);
}

static peg_str error_field(unsigned number)
{
    return wire_find_bytes(field(PEGBOARD_V1_CALL_TOOL_RESPONSE_ERROR_FIELD), number);
}

TEST(result_is_its_json_with_its_server_data)
{
    const struct pulse_result result = {
        .json = PEG_LIT("{\"sum\":3}"),
        .server_data = PEG_LIT("[{\"kind\":\"a\",\"audience\":\"ops\",\"data\":{\"x\":[1]}},"
                               "{\"kind\":\"b\",\"data\":null}]"),
    };
    peg_str unchecked;
    peg_str rest;
    peg_str item;

    open_call();
    CHECK(direct_outcome_of_result(&call, &result, &unchecked));
    CHECK_INT(unchecked.len, 0);
    CHECK_INT(read_outcome().kind, CALLS_KIND_RESULT);
    CHECK(read_outcome().was_started);
    CHECK_STR(field(PEGBOARD_V1_CALL_TOOL_RESPONSE_RESULT_FIELD), "{\"sum\":3}");
    rest = read_outcome().response;
    CHECK(wire_next_bytes(&rest, PEGBOARD_V1_CALL_TOOL_RESPONSE_SERVER_DATA_FIELD, &item));
    CHECK_STR(wire_find_bytes(item, PEGBOARD_V1_SERVER_DATA_AUDIENCE_FIELD), "ops");
    CHECK_STR(wire_find_bytes(item, PEGBOARD_V1_SERVER_DATA_DATA_FIELD), "{\"x\":[1]}");
    CHECK(wire_next_bytes(&rest, PEGBOARD_V1_CALL_TOOL_RESPONSE_SERVER_DATA_FIELD, &item));
    CHECK_STR(wire_find_bytes(item, PEGBOARD_V1_SERVER_DATA_KIND_FIELD), "b");
    CHECK(!wire_next_bytes(&rest, PEGBOARD_V1_CALL_TOOL_RESPONSE_SERVER_DATA_FIELD, &item));
    close_call();
}

TEST(result_without_json_is_null)
{
    const struct pulse_result result = {.json = PEG_LIT("")};
    peg_str unchecked;

    open_call();
    CHECK(direct_outcome_of_result(&call, &result, &unchecked));
    CHECK_STR(field(PEGBOARD_V1_CALL_TOOL_RESPONSE_RESULT_FIELD), "null");
    close_call();
}

TEST(failure_is_the_tools_own_error)
{
    struct pulse_result result = {
        .is_failure = true, .code = PEG_LIT("too_hard"), .message = PEG_LIT("no")};
    peg_str unchecked;

    open_call();
    CHECK(direct_outcome_of_result(&call, &result, &unchecked));
    CHECK_INT(read_outcome().kind, CALLS_KIND_ERROR);
    CHECK_INT(read_outcome().error, CALLS_OK);
    CHECK_STR(error_field(PEGBOARD_V1_TOOL_ERROR_CODE_FIELD), "too_hard");
    CHECK_STR(error_field(PEGBOARD_V1_TOOL_ERROR_MESSAGE_FIELD), "no");
    result.code.len = 0;
    CHECK(direct_outcome_of_result(&call, &result, &unchecked));
    CHECK_STR(error_field(PEGBOARD_V1_TOOL_ERROR_CODE_FIELD), "execution_failed");
    close_call();
}

TEST(malformed_server_data_voids_the_result)
{
    static const char *const lists[] = {"{}",
                                        "[1]",
                                        "[{\"audience\":\"ops\",\"data\":1}]",
                                        "[{\"kind\":\"a\"}]",
                                        "[{\"kind\":\"a\",\"data\":1}",
                                        "\"a\""};
    peg_str unchecked;

    open_call();
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const struct pulse_result result = {.json = PEG_LIT("1"),
                                            .server_data = peg__str(lists[i])};

        CHECK(direct_outcome_of_result(&call, &result, &unchecked));
        CHECK_INT(read_outcome().kind, CALLS_KIND_ERROR);
        CHECK_STR(error_field(PEGBOARD_V1_TOOL_ERROR_CODE_FIELD), "malformed_result");
    }
    close_call();
}

TEST(result_above_the_limit_is_refused)
{
    struct pulse_result result = {.json = {NULL, PEG_LIMIT_GATEWAY_RESULT_BYTES + 1}};
    char *text = (char *)malloc(result.json.len);
    peg_str unchecked;

    CHECK(text);
    memset(text, ' ', result.json.len);
    result.json.ptr = text;
    open_call();
    CHECK(direct_outcome_of_result(&call, &result, &unchecked));
    CHECK_STR(error_field(PEGBOARD_V1_TOOL_ERROR_CODE_FIELD), "malformed_result");
    close_call();
    free(text);
}

TEST(ids_of_direct_calls_are_told_by_their_beginning)
{
    struct bus_id id = {.len = 16, .bytes = {0xd1, 0x4e, 0xc7, 0x00, 5}};

    CHECK(gw_id_is_direct(&id));
    id.bytes[2] = 0;
    CHECK(!gw_id_is_direct(&id));
}

TORTURE(outcome_survives_any_allocation_failure)
{
    const struct pulse_result result = {
        .json = PEG_LIT("{\"sum\":3}"),
        .server_data = PEG_LIT("[{\"kind\":\"a\",\"audience\":\"ops\",\"data\":{\"x\":[1]}}]"),
    };
    peg_str unchecked;
    bool is_made;

    open_call();
    is_made = direct_outcome_of_result(&call, &result, &unchecked) &&
              direct_outcome_of_error(&call, "code", peg__str("message"));
    close_call();
    return is_made ? PEG_OK : PEG_ENOMEM;
}
