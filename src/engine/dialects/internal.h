/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_DIALECTS_INTERNAL_H
#define PEG_ENGINE_DIALECTS_INTERNAL_H

/*
 * What the files that write schemas for a vendor share:
 *
 *   plain.c     as they are, but for the root (OpenAI, Anthropic)
 *   strict.c    OpenAI's strict subset
 *   gemini.c    Gemini's OpenAPI subset
 *   json.c      the part of JSON Schema that Gemini takes
 *   rewrite.c   what they share: a table of keywords for each dialect
 *
 * A view is a schema laid out by keyword, with those that apply at the same place ($ref, allOf)
 * beside it. Everything lives on the writer's stack, and points into the definitions.
 */

#include "base/arena.h"
#include "base/limits.h"
#include "base/map.h"
#include "engine/dialects/dialects.h"
#include "engine/dialects/put.h"

/* ---- losses ----------------------------------------------------------------------------- */

/*
 * A list of what a vendor does not take. Adding needs no checks: the first failure sticks to
 * `status`. Owned; one thread at a time.
 */

struct peg_definition_losses {
    struct peg__arena arena;    /* of all strings */
    peg_definition_loss *items; /* owned */
    size_t n;
    size_t capacity;
    peg_str tool; /* the copy of the tool's name that was made last */
    peg_status status;
};

/* NULL when out of memory. */
peg_definition_losses *peg__losses_new(void);
/* Strings are copied; `what` is static. Does nothing if losses is NULL, and beyond
 * PEG_LIMIT_LOSSES; the last entry reports that. */
void peg__losses_add(peg_definition_losses *losses, const peg_definition_loss *loss);
/* Forgets all but the first n. */
void peg__losses_cut(peg_definition_losses *losses, size_t n);

/* Fails with E_DEFINITIONS; `where` is definition i and a member, "/name". */
peg_status peg__fail_definition(peg_error *reterr, peg_status status, size_t i, const char *member,
                                const char *reason);

/* ---- where a schema stands -------------------------------------------------------------- */

/* One step into the parameters: /keyword, /keyword/name or /keyword/index. */
struct peg__place {
    const struct peg__place *up; /* NULL: the parameters */
    peg_str pointer;             /* if not NULL, it is where a $ref led, and all the rest is not */
    const peg_json *name;        /* NULL: none */
    uint32_t index;              /* UINT32_MAX: none */
    enum peg__kw keyword;
};

static inline struct peg__place peg__place_of(const struct peg__place *up, enum peg__kw keyword)
{
    return (struct peg__place){.up = up, .keyword = keyword, .index = UINT32_MAX};
}

static inline struct peg__place peg__place_name(const struct peg__place *up, enum peg__kw keyword,
                                                const peg_json *key)
{
    return (struct peg__place){.up = up, .keyword = keyword, .name = key, .index = UINT32_MAX};
}

static inline struct peg__place peg__place_index(const struct peg__place *up, enum peg__kw keyword,
                                                 uint32_t index)
{
    return (struct peg__place){.up = up, .keyword = keyword, .index = index};
}

/* ---- one tool --------------------------------------------------------------------------- */

/* What strict mode counts, and whether it is given up. */
struct peg__strict {
    peg_definition_losses *losses; /* the render's own, while no more is reported */
    size_t n_losses;               /* before this tool's parameters */
    size_t n_properties;
    size_t n_enum;
    size_t n_bytes;
    unsigned n_objects; /* inside each other */
    bool failed;
};

struct peg__place;
struct peg__render;
struct peg__view;

/* What becomes of each keyword. All that are in none of the sets go into the description. */
struct peg__dialect {
    uint64_t kept;    /* sent as it is */
    uint64_t numbers; /* of these, only if it is a number: Draft 4 has true and false there */
    uint64_t written; /* by a function of its own */
    uint64_t dropped; /* nothing a model could use */
    const char *note; /* why it is not sent */
    /* Whether a keyword of none of the first three was dealt with. NULL: never. */
    bool (*reject)(struct peg__render *r, const struct peg__view *view, enum peg__kw keyword);
    /* Writes a schema inside the parameters. */
    void (*write)(struct peg__render *r, const peg_json *schema, const struct peg__place *place);
};

/* The state of writing one tool. */
struct peg__render {
    struct peg__out *out;
    const struct peg__dialect *dialect;
    const peg_definitions_options *options;
    peg_definition_losses *losses; /* NULL: losses are not reported */
    peg_str tool;
    const peg_json *root;    /* its parameters */
    size_t start;            /* where they start in the text */
    struct peg__buf scratch; /* of one pointer or description */
    struct peg__buf renamed; /* one reference */
    struct peg__buf notes;   /* what is moved into the description of one schema */
    unsigned depth;          /* of schemas */
    size_t n_refs;           /* written out in place */
    const peg_json *refs[PEG_LIMIT_INLINED_DEPTH]; /* which are being written out */
    size_t n_inside;
    struct peg__strict strict;
};

void peg__render_free(struct peg__render *r);

/* Out of memory: sticks to the text that is written. */
void peg__render_nomem(struct peg__render *r);

/* Reports a loss at a keyword of the schema at `place` (NULL: the parameters). `note` is static.
 * Requires r->losses. */
void peg__notify(struct peg__render *r, const struct peg__place *place, peg_str keyword,
                 const char *what, const char *note);
/* The same about the place itself, where a keyword is missing. */
void peg__notify_here(struct peg__render *r, const struct peg__place *place, enum peg__kw keyword,
                      const char *what, const char *note);

static inline void peg__lose_kw(struct peg__render *r, const struct peg__place *place,
                                enum peg__kw keyword, const char *what, const char *note)
{
    if (r->losses)
        peg__notify(r, place, peg__kw_name(keyword), what, note);
}

static inline void peg__lose_here(struct peg__render *r, const struct peg__place *place,
                                  enum peg__kw keyword, const char *what, const char *note)
{
    if (r->losses)
        peg__notify_here(r, place, keyword, what, note);
}

/* ---- views ------------------------------------------------------------------------------ */

struct peg__source {
    const peg_json *schema; /* an object */
    const struct peg__place *place;
    bool is_optional; /* one of several that may apply: only its members count */
};

struct peg__view {
    uint64_t has;                     /* PEG__KW_BIT() of what is there */
    const peg_json *value[PEG__KW_N]; /* of what is there only */
    uint8_t from[PEG__KW_N];          /* index of its source */
    size_t n_sources;
    struct peg__source sources[PEG_LIMIT_INLINED_TOGETHER];
    struct peg__place places[PEG_LIMIT_INLINED_TOGETHER]; /* of sources that were added */
    uint64_t of_base; /* of what is there: it stands beside the branch, and was reported there */
    bool is_false;    /* nothing is valid here */
    bool is_nullable; /* null is valid, too, whatever `type` says */
    bool is_cut;      /* a reference that leads nowhere, into itself, or too far */
};

enum {
    PEG__VIEW_MERGE = 1, /* take in what $ref and allOf lead to */
    PEG__VIEW_ROOT = 2,  /* the branches of anyOf and oneOf too: their members become optional */
    PEG__VIEW_QUIET = 4, /* unknown keywords are no loss */
    PEG__VIEW_BASE = 8,  /* what stands beside branches: only its rules, no loss is reported */
    PEG__VIEW_MERGE_ALL_OF = 16, /* as MERGE, but only a schema with allOf */
};

/* Lays a schema out; reports unknown keywords, and what does not fit together, as losses. The place
 * (NULL: the parameters) is borrowed. After a view with MERGE the caller sets r->n_inside back to
 * what it was when the schema is written. */
void peg__view_make(struct peg__render *r, const peg_json *schema, const struct peg__place *place,
                    unsigned flags, struct peg__view *ret_view);
/* Adds a schema that applies at the same place; what is there already wins. */
void peg__view_add(struct peg__render *r, struct peg__view *view, const peg_json *schema,
                   const struct peg__place *place, unsigned flags);

static inline const peg_json *peg__view_get(const struct peg__view *view, enum peg__kw keyword)
{
    return view->has >> keyword & 1 ? view->value[keyword] : NULL;
}

static inline const struct peg__place *peg__view_place(const struct peg__view *view,
                                                       enum peg__kw keyword)
{
    return view->sources[view->from[keyword]].place;
}

/* What a local $ref leads to ("#", "#/$defs/x"), or NULL. *ret_pointer is borrowed from the ref. */
const peg_json *peg__ref_target(const struct peg__render *r, peg_str ref, peg_str *ret_pointer);

/* ---- members ---------------------------------------------------------------------------- */

/* Calls fn for each member that `properties` of the view describe, each name once. */
typedef void peg__member_fn(struct peg__render *r, const peg_json *key,
                            const struct peg__place *place, void *user);
void peg__view_members(struct peg__render *r, const struct peg__view *view, peg__member_fn *fn,
                       void *user);

/* Whether there is a member that can be valid. */
bool peg__view_has_members(struct peg__render *r, const struct peg__view *view);

static inline bool peg__is_false_schema(const peg_json *schema)
{
    return schema->kind == PEG_JSON_BOOL && !peg_json_is_true(schema);
}

/* Takes null and nothing else. */
bool peg__is_null_schema(const peg_json *schema);
static inline bool peg__is_real_branch(const peg_json *branch)
{
    return !peg__is_null_schema(branch) && !peg__is_false_schema(branch);
}

/* PEG__KW_ANY_OF or PEG__KW_ONE_OF, if it has branches; PEG__KW_UNKNOWN. */
enum peg__kw peg__view_branches(const struct peg__view *view);
/* One branch, or one and null, becomes that branch with the rules beside it. */
void peg__view_take_only_branch(struct peg__render *r, struct peg__view *view);

/* The names that `required` of the view asks for. Few of them are compared one by one. */
struct peg__required {
    const peg_json *few; /* an array; NULL: none, or they are in the map */
    size_t n;
    bool is_mapped;
    struct peg__map map; /* only if it is mapped */
};

void peg__required_make(struct peg__render *r, const struct peg__view *view,
                        struct peg__required *ret_required);
bool peg__required_finds(const struct peg__required *required, const peg_json *key);
static inline bool peg__required_has(const struct peg__required *required, const peg_json *key)
{
    return required->n && peg__required_finds(required, key);
}

static inline void peg__required_free(struct peg__required *required)
{
    if (required->is_mapped)
        peg__map_free(&required->map);
}

/* ---- small things ----------------------------------------------------------------------- */

/* Types that a `type` allows. */
enum {
    PEG__TYPE_NULL = 1,
    PEG__TYPE_BOOLEAN = 2,
    PEG__TYPE_INTEGER = 4,
    PEG__TYPE_NUMBER = 8,
    PEG__TYPE_STRING = 16,
    PEG__TYPE_ARRAY = 32,
    PEG__TYPE_OBJECT = 64,
};

const char *peg__type_name(unsigned bit);
/* Of a `type` that is a name or an array of names; 0 if it is none. */
unsigned peg__types_of(const peg_json *type);
/* Of the values of an enum, or of one const. */
unsigned peg__types_of_values(const peg_json *array);
unsigned peg__type_of_value(const peg_json *value);
/* Of the enum or the const of a view; 0 without either. */
unsigned peg__types_of_view_values(const struct peg__view *view);

/* Adds `keyword: value` to what is moved into the description, and reports it; what is too long
 * is dropped. */
void peg__describe(struct peg__render *r, const struct peg__view *view, enum peg__kw keyword,
                   const char *note);
/* Reports a const that is sent as an enum of one value, or describes it. */
void peg__sort_const(struct peg__render *r, const struct peg__view *view, bool is_taken);
/* Writes "description", with what was moved into it, if there is any. */
void peg__put_description(struct peg__render *r, const struct peg__view *view);
static inline void peg__write_description(struct peg__render *r, const struct peg__view *view)
{
    if (r->notes.len || view->has & PEG__KW_BIT(DESCRIPTION))
        peg__put_description(r, view);
}

/* Writes the members of a schema that is a reference: "$ref" alone, or within anyOf where it has a
 * description or may be null. */
void peg__write_ref(struct peg__render *r, const struct peg__view *view, peg_str ref,
                    bool is_nullable);

/* Fills the notes with keywords that go into the description, and reports what is lost. */
void peg__sort_keywords(struct peg__render *r, const struct peg__view *view);
/* Writes what is sent as it is. */
void peg__put_kept(struct peg__render *r, const struct peg__view *view);
static inline void peg__put_member(struct peg__render *r, const struct peg__view *view,
                                   enum peg__kw keyword)
{
    peg__put_kw(r->out, keyword);
    peg__put_value(r->out, view->value[keyword]);
}
/* "enum" of one value, and null. */
void peg__put_only_value(struct peg__render *r, const peg_json *value, bool is_nullable);
/* "required" of all sources, if there is any. */
void peg__put_required(struct peg__render *r, const struct peg__view *view);
/* Schemas of an array, and of an object with their names, without those that `skipped` has. */
void peg__write_list(struct peg__render *r, const peg_json *list, const struct peg__place *up,
                     enum peg__kw keyword);
void peg__write_named(struct peg__render *r, const peg_json *members, const struct peg__place *up,
                      enum peg__kw keyword, const peg_json *skipped);
/* Reports branches and a type of the root that are not sent. */
void peg__lose_root(struct peg__render *r, const struct peg__view *view, const char *note);
/* Reports rules beside $ref that are not sent. */
void peg__lose_beside_ref(struct peg__render *r, const struct peg__view *view, const char *note);

/* ---- the ways to write parameters ------------------------------------------------------- */

/* Requires r->root to be an object or NULL (no arguments). */
void peg__schema_write_plain(struct peg__render *r);
/* False: strict mode has no form for it; the text is to be taken back. Reported as a loss. */
bool peg__schema_write_strict(struct peg__render *r);
void peg__schema_write_gemini(struct peg__render *r);
void peg__schema_write_json(struct peg__render *r);

#endif
