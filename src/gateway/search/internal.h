/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_SEARCH_INTERNAL_H
#define PEG_GATEWAY_SEARCH_INTERNAL_H

#include "gateway/search/search.h"
#include "pegboard/common.h"

/*
 * Words of texts. A word is a run of letters and digits; what isn't ASCII counts as a letter, but
 * for punctuation. Pieces of a word are the parts of camel case, and numbers: "getHTTPStatus2" has
 * "get", "HTTP", "Status", "2".
 *
 * Folding makes small letters of capital ones, in whatever alphabet has them. It keeps every byte
 * where it is, so that what contains what can be asked of folded texts: the few letters whose
 * small ones have another length stay as they are.
 */

/* Words of tools are cut here, at whole characters: queries have no longer ones. */
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

/* Keywords are what is ranked: the pieces of each word, and the word itself if it has several.
 * "sendMail2" is "send", "mail" and "sendmail2": a number that belongs to a name says nothing by
 * itself. Folded, of at most GW_WORD_BYTES; valid until the next one. */
struct gw_keywords {
    peg_str rest; /* the text; the others are 0 at the beginning */
    peg_str word;
    size_t len;
    bool has_pieces;
    char folded[GW_WORD_BYTES];
};
bool gw_next_keyword(struct gw_keywords *keywords, peg_str *ret_keyword);

/*
 * Calls go down this list:
 *
 *   search.c    a query: its words, literal matches, ranking, the tools of each hit
 *   rank.c      the best toolsets, without visiting all of them
 *   query.c     the words of a query and the postings of each
 *   literal.c   toolsets that contain the whole query
 *   index.c     segments that together are a catalog, and how the next catalog's are derived
 *   segment.c   the words of some toolsets, with their weights: sorted, with postings
 *   language.c  stems and stop words
 *   text.c      words of texts
 */

/* ---- language.c ---- */

/* One thread at a time. */
struct gw_stemmer;
struct gw_stemmer *gw_stemmer_new(struct gw_language language);
struct gw_stemmer *gw_stemmer_free(struct gw_stemmer *stemmer);
/* The stem of a folded word of at most GW_WORD_BYTES, until the next call; empty for stop words;
 * ptr NULL: no memory. */
peg_str gw_stemmer_stem(struct gw_stemmer *stemmer, peg_str folded);

/* ---- segment.c ---- */

/* Sorted words, each with the places where it stands, ascending. Owned. */
struct gw_terms {
    uint32_t n;
    char *text;        /* all words, each ended by NUL */
    uint32_t *text_at; /* where each begins, and one behind the last */
    uint32_t *at;      /* first posting of each, and one behind the last */
    uint32_t *places;
    uint8_t *weights; /* of each place, 1 to 255 */
};

void gw_terms_free(struct gw_terms *terms);
size_t gw_terms_bytes(const struct gw_terms *terms);
/* The first word that isn't less. */
uint32_t gw_terms_find(const struct gw_terms *terms, peg_str word);

static inline peg_str gw_terms_word(const struct gw_terms *terms, uint32_t term)
{
    const uint32_t at = terms->text_at[term];

    return (peg_str){terms->text + at, terms->text_at[term + 1] - at - 1};
}

/* Where a word stands in a toolset's own text. */
enum { IN_NAME = 1, IN_TAG = 2, IN_DESCRIPTION = 4 };

/* Some toolsets and their words. Shared immutable. Texts are numbered: that of the first toolset,
 * those of its tools, that of the second toolset, ... */
struct gw_segment {
    atomic_uint n_refs;
    struct gw_toolset **docs; /* by name; references */
    uint32_t n_docs;
    uint32_t *first_text; /* of each toolset, and one behind the last */
    uint32_t *text_doc;
    uint32_t max_texts;    /* of one toolset */
    struct gw_terms stems; /* places: texts; weights: how much the stem says about the text */
    uint16_t *most;        /* of each stem: the most that its weights add to one toolset */
    struct gw_terms words; /* whole folded words; places: toolsets; weights: IN_... */
    /* Name, description and tags of each toolset, folded, each with a NUL: one after the other, so
     * that reading many of them is fast. */
    char *main_text;
    uint32_t *main_text_at; /* where each begins, and one behind the last */
};

/* `docs` by name; takes references. NULL: no memory. Any thread. */
struct gw_segment *gw_segment_new(struct gw_toolset *const *docs, uint32_t n,
                                  struct gw_language language);
struct gw_segment *gw_segment_ref(struct gw_segment *segment);
size_t gw_segment_bytes(const struct gw_segment *segment);

/* ---- index.c ---- */

enum { GW_SEGMENTS = 64 };

/* One segment of an index, and which of its toolsets the catalog has no more. */
struct gw_part {
    struct gw_segment *segment;
    uint64_t *dead; /* NULL: none is */
    uint32_t n_dead;
    uint32_t n_dead_texts;
};

struct gw_search_index {
    atomic_uint n_refs;
    struct gw_language language;
    unsigned n_parts;
    struct gw_part parts[GW_SEGMENTS];
};

static inline bool gw_part_lives(const struct gw_part *part, uint32_t doc)
{
    return !part->dead || !(part->dead[doc / 64] >> (doc % 64) & 1);
}

/* ---- literal.c ---- */

struct gw_literal {
    uint32_t doc;
    uint8_t where; /* IN_... */
};

/* The toolsets of a part that contain the query, ascending. Both lie in the arena. */
struct gw_literals {
    struct gw_literal *items;
    uint32_t n;
};

/* `folded` is the query. False: no memory. */
bool gw_literals_find(const struct gw_part *part, peg_str folded, struct peg__arena *arena,
                      struct gw_literals *ret_literals);

/* ---- query.c ---- */

/* The postings of a query's word in one part. */
struct gw_postings {
    const uint32_t *texts;
    const uint8_t *weights;
    uint32_t n;
    uint32_t most; /* see gw_segment */
};

struct gw_query_word {
    peg_str stem;
    uint32_t weight; /* rarity in GW_RARITY_UNITs; 0: no toolset has it */
    uint32_t n_texts;
    struct gw_postings *parts; /* one for each part of the index */
};

/* A weight of 1.0, and a rarity of 1.0: scores are integers, so that their order never depends on
 * the order in which they are added up. */
enum { GW_WEIGHT_UNIT = 255, GW_RARITY_UNIT = 1024 };

/* The words of a query, rarest first. Lies in the arena. */
struct gw_query {
    struct gw_query_word *words;
    unsigned n;
    uint32_t rarest; /* weight of a word that a single text has */
};

bool gw_query_read(const struct gw_search_index *index, peg_str text, struct peg__arena *arena,
                   struct gw_query *ret_query);
/* How much a word counts that so many of so many texts have, in GW_RARITY_UNITs. */
uint32_t gw_rarity(uint64_t n_texts, uint64_t n_found);

/* ---- rank.c ---- */

struct gw_ranked {
    const struct gw_toolset *toolset;
    uint32_t score;
    uint32_t doc;
    unsigned part;
    bool is_healthy;
};

/* Best first. Lies in the arena. */
struct gw_ranking {
    struct gw_ranked *items;
    size_t n;
    size_t total;
};

/* The first toolsets by words plus `bonus`, which a literal match adds. */
struct gw_rank_input {
    const struct gw_search_index *index;
    const struct gw_search_query *asked;
    const struct gw_query *query;
    const struct gw_literals *literals; /* one for each part */
    uint32_t (*bonus)(const struct gw_rank_input *input, const struct gw_segment *segment,
                      struct gw_literal literal);
    peg_str folded; /* the query */
};

bool gw_rank(const struct gw_rank_input *input, struct peg__arena *arena,
             struct gw_ranking *ret_ranking);

/* The first posting from `at` on whose text isn't less. */
uint32_t gw_postings_seek(const struct gw_postings *postings, uint32_t at, uint32_t text);

#endif
