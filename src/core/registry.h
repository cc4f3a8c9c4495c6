/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_REGISTRY_H
#define PEG_CORE_REGISTRY_H

#include "pegboard/registry.h"

/* Replaces all tools of an owner (core/tool.h) by these, at once and all or nothing. A name that
 * somebody else's tool has stays that tool's; *ret_n_shadowed (may be NULL) counts them. Hidden
 * marks of names that stay are kept. */
peg_status peg__registry_replace_owned(peg_registry *registry, const char *owner,
                                       peg_tool *const *tools, size_t n_tools,
                                       size_t *ret_n_shadowed, peg_error *reterr);

#endif
