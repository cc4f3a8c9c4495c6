/* SPDX-License-Identifier: Apache-2.0 */

#include "bus/register_quota.h"

#include "base/limits.h"

enum bus_pool bus_pool_of(const struct bus_id *id)
{
    return id->len == sizeof(id->bytes) ? BUS_NAMED : BUS_UNNAMED;
}

/* What admits a call leaves the reserve to calls that were admitted. */
static peg_status init_small(struct peg__quota *quota, size_t max)
{
    const struct peg__quota_limits limits = {
        .max = max,
        .reserve = max - max / 100 * PEG_LIMIT_BUS_NAME_PERCENT,
        .has_shares = true,
    };

    return peg__quota_init(quota, &limits);
}

peg_status bus_register_quotas_init(struct bus_register_quotas *quotas)
{
    const struct peg__quota_limits large = {.max = PEG_LIMIT_BUS_LARGE_BYTES, .has_shares = true};
    peg_status status = PEG_OK;

    *quotas = (struct bus_register_quotas){0};
    for (unsigned i = 0; i < BUS_N_POOLS && !status; i++) {
        struct bus_register_quota *quota = &quotas->pools[i];

        status = init_small(&quota->n, PEG_LIMIT_BUS_REGISTERS);
        if (!status)
            status = init_small(&quota->bytes, PEG_LIMIT_BUS_REGISTER_BYTES);
        if (!status)
            status = peg__quota_init(&quota->large_bytes, &large);
    }
    return status;
}

void bus_register_quotas_destroy(struct bus_register_quotas *quotas)
{
    for (unsigned i = 0; i < BUS_N_POOLS; i++) {
        peg__quota_destroy(&quotas->pools[i].n);
        peg__quota_destroy(&quotas->pools[i].bytes);
        peg__quota_destroy(&quotas->pools[i].large_bytes);
    }
}

void bus_register_quotas_give_back(struct bus_register_quotas *quotas, enum bus_pool pool,
                                   uint16_t account, struct bus_cost cost)
{
    struct bus_register_quota *quota = &quotas->pools[pool];

    peg__quota_give_back(&quota->n, account, cost.n);
    peg__quota_give_back(&quota->bytes, account, cost.bytes);
    if (cost.large_bytes)
        peg__quota_give_back(&quota->large_bytes, account, cost.large_bytes);
}

static enum peg__quota_rule rule_of_bytes(const struct bus_want *want)
{
    if (want->admits)
        return PEG__QUOTA_BEGIN;
    return want->is_measured ? PEG__QUOTA_SHARED : PEG__QUOTA_ADMITTED;
}

peg_status bus_register_quotas_take(struct bus_register_quotas *quotas, const struct bus_want *want)
{
    struct bus_register_quota *quota = &quotas->pools[want->pool];
    const enum peg__quota_rule rule = want->admits ? PEG__QUOTA_BEGIN : PEG__QUOTA_ADMITTED;
    const struct bus_cost cost = want->cost;
    struct bus_cost taken = {0};

    if (peg__quota_take(&quota->n, want->account, cost.n, rule))
        return PEG_ELIMIT;
    taken.n = cost.n;
    if (!peg__quota_take(&quota->bytes, want->account, cost.bytes, rule_of_bytes(want))) {
        taken.bytes = cost.bytes;
        if (!cost.large_bytes || !peg__quota_take(&quota->large_bytes, want->account,
                                                  cost.large_bytes, PEG__QUOTA_SHARED))
            return PEG_OK;
    }
    bus_register_quotas_give_back(quotas, want->pool, want->account, taken);
    return PEG_ELIMIT;
}
