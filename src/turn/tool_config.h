/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_TOOL_CONFIG_H
#define PEG_TURN_TOOL_CONFIG_H

#include "pegboard/tool_config.h"

/* PEG_EINVAL (E_TOOL_CONFIG) for values that cannot be. */
peg_status peg__tool_config_check(const peg_tool_config *config, peg_error *reterr);

#endif
