/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_COMPILE_PROGRAM_H
#define PEG_SCHEMA_COMPILE_PROGRAM_H

/*
 * A compiled schema. Every subschema that can be applied is a node; a node holds, for each kind
 * of value, where its instructions start. Keywords that cannot concern a kind are not in its
 * list, and a list with nothing in it is entry 0: `{"type":"string"}` is a table of one
 * acceptance and six failures, and checking it executes nothing.
 *
 * References cost nothing at run time: $ref, $dynamicRef and $recursiveRef are resolved while
 * compiling (a node stands for a schema in one dynamic scope), a schema that is only a $ref is
 * its target's node, and short targets are copied into the caller.
 *
 * What unevaluatedProperties and unevaluatedItems need to know is collected only below the
 * nodes that have them: the schemas applied in place there are compiled a second time, with
 * the `tracked` flag on the instructions that mark members and items as evaluated.
 */

#include <stdatomic.h>

#include "base/arena.h"
#include "schema/compile/document.h"
#include "schema/compile/names.h"
#include "schema/format/format.h"
#include "schema/pattern/pattern.h"

enum { PEG_KINDS = 7 };

enum peg__op {
    OP_END,  /* accepted */
    OP_FAIL, /* the rule says so: a type that does not fit, a false schema */
    /* any kind; a, b, c are nodes, or a list of b nodes from lists[a] */
    OP_CALL,      /* a */
    OP_ANY_OF,    /* list */
    OP_ONE_OF,    /* list */
    OP_SWITCH,    /* switches a: anyOf or oneOf whose branches a member tells apart */
    OP_NOT,       /* a */
    OP_IF,        /* a, then b, else c */
    OP_TRACK,     /* a, then b for what it did not evaluate; c: entry of b if that is false */
    OP_ENUM,      /* one of the rule's values */
    OP_ENUM_HASH, /* the same, by values[a] */
    OP_CONST,     /* the rule's value */
    OP_TRUTH,     /* booleans: a is the truth */
    /* strings */
    OP_ENUM_STRING, /* names a */
    OP_LENGTH_MIN,  /* a characters */
    OP_LENGTH_MAX,  /* a characters */
    OP_PATTERN,     /* patterns a */
    OP_FORMAT,      /* formats a */
    OP_CONTENT,     /* a: base64, b: JSON */
    /* integers: a 64-bit immediate in b and c */
    OP_INT_MIN,
    OP_INT_MAX,
    OP_INT_MULTIPLE,
    OP_INT_EQUAL,
    OP_INT_RANGE,   /* from b to c, both 32 bits: then skip the two that follow, which say it singly
                     */
    OP_DECIMAL_MIN, /* the same for decimals */
    OP_DECIMAL_MAX,
    OP_DECIMAL_RANGE,
    /* any number: against the rule's value */
    OP_WHOLE,         /* 3 and 3.0 */
    OP_WRITTEN_WHOLE, /* 3, not 3.0: draft-04 */
    OP_MIN,
    OP_MAX,
    OP_ABOVE,
    OP_BELOW,
    OP_MULTIPLE,
    /* arrays */
    OP_ITEMS_MIN,      /* a */
    OP_ITEMS_MAX,      /* a */
    OP_ITEMS,          /* every item: node a */
    OP_ITEMS_OF_KINDS, /* the same; b: the kinds that node a accepts as they are, bit by bit */
    OP_ITEMS_RECORDS,  /* the same; b: members of the record that node a wants of objects */
    OP_TUPLE,          /* items by lists[a], b of them; the others: node c */
    OP_CONTAINS,       /* contains a */
    OP_UNIQUE,
    /* objects */
    OP_MEMBERS_MIN,        /* a */
    OP_MEMBERS_MAX,        /* a */
    OP_REQUIRED,           /* b names from words[a] */
    OP_MEMBERS,            /* members a: properties, required, additionalProperties */
    OP_FEW_MEMBERS,        /* members a: the same for few properties of an open object */
    OP_RECORD,             /* members a: the same for few properties that kinds can decide */
    OP_MAP_OF_KINDS,       /* members a: no properties; b: the kinds accepted as they are */
    OP_MEMBER_NAMES,       /* every name: node a */
    OP_DEPENDENT_REQUIRED, /* if it has the member words[a]: the names behind that key */
    OP_DEPENDENT_SCHEMA,   /* if it has the member words[b]: node a */
    OP_DEPENDENT_VALUE,    /* if its member words[b] is the string words[c]: node a */
};

enum { FLAG_TRACKED = 1 }; /* marks what it evaluates in the checker's innermost track */

/* One instruction, 16 bytes. What failed is told by the rule at the same index. */
struct peg__insn {
    uint8_t op;
    uint8_t flags;
    uint16_t has_rest; /* OP_TUPLE: c is a schema of its own, so every item is evaluated */
    uint32_t a;
    uint32_t b;
    uint32_t c;
};

static inline int64_t peg__immediate(const struct peg__insn *insn)
{
    return (int64_t)((uint64_t)insn->c << 32 | insn->b);
}

/* Bounds up to this can be scaled by 10^9 in 64 bits. */
#define PEG_WHOLE_BOUND 4000000000LL

/* Where the instructions for each kind start; 0 accepts. */
struct peg__node {
    uint32_t entry[PEG_KINDS];
    uint32_t is_done; /* while compiling */
};

enum { NODE_TRUE = 0, MEMBER_REQUIRED = 1, MEMBER_DECLARED = 2 };

/* Members of a record have two things more in their flags: a bit for each kind that is accepted as
 * it is, and how many of the first 64 bits are not the name's. */
enum { MEMBER_KINDS_SHIFT = 8, MEMBER_UNUSED_SHIFT = 16 };

struct peg__pattern_member {
    struct peg__pattern *pattern; /* one of the program's */
    uint32_t node;
};

/* The members of an object in one loop. */
struct peg__members {
    struct peg__names names; /* properties and required; MEMBER_... flags */
    uint32_t n_required;
    uint32_t n_patterns;
    struct peg__pattern_member *patterns;
    uint32_t additional;           /* node for members that nothing else matched; NODE_TRUE */
    bool is_closed;                /* additionalProperties: false */
    bool has_additional;           /* then tracked members are all evaluated */
    const peg_json *required_rule; /* keys, or NULL */
    const peg_json *additional_rule;
};

/* Branches that a member with a constant string tells apart. */
struct peg__switch {
    const peg_json *name;    /* of the member */
    peg_str values;          /* in words, for reports */
    struct peg__names cases; /* its values; `node` is the branch */
};

struct peg__contains {
    uint32_t node;
    uint32_t min;
    uint32_t max; /* UINT32_MAX: none */
    const peg_json *max_rule;
    const peg_json *min_rule;
    bool marks; /* what it contains counts as evaluated: since 2020-12 */
};

/* A set of values of any kind, by hash. */
struct peg__values {
    const peg_json **slots; /* in the arena; NULL where there is none */
    uint32_t mask;
    uint64_t seed; /* random: an enum cannot be made to collide */
};

struct peg__fill_plan;

/* Shared immutable. */
struct peg_schema {
    atomic_uint refs;
    uint32_t root; /* node */
    struct peg__insn *code;
    const peg_json **rules; /* for each instruction: a keyword's key, or a false schema */
    struct peg__node *nodes;
    uint32_t *lists; /* of nodes */
    struct peg__members *members;
    struct peg__contains *contains;
    struct peg__switch *switches;
    size_t n_switches;
    struct peg__names *enums;
    struct peg__pattern **patterns; /* owned */
    size_t n_patterns;
    peg__format_fn **formats;
    struct peg__values *values;
    const peg_json **words;           /* keys in the documents */
    struct peg__document **documents; /* one reference each; the first is the schema itself */
    size_t n_documents;
    struct peg__arena arena;     /* tables of names */
    struct peg__fill_plan *plan; /* in the arena; NULL: there is no default anywhere */
    size_t bytes;
};

#endif
