/* SPDX-License-Identifier: Apache-2.0 */

/* Is a text JSON that a schema accepts? Small ones at once, in memory that the desk keeps; large
 * ones, and those that turn out to take long, on a worker: they cost their own caller and nobody
 * else. */

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "gateway/call.h"
#include "wire/pack.h"

/* As the reference gateway begins such a message. */
static const char PREFIX[] = "payload validation failed: ";

static peg_status explain_parse(const peg_error *error, struct peg__buf *words)
{
    peg__buf_clear(words);
    peg__buf_printf(words, "%s%s", PREFIX, error->message);
    return error->status == PEG_ENOMEM ? PEG_ENOMEM : PEG_EPARSE;
}

/* One failure a line, the last one without an end: it is a sentence in a message. */
static void add_report(struct peg__buf *words, peg_str text)
{
    while (text.len && text.ptr[text.len - 1] == '\n')
        text.len--;
    if (text.len > words->max - words->len)
        text.len = words->max - words->len;
    peg__buf_str(words, text);
}

static peg_status explain_verdict(peg_schema *schema, peg_checker *checker, const peg_json *value,
                                  struct peg__buf *words)
{
    peg_report *report;
    peg_status status = peg_report_new(&report, NULL);
    peg_verdict verdict;

    if (status)
        return status;
    peg__buf_clear(words);
    peg__buf_puts(words, PREFIX);
    verdict = peg_schema_report(schema, checker, value, report);
    if (verdict == PEG_UNDECIDED)
        peg__buf_printf(words, "the check was given up at its limit %s",
                        peg_checker_reason(checker));
    else
        add_report(words, peg_report_text(report));
    peg_report_free(report);
    return verdict == PEG_UNDECIDED ? PEG_ELIMIT : PEG_ESCHEMA;
}

static peg_status check_text(peg_schema *schema, peg_checker *checker, peg_json_doc *doc,
                             peg_str json, struct peg__buf *words)
{
    peg_error error;

    if (peg_json_reparse(doc, json, NULL, &error))
        return explain_parse(&error, words);
    if (!schema || peg_schema_check(schema, checker, peg_json_root(doc)) == PEG_VALID)
        return PEG_OK;
    return explain_verdict(schema, checker, peg_json_root(doc), words);
}

peg_status gw_check_now(struct gw_desk *desk, peg_schema *schema, peg_str json)
{
    return check_text(schema, desk->checker, desk->doc, json, &desk->text);
}

/* ---- on a worker ------------------------------------------------------------------------------
 */

struct gw_check {
    struct net_work work; /* the first member */
    struct peg__blob *keep;
    peg_str json;     /* in it; of an answer "" is none */
    peg_str response; /* likewise; "": it is no answer */
    peg_schema *schema;
    peg_status status;
    struct peg__buf words;
    void (*done)(void *user, peg_status status, peg_str words); /* NULL: forgotten */
    void *user;
};

/* Whoever packed the answer has seen that they have a kind. */
static peg_status check_server_data(peg_str response, peg_checker *checker, peg_json_doc *doc,
                                    struct peg__buf *words)
{
    peg_str data;
    peg_str json;
    peg_status status = PEG_OK;

    while (!status && wire_next_bytes(&response, 4, &data)) {
        json = wire_find_bytes(data, 3);
        status = check_text(NULL, checker, doc, json.len ? json : peg__str(""), words);
    }
    if (status && status != PEG_ENOMEM) {
        peg__buf_clear(words);
        peg__buf_puts(words, GW_BAD_SERVER_DATA);
    }
    return status;
}

static void work(struct net_work *work)
{
    struct gw_check *check = (struct gw_check *)work;
    peg_checker *checker = NULL;
    peg_json_doc *doc = NULL;

    check->status = peg_checker_new(NULL, &checker, NULL);
    if (!check->status)
        check->status = peg_json_parse(peg__str("null"), NULL, &doc, NULL);
    if (!check->status && (check->json.len || !check->response.len))
        check->status = check_text(check->schema, checker, doc, check->json, &check->words);
    if (!check->status)
        check->status = check_server_data(check->response, checker, doc, &check->words);
    peg_json_doc_free(doc);
    peg_checker_free(checker);
}

static void free_check(struct gw_check *check)
{
    peg__blob_unref(check->keep);
    peg_schema_unref(check->schema);
    peg__buf_free(&check->words);
    peg__free(check);
}

static void done(struct net_work *work, bool was_canceled)
{
    struct gw_check *check = (struct gw_check *)work;

    if (check->done)
        check->done(check->user, was_canceled ? PEG_ENOMEM : check->status,
                    peg__buf_view(&check->words));
    free_check(check);
}

struct gw_check *
gw_check_start_answer(struct gw_desk *desk, peg_schema *schema, struct peg__blob *keep,
                      const struct gw_check_answer *answer,
                      void (*done_fn)(void *user, peg_status status, peg_str words), void *user)
{
    struct gw_check *check = (struct gw_check *)peg__alloc_zero(1, sizeof(*check));

    if (!check)
        return NULL;
    *check = (struct gw_check){
        .work = {.work = work, .done = done},
        .keep = peg__blob_ref(keep),
        .json = answer->result,
        .response = answer->response,
        .schema = schema ? peg_schema_ref(schema) : NULL,
        .words.max = PEG_LIMIT_GATEWAY_WORDS,
        .done = done_fn,
        .user = user,
    };
    if (net_loop_work(desk->loop, &check->work)) {
        free_check(check);
        return NULL;
    }
    return check;
}

struct gw_check *gw_check_start(struct gw_desk *desk, peg_schema *schema, struct peg__blob *keep,
                                peg_str json,
                                void (*done_fn)(void *user, peg_status status, peg_str words),
                                void *user)
{
    const struct gw_check_answer answer = {.result = json};

    return gw_check_start_answer(desk, schema, keep, &answer, done_fn, user);
}

void gw_check_forget(struct gw_check *check)
{
    check->done = NULL;
}
