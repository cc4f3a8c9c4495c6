/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/remote/remote.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"

const char *toolset_health(const peg_toolset_info *info)
{
    switch (info->health) {
    case PEG_HEALTH_HEALTHY:
        return "healthy";
    case PEG_HEALTH_UNHEALTHY:
        return "unhealthy";
    case PEG_HEALTH_UNKNOWN:
        break;
    }
    return "unknown";
}

static bool is_away(const peg_toolset_info *info)
{
    return info->health == PEG_HEALTH_UNHEALTHY && info->n_providers == 0 && !info->is_direct;
}

/* ---- for programs ---- */

void toolset_out_strings(struct peg__out *out, const char *name, const char *const *strings,
                         size_t n)
{
    cli_out_array(out, name);
    for (size_t i = 0; i < n; i++)
        peg__out_cstring(out, strings[i]);
    peg__out_end_array(out);
}

static void out_health(struct peg__out *out, const peg_toolset_info *info)
{
    peg__out_key(out, "health");
    peg__out_object(out);
    peg__out_cmember(out, "state", toolset_health(info));
    peg__out_cmember(out, "reason", info->health_reason);
    cli_out_integer(out, "last_pong_ms", info->last_pong_ms);
    cli_out_integer(out, "providers", info->n_providers);
    cli_out_integer(out, "draining", info->n_draining);
    peg__out_key(out, "away_since_ms");
    if (is_away(info) && info->last_pong_ms)
        peg__out_integer(out, info->last_pong_ms);
    else
        peg__out_null(out);
    peg__out_end_object(out);
}

void toolset_out(struct peg__out *out, const peg_toolset_info *info)
{
    peg__out_cmember(out, "name", info->name);
    peg__out_cmember(out, "description", info->description);
    peg__out_cmember(out, "version", info->version);
    toolset_out_strings(out, "tags", info->tags, info->n_tags);
    cli_out_integer(out, "tool_count", (int64_t)info->n_tools);
    peg__out_cmember(out, "registered_at", info->registered_at);
    peg__out_cmember(out, "owner", info->owner);
    cli_out_integer(out, "revision", (int64_t)info->revision);
    peg__out_cmember(out, "kind", info->is_direct ? "direct" : "attached");
    out_health(out, info);
}

/* ---- for people ---- */

void toolset_put_age(struct peg__buf *out, int64_t seconds)
{
    enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };

    if (seconds < 0)
        seconds = 0;
    if (seconds >= DAY)
        peg__buf_printf(out, "%lldd %lldh", (long long)(seconds / DAY),
                        (long long)(seconds % DAY / HOUR));
    else if (seconds >= HOUR)
        peg__buf_printf(out, "%lldh %lldm", (long long)(seconds / HOUR),
                        (long long)(seconds % HOUR / MINUTE));
    else if (seconds >= MINUTE)
        peg__buf_printf(out, "%lldm %llds", (long long)(seconds / MINUTE),
                        (long long)(seconds % MINUTE));
    else
        peg__buf_printf(out, "%llds", (long long)seconds);
}

static void put_moment(struct peg__buf *out, int64_t unix_ms)
{
    const time_t then = (time_t)(unix_ms / 1000);
    const time_t now = time(NULL);
    struct tm today = {0};
    struct tm parts = {0};
    char text[32] = "";
    bool is_today;

    if (!localtime_r(&now, &today) || !localtime_r(&then, &parts))
        return;
    is_today = parts.tm_year == today.tm_year && parts.tm_yday == today.tm_yday;
    if (strftime(text, sizeof(text), is_today ? "%H:%M" : "%Y-%m-%d", &parts))
        peg__buf_printf(out, " since %s", text);
}

void toolset_put_health(struct peg__buf *out, const peg_toolset_info *info)
{
    peg__buf_puts(out, is_away(info) ? "away" : toolset_health(info));
    if (is_away(info) && info->last_pong_ms)
        put_moment(out, info->last_pong_ms);
}

void toolset_health_cell(struct cli_table *table, const peg_toolset_info *info,
                         const struct cli_style *style)
{
    const char *on = info->health == PEG_HEALTH_HEALTHY ? style->good : style->bad;

    struct peg__buf text = PEG__BUF(64);

    toolset_put_health(&text, info);
    if (text.status)
        table->status = text.status;
    cli_table_cell(table, peg__buf_view(&text), info->health == PEG_HEALTH_UNKNOWN ? "" : on);
    peg__buf_free(&text);
}

void toolset_strings_cell(struct cli_table *table, const char *const *strings, size_t n)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    for (size_t i = 0; i < n; i++) {
        if (i)
            peg__buf_puts(&text, ", ");
        peg__buf_puts(&text, strings[i]);
    }
    if (text.status)
        table->status = text.status;
    cli_table_cell(table, peg__buf_view(&text), "");
    peg__buf_free(&text);
}

void toolset_line_cell(struct cli_table *table, const char *text)
{
    cli_table_cell(table, peg__strn(text, strcspn(text, "\r\n")), "");
}

void toolset_warn(const peg_registry_failure *failures, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct peg__buf line = PEG__BUF(4096);

        peg__buf_puts(&line, "pegboard: ");
        cli_put_safe(&line, peg__str(failures[i].registry));
        peg__buf_puts(&line, ": ");
        cli_put_safe(&line, peg__str(failures[i].error.message));
        cli_print_line(&line);
    }
}

bool toolset_put_pretty(struct peg__buf *out, peg_str json)
{
    peg_json_doc *doc = NULL;
    char *text = NULL;
    bool is_written = !peg_json_parse(json, NULL, &doc, NULL) &&
                      !peg_json_write(peg_json_root(doc), PEG_JSON_PRETTY, &text, NULL, NULL);

    if (is_written)
        peg__buf_puts(out, text);
    peg_free(text);
    peg_json_doc_free(doc);
    return is_written;
}
