/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TOOLS_COMMAND_INTERNAL_H
#define PEG_TOOLS_COMMAND_INTERNAL_H

#include "base/buf.h"
#include "pegboard/tool.h"

/* Would the program of a tool that peg_command_tool_new() made be found, and may it be executed?
 * If not, `out` gets the sentence. */
bool peg__command_can_start(const peg_tool *tool, struct peg__buf *out);

#endif
