/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Identifiers of TypeScript: types as GetArgs, methods as jobResult. Members have the names of the
 * JSON. What clashes with another name gets a number, in the order of the schema: so a name changes
 * only if one before it does.
 */

#include <stdio.h>
#include <string.h>

#include "base/limits/generate.h"
#include "base/text/str.h"
#include "generate/ts/internal.h"

enum { MAX_NAMES = 1 << 20 };

/* Types of the language that generated files use, or that a reader would take for these. */
static const char *const known_types[] = {"Array", "Object", "Pick", "Promise", "Record", "String"};

/* Methods that JavaScript calls on its own, or that mean something to a class. */
static const char *const known_methods[] = {
    "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "then", "toJSON",
    "toString",    "toLocaleString", "valueOf",
};

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* "get_args" as "GetArgs", with an ending. A digit in front gets an underscore before it. */
static char *make_pascal(struct peg__arena *arena, const char *word, const char *ending)
{
    char *name = peg__arena_alloc(arena, strlen(word) + strlen(ending) + 2);
    bool is_first = true;
    size_t n = 0;

    if (!name)
        return NULL;
    if (word[0] >= '0' && word[0] <= '9')
        name[n++] = '_';
    for (; *word; word++) {
        const bool is_part = *word != '_';

        if (is_part)
            name[n++] = *word;
        if (is_first && is_lower(*word))
            name[n - 1] = (char)(*word - 'a' + 'A');
        is_first = !is_part;
    }
    memcpy(name + n, ending, strlen(ending) + 1);
    return name;
}

static bool is_known_method(const char *name)
{
    for (size_t i = 0; i < sizeof(known_methods) / sizeof(known_methods[0]); i++) {
        if (strcmp(known_methods[i], name) == 0)
            return true;
    }
    return false;
}

/* "job_result" as "jobResult", unique in `taken`. */
static const char *make_camel(struct peg__arena *arena, struct peg__map *taken, const char *word)
{
    char *name = make_pascal(arena, word, "_");

    if (!name)
        return NULL;
    /* "HTTPGet" stays as it is. */
    if (is_upper(name[0]) && !(is_upper(word[0]) && is_upper(word[1])))
        name[0] = (char)(name[0] - 'A' + 'a');
    name[strlen(name) - 1] = 0;
    if (is_known_method(name))
        name[strlen(name)] = '_'; /* there is a NUL behind it: of the ending */
    return gen_unique(arena, taken, name);
}

/* ---- tools -------------------------------------------------------------------------------- */

static bool name_declared_data(struct ts_tool *t, struct peg__arena *arena, struct peg__map *taken)
{
    struct peg__map members = PEG__MAP(MAX_NAMES);
    const char *answer = make_pascal(arena, t->tool->word, "Answer");
    const char *beside = make_pascal(arena, t->tool->word, "ServerData");
    bool is_named = answer && beside;

    t->answer = is_named ? gen_unique(arena, taken, answer) : NULL;
    t->beside = is_named ? gen_unique(arena, taken, beside) : NULL;
    t->data = peg__arena_alloc_zero(arena, t->tool->n_server_data * sizeof(*t->data));
    is_named = t->answer && t->beside && t->data;
    for (size_t i = 0; i < t->tool->n_server_data && is_named; i++) {
        t->data[i] = make_camel(arena, &members, t->tool->server_data[i].name);
        is_named = t->data[i] != NULL;
    }
    peg__map_free(&members);
    return is_named;
}

static bool name_methods(struct ts_names *names, struct peg__arena *arena, struct peg__map *taken)
{
    const struct gen_toolset *toolset = names->toolset;
    struct peg__map methods = PEG__MAP(MAX_NAMES);
    bool is_named;

    names->tools = peg__arena_alloc_zero(arena, (toolset->n_tools + 1) * sizeof(*names->tools));
    is_named = names->tools != NULL;
    for (size_t i = 0; i < toolset->n_tools && is_named; i++) {
        struct ts_tool *t = &names->tools[i];

        t->tool = &toolset->tools[i];
        t->method = make_camel(arena, &methods, t->tool->word);
        is_named = t->method && (!t->tool->n_server_data || name_declared_data(t, arena, taken));
    }
    peg__map_free(&methods);
    return is_named;
}

/* ---- types -------------------------------------------------------------------------------- */

bool ts_is_named(const struct gen_type *type)
{
    return type->kind == GEN_STRUCT || type->kind == GEN_UNION ||
           (type->kind == GEN_ENUM && type->n_values > 1);
}

static bool name_used_types(struct ts_names *names, struct peg__arena *arena,
                            struct peg__map *taken)
{
    for (const struct gen_type *type = names->toolset->types; type; type = type->next) {
        const char *pascal;
        char *name;

        if (!type->is_used || !ts_is_named(type))
            continue;
        pascal = make_pascal(arena, type->name, "");
        name = pascal ? gen_unique(arena, taken, pascal) : NULL;
        if (!name || peg__map_add(&names->types, peg__str(type->name), name))
            return false;
    }
    return true;
}

bool ts_names_make(const struct gen_toolset *toolset, struct peg__arena *arena,
                   struct ts_names *ret_names)
{
    struct peg__map taken = PEG__MAP(MAX_NAMES);
    struct ts_names names = {.toolset = toolset, .types = PEG__MAP(PEG_LIMIT_GENERATE_TYPES)};
    const char *implementation = make_pascal(arena, toolset->word, "Tools");
    const char *client = make_pascal(arena, toolset->word, "Client");
    bool is_named = implementation && client;

    for (size_t i = 0; i < sizeof(known_types) / sizeof(known_types[0]) && is_named; i++)
        is_named = gen_unique(arena, &taken, known_types[i]) != NULL;
    names.implementation = is_named ? gen_unique(arena, &taken, implementation) : NULL;
    names.client = is_named ? gen_unique(arena, &taken, client) : NULL;
    is_named = names.implementation && names.client && name_methods(&names, arena, &taken) &&
               name_used_types(&names, arena, &taken);
    peg__map_free(&taken);
    *ret_names = names;
    return is_named;
}

void ts_names_free(struct ts_names *names)
{
    peg__map_free(&names->types);
}

const char *ts_name_of(const struct ts_names *names, const struct gen_type *type)
{
    return peg__map_get(&names->types, peg__str(type->name));
}
