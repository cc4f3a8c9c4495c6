/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/search.h"

#include <ctype.h>

#include "base/error.h"
#include "base/str.h"
#include "gateway/info.h"

static bool contains(peg_str text, peg_str query)
{
    for (size_t i = 0; i + query.len <= text.len; i++) {
        size_t n = 0;

        while (n < query.len &&
               tolower((unsigned char)text.ptr[i + n]) == tolower((unsigned char)query.ptr[n]))
            n++;
        if (n == query.len)
            return true;
    }
    return false;
}

static double score_of(const struct gw_toolset *toolset, peg_str query)
{
    double score = 0;

    if (contains(toolset->name, query))
        score += 8;
    for (size_t i = 0; i < toolset->n_tags; i++)
        score += contains(toolset->tags[i], query) ? 5 : 0;
    if (contains(toolset->description, query))
        score += 2;
    return score;
}

peg_status gw_search(const struct gw_snapshot *snapshot, const struct gw_search_query *query,
                     struct peg__arena *arena, struct gw_search_result *ret_result,
                     peg_error *reterr)
{
    struct gw_search_hit *hits = peg__arena_alloc_zero(arena, (snapshot->n + 1) * sizeof(*hits));

    if (!hits)
        return peg__fail_nomem(reterr);
    *ret_result = (struct gw_search_result){.hits = hits};
    for (size_t i = 0; i < snapshot->n; i++) {
        const struct gw_toolset *toolset = snapshot->toolsets[i];
        const double score = score_of(toolset, query->text);

        if (score <= 0 || !gw_info_has_tags(toolset, query->tags, query->n_tags))
            continue;
        ret_result->total++;
        if (ret_result->n < query->limit)
            hits[ret_result->n++] = (struct gw_search_hit){.toolset = toolset, .score = score};
    }
    return PEG_OK;
}
