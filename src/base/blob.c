/* SPDX-License-Identifier: Apache-2.0 */

#include "base/blob.h"

#include <string.h>

#include "base/mem.h"

struct peg__blob *peg__blob_new(size_t len)
{
    struct peg__blob *blob = NULL;

    if (len < SIZE_MAX - sizeof(*blob))
        blob = (struct peg__blob *)peg__alloc(sizeof(*blob) + len + 1);
    if (!blob)
        return NULL;
    atomic_init(&blob->n_refs, 1);
    blob->len = len;
    blob->bytes[len] = '\0';
    return blob;
}

struct peg__blob *peg__blob_copy(peg_str bytes)
{
    return peg__blob_join(&bytes, 1);
}

struct peg__blob *peg__blob_join(const peg_str *parts, size_t n)
{
    struct peg__blob *blob;
    size_t len = 0;
    char *at;

    for (size_t i = 0; i < n; i++)
        len += parts[i].len;
    blob = peg__blob_new(len);
    at = blob ? blob->bytes : NULL;
    for (size_t i = 0; blob && i < n; i++) {
        if (parts[i].len)
            memcpy(at, parts[i].ptr, parts[i].len);
        at += parts[i].len;
    }
    return blob;
}

struct peg__blob *peg__blob_take(struct peg__buf *buf)
{
    const size_t max = buf->max;
    struct peg__blob *blob = NULL;

    if (!buf->status && buf->len >= PEG__BLOB_CAPACITY) {
        /* What a buffer has to grow is not kept; and memory that would not shrink serves as well.
         */
        blob = (struct peg__blob *)peg__realloc(buf->ptr, buf->len + 1);
        if (!blob)
            blob = (struct peg__blob *)(void *)buf->ptr;
        atomic_init(&blob->n_refs, 1);
        blob->len = buf->len - PEG__BLOB_CAPACITY;
        blob->bytes[blob->len] = '\0';
        *buf = (struct peg__buf){.max = max};
    }
    return blob;
}

struct peg__blob *peg__blob_ref(struct peg__blob *blob)
{
    if (blob)
        peg__refs_take(&blob->n_refs);
    return blob;
}

struct peg__blob *peg__blob_unref(struct peg__blob *blob)
{
    if (blob && peg__refs_drop(&blob->n_refs))
        peg__free(blob);
    return NULL;
}

peg_str peg__blob_str(const struct peg__blob *blob)
{
    return blob ? (peg_str){blob->bytes, blob->len} : (peg_str){"", 0};
}
