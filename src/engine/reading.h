/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_READING_H
#define PEG_ENGINE_READING_H

/*
 * Reading JSON that a provider sent. A member that is missing or null is not there; one of another
 * type than it has to be fails the reply (E_ENGINE_REPLY), named by its place.
 */

#include "engine/reply.h"

/* An event or a body, which has to be an object. PEG_EPARSE (E_ENGINE_REPLY), PEG_ENOMEM: the
 * reply has failed with it too. */
peg_status peg__reading_parse(struct peg__reply *reply, peg_str text, peg_json_doc **ret_doc);

/* NULL: not there, or the reply has failed. */
const peg_json *peg__reading_object(struct peg__reply *reply, const peg_json *object,
                                    const char *name);
const peg_json *peg__reading_array(struct peg__reply *reply, const peg_json *object,
                                   const char *name);
/* ptr NULL: the same. */
peg_str peg__reading_string(struct peg__reply *reply, const peg_json *object, const char *name);

/* What the reply failed with, or PEG_OK. */
peg_status peg__reading_end(const struct peg__reply *reply, peg_error *reterr);

#endif
