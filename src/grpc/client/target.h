/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_CLIENT_TARGET_H
#define PEG_GRPC_CLIENT_TARGET_H

/*
 * What a client is told to talk to (see net/address.h for the forms), read once: addresses, or a
 * name that is to be looked up, and what the server is called in :authority and in TLS.
 */

#include "net/address.h"

enum { GRPC_AUTHORITY_BYTES = NET_HOST_BYTES + 16 };

/* Owned. */
struct grpc_target {
    bool is_name;                /* looked up by net_resolve() */
    struct net_endpoint name;    /* if so */
    struct net_address *numbers; /* if not: owned, in the order of the text, each once */
    size_t n_numbers;
    char host[NET_HOST_BYTES]; /* whom a certificate must name; "localhost" for a unix socket */
    /* What stands in the target behind its scheme: the first of a list, "localhost" for a unix
     * socket and for every interface. */
    char authority[GRPC_AUTHORITY_BYTES];
};

/* A name or a single address without a port gets `default_port`, which does not go into
 * :authority, as with stock clients. PEG_EPARSE (E_ADDRESS), PEG_ELIMIT, PEG_ENOMEM. */
peg_status grpc_target_parse(peg_str text, uint16_t default_port, struct grpc_target *ret_target,
                             peg_error *reterr);
void grpc_target_free(struct grpc_target *target);

#endif
