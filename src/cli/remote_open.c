/* SPDX-License-Identifier: Apache-2.0 */

/* The client of a command, and what a gateway's errors mean for its exit status. */

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "cli/remote_args.h"

/* `advice` goes on from the sentence, with what stands between them; "" for none. */
static int say(const char *place, const peg_error *error, const char *advice)
{
    struct peg__buf line = PEG__BUF(4096);

    fflush(stdout); /* in a shared terminal, the order tells the story */
    peg__buf_puts(&line, "pegboard: ");
    if (place) {
        cli_put_safe(&line, peg__str(place));
        peg__buf_puts(&line, ": ");
    }
    if (error->where[0]) {
        cli_put_safe(&line, peg__str(error->where));
        peg__buf_puts(&line, ": ");
    }
    cli_put_safe(&line, peg__str(error->message));
    peg__buf_printf(&line, "%s (%s)", advice, error->code);
    fprintf(stderr, "%s\n", line.status ? "pegboard: out of memory" : line.ptr);
    peg__buf_free(&line);
    return CLI_UNUSABLE;
}

int remote_complain_local(const char *place, const peg_error *error)
{
    return say(place, error, "");
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

int remote_complain(const struct remote_args *remote, const peg_error *error)
{
    static const struct {
        const char *code;
        int exit;
    } known[] = {
        {"E_NOT_FOUND", CLI_NO},
        {"E_VALIDATION", CLI_NO},
        {"E_PERMISSION_DENIED", CLI_NO},
        {"E_CONFLICT", CLI_NO},
        {"E_LIMIT_EXCEEDED", CLI_NO},
        {"E_SERVICE_UNAVAILABLE", CLI_NO_GATEWAY},
        {"E_UNAUTHENTICATED", CLI_NO_GATEWAY},
        {"E_GATEWAY", CLI_NO_GATEWAY},
        {"E_TIMEOUT", CLI_NO_GATEWAY},
        {"E_OVERLOADED", CLI_NOT_NOW},
        {"E_OUTCOME_UNKNOWN", CLI_UNKNOWN},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(error->code, known[i].code) != 0)
            continue;
        say(known[i].exit == CLI_NO_GATEWAY && !strstr(error->message, remote->address)
                ? remote->address
                : NULL,
            error, advice_on(remote, error));
        return known[i].exit;
    }
    return say(NULL, error, "");
}

int remote_open(const struct remote_args *remote, peg_client **ret_client)
{
    const peg_client_registry registry = {
        .address = remote->address,
        .token = remote->token,
        .token_file = remote->token_file,
        .uses_tls = remote->uses_tls,
        .ca_file = remote->tls_ca,
        .cert_file = remote->tls_cert,
        .key_file = remote->tls_key,
    };
    const peg_client_options options = {
        .registries = &registry, .n_registries = 1, .user_agent = "pegboard-cli"};
    peg_error error;

    return peg_client_new(&options, ret_client, &error) ? say(NULL, &error, "") : CLI_OK;
}

int remote_print(struct peg__buf *out)
{
    const peg_status status = out->status;

    if (!status && out->len)
        fwrite(out->ptr, 1, out->len, stdout);
    fflush(stdout); /* who goes on working has said it */
    peg__buf_free(out);
    if (!status)
        return CLI_OK;
    fprintf(stderr, "pegboard: %s\n",
            status == PEG_ENOMEM ? "out of memory" : "the answer is more text than can be printed");
    return CLI_UNUSABLE;
}
