/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_CONTENT_H
#define PEG_ENGINE_CONTENT_H

/*
 * What blocks say to a model, in words and in media, the same for every provider and the same each
 * time. Text is freed with peg__free().
 */

#include "base/buf.h"
#include "pegboard/engine.h"

struct peg__request; /* wire.h */

/* The answer to a call, as the request wants results: an envelope (envelope.h), or plain: the text
 * itself, "" for nothing, and
 * {"error": ...} of a failure; what is too large for a prompt is a handle in either case, with the
 * queries that the request offers. record NULL: that nobody knows what became of the call. Media is
 * described in words here; renderers that can send it natively do so beside. */
peg_status peg__content_result(const struct peg__request *request, const peg_record *record,
                               char **ret_text, size_t *ret_len, peg_error *reterr);
/* Whether the answer is a failure, for providers that have a flag: true of NULL too. */
bool peg__content_is_error(const peg_record *record);

/* The arguments of a call, always the text of a JSON object: as the model wrote it where that is
 * one, "{}" for nothing, and {"_malformed": "what it wrote"} for anything else. */
peg_status peg__content_args(const peg_block *call, char **ret_json, size_t *ret_len,
                             peg_error *reterr);

/* A block that is no message and no call (OTHER, and RESULT without its call) as words of a user,
 * in an envelope by its trust tier. *ret_text is NULL if it has nothing to say. Media is described
 * as above. */
peg_status peg__content_other(const struct peg__request *request, const peg_block *block,
                              char **ret_text, size_t *ret_len, peg_error *reterr);

/* How media can be sent: what renderers ask before they choose. */
enum peg__media_way {
    PEG__MEDIA_BYTES,   /* base 64: small enough, and the provider takes the type */
    PEG__MEDIA_URI,     /* by its uri */
    PEG__MEDIA_FILE_ID, /* by the provider's own id */
    PEG__MEDIA_TEXT,    /* not at all: words in its place */
};
/* What a provider takes, by media kind: bits of (1 << way). Index is peg_media_kind. */
struct peg__media_rules {
    unsigned ways[PEG_MEDIA_DOCUMENT + 1];
    const char *const *types;   /* sent as bytes, NULL-terminated; NULL: any type */
    const char *const *schemes; /* prefixes of uris, NULL-terminated; NULL: "https://", "http://" */
};
/* The provider's own id before the uri before the bytes, where it has several: the fewest bytes. */
enum peg__media_way peg__media_choose(const peg_media *media, const struct peg__media_rules *rules,
                                      const peg_model_options *options);
/* How many bytes of one media are sent at most. */
size_t peg__media_max(const peg_model_options *options);

/* The words that go with media i of a message: the marker that comes before media that is sent
 * itself; for PEG__MEDIA_TEXT the marker and, in an envelope, what stands in its place. */
peg_status peg__content_media(const peg_block *block, size_t i, enum peg__media_way way,
                              char **ret_text, size_t *ret_len, peg_error *reterr);

#endif
