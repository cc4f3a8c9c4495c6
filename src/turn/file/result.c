/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records in files. A file of the reference has only id, result and error; the rest comes from the
 * call, or is a default.
 *
 * A record holds one thing: media, an artifact or text. Anything else in the file (a result of a
 * failure, an error beside media) is kept with the block and written again.
 */

#include <limits.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/text/str.h"
#include "core/run/run.h"
#include "turn/file/internal.h"
#include "turn/turn.h"
#include "json/json.h"

/* ---- the call of a result -------------------------------------------------------- */

struct entry {
    const peg_block *call;
    bool is_answered;
    struct entry *next; /* of the same call id */
};

/* All calls of one call id, in order. */
struct chain {
    struct entry *open; /* none before it is without an answer */
    struct entry *last;
};

static peg_status add_chain(struct peg__call_match *match, peg_str call_id, struct chain **ret)
{
    struct chain *chain = peg__map_get(&match->by_call_id, call_id);
    peg_status status;

    if (!chain) {
        chain = peg__arena_alloc_zero(&match->arena, sizeof(*chain));
        if (!chain)
            return PEG_ENOMEM;
        status = peg__map_add(&match->by_call_id, call_id, chain);
        if (status)
            return status;
    }
    *ret = chain;
    return PEG_OK;
}

peg_status peg__call_match_add(struct peg__call_match *match, const peg_block *call)
{
    struct entry *entry = peg__arena_alloc_zero(&match->arena, sizeof(*entry));
    struct chain *chain;
    peg_status status;

    if (!entry)
        return PEG_ENOMEM;
    entry->call = call;
    status = add_chain(match, peg_block_call_id(call), &chain);
    if (!status)
        status = peg__map_add(&match->by_block_id, peg_block_id(call), entry);
    if (status)
        return status;
    if (chain->last)
        chain->last->next = entry;
    else
        chain->open = entry;
    chain->last = entry;
    return PEG_OK;
}

const peg_block *peg__call_match_infer(struct peg__call_match *match, peg_str call_id)
{
    struct chain *chain = peg__map_get(&match->by_call_id, call_id);

    if (!chain || !chain->last)
        return NULL;
    while (chain->open->is_answered && chain->open->next)
        chain->open = chain->open->next;
    return chain->open->call;
}

const peg_block *peg__call_match_find(const struct peg__call_match *match, peg_str block_id)
{
    const struct entry *entry = peg__map_get(&match->by_block_id, block_id);

    return entry ? entry->call : NULL;
}

void peg__call_match_answer(struct peg__call_match *match, peg_str block_id)
{
    struct entry *entry = peg__map_get(&match->by_block_id, block_id);

    if (entry)
        entry->is_answered = true;
}

void peg__call_match_free(struct peg__call_match *match)
{
    peg__map_free(&match->by_call_id);
    peg__map_free(&match->by_block_id);
    peg__arena_free(&match->arena);
}

/* ---- defaults -------------------------------------------------------------------- */

/* Defaults of a result; call may be NULL. */
static peg_str expected_name(const peg_block *call)
{
    const peg_str name = call ? peg_block_tool(call) : (peg_str){NULL, 0};

    return name.len && name.len <= PEG_LIMIT_NAME_BYTES ? name : peg__str(PEG__UNNAMED_TOOL);
}

static peg_str expected_args(const peg_block *call)
{
    const peg_str args = call ? peg_block_args(call) : (peg_str){NULL, 0};

    return args.len ? args : peg__str("{}");
}

/* ---- what a payload holds: the same answers for reading and for what is kept ----------- */

struct holds {
    const peg_json *result; /* NULL: missing or null */
    const peg_json *error;  /* NULL: missing, null or "" */
    const peg_json *artifact;
    bool has_media;
    bool has_base64;
    bool is_error;
};

static struct holds inspect_payload(const peg_json *payload)
{
    const peg_json *media = peg__present(payload, "media");
    const peg_json *error = peg__present(payload, "error");
    struct holds holds = {.result = peg__present(payload, "result"),
                          .has_media = media && peg_json_len(media),
                          .has_base64 = peg__present(payload, "text_base64") != NULL};

    if (error && (error->kind != PEG_JSON_STRING || error->len))
        holds.error = error;
    if (!holds.has_media)
        holds.artifact = peg__present(payload, "artifact");
    holds.is_error = holds.error || peg_json_str(peg_json_get(payload, "code")).len;
    return holds;
}

/* Does the artifact take the result for its bytes? */
static bool is_result_of_artifact(const struct holds *holds)
{
    return holds->artifact && holds->result && holds->result->kind == PEG_JSON_STRING &&
           !peg__present(holds->artifact, "text") && !peg__present(holds->artifact, "base64") &&
           !peg__present(holds->artifact, "ref");
}

static bool is_result_kept(const struct holds *holds)
{
    if (holds->artifact)
        return !is_result_of_artifact(holds);
    return holds->has_media || holds->has_base64 || holds->is_error;
}

bool peg__result_rest(const peg_json *payload, const peg_turn_read_options *options,
                      peg_json_builder *b)
{
    const struct holds holds = inspect_payload(payload);
    const bool keeps_error = holds.has_media || holds.artifact || holds.has_base64;
    bool has_rest = peg__member_copy("result", is_result_kept(&holds) ? holds.result : NULL, b);

    has_rest |= peg__member_copy("error", keeps_error ? holds.error : NULL, b);
    has_rest |= holds.has_media ? peg__member_copy("artifact", peg__present(payload, "artifact"), b)
                                : peg__artifact_rest(holds.artifact, options, b);
    has_rest |= peg__media_rest(payload, false, b);
    return has_rest;
}

/* ---- making the record ------------------------------------------------------------------ */

/* A definition and the memory that it borrows. Owned. */
struct making {
    const struct peg__block_read *how;
    struct peg__in *payload;
    struct holds holds;
    peg_record_def def;
    const peg_block *call; /* NULL: there is none */
    bool has_args;         /* of its own */
    struct peg__media_in media;
    peg_artifact *artifact;
    char *args;
    char *text;
    char *replay;
    char nonce[33];
};

static void making_free(struct making *m)
{
    peg__media_in_free(&m->media);
    peg_artifact_unref(m->artifact);
    peg__free(m->args);
    peg__free(m->text);
    peg__free(m->replay);
}

/* The call that it answers: by `call`, else by its call id. */
static void find_call(struct making *m, peg_str id)
{
    struct peg__call_match *calls = m->how->calls;
    peg_record_def *def = &m->def;

    if (calls)
        m->call = def->key.len ? peg__call_match_find(calls, def->key)
                               : peg__call_match_infer(calls, def->call_id.len ? def->call_id : id);
    if (!def->key.len)
        def->key = m->call ? peg_block_id(m->call) : id;
    if (!def->call_id.len)
        def->call_id = m->call ? peg_block_call_id(m->call) : id;
    if (!def->tool.len)
        def->tool = expected_name(m->call);
}

static peg_status read_call_args(struct making *m)
{
    peg_str args;

    if (peg__args_read(m->payload, &args, &m->args))
        return m->payload->status;
    m->has_args = args.len > 0;
    m->def.args = m->has_args ? args : expected_args(m->call);
    return PEG_OK;
}

/* Anything but a string becomes JSON text. */
static peg_status text_of(struct making *m, const peg_json *value)
{
    struct peg__in *in = m->payload;
    size_t len = 0;

    m->def.text = peg_json_str(value);
    if (m->holds.has_base64)
        in->status =
            peg__in_decode(in, "text_base64", peg__in_string(in, "text_base64"), &m->text, &len);
    else if (value && value->kind != PEG_JSON_STRING)
        in->status = peg_json_write(value, PEG_JSON_COMPACT, &m->text, &len, in->reterr);
    if (m->text)
        m->def.text = peg__strn(m->text, len);
    return in->status;
}

static peg_status read_artifact(struct making *m)
{
    char at[PEG__IN_AT];
    struct peg__in in = {m->holds.artifact, at, m->payload->is_strict, PEG_OK, m->payload->reterr};
    const peg_str text =
        is_result_of_artifact(&m->holds) ? peg_json_str(m->holds.result) : (peg_str){NULL, 0};

    snprintf(at, sizeof(at), "%s/artifact", m->payload->at);
    if (m->holds.artifact->kind != PEG_JSON_OBJECT)
        return peg__in_fail(m->payload, "artifact", "must be an object with kind and bytes");
    m->payload->status = peg__artifact_file_read(&in, text, m->how->options, &m->artifact);
    m->def.artifact = m->artifact;
    return m->payload->status;
}

static peg_status read_answer(struct making *m, peg_str id)
{
    const struct holds *holds = &m->holds;

    m->def.is_error = holds->is_error;
    if (peg__media_file_read(m->payload, id, false, m->how->options, &m->media))
        return m->payload->status;
    m->def.media = m->media.items;
    m->def.n_media = m->media.n;
    if (m->media.n)
        return PEG_OK;
    if (holds->artifact)
        return read_artifact(m);
    return text_of(m, holds->is_error ? holds->error : holds->result);
}

/* A nonce from the payload: an author of the content cannot know it, because the content would have
 * to include its own digest. */
static peg_status make_nonce(struct making *m, peg_str id)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    unsigned char hash[PEG_SHA256_BYTES];

    peg__json_canonical(m->payload->object, &text);
    peg__buf_str(&text, id);
    if (!text.status && !peg__sha256(peg__buf_view(&text), hash))
        text.status = PEG_ENOMEM;
    if (text.status == PEG_ENOMEM)
        m->payload->status = peg__fail_nomem(m->payload->reterr);
    else if (text.status)
        peg__in_fail(m->payload, NULL, "is too large for a text");
    peg__buf_free(&text);
    if (m->payload->status)
        return m->payload->status;
    peg__hex(hash, sizeof(m->nonce) / 2, m->nonce);
    m->def.nonce = m->nonce;
    return PEG_OK;
}

static peg_status read_replay(struct making *m)
{
    const peg_json *replay = peg__in_any(m->payload, "replay");
    const char *compatibility = m->def.replay_compatibility;

    if (m->payload->status || !replay || m->how->options->untrusted)
        return m->payload->status;
    if (!compatibility || !*compatibility)
        return peg__in_fail(m->payload, "replay",
                            "needs replay_compatibility: which vendor may get it back");
    m->payload->status =
        peg_json_write(replay, PEG_JSON_COMPACT, &m->replay, NULL, m->payload->reterr);
    m->def.payload = m->replay;
    return m->payload->status;
}

/* Drops the claims that an untrusted file may not make. */
static void drop_claims(peg_record_def *def)
{
    def->is_trusted = false;
    def->is_inline = false;
    def->is_from_artifact_tool = false;
    def->nonce = NULL;
    def->replay_compatibility = NULL;
}

static peg_status report_refused(struct making *m, peg_status status, const peg_error *error)
{
    const char *name = peg__member_of_field(peg__payload_members[PEG_BLOCK_RESULT], error->where);
    char at[sizeof(error->where) + PEG__IN_AT];

    if (status == PEG_ENOMEM)
        return peg__fail_nomem(m->payload->reterr);
    snprintf(at, sizeof(at), "%s%s%s", m->payload->at, name ? "/" : "", name ? name : error->where);
    if (m->payload->reterr)
        *m->payload->reterr = *error;
    return peg__in_refused(status, at, m->payload->reterr);
}

/* Arguments of the call that a call which succeeded cannot have had are not the record's. */
static peg_status make_record(struct making *m, peg_record **ret_record)
{
    peg_error error = {.where = ""};
    peg_status status = peg_record_new(&m->def, ret_record, &error);

    if (status == PEG_EINVAL && !m->has_args && strcmp(error.where, "/args") == 0) {
        m->def.args = peg__str("{}");
        status = peg_record_new(&m->def, ret_record, &error);
    }
    return status ? m->payload->status = report_refused(m, status, &error) : PEG_OK;
}

peg_status peg__result_read(const struct peg__block_read *how, struct peg__in *payload, peg_str id,
                            peg_record **ret_record)
{
    struct making m = {.how = how,
                       .payload = payload,
                       .holds = inspect_payload(payload->object),
                       .def = {PEG_RECORD_DEF_INIT}};

    peg__members_read(payload, peg__payload_members[PEG_BLOCK_RESULT], &m.def);
    if (how->options->untrusted)
        drop_claims(&m.def);
    if (!payload->status)
        find_call(&m, id);
    if (!payload->status && !read_call_args(&m) && !read_answer(&m, id) && !read_replay(&m) &&
        (m.def.nonce || !make_nonce(&m, id)) && !make_record(&m, ret_record) && how->calls)
        peg__call_match_answer(how->calls, m.def.key);
    making_free(&m);
    return payload->status;
}

/* ---- which call it answers ------------------------------------------------------------- */

/* Adds `call` where a reader would take another one. *ret_call is the call, or NULL. */
static void add_call(struct peg__payload *payload, peg_record_def *def, const peg_block **ret_call)
{
    struct peg__call_match *calls = payload->how->calls;
    const peg_record *record = peg_block_record(payload->block);
    const peg_str key = peg_record_key(record);
    const peg_block *call = calls ? peg__call_match_infer(calls, peg_record_call_id(record)) : NULL;

    if (!calls || !peg__str_eq(key, peg_block_id(call ? call : payload->block))) {
        def->key = key;
        call = calls ? peg__call_match_find(calls, key) : NULL;
    }
    if (calls)
        peg__call_match_answer(calls, key);
    *ret_call = call;
}

/* Would a reader take the arguments of the call for those of the record? */
static peg_status are_args_of(const peg_block *call, const peg_record *record, peg_str args,
                              bool *ret_same, peg_error *reterr)
{
    peg_str expected = expected_args(call);
    bool is_usable = true;
    peg_status status = PEG_OK;

    *ret_same = peg__str_eq(args, expected);
    if (*ret_same)
        return PEG_OK;
    if (!peg_record_is_error(record))
        status = peg__args_usable(expected, &is_usable, reterr);
    if (status)
        return status;
    if (!is_usable)
        expected = peg__str("{}");
    return peg__args_same(args, expected, ret_same, reterr);
}

static peg_status add_request(struct peg__payload *payload, peg_record_def *def, peg_error *reterr)
{
    const peg_record *record = peg_block_record(payload->block);
    const peg_str text = peg_record_args_text(record);
    const peg_str args = text.len ? text : peg__str("{}");
    const peg_block *call;
    bool is_same = false;
    peg_status status = PEG_OK;

    add_call(payload, def, &call);
    if (!payload->how->calls || !peg__str_eq(peg_record_tool(record), expected_name(call)))
        def->tool = peg_record_tool(record);
    if (payload->how->calls)
        status = are_args_of(call, record, args, &is_same, reterr);
    if (!status && !is_same)
        status = peg__args_fields(args, &payload->args, &payload->fields, reterr);
    return status;
}

/* ---- what came of it --------------------------------------------------------------------- */

/* Text stands where the reference has it: in result, or in error. */
static peg_status add_text_result(struct peg__payload *payload, bool *ret_needs_code,
                                  peg_error *reterr)
{
    const peg_record *record = peg_block_record(payload->block);
    const bool is_error = peg_record_is_error(record);
    peg_str text = peg_record_text(record);
    struct peg__fields *fields = &payload->fields;
    size_t len = 0;
    peg_status status;

    if (!peg__utf8_is_valid(text)) {
        status = peg__bytes_base64(text, &payload->base64, &len, reterr);
        if (status)
            return status;
        peg__fields_string(fields, "text_base64", peg__strn(payload->base64, len));
        text = (peg_str){NULL, 0};
    }
    *ret_needs_code = is_error && !text.len;
    if (is_error || !text.ptr)
        peg__fields_json(fields, "result", NULL);
    else
        peg__fields_string(fields, "result", text);
    peg__fields_string(fields, "error", is_error && text.len ? text : peg__str(""));
    return PEG_OK;
}

static peg_status add_artifact_result(struct peg__payload *payload, peg_error *reterr)
{
    const peg_status status = peg__payload_artifact(payload, true, reterr);

    if (!status && payload->bytes.form == PEG__BYTES_TEXT)
        peg__fields_string(&payload->fields, "result", payload->bytes.text);
    else
        peg__fields_json(&payload->fields, "result", NULL);
    return status;
}

static peg_status add_answer(struct peg__payload *payload, peg_record_def *def, peg_error *reterr)
{
    const peg_record *record = peg_block_record(payload->block);
    bool needs_code = true; /* without text only the code marks a failure */
    peg_status status = PEG_OK;

    if (peg_record_result_kind(record) == PEG_RESULT_TEXT) {
        status = add_text_result(payload, &needs_code, reterr);
    } else {
        peg__fields_string(&payload->fields, "error", peg__str(""));
        if (peg_record_artifact(record))
            status = add_artifact_result(payload, reterr);
        else
            peg__fields_json(&payload->fields, "result", NULL);
        peg__payload_media(payload);
    }
    if (status || !peg_record_is_error(record))
        return status;
    if (needs_code || strcmp(peg_record_code(record), PEG__DEFAULT_CODE) != 0)
        def->code = peg_record_code(record);
    if (*peg_record_cause(record) && peg__utf8_is_valid(peg__str(peg_record_cause(record))))
        def->cause = peg_record_cause(record);
    return PEG_OK;
}

peg_status peg__result_fields(struct peg__payload *payload, peg_error *reterr)
{
    const peg_record *record = peg_block_record(payload->block);
    const char *compatibility = peg_record_replay_compatibility(record);
    peg_record_def def = {.call_id = peg_record_call_id(record),
                          .is_trusted = peg_record_is_trusted(record),
                          .is_inline = peg_record_is_inline(record),
                          .is_from_artifact_tool = peg_record_is_from_artifact_tool(record),
                          .replay_compatibility = *compatibility ? compatibility : NULL,
                          .created_ms = peg_record_created_ms(record),
                          .completed_ms = peg_record_completed_ms(record),
                          .duration_ns = peg_record_duration_ns(record),
                          .attempts = peg_record_attempts(record),
                          .server_data = peg_record_server_data(record)};
    peg_status status = add_request(payload, &def, reterr);

    if (status || (status = add_answer(payload, &def, reterr)) ||
        (status = peg__record_nonce(record, &def.nonce, reterr)))
        return status;
    if (!peg__str_eq(peg_record_handle(record), def.call_id))
        def.handle = peg_record_handle(record);
    peg__members_write(peg__payload_members[PEG_BLOCK_RESULT], &def, &payload->fields);
    if (peg_record_payload(record))
        peg__fields_json(&payload->fields, "replay", peg_record_payload(record));
    return PEG_OK;
}
