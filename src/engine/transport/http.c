/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests over libcurl, on the thread that sends them:
 *
 *   send_request -> take_handle     a curl handle with its open connections, ours until it is done
 *                -> prepare_transfer  options, headers, body
 *                -> run_transfer  bytes come in (on_body), the context is asked now and then
 *                -> judge         what became of it
 *
 * No other thread touches a handle that is in use, but for curl_multi_wakeup() from a cancellation.
 */

#include "engine/transport/transport.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"

/* ---- lines: handles that wait for their next request --------------------------------- */

struct line {
    CURLM *multi; /* has the connections */
    CURL *easy;
    struct line *next;
};

struct http {
    pthread_mutex_t lock;
    struct line *idle; /* under the lock, as n_idle */
    unsigned n_idle;
};

static void free_handle(struct line *line)
{
    if (!line)
        return;
    curl_easy_cleanup(line->easy);
    if (line->multi)
        curl_multi_cleanup(line->multi);
    peg__free(line);
}

static struct line *new_handle(void)
{
    struct line *line = peg__alloc_zero(1, sizeof(*line));

    if (!line)
        return NULL;
    line->multi = curl_multi_init();
    line->easy = curl_easy_init();
    if (line->multi && line->easy)
        return line;
    free_handle(line);
    return NULL;
}

static struct line *take_handle(struct http *http)
{
    struct line *line;

    pthread_mutex_lock(&http->lock);
    line = http->idle;
    if (line) {
        http->idle = line->next;
        http->n_idle--;
    }
    pthread_mutex_unlock(&http->lock);
    return line ? line : new_handle();
}

static void return_handle(struct http *http, struct line *line)
{
    bool is_kept;

    curl_easy_reset(line->easy); /* what it points to is gone; its connections stay */
    pthread_mutex_lock(&http->lock);
    is_kept = http->n_idle < PEG_LIMIT_HTTP_IDLE;
    if (is_kept) {
        line->next = http->idle;
        http->idle = line;
        http->n_idle++;
    }
    pthread_mutex_unlock(&http->lock);
    if (!is_kept)
        free_handle(line);
}

/* ---- one request ------------------------------------------------------------------------ */

/* On the stack of send_request(). */
struct transfer {
    const struct peg__http_request *request;
    struct peg__http_answer *answer;
    peg_ctx *ctx;
    const peg_clock *clock;
    struct line *line;
    struct curl_slist *headers;
    size_t n_bytes;
    size_t n_read; /* of the request's body, by curl */
    size_t n_header_bytes;
    curl_off_t n_moved; /* either way */
    int64_t begun_ns;   /* on the context's clock, as the next two */
    int64_t last_ns;    /* when a byte was last seen */
    int64_t over_ns;    /* when on_bytes said that it is over */
    bool is_private;    /* an address was refused */
    bool is_refused;    /* curl did not take an option */
    CURLcode code;      /* how it ended, if it did */
    peg_status status;  /* why we ended it, if we did */
    peg_error error;
    char message[CURL_ERROR_SIZE];
};

static peg_status reject_large_answer(const struct transfer *t, peg_error *reterr)
{
    return peg__fail(reterr, PEG_ELIMIT, "E_ENGINE_TOO_LARGE",
                     "the server's answer has more than %zu bytes, or more than %d of headers: "
                     "raise max_reply_bytes, or ask for less",
                     t->request->max_bytes, PEG_LIMIT_HTTP_HEADER_BYTES);
}

/* ---- headers that come in ------------------------------------------------------------------ */

static void copy_value(char *out, size_t size, peg_str value)
{
    const size_t len = value.len < size ? value.len : peg__utf8_cut(value.ptr, size - 1);

    memcpy(out, value.ptr, len);
    out[len] = '\0';
}

static int64_t in_ms(int64_t number, int64_t unit_ms)
{
    return number > PEG_LIMIT_RETRY_AFTER_MS / unit_ms ? PEG_LIMIT_RETRY_AFTER_MS
                                                       : number * unit_ms;
}

/* Seconds (or milliseconds), or a date; -1 if it is neither. */
static int64_t read_retry_after(const struct transfer *t, const char *value, int64_t unit_ms)
{
    const time_t date = curl_getdate(value, NULL);
    char *end;
    const long long number = strtoll(value, &end, 10);
    int64_t ms;

    if (end != value && *end == '\0')
        return number < 0 ? -1 : in_ms(number, unit_ms);
    if (date == -1)
        return -1;
    ms = (int64_t)date * 1000 - peg_clock_now_ms(t->clock);
    if (ms < 0)
        return 0;
    return ms < PEG_LIMIT_RETRY_AFTER_MS ? ms : PEG_LIMIT_RETRY_AFTER_MS;
}

static bool is_header(peg_str name, const char *expected)
{
    return name.len == strlen(expected) && strncasecmp(name.ptr, expected, name.len) == 0;
}

static void take_header(struct transfer *t, peg_str name, peg_str value)
{
    struct peg__http_answer *answer = t->answer;
    char short_value[128];

    copy_value(short_value, sizeof(short_value), value);
    if (is_header(name, "retry-after-ms"))
        answer->retry_after_ms = read_retry_after(t, short_value, 1);
    else if (is_header(name, "retry-after") && answer->retry_after_ms < 0)
        answer->retry_after_ms = read_retry_after(t, short_value, 1000);
    else if (is_header(name, "x-request-id") || is_header(name, "request-id"))
        memcpy(answer->request_id, short_value, sizeof(short_value));
    else if (is_header(name, "content-type"))
        memcpy(answer->content_type, short_value, sizeof(short_value));
}

static void clear_answer(struct peg__http_answer *answer)
{
    *answer = (struct peg__http_answer){.retry_after_ms = -1};
}

static size_t on_header(char *data, size_t size, size_t n, void *user)
{
    struct transfer *t = user;
    const peg_str text = {data, size * n};
    const char *colon = memchr(data, ':', text.len);

    t->n_header_bytes += text.len;
    if (t->n_header_bytes > PEG_LIMIT_HTTP_HEADER_BYTES) {
        t->status = reject_large_answer(t, &t->error);
        return 0;
    }
    if (peg__str_starts(text, peg__str("HTTP/"))) { /* perhaps after an interim one */
        const bool was_sent = t->answer->was_sent;

        clear_answer(t->answer);
        t->answer->was_sent = was_sent;
        curl_easy_getinfo(t->line->easy, CURLINFO_RESPONSE_CODE, &t->answer->status);
    } else if (colon) {
        const size_t at = (size_t)(colon - data);
        const peg_str value = peg__str_trim(peg__str_from(text, at + 1), " \t\r\n");

        take_header(t, peg__strn(data, at), value);
        if (t->request->on_header)
            t->request->on_header(peg__strn(data, at), value, t->request->user);
    }
    return text.len;
}

/* ---- the body that comes in -------------------------------------------------------------- */

static size_t on_body(char *data, size_t size, size_t n, void *user)
{
    struct transfer *t = user;
    const peg_str bytes = {data, size * n};

    if (t->answer->is_over)
        return bytes.len;
    if (bytes.len > t->request->max_bytes - t->n_bytes) {
        t->status = reject_large_answer(t, &t->error);
        return 0;
    }
    t->n_bytes += bytes.len;
    t->status = t->request->on_bytes(t->answer, bytes, t->request->user, &t->error);
    if (t->answer->is_over)
        t->over_ns = peg_clock_mono_ns(t->clock);
    return t->status ? 0 : bytes.len;
}

/* Sees bytes that go out too: a large request on a slow line is not idle. */
static int on_progress(void *user, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                       curl_off_t up)
{
    struct transfer *t = user;

    (void)down_total;
    (void)up_total;
    if (down + up != t->n_moved)
        t->last_ns = peg_clock_mono_ns(t->clock);
    t->n_moved = down + up;
    return 0;
}

/* ---- what is sent ------------------------------------------------------------------------ */

/* Commands that a tool starts must not inherit the line to a model. The address is the one that is
 * connected to: a name cannot lead elsewhere after it was judged. */
static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct transfer *t = user;

    (void)purpose;
    if (t->request->only_public && peg__address_is_private(&address->addr)) {
        t->is_private = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static void set_number(struct transfer *t, CURLoption option, long number)
{
    t->is_refused |= curl_easy_setopt(t->line->easy, option, number) != CURLE_OK;
}

static void set_pointer(struct transfer *t, CURLoption option, const void *pointer)
{
    t->is_refused |= curl_easy_setopt(t->line->easy, option, pointer) != CURLE_OK;
}

static void add_header(struct transfer *t, const char *header)
{
    struct curl_slist *longer = curl_slist_append(t->headers, header);

    if (longer)
        t->headers = longer;
    else
        t->is_refused = true;
}

static void add_headers(struct transfer *t)
{
    PEG_CLEANUP(peg__freep) char *copy = NULL;
    const size_t size = strlen(t->request->headers) + 1;
    char *rest;

    if (!t->request->method)
        add_header(t, "Content-Type: application/json");
    add_header(t, "Expect:"); /* servers of models know no 100-continue, and it costs a second */
    copy = peg__alloc(size);
    if (!copy) {
        t->is_refused = true;
        return;
    }
    memcpy(copy, t->request->headers, size);
    rest = copy;
    for (char *header = strsep(&rest, "\n"); header; header = strsep(&rest, "\n"))
        if (*header)
            add_header(t, header);
}

/* A redirect is not followed: it would take the key elsewhere. */
static void set_rules(struct transfer *t)
{
    set_number(t, CURLOPT_NOSIGNAL, 1);
    set_number(t, CURLOPT_FOLLOWLOCATION, 0);
    set_pointer(t, CURLOPT_PROTOCOLS_STR, "http,https");
    set_pointer(t, CURLOPT_USERAGENT, "pegboard/" PEG_VERSION);
    set_number(t, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1);
    set_number(t, CURLOPT_TCP_KEEPALIVE, 1);
    if (t->request->only_public)
        set_pointer(t, CURLOPT_PROXY, ""); /* it would connect in our place, to anything */
    set_number(t, CURLOPT_CONNECTTIMEOUT_MS, (long)t->request->connect_ms);
#if LIBCURL_VERSION_NUM >= 0x075700
    /* Else curl waits for a name server that does not answer, after we have given up. */
    set_number(t, CURLOPT_QUICK_EXIT, 1);
#endif
}

static void set_callbacks(struct transfer *t)
{
    CURL *easy = t->line->easy;

    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    set_pointer(t, CURLOPT_WRITEDATA, t);
    set_pointer(t, CURLOPT_HEADERDATA, t);
    set_pointer(t, CURLOPT_XFERINFODATA, t);
    set_pointer(t, CURLOPT_OPENSOCKETDATA, t);
    set_number(t, CURLOPT_NOPROGRESS, 0);
    set_pointer(t, CURLOPT_ERRORBUFFER, t->message);
}

static size_t on_body_read(char *to, size_t size, size_t n, void *user)
{
    struct transfer *t = user;
    const peg_str left = peg__str_from(t->request->body, t->n_read);
    const size_t len = left.len < size * n ? left.len : size * n;

    memcpy(to, left.ptr, len);
    t->n_read += len;
    t->answer->was_sent |= len > 0;
    return len;
}

/* Curl sends a request again when a kept connection ends without an answer, but for a body that it
 * has begun to read and cannot rewind. Servers close what is idle for five seconds, many of them:
 * a younger connection is hardly ever closed meanwhile. */
static void set_body(struct transfer *t)
{
    const struct peg__http_request *request = t->request;

    if (request->method) {
        set_pointer(t, CURLOPT_CUSTOMREQUEST, request->method);
        return;
    }
    set_number(t, CURLOPT_POST, 1);
    if (request->is_once) {
        curl_easy_setopt(t->line->easy, CURLOPT_READFUNCTION, on_body_read);
        set_pointer(t, CURLOPT_READDATA, t);
        set_number(t, CURLOPT_MAXAGE_CONN, PEG_LIMIT_HTTP_ONCE_AGE_S);
    } else {
        set_pointer(t, CURLOPT_POSTFIELDS, request->body.ptr);
    }
    t->is_refused |= curl_easy_setopt(t->line->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                                      (curl_off_t)request->body.len) != CURLE_OK;
}

static peg_status prepare_transfer(struct transfer *t, peg_error *reterr)
{
    set_rules(t);
    set_callbacks(t);
    add_headers(t);
    set_pointer(t, CURLOPT_URL, t->request->url);
    set_pointer(t, CURLOPT_HTTPHEADER, t->headers);
    set_body(t);
    if (t->is_refused || curl_multi_add_handle(t->line->multi, t->line->easy) != CURLM_OK)
        return peg__fail_nomem(reterr);
    return PEG_OK;
}

/* ---- running ----------------------------------------------------------------------------- */

static int64_t since_ms(int64_t then_ns, int64_t now_ns)
{
    return (now_ns - then_ns) / PEG_NS_PER_MS;
}

static bool is_past(int64_t limit_ms, int64_t then_ns, int64_t now_ns)
{
    return limit_ms >= 0 && since_ms(then_ns, now_ns) >= limit_ms;
}

/* Whether to go on; t->status says why not. */
static bool may_go_on(struct transfer *t)
{
    const struct peg__http_request *request = t->request;
    const int64_t now_ns = peg_clock_mono_ns(t->clock);

    if (t->status)
        return false;
    if (t->answer->is_over)
        return !is_past(PEG_LIMIT_HTTP_DRAIN_MS, t->over_ns, now_ns);
    t->status = peg_ctx_check(t->ctx, &t->error);
    if (t->status)
        return false;
    if (is_past(request->idle_ms, t->last_ns, now_ns))
        t->status =
            peg__fail(&t->error, PEG_ETIMEOUT, "E_ENGINE_TIMEOUT",
                      "the server sent nothing for %lld ms (idle_ms)", (long long)request->idle_ms);
    else if (is_past(request->total_ms, t->begun_ns, now_ns))
        t->status = peg__fail(&t->error, PEG_ETIMEOUT, "E_ENGINE_TIMEOUT",
                              "the answer took longer than %lld ms (total_ms)",
                              (long long)request->total_ms);
    return !t->status;
}

static int64_t sooner(int64_t ms, int64_t limit_ms, int64_t then_ns, int64_t now_ns)
{
    const int64_t left = limit_ms - since_ms(then_ns, now_ns);

    return limit_ms >= 0 && left < ms ? left : ms;
}

/* Cancellation wakes the poll; moments of the clock are awaited; what gives no notice (the budget
 * of a call, a clock that is not the system's) is checked in steps. */
static int step_ms(const struct transfer *t)
{
    const int64_t now_ns = peg_clock_mono_ns(t->clock);
    const int64_t deadline_ns = peg_ctx_deadline_ns(t->ctx);
    int64_t ms =
        t->clock == peg_clock_system() ? PEG_LIMIT_HTTP_STEP_MS : PEG_LIMIT_COMMAND_STEP_MS;

    if (t->answer->is_over)
        return (int)sooner(ms, PEG_LIMIT_HTTP_DRAIN_MS, t->over_ns, now_ns);
    ms = sooner(ms, t->request->idle_ms, t->last_ns, now_ns);
    ms = sooner(ms, t->request->total_ms, t->begun_ns, now_ns);
    if (deadline_ns != INT64_MAX && (deadline_ns - now_ns) / PEG_NS_PER_MS < ms)
        ms = (deadline_ns - now_ns) / PEG_NS_PER_MS;
    return ms < 0 ? 0 : (int)ms + 1; /* not a moment too early, or we would poll in vain */
}

static void run_transfer(struct transfer *t)
{
    CURLM *multi = t->line->multi;
    int n_running = 1;
    int n_left;
    const CURLMsg *message;

    t->code = CURLE_OK;
    while (may_go_on(t)) {
        if (curl_multi_perform(multi, &n_running) != CURLM_OK)
            t->code = CURLE_OUT_OF_MEMORY;
        if (t->request->on_step)
            t->request->on_step(t->request->user);
        if (!n_running || t->code)
            break;
        curl_multi_poll(multi, NULL, 0, step_ms(t), NULL);
    }
    while ((message = curl_multi_info_read(multi, &n_left)))
        if (message->msg == CURLMSG_DONE)
            t->code = message->data.result;
}

static peg_status judge(const struct transfer *t, peg_error *reterr)
{
    const char *message = t->message[0] ? t->message : curl_easy_strerror(t->code);

    if (t->status) {
        if (reterr)
            *reterr = t->error;
        return t->status;
    }
    if (t->code == CURLE_OK || t->answer->is_over)
        return PEG_OK;
    if (t->code == CURLE_OUT_OF_MEMORY)
        return peg__fail_nomem(reterr);
    if (t->is_private)
        return peg__fail(reterr, PEG_EIO, "E_ENGINE_ADDRESS",
                         "the server's name leads to an address of this machine or of a private "
                         "network, which it may not");
    if (t->code == CURLE_OPERATION_TIMEDOUT)
        return peg__fail(reterr, PEG_ETIMEOUT, "E_ENGINE_TIMEOUT",
                         "no connection to the server within %lld ms (connect_ms): %s",
                         (long long)t->request->connect_ms, message);
    return peg__fail(reterr, PEG_EIO, "E_ENGINE_TRANSPORT", "the request did not get through: %s",
                     message);
}

static void wake_transfer(void *user)
{
    curl_multi_wakeup(user);
}

/* With the cancellation listened to. */
static peg_status run_watched(struct transfer *t, peg_error *reterr)
{
    peg_cancel *cancel = peg_ctx_cancel(t->ctx);
    peg_cancel_hook *hook = NULL;
    peg_status status = PEG_OK;

    if (cancel)
        status = peg_cancel_on_fire(cancel, wake_transfer, t->line->multi, &hook, reterr);
    if (status)
        return status;
    run_transfer(t);
    peg_cancel_unhook(hook);
    return judge(t, reterr);
}

/* Of a body that curl does not read piece by piece only the beginning is known. */
static void note_sent(struct transfer *t)
{
    curl_off_t begun_us = 0;

    if (!t->request->is_once &&
        !curl_easy_getinfo(t->line->easy, CURLINFO_PRETRANSFER_TIME_T, &begun_us))
        t->answer->was_sent = begun_us > 0;
}

static peg_status send_request(void *self, peg_ctx *ctx, const struct peg__http_request *request,
                               struct peg__http_answer *answer, peg_error *reterr)
{
    struct transfer t = {
        .request = request, .answer = answer, .ctx = ctx, .clock = peg_ctx_clock(ctx)};
    peg_status status;

    clear_answer(answer);
    t.begun_ns = t.last_ns = peg_clock_mono_ns(t.clock);
    t.line = take_handle(self);
    if (!t.line)
        return peg__fail_nomem(reterr);
    status = prepare_transfer(&t, reterr);
    if (!status) {
        status = run_watched(&t, reterr);
        note_sent(&t);
        curl_multi_remove_handle(t.line->multi, t.line->easy);
    }
    return_handle(self, t.line);
    curl_slist_free_all(t.headers);
    return status;
}

/* ---- life -------------------------------------------------------------------------------- */

static CURLcode curl_is_ready;

static void make_curl_ready(void)
{
    curl_is_ready = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void free_http(void *self)
{
    struct http *http = self;

    while (http->idle) {
        struct line *line = http->idle;

        http->idle = line->next;
        free_handle(line);
    }
    pthread_mutex_destroy(&http->lock);
    peg__free(http);
}

peg_status peg__http_new(struct peg__transport *ret_transport, peg_error *reterr)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct http *http;

    pthread_once(&once, make_curl_ready);
    if (curl_is_ready != CURLE_OK)
        return peg__fail(reterr, PEG_EIO, "E_ENGINE_TRANSPORT", "libcurl does not start: %s",
                         curl_easy_strerror(curl_is_ready));
    http = peg__alloc_zero(1, sizeof(*http));
    if (!http)
        return peg__fail_nomem(reterr);
    pthread_mutex_init(&http->lock, NULL);
    *ret_transport = (struct peg__transport){send_request, free_http, http};
    return PEG_OK;
}
