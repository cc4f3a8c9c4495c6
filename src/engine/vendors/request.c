/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The skeleton of a request: one walk over the passages of a turn; a vendor's format writes what is
 * its own.
 *
 *   peg__wire_write_body -> put_passage -> put_message     a user's, a model's
 *                                       -> put_other       later system blocks, all other blocks
 *                                       -> put_round       calls, results, media of results
 *                        -> put_tools
 *
 * Two shapes: in an alternating conversation (Anthropic, Gemini) blocks of one side are one
 * message, the user's is first, and the system stands apart; else (OpenAI) a block is a message.
 * Nothing blank is ever sent. Media that a vendor does not take is described in text, and so is all
 * media of the model's own.
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "engine/vendors/internal.h"
#include "pegboard/envelope.h"

/* What a user is made to say where the model speaks first. */
static const char opening[] = "(The conversation begins with the assistant.)";

/* ---- messages ---------------------------------------------------------------------------- */

static const char *role_name(const struct peg__writer *w, enum peg__role role)
{
    if (role == PEG__MODEL)
        return w->format->model_role;
    return role == PEG__USER ? "user" : "system";
}

static void begin_message(struct peg__writer *w, enum peg__role role)
{
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "role", role_name(w, role));
    peg__open_array(w, w->format->parts);
    w->role = role;
    if (role == PEG__MODEL)
        w->starts_with_thought = w->thoughts.len > 0;
    else
        w->answers_calls = false;
}

static void end_message(struct peg__writer *w)
{
    if (w->role == PEG__NO_ROLE)
        return;
    peg__out_end_array(&w->out);
    peg__out_end_object(&w->out);
}

void peg__put_text_part(struct peg__writer *w, peg_str text, const peg_block *block)
{
    if (!w->format->text_type) {
        w->format->put_text(w, text, block);
        return;
    }
    peg__open_typed(w, w->format->text_type);
    peg__out_member(&w->out, "text", text);
    peg__out_end_object(&w->out);
}

void peg__speak_as(struct peg__writer *w, enum peg__role role)
{
    if (role != PEG__MODEL)
        peg__buf_clear(&w->thoughts); /* they led to nothing */
    if (w->role == PEG__NO_ROLE && role == PEG__MODEL && w->format->is_alternating) {
        begin_message(w, PEG__USER);
        peg__put_text_part(w, peg__str(opening), NULL);
    }
    if (w->role != role) {
        end_message(w);
        begin_message(w, role);
    }
    if (w->thoughts.len > 0)
        peg__out_raw(&w->out, peg__buf_view(&w->thoughts));
    peg__buf_clear(&w->thoughts);
}

void peg__put_string_message(struct peg__writer *w, enum peg__role role, peg_str text)
{
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "role", role_name(w, role));
    peg__out_member(&w->out, w->format->parts, text);
    peg__out_end_object(&w->out);
}

static void put_role_text(struct peg__writer *w, enum peg__role role, peg_str text,
                          const peg_block *block)
{
    if (role == PEG__MODEL && w->format->trims_model)
        text = peg__trim_end(text);
    if (peg__str_is_blank(text))
        return;
    peg__speak_as(w, role);
    peg__put_text_part(w, text, block);
}

static void put_text_message(struct peg__writer *w, enum peg__role role, peg_str text,
                             const peg_block *block)
{
    if (!w->format->has_string_parts)
        put_role_text(w, role, text, block);
    else if (!peg__str_is_blank(text))
        peg__put_string_message(w, role, text);
}

/* ---- media ------------------------------------------------------------------------------- */

enum peg__media_way peg__choose_media(const struct peg__writer *w, const peg_media *media)
{
    const bool is_image = peg_media_kind_of(media) == PEG_MEDIA_IMAGE;

    return peg__media_choose(media,
                             is_image && w->format->images ? w->format->images : w->format->media,
                             w->request->options);
}

peg_status peg__put_base64(struct peg__writer *w, const char *name, const peg_media *media)
{
    PEG_CLEANUP(peg__freep) char *text = NULL;
    size_t len;
    const peg_status status =
        peg_media_base64(media, peg__media_max(w->request->options), &text, &len, w->reterr);

    if (!status)
        peg__out_member(&w->out, name, peg__strn(text, len));
    return status;
}

static peg_status put_attachment(struct peg__writer *w, enum peg__role role, const peg_block *block,
                                 size_t i)
{
    const peg_media *media = peg_block_media(block, i);
    const enum peg__media_way way =
        role == PEG__USER ? peg__choose_media(w, media) : PEG__MEDIA_TEXT;
    PEG_CLEANUP(peg__freep) char *text = NULL;
    size_t len;
    const peg_status status = peg__content_media(block, i, way, &text, &len, w->reterr);

    if (status)
        return status;
    put_role_text(w, role, peg__strn(text, len), NULL);
    return way == PEG__MEDIA_TEXT ? PEG_OK : w->format->put_media(w, media, way);
}

/* Media that is described elsewhere: with its marker, if it can be sent. */
static peg_status put_native(struct peg__writer *w, const peg_media *media)
{
    const enum peg__media_way way = peg__choose_media(w, media);
    PEG_CLEANUP(peg__freep) char *marker = NULL;
    size_t len;
    peg_status status;

    if (way == PEG__MEDIA_TEXT)
        return PEG_OK;
    status = peg_render_media_marker(media, &marker, &len, w->reterr);
    if (status)
        return status;
    put_role_text(w, PEG__USER, peg__strn(marker, len), NULL);
    return w->format->put_media(w, media, way);
}

/* ---- blocks ------------------------------------------------------------------------------ */

static peg_status put_message(struct peg__writer *w, enum peg__role role, const peg_block *block)
{
    peg_status status = PEG_OK;

    if (peg_block_n_media(block) == 0) {
        put_text_message(w, role, peg_block_text(block), block);
        return PEG_OK;
    }
    put_role_text(w, role, peg_block_text(block), block);
    for (size_t i = 0; i < peg_block_n_media(block) && !status; i++)
        status = put_attachment(w, role, block, i);
    return status;
}

peg_status peg__spoken_text(const peg_block *block, struct peg__buf *out, peg_error *reterr)
{
    if (!peg__str_is_blank(peg_block_text(block)))
        peg__buf_str(out, peg_block_text(block));
    for (size_t i = 0; i < peg_block_n_media(block); i++) {
        PEG_CLEANUP(peg__freep) char *text = NULL;
        size_t len;
        const peg_status status =
            peg__content_media(block, i, PEG__MEDIA_TEXT, &text, &len, reterr);

        if (status)
            return status;
        if (out->len > 0)
            peg__buf_puts(out, "\n\n");
        peg__buf_add(out, text, len);
    }
    return out->status ? peg__fail_nomem(reterr) : PEG_OK;
}

static bool has_native(const struct peg__writer *w, const peg_block *block)
{
    for (size_t i = 0; i < peg_block_n_media(block); i++) {
        if (peg__choose_media(w, peg_block_media(block, i)) != PEG__MEDIA_TEXT)
            return true;
    }
    return false;
}

/* As a user's. An alternating conversation describes media of such blocks, and no more. */
static peg_status put_other(struct peg__writer *w, const peg_block *block)
{
    const bool is_system = peg_block_kind_of(block) == PEG_BLOCK_SYSTEM;
    PEG_CLEANUP(peg__freep) char *text = NULL;
    size_t len = 0;
    peg_status status = is_system ? peg__content_system(block, &text, &len, w->reterr)
                                  : peg__content_other(w->request, block, &text, &len, w->reterr);

    if (status || !text)
        return status;
    if (w->format->is_alternating || !has_native(w, block)) {
        put_text_message(w, PEG__USER, peg__strn(text, len), NULL);
        return PEG_OK;
    }
    put_role_text(w, PEG__USER, peg__strn(text, len), NULL);
    for (size_t i = 0; i < peg_block_n_media(block) && !status; i++)
        status = put_native(w, peg_block_media(block, i));
    return status;
}

static peg_status put_single_block(struct peg__writer *w, const peg_block *block, size_t i)
{
    switch (peg_block_kind_of(block)) {
    case PEG_BLOCK_SYSTEM:
        if (w->format->is_alternating)
            return put_other(w, block);
        put_text_message(w, PEG__SYSTEM, peg_block_text(block), block);
        return PEG_OK;
    case PEG_BLOCK_USER:
        return put_message(w, PEG__USER, block);
    case PEG_BLOCK_ASSISTANT:
        return w->format->put_assistant ? w->format->put_assistant(w, i)
                                        : put_message(w, PEG__MODEL, block);
    case PEG_BLOCK_REASONING:
        if (w->format->put_thought)
            w->format->put_thought(w, i);
        return PEG_OK;
    default:
        return put_other(w, block);
    }
}

/* ---- rounds ------------------------------------------------------------------------------ */

static peg_status put_call(struct peg__writer *w, const struct peg__exchange *exchange,
                           bool is_first)
{
    PEG_CLEANUP(peg__freep) char *args = NULL;
    size_t len;
    const peg_status status = peg__content_args(exchange->call, &args, &len, w->reterr);

    if (status)
        return status;
    if (w->format->is_alternating)
        peg__speak_as(w, PEG__MODEL);
    w->format->put_call(w, exchange, peg__strn(args, len), is_first);
    return PEG_OK;
}

static peg_status put_calls(struct peg__writer *w, const struct peg__passage *round, size_t at)
{
    peg_status status = PEG_OK;

    if (w->format->begin_calls)
        w->format->begin_calls(w, at);
    for (size_t i = 0; i < round->n_calls && !status; i++)
        status = put_call(w, &round->calls[i], i == 0);
    if (w->format->begin_calls) {
        peg__out_end_array(&w->out);
        peg__out_end_object(&w->out);
    }
    return status;
}

static peg_status put_result(struct peg__writer *w, const struct peg__exchange *exchange)
{
    PEG_CLEANUP(peg__freep) char *text = NULL;
    size_t len;
    const peg_status status =
        peg__content_result(w->request, exchange->record, &text, &len, w->reterr);

    if (status)
        return status;
    if (w->format->is_alternating)
        peg__speak_as(w, PEG__USER);
    return w->format->put_result(w, exchange, peg__strn(text, len));
}

static peg_status put_result_media(struct peg__writer *w, const peg_record *record)
{
    peg_status status = PEG_OK;

    for (size_t i = 0; record && i < peg_record_n_media(record) && !status; i++)
        status = put_native(w, peg_record_media(record, i));
    return status;
}

/* Results come first after their calls; media of all of them behind, as a user's. */
static peg_status put_round(struct peg__writer *w, const struct peg__passage *round, size_t at)
{
    peg_status status = put_calls(w, round, at);

    for (size_t i = 0; i < round->n_calls && !status; i++)
        status = put_result(w, &round->calls[i]);
    for (size_t i = 0; i < round->n_calls && !status && !w->format->has_media_results; i++)
        status = put_result_media(w, round->calls[i].record);
    return status;
}

static peg_status put_passage(struct peg__writer *w, size_t i)
{
    const struct peg__passage *passage = &w->request->history->passages[i];
    const peg_status status =
        passage->block ? put_single_block(w, passage->block, i) : put_round(w, passage, i);

    if (!w->format->is_alternating) {
        end_message(w);
        w->role = PEG__NO_ROLE;
    }
    return status;
}

/* ---- tools and settings -------------------------------------------------------------------- */

bool peg__must_call(const struct peg__request *request)
{
    if (request->config->choice != PEG_CHOICE_REQUIRED)
        return false;
    for (size_t i = request->history->n; i > 0; i--) {
        const struct peg__passage *passage = &request->history->passages[i - 1];

        if (!passage->block)
            return false;
        if (peg_block_kind_of(passage->block) == PEG_BLOCK_USER)
            return true;
    }
    return true;
}

static peg_status offer_tools(struct peg__writer *w, peg_vendor vendor)
{
    const struct peg__request *request = w->request;
    const peg_definitions_options options = {PEG_DEFINITIONS_OPTIONS_INIT, .vendor = vendor,
                                             .strict = request->options->strict,
                                             .json_schema = request->options->json_schema};
    peg_status status;

    if (!peg__offers_tools(request))
        return PEG_OK;
    peg__out_key(&w->out, "tools");
    status = peg__definitions_write(request->definitions, &options, request->names, w->out.buf,
                                    NULL, w->reterr);
    w->out.needs_comma = true;
    w->format->put_choice(w);
    return status;
}

void peg__put_stop(struct peg__writer *w, const char *name)
{
    const char *const *stop = w->request->options->stop;

    if (!stop || !stop[0])
        return;
    peg__open_array(w, name);
    for (; *stop; stop++)
        peg__out_cstring(&w->out, *stop);
    peg__out_end_array(&w->out);
}

peg_str peg__payload_string(const peg_block *block, const char *name)
{
    const peg_json *payload = peg_block_payload(block);
    const peg_json *value = payload ? peg_json_get(payload, name) : NULL;

    return value && peg_json_kind_of(value) == PEG_JSON_STRING ? peg_json_str(value)
                                                               : peg__strn(NULL, 0);
}

void peg__put_tool_name(struct peg__writer *w, const struct peg__exchange *exchange)
{
    peg__out_member(&w->out, "name",
                    peg__names_out(w->request->names, peg_block_tool(exchange->call)));
}

void peg__take_status(struct peg__writer *w, const struct peg__buf *buf)
{
    if (!w->out.buf->status)
        w->out.buf->status = buf->status;
}

/* ---- the body ---------------------------------------------------------------------------- */

static size_t count_system_first(const struct peg__writer *w)
{
    const struct peg__history *history = w->request->history;
    size_t n = 0;

    if (!w->format->is_alternating)
        return 0;
    while (n < history->n && history->passages[n].block &&
           peg_block_kind_of(history->passages[n].block) == PEG_BLOCK_SYSTEM)
        n++;
    return n;
}

static peg_status write_members(struct peg__writer *w, peg_vendor vendor)
{
    const size_t n_system = count_system_first(w);
    peg_status status = PEG_OK;

    if (w->format->has_model)
        peg__out_cmember(&w->out, "model", w->request->options->model);
    if (w->format->write_head)
        status = w->format->write_head(w, n_system);
    if (status)
        return status;
    peg__open_array(w, w->format->list);
    for (size_t i = n_system; i < w->request->history->n && !status; i++)
        status = put_passage(w, i);
    end_message(w);
    peg__out_end_array(&w->out);
    if (!status)
        status = offer_tools(w, vendor);
    if (!status)
        w->format->put_settings(w);
    return status;
}

peg_status peg__wire_write_body(const struct peg__wire *wire, const struct peg__request *request,
                                struct peg__buf *out, peg_error *reterr)
{
    struct peg__writer w = {.request = request,
                            .format = wire->format,
                            .out = {.buf = out},
                            .thoughts = PEG__BUF(PEG_LIMIT_TEXT_BYTES),
                            .reterr = reterr};
    peg_status status;

    peg__out_object(&w.out);
    status = write_members(&w, wire->vendor);
    peg__out_end_object(&w.out);
    peg__buf_free(&w.thoughts);
    return status;
}
