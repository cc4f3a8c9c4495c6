/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_COMPILE_INTERNAL_H
#define PEG_SCHEMA_COMPILE_INTERNAL_H

/*
 * From schema to program. compile.c compiles a document; node.c gives each schema, in each dynamic
 * scope it is met in, a node, and has the keywords write a draft of its instructions; link.c makes
 * the draft into one list for each kind of value. scalar.c, container.c and logic.c translate
 * keywords, with the help of tables.c.
 *
 * Functions return whether to go on; the error is in the compiler.
 */

#include "schema/compile/program.h"

/* The dynamic scope: resources with dynamic anchors, the innermost first. Interned: two equal
 * scopes are one object. In the index's arena. */
struct peg__scope {
    const struct peg__scope *outer;
    struct peg__resource *resource;
    const struct peg__scope *next; /* of all scopes, for interning */
};

/* What a node is made from. */
struct peg__task {
    const peg_json *schema;
    struct peg__resource *resource;
    const struct peg__scope *scope; /* NULL: no dynamic anchor was met */
    bool is_tracked;                /* it marks what it evaluates */
    bool is_inner;                  /* its own unevaluated... keywords are compiled elsewhere */
};

/* An instruction in the making, for some kinds of values. */
struct peg__draft_insn {
    struct peg__insn insn;
    const peg_json *rule;
    unsigned kinds;
};

struct peg__draft {
    struct peg__task task;
    struct peg__subschema sub;
    struct peg__draft_insn *insns;
    size_t n;
    size_t capacity;
    unsigned kinds; /* that `type` lets through */
};

enum {
    KINDS_NUMBER = 1U << PEG_JSON_INTEGER | 1U << PEG_JSON_DECIMAL,
    KINDS_STRING = 1U << PEG_JSON_STRING,
    KINDS_ARRAY = 1U << PEG_JSON_ARRAY,
    KINDS_OBJECT = 1U << PEG_JSON_OBJECT,
    KINDS_ALL = (1U << PEG_KINDS) - 1,
};

/* A default to be checked against the node it belongs to. */
struct peg__default_use {
    const peg_json *key;
    const peg_json *schema;            /* that has it */
    const struct peg__fill_plan *plan; /* of that schema: a default may leave things out too */
    uint32_t node;
};

struct peg__pending {
    struct peg__task task;
    uint32_t node;
};

/* Growable arrays: items and capacity of one of the schema's arrays. */
struct peg__counts {
    size_t n;
    size_t capacity;
};

struct peg__compiler {
    struct peg__index index;
    peg_schema *out;
    struct peg__counts code, rules, nodes, lists, members, contains, switches, enums, patterns,
        formats, values, words;
    struct peg__known_node *known; /* nodes by task */
    size_t n_known;
    size_t known_slots;
    struct peg__pending *pending; /* nodes that have a number but no instructions yet */
    struct peg__counts pendings;
    struct peg__default_use *defaults;
    struct peg__counts n_defaults;
    const struct peg__scope *scopes;
    unsigned n_scopes;
    unsigned depth;
    bool has_default;           /* some schema that was compiled has a `default` */
    peg_schema_options options; /* with all defaults filled in */
    peg_status status;
    peg_error *reterr;
};

/* Compiles a document into c->out. c->options, c->index.docs, .dialect and .max_depth are set. */
bool peg__compile(struct peg__compiler *c, struct peg__document *document);

/* ---- node.c and link.c ----------------------------------------------------------------- */

/* Gives a node its instructions. */
bool peg__compile_node(struct peg__compiler *c, const struct peg__task *task, uint32_t node);
bool peg__link(struct peg__compiler *c, const struct peg__draft *d, uint32_t node);
bool peg__put_insn(struct peg__compiler *c, struct peg__insn insn, const peg_json *rule);
/* Is it known already that the node accepts no object at all? */
bool peg__refuses_objects(const struct peg__compiler *c, uint32_t node);
/* At the end: instructions for what the kind of a value decides. */
void peg__choose_by_kinds(struct peg__compiler *c);

/* ---- what keywords use ------------------------------------------------- */

/* The node of a schema; it may have no instructions yet. */
bool peg__node_for(struct peg__compiler *c, const struct peg__task *task, uint32_t *ret_node);
/* The same for a schema inside the one being drafted. Applied to the same value, it is tracked
 * as the draft is; applied to a member or an item, it is not. */
bool peg__node_in_place(struct peg__compiler *c, const struct peg__draft *d, const peg_json *schema,
                        uint32_t *ret_node);
bool peg__node_below(struct peg__compiler *c, const struct peg__draft *d, const peg_json *schema,
                     uint32_t *ret_node);

/* Goes on to what a schema that is only a reference leads to. */
bool peg__skip_refs(struct peg__compiler *c, struct peg__task *task, unsigned *ret_hops);

/* Adds an instruction to the draft, tracked as the draft is. */
bool peg__emit(struct peg__compiler *c, struct peg__draft *d, unsigned kinds,
               enum peg__keyword keyword, struct peg__insn insn);

/* Reports a keyword whose value cannot be used: "'minLength' must be ...". */
bool peg__fail_keyword(struct peg__compiler *c, const peg_json *key, const char *must);
bool peg__fail_compile(struct peg__compiler *c, const peg_json *place);
bool peg__compile_nomem(struct peg__compiler *c);

/* Adds n items to one of the schema's arrays; returns the first, or NULL after a failure. */
void *peg__add_items(struct peg__compiler *c, void *array_pointer, struct peg__counts *counts,
                     size_t item_size, size_t n);
#define PEG__ADD(c, array, counts, n)                                                              \
    peg__add_items((c), &(c)->out->array, &(c)->counts, sizeof(*(c)->out->array), (n))

bool peg__add_pattern(struct peg__compiler *c, const peg_json *place, peg_str ecma,
                      struct peg__pattern **ret_pattern, uint32_t *ret_index);
bool peg__add_word(struct peg__compiler *c, const peg_json *key, uint32_t *ret_index);
/* Distinct strings become a table; repeated ones are merged. */
bool peg__add_names(struct peg__compiler *c, struct peg__names *names, struct peg__name *list,
                    uint32_t n);

/* The nodes of an array of schemas, one after the other in `lists`. */
bool peg__add_list(struct peg__compiler *c, const struct peg__draft *d, const peg_json *schemas,
                   bool in_place, uint32_t *ret_start);

/* A pair of keywords that bound a count. */
struct peg__count_rule {
    enum peg__keyword min;
    enum peg__keyword max;
    enum peg__op min_op;
    enum peg__op max_op;
    unsigned kinds;
};
bool peg__compile_counts(struct peg__compiler *c, struct peg__draft *d,
                         const struct peg__count_rule *rule);
/* A non-negative whole number, cut to 32 bits. */
bool peg__read_count(struct peg__compiler *c, const struct peg__draft *d, enum peg__keyword keyword,
                     uint32_t *ret_count);
bool peg__need_kind(struct peg__compiler *c, const peg_json *key, peg_json_kind kind,
                    const char *must);

/* ---- keywords, by file -------------------------------------------------------------- */

bool peg__compile_type(struct peg__compiler *c, struct peg__draft *d);
bool peg__compile_enum(struct peg__compiler *c, struct peg__draft *d);
bool peg__compile_string(struct peg__compiler *c, struct peg__draft *d);
bool peg__compile_number(struct peg__compiler *c, struct peg__draft *d);
bool peg__compile_array(struct peg__compiler *c, struct peg__draft *d);
bool peg__compile_object(struct peg__compiler *c, struct peg__draft *d);
bool peg__compile_logic(struct peg__compiler *c, struct peg__draft *d);
bool peg__compile_refs(struct peg__compiler *c, struct peg__draft *d);

/* Where $ref, $dynamicRef or $recursiveRef of a schema leads. */
bool peg__follow_ref(struct peg__compiler *c, const struct peg__task *from,
                     const struct peg__subschema *sub, enum peg__keyword keyword,
                     struct peg__task *ret_target);

/* Makes the plan that fills in defaults. */
bool peg__compile_plan(struct peg__compiler *c, const struct peg__task *root);

#endif
