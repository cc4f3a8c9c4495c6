/* SPDX-License-Identifier: Apache-2.0 */

/* Checks and copies the options, with defaults. */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "remote/provider/provider.h"
#include "remote/token.h"
#include "wire/wire.h"

enum { DEFAULT_CONCURRENCY = 4, MAX_MS = 3600 * 1000 };

static peg_status reject_option(peg_error *reterr, const char *where, const char *message)
{
    peg__fail(reterr, PEG_EINVAL, "E_PROVIDER", "%s of a provider: %s", where, message);
    peg__error_where(reterr, peg__str(where));
    return PEG_EINVAL;
}

static peg_status reject_option_because(peg_error *reterr, const char *where, const peg_error *why)
{
    peg__fail_because(reterr, PEG_EINVAL, "E_PROVIDER", why, "%s of a provider", where);
    peg__error_where(reterr, peg__str(where));
    return PEG_EINVAL;
}

/* ---- checks ---- */

static peg_status check_about_tags(const char *const *tags, peg_error *reterr)
{
    peg_error why;

    for (size_t i = 0; tags && tags[i]; i++) {
        const peg_str tag = peg__str(tags[i]);

        if (i >= PEG_LIMIT_TAGS)
            return reject_option(reterr, "/tags", "there are more than 64");
        if (wire_check_tags(&tag, 1, &why))
            return reject_option_because(reterr, "/tags", &why);
    }
    return PEG_OK;
}

static peg_status check_toolset_name(const peg_provider_options *options, peg_error *reterr)
{
    peg_error why;

    if (!options->toolset)
        return reject_option(reterr, "/toolset", "it is missing: give the toolset a name");
    if (wire_check_name(peg__str(options->toolset), "toolset", &why))
        return reject_option_because(reterr, "/toolset", &why);
    return PEG_OK;
}

static peg_status check_about(const char *version, const char *const *tags, peg_error *reterr)
{
    peg_error why;

    if (version && wire_check_version(peg__str(version), &why))
        return reject_option_because(reterr, "/version", &why);
    return check_about_tags(tags, reterr);
}

static peg_status check_numbers(const peg_provider_options *options, peg_error *reterr)
{
    const struct {
        const char *where;
        int64_t ms;
    } waits[] = {{"/drain_ms", options->drain_ms},
                 {"/backoff_ms", options->backoff_ms},
                 {"/max_backoff_ms", options->max_backoff_ms}};
    const unsigned most =
        options->runs_inline ? PEG_LIMIT_REMOTE_CREDITS : PEG_LIMIT_REMOTE_CONCURRENCY;

    if (options->concurrency > most)
        return reject_option(reterr, "/concurrency", "it is at most 256, or inline 10,000");
    if (options->max_queued > PEG_LIMIT_REMOTE_CREDITS - PEG_LIMIT_REMOTE_CONCURRENCY)
        return reject_option(reterr, "/max_queued", "with concurrency it is at most 10,000");
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        if (waits[i].ms < 0 || waits[i].ms > MAX_MS)
            return reject_option(reterr, waits[i].where, "it is between 0 and 3,600,000");
    }
    return PEG_OK;
}

static peg_status check_token(const peg_provider_options *options, peg_error *reterr)
{
    struct peg__blob *authorization = NULL;
    peg_error why;

    if (options->token && options->token_file)
        return reject_option(reterr, "/token_file", "there is a token as well: give one of them");
    if (options->token &&
        remote__token_make(peg__str(options->token), "it", "E_PROVIDER", &authorization, &why))
        return why.status == PEG_ENOMEM ? peg__fail_nomem(reterr)
                                        : reject_option_because(reterr, "/token", &why);
    peg__blob_unref(authorization);
    return PEG_OK;
}

static peg_status check_provider_options(const peg_provider_options *options, peg_error *reterr)
{
    peg_status status = check_toolset_name(options, reterr);

    if (status)
        return status;
    status = check_token(options, reterr);
    if (status)
        return status;
    if (!options->cert_file != !options->key_file)
        return reject_option(reterr, "/key_file", "a certificate and its key are needed together");
    return check_numbers(options, reterr);
}

/* ---- copies ---- */

/* NULL stays NULL. */
static const char *copy_or_null(struct peg__arena *arena, const char *text, bool *is_out)
{
    const char *copied = text ? peg__arena_copy(arena, peg__str(text)) : NULL;

    if (text && !copied)
        *is_out = true;
    return copied;
}

peg_status remote__prov_about_new(const char *description, const char *version,
                                  const char *const *tags, struct remote__prov_about **ret_about,
                                  peg_error *reterr)
{
    struct remote__prov_about *about;
    bool is_out = false;
    peg_status status = check_about(version, tags, reterr);

    if (status)
        return status;
    about = peg__alloc_zero(1, sizeof(*about));
    if (!about)
        return peg__fail_nomem(reterr);
    about->description = copy_or_null(&about->arena, description ? description : "", &is_out);
    about->version = copy_or_null(&about->arena, version ? version : "", &is_out);
    about->tags = peg__arena_copy_list(&about->arena, tags, &about->n_tags);
    if (is_out || !about->tags) {
        remote__prov_about_free(about);
        return peg__fail_nomem(reterr);
    }
    *ret_about = about;
    return PEG_OK;
}

struct remote__prov_about *remote__prov_about_free(struct remote__prov_about *about)
{
    if (about)
        peg__arena_free(&about->arena);
    peg__free(about);
    return NULL;
}

static bool copy_strings(struct remote__prov_config *config, const peg_provider_options *options)
{
    struct peg__arena *arena = &config->arena;
    bool is_out = false;

    config->toolset = copy_or_null(arena, options->toolset, &is_out);
    config->address =
        copy_or_null(arena, options->address ? options->address : "127.0.0.1:9090", &is_out);
    config->token = copy_or_null(arena, options->token, &is_out);
    config->token_file = copy_or_null(arena, options->token_file, &is_out);
    config->tls_host = copy_or_null(arena, options->tls_host, &is_out);
    return !is_out;
}

static void copy_numbers(struct remote__prov_config *config, const peg_provider_options *options)
{
    const unsigned usual =
        options->runs_inline ? PEG_LIMIT_REMOTE_INLINE_CREDITS : DEFAULT_CONCURRENCY;

    config->concurrency = options->concurrency ? options->concurrency : usual;
    config->max_queued = options->max_queued ? options->max_queued : config->concurrency;
    if (options->runs_inline)
        config->max_queued = 0;
    config->runs_inline = options->runs_inline;
    config->handles_signals = options->handles_signals;
    config->drain_ms = options->drain_ms ? options->drain_ms : PEG_LIMIT_REMOTE_DRAIN_MS;
    config->backoff_ms = options->backoff_ms ? options->backoff_ms : PEG_LIMIT_REMOTE_BACKOFF_MS;
    config->max_backoff_ms =
        options->max_backoff_ms ? options->max_backoff_ms : PEG_LIMIT_REMOTE_BACKOFF_MAX_MS;
    config->on_event = options->on_event;
    config->user = options->user;
}

static peg_status copy_run(struct remote__prov_config *config, const peg_run_options *run,
                           peg_error *reterr)
{
    PEG__READ_OR_RETURN(run, PEG_RUN_OPTIONS_INIT, reterr);

    config->run = (peg_run_options){PEG_RUN_OPTIONS_INIT};
    if (run) {
        config->run = *run;
        if (run->hooks) {
            config->hooks = *run->hooks;
            config->run.hooks = &config->hooks;
        }
    }
    config->run.settings.timeout_ms = -1; /* the gateway's deadline is in the context */
    if (config->run.pool)
        peg_pool_ref(config->run.pool);
    if (config->run.spool)
        peg_spool_store_ref(config->run.spool);
    return PEG_OK;
}

static peg_status read_tls(struct remote__prov_config *config, const peg_provider_options *options,
                           peg_error *reterr)
{
    const struct net_tls_options tls = {.ca_file = options->ca_file,
                                        .cert_file = options->cert_file,
                                        .key_file = options->key_file,
                                        .is_client = true};

    if (!options->uses_tls && !tls.ca_file && !tls.cert_file)
        return PEG_OK;
    return net_tls_config_new(&tls, &config->tls, reterr);
}

/* The output of commands goes to their callers. */
static peg_status make_base_ctx(struct remote__prov_config *config, peg_registry *registry,
                                peg_ctx *parent, peg_error *reterr)
{
    peg_ctx *ctx = NULL;
    peg_status status = peg_ctx_with_registry(parent, registry, &ctx, reterr);

    if (status)
        return status;
    status = peg__ctx_with_listener(ctx, &remote__prov_listener, &config->ctx, reterr);
    peg_ctx_unref(ctx);
    return status;
}

peg_status remote__prov_config_copy(struct remote__prov_config *config, peg_registry *registry,
                                    const peg_provider_options *options, peg_error *reterr)
{
    peg_status status = check_provider_options(options, reterr);

    if (status)
        return status;
    if (!copy_strings(config, options))
        return peg__fail_nomem(reterr);
    copy_numbers(config, options);
    status = copy_run(config, options->run, reterr);
    if (!status)
        status = make_base_ctx(config, registry, options->ctx, reterr);
    return status ? status : read_tls(config, options, reterr);
}

void remote__prov_config_free(struct remote__prov_config *config)
{
    peg_ctx_unref(config->ctx);
    peg_pool_unref(config->run.pool);
    peg_spool_store_unref(config->run.spool);
    net_tls_config_unref(config->tls);
    peg__arena_free(&config->arena);
}
