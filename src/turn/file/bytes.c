/* SPDX-License-Identifier: Apache-2.0 */

#include "turn/file/bytes.h"

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "core/result/result.h"
#include "json/json.h"

#define KEY_PREFIX "sha256-"

enum { KEY_SIZE = sizeof(KEY_PREFIX) + PEG_SHA256_HEX };

static peg_str key_of(const struct peg__bytes_ref *ref, char ret_key[KEY_SIZE])
{
    const int len = snprintf(ret_key, KEY_SIZE, KEY_PREFIX "%s", ref->sha256);

    return peg__strn(ret_key, (size_t)len);
}

static peg_status digest(peg_str bytes, struct peg__bytes_ref *ret_ref, peg_error *reterr)
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
                     "what the spool store has under " KEY_PREFIX
                     "%.12s... are other bytes than were written: put the right ones there",
                     ref->sha256);
}

/* *ret_reader is NULL if the store has no such bytes. */
static peg_status look_up(const struct peg__bytes_ref *ref, peg_spool_store *store,
                          peg_reader **ret_reader, peg_error *reterr)
{
    char key[KEY_SIZE];

    *ret_reader = NULL;
    return store ? peg_spool_read(store, key_of(ref, key), ret_reader, reterr) : PEG_OK;
}

static peg_status check_whole(const struct peg__bytes_ref *ref, peg_str all, peg_error *reterr)
{
    struct peg__bytes_ref found;
    const peg_status status = digest(all, &found, reterr);

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
    peg_status status = look_up(&remote->ref, remote->store, &there, reterr);

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

peg_status peg__bytes_ref_reader(const struct peg__bytes_ref *ref, peg_spool_store *store,
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
    if ((status = look_up(&remote->ref, remote->store, &source, reterr)))
        return status;
    if (source && remote->ref.n_bytes >= bound_of(options) &&
        (status = look_up(&remote->ref, options->bytes, &target, reterr)))
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
                         "%zu bytes of an artifact or media find no place in the text: give a "
                         "spool store (bytes), a larger inline_below, or allow_missing",
                         bytes.len);
    status = digest(bytes, &placed.ref, reterr);
    if (!status)
        status = look_up(&placed.ref, options->bytes, &there, reterr);
    if (!status && options->bytes && !there)
        status = peg_spool_write(options->bytes, key_of(&placed.ref, key), bytes, &there, reterr);
    if (!status)
        *ret_bytes = placed;
    return status;
}

/* The bytes are the reader's own, or in *owned, which goes over to what is placed. */
static peg_status place(peg_str bytes, char **owned, const peg_turn_write_options *options,
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
    return place(bytes, &owned, options, ret_bytes, reterr);
}

static peg_status write_ref(const void *self, peg_json_builder *b, peg_error *reterr)
{
    const struct peg__bytes_ref *ref = self;

    (void)reterr;
    peg_json_open_object(b);
    peg_json_add_key(b, peg__str("bytes"));
    peg_json_add_integer(b, ref->n_bytes);
    peg_json_add_key(b, peg__str("sha256"));
    peg_json_add_string(b, peg__str(ref->sha256));
    peg_json_close(b);
    return PEG_OK;
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
