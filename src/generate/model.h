/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GENERATE_MODEL_H
#define PEG_GENERATE_MODEL_H

/*
 * What `pegboard generate` writes code from: services, toolsets, tools, and the types of what they
 * take and return. It belongs to no language: names are those of the JSON, or made of
 * [A-Za-z0-9_] and unique within the toolset; an emitter makes identifiers of them.
 *
 *   declaration.h   a file, a turn or a toolset of a gateway  ->  struct gen_service, untyped
 *   gen_type_service()  schemas  ->  types
 *   language.h      types  ->  text of a language
 *
 * A model borrows strings and schemas from the document it was read from, and is in an arena.
 */

#include "base/arena.h"
#include "base/map.h"
#include "pegboard/json.h"

enum gen_kind {
    GEN_BOOL,
    GEN_INTEGER, /* whole; what 64 bits with a sign do not hold is an error of decoding */
    GEN_NUMBER,
    GEN_STRING,
    GEN_NULL,     /* null alone */
    GEN_RAW,      /* any JSON: the schema says nothing, or what no type can say */
    GEN_ENUM,     /* one of some strings */
    GEN_NULLABLE, /* null, or an item */
    GEN_ARRAY,    /* of items */
    GEN_MAP,      /* an object of items by name */
    GEN_STRUCT,   /* an object with members */
    GEN_UNION,    /* one of some branches */
};

/* Scalars, from GEN_BOOL to GEN_RAW, exist once and have a name only for compounds of them. */
static inline bool gen_is_scalar(enum gen_kind kind)
{
    return kind <= GEN_RAW;
}

/* A type as a part of another. */
struct gen_slot {
    struct gen_type *type;
    /* The type contains itself by this part: it has to be behind a pointer. */
    bool is_boxed;
};

struct gen_member {
    peg_str name; /* as in JSON; any text */
    peg_str description;
    struct gen_slot slot;
    bool is_required;
};

/* A value belongs to the branch that takes its JSON kind; of several that take objects, to the one
 * that lists the value of the member `tag` of the union. */
struct gen_branch {
    const char *name; /* unique in its union, [A-Za-z0-9_]: of its tag, or of its kind */
    struct gen_slot slot;
    unsigned kinds;      /* GEN_IS_... */
    const peg_str *tags; /* values of the member `tag`; none: the kind decides */
    size_t n_tags;
};

/* Kinds of JSON values, as bits. */
enum {
    GEN_IS_NULL = 1,
    GEN_IS_BOOL = 2,
    GEN_IS_WHOLE = 4, /* numbers: 3, 3.0 */
    GEN_IS_FRACTION = 8,
    GEN_IS_STRING = 16,
    GEN_IS_ARRAY = 32,
    GEN_IS_OBJECT = 64,
    GEN_IS_NUMBER = GEN_IS_WHOLE | GEN_IS_FRACTION,
    GEN_IS_ANY = 127,
};

struct gen_type {
    enum gen_kind kind;
    const char *name; /* unique in the toolset, [A-Za-z0-9_]: "get_args_location" */
    peg_str description;
    struct gen_slot item;  /* NULLABLE, ARRAY, MAP; never boxed of the last two */
    const peg_str *values; /* ENUM, in the order of the schema, each once */
    size_t n_values;
    struct gen_member *members; /* STRUCT, in the order of the schema */
    size_t n_members;
    struct gen_type *others; /* STRUCT: of members that have no name in the schema; NULL: they are
                              * refused by the schema, or ignored when decoding */
    /* STRUCT: what JSON has is the value of the one member, not an object. Results only. */
    bool is_wrapper;
    peg_str tag; /* UNION: the member of its objects that tells them apart; "": none */
    struct gen_branch *branches;
    size_t n_branches;
    struct gen_type *next; /* of the toolset; contained types come before those that contain them,
                            * but for boxed ones and for items */
    bool is_complete;      /* false while it is made */
    bool is_used;          /* by a tool: the only types to write */
};

/* Server-data that a tool declares: sent beside its result, never shown to a model. */
struct gen_server_data {
    peg_str kind;
    peg_str audience;
    peg_str description;
    const peg_json *schema; /* NULL: any JSON */
    bool is_always;         /* with each result; false: where the handler has some */
    const char *name;       /* unique in the tool, [A-Za-z0-9_]: of the kind */
    struct gen_type *type;
};

struct gen_tool {
    peg_str name;
    peg_str description;
    peg_str version;
    const peg_json *input_schema;  /* NULL: takes no arguments */
    const peg_json *output_schema; /* NULL: results are any JSON */
    const peg_json *examples;      /* NULL: none */
    const peg_json *tags;          /* array of strings; NULL: none */
    int64_t timeout_ms;            /* 0: none of its own */
    bool is_idempotent;
    bool is_read_only;
    bool is_destructive;
    bool is_additive;
    struct gen_server_data *server_data;
    size_t n_server_data;
    const char *word;        /* its name as [A-Za-z0-9_], unique in the toolset */
    struct gen_type *args;   /* STRUCT "<word>_args" */
    struct gen_type *result; /* STRUCT "<word>_result" */
};

struct gen_toolset {
    peg_str name;
    peg_str description;
    peg_str version;
    const peg_json *tags; /* array of strings; NULL: none */
    struct gen_tool *tools;
    size_t n_tools;
    const char *word;       /* its name as [A-Za-z0-9_] */
    struct gen_type *types; /* all that are no scalars */
};

struct gen_service {
    peg_str name;
    struct gen_toolset *toolsets;
    size_t n_toolsets;
};

struct gen_options {
    bool raw;         /* what cannot be typed is GEN_RAW, not an error */
    bool raw_numbers; /* numbers are GEN_RAW unless the schema keeps them within their type */
};

/* Makes the types of all tools, in the arena. `root` is the document that schemas are in: errors
 * point into it. PEG_ESCHEMA (E_GENERATE_UNTYPED: `where` points to the schema, the message has the
 * tool and the reason), PEG_ELIMIT (E_GENERATE_LIMIT), PEG_ENOMEM. */
peg_status gen_type_service(struct gen_service *service, const peg_json *root,
                            const struct gen_options *options, struct peg__arena *arena,
                            peg_error *reterr);

/* ---- names: word.c ---- */

/* Text as [A-Za-z0-9_]+: everything else becomes '_', runs of it one, none at the ends; "empty" for
 * what has nothing else. In the arena; NULL: out of memory. */
char *gen_word(struct peg__arena *arena, peg_str text);
/* "a_b", in the arena. */
char *gen_join(struct peg__arena *arena, const char *a, const char *b);
/* The word, or the first of word_2, word_3, ... that is not in `taken` (case counts), which it is
 * added to. Only this function adds to `taken`. In the arena; NULL: out of memory. */
char *gen_unique(struct peg__arena *arena, struct peg__map *taken, const char *word);

#endif
