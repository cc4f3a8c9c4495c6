/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_TLS_TLS_H
#define PEG_NET_TLS_TLS_H

/*
 * TLS without I/O: bytes of the wire in, plain bytes out, and the other way round.
 * net/stream/stream.c puts it between a socket and whoever reads it.
 */

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
    bool allows_http1;       /* server: ALPN offers http/1.1 after h2 */
};

struct net_tls_config;

/* Reads the files: TLS 1.2 or 1.3, ALPN h2. A server refuses whoever asks for other protocols only,
 * a client a server that picks another one; a peer without ALPN is taken. PEG_EIO (it cannot be
 * read) or PEG_EINVAL (what it holds), E_TLS_CONFIG, with the file. Nobody is asked for a
 * passphrase. */
peg_status net_tls_config_new(const struct net_tls_options *options,
                              struct net_tls_config **ret_config, peg_error *reterr);
struct net_tls_config *net_tls_config_ref(struct net_tls_config *config);
struct net_tls_config *net_tls_config_unref(struct net_tls_config *config);
bool net_tls_config_is_client(const struct net_tls_config *config);
/* Reads the files again. Connections from now on use what is read; a failure changes nothing. */
peg_status net_tls_config_reload(struct net_tls_config *config, peg_error *reterr);

/* ---- one connection: one thread ----------------------------------------------------------- */

struct net_tls;

/* `host`: client, whom the certificate must name in its subjectAltName (an IP address too), NULL
 * on a server. Connections keep the files as they were when they began. */
peg_status net_tls_new(struct net_tls_config *config, const char *host, struct net_tls **ret_tls,
                       peg_error *reterr);
struct net_tls *net_tls_free(struct net_tls *tls);

/* Takes bytes from the wire. What it has to answer is then in net_tls_wire(). PEG_EIO (E_TLS):
 * the connection is lost, and every later call says the same; an alert for the peer may be in
 * net_tls_wire(). PEG_ENOMEM loses it too. PEG_ELIMIT (E_TLS_UNREAD): nothing was taken, because
 * more than PEG_LIMIT_TLS_UNREAD_BYTES would wait for net_tls_read(); whoever reads until 0 before
 * each feed never sees it with that many bytes or fewer. */
peg_status net_tls_feed(struct net_tls *tls, const uint8_t *bytes, size_t len, peg_error *reterr);
/* Plain bytes that came, at most `max` of them; 0 if there are none now. PEG_EIO as above. What
 * the protocol itself has to say (tickets, new keys, the end) is noticed here, so read until 0
 * after every feed, and look at net_tls_wire() afterwards. */
peg_status net_tls_read(struct net_tls *tls, uint8_t *ret_bytes, size_t max, size_t *ret_len,
                        peg_error *reterr);
/* Plain bytes to send, all of them or none. PEG_ESTATE before the handshake is done and after
 * net_tls_shutdown(); PEG_ELIMIT (E_TLS_WIRE_FULL) if more than PEG_LIMIT_TLS_WIRE_BYTES would
 * wait in net_tls_wire(). */
peg_status net_tls_write(struct net_tls *tls, const uint8_t *bytes, size_t len, peg_error *reterr);
/* Starts the handshake (client; a server waits for the peer), or the end (close_notify). */
peg_status net_tls_start(struct net_tls *tls, peg_error *reterr);
void net_tls_shutdown(struct net_tls *tls);
/* Bytes for the wire that wait; borrowed until the next call on tls that is not const. The caller
 * sends them and says how many it took. */
peg_str net_tls_wire(struct net_tls *tls);
void net_tls_took(struct net_tls *tls, size_t n);

bool net_tls_is_open(const struct net_tls *tls); /* the handshake is done */
/* close_notify came, and all before it was read: an end of the wire without it is a truncation. */
bool net_tls_peer_ended(const struct net_tls *tls);
/* "h2", "http/1.1" or "" if the peer asked for none (a server's side) or knows of no such thing
 * (a client's); borrowed from tls. */
peg_str net_tls_alpn(const struct net_tls *tls);
/* The name in the verified certificate of the peer: the first URI of its subjectAltName, else
 * the first DNS name, else the first e-mail address, else its common name. "" if it showed no
 * certificate, or that name has control characters, no UTF-8 (the common name) or no ASCII (all
 * others), or more than PEG_LIMIT_TLS_NAME_BYTES. Borrowed from tls. */
peg_str net_tls_peer_name(const struct net_tls *tls);

#endif
