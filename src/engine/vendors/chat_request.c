/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A turn as OpenAI's Chat Completions API and the servers that speak it want it:
 *
 *   - A round is one message of the assistant with all its calls, and with what the model said and
 *     thought just before them; then one message of each result, always with content; then, as a
 *     user's message, the media of the results that can be sent as such.
 *   - Thoughts go back only with calls, and only to whom they came from: under the name of the
 *     member they came in, which the block's payload tells as "wire_field".
 *   - Blank messages are left out. Media that the API does not take is told in words, and so is
 *     all media of the model's own.
 */

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "engine/vendors/alternating.h"
#include "engine/vendors/chat.h"
#include "engine/vendors/openai.h"

struct writer {
    const struct peg__request *request;
    struct peg__out out;
    peg_error *reterr;
};

static void begin_message(struct writer *w, const char *role)
{
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "role", role);
}

static void put_message(struct writer *w, const char *role, peg_str text)
{
    begin_message(w, role);
    peg__out_member(&w->out, "content", text);
    peg__out_end_object(&w->out);
}

static void put_text_part(struct writer *w, peg_str text)
{
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "type", "text");
    peg__out_member(&w->out, "text", text);
    peg__out_end_object(&w->out);
}

/* ---- media ------------------------------------------------------------------------------- */

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

static enum peg__media_way choose(const struct writer *w, const peg_media *media)
{
    return peg__media_choose(media, &rules, w->request->options);
}

static peg_status put_image(struct writer *w, const peg_media *media, enum peg__media_way way)
{
    peg_status status = PEG_OK;

    peg__out_key(&w->out, "image_url");
    peg__out_object(&w->out);
    peg__out_key(&w->out, "url");
    if (way == PEG__MEDIA_URI)
        peg__out_cstring(&w->out, peg_media_uri(media));
    else
        status = peg__openai_data_url(media, w->request->options, &w->out, w->reterr);
    if (peg_media_detail(media)[0])
        peg__out_cmember(&w->out, "detail", peg_media_detail(media));
    peg__out_end_object(&w->out);
    return status;
}

static peg_status put_audio(struct writer *w, const peg_media *media)
{
    const char *type = peg_media_mime_type(media);
    const bool is_mp3 = strcmp(type, "audio/mpeg") == 0 || strcmp(type, "audio/mp3") == 0;
    PEG_CLEANUP(peg__freep) char *base64 = NULL;
    size_t len;
    peg_status status =
        peg_media_base64(media, peg__media_max(w->request->options), &base64, &len, w->reterr);

    if (status)
        return status;
    peg__out_key(&w->out, "input_audio");
    peg__out_object(&w->out);
    peg__out_member(&w->out, "data", peg__strn(base64, len));
    peg__out_cmember(&w->out, "format", is_mp3 ? "mp3" : "wav");
    peg__out_end_object(&w->out);
    return PEG_OK;
}

static peg_status put_file(struct writer *w, const peg_media *media, enum peg__media_way way)
{
    PEG_CLEANUP(peg__freep) char *name = NULL;
    peg_status status = PEG_OK;

    peg__out_key(&w->out, "file");
    peg__out_object(&w->out);
    if (way == PEG__MEDIA_FILE_ID) {
        peg__out_cmember(&w->out, "file_id", peg_media_file_id(media));
    } else {
        status = peg_safe_filename(peg_cstr(peg_media_filename(media)), &name, w->reterr);
        if (status)
            return status;
        peg__out_cmember(&w->out, "filename", name);
        peg__out_key(&w->out, "file_data");
        status = peg__openai_data_url(media, w->request->options, &w->out, w->reterr);
    }
    peg__out_end_object(&w->out);
    return status;
}

static peg_status put_media_part(struct writer *w, const peg_media *media, enum peg__media_way way)
{
    peg_status status;

    peg__out_object(&w->out);
    switch (peg_media_kind_of(media)) {
    case PEG_MEDIA_IMAGE:
        peg__out_cmember(&w->out, "type", "image_url");
        status = put_image(w, media, way);
        break;
    case PEG_MEDIA_AUDIO:
        peg__out_cmember(&w->out, "type", "input_audio");
        status = put_audio(w, media);
        break;
    default:
        peg__out_cmember(&w->out, "type", "file");
        status = put_file(w, media, way);
    }
    peg__out_end_object(&w->out);
    return status;
}

/* Media that can be sent as it is, with its marker; nothing otherwise. */
static peg_status put_native(struct writer *w, const peg_media *media)
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
    put_text_part(w, peg__strn(marker, len));
    return put_media_part(w, media, way);
}

/* ---- messages ---------------------------------------------------------------------------- */

static peg_status put_attachment(struct writer *w, const peg_block *block, size_t i)
{
    const enum peg__media_way way = choose(w, peg_block_media(block, i));
    PEG_CLEANUP(peg__freep) char *words = NULL;
    size_t len;
    peg_status status;

    if (way != PEG__MEDIA_TEXT)
        return put_native(w, peg_block_media(block, i));
    status = peg__content_media(block, i, way, &words, &len, w->reterr);
    if (!status)
        put_text_part(w, peg__strn(words, len));
    return status;
}

static peg_status put_user(struct writer *w, const peg_block *block)
{
    const peg_str text = peg_block_text(block);
    peg_status status = PEG_OK;

    if (peg_block_n_media(block) == 0) {
        if (!peg__is_blank(text))
            put_message(w, "user", text);
        return PEG_OK;
    }
    begin_message(w, "user");
    peg__out_key(&w->out, "content");
    peg__out_array(&w->out);
    if (!peg__is_blank(text))
        put_text_part(w, text);
    for (size_t i = 0; i < peg_block_n_media(block) && !status; i++)
        status = put_attachment(w, block, i);
    peg__out_end_array(&w->out);
    peg__out_end_object(&w->out);
    return status;
}

static peg_status put_assistant(struct writer *w, const peg_block *block)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_status status = peg__openai_spoken(block, &text, w->reterr);

    if (!status && !peg__is_blank(peg__buf_view(&text)))
        put_message(w, "assistant", peg__buf_view(&text));
    peg__buf_free(&text);
    return status;
}

static bool has_native(const struct writer *w, const peg_block *block)
{
    for (size_t i = 0; i < peg_block_n_media(block); i++) {
        if (choose(w, peg_block_media(block, i)) != PEG__MEDIA_TEXT)
            return true;
    }
    return false;
}

static peg_status put_other(struct writer *w, const peg_block *block)
{
    PEG_CLEANUP(peg__freep) char *words = NULL;
    size_t len;
    peg_status status = peg__content_other(w->request, block, &words, &len, w->reterr);

    if (status || !words)
        return status;
    if (!has_native(w, block)) {
        put_message(w, "user", peg__strn(words, len));
        return PEG_OK;
    }
    begin_message(w, "user");
    peg__out_key(&w->out, "content");
    peg__out_array(&w->out);
    put_text_part(w, peg__strn(words, len));
    for (size_t i = 0; i < peg_block_n_media(block) && !status; i++)
        status = put_native(w, peg_block_media(block, i));
    peg__out_end_array(&w->out);
    peg__out_end_object(&w->out);
    return status;
}

/* ---- rounds ------------------------------------------------------------------------------- */

/* What the model said before it called: part of the same message. */
static bool goes_with_calls(const struct peg__history *history, size_t i)
{
    const peg_block *block = history->passages[i].block;

    return block && peg_block_kind_of(block) == PEG_BLOCK_ASSISTANT &&
           peg_block_n_media(block) == 0 && !peg__is_blank(peg_block_text(block)) &&
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
    const peg_str name = peg__openai_payload(thought, "wire_field");

    for (size_t i = 0; i < PEG__CHAT_THOUGHT_FIELDS; i++) {
        if (name.len > 0 && peg__str_is(name, peg__chat_thought_fields[i]))
            return peg__chat_thought_fields[i];
    }
    return NULL;
}

/* Of passages [first, end). The first name counts; there is never more than one in a reply. */
static void put_thoughts(struct writer *w, size_t first, size_t end)
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
    if (!w->out.buf->status)
        w->out.buf->status = text.status;
    peg__buf_free(&text);
}

static peg_status put_call(struct writer *w, const struct peg__exchange *exchange)
{
    PEG_CLEANUP(peg__freep) char *args = NULL;
    size_t len;
    peg_status status = peg__content_args(exchange->call, &args, &len, w->reterr);

    if (status)
        return status;
    peg__out_object(&w->out);
    peg__out_member(&w->out, "id", exchange->wire_id);
    peg__out_cmember(&w->out, "type", "function");
    peg__out_key(&w->out, "function");
    peg__out_object(&w->out);
    peg__out_member(&w->out, "name",
                    peg__names_out(w->request->names, peg_block_tool(exchange->call)));
    peg__out_member(&w->out, "arguments", peg__strn(args, len));
    peg__out_end_object(&w->out);
    peg__out_end_object(&w->out);
    return PEG_OK;
}

static peg_status put_calls(struct writer *w, size_t at)
{
    const struct peg__history *history = w->request->history;
    const struct peg__passage *round = &history->passages[at];
    const bool has_text = at > 0 && goes_with_calls(history, at - 1);
    const size_t end = at - has_text;
    size_t first = end;
    peg_status status = PEG_OK;

    while (first > 0 && is_thought(history, first - 1))
        first--;
    begin_message(w, "assistant");
    peg__out_key(&w->out, "content");
    if (has_text)
        peg__out_string(&w->out, peg_block_text(history->passages[at - 1].block));
    else
        peg__out_null(&w->out);
    put_thoughts(w, first, end);
    peg__out_key(&w->out, "tool_calls");
    peg__out_array(&w->out);
    for (size_t i = 0; i < round->n_calls && !status; i++)
        status = put_call(w, &round->calls[i]);
    peg__out_end_array(&w->out);
    peg__out_end_object(&w->out);
    return status;
}

static peg_status put_result(struct writer *w, const struct peg__exchange *exchange)
{
    PEG_CLEANUP(peg__freep) char *text = NULL;
    size_t len;
    peg_status status = peg__content_result(w->request, exchange->record, &text, &len, w->reterr);

    if (status)
        return status;
    begin_message(w, "tool");
    peg__out_member(&w->out, "tool_call_id", exchange->wire_id);
    peg__out_member(&w->out, "content", peg__strn(text, len));
    peg__out_end_object(&w->out);
    return PEG_OK;
}

/* The API takes only words in a result. The message is opened by the first media that is sent. */
static peg_status put_result_media(struct writer *w, const peg_record *record, bool *is_open)
{
    peg_status status = PEG_OK;

    for (size_t i = 0; record && i < peg_record_n_media(record) && !status; i++) {
        const peg_media *media = peg_record_media(record, i);

        if (choose(w, media) == PEG__MEDIA_TEXT)
            continue;
        if (!*is_open) {
            begin_message(w, "user");
            peg__out_key(&w->out, "content");
            peg__out_array(&w->out);
            *is_open = true;
        }
        status = put_native(w, media);
    }
    return status;
}

static peg_status put_round(struct writer *w, size_t at)
{
    const struct peg__passage *round = &w->request->history->passages[at];
    bool is_open = false;
    peg_status status = put_calls(w, at);

    for (size_t i = 0; i < round->n_calls && !status; i++)
        status = put_result(w, &round->calls[i]);
    for (size_t i = 0; i < round->n_calls && !status; i++)
        status = put_result_media(w, round->calls[i].record, &is_open);
    if (is_open) {
        peg__out_end_array(&w->out);
        peg__out_end_object(&w->out);
    }
    return status;
}

/* ---- the body ------------------------------------------------------------------------------- */

static peg_status put_passage(struct writer *w, size_t i)
{
    const struct peg__history *history = w->request->history;
    const peg_block *block = history->passages[i].block;

    if (!block)
        return put_round(w, i);
    switch (peg_block_kind_of(block)) {
    case PEG_BLOCK_SYSTEM:
        if (!peg__is_blank(peg_block_text(block)))
            put_message(w, "system", peg_block_text(block));
        return PEG_OK;
    case PEG_BLOCK_USER:
        return put_user(w, block);
    case PEG_BLOCK_ASSISTANT:
        return goes_with_calls(history, i) ? PEG_OK : put_assistant(w, block);
    case PEG_BLOCK_REASONING:
        return PEG_OK;
    default:
        return put_other(w, block);
    }
}

static void put_stop(struct writer *w, const char *const *stop)
{
    if (!stop || !stop[0] || peg__openai_reasons(w->request->options->model))
        return;
    peg__out_key(&w->out, "stop");
    peg__out_array(&w->out);
    for (; *stop; stop++)
        peg__out_cstring(&w->out, *stop);
    peg__out_end_array(&w->out);
}

/* Local servers know max_tokens, models that think take only the newer one. */
static void put_options(struct writer *w)
{
    const peg_model_options *options = w->request->options;

    if (options->max_tokens > 0) {
        peg__out_key(&w->out,
                     peg__openai_reasons(options->model) ? "max_completion_tokens" : "max_tokens");
        peg__out_integer(&w->out, options->max_tokens);
    }
    peg__openai_sampling(options, &w->out);
    put_stop(w, options->stop);
    if (options->reasoning)
        peg__out_cmember(&w->out, "reasoning_effort", options->reasoning);
    if (w->request->is_streaming) {
        peg__out_key(&w->out, "stream");
        peg__out_bool(&w->out, true);
        peg__out_key(&w->out, "stream_options");
        peg__out_raw(&w->out, peg__str("{\"include_usage\":true}"));
    }
}

peg_status peg__chat_write_body(const struct peg__request *request, struct peg__buf *out,
                                peg_error *reterr)
{
    struct writer w = {.request = request, .out = {.buf = out}, .reterr = reterr};
    peg_status status = PEG_OK;

    peg__out_object(&w.out);
    peg__out_cmember(&w.out, "model", request->options->model);
    peg__out_key(&w.out, "messages");
    peg__out_array(&w.out);
    for (size_t i = 0; i < request->history->n && !status; i++)
        status = put_passage(&w, i);
    peg__out_end_array(&w.out);
    if (!status)
        status = peg__openai_tools(request, PEG_VENDOR_OPENAI_CHAT, &w.out, reterr);
    put_options(&w);
    peg__out_end_object(&w.out);
    return status;
}
