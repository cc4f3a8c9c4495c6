/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_SCHEMA_H
#define PEGBOARD_SCHEMA_H

/*
 * JSON Schema: compile once, check many times.
 *
 *   peg_schema       a compiled schema; immutable, shared, any thread
 *   peg_schema_docs  documents that a $ref may lead to
 *   peg_checker      scratch memory for checks; one thread at a time
 *   peg_report       what is wrong with a value, in words; one thread at a time
 *
 * Compiling never touches a network or a file. Every bound has a name, and the
 * error says it. NULL as a value to check is an absent value and reads as null.
 */

#include <pegboard/json.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- compiling ------------------------------------------------------------ */

typedef enum peg_dialect {
    PEG_DIALECT_DEFAULT = 0, /* 2020-12 */
    PEG_DIALECT_DRAFT4,
    PEG_DIALECT_DRAFT6,
    PEG_DIALECT_DRAFT7,
    PEG_DIALECT_2019_09,
    PEG_DIALECT_2020_12,
    PEG_DIALECT_V1, /* https://json-schema.org/v1 */
} peg_dialect;

typedef enum peg_format_mode {
    PEG_FORMAT_BY_DIALECT = 0, /* asserted up to draft-07, by vocabulary after */
    PEG_FORMAT_ASSERT,
    PEG_FORMAT_IGNORE,
} peg_format_mode;

/* Documents by URI: owned, immutable while a compile uses it. */
typedef struct peg_schema_docs peg_schema_docs;

PEG_API peg_schema_docs *peg_schema_docs_new(void);
PEG_API peg_schema_docs *peg_schema_docs_free(peg_schema_docs *docs);
/* Copies the document. `uri` is absolute, without fragment; embedded resources are
 * found by their $id. PEG_EINVAL (E_INVALID_ARGUMENT), PEG_EEXISTS (E_SCHEMA_URI_TAKEN), PEG_ELIMIT
 * (E_SCHEMA_TOO_LARGE), PEG_ENOMEM; the set is then as before. */
PEG_API PEG_MUST_USE peg_status peg_schema_docs_add(peg_schema_docs *docs, peg_str uri,
                                                    const peg_json *schema, peg_error *reterr);

/* Zero means the default, told here in brackets. */
typedef struct peg_schema_options {
    size_t size;                 /* set by PEG_SCHEMA_OPTIONS_INIT */
    const peg_schema_docs *docs; /* may be NULL; only used during the call */
    peg_dialect dialect;         /* of schemas without $schema [2020-12] */
    peg_format_mode format;      /* whether `format` is checked */
    const char *base_uri;        /* of the schema [none]; its own $id comes first */
    bool check_defaults;         /* refuse a `default` that its own schema refuses */
    size_t max_bytes;            /* of schema text [1 MiB] */
    unsigned max_depth;          /* of schema nesting [128] */
    unsigned max_subschemas;     /* compiled, over all documents [20,000] */
    unsigned max_pattern_bytes;  /* of one regular expression [4 KiB] */
} peg_schema_options;
#define PEG_SCHEMA_OPTIONS_INIT .size = sizeof(peg_schema_options)

typedef struct peg_schema peg_schema;

/*
 * Compiles a schema. The text or value is copied as far as needed. options may
 * be NULL. Errors: PEG_ESCHEMA (E_SCHEMA_KEYWORD, E_SCHEMA_REF, E_SCHEMA_DIALECT,
 * E_SCHEMA_URI_TAKEN) with `where` pointing into the
 * schema, PEG_EPARSE for text that is not JSON or names a member twice, PEG_ELIMIT
 * (E_SCHEMA_TOO_LARGE), PEG_ENOMEM.
 */
PEG_API PEG_MUST_USE peg_status peg_schema_compile(peg_str text, const peg_schema_options *options,
                                                   peg_schema **ret_schema, peg_error *reterr);
PEG_API PEG_MUST_USE peg_status peg_schema_compile_value(const peg_json *schema,
                                                         const peg_schema_options *options,
                                                         peg_schema **ret_schema,
                                                         peg_error *reterr);
PEG_API peg_schema *peg_schema_ref(peg_schema *schema);
PEG_API peg_schema *peg_schema_unref(peg_schema *schema);

PEG_API const peg_json *peg_schema_source(const peg_schema *schema); /* borrowed from schema */
PEG_API size_t peg_schema_bytes(const peg_schema *schema);           /* memory it holds */

/* ---- checking: the verdict -------------------------------------------------- */

typedef enum peg_verdict {
    PEG_VALID = 0,
    PEG_INVALID,
    PEG_UNDECIDED, /* a limit was reached first, or memory ran out */
} peg_verdict;

typedef struct peg_checker peg_checker;

/* Zero means the default, told here in brackets. */
typedef struct peg_checker_options {
    size_t size;                /* set by PEG_CHECKER_OPTIONS_INIT */
    unsigned max_depth;         /* nested subschema applications [1,000]; never more than 10,000.
                                 * One takes some 300 bytes of stack */
    uint64_t max_steps;         /* subschema applications of one check [200,000 + 64 a value] */
    uint32_t match_limit;       /* of one pattern match, per start position [10,000] */
    uint64_t max_pattern_steps; /* of all pattern matches of one check, some 5 ns each, for threads
                                 * that must not be held up [each match has its own limits] */
} peg_checker_options;
#define PEG_CHECKER_OPTIONS_INIT .size = sizeof(peg_checker_options)

/* options may be NULL. Any schema may be checked with any checker. */
PEG_API PEG_MUST_USE peg_status peg_checker_new(const peg_checker_options *options,
                                                peg_checker **ret_checker, peg_error *reterr);
PEG_API peg_checker *peg_checker_free(peg_checker *checker);

/* Stops at the first failure. Allocates nothing once the checker is warm. */
PEG_API peg_verdict peg_schema_check(const peg_schema *schema, peg_checker *checker,
                                     const peg_json *value);

/* After PEG_UNDECIDED: the name of the limit, such as "match_limit"; static. */
PEG_API const char *peg_checker_reason(const peg_checker *checker);

/* ---- checking: the report --------------------------------------------------- */

typedef struct peg_report peg_report;

/* One thing that is wrong. All strings are borrowed from the report. */
typedef struct peg_failure {
    peg_str instance; /* JSON Pointer of the value that is wrong */
    peg_str schema;   /* where the rule stands: JSON Pointer, after its URI if it has one */
    peg_str keyword;  /* "required", "type", ... ; "false" for a false schema */
    peg_str expected; /* what the rule wants, short */
    peg_str got;      /* what stands there, at most 64 bytes of it */
    peg_str message;  /* one sentence a language model can act on */
} peg_failure;

enum { PEG_REPORT_MAX_FAILURES = 32 };

PEG_API PEG_MUST_USE peg_status peg_report_new(peg_report **ret_report, peg_error *reterr);
PEG_API peg_report *peg_report_free(peg_report *report);

/* Checks everything and fills the report anew. The verdict is the one of
 * peg_schema_check(). Memory running out gives PEG_UNDECIDED. */
PEG_API peg_verdict peg_schema_report(const peg_schema *schema, peg_checker *checker,
                                      const peg_json *value, peg_report *report);

PEG_API size_t peg_report_len(const peg_report *report); /* at most PEG_REPORT_MAX_FAILURES */
PEG_API const peg_failure *peg_report_at(const peg_report *report, size_t i);
PEG_API size_t peg_report_more(const peg_report *report); /* failures found but not kept */
/* All failures as text, one a line, for a model or a log; borrowed from the report. */
PEG_API peg_str peg_report_text(const peg_report *report);

/* ---- default values ---------------------------------------------------------- */

/*
 * Fills in what `default` says for members and items that are missing, reached
 * through properties, items, prefixItems, $ref and allOf. *ret_doc is a new document,
 * or NULL if nothing was missing; value is never changed. A default that leaves out
 * what has a default itself is filled in too. PEG_ELIMIT (E_SCHEMA_FILL_LIMIT): more than
 * 32 schemas describe one place, or there is no end to what is to be filled in
 * (256 levels, 100,000 values); PEG_ENOMEM. Takes up to 128 KiB of stack.
 */
PEG_API PEG_MUST_USE peg_status peg_schema_fill(const peg_schema *schema, const peg_json *value,
                                                peg_json_doc **ret_doc, peg_error *reterr);

/* ---- sharing compiled schemas ------------------------------------------------- */

/*
 * Compiled schemas by digest of their text without its spaces, and of the options: a
 * schema that comes again is compiled once. Bounded in bytes; the least recently used go first
 * (a reference keeps the schema). Any thread. Schemas compiled with
 * `docs` are not shared.
 */
typedef struct peg_schema_cache peg_schema_cache;

PEG_API PEG_MUST_USE peg_status peg_schema_cache_new(size_t max_bytes, peg_schema_cache **ret_cache,
                                                     peg_error *reterr);
PEG_API peg_schema_cache *peg_schema_cache_free(peg_schema_cache *cache);
/* One reference for the caller, as peg_schema_compile(). */
PEG_API PEG_MUST_USE peg_status peg_schema_cache_compile(peg_schema_cache *cache, peg_str text,
                                                         const peg_schema_options *options,
                                                         peg_schema **ret_schema,
                                                         peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
