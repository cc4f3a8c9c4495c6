/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard provide: the commands of manifests, and the tools of MCP servers, as toolsets of a
 * gateway, until it is stopped. */

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "cli/remote/remote.h"
#include "cli/serve/serve.h"
#include "cli/tools/manifests.h"
#include "cli/tools/mcp_servers.h"
#include "cli/tools/provide_log.h"
#include "pegboard/provider.h"
#include "pegboard/tool_config.h"
#include "tools/tools.h"

struct provide_options {
    struct remote_args remote;
    unsigned concurrency;
    unsigned queue;
    int64_t drain_ms;
    bool only_check;
    bool only_signals;
    bool is_quiet;
    bool is_mcp;         /* the operands are the command of a server, not files */
    const char *toolset; /* of that server; NULL: as it calls itself */
    const char *direct;  /* a Redis, of direct toolsets; NULL: they are attached */
    const char *otlp_endpoint;
    double otlp_sample;
    peg_http *http; /* of MCP servers; NULL until one needs it */
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
     "only read each FILE, print its tools, and warn of\nprograms, directories and variables "
     "that are not there",
     .kind = CLI_FLAG, .at = offsetof(struct provide_options, only_check)},
    CLI_OPTION_FLAG(struct provide_options, only_signals, 0, "no-watch",
                    "read files again on SIGHUP only, not when they change"),
    CLI_OPTION_FLAG(struct provide_options, is_mcp, 0, "mcp",
                    "offer the tools of an MCP server: what follows is its\nURL, or its command"),
    {0, 0, "toolset", "NAME", "with --mcp: the name of the toolset; the server's own by\ndefault",
     .kind = CLI_STRING, .at = offsetof(struct provide_options, toolset), .least = 1},
    {0, 0, "direct", "URL",
     "read calls from streams of the gateway's Redis, as\ngoa-ai's providers do: host:port, "
     "redis://, rediss:// or\nunix://",
     .kind = CLI_STRING, .at = offsetof(struct provide_options, direct), .least = 1},
    {0, 0, "otlp-endpoint", "URL",
     "send a span of each call to this OpenTelemetry collector,\nsuch as http://localhost:4318",
     .kind = CLI_STRING, .at = offsetof(struct provide_options, otlp_endpoint), .least = 1},
    {0, 0, "otlp-sample", "RATIO",
     "part of the calls without a trace context that get one,\n0 to 1; 1 by default",
     .kind = CLI_RATIO, .at = offsetof(struct provide_options, otlp_sample)},
    CLI_OPTION_FLAG(struct provide_options, is_quiet, 'q', "quiet", "do not report each call"),
    REMOTE_OPTIONS,
    {.name = NULL},
};

enum { MAX_FILES = 64 };

struct provided;

/* A file, and who provides its toolset. */
struct provided_file {
    struct provided *all;
    const char *path;
    const peg_manifest *manifest; /* the first one: its registry is what is offered */
    const char *toolset;          /* that is offered */
    char own_name[MCP_SERVERS_NAME_BYTES];
    peg_mcp_client *server; /* of the manifest; NULL: none */
    peg_provider *provider;
    pthread_mutex_t lock; /* of the next three, which events of the server change */
    bool has_own_tools;   /* beside those of the server */
    bool has_lost_server;
    peg_provider *paused; /* what is paused meanwhile: `provider`, once it runs; NULL before */
    pthread_t waiter;
    bool has_waiter;
    peg_status status; /* of the wait */
    peg_error error;
};

struct provided {
    struct provide_options *o;
    struct provided_file files[MAX_FILES];
    size_t n_files;
    atomic_bool is_stopping;
    struct provide_log log;
    struct reload reload;
    pthread_t thread;
};

/* ---- MCP servers ---- */

/* A toolset whose tools are all of a server that is away has no provider meanwhile: the gateway
 * says so, and another provider of it gets the calls. */
static void set_paused(struct provided_file *f)
{
    if (f->paused && f->has_lost_server)
        peg_provider_pause(f->paused);
    else if (f->paused)
        peg_provider_resume(f->paused);
}

static void on_mcp_event(const peg_mcp_event *event, void *user)
{
    struct provided_file *f = user;

    provide_log_mcp(&f->all->log, event);
    if (event->kind != PEG_MCP_LOST && event->kind != PEG_MCP_CONNECTED)
        return;
    pthread_mutex_lock(&f->lock);
    f->has_lost_server = event->kind == PEG_MCP_LOST && !f->has_own_tools;
    set_paused(f);
    pthread_mutex_unlock(&f->lock);
}

/* It may have been lost before there was a provider. */
static void follow_server(struct provided_file *f, peg_provider *provider)
{
    pthread_mutex_lock(&f->lock);
    f->paused = provider;
    if (f->has_lost_server)
        set_paused(f);
    pthread_mutex_unlock(&f->lock);
}

static peg_status import_server(struct provided_file *f, const peg_manifest *manifest,
                                peg_error *reterr)
{
    peg_registry *registry = peg_manifest_registry(f->manifest);
    peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT, .on_event = on_mcp_event,
                                      .user = f};
    peg_status status;

    pthread_mutex_lock(&f->lock);
    f->has_own_tools = peg_registry_len(registry) > 0;
    f->has_lost_server = false;
    set_paused(f);
    pthread_mutex_unlock(&f->lock);
    status = mcp_servers_import(registry, manifest, &options, &f->all->o->http, &f->server, reterr);
    if (status) { /* unhealthy, rather than without tools */
        pthread_mutex_lock(&f->lock);
        f->has_lost_server = !f->has_own_tools;
        set_paused(f);
        pthread_mutex_unlock(&f->lock);
    }
    return status;
}

/* ---- reading manifests again: a thread ---- */

static peg_status check_toolset(const struct provided_file *f, const peg_manifest *manifest,
                                peg_error *reterr)
{
    if (strcmp(peg_manifest_toolset(f->manifest), peg_manifest_toolset(manifest)) == 0)
        return PEG_OK;
    return peg__fail(reterr, PEG_EINVAL, "E_MANIFEST",
                     "the toolset is called '%.64s' now, and '%.64s' is offered: start another "
                     "provider for it",
                     peg_manifest_toolset(manifest), peg_manifest_toolset(f->manifest));
}

/* What runs goes on with the command that it began with. */
static peg_status offer_manifest(struct provided_file *f, const peg_manifest *manifest,
                                 peg_error *reterr)
{
    const char *version = peg_manifest_version(manifest);
    peg_status status = check_toolset(f, manifest, reterr);

    if (!status)
        status =
            peg_provider_describe(f->provider, peg_manifest_description(manifest),
                                  version[0] ? version : NULL, peg_manifest_tags(manifest), reterr);
    if (!status) { /* its server is another one from now on */
        f->server = peg_mcp_client_free(f->server);
        status = peg_registry_replace(peg_manifest_registry(f->manifest),
                                      peg_manifest_registry(manifest), reterr);
    }
    if (!status)
        status = import_server(f, manifest, reterr);
    return status;
}

static void reload_manifest(size_t i, void *user)
{
    struct provided_file *f = &((struct provided *)user)->files[i];
    peg_manifest *manifest = NULL;
    peg_error error;
    peg_status status;

    cli_notify_reloading();
    status = peg_manifest_read(f->path, &manifest, &error);
    if (!status)
        status = offer_manifest(f, manifest, &error);
    provide_log_reload(&f->all->log, f->path, f->manifest, status ? &error : NULL);
    if (!status)
        manifests_inspect(f->path, manifest);
    peg_manifest_free(manifest);
    cli_notify("READY=1");
}

static void stop_providers(void *user)
{
    struct provided *p = user;

    atomic_store(&p->is_stopping, true);
    cli_notify("STOPPING=1");
    for (size_t i = 0; i < p->n_files; i++) {
        if (p->files[i].has_waiter)
            peg_provider_stop(p->files[i].provider);
    }
}

static void *run_reload(void *user)
{
    reload_run(&((struct provided *)user)->reload);
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
static int end_serve(const struct remote_args *remote, peg_status status, const peg_error *error,
                     bool is_read)
{
    if (!status)
        return CLI_OK;
    if (is_read && status == PEG_ETIMEOUT)
        complain_given_up(error);
    else if (is_read)
        remote_complain(remote, error);
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

/* One that the gateway refuses ends the others: the process is to be looked at. */
static void *wait_for_provider(void *user)
{
    struct provided_file *f = user;

    f->status = peg_provider_wait(f->provider, &f->error);
    if (f->status == PEG_EHOST && !atomic_exchange(&f->all->is_stopping, true)) {
        for (size_t i = 0; i < f->all->n_files; i++)
            peg_provider_stop(f->all->files[i].provider);
    }
    return NULL;
}

static void on_provider_event(const peg_provider_event *event, void *user)
{
    provide_log_provider(&((const struct provided *)user)->log, event);
}

static peg_status start_file(struct provided_file *f, peg_error *reterr)
{
    const struct provide_options *o = f->all->o;
    const char *version = peg_manifest_version(f->manifest);
    const peg_provider_options options = {
        PEG_PROVIDER_OPTIONS_INIT,
        .toolset = f->toolset,
        .description = peg_manifest_description(f->manifest),
        .version = version[0] ? version : NULL,
        .tags = peg_manifest_tags(f->manifest),
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
        .user = f->all,
        .otlp_endpoint = o->otlp_endpoint,
        .otlp_sample = o->otlp_sample,
    };
    const peg_provider_streams streams = {PEG_PROVIDER_STREAMS_INIT, .redis_url = o->direct,
                                          .redis_password = secure_getenv("REDIS_PASSWORD")};
    peg_registry *registry = peg_manifest_registry(f->manifest);
    peg_status status =
        o->direct ? peg_provider_new_streams(registry, &options, &streams, &f->provider, reterr)
                  : peg_provider_new(registry, &options, &f->provider, reterr);

    if (!status)
        follow_server(f, f->provider);
    return status ? status : peg_provider_start(f->provider, reterr);
}

static peg_status start_waiter(struct provided_file *f, peg_error *reterr)
{
    if (pthread_create(&f->waiter, NULL, wait_for_provider, f))
        return peg__fail(reterr, PEG_EIO, "E_PROVIDER",
                         "the system has no thread for it: end some, or raise its limit");
    f->has_waiter = true;
    return PEG_OK;
}

/* All of them, or none. */
static peg_status start_files(struct provided *p, peg_error *reterr)
{
    peg_status status = PEG_OK;

    for (size_t i = 0; i < p->n_files && !status; i++)
        status = start_file(&p->files[i], reterr);
    for (size_t i = 0; i < p->n_files && !status; i++)
        status = start_waiter(&p->files[i], reterr);
    if (!status && pthread_create(&p->thread, NULL, run_reload, p))
        status = peg__fail(reterr, PEG_EIO, "E_PROVIDER",
                           "the system has no thread for signals: end some, or raise its limit");
    if (status)
        stop_providers(p);
    return status;
}

static peg_status serve_until_stopped(struct provided *p, peg_error *reterr)
{
    const peg_status status = start_files(p, reterr);

    if (!status)
        cli_notify("READY=1"); /* it waits for a gateway that is not there yet */
    for (size_t i = 0; i < p->n_files; i++) {
        if (p->files[i].has_waiter)
            pthread_join(p->files[i].waiter, NULL);
    }
    if (!status) {
        pthread_kill(p->thread, SIGUSR2);
        pthread_join(p->thread, NULL);
    }
    for (size_t i = 0; i < p->n_files; i++) {
        follow_server(&p->files[i], NULL);
        peg_provider_free(p->files[i].provider);
    }
    return status;
}

/* What is worst of all of them: a refusal, then calls that were given up. */
static int end_files(struct provided *p, bool is_read)
{
    int answer = CLI_OK;

    for (size_t i = 0; i < p->n_files; i++) {
        struct provided_file *f = &p->files[i];
        int one;

        if (f->status)
            advise_token(&p->o->remote, &f->error);
        one = end_serve(&p->o->remote, f->status, &f->error, is_read);
        answer = one > answer ? one : answer;
    }
    return answer;
}

/* What is offered has to be there first: the tools of a server are what it says. */
static int start_servers(struct provided *p)
{
    int answer = CLI_OK;
    peg_error error;

    for (size_t i = 0; i < p->n_files && answer == CLI_OK; i++) {
        struct provided_file *f = &p->files[i];

        if (!peg__manifest_mcp(f->manifest))
            continue;
        if (import_server(f, f->manifest, &error))
            return remote_complain_local(f->path, &error);
        if (p->o->is_mcp && !p->o->toolset)
            f->toolset = mcp_servers_name_toolset(f->server, f->own_name);
        answer = manifests_print(f->toolset, f->manifest);
    }
    return answer;
}

static void stop_servers(struct provided *p)
{
    for (size_t i = 0; i < p->n_files; i++)
        p->files[i].server = peg_mcp_client_free(p->files[i].server);
}

static int serve_files(struct provided *p)
{
    struct provide_options *o = p->o;
    peg_error error;
    peg_status status = PEG_OK;
    bool is_read;
    int answer;

    cli_block_signals(&p->reload.signals);
    if (!provide_log_open(&p->log, o->is_quiet)) {
        fprintf(stderr, "pegboard: the system has no memory or no thread for it: end some\n");
        return CLI_UNUSABLE;
    }
    if (!peg__descendants_adopt())
        fprintf(stderr, "pegboard: what commands leave behind is not found on this system: %m\n");
    answer = start_servers(p);
    if (answer == CLI_OK)
        status = serve_until_stopped(p, &error);
    stop_servers(p);
    o->http = peg__http_unref(o->http);
    is_read = provide_log_close(&p->log);
    if (answer != CLI_OK)
        return answer;
    return status ? end_serve(&o->remote, status, &error, is_read) : end_files(p, is_read);
}

/* Those of a server are shown when it has said which it has. */
static int show_files(const struct provide_options *o, const struct manifest_file *files, size_t n)
{
    int answer = CLI_OK;
    peg_error error;
    size_t at;

    if (manifests_check_toolsets(files, n, &at, &error))
        return manifests_complain(files[at].path, &error);
    for (size_t i = 0; i < n && answer == CLI_OK; i++) {
        if (o->only_check || !peg__manifest_mcp(files[i].manifest))
            answer = manifests_print(peg_manifest_toolset(files[i].manifest), files[i].manifest);
        manifests_inspect(files[i].path, files[i].manifest);
    }
    return answer;
}

static int provide_all(struct provide_options *o, const struct cli_args *args)
{
    struct manifest_file files[MAX_FILES];
    const size_t n = o->is_mcp ? 1 : args->n_operands;
    struct provided provided = {.o = o, .n_files = n};
    peg_error error;
    int answer;

    provided.reload =
        (struct reload){.on_change = reload_manifest, .on_stop = stop_providers, .user = &provided};
    if (reload_open(&provided.reload, args->operands, o->is_mcp ? 0 : n,
                    !o->only_check && !o->only_signals && !o->is_mcp, &error))
        return remote_complain_local(NULL, &error);
    answer = o->is_mcp ? mcp_servers_make_manifest(o->toolset, args->operands, &files[0])
                       : manifests_read(args->operands, n, files);
    for (size_t i = 0; i < n && answer == CLI_OK; i++)
        provided.files[i] =
            (struct provided_file){.all = &provided,
                                   .lock = PTHREAD_MUTEX_INITIALIZER,
                                   .path = files[i].path,
                                   .manifest = files[i].manifest,
                                   .toolset = peg_manifest_toolset(files[i].manifest)};
    if (answer == CLI_OK)
        answer = show_files(o, files, n);
    if (answer == CLI_OK && !o->only_check)
        answer = serve_files(&provided);
    reload_close(&provided.reload);
    manifests_free(files, n);
    return answer;
}

static int run_provide(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    struct provide_options options = {.only_check = false};

    if (!remote_read(&options.remote, &args, NULL))
        return args.exit;
    if (options.toolset && !options.is_mcp)
        return cli_bad_use(self, "--toolset is for --mcp: a manifest has its own");
    if (options.otlp_sample != 0 && !options.otlp_endpoint)
        return cli_bad_use(self, "--otlp-sample needs --otlp-endpoint, where spans go");
    if (args.n_operands > MAX_FILES && !options.is_mcp)
        return cli_bad_use(self, "unexpected argument '%s'", args.operands[MAX_FILES]);
    signal(SIGPIPE, SIG_IGN);
    return provide_all(&options, &args);
}

const struct cli_command cli_provide = {
    .name = "provide",
    .usage = "[options] FILE...\n"
             "       pegboard provide [options] --mcp -- COMMAND [ARGUMENT...]\n"
             "       pegboard provide [options] --mcp URL",
    .summary = "offer commands as toolsets of a gateway",
    .about =
        "Reads each FILE, a manifest in YAML or JSON, and offers its commands as tools, until\n"
        "it is stopped. A command gets the arguments of a call as JSON on standard input, or\n"
        "as words of its command line; what it writes to standard output is the result, JSON\n"
        "or text. No shell is involved unless the manifest asks for one. pegboard-provide(1)\n"
        "has all of its keys. With --mcp, or the key mcp of a manifest, it offers the tools\n"
        "of an MCP server: a program, or one that serves over HTTP.\n\n"
        "It opens no port: it connects to the gateway, and again when the connection breaks.\n"
        "Each call is a line on standard error, without what was sent and answered.\n"
        "SIGTERM and SIGINT: takes no new calls, finishes what runs, ends; at once when sent\n"
        "twice. A FILE that changes is read again, and all of them on SIGHUP; what it says\n"
        "now is offered. One that cannot be used changes nothing.",
    .options = option_table,
    .min_operands = 1,
    .max_operands = CLI_MANY,
    .needed = "a file is needed: the manifest of the toolset",
    .notes = "exit status:\n"
             "  0  it was stopped, and every call was answered; or --check found nothing wrong\n"
             "  1  it was stopped, and calls had to be given up\n"
             "  2  a wrong option, or a manifest or token file that cannot be used\n"
             "  3  the gateway refused the toolset, or it was unregistered there\n\n"
             "examples:\n"
             "  pegboard provide tools.yaml\n"
             "  pegboard provide --check tools.yaml\n"
             "  pegboard provide --mcp -- npx -y @modelcontextprotocol/server-memory\n"
             "  pegboard provide --mcp https://mcp.example/mcp\n"
             "  pegboard provide tools.yaml --registry tools.example:9090 --token my.token",
    .needs_no_reader = true,
    .run = run_provide,
};
