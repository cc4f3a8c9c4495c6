/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Converts a record for the wire: to JSON text, to typed content, or an error. Text becomes a JSON
 * string, JSON stays as it is; media and bytes that are not text are content.
 */

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/tool/tool.h"
#include "pegboard/artifact.h"
#include "pegboard/media.h"
#include "remote/provider/provider.h"
#include "wire/content.h"
#include "json/json.h"

/* ---- failing: needs no memory ---- */

static void set_failure(struct remote__prov_call *call, const char *code, const char *message)
{
    struct remote__prov_outcome *outcome = &call->outcome;

    peg__free(outcome->json);
    *outcome = (struct remote__prov_outcome){.code = code, .message = message};
}

static void set_out_of_memory(struct remote__prov_call *call)
{
    set_failure(call, "E_OUT_OF_MEMORY", "the provider is out of memory: try again later");
}

/* Strings of protobuf are UTF-8, here without NUL. */
static const char *copy_utf8(struct remote__prov_call *call, peg_str text)
{
    if (!peg__utf8_is_valid(text) || (text.len && memchr(text.ptr, '\0', text.len)))
        return "the tool failed, and its message is not text";
    return peg__arena_copy(&call->arena, text);
}

void remote__prov_outcome_error(struct remote__prov_call *call, const peg_error *error)
{
    const char *message = copy_utf8(call, peg__str(error->message));

    if (error->status == PEG_ENOMEM || !message)
        set_out_of_memory(call);
    else
        set_failure(call, error->code, message); /* codes are static */
}

/* Checks the arguments without defaults: defaults that do not fit are the schema's fault, and every
 * provider would fail alike. */
static bool is_refused_as_sent(const struct remote__prov_call *call)
{
    const peg_str text = call->payload.len ? call->payload : peg__str("{}");
    peg_tool *tool = peg_registry_get(call->prov->registry, call->tool);
    peg_json_doc *doc = NULL;
    const peg_status status = peg_json_parse(text, &peg__json_refuse_duplicates, &doc, NULL);
    /* A tool that is gone by now was of another version, too. */
    const bool is_refused = status ? status != PEG_ENOMEM
                                   : !tool || peg__tool_refuses_as_sent(tool, peg_json_root(doc));

    peg_json_doc_free(doc);
    peg_tool_unref(tool);
    return is_refused;
}

/* The gateway has checked name and arguments, so it has another version of the tools. Only calls
 * that no handler has seen have these codes; a handler's own would be a cause. */
static bool is_outdated(const struct remote__prov_call *call, const peg_record *record)
{
    const char *code = peg_record_code(record);

    return !strcmp(code, "E_TOOL_NOT_FOUND") ||
           (!strcmp(code, "E_INVALID_TOOL_ARGS") && is_refused_as_sent(call));
}

static void set_failure_of(struct remote__prov_call *call, const peg_record *record)
{
    const char *cause = peg_record_cause(record);
    /* A handler's own code is more specific. */
    const bool is_handlers =
        cause[0] && !strcmp(peg_record_code(record), "E_TOOL_DOWNSTREAM_ERROR");
    const char *code = copy_utf8(call, peg__str(is_handlers ? cause : peg_record_code(record)));
    const char *message = copy_utf8(call, peg_record_text(record));
    const bool is_old = is_outdated(call, record);

    if (!code || !message) {
        set_out_of_memory(call);
    } else {
        set_failure(call, is_old ? "E_PROVIDER_OUTDATED" : code, message);
        call->outcome.is_outdated = is_old;
    }
}

/* ---- what it answered ---- */

/* Anything but JSON is text; JSON with a duplicate member is neither. */
static peg_status detect_json(peg_str text, bool *ret_is_json, peg_error *reterr)
{
    peg_json_doc *doc = NULL;
    peg_error why;
    const peg_status status = peg_json_parse(text, &peg__json_refuse_duplicates, &doc, &why);

    peg_json_doc_free(doc);
    if (status == PEG_EPARSE && peg__json_is_duplicate(&why))
        return peg__fail(reterr, PEG_EPARSE, why.code, "the result: %.280s", why.message);
    *ret_is_json = !status;
    return PEG_OK;
}

/* What is no text is typed content, whole. */
static void put_text_or_bytes(struct remote__prov_call *call, struct peg__buf *out, peg_str bytes)
{
    call->outcome.is_content = !peg__utf8_is_valid(bytes);
    if (call->outcome.is_content)
        wire_content_add(out, WIRE_BYTES, bytes);
    else
        peg__json_write_string(bytes, out);
}

static bool checks_output(const struct remote__prov_call *call)
{
    peg_tool *tool = peg_registry_get(call->prov->registry, call->tool);
    const bool checks = tool && peg_tool_output_schema(tool);

    peg_tool_unref(tool);
    return checks;
}

static peg_status put_artifact_answer(struct remote__prov_call *call, const peg_record *record,
                                      struct peg__buf *out, peg_error *reterr)
{
    const peg_artifact_kind *kind = peg_artifact_kind_of(peg_record_artifact(record));
    bool is_json = false;
    peg_str bytes;
    peg_status status = peg_record_answer(record, &bytes, reterr);

    if (!status && (peg_artifact_kind_is(kind, &peg_artifact_json) || checks_output(call)))
        status = detect_json(bytes, &is_json, reterr);
    if (status)
        return status;
    if (is_json)
        peg__buf_str(out, bytes);
    else
        put_text_or_bytes(call, out, bytes);
    return PEG_OK;
}

static void fill_media_notes(const peg_media *media, struct wire_note notes[PEG_LIMIT_MEDIA_NOTES])
{
    for (size_t i = 0; i < peg_media_n_notes(media); i++) {
        const peg_media_note *note = peg_media_note_at(media, i);

        notes[i] = (struct wire_note){
            .name = peg__str(note->name),
            .text = peg__str(note->text),
            .tier = peg__str(peg_trust_tier_name(note->tier)),
            .is_derived = note->is_derived,
        };
    }
}

static peg_status put_one_media(const peg_media *media, struct peg__buf *out, peg_error *reterr)
{
    PEG_CLEANUP(peg__freep) char *bytes = NULL;
    const peg_str words[WIRE_MEDIA_WORDS] = {
        [WIRE_MEDIA_ID] = peg__str(peg_media_id(media)),
        [WIRE_MEDIA_KIND] = peg__str(peg_media_kind_name(peg_media_kind_of(media))),
        [WIRE_MEDIA_TYPE] = peg__str(peg_media_mime_type(media)),
        [WIRE_MEDIA_FILENAME] = peg__str(peg_media_filename(media)),
        [WIRE_MEDIA_URI] = peg__str(peg_media_uri(media)),
        [WIRE_MEDIA_FILE_ID] = peg__str(peg_media_file_id(media)),
        [WIRE_MEDIA_DETAIL] = peg__str(peg_media_detail(media)),
        [WIRE_MEDIA_SOURCE] = peg__str(peg_media_source(media)),
        [WIRE_MEDIA_TIER] = peg__str(peg_trust_tier_name(peg_media_tier(media))),
        [WIRE_MEDIA_HAZARD] = peg__str(peg_media_hazard_name(peg_media_hazard_of(media))),
    };
    struct wire_note notes[PEG_LIMIT_MEDIA_NOTES];
    peg_str data = {NULL, 0};
    peg_status status = PEG_OK;

    fill_media_notes(media, notes);
    if (peg_media_has_bytes(media))
        status = peg_reader_read_all(peg_media_reader(media), PEG_LIMIT_REMOTE_RESULT_BYTES, &bytes,
                                     &data.len, reterr);
    data.ptr = bytes;
    if (!status)
        wire_content_add_media(out, words, notes, peg_media_n_notes(media), data);
    return status;
}

static peg_status put_media_answer(struct remote__prov_call *call, const peg_record *record,
                                   struct peg__buf *out, peg_error *reterr)
{
    peg_status status = PEG_OK;

    call->outcome.is_content = true;
    for (size_t i = 0; !status && i < peg_record_n_media(record); i++)
        status = put_one_media(peg_record_media(record, i), out, reterr);
    return status ? status : out->status ? PEG_OK : wire_content_check(peg__buf_view(out), reterr);
}

static peg_status put_answer(struct remote__prov_call *call, const peg_record *record,
                             struct peg__buf *out, peg_error *reterr)
{
    switch (peg_record_result_kind(record)) {
    case PEG_RESULT_ARTIFACT:
        return put_artifact_answer(call, record, out, reterr);
    case PEG_RESULT_MEDIA:
        return put_media_answer(call, record, out, reterr);
    case PEG_RESULT_TEXT:
        break;
    }
    put_text_or_bytes(call, out, peg_record_text(record));
    return PEG_OK;
}

void remote__prov_outcome_flatten(struct remote__prov_call *call)
{
    struct remote__prov_outcome *outcome = &call->outcome;
    struct peg__buf json = PEG__BUF(PEG_LIMIT_REMOTE_RESULT_BYTES);

    wire_content_write_json(peg__strn(outcome->json, outcome->json_len), &json);
    outcome->is_content = false;
    peg__free(outcome->json);
    outcome->json = NULL;
    outcome->json_len = 0;
    if (!json.status && !peg__buf_take(&json, &outcome->json, &outcome->json_len, NULL))
        return;
    if (json.status == PEG_ELIMIT) {
        outcome->code = "E_RESULT_TOO_LARGE";
        outcome->message = "the result is larger than 8 MiB as JSON: ask for less";
    } else {
        outcome->code = "E_OUT_OF_MEMORY";
        outcome->message = "the provider is out of memory: try again later";
    }
    peg__buf_free(&json);
}

/* ---- server-data ---- */

static char *copy_string_member(struct remote__prov_call *call, const peg_json *item,
                                const char *name)
{
    const peg_json *value = peg_json_get(item, name);

    return peg__arena_copy(&call->arena, peg_json_str(value));
}

static bool copy_data(struct remote__prov_call *call, const peg_json *item,
                      Pegboard__V1__ServerData *data)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_SERVER_DATA_BYTES);

    pegboard__v1__server_data__init(data);
    peg__json_write(peg_json_get(item, "data"), PEG_JSON_COMPACT, &out);
    data->kind = copy_string_member(call, item, "kind");
    data->audience = copy_string_member(call, item, "audience");
    data->data.len = out.len;
    data->data.data =
        out.status ? NULL : (uint8_t *)peg__arena_copy(&call->arena, peg__buf_view(&out));
    peg__buf_free(&out);
    return data->kind && data->audience && data->data.data;
}

static bool copy_server_data(struct remote__prov_call *call, const peg_record *record)
{
    const peg_json *array = peg_record_server_data(record);
    const size_t n = array ? peg_json_len(array) : 0;
    Pegboard__V1__ServerData *data;
    Pegboard__V1__ServerData **list;
    size_t i = 0;

    if (!n)
        return true;
    data = peg__arena_alloc(&call->arena, n * sizeof(*data));
    list = peg__arena_alloc(&call->arena, n * sizeof(*list));
    if (!data || !list)
        return false;
    PEG_JSON_EACH_ITEM (array, item) {
        if (!copy_data(call, item, &data[i]))
            return false;
        list[i] = &data[i];
        i++;
    }
    call->outcome.server_data = list;
    call->outcome.n_server_data = n;
    return true;
}

void remote__prov_outcome_of(struct remote__prov_call *call, const peg_record *record)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_REMOTE_RESULT_BYTES);
    peg_error error;
    peg_status status;

    if (peg_record_is_error(record)) {
        set_failure_of(call, record);
    } else {
        status = put_answer(call, record, &out, &error);
        if (status)
            remote__prov_outcome_error(call, &error);
        else if (out.status == PEG_ELIMIT)
            set_failure(call, "E_RESULT_TOO_LARGE",
                        "the result is larger than 8 MiB: ask for less");
        else if (out.status ||
                 peg__buf_take(&out, &call->outcome.json, &call->outcome.json_len, NULL))
            set_out_of_memory(call);
    }
    peg__buf_free(&out);
    if (!copy_server_data(call, record))
        set_out_of_memory(call);
}
