/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_SERVER_HEALTH_H
#define PEG_GRPC_SERVER_HEALTH_H

/*
 * grpc.health.v1: what a server says about itself and its services.
 *
 *   grpc_health_new(server, &health, reterr);                    the server itself is SERVING
 *   grpc_health_set(health, peg__str("my.Service"), GRPC_NOT_SERVING, reterr);
 *   ...
 *   grpc_health_shut_down(health);
 *   grpc_server_drain(server, 10000);
 *   server = grpc_server_free(server);
 *   health = grpc_health_free(health);
 *
 * All but the first and the last may be called from any thread.
 */

#include "pegboard/common.h"

struct grpc_server;
struct grpc_health;

/* The numbers of the protocol. */
enum grpc_health_status {
    GRPC_HEALTH_UNKNOWN = 0,
    GRPC_SERVING = 1,
    GRPC_NOT_SERVING = 2,
    GRPC_SERVICE_UNKNOWN = 3, /* nobody has set the service */
};

/* Adds the service to the server. As grpc_server_add(). */
peg_status grpc_health_new(struct grpc_server *server, struct grpc_health **ret_health,
                           peg_error *reterr);
/* After the server. */
struct grpc_health *grpc_health_free(struct grpc_health *health);

/* "" is the whole server. Whoever watches the service hears of it if it is a change. PEG_EINVAL
 * for GRPC_SERVICE_UNKNOWN; PEG_ELIMIT (names PEG_LIMIT_GRPC_HEALTH_SERVICES), PEG_ENOMEM. */
peg_status grpc_health_set(struct grpc_health *health, peg_str service,
                           enum grpc_health_status status, peg_error *reterr);
/* The service is not known any more; whoever watches it goes on waiting for it. */
void grpc_health_forget(struct grpc_health *health, peg_str service);
/* As a client sees it; GRPC_SERVICE_UNKNOWN if nobody has set it. */
enum grpc_health_status grpc_health_get(const struct grpc_health *health, peg_str service);

/* From now on every service is GRPC_NOT_SERVING, whatever is set. Those that watch hear of it,
 * then their calls end (UNAVAILABLE), so that they do not keep a server from draining. */
void grpc_health_shut_down(struct grpc_health *health);

#endif
