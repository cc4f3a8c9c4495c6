/* SPDX-License-Identifier: Apache-2.0 */

/* Payloads marked "captured" are those of ../shared/data/goa-capture, letter by letter. */

#include "pulse/pulse.h"

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"

/* v0.46.0 at 15.054, 15.055, 12.530; v0.56.2 at 12.521 */
#define CAPTURED_CALL                                                                              \
    "{\"type\":\"call\",\"tool_use_id\":\"3b6dca71-23b7-46e5-bf00-726522dd7600\","                 \
    "\"tool\":\"echo.say\",\"payload\":{\"text\":\"xx..\"},"                                       \
    "\"meta\":{\"run_id\":\"run-1\",\"session_id\":\"session-1\"}}"
#define CAPTURED_RESULT                                                                            \
    "{\"tool_use_id\":\"3b6dca71-23b7-46e5-bf00-726522dd7600\",\"result_json\":{\"text\":\"xx.."   \
    "\"}}"
#define CAPTURED_PING "{\"type\":\"ping\",\"ping_id\":\"02cc4a85-7c2e-4637-ab52-6c12fe65eb3f\"}"
#define CAPTURED_PING_G2                                                                           \
    "{\"type\":\"ping\",\"ping_id\":\"61863a47-4caf-4c23-9037-12470ec91a11/"                       \
    "687d7fa0-5695-4353-8a7b-ba9c8a81da3e\"}"
#define CAPTURED_INIT "{}"

static struct pulse_entry read_entry(const char *event, const char *payload)
{
    struct pulse_entry entry = {0};
    peg_error error;

    CHECK_STATUS(pulse_entry_read(peg_cstr(event), peg_cstr(payload), &entry, &error), PEG_OK,
                 error);
    return entry;
}

/* Reads it, and is what is written then the same text? */
static void check_same(const char *event, const char *payload)
{
    struct pulse_entry entry = read_entry(event, payload);
    struct peg__buf out = PEG__BUF(1 << 20);

    CHECK_STR(peg_cstr(pulse_event_name(entry.event)), event);
    pulse_entry_write(&entry, &out);
    CHECK_STR(peg__buf_view(&out), payload);
    peg__buf_free(&out);
    pulse_entry_free(&entry);
}

static void check_refused(const char *event, const char *payload, const char *part)
{
    struct pulse_entry entry = {.event = PULSE_INIT};
    peg_error error;

    CHECK_INT(pulse_entry_read(peg_cstr(event), peg_cstr(payload), &entry, &error), PEG_EPARSE);
    CHECK_STR(peg_cstr(error.code), "E_PULSE_ENTRY");
    if (!strstr(error.message, part))
        T_FAIL("\"%s\" does not say \"%s\"", error.message, part);
    CHECK_INT(entry.event, PULSE_INIT);
}

/* ---- what was captured ---- */

TEST(a_captured_call_is_read)
{
    struct pulse_entry entry = read_entry("call", CAPTURED_CALL);

    CHECK_INT(entry.event, PULSE_CALL);
    CHECK_STR(entry.call.tool_use_id, "3b6dca71-23b7-46e5-bf00-726522dd7600");
    CHECK_STR(entry.call.tool, "echo.say");
    CHECK_STR(entry.call.payload, "{\"text\":\"xx..\"}");
    CHECK(entry.call.has_meta);
    CHECK_STR(entry.call.run_id, "run-1");
    CHECK_STR(entry.call.session_id, "session-1");
    CHECK_INT(entry.call.turn_id.len + entry.call.traceparent.len, 0);
    CHECK_INT(entry.call.deadline_unix_ms, 0);
    pulse_entry_free(&entry);
}

TEST(a_captured_result_is_read)
{
    struct pulse_entry entry = read_entry("result", CAPTURED_RESULT);

    CHECK_INT(entry.event, PULSE_RESULT);
    CHECK_STR(entry.result.tool_use_id, "3b6dca71-23b7-46e5-bf00-726522dd7600");
    CHECK_STR(entry.result.json, "{\"text\":\"xx..\"}");
    CHECK(!entry.result.is_failure && !entry.result.is_under_g0);
    CHECK_INT(entry.result.server_data.len + entry.result.bounds.len, 0);
    pulse_entry_free(&entry);
}

TEST(captured_pings_are_read)
{
    struct pulse_entry entry = read_entry("ping", CAPTURED_PING);

    CHECK_INT(entry.event, PULSE_PING);
    CHECK_STR(entry.ping.ping_id, "02cc4a85-7c2e-4637-ab52-6c12fe65eb3f");
    pulse_entry_free(&entry);
    entry = read_entry("ping", CAPTURED_PING_G2);
    CHECK_INT(entry.ping.ping_id.len, 73);
    pulse_entry_free(&entry);
}

TEST(what_was_captured_is_written_byte_for_byte)
{
    check_same("call", CAPTURED_CALL);
    check_same("result", CAPTURED_RESULT);
    check_same("ping", CAPTURED_PING);
    check_same("ping", CAPTURED_PING_G2);
    check_same("init", CAPTURED_INIT);
}

/* ---- what spec/gateway.md 3.4 adds ---- */

TEST(a_call_has_all_members_of_meta_and_trace)
{
    check_same("call", "{\"type\":\"call\",\"tool_use_id\":\"a\",\"tool\":\"t\",\"payload\":null,"
                       "\"meta\":{\"run_id\":\"r\",\"session_id\":\"s\",\"turn_id\":\"u\","
                       "\"tool_call_id\":\"c\",\"parent_tool_call_id\":\"p\"},"
                       "\"traceparent\":\"00-1\",\"tracestate\":\"x=1\",\"baggage\":\"y=2\","
                       "\"execution_deadline_unix_ms\":1794873305601}");
}

TEST(a_call_of_g0_has_no_meta_and_an_absent_payload_is_null)
{
    struct pulse_entry entry =
        read_entry("call", "{\"type\":\"call\",\"tool_use_id\":\"a\",\"tool\":\"t\"}");

    CHECK(!entry.call.has_meta);
    CHECK_STR(entry.call.payload, "null");
    pulse_entry_free(&entry);
    check_same("call", "{\"type\":\"call\",\"tool_use_id\":\"a\",\"tool\":\"t\",\"payload\":1}");
}

TEST(a_result_of_g0_has_another_member)
{
    struct pulse_entry entry = read_entry("result", "{\"tool_use_id\":\"a\",\"result\":[1]}");

    CHECK_STR(entry.result.json, "[1]");
    CHECK(entry.result.is_under_g0);
    pulse_entry_free(&entry);
    check_same("result", "{\"tool_use_id\":\"a\",\"result\":[1]}");
}

TEST(a_result_without_a_value_is_null)
{
    struct pulse_entry entry = read_entry("result", "{\"tool_use_id\":\"a\",\"error\":null}");

    CHECK_STR(entry.result.json, "null");
    CHECK(!entry.result.is_failure);
    pulse_entry_free(&entry);
}

TEST(a_result_has_server_data_and_bounds)
{
    check_same("result", "{\"tool_use_id\":\"a\",\"result_json\":{\"x\":0.1},"
                         "\"server_data\":[{\"kind\":\"k\",\"audience\":\"timeline\",\"data\":{}}],"
                         "\"bounds\":{\"Returned\":1,\"Truncated\":false}}");
}

TEST(a_failure_has_code_message_and_issues)
{
    struct pulse_entry entry =
        read_entry("result", "{\"tool_use_id\":\"a\",\"error\":{\"code\":\"invalid_arguments\","
                             "\"message\":\"no x\",\"issues\":[{\"Field\":\"x\"}]}}");

    CHECK(entry.result.is_failure);
    CHECK_STR(entry.result.code, "invalid_arguments");
    CHECK_STR(entry.result.message, "no x");
    CHECK_STR(entry.result.issues, "[{\"Field\":\"x\"}]");
    CHECK_INT(entry.result.json.len, 0);
    pulse_entry_free(&entry);
    check_same("result", "{\"tool_use_id\":\"a\",\"error\":{\"code\":\"c\",\"message\":\"m\","
                         "\"issues\":[1]}}");
}

TEST(a_delta_names_its_stream)
{
    struct pulse_entry entry = read_entry(
        "output_delta", "{\"tool_use_id\":\"a\",\"stream\":\"stdout\",\"delta\":\"one\\n\"}");

    CHECK_INT(entry.event, PULSE_DELTA);
    CHECK_STR(entry.delta.tool_use_id, "a");
    CHECK_STR(entry.delta.stream, "stdout");
    CHECK_STR(entry.delta.delta, "one\n");
    pulse_entry_free(&entry);
    check_same("output_delta", "{\"tool_use_id\":\"a\",\"stream\":\"s\",\"delta\":\"x\\ny\"}");
}

TEST(escapes_of_go_and_blanks_are_only_another_spelling)
{
    struct pulse_entry entry = read_entry(
        "result", "{ \"tool_use_id\": \"a\", \"result_json\": { \"x\": \"\\u003cb\\u003e\" } }");

    CHECK_STR(entry.result.json, "{\"x\":\"<b>\"}");
    pulse_entry_free(&entry);
}

TEST(members_of_later_versions_are_ignored)
{
    struct pulse_entry entry = read_entry(
        "result", "{\"registration_token\":\"t\",\"tool_use_id\":\"a\",\"result_json\":1,"
                  "\"retry\":{\"reason\":\"x\"}}");

    CHECK_STR(entry.result.json, "1");
    pulse_entry_free(&entry);
}

TEST(an_event_of_a_later_version_is_unknown_and_not_parsed)
{
    struct pulse_entry entry = read_entry("claim", "{");

    CHECK_INT(entry.event, PULSE_UNKNOWN);
    CHECK_STR(peg_cstr(pulse_event_name(entry.event)), "");
    pulse_entry_free(&entry);
}

/* ---- what is refused ---- */

TEST(malformed_entries_are_refused)
{
    check_refused("call", "", "cannot be read");
    check_refused("call", "{\"tool_use_id\":", "cannot be read");
    check_refused("call", "[]", "'p' of an entry 'call' is no object");
    check_refused("ping", "{}", "'ping_id' of an entry 'ping' is no id");
    check_refused("result", "{\"tool_use_id\":\"a\",\"tool_use_id\":\"b\"}", "cannot be read");
    check_refused("result", "{\"tool_use_id\":\"a\",\"error\":\"x\"}", "'error'");
    check_refused("call", "{\"tool_use_id\":\"a\",\"tool\":\"t\",\"meta\":[]}", "'meta'");
    check_refused("call", "{\"tool_use_id\":\"a\",\"tool\":\"t\",\"meta\":{\"run_id\":1}}",
                  "'run_id' of an entry 'call' is no string");
    check_refused("call", "{\"tool_use_id\":\"a\"}", "'tool' of an entry 'call' is no name");
    check_refused("output_delta", "{\"tool_use_id\":\"a\",\"delta\":1}", "'delta'");
}

TEST(an_id_that_makes_no_stream_is_refused)
{
    check_refused("result", "{\"result_json\":1}", "'tool_use_id'");
    check_refused("result", "{\"tool_use_id\":\"\"}", "'tool_use_id'");
    check_refused("result", "{\"tool_use_id\":\"a b\"}", "'tool_use_id'");
    check_refused("result", "{\"tool_use_id\":\"a\\u0000\"}", "'tool_use_id'");
    check_refused("result", "{\"tool_use_id\":\"a\\u001b\"}", "'tool_use_id'");
    check_refused("call", "{\"tool_use_id\":\"a*\",\"tool\":\"t\"}", "'tool_use_id'");
}

TEST(an_id_of_more_than_256_bytes_is_refused)
{
    char payload[400];
    char id[258];
    struct pulse_entry entry;

    memset(id, 'x', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    snprintf(payload, sizeof(payload), "{\"tool_use_id\":\"%s\"}", id);
    check_refused("result", payload, "'tool_use_id'");
    snprintf(payload, sizeof(payload), "{\"tool_use_id\":\"%s\"}", id + 1);
    entry = read_entry("result", payload);
    CHECK_INT(entry.result.tool_use_id.len, 256);
    pulse_entry_free(&entry);
}

TEST(a_request_of_another_type_than_its_name_is_refused)
{
    check_refused("ping", CAPTURED_CALL, "'type' of an entry 'ping' is another event");
    check_refused("call", CAPTURED_PING, "'type'");
}

TEST(an_entry_beyond_its_limit_is_refused_unread)
{
    struct pulse_entry entry;
    peg_error error;

    CHECK_INT(pulse_entry_read(peg_cstr("result"),
                               (peg_str){"", (size_t)PEG_LIMIT_PULSE_ENTRY_BYTES + 1}, &entry,
                               &error),
              PEG_ELIMIT);
    CHECK_STR(peg_cstr(error.code), "E_PULSE_ENTRY");
}

/* ---- without memory ---- */

static peg_status read_and_write(const char *event, const char *payload)
{
    struct pulse_entry entry = {0};
    struct peg__buf out = PEG__BUF(1 << 20);
    peg_error error;
    peg_status status = pulse_entry_read(peg_cstr(event), peg_cstr(payload), &entry, &error);

    if (status)
        return status;
    pulse_entry_write(&entry, &out);
    status = out.status;
    peg__buf_free(&out);
    pulse_entry_free(&entry);
    return status;
}

TORTURE(calls_survive_any_allocation_failure)
{
    return read_and_write("call", CAPTURED_CALL);
}

TORTURE(results_survive_any_allocation_failure)
{
    return read_and_write("result", "{\"tool_use_id\":\"a\",\"server_data\":[{}],\"bounds\":{},"
                                    "\"error\":{\"code\":\"c\",\"message\":\"m\",\"issues\":[]}}");
}
