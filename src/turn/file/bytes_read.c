/* SPDX-License-Identifier: Apache-2.0 */

/* Bytes and artifacts from files. */

#include <stdio.h>

#include "base/error.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "core/result/result.h"
#include "turn/file/media.h"

static const char *const artifact_names[] = {"kind", "text", "base64", "ref", NULL};
static const char *const ref_names[] = {"sha256", "bytes", NULL};

peg_status peg__bytes_decode(struct peg__in *in, const char *name, peg_str base64,
                             peg_reader **ret_reader)
{
    PEG_CLEANUP(peg__freep) char *bytes = peg__alloc(peg__base64_bytes(base64.len));
    size_t len = 0;
    peg_status status;

    if (!bytes)
        return in->status = peg__fail_nomem(in->reterr);
    if (!peg__base64_decode(base64, bytes, &len))
        return peg__in_fail(in, name, "is no base 64");
    status = peg__reader_from_owned(bytes, len, ret_reader, in->reterr);
    if (!status)
        bytes = NULL;
    return in->status = status;
}

static peg_status read_ref(struct peg__in *outer, const peg_json *value,
                           const peg_turn_read_options *options, peg_reader **ret_reader)
{
    char at[PEG__IN_AT];
    struct peg__in in = {value, at, outer->is_strict, PEG_OK, outer->reterr};
    struct peg__bytes_ref ref;
    peg_str sha256;

    snprintf(at, sizeof(at), "%s/ref", outer->at);
    peg__in_only(&in, ref_names);
    sha256 = peg__in_string(&in, "sha256");
    ref.n_bytes = peg__in_integer(&in, "bytes", INT64_MAX);
    if (!in.status && (sha256.len != PEG_SHA256_HEX - 1 ||
                       strspn(sha256.ptr, "0123456789abcdef") != PEG_SHA256_HEX - 1))
        peg__in_fail(&in, "sha256", "must be 64 lowercase hexadecimal digits");
    if (!in.status && !peg__in_any(&in, "bytes"))
        peg__in_fail(&in, NULL, "must say how many bytes there are");
    if (in.status)
        return outer->status = in.status;
    memcpy(ref.sha256, sha256.ptr, PEG_SHA256_HEX);
    return outer->status = peg__bytes_ref_reader(&ref, options->bytes, ret_reader, outer->reterr);
}

peg_status peg__bytes_read(struct peg__in *in, const peg_turn_read_options *options,
                           peg_reader **ret_reader)
{
    const peg_str text = peg__in_string(in, "text");
    const peg_str base64 = peg__in_string(in, "base64");
    const peg_json *ref = peg__in_object(in, "ref");

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

/* NULL if nobody here knows it. */
static const peg_artifact_kind *kind_named(peg_str name, const peg_turn_read_options *options)
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
    const peg_artifact_kind *kind = name.len ? kind_named(name, options) : &peg_artifact_text;
    peg_status status;

    peg__in_only(in, artifact_names);
    if (!kind && in->is_strict)
        peg__in_fail(in, "kind", "is '%.*s', which nobody here knows: pass it in kinds",
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

/* A kind that nobody here knows, such as one of another host. */
static const peg_json *foreign_kind(const peg_json *artifact, const peg_turn_read_options *options)
{
    const peg_json *kind = peg_json_get(artifact, "kind");

    if (!kind || kind->kind != PEG_JSON_STRING || !kind->len)
        return NULL;
    return kind_named(peg_json_str(kind), options) ? NULL : kind;
}

bool peg__artifact_has_rest(const peg_json *artifact, const peg_turn_read_options *options)
{
    return artifact &&
           (foreign_kind(artifact, options) || peg__in_has_others(artifact, artifact_names));
}

void peg__artifact_copy_rest(const peg_json *artifact, const peg_turn_read_options *options,
                             peg_json_builder *b)
{
    const peg_json *kind = foreign_kind(artifact, options);

    peg_json_open_object(b);
    if (kind) {
        peg_json_add_key(b, peg__str("kind"));
        peg_json_add_copy(b, kind);
    }
    peg__in_copy_others(artifact, artifact_names, b);
    peg_json_close(b);
}
