/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_REFS_H
#define PEG_BASE_REFS_H

/* Reference counts of shared things. Any thread. */

#include <stdatomic.h>
#include <stdbool.h>

static inline void peg__refs_take(atomic_uint *n_refs)
{
    atomic_fetch_add_explicit(n_refs, 1, memory_order_relaxed);
}

/* True if it was the last one. Whoever has the only reference has nobody to count against: that
 * saves a locked instruction, of which a call would otherwise make a dozen. */
static inline bool peg__refs_drop(atomic_uint *n_refs)
{
    return atomic_load_explicit(n_refs, memory_order_acquire) == 1 ||
           atomic_fetch_sub_explicit(n_refs, 1, memory_order_acq_rel) == 1;
}

#endif
