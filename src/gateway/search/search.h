/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_SEARCH_SEARCH_H
#define PEG_GATEWAY_SEARCH_SEARCH_H

/*
 * Finds toolsets by words. The result has
 *
 *   - every toolset whose name, description or one of whose tags contains the whole query, in any
 *     case;
 *   - every toolset that shares a word with the query: in its name, tags and description, and in
 *     the names, tags, descriptions and arguments of its tools.
 *
 * Words are compared by their stems, and common words ("the", "what") don't count. A word of the
 * query that no toolset has finds words that begin with it, or else words one edit away.
 *
 * Tools are ranked by BM25F, toolsets by their best tool plus their own text. Equal scores: healthy
 * toolsets first, then by name. The same catalog gives the same answer, whatever happened to it
 * before. docs/decisions/0044-search-ranking.md has the measurements.
 *
 * An index is immutable and belongs to a snapshot; index.c derives the next one from it.
 */

#include "base/arena.h"
#include "gateway/catalog/catalog.h"

enum { GW_SEARCH_TOOLS = 8 };

struct gw_search_query {
    peg_str text; /* UTF-8, 1 to PEG_LIMIT_GATEWAY_QUERY characters */
    char *const *tags;
    size_t n_tags; /* all of them */
    size_t limit;
    /* Orders equal scores; NULL: all toolsets are alike. */
    bool (*is_healthy)(void *user, peg_str toolset);
    void *user;
};

struct gw_search_hit {
    const struct gw_toolset *toolset;
    double score;
    const struct gw_tool *tools[GW_SEARCH_TOOLS]; /* those that matched, best first */
    unsigned n_tools;
};

/* Lies in the arena. */
struct gw_search_result {
    struct gw_search_hit *hits; /* best first */
    size_t n;
    size_t total; /* also those beyond the limit; above PEG_LIMIT_GATEWAY_PAGE a lower bound */
};

/* Any thread. PEG_ENOMEM. */
peg_status gw_search(const struct gw_snapshot *snapshot, const struct gw_search_query *query,
                     struct peg__arena *arena, struct gw_search_result *ret_result,
                     peg_error *reterr);

/* ---- languages ---- */

/* "none", or a name that libstemmer lists. False: there is none of that name. */
bool gw_language_find(const char *name, struct gw_language *ret_language);
/* The names above, separated by ", ". */
void gw_language_names(char *ret_text, size_t size);

/* ---- indexes: shared immutable ---- */

struct gw_search_index;
struct gw_segment;

struct gw_toolsets {
    struct gw_toolset *const *list; /* by name */
    size_t n;
};

/* An index without toolsets. NULL: no memory. */
struct gw_search_index *gw_search_index_new(struct gw_language language);
struct gw_search_index *gw_search_index_ref(struct gw_search_index *index);
struct gw_search_index *gw_search_index_unref(struct gw_search_index *index);
size_t gw_search_index_bytes(const struct gw_search_index *index);
unsigned gw_search_index_n_parts(const struct gw_search_index *index);
/* The index of the toolsets `now`, derived from that of the toolsets `before`. Parts before `kept`
 * are not merged with others. NULL: no memory. */
struct gw_search_index *gw_search_index_next(const struct gw_search_index *index, unsigned kept,
                                             struct gw_toolsets before, struct gw_toolsets now);

/* Workers merge parts, as large ones take long. True: merge parts [*ret_first, n_parts). */
bool gw_search_index_wants_merge(const struct gw_search_index *index, unsigned *ret_first);
/* On a worker: the living toolsets of the parts. NULL: no memory. */
struct gw_segment *gw_search_index_merge(const struct gw_search_index *index, unsigned first,
                                         unsigned end);
struct gw_segment *gw_segment_unref(struct gw_segment *segment);
/* Are parts [first, end) of both indexes the same? */
bool gw_search_index_shares(const struct gw_search_index *index,
                            const struct gw_search_index *other, unsigned first, unsigned end);
/* The same index with `merged` in place of parts [first, end). */
struct gw_search_index *gw_search_index_replace(const struct gw_search_index *index, unsigned first,
                                                unsigned end, struct gw_segment *merged,
                                                struct gw_toolsets now);

#endif
