/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_COMPILE_KEYWORD_H
#define PEG_SCHEMA_COMPILE_KEYWORD_H

/*
 * The keywords of JSON Schema: which dialects and vocabularies have them, where their
 * subschemas are, and a view of one schema object by keyword.
 */

#include "pegboard/schema.h"

enum peg__keyword {
    KW_ADDITIONAL_ITEMS,
    KW_ADDITIONAL_PROPERTIES,
    KW_ALL_OF,
    KW_ANCHOR,
    KW_ANY_OF,
    KW_CONST,
    KW_CONTAINS,
    KW_CONTENT_ENCODING,
    KW_CONTENT_MEDIA_TYPE,
    KW_CONTENT_SCHEMA,
    KW_DEFAULT,
    KW_DEFINITIONS,
    KW_DEFS,
    KW_DEPENDENCIES,
    KW_DEPENDENT_REQUIRED,
    KW_DEPENDENT_SCHEMAS,
    KW_DYNAMIC_ANCHOR,
    KW_DYNAMIC_REF,
    KW_ELSE,
    KW_ENUM,
    KW_EXCLUSIVE_MAXIMUM,
    KW_EXCLUSIVE_MINIMUM,
    KW_FORMAT,
    KW_ID,
    KW_ID_DRAFT4,
    KW_IF,
    KW_ITEMS,
    KW_MAX_CONTAINS,
    KW_MAX_ITEMS,
    KW_MAX_LENGTH,
    KW_MAX_PROPERTIES,
    KW_MAXIMUM,
    KW_MIN_CONTAINS,
    KW_MIN_ITEMS,
    KW_MIN_LENGTH,
    KW_MIN_PROPERTIES,
    KW_MINIMUM,
    KW_MULTIPLE_OF,
    KW_NOT,
    KW_ONE_OF,
    KW_PATTERN,
    KW_PATTERN_PROPERTIES,
    KW_PREFIX_ITEMS,
    KW_PROPERTIES,
    KW_PROPERTY_DEPENDENCIES,
    KW_PROPERTY_NAMES,
    KW_RECURSIVE_ANCHOR,
    KW_RECURSIVE_REF,
    KW_REF,
    KW_REQUIRED,
    KW_SCHEMA,
    KW_THEN,
    KW_TYPE,
    KW_UNEVALUATED_ITEMS,
    KW_UNEVALUATED_PROPERTIES,
    KW_UNIQUE_ITEMS,
    KW_VOCABULARY,
    KW_COUNT,
};

/* Where the subschemas of a keyword stand. */
enum peg__shape {
    SHAPE_NONE,
    SHAPE_SCHEMA,
    SHAPE_ARRAY,           /* of schemas */
    SHAPE_MAP,             /* name to schema */
    SHAPE_SCHEMA_OR_ARRAY, /* `items` before 2020-12 */
    SHAPE_MAP_OR_NAMES,    /* `dependencies`: a schema or an array of names each */
    SHAPE_MAP_OF_MAPS,     /* `propertyDependencies` */
};

/* A set of keywords, one bit each. */
typedef uint64_t peg__keywords;

_Static_assert(KW_COUNT <= 64, "peg__keywords has 64 bits");

/* How a schema document is read: a standard dialect, or one narrowed by $vocabulary. */
struct peg__dialect {
    peg_dialect id;
    peg__keywords keywords;
    bool asserts_format;   /* by itself; the compile option comes first */
    bool asserts_content;  /* contentEncoding and contentMediaType, in draft-07 */
    bool ref_stands_alone; /* up to draft-07, $ref hides its siblings */
};

/* A standard dialect. */
struct peg__dialect peg__dialect_of(peg_dialect id);
/* The dialect that a $schema URI names, its empty fragment aside; false if none does. */
bool peg__dialect_by_uri(peg_str uri, struct peg__dialect *ret_dialect);
/* Narrows a dialect to what a meta-schema's $vocabulary lists. False if it demands one that
 * nobody here knows; *ret_unknown is then its key. */
bool peg__dialect_narrow(struct peg__dialect *dialect, const peg_json *vocabulary,
                         const peg_json **ret_unknown);

const char *peg__keyword_name(enum peg__keyword keyword);
enum peg__shape peg__keyword_shape(enum peg__keyword keyword, const struct peg__dialect *dialect);

/* One schema object by keyword: the key of each that it has and the dialect knows, else NULL. */
struct peg__subschema {
    const peg_json *key[KW_COUNT];
    peg__keywords present;
};

void peg__subschema_read(const peg_json *object, const struct peg__dialect *dialect,
                         struct peg__subschema *ret_sub);

static inline bool peg__has(const struct peg__subschema *sub, enum peg__keyword keyword)
{
    return (sub->present >> keyword) & 1;
}

/* The value of a keyword that is present. */
static inline const peg_json *peg__value_of(const struct peg__subschema *sub,
                                            enum peg__keyword keyword)
{
    return sub->key[keyword] + 1;
}

/* Keywords that are present and check or apply something, $ref aside. */
peg__keywords peg__active_keywords(const struct peg__subschema *sub);

#endif
