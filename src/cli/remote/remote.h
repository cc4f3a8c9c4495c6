/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_REMOTE_REMOTE_H
#define PEG_CLI_REMOTE_REMOTE_H

#include <stddef.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/terminal/terminal.h"
#include "pegboard/client.h"
#include "pegboard/common.h"
#include "json/json.h"

/* The commands that talk to a gateway: their shared options, client and output. */

/* What these commands exit with, beside CLI_OK, CLI_NO and CLI_UNUSABLE; pegboard(1) lists all. */
enum {
    CLI_NO_GATEWAY = 3, /* it could not be reached, or refused our credentials */
    CLI_UNKNOWN = 4,    /* the outcome of a call is unknown: it may have taken effect */
    CLI_NOT_NOW = 5,    /* not started: no healthy provider, overload, deadline; retry is safe */
};

#define REMOTE_EXIT_STATUS                                                                         \
    "  2  a wrong option, or a file that cannot be used\n"                                         \
    "  3  the gateway could not be reached, or does not know who we are\n"

/* ---- options --------------------------------------------------------------------------------- */

/* In a table of options: those of every command, with a comma behind. The struct that cli_read()
 * fills begins with a struct remote_args. */
#define REMOTE_OPTIONS                                                                             \
    {.name = "registry",                                                                           \
     .value = "ADDR[,...]",                                                                        \
     .help = "the gateway, HOST[:PORT] or unix:PATH; of several\nthat are one registry, one that " \
             "answers. By default\nPEGBOARD_REGISTRY or 127.0.0.1, port 9090",                     \
     .kind = CLI_STRING,                                                                           \
     .at = offsetof(struct remote_args, address),                                                  \
     .least = 1,                                                                                   \
     .wanted = "HOST[:PORT], :PORT on this machine, or unix:PATH, several with commas"},           \
        REMOTE_STRING("token", token_file,                                                         \
                      "file with the token to show; PEGBOARD_TOKEN has the\ntoken itself"),        \
        REMOTE_FLAG("tls", uses_tls, "speak TLS, and trust whom the system trusts"),               \
        REMOTE_STRING(                                                                             \
            "tls-ca", tls_ca,                                                                      \
            "speak TLS, and trust these certificates (PEM);\nPEGBOARD_TLS_CA by default"),         \
        REMOTE_STRING("tls-cert", tls_cert,                                                        \
                      "our own certificate (PEM); PEGBOARD_TLS_CERT by default"),                  \
        REMOTE_STRING("tls-key", tls_key, "its key (PEM); PEGBOARD_TLS_KEY by default")

#define REMOTE_STRING(option, member, text)                                                        \
    {                                                                                              \
        0, 0, option, "FILE", text, .kind = CLI_STRING, .at = offsetof(struct remote_args, member) \
    }
#define REMOTE_FLAG(option, member, text)                                                          \
    CLI_OPTION_FLAG(struct remote_args, member, 0, option, text)
#define REMOTE_OPTION_COLOR CLI_OPTION_COLOR(struct remote_args, color)
/* For remote_take_tag(). */
#define REMOTE_OPTION_TAG                                                                          \
    {                                                                                              \
        REMOTE_OPT_TAG, 0, "tag", "TAG",                                                           \
            "only toolsets with this tag; may be given several times", .kind = CLI_OWN             \
    }

enum { REMOTE_OPT_TAG = 200 }; /* above those of a command's own */

enum { REMOTE_MAX_TAGS = 64 };

/* What was asked for; strings are borrowed from argv and the environment. Starts as {0}. */
struct remote_args {
    const char *address;      /* NULL until remote_read() */
    const char *address_from; /* the option or variable that names it */
    const char *token_file;
    const char *token; /* from the environment */
    bool uses_tls;
    const char *tls_ca;
    const char *tls_cert;
    const char *tls_key;
    int64_t timeout_ms; /* of what is no call; 0: the client's default */
    enum cli_color color;
    bool as_json;
    bool only_names;
    char **operands; /* of the command line, NULL behind the last */
    size_t n_operands;
    const char *tags[REMOTE_MAX_TAGS + 1]; /* NULL-terminated */
    size_t n_tags;
};

/* A cli_take_fn for --tag. */
const char *remote_take_tag(void *into, int id, const char *value);
/* cli_read() into a struct that begins with *remote, then the environment where options are
 * missing. False: exit with args->exit. */
bool remote_read(struct remote_args *remote, struct cli_args *args, cli_take_fn *take);
typedef int remote_work_fn(struct remote_args *remote, peg_client *client);
/* Calls `work` with a client and returns its exit status. */
int remote_work(struct remote_args *remote, remote_work_fn *work);
/* The same, after it has read the command line. */
int remote_run(struct remote_args *remote, const struct cli_command *self, int argc, char **argv,
               cli_take_fn *take, remote_work_fn *work);

/* "3 s", "250 ms". */
void remote_put_time(struct peg__buf *out, int64_t ms);

/* ---- the client ---- */

/* Connects to nothing yet. */
peg_status remote_client_new(const struct remote_args *remote, peg_client **ret_client,
                             peg_error *reterr);
/* What an error of a gateway, or of the way to it, is called on the wire ("not_found"), which is
 * the name that docs/reference/gateway.md explains; static. */
const char *remote_error_name(const peg_error *error);
/* What is wrong and what to do, as a sentence for people. */
void remote_explain(const struct remote_args *remote, const peg_error *error, struct peg__buf *out);
int remote_exit_of(const peg_error *error);
/* "pegboard: what is wrong (name)" on standard error; returns the exit status that fits. */
int remote_complain(const struct remote_args *remote, const peg_error *error);
/* "pegboard: place: what is wrong (E_CODE)", of what does not come from a gateway: CLI_UNUSABLE. */
int remote_complain_local(const char *place, const peg_error *error);

/* Sends a buffer to standard output and frees it. CLI_OK, or CLI_UNUSABLE after a complaint. */
int remote_print(struct peg__buf *out);

/* ---- toolsets: toolset.c ---- */

/* Toolsets as people and programs see them. */

/* The members of what is known about a toolset, in an object that is open:
 *   "name", "description", "version", "tags", "tool_count", "registered_at", "owner", "revision",
 *   "kind", "health": {"state", "reason", "last_pong_ms", "providers", "draining",
 *   "away_since_ms"} (null: it has a provider, or never had one) */
void toolset_out(struct peg__out *out, const peg_toolset_info *info);
void toolset_out_strings(struct peg__out *out, const char *name, const char *const *strings,
                         size_t n);
/* "healthy", "unhealthy", "unknown". */
const char *toolset_health(const peg_toolset_info *info);

/* "3d 4h", "2h 5m", "41s". */
void toolset_put_age(struct peg__buf *out, int64_t seconds);

/* The same, or "away since 09:41" without a provider since then; "away" if it had none since the
 * gateway began. Local time; a date if that was not today. */
void toolset_put_health(struct peg__buf *out, const peg_toolset_info *info);
/* Cells: the name; "healthy" in green, "unhealthy" or "away" in red; strings with commas between
 * them. */
void toolset_health_cell(struct cli_table *table, const peg_toolset_info *info,
                         const struct cli_style *style);
void toolset_strings_cell(struct cli_table *table, const char *const *strings, size_t n);
/* The first line of a text. */
void toolset_line_cell(struct cli_table *table, const char *text);

/* Registries that did not answer while others did, on standard error. */
void toolset_warn(const peg_registry_failure *failures, size_t n);

/* JSON text as a value, laid out for reading. False if it is none. */
bool toolset_put_pretty(struct peg__buf *out, peg_str json);

/* ---- arguments of a call: call_args.c ---- */

/*
 * Arguments of a tool from words of a command line, by the tool's schema:
 *
 *   city=Rome days=3 tags=a tags=b when:='{"from":1}' text=@notes.txt
 *
 * key=VALUE is what the schema wants there: if VALUE is JSON of a type that it allows, other than a
 * string, it is that, else a string if that is allowed, else the only item of an array. Where the
 * schema says nothing: JSON if it is any, else a string. A key that is there several times is an
 * array. key:=JSON is JSON in any case. @FILE is what is in a file, "@-" standard input, and
 * "@@..." a text that begins with one @.
 */

/* *ret_json is freed with peg_free(). PEG_EINVAL (E_ARGUMENT): no pair; PEG_EINVAL (E_VALIDATION,
 * as a gateway would say): no value for its place; PEG_EPARSE: what is no JSON; what reading a file
 * fails with. */
peg_status call_args_build(peg_str schema, const char *const *pairs, size_t n_pairs,
                           char **ret_json, peg_error *reterr);

/* JSON text as it was given with --json: itself, @FILE, or "-" as "@-". Errors in a file have
 * their place in it. */
peg_status call_args_read(const char *given, char **ret_json, peg_error *reterr);

/* ---- what a tool asks while it runs: call_ask.c ---- */

enum { CALL_MAX_ANSWERS = 32 };

/* Given beforehand: the content of one form each. */
struct call_answers {
    const char *given[CALL_MAX_ANSWERS];
    size_t n;
    size_t n_used;
};

/* Is there somebody to ask, or an answer? */
bool call_can_ask(const struct call_answers *answers);
/* A peg_remote_question_fn; user: the struct call_answers. */
peg_status call_ask(const peg_remote_question *question, void *user, peg_json_doc **ret_answers,
                    peg_error *reterr);

#endif
