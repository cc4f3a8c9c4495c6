/* SPDX-License-Identifier: Apache-2.0 */

#include "core/context/wait.h"

#include "base/clock.h"
#include "core/context/budget.h"
#include "core/context/cancel.h"
#include "core/context/ctx.h"

void peg__wait_init(struct peg__wait *wait)
{
    pthread_mutex_init(&wait->lock, NULL);
    peg__clock_cond_init(&wait->changed);
}

void peg__wait_destroy(struct peg__wait *wait)
{
    pthread_cond_destroy(&wait->changed);
    pthread_mutex_destroy(&wait->lock);
}

void peg__wait_wake(struct peg__wait *wait)
{
    pthread_cond_broadcast(&wait->changed);
}

/* What is waited for, and what says stop. */
struct waiting {
    struct peg__wait *wait;
    const peg_clock *clock;
    peg_ctx *ctx; /* or NULL */
    int64_t until_ns;
    bool (*is_done)(void *user);
    void *user;
};

/* All with the lock. */

static bool must_stop(const struct waiting *w, int64_t now_ns)
{
    peg_cancel *cancel = w->ctx ? peg_ctx_cancel(w->ctx) : NULL;

    return (cancel && peg_cancel_fired(cancel)) || (w->ctx && peg__ctx_stop_ns(w->ctx) <= now_ns);
}

/* Is the waiting over? */
static bool look(const struct waiting *w, enum peg__woke *ret_woke)
{
    const int64_t now_ns = peg_clock_mono_ns(w->clock);

    if (w->is_done(w->user))
        *ret_woke = PEG__WOKE_DONE;
    else if (must_stop(w, now_ns))
        *ret_woke = PEG__WOKE_STOP;
    else if (w->until_ns <= now_ns)
        *ret_woke = PEG__WOKE_TIME;
    else
        return false;
    return true;
}

static enum peg__woke sleep_until_over(const struct waiting *w)
{
    enum peg__woke woke;

    while (!look(w, &woke)) {
        const int64_t stop_ns = w->ctx ? peg__ctx_stop_ns(w->ctx) : INT64_MAX;

        peg__clock_wait(w->clock, &w->wait->changed, &w->wait->lock,
                        stop_ns < w->until_ns ? stop_ns : w->until_ns);
    }
    return woke;
}

/* From the token and the budget. With the lock, which whoever waits holds from its last look
 * until it sleeps, so the wake-up cannot fall between the two. */
static void look_again(void *user)
{
    struct peg__wait *wait = user;

    pthread_mutex_lock(&wait->lock);
    peg__wait_wake(wait);
    pthread_mutex_unlock(&wait->lock);
}

/* Hanging up and taking down is done without the lock, because look_again() takes it: at once,
 * if the token has fired, or while unhooking waits for it to end. */
static enum peg__woke wait_with_hooks(const struct waiting *w)
{
    struct peg__budget *budget = peg__ctx_budget(w->ctx);
    struct peg__cancel_hook on_fire = {.fn = look_again, .user = w->wait};
    struct peg__observer on_resume = {.fn = look_again, .user = w->wait};
    enum peg__woke woke;

    pthread_mutex_unlock(&w->wait->lock);
    peg__cancel_hook(&on_fire, peg_ctx_cancel(w->ctx));
    if (budget)
        peg__observers_add(&budget->outermost->resumed, &on_resume);
    pthread_mutex_lock(&w->wait->lock);
    woke = sleep_until_over(w);
    pthread_mutex_unlock(&w->wait->lock);
    if (budget)
        peg__observers_remove(&budget->outermost->resumed, &on_resume);
    peg__cancel_unhook(&on_fire);
    pthread_mutex_lock(&w->wait->lock);
    /* It may have come true meanwhile, and it comes first. */
    return w->is_done(w->user) ? PEG__WOKE_DONE : woke;
}

enum peg__woke peg__wait_for(struct peg__wait *wait, peg_ctx *ctx, int64_t until_ns,
                             bool (*is_done)(void *user), void *user)
{
    const struct waiting w = {
        wait, ctx ? peg_ctx_clock(ctx) : peg_clock_system(), ctx, until_ns, is_done, user};
    enum peg__woke woke;

    if (look(&w, &woke))
        return woke;
    return ctx && (peg_ctx_cancel(ctx) || peg__ctx_budget(ctx)) ? wait_with_hooks(&w)
                                                                : sleep_until_over(&w);
}
