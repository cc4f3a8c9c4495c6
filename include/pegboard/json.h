/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_JSON_H
#define PEGBOARD_JSON_H

/*
 * JSON: parse, walk, build, compare, write.
 *
 *   peg_json          one value; immutable, borrowed from its document
 *   peg_json_doc      a document: one arena with text and values
 *   peg_json_builder  makes a document value by value
 *
 * A document keeps its values in one array in the order in which they stand in
 * the text: a container comes first, then what it contains. Walking is a scan
 * over memory, skipping a subtree is one addition, and a value's place in the
 * document (its JSON Pointer) can be told from its address.
 *
 * Numbers are exact. An integer that fits 64 bits signed is an integer; every
 * other number is a decimal, held as mantissa and exponent or as its text.
 *
 * NULL stands for an absent value, such as an optional member that a model left out. Every
 * function that takes a value takes NULL and reads it as JSON null. A value of another kind
 * than a function asks for reads as nothing: "", 0, false, no items and no members. So
 *
 *   peg_json_str(peg_json_get(args, "city")).ptr
 *
 * is always a NUL-terminated string, and the peg_json_..._or() functions give another default.
 *
 * Threads: a document and its values may be read from any number of threads.
 */

#include <pegboard/common.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- values --------------------------------------------------------------- */

typedef enum peg_json_kind {
    PEG_JSON_NULL = 0,
    PEG_JSON_BOOL,
    PEG_JSON_INTEGER, /* a whole number that fits int64_t and was written as one */
    PEG_JSON_DECIMAL, /* any other number, whole or not: 1.0, 1e3, 0.1, 2^70 */
    PEG_JSON_STRING,
    PEG_JSON_ARRAY,
    PEG_JSON_OBJECT,
} peg_json_kind;

/*
 * One value, 16 bytes. The layout is public so that walking needs no call;
 * read it through the functions below.
 *
 * Containers hold in `u.extent` how many values the subtree takes, itself
 * included; an object's members are key, value, key, value...; keys are strings.
 * String bytes are valid UTF-8, followed by a NUL that is not part of them and
 * by at least 16 further readable bytes, so that they may be read in words.
 */
typedef struct peg_json {
    uint8_t kind;     /* peg_json_kind */
    uint8_t form;     /* decimals: PEG_JSON_FORM_...; else 0 */
    int16_t exponent; /* decimals of form SCALED */
    uint32_t len; /* strings: bytes; decimals of form TEXT: bytes; containers: items or members */
    union {
        int64_t number;  /* integers; decimals of form SCALED: value = number * 10^exponent */
        uint64_t truth;  /* booleans: 0 or 1 */
        uint64_t extent; /* containers */
        const char *ptr; /* strings; decimals of form TEXT: the JSON text of the number */
    } u;
} peg_json;

enum {
    PEG_JSON_FORM_SCALED = 1, /* number * 10^exponent, both exact */
    PEG_JSON_FORM_TEXT = 2,   /* kept as text: too long, or too large an exponent */
    PEG_JSON_FORM_MINUS0 = 3, /* -0, -0.0, -0e5: scaled, number is 0, equal to 0 */
};

/* PEG_JSON_NULL for NULL: compare the pointer to tell an absent value from null. */
static inline peg_json_kind peg_json_kind_of(const peg_json *value)
{
    return value ? (peg_json_kind)value->kind : PEG_JSON_NULL;
}

static inline bool peg_json_is_number(const peg_json *value)
{
    return value && (value->kind == PEG_JSON_INTEGER || value->kind == PEG_JSON_DECIMAL);
}

/* The bytes of a string, with a NUL behind them; borrowed from the document. "" for anything
 * else. */
static inline peg_str peg_json_str(const peg_json *value)
{
    peg_str s = {"", 0};

    if (value && value->kind == PEG_JSON_STRING) {
        s.ptr = value->u.ptr;
        s.len = value->len;
    }
    return s;
}

/* Only `true` is true. */
static inline bool peg_json_is_true(const peg_json *value)
{
    return value && value->kind == PEG_JSON_BOOL && value->u.truth;
}

/* Items of an array, members of an object; 0 for anything else. */
static inline size_t peg_json_len(const peg_json *value)
{
    return value && value->kind >= PEG_JSON_ARRAY ? value->len : 0;
}

/* How many values the subtree takes in memory, itself included; 0 for NULL. */
static inline size_t peg_json_extent(const peg_json *value)
{
    if (!value)
        return 0;
    return value->kind >= PEG_JSON_ARRAY ? (size_t)value->u.extent : 1;
}

/* The value after this one and all it contains; NULL for NULL. */
static inline const peg_json *peg_json_next(const peg_json *value)
{
    return value ? value + peg_json_extent(value) : value;
}

/* The first value inside of a container of this kind; for anything else peg_json_next(). */
static inline const peg_json *peg_json_first(const peg_json *value, peg_json_kind kind)
{
    return value && value->kind == kind ? value + 1 : peg_json_next(value);
}

/* for each item of an array:  PEG_JSON_EACH_ITEM(array, item) { ... } */
#define PEG_JSON_EACH_ITEM(array, item)                                                            \
    for (const peg_json *item = peg_json_first(array, PEG_JSON_ARRAY),                             \
                        *item##_end_ = peg_json_next(array);                                       \
         item < item##_end_; item = peg_json_next(item))

/* for each member of an object; the value of `key` is key + 1. */
#define PEG_JSON_EACH_MEMBER(object, key)                                                          \
    for (const peg_json *key = peg_json_first(object, PEG_JSON_OBJECT),                            \
                        *key##_end_ = peg_json_next(object);                                       \
         key < key##_end_; key = peg_json_next(key + 1))

/* The name of a kind as JSON Schema calls it: "null", "boolean", "integer" ... */
PEG_API const char *peg_json_kind_name(peg_json_kind kind);

/* The value of a member, or NULL if there is none or `object` is no object. */
PEG_API const peg_json *peg_json_get(const peg_json *object, const char *name);
PEG_API const peg_json *peg_json_get_str(const peg_json *object, peg_str name);

/* The item at an index, or NULL if there is none or `array` is no array. Constant time if no
 * item is a container. */
PEG_API const peg_json *peg_json_at(const peg_json *array, size_t index);

/* The nearest double; infinite if beyond its range. 0 for what is no number. */
PEG_API double peg_json_double(const peg_json *value);

/* True and the value if the number is whole and fits: 3, 3.0 and 30e-1 alike. */
PEG_API bool peg_json_int64(const peg_json *value, int64_t *ret_number);

/* The value, or the fallback if it is absent or of another kind: no string, no boolean, no
 * number, no whole number that fits. A string is borrowed from where it comes. */
PEG_API peg_str peg_json_str_or(const peg_json *value, const char *fallback);
PEG_API bool peg_json_bool_or(const peg_json *value, bool fallback);
PEG_API int64_t peg_json_int64_or(const peg_json *value, int64_t fallback);
PEG_API double peg_json_double_or(const peg_json *value, double fallback);

/* True for 3, 3.0, 1e400; false for 0.5 and for what is not a number. */
PEG_API bool peg_json_is_whole(const peg_json *value);

/* -1, 0 or 1 by exact value. What is no number counts as 0. */
PEG_API int peg_json_compare_numbers(const peg_json *a, const peg_json *b);

/* Equality as JSON Schema defines it: numbers by value, members in any order. */
PEG_API bool peg_json_equal(const peg_json *a, const peg_json *b);

/* Equal values have equal hashes. The seed keeps strangers from choosing them. */
PEG_API uint64_t peg_json_hash(const peg_json *value, uint64_t seed);

/* ---- documents ------------------------------------------------------------ */

typedef struct peg_json_doc peg_json_doc;

typedef enum peg_json_duplicates {
    PEG_JSON_LAST_WINS = 0, /* as JavaScript does; the earlier member is dropped */
    PEG_JSON_FIRST_WINS,
    PEG_JSON_REFUSE, /* E_JSON_DUPLICATE_KEY */
} peg_json_duplicates;

/* Zero means the default, told here in brackets. */
typedef struct peg_json_options {
    size_t size;                /* set by PEG_JSON_OPTIONS_INIT */
    size_t max_bytes;           /* of text [64 MiB]; never more than 2 GiB - 1 */
    unsigned max_depth;         /* of nesting [256]; never more than 4096 */
    unsigned max_number_digits; /* significant digits of one number [1000]; never more */
    unsigned max_exponent;      /* decimal exponent of one number, either sign [10000] */
    peg_json_duplicates duplicates;
} peg_json_options;
#define PEG_JSON_OPTIONS_INIT .size = sizeof(peg_json_options)

/*
 * Parses RFC 8259 text, strictly: no comments, no trailing comma, no BOM, no
 * lone surrogate, UTF-8 only. The text is copied; the document is the caller's.
 * options may be NULL. Errors: PEG_EPARSE (E_JSON_SYNTAX, E_JSON_UTF8,
 * E_JSON_DUPLICATE_KEY, with the pointer of the member) with offset, line and column; PEG_ELIMIT
 * (E_JSON_TOO_LARGE, also for a number; E_JSON_TOO_DEEP); PEG_ENOMEM.
 */
PEG_API PEG_MUST_USE peg_status peg_json_parse(peg_str text, const peg_json_options *options,
                                               peg_json_doc **ret_doc, peg_error *reterr);

/*
 * Parses again into a document made before, using its memory: a loop over many
 * small texts then allocates nothing. Values handed out before are gone, on
 * failure too: the document's root is then null.
 */
PEG_API PEG_MUST_USE peg_status peg_json_reparse(peg_json_doc *doc, peg_str text,
                                                 const peg_json_options *options,
                                                 peg_error *reterr);

PEG_API peg_json_doc *peg_json_doc_free(peg_json_doc *doc);
/* Borrowed from doc; NULL for NULL. */
PEG_API const peg_json *peg_json_root(const peg_json_doc *doc);

/* Bytes of memory that the document holds; 0 for NULL. */
PEG_API size_t peg_json_doc_bytes(const peg_json_doc *doc);

/* ---- building ------------------------------------------------------------- */

/*
 * Values are added in document order; strings and copied values are copied in.
 * The first failure sticks and finish reports it, so adds need no checks:
 *
 *   peg_json_builder *b = peg_json_builder_new();
 *   peg_json_open_object(b);
 *   peg_json_add_key(b, peg_cstr("answer"));
 *   peg_json_add_integer(b, 42);
 *   peg_json_close(b);
 *   status = peg_json_builder_finish(b, &doc, &error);
 *
 * All of them accept NULL for the builder: finish then says out of memory.
 *
 * Errors: PEG_EINVAL (E_JSON_BUILD: the calls make no document, the message says why;
 * E_JSON_UTF8, E_JSON_NUMBER); PEG_EEXISTS (E_JSON_DUPLICATE_KEY); PEG_ELIMIT
 * (E_JSON_TOO_DEEP, E_JSON_TOO_LARGE); PEG_ENOMEM.
 */
typedef struct peg_json_builder peg_json_builder;

PEG_API peg_json_builder *peg_json_builder_new(void);
PEG_API void peg_json_add_null(peg_json_builder *b);
PEG_API void peg_json_add_bool(peg_json_builder *b, bool truth);
PEG_API void peg_json_add_integer(peg_json_builder *b, int64_t number);
/* The shortest decimal that reads back as this double; NaN and infinity fail. */
PEG_API void peg_json_add_double(peg_json_builder *b, double number);
/* The JSON text of a number. */
PEG_API void peg_json_add_number(peg_json_builder *b, peg_str text);
PEG_API void peg_json_add_string(peg_json_builder *b, peg_str utf8);
/* What is added next goes inside, until peg_json_close(). */
PEG_API void peg_json_open_array(peg_json_builder *b);
PEG_API void peg_json_open_object(peg_json_builder *b);
/* Closes the array or object that was opened last. */
PEG_API void peg_json_close(peg_json_builder *b);
/* The name of the next value. A name given twice in one object fails. */
PEG_API void peg_json_add_key(peg_json_builder *b, peg_str name);
/* A copy of a value; null for NULL. */
PEG_API void peg_json_add_copy(peg_json_builder *b, const peg_json *value);
/* Ends building and frees the builder, in either case. */
PEG_API PEG_MUST_USE peg_status peg_json_builder_finish(peg_json_builder *b, peg_json_doc **ret_doc,
                                                        peg_error *reterr);
PEG_API peg_json_builder *peg_json_builder_free(peg_json_builder *b);

/* ---- writing -------------------------------------------------------------- */

typedef enum peg_json_style {
    PEG_JSON_COMPACT = 0, /* no space at all */
    PEG_JSON_PRETTY,      /* two spaces a level, one member or item a line */
} peg_json_style;

/* Writes text that parses back to an equal value. The text is NUL-terminated;
 * free it with peg_free(). ret_len may be NULL. */
PEG_API PEG_MUST_USE peg_status peg_json_write(const peg_json *value, peg_json_style style,
                                               char **ret_text, size_t *ret_len, peg_error *reterr);

/*
 * The canonical form of RFC 8785: members sorted by UTF-16 code units, numbers
 * as ECMAScript prints them. Where a double would lose a whole number, or a
 * number has more than 17 significant digits, its exact digits stay.
 */
PEG_API PEG_MUST_USE peg_status peg_json_canonical(const peg_json *value, char **ret_text,
                                                   size_t *ret_len, peg_error *reterr);

/* Lowercase hex SHA-256 of the canonical form, NUL-terminated. Numbers that differ only beyond
 * what a double holds, such as 0.1 and 0.10000000000000001, have one canonical form. */
PEG_API PEG_MUST_USE peg_status peg_json_digest(const peg_json *value, char ret_hex[65],
                                                peg_error *reterr);

/* ---- finding -------------------------------------------------------------- */

/*
 * RFC 6901. "" is the value itself. PEG_EPARSE (E_JSON_POINTER_SYNTAX) for
 * what is no pointer, PEG_ENOTFOUND (E_JSON_POINTER_MISSING) where it leads
 * nowhere; reterr->where then holds the part that exists.
 */
PEG_API PEG_MUST_USE peg_status peg_json_pointer(const peg_json *value, peg_str pointer,
                                                 const peg_json **ret_value, peg_error *reterr);

/* The pointer that leads from root to a value inside it; free with peg_free().
 * A member's key leads to the member. PEG_EINVAL (E_JSON_POINTER_MISSING) if the value is not
 * inside of root. */
PEG_API PEG_MUST_USE peg_status peg_json_pointer_to(const peg_json *root, const peg_json *value,
                                                    char **ret_pointer, peg_error *reterr);

/*
 * JSONPath, RFC 9535, without function extensions: child, wildcard, index,
 * slice, union, descendant and filters with comparisons, existence, &&, ||, !.
 * A path is owned, immutable once made, usable from any thread.
 */
typedef struct peg_json_path peg_json_path;

PEG_API PEG_MUST_USE peg_status peg_json_path_new(peg_str expression, peg_json_path **ret_path,
                                                  peg_error *reterr);
PEG_API peg_json_path *peg_json_path_free(peg_json_path *path);

typedef struct peg_json_nodes {
    const peg_json **items; /* in the order of RFC 9535; borrowed from the queried document */
    size_t len;
} peg_json_nodes;

/* Finds at most max_nodes (0: 10,000) in at most max_steps (0: 1,000,000) visits;
 * reaching either is PEG_ELIMIT. Free ret_nodes->items with peg_free(). */
PEG_API PEG_MUST_USE peg_status peg_json_path_find(const peg_json_path *path, const peg_json *root,
                                                   size_t max_nodes, size_t max_steps,
                                                   peg_json_nodes *ret_nodes, peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
