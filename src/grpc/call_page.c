/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A page on HTTP/2: a GET or HEAD goes to options.on_http1, as on HTTP/1.1. Over TLS the client's
 * library chooses the version, and probes, curl and Prometheus choose HTTP/2 where it is offered.
 */

#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "grpc/h2_frame.h"
#include "grpc/server_internal.h"

bool grpc__call_is_page(const struct grpc_call *call)
{
    const peg_str method = call->stream.head.method;

    return call->home->server->options.on_http1 &&
           (peg__str_is(method, "GET") || peg__str_is(method, "HEAD"));
}

/* False: it has more fields than a request may have. */
static bool read_request(const struct grpc_call *call, struct net_http1_request *ret_request)
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
        .n_fields = head->metadata.n,
    };
    for (size_t i = 0; i < head->metadata.n; i++)
        ret_request->fields[i] = (struct net_http1_field){head->metadata.entries[i].key,
                                                          head->metadata.entries[i].value};
    return true;
}

static peg_status send_page(struct grpc_call *call, const struct net_http1_answer *answer)
{
    enum { DECIMAL = 20 };
    const bool wants_body = peg__str_is(call->stream.head.method, "GET") && answer->body.len > 0;
    char code[DECIMAL];
    char length[DECIMAL];
    const struct grpc_field fields[] = {
        {PEG_LIT(":status"),
         peg__strn(code, (size_t)(peg__put_decimal(code, (uint64_t)answer->status) - code))},
        {PEG_LIT("content-type"), peg__str(answer->content_type)},
        {PEG_LIT("content-length"),
         peg__strn(length, (size_t)(peg__put_decimal(length, answer->body.len) - length))},
    };
    const struct grpc_block block = {.fields = fields, .n = sizeof(fields) / sizeof(fields[0])};
    peg_status status = grpc_stream_respond(&call->stream, &block, !wants_body, NULL);

    if (!status && wants_body)
        status = grpc_stream_send_plain(&call->stream, peg__buf_view(&answer->body), NULL);
    if (!status && wants_body)
        status = grpc_stream_end(&call->stream, NULL, NULL);
    return status;
}

peg_status grpc__call_answer_page(struct grpc_call *call)
{
    const struct grpc_server_options *options = &call->home->server->options;
    struct net_http1_request request;
    struct net_http1_answer answer;
    peg_status status;

    if (!read_request(call, &request))
        return grpc__call_refuse_http(call, "431");
    net_http1_answer_init(&answer);
    options->on_http1(options->http1_user, &request, &answer);
    if (answer.body.status || answer.status < 200 || answer.status > 599)
        status = grpc__call_refuse_http(call, "500");
    else
        status = send_page(call, &answer);
    peg__buf_free(&answer.body);
    return status;
}
