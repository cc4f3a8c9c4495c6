/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_SEARCH_H
#define PEG_GATEWAY_SEARCH_H

/*
 * Toolsets by words. Found is
 *
 *   - every toolset whose name, description or one of whose tags contains the whole query, whatever
 *     its case;
 *   - every toolset with a word that a word of the query is, begins (from two letters on), or
 * shares its stem with: in its name, its tags, the names, tags and descriptions of its tools, its
 *     description, and the names of its tools' arguments. That order is the order of weights.
 *
 * Words are runs of letters and digits, split where a small letter is followed by a capital one.
 * Words that few toolsets have count more. Equal scores stand by name, so the same catalog gives
 * the same answer whatever has happened to it before.
 *
 * An index is immutable and belongs to a snapshot; see search_index.c for how the next one is made
 * from it.
 */

#include "base/arena.h"
#include "gateway/catalog.h"

enum { GW_SEARCH_TOOLS = 8 };

struct gw_search_query {
    peg_str text; /* UTF-8, 1 to PEG_LIMIT_GATEWAY_QUERY characters */
    char *const *tags;
    size_t n_tags; /* all of them */
    size_t limit;
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
    size_t total; /* also those beyond the limit */
};

/* Any thread. PEG_ENOMEM. */
peg_status gw_search(const struct gw_snapshot *snapshot, const struct gw_search_query *query,
                     struct peg__arena *arena, struct gw_search_result *ret_result,
                     peg_error *reterr);

#endif
