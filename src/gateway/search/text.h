/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_SEARCH_TEXT_H
#define PEG_GATEWAY_SEARCH_TEXT_H

/*
 * Words of texts. A word is a run of letters and digits; what isn't ASCII counts as a letter, but
 * for punctuation. Pieces of a word are the parts of camel case, and numbers: "getHTTPStatus2" has
 * "get", "HTTP", "Status", "2".
 *
 * Folding makes small letters of capital ones, in whatever alphabet has them. It keeps every byte
 * where it is, so that what contains what can be asked of folded texts: the few letters whose
 * small ones have another length stay as they are.
 */

#include "pegboard/common.h"

/* Words of tools are cut here, whole characters: nobody looks for longer ones. */
enum { GW_WORD_BYTES = 64 };

/* fold.c. Room for text.len bytes. */
void gw_fold(peg_str text, char *ret_folded);

/* What is looked for in many short texts: by the rarest of its bytes. Not empty. */
struct gw_needle {
    peg_str text;
    size_t anchor;
};
struct gw_needle gw_needle_of(peg_str folded);
bool gw_needle_is_in(const struct gw_needle *needle, peg_str folded);

/* Takes the next word off *rest; false: there is none. */
bool gw_next_word(peg_str *rest, peg_str *ret_word);

/* Tokens are what is ranked: the pieces of each word, and the word itself if it has several.
 * "sendMail2" is "send", "mail" and "sendmail2": a number that belongs to a name says nothing by
 * itself. Folded, of at most GW_WORD_BYTES; valid until the next one. */
struct gw_tokens {
    peg_str rest; /* the text; the others are 0 at the beginning */
    peg_str word;
    size_t len;
    bool has_pieces;
    char folded[GW_WORD_BYTES];
};
bool gw_next_token(struct gw_tokens *tokens, peg_str *ret_token);

#endif
