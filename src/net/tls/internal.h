/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_TLS_INTERNAL_H
#define PEG_NET_TLS_INTERNAL_H

/* What tls.c and tls_config.c share. */

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "net/tls/tls.h"

/* Shared; only ctx changes, under the lock. Each SSL has its own reference to the ctx it was made
 * with, and nothing in a ctx points back here. */
struct net_tls_config {
    atomic_uint n_refs;
    pthread_mutex_t lock;
    SSL_CTX *ctx;
    char *cert_file; /* owned, as are the next two; NULL if not given */
    char *key_file;
    char *ca_file;
    bool is_client;
    bool is_client_optional;
    bool is_unverified;
    bool allows_http1;
};

/* A new connection with what was read last; NULL if OpenSSL has no memory. */
SSL *net_tls_config_connection(struct net_tls_config *config);

#endif
