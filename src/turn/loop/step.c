/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A pause from beginning to end:
 *
 *   peg_stepper_pause -> enter -> emit_pause -> await
 *   peg_stepper_continue, peg_stepper_disable -> resume_pause
 *
 * A pause lives on the stack of the thread that waits and is in the stepper's list while it may be
 * continued. Checking that its session is enabled and adding it are one critical section, and so
 * are disabling a session and resuming its pauses: no pause can slip in between and wait for ever.
 */

#include "pegboard/step.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/context/context.h"
#include "json/json.h"

enum { DEFAULT_WAIT_MS = 30000 };

struct pause {
    peg_pause_info info;
    peg_str session; /* whole; borrowed from the caller */
    struct pause *next;
    struct pause **link; /* NULL: resumed */
    peg_step_decision decision;
};

struct peg_stepper {
    atomic_uint n_refs;
    int64_t max_wait_ms; /* negative: for ever */
    struct peg__wait wait;
    /* Under wait.lock: */
    struct peg__map sessions; /* those that are enabled; values mean nothing */
    struct pause *pauses;
    size_t n_pauses;
};

/* ---- making and dropping ------------------------------------------------------------- */

peg_status peg_stepper_new(int64_t max_wait_ms, peg_stepper **ret_steps, peg_error *reterr)
{
    peg_stepper *steps = peg__alloc_zero(1, sizeof(*steps));

    if (!steps)
        return peg__fail_nomem(reterr);
    atomic_init(&steps->n_refs, 1);
    steps->max_wait_ms = max_wait_ms ? max_wait_ms : DEFAULT_WAIT_MS;
    steps->sessions = (struct peg__map)PEG__MAP(PEG_LIMIT_STEP_SESSIONS);
    peg__wait_init(&steps->wait);
    *ret_steps = steps;
    return PEG_OK;
}

peg_stepper *peg_stepper_ref(peg_stepper *steps)
{
    if (steps)
        peg__refs_take(&steps->n_refs);
    return steps;
}

peg_stepper *peg_stepper_unref(peg_stepper *steps)
{
    if (!steps || !peg__refs_drop(&steps->n_refs))
        return NULL;
    peg__map_free(&steps->sessions);
    peg__wait_destroy(&steps->wait);
    peg__free(steps);
    return NULL;
}

/* ---- the list of pauses: all with the lock ---------------------------------------------- */

static void add_pause(peg_stepper *steps, struct pause *pause)
{
    pause->next = steps->pauses;
    pause->link = &steps->pauses;
    if (pause->next)
        pause->next->link = &pause->next;
    steps->pauses = pause;
    steps->n_pauses++;
}

static void remove_pause(peg_stepper *steps, struct pause *pause)
{
    *pause->link = pause->next;
    if (pause->next)
        pause->next->link = pause->link;
    pause->link = NULL;
    steps->n_pauses--;
}

/* The waiting thread may return as soon as the lock is free: the pause is gone then. */
static void resume_pause(peg_stepper *steps, struct pause *pause, peg_step_decision decision)
{
    pause->decision = decision;
    remove_pause(steps, pause);
    peg__wait_wake(&steps->wait);
}

static struct pause *find(const peg_stepper *steps, const char *pause_id)
{
    struct pause *pause = steps->pauses;

    while (pause && strcmp(pause->info.pause_id, pause_id) != 0)
        pause = pause->next;
    return pause;
}

/* ---- sessions ---------------------------------------------------------------------------- */

static bool is_session(peg_str id)
{
    return id.len > 0 && id.len <= PEG_LIMIT_ID_BYTES && !memchr(id.ptr, '\0', id.len) &&
           peg__utf8_is_valid(id);
}

peg_status peg_stepper_enable(peg_stepper *steps, peg_str session_id, peg_error *reterr)
{
    peg_status status;

    if (!is_session(session_id))
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "a session cannot be stepped: its id must be 1 to %d bytes of UTF-8",
                         PEG_LIMIT_ID_BYTES);
    pthread_mutex_lock(&steps->wait.lock);
    status = peg__map_put(&steps->sessions, session_id, steps, NULL);
    pthread_mutex_unlock(&steps->wait.lock);
    if (status == PEG_ELIMIT)
        return peg__fail(
            reterr, PEG_ELIMIT, "E_STEPS_FULL",
            "at most %d sessions can be stepped at once: disable those that have ended",
            PEG_LIMIT_STEP_SESSIONS);
    return status ? peg__fail_nomem(reterr) : PEG_OK;
}

void peg_stepper_disable(peg_stepper *steps, peg_str session_id)
{
    struct pause *next;

    pthread_mutex_lock(&steps->wait.lock);
    peg__map_remove(&steps->sessions, session_id, NULL);
    for (struct pause *pause = steps->pauses; pause; pause = next) {
        next = pause->next;
        if (peg__str_eq(pause->session, session_id))
            resume_pause(steps, pause, PEG_STEP_CONTINUE);
    }
    pthread_mutex_unlock(&steps->wait.lock);
}

bool peg_stepper_is_enabled(peg_stepper *steps, peg_str session_id)
{
    bool is_enabled;

    pthread_mutex_lock(&steps->wait.lock);
    is_enabled = peg__map_find(&steps->sessions, session_id) != NULL;
    pthread_mutex_unlock(&steps->wait.lock);
    return is_enabled;
}

/* ---- for other threads: finding and resuming pauses ---------------------------------------- */

peg_status peg_stepper_continue(peg_stepper *steps, const char *pause_id,
                                peg_step_decision decision, peg_pause_info *ret_info,
                                peg_error *reterr)
{
    struct pause *pause;

    if (decision != PEG_STEP_CONTINUE && decision != PEG_STEP_SKIP_TOOLS &&
        decision != PEG_STEP_ABORT)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "%d is no decision: see peg_step_decision", (int)decision);
    pthread_mutex_lock(&steps->wait.lock);
    pause = find(steps, pause_id);
    if (pause && ret_info)
        *ret_info = pause->info;
    if (pause)
        resume_pause(steps, pause, decision);
    pthread_mutex_unlock(&steps->wait.lock);
    if (pause)
        return PEG_OK;
    return peg__fail(reterr, PEG_ENOTFOUND, "E_STEP_PAUSE",
                     "no pause '%.64s': it was resumed already, or never existed", pause_id);
}

bool peg_stepper_lookup(peg_stepper *steps, const char *pause_id, peg_pause_info *ret_info)
{
    const struct pause *pause;

    pthread_mutex_lock(&steps->wait.lock);
    pause = find(steps, pause_id);
    if (pause)
        *ret_info = pause->info;
    pthread_mutex_unlock(&steps->wait.lock);
    return pause != NULL;
}

size_t peg_stepper_n_waiting(peg_stepper *steps)
{
    size_t n;

    pthread_mutex_lock(&steps->wait.lock);
    n = steps->n_pauses;
    pthread_mutex_unlock(&steps->wait.lock);
    return n;
}

/* ---- pausing --------------------------------------------------------------------------------- */

static void copy_cut(char *to, size_t size, peg_str text)
{
    size_t len = text.len;

    if (len > size - 1)
        len = peg__utf8_cut(text.ptr, size - 1);
    memcpy(to, text.ptr, len);
    to[len] = '\0';
}

static int64_t wall_deadline_ms(const peg_stepper *steps, const peg_clock *clock)
{
    int64_t at_ms;

    if (steps->max_wait_ms < 0 ||
        __builtin_add_overflow(peg_clock_now_ms(clock), steps->max_wait_ms, &at_ms))
        return INT64_MAX;
    return at_ms;
}

/* False if the session is not enabled. */
static bool enter(peg_stepper *steps, struct pause *pause)
{
    bool is_enabled;

    pthread_mutex_lock(&steps->wait.lock);
    is_enabled = peg__map_find(&steps->sessions, pause->session) != NULL;
    if (is_enabled)
        add_pause(steps, pause);
    pthread_mutex_unlock(&steps->wait.lock);
    return is_enabled;
}

static const char *summary_of(const char *phase)
{
    if (strcmp(phase, "after_inference") == 0)
        return "Review next action";
    if (strcmp(phase, "after_tools") == 0)
        return "Review tool results";
    return "Review what has happened";
}

/* The pause can be continued already: a listener may do so at once. */
static void emit_pause(const struct pause *pause, peg_ctx *ctx, const char *phase)
{
    char session[PEG_LIMIT_ID_BYTES + 1];
    peg_event event = {.kind = PEG_EVENT_PAUSE,
                       .u.pause = {.pause_id = pause->info.pause_id,
                                   .session_id = session,
                                   .phase = phase,
                                   .summary = summary_of(phase),
                                   .n_pending = pause->info.n_pending,
                                   .deadline_ms = pause->info.deadline_ms}};

    copy_cut(session, sizeof(session), pause->session);
    peg_ctx_emit(ctx, &event);
}

static bool is_resumed(void *user)
{
    return !((const struct pause *)user)->link;
}

/* The pause is in no list afterwards. */
static enum peg__woke await(peg_stepper *steps, struct pause *pause, peg_ctx *ctx, int64_t until_ns)
{
    enum peg__woke woke;

    pthread_mutex_lock(&steps->wait.lock);
    woke = peg__wait_for(&steps->wait, ctx, until_ns, is_resumed, pause);
    if (woke != PEG__WOKE_DONE)
        remove_pause(steps, pause);
    pthread_mutex_unlock(&steps->wait.lock);
    return woke;
}

static peg_status init_pause(struct pause *pause, const peg_stepper *steps, const peg_clock *clock,
                             const char *phase, peg_error *reterr)
{
    peg_pause_info *info = &pause->info;

    _Static_assert(sizeof(info->pause_id) >= PEG_UUID_TEXT, "a pause id is a UUID");
    if (!peg__uuid7(clock, info->pause_id))
        return peg__fail_no_randomness(reterr);
    copy_cut(info->session_id, sizeof(info->session_id), pause->session);
    copy_cut(info->phase, sizeof(info->phase), peg__str(phase));
    info->deadline_ms = wall_deadline_ms(steps, clock);
    return PEG_OK;
}

static peg_status fail_stopped(const peg_ctx *ctx, peg_error *reterr)
{
    peg_error why;

    peg__ctx_why_stopped(ctx, &why);
    if (reterr)
        *reterr = why;
    return why.status;
}

// NOLINTNEXTLINE(readability-function-size): its parameters are what a pause is made from
peg_status peg_stepper_pause(peg_stepper *steps, peg_ctx *ctx, peg_str session_id,
                             const char *phase, size_t n_pending, peg_step_decision *ret_decision,
                             peg_error *reterr)
{
    const peg_clock *clock = peg_ctx_clock(ctx);
    struct pause pause = {.session = session_id, .info.n_pending = n_pending};
    int64_t until_ns = INT64_MAX;
    enum peg__woke woke;
    peg_status status = PEG_OK;

    /* Most sessions are not, and need no id. */
    if (peg_stepper_is_enabled(steps, session_id))
        status = init_pause(&pause, steps, clock, phase, reterr);
    if (status)
        return status;
    if (steps->max_wait_ms >= 0)
        until_ns = peg__clock_in_ms(clock, steps->max_wait_ms);
    if (!pause.info.pause_id[0] || !enter(steps, &pause)) {
        *ret_decision = PEG_STEP_CONTINUE;
        return PEG_OK;
    }
    peg__ctx_pause_budget(ctx);
    emit_pause(&pause, ctx, phase);
    woke = await(steps, &pause, ctx, until_ns);
    peg__ctx_resume_budget(ctx);
    if (woke == PEG__WOKE_STOP)
        return fail_stopped(ctx, reterr);
    *ret_decision = pause.decision;
    return PEG_OK;
}
