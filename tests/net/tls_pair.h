/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_NET_TLS_PAIR_H
#define PEG_TESTS_NET_TLS_PAIR_H

/* Certificates, and two sides of a TLS connection that are wired to each other. */

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "certs.h"
#include "net/tls/tls.h"

static struct certs certs;

/* Making keys takes a moment, so all tests share one folder. */
__attribute__((constructor)) static void make_certs(void)
{
    certs_make(&certs);
}

__attribute__((destructor)) static void remove_certs(void)
{
    certs_remove(&certs);
}

/* How bytes travel: at most `piece` at once. */
struct pair {
    struct net_tls *client;
    struct net_tls *server;
    size_t piece;
    peg_error client_error; /* code NULL: none */
    peg_error server_error;
};

static inline struct net_tls_config *new_config(const struct net_tls_options *options)
{
    struct net_tls_config *config = NULL;
    peg_error error;

    CHECK_STATUS(net_tls_config_new(options, &config, &error), PEG_OK, error);
    return config;
}

static inline struct net_tls_options server_options(void)
{
    return (struct net_tls_options){.cert_file = certs.server_cert, .key_file = certs.server_key};
}

static inline struct net_tls_options client_options(void)
{
    return (struct net_tls_options){.ca_file = certs.ca, .is_client = true};
}

/* Moves what waits from one side to the other; false if nothing did. */
static inline bool move(struct net_tls *from, struct net_tls *to, size_t piece, peg_error *error)
{
    const peg_str wire = net_tls_wire(from);
    const size_t len = wire.len < piece ? wire.len : piece;

    if (len == 0)
        return false;
    if (!error->code)
        net_tls_feed(to, (const uint8_t *)wire.ptr, len, error);
    net_tls_took(from, len);
    return true;
}

static inline void settle(struct pair *pair)
{
    bool has_moved = true;

    while (has_moved) {
        has_moved = move(pair->client, pair->server, pair->piece, &pair->server_error);
        has_moved |= move(pair->server, pair->client, pair->piece, &pair->client_error);
    }
}

/* Shakes hands as far as it goes. */
static inline void wire_up(struct pair *pair, struct net_tls_config *client,
                           struct net_tls_config *server, const char *host)
{
    peg_error error;

    if (pair->piece == 0)
        pair->piece = PEG_LIMIT_TLS_UNREAD_BYTES;
    CHECK_STATUS(net_tls_new(client, host, &pair->client, &error), PEG_OK, error);
    CHECK_STATUS(net_tls_new(server, NULL, &pair->server, &error), PEG_OK, error);
    CHECK_STATUS(net_tls_start(pair->server, &error), PEG_OK, error);
    CHECK_STATUS(net_tls_start(pair->client, &error), PEG_OK, error);
    settle(pair);
}

static inline void wire_up_options(struct pair *pair, const struct net_tls_options *client,
                                   const struct net_tls_options *server, const char *host)
{
    struct net_tls_config *client_config = new_config(client);
    struct net_tls_config *server_config = new_config(server);

    wire_up(pair, client_config, server_config, host);
    net_tls_config_unref(client_config);
    net_tls_config_unref(server_config);
}

static inline void open_pair(struct pair *pair)
{
    const struct net_tls_options client = client_options();
    const struct net_tls_options server = server_options();

    wire_up_options(pair, &client, &server, "localhost");
    CHECK(net_tls_is_open(pair->client) && net_tls_is_open(pair->server));
}

static inline void unwire(struct pair *pair)
{
    pair->client = net_tls_free(pair->client);
    pair->server = net_tls_free(pair->server);
}

/* What `to` reads after `from` wrote; checks that nothing else comes. */
static inline void check_arrives(struct pair *pair, struct net_tls *from, struct net_tls *to,
                                 const char *text)
{
    peg_error *error = to == pair->server ? &pair->server_error : &pair->client_error;
    char got[1024] = "";
    size_t len = 0;

    CHECK_INT(net_tls_write(from, (const uint8_t *)text, strlen(text), error), PEG_OK);
    settle(pair);
    CHECK_INT(net_tls_read(to, (uint8_t *)got, sizeof(got), &len, error), PEG_OK);
    CHECK_STR(peg__strn(got, len), text);
    CHECK_INT(net_tls_read(to, (uint8_t *)got, sizeof(got), &len, error), PEG_OK);
    CHECK_INT(len, 0);
}

static inline void check_refused(const struct pair *pair, const peg_error *error,
                                 const char *reason)
{
    CHECK(!net_tls_is_open(pair->client) || !net_tls_is_open(pair->server));
    CHECK(error->code);
    CHECK_STR(peg_cstr(error->code), "E_TLS");
    CHECK_INT(error->status, PEG_EIO);
    if (!strstr(error->message, reason))
        T_FAIL("\"%s\" does not say \"%s\"", error->message, reason);
}

#endif
