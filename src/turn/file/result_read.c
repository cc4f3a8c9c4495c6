/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records from files. A file of the reference has only id, result and error; what it leaves out
 * comes from the call, or is what stands in a file that says nothing.
 *
 * A record holds one thing: media, an artifact or text. What a file has beside it (a result of a
 * failure, an error beside media) is kept with the block and written again.
 */

#include <limits.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "turn/call_match.h"
#include "turn/file/result.h"
#include "json/json.h"

static bool is_text(const peg_json *value)
{
    return value && value->kind == PEG_JSON_STRING && value->len;
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

static const peg_json *not_null(const peg_json *object, const char *name)
{
    const peg_json *value = peg_json_get(object, name);

    return value && value->kind != PEG_JSON_NULL ? value : NULL;
}

static struct holds look_at(const peg_json *payload)
{
    const peg_json *media = not_null(payload, "media");
    const peg_json *error = not_null(payload, "error");
    struct holds holds = {.result = not_null(payload, "result"),
                          .has_media = media && peg_json_len(media),
                          .has_base64 = not_null(payload, "text_base64") != NULL};

    if (error && (error->kind != PEG_JSON_STRING || error->len))
        holds.error = error;
    if (!holds.has_media)
        holds.artifact = not_null(payload, "artifact");
    holds.is_error = holds.error || is_text(peg_json_get(payload, "code"));
    return holds;
}

/* Does the artifact take the result for its bytes? */
static bool is_result_of_artifact(const struct holds *holds)
{
    return holds->artifact && holds->result && holds->result->kind == PEG_JSON_STRING &&
           !not_null(holds->artifact, "text") && !not_null(holds->artifact, "base64") &&
           !not_null(holds->artifact, "ref");
}

static bool is_result_kept(const struct holds *holds)
{
    if (!holds->result)
        return false;
    if (holds->artifact)
        return !is_result_of_artifact(holds);
    return holds->has_media || holds->has_base64 || holds->is_error;
}

static bool is_error_kept(const struct holds *holds)
{
    return holds->error && (holds->has_media || holds->artifact || holds->has_base64);
}

/* An artifact beside media. */
static const peg_json *artifact_kept(const peg_json *payload, const struct holds *holds)
{
    return holds->has_media ? not_null(payload, "artifact") : NULL;
}

bool peg__result_has_rest(const peg_json *payload, const peg_turn_read_options *options)
{
    const struct holds holds = look_at(payload);

    return is_result_kept(&holds) || is_error_kept(&holds) || artifact_kept(payload, &holds) ||
           peg__artifact_has_rest(holds.artifact, options) || peg__media_has_rest(payload, false);
}

static void copy(const char *name, const peg_json *value, peg_json_builder *b)
{
    peg_json_add_key(b, peg__str(name));
    peg_json_add_copy(b, value);
}

void peg__result_copy_rest(const peg_json *payload, const peg_turn_read_options *options,
                           peg_json_builder *b)
{
    const struct holds holds = look_at(payload);

    if (is_result_kept(&holds))
        copy("result", holds.result, b);
    if (is_error_kept(&holds))
        copy("error", holds.error, b);
    if (artifact_kept(payload, &holds)) {
        copy("artifact", artifact_kept(payload, &holds), b);
    } else if (peg__artifact_has_rest(holds.artifact, options)) {
        peg_json_add_key(b, peg__str("artifact"));
        peg__artifact_copy_rest(holds.artifact, options, b);
    }
    if (peg__media_has_rest(payload, false)) {
        peg_json_add_key(b, peg__str("media"));
        peg__media_copy_rest(payload, false, b);
    }
}

/* ---- making the record ------------------------------------------------------------------ */

/* What the definition borrows from. Owned. */
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

/* Which call it answers: `call`, or what its call id tells. */
static void read_call(struct making *m, peg_str id)
{
    struct peg__call_match *calls = m->how->calls;
    const peg_str call_id = peg__in_string(m->payload, "id");
    const peg_str key = peg__in_string(m->payload, "call");

    if (calls)
        m->call = key.len ? peg__call_match_find(calls, key)
                          : peg__call_match_infer(calls, call_id.len ? call_id : id);
    m->def.key = key.len ? key : m->call ? peg_block_id(m->call) : id;
    m->def.call_id = call_id.len ? call_id : m->call ? peg_block_call_id(m->call) : id;
    m->def.handle = peg__in_string(m->payload, "handle");
}

static peg_status read_asked(struct making *m)
{
    const peg_str name = peg__in_string(m->payload, "name");
    peg_str args;

    if (peg__args_read(m->payload, &args, &m->args))
        return m->payload->status;
    m->def.tool = name.len ? name : peg__expected_name(m->call);
    m->has_args = args.len > 0;
    m->def.args = m->has_args ? args : peg__expected_args(m->call);
    return PEG_OK;
}

/* Anything but a string becomes JSON text. */
static peg_status text_of(struct making *m, const peg_json *value)
{
    size_t len = 0;
    peg_status status;

    if (!value) {
        m->def.text = peg__str("");
        return PEG_OK;
    }
    if (value->kind == PEG_JSON_STRING) {
        m->def.text = peg_json_str(value);
        return PEG_OK;
    }
    status = peg_json_write(value, PEG_JSON_COMPACT, &m->text, &len, m->payload->reterr);
    if (status)
        return m->payload->status = status;
    m->def.text = peg__strn(m->text, len);
    return PEG_OK;
}

static peg_status decode_text(struct making *m)
{
    const peg_str base64 = peg__in_string(m->payload, "text_base64");
    size_t len = 0;

    if (m->payload->status)
        return m->payload->status;
    m->text = peg__alloc(peg__base64_bytes(base64.len));
    if (!m->text)
        return m->payload->status = peg__fail_nomem(m->payload->reterr);
    if (!peg__base64_decode(base64, m->text, &len))
        return peg__in_fail(m->payload, "text_base64", "is no base 64");
    m->def.text = peg__strn(m->text, len);
    return PEG_OK;
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
    m->def.code = peg__in_cstring(m->payload, "code");
    m->def.cause = peg__in_cstring(m->payload, "cause");
    if (peg__media_file_read(m->payload, id, false, m->how->options, &m->media))
        return m->payload->status;
    m->def.media = m->media.items;
    m->def.n_media = m->media.n;
    if (m->media.n)
        return PEG_OK;
    if (holds->artifact)
        return read_artifact(m);
    if (holds->has_base64)
        return decode_text(m);
    return text_of(m, holds->is_error ? holds->error : holds->result);
}

/* A nonce from what the file has: whoever wrote the content could not know it, for it would have to
 * be part of what it is the digest of. */
static peg_status make_nonce(struct making *m, peg_str id)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    unsigned char hash[PEG_SHA256_BYTES];
    char hex[PEG_SHA256_HEX];

    peg__json_canonical(m->payload->object, &text);
    peg__buf_str(&text, id);
    if (!text.status && !peg__sha256(peg__buf_view(&text), hash))
        text.status = PEG_ENOMEM;
    if (text.status == PEG_ENOMEM)
        m->payload->status = peg__fail_nomem(m->payload->reterr);
    else if (text.status)
        peg__in_fail(m->payload, NULL, "is larger than a text may be (PEG_LIMIT_TEXT_BYTES)");
    peg__buf_free(&text);
    if (m->payload->status)
        return m->payload->status;
    peg__hex(hash, sizeof(hash), hex);
    memcpy(m->nonce, hex, sizeof(m->nonce) - 1);
    m->nonce[sizeof(m->nonce) - 1] = '\0';
    m->def.nonce = m->nonce;
    return PEG_OK;
}

static peg_status read_replay(struct making *m)
{
    const peg_json *replay = peg__in_any(m->payload, "replay");
    const char *compatibility = peg__in_cstring(m->payload, "replay_compatibility");

    if (m->how->options->untrusted)
        return m->payload->status;
    m->def.replay_compatibility = compatibility;
    if (m->payload->status || !replay)
        return m->payload->status;
    if (!compatibility || !*compatibility)
        return peg__in_fail(m->payload, "replay",
                            "needs replay_compatibility: which provider may get it back");
    m->payload->status =
        peg_json_write(replay, PEG_JSON_COMPACT, &m->replay, NULL, m->payload->reterr);
    m->def.payload = m->replay;
    return m->payload->status;
}

/* What a file may claim and an untrusted one may not. */
static void drop_claims(peg_record_def *def)
{
    def->is_trusted = false;
    def->is_inline = false;
    def->is_from_artifact_tool = false;
    def->nonce = NULL;
}

static peg_status read_circumstances(struct making *m, peg_str id)
{
    struct peg__in *in = m->payload;

    m->def.is_trusted = peg__in_bool(in, "trusted");
    m->def.is_inline = peg__in_bool(in, "inline");
    m->def.is_from_artifact_tool = peg__in_bool(in, "artifact_tool");
    m->def.attempts = (unsigned)peg__in_integer(in, "attempts", UINT_MAX);
    m->def.created_ms = peg__in_integer(in, "created_ms", INT64_MAX);
    m->def.completed_ms = peg__in_integer(in, "completed_ms", INT64_MAX);
    m->def.duration_ns = peg__in_integer(in, "duration_ns", INT64_MAX);
    m->def.nonce = peg__in_cstring(in, "nonce");
    m->def.server_data = peg__in_array(in, "server_data");
    if (m->how->options->untrusted)
        drop_claims(&m->def);
    if (!in->status && !m->def.nonce)
        make_nonce(m, id);
    return in->status;
}

/* Where the file has what a definition calls otherwise. */
static const char *place_of(const char *field)
{
    static const struct {
        const char *field;
        const char *member;
    } places[] = {{"/key", "/call"},
                  {"/call_id", "/id"},
                  {"/tool", "/name"},
                  {"/text", "/result"},
                  {"/payload", "/replay"}};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (strcmp(field, places[i].field) == 0)
            return places[i].member;
    return field;
}

static peg_status refused(struct making *m, peg_status status, const peg_error *error)
{
    char at[sizeof(error->where) + PEG__IN_AT];

    if (status == PEG_ENOMEM)
        return peg__fail_nomem(m->payload->reterr);
    snprintf(at, sizeof(at), "%s%s", m->payload->at, place_of(error->where));
    if (m->payload->reterr)
        *m->payload->reterr = *error;
    return peg__in_refused(status, at, m->payload->reterr);
}

/* Arguments of the call that a call which succeeded cannot have had are not the record's. */
static peg_status make(struct making *m, peg_record **ret_record)
{
    peg_error error = {.where = ""};
    peg_status status = peg_record_new(&m->def, ret_record, &error);

    if (status == PEG_EINVAL && !m->has_args && strcmp(error.where, "/args") == 0) {
        m->def.args = peg__str("{}");
        status = peg_record_new(&m->def, ret_record, &error);
    }
    return status ? m->payload->status = refused(m, status, &error) : PEG_OK;
}

peg_status peg__result_read(const struct peg__block_read *how, struct peg__in *payload, peg_str id,
                            peg_record **ret_record)
{
    struct making m = {.how = how,
                       .payload = payload,
                       .holds = look_at(payload->object),
                       .def = {PEG_RECORD_DEF_INIT}};

    read_call(&m, id);
    if (!payload->status && !read_asked(&m) && !read_answer(&m, id) && !read_replay(&m) &&
        !read_circumstances(&m, id) && !make(&m, ret_record) && how->calls)
        peg__call_match_answer(how->calls, m.def.key);
    making_free(&m);
    return payload->status;
}
