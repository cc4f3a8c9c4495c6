/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/tools/provide_log.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/text/str.h"
#include "cli/cli.h"
#include "cli/tools/mcp_servers.h"

static void put_utc_time(struct peg__buf *line)
{
    struct timespec now;
    struct tm utc;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    peg__buf_printf(line, "time=%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ", utc.tm_year + 1900,
                    utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                    now.tv_nsec / 1000000);
}

static void put_log_field(struct peg__buf *line, const char *key, const char *value)
{
    if (!value[0])
        return;
    peg__buf_printf(line, " %s=", key);
    if (strpbrk(value, " =\"")) {
        peg__buf_putc(line, '"');
        for (size_t n; *value; value += n) {
            if (*value == '"' || *value == '\\')
                peg__buf_putc(line, '\\');
            n = 1 + strcspn(value + 1, "\"\\");
            cli_put_safe(line, peg__strn(value, n));
        }
        peg__buf_putc(line, '"');
    } else {
        cli_put_safe(line, peg__str(value));
    }
}

static void put_log_line(const struct provide_log *log, struct peg__buf *line)
{
    if (!line->status)
        cli_line_queue_put(log->lines, peg__buf_view(line));
    peg__buf_free(line);
}

static const char *const event_names[] = {
    [PEG_PROVIDER_ATTACHED] = "attached",
    [PEG_PROVIDER_LOST] = "lost",
    [PEG_PROVIDER_CALL_START] = "start",
    [PEG_PROVIDER_CALL_END] = "end",
    [PEG_PROVIDER_CALL_REFUSED] = "refused",
    [PEG_PROVIDER_GATEWAY_DRAINS] = "gateway_drains",
    [PEG_PROVIDER_DRAINS] = "drains",
    [PEG_PROVIDER_OFFERED] = "offered",
    [PEG_PROVIDER_OFFER_REFUSED] = "offer_refused",
};

void provide_log_provider(const struct provide_log *log, const peg_provider_event *event)
{
    struct peg__buf line = PEG__BUF(8192);

    if (log->is_quiet &&
        (event->kind == PEG_PROVIDER_CALL_START || event->kind == PEG_PROVIDER_CALL_END))
        return;
    put_utc_time(&line);
    put_log_field(&line, "event", event_names[event->kind]);
    put_log_field(&line, "toolset", event->toolset);
    put_log_field(&line, "gateway", event->address);
    put_log_field(&line, "tool", event->tool);
    put_log_field(&line, "call", event->call_id);
    put_log_field(&line, "caller", event->caller);
    put_log_field(&line, "code", event->code);
    if (event->kind == PEG_PROVIDER_CALL_END)
        peg__buf_printf(&line, " ms=%lld bytes=%zu", (long long)event->duration_ms, event->n_bytes);
    if (event->kind == PEG_PROVIDER_LOST)
        peg__buf_printf(&line, " retry_ms=%lld", (long long)event->retry_ms);
    put_log_field(&line, "message", event->message);
    put_log_line(log, &line);
}

static void put_dropped(struct peg__buf *line, uint64_t n)
{
    put_utc_time(line);
    peg__buf_printf(line, " event=dropped lines=%" PRIu64, n);
}

void provide_log_mcp(const struct provide_log *log, const peg_mcp_event *event)
{
    struct peg__buf line = PEG__BUF(8192);

    put_utc_time(&line);
    put_log_field(&line, "event", mcp_servers_event_name(event->kind));
    put_log_field(&line, "server", event->server);
    put_log_field(&line, "version", event->version);
    put_log_field(&line, "tool", event->tool);
    put_log_field(&line, "code", event->code);
    if (event->kind == PEG_MCP_CONNECTED || event->kind == PEG_MCP_TOOLS_CHANGED)
        peg__buf_printf(&line, " tools=%zu", event->n_tools);
    if (event->kind == PEG_MCP_LOST)
        peg__buf_printf(&line, " retry_ms=%lld", (long long)event->retry_ms);
    put_log_field(&line, "message", event->message);
    put_log_line(log, &line);
}

void provide_log_reload(const struct provide_log *log, const char *path,
                        const peg_manifest *offered, const peg_error *error)
{
    struct peg__buf line = PEG__BUF(8192);
    struct peg__buf place = PEG__BUF(8192);

    put_utc_time(&line);
    put_log_field(&line, "event", error ? "reload_failed" : "reloaded");
    put_log_field(&line, "toolset", peg_manifest_toolset(offered));
    if (error) {
        cli_put_place(&place, path, error);
        put_log_field(&line, "file", place.status ? path : place.ptr);
        put_log_field(&line, "code", error->code);
        put_log_field(&line, "message", error->message);
    } else {
        peg__buf_printf(&line, " tools=%zu", peg_registry_len(peg_manifest_registry(offered)));
    }
    put_log_line(log, &line);
    peg__buf_free(&place);
}

bool provide_log_open(struct provide_log *log, bool is_quiet)
{
    *log = (struct provide_log){.lines = cli_line_queue_new(put_dropped), .is_quiet = is_quiet};
    return log->lines;
}

bool provide_log_close(struct provide_log *log)
{
    return cli_line_queue_free(log->lines);
}
