/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "base/text/token.h"
#include "cli/cli.h"
#include "cli/remote/remote.h"
#include "pegboard/tool_config.h"
#include "wire/wire.h"

const char *remote_take_tag(void *into, int id, const char *value)
{
    struct remote_args *remote = into;

    (void)id;
    if (remote->n_tags == REMOTE_MAX_TAGS || !*value)
        return "a tag, and at most 64 of them";
    remote->tags[remote->n_tags++] = value;
    return NULL;
}

/* NULL if it is unset or empty. */
static const char *variable(const char *name)
{
    const char *value = secure_getenv(name);

    return value && *value ? value : NULL;
}

static bool lacks_port(peg_str address)
{
    if (address.len == 0)
        return false; /* which is complained about */
    if (address.ptr[0] == '[')
        return address.ptr[address.len - 1] == ']';
    return !memchr(address.ptr, ':', address.len);
}

/* A gateway's port, not the one of the web, for each host that has none. */
static const char *with_ports(const char *addresses)
{
    static char text[PEG_LIMIT_NET_ADDRESSES * 280]; /* a process has one registry */
    struct peg__buf out = PEG__BUF(sizeof(text) - 1);
    peg_str rest = peg__str(addresses);
    bool has_more = strncmp(addresses, "ipv4:", 5) != 0 && strncmp(addresses, "ipv6:", 5) != 0;

    if (!has_more)
        return addresses;
    while (has_more) {
        const char *comma = rest.len ? memchr(rest.ptr, ',', rest.len) : NULL;
        const peg_str address = peg__strn(rest.ptr, comma ? (size_t)(comma - rest.ptr) : rest.len);

        peg__buf_printf(&out, PEG_FMT "%s%s", PEG_ARG(address), lacks_port(address) ? ":9090" : "",
                        comma ? "," : "");
        has_more = comma;
        rest = peg__str_from(rest, address.len + (comma ? 1 : 0));
    }
    if (!out.status)
        memcpy(text, out.ptr, out.len + 1);
    peg__buf_free(&out);
    return out.status ? addresses : text;
}

/* What options leave open, from the environment. CLI_OK, or CLI_UNUSABLE after a complaint. */
static int finish_args(struct remote_args *remote, const struct cli_command *command)
{
    remote->address_from = remote->address ? "--registry" : "PEGBOARD_REGISTRY";
    if (!remote->address)
        remote->address = variable("PEGBOARD_REGISTRY");
    if (!remote->address)
        remote->address = "127.0.0.1";
    remote->address = with_ports(remote->address);
    if (!remote->token_file)
        remote->token = variable("PEGBOARD_TOKEN");
    if (!remote->tls_ca)
        remote->tls_ca = variable("PEGBOARD_TLS_CA");
    if (!remote->tls_cert)
        remote->tls_cert = variable("PEGBOARD_TLS_CERT");
    if (!remote->tls_key)
        remote->tls_key = variable("PEGBOARD_TLS_KEY");
    if (remote->token_file && peg__is_token_for_path(remote->token_file))
        return cli_bad_use(command, "--token takes a file, and there is none of that name: "
                                    "PEGBOARD_TOKEN has the token itself");
    if (!remote->tls_cert != !remote->tls_key)
        return cli_bad_use(command, "--tls-cert and --tls-key are needed together");
    return CLI_OK;
}

bool remote_read(struct remote_args *remote, struct cli_args *args, cli_take_fn *take)
{
    if (!cli_read(args, remote, take))
        return false;
    remote->operands = args->operands;
    remote->n_operands = args->n_operands;
    args->exit = finish_args(remote, args->command);
    return args->exit == CLI_OK;
}

void remote_put_time(struct peg__buf *out, int64_t ms)
{
    if (ms % 1000)
        peg__buf_printf(out, "%lld ms", (long long)ms);
    else
        peg__buf_printf(out, "%lld s", (long long)(ms / 1000));
}

/* The client of a command, and what a gateway's errors mean for its exit status. */

int remote_complain_local(const char *place, const peg_error *error)
{
    struct peg__buf line = PEG__BUF(4096);

    (void)cli_flush(); /* in a shared terminal, the order tells the story */
    peg__buf_puts(&line, "pegboard: ");
    if (place) {
        cli_put_safe(&line, peg__str(place));
        peg__buf_puts(&line, ": ");
    }
    cli_put_error(&line, "", error);
    peg__buf_printf(&line, " (%s)", error->code);
    cli_print_line(&line);
    return CLI_UNUSABLE;
}

/* ---- what to do about it ----------------------------------------------------------------------
 *
 * The library says what is wrong; which option or command helps is ours to know. */

static const char *advice_on_tls(const struct remote_args *remote, const peg_error *error)
{
    if (strcmp(error->cause, "E_TLS") == 0)
        return remote->uses_tls ? ": leave out --tls"
                                : ": leave out --tls-ca, and unset PEGBOARD_TLS_CA";
    if (strcmp(error->cause, "E_TLS_REFUSED") == 0)
        return remote->tls_cert ? "; see whether it knows who signed the certificate of --tls-cert"
                                : "; if it asks for a certificate, add --tls-cert and --tls-key";
    if (strstr(error->message, "mismatch"))
        return "; give --registry a name or an address that it is for";
    return "; if it is the right one, trust it with --tls-ca FILE";
}

static const char *advice_on(const struct remote_args *remote, const peg_error *error)
{
    const bool speaks_tls = remote->uses_tls || remote->tls_ca || remote->tls_cert;

    if (strcmp(error->code, "E_UNAUTHENTICATED") == 0 && !remote->token && !remote->token_file)
        return " (--token FILE or PEGBOARD_TOKEN)";
    if (strcmp(error->code, "E_SERVICE_UNAVAILABLE") != 0)
        return "";
    if (strcmp(error->cause, "E_STREAM") == 0)
        return "; start one with `pegboard serve`, or name another with --registry or "
               "PEGBOARD_REGISTRY";
    if (strcmp(error->cause, "E_HTTP2") == 0)
        return "; name another with --registry or PEGBOARD_REGISTRY";
    if (strcmp(error->cause, "E_STREAM_ENDED") == 0)
        return speaks_tls ? "; see whether it is a gateway"
                          : ": if it speaks TLS, add --tls or --tls-ca FILE";
    return strncmp(error->cause, "E_TLS", 5) == 0 ? advice_on_tls(remote, error) : "";
}

/* The client's own words name a field of its options; we have another one for that. */
static bool is_client_timeout(const peg_error *error)
{
    return strcmp(error->code, "E_TIMEOUT") == 0 && strstr(error->message, "timeout_ms");
}

static void put_late(const struct remote_args *remote, struct peg__buf *out)
{
    enum { DEFAULT_MS = 10000 };
    const int64_t ms = remote->timeout_ms ? remote->timeout_ms : DEFAULT_MS;

    cli_put_safe(out, peg__str(remote->address));
    peg__buf_puts(out, " did not answer within ");
    remote_put_time(out, ms);
    peg__buf_puts(out, ": see whether a gateway listens there");
}

void remote_explain(const struct remote_args *remote, const peg_error *error, struct peg__buf *out)
{
    if (is_client_timeout(error)) {
        put_late(remote, out);
        return;
    }
    if (remote_exit_of(error) == CLI_NO_GATEWAY && !strstr(error->message, remote->address)) {
        cli_put_safe(out, peg__str(remote->address));
        peg__buf_puts(out, ": ");
    }
    cli_put_error(out, "", error);
    peg__buf_puts(out, advice_on(remote, error));
}

/* ---- what it is called ---- */

static const struct {
    const char *code;
    enum wire_error name;
    int exit;
} known[] = {
    {"E_NOT_FOUND", WIRE_NOT_FOUND, CLI_NO},
    {"E_VALIDATION", WIRE_VALIDATION, CLI_NO},
    {"E_PERMISSION_DENIED", WIRE_PERMISSION_DENIED, CLI_NO},
    {"E_CONFLICT", WIRE_CONFLICT, CLI_NO},
    {"E_LIMIT_EXCEEDED", WIRE_LIMIT, CLI_NO},
    {"E_UNDECIDED", WIRE_UNDECIDED, CLI_NO},
    {"E_SERVICE_UNAVAILABLE", WIRE_SERVICE_UNAVAILABLE, CLI_NO_GATEWAY},
    {"E_UNAUTHENTICATED", WIRE_UNAUTHENTICATED, CLI_NO_GATEWAY},
    {"E_GATEWAY", WIRE_FAULT, CLI_NO_GATEWAY},
    {"E_TIMEOUT", WIRE_TIMEOUT, CLI_NO_GATEWAY},
    {"E_OVERLOADED", WIRE_OVERLOADED, CLI_NOT_NOW},
    {"E_OUTCOME_UNKNOWN", WIRE_OUTCOME_UNKNOWN, CLI_UNKNOWN},
};

enum { N_KNOWN = sizeof(known) / sizeof(known[0]) };

/* N_KNOWN for what is ours alone: a field, a file, memory. */
static size_t find_known(const peg_error *error)
{
    size_t i = 0;

    while (i < N_KNOWN && strcmp(error->code, known[i].code) != 0)
        i++;
    return i;
}

const char *remote_error_name(const peg_error *error)
{
    const size_t i = find_known(error);

    return wire_error_name(i < N_KNOWN ? known[i].name : wire_error_of_status(error->status));
}

int remote_exit_of(const peg_error *error)
{
    const size_t i = find_known(error);

    return i < N_KNOWN ? known[i].exit : CLI_UNUSABLE;
}

int remote_complain(const struct remote_args *remote, const peg_error *error)
{
    struct peg__buf line = PEG__BUF(4096);

    if (find_known(error) == N_KNOWN)
        return remote_complain_local(
            strcmp(error->code, "E_ADDRESS") == 0 ? remote->address_from : NULL, error);
    (void)cli_flush();
    remote_explain(remote, error, &line);
    fprintf(stderr, "pegboard: %s (%s)\n", line.status ? "out of memory" : line.ptr,
            remote_error_name(error));
    peg__buf_free(&line);
    return remote_exit_of(error);
}

/* ---- the client ---- */

peg_status remote_client_new(const struct remote_args *remote, peg_client **ret_client,
                             peg_error *reterr)
{
    const peg_client_registry registry = {
        PEG_CLIENT_REGISTRY_INIT,         .address = remote->address,   .token = remote->token,
        .token_file = remote->token_file, .uses_tls = remote->uses_tls, .ca_file = remote->tls_ca,
        .cert_file = remote->tls_cert,    .key_file = remote->tls_key,
    };
    const peg_client_options options = {PEG_CLIENT_OPTIONS_INIT, .registries = &registry,
                                        .n_registries = 1, .timeout_ms = remote->timeout_ms,
                                        .user_agent = "pegboard-cli"};

    return peg_client_new(&options, ret_client, reterr);
}

int remote_work(struct remote_args *remote, remote_work_fn *work)
{
    peg_client *client = NULL;
    peg_error error;
    int answer;

    if (remote_client_new(remote, &client, &error))
        return remote_complain(remote, &error);
    answer = work(remote, client);
    peg_client_unref(client);
    return answer;
}

int remote_run(struct remote_args *remote, const struct cli_command *self, int argc, char **argv,
               cli_take_fn *take, remote_work_fn *work)
{
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};

    return remote_read(remote, &args, take) ? remote_work(remote, work) : args.exit;
}

int remote_print(struct peg__buf *out)
{
    const peg_status status = out->status;

    if (!status)
        cli_write(stdout, peg__buf_view(out));
    (void)cli_flush(); /* who goes on working has said it */
    peg__buf_free(out);
    if (!status)
        return CLI_OK;
    fprintf(stderr, "pegboard: %s\n",
            status == PEG_ENOMEM ? "out of memory" : "the answer is more text than can be printed");
    return CLI_UNUSABLE;
}
