/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A page on HTTP/2: a GET or HEAD goes to options.on_http1, as on HTTP/1.1. Over TLS the client's
 * library chooses the version, and probes, curl and Prometheus choose HTTP/2 where it is offered.
 *
 *   grpc__call_answer_page -> on_http1 -> the head, and all of the body, or a piece of a shared one
 *                                      -> comes_later: on_wake, and on_http1 is asked again
 *   on_writable            -> the next piece
 */

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "grpc/http2/frame.h"
#include "grpc/server/internal.h"

enum { PIECE_BYTES = 64 << 10 };

bool grpc__call_is_page(const struct grpc_call *call)
{
    const peg_str method = call->stream.head.method;

    return call->home->server->options.on_http1 &&
           (peg__str_is(method, "GET") || peg__str_is(method, "HEAD"));
}

/* False: it has more fields than a request may have. */
static bool read_request(struct grpc_call *call, struct net_http1_request *ret_request)
{
    const struct grpc_head *head = &call->stream.head;
    const char *mark = head->path.len ? memchr(head->path.ptr, '?', head->path.len) : NULL;
    const size_t path_len = mark ? (size_t)(mark - head->path.ptr) : head->path.len;

    if (head->metadata.n > NET_HTTP1_MAX_FIELDS)
        return false;
    *ret_request = (struct net_http1_request){
        .method = head->method,
        .target = head->path,
        .path = peg__strn(head->path.ptr, path_len),
        .query = mark ? peg__str_from(head->path, path_len + 1) : peg__str(""),
        .keeps_alive = true,
        .peer = grpc_call_peer(call),
        .peer_name = grpc_call_peer_name(call),
        .waiter = &call->page_waiter,
        .n_fields = head->metadata.n,
    };
    for (size_t i = 0; i < head->metadata.n; i++)
        ret_request->fields[i] = (struct net_http1_field){head->metadata.entries[i].key,
                                                          head->metadata.entries[i].value};
    return true;
}

static peg_status send_head(struct grpc_call *call, const struct net_http1_answer *answer)
{
    enum { DECIMAL = 20 };
    const size_t len = net_http1_answer_body(answer).len;
    const bool wants_body = peg__str_is(call->stream.head.method, "GET") && len > 0;
    char code[DECIMAL];
    char length[DECIMAL];
    const struct grpc_field fields[] = {
        {PEG_LIT(":status"),
         peg__strn(code, (size_t)(peg__put_decimal(code, (uint64_t)answer->status) - code))},
        {PEG_LIT("content-type"), peg__str(answer->content_type)},
        {PEG_LIT("content-length"),
         peg__strn(length, (size_t)(peg__put_decimal(length, len) - length))},
    };
    const struct grpc_block block = {.fields = fields, .n = sizeof(fields) / sizeof(fields[0])};
    const peg_status status = grpc_stream_respond(&call->stream, &block, !wants_body, NULL);

    if (!status && wants_body && answer->shared) {
        call->page = net_http1_body_ref(answer->shared);
        call->conn->page_bytes += len;
    }
    return status;
}

static void drop_page(struct grpc_call *call)
{
    if (call->page && call->conn)
        call->conn->page_bytes -= call->page->bytes.len;
    call->page = net_http1_body_unref(call->page);
}

/* Sends the next piece of a page that is shared. The rest follows when the client has taken it, so
 * that a slow one holds a piece, and not a page. */
static peg_status send_piece(struct grpc_call *call)
{
    const peg_str left = peg__str_from(peg__buf_view(&call->page->bytes), call->page_sent);
    const size_t n = left.len < PIECE_BYTES ? left.len : (size_t)PIECE_BYTES;
    peg_status status = grpc_stream_send_plain(&call->stream, peg__strn(left.ptr, n), NULL);

    if (status)
        return status;
    call->page_sent += n;
    if (n == left.len) {
        drop_page(call);
        return grpc_stream_end(&call->stream, NULL, NULL);
    }
    call->awaits_window = !grpc_stream_await_window(&call->stream);
    return PEG_OK;
}

static peg_status send_page(struct grpc_call *call, const struct net_http1_answer *answer)
{
    peg_status status = send_head(call, answer);

    if (status || call->stream.local_ended)
        return status;
    if (call->page)
        return send_piece(call);
    status = grpc_stream_send_plain(&call->stream, peg__buf_view(&answer->body), NULL);
    return status ? status : grpc_stream_end(&call->stream, NULL, NULL);
}

static peg_status ask_page(struct grpc_call *call)
{
    const struct grpc_server_options *options = &call->home->server->options;
    struct net_http1_request request;
    struct net_http1_answer answer;
    peg_status status = PEG_OK;

    if (!read_request(call, &request))
        return grpc__call_refuse_http(call, "431");
    net_http1_answer_init(&answer);
    options->on_http1(options->http1_user, &request, &answer);
    if (answer.comes_later)
        call->awaits_page = true;
    else if (net_http1_answer_is_right(&answer))
        status = send_page(call, &answer);
    else
        status = grpc__call_refuse_http(call, "500");
    net_http1_answer_free(&answer);
    return status;
}

static void on_wake(struct net_http1_waiter *waiter)
{
    struct grpc_call *call = peg__container_of(waiter, struct grpc_call, page_waiter);

    call->awaits_page = false;
    grpc__call_go_on_page(call);
}

peg_status grpc__call_answer_page(struct grpc_call *call)
{
    call->page_waiter.wake = on_wake;
    return call->page ? send_piece(call) : ask_page(call);
}

void grpc__call_forget_page(struct grpc_call *call)
{
    net_http1_not_wait(&call->page_waiter);
    call->awaits_page = false;
    drop_page(call);
}
