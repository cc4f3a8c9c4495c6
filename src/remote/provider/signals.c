/* SPDX-License-Identifier: Apache-2.0 */

/* SIGTERM and SIGINT for one provider of the process. Handlers of the host are put back. */

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "base/error.h"
#include "remote/provider/provider.h"

static _Atomic(peg_provider *) target;
/* Handlers that run just now, perhaps on other threads: the target must not go meanwhile. */
static atomic_uint n_handling;
static struct sigaction before_term;
static struct sigaction before_int;

static void on_signal(int number)
{
    const int kept = errno;
    peg_provider *prov;

    (void)number;
    atomic_fetch_add(&n_handling, 1);
    prov = atomic_load(&target);
    if (prov)
        peg_provider_stop(prov);
    atomic_fetch_sub(&n_handling, 1);
    errno = kept;
}

peg_status remote__prov_catch_signals(peg_provider *prov, peg_error *reterr)
{
    peg_provider *nobody = NULL;
    struct sigaction action;

    if (!atomic_compare_exchange_strong(&target, &nobody, prov))
        return peg__fail(reterr, PEG_ESTATE, "E_PROVIDER_SIGNALS",
                         "another provider of this process handles signals: set handles_signals "
                         "for one of them, and stop the others yourself");
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, &before_term);
    sigaction(SIGINT, &action, &before_int);
    return PEG_OK;
}

void remote__prov_release_signals(peg_provider *prov)
{
    (void)prov;
    sigaction(SIGTERM, &before_term, NULL);
    sigaction(SIGINT, &before_int, NULL);
    atomic_store(&target, NULL);
    while (atomic_load(&n_handling))
        sched_yield();
}
