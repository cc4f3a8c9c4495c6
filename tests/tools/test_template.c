/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/template.h"

#include "t.h"

#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "child.h"
#include "pegboard/manifest.h"
#include "pegboard/record.h"
#include "pegboard/run.h"

/* ---- fixture: a tool `run` that prints its words as <a><b>, and what it answers ---------------
 */

#define HEAD "toolset: t\ntools:\n- name: run\n  description: runs\n"
#define SCHEMA                                                                                     \
    "  input_schema:\n"                                                                            \
    "    type: object\n"                                                                           \
    "    required: [text, n, list, any]\n"                                                         \
    "    properties:\n"                                                                            \
    "      text: {type: string}\n"                                                                 \
    "      n: {type: number}\n"                                                                    \
    "      list: {type: array, items: {type: string}}\n"                                           \
    "      any: {}\n"                                                                              \
    "      limit: {type: integer}\n"                                                               \
    "      verbose: {type: boolean}\n"                                                             \
    "      paths: {type: array, items: {type: string}}\n"                                          \
    "      maybe: {type: [string, 'null']}\n"                                                      \
    "      level: {type: integer, default: 7}\n"                                                   \
    "      object: {type: object}\n"                                                               \
    "      objects: {type: array, items: {type: object}}\n"
#define ARGS "\"text\":\"T\",\"n\":1,\"list\":[],\"any\":\"A\""
#define PRINT "  command: [sh, -c, 'for a; do printf \"<%s>\" \"$a\"; done', sh, "

static peg_manifest *parse(const char *text)
{
    peg_manifest *manifest = NULL;
    peg_error error;

    CHECK_STATUS(peg_manifest_parse(peg__str(text), NULL, &manifest, &error), PEG_OK, error);
    return manifest;
}

/* A manifest whose tool has these words behind a script that prints them. */
static peg_manifest *parse_words(const char *words)
{
    char text[2048];

    snprintf(text, sizeof(text), "%s%s]\n  output: text\n", HEAD SCHEMA PRINT, words);
    return parse(text);
}

static peg_record *call(const peg_manifest *manifest, const char *args)
{
    peg_record *record = NULL;
    peg_error error;

    CHECK_STATUS(peg_registry_call(peg_manifest_registry(manifest), "run", args, &record, &error),
                 PEG_OK, error);
    CHECK(has_no_children());
    return record;
}

static void check_printed(const char *words, const char *args, const char *expected)
{
    peg_manifest *manifest = parse_words(words);
    peg_record *record = call(manifest, args);
    peg_str answer;

    if (peg_record_is_error(record))
        T_FAIL("%s with %s failed: %s", words, args, peg_record_cause(record));
    CHECK_INT(peg_record_answer(record, &answer, NULL), PEG_OK);
    CHECK_STR(answer, expected);
    peg_record_unref(record);
    peg_manifest_free(manifest);
}

/* The call fails, and the model reads this. */
static void check_failed(const char *words, const char *args, const char *sentence)
{
    peg_manifest *manifest = parse_words(words);
    peg_record *record = call(manifest, args);
    peg_str text;

    CHECK(peg_record_is_error(record));
    CHECK_STR(peg__str(peg_record_cause(record)), "E_COMMAND_ARGUMENT");
    CHECK_INT(peg_record_answer(record, &text, NULL), PEG_OK);
    if (!memmem(text.ptr, text.len, sentence, strlen(sentence)))
        T_FAIL("'%.*s' does not say '%s'", (int)text.len, text.ptr, sentence);
    peg_record_unref(record);
    peg_manifest_free(manifest);
}

/* `command`: from the program on. */
static void check_refused(const char *command, const char *where, const char *sentence)
{
    char text[2048];
    peg_manifest *manifest = NULL;
    peg_error error = {.message = ""};

    snprintf(text, sizeof(text), HEAD SCHEMA "  command: [%s]\n", command);
    CHECK_INT(peg_manifest_parse(peg__str(text), NULL, &manifest, &error), PEG_EPARSE);
    CHECK_STR(peg__str(error.where), where);
    CHECK_STR(peg__str(error.code), "E_MANIFEST");
    CHECK_INT(error.line, 20);
    if (!strstr(error.message, sentence))
        T_FAIL("'%s' does not say '%s'", error.message, sentence);
}

/* ---- values ---------------------------------------------------------------------------------- */

TEST(placeholder_is_a_word_or_a_part_of_one)
{
    check_printed("'{text}'", "{" ARGS "}", "<T>");
    check_printed("'--text={text}', -n, '{n}'", "{" ARGS "}", "<--text=T><-n><1>");
    check_printed("'{text}-{n}/{text}'", "{" ARGS "}", "<T-1/T>");
    check_printed("'', '{text}'", "{" ARGS "}", "<><T>");
}

TEST(placeholder_takes_hostile_values_as_they_are)
{
    static const char *const values[][2] = {
        {"; rm -rf /", "<; rm -rf />"},
        {"$(touch x) `id` ${HOME}", "<$(touch x) `id` ${HOME}>"},
        {"a\\nb\\n", "<a\nb\n>"},
        {"a b  c", "<a b  c>"},
        {"' \\\" \\\\", "<' \" \\>"},
        {"*", "<*>"},
        {"{n} {{ %s", "<{n} {{ %s>"},
        {"", "<>"},
        {"\\u00e9\\ud83d\\ude00", "<\xC3\xA9\xF0\x9F\x98\x80>"},
        {"&& exit 1 | > /dev/null #", "<&& exit 1 | > /dev/null #>"},
    };
    char args[256];

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        snprintf(args, sizeof(args), "{\"text\":\"%s\",\"n\":1,\"list\":[],\"any\":1}",
                 values[i][0]);
        check_printed("'{text}'", args, values[i][1]);
    }
}

TEST(numbers_and_booleans_are_written_as_json_has_them)
{
    check_printed("'{n}'", "{\"text\":\"\",\"n\":3.0,\"list\":[],\"any\":1}", "<3>");
    check_printed("'{n}'", "{\"text\":\"\",\"n\":0.25,\"list\":[],\"any\":1}", "<0.25>");
    check_printed("'x={n}'", "{\"text\":\"\",\"n\":-5,\"list\":[],\"any\":1}", "<x=-5>");
    check_printed("'{any}'", "{\"text\":\"\",\"n\":1,\"list\":[],\"any\":true}", "<true>");
    check_printed("'{level}'", "{" ARGS "}", "<7>");
}

TEST(doubled_braces_are_a_text_and_other_braces_are_themselves)
{
    check_printed("'{{text}}', '{{-text}}', 'a{{x}}b'", "{" ARGS "}", "<{text}><{-text}><a{x}b>");
    check_printed("'{print $1}', '{}', '{', '}'", "{" ARGS "}", "<{print $1}><{}><{><}>");
    check_printed("'a{3}', 'b{2,5}', '{{.Names}}'", "{" ARGS "}", "<a{3}><b{2,5}><{{.Names}}>");
    check_printed("'{\"q\": \"{text}\"}'", "{" ARGS "}", "<{\"q\": \"T\"}>");
    check_printed("'{te', '{text', '{?}', '{-}'", "{" ARGS "}", "<{te><{text><{?}><{-}>");
}

TEST(word_of_an_array_is_repeated_for_each_item)
{
    check_printed("'{list}', end", "{\"text\":\"\",\"n\":1,\"list\":[\"a\",\"b c\"],\"any\":1}",
                  "<a><b c><end>");
    check_printed("'-e{list}'", "{\"text\":\"\",\"n\":1,\"list\":[\"a\",\"-b\"],\"any\":1}",
                  "<-ea><-e-b>");
    check_printed("'{list}', end", "{" ARGS "}", "<end>");
    check_printed("'{any}'", "{\"text\":\"\",\"n\":1,\"list\":[],\"any\":[1,true,\"x\"]}",
                  "<1><true><x>");
}

/* ---- groups ---------------------------------------------------------------------------------- */

TEST(group_vanishes_with_a_member_that_is_absent)
{
    check_printed("[--limit, '{limit}'], end", "{" ARGS "}", "<end>");
    check_printed("[--limit, '{limit}'], end", "{" ARGS ",\"limit\":3}", "<--limit><3><end>");
    check_printed("[--both, '{limit}', '{maybe}']", "{" ARGS ",\"limit\":3}", "");
    check_printed("[--maybe, '{maybe}']", "{" ARGS ",\"maybe\":null}", "");
    check_printed("[--paths, '{paths}']", "{" ARGS ",\"paths\":[]}", "");
    check_printed("[--paths, '{paths}']", "{" ARGS ",\"paths\":[\"a\",\"b\"]}", "<--paths><a><b>");
    check_printed("['{paths}']", "{" ARGS ",\"paths\":[\"a\"]}", "<a>");
}

TEST(group_with_a_condition_is_there_if_the_member_is_true)
{
    check_printed("[--verbose, '{?verbose}'], end", "{" ARGS ",\"verbose\":true}",
                  "<--verbose><end>");
    check_printed("[--verbose, '{?verbose}'], end", "{" ARGS ",\"verbose\":false}", "<end>");
    check_printed("['{?verbose}', -v, '{limit}']", "{" ARGS ",\"verbose\":true}", "");
    check_printed("[--verbose, '{?verbose}'], end", "{" ARGS "}", "<end>");
}

/* ---- what a value must not do ------------------------------------------------------------------
 */

TEST(value_does_not_become_an_option)
{
    static const char *const values[] = {"-o/etc/passwd", "--output=x", "-"};
    char args[256];

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        snprintf(args, sizeof(args),
                 "{\"text\":\"%s\",\"n\":1,\"list\":[\"ok\",\"%s\"],\"any\":\"\"}", values[i],
                 values[i]);
        check_failed("'{text}'", args, "'text' must not begin with '-'");
        check_failed("'{any}{text}'", args, "'any' must not begin with '-'");
        check_failed("'{list}'", args, "'list' must not begin with '-'");
        check_failed("[--, '{limit}'], '{text}'", args, "'text' must not begin with '-'");
    }
    check_failed("'{n}'", "{\"text\":\"\",\"n\":-5,\"list\":[],\"any\":1}",
                 "'n' must not begin with '-'");
}

TEST(value_may_begin_with_a_dash_where_the_manifest_says_so)
{
    const char *args = "{\"text\":\"-x\",\"n\":-5,\"list\":[],\"any\":1,\"limit\":1}";

    check_printed("--, '{text}'", args, "<--><-x>");
    check_printed("[--, '{limit}'], '{text}'", args, "<--><1><-x>");
    check_printed("'{-text}', '{-n}'", args, "<-x><-5>");
    check_printed("'--text={text}'", args, "<--text=-x>");
}

TEST(value_that_is_dashes_does_not_end_the_options)
{
    check_failed("'{-text}', '{any}'", "{\"text\":\"--\",\"n\":1,\"list\":[],\"any\":\"-x\"}",
                 "'any' must not begin with '-'");
}

TEST(value_that_no_word_can_have_fails_the_call)
{
    check_failed("'{text}'", "{\"text\":\"a\\u0000b\",\"n\":1,\"list\":[],\"any\":1}",
                 "'text' has a NUL");
    check_failed("'{any}'", "{\"text\":\"\",\"n\":1,\"list\":[],\"any\":{}}",
                 "'any' is object, which no argument of a command can be");
    check_failed("'{any}'", "{\"text\":\"\",\"n\":1,\"list\":[],\"any\":[[]]}", "'any' is array");
    check_failed("'{any}'", "{\"text\":\"\",\"n\":1,\"list\":[],\"any\":null}", "'any' is null");
    check_failed("'{list}{any}'", "{\"text\":\"\",\"n\":1,\"list\":[\"a\"],\"any\":[1]}",
                 "both arrays");
}

/* ---- limits ------------------------------------------------------------------------------------
 */

/* Arguments whose text has so many bytes, or whose list has so many items of so many bytes. */
static char *long_args(size_t text, size_t items, size_t bytes)
{
    const size_t size = text + items * (bytes + 3) + 100;
    char *args = malloc(size);
    size_t n = (size_t)snprintf(args, size, "{\"n\":1,\"any\":1,\"text\":\"");

    memset(args + n, 'a', text);
    n += text;
    n += (size_t)snprintf(args + n, size - n, "\",\"list\":[");
    for (size_t i = 0; i < items; i++) {
        args[n++] = '"';
        memset(args + n, 'b', bytes);
        n += bytes;
        args[n++] = '"';
        if (i + 1 < items)
            args[n++] = ',';
    }
    snprintf(args + n, size - n, "]}");
    return args;
}

TEST(words_are_as_long_as_the_system_takes_and_no_longer)
{
    char *longest = long_args(PEG_LIMIT_COMMAND_ARG_BYTES, 0, 0);
    char *longer = long_args(PEG_LIMIT_COMMAND_ARG_BYTES + 1, 0, 0);
    peg_manifest *manifest = parse(
        HEAD SCHEMA "  command: [sh, -c, 'printf %s \"${#1}\"', sh, '{text}']\n  output: text\n");
    peg_record *record = call(manifest, longest);
    peg_str answer;

    CHECK(!peg_record_is_error(record));
    CHECK_INT(peg_record_answer(record, &answer, NULL), PEG_OK);
    CHECK_STR(answer, "131071");
    check_failed("'{text}'", longer,
                 "'text' is too long: an argument of a command has at most "
                 "131071 bytes");

    peg_record_unref(record);
    peg_manifest_free(manifest);
    free(longest);
    free(longer);
}

TEST(words_are_at_most_as_many_as_a_command_may_have)
{
    char *many = long_args(0, PEG_LIMIT_COMMAND_ARGS + 1, 1);
    char *large = long_args(0, 20, 100000);

    check_failed("'{list}'", many, "at most 4096 words and 1048576 bytes");
    check_failed("'{list}'", large, "at most 4096 words and 1048576 bytes");

    free(many);
    free(large);
}

/* ---- standard input ----------------------------------------------------------------------------
 */

TEST(command_with_placeholders_gets_no_standard_input)
{
    peg_manifest *manifest = parse(
        HEAD SCHEMA "  command: [sh, -c, 'cat; echo \"$1\"', sh, '{text}']\n  output: text\n");
    peg_record *record = call(manifest, "{" ARGS "}");
    peg_str answer;

    CHECK_INT(peg_record_answer(record, &answer, NULL), PEG_OK);
    CHECK_STR(answer, "T\n");

    peg_record_unref(record);
    peg_manifest_free(manifest);
}

TEST(command_with_braces_alone_gets_its_arguments_on_standard_input)
{
    peg_manifest *manifest =
        parse(HEAD "  input_schema: {type: object, properties: {a: {type: integer}}}\n"
                   "  command: [sh, -c, 'cat; echo \"$1\"', sh, '{{a}}']\n  output: text\n");
    peg_record *record = call(manifest, "{\"a\":1}");
    peg_str answer;

    CHECK_INT(peg_record_answer(record, &answer, NULL), PEG_OK);
    CHECK_STR(answer, "{\"a\":1}\n{a}\n");

    peg_record_unref(record);
    peg_manifest_free(manifest);
}

TEST(text_for_a_shell_has_no_placeholders)
{
    peg_manifest *manifest =
        parse(HEAD SCHEMA "  shell: true\n  command: echo '{text}'\n  output: text\n");
    peg_record *record = call(manifest, "{" ARGS "}");
    peg_str answer;

    CHECK_INT(peg_record_answer(record, &answer, NULL), PEG_OK);
    CHECK_STR(answer, "{text}\n");

    peg_record_unref(record);
    peg_manifest_free(manifest);
}

/* ---- what a manifest must not say --------------------------------------------------------------
 */

TEST(manifest_refuses_placeholders_that_do_not_fit_the_schema)
{
    static const struct {
        const char *command;
        const char *where; /* below /tools/0/command */
        const char *sentence;
    } rows[] = {
        {"x, '{txt}'", "/1", "has no property 'txt'; did you mean 'text'?"},
        {"x, a, '{quite_other}'", "/2",
         "has no property 'quite_other': describe it there, or write {{"},
        {"x, '{object}'", "/1", "'object' may be an object"},
        {"x, '{objects}'", "/1", "items of 'objects'"},
        {"x, '{limit}'", "/1", "'limit' may be absent: put it into a list"},
        {"x, '{maybe}'", "/1", "'maybe' may be absent"},
        {"x, '{verbose}'", "/1", "'verbose' may be absent"},
        {"x, '{list}{paths}'", "/1", "two arrays"},
        {"x, [-t, '{?text}']", "/1/1", "'text' is not of type boolean: write {text}"},
        {"x, [-t, '{nope}']", "/1/1", "has no property 'nope'"},
        {"x, '{?verbose}'", "/1", "a word of its own in a group"},
        {"x, ['-v{?verbose}']", "/1/0", "a word of its own in a group"},
        {"x, [--flag]", "/1/0", "a list within the command needs a placeholder"},
        {"x, ['{limit}'], [a, b]", "/2/1", "a list within the command needs a placeholder"},
        {"'{text}'", "/0", "a call must not choose it"},
        {"['{limit}'], x", "/0/0", "the program stands first"},
        {"sh, -c, 'echo {text}'", "/2", "the shell would run what a value says"},
        {"/bin/bash, -ec, 'echo {text}'", "/2", "the shell would run what a value says"},
        {"bash, -e, -c, '{text}'", "/3", "the shell would run what a value says"},
    };
    char where[64];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(where, sizeof(where), "/tools/0/command%s", rows[i].where);
        check_refused(rows[i].command, where, rows[i].sentence);
    }
}

TEST(manifest_refuses_a_placeholder_of_a_tool_without_arguments)
{
    peg_manifest *manifest = NULL;
    peg_error error;

    CHECK_INT(peg_manifest_parse(peg__str(HEAD "  command: [x, '{a}']\n"), NULL, &manifest, &error),
              PEG_EPARSE);
    CHECK_STR(peg__str(error.message), "the tool takes no argument 'a': describe it in the "
                                       "properties of its input_schema");
}

/* ---- memory ------------------------------------------------------------------------------------
 */

TORTURE(template_survives_any_allocation_failure)
{
    static const struct peg__word words[] = {
        {"echo", 0, 0}, {"{list}", 0, 1}, {"--n", 3, 0}, {"{ {n}", 3, 1}, {"{?no}", 4, 0}};
    struct peg__arena arena = {0};
    struct peg__buf problem = PEG__BUF(1000);
    struct peg__template t;
    struct peg__word_fault fault;
    const char *const *argv = NULL;
    peg_json_doc *doc = NULL;
    peg_status status =
        peg_json_parse(peg__str("{\"list\":[\"a\",\"b\"],\"n\":3}"), NULL, &doc, NULL);

    if (!status)
        status = peg__template_parse(words, 5, &arena, &t, &fault);
    if (!status)
        status = peg__template_render(&t, peg_json_root(doc), &arena, &argv, &problem);
    if (!status) {
        CHECK_STR(peg__str(argv[2]), "b");
        CHECK_STR(peg__str(argv[4]), "{ 3");
        CHECK(!argv[5]);
    }
    peg_json_doc_free(doc);
    peg__buf_free(&problem);
    peg__arena_free(&arena);
    return status;
}

TORTURE(manifest_with_placeholders_survives_any_allocation_failure)
{
    peg_manifest *manifest = NULL;
    const peg_status status =
        peg_manifest_parse(peg__str(HEAD SCHEMA "  command: [x, '{text}', [--limit, '{limit}']]\n"),
                           NULL, &manifest, NULL);

    if (!status)
        peg_manifest_free(manifest);
    return status;
}
