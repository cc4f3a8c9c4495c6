/* SPDX-License-Identifier: Apache-2.0 */

#include "net/tls/tls.h"

#include "tls_pair.h"

/* ---- what works --------------------------------------------------------------------------- */

TEST(tls_carries_bytes_both_ways_and_agrees_on_h2)
{
    struct pair pair = {0};

    open_pair(&pair);
    CHECK_STR(net_tls_alpn(pair.client), "h2");
    CHECK_STR(net_tls_alpn(pair.server), "h2");
    check_arrives(&pair, pair.client, pair.server, "from the client");
    check_arrives(&pair, pair.server, pair.client, "from the server");
    CHECK_STR(net_tls_peer_name(pair.client), "localhost");
    CHECK_STR(net_tls_peer_name(pair.server), "");
    unwire(&pair);
}

TEST(tls_does_not_care_in_which_pieces_bytes_come)
{
    static const size_t pieces[] = {1, 2, 3, 7, 64, 1000, 4096};

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct pair pair = {.piece = pieces[i]};

        open_pair(&pair);
        check_arrives(&pair, pair.client, pair.server, "there");
        check_arrives(&pair, pair.server, pair.client, "and back");
        unwire(&pair);
    }
}

/* Feeds as a stream does: a bounded piece, then reads until nothing comes. */
TEST(tls_carries_a_megabyte_through_bounded_buffers)
{
    enum { N = 1 << 20 };
    struct pair pair = {0};
    uint8_t *sent = malloc(N);
    uint8_t *got = malloc(N);
    size_t n_got = 0;
    peg_error error;

    for (size_t i = 0; i < N; i++)
        sent[i] = (uint8_t)(i * 7 + i / 251);
    open_pair(&pair);
    CHECK_STATUS(net_tls_write(pair.client, sent, N, &error), PEG_OK, error);
    while (net_tls_wire(pair.client).len) {
        const peg_str wire = net_tls_wire(pair.client);
        const size_t len = wire.len < 65536 ? wire.len : 65536;
        size_t n;

        CHECK_STATUS(net_tls_feed(pair.server, (const uint8_t *)wire.ptr, len, &error), PEG_OK,
                     error);
        net_tls_took(pair.client, len);
        do {
            CHECK_STATUS(net_tls_read(pair.server, got + n_got, N - n_got, &n, &error), PEG_OK,
                         error);
            n_got += n;
        } while (n);
    }
    CHECK_INT(n_got, N);
    CHECK(memcmp(sent, got, N) == 0);
    free(sent);
    free(got);
    unwire(&pair);
}

TEST(tls_reads_as_little_as_it_is_asked_for)
{
    struct pair pair = {0};
    uint8_t byte;
    size_t n;
    peg_error error;

    open_pair(&pair);
    CHECK_INT(net_tls_write(pair.client, (const uint8_t *)"abc", 3, &error), PEG_OK);
    settle(&pair);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(net_tls_read(pair.server, &byte, 1, &n, &error), PEG_OK);
        CHECK_INT(n, 1);
        CHECK_INT(byte, 'a' + i);
    }
    CHECK_INT(net_tls_read(pair.server, &byte, 1, &n, &error), PEG_OK);
    CHECK_INT(n, 0);
    unwire(&pair);
}

TEST(tls_client_takes_a_server_by_its_address)
{
    static const char *const hosts[] = {"127.0.0.1", "::1", "server.test", "server.test."};
    const struct net_tls_options client = client_options();
    const struct net_tls_options server = server_options();

    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        struct pair pair = {0};

        wire_up_options(&pair, &client, &server, hosts[i]);
        CHECK(net_tls_is_open(pair.client) && net_tls_is_open(pair.server));
        unwire(&pair);
    }
}

TEST(tls_client_that_verifies_nothing_takes_anybody_and_learns_no_name)
{
    const struct net_tls_options client = {.is_client = true, .is_unverified = true};
    const struct net_tls_options server = {.cert_file = certs.expired_cert,
                                           .key_file = certs.expired_key};
    struct pair pair = {0};

    wire_up_options(&pair, &client, &server, "elsewhere.test");
    CHECK(net_tls_is_open(pair.client) && net_tls_is_open(pair.server));
    CHECK_STR(net_tls_peer_name(pair.client), "");
    unwire(&pair);
    wire_up_options(&pair, &client, &server, NULL);
    CHECK(net_tls_is_open(pair.client));
    unwire(&pair);
}

/* ---- who the client is -------------------------------------------------------------------- */

static struct net_tls_options mutual_options(bool is_optional)
{
    struct net_tls_options options = server_options();

    options.ca_file = certs.ca;
    options.is_client_optional = is_optional;
    return options;
}

/* The name that a server learns from a certificate. */
static void check_name(const char *cert, const char *key, const char *expected)
{
    const struct net_tls_options server = mutual_options(false);
    struct net_tls_options client = client_options();
    struct pair pair = {0};

    client.cert_file = cert;
    client.key_file = key;
    wire_up_options(&pair, &client, &server, "localhost");
    CHECK(net_tls_is_open(pair.server));
    CHECK_STR(net_tls_peer_name(pair.server), expected);
    unwire(&pair);
}

static void check_name_of(const struct certs_subject *subject, const char *expected)
{
    char cert[CERTS_PATH];
    char key[CERTS_PATH];

    certs_add(&certs, "named", subject, cert, key);
    check_name(cert, key, expected);
}

TEST(tls_server_learns_who_the_client_is)
{
    check_name(certs.client_cert, certs.client_key, "spiffe://test/client");
    check_name_of(&(struct certs_subject){.cn = "x", .alt = "email:a@b,DNS:c.test"}, "c.test");
    check_name_of(&(struct certs_subject){.cn = "x", .alt = "IP:10.0.0.1,email:a@b"}, "a@b");
    check_name_of(&(struct certs_subject){.cn = "x", .alt = "IP:10.0.0.1"}, "x");
    check_name_of(&(struct certs_subject){.cn = "Jos\xc3\xa9"}, "Jos\xc3\xa9");
    check_name_of(&(struct certs_subject){.alt = "DNS:first.test,DNS:second.test"}, "first.test");
    check_name_of(&(struct certs_subject){.alt = "IP:10.0.0.1"}, "");
}

static void check_strange_name(int type, const char *bytes, int len)
{
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_IA5STRING *text = ASN1_IA5STRING_new();

    CERTS_MUST(ASN1_STRING_set(text, bytes, len));
    GENERAL_NAME_set0_value(name, type, text);
    sk_GENERAL_NAME_push(names, name);
    check_name_of(&(struct certs_subject){.cn = "fallback", .strange = names}, "");
    GENERAL_NAMES_free(names);
}

TEST(tls_name_with_strange_bytes_is_no_name)
{
    static char longest[PEG_LIMIT_TLS_NAME_BYTES + 1];

    memset(longest, 'a', sizeof(longest));
    check_strange_name(GEN_URI, "spiffe://test/admin\0.evil", 25);
    check_strange_name(GEN_DNS, "admin.test\0.evil.test", 21);
    check_strange_name(GEN_EMAIL, "a@b\nadmin", 9);
    check_strange_name(GEN_URI, "spiffe://test/\xC3\x28", 16); /* these are ASCII */
    check_strange_name(GEN_URI, "", 0);
    check_strange_name(GEN_URI, longest, sizeof(longest));
}

TEST(tls_server_that_requires_a_certificate_refuses_a_client_without)
{
    const struct net_tls_options client = client_options();
    const struct net_tls_options server = mutual_options(false);
    struct pair pair = {0};

    wire_up_options(&pair, &client, &server, "localhost");
    check_refused(&pair, &pair.server_error, "peer did not return a certificate");
    CHECK_STR(net_tls_peer_name(pair.server), "");
    unwire(&pair);
}

TEST(tls_server_that_asks_for_a_certificate_takes_a_client_without)
{
    const struct net_tls_options client = client_options();
    const struct net_tls_options server = mutual_options(true);
    struct pair pair = {0};

    wire_up_options(&pair, &client, &server, "localhost");
    CHECK(net_tls_is_open(pair.server));
    CHECK_STR(net_tls_peer_name(pair.server), "");
    unwire(&pair);
}

TEST(tls_server_refuses_a_certificate_of_somebody_else)
{
    struct net_tls_options client = client_options();

    client.cert_file = certs.other_client_cert;
    client.key_file = certs.other_client_key;
    for (int is_optional = 0; is_optional < 2; is_optional++) {
        const struct net_tls_options server = mutual_options(is_optional);
        struct pair pair = {0};
        uint8_t byte;
        size_t n;

        wire_up_options(&pair, &client, &server, "localhost");
        check_refused(&pair, &pair.server_error, "certificate verify failed");
        /* In TLS 1.3 the client is done before the server has looked. */
        if (!pair.client_error.code)
            net_tls_read(pair.client, &byte, 1, &n, &pair.client_error);
        check_refused(&pair, &pair.client_error, "the peer refused the TLS connection");
        CHECK_STR(net_tls_peer_name(pair.server), "");
        unwire(&pair);
    }
}

/* ---- whom a client refuses ---------------------------------------------------------------- */

static void check_client_refuses(const char *cert, const char *key, const char *host,
                                 const char *reason)
{
    const struct net_tls_options client = client_options();
    const struct net_tls_options server = {.cert_file = cert, .key_file = key};
    struct pair pair = {0};

    wire_up_options(&pair, &client, &server, host);
    check_refused(&pair, &pair.client_error, reason);
    check_refused(&pair, &pair.server_error, "the peer refused the TLS connection");
    unwire(&pair);
}

TEST(tls_client_refuses_a_certificate_of_an_unknown_ca)
{
    check_client_refuses(certs.other_server_cert, certs.other_server_key, "localhost",
                         "unable to get local issuer certificate");
}

TEST(tls_client_refuses_a_certificate_that_signed_itself)
{
    const struct certs_subject subject = {.cn = "server", .alt = "DNS:localhost"};
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x509 = certs_issue(&subject, key, NULL, NULL);
    char cert_file[CERTS_PATH];
    char key_file[CERTS_PATH];

    certs_path(&certs, "self.pem", cert_file);
    certs_path(&certs, "self.key", key_file);
    certs_write_cert(cert_file, x509);
    certs_write_key(key_file, key, NULL);
    check_client_refuses(cert_file, key_file, "localhost", "self-signed certificate");
    X509_free(x509);
    EVP_PKEY_free(key);
}

TEST(tls_client_refuses_an_expired_certificate)
{
    check_client_refuses(certs.expired_cert, certs.expired_key, "localhost", "has expired");
}

TEST(tls_client_refuses_another_host)
{
    check_client_refuses(certs.server_cert, certs.server_key, "elsewhere.test",
                         "hostname mismatch");
    check_client_refuses(certs.server_cert, certs.server_key, "127.0.0.2", "IP address mismatch");
    check_client_refuses(certs.server_cert, certs.server_key, "server", "hostname mismatch");
}

TEST(tls_client_has_to_say_whom_it_wants)
{
    const struct net_tls_options options = client_options();
    struct net_tls_config *config = new_config(&options);
    struct net_tls *tls = NULL;
    static char longest[400];
    peg_error error;

    memset(longest, 'a', sizeof(longest) - 1);
    CHECK_INT(net_tls_new(config, NULL, &tls, &error), PEG_EINVAL);
    CHECK_STR(peg_cstr(error.code), "E_TLS_CONFIG");
    CHECK_INT(net_tls_new(config, "", &tls, &error), PEG_EINVAL);
    CHECK_INT(net_tls_new(config, longest, &tls, &error), PEG_EINVAL);
    /* OpenSSL would take any name below it. */
    CHECK_INT(net_tls_new(config, ".test", &tls, &error), PEG_EINVAL);
    CHECK(!tls);
    net_tls_config_unref(config);
}

/* ---- the end ------------------------------------------------------------------------------ */

TEST(tls_tells_an_end_from_a_truncation)
{
    struct pair pair = {0};
    uint8_t bytes[16];
    size_t n;
    peg_error error;

    open_pair(&pair);
    CHECK_INT(net_tls_write(pair.client, (const uint8_t *)"last", 4, &error), PEG_OK);
    net_tls_shutdown(pair.client);
    settle(&pair);
    CHECK(!net_tls_peer_ended(pair.server));
    CHECK_INT(net_tls_read(pair.server, bytes, sizeof(bytes), &n, &error), PEG_OK);
    CHECK_STR(peg__strn((char *)bytes, n), "last");
    CHECK(net_tls_peer_ended(pair.server));
    CHECK(!net_tls_peer_ended(pair.client));
    unwire(&pair);
}

TEST(tls_side_that_heard_the_end_may_still_send)
{
    struct pair pair = {0};
    uint8_t byte;
    size_t n;
    peg_error error;

    open_pair(&pair);
    net_tls_shutdown(pair.client);
    settle(&pair);
    CHECK_INT(net_tls_read(pair.server, &byte, 1, &n, &error), PEG_OK);
    CHECK(net_tls_peer_ended(pair.server));
    CHECK_INT(net_tls_feed(pair.server, (const uint8_t *)"ignored", 7, &error), PEG_OK);
    check_arrives(&pair, pair.server, pair.client, "one more");
    net_tls_shutdown(pair.server);
    net_tls_shutdown(pair.server);
    settle(&pair);
    CHECK_INT(net_tls_read(pair.client, &byte, 1, &n, &error), PEG_OK);
    CHECK(net_tls_peer_ended(pair.client));
    unwire(&pair);
}

TEST(tls_sends_nothing_before_it_is_open_or_after_its_end)
{
    const struct net_tls_options options = client_options();
    struct net_tls_config *config = new_config(&options);
    struct net_tls *tls = NULL;
    struct pair pair = {0};
    size_t n = 7;
    uint8_t byte;
    peg_error error;

    CHECK_INT(net_tls_new(config, "localhost", &tls, &error), PEG_OK);
    CHECK_INT(net_tls_write(tls, (const uint8_t *)"x", 1, &error), PEG_ESTATE);
    CHECK_INT(net_tls_read(tls, &byte, 1, &n, &error), PEG_OK);
    CHECK_INT(n, 0);
    net_tls_shutdown(tls);
    CHECK_INT(net_tls_wire(tls).len, 0);
    net_tls_free(tls);
    net_tls_config_unref(config);

    open_pair(&pair);
    net_tls_shutdown(pair.client);
    CHECK_INT(net_tls_write(pair.client, (const uint8_t *)"x", 1, &error), PEG_ESTATE);
    unwire(&pair);
}

/* ---- memory ------------------------------------------------------------------------------- */

static peg_status open_and_echo(struct net_tls_config *client_config,
                                struct net_tls_config *server_config, struct pair *pair)
{
    peg_error error;
    peg_status status = net_tls_new(client_config, "localhost", &pair->client, &error);
    uint8_t bytes[64];
    size_t n = 0;

    if (!status)
        status = net_tls_new(server_config, NULL, &pair->server, &error);
    if (!status)
        status = net_tls_start(pair->client, &error);
    if (status)
        return status;
    settle(pair);
    if (pair->client_error.code || pair->server_error.code)
        return pair->client_error.code ? pair->client_error.status : pair->server_error.status;
    status = net_tls_write(pair->client, (const uint8_t *)"hello", 5, &error);
    if (status)
        return status;
    settle(pair);
    if (pair->server_error.code)
        return pair->server_error.status;
    status = net_tls_read(pair->server, bytes, sizeof(bytes), &n, &error);
    if (!status)
        CHECK_INT(n, 5);
    return status;
}

TORTURE(tls_survives_any_allocation_failure)
{
    const struct net_tls_options server = mutual_options(false);
    struct net_tls_options client = client_options();
    struct net_tls_config *client_config = NULL;
    struct net_tls_config *server_config = NULL;
    struct pair pair = {.piece = 500};
    peg_error error;
    peg_status status;

    client.cert_file = certs.client_cert;
    client.key_file = certs.client_key;
    status = net_tls_config_new(&client, &client_config, &error);
    if (!status)
        status = net_tls_config_new(&server, &server_config, &error);
    if (!status)
        status = open_and_echo(client_config, server_config, &pair);
    unwire(&pair);
    net_tls_config_unref(client_config);
    net_tls_config_unref(server_config);
    return status;
}

TEST(tls_write_without_memory_changes_nothing)
{
    struct pair pair = {0};
    peg_error error;

    open_pair(&pair);
    peg__mem_fail_at(1);
    CHECK_INT(net_tls_write(pair.client, (const uint8_t *)"x", 1, &error), PEG_ENOMEM);
    peg__mem_fail_at(0);
    check_arrives(&pair, pair.client, pair.server, "still here");
    unwire(&pair);
}
