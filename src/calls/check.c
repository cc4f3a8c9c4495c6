/* SPDX-License-Identifier: Apache-2.0 */

/* Is a text JSON that a schema accepts? Small ones at once, in memory that the loop keeps; large
 * ones, and those that turn out to take long, on a worker: they cost their own caller
 * alone. */

#include "calls/check.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/content.h"
#include "wire/pack.h"
#include "wire/report.h"
#include "json/json.h"

/* What texts are checked with, and what they are called in words about them: "payload". */
struct checking {
    peg_checker *checker;
    peg_json_doc *doc;
    struct peg__buf *words;
    peg_schema *schema; /* NULL: any JSON will do */
    const char *name;
};

/* As the reference gateway does with payloads. */
static void begin_words(const struct checking *checking)
{
    peg__buf_printf(checking->words, "%s validation failed: ", checking->name);
}

static peg_status explain_parse(const struct checking *checking, const peg_error *error)
{
    begin_words(checking);
    peg__buf_puts(checking->words, error->message);
    if (peg__json_is_duplicate(error))
        peg__buf_printf(checking->words, " (%s)", error->code);
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

static peg_status explain_limit(const struct checking *checking)
{
    const char *reason = peg_checker_reason(checking->checker);

    if (peg__str_is(peg__str(reason), "memory"))
        return PEG_ENOMEM;
    peg__buf_printf(checking->words,
                    "the check of the %s reached its limit %s before it had a verdict: send less, "
                    "or simplify the schema",
                    checking->name, reason);
    return PEG_ELIMIT;
}

/* The verdict first, which is quick; then all that is wrong. */
static peg_status check_parsed_value(const struct checking *checking, const peg_json *value)
{
    peg_verdict verdict = peg_schema_check(checking->schema, checking->checker, value);
    peg_report *report = NULL;
    peg_status status = PEG_OK;

    if (verdict == PEG_INVALID) {
        status = peg_report_new(&report, NULL);
        if (status)
            return status;
        verdict = peg_schema_report(checking->schema, checking->checker, value, report);
    }
    if (verdict == PEG_UNDECIDED) {
        status = explain_limit(checking);
    } else if (verdict == PEG_INVALID) {
        status = PEG_ESCHEMA;
        begin_words(checking);
        add_report(checking->words, peg_report_text(report));
    }
    peg_report_free(report);
    return status;
}

/* PEG_ENOMEM: there may be no words about it, or a part of them. */
static peg_status check_json(const struct checking *checking, peg_str json)
{
    peg_status status = PEG_OK;
    peg_error error;

    peg__buf_clear(checking->words);
    if (peg_json_reparse(checking->doc, json, &peg__json_refuse_duplicates, &error))
        status = explain_parse(checking, &error);
    else if (checking->schema)
        status = check_parsed_value(checking, peg_json_root(checking->doc));
    return checking->words->status == PEG_ENOMEM ? PEG_ENOMEM : status;
}

/* An output schema is about JSON. As in the library, a result that is none does not fit it. */
static peg_status check_content(const struct checking *checking, peg_str response)
{
    struct checking each = *checking;
    struct wire_content part;
    peg_error error;
    peg_status status = PEG_OK;

    each.name = "content";
    peg__buf_clear(checking->words);
    if (checking->schema) {
        peg__buf_puts(checking->words,
                      "result validation failed: the tool has an output schema, and its "
                      "result is typed content, not JSON");
        status = PEG_ESCHEMA;
    } else if (wire_content_check(response, &error)) {
        peg__buf_puts(checking->words, error.message);
        status = PEG_EINVAL; /* a limit of the protocol is no check that a worker might finish */
    }
    while (!status && wire_content_next(&response, &part)) {
        if (part.kind == WIRE_JSON)
            status = check_json(&each, part.bytes);
    }
    return checking->words->status == PEG_ENOMEM ? PEG_ENOMEM : status;
}

/* ---- at once ---- */

static struct checking checking_of(struct calls_loop *calls, peg_schema *schema, const char *name)
{
    return (struct checking){calls->checker, calls->doc, &calls->text, schema, name};
}

peg_status calls_check_now(struct calls_loop *calls, peg_schema *schema, peg_str json,
                           const char *name)
{
    const struct checking checking = checking_of(calls, schema, name);

    return check_json(&checking, json);
}

peg_status calls_check_content(struct calls_loop *calls, peg_schema *schema, peg_str response)
{
    const struct checking checking = checking_of(calls, schema, "result");

    return check_content(&checking, response);
}

/* ---- on a worker ---- */

struct calls_check {
    struct net_work work; /* the first member */
    struct peg__blob *keep;
    struct calls_check_text text;
    struct checking checking;
    struct calls_result_quota *quota; /* NULL: it is no answer */
    peg_status status;
    struct peg__buf words;
    calls_check_fn *done; /* NULL: forgotten */
    void *user;
};

/* They have a kind: that was checked when the answer was packed. */
static peg_status check_server_data(const struct checking *checking, peg_str response)
{
    struct checking each = *checking;
    peg_str item;
    peg_status status = PEG_OK;

    each.name = "server-data";
    each.schema = NULL;
    while (!status &&
           wire_next_bytes(&response, PEGBOARD_V1_CALL_TOOL_RESPONSE_SERVER_DATA_FIELD, &item)) {
        const peg_str data = wire_find_bytes(item, PEGBOARD_V1_SERVER_DATA_DATA_FIELD);

        status = check_json(&each, data.len ? data : peg__str(""));
    }
    return status;
}

static void check_on_worker(struct net_work *work)
{
    struct calls_check *check = (struct calls_check *)work;
    const struct calls_check_text *text = &check->text;
    struct checking *checking = &check->checking;

    check->status = peg_checker_new(NULL, &checking->checker, NULL);
    if (!check->status)
        check->status = peg_json_parse(peg__str("null"), NULL, &checking->doc, NULL);
    if (!check->status && (text->json.len || !text->response.len))
        check->status = check_json(checking, text->json);
    if (!check->status && wire_content_is_there(text->response))
        check->status = check_content(checking, text->response);
    if (!check->status)
        check->status = check_server_data(checking, text->response);
    peg_json_doc_free(checking->doc);
    peg_checker_free(checking->checker);
}

static void free_check(struct calls_check *check)
{
    if (check->quota)
        calls_result_quota_end_read(check->quota, check->text.account, check->keep->len);
    calls_result_quota_unref(check->quota);
    peg__blob_unref(check->keep);
    peg_schema_unref(check->checking.schema);
    peg__buf_free(&check->words);
    peg__free(check);
}

static void end_check(struct net_work *work, bool was_canceled)
{
    struct calls_check *check = (struct calls_check *)work;
    const peg_status status = was_canceled ? PEG_ENOMEM : check->status;

    if (check->done)
        check->done(check->user, status,
                    status == PEG_ENOMEM ? peg__str("the gateway is out of memory: try again later")
                                         : peg__buf_view(&check->words));
    free_check(check);
}

struct calls_check *calls_check_start(struct calls_loop *calls, peg_schema *schema,
                                      struct peg__blob *keep, const struct calls_check_text *text,
                                      calls_check_fn *done, void *user)
{
    struct calls_check *check = (struct calls_check *)peg__alloc_zero(1, sizeof(*check));

    if (!check)
        return NULL;
    *check = (struct calls_check){
        .work = {.work = check_on_worker, .done = end_check},
        .keep = peg__blob_ref(keep),
        .text = *text,
        .checking = {.schema = schema ? peg_schema_ref(schema) : NULL,
                     .words = &check->words,
                     .name = text->response.len ? "result" : "payload"},
        .quota = text->response.len ? calls_result_quota_ref(calls->results) : NULL,
        .words.max = PEG_LIMIT_GATEWAY_MESSAGE_BYTES,
        .done = done,
        .user = user,
    };
    if (check->quota)
        calls_result_quota_begin_read(check->quota, text->account, keep->len);
    if (net_loop_work(calls->loop, &check->work)) {
        free_check(check);
        return NULL;
    }
    return check;
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
