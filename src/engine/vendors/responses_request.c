/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A turn as OpenAI's Responses API wants it, without a memory of its own on the other side:
 *
 *   - Blocks are items, in their order. A round is its calls, then their outputs, then, as a user's
 *     message, the media of the results that can be sent as such.
 *   - A thought goes back only sealed or summed up, never as plain text, and only directly before
 *     the message or the calls it led to: the API refuses a thought without its follower.
 *   - Ids are those that the vendor gave, never ours. The API has no stop sequences.
 */

#include "base/limits.h"
#include "base/text/str.h"
#include "engine/vendors/internal.h"

/* ---- parts ------------------------------------------------------------------------------- */

#define ALL_WAYS (1U << PEG__MEDIA_BYTES | 1U << PEG__MEDIA_URI | 1U << PEG__MEDIA_FILE_ID)

static const char *const types[] = {"image/png",  "image/jpeg",      "image/gif",
                                    "image/webp", "application/pdf", NULL};
static const char *const schemes[] = {"https://", "http://", "data:", NULL};
static const struct peg__media_rules rules = {
    .ways = {[PEG_MEDIA_IMAGE] = ALL_WAYS, [PEG_MEDIA_DOCUMENT] = ALL_WAYS},
    .types = types,
    .schemes = schemes,
};

static peg_status put_image(struct peg__writer *w, const peg_media *media, enum peg__media_way way)
{
    const char *detail = peg_media_detail(media);

    peg__out_cmember(&w->out, "detail", detail[0] ? detail : "auto");
    if (way == PEG__MEDIA_BYTES)
        return peg__openai_put_data_url(w, "image_url", media);
    if (way == PEG__MEDIA_FILE_ID)
        peg__out_cmember(&w->out, "file_id", peg_media_file_id(media));
    else
        peg__out_cmember(&w->out, "image_url", peg_media_uri(media));
    return PEG_OK;
}

static peg_status put_response_file(struct peg__writer *w, const peg_media *media,
                                    enum peg__media_way way)
{
    if (way == PEG__MEDIA_BYTES)
        return peg__openai_put_file_data(w, media);
    if (way == PEG__MEDIA_FILE_ID)
        peg__out_cmember(&w->out, "file_id", peg_media_file_id(media));
    else
        peg__out_cmember(&w->out, "file_url", peg_media_uri(media));
    return PEG_OK;
}

static peg_status put_response_media(struct peg__writer *w, const peg_media *media,
                                     enum peg__media_way way)
{
    const bool is_image = peg_media_kind_of(media) == PEG_MEDIA_IMAGE;
    peg_status status;

    peg__open_typed(w, is_image ? "input_image" : "input_file");
    status = is_image ? put_image(w, media, way) : put_response_file(w, media, way);
    peg__out_end_object(&w->out);
    return status;
}

/* ---- thoughts and messages ----------------------------------------------------------------- */

/* An id of the vendor's own that has the form of its kind; the API refuses all others. */
static void put_item_id(struct peg__writer *w, const peg_block *block, const char *prefix)
{
    const peg_str id = peg__payload_string(block, "item_id");

    if (id.len > 0 && peg__str_starts(id, peg__str(prefix)))
        peg__out_member(&w->out, "id", id);
}

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
    if (peg__payload_string(thought, "encrypted_content").len == 0 && !summary_of(thought))
        return false;
    next = history->passages[i + 1].block;
    return !next || (peg_block_kind_of(next) == PEG_BLOCK_ASSISTANT &&
                     (!peg__str_is_blank(peg_block_text(next)) || peg_block_n_media(next) > 0));
}

static void put_response_thought(struct peg__writer *w, size_t i)
{
    const peg_block *thought = w->request->history->passages[i].block;
    const peg_str sealed = peg__payload_string(thought, "encrypted_content");
    const peg_json *summary = summary_of(thought);

    if (!is_sent(w->request->history, i))
        return;
    peg__open_typed(w, "reasoning");
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

/* As it came, with the members that the API gave it. */
static void put_own_message(struct peg__writer *w, const peg_block *block, peg_str text)
{
    peg__open_typed(w, "message");
    put_item_id(w, block, "msg_");
    peg__out_cmember(&w->out, "role", "assistant");
    peg__out_cmember(&w->out, "status", "completed");
    peg__open_array(w, "content");
    peg__open_typed(w, "output_text");
    peg__out_member(&w->out, "text", text);
    peg__open_array(w, "annotations");
    peg__out_end_array(&w->out);
    peg__out_end_object(&w->out);
    peg__out_end_array(&w->out);
    peg__out_end_object(&w->out);
}

/* With its id only behind its thought: alone, the API would ask for the thought. */
static peg_status put_assistant(struct peg__writer *w, size_t i)
{
    const struct peg__history *history = w->request->history;
    const peg_block *block = history->passages[i].block;
    struct peg__buf buf = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const peg_status status = peg__spoken_text(block, &buf, w->reterr);
    const peg_str text = peg__buf_view(&buf);

    if (!status && !peg__str_is_blank(text)) {
        if (i > 0 && is_sent(history, i - 1) &&
            peg__str_starts(peg__payload_string(block, "item_id"), peg__str("msg_")))
            put_own_message(w, block, text);
        else
            peg__put_string_message(w, PEG__MODEL, text);
    }
    peg__buf_free(&buf);
    return status;
}

/* ---- rounds ------------------------------------------------------------------------------ */

static void put_function_call(struct peg__writer *w, const struct peg__exchange *exchange,
                              peg_str args, bool is_first)
{
    (void)is_first;
    peg__open_typed(w, "function_call");
    put_item_id(w, exchange->call, "fc_");
    peg__out_member(&w->out, "call_id", exchange->wire_id);
    peg__put_tool_name(w, exchange);
    peg__out_member(&w->out, "arguments", args);
    peg__out_end_object(&w->out);
}

static peg_status put_output(struct peg__writer *w, const struct peg__exchange *exchange,
                             peg_str text)
{
    peg__open_typed(w, "function_call_output");
    peg__out_member(&w->out, "call_id", exchange->wire_id);
    peg__out_member(&w->out, "output", text);
    peg__out_end_object(&w->out);
    return PEG_OK;
}

/* ---- the request ------------------------------------------------------------------------- */

static void put_response_settings(struct peg__writer *w)
{
    const peg_model_options *options = w->request->options;

    if (options->max_tokens > 0)
        peg__put_integer(w, "max_output_tokens", options->max_tokens);
    peg__openai_put_sampling(w);
    if (options->reasoning) {
        peg__open_object(w, "reasoning");
        peg__out_cmember(&w->out, "effort", options->reasoning);
        peg__out_end_object(&w->out);
    }
    if (!peg__openai_never_reasons(options->model)) {
        peg__out_key(&w->out, "include");
        peg__out_raw(&w->out, peg__str("[\"reasoning.encrypted_content\"]"));
    }
    peg__out_key(&w->out, "store");
    peg__out_bool(&w->out, false);
    if (w->request->is_streaming)
        peg__put_true(w, "stream");
}

const struct peg__format peg__responses_format = {
    .list = "input",
    .parts = "content",
    .model_role = "assistant",
    .media = &rules,
    .text_type = "input_text",
    .has_model = true,
    .put_media = put_response_media,
    .put_thought = put_response_thought,
    .put_assistant = put_assistant,
    .put_call = put_function_call,
    .put_result = put_output,
    .put_choice = peg__openai_put_choice,
    .put_settings = put_response_settings,
};
