/* SPDX-License-Identifier: Apache-2.0 */

/* The settings of the tool loop as a value, and as data on the turn. */

#include "turn/tool_config.h"

#include <math.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"

#define NS_PER_MS 1000000LL

peg_tool_config peg_tool_config_default(void)
{
    return (peg_tool_config){
        .is_enabled = true,
        .choice = PEG_CHOICE_AUTO,
        .max_iterations = PEG_LIMIT_ITERATIONS,
        .timeout_ns = PEG_LIMIT_TOOL_MS * NS_PER_MS,
        .errors = PEG_ERRORS_CONTINUE,
        .max_retries = 2,
        .backoff_ns = 1000 * NS_PER_MS,
        .backoff_factor = 2,
    };
}

static const char *const choices[] = {"auto", "none", "required", NULL};
static const char *const handlings[] = {"continue", "abort", "retry", NULL};

/* ---- reading -------------------------------------------------------------------- */

static peg_status refuse(const char *where, const char *why, peg_error *reterr)
{
    peg__fail(reterr, PEG_ESCHEMA, "E_TOOL_CONFIG", "tool_config%s: %s", where, why);
    peg__error_where(reterr, peg__str(where));
    return PEG_ESCHEMA;
}

/* A member that is missing or null keeps its default: *ret_value is NULL then. */
static const peg_json *member(const peg_json *object, const char *name)
{
    const peg_json *value = peg_json_get(object, name);

    return value && value->kind != PEG_JSON_NULL ? value : NULL;
}

static peg_status read_int(const peg_json *object, const char *name, const char *where, int *into,
                           peg_error *reterr)
{
    const peg_json *value = member(object, name);
    int64_t number;

    if (!value)
        return PEG_OK;
    if (!peg_json_int64(value, &number) || number > INT32_MAX || number < INT32_MIN)
        return refuse(where, "has to be a whole number", reterr);
    *into = (int)number;
    return PEG_OK;
}

static peg_status read_word(const peg_json *object, const char *name, const char *where,
                            const char *const *words, int *into, peg_error *reterr)
{
    const peg_json *value = member(object, name);

    if (!value)
        return PEG_OK;
    for (int i = 0; words[i] && value->kind == PEG_JSON_STRING; i++) {
        if (!peg__str_is(peg_json_str(value), words[i]))
            continue;
        *into = i;
        return PEG_OK;
    }
    return refuse(where,
                  words == choices ? "has to be auto, none or required"
                                   : "has to be continue, abort or retry",
                  reterr);
}

/* Text, whole or fractional nanoseconds, null for none. */
static peg_status read_duration(const peg_json *object, const char *name, const char *where,
                                int64_t *into, peg_error *reterr)
{
    const peg_json *value = member(object, name);
    peg_error why;

    if (!value)
        return PEG_OK;
    if (value->kind == PEG_JSON_STRING) {
        if (!peg_duration_parse(peg_json_str(value), into, &why))
            return PEG_OK;
        return refuse(where, why.message, reterr);
    }
    if (!peg_json_is_number(value) || fabs(peg_json_double(value)) > 9e18)
        return refuse(where, "has to be a duration such as \"30s\", or nanoseconds", reterr);
    *into = (int64_t)peg_json_double(value);
    return PEG_OK;
}

static peg_status read_retries(const peg_json *object, peg_tool_config *config, peg_error *reterr)
{
    const peg_json *retry = member(object, "retry_config");
    const peg_json *factor;
    peg_status status;

    if (!retry)
        return PEG_OK;
    if (retry->kind != PEG_JSON_OBJECT)
        return refuse("/retry_config", "has to be an object", reterr);
    if ((status = read_int(retry, "max_retries", "/retry_config/max_retries", &config->max_retries,
                           reterr)) ||
        (status = read_duration(retry, "backoff_base", "/retry_config/backoff_base",
                                &config->backoff_ns, reterr)))
        return status;
    factor = member(retry, "backoff_factor");
    if (factor && !peg_json_is_number(factor))
        return refuse("/retry_config/backoff_factor", "has to be a number", reterr);
    if (factor)
        config->backoff_factor = peg_json_double(factor);
    return PEG_OK;
}

static peg_status read_config(const peg_json *object, peg_tool_config *config, peg_error *reterr)
{
    const peg_json *enabled = member(object, "enabled");
    int choice = (int)config->choice;
    int errors = (int)config->errors;
    peg_status status;

    if (enabled && enabled->kind != PEG_JSON_BOOL)
        return refuse("/enabled", "has to be true or false", reterr);
    if (enabled)
        config->is_enabled = peg_json_is_true(enabled);
    if ((status = read_word(object, "tool_choice", "/tool_choice", choices, &choice, reterr)) ||
        (status = read_word(object, "tool_error_handling", "/tool_error_handling", handlings,
                            &errors, reterr)) ||
        (status = read_int(object, "max_iterations", "/max_iterations", &config->max_iterations,
                           reterr)) ||
        (status = read_int(object, "max_parallel_tools", "/max_parallel_tools",
                           &config->max_parallel, reterr)) ||
        (status = read_duration(object, "execution_timeout", "/execution_timeout",
                                &config->timeout_ns, reterr)))
        return status;
    config->choice = (peg_tool_choice)choice;
    config->errors = (peg_error_handling)errors;
    return read_retries(object, config, reterr);
}

peg_status peg_turn_tool_config(const peg_turn *turn, peg_tool_config *ret_config,
                                bool *ret_is_there, peg_error *reterr)
{
    peg_tool_config config = peg_tool_config_default();
    const peg_json *object;
    peg_status status = peg_turn_get(turn, &peg_key_tool_config, &object, reterr);

    if (!status && object)
        status = read_config(object, &config, reterr);
    if (status)
        return status;
    if (config.max_iterations <= 0)
        config.max_iterations = PEG_LIMIT_ITERATIONS;
    if (config.timeout_ns <= 0)
        config.timeout_ns = PEG_LIMIT_TOOL_MS * NS_PER_MS;
    *ret_config = config;
    if (ret_is_there)
        *ret_is_there = object != NULL;
    return PEG_OK;
}

/* ---- writing -------------------------------------------------------------------- */

peg_status peg__tool_config_check(const peg_tool_config *config, peg_error *reterr)
{
    if ((unsigned)config->choice > PEG_CHOICE_REQUIRED ||
        (unsigned)config->errors > PEG_ERRORS_RETRY)
        return peg__fail(reterr, PEG_EINVAL, "E_TOOL_CONFIG",
                         "choice and errors have to be values of their enums");
    if (config->timeout_ns < 0 || config->backoff_ns < 0 || config->max_retries < 0)
        return peg__fail(reterr, PEG_EINVAL, "E_TOOL_CONFIG",
                         "timeout_ns, backoff_ns and max_retries cannot be negative");
    if (!isfinite(config->backoff_factor) || config->backoff_factor < 0)
        return peg__fail(reterr, PEG_EINVAL, "E_TOOL_CONFIG",
                         "backoff_factor has to be a number that is not negative");
    return PEG_OK;
}

static void add_key(peg_json_builder *b, const char *name)
{
    peg_json_add_key(b, peg__str(name));
}

static void add_text(peg_json_builder *b, const char *name, const char *text)
{
    add_key(b, name);
    peg_json_add_string(b, peg__str(text));
}

static void add_int(peg_json_builder *b, const char *name, int number)
{
    add_key(b, name);
    peg_json_add_integer(b, number);
}

static void add_duration(peg_json_builder *b, const char *name, int64_t ns)
{
    char text[PEG_DURATION_TEXT];

    peg_duration_text(ns, text);
    add_text(b, name, text);
}

/* Members of the old object that are not among ours. */
static void add_others(peg_json_builder *b, const peg_json *old, const char *const *ours)
{
    if (!old || old->kind != PEG_JSON_OBJECT)
        return;
    PEG_JSON_EACH_MEMBER (old, key) {
        bool is_ours = false;

        for (size_t i = 0; ours[i] && !is_ours; i++)
            is_ours = peg__str_is(peg_json_str(key), ours[i]);
        if (is_ours)
            continue;
        peg_json_add_key(b, peg_json_str(key));
        peg_json_add_copy(b, key + 1);
    }
}

static void add_retries(peg_json_builder *b, const peg_tool_config *config, const peg_json *old)
{
    static const char *const ours[] = {"max_retries", "backoff_base", "backoff_factor", NULL};

    add_key(b, "retry_config");
    peg_json_open_object(b);
    add_int(b, "max_retries", config->max_retries);
    add_duration(b, "backoff_base", config->backoff_ns);
    add_key(b, "backoff_factor");
    peg_json_add_double(b, config->backoff_factor);
    add_others(b, old ? peg_json_get(old, "retry_config") : NULL, ours);
    peg_json_close(b);
}

peg_status peg_turn_set_tool_config(peg_turn *turn, const peg_tool_config *config,
                                    peg_error *reterr)
{
    static const char *const ours[] = {"enabled",
                                       "tool_choice",
                                       "max_iterations",
                                       "execution_timeout",
                                       "max_parallel_tools",
                                       "tool_error_handling",
                                       "retry_config",
                                       NULL};
    const peg_json *old;
    peg_json_builder *b;
    peg_status status = peg__tool_config_check(config, reterr);

    if (status)
        return status;
    /* What stands there may be damaged: it is replaced then. */
    if (peg_turn_get(turn, &peg_key_tool_config, &old, NULL))
        old = NULL;
    b = peg_json_builder_new();
    peg_json_open_object(b);
    add_key(b, "enabled");
    peg_json_add_bool(b, config->is_enabled);
    add_text(b, "tool_choice", choices[config->choice]);
    add_int(b, "max_iterations", config->max_iterations);
    add_duration(b, "execution_timeout", config->timeout_ns);
    if (config->max_parallel > 0)
        add_int(b, "max_parallel_tools", config->max_parallel);
    add_text(b, "tool_error_handling", handlings[config->errors]);
    add_retries(b, config, old);
    add_others(b, old, ours);
    peg_json_close(b);
    return peg_turn_set_built(turn, &peg_key_tool_config, b, reterr);
}
