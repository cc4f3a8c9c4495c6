/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_TOOL_MAKE_H
#define PEG_CORE_TOOL_MAKE_H

/* What the files that make a tool share. */

#include "pegboard/tool.h"

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
