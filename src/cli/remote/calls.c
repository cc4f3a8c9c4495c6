/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard calls: what happened to my call? */

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "cli/remote/remote.h"
#include "cli/terminal/terminal.h"

struct calls_options {
    struct remote_args remote;
    const char *toolset;
    const char *run_id;
    const char *tool_call_id;
    const char *key;
    const char *principal;
};

#define CALLS_STRING(option, member, what, text)                                                   \
    {                                                                                              \
        0, 0, option, what, text, .kind = CLI_STRING,                                              \
                                  .at = offsetof(struct calls_options, member), .least = 1,        \
                                  .wanted = "not empty"                                            \
    }

static const struct cli_option option_table[] = {
    CALLS_STRING("toolset", toolset, "TOOLSET", "of a call that is named by its identity"),
    CALLS_STRING("idempotency-key", key, "KEY", "the identity that it was called with"),
    CALLS_STRING("run-id", run_id, "ID", "likewise, with --tool-call-id"),
    CALLS_STRING("tool-call-id", tool_call_id, "ID", "likewise, with --run-id"),
    CALLS_STRING("principal", principal, "NAME", "whose identity that is; for operators"),
    REMOTE_FLAG("json", as_json, "print one JSON object"),
    REMOTE_OPTIONS,
    REMOTE_OPTION_COLOR,
    {.name = NULL},
};

/* ---- for programs ---- */

static void out_attempt(struct peg__out *out, const peg_remote_attempt *attempt)
{
    peg__out_object(out);
    cli_out_integer(out, "number", attempt->number);
    peg__out_cmember(out, "state", attempt->state);
    peg__out_cmember(out, "provider", attempt->provider);
    peg__out_cmember(out, "node", attempt->node_id);
    peg__out_cmember(out, "address", attempt->address);
    cli_out_bool(out, "attached", attempt->is_attached);
    peg__out_end_object(out);
}

static void out_call_outcome(struct peg__out *out, const peg_remote_call_info *info)
{
    peg__out_key(out, "outcome");
    if (!*info->outcome) {
        peg__out_null(out);
        return;
    }
    peg__out_object(out);
    peg__out_cmember(out, "kind", info->outcome);
    cli_out_bool(out, "started", info->was_started);
    peg__out_cmember(out, "error", info->error_name);
    peg__out_cmember(out, "message", info->error_message);
    cli_out_integer(out, "result_bytes", (int64_t)info->result_bytes);
    peg__out_end_object(out);
}

static void put_call_json(struct peg__buf *buf, const peg_remote_call_info *info)
{
    struct peg__out out = {.buf = buf};

    peg__out_object(&out);
    peg__out_cmember(&out, "call_id", info->call_id);
    peg__out_cmember(&out, "state", info->state);
    peg__out_cmember(&out, "toolset", info->toolset);
    peg__out_cmember(&out, "tool", info->tool);
    peg__out_cmember(&out, "principal", info->principal);
    cli_out_integer(&out, "admitted_ms", info->admitted_ms);
    cli_out_integer(&out, "deadline_ms", info->deadline_ms);
    cli_out_integer(&out, "kept_until_ms", info->kept_until_ms);
    peg__out_cmember(&out, "coordinator", info->coordinator_id);
    peg__out_cmember(&out, "coordinator_address", info->coordinator_address);
    cli_out_bool(&out, "coordinator_lost", info->is_coordinator_lost);
    cli_out_bool(&out, "other_epoch", info->is_other_epoch);
    cli_out_integer(&out, "waiters", info->n_waiters);
    cli_out_array(&out, "attempts");
    for (size_t i = 0; i < info->n_attempts; i++)
        out_attempt(&out, &info->attempts[i]);
    peg__out_end_array(&out);
    out_call_outcome(&out, info);
    cli_out_end_line(&out);
}

/* ---- for people ---- */

static void put_field(struct peg__buf *out, const char *name)
{
    peg__buf_printf(out, "  %-13s", name);
}

static void put_safe_after(struct peg__buf *out, const char *before, const char *text)
{
    peg__buf_puts(out, before);
    cli_put_safe(out, peg__str(text));
}

static void put_call_time(struct peg__buf *out, const char *name, int64_t unix_ms)
{
    const int64_t ago_s = time(NULL) - unix_ms / 1000;
    const time_t then = (time_t)(unix_ms / 1000);
    struct tm parts = {0};
    char text[32] = "";

    if (!unix_ms || !localtime_r(&then, &parts))
        return;
    put_field(out, name);
    if (strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts))
        peg__buf_puts(out, text);
    peg__buf_puts(out, ago_s < 0 ? ", in " : ", ");
    toolset_put_age(out, ago_s < 0 ? -ago_s : ago_s);
    peg__buf_puts(out, ago_s < 0 ? "\n" : " ago\n");
}

static void put_call_node(struct peg__buf *out, const char *id, const char *address)
{
    put_safe_after(out, "node ", id);
    if (*address) {
        put_safe_after(out, " (", address);
        peg__buf_putc(out, ')');
    }
}

static void put_admission(struct peg__buf *out, const peg_remote_call_info *info)
{
    if (*info->toolset) {
        put_field(out, "tool");
        put_safe_after(out, "", info->toolset);
        put_safe_after(out, " ", info->tool);
        put_safe_after(out, ", for ", info->principal);
        peg__buf_putc(out, '\n');
    }
    put_call_time(out, "admitted", info->admitted_ms);
    put_call_time(out, "deadline", info->deadline_ms);
    if (*info->coordinator_id) {
        put_field(out, "coordinator");
        put_call_node(out, info->coordinator_id, info->coordinator_address);
        if (info->is_coordinator_lost)
            peg__buf_puts(out, ", which is lost: who asks again with its identity takes it over");
        peg__buf_putc(out, '\n');
    }
}

static void put_attempt(struct peg__buf *out, const peg_remote_attempt *attempt, bool is_last,
                        bool has_ended)
{
    char name[24];

    snprintf(name, sizeof(name), "attempt %u", attempt->number);
    put_field(out, name);
    if (!*attempt->provider) {
        peg__buf_puts(out, strcmp(attempt->state, "closed") == 0 ? "not made: closed by "
                                                                 : "not started: taken back by ");
        put_call_node(out, attempt->node_id, attempt->address);
    } else {
        put_safe_after(out, "claimed by provider ", attempt->provider);
        peg__buf_puts(out, " at ");
        put_call_node(out, attempt->node_id, attempt->address);
        if (!is_last)
            peg__buf_puts(out, ", which did not end it");
        else if (!has_ended && !attempt->is_attached)
            peg__buf_puts(out, ", which is lost");
    }
    peg__buf_putc(out, '\n');
}

static void put_call_outcome(struct peg__buf *out, const struct cli_style *style,
                             const peg_remote_call_info *info)
{
    const bool is_result = strcmp(info->outcome, "result") == 0;

    put_field(out, "outcome");
    peg__buf_puts(out, is_result ? style->good : style->bad);
    put_safe_after(out, "", info->outcome);
    peg__buf_puts(out, style->off);
    if (is_result)
        peg__buf_printf(out, " of %llu bytes", (unsigned long long)info->result_bytes);
    else if (!info->was_started)
        peg__buf_puts(out, ", never started");
    if (*info->error_name && strcmp(info->error_name, info->outcome) != 0)
        put_safe_after(out, ", ", info->error_name);
    if (*info->error_message)
        put_safe_after(out, ": ", info->error_message);
    peg__buf_putc(out, '\n');
}

static const char *state_words(const peg_remote_call_info *info)
{
    if (strcmp(info->state, "waiting") == 0)
        return "waiting: admitted, and no provider has started it";
    return strcmp(info->state, "running") == 0 ? "running" : info->state;
}

static void put_call(struct peg__buf *out, const struct cli_style *style,
                     const peg_remote_call_info *info)
{
    const bool has_ended = *info->outcome != '\0';

    peg__buf_printf(out, "%s", style->bold);
    put_safe_after(out, "call ", info->call_id);
    peg__buf_printf(out, "%s: %s\n", style->off, state_words(info));
    put_admission(out, info);
    for (size_t i = 0; i < info->n_attempts; i++)
        put_attempt(out, &info->attempts[i], i + 1 == info->n_attempts, has_ended);
    if (info->n_waiters) {
        put_field(out, "waiting");
        peg__buf_printf(out, "%u event loop%s of other nodes\n", info->n_waiters,
                        info->n_waiters == 1 ? "" : "s");
    }
    if (has_ended)
        put_call_outcome(out, style, info);
    put_call_time(out, "kept until", info->kept_until_ms);
    if (info->is_other_epoch) {
        put_field(out, "note");
        peg__buf_puts(out, "Redis has lost something since: some of this may be missing\n");
    }
}

/* ---- the command ---- */

static int show_call(struct remote_args *remote, peg_client *client)
{
    const struct calls_options *o = (const struct calls_options *)remote;
    const peg_remote_call_query query = {
        PEG_REMOTE_CALL_QUERY_INIT,      .call_id = remote->n_operands ? remote->operands[0] : NULL,
        .toolset = o->toolset,           .run_id = o->run_id,
        .tool_call_id = o->tool_call_id, .idempotency_key = o->key,
        .principal = o->principal,
    };
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_remote_call_info *info = NULL;
    peg_error error;

    if (peg_client_describe_call(client, NULL, &query, &info, &error))
        return remote_complain(remote, &error);
    if (remote->as_json)
        put_call_json(&out, info);
    else
        put_call(&out, cli_style_for(remote->color, STDOUT_FILENO), info);
    peg_remote_call_info_free(info);
    return remote_print(&out);
}

static int run_calls_command(const struct cli_command *self, int argc, char **argv)
{
    struct calls_options options = {.toolset = NULL};
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    const struct calls_options *o = &options;
    bool has_identity;

    if (!remote_read(&options.remote, &args, NULL))
        return args.exit;
    has_identity = o->toolset && (o->key || (o->run_id && o->tool_call_id));
    if (args.n_operands && (o->toolset || o->key || o->run_id || o->tool_call_id || o->principal))
        return cli_bad_use(self, "give the id of a call, or its identity, not both");
    if (!args.n_operands && !has_identity)
        return cli_bad_use(self, "the id of a call is needed, or --toolset with --idempotency-key, "
                                 "or with --run-id and --tool-call-id");
    return remote_work(&options.remote, show_call);
}

const struct cli_command cli_calls = {
    .name = "calls",
    .usage = "[options] ID | --toolset TOOLSET --idempotency-key KEY",
    .summary = "show what happened to a call",
    .about = "Prints what the registry knows of a call: when it was admitted, for which tool,\n"
             "until when it has time, which provider of which node started it, and how it\n"
             "ended. ID is the id that `pegboard call --json` prints, and that errors of a\n"
             "gateway have. Any node may be asked. A call with an identity is known until some\n"
             "minutes after its deadline (--result-mapping-ttl of the gateway); one without is\n"
             "known to its own node, until it ends. For the principal that made the call, and\n"
             "for operators.",
    .options = option_table,
    .max_operands = 1,
    .notes =
        "exit status:\n"
        "  0  it was shown\n"
        "  1  nothing is known of such a call, or it is another principal's\n" REMOTE_EXIT_STATUS
        "\n"
        "examples:\n"
        "  pegboard calls 6f1d0c7b2a9e4c55a1f0e3b7d2c48f10\n"
        "  pegboard calls --toolset handy --idempotency-key order-17\n"
        "  pegboard calls --json ID | jq -r .state",
    .run = run_calls_command,
};
