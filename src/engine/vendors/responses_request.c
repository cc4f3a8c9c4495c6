/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A turn as OpenAI's Responses API wants it, without a memory of its own on the other side:
 *
 *   - Blocks are items, in their order. A round is its calls, then their outputs, then, as a user's
 *     message, the media of the results that can be sent as such.
 *   - A thought goes back only sealed or summed up, never as plain text, and only directly before
 *     the message or the calls it led to: the API refuses a thought without its follower.
 *   - Ids are those that the provider gave, never ours.
 *   - Blank messages are left out. Media that the API does not take is told in words, and so is
 *     all media of the model's own. The API has no stop sequences.
 */

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "engine/vendors/alternating.h"
#include "engine/vendors/openai.h"
#include "engine/vendors/responses.h"

struct writer {
    const struct peg__request *request;
    struct peg__out out;
    peg_error *reterr;
};

/* ---- messages ---------------------------------------------------------------------------- */

static void begin_message(struct writer *w, const char *role)
{
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "role", role);
    peg__out_key(&w->out, "content");
    peg__out_array(&w->out);
}

static void end_message(struct writer *w)
{
    peg__out_end_array(&w->out);
    peg__out_end_object(&w->out);
}

static void put_text_part(struct writer *w, peg_str text)
{
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "type", "input_text");
    peg__out_member(&w->out, "text", text);
    peg__out_end_object(&w->out);
}

static void put_message(struct writer *w, const char *role, peg_str text)
{
    begin_message(w, role);
    put_text_part(w, text);
    end_message(w);
}

/* An id of the provider's own that has the form of its kind; the API refuses all others. */
static void put_item_id(struct writer *w, const peg_block *block, const char *prefix)
{
    const peg_str id = peg__openai_payload(block, "item_id");

    if (id.len > 0 && peg__str_starts(id, peg__str(prefix)))
        peg__out_member(&w->out, "id", id);
}

/* ---- media ------------------------------------------------------------------------------- */

#define ALL_WAYS (1U << PEG__MEDIA_BYTES | 1U << PEG__MEDIA_URI | 1U << PEG__MEDIA_FILE_ID)

static const char *const types[] = {"image/png",  "image/jpeg",      "image/gif",
                                    "image/webp", "application/pdf", NULL};
static const char *const schemes[] = {"https://", "http://", "data:", NULL};
static const struct peg__media_rules rules = {
    .ways = {[PEG_MEDIA_IMAGE] = ALL_WAYS, [PEG_MEDIA_DOCUMENT] = ALL_WAYS},
    .types = types,
    .schemes = schemes,
};

static enum peg__media_way choose(const struct writer *w, const peg_media *media)
{
    return peg__media_choose(media, &rules, w->request->options);
}

static peg_status put_image(struct writer *w, const peg_media *media, enum peg__media_way way)
{
    const char *detail = peg_media_detail(media);

    peg__out_cmember(&w->out, "type", "input_image");
    peg__out_cmember(&w->out, "detail", detail[0] ? detail : "auto");
    if (way == PEG__MEDIA_FILE_ID) {
        peg__out_cmember(&w->out, "file_id", peg_media_file_id(media));
        return PEG_OK;
    }
    peg__out_key(&w->out, "image_url");
    if (way == PEG__MEDIA_BYTES)
        return peg__openai_data_url(media, w->request->options, &w->out, w->reterr);
    peg__out_cstring(&w->out, peg_media_uri(media));
    return PEG_OK;
}

static peg_status put_file(struct writer *w, const peg_media *media, enum peg__media_way way)
{
    PEG_CLEANUP(peg__freep) char *name = NULL;
    peg_status status;

    peg__out_cmember(&w->out, "type", "input_file");
    if (way == PEG__MEDIA_FILE_ID) {
        peg__out_cmember(&w->out, "file_id", peg_media_file_id(media));
        return PEG_OK;
    }
    if (way == PEG__MEDIA_URI) {
        peg__out_cmember(&w->out, "file_url", peg_media_uri(media));
        return PEG_OK;
    }
    status = peg_safe_filename(peg_cstr(peg_media_filename(media)), &name, w->reterr);
    if (status)
        return status;
    peg__out_cmember(&w->out, "filename", name);
    peg__out_key(&w->out, "file_data");
    return peg__openai_data_url(media, w->request->options, &w->out, w->reterr);
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
    peg__out_object(&w->out);
    if (peg_media_kind_of(media) == PEG_MEDIA_IMAGE)
        status = put_image(w, media, way);
    else
        status = put_file(w, media, way);
    peg__out_end_object(&w->out);
    return status;
}

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

/* ---- blocks ------------------------------------------------------------------------------ */

static peg_status put_user(struct writer *w, const peg_block *block)
{
    peg_status status = PEG_OK;

    if (peg__is_blank(peg_block_text(block)) && peg_block_n_media(block) == 0)
        return PEG_OK;
    begin_message(w, "user");
    if (!peg__is_blank(peg_block_text(block)))
        put_text_part(w, peg_block_text(block));
    for (size_t i = 0; i < peg_block_n_media(block) && !status; i++)
        status = put_attachment(w, block, i);
    end_message(w);
    return status;
}

static peg_status put_other(struct writer *w, const peg_block *block)
{
    PEG_CLEANUP(peg__freep) char *words = NULL;
    size_t len;
    peg_status status = peg__content_other(w->request, block, &words, &len, w->reterr);

    if (status || !words)
        return status;
    begin_message(w, "user");
    put_text_part(w, peg__strn(words, len));
    for (size_t i = 0; i < peg_block_n_media(block) && !status; i++)
        status = put_native(w, peg_block_media(block, i));
    end_message(w);
    return status;
}

/* As it came, with the members that the API gave it. */
static void put_own_message(struct writer *w, const peg_block *block, peg_str text)
{
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "type", "message");
    put_item_id(w, block, "msg_");
    peg__out_cmember(&w->out, "role", "assistant");
    peg__out_cmember(&w->out, "status", "completed");
    peg__out_key(&w->out, "content");
    peg__out_array(&w->out);
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "type", "output_text");
    peg__out_member(&w->out, "text", text);
    peg__out_key(&w->out, "annotations");
    peg__out_array(&w->out);
    peg__out_end_array(&w->out);
    peg__out_end_object(&w->out);
    end_message(w);
}

static void put_said(struct writer *w, peg_str text)
{
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "role", "assistant");
    peg__out_member(&w->out, "content", text);
    peg__out_end_object(&w->out);
}

/* With its id only behind its thought: alone, the API would ask for the thought. */
static peg_status put_assistant(struct writer *w, const peg_block *block, bool is_behind_thought)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_status status = peg__openai_spoken(block, &text, w->reterr);
    const peg_str words = peg__buf_view(&text);

    if (!status && !peg__is_blank(words)) {
        if (is_behind_thought &&
            peg__str_starts(peg__openai_payload(block, "item_id"), peg__str("msg_")))
            put_own_message(w, block, words);
        else
            put_said(w, words);
    }
    peg__buf_free(&text);
    return status;
}

/* ---- thoughts ---------------------------------------------------------------------------- */

static const peg_json *summary_of(const peg_block *thought)
{
    const peg_json *payload = peg_block_payload(thought);
    const peg_json *summary = payload ? peg_json_get(payload, "summary") : NULL;

    return summary && peg_json_kind_of(summary) == PEG_JSON_ARRAY && peg_json_len(summary) > 0
               ? summary
               : NULL;
}

/* Whether the thought at a place is sent: it can be, and what it led to follows. */
static bool is_sent(const struct peg__history *history, size_t i)
{
    const peg_block *thought = history->passages[i].block;
    const peg_block *next;

    if (!thought || peg_block_kind_of(thought) != PEG_BLOCK_REASONING || i + 1 >= history->n)
        return false;
    if (!peg__openai_payload(thought, "encrypted_content").ptr && !summary_of(thought))
        return false;
    next = history->passages[i + 1].block;
    return !next || (peg_block_kind_of(next) == PEG_BLOCK_ASSISTANT &&
                     (!peg__is_blank(peg_block_text(next)) || peg_block_n_media(next) > 0));
}

static void put_thought(struct writer *w, const peg_block *thought)
{
    const peg_str sealed = peg__openai_payload(thought, "encrypted_content");
    const peg_json *summary = summary_of(thought);

    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "type", "reasoning");
    put_item_id(w, thought, "rs_");
    peg__out_key(&w->out, "summary");
    if (summary)
        peg__out_value(&w->out, summary);
    else
        peg__out_raw(&w->out, peg__str("[]"));
    if (sealed.len > 0)
        peg__out_member(&w->out, "encrypted_content", sealed);
    peg__out_end_object(&w->out);
}

/* ---- rounds ------------------------------------------------------------------------------- */

static peg_status put_call(struct writer *w, const struct peg__exchange *exchange)
{
    PEG_CLEANUP(peg__freep) char *args = NULL;
    size_t len;
    peg_status status = peg__content_args(exchange->call, &args, &len, w->reterr);

    if (status)
        return status;
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "type", "function_call");
    put_item_id(w, exchange->call, "fc_");
    peg__out_member(&w->out, "call_id", exchange->wire_id);
    peg__out_member(&w->out, "name",
                    peg__names_out(w->request->names, peg_block_tool(exchange->call)));
    peg__out_member(&w->out, "arguments", peg__strn(args, len));
    peg__out_end_object(&w->out);
    return PEG_OK;
}

static peg_status put_output(struct writer *w, const struct peg__exchange *exchange)
{
    PEG_CLEANUP(peg__freep) char *text = NULL;
    size_t len;
    peg_status status = peg__content_result(w->request, exchange->record, &text, &len, w->reterr);

    if (status)
        return status;
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "type", "function_call_output");
    peg__out_member(&w->out, "call_id", exchange->wire_id);
    peg__out_member(&w->out, "output", peg__strn(text, len));
    peg__out_end_object(&w->out);
    return PEG_OK;
}

/* The message is opened by the first media that is sent. */
static peg_status put_output_media(struct writer *w, const peg_record *record, bool *is_open)
{
    peg_status status = PEG_OK;

    for (size_t i = 0; record && i < peg_record_n_media(record) && !status; i++) {
        const peg_media *media = peg_record_media(record, i);

        if (choose(w, media) == PEG__MEDIA_TEXT)
            continue;
        if (!*is_open)
            begin_message(w, "user");
        *is_open = true;
        status = put_native(w, media);
    }
    return status;
}

static peg_status put_round(struct writer *w, const struct peg__passage *round)
{
    bool is_open = false;
    peg_status status = PEG_OK;

    for (size_t i = 0; i < round->n_calls && !status; i++)
        status = put_call(w, &round->calls[i]);
    for (size_t i = 0; i < round->n_calls && !status; i++)
        status = put_output(w, &round->calls[i]);
    for (size_t i = 0; i < round->n_calls && !status; i++)
        status = put_output_media(w, round->calls[i].record, &is_open);
    if (is_open)
        end_message(w);
    return status;
}

/* ---- the body ------------------------------------------------------------------------------- */

static peg_status put_passage(struct writer *w, size_t i)
{
    const struct peg__history *history = w->request->history;
    const peg_block *block = history->passages[i].block;

    if (!block)
        return put_round(w, &history->passages[i]);
    switch (peg_block_kind_of(block)) {
    case PEG_BLOCK_SYSTEM:
        if (!peg__is_blank(peg_block_text(block)))
            put_message(w, "system", peg_block_text(block));
        return PEG_OK;
    case PEG_BLOCK_USER:
        return put_user(w, block);
    case PEG_BLOCK_ASSISTANT:
        return put_assistant(w, block, i > 0 && is_sent(history, i - 1));
    case PEG_BLOCK_REASONING:
        if (is_sent(history, i))
            put_thought(w, block);
        return PEG_OK;
    default:
        return put_other(w, block);
    }
}

static void put_options(struct writer *w)
{
    const peg_model_options *options = w->request->options;

    if (options->max_tokens > 0) {
        peg__out_key(&w->out, "max_output_tokens");
        peg__out_integer(&w->out, options->max_tokens);
    }
    peg__openai_sampling(options, &w->out);
    if (options->reasoning) {
        peg__out_key(&w->out, "reasoning");
        peg__out_object(&w->out);
        peg__out_cmember(&w->out, "effort", options->reasoning);
        peg__out_end_object(&w->out);
    }
    if (!peg__openai_never_reasons(options->model)) {
        peg__out_key(&w->out, "include");
        peg__out_raw(&w->out, peg__str("[\"reasoning.encrypted_content\"]"));
    }
    peg__out_key(&w->out, "store");
    peg__out_bool(&w->out, false);
    if (w->request->is_streaming) {
        peg__out_key(&w->out, "stream");
        peg__out_bool(&w->out, true);
    }
}

peg_status peg__responses_write_body(const struct peg__request *request, struct peg__buf *out,
                                     peg_error *reterr)
{
    struct writer w = {.request = request, .out = {.buf = out}, .reterr = reterr};
    peg_status status = PEG_OK;

    peg__out_object(&w.out);
    peg__out_cmember(&w.out, "model", request->options->model);
    peg__out_key(&w.out, "input");
    peg__out_array(&w.out);
    for (size_t i = 0; i < request->history->n && !status; i++)
        status = put_passage(&w, i);
    peg__out_end_array(&w.out);
    if (!status)
        status = peg__openai_tools(request, PEG_VENDOR_OPENAI_RESPONSES, &w.out, reterr);
    put_options(&w);
    peg__out_end_object(&w.out);
    return status;
}
