/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A turn as Anthropic's Messages API wants it:
 *
 *   - The first system blocks are `system`; later ones are a user's, in a trusted envelope.
 *   - The results of a round come first in the message after it, with their media.
 *   - A thought goes back as it came, with its signature or sealed, and only before what it led to:
 *     a message may not end with one. Thoughts without a signature (of other vendors) are left out:
 *     the API takes no others, and as text they would be read as something that was said.
 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "engine/vendors/internal.h"
#include "pegboard/envelope.h"

enum { DEFAULT_MAX_TOKENS = 4096 }; /* the API requires it; documented at peg_model_options */

/* ---- parts ------------------------------------------------------------------------------- */

#define ALL_WAYS (1U << PEG__MEDIA_BYTES | 1U << PEG__MEDIA_URI | 1U << PEG__MEDIA_FILE_ID)

static const char *const image_types[] = {"image/jpeg", "image/png", "image/gif", "image/webp",
                                          NULL};
static const char *const document_types[] = {"application/pdf", "text/plain", "text/markdown",
                                             "text/csv",        "text/html",  "text/xml",
                                             "text/css",        NULL};
static const struct peg__media_rules images = {
    .ways = {[PEG_MEDIA_IMAGE] = ALL_WAYS}, .types = image_types, .refuses_empty = true};
static const struct peg__media_rules documents = {
    .ways = {[PEG_MEDIA_DOCUMENT] = ALL_WAYS}, .types = document_types, .refuses_empty = true};

/* Text of whatever kind is plain text to the API. */
static peg_status put_text_source(struct peg__writer *w, const peg_media *media)
{
    PEG_CLEANUP(peg__freep) char *bytes = NULL;
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    size_t len;
    const peg_status status = peg_reader_read_all(
        peg_media_reader(media), peg__media_max(w->request->options), &bytes, &len, w->reterr);

    if (status)
        return status;
    peg__buf_as_utf8(&text, peg__strn(bytes, len));
    peg__out_cmember(&w->out, "type", "text");
    peg__out_cmember(&w->out, "media_type", "text/plain");
    peg__out_member(&w->out, "data", peg__buf_view(&text));
    peg__take_status(w, &text);
    peg__buf_free(&text);
    return PEG_OK;
}

static peg_status put_source(struct peg__writer *w, const peg_media *media, enum peg__media_way way)
{
    if (way == PEG__MEDIA_URI) {
        peg__out_cmember(&w->out, "type", "url");
        peg__out_cmember(&w->out, "url", peg_media_uri(media));
        return PEG_OK;
    }
    if (way == PEG__MEDIA_FILE_ID) {
        peg__out_cmember(&w->out, "type", "file");
        peg__out_cmember(&w->out, "file_id", peg_media_file_id(media));
        return PEG_OK;
    }
    if (strncmp(peg_media_mime_type(media), "text/", 5) == 0)
        return put_text_source(w, media);
    peg__out_cmember(&w->out, "type", "base64");
    peg__out_cmember(&w->out, "media_type", peg_safe_mime_type(peg_media_mime_type(media)));
    return peg__put_base64(w, "data", media);
}

static peg_status put_message_media(struct peg__writer *w, const peg_media *media,
                                    enum peg__media_way way)
{
    peg_status status;

    peg__open_typed(w, peg_media_kind_of(media) == PEG_MEDIA_IMAGE ? "image" : "document");
    peg__open_object(w, "source");
    status = put_source(w, media, way);
    peg__out_end_object(&w->out);
    peg__out_end_object(&w->out);
    return status;
}

static void put_message_thought(struct peg__writer *w, size_t i)
{
    const peg_block *block = w->request->history->passages[i].block;
    const peg_str signature = peg__payload_string(block, "signature");
    const peg_str sealed = peg__payload_string(block, "redacted_data");
    struct peg__out out = {.buf = &w->thoughts, .needs_comma = w->thoughts.len > 0};

    if (!signature.ptr && !sealed.ptr)
        return;
    peg__out_object(&out);
    if (signature.ptr) {
        peg__out_cmember(&out, "type", "thinking");
        peg__out_member(&out, "thinking", peg_block_text(block));
        peg__out_member(&out, "signature", signature);
    } else {
        peg__out_cmember(&out, "type", "redacted_thinking");
        peg__out_member(&out, "data", sealed);
    }
    peg__out_end_object(&out);
    peg__take_status(w, &w->thoughts);
}

/* ---- rounds ------------------------------------------------------------------------------ */

static void put_tool_use(struct peg__writer *w, const struct peg__exchange *exchange, peg_str args,
                         bool is_first)
{
    (void)is_first;
    peg__open_typed(w, "tool_use");
    peg__out_member(&w->out, "id", exchange->wire_id);
    peg__put_tool_name(w, exchange);
    peg__out_key(&w->out, "input");
    peg__out_raw(&w->out, args);
    peg__out_end_object(&w->out);
}

/* A failed result may hold nothing but text. */
static bool has_native_media(const struct peg__writer *w, const peg_record *record)
{
    if (peg__content_is_error(record))
        return false;
    for (size_t i = 0; i < peg_record_n_media(record); i++) {
        if (peg__choose_media(w, peg_record_media(record, i)) != PEG__MEDIA_TEXT)
            return true;
    }
    return false;
}

/* Text about all of it, then what can be sent itself. */
static peg_status put_media_content(struct peg__writer *w, const peg_record *record, peg_str text)
{
    peg_status status = PEG_OK;

    peg__out_array(&w->out);
    if (!peg__str_is_blank(text))
        peg__put_text_part(w, text, NULL);
    for (size_t i = 0; i < peg_record_n_media(record) && !status; i++) {
        const peg_media *media = peg_record_media(record, i);
        const enum peg__media_way way = peg__choose_media(w, media);

        if (way != PEG__MEDIA_TEXT)
            status = put_message_media(w, media, way);
    }
    peg__out_end_array(&w->out);
    return status;
}

static peg_status put_tool_result(struct peg__writer *w, const struct peg__exchange *exchange,
                                  peg_str text)
{
    peg_status status = PEG_OK;

    w->answers_calls = true;
    peg__open_typed(w, "tool_result");
    peg__out_member(&w->out, "tool_use_id", exchange->wire_id);
    peg__out_key(&w->out, "content");
    if (has_native_media(w, exchange->record))
        status = put_media_content(w, exchange->record, text);
    else
        peg__out_string(&w->out, text);
    if (peg__content_is_error(exchange->record))
        peg__put_true(w, "is_error");
    peg__out_end_object(&w->out);
    return status;
}

/* ---- the request ------------------------------------------------------------------------- */

/* Thoughts count as tokens of the answer. */
static peg_status put_max_tokens(struct peg__writer *w)
{
    const peg_model_options *options = w->request->options;
    const int64_t budget = options->thinking_tokens > 0 ? options->thinking_tokens : 0;

    if (options->max_tokens > 0 && options->max_tokens <= budget)
        return peg__fail(w->reterr, PEG_EINVAL, "E_ENGINE_CONFIG",
                         "thinking_tokens (%lld) must be less than max_tokens (%lld), which "
                         "counts thoughts too: raise max_tokens",
                         (long long)budget, (long long)options->max_tokens);
    peg__put_integer(w, "max_tokens",
                     options->max_tokens > 0                   ? options->max_tokens
                     : budget > INT64_MAX - DEFAULT_MAX_TOKENS ? INT64_MAX
                                                               : DEFAULT_MAX_TOKENS + budget);
    return PEG_OK;
}

static peg_status put_system(struct peg__writer *w, size_t n)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const peg_status status = put_max_tokens(w);

    for (size_t i = 0; i < n; i++) {
        const peg_str part = peg_block_text(w->request->history->passages[i].block);

        if (peg__str_is_blank(part))
            continue;
        if (text.len > 0)
            peg__buf_puts(&text, "\n\n");
        peg__buf_str(&text, part);
    }
    if (text.len > 0)
        peg__out_member(&w->out, "system", peg__buf_view(&text));
    peg__take_status(w, &text);
    peg__buf_free(&text);
    return status;
}

static void put_choice(struct peg__writer *w)
{
    peg__open_object(w, "tool_choice");
    peg__out_cmember(&w->out, "type", peg__must_call(w->request) ? "any" : "auto");
    if (w->request->config->settings.max_parallel == 1)
        peg__put_true(w, "disable_parallel_tool_use");
    peg__out_end_object(&w->out);
}

/*
 * The API refuses thinking together with a call that must be made, which then counts more, and a
 * budget for it while calls are answered that were made without a thought.
 */
static bool may_think(const struct peg__writer *w)
{
    if (peg__offers_tools(w->request) && peg__must_call(w->request))
        return false;
    return w->request->options->thinking_tokens <= 0 || w->role != PEG__USER || !w->answers_calls ||
           w->starts_with_thought;
}

static bool put_thinking(struct peg__writer *w)
{
    const peg_model_options *options = w->request->options;
    const bool has_budget = options->thinking_tokens > 0;
    const bool has_effort = options->reasoning && options->reasoning[0];
    const bool thinks = (has_budget || has_effort) && may_think(w);

    if (thinks) {
        peg__open_object(w, "thinking");
        peg__out_cmember(&w->out, "type", has_budget ? "enabled" : "adaptive");
        if (has_budget)
            peg__put_integer(w, "budget_tokens", options->thinking_tokens);
        peg__out_end_object(&w->out);
    }
    if (has_effort) {
        peg__open_object(w, "output_config");
        peg__out_cmember(&w->out, "effort", options->reasoning);
        peg__out_end_object(&w->out);
    }
    return thinks;
}

/* A model that thinks takes no sampling, and newer ones take only one of the two. */
static void put_message_settings(struct peg__writer *w)
{
    const peg_model_options *options = w->request->options;
    const bool thinks = put_thinking(w);

    peg__put_stop(w, "stop_sequences");
    if (!thinks && options->temperature)
        peg__put_double(w, "temperature", options->temperature);
    else if (!thinks)
        peg__put_double(w, "top_p", options->top_p);
    if (w->request->is_streaming)
        peg__put_true(w, "stream");
}

const struct peg__format peg__anthropic_format = {
    .list = "messages",
    .parts = "content",
    .model_role = "assistant",
    .is_alternating = true,
    .trims_model = true, /* else the API refuses the last message */
    .has_media_results = true,
    .media = &documents,
    .images = &images,
    .write_head = put_system,
    .text_type = "text",
    .has_model = true,
    .put_media = put_message_media,
    .put_thought = put_message_thought,
    .put_call = put_tool_use,
    .put_result = put_tool_result,
    .put_choice = put_choice,
    .put_settings = put_message_settings,
};
