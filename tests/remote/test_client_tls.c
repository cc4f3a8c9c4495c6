/* SPDX-License-Identifier: Apache-2.0 */

/* Clients over TLS: whom they trust, who they say they are, and what they say when it fails. */

#include "../net/certs.h"
#include "../t.h"
#include "fake_registry.h"
#include "pegboard/client.h"

struct world {
    struct fake fake;
    struct certs certs;
    peg_client *client;
    peg_error error;
    char address[NET_ADDRESS_TEXT]; /* localhost, whom the certificate names */
};

static void world_open(struct world *w, bool asks_clients)
{
    struct net_tls_options server = {0};
    unsigned port;

    memset(w, 0, sizeof(*w));
    certs_make(&w->certs);
    server.cert_file = w->certs.server_cert;
    server.key_file = w->certs.server_key;
    server.ca_file = asks_clients ? w->certs.ca : NULL;
    fake_prepare(&w->fake);
    fake_add(&w->fake, "weather", NULL);
    CHECK_STATUS(net_tls_config_new(&server, &w->fake.tls, &w->error), PEG_OK, w->error);
    CHECK_STATUS(fake_serve(&w->fake), PEG_OK, w->fake.error);
    CHECK_INT(sscanf(w->fake.address, "127.0.0.1:%u", &port), 1);
    snprintf(w->address, sizeof(w->address), "localhost:%u", port);
}

static void world_close(struct world *w)
{
    peg_client_unref(w->client);
    fake_done(&w->fake);
    net_tls_config_unref(w->fake.tls);
    certs_remove(&w->certs);
}

static peg_status list(struct world *w, const peg_client_registry *registry)
{
    const peg_client_options options = {PEG_CLIENT_OPTIONS_INIT, .registries = registry,
                                        .n_registries = 1};
    peg_toolset_list *found;
    peg_status status = peg_client_new(&options, &w->client, &w->error);

    if (!status)
        status = peg_client_list(w->client, NULL, NULL, NULL, &found, &w->error);
    if (!status)
        peg_toolset_list_free(found);
    return status;
}

TEST(a_client_trusts_the_certificates_of_its_options)
{
    struct world w;

    world_open(&w, false);
    CHECK_STATUS(list(&w, &(peg_client_registry){PEG_CLIENT_REGISTRY_INIT, .address = w.address,
                                                 .ca_file = w.certs.ca}),
                 PEG_OK, w.error);
    world_close(&w);
}

TEST(a_client_does_not_trust_an_unsigned_certificate)
{
    struct world w;

    world_open(&w, false);
    CHECK_INT(list(&w, &(peg_client_registry){PEG_CLIENT_REGISTRY_INIT, .address = w.address,
                                              .uses_tls = true}),
              PEG_EIO);
    CHECK_STR(peg__str(w.error.code), "E_SERVICE_UNAVAILABLE");
    world_close(&w);
}

TEST(a_client_without_tls_gets_no_answer)
{
    struct world w;

    world_open(&w, false);
    CHECK_INT(list(&w, &(peg_client_registry){PEG_CLIENT_REGISTRY_INIT, .address = w.address}),
              PEG_EIO);
    world_close(&w);
}

TEST(a_client_shows_its_own_certificate)
{
    struct world w;

    world_open(&w, true);
    CHECK_STATUS(
        list(&w, &(peg_client_registry){PEG_CLIENT_REGISTRY_INIT, .address = w.address,
                                        .ca_file = w.certs.ca, .cert_file = w.certs.client_cert,
                                        .key_file = w.certs.client_key}),
        PEG_OK, w.error);
    world_close(&w);
}

TEST(a_name_that_the_certificate_does_not_have_is_refused)
{
    struct world w;

    world_open(&w, false);
    CHECK_INT(
        list(&w, &(peg_client_registry){PEG_CLIENT_REGISTRY_INIT, .address = w.address,
                                        .ca_file = w.certs.ca, .tls_host = "elsewhere.example"}),
        PEG_EIO);
    world_close(&w);
}
