/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_FILE_ARGS_H
#define PEG_TURN_FILE_ARGS_H

/*
 * Arguments in a file: `args` is the object where the text is one, else the text itself as a
 * string, however broken; `args_base64` is a text that is no UTF-8.
 */

#include "turn/file/fields.h"
#include "turn/file/input.h"

/* What fields borrow from. Owned; starts as {0}. */
struct peg__args_out {
    peg_json_doc *doc;
    char *base64;
};
/* Adds `args` or `args_base64`, nothing if the text is empty. PEG_ENOMEM. */
peg_status peg__args_fields(peg_str text, struct peg__args_out *out, struct peg__fields *fields,
                            peg_error *reterr) PEG_MUST_USE;
void peg__args_out_free(struct peg__args_out *out);

/* Are they written as the same? Objects are compared by value, other texts by bytes. PEG_ENOMEM. */
peg_status peg__args_same(peg_str a, peg_str b, bool *ret_same, peg_error *reterr) PEG_MUST_USE;
/* Can a call that succeeded have them? PEG_ENOMEM. */
peg_status peg__args_usable(peg_str text, bool *ret_usable, peg_error *reterr) PEG_MUST_USE;

/* The text; ptr NULL if there is none. *ret_owned is its memory, freed with peg__free(), or NULL.
 */
peg_status peg__args_read(struct peg__in *payload, peg_str *ret_text,
                          char **ret_owned) PEG_MUST_USE;

#endif
