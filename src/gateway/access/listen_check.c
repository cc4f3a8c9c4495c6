/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/access/listen_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/str.h"
#include "gateway/access/auth.h"
#include "net/listener.h"

peg_status gw_listen_check_activated(size_t n_sockets, bool asks, bool is_insecure,
                                     peg_error *reterr)
{
    if (!n_sockets)
        return peg__fail(reterr, PEG_EINVAL, "E_LISTEN",
                         "no socket was handed over (LISTEN_FDS): start it from a socket unit, or "
                         "name an address");
    if (!asks && !is_insecure)
        return peg__fail(reterr, PEG_EINVAL, "E_LISTEN_INSECURE",
                         "whoever reaches the sockets that were handed over could call: give "
                         "--token-file (see `pegboard token new`) or --tls-client-ca, or say "
                         "--insecure");
    return PEG_OK;
}

/* An address that may be listened on is one that can be read. */
static peg_status try_text(const char *text, peg_error *reterr)
{
    struct net_endpoint endpoint;
    struct net_address address;
    const peg_status status = net_endpoint_parse(peg__str(text), &endpoint, reterr);

    if (status || !net_endpoint_is_numeric(&endpoint, &address))
        return status;
    return net_listen_try(&address, reterr);
}

peg_status gw_listen_check(const peg_gateway_config *config, const char *addr, peg_error *reterr)
{
    const char *wanted = addr ? addr : GW_DEFAULT_ADDRESS;
    const bool asks = config->token_file || config->tls_client_ca;
    const bool is_activated = strcmp(wanted, GW_ACTIVATED) == 0;
    peg_status status;

    if (is_activated)
        status = gw_listen_check_activated(secure_getenv("LISTEN_FDS") ? 1 : 0, asks,
                                           config->insecure, reterr);
    else
        status = gw_auth_check_listen(peg__str(wanted), asks, config->insecure, reterr);
    if (!status && config->admin_addr)
        status = gw_auth_check_admin(peg__str(config->admin_addr), config->insecure, reterr);
    if (!status && !is_activated)
        status = try_text(wanted, reterr);
    if (!status && config->admin_addr)
        status = try_text(config->admin_addr, reterr);
    return status;
}
