/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A turn as Anthropic's Messages API wants it:
 *
 *   - What the system says first is `system`; what it says later, a user says in a trusted
 * envelope.
 *   - Messages alternate. Blocks of one side are one message; nothing empty is ever sent.
 *   - The results of a round come first in the message after it, whatever else a user says there.
 *   - A thought goes back as it came, with its signature or sealed, and only before what it led to:
 *     a message may not end with one. Thoughts without a signature (of other providers) are left
 *     out: the API takes no others, and as text they would be read as something that was said.
 *   - Media that the API does not take is told in words, and so is all media of the model's own.
 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "engine/content.h"
#include "engine/vendors/alternating.h"
#include "engine/vendors/anthropic.h"
#include "pegboard/envelope.h"
#include "json/json.h"

enum { DEFAULT_MAX_TOKENS = 4096 }; /* what the API requires, and peg_model_options tells */

enum role { NOBODY, USER, ASSISTANT };

struct writer {
    const struct peg__request *request;
    struct peg__out out;
    enum role role;           /* whose message is open */
    struct peg__buf thoughts; /* that wait for what they led to */
    bool starts_with_thought; /* the model's last message */
    bool answers_calls;       /* the user's last message */
    peg_error *reterr;
};

/* ---- messages ---------------------------------------------------------------------------- */

static void begin_message(struct writer *w, enum role role)
{
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "role", role == USER ? "user" : "assistant");
    peg__out_key(&w->out, "content");
    peg__out_array(&w->out);
    w->role = role;
}

static void end_message(struct writer *w)
{
    if (w->role != NOBODY) {
        peg__out_end_array(&w->out);
        peg__out_end_object(&w->out);
    }
}

static void put_words(struct writer *w, peg_str text)
{
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "type", "text");
    peg__out_member(&w->out, "text", text);
    peg__out_end_object(&w->out);
}

/* Thoughts that led to nothing are forgotten. */
static void speak_as_user(struct writer *w)
{
    peg__buf_clear(&w->thoughts);
    if (w->role == USER)
        return;
    end_message(w);
    begin_message(w, USER);
    w->answers_calls = false;
}

/* With the thoughts that wait. */
static void speak_as_assistant(struct writer *w)
{
    if (w->role == NOBODY) {
        begin_message(w, USER);
        put_words(w, peg__str(peg__opening_words));
    }
    if (w->role == USER) {
        end_message(w);
        begin_message(w, ASSISTANT);
        w->starts_with_thought = w->thoughts.len > 0;
    }
    if (w->thoughts.len > 0)
        peg__out_raw(&w->out, peg__buf_view(&w->thoughts));
    peg__buf_clear(&w->thoughts);
}

static void say(struct writer *w, enum role role, peg_str text)
{
    /* The API refuses a last message of the model's that ends with white space. */
    if (role == ASSISTANT)
        text = peg__without_end_space(text);
    if (peg__is_blank(text))
        return;
    if (role == USER)
        speak_as_user(w);
    else
        speak_as_assistant(w);
    put_words(w, text);
}

/* ---- media ------------------------------------------------------------------------------- */

#define ALL_WAYS (1U << PEG__MEDIA_BYTES | 1U << PEG__MEDIA_URI | 1U << PEG__MEDIA_FILE_ID)

static const char *const image_types[] = {"image/jpeg", "image/png", "image/gif", "image/webp",
                                          NULL};
static const char *const document_types[] = {"application/pdf", "text/plain", "text/markdown",
                                             "text/csv",        "text/html",  "text/xml",
                                             "text/css",        NULL};

static enum peg__media_way choose(const struct writer *w, const peg_media *media)
{
    static const struct peg__media_rules images = {.ways = {[PEG_MEDIA_IMAGE] = ALL_WAYS},
                                                   .types = image_types};
    static const struct peg__media_rules documents = {.ways = {[PEG_MEDIA_DOCUMENT] = ALL_WAYS},
                                                      .types = document_types};

    return peg__choose_media(media,
                             peg_media_kind_of(media) == PEG_MEDIA_IMAGE ? &images : &documents,
                             w->request->options);
}

static void write_source(struct writer *w, const char *type, const char *name, const char *value)
{
    peg__out_cmember(&w->out, "type", type);
    peg__out_cmember(&w->out, name, value);
}

static peg_status write_base64(struct writer *w, const peg_media *media)
{
    PEG_CLEANUP(peg__freep) char *text = NULL;
    size_t len;
    const peg_status status =
        peg_media_base64(media, peg__media_max(w->request->options), &text, &len, w->reterr);

    if (status)
        return status;
    write_source(w, "base64", "media_type", peg_safe_mime_type(peg_media_mime_type(media)));
    peg__out_member(&w->out, "data", peg__strn(text, len));
    return PEG_OK;
}

/* Text of whatever kind is plain text to the API. What is no UTF-8 becomes U+FFFD. */
static peg_status write_text(struct writer *w, const peg_media *media)
{
    PEG_CLEANUP(peg__freep) char *bytes = NULL;
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    size_t len;
    peg_str rest;
    const peg_status status = peg_reader_read_all(
        peg_media_reader(media), peg__media_max(w->request->options), &bytes, &len, w->reterr);

    if (status)
        return status;
    for (rest = peg__strn(bytes, len); rest.len > 0;) {
        const size_t n = peg__utf8_char_len(rest);

        peg__buf_str(&text, n ? peg__strn(rest.ptr, n) : peg__str("\xEF\xBF\xBD"));
        rest = peg__str_from(rest, n ? n : 1);
    }
    write_source(w, "text", "media_type", "text/plain");
    peg__out_member(&w->out, "data", peg__buf_view(&text));
    if (text.status && !w->out.buf->status)
        w->out.buf->status = text.status;
    peg__buf_free(&text);
    return PEG_OK;
}

static peg_status write_media(struct writer *w, const peg_media *media, enum peg__media_way way)
{
    const bool is_image = peg_media_kind_of(media) == PEG_MEDIA_IMAGE;
    peg_status status = PEG_OK;

    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "type", is_image ? "image" : "document");
    peg__out_key(&w->out, "source");
    peg__out_object(&w->out);
    if (way == PEG__MEDIA_URI)
        write_source(w, "url", "url", peg_media_uri(media));
    else if (way == PEG__MEDIA_FILE_ID)
        write_source(w, "file", "file_id", peg_media_file_id(media));
    else if (strncmp(peg_media_mime_type(media), "text/", 5) == 0)
        status = write_text(w, media);
    else
        status = write_base64(w, media);
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
    say(w, role, peg__strn(words, len));
    return way == PEG__MEDIA_TEXT ? PEG_OK : write_media(w, media, way);
}

/* ---- blocks ------------------------------------------------------------------------------ */

static peg_status put_message(struct writer *w, enum role role, const peg_block *block)
{
    peg_status status = PEG_OK;

    say(w, role, peg_block_text(block));
    for (size_t i = 0; i < peg_block_n_media(block) && !status; i++)
        status = say_media(w, role, block, i);
    return status;
}

static const peg_json *payload_string(const peg_block *block, const char *name)
{
    const peg_json *payload = peg_block_payload(block);
    const peg_json *value = payload ? peg_json_get(payload, name) : NULL;

    return value && peg_json_kind_of(value) == PEG_JSON_STRING ? value : NULL;
}

static void put_thought(struct writer *w, const peg_block *block)
{
    const peg_json *signature = payload_string(block, PEG__ANTHROPIC_SIGNATURE);
    const peg_json *sealed = payload_string(block, PEG__ANTHROPIC_REDACTED);
    struct peg__out out = {.buf = &w->thoughts, .needs_comma = w->thoughts.len > 0};

    if (!signature && !sealed)
        return;
    peg__out_object(&out);
    if (signature) {
        peg__out_cmember(&out, "type", "thinking");
        peg__out_member(&out, "thinking", peg_block_text(block));
        peg__out_member(&out, "signature", peg_json_str(signature));
    } else {
        peg__out_cmember(&out, "type", "redacted_thinking");
        peg__out_member(&out, "data", peg_json_str(sealed));
    }
    peg__out_end_object(&out);
    if (w->thoughts.status && !w->out.buf->status)
        w->out.buf->status = w->thoughts.status;
}

static peg_status put_aside(struct writer *w, const peg_block *block)
{
    const bool is_system = peg_block_kind_of(block) == PEG_BLOCK_SYSTEM;
    PEG_CLEANUP(peg__freep) char *words = NULL;
    size_t len = 0;
    const peg_status status = is_system
                                  ? peg__system_apart(block, &words, &len, w->reterr)
                                  : peg__content_other(w->request, block, &words, &len, w->reterr);

    if (status)
        return status;
    if (words)
        say(w, USER, peg__strn(words, len));
    return PEG_OK;
}

static peg_status put_block(struct writer *w, const peg_block *block)
{
    switch (peg_block_kind_of(block)) {
    case PEG_BLOCK_USER:
        return put_message(w, USER, block);
    case PEG_BLOCK_ASSISTANT:
        return put_message(w, ASSISTANT, block);
    case PEG_BLOCK_REASONING:
        put_thought(w, block);
        return PEG_OK;
    default:
        return put_aside(w, block);
    }
}

/* ---- rounds ------------------------------------------------------------------------------ */

static peg_status put_call(struct writer *w, const struct peg__exchange *exchange)
{
    PEG_CLEANUP(peg__freep) char *args = NULL;
    size_t len;
    const peg_status status = peg__content_args(exchange->call, &args, &len, w->reterr);

    if (status)
        return status;
    speak_as_assistant(w);
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "type", "tool_use");
    peg__out_member(&w->out, "id", exchange->wire_id);
    peg__out_member(&w->out, "name",
                    peg__names_out(w->request->names, peg_block_tool(exchange->call)));
    peg__out_key(&w->out, "input");
    peg__out_raw(&w->out, peg__strn(args, len));
    peg__out_end_object(&w->out);
    return PEG_OK;
}

/* A failed result may hold nothing but text. */
static bool has_native_media(const struct writer *w, const peg_record *record)
{
    if (peg__content_is_error(record))
        return false;
    for (size_t i = 0; i < peg_record_n_media(record); i++) {
        if (choose(w, peg_record_media(record, i)) != PEG__MEDIA_TEXT)
            return true;
    }
    return false;
}

/* Words about all of it, then what can be sent itself. */
static peg_status put_media_content(struct writer *w, const peg_record *record, peg_str words)
{
    peg_status status = PEG_OK;

    peg__out_array(&w->out);
    if (!peg__is_blank(words))
        put_words(w, words);
    for (size_t i = 0; i < peg_record_n_media(record) && !status; i++) {
        const peg_media *media = peg_record_media(record, i);
        const enum peg__media_way way = choose(w, media);

        if (way != PEG__MEDIA_TEXT)
            status = write_media(w, media, way);
    }
    peg__out_end_array(&w->out);
    return status;
}

static peg_status put_result(struct writer *w, const struct peg__exchange *exchange)
{
    PEG_CLEANUP(peg__freep) char *words = NULL;
    size_t len;
    peg_status status = peg__content_result(w->request, exchange->record, &words, &len, w->reterr);

    if (status)
        return status;
    speak_as_user(w);
    w->answers_calls = true;
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "type", "tool_result");
    peg__out_member(&w->out, "tool_use_id", exchange->wire_id);
    peg__out_key(&w->out, "content");
    if (has_native_media(w, exchange->record))
        status = put_media_content(w, exchange->record, peg__strn(words, len));
    else
        peg__out_string(&w->out, peg__strn(words, len));
    if (peg__content_is_error(exchange->record)) {
        peg__out_key(&w->out, "is_error");
        peg__out_bool(&w->out, true);
    }
    peg__out_end_object(&w->out);
    return status;
}

static peg_status put_round(struct writer *w, const struct peg__passage *round)
{
    peg_status status = PEG_OK;

    for (size_t i = 0; i < round->n_calls && !status; i++)
        status = put_call(w, &round->calls[i]);
    for (size_t i = 0; i < round->n_calls && !status; i++)
        status = put_result(w, &round->calls[i]);
    return status;
}

/* ---- the request ------------------------------------------------------------------------- */

static void write_system(struct writer *w, size_t n)
{
    struct peg__buf words = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    for (size_t i = 0; i < n; i++) {
        const peg_str text = peg_block_text(w->request->history->passages[i].block);

        if (peg__is_blank(text))
            continue;
        if (words.len > 0)
            peg__buf_puts(&words, "\n\n");
        peg__buf_str(&words, text);
    }
    if (words.status && !w->out.buf->status)
        w->out.buf->status = words.status;
    if (words.len > 0)
        peg__out_member(&w->out, "system", peg__buf_view(&words));
    peg__buf_free(&words);
}

static peg_status write_messages(struct writer *w, size_t first)
{
    const struct peg__history *history = w->request->history;
    peg_status status = PEG_OK;

    peg__out_key(&w->out, "messages");
    peg__out_array(&w->out);
    for (size_t i = first; i < history->n && !status; i++) {
        const struct peg__passage *passage = &history->passages[i];

        status = passage->block ? put_block(w, passage->block) : put_round(w, passage);
    }
    end_message(w);
    peg__out_end_array(&w->out);
    return status;
}

static peg_status write_tools(struct writer *w)
{
    const peg_status status =
        peg__write_tools(w->request, PEG_VENDOR_ANTHROPIC, &w->out, w->reterr);

    peg__out_key(&w->out, "tool_choice");
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "type", peg__must_call(w->request) ? "any" : "auto");
    if (w->request->config->max_parallel == 1) {
        peg__out_key(&w->out, "disable_parallel_tool_use");
        peg__out_bool(&w->out, true);
    }
    peg__out_end_object(&w->out);
    return status;
}

/*
 * The API refuses thinking together with a call that must be made, which then counts more, and a
 * budget for it while calls are answered that were made without a thought.
 */
static bool may_think(const struct writer *w)
{
    if (peg__offers_tools(w->request) && peg__must_call(w->request))
        return false;
    return w->request->options->thinking_tokens <= 0 || w->role != USER || !w->answers_calls ||
           w->starts_with_thought;
}

static bool write_thinking(struct writer *w)
{
    const peg_model_options *options = w->request->options;
    const bool has_budget = options->thinking_tokens > 0;
    const bool has_effort = options->reasoning && options->reasoning[0];
    const bool thinks = (has_budget || has_effort) && may_think(w);

    if (thinks) {
        peg__out_key(&w->out, "thinking");
        peg__out_object(&w->out);
        peg__out_cmember(&w->out, "type", has_budget ? "enabled" : "adaptive");
        if (has_budget) {
            peg__out_key(&w->out, "budget_tokens");
            peg__out_integer(&w->out, options->thinking_tokens);
        }
        peg__out_end_object(&w->out);
    }
    if (has_effort) {
        peg__out_key(&w->out, "output_config");
        peg__out_object(&w->out);
        peg__out_cmember(&w->out, "effort", options->reasoning);
        peg__out_end_object(&w->out);
    }
    return thinks;
}

/* A model that thinks takes none of these, and newer ones take only one of the two. */
static void write_sampling(struct writer *w, bool thinks)
{
    const peg_model_options *options = w->request->options;

    if (options->stop && options->stop[0]) {
        peg__out_key(&w->out, "stop_sequences");
        peg__out_array(&w->out);
        for (const char *const *stop = options->stop; *stop; stop++)
            peg__out_cstring(&w->out, *stop);
        peg__out_end_array(&w->out);
    }
    if (thinks)
        return;
    if (options->temperature) {
        peg__out_key(&w->out, "temperature");
        peg__out_double(&w->out, *options->temperature);
    } else if (options->top_p) {
        peg__out_key(&w->out, "top_p");
        peg__out_double(&w->out, *options->top_p);
    }
}

/* Thoughts count as tokens of the answer. */
static peg_status write_max_tokens(struct writer *w)
{
    const peg_model_options *options = w->request->options;
    const int64_t budget = options->thinking_tokens > 0 ? options->thinking_tokens : 0;

    if (options->max_tokens > 0 && options->max_tokens <= budget)
        return peg__fail(w->reterr, PEG_EINVAL, "E_ENGINE_CONFIG",
                         "thinking_tokens (%lld) must be less than max_tokens (%lld), which "
                         "counts thoughts too: raise max_tokens",
                         (long long)budget, (long long)options->max_tokens);
    peg__out_key(&w->out, "max_tokens");
    peg__out_integer(&w->out, options->max_tokens > 0 ? options->max_tokens
                              : budget > INT64_MAX - DEFAULT_MAX_TOKENS
                                  ? INT64_MAX
                                  : DEFAULT_MAX_TOKENS + budget);
    return PEG_OK;
}

static peg_status write_members(struct writer *w)
{
    const size_t n_system = peg__n_system_first(w->request->history);
    peg_status status;

    peg__out_cmember(&w->out, "model", w->request->options->model);
    if ((status = write_max_tokens(w)))
        return status;
    write_system(w, n_system);
    if ((status = write_messages(w, n_system)))
        return status;
    if (peg__offers_tools(w->request) && (status = write_tools(w)))
        return status;
    write_sampling(w, write_thinking(w));
    if (w->request->is_streaming) {
        peg__out_key(&w->out, "stream");
        peg__out_bool(&w->out, true);
    }
    return PEG_OK;
}

peg_status peg__anthropic_write_body(const struct peg__request *request, struct peg__buf *out,
                                     peg_error *reterr)
{
    struct writer w = {.request = request,
                       .out = {.buf = out},
                       .thoughts = PEG__BUF(PEG_LIMIT_TEXT_BYTES),
                       .reterr = reterr};
    peg_status status;

    peg__out_object(&w.out);
    status = write_members(&w);
    peg__out_end_object(&w.out);
    peg__buf_free(&w.thoughts);
    if (!status && out->status == PEG_ENOMEM)
        status = peg__fail_nomem(reterr);
    return status;
}
