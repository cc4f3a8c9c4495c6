/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_YAML_YAML_H
#define PEG_JSON_YAML_YAML_H

/*
 * What the YAML files share:
 *
 *   read.c    libyaml's events -> a tree of nodes, aliases as edges; places in the text
 *   scalar.c  what a scalar without quotes means
 *   tree.c    `<<`, duplicate names; the tree -> a document, aliases expanded
 *   write.c   a value -> YAML
 */

#include "base/arena.h"
#include "base/buf.h"
#include "pegboard/yaml.h"

enum peg__yaml_kind {
    PEG__YAML_SCALAR,
    PEG__YAML_SEQUENCE,
    PEG__YAML_MAPPING,
    PEG__YAML_ALIAS,
};

/* In the reader's arena. 64 bytes: a text of many short scalars has many of them. */
struct peg__yaml_node {
    uint8_t kind;    /* peg__yaml_kind */
    bool is_open;    /* container: its end was not read yet */
    bool is_merge;   /* key: `<<` of YAML 1.1 */
    bool is_merged;  /* key: came through `<<` */
    bool is_dropped; /* key: another member of this name won */
    uint16_t height; /* containers from here down, itself included */
    uint32_t index;  /* where it starts, in characters of the text */
    uint64_t weight; /* bytes that it takes in a document, aliases expanded */
    struct peg__yaml_node *next;
    union {
        struct {
            peg_json value;
            peg_str text; /* as written: what a key of this scalar is called */
        } scalar;
        struct {
            struct peg__yaml_node *first; /* mappings: key, value, key, value... */
            struct peg__yaml_node *last;
            struct peg__yaml_node *parent;
            size_t n;
        } children;
        struct peg__yaml_node *target; /* never an alias itself */
    } u;
};

/* What an alias stands for, and any other node itself. */
static inline const struct peg__yaml_node *peg__yaml_resolve(const struct peg__yaml_node *node)
{
    return node->kind == PEG__YAML_ALIAS ? node->u.target : node;
}

struct peg__yaml_reader {
    peg_str text;
    struct peg__arena arena;
    bool is_1_1;
    peg_json_options limits; /* with every default filled in */
    size_t expanded;         /* bytes of all expansions so far */
    peg_error *reterr;
};

/* ---- scalar.c ------------------------------------------------------------ */

enum peg__yaml_type {
    PEG__YAML_STRING,
    PEG__YAML_NULL,
    PEG__YAML_TRUE,
    PEG__YAML_FALSE,
    PEG__YAML_INT,
    PEG__YAML_FLOAT,
    PEG__YAML_NOT_FINITE,  /* .inf or .nan */
    PEG__YAML_SEXAGESIMAL, /* 1:30, in 1.1 only */
};

/* What a plain scalar means. ret_base is set for INT: 2, 8, 10 or 16. */
enum peg__yaml_type peg__yaml_type_of(peg_str text, bool is_1_1, unsigned *ret_base);

/* Appends the JSON text of an INT or FLOAT. False if it has too many digits to convert. */
bool peg__yaml_number(peg_str text, unsigned base, struct peg__buf *out);

/* ---- tree.c --------------------------------------------------------------------- */

/* Bytes of the byte order mark that some editors put first. libyaml would count it as a column,
 * and so take the lines that follow for less indented. */
size_t peg__yaml_mark_len(peg_str text);
/* libyaml counts characters, errors have bytes. */
size_t peg__yaml_offset(peg_str text, size_t index);
/* Adds the place of a node to the error and returns its status. */
peg_status peg__yaml_fail_at(const struct peg__yaml_reader *r, size_t index, peg_status status);
/* Counts what an alias expands to. PEG_ELIMIT beyond max_bytes. */
peg_status peg__yaml_charge(struct peg__yaml_reader *r, const struct peg__yaml_node *at,
                            uint64_t weight);

/* Expands `<<` and settles which of several members of one name stays. */
peg_status peg__yaml_settle_members(struct peg__yaml_reader *r, struct peg__yaml_node *mapping);

peg_status peg__yaml_build(const struct peg__yaml_node *root, peg_json_doc **ret_doc,
                           peg_error *reterr);

#endif
