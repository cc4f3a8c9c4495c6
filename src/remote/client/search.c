/* SPDX-License-Identifier: Apache-2.0 */

/* Searches all registries at once, and puts what they found into one order. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "remote/client/remote.h"

enum { DEFAULT_LIMIT = 100, MAX_LIMIT = 1000 };

/* The answers lie in the arena, and the result points into them. */
struct found {
    peg_search_result result; /* first */
    struct peg__arena arena;
    size_t limit;
    peg_search_hit *items; /* both in the arena */
    peg_registry_failure *failures;
};

peg_search_result *peg_search_result_free(peg_search_result *result)
{
    struct found *found = (struct found *)(void *)result;

    if (found)
        peg__arena_free(&found->arena);
    peg__free(found);
    return NULL;
}

static void add_hit(struct found *found, const struct remote__registry *registry,
                    const char *registry_name, const Pegboard__V1__SearchResponse__Hit *hit)
{
    peg_search_hit *item = &found->items[found->result.len];

    if (!hit->toolset || !remote__registry_admits(registry, peg__str(hit->toolset->name))) {
        found->result.total--;
        return;
    }
    remote__info(registry, hit->toolset, &item->toolset);
    item->toolset.registry = registry_name;
    item->score = isfinite(hit->score) ? hit->score : 0;
    item->tools = (const char *const *)hit->tools;
    item->n_tools = hit->n_tools;
    found->result.len++;
}

/* The name of the registry is copied, as the result may outlive the client. */
static peg_status take_answer(struct found *found, const struct remote__fan *fan, peg_error *reterr)
{
    const Pegboard__V1__SearchResponse *response = fan->message;
    const char *name = peg__arena_copy(&found->arena, peg__str(fan->registry->name));

    if (!name)
        return peg__fail_nomem(reterr);
    if (fan->status) {
        found->failures[found->result.n_failures++] =
            (peg_registry_failure){.registry = name, .error = fan->error};
        return PEG_OK;
    }
    found->result.total += response->total > response->n_hits ? response->total : response->n_hits;
    for (size_t i = 0; i < response->n_hits; i++)
        add_hit(found, fan->registry, name, response->hits[i]);
    return PEG_OK;
}

static bool is_hit_healthy(const peg_search_hit *hit)
{
    return hit->toolset.health == PEG_HEALTH_HEALTHY;
}

/* What each registry found comes in an order that qsort() doesn't keep: so equals are compared as
 * registries do it. */
static int compare_hits(const void *a, const void *b)
{
    const peg_search_hit *x = a;
    const peg_search_hit *y = b;
    int by_name;

    if (x->score > y->score || x->score < y->score)
        return x->score > y->score ? -1 : 1;
    if (is_hit_healthy(x) != is_hit_healthy(y))
        return is_hit_healthy(x) ? -1 : 1;
    by_name = strcmp(x->toolset.registry, y->toolset.registry);
    return by_name ? by_name : strcmp(x->toolset.name, y->toolset.name);
}

static peg_status reserve_results(struct found *found, const struct remote__fan *fans, size_t n,
                                  peg_error *reterr)
{
    size_t n_hits = 0;

    for (size_t i = 0; i < n; i++) {
        const Pegboard__V1__SearchResponse *response = fans[i].message;

        n_hits += fans[i].status ? 0 : response->n_hits;
    }
    found->items = peg__arena_alloc(&found->arena, (n_hits + 1) * sizeof(*found->items));
    found->failures = peg__arena_alloc(&found->arena, n * sizeof(*found->failures));
    return found->items && found->failures ? PEG_OK : peg__fail_nomem(reterr);
}

static peg_status gather(struct found *found, const struct remote__fan *fans, size_t n,
                         peg_error *reterr)
{
    peg_status status = reserve_results(found, fans, n, reterr);

    for (size_t i = 0; i < n && !status; i++)
        status = take_answer(found, &fans[i], reterr);
    if (status)
        return status;
    if (found->result.n_failures == n)
        return remote__pass_error(&found->failures[0].error, reterr);
    qsort(found->items, found->result.len, sizeof(*found->items), compare_hits);
    if (found->result.len > found->limit)
        found->result.len = found->limit;
    found->result.items = found->items;
    found->result.failures = found->failures;
    return PEG_OK;
}

static peg_status ask_all(struct found *found, const struct remote__fan *first, size_t n,
                          peg_ctx *ctx, peg_error *reterr)
{
    PEG_CLEANUP(peg__freep) struct remote__fan *fans = peg__alloc(n * sizeof(*fans));
    peg_status status;

    if (!fans)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < n; i++) {
        fans[i] = *first;
        fans[i].registry += i;
    }
    status = remote__fan_out(fans, n, ctx, &found->arena, reterr);
    return status ? status : gather(found, fans, n, reterr);
}

static peg_status make_request(const peg_search_query *query, Pegboard__V1__SearchRequest *request,
                               peg_error *reterr)
{
    if (!query || !query->words || !*query->words)
        return peg__fail(reterr, PEG_EINVAL, "E_CLIENT",
                         "words is empty: say what is searched for");
    if (query->limit > MAX_LIMIT)
        return peg__fail(reterr, PEG_EINVAL, "E_CLIENT", "limit is more than %d", MAX_LIMIT);
    request->query = peg__unconst(query->words);
    request->tags = peg__unconst(query->tags);
    request->limit = query->limit ? (uint32_t)query->limit : DEFAULT_LIMIT;
    return remote__tags(query->tags, &request->n_tags, reterr);
}

peg_status peg_client_search(peg_client *client, peg_ctx *ctx, const peg_search_query *query,
                             peg_search_result **ret_result, peg_error *reterr)
{
    PEG__READ_OR_RETURN(query, PEG_SEARCH_QUERY_INIT, reterr);
    Pegboard__V1__SearchRequest request = PEGBOARD__V1__SEARCH_REQUEST__INIT;
    struct remote__fan first = {
        .method = &pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_SEARCH],
        .request = &request.base,
        .is_repeatable = true,
    };
    struct found *found;
    size_t begin = 0;
    size_t end = 0;
    peg_status status;

    if ((status = make_request(query, &request, reterr)) ||
        (status = remote__registries(client, query->registry, &begin, &end, reterr)))
        return status;
    found = peg__alloc_zero(1, sizeof(*found));
    if (!found)
        return peg__fail_nomem(reterr);
    found->limit = request.limit;
    first.registry = &client->registries[begin];
    status = ask_all(found, &first, end - begin, ctx, reterr);
    if (status)
        peg_search_result_free(&found->result);
    else
        *ret_result = &found->result;
    return status;
}
