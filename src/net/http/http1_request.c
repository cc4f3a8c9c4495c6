/* SPDX-License-Identifier: Apache-2.0 */

/* The memory of a request of HTTP/1.1: its head is copied once, and lives until the last reference
 * is gone. */

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "net/http/internal.h"

void net_http1_request_ref(struct net_http_request *request)
{
    ((struct net_http1_request *)request)->n_refs++;
}

void net_http1_request_unref(struct net_http_request *request)
{
    struct net_http1_request *own = (struct net_http1_request *)request;

    if (--own->n_refs > 0)
        return;
    peg__buf_free(&request->body);
    peg__arena_free(&own->arena);
    peg__free(own);
}

/* From the bytes that were read to where they are kept. */
static peg_str move_str(peg_str s, const char *from, const char *to)
{
    return peg__strn(to + (s.ptr - from), s.len);
}

static bool copy_head(struct net_http1_request *own, const struct net_http_head *head,
                      peg_str bytes)
{
    struct net_http_request *request = &own->request;
    const char *text = peg__arena_copy(&own->arena, bytes);
    struct net_http_field *fields =
        peg__arena_alloc(&own->arena, head->n_fields * sizeof(*fields) + 1);

    if (!text || !fields)
        return false;
    for (size_t i = 0; i < head->n_fields; i++) {
        fields[i].name = move_str(head->fields[i].name, bytes.ptr, text);
        fields[i].value = move_str(head->fields[i].value, bytes.ptr, text);
    }
    request->method = move_str(head->method, bytes.ptr, text);
    request->target = move_str(head->target, bytes.ptr, text);
    request->fields = fields;
    request->n_fields = head->n_fields;
    request->content_length = head->content_length;
    return true;
}

static bool copy_peer(struct net_http1_request *own, const struct net_stream *stream)
{
    struct net_http_request *request = &own->request;
    const struct net_tls *tls = net_stream_tls(stream);
    const peg_str name = tls ? net_tls_peer_name(tls) : peg__strn("", 0);

    request->is_local = net_stream_is_local(stream);
    request->peer = peg__arena_copy(&own->arena, peg__str(net_stream_peer(stream)));
    request->peer_name = peg__strn(peg__arena_copy(&own->arena, name), name.len);
    return request->peer && request->peer_name.ptr;
}

struct net_http1_request *net_http1_request_new(struct net_http_conn *conn,
                                                const struct net_stream *stream,
                                                const struct net_http_head *head, peg_str bytes)
{
    struct net_http1_request *own = peg__alloc_zero(1, sizeof(*own));

    if (!own)
        return NULL;
    own->n_refs = 1;
    own->conn = conn;
    own->request.loop = net_stream_loop(stream);
    own->request.arena = &own->arena;
    if (copy_head(own, head, bytes) && copy_peer(own, stream))
        return own;
    net_http1_request_unref(&own->request);
    return NULL;
}
