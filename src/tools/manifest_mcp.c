/* SPDX-License-Identifier: Apache-2.0 */

/* The key `mcp` of a manifest: a server whose tools the toolset has. mcp/ starts it, or connects to
 * it. */

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "tools/internal.h"

#define NUL_INSIDE "a text must not contain a NUL: take it out"

/* ---- which kind ---- */

static peg_status reject_mcp(const struct peg__manifest_reader *r, const char *member,
                             const char *message)
{
    char pointer[400];

    snprintf(pointer, sizeof(pointer), "/mcp%s", member);
    return peg__manifest_fail_at(r, peg__str(pointer), message);
}

static peg_status check_kind(const struct peg__manifest_reader *r, const peg_json *object)
{
    const bool has_url = peg_json_get(object, "url");

    if (!has_url && !peg_json_get(object, "command"))
        return reject_mcp(r, "", "'command' or 'url' is missing: a program, or where it serves");
    if (has_url && peg_json_get(object, "command"))
        return reject_mcp(r, "/url", "it is for a server that is no 'command': keep one of them");
    if (has_url && peg_json_get(object, "env"))
        return reject_mcp(r, "/env", "it is for a 'command'");
    if (has_url && peg_json_get(object, "directory"))
        return reject_mcp(r, "/directory", "it is for a 'command'");
    if (!has_url && peg_json_get(object, "headers"))
        return reject_mcp(r, "/headers", "they are for a 'url'");
    if (!has_url && peg_json_get(object, "private_addresses"))
        return reject_mcp(r, "/private_addresses", "it is for a 'url'");
    return PEG_OK;
}

/* ---- headers ---- */

static peg_status reject_header(const struct peg__manifest_reader *r, peg_str name,
                                const char *message)
{
    char member[320];

    /* Of what a name may have, only ~ is written in another way in a pointer. */
    snprintf(member, sizeof(member), "/headers/%.*s", (int)name.len, name.ptr);
    return reject_mcp(r, memchr(name.ptr, '~', name.len) ? "/headers" : member, message);
}

/* In the arena; NULL stays NULL. */
static peg_status copy_header_text(const struct peg__manifest_reader *r, peg_str name,
                                   const peg_json *value, const char **ret_text)
{
    *ret_text = NULL;
    if (!value)
        return PEG_OK;
    *ret_text = peg__arena_copy(&r->manifest->arena, peg_json_str(value));
    if (!*ret_text)
        return peg__fail_nomem(r->reterr);
    for (const char *at = *ret_text; at < *ret_text + value->len; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7F)
            return reject_header(r, name, "a header is one line, without control characters");
    }
    return PEG_OK;
}

/* From the folder of the manifest. */
static peg_status join_folder(const struct peg__manifest_reader *r, const char **path)
{
    char *joined;
    size_t size;

    if (!*path || (*path)[0] == '/' || !r->folder)
        return PEG_OK;
    size = strlen(r->folder) + strlen(*path) + 2;
    joined = peg__arena_alloc(&r->manifest->arena, size);
    if (!joined)
        return peg__fail_nomem(r->reterr);
    snprintf(joined, size, "%s/%s", r->folder, *path);
    *path = joined;
    return PEG_OK;
}

static peg_status take_header(const struct peg__manifest_reader *r, const peg_json *key,
                              struct peg__manifest_header *header)
{
    const peg_json *value = key + 1;
    const peg_str name = peg_json_str(key);
    peg_status status;

    header->name = peg__arena_copy(&r->manifest->arena, name);
    if (!header->name)
        return peg__fail_nomem(r->reterr);
    header->prefix = "";
    if (value->kind == PEG_JSON_STRING)
        return copy_header_text(r, name, value, &header->value);
    if ((status = copy_header_text(r, name, peg_json_get(value, "env"), &header->env)) ||
        (status = copy_header_text(r, name, peg_json_get(value, "file"), &header->file)) ||
        (status = copy_header_text(r, name, peg_json_get(value, "prefix"), &header->prefix)) ||
        (status = join_folder(r, &header->file)))
        return status;
    header->prefix = peg__or_empty(header->prefix);
    if (!header->env == !header->file)
        return reject_header(r, name, "its value is from 'env' or from 'file': name one of them");
    return PEG_OK;
}

static peg_status take_headers(const struct peg__manifest_reader *r, const peg_json *object,
                               struct peg__manifest_mcp *mcp)
{
    const peg_json *headers = peg_json_get(object, "headers");
    struct peg__manifest_header *list;
    peg_status status = PEG_OK;

    if (!headers)
        return PEG_OK;
    list = peg__arena_alloc_zero(&r->manifest->arena, (peg_json_len(headers) + 1) * sizeof(*list));
    if (!list)
        return peg__fail_nomem(r->reterr);
    mcp->headers = list;
    PEG_JSON_EACH_MEMBER (headers, key) {
        status = take_header(r, key, &list[mcp->n_headers++]);
        if (status)
            return status;
    }
    return status;
}

static peg_status take_url(const struct peg__manifest_reader *r, const peg_json *object,
                           struct peg__manifest_mcp *mcp)
{
    const peg_json *url = peg_json_get(object, "url");

    if (!url)
        return PEG_OK;
    mcp->url = peg__arena_copy(&r->manifest->arena, peg_json_str(url));
    mcp->private_addresses = peg_json_is_true(peg_json_get(object, "private_addresses"));
    if (!mcp->url)
        return peg__fail_nomem(r->reterr);
    if (strlen(mcp->url) != url->len)
        return reject_mcp(r, "/url", NUL_INSIDE);
    return take_headers(r, object, mcp);
}

/* ---- all of it ---- */

peg_status peg__manifest_take_mcp(const struct peg__manifest_reader *r)
{
    const peg_json *object = peg_json_get(r->root, "mcp");
    const peg_json *tools = peg_json_get(object, "tools");
    struct peg__manifest_mcp *mcp;
    const char *directory;
    peg_status status;

    if (!object)
        return PEG_OK;
    mcp = peg__arena_alloc_zero(&r->manifest->arena, sizeof(*mcp));
    if (!mcp)
        return peg__fail_nomem(r->reterr);
    if ((status = check_kind(r, object)) || (status = take_url(r, object, mcp)) ||
        (status = peg__manifest_list(r, object, "command", &mcp->command)) ||
        (status = peg__manifest_env(r, object, &mcp->env)) ||
        (status = peg__manifest_directory(r, object, &directory)) ||
        (status = peg__manifest_list(r, tools, "include", &mcp->include)) ||
        (status = peg__manifest_list(r, tools, "exclude", &mcp->exclude)) ||
        (status =
             peg__manifest_ms(r, object, "timeout", PEG_LIMIT_TURN_TIMEOUT_MS, &mcp->timeout_ms)))
        return status;
    if (directory) { /* the document and the folder do not outlive the reading */
        mcp->directory = peg__arena_copy(&r->manifest->arena, peg__str(directory));
        if (!mcp->directory)
            return peg__fail_nomem(r->reterr);
    }
    r->manifest->mcp = mcp;
    return PEG_OK;
}

const struct peg__manifest_mcp *peg__manifest_mcp(const peg_manifest *manifest)
{
    return manifest->mcp;
}
