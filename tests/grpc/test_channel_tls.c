/* SPDX-License-Identifier: Apache-2.0 */

/* Channels over TLS: whom they trust, and what they say when they do not. */

#include "../net/certs.h"
#include "client_world.h"

METHOD(echo, "/f/echo", false, false);
METHOD(head, "/f/head", false, false);

struct tls_world {
    struct world w;
    struct certs certs;
    struct net_tls_config *server;
    struct net_tls_config *client;
};

/* The fake server, with the options of TLS; the name in `target` is localhost. */
static void tls_init(struct tls_world *t, const struct net_tls_options *client,
                     const char *tls_host)
{
    struct net_tls_options server = {0};
    struct net_listener_options listening = {0};
    const struct grpc_channel_options base = {.backoff_ms = 10};
    struct grpc_channel_options options = base;
    struct net_endpoint endpoint;
    struct net_address at;
    struct net_tls_options ours = *client;
    char target[64];
    unsigned port;

    certs_make(&t->certs);
    server.cert_file = t->certs.server_cert;
    server.key_file = t->certs.server_key;
    ours.is_client = true;
    if (!ours.ca_file)
        ours.ca_file = t->certs.ca;
    CHECK_STATUS(net_tls_config_new(&server, &t->server, &t->w.error), PEG_OK, t->w.error);
    CHECK_STATUS(net_tls_config_new(&ours, &t->client, &t->w.error), PEG_OK, t->w.error);

    listening.stream.tls = t->server;
    CHECK_INT(net_loops_new(1, &t->w.fake.loops, NULL), PEG_OK);
    CHECK_INT(net_endpoint_parse(peg__str("127.0.0.1:0"), &endpoint, NULL), PEG_OK);
    CHECK(net_endpoint_is_numeric(&endpoint, &at));
    CHECK_INT(net_listen(t->w.fake.loops, &at, &listening, fake_on_accept, &t->w.fake,
                         &t->w.fake.listener, NULL),
              PEG_OK);
    net_address_format(net_listener_address(t->w.fake.listener), t->w.fake.target);
    CHECK_INT(sscanf(t->w.fake.target, "127.0.0.1:%u", &port), 1);
    snprintf(target, sizeof(target), "localhost:%u", port);

    options.tls = t->client;
    options.tls_host = tls_host;
    CHECK_STATUS(world_connect(&t->w, target, &options), PEG_OK, t->w.error);
}

static void tls_done(struct tls_world *t)
{
    world_done(&t->w);
    net_tls_config_unref(t->server);
    net_tls_config_unref(t->client);
    certs_remove(&t->certs);
}

TEST(a_call_goes_over_tls)
{
    struct tls_world t = {0};
    const struct net_tls_options client = {0};
    static char large[100000];
    struct outcome o;

    tls_init(&t, &client, NULL);
    CHECK_INT(call(&t.w, &echo, "secret").code, GRPC_OK);
    memset(large, 'x', sizeof(large) - 1);
    o = call(&t.w, &echo, large);

    CHECK_INT(o.code, GRPC_OK);
    CHECK_INT(o.last_len, sizeof(large) - 1);
    CHECK_INT(t.w.fake.n_connections, 1);
    tls_done(&t);
}

TEST(another_name_can_be_asked_for)
{
    struct tls_world t = {0};
    const struct net_tls_options client = {0};

    tls_init(&t, &client, "server.test");

    CHECK_INT(call(&t.w, &head, "").code, GRPC_OK);
    tls_done(&t);
}

TEST(a_server_with_the_wrong_name_is_not_called)
{
    struct tls_world t = {0};
    const struct net_tls_options client = {0};
    struct outcome o;

    tls_init(&t, &client, "somebody-else.test");
    o = call(&t.w, &echo, "secret");

    CHECK_INT(o.code, GRPC_UNAVAILABLE);
    CHECK(!o.was_sent);
    CHECK_INT(t.w.fake.n_calls, 0);
    tls_done(&t);
}
