/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: a letter that chooses the query, its arguments up to the end of the line, and the
 * artifact. Whatever a model asks about whatever bytes, the answer is UTF-8, within its bounds, and
 * the same when asked again; a failure says why.
 *
 *   g<flags>/<pattern>   grep          p<path>   json_get
 *   c<start>,<end>       cat           f<path>   json_filter
 *   t<n>                 tail          s<start>,<end>   json_slice
 *   k                    json_keys
 */

#include "base/limits.h"
#include "base/text/str.h"
#include "core/run/run.h"
#include "fuzz.h"
#include "pegboard/artifact.h"

enum { MAX_RESULT = 4096 };

/* ---- the question ----------------------------------------------------------------------- */

struct question {
    const peg_artifact_kind *kind;
    const char *name;
    peg_json_doc *args;
};

static void add_string(peg_json_builder *b, const char *name, peg_str value)
{
    peg_json_add_key(b, peg__str(name));
    peg_json_add_string(b, value);
}

/* Digits at the start of *rest; nothing is added if there are none. */
static void add_number(peg_json_builder *b, const char *name, peg_str *rest)
{
    int64_t number = 0;
    size_t len = 0;

    while (len < rest->len && len < 18 && rest->ptr[len] >= '0' && rest->ptr[len] <= '9')
        number = number * 10 + (rest->ptr[len++] - '0');
    *rest = peg__str_from(*rest, len);
    if (len == 0)
        return;
    peg_json_add_key(b, peg__str(name));
    peg_json_add_integer(b, number);
}

static void add_range(peg_json_builder *b, peg_str rest)
{
    add_number(b, "start", &rest);
    if (rest.len && rest.ptr[0] == ',')
        rest = peg__str_from(rest, 1);
    add_number(b, "end", &rest);
}

static void add_grep(peg_json_builder *b, peg_str rest)
{
    size_t n = 0;

    while (n < rest.len && strchr("imsu", rest.ptr[n]) && rest.ptr[n])
        n++;
    add_string(b, "flags", peg__strn(rest.ptr, n));
    if (n < rest.len && rest.ptr[n] == '/')
        n++;
    add_string(b, "pattern", peg__str_from(rest, n));
}

static struct question read_question(peg_str line)
{
    struct question q = {.kind = &peg_artifact_json};
    peg_json_builder *b = peg_json_builder_new();
    peg_str rest = line.len ? peg__str_from(line, 1) : line;

    peg_json_open_object(b);
    switch (line.len ? line.ptr[0] : 0) {
    case 'g':
        q.kind = &peg_artifact_text;
        q.name = "artifact_grep";
        add_grep(b, rest);
        break;
    case 'c':
        q.kind = &peg_artifact_text;
        q.name = "artifact_cat";
        add_range(b, rest);
        break;
    case 't':
        q.kind = &peg_artifact_text;
        q.name = "artifact_tail";
        add_number(b, "n", &rest);
        break;
    case 'p':
        q.name = "artifact_json_get";
        add_string(b, "path", rest);
        break;
    case 'f':
        q.name = "artifact_json_filter";
        add_string(b, "path", rest);
        break;
    case 's':
        q.name = "artifact_json_slice";
        add_range(b, rest);
        break;
    default:
        q.name = "artifact_json_keys";
        break;
    }
    peg_json_close(b);
    REQUIRE(peg_json_builder_finish(b, &q.args, NULL) == PEG_OK, "arguments");
    return q;
}

/* ---- the answer --------------------------------------------------------------------------- */

static peg_query_fn query_of(const struct question *q)
{
    for (size_t i = 0; i < q->kind->n_queries; i++) {
        if (strcmp(q->kind->queries[i].name, q->name) == 0)
            return q->kind->queries[i].run;
    }
    REQUIRE(false, "there is no %s", q->name);
    return NULL;
}

struct answer {
    struct peg__buf text;
    bool failed;
    bool took_too_long;
};

/* Text, or a sentence; both are checked. */
static struct answer ask(const struct question *q, peg_artifact *artifact, peg_ctx *ctx)
{
    struct answer answer = {0};
    struct peg__task task = {.max_result_bytes = MAX_RESULT};
    struct peg_call call = {.task = &task, .ctx = ctx};

    query_of(q)(&call, artifact, peg_json_root(q->args));
    REQUIRE(!call.is_out_of_memory, "memory");
    REQUIRE(call.answer.kind == PEG__ANSWER_TEXT || call.answer.kind == PEG__ANSWER_FAILURE,
            "answer %d", (int)call.answer.kind);
    if (call.answer.kind == PEG__ANSWER_FAILURE) {
        REQUIRE(call.answer.cause && strncmp(call.answer.cause, "E_", 2) == 0, "it has a code");
        REQUIRE(call.answer.text.len > 0, "it has words");
        answer.failed = true;
        answer.took_too_long = strcmp(call.answer.cause, "E_QUERY_LIMIT") == 0;
    }
    REQUIRE(call.answer.text.len <= MAX_RESULT, "%zu bytes", call.answer.text.len);
    REQUIRE(peg__utf8_is_valid(peg__buf_view(&call.answer.text)), "%s", call.answer.text.ptr);
    peg__free(call.answer.cause);
    answer.text = call.answer.text;
    return answer;
}

static void check_answer(const struct question *q, peg_str bytes)
{
    peg_reader *reader = NULL;
    peg_artifact *artifact = NULL;
    peg_ctx *ctx = NULL;
    struct answer first;
    struct answer second;

    REQUIRE(peg_reader_from_bytes(bytes, &reader, NULL) == PEG_OK, "reader");
    REQUIRE(peg_artifact_new(q->kind, reader, &artifact, NULL) == PEG_OK, "artifact");
    REQUIRE(peg_ctx_new(&ctx, NULL) == PEG_OK, "context");
    first = ask(q, artifact, ctx);
    second = ask(q, artifact, ctx);
    REQUIRE(first.took_too_long || second.took_too_long ||
                (first.failed == second.failed &&
                 peg__str_eq(peg__buf_view(&first.text), peg__buf_view(&second.text))),
            "\"%s\", then \"%s\"", first.text.ptr, second.text.ptr);
    peg__buf_free(&first.text);
    peg__buf_free(&second.text);
    peg_ctx_unref(ctx);
    peg_artifact_unref(artifact);
    peg_reader_unref(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peg_str bytes = fuzz_input(data, size);
    const peg_str line = fuzz_utf8(fuzz_line(&bytes));
    struct question q = read_question(line);

    check_answer(&q, bytes);
    peg_json_doc_free(q.args);
    fuzz_free(line);
    return 0;
}
