/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_ACCESS_PRINCIPAL_H
#define PEG_GATEWAY_ACCESS_PRINCIPAL_H

/*
 * Who is calling: the name of a bearer token, of a client certificate, or `local` on a listener of
 * this machine without authentication. The interceptor finds it out before any handler hears of
 * the call, and refuses what has none.
 */

#include "grpc/client/call.h"

enum gw_principal_from { GW_FROM_LOCAL, GW_FROM_TOKEN, GW_FROM_CERTIFICATE, GW_FROM_ANYWHERE };

struct gw_principal {
    peg_str name; /* "token:ci", "cert:agent.example", "local", "anyone" (--insecure) */
    enum gw_principal_from from;
    bool is_admin; /* its token is marked so, or its certificate's name is among --admin-names */
};

/* Of a call behind the interceptor: never NULL; lives as long as the call. */
const struct gw_principal *gw_call_principal(const struct grpc_call *call);

#endif
