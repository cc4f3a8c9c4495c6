/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard status: how is the gateway? Once, or again and again on a terminal. */

#include "cli/remote/status.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "cli/remote/args.h"
#include "cli/terminal/screen.h"

enum { OPT_ONCE = 1, OPT_INTERVAL };

static const struct cli_option option_table[] = {
    {OPT_ONCE, 0, "once", NULL, "print it once, on a terminal too"},
    {OPT_INTERVAL, 0, "interval", "TIME", "between two looks on a terminal; 1s by default"},
    {REMOTE_OPT_JSON, 0, "json", NULL, "print it once, as one JSON object"},
    REMOTE_OPTIONS,
    REMOTE_OPTION_COLOR,
    {0, 0, NULL, NULL, NULL},
};

struct status_options {
    struct remote_args remote;
    bool is_once;
    int64_t interval_ms;
};

static int print_once(const struct status_options *o, const peg_node_status *status)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const struct status_print print = {.out = &out,
                                       .style = cli_style_for(o->remote.color, STDOUT_FILENO),
                                       .width = cli_width(STDOUT_FILENO)};

    if (o->remote.as_json)
        status_print_json(&out, status);
    else
        status_print(&print, status);
    return remote_print(&out);
}

static int show_once(const struct status_options *o, peg_client *client)
{
    peg_node_status *status = NULL;
    peg_error error;
    int answer;

    if (peg_client_status(client, NULL, NULL, true, &status, &error))
        return remote_complain(&o->remote, &error);
    answer = print_once(o, status);
    peg_node_status_free(status);
    return answer;
}

/* ---- again and again ---- */

/* Lines of toolsets that fit below the head. */
static unsigned rows_that_fit(void)
{
    enum { OTHERS = 8, LEAST = 1 };
    struct winsize size = {.ws_row = 0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_row == 0)
        return 0;
    return size.ws_row > OTHERS + LEAST ? size.ws_row - OTHERS : LEAST;
}

static void draw(const struct status_options *o, const peg_node_status *status,
                 const peg_error *error)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const struct status_print print = {.out = &out,
                                       .style = cli_style_for(o->remote.color, STDOUT_FILENO),
                                       .width = cli_width(STDOUT_FILENO),
                                       .n_rows = rows_that_fit()};

    peg__buf_puts(&out, "\033[H\033[2J");
    if (status) {
        status_print(&print, status);
    } else {
        peg__buf_puts(&out, print.style->bad);
        remote_explain(&o->remote, error, &out);
        peg__buf_printf(&out, " (%s)%s\n", remote_error_name(error), print.style->off);
    }
    peg__buf_printf(&out, "\n%sq ends this%s", print.style->dim, print.style->off);
    if (!out.status)
        cli_screen_draw(peg__buf_view(&out));
    peg__buf_free(&out);
}

/* The first look comes before the screen, so that what is wrong from the start is said where it
 * stays; and so is what is wrong at the end. */
static int show_live(const struct status_options *o, peg_client *client)
{
    peg_node_status *status = NULL;
    peg_error error;
    int answer = CLI_OK;

    if (peg_client_status(client, NULL, NULL, true, &status, &error))
        return remote_complain(&o->remote, &error);
    if (!cli_screen_open()) {
        answer = print_once(o, status);
        peg_node_status_free(status);
        return answer;
    }
    draw(o, status, &error);
    while (cli_screen_wait(o->interval_ms)) {
        status = peg_node_status_free(status);
        if (peg_client_status(client, NULL, NULL, true, &status, &error))
            status = NULL;
        draw(o, status, &error);
    }
    cli_screen_close();
    if (!status)
        answer = remote_complain(&o->remote, &error);
    peg_node_status_free(status);
    return answer;
}

/* ---- the command ---- */

static int read_options(struct cli_args *args, struct status_options *o)
{
    const char *extra = NULL; /* told at the end: --help may come behind it */
    int id;

    while ((id = cli_next(args)) != CLI_END) {
        if (id == CLI_OPERAND)
            extra = args->value;
        if (id == OPT_ONCE)
            o->is_once = true;
        if (id == OPT_INTERVAL && !remote_duration(args->value, 50, &o->interval_ms))
            id = cli_bad_value(args, "interval", "a time from 50ms, such as 2s");
        if (id == CLI_STOP || remote_take(&o->remote, args, id) == CLI_STOP)
            return CLI_STOP;
    }
    args->exit = extra ? cli_bad_use(args->command, "'%s' is one too many", extra)
                       : remote_finish(&o->remote, args->command);
    return args->exit ? CLI_STOP : 0;
}

static int run(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    struct status_options options = {.interval_ms = 1000};
    peg_client *client = NULL;
    int answer;

    if (read_options(&args, &options) == CLI_STOP)
        return args.exit;
    answer = remote_open(&options.remote, &client);
    if (answer)
        return answer;
    if (options.is_once || options.remote.as_json || !isatty(STDOUT_FILENO) ||
        !isatty(STDIN_FILENO))
        answer = show_once(&options, client);
    else
        answer = show_live(&options, client);
    peg_client_unref(client);
    return answer;
}

const struct cli_command cli_status = {
    .name = "status",
    .usage = "[options]",
    .summary = "show how a gateway is doing",
    .about =
        "Prints the state of the node that answers, and a table of its toolsets: health,\n"
        "providers, calls in flight and waiting, calls a second over the last ten seconds,\n"
        "and, since the start of the node, latencies (half of all calls took at most P50, 99\n"
        "of 100 at most P99) and ends. On a terminal it is drawn again each second until q or\n"
        "^C. Gateways tell it to this machine and to client certificates only.",
    .options = option_table,
    .notes = "exit status:\n"
             "  0  it was shown; when it is drawn again and again, the last time too\n"
             "  1  the gateway does not tell it to us\n" REMOTE_EXIT_STATUS "\n"
             "examples:\n"
             "  pegboard status\n"
             "  pegboard status --json | jq .calls_per_s",
    .run = run,
};
