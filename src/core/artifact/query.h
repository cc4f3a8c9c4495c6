/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_ARTIFACT_QUERY_H
#define PEG_CORE_ARTIFACT_QUERY_H

/*
 * What the queries of artifacts share. A query reads an artifact and writes an answer:
 *
 *   static peg_status line_count(const struct peg__query *query, struct peg__buf *out,
 *                                peg_error *reterr);
 *
 *   PEG__DEFINE_QUERY(run_line_count, line_count)   for peg_artifact_query.run
 *
 * The first half needs no call, so tests and fuzzers ask it directly. Answers are valid UTF-8 and
 * at most PEG_LIMIT_QUERY_BYTES long: a longer one is cut at the end of a line, and its last line
 * reports the cut.
 */

#include "base/buf.h"
#include "pegboard/artifact.h"

/* One question; lives on the caller's stack. */
struct peg__query {
    peg_artifact *artifact;
    const peg_json
        *args; /* as the schema of the query has them; all optional ones may be missing */
    const peg_call *call; /* NULL: nothing stops it */
    int64_t cpu_until_ns; /* on the thread's CPU clock; set by peg__query_start() */
};

/* The query may take PEG_LIMIT_QUERY_MS of this thread's CPU time from now. */
void peg__query_start(struct peg__query *query);

/* Writes the answer, or fails with a message for the model. */
typedef peg_status (*peg__query_fn)(const struct peg__query *query, struct peg__buf *out,
                                    peg_error *reterr);

/* Asks and answers the call: a reply, or a failure with the error. */
void peg__query_answer(peg_call *call, peg_artifact *artifact, const peg_json *args,
                       peg__query_fn fn);
#define PEG__DEFINE_QUERY(run, fn)                                                                 \
    static void run(peg_call *call, peg_artifact *artifact, const peg_json *args)                  \
    {                                                                                              \
        peg__query_answer(call, artifact, args, fn);                                               \
    }

/* Long queries ask this now and then: PEG_ECANCELED or PEG_ETIMEOUT as the call says, PEG_ELIMIT
 * (E_QUERY_LIMIT) beyond PEG_LIMIT_QUERY_MS of CPU time. */
peg_status peg__query_check(const struct peg__query *query, peg_error *reterr);

/* ---- arguments ---------------------------------------------------------------------- */

/* A number >= 0; `fallback` if it is missing, SIZE_MAX if it is larger than that. */
size_t peg__query_size(const struct peg__query *query, const char *name, size_t fallback);
/* A string; {NULL, 0} if it is missing. */
peg_str peg__query_string(const struct peg__query *query, const char *name);

/* ---- answers ------------------------------------------------------------------------ */

/* Adds bytes from outside. What is not UTF-8 becomes U+FFFD. Where they don't fit, as many as do
 * are added, whole characters, and the buffer's status is PEG_ELIMIT. */
void peg__query_put(struct peg__buf *out, peg_str bytes);

/*
 * The rendering rule: NULL is "(undefined)", null "null", a string stands as it is, an array of
 * strings has one a line, an empty one is "(empty list)", a number is decimal, and anything else is
 * JSON with two spaces a level. Ends the answer.
 */
void peg__query_render(const peg_json *value, struct peg__buf *out);

/* Values that need not stand together in a document. Owned. */
struct peg__query_list {
    const peg_json **items;
    size_t len;
    size_t capacity;
    bool is_cut; /* there were more than PEG_LIMIT_QUERY_VALUES */
};

/* Adds a value, or sets is_cut. PEG_ENOMEM only. */
peg_status peg__query_list_add(struct peg__query_list *list, const peg_json *value,
                               peg_error *reterr);
void peg__query_list_free(struct peg__query_list *list);
/* As peg__query_render() would an array of them. `instead` ends the sentence "... was reached; "
 * of an answer that is cut. Ends the answer. */
void peg__query_render_list(const struct peg__query_list *list, const char *instead,
                            struct peg__buf *out);

/* Ends an answer. One that reached its maximum (status PEG_ELIMIT) is cut at the end of a line, or
 * within its only one, and the last line becomes "[cut: ...; <instead>]". */
void peg__query_finish(struct peg__buf *out, const char *instead);

/* ---- what a tool of the query takes --------------------------------------------------- */

/* The argument schemas of a query as they are now, as peg_artifact_query.properties has them: for
 * artifact_estimate_tokens with the encodings that are registered. */
void peg__query_properties(const peg_artifact_query *query, struct peg__buf *out);

/* ---- of JSON --------------------------------------------------------------- */

/* What a JSON artifact is parsed into: records, one for a JSON or JSON5 text, else one a line. */

enum peg__json_format {
    PEG__FORMAT_JSON,
    PEG__FORMAT_LINES,
    PEG__FORMAT_JSON5,
};

/* Owned, immutable. */
struct peg__records {
    enum peg__json_format format;
    peg_json_doc *doc;
    const peg_json *first; /* NULL if there are none */
    const peg_json *end;   /* behind the last */
    size_t n;
};

/* for each record of records */
#define PEG__RECORDS_EACH(records, record)                                                         \
    for (const peg_json *record = (records)->first; record < (records)->end;                       \
         record = peg_json_next(record))

/* The first of JSON, JSON Lines and JSON5 that the text is. PEG_EPARSE (E_JSON_SYNTAX) says
 * why it is none of them; PEG_ELIMIT as peg_json_parse(); PEG_ENOMEM. */
peg_status peg__records_new(peg_str text, struct peg__records **ret_records, peg_error *reterr);
struct peg__records *peg__records_free(struct peg__records *records);

#endif
