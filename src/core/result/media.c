/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Media is one block of memory: the struct, the notes, then all strings. Everything is checked
 * before anything is allocated.
 */

#include "core/result/result.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "json/json.h"

/* Shared immutable. */
struct peg_media {
    atomic_uint n_refs;
    peg_media_kind kind;
    peg_trust_tier tier;
    peg_media_hazard hazard;
    bool has_bytes;
    peg_reader *reader; /* never NULL: one that always fails stands for bytes that are elsewhere */
    const char *id;
    const char *mime_type;
    const char *filename;
    const char *source;
    const char *uri;
    const char *file_id;
    const char *detail;
    size_t n_notes;
    peg_media_note notes[]; /* then the strings */
};

/* ---- names ------------------------------------------------------------------------------- */

static const char *name_at(const char *const *names, size_t n, unsigned value)
{
    return value && value < n ? names[value] : "unset";
}

const char *peg_trust_tier_name(peg_trust_tier tier)
{
    static const char *const names[] = {
        [PEG_TIER_FIRST_PARTY] = "first-party",
        [PEG_TIER_THIRD_PARTY_PRIVATE] = "third-party-private",
        [PEG_TIER_THIRD_PARTY_PUBLIC] = "third-party-public",
    };

    return name_at(names, sizeof(names) / sizeof(*names), tier);
}

const char *peg_media_kind_name(peg_media_kind kind)
{
    static const char *const names[] = {
        [PEG_MEDIA_IMAGE] = "image",
        [PEG_MEDIA_AUDIO] = "audio",
        [PEG_MEDIA_VIDEO] = "video",
        [PEG_MEDIA_DOCUMENT] = "document",
    };

    return name_at(names, sizeof(names) / sizeof(*names), kind);
}

const char *peg_media_hazard_name(peg_media_hazard hazard)
{
    static const char *const names[] = {
        [PEG_HAZARD_INERT] = "inert",
        [PEG_HAZARD_EXTRACTABLE] = "extractable-instructions",
        [PEG_HAZARD_OPAQUE] = "opaque-perceptual",
    };

    return name_at(names, sizeof(names) / sizeof(*names), hazard);
}

/* ---- checking a definition --------------------------------------------------------------- */

static peg_status reject_field(const char *where, const char *what, peg_error *reterr)
{
    peg__fail(reterr, PEG_EINVAL, "E_INVALID_INITIAL_MEDIA_VALUE", "%s of the media %s", where + 1,
              what);
    peg__error_where(reterr, peg__str(where));
    return PEG_EINVAL;
}

/* The bytes of a string with its NUL are added to *len. */
static peg_status check_string(const char *where, const char *s, bool may_be_empty, size_t *len,
                               peg_error *reterr)
{
    size_t n;

    if (!s || (!may_be_empty && !*s))
        return reject_field(where, "is missing: set it", reterr);
    n = strlen(s);
    if (n >= PEG_LIMIT_MEDIA_TEXT_BYTES - *len) {
        peg__fail(reterr, PEG_ELIMIT, "E_TEXT_TOO_LARGE",
                  "the strings of the media have more than %d bytes (media_text_bytes); shorten %s",
                  PEG_LIMIT_MEDIA_TEXT_BYTES, where + 1);
        peg__error_where(reterr, peg__str(where));
        return PEG_ELIMIT;
    }
    if (!peg__utf8_is_valid(peg__strn(s, n)))
        return reject_field(where, "is not UTF-8", reterr);
    *len += n + 1;
    return PEG_OK;
}

static peg_status check_tier(const char *where, peg_trust_tier tier, peg_error *reterr)
{
    if (tier < PEG_TIER_FIRST_PARTY || tier > PEG_TIER_THIRD_PARTY_PUBLIC)
        return reject_field(where,
                            tier ? "is none of the trust tiers"
                                 : "is missing: choose a trust tier, there is no default",
                            reterr);
    return PEG_OK;
}

static bool is_named_before(const peg_media_def *def, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(def->notes[j].name, def->notes[i].name) == 0)
            return true;
    return false;
}

static peg_status check_note(const peg_media_def *def, size_t i, size_t *len, peg_error *reterr)
{
    const peg_media_note *note = &def->notes[i];
    char where[40];
    peg_status status;

    snprintf(where, sizeof(where), "/notes/%zu/name", i);
    status = check_string(where, note->name, false, len, reterr);
    if (status)
        return status;
    if (is_named_before(def, i))
        return reject_field(where, "is that of an earlier note: each name stands once", reterr);
    snprintf(where, sizeof(where), "/notes/%zu/text", i);
    status = check_string(where, note->text, true, len, reterr);
    if (status)
        return status;
    snprintf(where, sizeof(where), "/notes/%zu/tier", i);
    return check_tier(where, note->tier, reterr);
}

static peg_status check_notes(const peg_media_def *def, size_t *len, peg_error *reterr)
{
    if (def->n_notes > PEG_LIMIT_MEDIA_NOTES) {
        peg__fail(reterr, PEG_ELIMIT, "E_TEXT_TOO_LARGE",
                  "the media has %zu notes, more than %d (media_notes); drop some", def->n_notes,
                  PEG_LIMIT_MEDIA_NOTES);
        peg__error_where(reterr, peg__str("/notes"));
        return PEG_ELIMIT;
    }
    if (def->n_notes && !def->notes)
        return reject_field("/notes", "is missing, but n_notes is not 0", reterr);
    for (size_t i = 0; i < def->n_notes; i++) {
        const peg_status status = check_note(def, i, len, reterr);

        if (status)
            return status;
    }
    return PEG_OK;
}

static peg_status check_strings(const peg_media_def *def, size_t *len, peg_error *reterr)
{
    const struct {
        const char *where;
        const char *text;
        bool is_optional;
        bool may_be_empty;
    } strings[] = {
        {"/id", def->id, true, false}, /* an empty one would find nothing */
        {"/mime_type", def->mime_type, false, false},
        {"/filename", def->filename, false, false},
        {"/source", def->source, true, true}, /* unknown */
        {"/uri", def->uri, true, true},
        {"/file_id", def->file_id, true, true},
        {"/detail", def->detail, true, true},
    };

    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        peg_status status;

        if (!strings[i].text && strings[i].is_optional)
            continue;
        status =
            check_string(strings[i].where, strings[i].text, strings[i].may_be_empty, len, reterr);
        if (status)
            return status;
    }
    return PEG_OK;
}

static bool is_remote(const peg_media_def *def)
{
    return (def->uri && *def->uri) || (def->file_id && *def->file_id);
}

static peg_status check_def(const peg_media_def *def, size_t *ret_len, peg_error *reterr)
{
    size_t len = 0;
    peg_status status;

    if (def->kind < PEG_MEDIA_IMAGE || def->kind > PEG_MEDIA_DOCUMENT)
        return reject_field("/kind", "must be image, audio, video or document", reterr);
    if (!def->reader && !is_remote(def))
        return reject_field(
            "/reader",
            "is missing: set where the bytes come from, or uri or file_id if a provider "
            "has them",
            reterr);
    status = check_tier("/tier", def->tier, reterr);
    if (status)
        return status;
    if (def->hazard < PEG_HAZARD_INERT || def->hazard > PEG_HAZARD_OPAQUE)
        return reject_field("/hazard", "must be inert, extractable or opaque; there is no default",
                            reterr);
    status = check_strings(def, &len, reterr);
    if (status)
        return status;
    status = check_notes(def, &len, reterr);
    if (status)
        return status;
    *ret_len = len;
    return PEG_OK;
}

/* ---- bytes that a provider has and we do not ---------------------------------------------- */

static peg_status remote_read_at(void *user, uint64_t offset, void *buffer, size_t n, size_t *ret_n,
                                 peg_error *reterr)
{
    (void)user, (void)offset, (void)buffer, (void)n, (void)ret_n;
    return peg__fail(reterr, PEG_EUNSUPPORTED, "E_MEDIA_REMOTE",
                     "the bytes of the media are where its uri or file_id says: hand that to a "
                     "provider that reads it, or make the media with a reader");
}

static int64_t remote_byte_length(void *user)
{
    (void)user;
    return -1;
}

/* A new reference to what reads the media. */
static peg_status open_bytes(const peg_media_def *def, peg_reader **ret_reader, peg_error *reterr)
{
    static const peg_reader_ops ops = {.read_at = remote_read_at,
                                       .byte_length = remote_byte_length};

    if (!def->reader)
        return peg_reader_new(&ops, NULL, ret_reader, reterr);
    *ret_reader = peg_reader_ref(def->reader);
    return PEG_OK;
}

/* ---- making it --------------------------------------------------------------------------- */

static const char *put_string(char **at, const char *s)
{
    const size_t n = strlen(s) + 1;
    char *copy = *at;

    memcpy(copy, s, n);
    *at += n;
    return copy;
}

static const char *put_optional_string(char **at, const char *s)
{
    return s ? put_string(at, s) : "";
}

static peg_status make_media(const peg_media_def *def, const char *id, size_t len,
                             peg_media **ret_media, peg_error *reterr)
{
    const size_t head = sizeof(peg_media) + def->n_notes * sizeof(peg_media_note);
    peg_reader *reader = NULL;
    peg_media *media;
    peg_status status = open_bytes(def, &reader, reterr);
    char *at;

    if (status)
        return status;
    media = peg__alloc(head + len);
    if (!media) {
        peg_reader_unref(reader);
        return peg__fail_nomem(reterr);
    }
    at = (char *)media + head;
    *media = (peg_media){.n_refs = 1,
                         .kind = def->kind,
                         .tier = def->tier,
                         .hazard = def->hazard,
                         .has_bytes = def->reader != NULL,
                         .reader = reader,
                         .n_notes = def->n_notes};
    media->id = put_string(&at, id);
    media->mime_type = put_string(&at, def->mime_type);
    media->filename = put_string(&at, def->filename);
    media->source = put_optional_string(&at, def->source);
    media->uri = put_optional_string(&at, def->uri);
    media->file_id = put_optional_string(&at, def->file_id);
    media->detail = put_optional_string(&at, def->detail);
    for (size_t i = 0; i < def->n_notes; i++)
        media->notes[i] = (peg_media_note){.name = put_string(&at, def->notes[i].name),
                                           .text = put_string(&at, def->notes[i].text),
                                           .tier = def->notes[i].tier,
                                           .is_derived = def->notes[i].is_derived};
    *ret_media = media;
    return PEG_OK;
}

peg_status peg_media_new(const peg_media_def *def, peg_media **ret_media, peg_error *reterr)
{
    PEG__READ_OR_RETURN(def, PEG_MEDIA_DEF_INIT, reterr);
    char fresh[PEG_UUID_TEXT];
    size_t len = 0;
    peg_status status;

    if (!def)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_INITIAL_MEDIA_VALUE",
                         "the definition of the media is missing");
    status = check_def(def, &len, reterr);
    if (status)
        return status;
    if (!def->id) {
        if (!peg__uuid7(peg_clock_system(), fresh))
            return peg__fail_no_randomness(reterr);
        len += sizeof(fresh);
    }
    return make_media(def, def->id ? def->id : fresh, len, ret_media, reterr);
}

static peg_status new_from(const peg_media_def *def, peg_trust_tier tier, peg_media **ret_media,
                           peg_error *reterr)
{
    PEG__READ_OR_RETURN(def, PEG_MEDIA_DEF_INIT, reterr);
    peg_media_def sure;

    if (!def)
        return peg_media_new(NULL, ret_media, reterr);
    sure = *def;
    sure.tier = tier;
    sure.hazard = def->kind == PEG_MEDIA_DOCUMENT ? PEG_HAZARD_EXTRACTABLE : PEG_HAZARD_OPAQUE;
    return peg_media_new(&sure, ret_media, reterr);
}

peg_status peg_media_user_attachment(const peg_media_def *def, peg_media **ret_media,
                                     peg_error *reterr)
{
    return new_from(def, PEG_TIER_THIRD_PARTY_PRIVATE, ret_media, reterr);
}

peg_status peg_media_tool_generated(const peg_media_def *def, peg_media **ret_media,
                                    peg_error *reterr)
{
    return new_from(def, PEG_TIER_FIRST_PARTY, ret_media, reterr);
}

peg_status peg_media_retrieved_public(const peg_media_def *def, peg_media **ret_media,
                                      peg_error *reterr)
{
    return new_from(def, PEG_TIER_THIRD_PARTY_PUBLIC, ret_media, reterr);
}

peg_status peg_media_retrieved_private(const peg_media_def *def, peg_media **ret_media,
                                       peg_error *reterr)
{
    return new_from(def, PEG_TIER_THIRD_PARTY_PRIVATE, ret_media, reterr);
}

PEG__DEFINE_REF(peg_media)

peg_media *peg_media_unref(peg_media *media)
{
    if (!media || !peg__refs_drop(&media->n_refs))
        return NULL;
    peg_reader_unref(media->reader);
    peg__free(media);
    return NULL;
}

/* ---- what it is -------------------------------------------------------------------------- */

PEG__DEFINE_GETTER(const char *, peg_media_id, peg_media, id)
PEG__DEFINE_GETTER(peg_media_kind, peg_media_kind_of, peg_media, kind)
PEG__DEFINE_GETTER(const char *, peg_media_mime_type, peg_media, mime_type)
PEG__DEFINE_GETTER(const char *, peg_media_filename, peg_media, filename)
PEG__DEFINE_GETTER(const char *, peg_media_source, peg_media, source)
PEG__DEFINE_GETTER(const char *, peg_media_uri, peg_media, uri)
PEG__DEFINE_GETTER(const char *, peg_media_file_id, peg_media, file_id)
PEG__DEFINE_GETTER(const char *, peg_media_detail, peg_media, detail)
PEG__DEFINE_GETTER(bool, peg_media_has_bytes, peg_media, has_bytes)
PEG__DEFINE_GETTER(peg_trust_tier, peg_media_tier, peg_media, tier)
PEG__DEFINE_GETTER(peg_media_hazard, peg_media_hazard_of, peg_media, hazard)
PEG__DEFINE_GETTER(peg_reader *, peg_media_reader, peg_media, reader)
PEG__DEFINE_GETTER(size_t, peg_media_n_notes, peg_media, n_notes)

const peg_media_note *peg_media_note_at(const peg_media *media, size_t i)
{
    return i < media->n_notes ? &media->notes[i] : NULL;
}

const peg_media_note *peg_media_note_named(const peg_media *media, const char *name)
{
    for (size_t i = 0; name && i < media->n_notes; i++)
        if (strcmp(media->notes[i].name, name) == 0)
            return &media->notes[i];
    return NULL;
}

static void add_string(peg_json_builder *b, const char *name, const char *text)
{
    peg_json_add_key(b, peg__str(name));
    peg_json_add_string(b, peg__str(text));
}

static void add_if_set(peg_json_builder *b, const char *name, const char *text)
{
    if (*text)
        add_string(b, name, text);
}

static void add_note(peg_json_builder *b, const peg_media_note *note)
{
    peg_json_add_key(b, peg__str(note->name));
    peg_json_open_object(b);
    add_string(b, "text", note->text);
    add_string(b, "trustTier", peg_trust_tier_name(note->tier));
    peg_json_add_key(b, peg__str("derivedFromMedia"));
    peg_json_add_bool(b, note->is_derived);
    peg_json_close(b);
}

peg_status peg_media_describe(const peg_media *media, peg_json_doc **ret_doc, peg_error *reterr)
{
    peg_json_builder *b = peg_json_builder_new();

    peg_json_open_object(b);
    add_string(b, "id", media->id);
    add_string(b, "kind", peg_media_kind_name(media->kind));
    add_string(b, "mimeType", media->mime_type);
    add_string(b, "filename", media->filename);
    add_string(b, "trustTier", peg_trust_tier_name(media->tier));
    add_string(b, "modalityHazard", peg_media_hazard_name(media->hazard));
    add_if_set(b, "source", media->source);
    add_if_set(b, "uri", media->uri);
    add_if_set(b, "fileId", media->file_id);
    add_if_set(b, "detail", media->detail);
    if (media->n_notes) {
        peg_json_add_key(b, peg__str("notes"));
        peg_json_open_object(b);
        for (size_t i = 0; i < media->n_notes; i++)
            add_note(b, &media->notes[i]);
        peg_json_close(b);
    }
    peg_json_close(b);
    return peg_json_builder_finish(b, ret_doc, reterr);
}

/* ---- base 64 ----------------------------------------------------------------------------- */

peg_status peg_media_base64(const peg_media *media, size_t max, char **ret_text, size_t *ret_len,
                            peg_error *reterr)
{
    PEG_CLEANUP(peg__freep) char *read = NULL;
    peg_str bytes;
    peg_status status;
    size_t len;
    char *text;

    if (!peg__reader_view(media->reader, &bytes) || bytes.len > max) {
        status = peg_reader_read_all(media->reader, max, &read, &bytes.len, reterr);
        if (status)
            return status;
        bytes.ptr = read;
    }
    len = peg__base64_len(bytes.len); /* memory holds the bytes, so this cannot overflow */
    text = peg__alloc(len + 1);
    if (!text)
        return peg__fail_nomem(reterr);
    peg__base64_encode(bytes, text);
    *ret_text = text;
    if (ret_len)
        *ret_len = len;
    return PEG_OK;
}
