/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_RUN_ASK_H
#define PEG_CORE_RUN_ASK_H

#include "base/shared_symbols.h"
#include "pegboard/gate.h"

/* The questions of a gate that peg_gate_ask() opened, by key; NULL: it is another gate. */
PEG__SHARED const peg_json *peg__gate_requests(const peg_gate *gate);

/* What is asked, as {KEY: {"method", "params"}}: those questions, or one form with a key that has
 * `number` in it. PEG_ENOMEM. */
PEG__SHARED peg_status peg__gate_question(const peg_gate *gate, unsigned number,
                                          peg_json_doc **ret_doc);
/* The answers by key. True: the gate is settled, perhaps by a refusal. False: they do not fit it,
 * and it is to be asked again. */
PEG__SHARED bool peg__gate_take_answer(peg_gate *gate, const peg_json *answers);

#endif
