/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_CORE_REGISTRY_WORLD_H
#define PEG_TESTS_CORE_REGISTRY_WORLD_H

/* Registries of small tools, and what is in them as text: "a b c", hidden ones as "(b)". */

#include "../t.h"
#include "base/text/str.h"
#include "core/registry/registry.h"

static inline void answer(peg_call *call, const peg_json *args, void *user)
{
    (void)call;
    (void)args;
    (void)user;
}

/* NULL when out of memory. */
static inline peg_tool *tool_of(const peg_tool_def *like, const char *name, const char *owner)
{
    peg_tool_def def = like ? *like : (peg_tool_def){PEG_TOOL_DEF_INIT};
    peg_tool *tool = NULL;

    def.name = name;
    def.description = "A tool.";
    def.run = answer;
    return peg__tool_new(&def, false, owner, &tool, NULL) ? NULL : tool;
}

static inline peg_tool *tool_named(const char *name)
{
    return tool_of(NULL, name, NULL);
}

static inline peg_tool *ephemeral_named(const char *name)
{
    return tool_of(&(peg_tool_def){PEG_TOOL_DEF_INIT, .ephemeral = true}, name, NULL);
}

/* Registers a tool and lets go of it. */
static inline peg_status give(peg_registry *registry, peg_tool *tool)
{
    const peg_status status =
        tool ? peg_registry_register(registry, tool, false, NULL) : PEG_ENOMEM;

    peg_tool_unref(tool);
    return status;
}

/* A registry of tools with these names: "a b c", those behind ~ ephemeral. NULL when out of
 * memory. */
static inline peg_registry *registry_like(const char *names, const peg_tool_def *like)
{
    peg_registry *registry = NULL;
    peg_tool_def def = like ? *like : (peg_tool_def){PEG_TOOL_DEF_INIT};
    char copy[256];

    if (peg_registry_new(NULL, 0, &registry, NULL))
        return NULL;
    snprintf(copy, sizeof(copy), "%s", names);
    for (char *rest = copy, *name; (name = strtok_r(rest, " ", &rest));) {
        def.ephemeral = *name == '~';
        if (give(registry, tool_of(&def, name + (*name == '~'), NULL)))
            return peg_registry_unref(registry);
    }
    return registry;
}

static inline peg_registry *registry_of(const char *names)
{
    return registry_like(names, NULL);
}

/* A registry whose tools are in a base that another one has too. */
static inline peg_registry *shared_registry_of(const char *names, peg_registry **ret_other)
{
    peg_registry *copy = NULL;

    *ret_other = registry_of(names);
    if (*ret_other && peg_registry_copy(*ret_other, &copy, NULL))
        return NULL;
    return copy;
}

static inline peg_tool *get(peg_registry *registry, const char *name)
{
    return peg_registry_get(registry, peg__str(name));
}

static inline bool has(peg_registry *registry, const char *name)
{
    return peg_registry_has(registry, peg__str(name));
}

/* Is this very tool in the registry? */
static inline bool holds(peg_registry *registry, const char *name, const peg_tool *tool)
{
    peg_tool *found = get(registry, name);

    peg_tool_unref(found);
    return found == tool;
}

static inline peg_status hide(peg_registry *registry, const char *name)
{
    return peg_registry_hide(registry, &name, 1, NULL);
}

static inline peg_status unregister(peg_registry *registry, const char *name)
{
    return peg_registry_unregister(registry, peg__str(name), NULL);
}

/* What is in it, without memory of its own. */
static inline peg_str order(peg_registry *registry)
{
    static _Thread_local char text[8192];
    struct peg__walk walk = {.layers = &registry->layers};
    size_t len = 0;

    text[0] = '\0';
    while (peg__layers_next(&walk))
        len += (size_t)snprintf(text + len, sizeof(text) - len,
                                walk.spot.is_hidden ? "%s(%s)" : "%s%s", len ? " " : "",
                                walk.spot.tool->name.ptr);
    return peg__strn(text, len);
}

static inline peg_str names_in(const peg_tool_list *list)
{
    static char text[4096];
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < list->len; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? " " : "",
                                peg_tool_name(list->items[i]));
    return peg__strn(text, len);
}

#endif
