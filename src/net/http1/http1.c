/* SPDX-License-Identifier: Apache-2.0 */

/* A connection of HTTP/1.1. There is one answer at a time: the next request is read when the last
 * answer is gone. A request whose answer comes later stays in the buffer, and is read again when it
 * is woken. So a peer that does not read holds one answer, one buffer of requests, and one piece in
 * the queue of its stream. */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "net/http1/http1.h"

enum {
    PIECE_BYTES = 64 << 10,
    HEAD_BYTES = 512,     /* of an answer */
    ANSWERS_AT_ONCE = 16, /* before others on the loop have their turn */
};

/* Owned by the loop of its stream. leave_http1() takes back what may be pending: `idle`,
 * `later`. */
struct net_http1 {
    struct net_stream *stream; /* NULL once it is gone */
    struct net_loop *loop;
    struct net_http1_events events;
    void *user;
    struct peg__buf in;
    size_t in_used; /* of `in`, answered */
    struct peg__buf out;
    size_t out_sent;
    struct net_http1_body *body; /* goes after `out`; NULL: nothing does */
    size_t body_sent;
    struct net_http1_waiter waiter; /* for the answer to what is next in `in` */
    struct net_timer idle;
    struct net_later later;
    bool is_last;   /* ends after what is being sent */
    bool is_silent; /* the owner has gone, and hears nothing */
    bool is_broken; /* the stream is about to tell its end */
    bool is_busy;   /* the owner is being called */
    bool is_left;   /* while it was: free it afterwards */
};

/* ---- the end ------------------------------------------------------------------------------ */

/* Off the loop and freed, or freed by the caller of the owner. The stream has been let go. */
static void leave_http1(struct net_http1 *http1)
{
    net_loop_disarm(http1->loop, &http1->idle);
    net_loop_not_later(http1->loop, &http1->later);
    net_http1_not_wait(&http1->waiter);
    http1->stream = NULL;
    if (http1->is_busy) {
        http1->is_left = true;
        return;
    }
    peg__buf_free(&http1->in);
    peg__buf_free(&http1->out);
    net_http1_body_unref(http1->body);
    peg__free(http1);
}

/* The stream has been let go; the owner hears of it. */
static void end_http1(struct net_http1 *http1)
{
    http1->stream = NULL;
    if (!http1->is_silent) {
        http1->is_silent = true;
        http1->is_busy = true;
        http1->events.on_end(http1->user);
        http1->is_busy = false;
    }
    leave_http1(http1);
}

static void drop_and_end(struct net_http1 *http1)
{
    net_stream_drop(http1->stream);
    end_http1(http1);
}

static void close_and_end(struct net_http1 *http1)
{
    net_stream_close(http1->stream);
    end_http1(http1);
}

/* ---- an answer ---------------------------------------------------------------------------- */

static const char *status_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {200, "OK"},
        {204, "No Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {413, "Content Too Large"},
        {417, "Expectation Failed"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (reasons[i].status == status)
            return reasons[i].reason;
    }
    return "";
}

/* As HTTP writes it, whatever the locale is: Sun, 06 Nov 1994 08:49:37 GMT. */
static void put_date(struct peg__buf *out)
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const time_t now = time(NULL);
    struct tm tm;

    if (!gmtime_r(&now, &tm))
        return;
    peg__buf_printf(out, "Date: %s, %02d %s %d %02d:%02d:%02d GMT\r\n", days[tm.tm_wday],
                    tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
                    tm.tm_sec);
}

static void put_answer(struct net_http1 *http1, const struct net_http1_answer *answer,
                       bool wants_body)
{
    struct peg__buf *out = &http1->out;
    const bool has_body = answer->status != 204 && answer->status != 304;
    const bool has_own = has_body && wants_body && !answer->shared;

    /* Room for all of it at once. */
    peg__buf_reserve(out, HEAD_BYTES + (has_own ? answer->body.len : 0));
    peg__buf_printf(out, "HTTP/1.1 %d %s\r\n", answer->status, status_reason(answer->status));
    put_date(out);
    if (has_body)
        peg__buf_printf(out, "Content-Type: %.128s\r\nContent-Length: %zu\r\n",
                        answer->content_type, net_http1_answer_body(answer).len);
    if (answer->status == 405)
        peg__buf_puts(out, "Allow: GET, HEAD\r\n");
    peg__buf_printf(out, "Connection: %s\r\n\r\n", http1->is_last ? "close" : "keep-alive");
    if (has_own)
        peg__buf_str(out, peg__buf_view(&answer->body));
    else if (has_body && wants_body)
        http1->body = net_http1_body_ref(answer->shared);
}

/* The last answer, in our own words. */
static void put_refusal(struct net_http1 *http1, int status, bool wants_body)
{
    struct net_http1_answer answer;

    net_http1_answer_init(&answer);
    answer.status = status;
    peg__buf_printf(&answer.body, "%s\n", status_reason(status));
    http1->is_last = true;
    put_answer(http1, &answer, wants_body);
    net_http1_answer_free(&answer);
}

static void arm_idle(struct net_http1 *http1)
{
    net_loop_arm(http1->loop, &http1->idle,
                 peg__clock_after_ms(net_loop_now_ns(http1->loop), http1->events.idle_ms));
}

/* False: there is none yet, or the connection is gone. */
static bool answer_request(struct net_http1 *http1, struct net_http1_request *request, size_t used)
{
    const bool wants_body = peg__str_is(request->method, "GET");
    const struct net_tls *tls = net_stream_tls(http1->stream);
    struct net_http1_answer answer;

    request->waiter = &http1->waiter;
    request->peer = net_stream_peer(http1->stream);
    request->peer_name = tls ? net_tls_peer_name(tls) : (peg_str){"", 0};
    net_http1_answer_init(&answer);
    http1->is_busy = true;
    http1->events.on_request(http1->user, request, &answer);
    http1->is_busy = false;
    if (http1->is_left || answer.comes_later) {
        net_http1_answer_free(&answer);
        if (http1->is_left)
            leave_http1(http1);
        else
            arm_idle(http1);
        return false;
    }
    http1->in_used += used;
    http1->is_last |= !request->keeps_alive;
    if (net_http1_answer_is_right(&answer))
        put_answer(http1, &answer, wants_body);
    else
        put_refusal(http1, 500, wants_body);
    net_http1_answer_free(&answer);
    return true;
}

/* ---- one after the other ------------------------------------------------------------------ */

/* What is to be sent next of the answer: empty at its end. */
static peg_str next_piece(const struct net_http1 *http1)
{
    peg_str left = peg__str_from(peg__buf_view(&http1->out), http1->out_sent);

    if (left.len == 0 && http1->body)
        left = peg__str_from(peg__buf_view(&http1->body->bytes), http1->body_sent);
    return peg__strn(left.ptr, left.len < PIECE_BYTES ? left.len : (size_t)PIECE_BYTES);
}

static void note_answer_sent(struct net_http1 *http1, size_t n)
{
    if (http1->out_sent < http1->out.len)
        http1->out_sent += n;
    else
        http1->body_sent += n;
}

static void forget_sent(struct net_http1 *http1)
{
    peg__buf_free(&http1->out);
    http1->out_sent = 0;
    http1->body = net_http1_body_unref(http1->body);
    http1->body_sent = 0;
}

/* Hands what is left of the answer to the stream. False: it has to wait, or is gone. */
static bool send_answer(struct net_http1 *http1)
{
    peg_str piece;

    if (http1->out.status) {
        drop_and_end(http1);
        return false;
    }
    while ((piece = next_piece(http1)).len > 0) {
        peg_status status;

        if (net_stream_is_blocked(http1->stream))
            return false;
        status = net_stream_write(http1->stream, (const uint8_t *)piece.ptr, piece.len, NULL);
        http1->is_broken = status == PEG_EIO;
        if (status && !http1->is_broken)
            drop_and_end(http1);
        if (status)
            return false;
        note_answer_sent(http1, piece.len);
        arm_idle(http1);
    }
    forget_sent(http1);
    return !net_stream_is_blocked(http1->stream) || http1->is_last;
}

static void forget_answered(struct net_http1 *http1)
{
    const size_t left = http1->in.len - http1->in_used;

    if (left == 0)
        peg__buf_free(&http1->in);
    else
        memmove(http1->in.ptr, http1->in.ptr + http1->in_used, left);
    http1->in.len = left;
    http1->in_used = 0;
}

/* What cannot be read, or has not come whole, may still be one that must have no body. */
static bool is_head(const struct net_http1 *http1)
{
    return peg__str_starts(peg__str_from(peg__buf_view(&http1->in), http1->in_used),
                           (peg_str)PEG_LIT("HEAD "));
}

/* False: there is no whole request yet, or no answer, or the connection is gone. */
static bool answer_next(struct net_http1 *http1)
{
    struct net_http1_request request;
    size_t used = 0;
    const int status = net_http1_read((uint8_t *)http1->in.ptr + http1->in_used,
                                      http1->in.len - http1->in_used, &request, &used);

    if (status) {
        put_refusal(http1, status, !is_head(http1));
        return true;
    }
    if (used == 0) {
        forget_answered(http1);
        net_stream_resume(http1->stream);
        return false;
    }
    return answer_request(http1, &request, used);
}

static void serve_next(struct net_http1 *http1)
{
    if (http1->waiter.next) /* it goes on when it is woken */
        return;
    net_stream_pause(http1->stream);
    for (unsigned n = 0; send_answer(http1); n++) {
        if (http1->is_last) {
            close_and_end(http1);
            return;
        }
        if (n == ANSWERS_AT_ONCE) {
            net_loop_later(http1->loop, &http1->later);
            return;
        }
        if (!answer_next(http1))
            return;
    }
}

/* An answer that did not come is one of our own. */
static void refuse_waiter(struct net_http1 *http1)
{
    net_http1_not_wait(&http1->waiter);
    put_refusal(http1, 503, !is_head(http1));
    serve_next(http1);
}

/* ---- events of the stream and the loop ---------------------------------------------------- */

static void on_http1_bytes(void *user, const uint8_t *bytes, size_t len)
{
    struct net_http1 *http1 = user;

    peg__buf_add(&http1->in, bytes, len);
    if (http1->in.status)
        drop_and_end(http1);
    else
        serve_next(http1);
}

static void on_http1_drained(void *user)
{
    struct net_http1 *http1 = user;

    arm_idle(http1);
    serve_next(http1);
}

static void on_http1_closed(void *user, const peg_error *error)
{
    (void)error;
    end_http1(user);
}

static void on_http1_later(struct net_later *later)
{
    struct net_http1 *http1 = peg__container_of(later, struct net_http1, later);

    if (!http1->is_broken)
        serve_next(http1);
}

static void on_http1_wake(struct net_http1_waiter *waiter)
{
    struct net_http1 *http1 = peg__container_of(waiter, struct net_http1, waiter);

    if (!http1->is_broken)
        serve_next(http1);
}

/* Answers a request that is incomplete, or whose answer did not come; not a peer that does not
 * read. */
static void on_idle(struct net_timer *timer)
{
    struct net_http1 *http1 = peg__container_of(timer, struct net_http1, idle);

    if (http1->is_broken || http1->out.len > 0 || net_stream_is_blocked(http1->stream)) {
        drop_and_end(http1);
    } else if (http1->waiter.next) {
        refuse_waiter(http1);
    } else if (http1->in.len > http1->in_used) {
        put_refusal(http1, 408, !is_head(http1));
        serve_next(http1);
    } else {
        close_and_end(http1);
    }
}

static const struct net_stream_events stream_events = {
    .on_bytes = on_http1_bytes,
    .on_drained = on_http1_drained,
    .on_closed = on_http1_closed,
};

/* ---- the face ----------------------------------------------------------------------------- */

peg_status net_http1_serve(struct net_stream *stream, const struct net_http1_events *events,
                           void *user, const uint8_t *first, size_t first_len,
                           struct net_http1 **ret_http1)
{
    struct net_http1 *http1 = peg__alloc_zero(1, sizeof(*http1));
    peg_status status = PEG_ENOMEM;

    if (http1) {
        http1->in.max = PEG_LIMIT_HTTP1_HEAD_BYTES + NET_READ_BYTES;
        http1->out.max = PEG_LIMIT_HTTP1_ANSWER_BYTES + HEAD_BYTES;
        peg__buf_add(&http1->in, first, first_len);
        status = http1->in.status;
    }
    if (status) {
        if (http1)
            peg__buf_free(&http1->in);
        peg__free(http1);
        net_stream_drop(stream);
        return status;
    }
    http1->stream = stream;
    http1->loop = net_stream_loop(stream);
    http1->events = *events;
    if (http1->events.idle_ms == 0)
        http1->events.idle_ms = PEG_LIMIT_HTTP1_IDLE_MS;
    http1->user = user;
    http1->idle.fn = on_idle;
    http1->later.fn = on_http1_later;
    http1->waiter.wake = on_http1_wake;
    net_stream_set_events(stream, &stream_events, http1);
    arm_idle(http1);
    if (first_len) {
        net_stream_pause(stream);
        net_loop_later(http1->loop, &http1->later);
    }
    *ret_http1 = http1;
    return PEG_OK;
}

void net_http1_close(struct net_http1 *http1)
{
    if (!http1->stream)
        return;
    http1->is_silent = true;
    http1->is_last = true;
    if (http1->is_busy || http1->is_broken || http1->out.len > 0)
        return;
    if (http1->waiter.next) {
        refuse_waiter(http1);
        return;
    }
    net_stream_close(http1->stream);
    leave_http1(http1);
}

void net_http1_drop(struct net_http1 *http1)
{
    if (!http1->stream)
        return;
    http1->is_silent = true;
    net_stream_drop(http1->stream);
    leave_http1(http1);
}

/* ---- answer ---------------------------------------- */

/* ---- answers ------------------------------------------------------------------------------ */

void net_http1_answer_init(struct net_http1_answer *ret_answer)
{
    *ret_answer = (struct net_http1_answer){.status = 200,
                                            .content_type = "text/plain; charset=utf-8",
                                            .body = PEG__BUF(PEG_LIMIT_HTTP1_ANSWER_BYTES)};
}

void net_http1_answer_free(struct net_http1_answer *answer)
{
    peg__buf_free(&answer->body);
    answer->shared = net_http1_body_unref(answer->shared);
}

static const struct peg__buf *body_bytes(const struct net_http1_answer *answer)
{
    return answer->shared ? &answer->shared->bytes : &answer->body;
}

bool net_http1_answer_is_right(const struct net_http1_answer *answer)
{
    return !answer->body.status && !body_bytes(answer)->status && answer->status >= 200 &&
           answer->status <= 599;
}

peg_str net_http1_answer_body(const struct net_http1_answer *answer)
{
    return peg__buf_view(body_bytes(answer));
}

/* ---- bodies that are shared --------------------------------------------------------------- */

struct net_http1_body *net_http1_body_new(void)
{
    struct net_http1_body *body = peg__alloc_zero(1, sizeof(*body));

    if (!body)
        return NULL;
    atomic_init(&body->n_refs, 1);
    body->bytes.max = PEG_LIMIT_HTTP1_ANSWER_BYTES;
    return body;
}

struct net_http1_body *net_http1_body_ref(struct net_http1_body *body)
{
    if (body)
        peg__refs_take(&body->n_refs);
    return body;
}

struct net_http1_body *net_http1_body_unref(struct net_http1_body *body)
{
    if (!body || !peg__refs_drop(&body->n_refs))
        return NULL;
    peg__buf_free(&body->bytes);
    peg__free(body);
    return NULL;
}

/* ---- who waits ---------------------------------------------------------------------------- */

void net_http1_wait(struct net_http1_waiter *waiters, struct net_http1_waiter *waiter)
{
    waiter->next = waiters;
    waiter->prev = waiters->prev;
    waiter->prev->next = waiter;
    waiters->prev = waiter;
}

void net_http1_not_wait(struct net_http1_waiter *waiter)
{
    if (!waiter->next)
        return;
    waiter->prev->next = waiter->next;
    waiter->next->prev = waiter->prev;
    waiter->next = waiter->prev = NULL;
}

void net_http1_wake(struct net_http1_waiter *waiters)
{
    /* Who waits again, or comes meanwhile, waits for the next time. */
    struct net_http1_waiter woken = *waiters;

    if (waiters->next == waiters)
        return;
    woken.next->prev = &woken;
    woken.prev->next = &woken;
    net_http1_waiters_init(waiters);
    while (woken.next != &woken) {
        struct net_http1_waiter *waiter = woken.next;

        net_http1_not_wait(waiter);
        waiter->wake(waiter);
    }
}
