/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GENERATE_DECLARATION_H
#define PEG_GENERATE_DECLARATION_H

/*
 * Reads what is to be generated from a document, in one of these forms:
 *
 *   {service, toolsets: [{name, description, version, tags, tools}]}
 *   {toolset, description, version, tags, tools}      a manifest, as of `pegboard provide`
 *   {tools} or an array of definitions                as of `pegboard definitions`
 *   a turn that holds definitions
 *
 * A tool has a name, and may have description, input_schema (inputSchema, parameters),
 * output_schema (outputSchema), version, tags, examples, timeout ("10s") or timeout_ms, idempotent,
 * read_only, destructive, additive, and
 *
 *   server_data:
 *     - kind: forecast.chart      what it is, for the program that gets it
 *       audience: timeline        who it is for
 *       description: ...
 *       schema: {...}             any JSON without it
 *       always: true              goes with each result [false: where the handler has some]
 */

#include "generate/model.h"

struct gen_names {
    const char *service; /* NULL: as the document has it, or the name of the toolset */
    const char *toolset; /* of a document that has no name for it; NULL: "tools" */
};

/* Everything is borrowed from the document, or in the arena. PEG_EINVAL (E_GENERATE, `where` points
 * into the document), PEG_ELIMIT (E_GENERATE_LIMIT), PEG_ENOMEM. */
peg_status gen_declaration_read(const peg_json *root, const struct gen_names *names,
                                struct peg__arena *arena, struct gen_service *ret_service,
                                peg_error *reterr);

#endif
