/* SPDX-License-Identifier: Apache-2.0 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "cli/chat/chat.h"
#include "cli/tools/http.h"

/* Addresses of others mostly speak OpenAI's protocol, whatever their models are called. */
static peg_vendor choose_vendor(const struct chat_options *o)
{
    if (o->vendor != PEG_VENDOR_NEUTRAL)
        return o->vendor;
    if (!o->url && strncmp(o->model, "claude", 6) == 0)
        return PEG_VENDOR_ANTHROPIC;
    if (!o->url && strncmp(o->model, "gemini", 6) == 0)
        return PEG_VENDOR_GEMINI;
    return PEG_VENDOR_OPENAI_CHAT;
}

static const char *key_variable(peg_vendor vendor)
{
    if (vendor == PEG_VENDOR_ANTHROPIC)
        return "ANTHROPIC_API_KEY";
    return vendor == PEG_VENDOR_GEMINI ? "GEMINI_API_KEY" : "OPENAI_API_KEY";
}

/* A server on this machine may want no key. */
static const char *choose_key(const struct chat_options *o, peg_vendor vendor)
{
    if (o->key_env || !o->url)
        return o->key_env;
    return secure_getenv(key_variable(vendor)) ? NULL : "";
}

static peg_status open_model(const struct chat_options *o, peg_model **ret_model, peg_error *reterr)
{
    const peg_vendor vendor = choose_vendor(o);
    const peg_model_config config = {
        PEG_MODEL_CONFIG_INIT,
        .model.model = o->model,
        .vendor = vendor,
        .base_url = o->url,
        .api_key_env = choose_key(o, vendor),
    };
    union {
        void *object;
        peg_status (*fn)(const peg_model_config *, peg_model **, peg_error *);
    } found = {.object = http_library_find("peg_model_new")};

    if (!found.object)
        return peg__fail(reterr, PEG_EIO, "E_ENGINE_TRANSPORT",
                         "models need " HTTP_LIBRARY ", which cannot be loaded: install it beside "
                         "this command");
    return found.fn(&config, ret_model, reterr);
}

static peg_status open_script(const char *path, peg_script **ret_script, peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_JSON_BYTES);
    peg_status status = cli_read_file(path, &text, reterr);

    if (!status)
        status = peg_script_new(peg__buf_view(&text), ret_script, reterr);
    peg__buf_free(&text);
    return status;
}

int chat_model_open(const struct cli_command *command, const struct chat_options *o,
                    struct chat_model *ret_model)
{
    peg_error error;

    if (!o->model == !o->script)
        return cli_bad_use(command, o->model ? "--model and --script are one or the other"
                                             : "--model is needed, or a --script in its place");
    if (o->script)
        return open_script(o->script, &ret_model->script, &error)
                   ? remote_complain_local(o->script, &error)
                   : CLI_OK;
    return open_model(o, &ret_model->model, &error) ? remote_complain_local(NULL, &error) : CLI_OK;
}

void chat_model_close(struct chat_model *model)
{
    model->model = peg_model_unref(model->model);
    model->script = peg_script_unref(model->script);
}

static peg_status ask_model(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    struct chat_model *model = user;
    const peg_engine engine =
        model->model ? peg_model_engine(model->model) : peg_script_engine(model->script);
    const peg_status status = engine.fn(dispatch, engine.user, &model->error);

    if (status && reterr)
        *reterr = model->error;
    return status;
}

peg_engine chat_model_engine(struct chat_model *model)
{
    return (peg_engine){.fn = ask_model, .user = model};
}
