/* SPDX-License-Identifier: Apache-2.0 */

#include "base/error.h"
#include "base/limits.h"
#include "net/loop/internal.h"

struct net_loops {
    unsigned n;
    atomic_uint first; /* where the next search begins, so that equals take turns */
    struct net_loop *at[];
};

PEG_DEFINE_CLEANUP(struct net_loops, net_loops_free)

static peg_status add_loop(struct net_loops *loops, peg_error *reterr)
{
    struct net_loop *loop;
    peg_status status = net_loop_new(&loop, reterr);

    if (status)
        return status;
    status = net_loop_start(loop, reterr);
    if (status) {
        net_loop_free(loop);
        return status;
    }
    loops->at[loops->n++] = loop;
    return PEG_OK;
}

peg_status net_loops_new(unsigned n, struct net_loops **ret_loops, peg_error *reterr)
{
    PEG_CLEANUP(net_loops_freep) struct net_loops *loops = NULL;
    const unsigned wanted = n ? n : 1;
    peg_status status = PEG_OK;

    if (wanted > PEG_LIMIT_NET_LOOPS)
        return peg__fail(reterr, PEG_ELIMIT, "E_LOOP",
                         "%u event loops: use at most %d, one per core", wanted,
                         PEG_LIMIT_NET_LOOPS);
    loops = (struct net_loops *)peg__alloc_zero(1, sizeof(*loops) + wanted * sizeof(*loops->at));
    if (!loops)
        return peg__fail_nomem(reterr);
    while (!status && loops->n < wanted)
        status = add_loop(loops, reterr);
    if (status)
        return status;
    *ret_loops = loops;
    loops = NULL;
    return PEG_OK;
}

struct net_loops *net_loops_free(struct net_loops *loops)
{
    if (loops) {
        net_loops_end(loops->at, loops->n);
        peg__free(loops);
    }
    return NULL;
}

unsigned net_loops_len(const struct net_loops *loops)
{
    return loops->n;
}

struct net_loop *net_loops_at(const struct net_loops *loops, unsigned i)
{
    return loops->at[i];
}

struct net_loop *net_loops_least(struct net_loops *loops)
{
    const unsigned first = atomic_fetch_add_explicit(&loops->first, 1, memory_order_relaxed);
    struct net_loop *least = loops->at[first % loops->n];

    for (unsigned i = 1; i < loops->n; i++) {
        struct net_loop *loop = loops->at[(first + i) % loops->n];

        if (net_loop_load(loop) < net_loop_load(least))
            least = loop;
    }
    return least;
}
