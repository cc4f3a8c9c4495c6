/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_YAML_H
#define PEGBOARD_YAML_H

/*
 * YAML as a way to write JSON: one document, string keys, plain scalars read by
 * the YAML 1.2 core schema (1.1's `yes`, `on` and sexagesimals stay strings,
 * but a `%YAML 1.1` document reads them as 1.1 says). Anchors and aliases are
 * followed within bounds, `<<` merges only in 1.1, tags beyond the core refused.
 */

#include <pegboard/json.h>

#ifdef __cplusplus
extern "C" {
#endif

/* options as for peg_json_parse. The expansion of aliases counts as bytes and
 * values towards max_bytes. Errors: PEG_EPARSE (E_YAML_SYNTAX, E_YAML_KEY, E_YAML_TAG,
 * E_YAML_ANCHOR, E_YAML_DOCUMENTS), PEG_ELIMIT, PEG_ENOMEM; line and column are set. */
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
