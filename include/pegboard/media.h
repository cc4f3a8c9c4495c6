/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_MEDIA_H
#define PEGBOARD_MEDIA_H

/*
 * Media: an image, a sound, a video or a document, as metadata and bytes that are only read when
 * somebody needs them. Trust is the media's own: the tool that returned it does not lend its.
 *
 * Shared, immutable, reference counted; any thread.
 */

#include <pegboard/json.h>
#include <pegboard/reader.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* No zero value: a tier and a hazard that were not chosen are refused. */
typedef enum peg_trust_tier {
    PEG_TIER_UNSET = 0,
    PEG_TIER_FIRST_PARTY,
    PEG_TIER_THIRD_PARTY_PRIVATE,
    PEG_TIER_THIRD_PARTY_PUBLIC, /* the least trusted */
} peg_trust_tier;

typedef enum peg_media_hazard {
    PEG_HAZARD_UNSET = 0,
    PEG_HAZARD_INERT,
    PEG_HAZARD_EXTRACTABLE, /* instructions can be read out of it: documents */
    PEG_HAZARD_OPAQUE,      /* the model perceives what no filter sees: images, sound */
} peg_media_hazard;

typedef enum peg_media_kind {
    PEG_MEDIA_UNSET = 0,
    PEG_MEDIA_IMAGE,
    PEG_MEDIA_AUDIO,
    PEG_MEDIA_VIDEO,
    PEG_MEDIA_DOCUMENT,
} peg_media_kind;

/* Text derived from or about the media, such as a transcript: what is shown where the media itself
 * cannot be. */
typedef struct peg_media_note {
    const char *name; /* "text:transcript", "text:caption", "text:description", or the host's */
    const char *text;
    peg_trust_tier tier;
    bool is_derived; /* from the media itself */
} peg_media_note;

/* Strings and notes are copied, the reader referenced. Strings are UTF-8; what is required is not
 * empty. Type and filename may hold anything else: escape them where they are rendered. */
typedef struct peg_media_def {
    size_t size;    /* set by PEG_MEDIA_DEF_INIT */
    const char *id; /* NULL: a fresh UUID */
    peg_media_kind kind;
    const char *mime_type; /* type/subtype */
    const char *filename;
    peg_reader
        *reader;     /* required without uri and file_id: then reading it fails, E_MEDIA_REMOTE */
    const char *uri; /* where a vendor finds it, such as https: or gs:; may be NULL */
    const char *file_id; /* what a vendor calls its own copy; may be NULL */
    const char *detail;  /* how closely to look, for vendors that ask: "low", "high", "auto" */
    peg_trust_tier tier;
    peg_media_hazard hazard;
    const char *source; /* where it came from; may be NULL */
    const peg_media_note *notes;
    size_t n_notes; /* 64 at most, each name once */
} peg_media_def;
#define PEG_MEDIA_DEF_INIT .size = sizeof(peg_media_def)

/* PEG_EINVAL (E_INVALID_INITIAL_MEDIA_VALUE) with the field as `where` ("/tier", "/notes/0/name");
 * PEG_ELIMIT (E_TEXT_TOO_LARGE) beyond 64 notes or 8 MiB of strings; PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_media_new(const peg_media_def *def, peg_media **ret_media,
                                              peg_error *reterr);
/* Tier and hazard as they must be for where the media came from; those of *def are ignored. The
 * hazard follows from the kind: documents can be extracted from, everything else is opaque. */
PEG_API PEG_MUST_USE peg_status peg_media_user_attachment(const peg_media_def *def,
                                                          peg_media **ret_media, peg_error *reterr);
PEG_API PEG_MUST_USE peg_status peg_media_tool_generated(const peg_media_def *def,
                                                         peg_media **ret_media, peg_error *reterr);
PEG_API PEG_MUST_USE peg_status peg_media_retrieved_public(const peg_media_def *def,
                                                           peg_media **ret_media,
                                                           peg_error *reterr);
PEG_API PEG_MUST_USE peg_status peg_media_retrieved_private(const peg_media_def *def,
                                                            peg_media **ret_media,
                                                            peg_error *reterr);
PEG_API peg_media *peg_media_ref(peg_media *media);
PEG_API peg_media *peg_media_unref(peg_media *media);

/* ---- what it is: borrowed from the media ----------------------------------------- */

PEG_API const char *peg_media_id(const peg_media *media);
PEG_API peg_media_kind peg_media_kind_of(const peg_media *media);
PEG_API const char *peg_media_mime_type(const peg_media *media);
PEG_API const char *peg_media_filename(const peg_media *media);
PEG_API const char *peg_media_source(const peg_media *media);  /* "" if unknown */
PEG_API const char *peg_media_uri(const peg_media *media);     /* "" if it has none */
PEG_API const char *peg_media_file_id(const peg_media *media); /* "" if it has none */
PEG_API const char *peg_media_detail(const peg_media *media);  /* "" if unset */
PEG_API bool peg_media_has_bytes(const peg_media *media);      /* a reader was given */
PEG_API peg_trust_tier peg_media_tier(const peg_media *media);
PEG_API peg_media_hazard peg_media_hazard_of(const peg_media *media);
PEG_API peg_reader *peg_media_reader(const peg_media *media);
PEG_API size_t peg_media_n_notes(const peg_media *media);
/* NULL if there is none. */
PEG_API const peg_media_note *peg_media_note_at(const peg_media *media, size_t i);
PEG_API const peg_media_note *peg_media_note_named(const peg_media *media, const char *name);

/* "first-party", "image", "opaque-perceptual", ...; "unset" for what is none; static. */
PEG_API const char *peg_trust_tier_name(peg_trust_tier tier);
PEG_API const char *peg_media_kind_name(peg_media_kind kind);
PEG_API const char *peg_media_hazard_name(peg_media_hazard hazard);

/* Metadata only; never touches the reader: id, kind, mimeType, filename, trustTier, modalityHazard,
 * and source, uri, fileId, detail and notes ({name: {text, trustTier, derivedFromMedia}}) where
 * there are any. */
PEG_API PEG_MUST_USE peg_status peg_media_describe(const peg_media *media, peg_json_doc **ret_doc,
                                                   peg_error *reterr);
/* All bytes in base 64 with padding, NUL-terminated, freed with peg_free(). PEG_ELIMIT
 * (E_READER_TOO_LARGE) beyond max bytes of media. ret_len may be NULL. */
PEG_API PEG_MUST_USE peg_status peg_media_base64(const peg_media *media, size_t max,
                                                 char **ret_text, size_t *ret_len,
                                                 peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
