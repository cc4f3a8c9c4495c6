/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_REGISTRY_H
#define PEGBOARD_REGISTRY_H

/*
 * A registry: tools by name, in the order in which they came, with one collision policy and one
 * lifecycle hook (peg_registry_bind() of dispatch.h). It does not retry, limit, authorise, cache,
 * deduplicate or prioritise.
 *
 * Shared, reference counted. Any number of threads may read while one changes it. A copy costs
 * the same for one tool and for ten thousand, and shares nothing that a change could reach.
 *
 * A tool or a source that is NULL, and a policy that does not exist, are PEG_EINVAL
 * (E_INVALID_ARGUMENT).
 */

#include <pegboard/tool.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An empty registry, or one of the given tools in order; each gets a reference. PEG_EEXISTS
 * (E_TOOL_ALREADY_REGISTERED) if two have one name, PEG_ELIMIT (E_REGISTRY_FULL), PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_registry_new(peg_tool *const *tools, size_t n_tools,
                                                 peg_registry **ret_registry, peg_error *reterr);
PEG_API peg_registry *peg_registry_ref(peg_registry *registry);
PEG_API peg_registry *peg_registry_unref(peg_registry *registry);
PEG_API PEG_MUST_USE peg_status peg_registry_copy(peg_registry *registry,
                                                  peg_registry **ret_registry, peg_error *reterr);

/* ---- one tool ------------------------------------------------------------------ */

/* Takes its own reference. A name that is taken is PEG_EEXISTS (E_TOOL_ALREADY_REGISTERED, the
 * name in its message), unless overwrite: the tool then takes the other's place and its hidden
 * mark. The tool's on_collision is not used: this call says what is meant. */
PEG_API PEG_MUST_USE peg_status peg_registry_register(peg_registry *registry, peg_tool *tool,
                                                      bool overwrite, peg_error *reterr);
/* Silent if there is none. Calls already running keep their reference. PEG_ENOMEM only. */
PEG_API peg_status peg_registry_unregister(peg_registry *registry, peg_str name, peg_error *reterr);
/* A new reference, or NULL. Finds hidden tools too. */
PEG_API peg_tool *peg_registry_get(peg_registry *registry, peg_str name);
PEG_API bool peg_registry_has(peg_registry *registry, peg_str name);
PEG_API size_t peg_registry_len(peg_registry *registry);

/* ---- lists: the caller's own, each tool with a reference -------------------------- */

typedef struct peg_tool_list {
    peg_tool **items; /* in registry order */
    size_t len;
} peg_tool_list;

PEG_API PEG_MUST_USE peg_status peg_registry_all(peg_registry *registry, peg_tool_list *ret_list,
                                                 peg_error *reterr);
/* Those that are advertised to a model. */
PEG_API PEG_MUST_USE peg_status peg_registry_visible(peg_registry *registry,
                                                     peg_tool_list *ret_list, peg_error *reterr);
PEG_API PEG_MUST_USE peg_status peg_registry_hidden(peg_registry *registry, peg_tool_list *ret_list,
                                                    peg_error *reterr);
PEG_API void peg_tool_list_free(peg_tool_list *list); /* leaves an empty list */

/* ---- hidden tools: not advertised, still callable ----------------------------------- */

/* Names that are not registered are ignored. All or nothing; PEG_ENOMEM only. */
PEG_API peg_status peg_registry_hide(peg_registry *registry, const char *const *names, size_t n,
                                     peg_error *reterr);
PEG_API peg_status peg_registry_unhide(peg_registry *registry, const char *const *names, size_t n,
                                       peg_error *reterr);
/* Exactly these are hidden from now on. */
PEG_API peg_status peg_registry_set_hidden(peg_registry *registry, const char *const *names,
                                           size_t n, peg_error *reterr);
PEG_API peg_status peg_registry_clear_hidden(peg_registry *registry, peg_error *reterr);

/* ---- many tools --------------------------------------------------------------------- */

/* Drops every ephemeral tool. Cannot fail, so that an authority never outlives its dispatch. */
PEG_API void peg_registry_prune_ephemeral(peg_registry *registry);

/*
 * A new registry of all tools of the sources, left to right. On a clash the incoming tool's
 * on_collision decides first, and `policy` where that is THROW; THROW by both is PEG_EEXISTS
 * (E_TOOL_ALREADY_REGISTERED). A name hidden in any source is hidden in the result. The sources
 * are not changed, whatever happens.
 */
PEG_API PEG_MUST_USE peg_status peg_registry_merge(peg_registry *const *sources, size_t n_sources,
                                                   peg_collision policy,
                                                   peg_registry **ret_registry, peg_error *reterr);
/* A new registry of exactly these tools of another, in this order, with their hidden marks.
 * PEG_ENOTFOUND (E_TOOL_NOT_FOUND) names the first that is not there; PEG_EEXISTS for a name
 * that is given twice. */
PEG_API PEG_MUST_USE peg_status peg_registry_select(peg_registry *registry,
                                                    const char *const *names, size_t n,
                                                    peg_registry **ret_registry, peg_error *reterr);
/* From now on a live registry has exactly the tools of another, in its order and with its hidden
 * marks: all at once. PEG_ENOMEM; nothing was changed. */
PEG_API PEG_MUST_USE peg_status peg_registry_replace(peg_registry *registry, peg_registry *source,
                                                     peg_error *reterr);
/* Merges into a live registry by the same rules, all or nothing. */
PEG_API PEG_MUST_USE peg_status peg_registry_absorb(peg_registry *registry, peg_registry *source,
                                                    peg_collision policy, peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
