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

enum option_id {
    OPT_ADDR = 1,
    OPT_NAME,
    OPT_PING,
    OPT_MISSED,
    OPT_TTL,
    OPT_STORE,
    OPT_DATA_DIR,
    OPT_THREADS,
    OPT_LANGUAGE,
    OPT_TOKENS,
    OPT_CERT,
    OPT_KEY,
    OPT_CLIENT_CA,
    OPT_INSECURE,
    OPT_ADMIN_NAMES,
    OPT_ADMIN,
    OPT_LOG_FILE,
    OPT_LOG_LEVEL,
    OPT_DRAIN,
    OPT_LEASE,
    OPT_KEEPALIVE,
    OPT_HELD,
    OPT_PAYLOAD,
    OPT_CONNECTIONS,
    OPT_QUEUE,
    OPT_REDIS,
};

const struct cli_option serve_option_table[] = {
    {OPT_ADDR, 0, "addr", "ADDR",
     "where to listen: HOST:PORT, :PORT (everywhere),\nunix:PATH, or systemd for a socket of its "
     "making;\n127.0.0.1:9090 by default"},
    {OPT_NAME, 0, "name", "NAME", "of the registry; `registry` by default"},
    {OPT_STORE, 0, "store", "KIND",
     "where toolsets are kept: sqlite (default) or memory,\nwhich forgets them at the end"},
    {OPT_DATA_DIR, 0, "data-dir", "DIR",
     "folder of the store; $XDG_STATE_HOME/pegboard or\n~/.local/state/pegboard by default"},
    {OPT_PING, 0, "ping-interval", "TIME", "between two pings of a provider; 10s by default"},
    {OPT_MISSED, 0, "missed-ping-threshold", "N",
     "unhealthy when nothing was heard for N + 1 intervals;\n3 by default"},
    {OPT_TTL, 0, "result-mapping-ttl", "TIME",
     "how long results are kept for those who ask again; 5m\nby default"},
    {OPT_DRAIN, 0, "drain-time", "TIME",
     "what runs may finish for so long at the end; 30s by\ndefault"},
    {OPT_LEASE, 0, "lease", "TIME",
     "a provider that lost its stream may come back for\nso long; 10s by default"},
    {OPT_KEEPALIVE, 0, "keepalive", "TIME",
     "a connection that is silent for so long is pinged, and\nclosed if it does not answer; 1m by "
     "default"},
    {OPT_HELD, 0, "max-held", "SIZE",
     "bytes that all connections hold together; above that the\nlargest holder's is cut; 256MiB "
     "by default"},
    {OPT_CONNECTIONS, 0, "max-connections", "N",
     "connections of one address, more wait to be accepted;\n20000 by default"},
    {OPT_PAYLOAD, 0, "max-payload", "SIZE", "arguments of a call; at most 4MiB, 2MiB by default"},
    {OPT_QUEUE, 0, "max-queue", "N",
     "calls that wait for one provider, more are\nrefused; 10000 by default"},
    {OPT_THREADS, 0, "threads", "N", "event loops; 1 by default, enough for most"},
    {OPT_LANGUAGE, 0, "search-language", "NAME",
     "whose words are compared by their stems when toolsets\nare searched; english by default, "
     "none for none"},
    {OPT_TOKENS, 0, "token-file", "FILE",
     "let in who shows one of these tokens; see\n`pegboard token`"},
    {OPT_CERT, 0, "tls-cert", "FILE", "speak TLS with this certificate (PEM)"},
    {OPT_KEY, 0, "tls-key", "FILE", "and its key (PEM)"},
    {OPT_CLIENT_CA, 0, "tls-client-ca", "FILE",
     "let in who has a certificate that these signed (PEM)"},
    {OPT_ADMIN_NAMES, 0, "admin-names", "NAMES",
     "operators' certificates of these, by their names, between\ncommas; tokens are made so by "
     "`token new --admin`"},
    {OPT_INSECURE, 0, "insecure", NULL, "listen beyond this machine without asking who calls"},
    {OPT_ADMIN, 0, "admin-addr", "ADDR", "/metrics and /healthz there, too"},
    {OPT_REDIS, 0, "redis", "URL", "the Redis of a cluster; not in this version"},
    {OPT_LOG_FILE, 0, "log-file", "FILE", "instead of standard error; SIGHUP opens it again"},
    {OPT_LOG_LEVEL, 0, "log-level", "LEVEL", "info (default), warn or error"},
    {0, 0, NULL, NULL, NULL},
};

/* ---- values ---- */

/* Words for a time that is none, or is out of range; NULL if it was taken. */
static const char *read_time(int id, const char *text, int64_t *ret_ms)
{
    enum { LEAST_MS = 100, MOST_PING_MS = 3600000 };
    int64_t ms;

    if (!remote_duration(text, 0, &ms))
        return "a time such as 10s, 1m30s or 250ms";
    if ((id == OPT_LEASE || id == OPT_KEEPALIVE) && ms < LEAST_MS)
        return "at least 100ms";
    if (ms == 0)
        return "at least 1ms";
    if (id == OPT_PING && ms > MOST_PING_MS)
        return "at most 1h";
    *ret_ms = ms;
    return NULL;
}

struct size_range {
    uint64_t least;
    uint64_t most;
    const char *wanted;
};

static const struct size_range held_range = {UINT64_C(1) << 20, UINT64_C(1) << 40,
                                             "1MiB to 1024GiB: a number with KiB, MiB or GiB"};
static const struct size_range payload_range = {1 << 10, PEG_LIMIT_ARGS_BYTES,
                                                "1KiB to 4MiB: a number with KiB or MiB"};

/* Words for a size that is none, or is out of range; NULL if it was taken. */
static const char *read_size(const char *text, const struct size_range *range, size_t *ret_bytes)
{
    static const struct {
        const char *unit;
        unsigned shift;
    } units[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"", 0}};
    enum { MOST_DIGITS = 13 };
    const size_t n_digits = strspn(text, "0123456789");
    char digits[MOST_DIGITS + 1] = "";
    uint64_t number;

    if (n_digits > MOST_DIGITS)
        return range->wanted;
    memcpy(digits, text, n_digits);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        const unsigned shift = units[i].shift;

        if (strcmp(text + n_digits, units[i].unit) != 0)
            continue;
        if (!cli_number(digits, 1, range->most >> shift, &number) || number << shift < range->least)
            return range->wanted;
        *ret_bytes = (size_t)(number << shift);
        return NULL;
    }
    return range->wanted;
}

enum kind { STRING, DURATION, COUNT };

/* Options whose value goes into a field as it is, or as a number. */
static const struct {
    int id;
    enum kind kind;
    size_t offset; /* in struct serve_options */
} fields[] = {
    {OPT_ADDR, STRING, offsetof(struct serve_options, addr)},
    {OPT_LANGUAGE, STRING, offsetof(struct serve_options, config.search_language)},
    {OPT_NAME, STRING, offsetof(struct serve_options, config.name)},
    {OPT_DATA_DIR, STRING, offsetof(struct serve_options, data_dir)},
    {OPT_TOKENS, STRING, offsetof(struct serve_options, config.token_file)},
    {OPT_CERT, STRING, offsetof(struct serve_options, config.tls_cert)},
    {OPT_KEY, STRING, offsetof(struct serve_options, config.tls_key)},
    {OPT_CLIENT_CA, STRING, offsetof(struct serve_options, config.tls_client_ca)},
    {OPT_ADMIN_NAMES, STRING, offsetof(struct serve_options, config.admin_names)},
    {OPT_ADMIN, STRING, offsetof(struct serve_options, config.admin_addr)},
    {OPT_REDIS, STRING, offsetof(struct serve_options, config.redis)},
    {OPT_LOG_FILE, STRING, offsetof(struct serve_options, config.log_file)},
    {OPT_PING, DURATION, offsetof(struct serve_options, config.ping_interval_ms)},
    {OPT_TTL, DURATION, offsetof(struct serve_options, config.result_mapping_ttl_ms)},
    {OPT_DRAIN, DURATION, offsetof(struct serve_options, config.drain_ms)},
    {OPT_LEASE, DURATION, offsetof(struct serve_options, config.lease_ms)},
    {OPT_KEEPALIVE, DURATION, offsetof(struct serve_options, config.keepalive_ms)},
    {OPT_MISSED, COUNT, offsetof(struct serve_options, config.missed_ping_threshold)},
    {OPT_CONNECTIONS, COUNT, offsetof(struct serve_options, config.max_connections)},
    {OPT_QUEUE, COUNT, offsetof(struct serve_options, config.max_queue)},
    {OPT_THREADS, COUNT, offsetof(struct serve_options, config.threads)},
};

enum { N_FIELDS = sizeof(fields) / sizeof(fields[0]) };

/* Words for a number that is none, or is out of range; NULL if it was taken. */
static const char *read_count(int id, const char *text, unsigned *ret_count)
{
    enum { MOST_MISSED = 1000, MOST_THREADS = 64, MOST = 1000000 };
    const bool is_missed = id == OPT_MISSED;
    const bool is_threads = id == OPT_THREADS;
    uint64_t number;

    if (cli_number(text, 1, is_missed ? MOST_MISSED : is_threads ? MOST_THREADS : MOST, &number)) {
        *ret_count = (unsigned)number;
        return NULL;
    }
    if (is_missed)
        return "a number from 1 to 1000";
    return is_threads ? "a number from 1 to 64" : "a number from 1 to 1000000";
}

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

static const char *check_string_option(int id, const char *value)
{
    if (id == OPT_NAME && wire_check_name(peg__str(value), "name", NULL))
        return "1 to 256 of the characters A-Z a-z 0-9 _ . : / -";
    if (id == OPT_LANGUAGE)
        return check_language(value);
    return *value ? NULL : "something";
}

/* What the value should be, or NULL if it was taken. */
static const char *set_field(size_t i, void *field, const char *value)
{
    switch (fields[i].kind) {
    case STRING:
        *(const char **)field = value;
        return check_string_option(fields[i].id, value);
    case DURATION:
        return read_time(fields[i].id, value, field);
    case COUNT:
        break;
    }
    return read_count(fields[i].id, value, field);
}

/* What the value should be, or NULL if it was taken. */
static const char *set_option(struct serve_options *o, int id, const char *value)
{
    for (size_t i = 0; i < N_FIELDS; i++) {
        if (fields[i].id == id)
            return set_field(i, (char *)o + fields[i].offset, value);
    }
    switch (id) {
    case OPT_INSECURE:
        o->config.insecure = true;
        return NULL;
    case OPT_STORE:
        o->has_store = true;
        o->is_memory = strcmp(value, "memory") == 0;
        return o->is_memory || strcmp(value, "sqlite") == 0 ? NULL : "sqlite or memory";
    case OPT_HELD:
        return read_size(value, &held_range, &o->config.max_held_bytes);
    case OPT_PAYLOAD:
        return read_size(value, &payload_range, &o->config.max_payload_bytes);
    default:
        return read_level(value, &o->config.log_level) ? NULL : "info, warn or error";
    }
}

/* ---- options and environment ---- */

static const struct {
    const char *variable;
    int id;
} variables[] = {
    {"REGISTRY_ADDR", OPT_ADDR},
    {"REGISTRY_NAME", OPT_NAME},
    {"REDIS_URL", OPT_REDIS},
    {"PING_INTERVAL", OPT_PING},
    {"MISSED_PING_THRESHOLD", OPT_MISSED},
    {"RESULT_STREAM_MAPPING_TTL", OPT_TTL},
};

/* First, so that options win. */
static int read_environment(struct cli_args *args, struct serve_options *o)
{
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *value = secure_getenv(variables[i].variable);
        const char *wanted = value && *value ? set_option(o, variables[i].id, value) : NULL;

        if (wanted) {
            args->exit = cli_bad_use(args->command, "%s is '%s', but should be %s",
                                     variables[i].variable, value, wanted);
            return CLI_STOP;
        }
    }
    o->config.redis_password = secure_getenv("REDIS_PASSWORD");
    return 0;
}

static const char *option_name(int id)
{
    const struct cli_option *option = serve_option_table;

    while (option->id != id)
        option++;
    return option->name;
}

/* Toolsets in SQLite are not where somebody who set this looks for them. */
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
    if (!config->tls_cert != !config->tls_key)
        return cli_bad_use(command, "--tls-cert and --tls-key are needed together");
    if (config->tls_client_ca && !config->tls_cert)
        return cli_bad_use(command, "--tls-client-ca needs --tls-cert and --tls-key");
    if (config->admin_names && !config->tls_client_ca)
        return cli_bad_use(command, "--admin-names needs --tls-client-ca, which signs for them; "
                                    "for tokens use `pegboard token new --admin`");
    return CLI_OK;
}

int serve_read(struct cli_args *args, struct serve_options *o)
{
    const char *extra = NULL; /* reported at the end: --help may follow it */
    int id;

    o->config.log_level = PEG_LOG_INFO;
    if (read_environment(args, o) == CLI_STOP)
        return CLI_STOP;
    while ((id = cli_next(args)) != CLI_END) {
        const char *wanted;

        if (id == CLI_STOP)
            return CLI_STOP;
        if (id == CLI_OPERAND)
            extra = args->value;
        wanted = id == CLI_OPERAND ? NULL : set_option(o, id, args->value);
        if (wanted)
            return cli_bad_value(args, option_name(id), wanted);
    }
    args->exit = extra ? cli_unexpected(args->command, extra) : check_together(args->command, o);
    return args->exit ? CLI_STOP : 0;
}

void serve_explain(peg_error *error)
{
    if (strcmp(error->code, "E_NO_REDIS") == 0)
        peg__fail(error, error->status, error->code,
                  "this build of pegboard serves one node, with a store of its own: leave out "
                  "--redis, and unset REDIS_URL and REDIS_PASSWORD");
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

/* One that was there already may be somebody else's. */
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
