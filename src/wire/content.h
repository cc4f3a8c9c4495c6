/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_WIRE_CONTENT_H
#define PEG_WIRE_CONTENT_H

/*
 * Typed content of results: the parts of a packed pegboard.v1.ContentList, or CallToolResponse,
 * read where they lie. Bytes stay bytes all the way; only for callers that do not accept content
 * they become JSON.
 */

#include "base/buf.h"
#include "pegboard/common.h"

enum wire_content_kind { WIRE_TEXT, WIRE_JSON, WIRE_BYTES, WIRE_MEDIA };

/* The strings of media, in the order of their fields. */
enum wire_media_word {
    WIRE_MEDIA_ID,
    WIRE_MEDIA_KIND,
    WIRE_MEDIA_TYPE,
    WIRE_MEDIA_FILENAME,
    WIRE_MEDIA_URI,
    WIRE_MEDIA_FILE_ID,
    WIRE_MEDIA_DETAIL,
    WIRE_MEDIA_SOURCE,
    WIRE_MEDIA_TIER,
    WIRE_MEDIA_HAZARD,
    WIRE_MEDIA_WORDS,
};

/* Borrowed from the message. */
struct wire_content {
    enum wire_content_kind kind;
    peg_str bytes; /* of media its data; {NULL, 0}: it is elsewhere */
    peg_str media; /* the packed Media; "": it is none */
    peg_str words[WIRE_MEDIA_WORDS];
};

struct wire_note {
    peg_str name;
    peg_str text;
    peg_str tier;
    bool is_derived;
};

/* The next part; *rest, at first the message, is then what stands behind it. False: there is none,
 * or it is of no kind that is known. */
bool wire_content_next(peg_str *rest, struct wire_content *ret_content);
/* Likewise the notes of media; *rest is at first its `media`. */
bool wire_content_next_note(peg_str *rest, struct wire_note *ret_note);
bool wire_content_is_there(peg_str message);

/* Has the message 1 to 64 fields, each a part? Whether these are what they should be is not looked
 * at. */
bool wire_content_is_list(peg_str list);
/* Are all parts of the message as registry.proto says? JSON in them is for the caller to read.
 * PEG_EINVAL, PEG_ELIMIT (E_CONTENT) with words for the provider's author. */
peg_status wire_content_check(peg_str message, peg_error *reterr);

/* ---- writing: appends a part to a list ---- */

/* All but media. */
void wire_content_add(struct peg__buf *list, enum wire_content_kind kind, peg_str bytes);
/* `data.ptr` NULL: it is elsewhere. */
void wire_content_add_media(struct peg__buf *list, const peg_str words[WIRE_MEDIA_WORDS],
                            const struct wire_note *notes, size_t n_notes, peg_str data);

/* What callers get that do not accept content: {"media":[...]} with "base64" in each,
 * {"base64":...} for bytes that are not text, a string for text; several kinds are
 * {"content":[...]}. */
void wire_content_write_json(peg_str message, struct peg__buf *buf);
/* A packed CallToolResponse with that in place of its content, or with an error, if it has more
 * than PEG_LIMIT_GATEWAY_RESULT_BYTES. PEG_ENOMEM. */
peg_status wire_content_flatten(peg_str response, struct peg__buf *out);

#endif
