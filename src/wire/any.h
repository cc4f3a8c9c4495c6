/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_WIRE_ANY_H
#define PEG_WIRE_ANY_H

/*
 * JSON in a google.protobuf.Any, as goa writes it: a google.protobuf.Value whose string_value is
 * the JSON text. `null` is a field that is not there.
 */

#include "base/arena.h"
#include "pegboard/common.h"

struct Google__Protobuf__Any;

#define WIRE_ANY_VALUE_TYPE "type.googleapis.com/google.protobuf.Value"

/* *ret_any lies in the arena, and is NULL for an empty text and for `null`. PEG_ENOMEM. */
peg_status wire_any_write(peg_str json, struct peg__arena *arena,
                          struct Google__Protobuf__Any **ret_any, peg_error *reterr);

/* The JSON text, in the arena and ended by NUL: the string_value as it is, which whoever checks
 * payloads may find to be no JSON; the text of a value that is written out as numbers, lists and
 * structs; `null` for NULL, and for everything else, as goa reads it.
 * PEG_ELIMIT (names PEG_LIMIT_GATEWAY_RESULT_BYTES, or a limit of grpc/message.h), PEG_ENOMEM. */
peg_status wire_any_read(const struct Google__Protobuf__Any *any, struct peg__arena *arena,
                         peg_str *ret_json, peg_error *reterr);

#endif
