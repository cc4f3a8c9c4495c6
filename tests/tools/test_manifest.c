/* SPDX-License-Identifier: Apache-2.0 */

#include "pegboard/manifest.h"

#include "t.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "child.h"
#include "pegboard/record.h"
#include "pegboard/run.h"
#include "tools/tools.h"

/* ---- fixture: one tool, and what its call answers ------------------------------------------- */

#define HEAD "toolset: t\ntools:\n- name: run\n  description: runs\n"
#define ANY "  input_schema: {type: object, additionalProperties: true}\n"

static peg_manifest *parse(const char *text)
{
    peg_manifest *manifest = NULL;
    peg_error error;

    CHECK_STATUS(peg_manifest_parse(peg__str(text), NULL, &manifest, &error), PEG_OK, error);
    return manifest;
}

static peg_record *call(peg_manifest *manifest, const char *args)
{
    peg_record *record = NULL;
    peg_error error;

    CHECK_STATUS(peg_registry_call(peg_manifest_registry(manifest), "run", args, &record, &error),
                 PEG_OK, error);
    CHECK(has_no_children());
    return record;
}

/* What the tool `run` of a manifest answers; the cause if it fails. */
static void check_answer(const char *text, const char *args, const char *expected)
{
    peg_manifest *manifest = parse(text);
    peg_record *record = call(manifest, args);
    peg_str answer;

    if (peg_record_is_error(record)) {
        CHECK_STR(peg__str(peg_record_cause(record)), expected);
    } else {
        CHECK_INT(peg_record_answer(record, &answer, NULL), PEG_OK);
        CHECK_STR(answer, expected);
    }
    peg_record_unref(record);
    peg_manifest_free(manifest);
}

static void check_refused(const char *text, const char *where, unsigned line, unsigned column,
                          const char *words)
{
    peg_manifest *manifest = NULL;
    peg_error error = {.message = ""};

    CHECK_INT(peg_manifest_parse(peg__str(text), NULL, &manifest, &error), PEG_EPARSE);
    CHECK_STR(peg__str(error.where), where);
    if (!strstr(error.message, words))
        T_FAIL("'%s' does not say '%s'", error.message, words);
    if (error.message[0] == '/')
        T_FAIL("'%s' says the place again", error.message);
    if (error.line != line || error.column != column)
        T_FAIL("%s: at %u:%u, expected %u:%u", error.message, error.line, error.column, line,
               column);
}

/* ---- what it says --------------------------------------------------------------------------- */

TEST(manifest_describes_a_toolset_and_its_tools)
{
    peg_manifest *manifest = parse("toolset: files\n"
                                   "description: Looks at files\n"
                                   "version: 1.0.0\n"
                                   "tags: [local, sample]\n"
                                   "tools:\n"
                                   "- name: count\n"
                                   "  description: Counts lines.\n"
                                   "  input_schema:\n"
                                   "    type: object\n"
                                   "    properties: {path: {type: string}}\n"
                                   "    required: [path]\n"
                                   "  output_schema: {type: integer}\n"
                                   "  command: [wc, -l]\n"
                                   "  timeout: 1m30s\n"
                                   "  idempotent: true\n"
                                   "  tags: [text]\n"
                                   "- name: now\n"
                                   "  description: The time.\n"
                                   "  command: [date]\n"
                                   "  timeout: 250ms\n");
    peg_tool *count = peg_registry_get(peg_manifest_registry(manifest), peg__str("count"));
    peg_tool *now = peg_registry_get(peg_manifest_registry(manifest), peg__str("now"));

    CHECK_STR(peg__str(peg_manifest_toolset(manifest)), "files");
    CHECK_STR(peg__str(peg_manifest_description(manifest)), "Looks at files");
    CHECK_STR(peg__str(peg_manifest_version(manifest)), "1.0.0");
    CHECK_STR(peg__str(peg_manifest_tags(manifest)[1]), "sample");
    CHECK(!peg_manifest_tags(manifest)[2]);
    CHECK_INT(peg_registry_len(peg_manifest_registry(manifest)), 2);
    CHECK_INT(peg_tool_timeout_ms(count), 90000);
    CHECK(peg_tool_is_idempotent(count));
    CHECK(peg_tool_output_schema(count));
    CHECK_STR(peg__str(peg_tool_tags(count)[0]), "text");
    CHECK_INT(peg_tool_timeout_ms(now), 250);
    CHECK(!peg_tool_is_idempotent(now));
    peg_tool_unref(count);
    peg_tool_unref(now);
    peg_manifest_free(manifest);
}

TEST(manifest_names_an_mcp_server)
{
    peg_manifest *manifest = parse("toolset: t\n"
                                   "mcp:\n"
                                   "  command: [server, --flag]\n"
                                   "  env: [A=1, PEG_NO_SUCH_VARIABLE]\n"
                                   "  timeout: 3s\n"
                                   "  tools: {include: ['a*'], exclude: [ab]}\n");
    const struct peg__manifest_mcp *mcp = peg__manifest_mcp(manifest);

    CHECK_INT(peg_registry_len(peg_manifest_registry(manifest)), 0);
    CHECK_STR(peg__str(mcp->command[1]), "--flag");
    CHECK(!mcp->command[2]);
    CHECK_STR(peg__str(mcp->env[0]), "A=1");
    CHECK(!mcp->env[1]);
    CHECK_STR(peg__str(mcp->include[0]), "a*");
    CHECK_STR(peg__str(mcp->exclude[0]), "ab");
    CHECK_INT(mcp->timeout_ms, 3000);
    peg_manifest_free(manifest);
    manifest = parse("toolset: t\ntools:\n- {name: n, description: d, command: [x]}\n");
    CHECK(!peg__manifest_mcp(manifest));
    peg_manifest_free(manifest);
}

TEST(manifest_refuses_an_mcp_server_that_cannot_be)
{
    check_refused("toolset: t\nmcp: {command: [x], tool: {}}\n", "/mcp/tool", 2, 21, "tool");
    check_refused("toolset: t\nmcp: {command: [x], timeout: 3}\n", "/mcp/timeout", 2, 30, "unit");
    check_refused("toolset: t\nmcp: {command: []}\n", "/mcp/command", 2, 16, "");
    check_refused("toolset: t\n", "", 1, 1, "'tools' is missing");
}

TEST(manifest_may_be_json)
{
    check_answer("{\"toolset\":\"t\",\"tools\":[{\"name\":\"run\",\"description\":\"d\","
                 "\"command\":[\"echo\",\"hi\"]}]}",
                 "{}", "hi\n");
}

/* ---- how commands run ------------------------------------------------------------------------ */

TEST(command_of_a_manifest_gets_its_arguments_on_standard_input_without_a_shell)
{
    check_answer(HEAD ANY "  command: [cat]\n  output: text\n", "{\"a\":\"$HOME\"}",
                 "{\"a\":\"$HOME\"}\n");
    check_answer(HEAD ANY "  command: [echo, $HOME, '*']\n", "{}", "$HOME *\n");
}

TEST(command_of_a_manifest_runs_in_a_shell_if_asked)
{
    check_answer(HEAD ANY "  shell: true\n  command: read -r x && echo \"$x\" | tr a-z A-Z\n",
                 "{\"a\":1}", "{\"A\":1}");
}

TEST(command_of_a_manifest_answers_json_or_text)
{
    check_answer(HEAD "  command: [echo, '{\"a\": 1}']\n", "{}", "{\"a\":1}");
    check_answer(HEAD "  command: [echo, '[1, 2]']\n", "{}", "[1,2]");
    check_answer(HEAD "  command: [echo, '{broken']\n", "{}", "{broken\n");
    check_answer(HEAD "  command: [echo, '42']\n", "{}", "42\n");
    check_answer(HEAD "  command: [echo, '42']\n  output: json\n", "{}", "42");
    check_answer(HEAD "  command: [echo, 'x']\n  output: json\n", "{}", "E_COMMAND_OUTPUT");
    check_answer(HEAD "  command: [echo, '[ 1 ]']\n  output: text\n", "{}", "[ 1 ]\n");
    check_answer(HEAD "  command: [echo, '42']\n  output_schema: {type: integer}\n", "{}", "42");
}

TEST(command_of_a_manifest_gets_the_variables_it_names)
{
    setenv("PEG_TEST_PASSED", "through", 1);
    setenv("PEG_TEST_KEPT", "secret", 1);
    check_answer(HEAD "  env: [PEG_TEST_PASSED, OWN=a=b, PEG_TEST_UNSET]\n"
                      "  shell: true\n"
                      "  command: echo $PEG_TEST_PASSED $OWN $PEG_TEST_KEPT ${PEG_TEST_UNSET-no}\n",
                 "{}", "through a=b no\n");
    unsetenv("PEG_TEST_PASSED");
    unsetenv("PEG_TEST_KEPT");
}

TEST(command_of_a_manifest_has_as_much_memory_as_it_says)
{
    check_answer(HEAD "  shell: true\n  command: ulimit -v\n  max_memory: 64MiB\n", "{}",
                 "65536\n");
    check_answer(HEAD "  command: [sh, -c, 'ulimit -v; echo \"$1\"', x, \"a  b'c\"]\n"
                      "  max_memory: 64 MiB\n",
                 "{}", "65536\na  b'c\n");
    check_answer(HEAD "  command: [python3, -c, 'bytearray(1 << 28)']\n  max_memory: 128M\n", "{}",
                 "E_COMMAND_EXIT");
    check_answer(HEAD "  command: [no-such-program]\n  max_memory: 64MiB\n", "{}",
                 "E_COMMAND_SPAWN");
}

TEST(command_of_a_manifest_writes_as_much_as_it_says)
{
    check_answer(HEAD "  command: [echo, '12345']\n  max_output: 5\n", "{}", "E_COMMAND_OUTPUT");
    check_answer(HEAD "  command: [echo, '12345']\n  max_output: 6B\n", "{}", "12345\n");
}

TEST(commands_of_a_manifest_run_in_its_folder)
{
    char folder[] = "/tmp/pegboard-manifest-XXXXXX";
    char path[64];
    char expected[80];
    peg_manifest *manifest = NULL;
    peg_record *record;
    peg_str answer;
    peg_error error;
    FILE *file;

    CHECK(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/m.yaml", folder);
    file = fopen(path, "w");
    CHECK(file);
    fputs(HEAD "  command: [pwd]\n", file);
    fclose(file);
    CHECK_STATUS(peg_manifest_read(path, &manifest, &error), PEG_OK, error);
    record = call(manifest, "{}");
    CHECK_INT(peg_record_answer(record, &answer, NULL), PEG_OK);
    snprintf(expected, sizeof(expected), "%s\n", folder);
    CHECK_STR(answer, expected);
    peg_record_unref(record);
    peg_manifest_free(manifest);
    unlink(path);
    rmdir(folder);
    check_answer(HEAD "  command: [pwd]\n  directory: /\n", "{}", "/\n");
}

/* ---- what it refuses --------------------------------------------------------------------------
 */

TEST(manifest_says_which_key_was_meant_and_where)
{
    check_refused("toolset: t\nversoin: 1.0.0\ntools: []\n", "/versoin", 2, 1,
                  "did you mean 'version'");
    check_refused("toolset: t\ndescription: d\ntolls:\n  - name: x\n", "/tolls", 3, 1,
                  "did you mean 'tools'");
    check_refused(HEAD "  comand: [x]\n", "/tools/0/comand", 5, 3, "did you mean 'command'");
    check_refused(HEAD "  command: [y]\n  timeout_ms: 3\n", "/tools/0/timeout_ms", 6, 3, "timeout");
}

TEST(manifest_refuses_what_is_missing_or_wrong)
{
    check_refused("tools: [{name: n, description: d, command: [x]}]\n", "", 1, 1, "toolset");
    check_refused("toolset: t\ntools: []\n", "/tools", 2, 8, "at least 1");
    check_refused("toolset: a b\ntools: [{name: n, description: d, command: [x]}]\n", "/toolset", 1,
                  10, "");
    check_refused(HEAD, "/tools/0", 3, 3, "command");
    check_refused(HEAD "  command: x\n", "/tools/0/command", 5, 12, "shell: true");
    check_refused(HEAD "  command: [x]\n  shell: true\n", "/tools/0/command", 5, 12, "one text");
    check_refused(HEAD "\tcommand: [x]\n", "", 5, 1, "a tab cannot stand here");
    check_refused(HEAD "  command: ['']\n", "/tools/0/command", 5, 12, "no program");
    check_refused(HEAD "  command: [x]\n  timeout: soon\n", "/tools/0/timeout", 6, 12, "30s");
    check_refused(HEAD "  command: [x]\n  timeout: 0\n", "/tools/0/timeout", 6, 12, "1ms");
    check_refused(HEAD "  command: [x]\n  timeout: 3\n", "/tools/0/timeout", 6, 12,
                  "write 3s (which is 3000ms) or 3ms");
    check_refused(HEAD "  command: [x]\n  timeout: '3'\n", "/tools/0/timeout", 6, 12, "30s");
    check_refused(HEAD "  command: [x]\n  grace: 2\n", "/tools/0/grace", 6, 10, "2s");
    check_refused(HEAD "  command: [x]\n  timeout: 1.5\n", "/tools/0/timeout", 6, 12, "");
    check_refused(HEAD "  command: [x]\n  timeout: -1s\n", "/tools/0/timeout", 6, 12, "1ms");
    check_refused(HEAD "  command: [x]\n  max_memory: lots\n", "/tools/0/max_memory", 6, 15,
                  "write 1MiB");
    check_refused(HEAD "  command: [x]\n  max_memory: 5\n", "/tools/0/max_memory", 6, 15, "1 MiB");
    check_refused(HEAD "  command: [x]\n  max_output: 1GiB\n", "/tools/0/max_output", 6, 15,
                  "8MiB");
    check_refused(HEAD "  command: [x]\n  max_output: 8388609\n", "/tools/0/max_output", 6, 15,
                  "8MiB");
    check_refused(HEAD "  command: [x]\n  max_output: 99999999999999999999GiB\n",
                  "/tools/0/max_output", 6, 15, "8MiB");
    check_refused(HEAD "  command: [x]\n  env: ['1=2']\n", "/tools/0/env/0", 6, 9, "");
    check_refused(HEAD "  command: [x]\n  output: xml\n", "/tools/0/output", 6, 11, "auto");
    check_refused(HEAD "  command: [\"a\\0b\"]\n", "/tools/0/command/0", 5, 13, "NUL");
    check_refused("toolset: t\ndescription: \"\\0\"\n"
                  "tools: [{name: n, description: d, command: [x]}]\n",
                  "/description", 2, 14, "NUL");
}

TEST(manifest_refuses_a_schema_that_does_not_compile_at_its_place)
{
    check_refused(HEAD "  command: [x]\n"
                       "  input_schema:\n"
                       "    type: object\n"
                       "    properties:\n"
                       "      a: {type: strin}\n",
                  "/tools/0/input_schema/properties/a/type", 9, 17, "");
    check_refused(HEAD "  command: [x]\n  input_schema: {type: string}\n",
                  "/tools/0/input_schema/type", 6, 24, "object");
    check_refused(HEAD "  command: [x]\n"
                       "  input_schema: {type: object, properties: {'a: ': {type: odd}}}\n",
                  "/tools/0/input_schema/properties/a: /type", 6, 59, "'type' must be one of");
}

TEST(manifest_refuses_two_tools_of_one_name)
{
    check_refused(HEAD "  command: [x]\n- name: run\n  description: again\n  command: [y]\n",
                  "/tools/1/name", 6, 9, "another");
}

TEST(manifest_refuses_yaml_that_is_none_and_keys_that_come_twice)
{
    peg_manifest *manifest = NULL;
    peg_error error;

    CHECK_INT(peg_manifest_parse(peg__str("a: [\n"), NULL, &manifest, &error), PEG_EPARSE);
    CHECK_STR(peg__str(error.code), "E_YAML_SYNTAX");
    CHECK_INT(peg_manifest_parse(peg__str("toolset: a\ntoolset: b\n"), NULL, &manifest, &error),
              PEG_EPARSE);
    CHECK_STR(peg__str(error.code), "E_JSON_DUPLICATE_KEY");
    CHECK_INT(error.line, 2);
    CHECK_INT(peg_manifest_read("/nowhere/m.yaml", &manifest, &error), PEG_EIO);
    CHECK_INT(peg_manifest_read("/", &manifest, &error), PEG_EIO);
}

TEST(manifest_has_a_largest_size)
{
    char *text = malloc(PEG_LIMIT_MANIFEST_BYTES + 2);
    peg_manifest *manifest = NULL;
    peg_error error;

    memset(text, '#', PEG_LIMIT_MANIFEST_BYTES + 1);
    CHECK_INT(
        peg_manifest_parse(peg__strn(text, PEG_LIMIT_MANIFEST_BYTES + 1), NULL, &manifest, &error),
        PEG_ELIMIT);
    free(text);
}

/* ---- what would keep it from running ----------------------------------------------------------
 */

struct told {
    char text[1024];
    peg_status status;
};

static void write_down(const char *tool, const char *words, void *user)
{
    struct told *told = user;
    const size_t len = strlen(told->text);

    snprintf(told->text + len, sizeof(told->text) - len, "%s: %s\n", tool, words);
}

static void check_reported(const char *text, const char *expected)
{
    peg_manifest *manifest = parse(text);
    struct told told = {.text = ""};
    peg_error error;

    CHECK_STATUS(peg_manifest_inspect(manifest, write_down, &told, &error), PEG_OK, error);
    if (!*expected)
        CHECK_STR(peg__str(told.text), "");
    if (!strstr(told.text, expected))
        T_FAIL("'%s' does not say '%s'", told.text, expected);
    peg_manifest_free(manifest);
}

TEST(manifest_is_inspected_for_what_its_commands_need)
{
    unsetenv("PEG_TEST_UNSET");
    check_reported(HEAD "  command: [sh]\n  env: [PATH, A=b]\n  directory: /\n", "");
    check_reported(HEAD "  shell: true\n  command: anything at all\n", "");
    check_reported(HEAD "  command: [peg-no-such-program]\n",
                   "run: the command 'peg-no-such-program' "
                   "could not be started: it was not found");
    check_reported(HEAD "  command: [./nope.sh]\n", "no such file");
    check_reported(HEAD "  command: [/etc/passwd]\n", "may not be executed");
    check_reported(HEAD "  command: [sh]\n  env: [PATH=/nowhere]\n", "it was not found");
    check_reported(HEAD "  command: [sh]\n  directory: /nope\n", "'/nope', which is no directory");
    check_reported(HEAD "  command: [sh]\n  env: [PEG_TEST_UNSET]\n",
                   "run: the variable 'PEG_TEST_UNSET' of env is not set here");
}

TEST(manifest_is_inspected_for_slips_in_schemas)
{
    check_reported(
        HEAD "  command: [sh]\n  output_schema: {type: object, requird: [a]}\n",
        "run: its schema has no keyword /requird, which is ignored; did you mean 'required'?");
}

TORTURE(manifest_survives_any_allocation_failure)
{
    peg_manifest *manifest = NULL;
    const peg_status status =
        peg_manifest_parse(peg__str(HEAD ANY "  command: [cat, x]\n"
                                             "  env: [PATH, A=b, PEG_TEST_UNSET]\n"
                                             "  directory: here\n"
                                             "  output_schema: {type: integer}\n"
                                             "  tags: [a, b]\n"
                                             "  timeout: 5s\n"),
                           "/tmp", &manifest, NULL);
    struct told told = {.text = ""};

    if (!status)
        told.status = peg_manifest_inspect(manifest, write_down, &told, NULL);
    peg_manifest_free(manifest);
    return status ? status : told.status;
}

TORTURE(manifest_that_is_refused_survives_any_allocation_failure)
{
    peg_manifest *manifest = NULL;
    peg_error error;
    const peg_status status =
        peg_manifest_parse(peg__str(HEAD "  comand: [cat, x]\n"), "/tmp", &manifest, &error);

    return status == PEG_EPARSE ? PEG_OK : status;
}
