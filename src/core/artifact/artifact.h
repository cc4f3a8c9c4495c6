/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_ARTIFACT_ARTIFACT_H
#define PEG_CORE_ARTIFACT_ARTIFACT_H

#include "base/limits.h"
#include "base/mem.h"
#include "base/shared_symbols.h"
#include "pegboard/artifact.h"
#include "pegboard/cleanup.h"
#include "pegboard/registry.h"

/* The argument that every query has: which artifact it is asked about. */
#define PEG__ARTIFACT_ID "callId"

/* As peg_artifact_new() for a kind that was checked before, when the tool was made. References the
 * reader. */
peg_status peg__artifact_new(const peg_artifact_kind *kind, peg_reader *reader,
                             peg_artifact **ret_artifact, peg_error *reterr) PEG_MUST_USE;

/* What a kind is made from: its base, text where it names none; NULL for text itself. */
const peg_artifact_kind *peg__kind_base(const peg_artifact_kind *kind);
/* The library's of that name. NULL: none, or a host's, of which only the name is known. */
PEG__SHARED const peg_artifact_kind *peg__kind_named(peg_str name);

/* As peg_artifact_kind_check(); unless compile is set, the schemas of arguments are looked at but
 * not compiled, which takes the longest. */
peg_status peg__kind_check(const peg_artifact_kind *kind, bool compile,
                           peg_error *reterr) PEG_MUST_USE;

/*
 * One line after the other, in linear time:
 *
 *   struct peg__lines lines;
 *   status = peg__artifact_lines(artifact, first, &lines, reterr);
 *   while (peg__lines_next(&lines, &line)) ...
 */
struct peg__lines {
    const char *at; /* NULL at the end */
    const char *end;
};

/* From line `first` on, counted from 0; beyond the last one there is nothing to walk. Borrowed from
 * the artifact. */
peg_status peg__artifact_lines(peg_artifact *artifact, size_t first, struct peg__lines *ret_lines,
                               peg_error *reterr) PEG_MUST_USE;
/* False at the end. */
bool peg__lines_next(struct peg__lines *lines, peg_str *ret_line);

/* ---- tokens ------------------------------------------------------------------------------ */

enum { PEG__TOKEN_COUNTER_NAME = 65 }; /* 64 characters and a NUL */

/* The encodings there are now, the built-in ones first; how many. */
size_t peg__token_counter_names(char ret_names[PEG_LIMIT_TOKEN_ENCODINGS][PEG__TOKEN_COUNTER_NAME]);

/* ---- tools of artifacts ---------------------------------------------------- */

/*
 * The query tools of artifacts, made for the artifacts that there are: ephemeral, untrusted,
 * on_collision replace, owner PEG__FORGE_OWNER, each with a required `callId` that is one of
 * the handles of its kind, frozen when forged.
 */

#define PEG__FORGE_OWNER "pegboard.artifacts"

struct peg__forge_item {
    peg_str handle;
    peg_artifact *artifact;
};

/* Replaces what was forged before in the registry; nothing for n_items 0. All or nothing. Two items
 * with one handle are PEG_EEXISTS (E_ARTIFACT_ID_COLLISION). *ret_n_shadowed: queries that are not
 * offered because a host's tool has their name. */
peg_status peg__forge(peg_registry *registry, const struct peg__forge_item *items, size_t n_items,
                      size_t *ret_n_shadowed, peg_error *reterr);

#endif
