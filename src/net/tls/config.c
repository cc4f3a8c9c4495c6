/* SPDX-License-Identifier: Apache-2.0 */

/* What TLS connections are set up with. Files are read into memory first, which bounds them and
 * tells a missing file from a bad one. */

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "net/tls/internal.h"

static const unsigned char protocol_h2[] = "\x02h2";
static const unsigned char protocol_http1[] = "\x08http/1.1";
static const unsigned char protocols_both[] = "\x02h2\x08http/1.1";

static inline void ctx_freep(SSL_CTX **ctx)
{
    SSL_CTX_free(*ctx);
}

static inline void bio_freep(BIO **bio)
{
    BIO_free(*bio);
}

static inline void x509_freep(X509 **x509)
{
    X509_free(*x509);
}

static inline void pkey_freep(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

/* ---- errors ------------------------------------------------------------------------------- */

/* The first thing that OpenSSL had to complain about, and an empty queue afterwards. */
static const char *take_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_error());

    ERR_clear_error();
    return reason ? reason : "no reason given";
}

static peg_status fail_setup(peg_error *reterr)
{
    return peg__fail(reterr, PEG_EIO, "E_TLS_CONFIG", "OpenSSL cannot set up TLS: %s",
                     take_reason());
}

static peg_status fail_file(const char *file, const char *what, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EINVAL, "E_TLS_CONFIG",
                     "%s: no %s can be read from it (%s); name a PEM file that has it", file, what,
                     take_reason());
}

/* ---- files -------------------------------------------------------------------------------- */

/* errno says why. */
static bool read_pem(int fd, struct peg__buf *ret_text)
{
    char part[4096];

    for (;;) {
        const ssize_t n = read(fd, part, sizeof(part));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0;
        peg__buf_add(ret_text, part, (size_t)n);
        if (ret_text->status)
            return true;
    }
}

static void text_freep(struct peg__buf *text)
{
    if (text->ptr)
        OPENSSL_cleanse(text->ptr, text->len); /* it may be a key */
    peg__buf_free(text);
}

/* `what` tells which of the files it is: they may have one name. */
static peg_status read_file(const char *what, const char *file, struct peg__buf *ret_text,
                            peg_error *reterr)
{
    const int fd = open(file, O_RDONLY | O_CLOEXEC);
    const bool was_read = fd >= 0 && read_pem(fd, ret_text);
    const int why = errno;

    if (fd >= 0)
        close(fd);
    if (!was_read)
        return peg__fail(
            reterr, PEG_EIO, "E_TLS_CONFIG",
            "the %s '%.120s' cannot be read: %s; check its name, and that the user that "
            "runs this may read it",
            what, file, strerror(why)); /* NOLINT(concurrency-mt-unsafe): not so in glibc */
    if (ret_text->status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (ret_text->status)
        return peg__fail(reterr, PEG_ELIMIT, "E_TLS_CONFIG",
                         "the %s '%.120s' has more than %d bytes: name a PEM file", what, file,
                         PEG_LIMIT_TLS_FILE_BYTES);
    return PEG_OK;
}

/* ---- our certificate and key -------------------------------------------------------------- */

/* OpenSSL would ask on the terminal if there were none. */
static int refuse_passphrase(char *text, int size, int is_write, void *user)
{
    (void)text;
    (void)size;
    (void)is_write;
    *(bool *)user = true;
    return -1;
}

/* The end of a PEM file looks like an error. */
static bool is_at_end(void)
{
    const unsigned long error = ERR_peek_last_error();

    return error == 0 ||
           (ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE);
}

static bool add_chain(SSL_CTX *ctx, BIO *pem)
{
    X509 *x509;

    while ((x509 = PEM_read_bio_X509(pem, NULL, NULL, NULL))) {
        if (!SSL_CTX_add0_chain_cert(ctx, x509)) {
            X509_free(x509);
            return false;
        }
    }
    return is_at_end();
}

static peg_status load_cert(SSL_CTX *ctx, const char *file, peg_error *reterr)
{
    PEG_CLEANUP(text_freep) struct peg__buf text = PEG__BUF(PEG_LIMIT_TLS_FILE_BYTES);
    PEG_CLEANUP(bio_freep) BIO *pem = NULL;
    PEG_CLEANUP(x509_freep) X509 *x509 = NULL;
    const peg_status status = read_file("certificate file", file, &text, reterr);

    if (status)
        return status;
    pem = BIO_new_mem_buf(peg__buf_view(&text).ptr, (int)text.len);
    x509 = pem ? PEM_read_bio_X509_AUX(pem, NULL, NULL, NULL) : NULL;
    if (!x509 || !SSL_CTX_use_certificate(ctx, x509) || !add_chain(ctx, pem))
        return fail_file(file, "certificate", reterr);
    ERR_clear_error();
    return PEG_OK;
}

static peg_status fail_key(const struct net_tls_config *config, peg_error *reterr)
{
    const unsigned long error = ERR_peek_error();
    const int reason = ERR_GET_REASON(error);

    if (ERR_GET_LIB(error) != ERR_LIB_X509 ||
        (reason != X509_R_KEY_VALUES_MISMATCH && reason != X509_R_KEY_TYPE_MISMATCH))
        return fail_file(config->key_file, "usable private key", reterr);
    return peg__fail(reterr, PEG_EINVAL, "E_TLS_CONFIG",
                     "the key in %s does not belong to the certificate in %s (%s)",
                     config->key_file, config->cert_file, take_reason());
}

static peg_status load_key(SSL_CTX *ctx, const struct net_tls_config *config, peg_error *reterr)
{
    PEG_CLEANUP(text_freep) struct peg__buf text = PEG__BUF(PEG_LIMIT_TLS_FILE_BYTES);
    PEG_CLEANUP(bio_freep) BIO *pem = NULL;
    PEG_CLEANUP(pkey_freep) EVP_PKEY *key = NULL;
    bool is_encrypted = false;
    const peg_status status = read_file("key file", config->key_file, &text, reterr);

    if (status)
        return status;
    pem = BIO_new_mem_buf(peg__buf_view(&text).ptr, (int)text.len);
    key = pem ? PEM_read_bio_PrivateKey(pem, NULL, refuse_passphrase, &is_encrypted) : NULL;
    if (is_encrypted) {
        ERR_clear_error();
        return peg__fail(
            reterr, PEG_EINVAL, "E_TLS_CONFIG",
            "%s: the private key is encrypted, and there is no prompt for a passphrase: "
            "write it without one (openssl pkey), readable by this user only",
            config->key_file);
    }
    if (!key)
        return fail_file(config->key_file, "private key", reterr);
    if (!SSL_CTX_use_PrivateKey(ctx, key) || !SSL_CTX_check_private_key(ctx))
        return fail_key(config, reterr);
    return PEG_OK;
}

static peg_status load_own(SSL_CTX *ctx, const struct net_tls_config *config, peg_error *reterr)
{
    const peg_status status =
        config->cert_file ? load_cert(ctx, config->cert_file, reterr) : PEG_OK;

    if (status || !config->cert_file)
        return status;
    return load_key(ctx, config, reterr);
}

/* ---- whom we trust ------------------------------------------------------------------------ */

/* A server also tells its clients whose certificates it takes. */
static bool trust(SSL_CTX *ctx, X509 *x509, bool is_client)
{
    return X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), x509) &&
           (is_client || SSL_CTX_add_client_CA(ctx, x509));
}

static bool trust_all(SSL_CTX *ctx, BIO *pem, bool is_client, size_t *ret_n)
{
    X509 *x509;

    *ret_n = 0;
    while ((x509 = PEM_read_bio_X509_AUX(pem, NULL, NULL, NULL))) {
        const bool is_trusted = trust(ctx, x509, is_client);

        X509_free(x509);
        if (!is_trusted)
            return false;
        ++*ret_n;
    }
    return is_at_end();
}

static peg_status load_trusted(SSL_CTX *ctx, const struct net_tls_config *config, peg_error *reterr)
{
    PEG_CLEANUP(text_freep) struct peg__buf text = PEG__BUF(PEG_LIMIT_TLS_FILE_BYTES);
    PEG_CLEANUP(bio_freep) BIO *pem = NULL;
    size_t n = 0;
    peg_status status;

    if (!config->ca_file && config->is_client)
        return SSL_CTX_set_default_verify_paths(ctx) ? PEG_OK : fail_setup(reterr);
    if (!config->ca_file)
        return PEG_OK;
    status = read_file("CA file", config->ca_file, &text, reterr);
    if (status)
        return status;
    pem = BIO_new_mem_buf(peg__buf_view(&text).ptr, (int)text.len);
    if (!pem || !trust_all(ctx, pem, config->is_client, &n) || n == 0)
        return fail_file(config->ca_file, "certificates", reterr);
    ERR_clear_error();
    /* An intermediate that the file names is trusted. */
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
    return PEG_OK;
}

/* ---- what does not come from files -------------------------------------------------------- */

/* OpenSSL's own selection falls back to something that the peer did not offer. */
static int select_protocol(SSL *ssl, const unsigned char **ret_protocol, unsigned char *ret_len,
                           const unsigned char *offered, unsigned offered_len, void *ours)
{
    const unsigned char *at = ours;

    (void)ssl;
    for (; at[0]; at += 1 + at[0]) {
        for (unsigned i = 0; i < offered_len; i += 1U + offered[i]) {
            if (offered[i] != at[0] || memcmp(offered + i + 1, at + 1, at[0]) != 0)
                continue;
            *ret_protocol = offered + i + 1;
            *ret_len = at[0];
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int verify_mode(const struct net_tls_config *config)
{
    if (config->is_client)
        return config->is_unverified ? SSL_VERIFY_NONE : SSL_VERIFY_PEER;
    if (!config->ca_file)
        return SSL_VERIFY_NONE;
    return SSL_VERIFY_PEER | (config->is_client_optional ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT);
}

static bool set_protocols(SSL_CTX *ctx, const struct net_tls_config *config)
{
    if (config->is_client && config->allows_http1)
        return SSL_CTX_set_alpn_protos(ctx, protocol_http1, sizeof(protocol_http1) - 1) == 0;
    if (config->is_client)
        return SSL_CTX_set_alpn_protos(ctx, protocol_h2, sizeof(protocol_h2) - 1) == 0;
    SSL_CTX_set_alpn_select_cb(ctx, select_protocol,
                               peg__unconst(config->allows_http1 ? protocols_both : protocol_h2));
    return true;
}

static bool set_up_context(SSL_CTX *ctx, const struct net_tls_config *config)
{
    static const unsigned char session_context[] = "pegboard";
    static char groups[] = "X25519:P-256:P-384"; /* OpenSSL takes it, and does not change it */

    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE);
    /* The buffers of an idle connection are 34 KiB. */
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    /* Tickets are with the client; a cache here would be memory that the peers fill. */
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_cert_list(ctx, PEG_LIMIT_TLS_HANDSHAKE_BYTES);
    SSL_CTX_set_verify(ctx, verify_mode(config), NULL);
    /* HTTP/2 forbids all others (RFC 9113, appendix A). */
    return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) &&
           SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") &&
           SSL_CTX_set1_groups_list(ctx, groups) &&
           SSL_CTX_set_session_id_context(ctx, session_context, sizeof(session_context) - 1) &&
           set_protocols(ctx, config);
}

static peg_status read_files(const struct net_tls_config *config, SSL_CTX **ret_ctx,
                             peg_error *reterr)
{
    PEG_CLEANUP(ctx_freep) SSL_CTX *ctx = NULL;
    peg_status status;

    ERR_clear_error();
    ctx = SSL_CTX_new(config->is_client ? TLS_client_method() : TLS_server_method());
    if (!ctx || !set_up_context(ctx, config))
        return fail_setup(reterr);
    status = load_own(ctx, config, reterr);
    if (!status)
        status = load_trusted(ctx, config, reterr);
    if (status)
        return status;
    *ret_ctx = ctx;
    ctx = NULL;
    return PEG_OK;
}

/* ---- the shared object -------------------------------------------------------------------- */

static struct net_tls_config *free_config(struct net_tls_config *config)
{
    SSL_CTX_free(config->ctx);
    pthread_mutex_destroy(&config->lock);
    peg__free(config->cert_file);
    peg__free(config->key_file);
    peg__free(config->ca_file);
    peg__free(config);
    return NULL;
}

bool net_tls_config_is_client(const struct net_tls_config *config)
{
    return config->is_client;
}

struct net_tls_config *net_tls_config_ref(struct net_tls_config *config)
{
    peg__refs_take(&config->n_refs);
    return config;
}

struct net_tls_config *net_tls_config_unref(struct net_tls_config *config)
{
    return config && peg__refs_drop(&config->n_refs) ? free_config(config) : NULL;
}

PEG_DEFINE_CLEANUP(struct net_tls_config, net_tls_config_unref)

/* False if there is no memory; a file that is not given stays NULL. */
static bool copy_name(const char *file, char **ret_copy)
{
    const size_t size = file ? strlen(file) + 1 : 0;

    if (!file)
        return true;
    *ret_copy = peg__alloc(size);
    if (*ret_copy)
        memcpy(*ret_copy, file, size);
    return *ret_copy;
}

static peg_status check_tls_options(const struct net_tls_options *options, peg_error *reterr)
{
    const char *why = NULL;

    if (!options->cert_file != !options->key_file)
        why = "cert_file and key_file are given together or not at all";
    else if (!options->is_client && !options->cert_file)
        why = "a server needs cert_file and key_file";
    else if (!options->is_client && options->is_unverified)
        why = "is_unverified is for clients; a server without ca_file asks for no certificate";
    else if (!options->is_client && options->is_client_optional && !options->ca_file)
        why = "is_client_optional needs ca_file: whose certificates are taken";
    if (why)
        return peg__fail(reterr, PEG_EINVAL, "E_TLS_CONFIG", "%s", why);
    return PEG_OK;
}

peg_status net_tls_config_new(const struct net_tls_options *options,
                              struct net_tls_config **ret_config, peg_error *reterr)
{
    PEG_CLEANUP(net_tls_config_unrefp) struct net_tls_config *config = NULL;
    peg_status status = check_tls_options(options, reterr);

    if (status)
        return status;
    config = peg__alloc_zero(1, sizeof(*config));
    if (!config)
        return peg__fail_nomem(reterr);
    atomic_init(&config->n_refs, 1);
    pthread_mutex_init(&config->lock, NULL);
    config->is_client = options->is_client;
    config->is_client_optional = options->is_client_optional;
    config->is_unverified = options->is_unverified;
    config->allows_http1 = options->allows_http1;
    if (!copy_name(options->cert_file, &config->cert_file) ||
        !copy_name(options->key_file, &config->key_file) ||
        !copy_name(options->ca_file, &config->ca_file))
        return peg__fail_nomem(reterr);

    status = read_files(config, &config->ctx, reterr);
    if (status)
        return status;
    *ret_config = config;
    config = NULL;
    return PEG_OK;
}

peg_status net_tls_config_reload(struct net_tls_config *config, peg_error *reterr)
{
    SSL_CTX *ctx = NULL;
    SSL_CTX *old;
    const peg_status status = read_files(config, &ctx, reterr);

    if (status)
        return status;
    pthread_mutex_lock(&config->lock);
    old = config->ctx;
    config->ctx = ctx;
    pthread_mutex_unlock(&config->lock);
    SSL_CTX_free(old);
    return PEG_OK;
}

SSL *net_tls_config_connection(struct net_tls_config *config)
{
    SSL_CTX *ctx;
    SSL *ssl;

    pthread_mutex_lock(&config->lock);
    ctx = config->ctx;
    SSL_CTX_up_ref(ctx);
    pthread_mutex_unlock(&config->lock);

    ERR_clear_error();
    ssl = SSL_new(ctx);
    SSL_CTX_free(ctx);
    ERR_clear_error();
    return ssl;
}
