/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clients that take their time, by the hundred and by the thousand: connections that say nothing,
 * say it byte by byte, or stop in the middle of TLS. Each costs little, those that never begin are
 * closed, and the neighbour does not notice.
 */

#include "t.h"

#include <openssl/ssl.h>
#include <sys/resource.h>

#include "grpc/battle.h"
#include "grpc/raw.h"
#include "net/certs.h"

enum { MAX_SOCKETS = 5000, CLOSED_MS = 60000 };

static struct battle battle;

/* Sockets that are opened, and how each begins. */
struct crowd {
    unsigned port;
    unsigned n;
    peg_str first; /* sent whole */
    peg_str rest;  /* then byte by byte; may be empty */
    bool ends;     /* the server closes all of them, sooner or later */
    unsigned n_opened;
    unsigned n_closed;
    int fds[MAX_SOCKETS];
};

static struct crowd crowd;

static bool may_open(rlim_t n)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return false;
    if (limit.rlim_cur >= n)
        return true;
    limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= n;
}

static bool is_closed(int fd)
{
    char bytes[4096];
    ssize_t n;

    do
        n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    while (n > 0);
    return n == 0 || (errno != EAGAIN && errno != EINTR);
}

static void open_crowd(struct crowd *c)
{
    for (unsigned i = 0; i < c->n; i++) {
        c->fds[i] = raw_connect(c->port);
        if (c->fds[i] < 0)
            break;
        c->n_opened++;
        if (c->first.len > 0)
            (void)!send(c->fds[i], c->first.ptr, c->first.len, MSG_NOSIGNAL);
    }
}

/* Until every one was closed, or for the time that it takes to say the rest. */
static void trickle(struct crowd *c)
{
    const int64_t until = raw_now_ms() + (c->ends ? CLOSED_MS : 1000);

    for (size_t at = 0; raw_now_ms() < until && c->n_closed < c->n_opened; at++) {
        if (!c->ends && at >= c->rest.len)
            break;
        for (unsigned i = 0; i < c->n_opened; i++) {
            if (c->fds[i] < 0)
                continue;
            if (at < c->rest.len)
                (void)!send(c->fds[i], c->rest.ptr + at, 1, MSG_NOSIGNAL);
            if (!is_closed(c->fds[i]))
                continue;
            close(c->fds[i]);
            c->fds[i] = -1;
            c->n_closed++;
        }
        usleep(2000);
    }
}

static void be_slow(void *user, unsigned number)
{
    struct crowd *c = user;

    (void)number;
    c->n_opened = 0;
    c->n_closed = 0;
    open_crowd(c);
    trickle(c);
    for (unsigned i = 0; i < c->n_opened; i++)
        if (c->fds[i] >= 0)
            close(c->fds[i]);
}

/* Short times, so that a test sees them pass. */
static struct battle_setup hurried(void)
{
    return (struct battle_setup){.server = {.preface_ms = 300}, .open_ms = 300};
}

static void check_crowd(const struct battle_setup *setup, long max_mb)
{
    battle_begin(&battle, setup);
    crowd.port = battle.server.ports[setup->cert_file ? 1 : 0];
    battle_fight(&battle, be_slow, &crowd, 1);
    printf("# %u connections, %u closed by the server\n", crowd.n_opened, crowd.n_closed);
    battle_end(&battle, max_mb);
    CHECK_INT(crowd.n_opened, crowd.n);
    if (crowd.ends)
        CHECK_INT(crowd.n_closed, crowd.n);
}

/* ---- slow beginnings ---------------------------------------------------------------------------
 */

TEST(connections_that_say_nothing_are_closed)
{
    const struct battle_setup setup = hurried();

    crowd = (struct crowd){.n = 200, .ends = true};
    check_crowd(&setup, 16);
}

TEST(connections_that_begin_and_stop_are_closed)
{
    const struct battle_setup setup = hurried();

    crowd = (struct crowd){.n = 200, .first = peg__str("PRI * HTTP/2.0\r\n"), .ends = true};
    check_crowd(&setup, 16);
}

/* Byte by byte, and the last one never: what comes now and then does not keep it. */
TEST(a_preface_that_comes_byte_by_byte_is_not_waited_for)
{
    static char slow[20000] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const struct battle_setup setup = hurried();

    memcpy(slow + 24, "\0\x3f\xff\4\0\0\0\0\0", 9); /* SETTINGS of 16 KB */
    crowd = (struct crowd){.n = 100, .rest = peg__strn(slow, sizeof(slow)), .ends = true};
    check_crowd(&setup, 16);
}

static peg_str begun_headers(struct peg__buf *out)
{
    raw_hello(out);
    raw_head(out, 16000, RAW_HEADERS, RAW_END_HEADERS, 1);
    return peg__buf_view(out);
}

TEST(headers_that_come_byte_by_byte_cost_little)
{
    const struct battle_setup setup = hurried();
    struct peg__buf first = PEG__BUF(1000);
    struct peg__buf rest = PEG__BUF(10000);

    raw_fields(&rest, "/b.B/Echo");
    crowd = (struct crowd){.n = 500, .first = begun_headers(&first), .rest = peg__buf_view(&rest)};
    check_crowd(&setup, 32);
    peg__buf_free(&first);
    peg__buf_free(&rest);
}

TEST(http1_that_comes_byte_by_byte_costs_little)
{
    const struct battle_setup setup = hurried();

    crowd = (struct crowd){.n = 500,
                           .first = peg__str("GET /metrics HT"),
                           .rest = peg__str("TP/1.1\r\nHost: a\r\nX-A: b\r\nX-B: ccccccccc")};
    check_crowd(&setup, 32);
}

/* Slow is no crime: a call that comes byte by byte is answered. */
TEST(a_call_that_comes_byte_by_byte_is_answered)
{
    static struct raw raw;
    struct peg__buf bytes = PEG__BUF(10000);

    battle_begin(&battle, NULL);
    CHECK(raw_open(&raw, battle.server.ports[0]));
    raw_hello(&bytes);
    raw_call(&bytes, 1, "/b.B/Echo", "hello");
    for (size_t i = 0; i < bytes.len; i++) {
        peg__buf_putc(&raw.out, bytes.ptr[i]);
        CHECK(raw_send(&raw));
    }
    while (raw.n_ended == 0 && raw_read(&raw, CLOSED_MS))
        ;
    CHECK_INT(raw.n_ended, 1);
    CHECK_INT(raw.n_data_bytes, 10);
    raw_close(&raw);
    peg__buf_free(&bytes);
    battle_measure(&battle, &battle.stormy, 100);
    battle_end(&battle, 16);
}

/* ---- connections that are idle -----------------------------------------------------------------
 */

/* What the server has taken for them while they all stand. */
static void tell_each(const char *what, unsigned n)
{
    const long kb = battle_memory_kb(&battle, "VmRSS:") - battle.rss_before_kb;

    printf("# %u idle connections%s: %ld KB, %.1f KB each\n", n, what, kb, (double)kb / n);
}

static unsigned n_greeted(struct crowd *c)
{
    unsigned n = 0;

    for (unsigned i = 0; i < c->n_opened; i++) {
        struct pollfd fd = {.fd = c->fds[i], .events = POLLIN};

        n += poll(&fd, 1, CLOSED_MS) == 1; /* the server's SETTINGS have come */
    }
    return n;
}

static void be_idle(void *user, unsigned number)
{
    struct crowd *c = user;

    (void)number;
    c->n_opened = 0;
    open_crowd(c);
    c->n_closed = c->n_opened - n_greeted(c);
    tell_each("", c->n_opened);
    usleep(200000); /* the neighbour's time, not the test's */
    for (unsigned i = 0; i < c->n_opened; i++)
        close(c->fds[i]);
}

TEST(five_thousand_idle_connections_cost_little)
{
    struct peg__buf first = PEG__BUF(1000);

    if (!may_open(MAX_SOCKETS + 200))
        SKIP("this process may not open 5,200 files (ulimit -n)");
    raw_hello(&first);
    crowd = (struct crowd){.n = MAX_SOCKETS, .first = peg__buf_view(&first)};
    battle_begin(&battle, NULL);
    crowd.port = battle.server.ports[0];
    battle_fight(&battle, be_idle, &crowd, 1);
    battle_end(&battle, 96);
    CHECK_INT(crowd.n_opened, MAX_SOCKETS);
    CHECK_INT(crowd.n_closed, 0);
    peg__buf_free(&first);
}

/* ---- TLS ----------------------------------------------------------------------------------------
 */

static struct certs certs;

static struct battle_setup with_tls(int64_t ms)
{
    return (struct battle_setup){.server = {.preface_ms = ms},
                                 .open_ms = ms,
                                 .cert_file = certs.server_cert,
                                 .key_file = certs.server_key};
}

static SSL_CTX *new_client(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());

    CERTS_MUST(context);
    SSL_CTX_set_alpn_protos(context, (const unsigned char *)"\2h2", 3);
    return context;
}

static void be_idle_with_tls(void *user, unsigned number)
{
    struct crowd *c = user;
    SSL_CTX *context = new_client();
    SSL **sessions = calloc(c->n, sizeof(*sessions));
    char byte;

    (void)number;
    c->n_opened = 0;
    for (unsigned i = 0; sessions && i < c->n; i++) {
        const int fd = raw_connect(c->port);

        sessions[i] = SSL_new(context);
        CERTS_MUST(sessions[i] && SSL_set_fd(sessions[i], fd) == 1);
        c->fds[i] = fd;
        if (SSL_connect(sessions[i]) == 1 &&
            SSL_write(sessions[i], c->first.ptr, (int)c->first.len) > 0 &&
            SSL_read(sessions[i], &byte, 1) == 1)
            c->n_opened++;
    }
    tell_each(" with TLS", c->n_opened);
    for (unsigned i = 0; sessions && i < c->n; i++) {
        SSL_free(sessions[i]);
        close(c->fds[i]);
    }
    free(sessions);
    SSL_CTX_free(context);
}

TEST(idle_connections_with_tls_cost_little)
{
    struct peg__buf first = PEG__BUF(1000);
    struct battle_setup setup;

    certs_make(&certs);
    setup = with_tls(0);
    raw_hello(&first);
    crowd = (struct crowd){.n = 500, .first = peg__buf_view(&first)};
    battle_begin(&battle, &setup);
    crowd.port = battle.server.ports[1];
    battle_fight(&battle, be_idle_with_tls, &crowd, 1);
    battle_end(&battle, 48);
    CHECK_INT(crowd.n_opened, 500);
    peg__buf_free(&first);
    certs_remove(&certs);
}

/* The first flight of a client, as OpenSSL writes it. */
static void put_client_hello(struct peg__buf *out)
{
    SSL_CTX *context = new_client();
    SSL *ssl = SSL_new(context);
    char *bytes;
    long len;

    CERTS_MUST(ssl);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_connect(ssl);
    len = BIO_get_mem_data(SSL_get_wbio(ssl), &bytes);
    peg__buf_add(out, bytes, (size_t)len);
    SSL_free(ssl);
    SSL_CTX_free(context);
}

/* A handshake that stops: before it begins, within the first message, after it. */
static void check_half_open(size_t part, size_t of)
{
    struct peg__buf hello = PEG__BUF(10000);
    struct battle_setup setup;

    certs_make(&certs);
    setup = with_tls(400);
    put_client_hello(&hello);
    crowd = (struct crowd){
        .n = 300, .first = peg__strn(hello.ptr, hello.len * part / of), .ends = true};
    check_crowd(&setup, 48);
    peg__buf_free(&hello);
    certs_remove(&certs);
}

TEST(tls_that_does_not_begin_is_closed)
{
    check_half_open(0, 1);
}

TEST(tls_that_stops_within_its_hello_is_closed)
{
    check_half_open(1, 2);
}

TEST(tls_that_stops_after_its_hello_is_closed)
{
    check_half_open(1, 1);
}

/* What is no TLS at all, or says that it is long. */
TEST(what_is_no_tls_is_closed)
{
    static char bytes[17000];
    const peg_str wrong[] = {
        peg__str("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        peg__str("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        peg__strn("\x16\x03\x01\xff\xff\x01\xff\xff\xff\x03\x03", 11),
        peg__strn("\x15\x03\x01\0\2\2\50\x15\x03\x01\0\2\2\50", 14),
        peg__strn(bytes, sizeof(bytes)),
    };
    struct battle_setup setup;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7919 >> 3);
    certs_make(&certs);
    setup = with_tls(400);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        crowd = (struct crowd){.n = 100, .first = wrong[i], .ends = true};
        check_crowd(&setup, 48);
    }
    certs_remove(&certs);
}
