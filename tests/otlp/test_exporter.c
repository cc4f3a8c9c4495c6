/* SPDX-License-Identifier: Apache-2.0 */

/* Spans on their way to collectors that answer as each test wants. */

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text/str.h"
#include "otlp/internal.h"
#include "pegboard/log.h"
#include "t.h"

enum { WAIT_S = 30 };

/* ---- fixture: a collector that takes one request on each connection ---- */

struct collector {
    int fd;
    char url[64];
    pthread_t thread;
    atomic_bool is_over;
    atomic_int status; /* that it answers */
    atomic_uint n_requests;
    pthread_mutex_t lock; /* of the following */
    char taken[16384];    /* the beginnings of all requests, one behind the other */
    size_t n_taken;
};

static size_t length_of(const char *request)
{
    const char *field = strstr(request, "Content-Length: ");

    return field ? strtoul(field + strlen("Content-Length: "), NULL, 10) : 0;
}

/* Before it is answered: what the exporter has counted is here. */
static void keep_request(struct collector *c, const char *request, size_t n)
{
    pthread_mutex_lock(&c->lock);
    if (n > sizeof(c->taken) - c->n_taken)
        n = sizeof(c->taken) - c->n_taken;
    memcpy(c->taken + c->n_taken, request, n);
    c->n_taken += n;
    pthread_mutex_unlock(&c->lock);
    atomic_fetch_add(&c->n_requests, 1);
}

static void answer_request(struct collector *c, int fd)
{
    char request[8192] = "";
    char piece[4096];
    const char *end = NULL;
    size_t n_kept = 0;
    size_t n_all = 0;
    ssize_t n = 1;

    while (n > 0 && (!end || n_all < (size_t)(end + 4 - request) + length_of(request))) {
        const size_t space = sizeof(request) - 1 - n_kept;

        n = read(fd, piece, sizeof(piece));
        if (n <= 0)
            break;
        n_all += (size_t)n;
        memcpy(request + n_kept, piece, (size_t)n < space ? (size_t)n : space);
        n_kept += (size_t)n < space ? (size_t)n : space;
        request[n_kept] = '\0';
        end = strstr(request, "\r\n\r\n");
    }
    keep_request(c, request, n_kept);
    snprintf(piece, sizeof(piece), "HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n",
             atomic_load(&c->status));
    (void)!write(fd, piece, strlen(piece));
}

static void *collect(void *user)
{
    struct collector *c = user;

    while (!atomic_load(&c->is_over)) {
        const int fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0)
            continue;
        if (!atomic_load(&c->is_over))
            answer_request(c, fd);
        close(fd);
    }
    return NULL;
}

static void open_collector(struct collector *c, int status)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(at);

    memset(c, 0, sizeof(*c));
    atomic_store(&c->status, status);
    pthread_mutex_init(&c->lock, NULL);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(c->fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(c->fd, 16) == 0);
    CHECK(getsockname(c->fd, (struct sockaddr *)&at, &len) == 0);
    snprintf(c->url, sizeof(c->url), "http://127.0.0.1:%u", ntohs(at.sin_port));
    CHECK(pthread_create(&c->thread, NULL, collect, c) == 0);
}

static void close_collector(struct collector *c)
{
    atomic_store(&c->is_over, true);
    shutdown(c->fd, SHUT_RDWR); /* wakes accept() */
    pthread_join(c->thread, NULL);
    pthread_mutex_destroy(&c->lock);
    close(c->fd);
}

/* ---- fixture: spans ---- */

static struct otlp_exporter *open_exporter(const char *url)
{
    struct otlp_exporter *exporter = NULL;

    CHECK_INT(otlp_exporter_new(
                  &(struct otlp_options){.endpoint = url, .service = "test", .instance = "one"},
                  &exporter, NULL),
              PEG_OK);
    return exporter;
}

static void add_span(struct otlp_exporter *exporter, const char *traceparent, const char *error)
{
    const struct otlp_attribute attributes[] = {{"gen_ai.tool.name", PEG_LIT("say")},
                                                {"empty", PEG_LIT("")}};
    struct otlp_span span;

    CHECK(otlp_span_begin(exporter, peg__str(traceparent), &span));
    otlp_span_end(&span, &(struct otlp_end){.operation = "execute_tool",
                                            .target = PEG_LIT("say"),
                                            .kind = OTLP_SERVER,
                                            .attributes = attributes,
                                            .n_attributes = 2,
                                            .error_type = peg__str(error)});
}

static bool is_reached(struct otlp_exporter *exporter, uint64_t exported, uint64_t dropped,
                       uint64_t failures)
{
    const int64_t until_ns = peg__mono_ns() + WAIT_S * PEG_NS_PER_S;
    struct otlp_counts counts;

    do {
        counts = otlp_exporter_counts(exporter);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    } while ((counts.n_exported < exported || counts.n_dropped < dropped ||
              counts.n_failures < failures) &&
             peg__mono_ns() < until_ns);
    return counts.n_exported >= exported && counts.n_dropped >= dropped &&
           counts.n_failures >= failures;
}

static bool has_bytes(struct collector *c, const char *text)
{
    bool is_there;

    pthread_mutex_lock(&c->lock);
    is_there = memmem(c->taken, c->n_taken, text, strlen(text)) != NULL;
    pthread_mutex_unlock(&c->lock);
    return is_there;
}

/* ---- tests ---- */

TEST(spans_are_sent_by_themselves_with_what_they_have)
{
    struct collector c;
    struct otlp_exporter *exporter;

    open_collector(&c, 200);
    exporter = open_exporter(c.url);

    add_span(exporter, "", "");
    add_span(exporter, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "E_X");

    CHECK(is_reached(exporter, 2, 0, 0));
    CHECK(has_bytes(&c, "POST /v1/traces HTTP/1.1\r\n"));
    CHECK(has_bytes(&c, "application/x-protobuf"));
    CHECK(has_bytes(&c, "execute_tool say") && has_bytes(&c, "service.name"));
    CHECK(has_bytes(&c, "error.type") && has_bytes(&c, "E_X"));
    CHECK(has_bytes(&c, "\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c"));
    CHECK(has_bytes(&c, "\x22\x08\xb7\xad\x6b\x71\x69\x20\x33\x31")); /* its parent */
    CHECK(!has_bytes(&c, "empty"));
    otlp_exporter_free(exporter);
    close_collector(&c);
}

TEST(spans_of_traces_that_are_not_sampled_are_not_sent)
{
    struct collector c;
    struct otlp_exporter *exporter;

    open_collector(&c, 200);
    exporter = open_exporter(c.url);

    add_span(exporter, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", "");
    add_span(exporter, "", "");

    CHECK(is_reached(exporter, 1, 0, 0));
    CHECK(!has_bytes(&c, "\x0a\xf7\x65\x19"));
    otlp_exporter_free(exporter);
    CHECK_INT(atomic_load(&c.n_requests), 1);
    close_collector(&c);
}

TEST(spans_are_sent_again_until_the_collector_takes_them)
{
    struct collector c;
    struct otlp_exporter *exporter;

    open_collector(&c, 503);
    exporter = open_exporter(c.url);
    add_span(exporter, "", "");
    CHECK(is_reached(exporter, 0, 0, 1));

    atomic_store(&c.status, 200);

    CHECK(is_reached(exporter, 1, 0, 1));
    CHECK_INT(otlp_exporter_counts(exporter).n_dropped, 0);
    otlp_exporter_free(exporter);
    close_collector(&c);
}

TEST(spans_that_the_collector_refuses_are_dropped_and_counted)
{
    struct collector c;
    struct otlp_exporter *exporter;

    open_collector(&c, 400);
    exporter = open_exporter(c.url);

    add_span(exporter, "", "");

    CHECK(is_reached(exporter, 0, 1, 1));
    otlp_exporter_free(exporter);
    CHECK_INT(atomic_load(&c.n_requests), 1);
    close_collector(&c);
}

/* ---- the log ---- */

struct logged {
    atomic_int n_warnings;
    atomic_int n_infos;
    atomic_bool has_status;
};

static void keep_logged(peg_log_level level, const char *code, const char *message, void *user)
{
    struct logged *logged = user;

    if (strcmp(code, "E_OTLP") != 0)
        return;
    atomic_fetch_add(level == PEG_LOG_WARN ? &logged->n_warnings : &logged->n_infos, 1);
    if (strstr(message, "HTTP status 503") || strstr(message, "HTTP status 400"))
        atomic_store(&logged->has_status, true);
}

static void check_log_of(int status, uint64_t dropped, uint64_t failures)
{
    struct logged logged = {.n_warnings = 0};
    struct collector c;
    struct otlp_exporter *exporter;

    CHECK_INT(peg_log_set(keep_logged, PEG_LOG_INFO, &logged), PEG_OK);
    open_collector(&c, status);
    exporter = open_exporter(c.url);
    add_span(exporter, "", "");
    CHECK(is_reached(exporter, 0, dropped, failures));
    CHECK_INT(atomic_load(&logged.n_warnings), 1);
    CHECK_INT(atomic_load(&logged.n_infos), 0);
    CHECK(atomic_load(&logged.has_status));

    atomic_store(&c.status, 200);
    if (dropped)
        add_span(exporter, "", "");

    CHECK(is_reached(exporter, 1, dropped, failures));
    otlp_exporter_free(exporter);
    CHECK_INT(atomic_load(&logged.n_warnings), 1);
    CHECK_INT(atomic_load(&logged.n_infos), 1);
    CHECK_INT(peg_log_set(NULL, PEG_LOG_INFO, NULL), PEG_OK);
    close_collector(&c);
}

TEST(log_has_one_line_when_sending_fails_and_one_when_it_works_again)
{
    check_log_of(503, 0, 2);
}

TEST(log_has_one_line_when_spans_are_refused_and_one_when_they_are_not)
{
    check_log_of(400, 1, 1);
}

TEST(spans_that_wait_are_sent_when_the_exporter_ends)
{
    struct collector c;
    struct otlp_exporter *exporter;

    open_collector(&c, 200);
    exporter = open_exporter(c.url);
    add_span(exporter, "", "");

    otlp_exporter_free(exporter);

    /* What is sent arrives, however late the collector reads it. */
    for (int64_t until_ns = peg__mono_ns() + WAIT_S * PEG_NS_PER_S;
         !atomic_load(&c.n_requests) && peg__mono_ns() < until_ns;)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    CHECK_INT(atomic_load(&c.n_requests), 1);
    CHECK(has_bytes(&c, "execute_tool say"));
    close_collector(&c);
}

/* A span of these has more than 80 bytes. */
TEST(spans_beyond_what_may_wait_are_dropped_and_counted)
{
    enum { SPANS = 4 * PEG_LIMIT_OTLP_QUEUE_BYTES / 100 };
    struct collector c;
    struct otlp_exporter *exporter;
    struct otlp_counts counts;

    open_collector(&c, 503);
    exporter = open_exporter(c.url);

    for (int i = 0; i < SPANS; i++)
        add_span(exporter, "", "");

    /* What is being sent, and what waits, are two times the limit: three eighths are left. */
    counts = otlp_exporter_counts(exporter);
    CHECK(counts.n_dropped >= SPANS * 3 / 8 && counts.n_dropped < SPANS);
    CHECK_INT(counts.n_exported, 0);
    otlp_exporter_free(exporter);
    close_collector(&c);
}

TEST(exporter_refuses_a_ratio_above_one)
{
    struct otlp_exporter *exporter = NULL;
    peg_error error;

    CHECK_INT(otlp_exporter_new(&(struct otlp_options){.endpoint = "http://localhost:1",
                                                       .service = "test",
                                                       .sample = 1.5},
                                &exporter, &error),
              PEG_EINVAL);

    CHECK_STR(peg__str(error.code), "E_OTLP");
}

TORTURE(exporter_survives_any_allocation_failure)
{
    struct otlp_exporter *exporter = NULL;
    peg_status status = otlp_exporter_new(&(struct otlp_options){.endpoint = "http://127.0.0.1:1",
                                                                 .service = "test",
                                                                 .instance = "one"},
                                          &exporter, NULL);

    if (!status) {
        add_span(exporter, "", "");
        otlp_exporter_free(exporter);
    }
    return status;
}
