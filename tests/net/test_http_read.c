/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "net/http/internal.h"

static struct net_http_head head;

static int read_bytes(const char *bytes, size_t len, size_t *ret_used)
{
    /* Its own memory, so that a sanitizer sees a look beyond the end. */
    char *copy = malloc(len + 1);
    int status;

    memcpy(copy, bytes, len);
    copy = realloc(copy, len ? len : 1);
    *ret_used = 77;
    status = net_http_head_read(peg__strn(copy, len), &head, ret_used);
    free(copy);
    return status;
}

static int read_text(const char *text, size_t *ret_used)
{
    return read_bytes(text, strlen(text), ret_used);
}

/* ---- good requests ------------------------------------------------------------------------ */

TEST(http_head_reads_a_request_with_its_parts)
{
    static const char text[] = "GET /metrics?name=a%20b&x HTTP/1.1\r\n"
                               "Host: localhost:9090\r\n"
                               "User-Agent: \t probe/1.0 (\xc3\xa4) \t\r\n"
                               "Accept:*/*\r\n"
                               "Empty:\r\n"
                               "\r\nGET";
    size_t used;

    CHECK_INT(net_http_head_read(peg__strn(text, sizeof(text) - 1), &head, &used), 0);
    CHECK_INT(used, sizeof(text) - 4);
    CHECK_STR(head.method, "GET");
    CHECK_STR(head.target, "/metrics?name=a%20b&x");
    CHECK(head.keeps_alive);
    CHECK_INT(head.n_fields, 4);
    CHECK_STR(head.fields[0].value, "localhost:9090");
    CHECK_STR(head.fields[1].value, "probe/1.0 (\xc3\xa4)");
    CHECK_STR(head.fields[2].name, "Accept");
    CHECK_STR(head.fields[2].value, "*/*");
    CHECK_STR(head.fields[3].value, "");
    CHECK(head.content_length == -1 && !head.is_chunked && !head.awaits_continue);
}

static const char *const good[] = {
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "HEAD /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.0\r\n\r\n",
    "GET / HTTP/1.0\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost:\r\n\r\n",
    "GET / HTTP/1.1\r\nhOST: [::1]:80\r\n\r\n",
    "GET //x//y?a=[]&b=%7E;c=!$'()*+,:@ HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /? HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /?a?b HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0012\r\n\r\n",
    "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999999999999\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tChunked \r\n\r\n",
    "get / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nX: 2\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n!#$%&'*+-.^_`|~09: x\r\n\r\n",
};

TEST(http_head_waits_at_every_byte_of_a_good_request_but_the_last)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        const size_t len = strlen(good[i]);
        size_t used;

        for (size_t n = 0; n < len; n++) {
            if (read_bytes(good[i], n, &used) != 0 || used != 0)
                T_FAIL("request %zu is not waited for at byte %zu", i, n);
        }
        if (read_bytes(good[i], len, &used) != 0 || used != len)
            T_FAIL("request %zu is not taken", i);
    }
}

/* ---- bad ones ----------------------------------------------------------------------------- */

struct bad {
    int status;
    const char *text;
};

#define START "GET / HTTP/1.1\r\n"
#define HOST "Host: a\r\n"

static const struct bad bad[] = {
    /* The line of the head. */
    {400, "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, " GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "GET /  HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"},
    {400, "GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "GET / x HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "GET /\r\nHost: a\r\n\r\n"},
    {400, "GET /\r\n"},
    {400, "GET\r\n"},
    {400, "G(T / HTTP/1.1\r\n"},
    {400, "G\xc3T / HTTP/1.1\r\n"},
    {400, "GET / http/1.1\r\n"},
    {400, "GET / HTTP/1.\r\n"},
    {400, "GET / HTTP/11\r\n"},
    {400, "GET / HTTP/1.10\r\n"},
    {400, "GET / HTTP/01.1\r\n"},
    {400, "GET / HTTP/a.1\r\n"},
    {400, "GET / HTTP/1,1\r\n"},
    {400, "GET / HTTP/1.x\r\n"},
    {505, "GET / HTTP/1.2\r\n"},
    {505, "GET / HTTP/0.9\r\n"},
    {505, "PRI * HTTP/2.0\r\n"},
    {505, "GET / HTTP/3.0\r\n"},
    {400, "CONNECT a:443 HTTP/1.1\r\n"},
    {400, "OPTIONS * HTTP/1.1\r\n"},
    {400, "GET * HTTP/1.1\r\n"},
    {400, "GET metrics HTTP/1.1\r\n"},
    {400, "GET http://a/ HTTP/1.1\r\n"},
    {400, "GET a:443 HTTP/1.1\r\n"},
    {400, "GET ?x HTTP/1.1\r\n"},
    {400, "GET /#x HTTP/1.1\r\n"},
    {400, "GET /% HTTP/1.1\r\n"},
    {400, "GET /%2 HTTP/1.1\r\n"},
    {400, "GET /%2g HTTP/1.1\r\n"},
    {400, "GET /\\x HTTP/1.1\r\n"},
    {400, "GET /\"x HTTP/1.1\r\n"},
    {400, "GET /<x> HTTP/1.1\r\n"},
    {400, "GET /\xc3\xa4 HTTP/1.1\r\n"},
    {400, "GET /\tx HTTP/1.1\r\n"},
    {400, "GET /\x7f HTTP/1.1\r\n"},
    {400, "GET /\x01"},
    /* Ends of lines. */
    {400, "GET / HTTP/1.1\nHost: a\n\n"},
    {400, "GET / HTTP/1.1\r\nHost: a\n\r\n"},
    {400, "GET / HTTP/1.1\rHost: a\r\r"},
    {400, START HOST "X: a\rb\r\n\r\n"},
    {400, START HOST "X: a\r\r\n\r\n"},
    {400, START HOST "\r\r\n"},
    {400, START HOST "\n"},
    /* Fields. */
    {400, START " Host: a\r\n\r\n"},
    {400, START "Host : a\r\n\r\n"},
    {400, START "Host\t: a\r\n\r\n"},
    {400, START HOST "X: a\r\n folded\r\n\r\n"},
    {400, START HOST "X: a\r\n\tfolded: x\r\n\r\n"},
    {400, START HOST "no colon\r\n\r\n"},
    {400, START HOST ": no name\r\n\r\n"},
    {400, START HOST "a b: c\r\n\r\n"},
    {400, START HOST "a\xc3: c\r\n\r\n"},
    {400, START HOST "a(b): c\r\n\r\n"},
    {400, START HOST "X: \x01\r\n\r\n"},
    {400, START HOST "X: \x7f\r\n\r\n"},
    {400, START HOST "X: \x0b\r\n\r\n"},
    /* Host. */
    {400, START "\r\n"},
    {400, START HOST HOST "\r\n"},
    {400, START HOST "hOsT: b\r\n\r\n"},
    {400, "GET / HTTP/1.0\r\n" HOST HOST "\r\n"},
    {400, START "Host: a, b\r\n\r\n"},
    {400, START "Host: a b\r\n\r\n"},
    {400, START "Host: a/b\r\n\r\n"},
    {400, START "Host: u@a\r\n\r\n"},
    /* Bodies, and where readers disagree about their length. */
    {413, START HOST "Content-Length: 99999999999999999999999999\r\n\r\n"},
    {413, START HOST "Content-Length: 18446744073709551616\r\n\r\n"},
    {413, START HOST "Content-Length: 1000000000000000000\r\n\r\n"},
    {400, START HOST "Content-Length: 1\t\x0b\r\n\r\n"},
    {400, START HOST "Content-Length: 1e2\r\n\r\n"},
    {501, START HOST "Transfer-Encoding: gzip, chunked\r\n\r\n"},
    {501, START HOST "Transfer-Encoding: chunked, identity\r\n\r\n"},
    {501, START HOST "Transfer-Encoding: chunked;q=1\r\n\r\n"},
    {400, START HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {400, START HOST "Transfer-Encoding:\x0b"
                     "chunked\r\n\r\n"},
    {400, START HOST "X: a\nTransfer-Encoding: chunked\r\n\r\n"},
    {400, START HOST "Content-Length:\r\n\r\n"},
    {400, START HOST "Content-Length: +0\r\n\r\n"},
    {400, START HOST "Content-Length: -0\r\n\r\n"},
    {400, START HOST "Content-Length: 0x0\r\n\r\n"},
    {400, START HOST "Content-Length: 0, 0\r\n\r\n"},
    {400, START HOST "Content-Length: 0 0\r\n\r\n"},
    {400, START HOST "Content-Length: 0\r\nContent-Length: 0\r\n\r\n"},
    {400, START HOST "Content-Length: 0\r\ncontent-length: 5\r\n\r\nGET /"},
    {501, START HOST "Transfer-Encoding: identity\r\n\r\n"},
    {501, START HOST "transfer-encoding:\r\n\r\n"},
    {501, START HOST "Transfer-Encoding: xchunked\r\n\r\n"},
    {400, START HOST "Transfer-Encoding : chunked\r\n\r\n"},
    {400, START HOST "Transfer-Encoding\r\n : chunked\r\n\r\n"},
    {400, START HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"},
    {400, START HOST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n"},
    {400, START HOST "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG"},
    {400, "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
    /* The rest. */
    {417, START HOST "Expect: 200-ok\r\n\r\n"},
    {417, START HOST "Expect:\r\n\r\n"},
    {417, START HOST "Expect: 100-continue, x\r\n\r\n"},
    {400, START HOST "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n"},
};

TEST(http_head_refuses_what_is_unclear)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        size_t used;
        const int status = read_text(bad[i].text, &used);

        if (status != bad[i].status)
            T_FAIL("bad request %zu gives %d, not %d: %s", i, status, bad[i].status, bad[i].text);
        CHECK_INT(used, 77);
    }
}

/* The first bytes are waited for or refused for the same reason, never taken. */
TEST(http_head_refuses_the_start_of_a_bad_request_for_the_same_reason)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        for (size_t n = 0; n < strlen(bad[i].text); n++) {
            size_t used;
            const int status = read_bytes(bad[i].text, n, &used);

            if (status ? status != bad[i].status : used != 0)
                T_FAIL("bad request %zu gives %d after %zu bytes", i, status, n);
        }
    }
}

TEST(http_head_refuses_a_nul_wherever_it_is)
{
    const char *text = good[6];
    const size_t len = strlen(text);
    char copy[128];
    size_t used;

    for (size_t i = 0; i < len; i++) {
        memcpy(copy, text, len);
        copy[i] = '\0';
        CHECK_INT(read_bytes(copy, len, &used), 400);
    }
}

/* ---- how long it lives -------------------------------------------------------------------- */

static bool keeps_alive(const char *version, const char *fields)
{
    char text[256];
    size_t used;

    snprintf(text, sizeof(text), "GET / HTTP/%s\r\nHost: a\r\n%s\r\n", version, fields);
    CHECK_INT(read_text(text, &used), 0);
    return head.keeps_alive;
}

TEST(http_head_keeps_a_connection_as_the_version_and_the_client_say)
{
    CHECK(keeps_alive("1.1", ""));
    CHECK(keeps_alive("1.1", "Connection: keep-alive\r\n"));
    CHECK(!keeps_alive("1.1", "Connection: close\r\n"));
    CHECK(!keeps_alive("1.1", "Connection: Upgrade , CLOSE\r\n"));
    CHECK(!keeps_alive("1.1", "Connection: close,x\r\n"));
    CHECK(!keeps_alive("1.1", "Connection: x\r\nConnection: close\r\n"));
    CHECK(keeps_alive("1.1", "Connection: closed\r\n"));
    CHECK(!keeps_alive("1.0", ""));
    CHECK(keeps_alive("1.0", "Connection: Keep-Alive\r\n"));
    CHECK(!keeps_alive("1.0", "Connection: keep-alive, close\r\n"));
}

TEST(http_head_says_where_its_body_ends)
{
    size_t used;

    CHECK_INT(read_text("POST / HTTP/1.1\r\n" HOST "Content-Length: 0012\r\n\r\n", &used), 0);
    CHECK(head.content_length == 12 && !head.is_chunked);
    CHECK_INT(read_text("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", &used), 0);
    CHECK(head.content_length == -1 && head.is_chunked);
    CHECK_INT(read_text("POST / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\n\r\n", &used), 0);
    CHECK(head.awaits_continue);
    CHECK_INT(read_text("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n", &used), 0);
    CHECK(!head.awaits_continue);
}

/* ---- limits ------------------------------------------------------------------------------- */

/* A head of exactly so many bytes. */
static char *head_of(size_t len)
{
    static char text[PEG_LIMIT_NET_HTTP_HEAD_BYTES * 2];
    const size_t start = (size_t)snprintf(text, sizeof(text), START HOST "X: ");

    memset(text + start, 'x', len - start - 4);
    memcpy(text + len - 4, "\r\n\r\n", 5);
    return text;
}

TEST(http_head_takes_a_head_up_to_the_limit)
{
    size_t used;

    CHECK_INT(read_text(head_of(PEG_LIMIT_NET_HTTP_HEAD_BYTES), &used), 0);
    CHECK_INT(used, PEG_LIMIT_NET_HTTP_HEAD_BYTES);
    CHECK_INT(read_text(head_of(PEG_LIMIT_NET_HTTP_HEAD_BYTES + 1), &used), 431);
    CHECK_INT(read_bytes(head_of(PEG_LIMIT_NET_HTTP_HEAD_BYTES + 1),
                         PEG_LIMIT_NET_HTTP_HEAD_BYTES - 1, &used),
              0);
    CHECK_INT(used, 0);
    CHECK_INT(read_bytes(head_of(PEG_LIMIT_NET_HTTP_HEAD_BYTES + 1), PEG_LIMIT_NET_HTTP_HEAD_BYTES,
                         &used),
              431);
}

TEST(http_head_takes_as_many_fields_as_there_is_room_for)
{
    for (int n = NET_HTTP_MAX_FIELDS; n <= NET_HTTP_MAX_FIELDS + 1; n++) {
        char text[4096];
        size_t len = (size_t)snprintf(text, sizeof(text), START HOST);
        size_t used;

        for (int i = 1; i < n; i++)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "X%d: y\r\n", i);
        snprintf(text + len, sizeof(text) - len, "\r\n");
        CHECK_INT(read_text(text, &used), n == NET_HTTP_MAX_FIELDS ? 0 : 431);
    }
}

TEST(http_head_reads_requests_one_after_the_other)
{
    static const char text[] =
        "GET /a HTTP/1.1\r\nHost: a\r\n\r\nHEAD /b HTTP/1.1\r\nHost: b\r\n\r\n";
    size_t used;
    size_t more;

    CHECK_INT(net_http_head_read(peg__strn(text, sizeof(text) - 1), &head, &used), 0);
    CHECK_STR(head.target, "/a");
    CHECK_INT(net_http_head_read(peg__strn(text + used, sizeof(text) - 1 - used), &head, &more), 0);
    CHECK_STR(head.target, "/b");
    CHECK_STR(head.method, "HEAD");
    CHECK_INT(used + more, sizeof(text) - 1);
}
