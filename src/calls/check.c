/* SPDX-License-Identifier: Apache-2.0 */

/* Is a text JSON that a schema accepts? Small ones at once, in memory that the loop keeps; large
 * ones, and those that turn out to take long, on a worker: they cost their own caller and nobody
 * else. */

#include "calls/check.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/content.h"
#include "wire/pack.h"
#include "wire/report.h"
#include "json/json.h"

/* One text, and what it is called in words about it: "payload" or "result". */
struct text {
    peg_schema *schema; /* NULL: any JSON will do */
    peg_str json;
    const char *name;
};

/* As the reference gateway does with payloads. */
static void begin_words(struct peg__buf *words, const struct text *text)
{
    peg__buf_clear(words);
    peg__buf_printf(words, "%s validation failed: ", text->name);
}

static peg_status explain_parse(const struct text *text, const peg_error *error,
                                struct peg__buf *words)
{
    begin_words(words, text);
    peg__buf_puts(words, error->message);
    if (peg__json_is_duplicate(error))
        peg__buf_printf(words, " (%s)", error->code);
    return error->status == PEG_ENOMEM ? PEG_ENOMEM : PEG_EPARSE;
}

/* One failure a line, the last one without an end: it is a sentence in a message. Whole lines, as
 * many as there is room for. */
static void add_report(struct peg__buf *words, peg_str text)
{
    enum { MORE_BYTES = 32 }; /* "and 4294967295 more" */
    const size_t room = words->max - words->len;
    const char *line;
    size_t len;

    while (text.len && text.ptr[text.len - 1] == '\n')
        text.len--;
    if (text.len <= room) {
        peg__buf_str(words, text);
        return;
    }
    line = memrchr(text.ptr, '\n', room - MORE_BYTES);
    len = line ? (size_t)(line - text.ptr) : 0;
    if (len) {
        peg__buf_str(words, peg__strn(text.ptr, len));
        peg__buf_printf(words, "\nand %zu more", wire_report_count(peg__str_from(text, len + 1)));
    } else {
        peg__buf_str(words, peg__strn(text.ptr, peg__utf8_cut(text.ptr, room)));
    }
}

static peg_status explain_limit(const struct text *text, const peg_checker *checker,
                                struct peg__buf *words)
{
    const char *reason = peg_checker_reason(checker);

    if (peg__str_is(peg__str(reason), "memory"))
        return PEG_ENOMEM;
    peg__buf_clear(words);
    peg__buf_printf(words,
                    "the check of the %s reached its limit %s before it had a verdict: send less, "
                    "or simplify the schema",
                    text->name, reason);
    return PEG_ELIMIT;
}

static peg_status explain_failures(const struct text *text, peg_checker *checker,
                                   const peg_json *value, struct peg__buf *words)
{
    peg_report *report;
    peg_status status = peg_report_new(&report, NULL);

    if (status)
        return status;
    switch (peg_schema_report(text->schema, checker, value, report)) {
    case PEG_VALID: /* the verdict said otherwise */
        break;
    case PEG_UNDECIDED:
        status = explain_limit(text, checker, words);
        break;
    default:
        status = PEG_ESCHEMA;
        begin_words(words, text);
        add_report(words, peg_report_text(report));
    }
    peg_report_free(report);
    return status;
}

static peg_status check_parsed_value(const struct text *text, peg_checker *checker,
                                     const peg_json *value, struct peg__buf *words)
{
    switch (peg_schema_check(text->schema, checker, value)) {
    case PEG_VALID:
        return PEG_OK;
    case PEG_UNDECIDED:
        return explain_limit(text, checker, words);
    default:
        return explain_failures(text, checker, value, words);
    }
}

/* PEG_ENOMEM: there may be no words about it, or a part of them. */
static peg_status check_json_text(const struct text *text, peg_checker *checker, peg_json_doc *doc,
                                  struct peg__buf *words)
{
    peg_status status;
    peg_error error;

    peg__buf_clear(words);
    if (peg_json_reparse(doc, text->json, &peg__json_refuse_duplicates, &error))
        status = explain_parse(text, &error, words);
    else if (!text->schema)
        return PEG_OK;
    else
        status = check_parsed_value(text, checker, peg_json_root(doc), words);
    return words->status == PEG_ENOMEM ? PEG_ENOMEM : status;
}

peg_status calls_check_now(struct calls_loop *calls, peg_schema *schema, peg_str json,
                           const char *name)
{
    const struct text text = {schema, json, name};

    return check_json_text(&text, calls->checker, calls->doc, &calls->text);
}

/* ---- typed content ---- */

static peg_status explain_content(const peg_error *error, struct peg__buf *words)
{
    peg__buf_clear(words);
    peg__buf_puts(words, error->message);
    /* A limit of the protocol is no check that a worker might finish. */
    return PEG_EINVAL;
}

/* An output schema is about JSON. As in the library, a result that is none does not fit it. */
static peg_status check_content(const peg_schema *schema, peg_str response, peg_json_doc *doc,
                                struct peg__buf *words)
{
    struct text text = {.name = "content"};
    struct wire_content part;
    peg_error error;
    peg_status status;

    if (schema) {
        peg__buf_clear(words);
        peg__buf_puts(words, "result validation failed: the tool has an output schema, and its "
                             "result is typed content, not JSON");
        return words->status == PEG_ENOMEM ? PEG_ENOMEM : PEG_ESCHEMA;
    }
    status = wire_content_check(response, &error);
    if (status)
        status = explain_content(&error, words);
    while (!status && wire_content_next(&response, &part)) {
        text.json = part.bytes;
        if (part.kind == WIRE_JSON)
            status = check_json_text(&text, NULL, doc, words);
    }
    return words->status == PEG_ENOMEM ? PEG_ENOMEM : status;
}

peg_status calls_check_content(struct calls_loop *calls, const peg_schema *schema, peg_str response)
{
    return check_content(schema, response, calls->doc, &calls->text);
}

/* ---- on a worker ------------------------------------------------------------------------------
 */

struct calls_check {
    struct net_work work; /* the first member */
    struct peg__blob *keep;
    struct text text;                 /* in it; the JSON of an answer may be none: "" */
    peg_str response;                 /* likewise; "": it is no answer */
    struct calls_result_quota *quota; /* NULL: it is no answer */
    uint16_t account;
    peg_status status;
    struct peg__buf words;
    void (*done)(void *user, peg_status status, peg_str words); /* NULL: forgotten */
    void *user;
};

/* Whoever packed the answer has seen that they have a kind. */
static peg_status check_server_data(peg_str response, peg_checker *checker, peg_json_doc *doc,
                                    struct peg__buf *words)
{
    struct text text = {.name = "server-data"};
    peg_str data;
    peg_status status = PEG_OK;

    while (!status &&
           wire_next_bytes(&response, PEGBOARD_V1_CALL_TOOL_RESPONSE_SERVER_DATA_FIELD, &data)) {
        text.json = wire_find_bytes(data, PEGBOARD_V1_SERVER_DATA_DATA_FIELD);
        if (!text.json.len)
            text.json = peg__str("");
        status = check_json_text(&text, checker, doc, words);
    }
    return status;
}

static void check_on_worker(struct net_work *work)
{
    struct calls_check *check = (struct calls_check *)work;
    peg_checker *checker = NULL;
    peg_json_doc *doc = NULL;

    check->status = peg_checker_new(NULL, &checker, NULL);
    if (!check->status)
        check->status = peg_json_parse(peg__str("null"), NULL, &doc, NULL);
    if (!check->status && (check->text.json.len || !check->response.len))
        check->status = check_json_text(&check->text, checker, doc, &check->words);
    if (!check->status && wire_content_is_there(check->response))
        check->status = check_content(check->text.schema, check->response, doc, &check->words);
    if (!check->status)
        check->status = check_server_data(check->response, checker, doc, &check->words);
    peg_json_doc_free(doc);
    peg_checker_free(checker);
}

static void free_check(struct calls_check *check)
{
    if (check->quota)
        calls_result_quota_end_read(check->quota, check->account, check->keep->len);
    calls_result_quota_unref(check->quota);
    peg__blob_unref(check->keep);
    peg_schema_unref(check->text.schema);
    peg__buf_free(&check->words);
    peg__free(check);
}

static void done(struct net_work *work, bool was_canceled)
{
    struct calls_check *check = (struct calls_check *)work;
    const peg_status status = was_canceled ? PEG_ENOMEM : check->status;

    if (check->done)
        check->done(check->user, status,
                    status == PEG_ENOMEM ? peg__str("the gateway is out of memory: try again later")
                                         : peg__buf_view(&check->words));
    free_check(check);
}

struct calls_check *
calls_check_start_answer(struct calls_loop *calls, peg_schema *schema, struct peg__blob *keep,
                         const struct calls_check_answer *answer,
                         void (*done_fn)(void *user, peg_status status, peg_str words), void *user)
{
    struct calls_check *check = (struct calls_check *)peg__alloc_zero(1, sizeof(*check));

    if (!check)
        return NULL;
    *check = (struct calls_check){
        .work = {.work = check_on_worker, .done = done},
        .keep = peg__blob_ref(keep),
        .text = {.schema = schema ? peg_schema_ref(schema) : NULL,
                 .json = answer->result,
                 .name = answer->response.len ? "result" : "payload"},
        .response = answer->response,
        .quota = answer->response.len ? calls_result_quota_ref(calls->results) : NULL,
        .account = answer->account,
        .words.max = PEG_LIMIT_GATEWAY_MESSAGE_BYTES,
        .done = done_fn,
        .user = user,
    };
    if (check->quota)
        calls_result_quota_begin_read(check->quota, check->account, keep->len);
    if (net_loop_work(calls->loop, &check->work)) {
        free_check(check);
        return NULL;
    }
    return check;
}

struct calls_check *calls_check_start(struct calls_loop *calls, peg_schema *schema,
                                      struct peg__blob *keep, peg_str json,
                                      void (*done_fn)(void *user, peg_status status, peg_str words),
                                      void *user)
{
    const struct calls_check_answer answer = {.result = json};

    return calls_check_start_answer(calls, schema, keep, &answer, done_fn, user);
}

enum calls_error calls_check_error(peg_status status)
{
    if (status == PEG_ENOMEM)
        return CALLS_OVERLOADED;
    return status == PEG_ELIMIT ? CALLS_UNDECIDED : CALLS_VALIDATION;
}

void calls_check_forget(struct calls_check *check)
{
    check->done = NULL;
}
