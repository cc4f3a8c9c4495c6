/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Identifiers of C. What clashes with a word of C or C++ gets an underscore behind it, what clashes
 * with another name a number, in the order of the schema: so a name changes only if one before it
 * does.
 */

#include <stdio.h>
#include <string.h>

#include "base/limits/generate.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "generate/c/internal.h"

enum { MAX_NAMES = 1 << 20 };

/* Words of C up to C23 and of C++, and what headers that everyone includes define. */
static const char *const reserved[] = {
    "NULL",
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "assert",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "const",
    "constexpr",
    "const_cast",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "errno",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "linux",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "stderr",
    "stdin",
    "stdout",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "typeof_unqual",
    "union",
    "unix",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
};

static bool is_reserved(const char *word)
{
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        if (strcmp(reserved[i], word) == 0)
            return true;
    }
    return false;
}

/* A member: unique in its struct. */
static const char *make_member(struct peg__arena *arena, struct peg__map *taken, peg_str name)
{
    const char *word = gen_word(arena, name);
    char *safe;
    size_t n;

    if (!word)
        return NULL;
    n = strlen(word) + 3;
    safe = peg__arena_alloc(arena, n);
    if (!safe)
        return NULL;
    snprintf(safe, n, "%s%s%s", word[0] >= '0' && word[0] <= '9' ? "_" : "", word,
             is_reserved(word) ? "_" : "");
    return gen_unique(arena, taken, safe);
}

static char *make_upper(struct peg__arena *arena, const char *word)
{
    char *upper = peg__arena_copy(arena, peg__str(word));

    for (char *at = upper; at && *at; at++) {
        if (*at >= 'a' && *at <= 'z')
            *at = (char)(*at - 'a' + 'A');
    }
    return upper;
}

/* "WEATHER_GET_ARGS_UNITS_CELSIUS": unique among all constants. */
static const char *make_constant(struct peg__arena *arena, struct peg__map *taken, const char *type,
                                 peg_str value)
{
    const char *word = gen_word(arena, value);
    const char *joined = word ? gen_join(arena, type, word) : NULL;
    const char *upper = joined ? make_upper(arena, joined) : NULL;

    return upper ? gen_unique(arena, taken, upper) : NULL;
}

/* ---- types -------------------------------------------------------------------------------- */

/* What a result has beside its members comes first, as every result has it by that name. */
static bool name_own_members(const struct c_names *names, const struct gen_type *type,
                             struct peg__arena *arena, struct peg__map *taken)
{
    C_EACH_TOOL(names, tool)
    {
        if (tool->tool->result == type)
            return gen_unique(arena, taken, "arena") && gen_unique(arena, taken, "server_data");
    }
    return true;
}

static bool name_struct(const struct c_names *names, struct c_type *c, struct peg__arena *arena,
                        struct peg__map *taken)
{
    const struct gen_type *type = c->type;
    bool is_named = name_own_members(names, type, arena, taken);

    c->members = peg__arena_alloc_zero(arena, (type->n_members + 1) * sizeof(*c->members));
    c->flags = peg__arena_alloc_zero(arena, (type->n_members + 1) * sizeof(*c->flags));
    if (!is_named || !c->members || !c->flags)
        return false;
    for (size_t i = 0; i < type->n_members; i++) {
        c->members[i] = make_member(arena, taken, type->members[i].name);
        if (!c->members[i])
            return false;
    }
    for (size_t i = 0; i < type->n_members && is_named; i++) {
        const char *flag = gen_join(arena, "has", c->members[i]);

        if (type->members[i].is_required)
            continue;
        c->flags[i] = flag ? gen_unique(arena, taken, flag) : NULL;
        is_named = c->flags[i] != NULL;
    }
    c->others = gen_unique(arena, taken, "others");
    return is_named && c->others;
}

static bool name_union(struct c_type *c, struct peg__arena *arena, struct peg__map *taken,
                       struct peg__map *constants)
{
    const struct gen_type *type = c->type;

    c->members = peg__arena_alloc_zero(arena, type->n_branches * sizeof(*c->members));
    c->constants = peg__arena_alloc_zero(arena, type->n_branches * sizeof(*c->constants));
    if (!c->members || !c->constants)
        return false;
    for (size_t i = 0; i < type->n_branches; i++) {
        const peg_str name = peg__str(type->branches[i].name);

        c->members[i] = make_member(arena, taken, name);
        c->constants[i] = make_constant(arena, constants, c->name, name);
        if (!c->members[i] || !c->constants[i])
            return false;
    }
    return true;
}

static bool name_enum(struct c_type *c, struct peg__arena *arena, struct peg__map *constants)
{
    c->constants = peg__arena_alloc_zero(arena, c->type->n_values * sizeof(*c->constants));
    for (size_t i = 0; c->constants && i < c->type->n_values; i++) {
        c->constants[i] = make_constant(arena, constants, c->name, c->type->values[i]);
        if (!c->constants[i])
            return false;
    }
    return c->constants != NULL;
}

static bool name_type(struct c_names *names, const struct gen_type *type, struct peg__arena *arena,
                      struct peg__map *constants)
{
    struct peg__map taken = PEG__MAP(MAX_NAMES);
    struct c_type *c = peg__arena_alloc_zero(arena, sizeof(*c));
    bool is_named = c != NULL;

    if (!is_named)
        return false;
    c->type = type;
    c->name = gen_join(arena, names->prefix, type->name);
    is_named = c->name && !peg__map_add(&names->types, peg__str(type->name), c);
    if (is_named && type->kind == GEN_STRUCT)
        is_named = name_struct(names, c, arena, &taken);
    else if (is_named && type->kind == GEN_UNION)
        is_named = name_union(c, arena, &taken, constants);
    else if (is_named && type->kind == GEN_ENUM)
        is_named = name_enum(c, arena, constants);
    peg__map_free(&taken);
    return is_named;
}

/* ---- tools -------------------------------------------------------------------------------- */

static bool name_server_data(struct c_tool *c, struct peg__arena *arena)
{
    struct peg__map taken = PEG__MAP(MAX_NAMES);
    const size_t n = c->tool->n_server_data;
    bool is_named;

    c->data = peg__arena_alloc_zero(arena, (n + 1) * sizeof(*c->data));
    c->flags = peg__arena_alloc_zero(arena, (n + 1) * sizeof(*c->flags));
    is_named = c->data && c->flags;
    for (size_t i = 0; i < n && is_named; i++) {
        c->data[i] = make_member(arena, &taken, peg__str(c->tool->server_data[i].name));
        is_named = c->data[i] != NULL;
    }
    for (size_t i = 0; i < n && is_named; i++) {
        const char *flag = gen_join(arena, "has", c->data[i]);

        if (c->tool->server_data[i].is_always)
            continue;
        c->flags[i] = flag ? gen_unique(arena, &taken, flag) : NULL;
        is_named = c->flags[i] != NULL;
    }
    peg__map_free(&taken);
    return is_named;
}

static bool name_tools(struct c_names *names, struct peg__arena *arena)
{
    const struct gen_toolset *toolset = names->toolset;

    names->tools = peg__arena_alloc_zero(arena, (toolset->n_tools + 1) * sizeof(*names->tools));
    if (!names->tools)
        return false;
    for (size_t i = 0; i < toolset->n_tools; i++) {
        struct c_tool *c = &names->tools[i];

        c->tool = &toolset->tools[i];
        c->name = gen_join(arena, names->prefix, c->tool->word);
        if (!c->name || !name_server_data(c, arena))
            return false;
    }
    return true;
}

static bool name_all(struct c_names *names, struct peg__arena *arena, struct peg__map *constants)
{
    for (const struct gen_type *type = names->toolset->types; type; type = type->next) {
        if (!name_type(names, type, arena, constants))
            return false;
    }
    return true;
}

bool c_names_make(const struct gen_toolset *toolset, struct peg__arena *arena,
                  struct c_names *ret_names)
{
    struct peg__map constants = PEG__MAP(MAX_NAMES);
    struct c_names names = {.toolset = toolset, .types = PEG__MAP(PEG_LIMIT_GENERATE_TYPES)};
    const bool is_number = toolset->word[0] >= '0' && toolset->word[0] <= '9';
    bool is_named;

    names.prefix = is_number ? gen_join(arena, "toolset", toolset->word) : toolset->word;
    names.upper = names.prefix ? make_upper(arena, names.prefix) : NULL;
    is_named = names.upper && name_tools(&names, arena) && name_all(&names, arena, &constants);
    peg__map_free(&constants);
    *ret_names = names;
    return is_named;
}

void c_names_free(struct c_names *names)
{
    peg__map_free(&names->types);
}

/* ---- looking up --------------------------------------------------------------------------- */

const struct c_type *c_type_of(const struct c_names *names, const struct gen_type *type)
{
    return peg__map_get(&names->types, peg__str(type->name));
}

const char *c_spell(const struct c_names *names, const struct gen_type *type)
{
    static const char *const scalars[] = {
        [GEN_BOOL] = "bool",      [GEN_INTEGER] = "int64_t", [GEN_NUMBER] = "double",
        [GEN_STRING] = "peg_str", [GEN_NULL] = "bool",       [GEN_RAW] = "const peg_json *",
    };

    return gen_is_scalar(type->kind) ? scalars[type->kind] : c_type_of(names, type)->name;
}

bool c_says_anything(const struct gen_type *type)
{
    for (size_t i = 0; i < type->n_members; i++) {
        if (!type->members[i].is_required || type->members[i].slot.type->kind != GEN_NULL)
            return true;
    }
    return type->others != NULL;
}

const struct c_tool *c_tool_of_result(const struct c_names *names, const struct gen_type *type)
{
    C_EACH_TOOL(names, tool)
    {
        if (tool->tool->result == type)
            return tool;
    }
    return NULL;
}
