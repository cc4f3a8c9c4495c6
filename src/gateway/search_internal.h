/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_SEARCH_INTERNAL_H
#define PEG_GATEWAY_SEARCH_INTERNAL_H

/*
 * search_text.c     words of texts
 * search_segment.c  the words of some toolsets, sorted, with where they stand
 * search_index.c    segments that together are a catalog, and how the next catalog's come of them
 * search_match.c    which toolsets a query matches
 * search.c          the best of them
 */

#include "gateway/search.h"
#include "gateway/search_text.h"

/* Where a word stands in a toolset. The last three: as a whole word, not only as a piece of one. */
enum {
    IN_NAME = 1,
    IN_TAG = 2,
    IN_DESCRIPTION = 4,
    WHOLE_IN_NAME = 8,
    WHOLE_IN_TAG = 16,
    WHOLE_IN_DESCRIPTION = 32,
    WHOLE_SHIFT = 3,
    MAIN_BITS = 8, /* of a posting, below the number of the toolset */
};

/* Where it stands in a tool. */
enum {
    IN_TOOL_NAME = 1,
    IN_TOOL_TAG = 2,
    IN_TOOL_DESCRIPTION = 4,
    IN_ARGUMENT = 8,
    TOOL_BITS = 4, /* of a posting, below the number of the tool */
};

/* Some toolsets and their words. Immutable, reference counted. */
struct gw_segment {
    atomic_uint n_refs;
    struct gw_toolset **docs; /* by name; references */
    uint32_t n_docs;
    uint32_t *first_tool; /* number of the first tool of each toolset, and one behind the last */
    uint32_t *tool_doc;   /* toolset of each tool */
    /* Name, description and tags of each toolset, folded, each with a NUL: side by side, because
     * what is looked for in all of them would otherwise be fetched from everywhere. */
    char *main_text;
    uint32_t *main_text_at; /* where each begins, and one behind the last */
    uint32_t n_terms;
    char *text;        /* all words, sorted, each ended by a NUL */
    uint32_t *text_at; /* where each begins, and one behind the last */
    uint32_t *main_at; /* its first posting in mains, and one behind the last */
    uint32_t *tool_at;
    uint32_t *mains; /* doc << MAIN_BITS | where */
    uint32_t *tools; /* tool << TOOL_BITS | where */
};

/* `docs` by name; takes references. NULL: no memory. Any thread. */
struct gw_segment *gw_segment_new(struct gw_toolset *const *docs, uint32_t n);
struct gw_segment *gw_segment_ref(struct gw_segment *segment);
struct gw_segment *gw_segment_unref(struct gw_segment *segment);
size_t gw_segment_bytes(const struct gw_segment *segment);

static inline peg_str gw_segment_term(const struct gw_segment *segment, uint32_t term)
{
    const uint32_t at = segment->text_at[term];

    return (peg_str){segment->text + at, segment->text_at[term + 1] - at - 1};
}
/* The first term that is not less than the word. */
uint32_t gw_segment_find(const struct gw_segment *segment, peg_str word);

enum { GW_SEGMENTS = 64 };

/* One segment of an index, and which of its toolsets are none of the catalog's any more. */
struct gw_part {
    struct gw_segment *segment;
    uint64_t *dead; /* NULL: none is */
    uint32_t n_dead;
};

struct gw_search_index {
    atomic_uint n_refs;
    unsigned n_parts;
    struct gw_part parts[GW_SEGMENTS];
};

struct gw_search_index *gw_search_index_ref(struct gw_search_index *index);
struct gw_search_index *gw_search_index_unref(struct gw_search_index *index);
size_t gw_search_index_bytes(const struct gw_search_index *index);
/* The index of the toolsets `now`, from that of the toolsets `before` (by name, both); NULL: there
 * was none. Parts before `kept` are not put together with others. NULL: no memory. */
struct gw_toolsets {
    struct gw_toolset *const *list;
    size_t n;
};
struct gw_search_index *gw_search_index_next(const struct gw_search_index *index, unsigned kept,
                                             struct gw_toolsets before, struct gw_toolsets now);

/* Putting parts together takes long where they are large: workers do it. Is it worth while? Then
 * parts [*ret_first, index->n_parts) are to become one. */
bool gw_search_index_wants_merge(const struct gw_search_index *index, unsigned *ret_first);
/* On a worker: those toolsets of the parts that live. */
struct gw_segment *gw_search_index_merge(const struct gw_search_index *index, unsigned first,
                                         unsigned end);
/* The same index with `merged`, which takes the place of parts [first, end). */
struct gw_search_index *gw_search_index_replace(const struct gw_search_index *index, unsigned first,
                                                unsigned end, struct gw_segment *merged,
                                                struct gw_toolsets now);

static inline bool gw_part_lives(const struct gw_part *part, uint32_t doc)
{
    return !part->dead || !(part->dead[doc / 64] >> (doc % 64) & 1);
}

/* ---- search_match.c ---- */

enum {
    GW_QUERY_WORDS = 32
}; /* those that come after are looked for together with all others only */

/* A word of a query. */
struct gw_query_word {
    peg_str word; /* folded */
    char stem[GW_WORD_BYTES];
    size_t stem_len;
    double rarity; /* how much it counts */
};

/* What a query has found so far, by number of toolset: those of all parts, one part after the
 * other. */
struct gw_match {
    const struct gw_search_index *index;
    uint32_t base[GW_SEGMENTS + 1]; /* number of each part's first toolset */
    peg_str query;                  /* folded, all of it */
    struct gw_query_word words[GW_QUERY_WORDS];
    unsigned n_words;
    double *score; /* sum over words */
    float *main;   /* of one word */
    float *tool;
    uint8_t *n_matched; /* words */
    uint8_t *whole;     /* IN_NAME, IN_TAG, IN_DESCRIPTION: it contains the whole query there */
    void *memory;
};

/* The words of a query. `folded` has room for it. */
void gw_match_read_query(struct gw_match *match, peg_str text, char *folded);
/* False: no memory. `n_living` is the number of toolsets of the catalog. */
bool gw_match_run(struct gw_match *match, size_t n_living);
void gw_match_free(struct gw_match *match);
/* Calls fn for each tool that a word stands in. */
typedef void (*gw_tool_match_fn)(void *user, uint32_t doc, uint32_t tool, float value);
void gw_match_each_tool(const struct gw_match *match, const struct gw_query_word *word,
                        gw_tool_match_fn fn, void *user);
/* How much a word counts that so many of so many toolsets have. */
double gw_rarity(size_t n_living, size_t n_found);

#endif
