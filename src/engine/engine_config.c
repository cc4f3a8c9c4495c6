/* SPDX-License-Identifier: Apache-2.0 */

/* Makes an engine: checks and copies the config, so that only the network can fail later. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "engine/engine.h"

enum { MAX_URL = 8192, MAX_HEADERS = 256 << 10 };

static peg_status reject_config(peg_error *reterr, const char *where, const char *reason)
{
    const peg_status status =
        peg__fail(reterr, PEG_EINVAL, "E_ENGINE_CONFIG", "%s: %s", where + 1, reason);

    peg__error_where(reterr, peg__str(where));
    return status;
}

/* ---- life --------------------------------------------------------------------------- */

peg_model *peg_model_ref(peg_model *engine)
{
    if (engine)
        peg__refs_take(&engine->n_refs);
    return engine;
}

static void wipe(struct peg__buf *buf)
{
    if (buf->ptr)
        explicit_bzero(buf->ptr, buf->capacity);
    peg__buf_free(buf);
}

peg_model *peg_model_unref(peg_model *engine)
{
    if (!engine || !peg__refs_drop(&engine->n_refs))
        return NULL;
    if (engine->transport.free)
        engine->transport.free(engine->transport.self);
    wipe(&engine->headers);
    peg__buf_free(&engine->url);
    peg__arena_free(&engine->arena);
    peg__free(engine);
    return NULL;
}

/* ---- copying -------------------------------------------------------------------------- */

/* NULL stays NULL; *is_full is set where there is no memory. */
static const char *copy_option(struct peg__arena *arena, const char *text, bool *is_full)
{
    const char *copy = text ? peg__arena_copy(arena, peg__str(text)) : NULL;

    *is_full |= text && !copy;
    return copy;
}

static const double *copy_double(struct peg__arena *arena, const double *number, bool *is_full)
{
    double *copy = number ? peg__arena_alloc(arena, sizeof(*copy)) : NULL;

    *is_full |= number && !copy;
    if (copy)
        *copy = *number;
    return copy;
}

static const char *const *copy_option_list(struct peg__arena *arena, const char *const *list,
                                           bool *is_full)
{
    size_t n = 0;
    const char **copy;

    if (!list)
        return NULL;
    while (list[n])
        n++;
    copy = peg__arena_alloc_zero(arena, (n + 1) * sizeof(*copy));
    *is_full |= !copy;
    for (size_t i = 0; copy && i < n; i++)
        copy[i] = copy_option(arena, list[i], is_full);
    return copy;
}

static int64_t or_else(int64_t number, int64_t otherwise)
{
    return number ? number : otherwise;
}

static peg_status copy_config(peg_model *engine, const peg_model_config *from, peg_error *reterr)
{
    struct peg__arena *arena = &engine->arena;
    peg_model_config *config = &engine->config;
    bool is_full = false;

    *config = *from;
    config->base_url = config->api_key = config->api_key_env = NULL;
    config->headers = NULL;
    config->model.model = copy_option(arena, from->model.model, &is_full);
    config->model.reasoning = copy_option(arena, from->model.reasoning, &is_full);
    config->model.extra = copy_option(arena, from->model.extra, &is_full);
    config->model.stop = copy_option_list(arena, from->model.stop, &is_full);
    config->model.temperature = copy_double(arena, from->model.temperature, &is_full);
    config->model.top_p = copy_double(arena, from->model.top_p, &is_full);
    config->connect_ms = or_else(from->connect_ms, 10000);
    config->idle_ms = or_else(from->idle_ms, 120000);
    config->total_ms = or_else(from->total_ms, 600000);
    config->max_reply_bytes = or_else(from->max_reply_bytes, PEG_LIMIT_REPLY_BYTES);
    engine->retry = (struct peg__retry){
        .max_tries = from->max_tries ? from->max_tries : 4,
        .backoff_ms = or_else(from->backoff_ms, 500),
        .backoff_max_ms = or_else(from->backoff_max_ms, 30000),
    };
    return is_full ? peg__fail_nomem(reterr) : PEG_OK;
}

/* ---- checking ------------------------------------------------------------------------------ */

static bool is_line(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7F)
            return false;
    return true;
}

static peg_status check_numbers(const peg_model_config *config, peg_error *reterr)
{
    const struct {
        const char *where;
        int64_t number;
    } numbers[] = {
        {"/connect_ms", config->connect_ms},
        {"/max_tries", config->max_tries},
        {"/backoff_ms", config->backoff_ms},
        {"/backoff_max_ms", config->backoff_max_ms},
        {"/max_reply_bytes", config->max_reply_bytes},
        {"/model/max_tokens", config->model.max_tokens},
        {"/model/thinking_tokens", config->model.thinking_tokens},
        {"/model/max_media_bytes", config->model.max_media_bytes},
    };

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (numbers[i].number < 0)
            return reject_config(reterr, numbers[i].where,
                                 "it cannot be negative; 0 means the default");
    if (config->max_reply_bytes > PEG_LIMIT_JSON_BYTES_MAX)
        return reject_config(reterr, "/max_reply_bytes", "at most 2 GiB - 1");
    return PEG_OK;
}

static peg_status check_extra(const char *extra, peg_error *reterr)
{
    peg_json_doc *doc = NULL;
    peg_error error;
    peg_status status;
    bool is_object;

    if (!extra)
        return PEG_OK;
    status = peg_json_parse(peg__str(extra), NULL, &doc, &error);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status)
        return reject_config(reterr, "/model/extra", error.message);
    is_object = peg_json_root(doc)->kind == PEG_JSON_OBJECT;
    peg_json_doc_free(doc);
    return is_object ? PEG_OK : reject_config(reterr, "/model/extra", "it has to be a JSON object");
}

/* Gemini has the model in its path, where ".." would lead elsewhere, and the key with it. */
static bool has_dots(const char *model)
{
    while (*model) {
        const size_t len = strcspn(model, "/");

        if ((len == 1 && model[0] == '.') || (len == 2 && strncmp(model, "..", 2) == 0))
            return true;
        model += len + (model[len] == '/');
    }
    return false;
}

static peg_status check_model(const peg_model_options *model, peg_error *reterr)
{
    if (!model->model || !*model->model)
        return reject_config(reterr, "/model/model", "name the model to ask");
    if (!is_line(model->model))
        return reject_config(reterr, "/model/model", "a name of a model has no control characters");
    if (has_dots(model->model))
        return reject_config(reterr, "/model/model", "no part of a model's name is . or ..");
    return check_extra(model->extra, reterr);
}

/* ---- the URL ----------------------------------------------------------------------------- */

static peg_status check_url(const char *url, peg_error *reterr)
{
    const char *host = strstr(url, "://");
    size_t host_len;

    if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
        return reject_config(reterr, "/base_url", "it has to begin with http:// or https://");
    host += 3;
    host_len = strcspn(host, "/?#");
    if (!host_len || memchr(host, '@', host_len))
        return reject_config(reterr, "/base_url",
                             "it needs a host, and no user or password: use api_key or headers");
    if (!is_line(url) || strpbrk(url, " #"))
        return reject_config(reterr, "/base_url", "no spaces, control characters or '#'");
    return PEG_OK;
}

/* The vendor's path goes before what the base URL has to ask ("?api-version=..."), and what the
 * path has to ask goes behind that. */
static peg_status write_url(peg_model *engine, const char *base_url, peg_error *reterr)
{
    const char *base = base_url ? base_url : engine->wire->base_url;
    const peg_status status = check_url(base, reterr);
    struct peg__buf path = PEG__BUF(MAX_URL);
    const char *query = strchr(base, '?');
    size_t len = query ? (size_t)(query - base) : strlen(base);
    const char *asks;

    if (status)
        return status;
    while (len && base[len - 1] == '/')
        len--;
    peg__wire_path(engine->wire, &engine->config.model, !engine->config.no_stream, &path);
    asks = path.len ? memchr(path.ptr, '?', path.len) : NULL;
    peg__buf_add(&engine->url, base, len);
    peg__buf_add(&engine->url, path.ptr, asks ? (size_t)(asks - path.ptr) : path.len);
    peg__buf_puts(&engine->url, query ? query : "");
    if (asks) {
        peg__buf_putc(&engine->url, query ? '&' : '?');
        peg__buf_puts(&engine->url, asks + 1);
    }
    if (path.status)
        engine->url.status = path.status;
    peg__buf_free(&path);
    if (engine->url.status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return engine->url.status ? reject_config(reterr, "/base_url", "it is too long") : PEG_OK;
}

/* ---- the key ----------------------------------------------------------------------------- */

static peg_status find_key(const peg_model *engine, const peg_model_config *config,
                           const char **ret_key, peg_error *reterr)
{
    const char *variable = config->api_key_env ? config->api_key_env : engine->wire->key_env;
    const char *key = config->api_key;

    if (!key && *variable) {
        key = getenv(variable); // NOLINT(concurrency-mt-unsafe): hosts do not change it meanwhile
        if (!key || !*key)
            return peg__fail(reterr, PEG_ENOTFOUND, "E_ENGINE_CONFIG",
                             "the environment variable %s is not set: set it to the API key, or "
                             "api_key_env to \"\" for a server that wants none",
                             variable);
    }
    if (key && !is_line(key))
        return reject_config(
            reterr, "/api_key",
            "the key has control characters, perhaps the end of a line: remove them");
    *ret_key = key && *key ? key : NULL;
    return PEG_OK;
}

static peg_status fill_headers(peg_model *engine, const peg_model_config *config, peg_error *reterr)
{
    const char *key = NULL;
    const peg_status status = find_key(engine, config, &key, reterr);

    if (status)
        return status;
    peg__wire_headers(engine->wire, key, &engine->headers);
    peg__buf_puts(&engine->headers,
                  config->no_stream ? "Accept: application/json\n" : "Accept: text/event-stream\n");
    for (const char *const *header = config->headers; header && *header; header++) {
        if (!is_line(*header) || strcspn(*header, ": ") == 0 || !strchr(*header, ':'))
            return reject_config(reterr, "/headers", "each is one line, \"Name: value\"");
        peg__buf_puts(&engine->headers, *header);
        peg__buf_putc(&engine->headers, '\n');
    }
    if (engine->headers.status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return engine->headers.status ? reject_config(reterr, "/headers", "they are too long") : PEG_OK;
}

/* ---- making ------------------------------------------------------------------------------ */

static peg_status fill_engine(peg_model *engine, const peg_model_config *config, peg_error *reterr)
{
    peg_status status = check_numbers(config, reterr);

    if (!status)
        status = check_model(&config->model, reterr);
    if (!status)
        status = copy_config(engine, config, reterr);
    if (!status)
        status = write_url(engine, config->base_url, reterr);
    if (!status)
        status = fill_headers(engine, config, reterr);
    /* Clients have to differ, not to be unguessable: without randomness they wait alike. */
    if (!status && !peg__random(&engine->retry.seed, sizeof(engine->retry.seed)))
        engine->retry.seed = 0;
    return status;
}

static const struct peg__layout model_layout =
    PEG__LAYOUT(peg_model_options, PEG_MODEL_OPTIONS_INIT);
static const struct peg__layout engine_layout =
    PEG__LAYOUT_AROUND(peg_model_config, model, &model_layout, PEG_MODEL_CONFIG_INIT);

peg_status peg__engine_new(const peg_model_config *config, const struct peg__transport *transport,
                           peg_model **ret_engine, peg_error *reterr)
{
    PEG__READ_AS_OR_RETURN(config, &engine_layout, reterr);
    const struct peg__wire *wire = peg__wire_of(config->vendor);
    peg_model *engine;
    peg_status status;

    if (!wire)
        return reject_config(reterr, "/vendor", "choose one that has engines, such as openai-chat");
    engine = peg__alloc_zero(1, sizeof(*engine));
    if (!engine)
        return peg__fail_nomem(reterr);
    atomic_init(&engine->n_refs, 1);
    engine->wire = wire;
    engine->url.max = MAX_URL;
    engine->headers.max = MAX_HEADERS;
    status = fill_engine(engine, config, reterr);
    if (status) {
        peg_model_unref(engine);
        return status;
    }
    engine->transport = *transport;
    *ret_engine = engine;
    return PEG_OK;
}
