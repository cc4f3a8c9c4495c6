/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_JSON_H
#define PEG_JSON_JSON_H

/* The face of json/ inside the library: what the public header does not offer. */

#include "base/buf.h"
#include "base/shared_symbols.h"
#include "pegboard/json.h"

/* What an absent value reads as. */
static inline const peg_json *peg__json_or_null(const peg_json *value)
{
    static const peg_json null_value;

    return value ? value : &null_value;
}

/* The usual limits, and a member that comes twice is refused: for arguments and results, where one
 * reader would take the first and another the last. It costs nothing: the default has to find them,
 * too. */
PEG__SHARED extern const peg_json_options peg__json_refuse_duplicates;
/* Was a text refused for that alone? */
PEG__SHARED bool peg__json_is_duplicate(const peg_error *error);

/* One string as JSON, quoted and escaped; all other control characters as \u00XX. */
void peg__json_write_string(peg_str utf8, struct peg__buf *out);
/* The same for a string of a document, whose padding makes it quicker. */
void peg__json_write_doc_string(const peg_json *string, struct peg__buf *out);
void peg__json_write(const peg_json *value, peg_json_style style, struct peg__buf *out);
void peg__json_canonical(const peg_json *value, struct peg__buf *out);

/* Appends the pointer from root to value, as peg_json_pointer_to() tells it. */
void peg__json_pointer_to(const peg_json *root, const peg_json *value, struct peg__buf *out);
/* Appends "/" and one token, escaped. */
void peg__json_pointer_push(peg_str token, struct peg__buf *out);

/* Gives back the room for values that parsing reserved and did not need: for documents that
 * stay. Its values move. */
void peg__json_doc_trim(peg_json_doc *doc);

/* Valid UTF-8 without surrogates and overlong forms? */
bool peg__utf8_is_valid(peg_str s);
/* Bytes of the character at the start of s, 0 if it is none. Requires s.len > 0. */
size_t peg__utf8_char_len(peg_str s);
/* Characters (code points) of valid UTF-8. */
size_t peg__utf8_length(peg_str s);

#endif
