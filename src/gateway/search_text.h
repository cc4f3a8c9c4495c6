/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_SEARCH_TEXT_H
#define PEG_GATEWAY_SEARCH_TEXT_H

/*
 * Words of texts. A word is a run of ASCII letters and digits and of whatever is not ASCII; pieces
 * of a word are what camel case is made of: "getHTTPStatus" has "get", "HTTP", "Status".
 *
 * Folding makes small letters of capital ones, in whatever alphabet has them. It keeps every byte
 * where it is, so that what contains what can be asked of folded texts: the few letters whose
 * small ones have another length stay as they are.
 */

#include "pegboard/common.h"

/* Words of tools are cut here, whole characters: nobody looks for longer ones. */
enum { GW_WORD_BYTES = 64 };

/* search_fold.c. Room for text.len bytes. */
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
/* Takes the next piece off a word. */
bool gw_next_piece(peg_str *word, peg_str *ret_piece);
bool gw_is_word_byte(char c);
/* Cut to GW_WORD_BYTES. */
peg_str gw_cut_word(peg_str word);

/* The stem of a folded word, in letters that may be others than the word's: "cities" and "city"
 * have "city", "searches" and "searching" have "search". Words of more than GW_WORD_BYTES are their
 * own. Returns how many bytes. */
size_t gw_stem(peg_str folded, char ret_stem[GW_WORD_BYTES]);
/* What all words with this stem begin with. */
size_t gw_stem_prefix(peg_str stem);

#endif
