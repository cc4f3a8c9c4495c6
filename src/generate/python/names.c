/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Identifiers of Python. A word of Python, or one that annotations of the same class use, gets an
 * underscore behind it, and what clashes with another name a number, in the order of the schema: so
 * a name changes only if one before it does.
 */

#include <stdio.h>
#include <string.h>

#include "base/limits/generate.h"
#include "base/text/str.h"
#include "generate/python/internal.h"

enum { MAX_NAMES = 1 << 20 };

/* Words of Python, then names that a class body of ours uses: an attribute of that name would hide
 * it there. */
static const char *const reserved[] = {
    "False",   "None",     "True",      "and",    "as",      "assert",  "async",    "await",
    "break",   "class",    "continue",  "def",    "del",     "elif",    "else",     "except",
    "finally", "for",      "from",      "global", "if",      "import",  "in",       "is",
    "lambda",  "nonlocal", "not",       "or",     "pass",    "raise",   "return",   "try",
    "while",   "with",     "yield",     "Any",    "Literal", "Mapping", "Protocol", "TypeAlias",
    "Union",   "bool",     "dataclass", "dict",   "field",   "float",   "get_args", "int",
    "list",    "object",   "pegboard",  "self",   "str",     "typed",   "types",
};

static bool is_reserved(const char *word)
{
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        if (strcmp(reserved[i], word) == 0)
            return true;
    }
    return false;
}

const char *py_safe(struct peg__arena *arena, const char *word)
{
    const size_t n = strlen(word) + 3;
    char *safe = peg__arena_alloc(arena, n);

    if (safe)
        snprintf(safe, n, "%s%s%s", word[0] >= '0' && word[0] <= '9' ? "_" : "", word,
                 is_reserved(word) ? "_" : "");
    return safe;
}

/* A name that is unique among those taken. */
static const char *make_name(struct peg__arena *arena, struct peg__map *taken, peg_str name)
{
    const char *word = gen_word(arena, name);
    const char *safe = word ? py_safe(arena, word) : NULL;

    return safe ? gen_unique(arena, taken, safe) : NULL;
}

/* An attribute: one that has the name of a class would hide it from the annotations beside it. */
static const char *make_attribute(struct peg__arena *arena, struct peg__map *taken,
                                  const struct peg__map *classes, peg_str name)
{
    const char *word = gen_word(arena, name);
    const char *safe = word ? py_safe(arena, word) : NULL;

    if (safe && peg__map_find(classes, peg__str(safe)))
        safe = gen_join(arena, safe, "");
    return safe ? gen_unique(arena, taken, safe) : NULL;
}

/* "get_args_place" as "GetArgsPlace". */
static const char *make_class(struct peg__arena *arena, struct peg__map *taken, const char *word)
{
    char *name = peg__arena_alloc(arena, strlen(word) + 1);
    const char *safe;
    size_t n = 0;

    if (!name)
        return NULL;
    for (const char *at = word; *at; at++) {
        if (*at == '_')
            continue;
        name[n] = *at;
        if ((at == word || at[-1] == '_') && *at >= 'a' && *at <= 'z')
            name[n] = (char)(*at - 'a' + 'A');
        n++;
    }
    name[n] = 0;
    safe = py_safe(arena, name);
    return safe ? gen_unique(arena, taken, safe) : NULL;
}

/* ---- types -------------------------------------------------------------------------------- */

static bool name_members(struct py_type *p, bool is_result, struct peg__arena *arena,
                         const struct peg__map *classes)
{
    struct peg__map taken = PEG__MAP(MAX_NAMES);
    const struct gen_type *type = p->type;
    bool is_named;

    /* What each result has comes first, so that it has the same name in all of them. */
    p->server_data = is_result ? gen_unique(arena, &taken, "server_data") : "";
    p->members = peg__arena_alloc_zero(arena, (type->n_members + 1) * sizeof(*p->members));
    is_named = p->members && p->server_data;
    for (size_t i = 0; i < type->n_members && is_named; i++) {
        p->members[i] = make_attribute(arena, &taken, classes, type->members[i].name);
        is_named = p->members[i] != NULL;
    }
    p->others = is_named ? gen_unique(arena, &taken, "others") : NULL;
    peg__map_free(&taken);
    return is_named && p->others;
}

static bool is_result(const struct gen_toolset *toolset, const struct gen_type *type)
{
    for (size_t i = 0; i < toolset->n_tools; i++) {
        if (toolset->tools[i].result == type && toolset->tools[i].n_server_data)
            return true;
    }
    return false;
}

static bool name_types(struct py_names *names, struct peg__arena *arena, struct peg__map *classes)
{
    for (const struct gen_type *type = names->toolset->types; type; type = type->next) {
        struct py_type *p = peg__arena_alloc_zero(arena, sizeof(*p));

        if (!p)
            return false;
        p->type = type;
        p->name = make_class(arena, classes, type->name);
        if (!p->name || peg__map_add(&names->types, peg__str(type->name), p))
            return false;
    }
    return true;
}

/* ---- tools -------------------------------------------------------------------------------- */

static bool name_server_data(struct py_tool *p, struct peg__arena *arena,
                             const struct peg__map *classes)
{
    struct peg__map taken = PEG__MAP(MAX_NAMES);
    const size_t n = p->tool->n_server_data;
    bool is_named;

    p->data = peg__arena_alloc_zero(arena, (n + 1) * sizeof(*p->data));
    is_named = p->data != NULL;
    for (size_t i = 0; i < n && is_named; i++) {
        p->data[i] = make_attribute(arena, &taken, classes, peg__str(p->tool->server_data[i].name));
        is_named = p->data[i] != NULL;
    }
    peg__map_free(&taken);
    return is_named;
}

static bool name_methods(struct py_names *names, struct peg__arena *arena, struct peg__map *methods,
                         struct peg__map *classes)
{
    const struct gen_toolset *toolset = names->toolset;

    names->tools = peg__arena_alloc_zero(arena, (toolset->n_tools + 1) * sizeof(*names->tools));
    if (!names->tools)
        return false;
    for (size_t i = 0; i < toolset->n_tools; i++) {
        struct py_tool *p = &names->tools[i];
        const char *data = gen_join(arena, toolset->tools[i].word, "server_data");

        p->tool = &toolset->tools[i];
        p->method = make_name(arena, methods, peg__str(p->tool->word));
        p->data_class = data ? make_class(arena, classes, data) : NULL;
        if (!p->method || !p->data_class)
            return false;
    }
    return true;
}

/* All classes have their names. */
static bool name_attributes(struct py_names *names, struct peg__arena *arena,
                            const struct peg__map *classes)
{
    for (const struct gen_type *type = names->toolset->types; type; type = type->next) {
        if (type->kind == GEN_STRUCT &&
            !name_members(peg__map_get(&names->types, peg__str(type->name)),
                          is_result(names->toolset, type), arena, classes))
            return false;
    }
    for (size_t i = 0; i < names->toolset->n_tools; i++) {
        if (!name_server_data(&names->tools[i], arena, classes))
            return false;
    }
    return true;
}

bool py_names_make(const struct gen_toolset *toolset, struct peg__arena *arena,
                   struct py_names *ret_names)
{
    struct peg__map classes = PEG__MAP(MAX_NAMES);
    struct peg__map methods = PEG__MAP(MAX_NAMES);
    struct py_names names = {
        .toolset = toolset, .arena = arena, .types = PEG__MAP(PEG_LIMIT_GENERATE_TYPES)};
    const bool is_named = name_types(&names, arena, &classes) &&
                          name_methods(&names, arena, &methods, &classes) &&
                          name_attributes(&names, arena, &classes);

    peg__map_free(&classes);
    peg__map_free(&methods);
    *ret_names = names;
    return is_named;
}

void py_names_free(struct py_names *names)
{
    peg__map_free(&names->types);
}

/* ---- looking up --------------------------------------------------------------------------- */

const struct py_type *py_type_of(const struct py_names *names, const struct gen_type *type)
{
    return peg__map_get(&names->types, peg__str(type->name));
}

const char *py_keep(const struct py_names *names, struct peg__buf *out, struct peg__buf *part)
{
    const char *kept = peg__arena_copy(names->arena, peg__str(gen_text_of(out, part)));

    if (!kept && !out->status)
        out->status = PEG_ENOMEM;
    peg__buf_free(part);
    return kept ? kept : "";
}

const struct py_tool *py_tool_of_result(const struct py_names *names, const struct gen_type *type)
{
    PY_EACH_TOOL(names, tool)
    {
        if (tool->tool->result == type)
            return tool;
    }
    return NULL;
}
