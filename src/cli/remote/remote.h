/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_REMOTE_REMOTE_H
#define PEG_CLI_REMOTE_REMOTE_H

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/terminal/terminal.h"
#include "pegboard/client.h"
#include "pegboard/common.h"
#include "json/json.h"

/* Where the gateway is, and who we are: the options that all commands share which need one. */

/* What these commands exit with, beside CLI_OK, CLI_NO and CLI_UNUSABLE; pegboard(1) lists all. */
enum {
    CLI_NO_GATEWAY = 3, /* it could not be reached, or does not know us */
    CLI_UNKNOWN = 4,    /* a call was started, or may have been, and its end is not known */
    CLI_NOT_NOW = 5,    /* nothing was started: nobody healthy, overloaded, too late; ask again */
};

#define REMOTE_EXIT_STATUS                                                                         \
    "  2  a wrong option, or a file that cannot be used\n"                                         \
    "  3  the gateway could not be reached, or does not know who we are\n"

/* ---- options --------------------------------------------------------------------------------- */

/* Above those of a command's own. */
enum {
    REMOTE_OPT_REGISTRY = 200,
    REMOTE_OPT_TOKEN,
    REMOTE_OPT_TLS,
    REMOTE_OPT_TLS_CA,
    REMOTE_OPT_TLS_CERT,
    REMOTE_OPT_TLS_KEY,
    REMOTE_OPT_COLOR,
    REMOTE_OPT_JSON,
    REMOTE_OPT_TAG,
    REMOTE_OPT_NAMES,
};

/* In a table of options: those of every command, with a comma behind. */
#define REMOTE_OPTIONS                                                                             \
    {REMOTE_OPT_REGISTRY, 0, "registry", "ADDR",                                                   \
     "the gateway, HOST[:PORT] or unix:PATH; by default\nPEGBOARD_REGISTRY or 127.0.0.1, port "    \
     "9090"},                                                                                      \
        {REMOTE_OPT_TOKEN, 0, "token", "FILE",                                                     \
         "file with the token to show; PEGBOARD_TOKEN has the\ntoken itself"},                     \
        {REMOTE_OPT_TLS, 0, "tls", NULL, "speak TLS, and trust whom the system trusts"},           \
        {REMOTE_OPT_TLS_CA, 0, "tls-ca", "FILE",                                                   \
         "speak TLS, and trust these certificates (PEM);\nPEGBOARD_TLS_CA by default"},            \
        {REMOTE_OPT_TLS_CERT, 0, "tls-cert", "FILE",                                               \
         "our own certificate (PEM); PEGBOARD_TLS_CERT by default"},                               \
    {                                                                                              \
        REMOTE_OPT_TLS_KEY, 0, "tls-key", "FILE", "its key (PEM); PEGBOARD_TLS_KEY by default"     \
    }

#define REMOTE_OPTION_COLOR                                                                        \
    {                                                                                              \
        REMOTE_OPT_COLOR, 0, "color", "WHEN", "auto (default: on a terminal), always or never"     \
    }
#define REMOTE_OPTION_TAG                                                                          \
    {                                                                                              \
        REMOTE_OPT_TAG, 0, "tag", "TAG", "only toolsets with this tag; may be given several times" \
    }

enum { REMOTE_MAX_TAGS = 64 };

/* What was asked for; strings are borrowed from argv and the environment. Starts as {0}. */
struct remote_args {
    const char *address; /* NULL until remote_finish() */
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
    const char *tags[REMOTE_MAX_TAGS + 1]; /* NULL-terminated */
    size_t n_tags;
};

/* Takes an option if it is one of the above. Returns 0, or CLI_STOP after a complaint. */
int remote_take(struct remote_args *remote, struct cli_args *args, int id);
/* After the options: what they have not said, from the environment. CLI_OK, or CLI_UNUSABLE after a
 * complaint about options that do not go together. */
int remote_finish(struct remote_args *remote, const struct cli_command *command);

/* What a command takes beyond the shared options. */
struct remote_own {
    /* Returns 0, or CLI_STOP after a complaint; NULL: no options. */
    int (*take)(void *user, struct cli_args *args, int id);
    void *user;
    const char **operands; /* max_operands of them; the rest is NULL */
    size_t max_operands;
    const char *needed; /* complains without the first operand; NULL: it may be missing */
};

/* Reads the command line; `own` may be NULL. False with *ret_exit set: there is nothing to do. */
bool remote_read(struct remote_args *remote, struct cli_args *args, const struct remote_own *own,
                 int *ret_exit);

/* A duration as in Go, into milliseconds: "10s", "1m30s", "250ms". False if it is none, is below
 * `least`, or above about 24 days. */
bool remote_duration(const char *text, int64_t least_ms, int64_t *ret_ms);
/* "3 s", "250 ms". */
void remote_put_time(struct peg__buf *out, int64_t ms);

/* ---- the client ---- */

/* Connects to nothing yet. */
peg_status remote_client_new(const struct remote_args *remote, peg_client **ret_client,
                             peg_error *reterr);
/* The same: CLI_OK, or an exit status after a complaint. */
int remote_open(const struct remote_args *remote, peg_client **ret_client);

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
 *   "away_since_ms"} (null: it has a provider, or none was heard of) */
void toolset_out(struct peg__out *out, const peg_toolset_info *info);
void toolset_out_strings(struct peg__out *out, const char *name, const char *const *strings,
                         size_t n);
/* "healthy", "unhealthy", "unknown". */
const char *toolset_health(const peg_toolset_info *info);

/* "3d 4h", "2h 5m", "41s". */
void toolset_put_age(struct peg__buf *out, int64_t seconds);

/* The same, or "away since 09:41" of one that nobody provides, and which was heard of last then;
 * "away" if it was not since the gateway began. Local time; a date if that was not today. */
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

/* JSON text as it was given with --json: itself, @FILE, or "-" as "@-". What is no JSON is told
 * with its place in the file. */
peg_status call_args_read(const char *given, char **ret_json, peg_error *reterr);

#endif
