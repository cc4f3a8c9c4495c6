/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard serve: a gateway until it is stopped. */

#include "cli/serve/serve.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/cli.h"
#include "cli/remote/remote.h"
#include "gateway/access/access.h"

/* ---- signals: a thread of their own ---- */

struct signals {
    sigset_t set;
    peg_gateway *gateway;
    pthread_t thread;
};

static void reload(peg_gateway *gateway)
{
    peg_error error;

    cli_notify_reloading();
    if (peg_gateway_reload(gateway, &error))
        remote_complain_local("SIGHUP", &error);
    cli_notify("READY=1");
}

static void handle_signal(int number, peg_gateway *gateway)
{
    if (number == SIGHUP) {
        reload(gateway);
    } else {
        cli_notify("STOPPING=1");
        peg_gateway_stop(gateway);
    }
}

/* SIGUSR2 ends it, from the thread that serves. While no signal comes it looks after memory. */
static void *handle_signals(void *user)
{
    static const struct timespec patience = {.tv_sec = SERVE_CHECK_MS / 1000};
    const struct signals *signals = user;
    struct serve_memory memory = {0};
    int number;

    while ((number = sigtimedwait(&signals->set, NULL, &patience)) != SIGUSR2) {
        if (number > 0)
            handle_signal(number, signals->gateway);
        else if (errno == EAGAIN &&
                 (serve_should_give_back(&memory, serve_cpu_ms()) || serve_keeps_much()))
            serve_give_back();
    }
    return NULL;
}

/* ---- connections: a descriptor each ---- */

/* What a program is given at first, 1,024, is for those that use select(2). */
static void allow_connections(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* ---- serving ---- */

/* What a client needs besides the address. */
static const char *client_options(const peg_gateway_config *config)
{
    if (config->tls_client_ca && config->token_file)
        return " --token FILE --tls-ca FILE";
    if (config->tls_client_ca)
        return " --tls-ca FILE --tls-cert FILE --tls-key FILE";
    if (config->tls_cert)
        return config->token_file ? " --token FILE --tls-ca FILE" : " --tls-ca FILE";
    return config->token_file ? " --token FILE" : "";
}

/* What to open in a browser, and to paste into the configuration of an MCP client. A unix socket
 * has no URL. */
static void print_urls(const struct serve_options *o, const char *listens)
{
    const char *scheme = o->config.tls_cert ? "https" : "http";

    if (strncmp(listens, "unix:", strlen("unix:")) == 0)
        return;
    if (!o->config.no_console)
        printf("\nConsole: %s://%s/\n", scheme, listens);
    printf("\nMCP clients: %s://%s/mcp, or /mcp/TOOLSET\n"
           "\n"
           "  {\"mcpServers\": {\"pegboard\": {\"type\": \"http\", \"url\": \"%s://%s/mcp\"%s}}}\n",
           scheme, listens, scheme, listens,
           o->config.token_file ? ", \"headers\": {\"Authorization\": \"Bearer TOKEN\"}" : "");
}

static void print_store(const struct serve_options *o)
{
    const char *on_redis = o->config.redis ? ", and on Redis" : "";
    const peg_mongo_store_options *mongo = &o->mongo;

    if (o->store == SERVE_MONGO)
        printf("toolsets are kept in MongoDB, %s.%s%s\n",
               mongo->database ? mongo->database : "registry",
               mongo->collection ? mongo->collection : "toolsets", on_redis);
    else if (o->store == SERVE_MEMORY)
        printf("toolsets are kept in memory, %s\n",
               o->config.redis ? "and on Redis" : "until it is stopped");
    else
        printf("toolsets are kept in %s\n", o->path);
}

static void print_greeting(const struct serve_options *o, const peg_gateway *gateway)
{
    const char *listens = peg_gateway_address(gateway);
    const bool is_named = strcmp(listens, "systemd") != 0;
    const char *address = is_named ? listens : "ADDR"; /* its unit knows */
    const char *more = client_options(&o->config);

    printf("pegboard %s: the gateway listens on %s%s\n", peg_version(),
           is_named ? "" : "the sockets of ", listens);
    print_store(o);
    printf("\n"
           "  pegboard list --registry %s%s\n"
           "  pegboard provide FILE --registry %s%s\n"
           "  pegboard call TOOLSET TOOL key=value --registry %s%s\n",
           address, more, address, more, address, more);
    if (is_named)
        print_urls(o, listens);
    if (o->config.token_file)
        printf("\n`pegboard token new --token-file %s NAME` makes a token: put it into FILE\n",
               o->config.token_file);
    (void)cli_flush();
}

static peg_status open_store(struct serve_options *o, peg_store *ret_store, peg_error *reterr)
{
    peg_status status;

    if (o->store == SERVE_MEMORY)
        return peg_memory_store_new(ret_store, reterr);
    if (o->store == SERVE_MONGO)
        return peg_mongo_store_new(&o->mongo, ret_store, reterr);
    status = serve_make_data_dir(o, reterr);
    return status ? status : peg_sqlite_store_new(o->path, ret_store, reterr);
}

static peg_status serve_gateway(struct serve_options *o, struct signals *signals, peg_error *reterr)
{
    peg_status status = peg_gateway_listen(signals->gateway, o->addr, reterr);

    if (status)
        return status;
    print_greeting(o, signals->gateway);
    if (pthread_create(&signals->thread, NULL, handle_signals, signals)) {
        peg_gateway_stop(signals->gateway);
        return peg_gateway_drain(signals->gateway, reterr);
    }
    cli_notify("READY=1");
    status = peg_gateway_run(signals->gateway, NULL, reterr);
    pthread_kill(signals->thread, SIGUSR2);
    pthread_join(signals->thread, NULL);
    return status;
}

/* ---- the command ---- */

static int run_serve(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    struct serve_options options = {.config = {PEG_GATEWAY_CONFIG_INIT},
                                    .mongo = {PEG_MONGO_STORE_OPTIONS_INIT}};
    struct signals signals = {.gateway = NULL};
    peg_store store;
    peg_error error;
    peg_status status;

    if (!serve_read(&args, &options))
        return args.exit;
    allow_connections();
    serve_share_memory(options.config.threads);
    cli_block_signals(&signals.set);
    signal(SIGPIPE, SIG_IGN);
    /* First: an address that is of no use leaves no folder behind. */
    status = gw_listen_check(&options.config, options.addr, &error);
    if (!status)
        status = open_store(&options, &store, &error);
    if (!status) {
        options.config.store = &store;
        options.config.takes_library_log = true;
        status = peg_gateway_new(&options.config, &signals.gateway, &error);
    }
    if (!status)
        status = serve_gateway(&options, &signals, &error);
    peg_gateway_free(signals.gateway);
    if (!status)
        return CLI_OK;
    remote_complain_local(NULL, &error);
    return status == PEG_ETIMEOUT ? CLI_NO : CLI_UNUSABLE;
}

const struct cli_command cli_serve = {
    .name = "serve",
    .usage = "[options]",
    .summary = "run a gateway: a catalog of toolsets, and calls to them",
    .about = "Serves until it is stopped: providers register their toolsets and attach, agents\n"
             "find and call them, all over gRPC on one port. Prints where it listens and how to\n"
             "use it. Beyond this machine it listens only with --token-file, --tls-client-ca or\n"
             "--insecure.\n\n"
             "SIGTERM and SIGINT: takes no new calls, finishes what runs, ends; at once when sent\n"
             "twice. SIGHUP: opens the log file again, and reads tokens and certificates again.",
    .options = serve_option_table,
    .notes = "environment, where options say nothing:\n"
             "  REGISTRY_ADDR, REGISTRY_NAME, PING_INTERVAL, MISSED_PING_THRESHOLD,\n"
             "  RESULT_STREAM_MAPPING_TTL, REDIS_URL, REDIS_PASSWORD, MONGO_URL\n\n"
             "exit status:\n"
             "  0  it was stopped, and everything that ran was finished\n"
             "  1  it was stopped, and something had to be given up\n"
             "  2  it could not start: an option, the address, the store, a file\n\n"
             "examples:\n"
             "  pegboard serve\n"
             "  pegboard serve --addr :9090 --token-file tokens --tls-cert c.pem --tls-key k.pem\n"
             "  pegboard serve --store memory --addr unix:/run/pegboard.sock",
    .needs_no_reader = true,
    .run = run_serve,
};
