/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What has to be true of a turn before its model is asked: the definitions on it are the tools that
 * can be called now, and the settings on it are those that hold. The last step before the engine,
 * so that whatever the pipelines did to the registry is seen by the model in the same iteration.
 */

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/artifact/artifact.h"
#include "core/registry/registry.h"
#include "turn/loop/loop.h"
#include "turn/turn.h"

/* ---- settings ------------------------------------------------------------------- */

static int at_most(int number, int max)
{
    return number < max ? number : max;
}

/* A turn may come from a file: it gets no more than this. */
static void bound_settings(peg_run_settings *settings)
{
    settings->max_iterations = at_most(settings->max_iterations, PEG_LIMIT_TURN_ITERATIONS);
    settings->max_parallel = at_most(settings->max_parallel, PEG_LIMIT_POOL_THREADS_MAX);
    settings->max_retries = at_most(settings->max_retries, PEG_LIMIT_ATTEMPTS);
    if (settings->timeout_ms > PEG_LIMIT_TURN_TIMEOUT_MS)
        settings->timeout_ms = PEG_LIMIT_TURN_TIMEOUT_MS;
    if (settings->max_retries < 0)
        settings->max_retries = 0;
}

/* The host's settings count more than those of a turn. */
static void put_hosts(peg_run_settings *settings, const peg_run_settings *hosts)
{
    if (hosts->max_iterations)
        settings->max_iterations = hosts->max_iterations > 0 ? hosts->max_iterations : INT32_MAX;
    if (settings->max_iterations <= 0)
        settings->max_iterations = PEG_LIMIT_ITERATIONS;
    if (hosts->timeout_ms > 0) /* as much as a duration in text can be */
        settings->timeout_ms = hosts->timeout_ms < INT64_MAX / PEG_NS_PER_MS
                                   ? hosts->timeout_ms
                                   : INT64_MAX / PEG_NS_PER_MS;
    if (settings->timeout_ms <= 0)
        settings->timeout_ms = PEG_LIMIT_TOOL_MS;
    if (hosts->max_parallel)
        settings->max_parallel = hosts->max_parallel;
    if (settings->max_parallel < 0)
        settings->max_parallel = 0;
}

static bool is_same_config(const peg_tool_config *a, const peg_tool_config *b)
{
    const peg_run_settings *x = &a->settings;
    const peg_run_settings *y = &b->settings;

    return a->is_enabled == b->is_enabled && a->choice == b->choice && a->errors == b->errors &&
           x->max_iterations == y->max_iterations && x->timeout_ms == y->timeout_ms &&
           x->max_parallel == y->max_parallel && x->max_retries == y->max_retries &&
           x->retry_delay_ms == y->retry_delay_ms && x->retry_factor == y->retry_factor;
}

peg_status peg__dispatch_read_config(peg_dispatch *dispatch, peg_error *reterr)
{
    const peg_dispatch_options *loop = dispatch->loop;
    peg_tool_config config;

    if (loop->tools) {
        config = *loop->tools;
    } else {
        const peg_status status = peg_turn_tool_config(dispatch->turn, &config, NULL, reterr);

        if (status)
            return status;
        bound_settings(&config.settings);
    }
    put_hosts(&config.settings, &loop->call.settings);
    dispatch->config = config;
    return PEG_OK;
}

static peg_status sync_config(peg_dispatch *dispatch, peg_error *reterr)
{
    peg_tool_config stored;
    bool is_there = false;
    peg_status status = peg__dispatch_read_config(dispatch, reterr);

    if (status)
        return status;
    /* A damaged one gives way to the host's. */
    if (peg_turn_tool_config(dispatch->turn, &stored, &is_there, NULL))
        is_there = false;
    if (!is_there || !is_same_config(&stored, &dispatch->config))
        status = peg_turn_set_tool_config(dispatch->turn, &dispatch->config, reterr);
    /* Else the loop could only end at its limit. */
    if (dispatch->config.choice == PEG_CHOICE_REQUIRED && dispatch->has_results)
        dispatch->config.choice = PEG_CHOICE_AUTO;
    return status;
}

/* ---- definitions ---------------------------------------------------------------- */

static bool is_empty(const peg_json *list)
{
    return !list || !peg_json_len(list);
}

static void warn_about_absence(peg_dispatch *dispatch, size_t n)
{
    peg_error error;

    if (dispatch->has_warned_of_absence)
        return;
    dispatch->has_warned_of_absence = true;
    peg__fail(&error, PEG_ENOTFOUND, "E_TOOL_NO_REGISTRY",
              "the turn offers %zu tools, but there is no registry to run them: give the run the "
              "tools that the turn was made with",
              n);
    peg__emit_error(dispatch->ctx, PEG_EVENT_WARNING, &error);
}

/* No registry, and a turn that knows its tools: they are offered, with what was forged on top. */
static peg_status keep_stored(peg_dispatch *dispatch, const peg_json *stored,
                              struct peg__shared **live, peg_error *reterr)
{
    struct peg__shared *both;
    peg_status status;

    warn_about_absence(dispatch, peg_json_len(stored));
    status = peg__definitions_overlay(stored, peg__shared_root(*live), &both, reterr);
    if (status)
        return status;
    peg__shared_unref(*live);
    *live = both;
    return peg_json_equal(stored, peg__shared_root(both))
               ? PEG_OK
               : peg__turn_put_definitions(dispatch->turn, both, reterr);
}

static peg_status sync_absent(peg_dispatch *dispatch, const peg_json *stored,
                              struct peg__shared **live, peg_error *reterr)
{
    const peg_dispatch_options *loop = dispatch->loop;

    if (loop->forget_definitions)
        return is_empty(peg__shared_root(*live))
                   ? peg_turn_unset(dispatch->turn, &peg_key_tool_definitions, reterr)
                   : peg__turn_put_definitions(dispatch->turn, *live, reterr);
    if (loop->advertise == PEG_ADVERTISE_REGISTRY)
        return PEG_OK; /* the turn keeps them, unread */
    if (is_empty(stored))
        return is_empty(peg__shared_root(*live))
                   ? PEG_OK
                   : peg__turn_put_definitions(dispatch->turn, *live, reterr);
    return keep_stored(dispatch, stored, live, reterr);
}

static peg_status sync_present(peg_dispatch *dispatch, const peg_json *stored,
                               struct peg__shared *live, peg_error *reterr)
{
    if (!is_empty(peg__shared_root(live)))
        return peg__turn_put_definitions(dispatch->turn, live, reterr);
    return stored ? peg_turn_unset(dispatch->turn, &peg_key_tool_definitions, reterr) : PEG_OK;
}

/* Nothing has changed since the last time: no need to compare each of them. */
static bool has_synced(const peg_dispatch *dispatch, const struct peg__shared *live)
{
    return dispatch->offered == live &&
           peg__bag_shared(peg_turn_data(dispatch->turn), &peg_key_tool_definitions) == live;
}

static peg_status sync_definitions(peg_dispatch *dispatch, peg_error *reterr)
{
    const bool is_strict = dispatch->loop->advertise == PEG_ADVERTISE_STRICT;
    const peg_json *stored;
    struct peg__shared *live = NULL;
    peg_status status = peg__registry_definitions(dispatch->registry, &live, reterr);

    if (status)
        return status;
    if (has_synced(dispatch, live)) {
        peg__shared_unref(live);
        return PEG_OK;
    }
    status = peg_turn_definitions(dispatch->turn, &stored, reterr);
    if (status) {
        peg__shared_unref(live);
        return status;
    }
    if (is_strict && stored)
        status = peg__definitions_compare(stored, peg__shared_root(live), reterr);
    if (!status)
        status = peg__registry_is_absent(dispatch->registry)
                     ? sync_absent(dispatch, stored, &live, reterr)
                     : sync_present(dispatch, stored, live, reterr);
    if (status) {
        peg__shared_unref(live);
        return status;
    }
    peg__shared_unref(dispatch->offered);
    dispatch->offered = live;
    return PEG_OK;
}

/* ---- both ----------------------------------------------------------------------- */

/* Events and the turn carry the same id of the inference. */
static peg_status sync_id(peg_dispatch *dispatch, peg_error *reterr)
{
    if (dispatch->iteration > 0)
        return PEG_OK;
    return peg_turn_set_string(dispatch->turn, &peg_key_inference_id, peg__str(dispatch->id),
                               reterr);
}

peg_status peg_dispatch_sync(peg_dispatch *dispatch, peg_error *reterr)
{
    peg_status status = sync_config(dispatch, reterr);

    if (!status)
        status = sync_id(dispatch, reterr);
    if (!status)
        status = sync_definitions(dispatch, reterr);
    return status;
}

bool peg__dispatch_uses_tools(const peg_dispatch *dispatch)
{
    return dispatch->config.is_enabled && dispatch->config.choice != PEG_CHOICE_NONE;
}

const peg_json *peg_dispatch_definitions(const peg_dispatch *dispatch)
{
    const peg_json *offered = peg__shared_root(dispatch->offered);

    return peg__dispatch_uses_tools(dispatch) && !is_empty(offered) ? offered : NULL;
}

const peg_tool_config *peg_dispatch_tool_config(const peg_dispatch *dispatch)
{
    return &dispatch->config;
}

/* Before each iteration the artifacts of the turn get their queries; core/artifact/artifact.h does
 * nothing where nothing changed since the last time. */

/* Answers of queries are text and have none; results of failures are text too. */
static bool has_artifact(const peg_block *block, struct peg__forge_item *ret_item)
{
    const peg_record *record = peg_block_record(block);

    ret_item->artifact = peg_block_artifact(block);
    ret_item->handle = record ? peg_record_handle(record) : peg_block_id(block);
    return ret_item->artifact != NULL;
}

/* A result that is shown whole needs no queries: each of them is a tool that the model has to read
 * about. */
static bool is_shown_whole(const peg_block *block, peg_artifact *artifact, int64_t query_from)
{
    const peg_record *record = peg_block_record(block);
    int64_t length;

    if (!record || query_from < 0)
        return false;
    if (peg_record_is_inline(record))
        return true;
    length = peg_artifact_byte_length(artifact);
    return length >= 0 && length < (query_from ? query_from : PEG_LIMIT_INLINE_BELOW);
}

static size_t collect_artifacts(const peg_turn *turn, int64_t query_from,
                                struct peg__forge_item *items)
{
    const unsigned kinds = PEG_BLOCKS(PEG_BLOCK_RESULT) | PEG_BLOCKS(PEG_BLOCK_OTHER);
    struct peg__forge_item item;
    size_t n = 0;

    for (size_t i = peg_turn_next(turn, kinds, 0); i < peg_turn_len(turn);
         i = peg_turn_next(turn, kinds, i + 1)) {
        if (!has_artifact(peg_turn_at(turn, i), &item) ||
            is_shown_whole(peg_turn_at(turn, i), item.artifact, query_from))
            continue;
        if (items)
            items[n] = item;
        n++;
    }
    return n;
}

static void warn_about_shadowed(peg_dispatch *dispatch, size_t n)
{
    peg_error error;

    peg__fail(&error, PEG_EEXISTS, "E_QUERY_SHADOWED",
              "%zu queries of artifacts are not offered because tools of the host have their "
              "names; rename those tools",
              n);
    peg__emit_error(dispatch->ctx, PEG_EVENT_WARNING, &error);
}

peg_status peg__dispatch_forge(peg_dispatch *dispatch, peg_error *reterr)
{
    const int64_t query_from = dispatch->loop->query_from;
    const size_t n = collect_artifacts(dispatch->turn, query_from, NULL);
    struct peg__forge_item *items = NULL;
    size_t n_shadowed = 0;
    peg_status status;

    if (n) {
        items = peg__alloc(n * sizeof(*items));
        if (!items)
            return peg__fail_nomem(reterr);
        collect_artifacts(dispatch->turn, query_from, items);
    }
    status = peg__forge(dispatch->registry, items, n, &n_shadowed, reterr);
    peg__free(items);
    if (!status && n_shadowed && !dispatch->has_warned) {
        dispatch->has_warned = true;
        warn_about_shadowed(dispatch, n_shadowed);
    }
    return status;
}
