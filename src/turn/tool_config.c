/* SPDX-License-Identifier: Apache-2.0 */

/* The settings of the tool loop as a value, and as data on the turn. */

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "pegboard/tool_config.h"
#include "turn/turn.h"

/* Durations as Go writes them. */

static const struct {
    peg_str name;
    int64_t ns;
} units[] = {
    /* "ms" before "m": the first that fits counts. */
    {PEG_LIT("ns"), 1},           {PEG_LIT("us"), 1000},
    {PEG_LIT("\xC2\xB5s"), 1000}, /* micro sign */
    {PEG_LIT("\xCE\xBCs"), 1000}, /* Greek letter mu */
    {PEG_LIT("ms"), 1000000},     {PEG_LIT("s"), 1000000000},
    {PEG_LIT("m"), 60000000000},  {PEG_LIT("h"), 3600000000000},
};

enum { N_UNITS = sizeof(units) / sizeof(units[0]) };

static peg_status fail_duration(peg_str text, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EPARSE, "E_DURATION",
                     "'%.*s' is no duration: write numbers with units, such as 30s, 1m30s or 100ms",
                     (int)(text.len < 40 ? text.len : 40), text.ptr);
}

/* The digits at the start of *rest as a whole number. False beyond 18 of them. */
static bool take_digits(peg_str *rest, int64_t *ret_number, int64_t *ret_scale)
{
    size_t n = 0;

    *ret_number = 0;
    *ret_scale = 1;
    while (n < rest->len && rest->ptr[n] >= '0' && rest->ptr[n] <= '9') {
        if (n == 18)
            return false;
        *ret_number = *ret_number * 10 + (rest->ptr[n] - '0');
        *ret_scale *= 10;
        n++;
    }
    *rest = peg__str_from(*rest, n);
    return true;
}

static bool take_unit(peg_str *rest, int64_t *ret_ns)
{
    for (size_t i = 0; i < N_UNITS; i++) {
        if (!peg__str_starts(*rest, units[i].name))
            continue;
        *rest = peg__str_from(*rest, units[i].name.len);
        *ret_ns = units[i].ns;
        return true;
    }
    return false;
}

/* One number with its unit, added to *total. */
static bool take_term(peg_str *rest, int64_t *total)
{
    const size_t before = rest->len;
    int64_t whole;
    int64_t part = 0;
    int64_t scale;
    int64_t unit;
    int64_t ns;
    bool has_digits;

    if (!take_digits(rest, &whole, &scale))
        return false;
    has_digits = rest->len < before;
    scale = 1;
    if (rest->len && rest->ptr[0] == '.') {
        const size_t at = rest->len - 1;

        *rest = peg__str_from(*rest, 1);
        if (!take_digits(rest, &part, &scale))
            return false;
        has_digits = has_digits || rest->len < at;
    }
    if (!has_digits || !take_unit(rest, &unit) || __builtin_mul_overflow(whole, unit, &ns))
        return false;
    /* A fraction of an hour fits a double exactly enough: below a nanosecond. */
    return !__builtin_add_overflow(ns, (int64_t)((double)part / (double)scale * (double)unit + 0.5),
                                   &ns) &&
           !__builtin_add_overflow(*total, ns, total);
}

peg_status peg_duration_parse(peg_str text, int64_t *ret_ns, peg_error *reterr)
{
    peg_str rest = text;
    int64_t total = 0;
    bool is_negative = false;

    if (rest.len && (rest.ptr[0] == '-' || rest.ptr[0] == '+')) {
        is_negative = rest.ptr[0] == '-';
        rest = peg__str_from(rest, 1);
    }
    if (peg__str_is(rest, "0")) {
        *ret_ns = 0;
        return PEG_OK;
    }
    if (!rest.len)
        return fail_duration(text, reterr);
    while (rest.len) {
        if (!take_term(&rest, &total))
            return fail_duration(text, reterr);
    }
    *ret_ns = is_negative ? -total : total;
    return PEG_OK;
}

/* A number of nanoseconds as a decimal of a unit: no zeros at its end. */
static void put_decimal(uint64_t ns, uint64_t unit, const char *name, char *out, size_t size)
{
    char digits[24];
    uint64_t rest = ns % unit;
    int n = 0;

    if (!rest) {
        snprintf(out, size, "%" PRIu64 "%s", ns / unit, name);
        return;
    }
    for (uint64_t scale = unit / 10; rest; scale /= 10) {
        digits[n++] = (char)('0' + rest / scale);
        rest %= scale;
    }
    snprintf(out, size, "%" PRIu64 ".%.*s%s", ns / unit, n, digits, name);
}

void peg_duration_text(int64_t ns, char ret_text[PEG_DURATION_TEXT])
{
    const char *sign = ns < 0 ? "-" : "";
    const uint64_t all = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    const uint64_t hours = all / 3600000000000;
    const uint64_t minutes = all / 60000000000 % 60;
    char seconds[40];

    if (!all)
        snprintf(seconds, sizeof(seconds), "0s");
    else if (all < 1000)
        put_decimal(all, 1, "ns", seconds, sizeof(seconds));
    else if (all < 1000000)
        put_decimal(all, 1000, "us", seconds, sizeof(seconds));
    else if (all < 1000000000)
        put_decimal(all, 1000000, "ms", seconds, sizeof(seconds));
    else
        put_decimal(all % 60000000000, 1000000000, "s", seconds, sizeof(seconds));
    if (hours)
        snprintf(ret_text, PEG_DURATION_TEXT, "%s%" PRIu64 "h%" PRIu64 "m%s", sign, hours, minutes,
                 seconds);
    else if (minutes)
        snprintf(ret_text, PEG_DURATION_TEXT, "%s%" PRIu64 "m%s", sign, minutes, seconds);
    else
        snprintf(ret_text, PEG_DURATION_TEXT, "%s%s", sign, seconds);
}

/* The members in a file: name and kind of each, and where its value is. */
enum kind { SWITCH, NAME, COUNT, COUNT_IF_SET, DURATION, FACTOR };

struct member {
    const char *where; /* ends with its name */
    enum kind kind;
    size_t offset;            /* in peg_tool_config */
    const char *const *names; /* NAME: of an enum's values */
    const char *rule;         /* NAME */
};

#define AT(field) offsetof(peg_tool_config, field)
#define RETRY_MEMBER "retry_config"
#define RETRY_CONFIG "/" RETRY_MEMBER

static const char *const choices[] = {"auto", "none", "required", NULL};
static const char *const handlings[] = {"continue", "abort", "retry", NULL};

/* In the order in which they are written; "retry_config" comes last. */
static const struct member members[] = {
    {"/enabled", SWITCH, AT(is_enabled), NULL, NULL},
    {"/tool_choice", NAME, AT(choice), choices, "has to be auto, none or required"},
    {"/max_iterations", COUNT, AT(settings.max_iterations), NULL, NULL},
    {"/execution_timeout", DURATION, AT(settings.timeout_ms), NULL, NULL},
    {"/max_parallel_tools", COUNT_IF_SET, AT(settings.max_parallel), NULL, NULL},
    {"/tool_error_handling", NAME, AT(errors), handlings, "has to be continue, abort or retry"},
    {0},
};
static const struct member retry_members[] = {
    {RETRY_CONFIG "/max_retries", COUNT, AT(settings.max_retries), NULL, NULL},
    {RETRY_CONFIG "/backoff_base", DURATION, AT(settings.retry_delay_ms), NULL, NULL},
    {RETRY_CONFIG "/backoff_factor", FACTOR, AT(settings.retry_factor), NULL, NULL},
    {0},
};

static const char *member_name(const struct member *member)
{
    return strrchr(member->where, '/') + 1;
}

peg_tool_config peg_tool_config_default(void)
{
    return (peg_tool_config){
        .is_enabled = true,
        .settings = {.max_iterations = PEG_LIMIT_ITERATIONS,
                     .timeout_ms = PEG_LIMIT_TOOL_MS,
                     .max_retries = 2,
                     .retry_delay_ms = 1000,
                     .retry_factor = 2},
    };
}

/* ---- reading -------------------------------------------------------------------- */

static peg_status refuse_member(const char *where, const char *reason, peg_error *reterr)
{
    peg__fail(reterr, PEG_ESCHEMA, "E_TOOL_CONFIG", "tool_config%s: %s", where, reason);
    peg__error_where(reterr, peg__str(where));
    return PEG_ESCHEMA;
}

static bool read_count(const peg_json *value, int *into)
{
    int64_t number;

    if (!peg_json_int64(value, &number) || number > INT32_MAX || number < INT32_MIN)
        return false;
    *into = (int)number;
    return true;
}

static bool read_named(const peg_json *value, const char *const *names, unsigned *ret_i)
{
    for (unsigned i = 0; names[i] && value->kind == PEG_JSON_STRING; i++) {
        if (!peg__str_is(peg_json_str(value), names[i]))
            continue;
        *ret_i = i;
        return true;
    }
    return false;
}

/* Text, or nanoseconds; a part of a millisecond counts as a whole one. */
static peg_status read_duration(const peg_json *value, const char *where, int64_t *into,
                                peg_error *reterr)
{
    int64_t ns = 0;
    peg_error why;

    if (value->kind == PEG_JSON_STRING) {
        if (peg_duration_parse(peg_json_str(value), &ns, &why))
            return refuse_member(where, why.message, reterr);
    } else if (!peg_json_is_number(value) || fabs(peg_json_double(value)) > 9e18) {
        return refuse_member(where, "has to be a duration such as \"30s\", or nanoseconds", reterr);
    } else {
        ns = (int64_t)peg_json_double(value);
    }
    *into = ns / PEG_NS_PER_MS + (ns % PEG_NS_PER_MS > 0);
    return PEG_OK;
}

static peg_status read_setting(const struct member *member, const peg_json *value,
                               peg_tool_config *config, peg_error *reterr)
{
    void *into = (char *)config + member->offset;

    switch (member->kind) {
    case SWITCH:
        if (value->kind != PEG_JSON_BOOL)
            return refuse_member(member->where, "has to be true or false", reterr);
        *(bool *)into = peg_json_is_true(value);
        return PEG_OK;
    case NAME:
        return read_named(value, member->names, into)
                   ? PEG_OK
                   : refuse_member(member->where, member->rule, reterr);
    case COUNT:
    case COUNT_IF_SET:
        return read_count(value, into)
                   ? PEG_OK
                   : refuse_member(member->where, "has to be a whole number", reterr);
    case DURATION:
        return read_duration(value, member->where, into, reterr);
    default:
        if (!peg_json_is_number(value))
            return refuse_member(member->where, "has to be a number", reterr);
        *(double *)into = peg_json_double(value);
        return PEG_OK;
    }
}

static peg_status read_settings(const struct member *table, const peg_json *object,
                                peg_tool_config *config, peg_error *reterr)
{
    peg_status status = PEG_OK;

    for (; table->where && !status; table++) {
        const peg_json *value = peg__present(object, member_name(table));

        if (value)
            status = read_setting(table, value, config, reterr);
    }
    return status;
}

static peg_status read_config(const peg_json *object, peg_tool_config *config, peg_error *reterr)
{
    const peg_json *retry = peg__present(object, RETRY_MEMBER);
    const peg_status status = read_settings(members, object, config, reterr);

    if (status || !retry)
        return status;
    if (retry->kind != PEG_JSON_OBJECT)
        return refuse_member(RETRY_CONFIG, "has to be an object", reterr);
    return read_settings(retry_members, retry, config, reterr);
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
    if (config.settings.max_iterations <= 0)
        config.settings.max_iterations = PEG_LIMIT_ITERATIONS;
    if (config.settings.timeout_ms <= 0)
        config.settings.timeout_ms = PEG_LIMIT_TOOL_MS;
    *ret_config = config;
    if (ret_is_there)
        *ret_is_there = object != NULL;
    return PEG_OK;
}

/* ---- writing -------------------------------------------------------------------- */

peg_status peg__tool_config_check(const peg_tool_config *config, peg_error *reterr)
{
    const peg_run_settings *settings = &config->settings;

    if ((unsigned)config->choice > PEG_CHOICE_REQUIRED ||
        (unsigned)config->errors > PEG_ERRORS_RETRY)
        return peg__fail(reterr, PEG_EINVAL, "E_TOOL_CONFIG",
                         "choice and errors have to be values of their enums");
    if (settings->timeout_ms < 0 || settings->retry_delay_ms < 0 || settings->max_retries < 0)
        return peg__fail(reterr, PEG_EINVAL, "E_TOOL_CONFIG",
                         "timeout_ms, retry_delay_ms and max_retries cannot be negative");
    if (!isfinite(settings->retry_factor) || settings->retry_factor < 0)
        return peg__fail(reterr, PEG_EINVAL, "E_TOOL_CONFIG",
                         "retry_factor has to be a number that is not negative");
    return PEG_OK;
}

static void add_duration(peg_json_builder *b, int64_t ms)
{
    char text[PEG_DURATION_TEXT];

    peg_duration_text(ms < INT64_MAX / PEG_NS_PER_MS ? ms * PEG_NS_PER_MS : INT64_MAX, text);
    peg_json_add_string(b, peg__str(text));
}

static void add_member(peg_json_builder *b, const struct member *member,
                       const peg_tool_config *config)
{
    const void *value = (const char *)config + member->offset;

    if (member->kind == COUNT_IF_SET && *(const int *)value <= 0)
        return;
    peg_json_add_key(b, peg__str(member_name(member)));
    switch (member->kind) {
    case SWITCH:
        peg_json_add_bool(b, *(const bool *)value);
        break;
    case NAME:
        peg_json_add_string(b, peg__str(member->names[*(const unsigned *)value]));
        break;
    case COUNT:
    case COUNT_IF_SET:
        peg_json_add_integer(b, *(const int *)value);
        break;
    case DURATION:
        add_duration(b, *(const int64_t *)value);
        break;
    default:
        peg_json_add_double(b, *(const double *)value);
        break;
    }
}

static bool is_ours(const struct member *table, peg_str key)
{
    if (table == members && peg__str_is(key, RETRY_MEMBER))
        return true;
    for (; table->where; table++) {
        if (peg__str_is(key, member_name(table)))
            return true;
    }
    return false;
}

/* Members of the old object that are not among ours are kept. */
static void add_others(peg_json_builder *b, const peg_json *old, const struct member *table)
{
    PEG_JSON_EACH_MEMBER (old, key) {
        if (is_ours(table, peg_json_str(key)))
            continue;
        peg_json_add_key(b, peg_json_str(key));
        peg_json_add_copy(b, key + 1);
    }
}

peg_status peg_turn_set_tool_config(peg_turn *turn, const peg_tool_config *config,
                                    peg_error *reterr)
{
    const peg_json *old;
    peg_json_builder *b;
    peg_status status = peg__tool_config_check(config, reterr);

    if (status)
        return status;
    /* A damaged one is replaced. */
    if (peg_turn_get(turn, &peg_key_tool_config, &old, NULL))
        old = NULL;
    b = peg_json_builder_new();
    peg_json_open_object(b);
    for (const struct member *member = members; member->where; member++)
        add_member(b, member, config);
    peg_json_add_key(b, peg__str(RETRY_MEMBER));
    peg_json_open_object(b);
    for (const struct member *member = retry_members; member->where; member++)
        add_member(b, member, config);
    add_others(b, peg_json_get(old, RETRY_MEMBER), retry_members);
    peg_json_close(b);
    add_others(b, old, members);
    peg_json_close(b);
    return peg_turn_set_built(turn, &peg_key_tool_config, b, reterr);
}
