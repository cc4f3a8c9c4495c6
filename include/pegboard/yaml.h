/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_YAML_H
#define PEGBOARD_YAML_H

/*
 * YAML as a way to write JSON: one document, plain scalars read by the YAML 1.2
 * core schema (1.1's `yes`, `on` and 0777 are strings and decimal there, but a
 * `%YAML 1.1` document reads them as 1.1 says). Anchors and aliases are followed
 * within bounds, `<<` merges only in 1.1, tags beyond the core refused.
 *
 * JSON's names are strings: a scalar as key stands for its text, so that
 * {12: a} is {"12": "a"}. A text without a document reads as null. In 1.1 `y` and
 * `n` alone stay strings, as in the readers in use, and numbers to base 60
 * (1:30) are refused, as are .inf and .nan in both.
 */

#include <pegboard/json.h>

#ifdef __cplusplus
extern "C" {
#endif

/* options as for peg_json_parse. What aliases and merges expand to is counted as it
 * is held in memory (16 bytes a value and its text) and bounded by max_bytes too.
 * Errors: PEG_EPARSE (E_YAML_SYNTAX; E_YAML_UNSUPPORTED for YAML that JSON cannot express;
 * E_JSON_DUPLICATE_KEY) with offset, line and column; PEG_ELIMIT (E_JSON_TOO_LARGE,
 * E_JSON_TOO_DEEP); PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_yaml_parse(peg_str text, const peg_json_options *options,
                                               peg_json_doc **ret_doc, peg_error *reterr);

/* Block style, two spaces, the same bytes for the same value always; strings
 * that would read as something else are quoted, those with line ends are literal
 * blocks where that is exact. Free with peg_free(). ret_len may be NULL. */
PEG_API PEG_MUST_USE peg_status peg_yaml_write(const peg_json *value, char **ret_text,
                                               size_t *ret_len, peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
