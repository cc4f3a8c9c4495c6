/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/remote/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text/str.h"
#include "base/text/token.h"
#include "pegboard/tool_config.h"

/* Where the string of an option goes; NULL for others. */
static const char **place_of(struct remote_args *remote, int id)
{
    switch (id) {
    case REMOTE_OPT_REGISTRY:
        return &remote->address;
    case REMOTE_OPT_TOKEN:
        return &remote->token_file;
    case REMOTE_OPT_TLS_CA:
        return &remote->tls_ca;
    case REMOTE_OPT_TLS_CERT:
        return &remote->tls_cert;
    case REMOTE_OPT_TLS_KEY:
        return &remote->tls_key;
    default:
        return NULL;
    }
}

static int take_tag(struct remote_args *remote, struct cli_args *args)
{
    if (remote->n_tags == REMOTE_MAX_TAGS || !*args->value)
        return cli_bad_value(args, "tag", "a tag, and at most 64 of them");
    remote->tags[remote->n_tags++] = args->value;
    return 0;
}

int remote_take(struct remote_args *remote, struct cli_args *args, int id)
{
    const char **place = place_of(remote, id);

    if (id == REMOTE_OPT_REGISTRY && !*args->value)
        return cli_bad_value(args, "registry", "HOST[:PORT], :PORT on this machine, or unix:PATH");
    if (place) {
        *place = args->value;
        return 0;
    }
    switch (id) {
    case REMOTE_OPT_TLS:
        remote->uses_tls = true;
        break;
    case REMOTE_OPT_JSON:
        remote->as_json = true;
        break;
    case REMOTE_OPT_NAMES:
        remote->only_names = true;
        break;
    case REMOTE_OPT_TAG:
        return take_tag(remote, args);
    case REMOTE_OPT_COLOR:
        if (!cli_color_read(args->value, &remote->color))
            return cli_bad_value(args, "color", "auto, always or never");
        break;
    default:
        break;
    }
    return 0;
}

/* NULL if it is unset or empty. */
static const char *variable(const char *name)
{
    const char *value = secure_getenv(name);

    return value && *value ? value : NULL;
}

/* A gateway's port, not the one of the web, for a host that has none. */
static const char *with_port(const char *address)
{
    static char text[512]; /* a process has one gateway */
    const bool is_bracketed = address[0] == '[' && address[strlen(address) - 1] == ']';

    if ((strchr(address, ':') && !is_bracketed) || strlen(address) + sizeof(":9090") > sizeof(text))
        return address;
    snprintf(text, sizeof(text), "%s:9090", address);
    return text;
}

int remote_finish(struct remote_args *remote, const struct cli_command *command)
{
    if (!remote->address)
        remote->address = variable("PEGBOARD_REGISTRY");
    if (!remote->address)
        remote->address = "127.0.0.1";
    remote->address = with_port(remote->address);
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

bool remote_read(struct remote_args *remote, struct cli_args *args, const char **ret_operands,
                 size_t *n_operands, int *ret_exit)
{
    const size_t max = *n_operands;
    const char *extra = NULL; /* told at the end: --help may come behind it */
    int id;

    *n_operands = 0;
    while ((id = cli_next(args)) != CLI_END) {
        if (id == CLI_STOP || remote_take(remote, args, id) == CLI_STOP) {
            *ret_exit = args->exit;
            return false;
        }
        if (id == CLI_OPERAND && *n_operands < max)
            ret_operands[(*n_operands)++] = args->value;
        else if (id == CLI_OPERAND)
            extra = args->value;
    }
    *ret_exit = extra ? cli_bad_use(args->command, "'%s' is one too many", extra)
                      : remote_finish(remote, args->command);
    return *ret_exit == CLI_OK;
}

bool remote_duration(const char *text, int64_t least_ms, int64_t *ret_ms)
{
    int64_t ns;

    if (peg_duration_parse(peg__str(text), &ns, NULL) || ns < 0 || ns % PEG_NS_PER_MS ||
        ns / PEG_NS_PER_MS < least_ms || ns / PEG_NS_PER_MS > INT32_MAX)
        return false;
    *ret_ms = ns / PEG_NS_PER_MS;
    return true;
}

void remote_put_time(struct peg__buf *out, int64_t ms)
{
    if (ms % 1000)
        peg__buf_printf(out, "%lld ms", (long long)ms);
    else
        peg__buf_printf(out, "%lld s", (long long)(ms / 1000));
}
