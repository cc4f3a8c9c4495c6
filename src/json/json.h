/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_JSON_H
#define PEG_JSON_JSON_H

/* What json/ offers to the other modules beyond the public header. */

#include <stdatomic.h>

#include "base/buf.h"
#include "base/shared_symbols.h"
#include "pegboard/json.h"

/* What an absent value reads as. */
static inline const peg_json *peg__json_or_null(const peg_json *value)
{
    static const peg_json null_value;

    return value ? value : &null_value;
}

/* The default limits, but a duplicate member is an error: for arguments and results, where one
 * reader would take the first and another the last. */
PEG__SHARED extern const peg_json_options peg__json_refuse_duplicates;
/* Is a duplicate member what the error is about? */
PEG__SHARED bool peg__json_is_duplicate(const peg_error *error);

/* One string as JSON, quoted and escaped; all other control characters as \u00XX. */
void peg__json_write_string(peg_str utf8, struct peg__buf *out);
/* The same for a string of a document, whose padding makes it quicker. */
void peg__json_write_doc_string(const peg_json *string, struct peg__buf *out);
void peg__json_write(const peg_json *value, peg_json_style style, struct peg__buf *out);
void peg__json_canonical(const peg_json *value, struct peg__buf *out);

/* Appends the pointer from root to value; see peg_json_pointer_to(). */
void peg__json_pointer_to(const peg_json *root, const peg_json *value, struct peg__buf *out);
/* Appends "/" and one token, escaped. */
void peg__json_pointer_push(peg_str token, struct peg__buf *out);

/* An empty document for peg_json_reparse(): its root is null. NULL when out of memory. */
peg_json_doc *peg__json_doc_new(size_t text_capacity);
/* A copy of a value as a document of its own. PEG_ENOMEM, PEG_ELIMIT. */
PEG__SHARED peg_status peg__json_copy(const peg_json *value, peg_json_doc **ret_doc,
                                      peg_error *reterr);
/* Releases the memory that parsing reserved and did not need. The values move. */
void peg__json_doc_trim(peg_json_doc *doc);

/* ---- writing without a document ------------------------------------------- */

/*
 * Writes JSON text value by value, commas included. The caller balances objects and arrays and
 * names each member once; other errors are in the buffer's status.
 *
 *   struct peg__out out = {.buf = &buf};
 *   peg__out_object(&out);
 *   peg__out_key(&out, "model");
 *   peg__out_cstring(&out, "m");
 *   peg__out_end_object(&out);
 */
struct peg__out {
    struct peg__buf *buf;
    bool needs_comma;
};

void peg__out_object(struct peg__out *out);
void peg__out_end_object(struct peg__out *out);
void peg__out_array(struct peg__out *out);
void peg__out_end_array(struct peg__out *out);
void peg__out_key(struct peg__out *out, const char *name);
void peg__out_key_str(struct peg__out *out, peg_str name);
void peg__out_string(struct peg__out *out, peg_str utf8);
void peg__out_cstring(struct peg__out *out, const char *utf8);
void peg__out_bool(struct peg__out *out, bool truth);
void peg__out_integer(struct peg__out *out, int64_t number);
/* The shortest decimal that reads back; null for what is not finite. */
void peg__out_double(struct peg__out *out, double number);
void peg__out_null(struct peg__out *out);
void peg__out_value(struct peg__out *out, const peg_json *value);
/* JSON text as it is. */
void peg__out_raw(struct peg__out *out, peg_str json);

/* A member in one line. */
static inline void peg__out_member(struct peg__out *out, const char *name, peg_str utf8)
{
    peg__out_key(out, name);
    peg__out_string(out, utf8);
}

static inline void peg__out_cmember(struct peg__out *out, const char *name, const char *utf8)
{
    peg__out_key(out, name);
    peg__out_cstring(out, utf8);
}

/* ---- documents with several owners ---------------------------------------- */

/* Immutable and reference counted; any thread. */
struct peg__shared {
    atomic_uint n_refs;
    atomic_uint depth;      /* of nesting, computed on first use; 0: not yet */
    atomic_bool is_lasting; /* definitions of tools: it is known that none is ephemeral */
    peg_json_doc *doc;
};

/* Takes ownership of the document. NULL when out of memory; the document is then freed. */
struct peg__shared *peg__shared_new(peg_json_doc *doc);
peg_status peg__shared_copy(const peg_json *value, struct peg__shared **ret_shared,
                            peg_error *reterr);
struct peg__shared *peg__shared_ref(struct peg__shared *shared);
struct peg__shared *peg__shared_unref(struct peg__shared *shared);

static inline const peg_json *peg__shared_root(const struct peg__shared *shared)
{
    return shared ? peg_json_root(shared->doc) : NULL;
}

/* ---- sorted members ------------------------------------------------------- */

/* As peg_json_add_copy(), with members sorted by the bytes of their names at every level.
 * PEG_ELIMIT (E_JSON_TOO_DEEP) beyond PEG_LIMIT_JSON_DEPTH, PEG_ENOMEM; the builder keeps other
 * errors. */
peg_status peg__json_add_sorted(peg_json_builder *b, const peg_json *value, peg_error *reterr);

/* -1, 0 or 1 by bytes. */
int peg__json_compare_names(peg_str a, peg_str b);

/* How deep containers nest, the value included; beyond `most` it is most + 1. Requires
 * most <= PEG_LIMIT_JSON_DEPTH. */
unsigned peg__json_depth(const peg_json *value, unsigned most);

/* ---- places in a text ----------------------------------------------------- */

/* The offset of the value that a pointer leads to, for error messages: documents don't keep it. A
 * pointer that leads nowhere gives the last value on its way. The text is one that
 * peg_json_parse(), or peg_yaml_parse() with these options, accepts. 0 when out of memory. */
size_t peg__json_locate(peg_str text, peg_str pointer);
size_t peg__yaml_locate(peg_str text, const peg_json_options *options, peg_str pointer);
/* The offset of the key where the pointer leads to a member. */
size_t peg__yaml_locate_key(peg_str text, const peg_json_options *options, peg_str pointer);

/* The next token of a pointer, as it is written; false at its end. */
bool peg__pointer_next(peg_str *pointer, peg_str *ret_token);
/* Does a token, unescaped, stand for this name? */
bool peg__pointer_is_name(peg_str token, peg_str name);
/* The index that a token stands for, or SIZE_MAX. */
size_t peg__pointer_index(peg_str token);

/* ---- JSON5 ---------------------------------------------------------------- */

/* peg_json_parse() for JSON5 1.0.0: comments, trailing commas, names without quotes, single
 * quotes, strings over several lines, hexadecimal numbers, signs. Numbers stay exact; Infinity and
 * NaN are syntax errors, since no JSON value stands for them. The same errors. */
PEG_MUST_USE peg_status peg__json5_parse(peg_str text, const peg_json_options *options,
                                         peg_json_doc **ret_doc, peg_error *reterr);

#endif
