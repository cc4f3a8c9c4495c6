/* SPDX-License-Identifier: Apache-2.0 */

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "tls_pair.h"

/* ---- what is refused ---------------------------------------------------------------------- */

static void check_config(const struct net_tls_options *options, peg_status expected,
                         const char *first, const char *second)
{
    struct net_tls_config *config = NULL;
    peg_error error;

    CHECK_STATUS(net_tls_config_new(options, &config, &error), expected, error);
    CHECK(!config);
    CHECK_STR(peg_cstr(error.code), "E_TLS_CONFIG");
    if (!strstr(error.message, first) || !strstr(error.message, second))
        T_FAIL("\"%s\" does not say \"%s\" and \"%s\"", error.message, first, second);
    CHECK_INT(net_tls_config_new(options, &config, NULL), expected);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = certs_open(path);

    CERTS_MUST(fputs(text, file) >= 0 && fclose(file) == 0);
}

TEST(tls_config_names_the_file_that_is_missing)
{
    struct net_tls_options options = server_options();

    options.cert_file = "/nonexistent/cert.pem";
    check_config(&options, PEG_EIO, "certificate file '/nonexistent/cert.pem'", "No such file");
    options = server_options();
    options.key_file = "/nonexistent/key.pem";
    check_config(&options, PEG_EIO, "key file '/nonexistent/key.pem'", "No such file");
    options = server_options();
    options.ca_file = "/nonexistent/ca.pem";
    check_config(&options, PEG_EIO, "CA file '/nonexistent/ca.pem'", "No such file");
    options.ca_file = certs.dir;
    check_config(&options, PEG_EIO, certs.dir, "directory");
}

TEST(tls_config_says_that_a_key_belongs_to_another_certificate)
{
    struct net_tls_options options = server_options();

    options.key_file = certs.client_key;
    check_config(&options, PEG_EINVAL, certs.client_key, "does not belong");
    check_config(&options, PEG_EINVAL, certs.server_cert, "key values mismatch");
}

TEST(tls_config_never_asks_for_a_passphrase)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    const struct certs_subject subject = {.cn = "x", .alt = "DNS:x"};
    X509 *x509 = certs_issue(&subject, key, NULL, NULL);
    struct net_tls_options options;
    char cert_file[CERTS_PATH];
    char key_file[CERTS_PATH];

    certs_path(&certs, "encrypted.pem", cert_file);
    certs_path(&certs, "encrypted.key", key_file);
    certs_write_cert(cert_file, x509);
    certs_write_key(key_file, key, "secret");
    X509_free(x509);
    EVP_PKEY_free(key);

    options = (struct net_tls_options){.cert_file = cert_file, .key_file = key_file};
    check_config(&options, PEG_EINVAL, key_file, "is encrypted");
}

TEST(tls_config_names_the_file_that_holds_something_else)
{
    struct net_tls_options options;
    char path[CERTS_PATH];

    certs_path(&certs, "text.pem", path);
    for (int i = 0; i < 2; i++) {
        write_text(path, i ? "" : "-----BEGIN CERTIFICATE-----\nnot base64!\n");
        options = server_options();
        options.cert_file = path;
        check_config(&options, PEG_EINVAL, path, "certificate");
        options = server_options();
        options.key_file = path;
        check_config(&options, PEG_EINVAL, path, "private key");
        options = server_options();
        options.ca_file = path;
        check_config(&options, PEG_EINVAL, path, "certificates");
    }
}

TEST(tls_config_reads_no_file_without_end)
{
    struct net_tls_options options = server_options();

    options.cert_file = "/dev/zero";
    check_config(&options, PEG_ELIMIT, "/dev/zero", "has more than");
}

TEST(tls_config_refuses_options_that_contradict_each_other)
{
    struct net_tls_options options = {0};

    check_config(&options, PEG_EINVAL, "cert_file", "key_file");
    options = (struct net_tls_options){.cert_file = certs.server_cert};
    check_config(&options, PEG_EINVAL, "cert_file", "together");
    options = (struct net_tls_options){.key_file = certs.client_key, .is_client = true};
    check_config(&options, PEG_EINVAL, "key_file", "together");
    options = server_options();
    options.is_unverified = true;
    check_config(&options, PEG_EINVAL, "is_unverified", "clients");
    options = server_options();
    options.is_client_optional = true;
    check_config(&options, PEG_EINVAL, "is_client_optional", "ca_file");
}

/* ---- what is taken ------------------------------------------------------------------------ */

TEST(tls_client_trusts_the_roots_of_the_system)
{
    const struct net_tls_options client = {.is_client = true};
    const struct net_tls_options server = server_options();
    struct pair pair = {0};

    wire_up_options(&pair, &client, &server, "localhost");
    check_refused(&pair, &pair.client_error, "certificate verify failed");
    unwire(&pair);
}

/* The server shows its own certificate and the one between it and the root. */
TEST(tls_config_sends_the_whole_chain)
{
    const struct certs_subject middle = {.cn = "middle", .is_ca = true};
    const struct certs_subject leaf = {.cn = "leaf", .alt = "DNS:localhost"};
    EVP_PKEY *middle_key = EVP_EC_gen("P-256");
    EVP_PKEY *leaf_key = EVP_EC_gen("P-256");
    X509 *middle_x509 = certs_issue(&middle, middle_key, certs.ca_x509, certs.ca_key);
    X509 *leaf_x509 = certs_issue(&leaf, leaf_key, middle_x509, middle_key);
    struct net_tls_options client = client_options();
    struct net_tls_options server;
    struct pair pair = {0};
    char middle_file[CERTS_PATH];
    char cert_file[CERTS_PATH];
    char key_file[CERTS_PATH];
    FILE *file;

    certs_path(&certs, "middle.pem", middle_file);
    certs_path(&certs, "chain.pem", cert_file);
    certs_path(&certs, "chain.key", key_file);
    certs_write_cert(middle_file, middle_x509);
    file = certs_open(cert_file);
    CERTS_MUST(PEM_write_X509(file, leaf_x509) && PEM_write_X509(file, middle_x509));
    CERTS_MUST(fclose(file) == 0);
    certs_write_key(key_file, leaf_key, NULL);
    server = (struct net_tls_options){.cert_file = cert_file, .key_file = key_file};

    wire_up_options(&pair, &client, &server, "localhost");
    CHECK(net_tls_is_open(pair.client) && net_tls_is_open(pair.server));
    unwire(&pair);

    /* Whoever trusts the one in the middle needs no root. */
    client.ca_file = middle_file;
    wire_up_options(&pair, &client, &server, "localhost");
    CHECK(net_tls_is_open(pair.client) && net_tls_is_open(pair.server));
    unwire(&pair);
    X509_free(middle_x509);
    X509_free(leaf_x509);
    EVP_PKEY_free(middle_key);
    EVP_PKEY_free(leaf_key);
}

/* ---- reading again ------------------------------------------------------------------------ */

static void copy_file(const char *from, const char *to)
{
    char bytes[16384];
    FILE *in = fopen(from, "re");
    FILE *out;
    size_t n;

    CERTS_MUST(in);
    n = fread(bytes, 1, sizeof(bytes), in);
    fclose(in);
    out = certs_open(to);
    CERTS_MUST(fwrite(bytes, 1, n, out) == n && fclose(out) == 0);
}

/* Files of a server that change. */
struct changing {
    char cert[CERTS_PATH];
    char key[CERTS_PATH];
    struct net_tls_config *server;
    struct net_tls_config *client;
};

static void begin_changing(struct changing *changing)
{
    const struct net_tls_options client = client_options();
    struct net_tls_options server;

    certs_path(&certs, "changing.pem", changing->cert);
    certs_path(&certs, "changing.key", changing->key);
    copy_file(certs.server_cert, changing->cert);
    copy_file(certs.server_key, changing->key);
    server = (struct net_tls_options){.cert_file = changing->cert, .key_file = changing->key};
    changing->server = new_config(&server);
    changing->client = new_config(&client);
}

static void end_changing(struct changing *changing)
{
    net_tls_config_unref(changing->server);
    net_tls_config_unref(changing->client);
}

TEST(tls_reload_serves_the_new_certificate_and_leaves_open_connections_alone)
{
    struct changing changing;
    struct pair old = {0};
    struct pair new = {0};
    peg_error error;

    begin_changing(&changing);
    wire_up(&old, changing.client, changing.server, "localhost");
    CHECK(net_tls_is_open(old.client) && net_tls_is_open(old.server));

    copy_file(certs.expired_cert, changing.cert);
    copy_file(certs.expired_key, changing.key);
    CHECK_STATUS(net_tls_config_reload(changing.server, &error), PEG_OK, error);
    wire_up(&new, changing.client, changing.server, "localhost");
    check_refused(&new, &new.client_error, "has expired");
    check_arrives(&old, old.client, old.server, "still open");
    unwire(&new);
    end_changing(&changing);

    check_arrives(&old, old.server, old.client, "without its configuration too");
    unwire(&old);
}

TEST(tls_reload_that_fails_changes_nothing)
{
    struct changing changing;
    struct pair pair = {0};
    peg_error error;

    begin_changing(&changing);
    copy_file(certs.expired_cert, changing.cert); /* its key is not there yet */
    CHECK_INT(net_tls_config_reload(changing.server, &error), PEG_EINVAL);
    CHECK_STR(peg_cstr(error.code), "E_TLS_CONFIG");
    wire_up(&pair, changing.client, changing.server, "localhost");
    CHECK(net_tls_is_open(pair.client) && net_tls_is_open(pair.server));
    unwire(&pair);
    end_changing(&changing);
}

TEST(tls_handshake_ends_with_the_certificate_it_began_with)
{
    struct changing changing;
    struct pair pair = {.piece = 65536};
    peg_error error;

    begin_changing(&changing);
    CHECK_INT(net_tls_new(changing.client, "localhost", &pair.client, &error), PEG_OK);
    CHECK_INT(net_tls_new(changing.server, NULL, &pair.server, &error), PEG_OK);
    CHECK_INT(net_tls_start(pair.client, &error), PEG_OK);
    copy_file(certs.expired_cert, changing.cert);
    copy_file(certs.expired_key, changing.key);
    CHECK_STATUS(net_tls_config_reload(changing.server, &error), PEG_OK, error);
    settle(&pair);
    CHECK(net_tls_is_open(pair.client) && net_tls_is_open(pair.server));
    unwire(&pair);
    end_changing(&changing);
}

/* ---- threads ------------------------------------------------------------------------------ */

struct reloading {
    struct net_tls_config *server;
    struct net_tls_config *client;
    atomic_bool is_over;
    atomic_int n_bad;
};

static void *reload_all_the_time(void *user)
{
    struct reloading *reloading = user;

    while (!atomic_load(&reloading->is_over)) {
        if (net_tls_config_reload(reloading->server, NULL))
            atomic_fetch_add(&reloading->n_bad, 1);
    }
    return NULL;
}

static void *connect_again_and_again(void *user)
{
    struct reloading *reloading = user;

    for (int i = 0; i < 20; i++) {
        struct net_tls_config *server = net_tls_config_ref(reloading->server);
        struct pair pair = {.piece = 65536};

        if (net_tls_new(reloading->client, "localhost", &pair.client, NULL) == PEG_OK &&
            net_tls_new(server, NULL, &pair.server, NULL) == PEG_OK &&
            net_tls_start(pair.client, NULL) == PEG_OK)
            settle(&pair);
        if (!pair.server || !net_tls_is_open(pair.client) || !net_tls_is_open(pair.server))
            atomic_fetch_add(&reloading->n_bad, 1);
        unwire(&pair);
        net_tls_config_unref(server);
    }
    return NULL;
}

TEST(tls_config_may_be_read_again_while_others_connect)
{
    const struct net_tls_options server = server_options();
    const struct net_tls_options client = client_options();
    struct reloading reloading = {.server = new_config(&server), .client = new_config(&client)};
    pthread_t threads[3];

    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, i ? connect_again_and_again : reload_all_the_time,
                             &reloading) == 0);
    pthread_join(threads[1], NULL);
    pthread_join(threads[2], NULL);
    atomic_store(&reloading.is_over, true);
    pthread_join(threads[0], NULL);
    CHECK_INT(reloading.n_bad, 0);
    net_tls_config_unref(reloading.server);
    net_tls_config_unref(reloading.client);
}

TORTURE(tls_reload_survives_any_allocation_failure)
{
    const struct net_tls_options options = {
        .cert_file = certs.server_cert, .key_file = certs.server_key, .ca_file = certs.ca};
    struct net_tls_config *config = NULL;
    peg_error error;
    peg_status status = net_tls_config_new(&options, &config, &error);

    if (!status)
        status = net_tls_config_reload(config, &error);
    net_tls_config_unref(config);
    return status;
}
