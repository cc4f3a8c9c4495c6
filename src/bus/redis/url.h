/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BUS_REDIS_URL_H
#define PEG_BUS_REDIS_URL_H

/*
 * Where a Redis is, as REDIS_URL says it:
 *
 *   host:port   host   [::1]:6379   :6379                    `redis:6379` is a host named redis
 *   redis://[user[:password]@]host[:port][/db]               rediss:// is the same with TLS
 *   unix://[user[:password]@]/path[?db=N]
 *
 * User, password and path may be percent-encoded. The port is 6379 and the database 0, if none is
 * named; `?db=N` may stand in the place of /db.
 */

#include "net/address.h"

enum { REDIS_SECRET_TEXT = 513 };

/* A value. */
struct redis_url {
    struct net_endpoint endpoint;
    bool is_tls;
    unsigned db;
    char user[REDIS_SECRET_TEXT]; /* "": the default one */
    char password[REDIS_SECRET_TEXT];
    bool has_password;
};

/* `password` (REDIS_PASSWORD, may be NULL or "") holds if the URL has none. PEG_EPARSE
 * (E_REDIS_URL), with a sentence that does not show what may be a password. */
peg_status redis_url_parse(const char *text, const char *password, struct redis_url *ret_url,
                           peg_error *reterr) PEG_MUST_USE;

#endif
