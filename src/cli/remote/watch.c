/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard watch: one line for each change of the catalog, until it is stopped. */

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "cli/cli.h"
#include "cli/remote/remote.h"

struct watching {
    struct remote_args remote;
    bool changes_only;
    const struct cli_style *style;
    sigset_t signals;
    /* Of the watch's thread until it is stopped. */
    bool has_event; /* any but PEG_WATCH_LOST */
    int exit;
};

static const struct cli_option option_table[] = {
    {0, 0, "changes", NULL, "leave out what is there at the beginning", .kind = CLI_FLAG,
     .at = offsetof(struct watching, changes_only)},
    REMOTE_OPTION_TAG,
    REMOTE_FLAG("json", as_json, "print one JSON object a line"),
    REMOTE_OPTIONS,
    REMOTE_OPTION_COLOR,
    {.name = NULL},
};

/* ---- a change ---- */

static void put_event_json(struct peg__buf *buf, const peg_watch_event *event)
{
    struct peg__out out = {.buf = buf};

    peg__out_object(&out);
    peg__out_cmember(&out, "event", peg_watch_kind_name(event->kind));
    if (event->toolset) {
        peg__out_key(&out, "toolset");
        peg__out_object(&out);
        toolset_out(&out, event->toolset);
        peg__out_end_object(&out);
    }
    if (event->error)
        peg__out_cmember(&out, "message", event->error->message);
    cli_out_end_line(&out);
}

static void put_local_time(struct peg__buf *out)
{
    const time_t now = time(NULL);
    struct tm parts;
    char text[16];

    if (localtime_r(&now, &parts) && strftime(text, sizeof(text), "%H:%M:%S", &parts))
        peg__buf_printf(out, "%s  ", text);
}

/* "14:03:11  health        weather 1.2.0  unhealthy: no provider is attached". */
static void put_line(struct peg__buf *out, const struct watching *w, const peg_watch_event *event)
{
    const peg_toolset_info *info = event->toolset;
    const bool is_well = info && info->health == PEG_HEALTH_HEALTHY;

    put_local_time(out);
    peg__buf_printf(out, "%-12s  ", peg_watch_kind_name(event->kind));
    if (info) {
        cli_put_safe(out, peg__str(info->name));
        if (*info->version) {
            peg__buf_putc(out, ' ');
            cli_put_safe(out, peg__str(info->version));
        }
    }
    if (info && event->kind != PEG_WATCH_UNREGISTERED) {
        peg__buf_printf(out, "  %s%s%s, %u provider%s", is_well ? w->style->good : w->style->bad,
                        toolset_health(info), w->style->off, info->n_providers,
                        info->n_providers == 1 ? "" : "s");
        if (!is_well && *info->health_reason) {
            peg__buf_puts(out, ": ");
            cli_put_safe(out, peg__str(info->health_reason));
        }
    }
    if (event->error) {
        remote_explain(&w->remote, event->error, out);
        peg__buf_puts(out, "; waiting for it");
    }
    peg__buf_putc(out, '\n');
}

/* Credentials that the gateway refuses at first stay refused. Later a refusal may pass, since
 * tokens and the files that have them change. */
static bool ends_it(const struct watching *w, const peg_watch_event *event)
{
    return !w->has_event && event->error && strcmp(event->error->code, "E_UNAUTHENTICATED") == 0;
}

/* On a thread of the watch. */
static void on_watch_event(const peg_watch_event *event, void *user)
{
    struct watching *w = user;
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    if (ends_it(w, event)) {
        w->exit = remote_complain(&w->remote, event->error);
        w->has_event = true; /* complains once */
        kill(getpid(), SIGTERM);
        return;
    }
    w->has_event |= event->kind != PEG_WATCH_LOST;
    if (event->kind == PEG_WATCH_READY && !w->remote.as_json)
        return;
    if (w->remote.as_json)
        put_event_json(&out, event);
    else
        put_line(&out, w, event);
    if (remote_print(&out) || !cli_flush())
        kill(getpid(), SIGTERM); /* the output is closed; watch_toolsets() waits for it */
}

/* ---- the command ---- */

/* Before there are threads, so that all of them leave these signals to sigwait(). */
static void block_end_signals(sigset_t *ret_signals)
{
    sigemptyset(ret_signals);
    sigaddset(ret_signals, SIGINT);
    sigaddset(ret_signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, ret_signals, NULL);
}

static int watch_toolsets(struct remote_args *remote, peg_client *client)
{
    struct watching *w = (struct watching *)remote;
    const peg_watch_options options = {PEG_WATCH_OPTIONS_INIT, .tags = remote->tags,
                                       .changes_only = w->changes_only};
    peg_watch *watch = NULL;
    peg_error error;
    int number;
    int answer = CLI_OK;

    w->style = cli_style_for(remote->color, STDOUT_FILENO);
    if (peg_client_watch(client, &options, on_watch_event, w, &watch, &error))
        answer = remote_complain(remote, &error);
    else
        sigwait(&w->signals, &number);
    peg_watch_free(watch);
    return answer ? answer : w->exit;
}

static int run_watch(const struct cli_command *self, int argc, char **argv)
{
    struct watching w = {.changes_only = false};

    block_end_signals(&w.signals);
    return remote_run(&w.remote, self, argc, argv, remote_take_tag, watch_toolsets);
}

const struct cli_command cli_watch = {
    .name = "watch",
    .usage = "[options]",
    .summary = "print each change of toolsets and their health",
    .about =
        "Prints the toolsets that are there, then a line for each that is registered, changed\n"
        "or taken out, and for each change of health, until it is stopped (^C). A gateway\n"
        "that goes away, or is not there yet, is waited for.",
    .options = option_table,
    .notes = "exit status:\n"
             "  0  it was stopped\n"
             "  2  a wrong option, or a file that cannot be used\n"
             "  3  the gateway does not know who we are\n\n"
             "examples:\n"
             "  pegboard watch --changes\n"
             "  pegboard watch --json | jq -r 'select(.event == \"health\").toolset.name'",
    .run = run_watch,
};
