/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_ARTIFACT_FORGE_H
#define PEG_CORE_ARTIFACT_FORGE_H

/*
 * The query tools of artifacts, made for the artifacts that there are: ephemeral, untrusted,
 * on_collision replace, owner PEG__FORGE_OWNER, each with a required `callId` that is one of
 * the handles of its kind, frozen when forged.
 */

#include "pegboard/artifact.h"
#include "pegboard/registry.h"

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
