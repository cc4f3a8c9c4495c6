/* SPDX-License-Identifier: Apache-2.0 */

#include "base/quota.h"

#include "base/limits.h"
#include "base/mem.h"

peg_status peg__quota_init(struct peg__quota *quota, const struct peg__quota_limits *limits)
{
    atomic_size_t *shares = NULL;

    *quota = (struct peg__quota){0};
    if (limits->has_shares) {
        shares = (atomic_size_t *)peg__alloc_zero(PEG_LIMIT_QUOTA_KEYS, sizeof(*shares));
        if (!shares)
            return PEG_ENOMEM;
    }
    quota->limits = *limits;
    quota->shares = shares;
    return PEG_OK;
}

void peg__quota_destroy(struct peg__quota *quota)
{
    peg__free(quota->shares);
    *quota = (struct peg__quota){0};
}

uint16_t peg__quota_key(struct peg__hash_key secret, peg_str name)
{
    _Static_assert(PEG_LIMIT_QUOTA_KEYS <= UINT16_MAX, "a key has 16 bits");
    return (uint16_t)(1 + peg__hash(secret, name) % (PEG_LIMIT_QUOTA_KEYS - 1));
}

static size_t read_amount(const atomic_size_t *amount)
{
    return atomic_load_explicit(amount, memory_order_relaxed);
}

static size_t add_amount(atomic_size_t *amount, size_t more)
{
    return atomic_fetch_add_explicit(amount, more, memory_order_relaxed);
}

static bool has_share(const struct peg__quota *quota, uint16_t key)
{
    return key && quota->shares;
}

/* `used` and `own` are without `amount`. Shares are of what may begin: were they of max, three
 * holders with full shares would leave just the reserve, and a fourth could not begin. */
static bool is_granted(const struct peg__quota *quota, bool is_shared, size_t used, size_t own,
                       size_t amount, enum peg__quota_rule rule)
{
    const struct peg__quota_limits *limits = &quota->limits;
    const size_t unreserved = limits->max - limits->reserve;
    const size_t max = rule == PEG__QUOTA_BEGIN ? unreserved : limits->max;

    if (is_shared && own <= limits->floor && amount <= limits->floor - own)
        return true;
    if (used > max || amount > max - used)
        return false;
    if (!is_shared || rule == PEG__QUOTA_ADMITTED)
        return true;
    return used < unreserved && own + amount <= PEG_LIMIT_QUOTA_SHARE * (unreserved - used);
}

bool peg__quota_has(const struct peg__quota *quota, uint16_t key, size_t amount,
                    enum peg__quota_rule rule)
{
    const bool is_shared = has_share(quota, key);

    return is_granted(quota, is_shared, read_amount(&quota->used),
                      is_shared ? read_amount(&quota->shares[key]) : 0, amount, rule);
}

peg_status peg__quota_take(struct peg__quota *quota, uint16_t key, size_t amount,
                           enum peg__quota_rule rule)
{
    const bool is_shared = has_share(quota, key);
    const size_t used = add_amount(&quota->used, amount);
    const size_t own = is_shared ? add_amount(&quota->shares[key], amount) : 0;

    if (is_granted(quota, is_shared, used, own, amount, rule))
        return PEG_OK;
    peg__quota_give_back(quota, key, amount);
    return PEG_ELIMIT;
}

void peg__quota_add(struct peg__quota *quota, uint16_t key, size_t amount)
{
    add_amount(&quota->used, amount);
    if (has_share(quota, key))
        add_amount(&quota->shares[key], amount);
}

void peg__quota_give_back(struct peg__quota *quota, uint16_t key, size_t amount)
{
    atomic_fetch_sub_explicit(&quota->used, amount, memory_order_relaxed);
    if (has_share(quota, key))
        atomic_fetch_sub_explicit(&quota->shares[key], amount, memory_order_relaxed);
}

void peg__quota_move(struct peg__quota *quota, uint16_t from, uint16_t to, size_t amount)
{
    if (has_share(quota, to))
        add_amount(&quota->shares[to], amount);
    if (has_share(quota, from))
        atomic_fetch_sub_explicit(&quota->shares[from], amount, memory_order_relaxed);
}

size_t peg__quota_used(const struct peg__quota *quota)
{
    return read_amount(&quota->used);
}

size_t peg__quota_share(const struct peg__quota *quota, uint16_t key)
{
    return has_share(quota, key) ? read_amount(&quota->shares[key]) : 0;
}

bool peg__quota_is_exceeded(const struct peg__quota *quota)
{
    return read_amount(&quota->used) > quota->limits.max;
}

uint16_t peg__quota_largest(const struct peg__quota *quota)
{
    uint16_t largest = 0;
    size_t most = 0;

    for (uint16_t key = 1; quota->shares && key < PEG_LIMIT_QUOTA_KEYS; key++) {
        const size_t own = read_amount(&quota->shares[key]);

        if (own > most) {
            most = own;
            largest = key;
        }
    }
    return largest;
}
