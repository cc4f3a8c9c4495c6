/* SPDX-License-Identifier: Apache-2.0 */

/* Peers that are OpenSSL's own, with other ideas than ours, and peers that are none at all. */

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "tls_pair.h"

/* ---- a peer of OpenSSL's ------------------------------------------------------------------ */

struct raw {
    SSL_CTX *ctx;
    SSL *ssl;
    BIO *in;
    BIO *out;
};

static void make_raw(struct raw *raw, bool is_client)
{
    raw->ctx = SSL_CTX_new(is_client ? TLS_client_method() : TLS_server_method());
    CERTS_MUST(raw->ctx);
    if (!is_client) {
        CERTS_MUST(SSL_CTX_use_certificate_chain_file(raw->ctx, certs.server_cert) == 1);
        CERTS_MUST(SSL_CTX_use_PrivateKey_file(raw->ctx, certs.server_key, SSL_FILETYPE_PEM) == 1);
    }
}

static void begin_raw(struct raw *raw, bool is_client)
{
    raw->ssl = SSL_new(raw->ctx);
    raw->in = BIO_new(BIO_s_mem());
    raw->out = BIO_new(BIO_s_mem());
    CERTS_MUST(raw->ssl && raw->in && raw->out);
    SSL_set_bio(raw->ssl, raw->in, raw->out);
    if (is_client)
        SSL_set_connect_state(raw->ssl);
    else
        SSL_set_accept_state(raw->ssl);
}

static void end_raw(struct raw *raw)
{
    SSL_free(raw->ssl);
    SSL_CTX_free(raw->ctx);
    ERR_clear_error();
}

/* To and fro until nothing moves; what is read is thrown away. The first failure of ours. */
static peg_status talk(struct raw *raw, struct net_tls *tls, peg_error *error)
{
    peg_status status = PEG_OK;
    char bytes[4096];

    for (;;) {
        const peg_str wire = net_tls_wire(tls);
        int n;
        size_t n_read;

        BIO_write(raw->in, wire.ptr, (int)wire.len);
        net_tls_took(tls, wire.len);
        if (!SSL_is_init_finished(raw->ssl))
            SSL_do_handshake(raw->ssl);
        else
            SSL_read(raw->ssl, bytes, sizeof(bytes));
        n = BIO_read(raw->out, bytes, sizeof(bytes));
        if (n <= 0)
            return status;
        if (!status)
            status = net_tls_feed(tls, (const uint8_t *)bytes, (size_t)n, error);
        if (!status)
            status = net_tls_read(tls, (uint8_t *)bytes, sizeof(bytes), &n_read, error);
    }
}

static struct net_tls *new_server(bool allows_http1)
{
    struct net_tls_options options = server_options();
    struct net_tls_config *config;
    struct net_tls *tls = NULL;

    options.allows_http1 = allows_http1;
    config = new_config(&options);
    CHECK_INT(net_tls_new(config, NULL, &tls, NULL), PEG_OK);
    net_tls_config_unref(config);
    return tls;
}

static struct net_tls *new_client(void)
{
    const struct net_tls_options options = client_options();
    struct net_tls_config *config = new_config(&options);
    struct net_tls *tls = NULL;

    CHECK_INT(net_tls_new(config, "localhost", &tls, NULL), PEG_OK);
    CHECK_INT(net_tls_start(tls, NULL), PEG_OK);
    net_tls_config_unref(config);
    return tls;
}

/* ---- ALPN --------------------------------------------------------------------------------- */

/* What our server makes of a client's offer; NULL: it is refused. */
static void check_offer(const char *offer, bool allows_http1, const char *expected)
{
    struct net_tls *tls = new_server(allows_http1);
    struct raw raw;
    peg_error error;
    peg_status status;

    make_raw(&raw, true);
    if (offer)
        SSL_CTX_set_alpn_protos(raw.ctx, (const unsigned char *)offer, (unsigned)strlen(offer));
    begin_raw(&raw, true);
    status = talk(&raw, tls, &error);
    CHECK_INT(status, expected ? PEG_OK : PEG_EIO);
    CHECK_INT(net_tls_is_open(tls), expected != NULL);
    if (expected)
        CHECK_STR(net_tls_alpn(tls), expected);
    else
        CHECK(strstr(error.message, "no application protocol"));
    net_tls_free(tls);
    end_raw(&raw);
}

TEST(tls_server_picks_h2_then_http1_and_refuses_all_else)
{
    check_offer("\x02h2", false, "h2");
    check_offer("\x08http/1.1\x02h2", false, "h2");
    check_offer("\x08http/1.1\x02h2", true, "h2");
    check_offer("\x08http/1.1", true, "http/1.1");
    check_offer("\x08http/1.1", false, NULL);
    check_offer("\x08http/1.0\x06spdy/3", true, NULL);
    check_offer("\x03h2c\x02h3", true, NULL);
    check_offer(NULL, true, "");
    check_offer(NULL, false, "");
}

static int pick_something_else(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
                               const unsigned char *offered, unsigned len, void *user)
{
    (void)ssl;
    (void)offered;
    (void)len;
    *ret = user;
    *ret_len = (unsigned char)strlen(user);
    return SSL_TLSEXT_ERR_OK;
}

TEST(tls_client_refuses_a_server_that_picks_another_protocol)
{
    static char http1[] = "http/1.1";
    struct net_tls *tls = new_client();
    struct raw raw;
    peg_error error;

    make_raw(&raw, false);
    SSL_CTX_set_alpn_select_cb(raw.ctx, pick_something_else, http1);
    begin_raw(&raw, false);
    CHECK_INT(talk(&raw, tls, &error), PEG_EIO);
    CHECK_STR(peg_cstr(error.code), "E_TLS");
    CHECK(!net_tls_is_open(tls));
    net_tls_free(tls);
    end_raw(&raw);
}

TEST(tls_client_takes_a_server_that_knows_no_alpn)
{
    struct net_tls *tls = new_client();
    struct raw raw;
    peg_error error;

    make_raw(&raw, false);
    begin_raw(&raw, false);
    CHECK_STATUS(talk(&raw, tls, &error), PEG_OK, error);
    CHECK(net_tls_is_open(tls));
    CHECK_STR(net_tls_alpn(tls), "");
    net_tls_free(tls);
    end_raw(&raw);
}

/* ---- versions and ciphers ----------------------------------------------------------------- */

static peg_status talk_as(int version, const char *ciphers, peg_error *ret_error)
{
    struct net_tls *tls = new_server(false);
    struct raw raw;
    peg_status status;

    make_raw(&raw, true);
    SSL_CTX_set_security_level(raw.ctx, 0);
    CERTS_MUST(SSL_CTX_set_min_proto_version(raw.ctx, version));
    CERTS_MUST(SSL_CTX_set_max_proto_version(raw.ctx, version));
    CERTS_MUST(SSL_CTX_set_cipher_list(raw.ctx, ciphers));
    begin_raw(&raw, true);
    status = talk(&raw, tls, ret_error);
    CHECK_INT(net_tls_is_open(tls), status == PEG_OK);
    net_tls_free(tls);
    end_raw(&raw);
    return status;
}

TEST(tls_takes_no_version_before_1_2_and_no_cipher_that_http2_forbids)
{
    peg_error error;

    CHECK_STATUS(talk_as(TLS1_3_VERSION, "ALL", &error), PEG_OK, error);
    CHECK_STATUS(talk_as(TLS1_2_VERSION, "ALL", &error), PEG_OK, error);
    CHECK_INT(talk_as(TLS1_1_VERSION, "ALL", &error), PEG_EIO);
    CHECK(strstr(error.message, "unsupported protocol"));
    CHECK_INT(talk_as(TLS1_2_VERSION, "ECDHE-ECDSA-AES128-SHA", &error), PEG_EIO);
    CHECK(strstr(error.message, "no shared cipher"));
}

TEST(tls_server_does_not_renegotiate)
{
    struct net_tls *tls = new_server(false);
    struct raw raw;
    peg_error error;

    make_raw(&raw, true);
    SSL_CTX_set_max_proto_version(raw.ctx, TLS1_2_VERSION);
    begin_raw(&raw, true);
    CHECK_STATUS(talk(&raw, tls, &error), PEG_OK, error);
    CHECK(SSL_renegotiate(raw.ssl) == 1);
    talk(&raw, tls, &error);
    CHECK(!SSL_is_init_finished(raw.ssl));
    CHECK_INT(net_tls_wire(tls).len, 0);
    net_tls_free(tls);
    end_raw(&raw);
}

TEST(tls_answers_new_keys_and_goes_on)
{
    struct net_tls *tls = new_server(false);
    struct raw raw;
    peg_error error;
    char got[8];
    size_t n;

    make_raw(&raw, true);
    begin_raw(&raw, true);
    CHECK_STATUS(talk(&raw, tls, &error), PEG_OK, error);
    for (int i = 0; i < 20; i++) {
        CHECK(SSL_key_update(raw.ssl, SSL_KEY_UPDATE_REQUESTED) == 1);
        CHECK(SSL_write(raw.ssl, "x", 1) == 1);
        CHECK_STATUS(talk(&raw, tls, &error), PEG_OK, error);
    }
    CHECK_STATUS(net_tls_write(tls, (const uint8_t *)"hello", 5, &error), PEG_OK, error);
    n = net_tls_wire(tls).len;
    BIO_write(raw.in, net_tls_wire(tls).ptr, (int)n);
    net_tls_took(tls, n);
    CHECK_INT(SSL_read(raw.ssl, got, sizeof(got)), 5);
    net_tls_free(tls);
    end_raw(&raw);
}

/* The peer takes nothing, and then asks for answers that nobody had to write. */
TEST(tls_peer_that_takes_nothing_is_lost_at_a_limit)
{
    static uint8_t plain[64 << 10];
    struct net_tls *tls = new_server(false);
    struct raw raw;
    peg_error error;
    peg_status status = PEG_OK;
    char bytes[4096];
    size_t n_read;

    make_raw(&raw, true);
    begin_raw(&raw, true);
    CHECK_STATUS(talk(&raw, tls, &error), PEG_OK, error);
    for (size_t len = 64 << 10; len > 0; len /= 2) {
        while (net_tls_write(tls, plain, len, &error) == PEG_OK)
            continue;
        CHECK_INT(error.status, PEG_ELIMIT);
    }
    for (int i = 0; status == PEG_OK && i < 1000; i++) {
        int n;

        SSL_key_update(raw.ssl, SSL_KEY_UPDATE_REQUESTED);
        CHECK(SSL_write(raw.ssl, "x", 1) == 1);
        n = BIO_read(raw.out, bytes, sizeof(bytes));
        status = net_tls_feed(tls, (const uint8_t *)bytes, (size_t)n, &error);
        if (status == PEG_OK)
            status = net_tls_read(tls, (uint8_t *)bytes, sizeof(bytes), &n_read, &error);
        CHECK(net_tls_wire(tls).len <= PEG_LIMIT_TLS_WIRE_BYTES);
    }
    CHECK_INT(status, PEG_EIO);
    CHECK(strstr(error.message, "did not read"));
    net_tls_free(tls);
    end_raw(&raw);
}

/* ---- what is not TLS ---------------------------------------------------------------------- */

static void check_garbage(const void *bytes, size_t len)
{
    struct net_tls *tls = new_server(false);
    peg_error error = {0};
    peg_error again = {0};
    uint8_t byte;
    size_t n;

    CHECK_INT(net_tls_feed(tls, bytes, len, &error), PEG_EIO);
    CHECK_STR(peg_cstr(error.code), "E_TLS");
    CHECK_INT(net_tls_feed(tls, bytes, len, &again), PEG_EIO);
    CHECK_STR(peg_cstr(again.message), error.message);
    CHECK_INT(net_tls_read(tls, &byte, 1, &n, &again), PEG_EIO);
    CHECK_INT(net_tls_write(tls, &byte, 1, &again), PEG_EIO);
    CHECK_INT(net_tls_start(tls, &again), PEG_EIO);
    net_tls_shutdown(tls);
    CHECK(!net_tls_is_open(tls) && !net_tls_peer_ended(tls));
    net_tls_free(tls);
}

TEST(tls_refuses_what_is_not_tls_once_and_for_all)
{
    static const uint8_t fatal_alert[] = {21, 3, 3, 0, 2, 2, 40};
    static const uint8_t end_at_once[] = {21, 3, 3, 0, 2, 1, 0};
    static const uint8_t huge_record[] = {22, 3, 3, 0xff, 0xff, 1, 0, 0, 1, 0, 0, 0};
    static const uint8_t data_first[] = {23, 3, 3, 0, 1, 'x'};
    static uint8_t zeros[65536];

    check_garbage("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27);
    check_garbage("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    check_garbage(fatal_alert, sizeof(fatal_alert));
    check_garbage(end_at_once, sizeof(end_at_once));
    check_garbage(huge_record, sizeof(huge_record));
    check_garbage(data_first, sizeof(data_first));
    check_garbage(zeros, sizeof(zeros));
}

TEST(tls_makes_no_room_for_a_huge_first_message)
{
    static const uint8_t announced[] = {22, 3, 1, 0x40, 0, 1, 1, 0, 0};
    struct net_tls *tls = new_server(false);
    peg_error error;
    peg_status status = PEG_OK;

    for (size_t i = 0; i < sizeof(announced) && status == PEG_OK; i++)
        status = net_tls_feed(tls, announced + i, 1, &error);
    CHECK_INT(status, PEG_EIO);
    CHECK(strstr(error.message, "first message"));
    net_tls_free(tls);
}

/* A message of the longest size that is allowed, in records of one byte each. */
TEST(tls_handshake_in_too_many_pieces_is_cut_off)
{
    static const uint8_t start[] = {22, 3, 1, 0, 4, 1, 0, 0x3f, 0xff};
    static const uint8_t piece[] = {22, 3, 1, 0, 1, 3};
    struct net_tls *tls = new_server(false);
    size_t n = sizeof(start);
    peg_error error;
    peg_status status = net_tls_feed(tls, start, sizeof(start), &error);

    CHECK_INT(status, PEG_OK);
    for (; status == PEG_OK && n < 2 * PEG_LIMIT_TLS_HANDSHAKE_BYTES; n += sizeof(piece))
        status = net_tls_feed(tls, piece, sizeof(piece), &error);
    CHECK_INT(status, PEG_EIO);
    CHECK(strstr(error.message, "handshake"));
    CHECK(n > PEG_LIMIT_TLS_HANDSHAKE_BYTES && n <= PEG_LIMIT_TLS_HANDSHAKE_BYTES + sizeof(piece));
    net_tls_free(tls);
}

/* Every single byte of a handshake changed, and every length of it: nobody breaks, and nobody is
 * talked into an open connection with bytes that were changed. */
TEST(tls_handshake_with_a_changed_byte_does_not_open)
{
    struct net_tls *first = new_client();
    const peg_str hello = net_tls_wire(first);

    for (size_t i = 0; i < hello.len; i += t_spare()) {
        struct net_tls *tls = new_server(false);
        char changed[2048];

        CHECK(hello.len <= sizeof(changed));
        memcpy(changed, hello.ptr, hello.len);
        changed[i] = (char)(changed[i] ^ 0x55);
        net_tls_feed(tls, (const uint8_t *)changed, hello.len, NULL);
        CHECK(!net_tls_is_open(tls));
        net_tls_free(tls);
    }
    net_tls_free(first);
}

TEST(tls_handshake_that_is_cut_short_just_waits)
{
    struct net_tls *client = new_client();
    const peg_str hello = net_tls_wire(client);

    for (size_t len = 0; len < hello.len; len += t_spare()) {
        struct net_tls *tls = new_server(false);

        CHECK_INT(net_tls_feed(tls, (const uint8_t *)hello.ptr, len, NULL), PEG_OK);
        CHECK(!net_tls_is_open(tls) && !net_tls_peer_ended(tls));
        CHECK_INT(net_tls_wire(tls).len, 0);
        net_tls_free(tls);
    }
    net_tls_free(client);
}

TEST(tls_record_that_was_changed_on_the_way_ends_the_connection)
{
    struct pair pair = {0};
    uint8_t bytes[256];
    uint8_t plain[16];
    peg_str wire;
    size_t n = 7;
    peg_error error;

    open_pair(&pair);
    CHECK_INT(net_tls_write(pair.client, (const uint8_t *)"good", 4, &error), PEG_OK);
    CHECK_INT(net_tls_write(pair.client, (const uint8_t *)"bad", 3, &error), PEG_OK);
    wire = net_tls_wire(pair.client);
    memcpy(bytes, wire.ptr, wire.len);
    bytes[wire.len - 1] ^= 1;
    CHECK_INT(net_tls_feed(pair.server, bytes, wire.len, &error), PEG_OK);
    CHECK_INT(net_tls_read(pair.server, plain, sizeof(plain), &n, &error), PEG_OK);
    CHECK_INT(n, 4);
    CHECK_INT(net_tls_read(pair.server, plain, sizeof(plain), &n, &error), PEG_EIO);
    CHECK_STR(peg_cstr(error.code), "E_TLS");
    CHECK(net_tls_wire(pair.server).len > 0); /* an alert */
    unwire(&pair);
}

/* ---- bounds ------------------------------------------------------------------------------- */

TEST(tls_refuses_more_than_it_holds_unread)
{
    struct pair pair = {0};
    static uint8_t plain[40000];
    static uint8_t got[80000];
    peg_str wire;
    size_t n;
    peg_error error;

    open_pair(&pair);
    CHECK_INT(net_tls_write(pair.client, plain, sizeof(plain), &error), PEG_OK);
    wire = net_tls_wire(pair.client);
    CHECK_INT(net_tls_feed(pair.server, (const uint8_t *)wire.ptr, wire.len, &error), PEG_OK);
    net_tls_took(pair.client, wire.len);
    CHECK_INT(net_tls_write(pair.client, plain, sizeof(plain), &error), PEG_OK);
    wire = net_tls_wire(pair.client);
    CHECK_INT(net_tls_feed(pair.server, (const uint8_t *)wire.ptr, wire.len, &error), PEG_ELIMIT);
    CHECK_STR(peg_cstr(error.code), "E_TLS");

    CHECK_INT(net_tls_read(pair.server, got, sizeof(got), &n, &error), PEG_OK);
    CHECK_INT(n, sizeof(plain));
    CHECK_INT(net_tls_feed(pair.server, (const uint8_t *)wire.ptr, wire.len, &error), PEG_OK);
    CHECK_INT(net_tls_read(pair.server, got, sizeof(got), &n, &error), PEG_OK);
    CHECK_INT(n, sizeof(plain));
    unwire(&pair);
}

TEST(tls_refuses_to_write_more_than_it_holds_for_the_wire)
{
    enum { N = 1 << 20 };
    struct pair pair = {0};
    uint8_t *bytes = calloc(1, N);
    size_t before;
    peg_error error;

    open_pair(&pair);
    CHECK_INT(net_tls_write(pair.client, bytes, N, &error), PEG_OK);
    before = net_tls_wire(pair.client).len;
    CHECK_INT(net_tls_write(pair.client, bytes, N, &error), PEG_ELIMIT);
    CHECK_STR(peg_cstr(error.code), "E_TLS");
    CHECK_INT(net_tls_write(pair.client, bytes, SIZE_MAX, &error), PEG_ELIMIT);
    CHECK_INT(net_tls_wire(pair.client).len, before);
    net_tls_took(pair.client, before - 10);
    CHECK_INT(net_tls_write(pair.client, bytes, N, &error), PEG_OK);
    CHECK(net_tls_wire(pair.client).len > N);
    free(bytes);
    unwire(&pair);
}
