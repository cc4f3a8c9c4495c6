/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Spans gather in one buffer while the thread sends the other; they change places when the
 * collector has taken that, or refused it for good. The lock is held to add a span or to change the
 * buffers, never while anything is sent.
 */

#include <pthread.h>
#include <signal.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "otlp/internal.h"

/* Owned; any thread. */
struct otlp_exporter {
    struct otlp_options options; /* its strings are `texts` */
    char *texts[2];
    struct otlp__url url;
    struct net_tls_config *tls; /* NULL: http:// */
    double sample;              /* 0 to 1 */
    pthread_t thread;
    _Atomic int64_t last_ns; /* it is to end by then; 0: it goes on */
    atomic_uint_fast64_t n_exported;
    atomic_uint_fast64_t n_dropped;
    atomic_uint_fast64_t n_failures;
    struct peg__buf head; /* the thread's */
    bool is_failing;      /* the thread's: the log has it */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    struct peg__buf waiting;
    uint64_t n_waiting;
    int64_t due_ns;          /* of what waits, if anything does */
    struct peg__buf sending; /* the thread's while it sends */
    uint64_t n_sending;
};

static void count_spans(atomic_uint_fast64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static bool must_end(const struct otlp_exporter *exporter)
{
    return atomic_load(&exporter->last_ns) != 0;
}

/* ---- adding ---- */

double otlp__exporter_sample(const struct otlp_exporter *exporter)
{
    return exporter->sample;
}

/* With the lock. False: there is no room, or no memory. */
static bool add_to_waiting(struct otlp_exporter *exporter, peg_str packed)
{
    struct peg__buf *buf = &exporter->waiting;

    peg__buf_str(buf, packed);
    if (buf->status) {
        buf->status = PEG_OK; /* there may be room again later */
        return false;
    }
    if (exporter->n_waiting++ == 0)
        exporter->due_ns = peg__clock_after_ms(peg__mono_ns(), PEG_LIMIT_OTLP_DELAY_MS);
    return true;
}

void otlp__exporter_add(struct otlp_exporter *exporter, peg_str packed)
{
    bool is_added;
    bool wakes;

    pthread_mutex_lock(&exporter->lock);
    is_added = add_to_waiting(exporter, packed);
    /* The first one has a time to be sent at, and a full batch is sent before. */
    wakes = is_added && (exporter->n_waiting == 1 ||
                         (exporter->waiting.len >= PEG_LIMIT_OTLP_BATCH_BYTES &&
                          exporter->waiting.len - packed.len < PEG_LIMIT_OTLP_BATCH_BYTES));
    pthread_mutex_unlock(&exporter->lock);
    if (wakes)
        pthread_cond_signal(&exporter->changed);
    if (!is_added)
        count_spans(&exporter->n_dropped, 1);
}

struct otlp_counts otlp_exporter_counts(const struct otlp_exporter *exporter)
{
    struct otlp_counts counts = {.n_exported = 0};

    if (!exporter)
        return counts;
    counts.n_exported = atomic_load_explicit(&exporter->n_exported, memory_order_relaxed);
    counts.n_dropped = atomic_load_explicit(&exporter->n_dropped, memory_order_relaxed);
    counts.n_failures = atomic_load_explicit(&exporter->n_failures, memory_order_relaxed);
    return counts;
}

/* ---- the thread ---- */

/* Waits until a batch is due, and takes it. False: it is over, and nothing waits. */
static bool take_batch(struct otlp_exporter *exporter)
{
    struct peg__buf full;

    pthread_mutex_lock(&exporter->lock);
    while (!must_end(exporter) &&
           (!exporter->n_waiting || (exporter->waiting.len < PEG_LIMIT_OTLP_BATCH_BYTES &&
                                     peg__mono_ns() < exporter->due_ns)))
        peg__clock_wait(peg_clock_system(), &exporter->changed, &exporter->lock,
                        exporter->n_waiting ? exporter->due_ns : INT64_MAX);
    full = exporter->waiting;
    exporter->waiting = exporter->sending;
    exporter->sending = full;
    exporter->n_sending = exporter->n_waiting;
    exporter->n_waiting = 0;
    pthread_mutex_unlock(&exporter->lock);
    return exporter->n_sending > 0;
}

/* False: it is over. */
static bool wait_to_retry(struct otlp_exporter *exporter, int64_t ms)
{
    const int64_t until_ns = peg__clock_after_ms(peg__mono_ns(), ms);

    pthread_mutex_lock(&exporter->lock);
    while (!must_end(exporter) && peg__mono_ns() < until_ns)
        peg__clock_wait(peg_clock_system(), &exporter->changed, &exporter->lock, until_ns);
    pthread_mutex_unlock(&exporter->lock);
    return !must_end(exporter);
}

static int send_batch(struct otlp_exporter *exporter)
{
    otlp__request_head(&exporter->options, exporter->sending.len, &exporter->head);
    if (exporter->head.status)
        return 0; /* there may be memory later */
    return otlp__post(&(struct otlp__post){.url = &exporter->url,
                                           .tls = exporter->tls,
                                           .last_ns = &exporter->last_ns,
                                           .head = peg__buf_view(&exporter->head),
                                           .rest = peg__buf_view(&exporter->sending)});
}

/* What OTLP says: these may be better the next time, all others would be the same. */
static bool is_worth_retrying(int status)
{
    return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

static bool is_taken(int status)
{
    return status >= 200 && status < 300;
}

/* The log gets a line when sending begins to fail and one when it works again, not one for each
 * request. */
static void log_change(struct otlp_exporter *exporter, int status)
{
    if (is_taken(status) != exporter->is_failing)
        return;
    exporter->is_failing = !exporter->is_failing;
    if (!exporter->is_failing)
        peg__log(PEG_LOG_INFO, "E_OTLP", "spans are sent to %s again", exporter->url.authority);
    else if (is_worth_retrying(status))
        peg__log(PEG_LOG_WARN, "E_OTLP",
                 "spans cannot be sent to %s (HTTP status %d, 0: no answer): they wait, and are "
                 "dropped if there are too many",
                 exporter->url.authority, status);
    else
        peg__log(PEG_LOG_WARN, "E_OTLP", "%s refuses spans (HTTP status %d): they are dropped",
                 exporter->url.authority, status);
}

/* Sends what it has taken until it is taken, refused, or the exporter is over. */
static void deliver_batch(struct otlp_exporter *exporter)
{
    int64_t backoff_ms = PEG_LIMIT_OTLP_BACKOFF_MS;
    int status;

    while (status = send_batch(exporter), is_worth_retrying(status)) {
        log_change(exporter, status);
        count_spans(&exporter->n_failures, 1);
        if (!wait_to_retry(exporter, backoff_ms))
            break;
        backoff_ms = backoff_ms * 2 < PEG_LIMIT_OTLP_BACKOFF_MAX_MS ? backoff_ms * 2
                                                                    : PEG_LIMIT_OTLP_BACKOFF_MAX_MS;
    }
    log_change(exporter, status);
    if (is_taken(status)) {
        count_spans(&exporter->n_exported, exporter->n_sending);
        return;
    }
    if (!is_worth_retrying(status))
        count_spans(&exporter->n_failures, 1);
    count_spans(&exporter->n_dropped, exporter->n_sending);
}

static void *export_spans(void *user)
{
    struct otlp_exporter *exporter = user;

    while (take_batch(exporter)) {
        deliver_batch(exporter);
        peg__buf_clear(&exporter->sending);
    }
    return NULL;
}

static bool start_export_thread(struct otlp_exporter *exporter)
{
    sigset_t all;
    sigset_t before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&exporter->thread, NULL, export_spans, exporter);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0;
}

/* ---- its life ---- */

static void free_exporter(struct otlp_exporter *exporter)
{
    net_tls_config_unref(exporter->tls);
    peg__buf_free(&exporter->waiting);
    peg__buf_free(&exporter->sending);
    peg__buf_free(&exporter->head);
    pthread_mutex_destroy(&exporter->lock);
    pthread_cond_destroy(&exporter->changed);
    for (size_t i = 0; i < sizeof(exporter->texts) / sizeof(exporter->texts[0]); i++)
        peg__free(exporter->texts[i]);
    peg__free(exporter);
}

static char *copy_option_text(const char *text)
{
    char *copy = peg__alloc(strlen(text) + 1);

    return copy ? memcpy(copy, text, strlen(text) + 1) : NULL;
}

static peg_status set_up_exporter(struct otlp_exporter *exporter,
                                  const struct otlp_options *options, peg_error *reterr)
{
    const struct net_tls_options tls = {.is_client = true, .allows_http1 = true};
    peg_status status = otlp__url_parse(options->endpoint, &exporter->url, reterr);

    if (status)
        return status;
    if (!(options->sample <= 1))
        return peg__fail(reterr, PEG_EINVAL, "E_OTLP",
                         "the part of traces that are sampled is above 1: use 0 to 1");
    exporter->sample = options->sample;
    if (options->sample <= 0)
        exporter->sample = options->sample < 0 ? 0 : 1;
    exporter->texts[0] = copy_option_text(options->service);
    exporter->texts[1] = copy_option_text(options->instance ? options->instance : "");
    if (!exporter->texts[0] || !exporter->texts[1])
        return peg__fail_nomem(reterr);
    exporter->options.service = exporter->texts[0];
    exporter->options.instance = exporter->texts[1];
    return exporter->url.is_tls ? net_tls_config_new(&tls, &exporter->tls, reterr) : PEG_OK;
}

peg_status otlp_exporter_new(const struct otlp_options *options,
                             struct otlp_exporter **ret_exporter, peg_error *reterr)
{
    struct otlp_exporter *exporter = peg__alloc_zero(1, sizeof(*exporter));
    peg_status status;

    if (!exporter)
        return peg__fail_nomem(reterr);
    exporter->waiting.max = PEG_LIMIT_OTLP_QUEUE_BYTES;
    exporter->sending.max = PEG_LIMIT_OTLP_QUEUE_BYTES;
    exporter->head.max = PEG_LIMIT_OTLP_QUEUE_BYTES;
    pthread_mutex_init(&exporter->lock, NULL);
    peg__clock_cond_init(&exporter->changed);
    status = set_up_exporter(exporter, options, reterr);
    if (!status && !start_export_thread(exporter))
        status = peg__fail(reterr, PEG_EIO, "E_OTLP",
                           "there is no thread for spans: the system has no more of them");
    if (status) {
        free_exporter(exporter);
        return status;
    }
    *ret_exporter = exporter;
    return PEG_OK;
}

struct otlp_exporter *otlp_exporter_free(struct otlp_exporter *exporter)
{
    if (!exporter)
        return NULL;
    pthread_mutex_lock(&exporter->lock);
    atomic_store(&exporter->last_ns, peg__clock_after_ms(peg__mono_ns(), PEG_LIMIT_OTLP_LAST_MS));
    pthread_cond_signal(&exporter->changed);
    pthread_mutex_unlock(&exporter->lock);
    pthread_join(exporter->thread, NULL);
    free_exporter(exporter);
    return NULL;
}
