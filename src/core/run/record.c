/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records: what was asked and what came of it. One block of memory holds the record and the
 * strings it starts with; what the call answers is taken over, not copied.
 */

#include "core/run/run.h"

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "pegboard/artifact.h"
#include "pegboard/media.h"
#include "json/json.h"

/* ---- checksum and nonce ------------------------------------------------------------------ */

/*
 * The checksum and the nonce of a record, made when they are asked for: a digest takes as long as
 * half a call, randomness comes from the kernel, and most records are never asked. Several threads
 * may ask at once. Each then makes one, the first to publish it wins, and the others drop theirs.
 */

/* ---- made once ------------------------------------------------------------------ */

/* A renamed record asks its original, so that both have the same. */
static peg_record *owner_of(const peg_record *record)
{
    return peg__unconst(record->original ? record->original : record);
}

/* NULL if it was not made yet. */
static const char *get_made(_Atomic(char *) *made)
{
    return atomic_load_explicit(made, memory_order_acquire);
}

/* Takes a copy of the text unless another thread was first; either way *ret_text is what stays. */
static peg_status publish_made(_Atomic(char *) *made, const char *text, const char **ret_text,
                               peg_error *reterr)
{
    const size_t size = strlen(text) + 1;
    char *copy = peg__alloc(size);
    char *first = NULL;

    if (!copy)
        return peg__fail_nomem(reterr);
    memcpy(copy, text, size);
    if (atomic_compare_exchange_strong_explicit(made, &first, copy, memory_order_acq_rel,
                                                memory_order_acquire)) {
        *ret_text = copy;
        return PEG_OK;
    }
    peg__free(copy);
    *ret_text = first;
    return PEG_OK;
}

/* Frees both; the record is about to be freed. */
static void record_forget_made(peg_record *record)
{
    peg__free(atomic_load_explicit(&record->checksum, memory_order_relaxed));
    peg__free(atomic_load_explicit(&record->nonce, memory_order_relaxed));
}

/* ---- the checksum --------------------------------------------------------------- */

/* The canonical form of most calls fits, so that the text grows once. */
enum { USUAL_BYTES = 512 };

peg_status peg_call_digest(peg_str tool, const peg_json *args, char ret_hex[65], peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    unsigned char digest[PEG_SHA256_BYTES];
    peg_status status;

    peg__buf_reserve(&text, USUAL_BYTES);
    peg__buf_puts(&text, "{\"args\":");
    peg__json_canonical(args, &text);
    peg__buf_puts(&text, ",\"tool\":");
    peg__json_write_string(tool, &text);
    peg__buf_putc(&text, '}');

    status = text.status;
    if (!status && !peg__sha256(peg__buf_view(&text), digest))
        status = PEG_ENOMEM;
    peg__buf_free(&text);
    if (status == PEG_ELIMIT)
        return peg__fail(reterr, PEG_ELIMIT, "E_TEXT_TOO_LARGE",
                         "the canonical form of the arguments is larger than %d bytes",
                         PEG_LIMIT_TEXT_BYTES);
    if (status)
        return peg__fail_nomem(reterr);
    peg__hex(digest, sizeof(digest), ret_hex);
    return PEG_OK;
}

peg_status peg__record_checksum(const peg_record *record, const char **ret_hex, peg_error *reterr)
{
    peg_record *owner = owner_of(record);
    const char *made = get_made(&owner->checksum);
    char hex[PEG_SHA256_HEX];
    peg_status status;

    if (made) {
        *ret_hex = made;
        return PEG_OK;
    }
    status = peg_call_digest(owner->tool, peg_record_args(owner), hex, reterr);
    return status ? status : publish_made(&owner->checksum, hex, ret_hex, reterr);
}

const char *peg_record_checksum(const peg_record *record)
{
    const char *hex = "";

    (void)peg__record_checksum(record, &hex, NULL);
    return hex;
}

/* ---- the nonce ------------------------------------------------------------------ */

peg_status peg__record_nonce(const peg_record *record, const char **ret_hex, peg_error *reterr)
{
    peg_record *owner = owner_of(record);
    const char *made = get_made(&owner->nonce);
    char hex[PEG_ID_HEX_TEXT];

    if (made) {
        *ret_hex = made;
        return PEG_OK;
    }
    if (!peg__id_hex(hex))
        return peg__fail_no_randomness(reterr);
    return publish_made(&owner->nonce, hex, ret_hex, reterr);
}

/* While the record is made: the nonce that it had elsewhere. PEG_ENOMEM. */
static peg_status record_set_nonce(peg_record *record, const char *nonce, peg_error *reterr)
{
    const char *kept;

    return publish_made(&record->nonce, nonce, &kept, reterr);
}

const char *peg_record_nonce(const peg_record *record)
{
    const char *hex = "";

    (void)peg__record_nonce(record, &hex, NULL);
    return hex;
}

static const peg_json empty_object = {.kind = PEG_JSON_OBJECT, .u.extent = 1};

/* ---- making --------------------------------------------------------------------- */

static peg_str put_copy(char **at, peg_str s)
{
    const peg_str copy = {*at, s.len};

    if (s.len)
        memcpy(*at, s.ptr, s.len);
    (*at)[s.len] = '\0';
    *at += s.len + 1;
    return copy;
}

static peg_str or_else(peg_str s, peg_str other)
{
    return s.len ? s : other;
}

/* A name that a model made up may be of any length. A cut one ends in a character that no tool's
 * name has, so that it matches no tool. */
static peg_str bounded_name(peg_str tool, char ret_cut[PEG_LIMIT_NAME_BYTES])
{
    static const char ellipsis[] = "\xE2\x80\xA6";
    const size_t tail = sizeof(ellipsis) - 1;
    size_t len;

    if (tool.len <= PEG_LIMIT_NAME_BYTES)
        return or_else(tool, peg__str(PEG__UNNAMED_TOOL));
    len = peg__utf8_cut(tool.ptr, PEG_LIMIT_NAME_BYTES - tail);
    memcpy(ret_cut, tool.ptr, len);
    memcpy(ret_cut + len, ellipsis, tail);
    return peg__strn(ret_cut, len + tail);
}

peg_status peg__record_start(const struct peg__record_start *start, peg_record **ret_record,
                             peg_error *reterr)
{
    char cut[PEG_LIMIT_NAME_BYTES];
    const peg_str tool = bounded_name(start->tool, cut);
    char id[PEG_ID_HEX_TEXT];
    peg_record *record;
    peg_str key = start->key;
    peg_str call_id;
    peg_str handle;
    char *at;

    if (!key.len) {
        if (!peg__id_hex(id))
            return peg__fail_no_randomness(reterr);
        key = peg__strn(id, sizeof(id) - 1);
    }
    call_id = or_else(start->call_id, key);
    handle = or_else(start->handle, call_id);

    record = peg__alloc(sizeof(*record) + key.len + call_id.len + handle.len + tool.len +
                        start->args.len + 5);
    if (!record) {
        peg__fail_nomem(reterr);
        return PEG_ENOMEM;
    }
    memset(record, 0, sizeof(*record));
    atomic_init(&record->n_refs, 1);
    at = (char *)(record + 1);
    record->key = put_copy(&at, key);
    record->call_id = put_copy(&at, call_id);
    record->handle = put_copy(&at, handle);
    record->tool = put_copy(&at, tool);
    record->args_text = put_copy(&at, start->args);
    record->code = "";
    record->created_ms = start->now_ms;
    *ret_record = record;
    return PEG_OK;
}

PEG__DEFINE_REF(peg_record)

static void extra_free(struct peg__record_extra *extra);

// NOLINTNEXTLINE(misc-no-recursion): an original is no other's copy
peg_record *peg_record_unref(peg_record *record)
{
    if (!record || !peg__refs_drop(&record->n_refs))
        return NULL;
    if (record->original) {
        peg_record_unref(record->original);
        peg__free(record);
        return NULL;
    }
    record_forget_made(record);
    peg_json_doc_free(record->args);
    peg__free(record->own_code);
    peg__free(record->cause);
    peg__free(record->text);
    peg_artifact_unref(record->artifact);
    for (size_t i = 0; i < record->n_media; i++)
        peg_media_unref(record->media[i]);
    peg__free(record->media);
    peg_json_doc_free(record->server_data);
    extra_free(record->extra);
    peg__free(record);
    return NULL;
}

peg_status peg__record_rename(peg_record *record, peg_str handle, peg_record **ret_record,
                              peg_error *reterr)
{
    const size_t changing =
        offsetof(struct peg_record, is_error); /* others change what is before */
    peg_record *renamed = peg__alloc(sizeof(*renamed) + handle.len + 1);
    char *at;

    if (!renamed)
        return peg__fail_nomem(reterr);
    at = (char *)(renamed + 1);
    /* What it points to stays the original's. */
    memcpy((char *)renamed + changing, (const char *)record + changing,
           sizeof(*renamed) - changing);
    atomic_init(&renamed->n_refs, 1);
    atomic_init(&renamed->checksum, NULL);
    atomic_init(&renamed->nonce, NULL);
    renamed->original = peg_record_ref(record->original ? record->original : record);
    renamed->handle = put_copy(&at, handle);
    *ret_record = renamed;
    return PEG_OK;
}

/* ---- made by hand --------------------------------------------------------------- */

struct peg__record_extra {
    peg_json_doc *payload; /* NULL if none */
    char compatibility[];
};

static void extra_free(struct peg__record_extra *extra)
{
    if (!extra)
        return;
    peg_json_doc_free(extra->payload);
    peg__free(extra);
}

static peg_status reject_record_field(peg_error *reterr, const char *field, const char *why)
{
    peg__fail(reterr, PEG_EINVAL, "E_INVALID_INITIAL_TOOL_CALL_VALUE", "%s: %s", field, why);
    peg__error_where(reterr, peg__str(field));
    return PEG_EINVAL;
}

enum { NONCE_DIGITS = PEG_ID_HEX_TEXT - 1 };

static bool is_nonce(const char *text)
{
    return strlen(text) == NONCE_DIGITS && strspn(text, "0123456789abcdef") == NONCE_DIGITS;
}

static peg_status check_names(const peg_record_def *def, peg_error *reterr)
{
    const struct {
        const char *where;
        peg_str name;
    } names[] = {
        {"/key", def->key},
        {"/call_id", def->call_id},
        {"/handle", def->handle},
        {"/tool", def->tool},
        {"/code", peg_cstr(def->code)},
        {"/cause", peg_cstr(def->cause)},
        {"/replay_compatibility", peg_cstr(def->replay_compatibility)},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!peg__utf8_is_valid(names[i].name))
            return reject_record_field(reterr, names[i].where, "these bytes are no UTF-8");
    }
    return PEG_OK;
}

static peg_status check_about(const peg_record_def *def, peg_error *reterr)
{
    if (def->duration_ns < 0)
        return reject_record_field(reterr, "/duration_ns", "a call cannot end before it begins");
    if (def->nonce && !is_nonce(def->nonce))
        return reject_record_field(reterr, "/nonce",
                                   "give 32 lowercase hexadecimal digits, or none");
    if (def->server_data && def->server_data->kind != PEG_JSON_ARRAY)
        return reject_record_field(reterr, "/server_data",
                                   "give an array of {kind, audience, data}");
    return check_names(def, reterr);
}

static peg_status check_def(const peg_record_def *def, peg_error *reterr)
{
    const int n_results = (def->text.ptr != NULL) + (def->artifact != NULL) + (def->n_media > 0);

    if (!def->call_id.len)
        return reject_record_field(reterr, "/call_id",
                                   "give the id that the provider gave the call");
    if (!def->tool.len)
        return reject_record_field(reterr, "/tool",
                                   "give the tool's name, or a placeholder if it had none");
    if (def->tool.len > PEG_LIMIT_NAME_BYTES)
        return reject_record_field(reterr, "/tool", "a name has at most 256 bytes");
    if (n_results != 1)
        return reject_record_field(reterr, "/text", "give exactly one of text, artifact and media");
    if (def->n_media && !def->media)
        return reject_record_field(reterr, "/media", "n_media is set but media is NULL");
    for (size_t i = 0; i < def->n_media; i++) {
        if (!def->media[i])
            return reject_record_field(reterr, "/media", "an item is NULL");
    }
    if (def->payload && (!def->replay_compatibility || !def->replay_compatibility[0]))
        return reject_record_field(reterr, "/replay_compatibility",
                                   "a payload needs the name of the provider that may get it back");
    return check_about(def, reterr);
}

static peg_status take_args(peg_record *record, peg_error *reterr)
{
    const peg_status status = peg_json_parse(record->args_text, NULL, &record->args, reterr);
    const bool is_object = !status && peg_json_root(record->args)->kind == PEG_JSON_OBJECT;

    if (status == PEG_ENOMEM || is_object)
        return status;
    if (record->is_error) { /* stays as text, and stands for {} */
        record->args = peg_json_doc_free(record->args);
        return PEG_OK;
    }
    if (status) {
        const peg_error why = reterr ? *reterr : (peg_error){.code = "", .cause = ""};

        peg__fail_because(reterr, PEG_EINVAL, "E_INVALID_INITIAL_TOOL_CALL_VALUE", &why,
                          "/args: give the JSON text of an object");
        peg__error_where(reterr, peg__str("/args"));
        return PEG_EINVAL;
    }
    return reject_record_field(reterr, "/args", "give the JSON text of an object");
}

static peg_status take_server_data(peg_record *record, const peg_record_def *def, peg_error *reterr)
{
    peg_json_builder *b;

    if (!def->server_data)
        return PEG_OK;
    b = peg_json_builder_new();
    peg_json_add_copy(b, def->server_data);
    return peg_json_builder_finish(b, &record->server_data, reterr);
}

static peg_status take_extra(peg_record *record, const peg_record_def *def, peg_error *reterr)
{
    const char *compatibility = def->replay_compatibility ? def->replay_compatibility : "";
    const size_t len = strlen(compatibility);
    peg_status status;

    if (!def->payload && !len)
        return PEG_OK;
    record->extra = peg__alloc_zero(1, sizeof(*record->extra) + len + 1);
    if (!record->extra)
        return peg__fail_nomem(reterr);
    memcpy(record->extra->compatibility, compatibility, len + 1);
    if (!def->payload)
        return PEG_OK;
    status = peg_json_parse(peg__str(def->payload), NULL, &record->extra->payload, reterr);
    if (status && status != PEG_ENOMEM)
        return reject_record_field(reterr, "/payload", "give JSON text");
    return status;
}

static peg_status take_result(peg_record *record, const peg_record_def *def, peg_error *reterr)
{
    if (def->text.ptr) {
        record->text = peg__alloc(def->text.len + 1);
        if (!record->text)
            return peg__fail_nomem(reterr);
        memcpy(record->text, def->text.ptr, def->text.len);
        record->text[def->text.len] = '\0';
        record->text_len = def->text.len;
        return PEG_OK;
    }
    if (def->artifact) {
        record->result_kind = PEG_RESULT_ARTIFACT;
        record->artifact = peg_artifact_ref(def->artifact);
        return PEG_OK;
    }
    record->media = peg__alloc_zero(def->n_media, sizeof(*record->media));
    if (!record->media)
        return peg__fail_nomem(reterr);
    record->result_kind = PEG_RESULT_MEDIA;
    for (; record->n_media < def->n_media; record->n_media++)
        record->media[record->n_media] = peg_media_ref(def->media[record->n_media]);
    return PEG_OK;
}

static bool copy_code(const char *code, char **ret_copy)
{
    const size_t size = strlen(code) + 1;
    char *copy = peg__alloc(size);

    if (!copy)
        return false;
    memcpy(copy, code, size);
    *ret_copy = copy;
    return true;
}

static peg_status take_codes(peg_record *record, const peg_record_def *def, peg_error *reterr)
{
    if (!record->is_error)
        return PEG_OK;
    record->code = "E_TOOL_DOWNSTREAM_ERROR";
    if (def->code && def->code[0]) {
        if (!copy_code(def->code, &record->own_code))
            return peg__fail_nomem(reterr);
        record->code = record->own_code;
    }
    if (def->cause && def->cause[0] && !copy_code(def->cause, &record->cause))
        return peg__fail_nomem(reterr);
    return PEG_OK;
}

static peg_status fill_record(peg_record *record, const peg_record_def *def, peg_error *reterr)
{
    peg_status status;

    record->is_error = def->is_error;
    record->is_trusted = def->is_trusted;
    record->is_inline = def->is_inline;
    record->is_from_artifact_tool = def->is_from_artifact_tool;
    record->completed_ms = def->completed_ms;
    record->duration_ns = def->duration_ns;
    record->n_attempts = def->attempts;
    if (def->nonce && (status = record_set_nonce(record, def->nonce, reterr)))
        return status;
    if ((status = take_args(record, reterr)) || (status = take_extra(record, def, reterr)) ||
        (status = take_result(record, def, reterr)) || (status = take_codes(record, def, reterr)))
        return status;
    return take_server_data(record, def, reterr);
}

peg_status peg_record_new(const peg_record_def *def, peg_record **ret_record, peg_error *reterr)
{
    PEG__READ_OR_RETURN(def, PEG_RECORD_DEF_INIT, reterr);
    const peg_str args = def->args.len ? def->args : peg__str("{}");
    const struct peg__record_start start = {.key = def->key,
                                            .call_id = def->call_id,
                                            .handle = def->handle,
                                            .tool = def->tool,
                                            .args = args,
                                            .now_ms = def->created_ms};
    peg_record *record = NULL;
    peg_status status = check_def(def, reterr);

    if (!status)
        status = peg__record_start(&start, &record, reterr);
    if (record)
        status = fill_record(record, def, reterr);
    if (status) {
        peg_record_unref(record);
        return status;
    }
    *ret_record = record;
    return PEG_OK;
}

/* ---- reading -------------------------------------------------------------------- */

PEG__DEFINE_GETTER(peg_str, peg_record_key, peg_record, key)
PEG__DEFINE_GETTER(peg_str, peg_record_call_id, peg_record, call_id)
PEG__DEFINE_GETTER(peg_str, peg_record_handle, peg_record, handle)
PEG__DEFINE_GETTER(peg_str, peg_record_tool, peg_record, tool)

const peg_json *peg_record_args(const peg_record *record)
{
    return record->args ? peg_json_root(record->args) : &empty_object;
}

PEG__DEFINE_GETTER(peg_str, peg_record_args_text, peg_record, args_text)
PEG__DEFINE_GETTER(bool, peg_record_is_error, peg_record, is_error)
PEG__DEFINE_GETTER(const char *, peg_record_code, peg_record, code)

const char *peg_record_cause(const peg_record *record)
{
    return record->cause ? record->cause : "";
}

PEG__DEFINE_GETTER(peg_result_kind, peg_record_result_kind, peg_record, result_kind)

peg_str peg_record_text(const peg_record *record)
{
    return (peg_str){record->text ? record->text : "", record->text_len};
}

PEG__DEFINE_GETTER(peg_artifact *, peg_record_artifact, peg_record, artifact)

peg_status peg_record_answer(const peg_record *record, peg_str *ret_answer, peg_error *reterr)
{
    if (record->artifact)
        return peg_artifact_bytes(record->artifact, ret_answer, reterr);
    *ret_answer = peg_record_text(record);
    return PEG_OK;
}

PEG__DEFINE_GETTER(size_t, peg_record_n_media, peg_record, n_media)

peg_media *peg_record_media(const peg_record *record, size_t i)
{
    return i < record->n_media ? record->media[i] : NULL;
}

PEG__DEFINE_GETTER(bool, peg_record_is_trusted, peg_record, is_trusted)
PEG__DEFINE_GETTER(bool, peg_record_is_inline, peg_record, is_inline)
PEG__DEFINE_GETTER(bool, peg_record_is_from_artifact_tool, peg_record, is_from_artifact_tool)
PEG__DEFINE_GETTER(unsigned, peg_record_attempts, peg_record, n_attempts)
PEG__DEFINE_GETTER(int64_t, peg_record_created_ms, peg_record, created_ms)
PEG__DEFINE_GETTER(int64_t, peg_record_completed_ms, peg_record, completed_ms)
PEG__DEFINE_GETTER(int64_t, peg_record_duration_ns, peg_record, duration_ns)

const peg_json *peg_record_server_data(const peg_record *record)
{
    return record->server_data ? peg_json_root(record->server_data) : NULL;
}

const peg_json *peg_record_payload(const peg_record *record)
{
    return record->extra && record->extra->payload ? peg_json_root(record->extra->payload) : NULL;
}

const char *peg_record_replay_compatibility(const peg_record *record)
{
    return record->extra ? record->extra->compatibility : "";
}
