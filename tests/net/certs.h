/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_NET_CERTS_H
#define PEG_TESTS_NET_CERTS_H

/*
 * Certificates for tests, made on the spot in a folder of their own:
 *
 *   struct certs certs;
 *   certs_make(&certs);
 *   ... certs.server_cert, certs.server_key, certs.ca ...
 *   certs_remove(&certs);
 *
 * The server is localhost, 127.0.0.1, ::1 and server.test; the client is spiffe://test/client.
 * Whatever goes wrong here ends the program: it is the test's ground, not its subject.
 */

#include <dirent.h>
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CERTS_PATH = 128 };

struct certs {
    char dir[64];
    char ca[CERTS_PATH]; /* signs server and client */
    char server_cert[CERTS_PATH];
    char server_key[CERTS_PATH];
    char client_cert[CERTS_PATH];
    char client_key[CERTS_PATH];
    char other_ca[CERTS_PATH]; /* of somebody else, and the same two from it */
    char other_server_cert[CERTS_PATH];
    char other_server_key[CERTS_PATH];
    char other_client_cert[CERTS_PATH];
    char other_client_key[CERTS_PATH];
    char expired_cert[CERTS_PATH]; /* a server's, until yesterday */
    char expired_key[CERTS_PATH];
    EVP_PKEY *ca_key; /* to issue more */
    X509 *ca_x509;
};

#define CERTS_MUST(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s failed\n", __FILE__, __LINE__, #condition);                 \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* What goes into a certificate. */
struct certs_subject {
    const char *cn;         /* NULL: none */
    const char *alt;        /* as in "DNS:a,IP:127.0.0.1"; NULL: none */
    GENERAL_NAMES *strange; /* names that a text cannot say; borrowed, instead of alt */
    bool is_ca;
    bool is_expired;
};

static inline void certs_extend(X509 *x509, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;

    X509V3_set_ctx(&context, issuer, x509, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    CERTS_MUST(extension && X509_add_ext(x509, extension, -1));
    X509_EXTENSION_free(extension);
}

/* NULL for issuer and its key: signed by itself. */
static inline X509 *certs_issue(const struct certs_subject *subject, EVP_PKEY *key, X509 *issuer,
                                EVP_PKEY *issuer_key)
{
    static long serial = 1000;
    const long day = 24L * 3600;
    X509 *x509 = X509_new();
    X509_NAME *name = X509_NAME_new();

    CERTS_MUST(x509 && name && X509_set_version(x509, 2));
    CERTS_MUST(ASN1_INTEGER_set(X509_get_serialNumber(x509), ++serial));
    CERTS_MUST(X509_gmtime_adj(X509_getm_notBefore(x509), -10 * day));
    CERTS_MUST(X509_gmtime_adj(X509_getm_notAfter(x509), (subject->is_expired ? -1 : 10) * day));
    if (subject->cn)
        CERTS_MUST(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                              (const unsigned char *)subject->cn, -1, -1, 0));
    CERTS_MUST(X509_set_subject_name(x509, name));
    CERTS_MUST(X509_set_issuer_name(x509, issuer ? X509_get_subject_name(issuer) : name));
    CERTS_MUST(X509_set_pubkey(x509, key));
    certs_extend(x509, issuer ? issuer : x509, NID_basic_constraints,
                 subject->is_ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (subject->strange)
        CERTS_MUST(X509_add1_ext_i2d(x509, NID_subject_alt_name, subject->strange, 0, 0));
    else if (subject->alt)
        certs_extend(x509, issuer ? issuer : x509, NID_subject_alt_name, subject->alt);
    CERTS_MUST(X509_sign(x509, issuer_key ? issuer_key : key, EVP_sha256()));
    X509_NAME_free(name);
    return x509;
}

static inline void certs_path(const struct certs *certs, const char *name, char ret[CERTS_PATH])
{
    snprintf(ret, CERTS_PATH, "%s/%s", certs->dir, name);
}

static inline FILE *certs_open(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

    CERTS_MUST(file);
    return file;
}

static inline void certs_write_cert(const char *path, X509 *x509)
{
    FILE *file = certs_open(path);

    CERTS_MUST(PEM_write_X509(file, x509) && fclose(file) == 0);
}

/* NULL for a passphrase: not encrypted. */
static inline void certs_write_key(const char *path, EVP_PKEY *key, const char *passphrase)
{
    FILE *file = certs_open(path);
    const EVP_CIPHER *cipher = passphrase ? EVP_aes_128_cbc() : NULL;
    const int len = passphrase ? (int)strlen(passphrase) : 0;

    CERTS_MUST(PEM_write_PKCS8PrivateKey(file, key, cipher, passphrase, len, NULL, NULL));
    CERTS_MUST(fclose(file) == 0);
}

/* Makes NAME.pem and NAME.key, signed by the CA of the folder. */
static inline void certs_add(const struct certs *certs, const char *name,
                             const struct certs_subject *subject, char ret_cert[CERTS_PATH],
                             char ret_key[CERTS_PATH])
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x509;
    char file[64];

    CERTS_MUST(key);
    x509 = certs_issue(subject, key, certs->ca_x509, certs->ca_key);
    snprintf(file, sizeof(file), "%s.pem", name);
    certs_path(certs, file, ret_cert);
    certs_write_cert(ret_cert, x509);
    snprintf(file, sizeof(file), "%s.key", name);
    certs_path(certs, file, ret_key);
    certs_write_key(ret_key, key, NULL);
    X509_free(x509);
    EVP_PKEY_free(key);
}

/* A new CA, with which certs_add() signs from now on. */
static inline void certs_make_ca(struct certs *certs, const char *cn, const char *path)
{
    const struct certs_subject subject = {.cn = cn, .is_ca = true};

    EVP_PKEY_free(certs->ca_key);
    X509_free(certs->ca_x509);
    certs->ca_key = EVP_EC_gen("P-256");
    CERTS_MUST(certs->ca_key);
    certs->ca_x509 = certs_issue(&subject, certs->ca_key, NULL, NULL);
    certs_write_cert(path, certs->ca_x509);
}

static inline void certs_make(struct certs *certs)
{
    const char *alt = "DNS:localhost,DNS:server.test,IP:127.0.0.1,IP:::1";
    const struct certs_subject server = {.cn = "server", .alt = alt};
    const struct certs_subject client = {
        .cn = "client", .alt = "email:client@test,DNS:client.test,URI:spiffe://test/client"};
    const struct certs_subject expired = {.cn = "server", .alt = alt, .is_expired = true};

    *certs = (struct certs){.dir = "/tmp/pegboard-certs-XXXXXX"};
    CERTS_MUST(mkdtemp(certs->dir));
    certs_path(certs, "other_ca.pem", certs->other_ca);
    certs_make_ca(certs, "other", certs->other_ca);
    certs_add(certs, "other_server", &server, certs->other_server_cert, certs->other_server_key);
    certs_add(certs, "other_client", &client, certs->other_client_cert, certs->other_client_key);
    certs_path(certs, "ca.pem", certs->ca);
    certs_make_ca(certs, "ca", certs->ca);
    certs_add(certs, "server", &server, certs->server_cert, certs->server_key);
    certs_add(certs, "client", &client, certs->client_cert, certs->client_key);
    certs_add(certs, "expired", &expired, certs->expired_cert, certs->expired_key);
}

/* The folder with all that is in it. */
static inline void certs_remove(struct certs *certs)
{
    DIR *dir = opendir(certs->dir);
    const struct dirent *entry;

    CERTS_MUST(dir);
    while ((entry = readdir(dir)))
        unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(certs->dir);
    EVP_PKEY_free(certs->ca_key);
    X509_free(certs->ca_x509);
    certs->ca_key = NULL;
    certs->ca_x509 = NULL;
}

#endif
