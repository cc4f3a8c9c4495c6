/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_ACCESS_LISTEN_CHECK_H
#define PEG_GATEWAY_ACCESS_LISTEN_CHECK_H

/* What is wrong with an address, before anything is made for it. */

#include "pegboard/gateway.h"

#define GW_DEFAULT_ADDRESS "127.0.0.1:9090"
#define GW_ACTIVATED "systemd" /* instead of an address: sockets that were handed over */

/* Before there are threads, and before the store is made: would a gateway of that config listen on
 * `addr` (NULL: the default), and on its admin_addr? Fails as peg_gateway_listen() would, and takes
 * nothing: somebody else may still be faster. */
peg_status gw_listen_check(const peg_gateway_config *config, const char *addr, peg_error *reterr);

/* May it listen on so many sockets that were handed over? PEG_EINVAL (E_LISTEN,
 * E_LISTEN_INSECURE). */
peg_status gw_listen_check_activated(size_t n_sockets, bool asks, bool is_insecure,
                                     peg_error *reterr);

#endif
