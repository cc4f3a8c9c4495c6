/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The key `command` of a tool: a text for a shell, words, or words with placeholders (template.h).
 * Placeholders are held against the input_schema here, so that what is wrong with them is known
 * before the first call. Read it from peg__manifest_command().
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "tools/internal.h"
#include "json/json.h"

/* While the command of one tool is read. */
struct line {
    const struct peg__manifest_reader *r;
    const peg_json *schema; /* NULL: it has none */
    struct peg__word *words;
    size_t n;
    struct peg__template parsed;
};

static peg_status reject_word(const struct line *line, size_t i, const char *fmt, ...)
    PEG_PRINTF(3, 4);

static peg_status reject_word(const struct line *line, size_t i, const char *fmt, ...)
{
    const struct peg__word *word = &line->words[i];
    char member[64];
    char message[300];
    va_list args;

    if (word->group)
        snprintf(member, sizeof(member), "/command/%u/%u", word->group - 1, word->at);
    else
        snprintf(member, sizeof(member), "/command/%u", word->at);
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    return peg__manifest_fail_tool(line->r, member, message);
}

/* ---- words ---- */

static size_t count_words(const peg_json *command)
{
    size_t n = 0;

    PEG_JSON_EACH_ITEM (command, item)
        n += item->kind == PEG_JSON_ARRAY ? peg_json_len(item) : 1;
    return n;
}

static peg_status append_word(struct line *line, const peg_json *text, unsigned group, unsigned at)
{
    struct peg__word *word = &line->words[line->n];

    *word =
        (struct peg__word){.text = peg__arena_copy(&line->r->manifest->arena, peg_json_str(text)),
                           .group = group,
                           .at = at};
    if (!word->text)
        return peg__fail_nomem(line->r->reterr);
    if (strlen(word->text) != text->len)
        return reject_word(line, line->n, "a text must not contain a NUL: take it out");
    line->n++;
    return PEG_OK;
}

static peg_status add_group(struct line *line, const peg_json *list, unsigned group)
{
    peg_status status = PEG_OK;
    unsigned at = 0;

    PEG_JSON_EACH_ITEM (list, item) {
        status = append_word(line, item, group, at++);
        if (status)
            break;
    }
    return status;
}

static peg_status read_words(struct line *line, const peg_json *command)
{
    const size_t n = count_words(command);
    peg_status status = PEG_OK;
    unsigned at = 0;

    if (n > PEG_LIMIT_COMMAND_ARGS)
        return peg__manifest_fail_tool(line->r, "/command", "there are more than 4,096 arguments");
    line->words = peg__arena_alloc_zero(&line->r->manifest->arena, (n + 1) * sizeof(*line->words));
    if (!line->words)
        return peg__fail_nomem(line->r->reterr);
    PEG_JSON_EACH_ITEM (command, item) {
        status = item->kind == PEG_JSON_ARRAY ? add_group(line, item, at + 1)
                                              : append_word(line, item, 0, at);
        if (status)
            break;
        at++;
    }
    return status;
}

static peg_status parse_words(struct line *line)
{
    struct peg__word_fault fault;
    const peg_status status =
        peg__template_parse(line->words, line->n, &line->r->manifest->arena, &line->parsed, &fault);

    if (status == PEG_EPARSE)
        return reject_word(line, fault.word, "%s", fault.message);
    return status ? peg__fail_nomem(line->r->reterr) : PEG_OK;
}

/* ---- placeholders and the schema ---- */

enum {
    TYPE_PLAIN = 1, /* string, number, integer */
    TYPE_BOOLEAN = 2,
    TYPE_NULL = 4,
    TYPE_ARRAY = 8,
    TYPE_OBJECT = 16,
};

static unsigned type_named(peg_str name)
{
    if (peg__str_is(name, "boolean"))
        return TYPE_BOOLEAN;
    if (peg__str_is(name, "null"))
        return TYPE_NULL;
    if (peg__str_is(name, "array"))
        return TYPE_ARRAY;
    return peg__str_is(name, "object") ? TYPE_OBJECT : TYPE_PLAIN;
}

/* What a schema says by itself; 0: nothing. Then the value decides, when it comes. */
static unsigned declared_types(const peg_json *schema)
{
    const peg_json *type = peg_json_get(schema, "type");
    unsigned types = 0;

    if (peg_json_kind_of(type) == PEG_JSON_STRING)
        return type_named(peg_json_str(type));
    if (peg_json_kind_of(type) == PEG_JSON_ARRAY) {
        PEG_JSON_EACH_ITEM (type, item)
            types |= type_named(peg_json_str(item));
    }
    return types;
}

static bool requires_member(const peg_json *schema, peg_str name)
{
    const peg_json *required = peg_json_get(schema, "required");

    if (peg_json_kind_of(required) != PEG_JSON_ARRAY)
        return false;
    PEG_JSON_EACH_ITEM (required, item) {
        if (peg__str_eq(peg_json_str(item), name))
            return true;
    }
    return false;
}

static peg_status reject_unknown_member(const struct line *line, size_t i, peg_str name)
{
    const peg_json *properties = peg_json_get(line->schema, "properties");
    struct peg__typo typo;
    peg_str nearest = {"", 0};

    if (peg_json_kind_of(properties) != PEG_JSON_OBJECT || !peg_json_len(properties))
        return reject_word(line, i,
                           "the tool takes no argument '%.*s': describe it in the properties of "
                           "its input_schema",
                           (int)name.len, name.ptr);
    peg__typo_start(&typo, name);
    PEG_JSON_EACH_MEMBER (properties, key) {
        if (peg__typo_offer(&typo, peg_json_str(key)))
            nearest = peg_json_str(key);
    }
    return reject_word(line, i, "the input_schema has no property '%.*s'%s%.*s%s", (int)name.len,
                       name.ptr, nearest.len ? "; did you mean '" : ": describe it there",
                       (int)nearest.len, nearest.ptr,
                       nearest.len ? "'?" : ", or write {{...}} for the text itself");
}

static peg_status check_value(const struct line *line, size_t i, const struct peg__piece *piece,
                              const peg_json *property)
{
    const unsigned types = declared_types(property);
    const unsigned items = types & TYPE_ARRAY ? declared_types(peg_json_get(property, "items")) : 0;
    const int len = (int)piece->text.len;
    const char *name = piece->text.ptr;

    if (piece->kind == PEG__PIECE_CONDITION)
        return types == TYPE_BOOLEAN
                   ? PEG_OK
                   : reject_word(line, i, "'%.*s' is not of type boolean: write {%.*s}", len, name,
                                 len, name);
    if (types & TYPE_OBJECT)
        return reject_word(line, i,
                           "'%.*s' may be an object, which is no word of a command line: take its "
                           "members into the input_schema, or read the arguments as JSON from "
                           "standard input, without placeholders",
                           len, name);
    if (items & (TYPE_OBJECT | TYPE_ARRAY | TYPE_NULL))
        return reject_word(line, i,
                           "items of '%.*s' may be objects, arrays or null, which are no words of "
                           "a command line: let them be strings, numbers or booleans",
                           len, name);
    if (line->words[i].group ||
        (requires_member(line->schema, piece->text) && !(types & TYPE_NULL)) ||
        peg_json_get(property, "default"))
        return PEG_OK;
    return reject_word(line, i,
                       "'%.*s' may be absent: put it into a list, with its flag if it has one, "
                       "which vanishes then: [\"--flag\", \"{%.*s}\"]",
                       len, name, len, name);
}

static peg_status check_placeholders(const struct line *line, size_t i)
{
    const peg_json *properties = peg_json_get(line->schema, "properties");
    unsigned n_arrays = 0;
    peg_status status = PEG_OK;

    for (const struct peg__piece *p = line->parsed.words[i].pieces; p && !status; p = p->next) {
        const peg_json *property;

        if (p->kind == PEG__PIECE_TEXT)
            continue;
        property = peg_json_get_str(properties, p->text);
        if (!property)
            return reject_unknown_member(line, i, p->text);
        n_arrays += (declared_types(property) & TYPE_ARRAY) != 0;
        if (n_arrays > 1)
            return reject_word(line, i, "two arrays are in this word: give each a word of its own");
        status = check_value(line, i, p, property);
    }
    return status;
}

/* ---- what stands where ---- */

static bool is_literal(const struct peg__template_word *word)
{
    for (const struct peg__piece *p = word->pieces; p; p = p->next) {
        if (p->kind != PEG__PIECE_TEXT)
            return false;
    }
    return true;
}

static peg_status check_program(const struct line *line)
{
    if (line->words[0].group)
        return reject_word(line, 0, "the program stands first, and not in a list of its own");
    if (!is_literal(&line->parsed.words[0]))
        return reject_word(line, 0, "the program has no placeholder: a call must not choose it");
    return PEG_OK;
}

static bool is_shell(const char *program)
{
    static const char *const shells[] = {"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish"};
    const char *slash = strrchr(program, '/');

    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (strcmp(slash ? slash + 1 : program, shells[i]) == 0)
            return true;
    }
    return false;
}

/* A value in the text of a script would be read by the shell. */
static peg_status check_script(const struct line *line)
{
    if (!is_shell(line->words[0].text))
        return PEG_OK;
    for (size_t i = 1; i + 1 < line->n; i++) {
        const char *option = line->words[i].text;

        if (option[0] != '-' || option[1] == '-' || !strchr(option, 'c'))
            continue;
        if (is_literal(&line->parsed.words[i + 1]))
            return PEG_OK;
        return reject_word(line, i + 1,
                           "the shell would run what a value says: leave the script as it is and "
                           "pass values behind it, [sh, -c, 'grep -e \"$1\" log', sh, \"{text}\"]");
    }
    return PEG_OK;
}

/* A group without a condition could not vanish. */
static peg_status check_groups(const struct line *line)
{
    unsigned shown = 0; /* the group that has one */

    for (size_t i = 0; i < line->n; i++) {
        const unsigned group = line->words[i].group;
        const bool is_last = i + 1 == line->n || line->words[i + 1].group != group;

        if (!is_literal(&line->parsed.words[i]))
            shown = group;
        if (group && is_last && shown != group)
            return reject_word(line, i,
                               "a list within the command needs a placeholder, with which it "
                               "vanishes: write its words without a list");
    }
    return PEG_OK;
}

static peg_status check_line(const struct line *line)
{
    peg_status status = check_program(line);

    if (!status)
        status = check_script(line);
    if (!status)
        status = check_groups(line);
    for (size_t i = 0; i < line->n && !status; i++)
        status = check_placeholders(line, i);
    return status;
}

/* ---- the command ---- */

static peg_status make_argv(const struct line *line, size_t n, const char *const **ret_argv)
{
    struct peg__arena *arena = &line->r->manifest->arena;
    const struct peg__template literal = {.words = line->parsed.words, .n_words = n};
    struct peg__buf problem = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);
    const peg_status status = peg__template_render(&literal, NULL, arena, ret_argv, &problem);

    peg__buf_free(&problem);
    if (status == PEG_EINVAL)
        return peg__manifest_fail_tool(line->r, "/command",
                                       "it is longer than 1 MiB, or a word than 128 KiB");
    return status ? peg__fail_nomem(line->r->reterr) : PEG_OK;
}

static peg_status take_list(const struct peg__manifest_reader *r, const peg_json *tool,
                            const char *const **ret_argv, struct peg__words *ret_words)
{
    struct line line = {.r = r, .schema = peg_json_get(tool, "input_schema")};
    peg_status status = read_words(&line, peg_json_get(tool, "command"));

    if (!status)
        status = parse_words(&line);
    if (!status)
        status = check_line(&line);
    if (status)
        return status;
    if (!peg__template_has_members(&line.parsed))
        return make_argv(&line, line.n, ret_argv);
    *ret_words = (struct peg__words){.items = line.words, .n = line.n};
    return make_argv(&line, 1, ret_argv);
}

static peg_status take_script(const struct peg__manifest_reader *r, const peg_json *tool,
                              const char *const **ret_argv)
{
    const char **argv = peg__arena_alloc_zero(&r->manifest->arena, 4 * sizeof(*argv));
    const char *text;
    const peg_status status = peg__manifest_text(r, tool, "command", &text);

    if (status)
        return status;
    if (!argv)
        return peg__fail_nomem(r->reterr);
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] = text;
    *ret_argv = argv;
    return PEG_OK;
}

peg_status peg__manifest_command(const struct peg__manifest_reader *r, const peg_json *tool,
                                 const char *const **ret_argv, struct peg__words *ret_words)
{
    const bool is_list = peg_json_get(tool, "command")->kind == PEG_JSON_ARRAY;
    const bool wants_shell = peg_json_is_true(peg_json_get(tool, "shell"));

    if (is_list && wants_shell)
        return peg__manifest_fail_tool(r, "/command",
                                       "with shell: true the command is one text, not a list");
    if (!is_list && !wants_shell)
        return peg__manifest_fail_tool(
            r, "/command",
            "the command is a list of words, [program, argument]; a text needs "
            "shell: true");
    return is_list ? take_list(r, tool, ret_argv, ret_words) : take_script(r, tool, ret_argv);
}
