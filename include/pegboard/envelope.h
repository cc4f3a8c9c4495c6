/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_ENVELOPE_H
#define PEGBOARD_ENVELOPE_H

/*
 * How results are put before a model: in an envelope whose name nobody could have guessed, so that
 * what is inside cannot end it, and which says whether to trust what is inside.
 *
 *   <untrusted_content_9f... nonce="9f..." kind="tool-result" tool="fetch">
 *   ...
 *   </untrusted_content_9f...>
 *
 * Values and pure functions; any thread. Text handed over is freed with peg_free().
 */

#include <pegboard/artifact.h>
#include <pegboard/media.h>
#include <pegboard/record.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct peg_envelope {
    bool is_trusted;
    const char *nonce;    /* [A-Za-z0-9_-]{1,128}; NULL: a new one of 128 random bits */
    const char *kind;     /* "tool-result", "artifact-handle", ... */
    const char *tool;     /* NULL: none */
    const char *modality; /* "inert", "extractable", "opaque"; NULL: none */
} peg_envelope;

/* Wraps a body. Attribute values are escaped; closing sequences of any envelope, and tags of
 * system_instructions, are neutralised inside the body. PEG_EINVAL (E_ENVELOPE), PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_envelope_wrap(const peg_envelope *envelope, peg_str body,
                                                  char **ret_text, size_t *ret_len,
                                                  peg_error *reterr);

/* Zero means the default, told here in brackets. */
typedef struct peg_render_options {
    int64_t inline_below; /* artifacts of fewer bytes are rendered whole [4,096]; negative: none */
    const char *encoding; /* for the token estimate in a handle [none] */
    const peg_tool *tool; /* as registered now; trust is the lesser of it and the record's */
    bool tool_is_gone;    /* it is no longer registered: rendered untrusted */
} peg_render_options;

/*
 * The text of a record's result for a model. Text: enveloped whole. An artifact: whole if the
 * record or options say inline, else a handle, which is always untrusted: call id, kind, sizes,
 * and every query with its description. Media: a marker and a fallback for each, see
 * peg_render_media(). options may be NULL. PEG_ENOMEM, PEG_EIO.
 */
PEG_API PEG_MUST_USE peg_status peg_render_result(const peg_record *record,
                                                  const peg_render_options *options,
                                                  char **ret_text, size_t *ret_len,
                                                  peg_error *reterr);

/* "[media id=... filename=...]", outside any envelope: comes before the native block. */
PEG_API PEG_MUST_USE peg_status peg_render_media_marker(const peg_media *media, char **ret_text,
                                                        size_t *ret_len, peg_error *reterr);
/* Where a model cannot take the media: its transcript, caption or description, or else a line that
 * says name, type and size; enveloped with the lesser trust of media and note. */
PEG_API PEG_MUST_USE peg_status peg_render_media(const peg_media *media, char **ret_text,
                                                 size_t *ret_len, peg_error *reterr);

/* A file name without < > and control characters, at most 256 bytes. */
PEG_API PEG_MUST_USE peg_status peg_safe_filename(peg_str name, char **ret_name, peg_error *reterr);
/* The type if it is a strict type/subtype, else "application/octet-stream"; borrowed or static. */
PEG_API const char *peg_safe_mime_type(const char *mime_type);

#ifdef __cplusplus
}
#endif
#endif
