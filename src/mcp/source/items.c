/* SPDX-License-Identifier: Apache-2.0 */

/* Resources, templates of resources and prompts that the host adds. Any thread. */

#include <stdio.h>

#include "base/error.h"
#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "mcp/source/internal.h"

struct mcp__item *mcp__item_ref(struct mcp__item *item)
{
    peg__refs_take(&item->n_refs);
    return item;
}

struct mcp__item *mcp__item_unref(struct mcp__item *item)
{
    if (!item || !peg__refs_drop(&item->n_refs))
        return NULL;
    if (item->user_free)
        item->user_free(item->user);
    peg__arena_free(&item->arena);
    peg__free(item);
    return NULL;
}

/* ---- definitions as JSON ---- */

static void put_named(struct peg__out *out, const char *name, const char *text)
{
    if (text)
        peg__out_cmember(out, name, text);
}

static void put_resource(struct peg__out *out, const peg_mcp_resource_def *def, bool is_template)
{
    peg__out_object(out);
    peg__out_cmember(out, is_template ? "uriTemplate" : "uri", def->uri);
    peg__out_cmember(out, "name", def->name);
    put_named(out, "title", def->title);
    put_named(out, "description", def->description);
    put_named(out, "mimeType", def->mime_type);
    peg__out_end_object(out);
}

static void put_prompt(struct peg__out *out, const peg_mcp_prompt_def *def)
{
    peg__out_object(out);
    peg__out_cmember(out, "name", def->name);
    put_named(out, "title", def->title);
    put_named(out, "description", def->description);
    peg__out_key(out, "arguments");
    peg__out_array(out);
    for (size_t i = 0; i < def->n_arguments; i++) {
        peg__out_object(out);
        peg__out_cmember(out, "name", def->arguments[i].name);
        put_named(out, "description", def->arguments[i].description);
        peg__out_key(out, "required");
        peg__out_bool(out, def->arguments[i].is_required);
        peg__out_end_object(out);
    }
    peg__out_end_array(out);
    peg__out_end_object(out);
}

/* ---- making ---- */

static peg_status reject_item(peg_error *reterr, const char *where, const char *why)
{
    peg__fail(reterr, PEG_EINVAL, "E_MCP", "%s: %s", where + 1, why);
    peg__error_where(reterr, peg__str(where));
    return PEG_EINVAL;
}

static bool is_text(const char *text, size_t least, size_t most)
{
    const size_t len = text ? strlen(text) : 0;

    return len >= least && len <= most && peg__utf8_is_valid(peg__strn(peg__or_empty(text), len));
}

/* Takes the text of the definition over. */
static peg_status make_item(enum mcp_list_kind kind, const char *key, const char *mime_type,
                            struct peg__buf *json, struct mcp__item **ret_item)
{
    struct mcp__item *item = peg__alloc_zero(1, sizeof(*item));
    const char *copy;

    if (!item || json->status) {
        peg__free(item);
        peg__buf_free(json);
        return PEG_ENOMEM;
    }
    atomic_init(&item->n_refs, 1);
    item->kind = kind;
    item->key = peg__arena_copy(&item->arena, peg__str(key));
    item->mime_type = peg__arena_copy(&item->arena, peg__str(peg__or_empty(mime_type)));
    copy = peg__arena_copy(&item->arena, peg__buf_view(json));
    item->json = peg__strn(copy, json->len);
    peg__buf_free(json);
    if (!item->key || !item->mime_type || !copy) {
        mcp__item_unref(item);
        return PEG_ENOMEM;
    }
    *ret_item = item;
    return PEG_OK;
}

/* Keys of lists are apart: "p" of prompts, "r" of resources and templates. */
static void map_key(enum mcp_list_kind kind, peg_str key, struct peg__buf *ret_key)
{
    peg__buf_putc(ret_key, kind == MCP_PROMPTS ? 'p' : 'r');
    peg__buf_str(ret_key, key);
}

static peg_status add_item(struct mcp_host *host, struct mcp__item *item, peg_error *reterr)
{
    struct peg__buf key = PEG__BUF((size_t)2 * PEG_LIMIT_MCP_URI_BYTES);
    peg_status status;

    map_key(item->kind, peg__str(item->key), &key);
    pthread_mutex_lock(&host->items_lock);
    status = key.status ? PEG_ENOMEM : peg__map_add(&host->items, peg__buf_view(&key), item);
    if (!status)
        host->new_offers |=
            (item->kind == MCP_PROMPTS ? MCP_OFFERS_PROMPTS
                                       : MCP_OFFERS_RESOURCES | MCP_OFFERS_UPDATES) |
            (item->complete ? MCP_OFFERS_COMPLETION : 0);
    pthread_mutex_unlock(&host->items_lock);
    peg__buf_free(&key);
    if (status == PEG_EEXISTS)
        return peg__fail(reterr, status, "E_MCP", "'%.200s' is there already: remove it first",
                         item->key);
    if (status == PEG_ELIMIT)
        return peg__fail(reterr, status, "E_MCP", "there are 10000 resources and prompts already");
    if (status)
        return peg__fail_nomem(reterr);
    mcp__post_change(host->workers, item->kind);
    return PEG_OK;
}

peg_status mcp_host_add_resource(struct mcp_host *host, const peg_mcp_resource_def *def,
                                 peg_error *reterr)
{
    const bool is_template = def->uri && strchr(def->uri, '{');
    struct peg__buf json = PEG__BUF(PEG_LIMIT_MCP_PAGE_BYTES);
    struct peg__out out = {.buf = &json};
    struct mcp__item *item = NULL;
    peg_status status;

    if (!is_text(def->uri, 1, PEG_LIMIT_MCP_URI_BYTES) || !strchr(def->uri, ':'))
        return reject_item(reterr, "/uri", "a resource has a URI, such as file:///a.txt");
    if (!is_text(def->name, 1, PEG_LIMIT_NAME_BYTES))
        return reject_item(reterr, "/name", "a resource has a name of 1 to 256 bytes");
    if (!is_text(def->title, 0, PEG_LIMIT_DESCRIPTION_BYTES) ||
        !is_text(def->description, 0, PEG_LIMIT_DESCRIPTION_BYTES) ||
        !is_text(def->mime_type, 0, PEG_LIMIT_NAME_BYTES))
        return reject_item(reterr, "/description", "a text is too long, or not UTF-8");
    if (!def->read)
        return reject_item(reterr, "/read", "a resource needs a function that reads it");
    put_resource(&out, def, is_template);
    if (make_item(is_template ? MCP_TEMPLATES : MCP_RESOURCES, def->uri, def->mime_type, &json,
                  &item))
        return peg__fail_nomem(reterr);
    item->run = def->read;
    item->complete = def->complete;
    item->user = def->user;
    status = add_item(host, item, reterr);
    if (status)
        mcp__item_unref(item);
    else
        item->user_free = def->user_free;
    return status;
}

static bool copy_required(struct mcp__item *item, const peg_mcp_prompt_def *def)
{
    const char **required =
        peg__arena_alloc_zero(&item->arena, (def->n_arguments + 1) * sizeof(*required));
    size_t n = 0;

    for (size_t i = 0; required && i < def->n_arguments; i++) {
        if (!def->arguments[i].is_required)
            continue;
        required[n] = peg__arena_copy(&item->arena, peg__str(def->arguments[i].name));
        if (!required[n++])
            return false;
    }
    item->required = required;
    return required != NULL;
}

peg_status mcp_host_add_prompt(struct mcp_host *host, const peg_mcp_prompt_def *def,
                               peg_error *reterr)
{
    struct peg__buf json = PEG__BUF(PEG_LIMIT_MCP_PAGE_BYTES);
    struct peg__out out = {.buf = &json};
    struct mcp__item *item = NULL;
    peg_status status;

    if (!is_text(def->name, 1, PEG_LIMIT_NAME_BYTES))
        return reject_item(reterr, "/name", "a prompt has a name of 1 to 256 bytes");
    if (!is_text(def->title, 0, PEG_LIMIT_DESCRIPTION_BYTES) ||
        !is_text(def->description, 0, PEG_LIMIT_DESCRIPTION_BYTES))
        return reject_item(reterr, "/description", "a text is too long, or not UTF-8");
    for (size_t i = 0; i < def->n_arguments; i++) {
        if (!is_text(def->arguments[i].name, 1, PEG_LIMIT_NAME_BYTES) ||
            !is_text(def->arguments[i].description, 0, PEG_LIMIT_DESCRIPTION_BYTES))
            return reject_item(reterr, "/arguments", "an argument has a name of 1 to 256 bytes");
    }
    if (!def->get)
        return reject_item(reterr, "/get", "a prompt needs a function that makes it");
    put_prompt(&out, def);
    if (make_item(MCP_PROMPTS, def->name, NULL, &json, &item))
        return peg__fail_nomem(reterr);
    item->run = def->get;
    item->complete = def->complete;
    item->user = def->user;
    status = copy_required(item, def) ? add_item(host, item, reterr) : peg__fail_nomem(reterr);
    if (status)
        mcp__item_unref(item);
    else
        item->user_free = def->user_free;
    return status;
}

void mcp_host_remove(struct mcp_host *host, enum mcp_list_kind kind, peg_str key)
{
    struct peg__buf text = PEG__BUF((size_t)2 * PEG_LIMIT_MCP_URI_BYTES);
    void *item = NULL;

    map_key(kind, key, &text);
    pthread_mutex_lock(&host->items_lock);
    if (!text.status)
        peg__map_remove(&host->items, peg__buf_view(&text), &item);
    pthread_mutex_unlock(&host->items_lock);
    peg__buf_free(&text);
    if (item)
        mcp__post_change(host->workers, kind);
    mcp__item_unref(item);
}

void mcp__items_free(struct mcp_host *host)
{
    PEG__MAP_EACH(&host->items, entry)
    mcp__item_unref(entry->value);
    peg__map_free(&host->items);
    pthread_mutex_destroy(&host->items_lock);
}

/* ---- finding ---- */

/* A URI that fits a template: {name} stands for what has no slash, {+name} for anything. What they
 * stand for goes into a map if there is one. */
static bool fits(const char *template, peg_str uri, peg_json_builder *b)
{
    while (*template) {
        const char *close = *template == '{' ? strchr(template, '}') : NULL;
        const bool is_any = close && template[1] == '+';
        size_t n = 0;

        if (!close) {
            if (!uri.len || uri.ptr[0] != *template ++)
                return false;
            uri = peg__str_from(uri, 1);
            continue;
        }
        while (n < uri.len && uri.ptr[n] != close[1] && (is_any || uri.ptr[n] != '/'))
            n++;
        if (!n)
            return false;
        if (b) {
            peg_json_add_key(
                b, peg__strn(template + 1 + is_any, (size_t)(close - template) - 1 - is_any));
            peg_json_add_string(b, peg__strn(uri.ptr, n));
        }
        uri = peg__str_from(uri, n);
        template = close + 1;
    }
    return !uri.len;
}

peg_status mcp__template_values(const struct mcp__item *item, peg_str uri, char **ret_json)
{
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc = NULL;
    peg_status status;

    peg_json_open_object(b);
    (void)fits(item->key, uri, b);
    peg_json_close(b);
    status = peg_json_builder_finish(b, &doc, NULL);
    if (!status)
        status = peg_json_write(peg_json_root(doc), PEG_JSON_COMPACT, ret_json, NULL, NULL);
    peg_json_doc_free(doc);
    return status;
}

struct mcp__item *mcp__find_item(struct mcp_host *host, enum mcp_list_kind kind, peg_str key)
{
    struct peg__buf text = PEG__BUF((size_t)2 * PEG_LIMIT_MCP_URI_BYTES);
    struct mcp__item *found = NULL;

    map_key(kind, key, &text);
    pthread_mutex_lock(&host->items_lock);
    if (!text.status)
        found = peg__map_get(&host->items, peg__buf_view(&text));
    PEG__MAP_EACH(&host->items, entry)
    {
        struct mcp__item *item = entry->value;

        if (!found && kind == MCP_RESOURCES && item->kind == MCP_TEMPLATES &&
            fits(item->key, key, NULL))
            found = item;
    }
    if (found)
        mcp__item_ref(found);
    pthread_mutex_unlock(&host->items_lock);
    peg__buf_free(&text);
    return found;
}

/* ---- lists: a position is the key that the page before ended with ---- */

peg_status mcp__list_items(struct mcp_host *host, enum mcp_list_kind kind, peg_str after,
                           struct mcp_page *page)
{
    const struct mcp__item *last = NULL;
    bool is_behind = !after.len;
    bool is_full = false;

    pthread_mutex_lock(&host->items_lock);
    PEG__MAP_EACH(&host->items, entry)
    {
        const struct mcp__item *item = entry->value;

        if (item->kind != kind || is_full)
            continue;
        if (!is_behind) {
            is_behind = peg__str_is(after, item->key);
        } else if (mcp_page_add(page, item->json)) {
            last = item;
        } else {
            is_full = true;
            if (last) /* a page has at least one */
                mcp_page_more(page, peg__str(last->key));
        }
    }
    pthread_mutex_unlock(&host->items_lock);
    return is_behind ? PEG_OK : PEG_EINVAL;
}
