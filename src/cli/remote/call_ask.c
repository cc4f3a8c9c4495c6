/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a tool asks while it runs, asked at the terminal: the message of each form, then a line for
 * each of its fields. Answers may also be given beforehand, with --answer. Text of others is shown
 * so that it cannot steer the terminal, and what a person types names no file.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/cli.h"
#include "cli/remote/remote.h"
#include "cli/terminal/terminal.h"
#include "json/json.h"

enum { MAX_FIELDS = 64 };

/* What is typed: "key=value" for call_args_build(). */
struct fields {
    char *pairs[MAX_FIELDS];
    size_t n;
};

static void free_typed(struct fields *fields)
{
    for (size_t i = 0; i < fields->n; i++)
        peg_free(fields->pairs[i]);
    fields->n = 0;
}

/* ---- the terminal ---- */

static void show_safe(const char *before, peg_str text, const char *after)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_puts(&out, before);
    cli_put_safe(&out, text);
    peg__buf_puts(&out, after);
    if (!out.status)
        cli_write(stderr, peg__buf_view(&out));
    peg__buf_free(&out);
}

/* Without the end of the line; false: there is none any more. */
static bool read_answer_line(char **ret_line)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len = getline(&line, &size, stdin);

    if (len < 0) {
        free(line);
        return false;
    }
    while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
        line[--len] = '\0';
    *ret_line = line;
    return true;
}

static void show_field(peg_str key, const peg_json *schema, bool is_required)
{
    const peg_str description = peg_json_str(peg_json_get(schema, "description"));
    const peg_json *choices = peg_json_get(schema, "enum");

    show_safe("  ", key, "");
    show_safe(" (", peg_json_str(peg_json_get(schema, "type")), "");
    PEG_JSON_EACH_ITEM (choices, choice)
        show_safe(" ", peg_json_str(choice), "");
    show_safe(is_required ? "" : ", may be empty", (peg_str){"", 0}, ")");
    if (description.len)
        show_safe(" ", description, "");
    show_safe(": ", (peg_str){"", 0}, "");
}

/* A value that begins with @ would be a file. PEG_ENOMEM. */
static peg_status add_typed(struct fields *fields, peg_str key, const char *value)
{
    struct peg__buf pair = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_str(&pair, key);
    peg__buf_puts(&pair, value[0] == '@' ? "=@" : "=");
    peg__buf_puts(&pair, value);
    if (peg__buf_take(&pair, &fields->pairs[fields->n], NULL, NULL)) {
        peg__buf_free(&pair);
        return PEG_ENOMEM;
    }
    fields->n++;
    return PEG_OK;
}

static bool is_required_name(const peg_json *list, peg_str name)
{
    PEG_JSON_EACH_ITEM (list, item)
        if (peg__str_eq(peg_json_str(item), name))
            return true;
    return false;
}

static peg_status fail_without_input(peg_error *reterr)
{
    return peg__fail(reterr, PEG_ECANCELED, "E_CANCELED", "the user ended the input");
}

/* PEG_ECANCELED: the person ended the input. */
static peg_status read_typed(const peg_json *schema, struct fields *fields, peg_error *reterr)
{
    const peg_json *required = peg_json_get(schema, "required");

    PEG_JSON_EACH_MEMBER (peg_json_get(schema, "properties"), key) {
        const bool is_required = is_required_name(required, peg_json_str(key));
        peg_status status = PEG_OK;
        char *line = NULL;

        if (fields->n == MAX_FIELDS)
            return peg__fail(reterr, PEG_ELIMIT, "E_CLIENT", "the form has more than 64 fields");
        show_field(peg_json_str(key), key + 1, is_required);
        if (!read_answer_line(&line))
            return fail_without_input(reterr);
        if (line[0] || is_required)
            status = add_typed(fields, peg_json_str(key), line);
        free(line);
        if (status)
            return peg__fail_nomem(reterr);
    }
    return PEG_OK;
}

/* True: yes. */
static peg_status ask_to_accept(bool *ret_is_yes, peg_error *reterr)
{
    char *line = NULL;

    show_safe("  accept? [y/N] ", (peg_str){"", 0}, "");
    if (!read_answer_line(&line))
        return fail_without_input(reterr);
    *ret_is_yes = line[0] == 'y' || line[0] == 'Y';
    free(line);
    return PEG_OK;
}

/* ---- a form ---- */

static peg_status build_content(const peg_json *schema, const struct fields *fields,
                                char **ret_json, peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_SCHEMA_BYTES);
    peg_status status;

    peg__json_write(schema, PEG_JSON_COMPACT, &text);
    status = text.status ? peg__fail_nomem(reterr)
                         : call_args_build(peg__buf_view(&text), (const char *const *)fields->pairs,
                                           fields->n, ret_json, reterr);
    peg__buf_free(&text);
    return status;
}

/* The content as JSON; NULL: declined. */
static peg_status ask_person(const peg_json *params, char **ret_json, peg_error *reterr)
{
    const peg_json *schema = peg_json_get(params, "requestedSchema");
    const peg_json *properties = peg_json_get(schema, "properties");
    struct fields fields = {.n = 0};
    bool is_yes = true;
    peg_status status;

    show_safe("", peg_json_str(peg_json_get(params, "message")), "\n");
    status = peg_json_len(properties) ? read_typed(schema, &fields, reterr)
                                      : ask_to_accept(&is_yes, reterr);
    *ret_json = NULL;
    if (!status && is_yes)
        status = build_content(schema, &fields, ret_json, reterr);
    free_typed(&fields);
    return status;
}

static peg_status copy_given(struct call_answers *answers, char **ret_json, peg_error *reterr)
{
    struct peg__buf copy = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    if (answers->n_used == answers->n)
        return peg__fail(reterr, PEG_ECANCELED, "E_CANCELED",
                         "the tool asks more than --answer answers");
    peg__buf_puts(&copy, answers->given[answers->n_used++]);
    if (peg__buf_take(&copy, ret_json, NULL, reterr) == PEG_OK)
        return PEG_OK;
    peg__buf_free(&copy);
    return PEG_ENOMEM;
}

/* {"action": "accept", "content"}, or declined. */
static peg_status add_response(peg_json_builder *b, const char *content, peg_error *reterr)
{
    peg_json_doc *doc = NULL;
    peg_status status = content ? peg_json_parse(peg__str(content), NULL, &doc, reterr) : PEG_OK;

    peg_json_open_object(b);
    peg_json_add_key(b, peg__str("action"));
    peg_json_add_string(b, peg__str(content ? "accept" : "decline"));
    if (doc) {
        peg_json_add_key(b, peg__str("content"));
        peg_json_add_copy(b, peg_json_root(doc));
    }
    peg_json_close(b);
    peg_json_doc_free(doc);
    return status;
}

static peg_status answer_request(peg_json_builder *b, const peg_json *key,
                                 struct call_answers *answers, peg_error *reterr)
{
    const peg_str method = peg_json_str(peg_json_get(key + 1, "method"));
    char *content = NULL;
    peg_status status;

    if (!peg__str_is(method, "elicitation/create"))
        return peg__fail(reterr, PEG_EUNSUPPORTED, "E_CLIENT",
                         "the tool asks for %.*s, and pegboard call answers forms only",
                         PEG_ARG(method));
    status = answers->n ? copy_given(answers, &content, reterr)
                        : ask_person(peg_json_get(key + 1, "params"), &content, reterr);
    peg_json_add_key(b, peg_json_str(key));
    if (!status)
        status = add_response(b, content, reterr);
    peg_free(content);
    return status;
}

peg_status call_ask(const peg_remote_question *question, void *user, peg_json_doc **ret_answers,
                    peg_error *reterr)
{
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc = NULL;
    peg_status status = PEG_OK;
    peg_status built;

    peg_json_open_object(b);
    PEG_JSON_EACH_MEMBER (question->requests, key) {
        if (!status)
            status = answer_request(b, key, user, reterr);
    }
    peg_json_close(b);
    built = peg_json_builder_finish(b, &doc, status ? NULL : reterr);
    if (status || built) {
        peg_json_doc_free(doc);
        return status ? status : built;
    }
    *ret_answers = doc;
    return PEG_OK;
}

bool call_can_ask(const struct call_answers *answers)
{
    return answers->n || (isatty(STDIN_FILENO) && isatty(STDERR_FILENO));
}
