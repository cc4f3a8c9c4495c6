/* SPDX-License-Identifier: Apache-2.0 */

/* One TLS connection. OpenSSL reads and writes through a BIO of ours with two buffers: bytes that
 * were fed, and bytes to be sent. Both are freed as soon as they are empty. The first failure
 * sticks (`lost`): OpenSSL's state is of no use after one. */

#include "net/tls/tls.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "net/tls/internal.h"

enum lost { NOT_LOST, LOST_MEMORY, LOST_LIMIT, LOST_ENDED, LOST_PROTOCOL, LOST_SSL };

/* A record holds 16 KiB at most and needs no more around it than this, in any version. */
enum { RECORD_BYTES = 16 << 10, RECORD_OVERHEAD = 128 };

/* Type, version and length of a record come first, then type and length of a message. */
enum { HELLO_LEN_FROM = 6, HELLO_LEN_TO = 9 };

/* Owned by one thread. */
struct net_tls {
    SSL *ssl;
    struct peg__buf in; /* fed, from in_read on not read */
    size_t in_read;
    struct peg__buf out; /* for the wire, from out_taken on not taken */
    size_t out_taken;
    char *peer_name; /* owned; NULL if there is none */
    uint32_t n_handshake;
    uint32_t hello_len;
    bool is_client;
    bool speaks_http1; /* a client of HTTP/1.1, else of h2 */
    bool is_unverified;
    bool is_open;
    bool was_shut_down;
    bool peer_ended;
    enum lost lost;
    int lost_verify; /* of LOST_SSL: X509_V_..., if that was it */
    unsigned long lost_error;
};

/* ---- between OpenSSL and the buffers ------------------------------------------------------ */

/* False if the handshake is larger than any needs. A first record too short to show the length of
 * its message, which no client sends, counts as too large. */
static bool count_handshake(struct net_tls *tls, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len && tls->n_handshake + i < HELLO_LEN_TO; i++) {
        if (tls->n_handshake + i >= HELLO_LEN_FROM)
            tls->hello_len = tls->hello_len << 8 | (unsigned char)bytes[i];
    }
    tls->n_handshake += (uint32_t)len;
    return tls->n_handshake <= PEG_LIMIT_TLS_HANDSHAKE_BYTES &&
           (tls->n_handshake < HELLO_LEN_TO || tls->hello_len <= PEG_LIMIT_TLS_HELLO_BYTES);
}

static int bio_read(BIO *bio, char *ret_bytes, size_t max, size_t *ret_len)
{
    struct net_tls *tls = BIO_get_data(bio);
    const size_t left = tls->in.len - tls->in_read;
    const size_t len = left < max ? left : max;

    BIO_clear_retry_flags(bio);
    if (len == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(ret_bytes, tls->in.ptr + tls->in_read, len);
    if (!tls->is_open && !count_handshake(tls, ret_bytes, len)) {
        tls->lost = LOST_LIMIT;
        return 0;
    }
    tls->in_read += len;
    if (len == left) {
        peg__buf_free(&tls->in);
        tls->in_read = 0;
    }
    *ret_len = len;
    return 1;
}

/* What was taken is forgotten when it is most of the buffer, so that moving costs little. */
static void forget_taken(struct net_tls *tls)
{
    if (tls->out_taken == 0 || tls->out_taken < tls->out.len / 2)
        return;
    tls->out.len -= tls->out_taken;
    memmove(tls->out.ptr, tls->out.ptr + tls->out_taken, tls->out.len);
    tls->out_taken = 0;
}

static int bio_write(BIO *bio, const char *bytes, size_t len, size_t *ret_len)
{
    struct net_tls *tls = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    forget_taken(tls);
    peg__buf_add(&tls->out, bytes, len);
    if (tls->out.status) {
        tls->lost = tls->out.status == PEG_ELIMIT ? LOST_LIMIT : LOST_MEMORY;
        return 0;
    }
    *ret_len = len;
    return 1;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

/* Never given back, as in base/digest.c. */
static BIO_METHOD *method;
static pthread_once_t method_once = PTHREAD_ONCE_INIT;

static void make_method(void)
{
    BIO_METHOD *made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "pegboard");

    if (!made || !BIO_meth_set_read_ex(made, bio_read) || !BIO_meth_set_write_ex(made, bio_write) ||
        !BIO_meth_set_ctrl(made, bio_ctrl))
        BIO_meth_free(made);
    else
        method = made;
}

static BIO *new_bio(struct net_tls *tls)
{
    BIO *bio;

    pthread_once(&method_once, make_method);
    bio = method ? BIO_new(method) : NULL;
    if (!bio)
        return NULL;
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    return bio;
}

/* ---- how it was lost ---------------------------------------------------------------------- */

static const char *reason_text(unsigned long error)
{
    const char *reason = ERR_reason_error_string(error);

    return reason ? reason : "no reason given";
}

static peg_status fail_ssl(const struct net_tls *tls, peg_error *reterr)
{
    if (tls->lost_verify != X509_V_OK)
        return peg__fail(reterr, PEG_EIO, "E_TLS",
                         "the certificate of the peer is not accepted (certificate verify failed): "
                         "%s",
                         X509_verify_cert_error_string(tls->lost_verify));
    if (ERR_GET_LIB(tls->lost_error) == ERR_LIB_SSL &&
        ERR_GET_REASON(tls->lost_error) >= SSL_AD_REASON_OFFSET)
        return peg__fail(reterr, PEG_EIO, "E_TLS", "the peer refused the TLS connection: %s",
                         reason_text(tls->lost_error));
    return peg__fail(reterr, PEG_EIO, "E_TLS", "TLS failed: %s", reason_text(tls->lost_error));
}

static peg_status fail_lost(const struct net_tls *tls, peg_error *reterr)
{
    switch (tls->lost) {
    case NOT_LOST:
        return PEG_OK;
    case LOST_MEMORY:
        return peg__fail_nomem(reterr);
    case LOST_LIMIT:
        return peg__fail(reterr, PEG_EIO, "E_TLS",
                         "the peer sent a handshake of more than %d bytes or a first message of "
                         "more than %d, or did not read %d bytes",
                         PEG_LIMIT_TLS_HANDSHAKE_BYTES, PEG_LIMIT_TLS_HELLO_BYTES,
                         PEG_LIMIT_TLS_WIRE_BYTES);
    case LOST_ENDED:
        return peg__fail(reterr, PEG_EIO, "E_TLS", "the peer ended the TLS handshake");
    case LOST_PROTOCOL:
        return peg__fail(reterr, PEG_EIO, "E_TLS",
                         "the server picked a protocol that was not offered (ALPN): it has to "
                         "speak %s",
                         tls->speaks_http1 ? "http/1.1" : "h2");
    case LOST_SSL:
        return fail_ssl(tls, reterr);
    }
    return PEG_OK;
}

static bool is_verify_error(unsigned long error)
{
    return ERR_GET_LIB(error) == ERR_LIB_SSL &&
           ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED;
}

/* After a call of OpenSSL that did not do what it should. True: it only waits for more bytes. */
static bool is_waiting(struct net_tls *tls, int result)
{
    const int what = SSL_get_error(tls->ssl, result);

    if (tls->lost == NOT_LOST && what == SSL_ERROR_WANT_READ)
        return true;
    if (tls->lost == NOT_LOST && what == SSL_ERROR_ZERO_RETURN && tls->is_open) {
        tls->peer_ended = true;
        return true;
    }
    if (tls->lost == NOT_LOST) {
        tls->lost = what == SSL_ERROR_ZERO_RETURN ? LOST_ENDED : LOST_SSL;
        tls->lost_error = ERR_peek_error();
        tls->lost_verify =
            is_verify_error(tls->lost_error) ? (int)SSL_get_verify_result(tls->ssl) : X509_V_OK;
    }
    ERR_clear_error();
    return false;
}

/* ---- who the peer is ---------------------------------------------------------------------- */

/* Somebody will compare and log it: one line of text, or nothing. */
static bool is_peer_name(const unsigned char *name, int len)
{
    for (int i = 0; i < len; i++) {
        if (name[i] < 0x20 || name[i] == 0x7F)
            return false;
    }
    return len > 0 && len <= PEG_LIMIT_TLS_NAME_BYTES;
}

static void keep_name(struct net_tls *tls, const unsigned char *name, int len)
{
    if (!is_peer_name(name, len))
        return;
    tls->peer_name = peg__alloc((size_t)len + 1);
    if (!tls->peer_name) {
        tls->lost = LOST_MEMORY;
        return;
    }
    memcpy(tls->peer_name, name, (size_t)len);
    tls->peer_name[len] = '\0';
}

static const ASN1_STRING *find_alt_name(const GENERAL_NAMES *names, int type)
{
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);

        if (name->type == type)
            return name->d.ia5;
    }
    return NULL;
}

/* As these names are by their type; what else is in one is not even known to be UTF-8. */
static bool is_ascii_name(const ASN1_STRING *name)
{
    const unsigned char *bytes = ASN1_STRING_get0_data(name);

    for (int i = 0; i < ASN1_STRING_length(name); i++) {
        if (bytes[i] >= 0x80)
            return false;
    }
    return true;
}

/* True if there is such a name, even if it cannot be used: the peer may have chosen another one
 * freely. */
static bool keep_alternative_name(struct net_tls *tls, const X509 *x509)
{
    static const int types[] = {GEN_URI, GEN_DNS, GEN_EMAIL};
    GENERAL_NAMES *names = X509_get_ext_d2i(x509, NID_subject_alt_name, NULL, NULL);
    const ASN1_STRING *name = NULL;

    for (size_t i = 0; names && !name && i < sizeof(types) / sizeof(types[0]); i++)
        name = find_alt_name(names, types[i]);
    if (name && is_ascii_name(name))
        keep_name(tls, ASN1_STRING_get0_data(name), ASN1_STRING_length(name));
    GENERAL_NAMES_free(names);
    return name;
}

static void keep_common_name(struct net_tls *tls, const X509 *x509)
{
    const X509_NAME *subject = X509_get_subject_name(x509);
    const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    unsigned char *name = NULL;
    int len;

    if (at < 0)
        return;
    len = ASN1_STRING_to_UTF8(&name, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    keep_name(tls, name, len);
    OPENSSL_free(name);
}

static void learn_peer_name(struct net_tls *tls)
{
    const X509 *x509 = SSL_get0_peer_certificate(tls->ssl);

    if (x509 && !tls->is_unverified && SSL_get_verify_result(tls->ssl) == X509_V_OK &&
        !keep_alternative_name(tls, x509))
        keep_common_name(tls, x509);
    ERR_clear_error();
}

/* ---- one connection ----------------------------------------------------------------------- */

/* Names in certificates have no dot at the end, and SNI carries no address. A dot at the start
 * would mean every name below it to OpenSSL. */
static bool set_host(struct net_tls *tls, const char *host)
{
    char name[256];
    size_t len = strlen(host);

    if (len > 1 && host[len - 1] == '.')
        len--;
    if (len >= sizeof(name) || host[0] == '.')
        return false;
    memcpy(name, host, len);
    name[len] = '\0';
    SSL_set_hostflags(tls->ssl,
                      X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), name))
        return true;
    ERR_clear_error();
    return SSL_set1_host(tls->ssl, name) && SSL_set_tlsext_host_name(tls->ssl, name);
}

static peg_status set_side(struct net_tls *tls, const char *host, peg_error *reterr)
{
    const bool has_host = host && host[0];

    if (!tls->is_client) {
        SSL_set_accept_state(tls->ssl);
        return PEG_OK;
    }
    if (!has_host && !tls->is_unverified)
        return peg__fail(reterr, PEG_EINVAL, "E_TLS_CONFIG",
                         "a client must say whom the certificate of the server has to name (host)");
    if (has_host && !set_host(tls, host))
        return peg__fail(
            reterr, PEG_EINVAL, "E_TLS_CONFIG",
            "'%.80s' cannot be the host in a certificate: give a name or an IP address", host);
    SSL_set_connect_state(tls->ssl);
    return PEG_OK;
}

PEG_DEFINE_CLEANUP(struct net_tls, net_tls_free)

peg_status net_tls_new(struct net_tls_config *config, const char *host, struct net_tls **ret_tls,
                       peg_error *reterr)
{
    PEG_CLEANUP(net_tls_freep) struct net_tls *tls = peg__alloc_zero(1, sizeof(*tls));
    peg_status status;
    BIO *bio;

    if (!tls)
        return peg__fail_nomem(reterr);
    tls->in.max = PEG_LIMIT_TLS_UNREAD_BYTES;
    tls->out.max = PEG_LIMIT_TLS_WIRE_BYTES;
    tls->is_client = config->is_client;
    tls->speaks_http1 = config->is_client && config->allows_http1;
    tls->is_unverified = config->is_unverified;
    tls->ssl = net_tls_config_connection(config);
    bio = tls->ssl ? new_bio(tls) : NULL;
    if (!bio)
        return peg__fail_nomem(reterr);
    SSL_set_bio(tls->ssl, bio, bio);

    status = set_side(tls, host, reterr);
    ERR_clear_error();
    if (status)
        return status;
    *ret_tls = tls;
    tls = NULL;
    return PEG_OK;
}

struct net_tls *net_tls_free(struct net_tls *tls)
{
    if (!tls)
        return NULL;
    SSL_free(tls->ssl);
    peg__buf_free(&tls->in);
    peg__buf_free(&tls->out);
    peg__free(tls->peer_name);
    peg__free(tls);
    return NULL;
}

static peg_status shake_hands(struct net_tls *tls, peg_error *reterr)
{
    int result;

    ERR_clear_error();
    result = SSL_do_handshake(tls->ssl);
    if (result != 1)
        return is_waiting(tls, result) ? PEG_OK : fail_lost(tls, reterr);
    /* OpenSSL takes whatever a server picks. */
    if (tls->is_client && net_tls_alpn(tls).len > 0 &&
        !peg__str_is(net_tls_alpn(tls), tls->speaks_http1 ? "http/1.1" : "h2"))
        tls->lost = LOST_PROTOCOL;
    else
        learn_peer_name(tls);
    tls->is_open = !tls->lost;
    return fail_lost(tls, reterr);
}

peg_status net_tls_start(struct net_tls *tls, peg_error *reterr)
{
    if (tls->lost || tls->is_open || !tls->is_client)
        return fail_lost(tls, reterr);
    return shake_hands(tls, reterr);
}

peg_status net_tls_feed(struct net_tls *tls, const uint8_t *bytes, size_t len, peg_error *reterr)
{
    if (tls->lost || tls->peer_ended)
        return fail_lost(tls, reterr);
    if (tls->in_read > 0) {
        tls->in.len -= tls->in_read;
        memmove(tls->in.ptr, tls->in.ptr + tls->in_read, tls->in.len);
        tls->in_read = 0;
    }
    peg__buf_add(&tls->in, bytes, len);
    if (tls->in.status) {
        const peg_status status = tls->in.status;

        tls->in.status = PEG_OK;
        if (status == PEG_ENOMEM)
            return peg__fail_nomem(reterr);
        return peg__fail(reterr, PEG_ELIMIT, "E_TLS", "more than %d bytes would wait: read first",
                         PEG_LIMIT_TLS_UNREAD_BYTES);
    }
    return tls->is_open ? PEG_OK : shake_hands(tls, reterr);
}

/* The next call reports a failure after some bytes. */
peg_status net_tls_read(struct net_tls *tls, uint8_t *ret_bytes, size_t max, size_t *ret_len,
                        peg_error *reterr)
{
    size_t len = 0;

    while (tls->is_open && !tls->lost && !tls->peer_ended && len < max) {
        size_t n = 0;
        int result;

        ERR_clear_error();
        result = SSL_read_ex(tls->ssl, ret_bytes + len, max - len, &n);
        if (result != 1) {
            is_waiting(tls, result);
            break;
        }
        len += n;
    }
    if (tls->lost && len == 0)
        return fail_lost(tls, reterr);
    *ret_len = len;
    return PEG_OK;
}

/* Room for all records, so that nothing can fail half-way. */
static peg_status reserve_records(struct net_tls *tls, size_t len, peg_error *reterr)
{
    const size_t n_records = len / RECORD_BYTES + 1;
    peg_status status;

    forget_taken(tls);
    if (len > tls->out.max || !peg__buf_reserve(&tls->out, len + n_records * RECORD_OVERHEAD)) {
        status = tls->out.status;
        tls->out.status = PEG_OK;
        if (status == PEG_ENOMEM)
            return peg__fail_nomem(reterr);
        return peg__fail(reterr, PEG_ELIMIT, "E_TLS",
                         "more than %d bytes would wait for the peer: write less at once, and wait "
                         "until it is taken",
                         PEG_LIMIT_TLS_WIRE_BYTES);
    }
    return PEG_OK;
}

peg_status net_tls_write(struct net_tls *tls, const uint8_t *bytes, size_t len, peg_error *reterr)
{
    size_t n = 0;
    peg_status status;
    int result;

    if (tls->lost)
        return fail_lost(tls, reterr);
    if (!tls->is_open || tls->was_shut_down)
        return peg__fail(reterr, PEG_ESTATE, "E_TLS",
                         "nothing can be sent before the TLS handshake is done or after its end");
    if (len == 0)
        return PEG_OK;
    status = reserve_records(tls, len, reterr);
    if (status)
        return status;

    ERR_clear_error();
    result = SSL_write_ex(tls->ssl, bytes, len, &n);
    if (result == 1)
        return PEG_OK;
    if (is_waiting(tls, result)) {
        /* Nothing of ours makes a write wait for the peer. */
        tls->lost = LOST_SSL;
        tls->lost_error = 0;
    }
    return fail_lost(tls, reterr);
}

void net_tls_shutdown(struct net_tls *tls)
{
    if (!tls->is_open || tls->lost || tls->was_shut_down)
        return;
    tls->was_shut_down = true;
    ERR_clear_error();
    SSL_shutdown(tls->ssl);
    ERR_clear_error();
}

peg_str net_tls_wire(struct net_tls *tls)
{
    return peg__str_from(peg__buf_view(&tls->out), tls->out_taken);
}

void net_tls_took(struct net_tls *tls, size_t n)
{
    tls->out_taken += n;
    if (tls->out_taken < tls->out.len)
        return;
    peg__buf_free(&tls->out);
    tls->out_taken = 0;
}

bool net_tls_is_open(const struct net_tls *tls)
{
    return tls->is_open;
}

bool net_tls_peer_ended(const struct net_tls *tls)
{
    return tls->peer_ended;
}

peg_str net_tls_alpn(const struct net_tls *tls)
{
    const unsigned char *protocol = NULL;
    unsigned len = 0;

    SSL_get0_alpn_selected(tls->ssl, &protocol, &len);
    return peg__strn(len ? (const char *)protocol : "", len);
}

peg_str net_tls_peer_name(const struct net_tls *tls)
{
    return peg_cstr(tls->peer_name);
}
