/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A turn as Gemini's generateContent wants it:
 *
 *   - What the system says first is `systemInstruction`, a part for each block; what it says later,
 *     a user says in a trusted envelope.
 *   - Contents alternate, the user first. The responses of a round come first in the content after
 *     it, in the order of its calls; media of results comes behind all of them.
 *   - Signatures go back with the part that they came with. Thoughts without one are left out: the
 *     model gains nothing from them. The third generation of models refuses a round without a
 *     signature, and takes a certain word for rounds that another model has made.
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "engine/content.h"
#include "engine/vendors/alternating.h"
#include "engine/vendors/gemini.h"
#include "pegboard/envelope.h"
#include "json/json.h"

enum role { NOBODY, USER, MODEL };

struct writer {
    const struct peg__request *request;
    struct peg__out out;
    enum role role; /* whose content is open */
    peg_error *reterr;
};

/* ---- contents ---------------------------------------------------------------------------- */

static void begin_content(struct writer *w, enum role role)
{
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "role", role == USER ? "user" : "model");
    peg__out_key(&w->out, "parts");
    peg__out_array(&w->out);
    w->role = role;
}

static void end_content(struct writer *w)
{
    if (w->role == NOBODY)
        return;
    peg__out_end_array(&w->out);
    peg__out_end_object(&w->out);
}

static void put_words(struct writer *w, peg_str text, peg_str signature)
{
    peg__out_object(&w->out);
    peg__out_member(&w->out, "text", text);
    if (signature.len > 0)
        peg__out_member(&w->out, "thoughtSignature", signature);
    peg__out_end_object(&w->out);
}

static void speak_as(struct writer *w, enum role role)
{
    if (w->role == role)
        return;
    if (w->role == NOBODY && role == MODEL) {
        begin_content(w, USER);
        put_words(w, peg__str(peg__opening_words), peg__strn("", 0));
    }
    end_content(w);
    begin_content(w, role);
}

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

static void say(struct writer *w, enum role role, peg_str text, peg_str signature)
{
    if (peg__is_blank(text))
        return;
    speak_as(w, role);
    put_words(w, text, signature);
}

/* ---- media ------------------------------------------------------------------------------- */

/* A file of Google's is named by its uri; its id alone does not do. */
#define WAYS (1U << PEG__MEDIA_BYTES | 1U << PEG__MEDIA_URI)

static enum peg__media_way choose(const struct writer *w, const peg_media *media)
{
    static const char *const types[] = {"image/png",       "image/jpeg",
                                        "image/webp",      "image/heic",
                                        "image/heif",      "audio/wav",
                                        "audio/x-wav",     "audio/mp3",
                                        "audio/mpeg",      "audio/aiff",
                                        "audio/aac",       "audio/ogg",
                                        "audio/flac",      "audio/mp4",
                                        "audio/webm",      "video/mp4",
                                        "video/mpeg",      "video/mov",
                                        "video/quicktime", "video/avi",
                                        "video/x-flv",     "video/mpg",
                                        "video/webm",      "video/wmv",
                                        "video/3gpp",      "application/pdf",
                                        "text/plain",      "text/html",
                                        "text/css",        "text/csv",
                                        "text/markdown",   "text/xml",
                                        "text/rtf",        NULL};
    static const char *const schemes[] = {"https://", "http://", "gs://", NULL};
    static const struct peg__media_rules rules = {.ways = {[PEG_MEDIA_IMAGE] = WAYS,
                                                           [PEG_MEDIA_AUDIO] = WAYS,
                                                           [PEG_MEDIA_VIDEO] = WAYS,
                                                           [PEG_MEDIA_DOCUMENT] = WAYS},
                                                  .types = types,
                                                  .schemes = schemes};

    return peg__choose_media(media, &rules, w->request->options);
}

static peg_status write_bytes(struct writer *w, const peg_media *media)
{
    PEG_CLEANUP(peg__freep) char *text = NULL;
    size_t len;
    const peg_status status =
        peg_media_base64(media, peg__media_max(w->request->options), &text, &len, w->reterr);

    if (!status)
        peg__out_member(&w->out, "data", peg__strn(text, len));
    return status;
}

static peg_status write_media(struct writer *w, const peg_media *media, enum peg__media_way way)
{
    peg_status status = PEG_OK;

    peg__out_object(&w->out);
    peg__out_key(&w->out, way == PEG__MEDIA_URI ? "fileData" : "inlineData");
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "mimeType", peg_safe_mime_type(peg_media_mime_type(media)));
    if (way == PEG__MEDIA_URI)
        peg__out_cmember(&w->out, "fileUri", peg_media_uri(media));
    else
        status = write_bytes(w, media);
    peg__out_end_object(&w->out);
    peg__out_end_object(&w->out);
    return status;
}

static peg_status say_media(struct writer *w, enum role role, const peg_block *block, size_t i)
{
    const peg_media *media = peg_block_media(block, i);
    const enum peg__media_way way = role == USER ? choose(w, media) : PEG__MEDIA_TEXT;
    PEG_CLEANUP(peg__freep) char *words = NULL;
    size_t len;
    const peg_status status = peg__content_media(block, i, way, &words, &len, w->reterr);

    if (status)
        return status;
    say(w, role, peg__strn(words, len), peg__strn("", 0));
    return way == PEG__MEDIA_TEXT ? PEG_OK : write_media(w, media, way);
}

/* ---- blocks ------------------------------------------------------------------------------ */

static peg_status put_message(struct writer *w, enum role role, const peg_block *block)
{
    peg_status status = PEG_OK;

    say(w, role, peg_block_text(block), role == MODEL ? signature_of(block) : peg__strn("", 0));
    for (size_t i = 0; i < peg_block_n_media(block) && !status; i++)
        status = say_media(w, role, block, i);
    return status;
}

static void put_thought(struct writer *w, const peg_block *block)
{
    const peg_str signature = signature_of(block);

    if (signature.len == 0)
        return;
    speak_as(w, MODEL);
    peg__out_object(&w->out);
    peg__out_key(&w->out, "thought");
    peg__out_bool(&w->out, true);
    peg__out_member(&w->out, "text", peg_block_text(block));
    peg__out_member(&w->out, "thoughtSignature", signature);
    peg__out_end_object(&w->out);
}

static peg_status put_aside(struct writer *w, const peg_block *block)
{
    const bool is_system = peg_block_kind_of(block) == PEG_BLOCK_SYSTEM;
    PEG_CLEANUP(peg__freep) char *words = NULL;
    size_t len = 0;
    const peg_status status = is_system
                                  ? peg__system_apart(block, &words, &len, w->reterr)
                                  : peg__content_other(w->request, block, &words, &len, w->reterr);

    if (!status && words)
        say(w, USER, peg__strn(words, len), peg__strn("", 0));
    return status;
}

static peg_status put_block(struct writer *w, const peg_block *block)
{
    switch (peg_block_kind_of(block)) {
    case PEG_BLOCK_USER:
        return put_message(w, USER, block);
    case PEG_BLOCK_ASSISTANT:
        return put_message(w, MODEL, block);
    case PEG_BLOCK_REASONING:
        put_thought(w, block);
        return PEG_OK;
    default:
        return put_aside(w, block);
    }
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

static peg_str signature_of_call(const struct writer *w, const peg_block *call, bool is_first)
{
    const peg_str signature = signature_of(call);

    if (signature.len == 0 && is_first && is_third_generation(w->request->options->model))
        return peg__str("skip_thought_signature_validator");
    return signature;
}

static void begin_function(struct writer *w, const char *kind, const struct peg__exchange *exchange)
{
    peg__out_object(&w->out);
    peg__out_key(&w->out, kind);
    peg__out_object(&w->out);
    peg__out_member(&w->out, "id", exchange->wire_id);
    peg__out_member(&w->out, "name",
                    peg__names_out(w->request->names, peg_block_tool(exchange->call)));
}

static peg_status put_call(struct writer *w, const struct peg__exchange *exchange, bool is_first)
{
    const peg_str signature = signature_of_call(w, exchange->call, is_first);
    PEG_CLEANUP(peg__freep) char *args = NULL;
    size_t len;
    const peg_status status = peg__content_args(exchange->call, &args, &len, w->reterr);

    if (status)
        return status;
    speak_as(w, MODEL);
    begin_function(w, "functionCall", exchange);
    peg__out_key(&w->out, "args");
    peg__out_raw(&w->out, peg__strn(args, len));
    peg__out_end_object(&w->out);
    if (signature.len > 0)
        peg__out_member(&w->out, "thoughtSignature", signature);
    peg__out_end_object(&w->out);
    return PEG_OK;
}

/* PEG_OK: it is known whether the text is that of an object. */
static peg_status look_for_object(peg_str text, bool *ret_is_object, peg_error *reterr)
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
static peg_status write_response(struct writer *w, const peg_record *record)
{
    PEG_CLEANUP(peg__freep) char *words = NULL;
    size_t len;
    bool is_object;
    peg_status status = peg__content_result(w->request, record, &words, &len, w->reterr);

    if (status || (status = look_for_object(peg__strn(words, len), &is_object, w->reterr)))
        return status;
    peg__out_key(&w->out, "response");
    if (is_object) {
        peg__out_raw(&w->out, peg__strn(words, len));
        return PEG_OK;
    }
    peg__out_object(&w->out);
    if (len > 0)
        peg__out_member(&w->out, peg__content_is_error(record) ? "error" : "result",
                        peg__strn(words, len));
    peg__out_end_object(&w->out);
    return PEG_OK;
}

static peg_status put_response(struct writer *w, const struct peg__exchange *exchange)
{
    peg_status status;

    speak_as(w, USER);
    begin_function(w, "functionResponse", exchange);
    status = write_response(w, exchange->record);
    peg__out_end_object(&w->out);
    peg__out_end_object(&w->out);
    return status;
}

/* The words of the response have its marker; it says again what comes. */
static peg_status put_result_media(struct writer *w, const peg_media *media)
{
    const enum peg__media_way way = choose(w, media);
    PEG_CLEANUP(peg__freep) char *marker = NULL;
    size_t len;
    peg_status status;

    if (way == PEG__MEDIA_TEXT)
        return PEG_OK;
    status = peg_render_media_marker(media, &marker, &len, w->reterr);
    if (status)
        return status;
    put_words(w, peg__strn(marker, len), peg__strn("", 0));
    return write_media(w, media, way);
}

static peg_status put_round(struct writer *w, const struct peg__passage *round)
{
    peg_status status = PEG_OK;

    for (size_t i = 0; i < round->n_calls && !status; i++)
        status = put_call(w, &round->calls[i], i == 0);
    for (size_t i = 0; i < round->n_calls && !status; i++)
        status = put_response(w, &round->calls[i]);
    for (size_t i = 0; i < round->n_calls && !status; i++) {
        const peg_record *record = round->calls[i].record;
        const size_t n = record ? peg_record_n_media(record) : 0;

        for (size_t j = 0; j < n && !status; j++)
            status = put_result_media(w, peg_record_media(record, j));
    }
    return status;
}

/* ---- the request ------------------------------------------------------------------------- */

static peg_status write_contents(struct writer *w, size_t first)
{
    const struct peg__history *history = w->request->history;
    peg_status status = PEG_OK;

    peg__out_key(&w->out, "contents");
    peg__out_array(&w->out);
    for (size_t i = first; i < history->n && !status; i++) {
        const struct peg__passage *passage = &history->passages[i];

        status = passage->block ? put_block(w, passage->block) : put_round(w, passage);
    }
    end_content(w);
    peg__out_end_array(&w->out);
    return status;
}

static void write_system(struct writer *w, size_t n)
{
    bool is_open = false;

    for (size_t i = 0; i < n; i++) {
        const peg_str text = peg_block_text(w->request->history->passages[i].block);

        if (peg__is_blank(text))
            continue;
        if (!is_open) {
            peg__out_key(&w->out, "systemInstruction");
            peg__out_object(&w->out);
            peg__out_key(&w->out, "parts");
            peg__out_array(&w->out);
            is_open = true;
        }
        put_words(w, text, peg__strn("", 0));
    }
    if (is_open) {
        peg__out_end_array(&w->out);
        peg__out_end_object(&w->out);
    }
}

static peg_status write_tools(struct writer *w)
{
    const peg_status status = peg__write_tools(w->request, PEG_VENDOR_GEMINI, &w->out, w->reterr);

    peg__out_key(&w->out, "toolConfig");
    peg__out_object(&w->out);
    peg__out_key(&w->out, "functionCallingConfig");
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "mode", peg__must_call(w->request) ? "ANY" : "AUTO");
    peg__out_end_object(&w->out);
    peg__out_end_object(&w->out);
    return status;
}

/* ---- how to generate --------------------------------------------------------------------- */

/* How hard to think, as each generation is told; budgets as Google itself maps the words. */
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

static void write_thinking(struct writer *w)
{
    const peg_model_options *options = w->request->options;
    const struct effort *effort = effort_of(options);

    if (options->thinking_tokens <= 0 && !effort)
        return;
    peg__out_key(&w->out, "thinkingConfig");
    peg__out_object(&w->out);
    if (options->thinking_tokens <= 0 && is_third_generation(options->model)) {
        peg__out_cmember(&w->out, "thinkingLevel", effort->level);
    } else {
        peg__out_key(&w->out, "thinkingBudget");
        peg__out_integer(&w->out,
                         options->thinking_tokens > 0 ? options->thinking_tokens : effort->budget);
    }
    peg__out_key(&w->out, "includeThoughts");
    peg__out_bool(&w->out, true);
    peg__out_end_object(&w->out);
}

static void write_number(struct writer *w, const char *name, const double *number)
{
    if (!number)
        return;
    peg__out_key(&w->out, name);
    peg__out_double(&w->out, *number);
}

static void write_generation(struct writer *w)
{
    const peg_model_options *options = w->request->options;
    const bool has_stop = options->stop && options->stop[0];

    if (options->max_tokens <= 0 && !options->temperature && !options->top_p && !has_stop &&
        options->thinking_tokens <= 0 && !effort_of(options))
        return;
    peg__out_key(&w->out, "generationConfig");
    peg__out_object(&w->out);
    if (options->max_tokens > 0) {
        peg__out_key(&w->out, "maxOutputTokens");
        peg__out_integer(&w->out, options->max_tokens);
    }
    write_number(w, "temperature", options->temperature);
    write_number(w, "topP", options->top_p);
    if (has_stop) {
        peg__out_key(&w->out, "stopSequences");
        peg__out_array(&w->out);
        for (const char *const *stop = options->stop; *stop; stop++)
            peg__out_cstring(&w->out, *stop);
        peg__out_end_array(&w->out);
    }
    write_thinking(w);
    peg__out_end_object(&w->out);
}

peg_status peg__gemini_write_body(const struct peg__request *request, struct peg__buf *out,
                                  peg_error *reterr)
{
    struct writer w = {.request = request, .out = {.buf = out}, .reterr = reterr};
    const size_t n_system = peg__n_system_first(request->history);
    peg_status status;

    peg__out_object(&w.out);
    write_system(&w, n_system);
    status = write_contents(&w, n_system);
    if (!status && peg__offers_tools(request))
        status = write_tools(&w);
    if (!status)
        write_generation(&w);
    peg__out_end_object(&w.out);
    return !status && out->status == PEG_ENOMEM ? peg__fail_nomem(reterr) : status;
}
