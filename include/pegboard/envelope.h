/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_ENVELOPE_H
#define PEGBOARD_ENVELOPE_H

/*
 * How results are put before a model: in an envelope whose name cannot be guessed, so that
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

/*
 * Wraps a body. Attribute values are escaped. Inside the body the '<' of anything that could be
 * taken for a tag of an envelope or of system_instructions becomes "&lt;", and bytes that are no
 * UTF-8 become U+FFFD; all else stays as it is. PEG_EINVAL (E_INVALID_ARGUMENT) with the field as
 * `where`, PEG_EIO (E_NO_RANDOMNESS), PEG_ELIMIT beyond 256 MiB, PEG_ENOMEM.
 */
PEG_API PEG_MUST_USE peg_status peg_envelope_wrap(const peg_envelope *envelope, peg_str body,
                                                  char **ret_text, size_t *ret_len,
                                                  peg_error *reterr);

/* Zero means the default, told here in brackets. */
typedef struct peg_render_options {
    size_t size;          /* set by PEG_RENDER_OPTIONS_INIT */
    int64_t inline_below; /* artifacts of fewer bytes are rendered whole [4,096]; negative: none */
    const char *encoding; /* for the token estimate in a handle [none] */
    const peg_tool *tool; /* as registered now; trust is the lesser of it and the record's */
    bool tool_is_gone;    /* it is no longer registered: rendered untrusted */
    /* What the model is offered (definitions.h): a handle lists the queries among them [all] */
    const peg_json *definitions;
} peg_render_options;
#define PEG_RENDER_OPTIONS_INIT .size = sizeof(peg_render_options)

/*
 * The text of a record's result for a model, the same each time. Text: enveloped whole. An
 * artifact: whole if the record says inline or it is small enough, else a handle, which is always
 * untrusted: call id, kind, sizes, and the queries with their descriptions. A query that gave way
 * to another tool of its name is not listed where options say what is offered. Media: for each a
 * marker and a fallback, see peg_render_media().
 *
 * Text and whole artifacts, of failed calls too, are trusted if the tool was when the call ran, if
 * it is not gone and, where options name it, if it still is. That a tool is gone which was trusted
 * is logged (E_TOOL_NOT_FOUND). Media has its own trust, but none where the tool is gone.
 *
 * options may be NULL. PEG_EIO, PEG_ELIMIT where what has to be shown whole cannot be read,
 * PEG_EIO (E_NO_RANDOMNESS), PEG_ENOTFOUND (E_TOKENS_UNKNOWN), PEG_EINVAL (E_INVALID_ARGUMENT),
 * PEG_ENOMEM.
 */
PEG_API PEG_MUST_USE peg_status peg_render_result(const peg_record *record,
                                                  const peg_render_options *options,
                                                  char **ret_text, size_t *ret_len,
                                                  peg_error *reterr);

/* [media id="..." filename="..."], outside any envelope: comes before the native block. */
PEG_API PEG_MUST_USE peg_status peg_render_media_marker(const peg_media *media, char **ret_text,
                                                        size_t *ret_len, peg_error *reterr);
/* Where a model cannot take the media: its note "text:transcript", "text:caption" or
 * "text:description", the first there is, or else a line that says name, type and size. Trusted if
 * the media is first-party, and the note too. A new nonce each time. */
PEG_API PEG_MUST_USE peg_status peg_render_media(const peg_media *media, char **ret_text,
                                                 size_t *ret_len, peg_error *reterr);

/* A file name to show or to save as: without < >, controls and other characters that are not seen,
 * '_' for / and \, cut after 256 bytes; "unnamed" if nothing is left. PEG_EINVAL, PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_safe_filename(peg_str name, char **ret_name, peg_error *reterr);
/* The type if it is a strict type/subtype, else "application/octet-stream"; borrowed or static. */
PEG_API const char *peg_safe_mime_type(const char *mime_type);

#ifdef __cplusplus
}
#endif
#endif
