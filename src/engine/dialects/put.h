/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_DIALECTS_PUT_H
#define PEG_ENGINE_DIALECTS_PUT_H

/*
 * Writes JSON as json/json.h does, quickly: where the buffer has capacity, which it nearly always
 * has, a piece of text is one copy of a fixed size without a call. What is beyond its end is
 * overwritten by the next piece. Where it has none, json/json.h does it, and its limits hold.
 */

#include <string.h>

#include "json/json.h"

/* ---- keywords --------------------------------------------------------------------------- */

/* Keywords of JSON Schema as far as vendors differ about them; anything else is unknown. */

/* By length, so that a lookup compares a few of them only. */
#define PEG__KEYWORDS(X)                                                                           \
    X(IF, "if")                                                                                    \
    X(NOT, "not")                                                                                  \
    X(ID, "$id")                                                                                   \
    X(TYPE, "type")                                                                                \
    X(ENUM, "enum")                                                                                \
    X(REF, "$ref")                                                                                 \
    X(THEN, "then")                                                                                \
    X(ELSE, "else")                                                                                \
    X(ITEMS, "items")                                                                              \
    X(TITLE, "title")                                                                              \
    X(CONST, "const")                                                                              \
    X(ANY_OF, "anyOf")                                                                             \
    X(ONE_OF, "oneOf")                                                                             \
    X(ALL_OF, "allOf")                                                                             \
    X(DEFS, "$defs")                                                                               \
    X(FORMAT, "format")                                                                            \
    X(MINIMUM, "minimum")                                                                          \
    X(MAXIMUM, "maximum")                                                                          \
    X(PATTERN, "pattern")                                                                          \
    X(DEFAULT, "default")                                                                          \
    X(SCHEMA, "$schema")                                                                           \
    X(ANCHOR, "$anchor")                                                                           \
    X(REQUIRED, "required")                                                                        \
    X(MIN_ITEMS, "minItems")                                                                       \
    X(MAX_ITEMS, "maxItems")                                                                       \
    X(EXAMPLES, "examples")                                                                        \
    X(NULLABLE, "nullable")                                                                        \
    X(COMMENT, "$comment")                                                                         \
    X(CONTAINS, "contains")                                                                        \
    X(READ_ONLY, "readOnly")                                                                       \
    X(MIN_LENGTH, "minLength")                                                                     \
    X(MAX_LENGTH, "maxLength")                                                                     \
    X(WRITE_ONLY, "writeOnly")                                                                     \
    X(PROPERTIES, "properties")                                                                    \
    X(MULTIPLE_OF, "multipleOf")                                                                   \
    X(DEPRECATED, "deprecated")                                                                    \
    X(DESCRIPTION, "description")                                                                  \
    X(DEFINITIONS, "definitions")                                                                  \
    X(PREFIX_ITEMS, "prefixItems")                                                                 \
    X(UNIQUE_ITEMS, "uniqueItems")                                                                 \
    X(MIN_CONTAINS, "minContains")                                                                 \
    X(MAX_CONTAINS, "maxContains")                                                                 \
    X(DEPENDENCIES, "dependencies")                                                                \
    X(MIN_PROPERTIES, "minProperties")                                                             \
    X(MAX_PROPERTIES, "maxProperties")                                                             \
    X(PROPERTY_NAMES, "propertyNames")                                                             \
    X(CONTENT_SCHEMA, "contentSchema")                                                             \
    X(ADDITIONAL_ITEMS, "additionalItems")                                                         \
    X(CONTENT_ENCODING, "contentEncoding")                                                         \
    X(EXCLUSIVE_MINIMUM, "exclusiveMinimum")                                                       \
    X(EXCLUSIVE_MAXIMUM, "exclusiveMaximum")                                                       \
    X(CONTENT_MEDIA_TYPE, "contentMediaType")                                                      \
    X(DEPENDENT_SCHEMAS, "dependentSchemas")                                                       \
    X(UNEVALUATED_ITEMS, "unevaluatedItems")                                                       \
    X(PROPERTY_ORDERING, "propertyOrdering")                                                       \
    X(DEPENDENT_REQUIRED, "dependentRequired")                                                     \
    X(PATTERN_PROPERTIES, "patternProperties")                                                     \
    X(ADDITIONAL_PROPERTIES, "additionalProperties")                                               \
    X(UNEVALUATED_PROPERTIES, "unevaluatedProperties")

enum peg__kw {
#define X(name, text) PEG__KW_##name,
    PEG__KEYWORDS(X)
#undef X
        PEG__KW_N, /* at most 64: sets of them are bits */
    PEG__KW_UNKNOWN = PEG__KW_N,
};

#define PEG__KW_BIT(name) (UINT64_C(1) << PEG__KW_##name)

/* Of a member of a document, whose padding is read. */
enum peg__kw peg__kw_find(const peg_json *key);

/* JSON text in a field of a fixed size, with zeros behind it. */
struct peg__kw_text {
    char bytes[31];
    uint8_t len;
};

#define PEG__KW_TEXT(literal)                                                                      \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

/* As each is written before its value: "minItems": with quotes and colon. */
extern const struct peg__kw_text peg__kw_texts[PEG__KW_N];
/* As each is called; the last one is empty. */
extern const struct peg__kw_text peg__kw_names[PEG__KW_N + 1];

static inline peg_str peg__kw_name(enum peg__kw keyword)
{
    return (peg_str){peg__kw_names[keyword].bytes, peg__kw_names[keyword].len};
}

/* What is in the value of a keyword. */
enum peg__kw_shape {
    PEG__KW_PLAIN,   /* no schema */
    PEG__KW_ONE,     /* a schema; `items` may be an array of them, `dependencies` is plain to us */
    PEG__KW_LIST,    /* an array of schemas */
    PEG__KW_MEMBERS, /* an object of schemas: its names are no keywords */
};

enum peg__kw_shape peg__kw_shape_of(enum peg__kw keyword);

/* ---- text ------------------------------------------------------------------------------- */

/* A literal and its length. */
#define PEG__LIT(literal) (literal), sizeof(literal) - 1

/* Is there capacity for n bytes, a comma before and a NUL behind them? */
static inline bool peg__put_fits(const struct peg__buf *buf, size_t n)
{
    const size_t end = buf->len + n + 2;

    return end <= buf->capacity && end <= buf->max && !buf->status;
}

/* Where the next value starts, behind the comma if one is needed. Requires capacity. */
static inline char *peg__put_begin(const struct peg__out *out)
{
    char *p = out->buf->ptr + out->buf->len;

    *p = ',';
    return p + out->needs_comma;
}

static inline void peg__put_end(struct peg__out *out, char *end, bool needs_comma)
{
    *end = '\0';
    out->buf->len = (size_t)(end - out->buf->ptr);
    out->needs_comma = needs_comma;
}

/* JSON text as it is, as peg__out_raw() writes it. */
static inline void peg__put(struct peg__out *out, const char *text, size_t n)
{
    char *p;

    if (!peg__put_fits(out->buf, n)) {
        peg__out_raw(out, (peg_str){text, n});
        return;
    }
    p = peg__put_begin(out);
    memcpy(p, text, n);
    peg__put_end(out, p + n, true);
}

/* The same of a text in a field of a fixed size. */
static inline void peg__put_text(struct peg__out *out, const struct peg__kw_text *text)
{
    char *p;

    if (!peg__put_fits(out->buf, sizeof(text->bytes))) {
        peg__out_raw(out, (peg_str){text->bytes, text->len});
        return;
    }
    p = peg__put_begin(out);
    memcpy(p, text->bytes, sizeof(text->bytes));
    peg__put_end(out, p + text->len, true);
}

/* "keyword": */
static inline void peg__put_kw(struct peg__out *out, enum peg__kw keyword)
{
    peg__put_text(out, &peg__kw_texts[keyword]);
    out->needs_comma = false;
}

/* A literal that ends in a colon, or opens what comes next. */
static inline void peg__put_before(struct peg__out *out, const char *literal)
{
    peg__put(out, literal, strlen(literal));
    out->needs_comma = false;
}

static inline void peg__put_open(struct peg__out *out, const char *bracket)
{
    peg__put(out, bracket, 1);
    out->needs_comma = false;
}

/* No comma comes before it. */
static inline void peg__put_close(struct peg__out *out, const char *bracket)
{
    char *p;

    if (!peg__put_fits(out->buf, 1)) {
        out->needs_comma = false;
        peg__out_raw(out, (peg_str){bracket, 1});
        return;
    }
    p = out->buf->ptr + out->buf->len;
    *p++ = *bracket;
    peg__put_end(out, p, true);
}

/* The name of a member, as the document has it. */
void peg__put_key(struct peg__out *out, const peg_json *key);
/* A string of a document. */
void peg__put_string(struct peg__out *out, const peg_json *string);
/* A value of a document. */
void peg__put_value(struct peg__out *out, const peg_json *value);

#endif
