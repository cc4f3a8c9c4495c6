/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One request, whatever carries it:
 *
 *   net_http_request_start -> admits, the routes, on_head of the handler
 *   net_http_request_body  -> gathered for on_request, or handed to on_body
 *   net_http_begin, _send, _finish: the handler's answer, in this order, to the transport
 *   net_http_request_ended -> on_end
 *
 * Whatever is refused on the way is an answer like any other.
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "net/http/internal.h"

/* ---- what came ----------------------------------------------------------------------------- */

peg_str net_http_field(const struct net_http_request *request, const char *name)
{
    for (size_t i = 0; i < request->n_fields; i++) {
        if (net_http_is_same_word(request->fields[i].name, name))
            return request->fields[i].value;
    }
    return peg__strn("", 0);
}

bool net_http_query_next(struct net_http_request *request, const char *name, peg_str *rest,
                         peg_str *ret_value)
{
    while (rest->len > 0) {
        const char *end = memchr(rest->ptr, '&', rest->len);
        const peg_str pair = peg__strn(rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len);
        const char *equals = pair.len ? memchr(pair.ptr, '=', pair.len) : NULL;
        const size_t name_len = equals ? (size_t)(equals - pair.ptr) : pair.len;

        *rest = peg__str_from(*rest, end ? pair.len + 1 : pair.len);
        if (peg__str_is(peg__strn(pair.ptr, name_len), name)) {
            const peg_str value = peg__str_from(pair, equals ? name_len + 1 : pair.len);

            *ret_value = net_http_decode(request->arena, value, true);
            return ret_value->ptr != NULL;
        }
    }
    return false;
}

bool net_http_query(struct net_http_request *request, const char *name, peg_str *ret_value)
{
    peg_str rest = request->query;
    peg_str value;

    if (!net_http_query_next(request, name, &rest, &value))
        return false;
    *ret_value = value;
    return true;
}

bool net_http_request_read(struct net_http_request *request)
{
    const peg_str target = request->target;
    const char *mark = target.len ? memchr(target.ptr, '?', target.len) : NULL;
    const size_t path_len = mark ? (size_t)(mark - target.ptr) : target.len;
    size_t n_authorization = 0;

    request->path = peg__strn(target.ptr, path_len);
    request->query = peg__str_from(target, mark ? path_len + 1 : path_len);
    request->origin = peg__strn("", 0);
    for (size_t i = 0; i < request->n_fields; i++) {
        const struct net_http_field *field = &request->fields[i];

        n_authorization += net_http_is_same_word(field->name, "authorization");
        if (!request->host.ptr && net_http_is_same_word(field->name, "host"))
            request->host = field->value;
        if (!net_http_is_same_word(field->name, "origin"))
            continue;
        if (request->origin.len)
            return false;
        request->origin = field->value;
    }
    if (!request->host.ptr)
        request->host = peg__strn("", 0);
    return n_authorization <= 1;
}

/* ---- references, and the connection -------------------------------------------------------- */

struct net_http_request *net_http_ref(struct net_http_request *request)
{
    request->transport->ref(request);
    return request;
}

struct net_http_request *net_http_unref(struct net_http_request *request)
{
    if (request)
        request->transport->unref(request);
    return NULL;
}

void net_http_authenticate(struct net_http_request *request, peg_str principal)
{
    if (!request->has_ended)
        request->transport->authenticate(request, principal);
}

/* ---- time for the body --------------------------------------------------------------------- */

/* When a body that sends no more has been too slow. */
static int64_t body_due_ns(const struct net_http_request *request)
{
    const int64_t earned_ms =
        (int64_t)((request->n_body - request->n_timed) * 1000 / PEG_LIMIT_NET_HTTP_BODY_RATE);

    return peg__clock_after_ms(request->timed_ns, request->server->options.body_ms + earned_ms);
}

/* Paused, it is the handler that is slow. */
static void time_body(struct net_http_request *request)
{
    if (request->is_whole || request->is_finished || request->is_paused || request->has_ended) {
        net_loop_disarm(request->loop, &request->slow);
        return;
    }
    request->timed_ns = net_loop_now_ns(request->loop);
    request->n_timed = request->n_body;
    net_loop_arm(request->loop, &request->slow, body_due_ns(request));
}

/* The timer is not moved with each piece: what came meanwhile counts when it fires. */
static void on_slow(struct net_timer *timer)
{
    struct net_http_request *request = peg__container_of(timer, struct net_http_request, slow);
    const int64_t due_ns = body_due_ns(request);

    if (due_ns > net_loop_now_ns(request->loop))
        net_loop_arm(request->loop, &request->slow, due_ns);
    else
        net_http_request_body_broke(request, 408, "the body came too slowly");
}

void net_http_pause(struct net_http_request *request)
{
    if (request->is_paused || request->has_ended)
        return;
    request->is_paused = true;
    time_body(request);
    request->transport->pause(request);
}

void net_http_resume(struct net_http_request *request)
{
    if (!request->is_paused || request->has_ended)
        return;
    request->is_paused = false;
    time_body(request);
    request->transport->pause(request);
}

/* ---- the answer ---------------------------------------------------------------------------- */

const char *net_http_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {303, "See Other"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (reasons[i].status == status)
            return reasons[i].reason;
    }
    return "";
}

static bool is_value(peg_str value)
{
    for (size_t i = 0; i < value.len; i++) {
        const unsigned char c = (unsigned char)value.ptr[i];

        if ((c < 0x20 && c != '\t') || c == 0x7F)
            return false;
    }
    return true;
}

/* HTTP/2 has no other names, and none of those that frame an answer. */
static bool is_answer_field(const struct net_http_field *field)
{
    static const char *const own[] = {"connection", "content-length",    "content-type", "date",
                                      "keep-alive", "transfer-encoding", "upgrade"};

    for (size_t i = 0; i < field->name.len; i++) {
        if (peg__is_upper(field->name.ptr[i]))
            return false;
    }
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (peg__str_is(field->name, own[i]))
            return false;
    }
    return net_http_is_token(field->name) && is_value(field->value);
}

static bool is_answer(const struct net_http_answer *answer)
{
    for (size_t i = 0; i < answer->n_fields; i++) {
        if (!is_answer_field(&answer->fields[i]))
            return false;
    }
    return answer->status >= 200 && answer->status <= 599 &&
           is_value(peg__str(peg__or_empty(answer->content_type)));
}

static peg_status fail_ended(peg_error *reterr)
{
    return peg__fail(reterr, PEG_ECANCELED, "E_CALL_ENDED", "the request has ended");
}

peg_status net_http_begin(struct net_http_request *request, const struct net_http_answer *answer,
                          int64_t length, peg_error *reterr)
{
    const bool is_bodyless =
        answer->status == 204 || answer->status == 304 || peg__str_is(request->method, "HEAD");
    peg_status status;

    if (request->has_ended)
        return fail_ended(reterr);
    if (request->has_begun)
        return peg__fail(reterr, PEG_ESTATE, "E_HTTP_ANSWER", "the answer has begun already");
    if (!is_answer(answer))
        return peg__fail(reterr, PEG_EINVAL, "E_HTTP_ANSWER",
                         "an answer has a status of 200 to 599, and fields in lowercase without "
                         "line breaks that do not frame it");
    status = request->transport->begin(request, answer, length, is_bodyless, reterr);
    if (status)
        return status;
    request->has_begun = true;
    request->is_bodyless = is_bodyless;
    request->left = length;
    if (is_bodyless)
        net_http_finish(request);
    return PEG_OK;
}

static peg_status check_send(const struct net_http_request *request, size_t len, peg_error *reterr)
{
    if (request->has_ended)
        return fail_ended(reterr);
    if (!request->has_begun || request->is_finished)
        return peg__fail(reterr, PEG_ESTATE, "E_HTTP_ANSWER",
                         "bytes come after the beginning of an answer and before its end");
    if (request->left >= 0 && (uint64_t)request->left < len)
        return peg__fail(reterr, PEG_ESTATE, "E_HTTP_ANSWER",
                         "these are more bytes than the answer was to have");
    return PEG_OK;
}

static void note_sent(struct net_http_request *request, size_t len)
{
    if (request->left > 0)
        request->left -= (int64_t)len;
}

peg_status net_http_send(struct net_http_request *request, peg_str bytes, peg_error *reterr)
{
    peg_status status = request->is_bodyless && !request->has_ended
                            ? PEG_OK
                            : check_send(request, bytes.len, reterr);

    if (!status && bytes.len > 0 && !request->is_bodyless)
        status = request->transport->send(request, bytes, reterr);
    if (!status)
        note_sent(request, bytes.len);
    return status;
}

bool net_http_is_writable(const struct net_http_request *request)
{
    return !request->has_ended && !request->is_finished && request->transport->is_writable(request);
}

void net_http_finish(struct net_http_request *request)
{
    if (request->has_ended || request->is_finished)
        return;
    if (!request->has_begun || (request->left > 0 && !request->is_bodyless)) {
        net_http_reset(request);
        return;
    }
    request->is_finished = true;
    time_body(request);
    request->transport->finish(request);
}

void net_http_reset(struct net_http_request *request)
{
    if (request->has_ended)
        return;
    request->is_finished = true;
    time_body(request);
    request->transport->reset(request);
}

static void finish_reply(struct net_http_request *request, peg_status status)
{
    if (status)
        net_http_reset(request);
    else
        net_http_finish(request);
}

void net_http_reply(struct net_http_request *request, const struct net_http_answer *answer,
                    peg_str body)
{
    peg_status status;

    if (request->has_ended || request->has_begun || request->is_finished)
        return;
    status = net_http_begin(request, answer, (int64_t)body.len, NULL);
    finish_reply(request, status ? status : net_http_send(request, body, NULL));
}

void net_http_reply_blob(struct net_http_request *request, const struct net_http_answer *answer,
                         struct peg__blob *body)
{
    const size_t len = peg__blob_str(body).len;
    peg_status status;

    if (request->has_ended || request->has_begun || request->is_finished)
        return;
    status = net_http_begin(request, answer, (int64_t)len, NULL);
    if (!status && len > 0 && !request->is_bodyless)
        status = request->transport->send_blob(request, body, NULL);
    if (!status)
        note_sent(request, len);
    finish_reply(request, status);
}

static void reply_sentence(struct net_http_request *request, int status,
                           const struct net_http_field *field, const char *text)
{
    const struct net_http_answer answer = {
        .status = status,
        .content_type = "text/plain; charset=utf-8",
        .fields = field,
        .n_fields = field ? 1 : 0,
    };

    net_http_reply(request, &answer, peg__str(text));
}

void net_http_reply_text(struct net_http_request *request, int status, const char *fmt, ...)
{
    enum { TEXT = 512 };
    char text[TEXT];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(text, sizeof(text) - 1, fmt, args);
    va_end(args);
    if (len < 0)
        len = 0;
    if (len > TEXT - 2)
        len = TEXT - 2;
    memcpy(text + len, "\n", 2);
    reply_sentence(request, status, NULL, text);
}

/* ---- from the head to the handler ---------------------------------------------------------- */

static void refuse_route(struct net_http_request *request, int status, const struct peg__buf *allow)
{
    const struct net_http_field field = {PEG_LIT("allow"), peg__buf_view(allow)};
    const char *not_found = request->server->options.not_found;

    if (status == 405)
        reply_sentence(request, status, &field, "this path has other methods: see Allow\n");
    else if (status == 404 && not_found)
        reply_sentence(request, status, NULL, not_found);
    else
        net_http_reply_text(request, status, "%s", net_http_reason(status));
}

/* Finds the handler, or answers. */
static void find_handler(struct net_http_request *request)
{
    const struct net_http_options *options = &request->server->options;
    struct peg__buf allow = PEG__BUF(512);
    const struct net_http_route *route;
    int status;

    route = net_http_route_find(options, request, &status, &allow);
    if (route)
        request->handler = route->handler;
    else
        refuse_route(request, allow.status ? 503 : status, &allow);
    peg__buf_free(&allow);
}

static size_t max_body(const struct net_http_request *request)
{
    return PEG__OR_DEFAULT(request->handler->max_body, PEG_LIMIT_NET_HTTP_BODY_BYTES);
}

static void refuse_size(struct net_http_request *request)
{
    char why[100];

    snprintf(why, sizeof(why), "the body is larger than this path takes: %zu bytes at most",
             max_body(request));
    net_http_request_body_broke(request, 413, why);
}

static void start_handler(struct net_http_request *request)
{
    if (request->content_length > 0 && (uint64_t)request->content_length > max_body(request)) {
        refuse_size(request);
        return;
    }
    request->body.max = max_body(request);
    if (request->handler->on_head)
        request->handler->on_head(request, request->server->options.user);
}

void net_http_request_start(struct net_http_server *server, struct net_http_request *request)
{
    const struct net_http_options *options = &server->options;
    const size_t n = atomic_fetch_add_explicit(&server->n_requests, 1, memory_order_relaxed);

    request->server = server;
    request->slow.fn = on_slow;
    if (n >= options->max_requests) {
        static const struct net_http_field later = {PEG_LIT("retry-after"), PEG_LIT("1")};
        char text[100];

        snprintf(text, sizeof(text), "too many requests are open here (%zu): try again later\n",
                 options->max_requests);
        reply_sentence(request, 503, &later, text);
        return;
    }
    if (options->admits && !options->admits(request, options->user)) {
        if (!request->has_begun && !request->is_finished)
            net_http_reply_text(request, 403, "%s", net_http_reason(403));
        return;
    }
    find_handler(request);
    if (request->handler)
        start_handler(request);
    time_body(request);
}

/* ---- the body ------------------------------------------------------------------------------ */

void net_http_request_body_broke(struct net_http_request *request, int status, const char *why)
{
    if (request->is_finished)
        return;
    if (request->has_begun)
        net_http_reset(request);
    else
        net_http_reply_text(request, status, "%s", why);
}

void net_http_request_body(struct net_http_request *request, peg_str bytes)
{
    const struct net_http_handler *handler = request->handler;

    request->n_body += bytes.len;
    if (request->is_finished || !handler)
        return;
    if (request->n_body > max_body(request)) {
        refuse_size(request);
    } else if (handler->on_body) {
        handler->on_body(request, bytes, false, request->server->options.user);
    } else {
        peg__buf_str(&request->body, bytes);
        if (request->body.status)
            net_http_request_body_broke(request, 503, "out of memory: try again later");
    }
}

void net_http_request_body_end(struct net_http_request *request)
{
    const struct net_http_handler *handler = request->handler;
    void *user = request->server->options.user;

    request->is_whole = true;
    time_body(request);
    if (request->is_finished || !handler)
        return;
    if (handler->on_body)
        handler->on_body(request, peg__strn("", 0), true, user);
    else
        handler->on_request(request, peg__buf_view(&request->body), user);
}

/* ---- output, and the end ------------------------------------------------------------------- */

void net_http_request_writable(struct net_http_request *request)
{
    const struct net_http_handler *handler = request->handler;

    if (!request->is_finished && !request->has_ended && handler && handler->on_writable)
        handler->on_writable(request, request->server->options.user);
}

void net_http_request_ended(struct net_http_request *request, bool was_lost)
{
    const struct net_http_handler *handler = request->handler;

    if (request->has_ended)
        return;
    request->has_ended = true;
    request->was_lost = was_lost;
    net_loop_disarm(request->loop, &request->slow);
    atomic_fetch_sub_explicit(&request->server->n_requests, 1, memory_order_relaxed);
    if (handler && handler->on_end)
        handler->on_end(request, request->server->options.user);
}
