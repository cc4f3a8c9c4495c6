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
#include <string.h>

#include "base/arena.h"
#include "schema/compile/compile.h"
#include "schema/format/format.h"
#include "schema/pattern/pattern.h"

/* ---- names -----------------------------------------------------------------------------------
 */

/*
 * A fixed set of strings, found in one probe almost always: property names, string enums.
 * The hash reads the first and last eight bytes and the length, whatever the length is; a seed
 * is chosen when the set is made so that (nearly) no two names share a slot. Sets that were
 * made to collide whatever the seed are found by a hash of all bytes with a secret key.
 *
 * Strings that are looked up come from JSON documents, which pad them, so that eight bytes can
 * be read from the start of any of them.
 */

struct peg__slot {
    uint64_t head;   /* first eight bytes, the missing ones 0 */
    uint64_t tail;   /* last eight bytes; the head again if there are not more than eight */
    const char *ptr; /* NULL: the slot is empty */
    uint32_t len;
    uint32_t node; /* what the compiler attached to the name */
    uint32_t flags;
    uint32_t next; /* the slot of the name that was given after this one */
};

struct peg__hashed_names;

struct peg__names {
    struct peg__slot *slots;          /* in an arena; NULL if there are none, or `hashed` */
    struct peg__hashed_names *hashed; /* in an arena; NULL but for hostile sets */
    uint64_t seed;
    uint32_t mask;
    uint32_t shift;
    uint32_t n;
    uint32_t first; /* the slot of the name that was given first */
};

/* What is to become a slot: filled by the compiler. */
struct peg__name {
    peg_str text; /* padded, as the strings of a document are */
    uint32_t node;
    uint32_t flags;
    uint32_t order; /* in which the schema gives them */
};

/* Makes the set. Names must be distinct. False when out of memory. */
bool peg__names_init(struct peg__names *names, const struct peg__name *list, uint32_t n,
                     struct peg__arena *arena);

/* The slot of a string among names->hashed. */
const struct peg__slot *peg__names_find_hashed(const struct peg__names *names,
                                               const peg_json *string);

/* A number below names->mask + 1 for a slot of the set. */
uint32_t peg__names_number(const struct peg__names *names, const struct peg__slot *slot);

static inline uint64_t peg__load8(const char *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof(word));
    return word;
}

static inline uint64_t peg__name_head(const char *ptr, uint32_t len)
{
    const uint64_t word = peg__load8(ptr);

    return len >= 8 ? word : word & ((1ULL << (len * 8)) - 1);
}

static inline uint32_t peg__name_slot(const struct peg__names *names, uint64_t head, uint64_t tail,
                                      uint32_t len)
{
    const uint64_t mixed = (head ^ (tail << 29 | tail >> 35)) + len;

    return (uint32_t)((mixed * names->seed) >> names->shift);
}

static inline bool peg__slot_is(const struct peg__slot *slot, uint64_t head, uint64_t tail,
                                const peg_json *string)
{
    return slot->head == head && slot->len == string->len && slot->tail == tail &&
           (string->len <= 16 || memcmp(slot->ptr + 8, string->u.ptr + 8, string->len - 16) == 0);
}

/* Where peg__names_find_next() starts. */
static inline const struct peg__slot *peg__names_guess(const struct peg__names *names)
{
    return names->slots ? &names->slots[names->first] : NULL;
}

/* The same when nothing of the string is at hand yet: the length decides mostly. */
static inline bool peg__slot_is_string(const struct peg__slot *slot, const peg_json *string)
{
    const uint32_t len = string->len;

    if (slot->len != len || slot->head != peg__name_head(string->u.ptr, len))
        return false;
    if (len <= 8)
        return true;
    return slot->tail == peg__load8(string->u.ptr + len - 8) &&
           (len <= 16 || memcmp(slot->ptr + 8, string->u.ptr + 8, len - 16) == 0);
}

/* The slot of a string, or NULL. */
static inline const struct peg__slot *peg__names_find(const struct peg__names *names,
                                                      const peg_json *string)
{
    const uint64_t head = peg__name_head(string->u.ptr, string->len);
    const uint64_t tail = string->len > 8 ? peg__load8(string->u.ptr + string->len - 8) : head;
    uint32_t at;

    if (!names->slots)
        return names->hashed ? peg__names_find_hashed(names, string) : NULL;
    at = peg__name_slot(names, head, tail, string->len);
    while (names->slots[at].ptr) {
        if (peg__slot_is(&names->slots[at], head, tail, string))
            return &names->slots[at];
        at = (at + 1) & names->mask;
    }
    return NULL;
}

/* The same for the members of one object, which mostly come in the order of the schema: the slot
 * after the last one is tried first. */
static inline const struct peg__slot *peg__names_find_next(const struct peg__names *names,
                                                           const struct peg__slot **guess,
                                                           const peg_json *string)
{
    const struct peg__slot *slot = *guess;

    if (!slot || !peg__slot_is_string(slot, string))
        slot = peg__names_find(names, string);
    if (slot && names->slots)
        *guess = &names->slots[slot->next];
    return slot;
}

/* ---- instructions ---------------------------------------------------------- */

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

/* One instruction, 16 bytes. The rule at the same index is what failed. */
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
    peg_str values;          /* as text, for reports */
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

/* ---- filling in defaults --------------------------------------------------- */

/*
 * What is to be filled in, and where: one plan for each schema that properties, items,
 * prefixItems, $ref and allOf lead to from the root and that has a default, or leads to one.
 * In the schema's arena.
 */

struct peg__fill_plan {
    const peg_json *value;   /* the schema's own `default`, or NULL */
    struct peg__names names; /* of properties with a plan; `node` is its index in members */
    struct peg__fill_plan **members;
    const peg_json **keys; /* of properties, in the order of the schema */
    uint32_t n_members;
    struct peg__fill_plan **prefix;
    uint32_t n_prefix;
    struct peg__fill_plan *items; /* for items after the prefix, or NULL */
    struct peg__fill_plan **also; /* $ref and allOf: for the same value */
    uint32_t n_also;
    struct peg__fill_plan *kept; /* while compiling: this one, if it is worth keeping */
    bool is_useful;              /* there is a default somewhere below or beside */
};

/* Fills in what is missing by a plan, which may be NULL; see peg_schema_fill(). */
peg_status peg__fill(const struct peg__fill_plan *plan, const peg_json *value,
                     peg_json_doc **ret_doc, peg_error *reterr);

#endif
