/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_TOOLS_DEFINITIONS_H
#define PEG_CLI_TOOLS_DEFINITIONS_H

/*
 * What the files of `pegboard definitions` share:
 *
 *   definitions.c        options, and the order of things
 *   definitions_input.c  finds the definitions in a file of any of several shapes
 *   definitions_print.c  tools and losses, for people or for programs
 */

#include "cli/input.h"
#include "cli/terminal/term.h"
#include "pegboard/definitions.h"

/* What was asked for. Strings are borrowed from argv. */
struct definitions_options {
    peg_definitions_options render;
    bool has_provider;
    bool only_losses; /* print the report, not the tools */
    bool as_json;
    bool quiet;
    bool fail_on_loss;
    enum cli_color color;
    const char *path;
};

/* Definitions in neutral form, from a file: an array of them, {"tools": [...]}, or a turn. Members
 * that others call inputSchema or input_schema are parameters; a function in OpenAI's shape is
 * unwrapped. *ret_doc is NULL for a turn that holds none. */
peg_status definitions_load(const char *path, peg_json_doc **ret_doc, peg_error *reterr);

/* What is rendered from it: text and losses are borrowed. */
struct definitions_outcome {
    const struct definitions_options *options;
    const peg_json *definitions;
    peg_str text;
    const peg_definition_losses *losses;
};

/* Prints to stdout and stderr; the status of what could not be printed. */
peg_status definitions_print(const struct definitions_outcome *outcome, peg_error *reterr);
/* Says on stderr which schemas do not compile. */
void definitions_warn(const peg_json *definitions);

#endif
