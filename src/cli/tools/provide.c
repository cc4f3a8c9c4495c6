/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard provide: the commands of a manifest as a toolset of a gateway, until it is stopped. */

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "cli/remote/remote.h"
#include "cli/serve/serve.h"
#include "cli/terminal/terminal.h"
#include "pegboard/manifest.h"
#include "pegboard/provider.h"
#include "pegboard/tool_config.h"
#include "tools/tools.h"

struct provide_options {
    struct remote_args remote;
    const char *path;
    unsigned concurrency;
    unsigned queue;
    int64_t drain_ms;
    bool only_check;
    bool is_quiet;
    struct cli_line_queue *lines; /* of events */
};

static const struct cli_option option_table[] = {
    {0, 0, "concurrency", "N", "run so many commands at once; 4 by default", .kind = CLI_COUNT,
     .at = offsetof(struct provide_options, concurrency), .least = 1,
     .most = PEG_LIMIT_REMOTE_CONCURRENCY},
    {0, 0, "queue", "N",
     "let so many calls wait here for a command to end; as\nmany as run by default",
     .kind = CLI_COUNT, .at = offsetof(struct provide_options, queue), .least = 1,
     .most = PEG_LIMIT_REMOTE_CREDITS - PEG_LIMIT_REMOTE_CONCURRENCY},
    {0, 0, "drain-time", "TIME",
     "how long commands may go on when it is stopped, such as\n1m; 30s by default",
     .kind = CLI_TIME, .at = offsetof(struct provide_options, drain_ms), .least = 1,
     .most = 3600000, .wanted = "a time up to 1h, such as 30s or 1m30s"},
    {0, 0, "check", NULL,
     "only read FILE, print its tools, and warn of programs,\ndirectories and variables that "
     "are not there",
     .kind = CLI_FLAG, .at = offsetof(struct provide_options, only_check)},
    CLI_OPTION_FLAG(struct provide_options, is_quiet, 'q', "quiet", "do not report each call"),
    REMOTE_OPTIONS,
    {.name = NULL},
};

/* ---- the manifest ---- */

/* The first line of a text. */
static peg_str first_line(const char *text)
{
    return peg__strn(text, strcspn(text, "\n"));
}

static void put_timeout(struct peg__buf *out, int64_t timeout_ms)
{
    char text[PEG_DURATION_TEXT];

    peg_duration_text((timeout_ms > 0 ? timeout_ms : PEG_LIMIT_GATEWAY_CALL_MS) * PEG_NS_PER_MS,
                      text);
    peg__buf_printf(out, " (timeout %s%s)\n", text, timeout_ms > 0 ? "" : " by default");
}

static int print_manifest(const peg_manifest *manifest)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_tool_list tools;
    peg_error error;

    if (peg_registry_visible(peg_manifest_registry(manifest), &tools, &error))
        return remote_complain_local(NULL, &error);
    peg__buf_printf(&out, "toolset %s%s%s: %zu tool%s\n", peg_manifest_toolset(manifest),
                    peg_manifest_version(manifest)[0] ? " " : "", peg_manifest_version(manifest),
                    tools.len, tools.len == 1 ? "" : "s");
    for (size_t i = 0; i < tools.len; i++) {
        peg__buf_printf(&out, "  %s  ", peg_tool_name(tools.items[i]));
        cli_put_safe(&out, first_line(peg_tool_description(tools.items[i])));
        put_timeout(&out, peg_tool_timeout_ms(tools.items[i]));
    }
    peg_tool_list_free(&tools);
    return remote_print(&out);
}

static void warn_of_tool(const char *tool, const char *message, void *user)
{
    const struct provide_options *o = user;
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_printf(&line, "pegboard: %s: warning: tool '%s': ", o->path, tool);
    cli_put_safe(&line, peg__str(message));
    cli_print_line(&line);
}

/* What is not here now may be there when it is called: no reason to refuse the manifest. */
static int inspect_manifest(struct provide_options *o, const peg_manifest *manifest)
{
    peg_error error;

    if (peg_manifest_inspect(manifest, warn_of_tool, o, &error))
        return remote_complain_local(NULL, &error);
    return CLI_OK;
}

enum { PLACE_BYTES = 4200 };

static const char *print_place(const char *path, const peg_error *error, char place[PLACE_BYTES])
{
    if (error->line)
        snprintf(place, PLACE_BYTES, "%.4096s:%u:%u", path, error->line, error->column);
    else
        snprintf(place, PLACE_BYTES, "%.4096s", path);
    return place;
}

static int complain_manifest(const char *path, const peg_error *error)
{
    char place[PLACE_BYTES];

    return remote_complain_local(print_place(path, error, place), error);
}

/* ---- what happens ---- */

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

/* One line on standard error, without payload. Its threads must not wait for the reader. */
static void on_provider_event(const peg_provider_event *event, void *user)
{
    const struct provide_options *o = user;
    struct peg__buf line = PEG__BUF(8192);

    if (o->is_quiet &&
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
    if (!line.status)
        cli_line_queue_put(o->lines, peg__buf_view(&line));
    peg__buf_free(&line);
}

static void put_dropped(struct peg__buf *line, uint64_t n)
{
    put_utc_time(line);
    peg__buf_printf(line, " event=dropped lines=%" PRIu64, n);
}

/* ---- reading the manifest again: a thread for signals ---- */

struct provided {
    struct provide_options *o;
    const peg_manifest *manifest; /* the first one: its registry is what is offered */
    peg_provider *provider;
    sigset_t set;
    pthread_t thread;
};

static peg_status check_toolset(const struct provided *p, const peg_manifest *manifest,
                                peg_error *reterr)
{
    if (strcmp(peg_manifest_toolset(p->manifest), peg_manifest_toolset(manifest)) == 0)
        return PEG_OK;
    return peg__fail(reterr, PEG_EINVAL, "E_MANIFEST",
                     "the toolset is called '%.64s' now, and '%.64s' is offered: start another "
                     "provider for it",
                     peg_manifest_toolset(manifest), peg_manifest_toolset(p->manifest));
}

/* What runs goes on with the command that it began with. */
static peg_status offer_manifest(const struct provided *p, const peg_manifest *manifest,
                                 peg_error *reterr)
{
    const char *version = peg_manifest_version(manifest);
    peg_status status = check_toolset(p, manifest, reterr);

    if (!status)
        status =
            peg_provider_describe(p->provider, peg_manifest_description(manifest),
                                  version[0] ? version : NULL, peg_manifest_tags(manifest), reterr);
    if (!status)
        status = peg_registry_replace(peg_manifest_registry(p->manifest),
                                      peg_manifest_registry(manifest), reterr);
    return status;
}

static void report_reload(const struct provided *p, peg_status status, const peg_error *error)
{
    struct peg__buf line = PEG__BUF(8192);
    char place[PLACE_BYTES];

    put_utc_time(&line);
    put_log_field(&line, "event", status ? "reload_failed" : "reloaded");
    put_log_field(&line, "toolset", peg_manifest_toolset(p->manifest));
    if (status) {
        put_log_field(&line, "file", print_place(p->o->path, error, place));
        put_log_field(&line, "code", error->code);
        put_log_field(&line, "message", error->message);
    } else {
        peg__buf_printf(&line, " tools=%zu", peg_registry_len(peg_manifest_registry(p->manifest)));
    }
    if (!line.status)
        cli_line_queue_put(p->o->lines, peg__buf_view(&line));
    peg__buf_free(&line);
}

static void reload_manifest(const struct provided *p)
{
    peg_manifest *manifest = NULL;
    peg_error error;
    peg_status status;

    cli_notify_reloading();
    status = peg_manifest_read(p->o->path, &manifest, &error);
    if (!status)
        status = offer_manifest(p, manifest, &error);
    report_reload(p, status, &error);
    if (!status)
        (void)inspect_manifest(p->o, manifest);
    peg_manifest_free(manifest);
    cli_notify("READY=1");
}

/* SIGUSR2 ends it, from the thread that serves. */
static void *handle_signals(void *user)
{
    const struct provided *p = user;
    int number;

    while ((number = sigwaitinfo(&p->set, NULL)) != SIGUSR2) {
        if (number == SIGHUP) {
            reload_manifest(p);
        } else if (number > 0) {
            cli_notify("STOPPING=1");
            peg_provider_stop(p->provider);
        }
    }
    return NULL;
}

/* ---- serving ---- */

/* The library's message is for authors of handlers, and begins with the number of calls. */
static void complain_given_up(const peg_error *error)
{
    const unsigned long n = strtoul(error->message, NULL, 10);

    fprintf(stderr, "pegboard: %lu call%s given up; --drain-time gives them longer (%s)\n", n,
            n == 1 ? " was" : "s were", error->code);
}

/* Without a message if standard error has no reader. */
static int end_serve(peg_status status, const peg_error *error, bool is_read)
{
    if (!status)
        return CLI_OK;
    if (is_read && status == PEG_ETIMEOUT)
        complain_given_up(error);
    else if (is_read)
        remote_complain_local(NULL, error);
    if (status == PEG_ETIMEOUT)
        return CLI_NO;
    return status == PEG_EHOST ? CLI_NO_GATEWAY : CLI_UNUSABLE;
}

/* The gateway's message knows nothing of our options. */
static void advise_token(const struct remote_args *remote, peg_error *error)
{
    const size_t len = strlen(error->message);

    if (strcmp(error->code, "E_PROVIDER_REFUSED") == 0 && !remote->token && !remote->token_file &&
        strstr(error->message, ": unauthenticated: "))
        snprintf(error->message + len, sizeof(error->message) - len,
                 " (--token FILE or PEGBOARD_TOKEN)");
}

static peg_status serve_until_stopped(struct provided *p, const peg_provider_options *options,
                                      peg_error *reterr)
{
    peg_status status =
        peg_provider_new(peg_manifest_registry(p->manifest), options, &p->provider, reterr);

    if (!status)
        status = peg_provider_start(p->provider, reterr);
    if (!status && pthread_create(&p->thread, NULL, handle_signals, p))
        status = peg__fail(reterr, PEG_EIO, "E_PROVIDER",
                           "the system has no thread for signals: end some, or raise its limit");
    if (!status) {
        cli_notify("READY=1"); /* it waits for a gateway that is not there yet */
        status = peg_provider_wait(p->provider, reterr);
        pthread_kill(p->thread, SIGUSR2);
        pthread_join(p->thread, NULL);
    }
    peg_provider_free(p->provider);
    return status;
}

static int serve_manifest(struct provide_options *o, const peg_manifest *manifest)
{
    struct provided provided = {.o = o, .manifest = manifest};
    const peg_provider_options options = {
        PEG_PROVIDER_OPTIONS_INIT,
        .toolset = peg_manifest_toolset(manifest),
        .description = peg_manifest_description(manifest),
        .version = peg_manifest_version(manifest)[0] ? peg_manifest_version(manifest) : NULL,
        .tags = peg_manifest_tags(manifest),
        .address = o->remote.address,
        .token = o->remote.token,
        .token_file = o->remote.token_file,
        .uses_tls = o->remote.uses_tls,
        .ca_file = o->remote.tls_ca,
        .cert_file = o->remote.tls_cert,
        .key_file = o->remote.tls_key,
        .concurrency = o->concurrency,
        .max_queued = o->queue,
        .drain_ms = o->drain_ms,
        .on_event = on_provider_event,
        .user = o,
    };
    peg_error error;
    peg_status status;

    cli_block_signals(&provided.set);
    o->lines = cli_line_queue_new(put_dropped);
    if (!o->lines) {
        fprintf(stderr, "pegboard: the system has no memory or no thread for it: end some\n");
        return CLI_UNUSABLE;
    }
    if (!peg__descendants_adopt())
        fprintf(stderr, "pegboard: what commands leave behind is not found on this system: %m\n");
    status = serve_until_stopped(&provided, &options, &error);
    if (status)
        advise_token(&o->remote, &error);
    return end_serve(status, &error, cli_line_queue_free(o->lines));
}

static int run_provide(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    struct provide_options options = {.path = NULL};
    peg_manifest *manifest = NULL;
    peg_error error;
    int answer;

    if (!remote_read(&options.remote, &args, NULL))
        return args.exit;
    options.path = args.operands[0];
    if (peg_manifest_read(options.path, &manifest, &error))
        return complain_manifest(options.path, &error);
    signal(SIGPIPE, SIG_IGN);
    answer = print_manifest(manifest);
    if (answer == CLI_OK)
        answer = inspect_manifest(&options, manifest);
    if (answer == CLI_OK && !options.only_check)
        answer = serve_manifest(&options, manifest);
    peg_manifest_free(manifest);
    return answer;
}

const struct cli_command cli_provide = {
    .name = "provide",
    .usage = "[options] FILE",
    .summary = "offer commands as a toolset of a gateway",
    .about = "Reads FILE, a manifest in YAML or JSON, and offers its commands as tools, until it\n"
             "is stopped. A command gets the arguments of a call as JSON on standard input; what\n"
             "it writes to standard output is the result, JSON or text. No shell is involved\n"
             "unless the manifest asks for one. pegboard-provide(1) has all of its keys.\n\n"
             "It opens no port: it connects to the gateway, and again when the connection breaks.\n"
             "Each call is a line on standard error, without what was sent and answered.\n"
             "SIGTERM and SIGINT: takes no new calls, finishes what runs, ends; at once when sent\n"
             "twice. SIGHUP: reads FILE again, and offers what it says now.",
    .options = option_table,
    .min_operands = 1,
    .max_operands = 1,
    .needed = "one file is needed: the manifest of the toolset",
    .notes = "exit status:\n"
             "  0  it was stopped, and every call was answered; or --check found nothing wrong\n"
             "  1  it was stopped, and calls had to be given up\n"
             "  2  a wrong option, or a manifest or token file that cannot be used\n"
             "  3  the gateway refused the toolset, or it was unregistered there\n\n"
             "examples:\n"
             "  pegboard provide tools.yaml\n"
             "  pegboard provide --check tools.yaml\n"
             "  pegboard provide tools.yaml --registry tools.example:9090 --token my.token",
    .needs_no_reader = true,
    .run = run_provide,
};
