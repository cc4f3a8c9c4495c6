/* SPDX-License-Identifier: Apache-2.0 */

#include "pegboard/tool_config.h"

#include "../t.h"
#include "base/text/str.h"
#include "pegboard/cleanup.h"
#include "pegboard/yaml.h"

#define TURN PEG_CLEANUP(peg_turn_freep) peg_turn *
#define DOC PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *

static peg_turn *with_config(const char *id, const char *yaml)
{
    const peg_key raw = {.bag = PEG_BAG_DATA, .id = id};
    peg_turn *turn = NULL;
    DOC doc = NULL;

    CHECK_INT(peg_turn_new(&turn, NULL), PEG_OK);
    CHECK_INT(peg_yaml_parse(peg_cstr(yaml), NULL, &doc, NULL), PEG_OK);
    CHECK_INT(peg_turn_set(turn, &raw, peg_json_root(doc), NULL), PEG_OK);
    return turn;
}

/* ---- reading ---------------------------------------------------------------------- */

/* G14 */
TEST(settings_from_yaml_read_as_values)
{
    TURN turn = with_config("geppetto.tool_config@v1",
                            "enabled: false\n"
                            "tool_choice: required\n"
                            "max_iterations: 7\n"
                            "execution_timeout: 2s\n"
                            "max_parallel_tools: 3\n"
                            "tool_error_handling: retry\n"
                            "retry_config: {max_retries: 5, backoff_base: 100ms, "
                            "backoff_factor: 1.5}\n"
                            "allowed_tools: [a]\n");
    peg_tool_config config;
    bool is_there = false;

    CHECK_INT(peg_turn_tool_config(turn, &config, &is_there, NULL), PEG_OK);
    CHECK(is_there);
    CHECK(!config.is_enabled);
    CHECK_INT(config.choice, PEG_CHOICE_REQUIRED);
    CHECK_INT(config.settings.max_iterations, 7);
    CHECK_INT(config.settings.timeout_ms, 2000);
    CHECK_INT(config.settings.max_parallel, 3);
    CHECK_INT(config.errors, PEG_ERRORS_RETRY);
    CHECK_INT(config.settings.max_retries, 5);
    CHECK_INT(config.settings.retry_delay_ms, 100);
    CHECK(config.settings.retry_factor == 1.5);
}

/* G96 */
TEST(a_turn_without_settings_has_the_defaults)
{
    TURN turn = NULL;
    TURN zero = with_config("pegboard.tool_config@v1", "{max_iterations: 0, execution_timeout: 0}");
    peg_tool_config config;
    bool is_there = true;

    CHECK_INT(peg_turn_new(&turn, NULL), PEG_OK);
    CHECK_INT(peg_turn_tool_config(turn, &config, &is_there, NULL), PEG_OK);
    CHECK(!is_there);
    CHECK(config.is_enabled);
    CHECK_INT(config.choice, PEG_CHOICE_AUTO);
    CHECK_INT(config.settings.max_iterations, 20);
    CHECK_INT(config.settings.timeout_ms, 30000);
    CHECK_INT(config.errors, PEG_ERRORS_CONTINUE);
    CHECK_INT(config.settings.max_retries, 2);

    CHECK_INT(peg_turn_tool_config(zero, &config, NULL, NULL), PEG_OK);
    CHECK_INT(config.settings.max_iterations, 20);
    CHECK_INT(config.settings.timeout_ms, 30000);
}

/* G35 */
TEST(durations_are_text_nanoseconds_or_null)
{
    static const struct {
        const char *yaml;
        int64_t ms;
    } cases[] = {
        {"{execution_timeout: 1m30s}", 90000}, {"{execution_timeout: 30000000000}", 30000},
        {"{execution_timeout: 1.5e9}", 1500},  {"{execution_timeout: null}", 30000},
        {"{execution_timeout: 100ms}", 100},   {"{execution_timeout: 1500us}", 2},
    };
    peg_tool_config config;
    peg_error error;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        TURN turn = with_config("pegboard.tool_config@v1", cases[i].yaml);

        CHECK_INT(peg_turn_tool_config(turn, &config, NULL, NULL), PEG_OK);
        CHECK_INT(config.settings.timeout_ms, cases[i].ms);
    }
    {
        TURN turn = with_config("pegboard.tool_config@v1", "{execution_timeout: abc}");

        CHECK_INT(peg_turn_tool_config(turn, &config, NULL, &error), PEG_ESCHEMA);
        CHECK_STR(peg__str(error.code), "E_TOOL_CONFIG");
        CHECK_STR(peg__str(error.where), "/execution_timeout");
        CHECK(strstr(error.message, "execution_timeout"));
    }
}

TEST(settings_that_cannot_be_are_refused_with_their_place)
{
    static const char *const bad[][2] = {
        {"{enabled: 1}", "/enabled"},
        {"{tool_choice: any}", "/tool_choice"},
        {"{tool_choice: 3}", "/tool_choice"},
        {"{max_iterations: many}", "/max_iterations"},
        {"{max_iterations: 99999999999}", "/max_iterations"},
        {"{max_parallel_tools: 1.5}", "/max_parallel_tools"},
        {"{tool_error_handling: panic}", "/tool_error_handling"},
        {"{execution_timeout: []}", "/execution_timeout"},
        {"{execution_timeout: 1e30}", "/execution_timeout"},
        {"{retry_config: 3}", "/retry_config"},
        {"{retry_config: {backoff_base: x}}", "/retry_config/backoff_base"},
        {"{retry_config: {backoff_factor: x}}", "/retry_config/backoff_factor"},
        {"{retry_config: {max_retries: x}}", "/retry_config/max_retries"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        TURN turn = with_config("pegboard.tool_config@v1", bad[i][0]);
        peg_tool_config config;
        peg_error error;

        CHECK_INT(peg_turn_tool_config(turn, &config, NULL, &error), PEG_ESCHEMA);
        CHECK_STR(peg__str(error.where), bad[i][1]);
    }
}

/* ---- writing ---------------------------------------------------------------------- */

TEST(settings_are_written_and_read_back_and_unknown_members_stay)
{
    TURN turn = with_config("geppetto.tool_config@v1", "{allowed_tools: [a], max_iterations: 3}");
    peg_tool_config config = peg_tool_config_default();
    peg_tool_config read;
    const peg_json *value;

    config.choice = PEG_CHOICE_NONE;
    config.errors = PEG_ERRORS_ABORT;
    config.settings.max_iterations = 11;
    config.settings.timeout_ms = 1500;
    config.settings.retry_factor = 1.25;
    CHECK_INT(peg_turn_set_tool_config(turn, &config, NULL), PEG_OK);
    CHECK_INT(peg_turn_tool_config(turn, &read, NULL, NULL), PEG_OK);

    CHECK_INT(read.choice, PEG_CHOICE_NONE);
    CHECK_INT(read.errors, PEG_ERRORS_ABORT);
    CHECK_INT(read.settings.max_iterations, 11);
    CHECK_INT(read.settings.timeout_ms, 1500);
    CHECK(read.settings.retry_factor == 1.25);
    CHECK_INT(peg_turn_get(turn, &peg_key_tool_config, &value, NULL), PEG_OK);
    CHECK(peg_json_get(value, "allowed_tools"));
    CHECK_INT(peg_bag_len(peg_turn_data(turn)), 1);
    CHECK(peg_bag_find(peg_turn_data(turn), peg_cstr("pegboard.tool_config@v1")));
}

TEST(settings_that_cannot_be_are_not_written)
{
    TURN turn = NULL;
    peg_tool_config config = peg_tool_config_default();

    CHECK_INT(peg_turn_new(&turn, NULL), PEG_OK);
    config.settings.retry_factor = -1;
    CHECK_INT(peg_turn_set_tool_config(turn, &config, NULL), PEG_EINVAL);
    config = peg_tool_config_default();
    config.settings.timeout_ms = -1;
    CHECK_INT(peg_turn_set_tool_config(turn, &config, NULL), PEG_EINVAL);
    config = peg_tool_config_default();
    config.choice = (peg_tool_choice)9;
    CHECK_INT(peg_turn_set_tool_config(turn, &config, NULL), PEG_EINVAL);
    CHECK_INT(peg_bag_len(peg_turn_data(turn)), 0);
}

/* ---- durations -------------------------------------------------------------------- */

TEST(durations_are_read_as_go_writes_them)
{
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"0", 0},
        {"0s", 0},
        {"30s", 30000000000},
        {"1m30s", 90000000000},
        {"1h2m3.5s", 3723500000000},
        {"100ms", 100000000},
        {"-1.5us", -1500},
        {"2\xC2\xB5s", 2000},
        {"2\xCE\xBCs", 2000},
        {"+5ns", 5},
        {".5s", 500000000},
        {"1.s", 1000000000},
        {"1s1s", 2000000000},
    };
    static const char *const bad[] = {"",    "s",   "1",   "1x",        "-",    ".s", "1 s",
                                      "abc", "1s ", "1s2", "99999999h", "--1s", NULL};
    int64_t ns;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_INT(peg_duration_parse(peg_cstr(cases[i].text), &ns, NULL), PEG_OK);
        CHECK_INT(ns, cases[i].ns);
    }
    for (size_t i = 0; bad[i]; i++) {
        peg_error error;

        CHECK_INT(peg_duration_parse(peg_cstr(bad[i]), &ns, &error), PEG_EPARSE);
        CHECK_STR(peg__str(error.code), "E_DURATION");
    }
}

TEST(durations_are_written_so_that_they_read_back)
{
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        {0, "0s"},
        {1, "1ns"},
        {1500, "1.5us"},
        {100000000, "100ms"},
        {30000000000, "30s"},
        {90000000000, "1m30s"},
        {3723500000000, "1h2m3.5s"},
        {3600000000000, "1h0m0s"},
        {-2000000000, "-2s"},
        {1000000001, "1.000000001s"},
        {INT64_MAX, "2562047h47m16.854775807s"},
    };
    char text[PEG_DURATION_TEXT];
    int64_t ns;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        peg_duration_text(cases[i].ns, text);
        CHECK_STR(peg__str(text), cases[i].text);
        CHECK_INT(peg_duration_parse(peg_cstr(text), &ns, NULL), PEG_OK);
        CHECK_INT(ns, cases[i].ns);
    }
    peg_duration_text(INT64_MIN, text);
    CHECK_STR(peg__str(text), "-2562047h47m16.854775808s");
}

TORTURE(settings_survive_any_allocation_failure)
{
    const peg_tool_config config = peg_tool_config_default();
    peg_tool_config read;
    peg_turn *turn = NULL;
    peg_status status = peg_turn_new(&turn, NULL);

    if (!status)
        status = peg_turn_set_tool_config(turn, &config, NULL);
    if (!status)
        status = peg_turn_tool_config(turn, &read, NULL, NULL);
    peg_turn_free(turn);
    return status;
}
