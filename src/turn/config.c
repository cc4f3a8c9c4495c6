/* SPDX-License-Identifier: Apache-2.0 */

#include "turn/config.h"

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "turn/tool_config.h"
#include "turn/turn.h"

/* All complaints, "; " between them. Those that an error has no room for are counted. */
struct complaints {
    char text[290];
    size_t len;
    size_t n_more;
};

static void complain(struct complaints *all, const char *what)
{
    const size_t room = sizeof(all->text) - all->len;
    const int len = snprintf(all->text + all->len, room, "%s%s", all->len ? "; " : "", what);

    if (len >= 0 && (size_t)len < room) {
        all->len += (size_t)len;
        return;
    }
    all->text[all->len] = '\0';
    all->n_more++;
}

static void check_steps(struct complaints *all, const char *name, bool has_array, size_t n)
{
    char words[96];

    if (n > PEG_LIMIT_MIDDLEWARES) {
        snprintf(words, sizeof(words), "%s has more than %d middlewares", name,
                 PEG_LIMIT_MIDDLEWARES);
        complain(all, words);
    }
    if (n && !has_array) {
        snprintf(words, sizeof(words), "%s is NULL but n_%s is not 0", name, name);
        complain(all, words);
    }
}

static void check_step(struct complaints *all, const char *name, size_t i, bool has_run)
{
    char words[64];

    if (has_run)
        return;
    snprintf(words, sizeof(words), "%s[%zu].run is missing", name, i);
    complain(all, words);
}

static void check_loop(struct complaints *all, const peg_dispatch_options *loop)
{
    peg_error error;

    if (!loop->engine.fn && !loop->executor.fn)
        complain(all, "loop.engine or loop.executor is missing");
    if (loop->engine.fn && loop->executor.fn)
        complain(all, "loop.engine and loop.executor are both set");
    if (loop->call.settings.max_parallel > 1 && !loop->call.pool)
        complain(all, "loop.call.settings.max_parallel needs loop.call.pool");
    if (loop->call.settings.max_parallel > PEG_LIMIT_POOL_THREADS_MAX)
        complain(all, "loop.call.settings.max_parallel is above 256");
    if ((unsigned)loop->auto_ack > PEG_AUTO_ACK_OFF)
        complain(all, "loop.auto_ack is no peg_auto_ack");
    if ((unsigned)loop->advertise > PEG_ADVERTISE_STRICT)
        complain(all, "loop.advertise is no peg_advertise");
    if ((unsigned)loop->pending > PEG_PENDING_UNKNOWN)
        complain(all, "loop.pending is no peg_pending_policy");
    if (loop->tools && peg__tool_config_check(loop->tools, &error))
        complain(all, error.message);
    if (peg__storage_check(loop->storage, &error))
        complain(all, error.message);
    check_steps(all, "loop.input", loop->input != NULL, loop->n_input);
    check_steps(all, "loop.output", loop->output != NULL, loop->n_output);
    for (size_t i = 0; loop->input && i < loop->n_input; i++)
        check_step(all, "loop.input", i, loop->input[i].run != NULL);
    for (size_t i = 0; loop->output && i < loop->n_output; i++)
        check_step(all, "loop.output", i, loop->output[i].run != NULL);
}

static peg_status verdict(const struct complaints *all, peg_error *reterr)
{
    char more[40] = "";

    if (!all->len)
        return PEG_OK;
    if (all->n_more)
        snprintf(more, sizeof(more), "; and %zu more", all->n_more);
    return peg__fail(reterr, PEG_EINVAL, "E_INVALID_TURN_RUNNER_CONFIG", "%s%s", all->text, more);
}

peg_status peg__loop_check(const peg_dispatch_options *loop, peg_error *reterr)
{
    struct complaints all = {.len = 0};

    if (!loop)
        complain(&all, "loop is NULL");
    else
        check_loop(&all, loop);
    return verdict(&all, reterr);
}

static void check_tools(struct complaints *all, const peg_runner_config *config)
{
    char words[64];

    if (config->n_tools && !config->tools)
        complain(all, "tools is NULL but n_tools is not 0");
    if (config->n_tools && config->registry)
        complain(all, "tools and registry are both set");
    for (size_t i = 0; config->tools && i < config->n_tools; i++) {
        if (config->tools[i])
            continue;
        snprintf(words, sizeof(words), "tools[%zu] is NULL", i);
        complain(all, words);
    }
}

peg_status peg__runner_check(const peg_runner_config *config, peg_error *reterr)
{
    struct complaints all = {.len = 0};

    if (!config)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_TURN_RUNNER_CONFIG", "config is NULL");
    check_tools(&all, config);
    check_loop(&all, &config->loop);
    check_steps(&all, "input", config->input != NULL, config->n_input);
    check_steps(&all, "output", config->output != NULL, config->n_output);
    for (size_t i = 0; config->input && i < config->n_input; i++)
        check_step(&all, "input", i, config->input[i].run != NULL);
    for (size_t i = 0; config->output && i < config->n_output; i++)
        check_step(&all, "output", i, config->output[i].run != NULL);
    return verdict(&all, reterr);
}
