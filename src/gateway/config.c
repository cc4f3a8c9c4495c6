/* SPDX-License-Identifier: Apache-2.0 */

/* Refuses a config that no gateway can be made from, with the member that is wrong and what it must
 * be. */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/mcp/mcp.h"
#include "gateway/node.h"
#include "gateway/search/search.h"
#include "pegboard/gateway.h"
#include "wire/wire.h"

static peg_status reject_config(peg_error *reterr, const char *field, const char *why)
{
    peg_status status = peg__fail(reterr, PEG_EINVAL, "E_GATEWAY_CONFIG", "%s: %s", field, why);

    if (reterr)
        snprintf(reterr->where, sizeof(reterr->where), "/%s", field);
    return status;
}

static peg_status check_language(const peg_gateway_config *config, peg_error *reterr)
{
    struct gw_language language;
    char why[400] = "use one of ";
    const size_t len = strlen(why);

    if (!config->search_language || gw_language_find(config->search_language, &language))
        return PEG_OK;
    gw_language_names(why + len, sizeof(why) - len);
    return reject_config(reterr, "search_language", why);
}

static peg_status check_bounds(const peg_gateway_config *config, peg_error *reterr)
{
    const struct {
        const char *field;
        uint64_t value; /* 0 is the default */
        uint64_t least;
        uint64_t most;
        const char *message;
    } bounds[] = {
        {"lease_ms", (uint64_t)config->lease_ms, 100, INT64_MAX, "it must be at least 100"},
        {"keepalive_ms", (uint64_t)config->keepalive_ms, 100, INT64_MAX, "it must be at least 100"},
        {"max_held_bytes", config->max_held_bytes, 1 << 20, UINT64_MAX,
         "it must be at least 1 MiB"},
        {"max_payload_bytes", config->max_payload_bytes, 1 << 10, PEG_LIMIT_ARGS_BYTES,
         "it must be 1 KiB to 4 MiB"},
        {"max_connections", config->max_connections, 1, 1000000, "it must be at most 1,000,000"},
        {"goa_generation", config->goa_generation, 1, 2, "it must be 1 or 2"},
    };

    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
        if (bounds[i].value &&
            (bounds[i].value < bounds[i].least || bounds[i].value > bounds[i].most))
            return reject_config(reterr, bounds[i].field, bounds[i].message);
    return PEG_OK;
}

static peg_status check_redis(const peg_gateway_config *config, peg_error *reterr)
{
    if (config->redis_password && config->redis_password[0] && !gw_has_redis(config))
        return reject_config(reterr, "redis_password", "it needs redis, which says whose it is");
    if ((config->redis_ca || config->redis_cert || config->redis_key) && !gw_has_redis(config))
        return reject_config(reterr, "redis_ca, redis_cert, redis_key", "they need redis");
    if (gw_has_redis(config) && config->store && strcmp(config->store->kind, "sqlite") == 0)
        return reject_config(reterr, "store",
                             "SQLite is for one node: in a cluster leave it out, and toolsets are "
                             "kept in memory and on Redis");
    return PEG_OK;
}

peg_status gw_check_config(const peg_gateway_config *config, peg_error *reterr)
{
    peg_status status = check_redis(config, reterr);

    if (status)
        return status;
    /* In a cluster it is part of keys. */
    if (config->name && wire_check_name(peg__str(config->name), "name", NULL))
        return reject_config(reterr, "name",
                             "use 1 to 256 of the characters A-Z a-z 0-9 _ . : / -");
    if (config->mcp_authorization_server && !gw_mcp_is_issuer(config->mcp_authorization_server))
        return reject_config(reterr, "mcp_authorization_server",
                             "it must be an https:// or http:// URL without query and fragment");
    if (config->ping_interval_ms < 0 || config->ping_interval_ms > 3600000)
        return reject_config(reterr, "ping_interval_ms", "it must be 1 ms to an hour");
    if (config->missed_ping_threshold > 1000)
        return reject_config(reterr, "missed_ping_threshold", "it must be at most 1,000");
    if (config->result_mapping_ttl_ms < 0 || config->drain_ms < 0 || config->call_timeout_ms < 0)
        return reject_config(reterr, "result_mapping_ttl_ms, drain_ms, call_timeout_ms",
                             "they must not be negative");
    if (config->call_timeout_ms > PEG_LIMIT_GATEWAY_MAX_CALL_MS)
        return reject_config(reterr, "call_timeout_ms", "it must be at most 86,400,000");
    if (!config->tls_cert != !config->tls_key)
        return reject_config(reterr, "tls_cert", "it needs tls_key, and the other way round");
    if (config->tls_client_ca && !config->tls_cert)
        return reject_config(reterr, "tls_client_ca", "it needs tls_cert and tls_key");
    if (config->admin_names && !config->tls_client_ca)
        return reject_config(reterr, "admin_names",
                             "it needs tls_client_ca, which says whose they are");
    status = check_language(config, reterr);
    return status ? status : check_bounds(config, reterr);
}
