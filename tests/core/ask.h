/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_ASK_H
#define PEG_TESTS_ASK_H

/*
 * Asks a query of a kind, with a call that lives on the stack: no tool, no registry, no schema.
 *
 *   CHECK_ASK(&peg_artifact_text, "a\nb\n", "artifact_head", "{\"n\":1}", "a");
 *
 * A failure is told as its code, a colon and its sentence.
 */

#include "../t.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "core/run/run.h"
#include "pegboard/artifact.h"
#include "pegboard/reader.h"

struct ask {
    const peg_artifact_kind *kind;
    peg_str bytes;
    const char *query;
    const char *args;        /* JSON text */
    size_t max_result_bytes; /* 0: 8 MiB */
    peg_ctx *ctx;            /* NULL: one of its own */
};

static inline peg_query_fn ask_query(const peg_artifact_kind *kind, const char *name)
{
    for (size_t i = 0; i < kind->n_queries; i++) {
        if (strcmp(kind->queries[i].name, name) == 0)
            return kind->queries[i].run;
    }
    T_FAIL("there is no query %s", name);
    return NULL;
}

/* PEG_ENOMEM, or PEG_OK and the answer, or PEG_EHOST and why there is none. */
static inline peg_status ask_call(const struct ask *ask, peg_artifact *artifact,
                                  const peg_json *args, peg_ctx *ctx, struct peg__buf *out)
{
    struct peg__task task = {.max_result_bytes = ask->max_result_bytes ? ask->max_result_bytes
                                                                       : PEG_LIMIT_RESULT_BYTES};
    struct peg_call call = {.task = &task, .ctx = ctx};
    peg_status status;

    ask_query(ask->kind, ask->query)(&call, artifact, args);
    status = call.is_out_of_memory ? PEG_ENOMEM : PEG_OK;
    if (call.answer.kind == PEG__ANSWER_FAILURE) {
        status = PEG_EHOST;
        if (call.answer.cause && strcmp(call.answer.cause, "E_OUT_OF_MEMORY") == 0)
            status = PEG_ENOMEM;
        peg__buf_printf(out, "%s: ", call.answer.cause ? call.answer.cause : "");
    } else if (!status) {
        CHECK(call.answer.kind == PEG__ANSWER_TEXT);
    }
    peg__buf_str(out, peg__buf_view(&call.answer.text));
    peg__buf_free(&call.answer.text);
    peg__free(call.answer.cause);
    return status ? status : out->status;
}

static inline peg_status ask(const struct ask *ask, struct peg__buf *out)
{
    peg_reader *reader = NULL;
    peg_artifact *artifact = NULL;
    peg_json_doc *args = NULL;
    peg_ctx *ctx = ask->ctx ? peg_ctx_ref(ask->ctx) : NULL;
    peg_status status;

    if (!(status = peg_reader_from_bytes(ask->bytes, &reader, NULL)) &&
        !(status = peg_artifact_new(ask->kind, reader, &artifact, NULL)) &&
        !(status = peg_json_parse(peg__str(ask->args), NULL, &args, NULL)) &&
        !(status = ctx ? PEG_OK : peg_ctx_new(&ctx, NULL)))
        status = ask_call(ask, artifact, peg_json_root(args), ctx, out);
    peg_ctx_unref(ctx);
    peg_json_doc_free(args);
    peg_artifact_unref(artifact);
    peg_reader_unref(reader);
    return status;
}

static inline void ask_check(const struct ask *question, const char *file, int line,
                             const char *expected)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const peg_status status = ask(question, &out);
    const peg_str answer = peg__buf_view(&out);

    if ((status && status != PEG_EHOST) || !peg__str_is(answer, expected)) {
        printf("# %s:%d: %s %s of \"%.*s\"\n#   answers \"%.*s\"\n#   not     \"%s\"\n", file, line,
               question->query, question->args, (int)(question->bytes.len % 200),
               question->bytes.ptr, (int)(answer.len % 2000), answer.ptr, expected);
        longjmp(t_stop, 1);
    }
    peg__buf_free(&out);
}

#define CHECK_ASK_BYTES(a_kind, a_bytes, a_query, a_args, expected)                                \
    ask_check(                                                                                     \
        &(const struct ask){                                                                       \
            .kind = (a_kind), .bytes = (a_bytes), .query = (a_query), .args = (a_args)},           \
        __FILE__, __LINE__, expected)
#define CHECK_ASK(a_kind, a_text, a_query, a_args, expected)                                       \
    CHECK_ASK_BYTES(a_kind, peg__str(a_text), a_query, a_args, expected)

#endif
