/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_REMOTE_CALL_ARGS_H
#define PEG_CLI_REMOTE_CALL_ARGS_H

/*
 * Arguments of a tool from words of a command line, by the tool's schema:
 *
 *   city=Rome days=3 tags=a tags=b when:='{"from":1}' text=@notes.txt
 *
 * key=VALUE is what the schema wants there: if VALUE is JSON of a type that it allows, other than a
 * string, it is that, else a string if that is allowed, else the only item of an array. Where the
 * schema says nothing: JSON if it is any, else a string. A key that is there several times is an
 * array. key:=JSON is JSON in any case. @FILE is what is in a file, "@-" standard input, and
 * "@@..." a text that begins with one @.
 */

#include "pegboard/common.h"

/* *ret_json is freed with peg_free(). PEG_EINVAL (E_ARGUMENT): no pair; PEG_EINVAL (E_VALIDATION,
 * as a gateway would say): no value for its place; PEG_EPARSE: what is no JSON; what reading a file
 * fails with. */
peg_status call_args_build(peg_str schema, const char *const *pairs, size_t n_pairs,
                           char **ret_json, peg_error *reterr);

/* JSON text as it was given with --json: itself, @FILE, or "-" as "@-". What is no JSON is told
 * with its place in the file. */
peg_status call_args_read(const char *given, char **ret_json, peg_error *reterr);

#endif
