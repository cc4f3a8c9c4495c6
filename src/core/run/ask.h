/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_RUN_ASK_H
#define PEG_CORE_RUN_ASK_H

#include "base/shared_symbols.h"
#include "pegboard/gate.h"

/* The questions of a gate that peg_gate_ask() opened, by key; NULL: it is another gate. */
PEG__SHARED const peg_json *peg__gate_requests(const peg_gate *gate);

#endif
