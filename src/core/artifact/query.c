/* SPDX-License-Identifier: Apache-2.0 */

/* Between a call and a query: arguments in, an answer or a failure out, and when to give up. */

#include "core/artifact/query.h"

#include <time.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "core/run/run.h"

/* Of this thread: a machine that does other work takes nothing from a query's time. */
static int64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void peg__query_start(struct peg__query *query)
{
    query->cpu_until_ns = cpu_ns() + (int64_t)PEG_LIMIT_QUERY_MS * 1000000;
}

peg_status peg__query_check(const struct peg__query *query, peg_error *reterr)
{
    const peg_status status =
        query->call ? peg_ctx_check(peg_call_ctx(query->call), reterr) : PEG_OK;

    if (status)
        return status;
    if (cpu_ns() > query->cpu_until_ns)
        return peg__fail(reterr, PEG_ELIMIT, "E_QUERY_LIMIT",
                         "the query takes longer than %d ms; ask something "
                         "simpler, such as a pattern without nested repetition or a path without "
                         "'..'",
                         PEG_LIMIT_QUERY_MS);
    return PEG_OK;
}

static peg_status ask(const struct peg__query *query, peg__query_fn fn, struct peg__buf *out,
                      peg_error *reterr)
{
    const peg_status status = fn(query, out, reterr);

    if (status)
        return status;
    if (out->status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (out->status)
        return peg__fail(reterr, out->status, "E_TEXT_TOO_LARGE",
                         "the answer is longer than %zu bytes; ask for less", out->max);
    return PEG_OK;
}

void peg__query_answer(peg_call *call, peg_artifact *artifact, const peg_json *args,
                       peg__query_fn fn)
{
    const size_t max = call->task->max_result_bytes;
    struct peg__query query = {.artifact = artifact, .args = args, .call = call};
    struct peg__buf out = PEG__BUF(max < PEG_LIMIT_QUERY_BYTES ? max : PEG_LIMIT_QUERY_BYTES);
    peg_error error;

    peg__query_start(&query);
    if (ask(&query, fn, &out, &error) == PEG_OK)
        peg_call_reply(call, peg__buf_view(&out));
    else
        peg_call_fail_with(call, &error);
    peg__buf_free(&out);
}

size_t peg__query_size(const struct peg__query *query, const char *name, size_t fallback)
{
    const peg_json *value = peg_json_get(query->args, name);
    int64_t number;

    if (!value)
        return fallback;
    /* The schema wants a whole number that is not negative, so one that does not fit is huge. */
    return peg_json_int64(value, &number) && number >= 0 ? (size_t)number : SIZE_MAX;
}

peg_str peg__query_string(const struct peg__query *query, const char *name)
{
    const peg_json *value = peg_json_get(query->args, name);

    return value && value->kind == PEG_JSON_STRING ? peg_json_str(value) : (peg_str){NULL, 0};
}
