/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A turn as OpenAI's Chat Completions API and the servers that speak it want it:
 *
 *   - A round is one message of the assistant with all its calls, and with its text and thoughts
 *     just before them; then one message of each result, always with content; then, as a user's
 *     message, the media of the results that can be sent as such.
 *   - Thoughts go back only with calls, and only to the server they came from: under the name of
 *     the member they came in, which the block's payload has as "wire_field".
 */

#include <string.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "engine/vendors/internal.h"

/* ---- parts ------------------------------------------------------------------------------- */

static const char *const types[] = {"image/png",       "image/jpeg",  "image/gif",  "image/webp",
                                    "audio/wav",       "audio/x-wav", "audio/wave", "audio/mpeg",
                                    "application/pdf", "audio/mp3",   NULL};
static const char *const schemes[] = {"https://", "http://", "data:", NULL};
static const struct peg__media_rules rules = {
    .ways = {[PEG_MEDIA_IMAGE] = 1U << PEG__MEDIA_BYTES | 1U << PEG__MEDIA_URI,
             [PEG_MEDIA_AUDIO] = 1U << PEG__MEDIA_BYTES,
             [PEG_MEDIA_DOCUMENT] = 1U << PEG__MEDIA_BYTES | 1U << PEG__MEDIA_FILE_ID},
    .types = types,
    .schemes = schemes,
};

static peg_status put_image(struct peg__writer *w, const peg_media *media, enum peg__media_way way)
{
    peg_status status = PEG_OK;

    if (way == PEG__MEDIA_URI)
        peg__out_cmember(&w->out, "url", peg_media_uri(media));
    else
        status = peg__openai_put_data_url(w, "url", media);
    if (peg_media_detail(media)[0])
        peg__out_cmember(&w->out, "detail", peg_media_detail(media));
    return status;
}

static peg_status put_audio(struct peg__writer *w, const peg_media *media)
{
    const char *type = peg_media_mime_type(media);
    const bool is_mp3 = strcmp(type, "audio/mpeg") == 0 || strcmp(type, "audio/mp3") == 0;
    const peg_status status = peg__put_base64(w, "data", media);

    peg__out_cmember(&w->out, "format", is_mp3 ? "mp3" : "wav");
    return status;
}

static peg_status put_chat_file(struct peg__writer *w, const peg_media *media,
                                enum peg__media_way way)
{
    if (way != PEG__MEDIA_FILE_ID)
        return peg__openai_put_file_data(w, media);
    peg__out_cmember(&w->out, "file_id", peg_media_file_id(media));
    return PEG_OK;
}

static peg_status put_chat_media(struct peg__writer *w, const peg_media *media,
                                 enum peg__media_way way)
{
    const peg_media_kind kind = peg_media_kind_of(media);
    const char *type = kind == PEG_MEDIA_IMAGE   ? "image_url"
                       : kind == PEG_MEDIA_AUDIO ? "input_audio"
                                                 : "file";
    peg_status status;

    peg__open_typed(w, type);
    peg__open_object(w, type);
    if (kind == PEG_MEDIA_IMAGE)
        status = put_image(w, media, way);
    else if (kind == PEG_MEDIA_AUDIO)
        status = put_audio(w, media);
    else
        status = put_chat_file(w, media, way);
    peg__out_end_object(&w->out);
    peg__out_end_object(&w->out);
    return status;
}

/* ---- rounds ------------------------------------------------------------------------------ */

/* What the model said before it called: part of the same message. */
static bool goes_with_calls(const struct peg__history *history, size_t i)
{
    const peg_block *block = history->passages[i].block;

    return block && peg_block_kind_of(block) == PEG_BLOCK_ASSISTANT &&
           peg_block_n_media(block) == 0 && !peg__str_is_blank(peg_block_text(block)) &&
           i + 1 < history->n && !history->passages[i + 1].block;
}

static bool is_thought(const struct peg__history *history, size_t i)
{
    const peg_block *block = history->passages[i].block;

    return block && peg_block_kind_of(block) == PEG_BLOCK_REASONING;
}

/* Only names that replies have: a file may say anything. */
static const char *wire_field(const peg_block *thought)
{
    const peg_str name = peg__payload_string(thought, "wire_field");

    for (size_t i = 0; i < PEG__CHAT_THOUGHT_FIELDS; i++) {
        if (peg__str_is(name, peg__chat_thought_fields[i]))
            return peg__chat_thought_fields[i];
    }
    return NULL;
}

/* Of passages [first, end). The first name counts; there is never more than one in a reply. */
static void put_thoughts(struct peg__writer *w, size_t first, size_t end)
{
    const struct peg__passage *passages = w->request->history->passages;
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const char *field = NULL;

    for (size_t i = first; i < end; i++) {
        const char *name = wire_field(passages[i].block);

        if (!name || (field && strcmp(name, field) != 0))
            continue;
        if (text.len > 0)
            peg__buf_putc(&text, '\n');
        peg__buf_str(&text, peg_block_text(passages[i].block));
        field = name;
    }
    if (text.len > 0)
        peg__out_member(&w->out, field, peg__buf_view(&text));
    peg__take_status(w, &text);
    peg__buf_free(&text);
}

static peg_status put_assistant(struct peg__writer *w, size_t i)
{
    const struct peg__history *history = w->request->history;
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_status status;

    if (goes_with_calls(history, i))
        return PEG_OK;
    status = peg__spoken_text(history->passages[i].block, &text, w->reterr);
    if (!status && !peg__str_is_blank(peg__buf_view(&text)))
        peg__put_string_message(w, PEG__MODEL, peg__buf_view(&text));
    peg__buf_free(&text);
    return status;
}

static void begin_calls(struct peg__writer *w, size_t at)
{
    const struct peg__history *history = w->request->history;
    const bool has_text = at > 0 && goes_with_calls(history, at - 1);
    const size_t end = at - has_text;
    size_t first = end;

    while (first > 0 && is_thought(history, first - 1))
        first--;
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "role", "assistant");
    peg__out_key(&w->out, "content");
    if (has_text)
        peg__out_string(&w->out, peg_block_text(history->passages[at - 1].block));
    else
        peg__out_null(&w->out);
    put_thoughts(w, first, end);
    peg__open_array(w, "tool_calls");
}

static void put_tool_call(struct peg__writer *w, const struct peg__exchange *exchange, peg_str args,
                          bool is_first)
{
    (void)is_first;
    peg__out_object(&w->out);
    peg__out_member(&w->out, "id", exchange->wire_id);
    peg__out_cmember(&w->out, "type", "function");
    peg__open_object(w, "function");
    peg__put_tool_name(w, exchange);
    peg__out_member(&w->out, "arguments", args);
    peg__out_end_object(&w->out);
    peg__out_end_object(&w->out);
}

static peg_status put_tool_message(struct peg__writer *w, const struct peg__exchange *exchange,
                                   peg_str text)
{
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "role", "tool");
    peg__out_member(&w->out, "tool_call_id", exchange->wire_id);
    peg__out_member(&w->out, "content", text);
    peg__out_end_object(&w->out);
    return PEG_OK;
}

/* ---- the request ------------------------------------------------------------------------- */

/* Local servers know max_tokens, models that think take only the newer one, and no stop. */
static void put_chat_settings(struct peg__writer *w)
{
    const peg_model_options *options = w->request->options;
    const bool thinks = peg__openai_reasons(options->model);

    if (options->max_tokens > 0)
        peg__put_integer(w, thinks ? "max_completion_tokens" : "max_tokens", options->max_tokens);
    peg__openai_put_sampling(w);
    if (!thinks)
        peg__put_stop(w, "stop");
    if (options->reasoning)
        peg__out_cmember(&w->out, "reasoning_effort", options->reasoning);
    if (w->request->is_streaming) {
        peg__put_true(w, "stream");
        peg__out_key(&w->out, "stream_options");
        peg__out_raw(&w->out, peg__str("{\"include_usage\":true}"));
    }
}

const struct peg__format peg__chat_format = {
    .list = "messages",
    .parts = "content",
    .model_role = "assistant",
    .has_string_parts = true,
    .media = &rules,
    .text_type = "text",
    .has_model = true,
    .put_media = put_chat_media,
    .put_assistant = put_assistant,
    .begin_calls = begin_calls,
    .put_call = put_tool_call,
    .put_result = put_tool_message,
    .put_choice = peg__openai_put_choice,
    .put_settings = put_chat_settings,
};
