/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_TOOL_TOOL_H
#define PEG_CORE_TOOL_TOOL_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/shared_symbols.h"
#include "pegboard/tool.h"
#include "schema/check/check.h"

struct peg__scratch;

/*
 * Shared immutable, but for the idle scratch, which is a cache. What a call looks at comes first:
 * of a large catalog most tools are in no cache, and a call should wait for memory as seldom as can
 * be.
 */
struct peg_tool {
    atomic_uint n_refs;
    bool is_artifact_tool;
    bool has_defaults; /* something in the input schema can be filled in */
    peg_str name;
    peg_schema *input;
    peg_schema *output; /* NULL if none */
    _Atomic(struct peg__scratch *) idle;
    peg_tool_def def; /* flags, run, user; its strings are those here */
    peg_str description;
    peg_str version;
    const char **tags;      /* NULL-terminated; the block also holds the strings */
    peg_json_doc *examples; /* NULL if none */
    peg_json_doc *meta;     /* NULL if none; peg_tool_meta() is never NULL */
    const char *owner;      /* who forged it, or NULL; static. See core/registry/registry.h */
};

/* As peg_tool_new() with the two things that only we set. */
peg_status peg__tool_new(const peg_tool_def *def, bool is_artifact_tool, const char *owner,
                         peg_tool **ret_tool, peg_error *reterr);

/* The memory of a check, on the caller's stack. */
struct peg__scratch {
    struct peg_checker checker;
    peg_report *report;         /* made when first needed */
    struct peg__scratch *shell; /* memory to leave it in, or NULL */
};

/* Starts with what an earlier check of the tool left, or empty. Allocates nothing. */
void peg__scratch_open(peg_tool *tool, struct peg__scratch *scratch);
/* Leaves what checks had to allocate (for patterns, reports) with the tool, for the next one. */
void peg__scratch_close(peg_tool *tool, struct peg__scratch *scratch);
void peg__scratch_free(struct peg__scratch *scratch);

/*
 * The one place that rejects bad arguments. PEG_OK: *ret_filled is a new document with defaults, or
 * NULL if nothing was missing. PEG_ESCHEMA (E_INVALID_TOOL_ARGS): `sentence` (may be NULL) gets
 * every failure, for the model. An undecided check is PEG_ELIMIT (E_CHECK_UNDECIDED).
 */
peg_status peg__tool_check_args(const peg_tool *tool, struct peg__scratch *scratch,
                                const peg_json *args, peg_json_doc **ret_filled,
                                struct peg__buf *sentence, peg_error *reterr);
/* The same for a result: PEG_ESCHEMA (E_TOOL_OUTPUT_INVALID). Requires an output schema. */
peg_status peg__tool_check_output(const peg_tool *tool, struct peg__scratch *scratch,
                                  const peg_json *result, struct peg__buf *sentence,
                                  peg_error *reterr);

/* Do the arguments break the schema as they are, before defaults are filled in? Not if that cannot
 * be decided. */
PEG__SHARED bool peg__tool_refuses_as_sent(peg_tool *tool, const peg_json *args);

/* Adds the member "tags" to an object, if the tool has any. */
void peg__tool_add_tags(const peg_tool *tool, peg_json_builder *b);

/* ---- making one ------------------------------------------------------------ */

/* What the files that make a tool share. */

#define PEG__TOOL_INVALID "E_INVALID_INITIAL_TOOL_VALUE"

/* PEG_EINVAL (E_INVALID_INITIAL_TOOL_VALUE): the field that cannot work, and what to do. */
peg_status peg__tool_refuse(peg_error *reterr, const char *where, const char *message);
/* The same for what an error says of a field; memory that ran out stays PEG_ENOMEM. */
peg_status peg__tool_refuse_because(peg_error *reterr, const char *field, const peg_error *cause);

/*
 * Compiles def->input_schema as it will be enforced: closed if it is silent about extra members,
 * unless def->open_arguments. What can never be an object is refused.
 */
peg_status peg__tool_compile_input(const peg_tool_def *def, peg_schema **ret_schema,
                                   peg_error *reterr);
/* Compiles def->output_schema as it stands. */
peg_status peg__tool_compile_output(const peg_tool_def *def, peg_schema **ret_schema,
                                    peg_error *reterr);

#endif
