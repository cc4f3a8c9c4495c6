/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes, artifacts and arguments of calls in files. */

#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "core/result/result.h"
#include "turn/file/internal.h"
#include "json/json.h"

#define KEY_PREFIX "sha256-"

enum { KEY_SIZE = sizeof(KEY_PREFIX) + PEG_SHA256_HEX };

static peg_str key_of(const struct peg__bytes_ref *ref, char ret_key[KEY_SIZE])
{
    const int len = snprintf(ret_key, KEY_SIZE, KEY_PREFIX "%s", ref->sha256);

    return peg__strn(ret_key, (size_t)len);
}

static peg_status digest_bytes(peg_str bytes, struct peg__bytes_ref *ret_ref, peg_error *reterr)
{
    unsigned char hash[PEG_SHA256_BYTES];

    if (!peg__sha256(bytes, hash))
        return peg__fail_nomem(reterr);
    peg__hex(hash, sizeof(hash), ret_ref->sha256);
    ret_ref->n_bytes = (int64_t)bytes.len;
    return PEG_OK;
}

/* ---- readers of references ------------------------------------------------------------- */

/* Owned by its reader. */
struct remote {
    struct peg__bytes_ref ref;
    peg_spool_store *store; /* NULL: nowhere */
};

static peg_status fail_missing(const struct peg__bytes_ref *ref, bool has_store, peg_error *reterr)
{
    return peg__fail(reterr, PEG_ENOTFOUND, "E_REFERENCE_MISSING",
                     "the %lld bytes with SHA-256 %.12s... are not in %s: read the turn with the "
                     "spool store that it was written with",
                     (long long)ref->n_bytes, ref->sha256,
                     has_store ? "the spool store" : "the file, and no spool store was given");
}

static peg_status fail_wrong(const struct peg__bytes_ref *ref, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EIO, "E_REFERENCE_WRONG",
                     "the spool store has other bytes under " KEY_PREFIX
                     "%.12s... than were written: put the right ones there",
                     ref->sha256);
}

/* *ret_reader is NULL if the store has no such bytes. */
static peg_status find_bytes(const struct peg__bytes_ref *ref, peg_spool_store *store,
                             peg_reader **ret_reader, peg_error *reterr)
{
    char key[KEY_SIZE];

    *ret_reader = NULL;
    return store ? peg_spool_read(store, key_of(ref, key), ret_reader, reterr) : PEG_OK;
}

static peg_status check_whole(const struct peg__bytes_ref *ref, peg_str all, peg_error *reterr)
{
    struct peg__bytes_ref found;
    const peg_status status = digest_bytes(all, &found, reterr);

    if (status)
        return status;
    return strcmp(found.sha256, ref->sha256) == 0 ? PEG_OK : fail_wrong(ref, reterr);
}

static peg_status remote_read_at(void *user, uint64_t offset, void *buffer, size_t n, size_t *ret_n,
                                 peg_error *reterr)
{
    PEG_CLEANUP(peg_reader_unrefp) peg_reader *there = NULL;
    const struct remote *remote = user;
    size_t got = 0;
    peg_status status = find_bytes(&remote->ref, remote->store, &there, reterr);

    if (status)
        return status;
    if (!there)
        return fail_missing(&remote->ref, remote->store != NULL, reterr);
    if (peg_reader_byte_length(there) != remote->ref.n_bytes)
        return fail_wrong(&remote->ref, reterr);
    status = peg_reader_read_at(there, offset, buffer, n, &got, reterr);
    if (!status && offset == 0 && (int64_t)got == remote->ref.n_bytes)
        status = check_whole(&remote->ref, peg__strn(buffer, got), reterr);
    if (!status)
        *ret_n = got;
    return status;
}

static int64_t remote_byte_length(void *user)
{
    const struct remote *remote = user;

    return remote->ref.n_bytes;
}

static void remote_free(void *user)
{
    struct remote *remote = user;

    peg_spool_store_unref(remote->store);
    peg__free(remote);
}

static const peg_reader_ops remote_ops = {
    .read_at = remote_read_at, .byte_length = remote_byte_length, .free = remote_free};

static peg_status make_ref_reader(const struct peg__bytes_ref *ref, peg_spool_store *store,
                                  peg_reader **ret_reader, peg_error *reterr)
{
    struct remote *remote = peg__alloc(sizeof(*remote));
    peg_status status;

    if (!remote)
        return peg__fail_nomem(reterr);
    *remote = (struct remote){.ref = *ref, .store = store ? peg_spool_store_ref(store) : NULL};
    status = peg_reader_new(&remote_ops, remote, ret_reader, reterr);
    if (status)
        remote_free(remote);
    return status;
}

const struct peg__bytes_ref *peg__bytes_ref_of(const peg_reader *reader)
{
    const struct remote *remote = peg__reader_user(reader, &remote_ops);

    return remote ? &remote->ref : NULL;
}

/* ---- writing --------------------------------------------------------------------------- */

/* Bytes of fewer than this are written into the text. */
static int64_t bound_of(const peg_turn_write_options *options)
{
    if (options->inline_below)
        return options->inline_below;
    return options->bytes ? PEG_LIMIT_INLINE_BELOW : PEG_LIMIT_RESULT_BYTES;
}

peg_status peg__bytes_base64(peg_str bytes, char **ret_text, size_t *ret_len, peg_error *reterr)
{
    char *text = peg__alloc(peg__base64_len(bytes.len) + 1);

    if (!text)
        return peg__fail_nomem(reterr);
    peg__base64_encode(bytes, text);
    *ret_text = text;
    if (ret_len)
        *ret_len = peg__base64_len(bytes.len);
    return PEG_OK;
}

/* A reference of a file whose bytes are not there, or are where they would go: it stays. */
static peg_status keep_ref(peg_reader *reader, const peg_turn_write_options *options,
                           bool *ret_is_kept, peg_error *reterr)
{
    const struct remote *remote = peg__reader_user(reader, &remote_ops);
    PEG_CLEANUP(peg_reader_unrefp) peg_reader *source = NULL;
    PEG_CLEANUP(peg_reader_unrefp) peg_reader *target = NULL;
    peg_status status;

    *ret_is_kept = false;
    if (!remote)
        return PEG_OK;
    if ((status = find_bytes(&remote->ref, remote->store, &source, reterr)))
        return status;
    if (source && remote->ref.n_bytes >= bound_of(options) &&
        (status = find_bytes(&remote->ref, options->bytes, &target, reterr)))
        return status;
    *ret_is_kept = !source || target;
    return PEG_OK;
}

static peg_status store_bytes(peg_str bytes, const peg_turn_write_options *options,
                              struct peg__bytes *ret_bytes, peg_error *reterr)
{
    PEG_CLEANUP(peg_reader_unrefp) peg_reader *there = NULL;
    struct peg__bytes placed = {.form = PEG__BYTES_REF};
    char key[KEY_SIZE];
    peg_status status;

    if (!options->bytes && !options->allow_missing)
        return peg__fail(reterr, PEG_ELIMIT, "E_TURN_BYTES",
                         "%zu bytes of an artifact or media do not fit into the text: give a "
                         "spool store (bytes), a larger inline_below, or allow_missing",
                         bytes.len);
    status = digest_bytes(bytes, &placed.ref, reterr);
    if (!status)
        status = find_bytes(&placed.ref, options->bytes, &there, reterr);
    if (!status && options->bytes && !there)
        status = peg_spool_write(options->bytes, key_of(&placed.ref, key), bytes, &there, reterr);
    if (!status)
        *ret_bytes = placed;
    return status;
}

/* The bytes are the reader's own, or in *owned, which goes over to what is placed. */
static peg_status place_bytes(peg_str bytes, char **owned, const peg_turn_write_options *options,
                              struct peg__bytes *ret_bytes, peg_error *reterr)
{
    struct peg__bytes placed = {.form = PEG__BYTES_TEXT, .text = bytes};
    peg_status status;

    if ((int64_t)bytes.len >= bound_of(options))
        return store_bytes(bytes, options, ret_bytes, reterr);
    if (peg__utf8_is_valid(bytes)) {
        placed.owned = *owned;
        *owned = NULL;
    } else {
        placed.form = PEG__BYTES_BASE64;
        status = peg__bytes_base64(bytes, &placed.owned, &placed.text.len, reterr);
        if (status)
            return status;
        placed.text.ptr = placed.owned;
    }
    *ret_bytes = placed;
    return PEG_OK;
}

peg_status peg__bytes_place(peg_reader *reader, const peg_turn_write_options *options,
                            struct peg__bytes *ret_bytes, peg_error *reterr)
{
    PEG_CLEANUP(peg__freep) char *owned = NULL;
    bool is_kept;
    peg_str bytes;
    peg_status status = keep_ref(reader, options, &is_kept, reterr);

    if (status)
        return status;
    if (is_kept) {
        *ret_bytes = (struct peg__bytes){.form = PEG__BYTES_REF, .ref = *peg__bytes_ref_of(reader)};
        return PEG_OK;
    }
    if (!peg__reader_view(reader, &bytes)) {
        status = peg_reader_read_all(reader, PEG_LIMIT_ARTIFACT_BYTES, &owned, &bytes.len, reterr);
        if (status)
            return status;
        bytes.ptr = owned;
    }
    return place_bytes(bytes, &owned, options, ret_bytes, reterr);
}

/* A reference in a file, its members in the order of their names. */
struct ref_head {
    int64_t bytes;
    peg_str sha256;
};

static const struct peg__member ref_members[] = {
    PEG__ROW(struct ref_head, bytes, "bytes", LENGTH),
    PEG__ROW(struct ref_head, sha256, "sha256", STRING),
    {0},
};

static peg_status write_ref(const void *self, peg_json_builder *b, peg_error *reterr)
{
    const struct peg__bytes_ref *ref = self;
    const struct ref_head head = {ref->n_bytes, peg__str(ref->sha256)};
    peg_status status;

    peg_json_open_object(b);
    status = peg__members_add(ref_members, &head, b, reterr);
    peg_json_close(b);
    return status;
}

void peg__bytes_fields(const struct peg__bytes *bytes, struct peg__fields *fields)
{
    switch (bytes->form) {
    case PEG__BYTES_TEXT:
        peg__fields_string(fields, "text", bytes->text);
        break;
    case PEG__BYTES_BASE64:
        peg__fields_string(fields, "base64", bytes->text);
        break;
    case PEG__BYTES_REF:
        peg__fields_made(fields, "ref", write_ref, &bytes->ref);
        break;
    }
}

void peg__bytes_free(struct peg__bytes *bytes)
{
    peg__free(bytes->owned);
    bytes->owned = NULL;
}

static const struct peg__member artifact_members[] = {
    PEG__ROW(struct peg__artifact_out, kind, "kind", CSTRING),
    PEG__ODD_ROW("text"),
    PEG__ODD_ROW("base64"),
    PEG__ODD_ROW("ref"),
    {0},
};

peg_status peg__in_decode(struct peg__in *in, const char *name, peg_str base64, char **ret_bytes,
                          size_t *ret_len)
{
    char *bytes;

    if (in->status)
        return in->status;
    bytes = peg__alloc(peg__base64_bytes(base64.len));
    if (!bytes)
        return in->status = peg__fail_nomem(in->reterr);
    if (!peg__base64_decode(base64, bytes, ret_len)) {
        peg__free(bytes);
        return peg__in_fail(in, name, "is not base 64");
    }
    *ret_bytes = bytes;
    return PEG_OK;
}

peg_status peg__bytes_decode(struct peg__in *in, const char *name, peg_str base64,
                             peg_reader **ret_reader)
{
    char *bytes = NULL;
    size_t len = 0;

    if (peg__in_decode(in, name, base64, &bytes, &len))
        return in->status;
    in->status = peg__reader_from_owned(bytes, len, ret_reader, in->reterr);
    if (in->status)
        peg__free(bytes);
    return in->status;
}

static peg_status read_ref(struct peg__in *outer, const peg_json *value,
                           const peg_turn_read_options *options, peg_reader **ret_reader)
{
    char at[PEG__IN_AT];
    struct peg__in in = {value, at, outer->is_strict, PEG_OK, outer->reterr};
    struct ref_head head = {0};
    struct peg__bytes_ref ref;

    snprintf(at, sizeof(at), "%s/ref", outer->at);
    peg__in_only(&in, ref_members);
    peg__members_read(&in, ref_members, &head);
    if (!in.status && (head.sha256.len != PEG_SHA256_HEX - 1 ||
                       strspn(head.sha256.ptr, "0123456789abcdef") != PEG_SHA256_HEX - 1))
        peg__in_fail(&in, "sha256", "must be 64 lowercase hexadecimal digits");
    if (!in.status && !peg__in_any(&in, "bytes"))
        peg__in_fail(&in, NULL, "must have the member 'bytes', the number of bytes");
    if (in.status)
        return outer->status = in.status;
    ref.n_bytes = head.bytes;
    memcpy(ref.sha256, head.sha256.ptr, PEG_SHA256_HEX);
    return outer->status = make_ref_reader(&ref, options->bytes, ret_reader, outer->reterr);
}

peg_status peg__bytes_read(struct peg__in *in, const peg_turn_read_options *options,
                           peg_reader **ret_reader)
{
    const peg_str text = peg__in_string(in, "text");
    const peg_str base64 = peg__in_string(in, "base64");
    const peg_json *ref = peg__in_kind(in, "ref", PEG_JSON_OBJECT);

    if (in->status)
        return in->status;
    if ((text.ptr != NULL) + (base64.ptr != NULL) + (ref != NULL) > 1)
        return peg__in_fail(in, NULL, "has bytes more than once: keep one of text, base64 and ref");
    if (text.ptr)
        return in->status = peg_reader_from_bytes(text, ret_reader, in->reterr);
    if (base64.ptr)
        return peg__bytes_decode(in, "base64", base64, ret_reader);
    return ref ? read_ref(in, ref, options, ret_reader) : PEG_OK;
}

/* ---- artifacts ---------------------------------------------------------------------- */

peg_status peg__artifact_file_write(const void *self, peg_json_builder *b, peg_error *reterr)
{
    const struct peg__artifact_out *artifact = self;
    struct peg__fields fields = {0};
    peg_status status;

    peg__members_write(artifact_members, artifact, &fields);
    if (artifact->bytes)
        peg__bytes_fields(artifact->bytes, &fields);
    peg__fields_members(&fields, artifact->rest);
    status = peg__fields_write(&fields, b, reterr);
    peg__fields_free(&fields);
    return status;
}

/* NULL if it is unknown. */
static const peg_artifact_kind *find_artifact_kind(peg_str name,
                                                   const peg_turn_read_options *options)
{
    const peg_artifact_kind *const ours[] = {&peg_artifact_text, &peg_artifact_json,
                                             &peg_artifact_markdown};

    for (size_t i = 0; i < options->n_kinds; i++)
        if (peg__str_is(name, options->kinds[i]->name))
            return options->kinds[i];
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (peg__str_is(name, ours[i]->name))
            return ours[i];
    return NULL;
}

peg_status peg__artifact_file_read(struct peg__in *in, peg_str text,
                                   const peg_turn_read_options *options,
                                   peg_artifact **ret_artifact)
{
    PEG_CLEANUP(peg_reader_unrefp) peg_reader *reader = NULL;
    const peg_str name = peg__in_string(in, "kind");
    const peg_artifact_kind *kind =
        name.len ? find_artifact_kind(name, options) : &peg_artifact_text;
    peg_status status;

    peg__in_only(in, artifact_members);
    if (!kind && in->is_strict)
        peg__in_fail(in, "kind", "is '%.*s', which is unknown: pass it in kinds",
                     (int)(name.len < 64 ? name.len : 64), name.ptr);
    if (in->status || peg__bytes_read(in, options, &reader))
        return in->status;
    if (!reader && text.ptr)
        in->status = peg_reader_from_bytes(text, &reader, in->reterr);
    if (!in->status && !reader)
        peg__in_fail(in, NULL, "has no bytes: give text, base64 or ref");
    if (in->status)
        return in->status;
    status = peg_artifact_new(kind ? kind : &peg_artifact_text, reader, ret_artifact, in->reterr);
    return in->status = status;
}

/* An unknown kind, such as one of another host. */
static const peg_json *foreign_kind(const peg_json *artifact, const peg_turn_read_options *options)
{
    const peg_json *kind = peg_json_get(artifact, "kind");
    const peg_str name = peg_json_str(kind);

    return name.len && !find_artifact_kind(name, options) ? kind : NULL;
}

bool peg__artifact_rest(const peg_json *artifact, const peg_turn_read_options *options,
                        peg_json_builder *b)
{
    const peg_json *kind = foreign_kind(artifact, options);

    if (!kind && !peg__in_has_others(artifact, artifact_members))
        return false;
    if (!b)
        return true;
    peg_json_add_key(b, peg__str("artifact"));
    peg_json_open_object(b);
    peg__member_copy("kind", kind, b);
    peg__in_copy_others(artifact, artifact_members, b);
    peg_json_close(b);
    return true;
}

/* *ret_doc is the object that the text is, or NULL: a reader would not see what its author wrote if
 * names came twice. */
static const peg_json_options args_options = {
    PEG_JSON_OPTIONS_INIT, .max_depth = PEG_LIMIT_TURN_ARGS_DEPTH, .duplicates = PEG_JSON_REFUSE};

static peg_status parse_args(peg_str text, const peg_json_options *options, peg_json_doc **ret_doc,
                             peg_error *reterr)
{
    peg_json_doc *doc = NULL;
    const peg_status status = peg_json_parse(text, options, &doc, NULL);

    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (!status && peg_json_root(doc)->kind != PEG_JSON_OBJECT)
        doc = peg_json_doc_free(doc);
    *ret_doc = doc;
    return PEG_OK;
}

peg_status peg__args_fields(peg_str text, struct peg__args_out *out, struct peg__fields *fields,
                            peg_error *reterr)
{
    size_t len = 0;
    peg_status status;

    if (!text.len)
        return PEG_OK;
    if (!peg__utf8_is_valid(text)) {
        status = peg__bytes_base64(text, &out->base64, &len, reterr);
        if (!status)
            peg__fields_string(fields, "args_base64", peg__strn(out->base64, len));
        return status;
    }
    status = parse_args(text, &args_options, &out->doc, reterr);
    if (status)
        return status;
    if (out->doc)
        peg__fields_json(fields, "args", peg_json_root(out->doc));
    else
        peg__fields_string(fields, "args", text);
    return PEG_OK;
}

void peg__args_out_free(struct peg__args_out *out)
{
    out->doc = peg_json_doc_free(out->doc);
    peg__free(out->base64);
    out->base64 = NULL;
}

peg_status peg__args_same(peg_str a, peg_str b, bool *ret_same, peg_error *reterr)
{
    peg_json_doc *left = NULL;
    peg_json_doc *right = NULL;
    peg_status status;

    *ret_same = peg__str_eq(a, b);
    if (*ret_same)
        return PEG_OK;
    status = parse_args(a, &args_options, &left, reterr);
    if (!status && left)
        status = parse_args(b, &args_options, &right, reterr);
    if (!status && left && right)
        *ret_same = peg_json_equal(peg_json_root(left), peg_json_root(right));
    peg_json_doc_free(left);
    peg_json_doc_free(right);
    return status;
}

peg_status peg__args_usable(peg_str text, bool *ret_usable, peg_error *reterr)
{
    peg_json_doc *doc = NULL;
    const peg_status status = parse_args(text, &peg__json_refuse_duplicates, &doc, reterr);

    *ret_usable = doc != NULL;
    peg_json_doc_free(doc);
    return status;
}

/* ---- reading --------------------------------------------------------------------- */

peg_status peg__args_read(struct peg__in *payload, peg_str *ret_text, char **ret_owned)
{
    const peg_json *args = peg__in_any(payload, "args");
    const peg_str base64 = peg__in_string(payload, "args_base64");
    size_t len = 0;

    *ret_text = (peg_str){NULL, 0};
    *ret_owned = NULL;
    if (payload->status)
        return payload->status;
    if (args && base64.ptr)
        return peg__in_fail(payload, "args_base64", "repeats args: keep one of them");
    if (args && args->kind == PEG_JSON_STRING)
        *ret_text = peg_json_str(args);
    else if (base64.ptr)
        payload->status = peg__in_decode(payload, "args_base64", base64, ret_owned, &len);
    else if (args)
        payload->status = peg_json_write(args, PEG_JSON_COMPACT, ret_owned, &len, payload->reterr);
    if (*ret_owned)
        *ret_text = peg__strn(*ret_owned, len);
    return payload->status;
}
