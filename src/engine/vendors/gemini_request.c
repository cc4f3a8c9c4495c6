/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A turn as Gemini's generateContent wants it:
 *
 *   - The first system blocks are `systemInstruction`, a part for each; later ones are a user's, in
 *     a trusted envelope.
 *   - The responses of a round come first in the content after it, in the order of its calls; media
 *     of results comes behind all of them.
 *   - Signatures go back with the part that they came with. Thoughts without one are left out: the
 *     model gains nothing from them. The third generation of models refuses a round without a
 *     signature, and takes a certain word for rounds that another model has made.
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/str.h"
#include "engine/vendors/internal.h"
#include "pegboard/envelope.h"

/* ---- parts ------------------------------------------------------------------------------- */

/* Of a thought, a text or a call; a value that is no string is none. */
static peg_str signature_of(const peg_block *block)
{
    const peg_json *value = NULL;

    if (peg_bag_get(peg_block_metadata(block), PEG_BAG_BLOCK, &peg_key_gemini_thought, &value,
                    NULL) ||
        !value)
        return peg__strn("", 0);
    return peg_json_str(value);
}

static void put_signature(struct peg__writer *w, peg_str signature)
{
    if (signature.len > 0)
        peg__out_member(&w->out, "thoughtSignature", signature);
}

static void put_signed_text(struct peg__writer *w, peg_str text, const peg_block *block)
{
    peg__out_object(&w->out);
    peg__out_member(&w->out, "text", text);
    if (block && peg_block_kind_of(block) == PEG_BLOCK_ASSISTANT)
        put_signature(w, signature_of(block));
    peg__out_end_object(&w->out);
}

/* A file of Google's is named by its uri; its id alone does not do. */
#define WAYS (1U << PEG__MEDIA_BYTES | 1U << PEG__MEDIA_URI)

static const char *const types[] = {
    "image/png",       "image/jpeg",      "image/webp",  "image/heic", "image/heif", "audio/wav",
    "audio/x-wav",     "audio/mp3",       "audio/mpeg",  "audio/aiff", "audio/aac",  "audio/ogg",
    "audio/flac",      "audio/mp4",       "audio/webm",  "video/mp4",  "video/mpeg", "video/mov",
    "video/quicktime", "video/avi",       "video/x-flv", "video/mpg",  "video/webm", "video/wmv",
    "video/3gpp",      "application/pdf", "text/plain",  "text/html",  "text/css",   "text/csv",
    "text/markdown",   "text/xml",        "text/rtf",    NULL};
static const char *const schemes[] = {"https://", "http://", "gs://", NULL};
static const struct peg__media_rules rules = {
    .ways = {[PEG_MEDIA_IMAGE] = WAYS,
             [PEG_MEDIA_AUDIO] = WAYS,
             [PEG_MEDIA_VIDEO] = WAYS,
             [PEG_MEDIA_DOCUMENT] = WAYS},
    .types = types,
    .schemes = schemes,
    .refuses_empty = true,
};

static peg_status put_inline_media(struct peg__writer *w, const peg_media *media,
                                   enum peg__media_way way)
{
    peg_status status = PEG_OK;

    peg__out_object(&w->out);
    peg__open_object(w, way == PEG__MEDIA_URI ? "fileData" : "inlineData");
    peg__out_cmember(&w->out, "mimeType", peg_safe_mime_type(peg_media_mime_type(media)));
    if (way == PEG__MEDIA_URI)
        peg__out_cmember(&w->out, "fileUri", peg_media_uri(media));
    else
        status = peg__put_base64(w, "data", media);
    peg__out_end_object(&w->out);
    peg__out_end_object(&w->out);
    return status;
}

static void put_signed_thought(struct peg__writer *w, size_t i)
{
    const peg_block *block = w->request->history->passages[i].block;
    const peg_str signature = signature_of(block);

    if (signature.len == 0)
        return;
    peg__speak_as(w, PEG__MODEL);
    peg__out_object(&w->out);
    peg__put_true(w, "thought");
    peg__out_member(&w->out, "text", peg_block_text(block));
    put_signature(w, signature);
    peg__out_end_object(&w->out);
}

/* ---- rounds ------------------------------------------------------------------------------ */

/* The number after "gemini-"; names without one ("gemini-flash-latest") mean the newest. */
static bool is_third_generation(const char *model)
{
    const char *name = strstr(model, "gemini-");

    if (!name)
        return false;
    name += strlen("gemini-");
    return *name < '0' || *name > '9' || strtoul(name, NULL, 10) >= 3;
}

static void begin_function(struct peg__writer *w, const char *kind,
                           const struct peg__exchange *exchange)
{
    peg__out_object(&w->out);
    peg__open_object(w, kind);
    peg__out_member(&w->out, "id", exchange->wire_id);
    peg__put_tool_name(w, exchange);
}

static void put_function_call(struct peg__writer *w, const struct peg__exchange *exchange,
                              peg_str args, bool is_first)
{
    peg_str signature = signature_of(exchange->call);

    if (signature.len == 0 && is_first && is_third_generation(w->request->options->model))
        signature = peg__str("skip_thought_signature_validator");
    begin_function(w, "functionCall", exchange);
    peg__out_key(&w->out, "args");
    peg__out_raw(&w->out, args);
    peg__out_end_object(&w->out);
    put_signature(w, signature);
    peg__out_end_object(&w->out);
}

/* PEG_OK: it is known whether the text is that of an object. */
static peg_status check_object(peg_str text, bool *ret_is_object, peg_error *reterr)
{
    peg_json_doc *doc = NULL;

    *ret_is_object = false;
    if (!memchr(text.ptr, '{', text.len < 8 ? text.len : 8))
        return PEG_OK; /* no need to read all of it */
    if (peg_json_parse(text, &peg__json_refuse_duplicates, &doc, NULL) == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    *ret_is_object = doc && peg_json_kind_of(peg_json_root(doc)) == PEG_JSON_OBJECT;
    peg_json_doc_free(doc);
    return PEG_OK;
}

/* A response has to be an object: one as it is, "" as {}, anything else as a member of one. */
static peg_status put_function_response(struct peg__writer *w, const struct peg__exchange *exchange,
                                        peg_str text)
{
    bool is_object;
    const peg_status status = check_object(text, &is_object, w->reterr);

    if (status)
        return status;
    begin_function(w, "functionResponse", exchange);
    peg__out_key(&w->out, "response");
    if (is_object) {
        peg__out_raw(&w->out, text);
    } else {
        peg__out_object(&w->out);
        if (text.len > 0)
            peg__out_member(&w->out, peg__content_is_error(exchange->record) ? "error" : "result",
                            text);
        peg__out_end_object(&w->out);
    }
    peg__out_end_object(&w->out);
    peg__out_end_object(&w->out);
    return PEG_OK;
}

/* ---- the request ------------------------------------------------------------------------- */

static peg_status put_system_parts(struct peg__writer *w, size_t n)
{
    bool is_open = false;

    for (size_t i = 0; i < n; i++) {
        const peg_str text = peg_block_text(w->request->history->passages[i].block);

        if (peg__str_is_blank(text))
            continue;
        if (!is_open) {
            peg__open_object(w, "systemInstruction");
            peg__open_array(w, "parts");
            is_open = true;
        }
        put_signed_text(w, text, NULL);
    }
    if (is_open) {
        peg__out_end_array(&w->out);
        peg__out_end_object(&w->out);
    }
    return PEG_OK;
}

static void put_choice(struct peg__writer *w)
{
    peg__open_object(w, "toolConfig");
    peg__open_object(w, "functionCallingConfig");
    peg__out_cmember(&w->out, "mode", peg__must_call(w->request) ? "ANY" : "AUTO");
    peg__out_end_object(&w->out);
    peg__out_end_object(&w->out);
}

/* How hard to think, in the form of each generation; budgets as Google maps the words. */
static const struct effort {
    const char *word;
    const char *level;
    int64_t budget;
} efforts[] = {
    {"low", "LOW", 1024},
    {"medium", "MEDIUM", 8192},
    {"high", "HIGH", 24576},
};

static const struct effort *effort_of(const peg_model_options *options)
{
    for (size_t i = 0; i < sizeof(efforts) / sizeof(*efforts); i++) {
        if (options->reasoning && strcmp(options->reasoning, efforts[i].word) == 0)
            return &efforts[i];
    }
    return NULL;
}

static void put_thinking(struct peg__writer *w)
{
    const peg_model_options *options = w->request->options;
    const struct effort *effort = effort_of(options);

    if (options->thinking_tokens <= 0 && !effort)
        return;
    peg__open_object(w, "thinkingConfig");
    if (options->thinking_tokens <= 0 && is_third_generation(options->model))
        peg__out_cmember(&w->out, "thinkingLevel", effort->level);
    else
        peg__put_integer(w, "thinkingBudget",
                         options->thinking_tokens > 0 ? options->thinking_tokens : effort->budget);
    peg__put_true(w, "includeThoughts");
    peg__out_end_object(&w->out);
}

static void put_generation_config(struct peg__writer *w)
{
    const peg_model_options *options = w->request->options;
    const bool has_stop = options->stop && options->stop[0];

    if (options->max_tokens <= 0 && !options->temperature && !options->top_p && !has_stop &&
        options->thinking_tokens <= 0 && !effort_of(options))
        return;
    peg__open_object(w, "generationConfig");
    if (options->max_tokens > 0)
        peg__put_integer(w, "maxOutputTokens", options->max_tokens);
    peg__put_double(w, "temperature", options->temperature);
    peg__put_double(w, "topP", options->top_p);
    peg__put_stop(w, "stopSequences");
    put_thinking(w);
    peg__out_end_object(&w->out);
}

const struct peg__format peg__gemini_format = {
    .list = "contents",
    .parts = "parts",
    .model_role = "model",
    .is_alternating = true,
    .media = &rules,
    .write_head = put_system_parts,
    .put_text = put_signed_text,
    .put_media = put_inline_media,
    .put_thought = put_signed_thought,
    .put_call = put_function_call,
    .put_result = put_function_response,
    .put_choice = put_choice,
    .put_settings = put_generation_config,
};
