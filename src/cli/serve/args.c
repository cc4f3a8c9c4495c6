/* SPDX-License-Identifier: Apache-2.0 */

/* Options of serve, the same from the environment, and where its data is. */

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "cli/remote/remote.h"
#include "cli/serve/serve.h"
#include "gateway/search/search.h"
#include "wire/wire.h"

enum option_id { OPT_NAME = 1, OPT_STORE, OPT_LANGUAGE, OPT_LOG_LEVEL };

#define SERVE_STRING(option, value, member, text)                                                  \
    {                                                                                              \
        0, 0, option, value, text, .kind = CLI_STRING,                                             \
                                   .at = offsetof(struct serve_options, member), .least = 1        \
    }
#define SERVE_TIME(option, member, text)                                                           \
    {                                                                                              \
        0, 0, option, "TIME", text,                                                                \
            .kind = CLI_TIME, .at = offsetof(struct serve_options, config.member), .least = 1      \
    }
#define SERVE_COUNT(option, max, member, text)                                                     \
    {                                                                                              \
        0, 0, option, "N", text, .kind = CLI_COUNT,                                                \
                                 .at = offsetof(struct serve_options, config.member), .least = 1,  \
                                 .most = (max)                                                     \
    }

const struct cli_option serve_option_table[] = {
    SERVE_STRING("addr", "ADDR", addr,
                 "where to listen: HOST:PORT, :PORT (everywhere),\nunix:PATH, or systemd for a "
                 "socket of its making;\n127.0.0.1:9090 by default"),
    {OPT_NAME, 0, "name", "NAME", "of the registry; `registry` by default", .kind = CLI_OWN},
    {OPT_STORE, 0, "store", "KIND",
     "where toolsets are kept: sqlite (default) or memory,\nwhich forgets them at the end",
     .kind = CLI_OWN},
    SERVE_STRING("data-dir", "DIR", data_dir,
                 "folder of the store; $XDG_STATE_HOME/pegboard or\n~/.local/state/pegboard by "
                 "default"),
    {0, 0, "ping-interval", "TIME", "between two pings of a provider; 10s by default",
     .kind = CLI_TIME, .at = offsetof(struct serve_options, config.ping_interval_ms), .least = 1,
     .most = 3600000, .wanted = "at most 1h, and at least 1ms"},
    SERVE_COUNT("missed-ping-threshold", 1000, missed_ping_threshold,
                "unhealthy after N + 1 intervals without a pong;\n3 by default"),
    SERVE_TIME("result-mapping-ttl", result_mapping_ttl_ms,
               "how long results are kept for callers that ask again; 5m\nby default"),
    SERVE_TIME("drain-time", drain_ms,
               "running calls may finish for so long at the end; 30s by\ndefault"),
    {0, 0, "lease", "TIME",
     "a provider that lost its stream may come back for\nso long; 10s by default", .kind = CLI_TIME,
     .at = offsetof(struct serve_options, config.lease_ms), .least = 100,
     .wanted = "at least 100ms"},
    {0, 0, "keepalive", "TIME",
     "a connection that is silent for so long is pinged, and\nclosed if it does not answer; 1m by "
     "default",
     .kind = CLI_TIME, .at = offsetof(struct serve_options, config.keepalive_ms), .least = 100,
     .wanted = "at least 100ms"},
    {0, 0, "max-held", "SIZE",
     "bytes that all connections hold together; above that the\nlargest one is cut; 256MiB by "
     "default",
     .kind = CLI_SIZE, .at = offsetof(struct serve_options, config.max_held_bytes),
     .least = UINT64_C(1) << 20, .most = UINT64_C(1) << 40,
     .wanted = "1MiB to 1024GiB: a number with KiB, MiB or GiB"},
    SERVE_COUNT("max-connections", 1000000, max_connections,
                "connections of one address, more wait to be accepted;\n20000 by default"),
    {0, 0, "max-payload", "SIZE", "arguments of a call; at most 4MiB, 2MiB by default",
     .kind = CLI_SIZE, .at = offsetof(struct serve_options, config.max_payload_bytes),
     .least = 1 << 10, .most = PEG_LIMIT_ARGS_BYTES,
     .wanted = "1KiB to 4MiB: a number with KiB or MiB"},
    SERVE_COUNT("max-queue", 1000000, max_queue,
                "calls that wait for one provider, more are\nrefused; 10000 by default"),
    SERVE_COUNT("threads", 64, threads, "event loops; 1 by default, enough for most"),
    {OPT_LANGUAGE, 0, "search-language", "NAME",
     "whose words are compared by their stems when toolsets\nare searched; english by default, "
     "none for none",
     .kind = CLI_OWN},
    SERVE_STRING("token-file", "FILE", config.token_file,
                 "accept callers that show one of these tokens; see\n`pegboard token`"),
    SERVE_STRING("tls-cert", "FILE", config.tls_cert, "speak TLS with this certificate (PEM)"),
    SERVE_STRING("tls-key", "FILE", config.tls_key, "and its key (PEM)"),
    SERVE_STRING("tls-client-ca", "FILE", config.tls_client_ca,
                 "accept callers with a certificate that these signed\n(PEM)"),
    SERVE_STRING("admin-names", "NAMES", config.admin_names,
                 "operators' certificates of these, by their names, between\ncommas; tokens are "
                 "made so by `token new --admin`"),
    {0, 0, "insecure", NULL, "listen beyond this machine without authentication", .kind = CLI_FLAG,
     .at = offsetof(struct serve_options, config.insecure)},
    SERVE_STRING("admin-addr", "ADDR", config.admin_addr, "/metrics and /healthz there, too"),
    SERVE_STRING("redis", "URL", config.redis,
                 "the Redis of a cluster: host:port, redis://, rediss:// or\nunix://; nodes of one "
                 "name on one Redis are one registry"),
    SERVE_STRING("log-file", "FILE", config.log_file,
                 "instead of standard error; SIGHUP opens it again"),
    {OPT_LOG_LEVEL, 0, "log-level", "LEVEL", "info (default), warn or error", .kind = CLI_OWN},
    {.name = NULL},
};

/* ---- values ---- */

static bool read_level(const char *text, peg_log_level *ret_level)
{
    for (int level = PEG_LOG_INFO; level <= PEG_LOG_ERROR; level++) {
        if (strcmp(text, peg_log_level_name((peg_log_level)level)) == 0) {
            *ret_level = (peg_log_level)level;
            return true;
        }
    }
    return false;
}

static const char *check_language(const char *name)
{
    static char wanted[400] = "one of ";
    struct gw_language language;

    if (gw_language_find(name, &language))
        return NULL;
    gw_language_names(wanted + strlen("one of "), sizeof(wanted) - strlen("one of "));
    return wanted;
}

static const char *take_serve_option(void *into, int id, const char *value)
{
    struct serve_options *o = into;

    switch (id) {
    case OPT_NAME:
        o->config.name = value;
        return wire_check_name(peg__str(value), "name", NULL)
                   ? "1 to 256 of the characters A-Z a-z 0-9 _ . : / -"
                   : NULL;
    case OPT_STORE:
        o->has_store = true;
        o->is_memory = strcmp(value, "memory") == 0;
        return o->is_memory || strcmp(value, "sqlite") == 0 ? NULL : "sqlite or memory";
    case OPT_LANGUAGE:
        o->config.search_language = value;
        return check_language(value);
    default:
        return read_level(value, &o->config.log_level) ? NULL : "info, warn or error";
    }
}

/* ---- options and environment ---- */

static const struct {
    const char *variable;
    const char *option;
} variables[] = {
    {"REGISTRY_ADDR", "addr"},
    {"REGISTRY_NAME", "name"},
    {"REDIS_URL", "redis"},
    {"PING_INTERVAL", "ping-interval"},
    {"MISSED_PING_THRESHOLD", "missed-ping-threshold"},
    {"RESULT_STREAM_MAPPING_TTL", "result-mapping-ttl"},
};

/* First, so that options win. False after a complaint. */
static bool read_environment(struct cli_args *args, struct serve_options *o)
{
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const struct cli_option *option = serve_option_table;
        const char *value = secure_getenv(variables[i].variable);
        const char *wanted = NULL;

        while (strcmp(option->name, variables[i].option) != 0)
            option++;
        if (value && *value)
            wanted = cli_set(option, o, take_serve_option, value);
        if (wanted) {
            args->exit = cli_bad_use(args->command, "%s is '%s', but should be %s",
                                     variables[i].variable, value, wanted);
            return false;
        }
    }
    o->config.redis_password = secure_getenv("REDIS_PASSWORD");
    return true;
}

/* Setting MONGO_URL means toolsets in MongoDB, which SQLite must not replace silently. */
static bool wants_mongo(const struct serve_options *o)
{
    const char *url = secure_getenv("MONGO_URL");

    return url && *url && !o->has_store;
}

/* CLI_OK, or CLI_UNUSABLE after a complaint. */
static int check_together(const struct cli_command *command, const struct serve_options *o)
{
    const peg_gateway_config *config = &o->config;

    if (wants_mongo(o))
        return cli_bad_use(command,
                           "MONGO_URL is set, but this build of pegboard keeps toolsets in "
                           "SQLite or in memory: unset it, or use --store sqlite");
    if (config->redis && o->has_store && !o->is_memory)
        return cli_bad_use(command, "--store sqlite is for one node: with --redis or REDIS_URL "
                                    "leave it out, and toolsets are kept on Redis");
    if (!config->tls_cert != !config->tls_key)
        return cli_bad_use(command, "--tls-cert and --tls-key are needed together");
    if (config->tls_client_ca && !config->tls_cert)
        return cli_bad_use(command, "--tls-client-ca needs --tls-cert and --tls-key");
    if (config->admin_names && !config->tls_client_ca)
        return cli_bad_use(command, "--admin-names needs --tls-client-ca, which signs for them; "
                                    "for tokens use `pegboard token new --admin`");
    return CLI_OK;
}

bool serve_read(struct cli_args *args, struct serve_options *o)
{
    o->config.log_level = PEG_LOG_INFO;
    if (!read_environment(args, o) || !cli_read(args, o, take_serve_option))
        return false;
    args->exit = check_together(args->command, o);
    o->is_memory |= o->config.redis != NULL;
    return args->exit == CLI_OK;
}

/* ---- the folder ---- */

static peg_status find_data_dir(const struct serve_options *o, char *ret_path, size_t size,
                                peg_error *reterr)
{
    const char *state = secure_getenv("XDG_STATE_HOME");
    const char *home = secure_getenv("HOME");
    int len;

    if (o->data_dir)
        len = snprintf(ret_path, size, "%s", o->data_dir);
    else if (state && state[0] == '/')
        len = snprintf(ret_path, size, "%s/pegboard", state);
    else if (home && home[0] == '/')
        len = snprintf(ret_path, size, "%s/.local/state/pegboard", home);
    else
        return peg__fail(reterr, PEG_EINVAL, "E_FILE",
                         "there is no folder for the store, since HOME is not set: use --data-dir, "
                         "or --store memory");
    if (len < 0 || (size_t)len >= size)
        return peg__fail(reterr, PEG_ELIMIT, "E_FILE",
                         "the name of the folder is longer than %zu bytes: use a shorter "
                         "--data-dir",
                         size - 1);
    return PEG_OK;
}

/* As `mkdir -p`; for this user alone. */
static peg_status make_folders(char *path, peg_error *reterr)
{
    for (char *at = path + 1;; at++) {
        const char end = *at;

        if (end != '/' && end != '\0')
            continue;
        *at = '\0';
        if (mkdir(path, 0700) && errno != EEXIST)
            return peg__fail(reterr, PEG_EIO, "E_FILE",
                             "the folder '%.160s' for the store cannot be made: %m; use "
                             "--data-dir, or --store memory",
                             path);
        *at = end;
        if (!end)
            return PEG_OK;
    }
}

/* One that was there already may belong to another user. */
static peg_status check_folder(const char *path, peg_error *reterr)
{
    struct stat st;

    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        errno = ENOTDIR;
    else if (access(path, W_OK | X_OK) == 0)
        return PEG_OK;
    return peg__fail(reterr, PEG_EIO, "E_FILE",
                     "the folder '%.160s' for the store cannot be written to: %m; give it to the "
                     "user that runs this, use --data-dir, or --store memory",
                     path);
}

peg_status serve_make_data_dir(struct serve_options *o, peg_error *reterr)
{
    static const char file[] = "/toolsets.db";
    peg_status status = find_data_dir(o, o->path, sizeof(o->path) - sizeof(file), reterr);

    if (!status)
        status = make_folders(o->path, reterr);
    if (!status)
        status = check_folder(o->path, reterr);
    if (!status)
        snprintf(o->path + strlen(o->path), sizeof(file), "%s", file);
    return status;
}
