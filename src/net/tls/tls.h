/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_TLS_TLS_H
#define PEG_NET_TLS_TLS_H

/* TLS without I/O: bytes of the wire in, plain bytes out, and the other way round. */

#include "base/buf.h"
#include "pegboard/common.h"

/* ---- what both sides are set up with: shared, any thread ---------------------------------- */

struct net_tls_options {
    const char *cert_file; /* PEM: our certificate and what leads to its root; server: required */
    const char *key_file;  /* PEM: its private key */
    const char *ca_file;   /* PEM: whom we trust. Client: NULL means the system's roots. Server:
                            * clients must show a certificate of these (mTLS); NULL asks none. */
    bool is_client;
    bool is_client_optional; /* server with ca_file: a client without a certificate may come */
    bool is_unverified;      /* client: takes any certificate; for tests */
    bool allows_http1;       /* server: ALPN offers http/1.1 after h2; client: http/1.1 alone */
};

struct net_tls_config;

/* Reads the files: TLS 1.2 or 1.3, ALPN h2. A peer that has only other protocols is rejected, one
 * without ALPN is accepted. PEG_EIO (unreadable) or PEG_EINVAL (its content), E_TLS_CONFIG, with
 * the file. Never asks for a passphrase. */
peg_status net_tls_config_new(const struct net_tls_options *options,
                              struct net_tls_config **ret_config, peg_error *reterr);
struct net_tls_config *net_tls_config_ref(struct net_tls_config *config);
struct net_tls_config *net_tls_config_unref(struct net_tls_config *config);
bool net_tls_config_is_client(const struct net_tls_config *config);
/* Reads the files again. Connections from now on use what is read; a failure changes nothing. */
peg_status net_tls_config_reload(struct net_tls_config *config, peg_error *reterr);

/* ---- one connection: one thread ----------------------------------------------------------- */

struct net_tls;

/* `host`: client, the name or address that the certificate must have; NULL on a server. Connections
 * keep the files as they were when they began. */
peg_status net_tls_new(struct net_tls_config *config, const char *host, struct net_tls **ret_tls,
                       peg_error *reterr);
struct net_tls *net_tls_free(struct net_tls *tls);

/* Takes bytes from the wire; its answer is then in net_tls_wire(). PEG_EIO (E_TLS), PEG_ENOMEM: the
 * connection is lost, for every later call too; an alert for the peer may be in net_tls_wire().
 * PEG_ELIMIT (E_TLS): nothing was taken, because more than PEG_LIMIT_TLS_UNREAD_BYTES would
 * wait for net_tls_read(): read until 0 before each feed. */
peg_status net_tls_feed(struct net_tls *tls, const uint8_t *bytes, size_t len, peg_error *reterr);
/* At most `max` plain bytes; 0 if there are none now. PEG_EIO as above. It also handles tickets,
 * new keys and the end, so read until 0 after every feed, and send net_tls_wire() afterwards. */
peg_status net_tls_read(struct net_tls *tls, uint8_t *ret_bytes, size_t max, size_t *ret_len,
                        peg_error *reterr);
/* Sends plain bytes, all or none. PEG_ESTATE before the handshake is done and after
 * net_tls_shutdown(); PEG_ELIMIT (E_TLS): beyond PEG_LIMIT_TLS_WIRE_BYTES. */
peg_status net_tls_write(struct net_tls *tls, const uint8_t *bytes, size_t len, peg_error *reterr);
/* Starts the handshake (client; a server waits for the peer), or the end (close_notify). */
peg_status net_tls_start(struct net_tls *tls, peg_error *reterr);
void net_tls_shutdown(struct net_tls *tls);
/* Bytes for the wire; borrowed until the next call that is not const. The caller sends them and
 * passes the number to net_tls_took(). */
peg_str net_tls_wire(struct net_tls *tls);
void net_tls_took(struct net_tls *tls, size_t n);

bool net_tls_is_open(const struct net_tls *tls); /* the handshake is done */
/* close_notify came, and all before it was read: an end of the wire without it is a truncation. */
bool net_tls_peer_ended(const struct net_tls *tls);
/* "h2", "http/1.1" or "" without ALPN; borrowed from tls. */
peg_str net_tls_alpn(const struct net_tls *tls);
/* The name in the verified certificate of the peer: the first URI of its subjectAltName, else DNS
 * name, else e-mail address, else its common name. "" without a certificate, or if that name has
 * control characters, is no UTF-8 (common name) or no ASCII (others), or exceeds
 * PEG_LIMIT_TLS_NAME_BYTES. Borrowed from tls. */
peg_str net_tls_peer_name(const struct net_tls *tls);

#endif
