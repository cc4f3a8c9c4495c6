/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_SCRIPT_H
#define PEGBOARD_SCRIPT_H

/*
 * An engine that follows a script instead of asking a model: for tests, demos and replays.
 *
 *   - reasoning: the user wants the weather
 *     calls: [{name: weather, args: {city: Oslo}}]
 *   - text: It rains in Oslo.
 *     usage: {input_tokens: 12, output_tokens: 5}
 *   - error: {code: E_ENGINE_OVERLOADED, message: try later}
 *
 * One step for each time that the model is asked. A step has text, reasoning, calls (each with
 * name, args and perhaps id), usage, stop_reason, model; or, where the order matters, parts: a list
 * of {text}, {reasoning} and {name, args, id}. Args that are a string are the text itself, perhaps
 * broken. A call without id is call_2_1: the first call of the second step. What a step offers
 * comes in pieces, as from a real one, if it says stream: N (bytes a piece, whole characters).
 *
 * error breaks a step off after what else it says: {code, message}, the code one of those that
 * peg_model_engine() fails with [E_ENGINE_FAILED]. Nothing of it reaches the turn, so it fails
 * again when the model is asked again.
 *
 * Shared, immutable, reference counted: the step is chosen by how many inferences the turn has seen
 * (the largest `sequence` in pegboard.inference_result@v1 of the turn and its blocks), so that a
 * run that was resumed goes on where it was.
 */

#include <pegboard/dispatch.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct peg_script peg_script;

/* JSON or YAML text of the list of steps. PEG_EPARSE (E_SCRIPT), `where` names the member. */
PEG_API PEG_MUST_USE peg_status peg_script_new(peg_str text, peg_script **ret_script,
                                               peg_error *reterr);
/* What the model said in a turn, to be said again: a step for each inference. */
PEG_API PEG_MUST_USE peg_status peg_script_from_turn(const peg_turn *turn, peg_script **ret_script,
                                                     peg_error *reterr);
PEG_API peg_script *peg_script_ref(peg_script *script);
PEG_API peg_script *peg_script_unref(peg_script *script);
PEG_API size_t peg_script_len(const peg_script *script);

/* The engine of a peg_dispatch_options, borrowed: the script outlives the runs. It fails with
 * PEG_ENOTFOUND (E_SCRIPT_ENDED) after its last step. */
PEG_API peg_engine peg_script_engine(peg_script *script);

#ifdef __cplusplus
}
#endif
#endif
