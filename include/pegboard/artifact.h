/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_ARTIFACT_H
#define PEGBOARD_ARTIFACT_H

/*
 * An artifact: a result too large for a prompt. The model gets a handle and asks about it with the
 * queries of the artifact's kind, which are offered as tools for as long as the dispatch lasts.
 *
 * Shared, reference counted; any thread. Reading it is lazy; what is found out (lines, a parsed
 * form) is found out once.
 */

#include <pegboard/call.h>
#include <pegboard/reader.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * ---- queries ----
 *
 * A query is one question about an artifact. While a dispatch has artifacts, each query of their
 * kinds is offered to the model as a tool of the query's name, untrusted and ephemeral. Its input
 * schema is made from the query:
 *
 *   {"type": "object",
 *    "properties": {"callId": {"enum": [handles of the artifacts that have the query]},
 *                   ...properties},
 *    "required": ["callId", ...required]}
 *
 *   member       accepted                                         refused
 *   name         a tool's: [A-Za-z0-9_.:/-]{1,256}                taken in the kind or a base of it
 *   description  1 byte to 64 KiB of UTF-8                        missing, empty
 *   properties   NULL, or the JSON text of an object that has     "callId", a name twice, a schema
 *                a schema (object or boolean) for each argument   that does not compile
 *   required     NULL, or the JSON text of an array of names      a name that is not in properties
 *   run          the function that answers                        NULL
 *
 * Arguments are checked against the schema before run is called, which gets them with callId and
 * the artifact that callId names. run must answer with text or JSON: peg_call_reply(),
 * peg_call_reply_json() or peg_call_fail(). A tool of the host with the same name is offered
 * instead of the query.
 *
 *   static void run_width(peg_call *call, peg_artifact *artifact, const peg_json *args)
 *   {
 *       ...reads peg_artifact_line(artifact, ...), and replies with a number
 *   }
 *
 *   static const peg_artifact_query queries[] = {
 *       {"table_width", "Return how many columns a row of the table has.",
 *        "{\"row\":{\"type\":\"integer\",\"minimum\":0}}", "[\"row\"]", run_width},
 *   };
 *   static const peg_artifact_kind table = {"table", NULL, queries, 1, NULL, NULL};
 *
 * The kinds of the library have these: text artifact_head, _tail, _grep, _cat, _byte_length,
 * _line_count, _estimate_tokens; json also artifact_json_type, _keys, _length, _get, _filter,
 * _slice, _pluck; markdown also artifact_md_frontmatter, _headings, _code_blocks, _sections,
 * _links, _images, _text, _ast.
 */

/* Answers one query; see above. */
typedef void (*peg_query_fn)(peg_call *call, peg_artifact *artifact, const peg_json *args);

typedef struct peg_artifact_query {
    const char *name;        /* of the tool, such as "artifact_head" */
    const char *description; /* for the model */
    const char *properties;  /* JSON object of argument schemas; NULL: none. The id is added */
    const char *required;    /* JSON array of names; NULL: none */
    peg_query_fn run;
} peg_artifact_query;

/* A kind is static data that outlives its artifacts. It has its base's queries and its own. */
struct peg_artifact_kind {
    const char *name;              /* "text", "json", "markdown", or the host's */
    const peg_artifact_kind *base; /* NULL: text */
    const peg_artifact_query *queries;
    size_t n_queries;
    /* Makes what peg_artifact_parsed() hands out, once per artifact, perhaps from its bytes and
     * lines; NULL: the base's. A kind whose base has one cannot have another, because the base's
     * queries rely on it. A parse that failed is called again when somebody asks again. */
    peg_status (*parse)(peg_artifact *artifact, void **ret_parsed, peg_error *reterr);
    void (*parsed_free)(void *parsed); /* may be NULL; not called for NULL */
};

PEG_API extern const peg_artifact_kind peg_artifact_text;
PEG_API extern const peg_artifact_kind peg_artifact_json;
PEG_API extern const peg_artifact_kind peg_artifact_markdown;

/* PEG_EINVAL (E_INVALID_ARGUMENT) for a kind that cannot work, with the field as `where`
 * ("/queries/2/properties", "/base/name"). Names are [A-Za-z0-9_.-]{1,64}, those of queries a
 * tool's and each only once, bases included; at most 64 queries, 16 kinds in a chain. */
PEG_API PEG_MUST_USE peg_status peg_artifact_kind_check(const peg_artifact_kind *kind,
                                                        peg_error *reterr);
/* True for a kind itself and for every kind it is made from. */
PEG_API bool peg_artifact_kind_is(const peg_artifact_kind *kind, const peg_artifact_kind *base);

/* References the reader. kind NULL means text; another is checked, but the schemas of its queries
 * are not compiled. PEG_EINVAL (E_NOT_A_SPOOL_READER, E_INVALID_ARGUMENT), PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_artifact_new(const peg_artifact_kind *kind, peg_reader *reader,
                                                 peg_artifact **ret_artifact, peg_error *reterr);
PEG_API peg_artifact *peg_artifact_ref(peg_artifact *artifact);
PEG_API peg_artifact *peg_artifact_unref(peg_artifact *artifact);

PEG_API const peg_artifact_kind *peg_artifact_kind_of(const peg_artifact *artifact);
PEG_API peg_reader *peg_artifact_reader(const peg_artifact *artifact); /* borrowed */

/* All bytes, borrowed from the artifact: read once, 64 MiB at most (E_READER_TOO_LARGE). */
PEG_API PEG_MUST_USE peg_status peg_artifact_bytes(peg_artifact *artifact, peg_str *ret_bytes,
                                                   peg_error *reterr);
/* -1 if it cannot be read. */
PEG_API int64_t peg_artifact_byte_length(peg_artifact *artifact);
/* Lines end at LF alone; a final LF begins a last, empty line; nothing at all has no lines. The
 * index is built once. */
PEG_API PEG_MUST_USE peg_status peg_artifact_line_count(peg_artifact *artifact, size_t *ret_n,
                                                        peg_error *reterr);
/* The line without its LF, borrowed from the artifact; PEG_OK with ptr NULL beyond the last one. */
PEG_API PEG_MUST_USE peg_status peg_artifact_line(peg_artifact *artifact, size_t i,
                                                  peg_str *ret_line, peg_error *reterr);
/* What the kind's parse made of it; borrowed from the artifact. Fails as the parse does, and with
 * PEG_EUNSUPPORTED (E_ARTIFACT_NOT_PARSED) where no kind in the chain has one. */
PEG_API PEG_MUST_USE peg_status peg_artifact_parsed(peg_artifact *artifact, void **ret_parsed,
                                                    peg_error *reterr);

/* ---- how many tokens ------------------------------------------------------------------ */

/* An estimate: bytes / 4 rounded up, for "claude" bytes / 3.5. SIZE_MAX says that it failed: then
 * bytes / 4 counts. May be called from several threads. */
typedef size_t (*peg_token_fn)(peg_str text, void *user);

/* "gpt2", "r50k_base", "p50k_base", "p50k_edit", "cl100k_base", "o200k_base", "gemini", "llama2",
 * "claude" are there; registering one of them replaces it. Process-wide, any thread; names
 * [a-z0-9_.-]{1,64}, at most 64 of them (E_INVALID_ARGUMENT, E_REGISTRY_FULL). fn NULL removes what
 * was registered, if anything; an estimate that runs meanwhile may still use it. */
PEG_API PEG_MUST_USE peg_status peg_token_counter_register(const char *encoding, peg_token_fn fn,
                                                           void *user, peg_error *reterr);
/* PEG_ENOTFOUND (E_TOKENS_UNKNOWN) lists the encodings there are. */
PEG_API PEG_MUST_USE peg_status peg_token_count_estimate(const char *encoding, peg_str text,
                                                         size_t *ret_n, peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
