/* SPDX-License-Identifier: Apache-2.0 */

/* Lists of toolsets, over all pages and registries. Each round asks every registry that has more
 * for its next page. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "remote/client/remote.h"

enum { PAGE_SIZE = 1000 };

/* The pages lie in the arena, and the list points into them. */
struct list {
    peg_toolset_list list; /* first */
    struct peg__arena arena;
    peg_toolset_info *items;
    size_t capacity;
    peg_registry_failure *failures; /* in the arena; one of each registry fits */
};

struct page {
    Pegboard__V1__ListToolsetsRequest request;
    bool is_last;
};

struct listing {
    peg_client *client;
    peg_ctx *ctx;
    struct list *list;
    size_t n; /* registries */
    struct page *pages;
    struct remote__fan *fans;
    size_t n_seen; /* toolsets, also those that are excluded */
};

peg_toolset_list *peg_toolset_list_free(peg_toolset_list *list)
{
    struct list *all = (struct list *)(void *)list;

    if (all) {
        peg__arena_free(&all->arena);
        peg__free(all->items);
    }
    peg__free(all);
    return NULL;
}

/* It may outlive the client. */
static peg_status copy_registry_name(struct list *list, const struct remote__registry *registry,
                                     const char **ret_name, peg_error *reterr)
{
    *ret_name = peg__arena_copy(&list->arena, peg__str(registry->name));
    return *ret_name ? PEG_OK : peg__fail_nomem(reterr);
}

static peg_status count_toolsets(struct listing *l, size_t n, peg_error *reterr)
{
    l->n_seen += n;
    if (l->n_seen > PEG_LIMIT_REMOTE_REPORTED)
        return peg__fail(
            reterr, PEG_ELIMIT, "E_CLIENT",
            "there are more than %d toolsets: list some of them, by tags or of one registry",
            PEG_LIMIT_REMOTE_REPORTED);
    return PEG_OK;
}

static peg_status add_item(struct list *list, const peg_toolset_info *info, peg_error *reterr)
{
    if (!PEG__RESERVE(list->items, list->list.len + 1, list->capacity))
        return peg__fail_nomem(reterr);
    list->items[list->list.len++] = *info;
    return PEG_OK;
}

static peg_status add_page(struct listing *l, size_t i, peg_error *reterr)
{
    const struct remote__registry *registry = l->fans[i].registry;
    const Pegboard__V1__ListToolsetsResponse *page = l->fans[i].message;
    peg_toolset_info info;
    const char *name;
    peg_status status = copy_registry_name(l->list, registry, &name, reterr);

    if (!status)
        status = count_toolsets(l, page->n_toolsets, reterr);
    for (size_t k = 0; k < page->n_toolsets && !status; k++) {
        remote__info(registry, page->toolsets[k], &info);
        info.registry = name;
        if (remote__registry_admits(registry, peg__str(info.name)))
            status = add_item(l->list, &info, reterr);
    }
    /* A page with nothing on it is no reason to ask for another. */
    l->pages[i].is_last = !*page->next_page_token || page->n_toolsets == 0;
    l->pages[i].request.page_token = page->next_page_token;
    return status;
}

static peg_status add_failure(struct listing *l, size_t i, peg_error *reterr)
{
    peg_registry_failure *failure = &l->list->failures[l->list->list.n_failures];

    l->pages[i].is_last = true;
    failure->error = l->fans[i].error;
    l->list->list.n_failures++;
    return copy_registry_name(l->list, l->fans[i].registry, &failure->registry, reterr);
}

/* Those that are through stand behind the others. */
static size_t gather_open(struct listing *l, size_t n)
{
    size_t n_open = 0;

    for (size_t i = 0; i < n; i++) {
        if (l->pages[i].is_last)
            continue;
        l->pages[n_open] = l->pages[i];
        l->fans[n_open] = (struct remote__fan){
            .registry = l->fans[i].registry,
            .method = &pegboard_v1_registry_methods[PEGBOARD_V1_REGISTRY_LIST_TOOLSETS],
            .request = &l->pages[n_open].request.base,
            .is_repeatable = true,
        };
        n_open++;
    }
    return n_open;
}

static peg_status read_pages(struct listing *l, peg_error *reterr)
{
    size_t n = l->n;
    peg_status status = PEG_OK;

    while (!status && (n = gather_open(l, n)) > 0) {
        status = remote__fan_out(l->fans, n, l->ctx, &l->list->arena, reterr);
        for (size_t i = 0; i < n && !status; i++)
            status = l->fans[i].status ? add_failure(l, i, reterr) : add_page(l, i, reterr);
    }
    return status;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const peg_toolset_info *)a)->name, ((const peg_toolset_info *)b)->name);
}

/* Rounds mix the registries: put each one's together, in the order of the options. */
static peg_status sort_list(const struct listing *l, size_t first, peg_error *reterr)
{
    struct list *list = l->list;
    peg_toolset_info *sorted = peg__alloc((list->list.len + 1) * sizeof(*sorted));
    size_t n = 0;

    if (!sorted)
        return peg__fail_nomem(reterr);
    for (size_t r = first; r < first + l->n; r++) {
        const size_t start = n;

        for (size_t i = 0; i < list->list.len; i++) {
            if (strcmp(list->items[i].registry, l->client->registries[r].name) == 0)
                sorted[n++] = list->items[i];
        }
        qsort(sorted + start, n - start, sizeof(*sorted), compare_names);
    }
    peg__free(list->items);
    list->items = sorted;
    return PEG_OK;
}

static peg_status begin_listing(struct listing *l, size_t first, const char *const *tags,
                                size_t n_tags, peg_error *reterr)
{
    l->list = peg__alloc_zero(1, sizeof(*l->list));
    l->pages = peg__alloc_zero(l->n, sizeof(*l->pages));
    l->fans = peg__alloc_zero(l->n, sizeof(*l->fans));
    if (!l->list || !l->pages || !l->fans)
        return peg__fail_nomem(reterr);
    l->list->failures = peg__arena_alloc_zero(&l->list->arena, l->n * sizeof(*l->list->failures));
    if (!l->list->failures)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < l->n; i++) {
        Pegboard__V1__ListToolsetsRequest *request = &l->pages[i].request;

        pegboard__v1__list_toolsets_request__init(request);
        request->tags = peg__unconst(tags);
        request->n_tags = n_tags;
        request->page_size = PAGE_SIZE;
        l->fans[i].registry = &l->client->registries[first + i];
    }
    return PEG_OK;
}

static peg_status list_all(struct listing *l, size_t first, peg_error *reterr)
{
    peg_toolset_list *list = &l->list->list;
    peg_status status = read_pages(l, reterr);

    if (status)
        return status;
    if (list->n_failures == l->n)
        return remote__pass_error(&l->list->failures[0].error, reterr);
    status = sort_list(l, first, reterr);
    list->items = l->list->items;
    list->failures = l->list->failures;
    return status;
}

peg_status peg_client_list(peg_client *client, peg_ctx *ctx, const char *registry,
                           const char *const *tags, peg_toolset_list **ret_list, peg_error *reterr)
{
    struct listing l = {.client = client, .ctx = ctx};
    size_t first;
    size_t end;
    size_t n_tags;
    peg_status status;

    if ((status = remote__registries(client, registry, &first, &end, reterr)) ||
        (status = remote__tags(tags, &n_tags, reterr)))
        return status;
    l.n = end - first;
    status = begin_listing(&l, first, tags, n_tags, reterr);
    if (!status)
        status = list_all(&l, first, reterr);
    peg__free(l.pages);
    peg__free(l.fans);
    if (status)
        peg_toolset_list_free((peg_toolset_list *)(void *)l.list);
    else
        *ret_list = &l.list->list;
    return status;
}
