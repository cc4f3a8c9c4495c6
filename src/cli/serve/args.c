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
     "where toolsets are kept: sqlite (default), mongo, or\nmemory, which forgets them at the end",
     .kind = CLI_OWN},
    SERVE_STRING("mongo", "URL", mongo.url,
                 "the MongoDB of the store, mongodb:// or mongodb+srv://;\nbetter in MONGO_URL, as "
                 "it may have a password"),
    SERVE_STRING("mongo-database", "NAME", mongo.database, "its database; `registry` by default"),
    SERVE_STRING("mongo-collection", "NAME", mongo.collection,
                 "its collection; `toolsets` by default"),
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
    SERVE_STRING("mcp-hosts", "NAMES", config.mcp_hosts,
                 "names by which MCP clients reach it, and web pages of\nwhich may use it, between "
                 "commas"),
    SERVE_COUNT("mcp-search-above", 10000000, mcp_search_above,
                "MCP clients search for tools where there are more"),
    SERVE_STRING("mcp-authorization-server", "URL", config.mcp_authorization_server,
                 "where MCP clients get tokens of this gateway (OAuth 2.0);\nnamed when one has "
                 "none"),
    SERVE_STRING(
        "cors-origin", "ORIGINS", config.cors_origin,
        "web pages that may use the HTTP API, such as\nhttps://app.example, between commas"),
    {0, 0, "no-console", NULL, "leave out the console, the web page at /", .kind = CLI_FLAG,
     .at = offsetof(struct serve_options, config.no_console)},
    {0, 0, "goa-generation", "N",
     "whose clients of goa_ai_registry.Registry there are: 1\n(goa-ai v0.32 to v0.47.2, default) "
     "or "
     "2 (to v0.56.6)",
     .kind = CLI_COUNT, .at = offsetof(struct serve_options, config.goa_generation), .least = 1,
     .most = 2},
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
    SERVE_STRING("redis-ca", "FILE", config.redis_ca,
                 "of rediss://: trust these certificates and CAs (PEM), not\nthe system's"),
    SERVE_STRING("redis-cert", "FILE", config.redis_cert,
                 "of rediss://: show this certificate (PEM)"),
    SERVE_STRING("redis-key", "FILE", config.redis_key, "and its key (PEM)"),
    SERVE_STRING("log-file", "FILE", config.log_file,
                 "instead of standard error; SIGHUP opens it again"),
    SERVE_STRING("otlp-endpoint", "URL", config.otlp_endpoint,
                 "send a span of each call to this OpenTelemetry collector,\nsuch as "
                 "http://localhost:4318"),
    {0, 0, "otlp-sample", "RATIO",
     "part of the calls without a trace context that get one,\n0 to 1; 1 by default",
     .kind = CLI_RATIO, .at = offsetof(struct serve_options, config.otlp_sample)},
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

static bool read_store(const char *text, enum serve_store *ret_store)
{
    static const char *const names[] = {
        [SERVE_SQLITE] = "sqlite", [SERVE_MEMORY] = "memory", [SERVE_MONGO] = "mongo"};

    for (int store = SERVE_SQLITE; store <= SERVE_MONGO; store++) {
        if (strcmp(text, names[store]) == 0) {
            *ret_store = (enum serve_store)store;
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
        return read_store(value, &o->store) ? NULL : "sqlite, mongo or memory";
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
    {"MONGO_URL", "mongo"},
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

/* A URL of MongoDB means that toolsets are kept there. In a cluster they are on Redis, and in the
 * memory of each node. */
static void choose_store(struct serve_options *o)
{
    if (o->store != SERVE_ANY)
        return;
    if (o->mongo.url)
        o->store = SERVE_MONGO;
    else
        o->store = o->config.redis ? SERVE_MEMORY : SERVE_SQLITE;
}

/* One in the environment may be for other programs. */
static bool has_mongo_option(const struct serve_options *o)
{
    const char *url = secure_getenv("MONGO_URL");

    return o->mongo.database || o->mongo.collection || (o->mongo.url && o->mongo.url != url);
}

static int check_store(const struct cli_command *command, const struct serve_options *o)
{
    if (o->store == SERVE_MONGO && !o->mongo.url)
        return cli_bad_use(command, "--store mongo needs the URL of a MongoDB: set MONGO_URL, or "
                                    "use --mongo");
    if (o->store != SERVE_MONGO && has_mongo_option(o))
        return cli_bad_use(command, "--mongo, --mongo-database and --mongo-collection are for "
                                    "--store mongo: set MONGO_URL, or leave them out");
    if (o->config.redis && o->store == SERVE_SQLITE)
        return cli_bad_use(command, "--store sqlite is for one node: with --redis or REDIS_URL "
                                    "leave it out, and toolsets are kept on Redis");
    return CLI_OK;
}

/* CLI_OK, or CLI_UNUSABLE after a complaint. */
static int check_together(const struct cli_command *command, const struct serve_options *o)
{
    const peg_gateway_config *config = &o->config;
    const int checked = check_store(command, o);

    if (checked != CLI_OK)
        return checked;
    if (!config->tls_cert != !config->tls_key)
        return cli_bad_use(command, "--tls-cert and --tls-key are needed together");
    if (config->tls_client_ca && !config->tls_cert)
        return cli_bad_use(command, "--tls-client-ca needs --tls-cert and --tls-key");
    if (config->admin_names && !config->tls_client_ca)
        return cli_bad_use(command, "--admin-names needs --tls-client-ca, which signs for them; "
                                    "for tokens use `pegboard token new --admin`");
    if (config->otlp_sample != 0 && !config->otlp_endpoint)
        return cli_bad_use(command, "--otlp-sample needs --otlp-endpoint, where spans go");
    return CLI_OK;
}

bool serve_read(struct cli_args *args, struct serve_options *o)
{
    o->config.log_level = PEG_LOG_INFO;
    if (!read_environment(args, o) || !cli_read(args, o, take_serve_option))
        return false;
    choose_store(o);
    args->exit = check_together(args->command, o);
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
