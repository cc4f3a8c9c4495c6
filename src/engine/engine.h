/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_ENGINE_H
#define PEG_ENGINE_ENGINE_H

/*
 * An engine (engine.c, engine_config.c), and what a request to a model is made from: the turn as
 * passages (history.c) and what each block says (content.c). The reply is in reply.h.
 */

#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "engine/dialects/dialects.h"
#include "engine/transport/transport.h"
#include "engine/vendors/vendors.h"
#include "pegboard/engine.h"

/* Shared, immutable once made; any thread. */
struct peg_model {
    atomic_uint n_refs;
    peg_model_config config; /* in the arena, with its defaults; headers and the key are below */
    const struct peg__wire *wire;
    struct peg__transport transport;
    struct peg__retry retry;
    struct peg__buf url;
    struct peg__buf headers; /* lines, with the key; wiped before it is freed */
    struct peg__arena arena;
};

/* ---- history ---------------------------------------------------------------------------- */

/*
 * A turn as vendors want to see it: calls that were made together stand together, each with its
 * answer, and whatever stood between a call and its answer comes after the round. Nothing else
 * changes its order.
 */

struct peg__exchange {
    const peg_block *call;
    const peg_record *record; /* NULL: no answer, and the policy is to say so */
    peg_str wire_id; /* [A-Za-z0-9_-]{1,64}, unique in the request: the vendor's own id if it is
                      * that, else made from it, always the same way */
};

/* Either a block, or a round of calls. A result whose call is not in the turn is a block. */
struct peg__passage {
    const peg_block *block; /* NULL: a round */
    struct peg__exchange *calls;
    size_t n_calls;
};

/* Owned; borrows from the turn. */
struct peg__history {
    struct peg__passage *passages;
    size_t n;
    struct peg__arena arena;
};

/* PEG_ESTATE (E_ENGINE_UNANSWERED) names the call; PEG_ENOMEM. */
peg_status peg__history_make(const peg_turn *turn, peg_unanswered unanswered,
                             struct peg__history *ret_history, peg_error *reterr);
void peg__history_free(struct peg__history *history);

/* ---- requests --------------------------------------------------------------------------- */

/* All that a request is made from. */
struct peg__request {
    const peg_model_options *options;
    const peg_turn *turn;
    const peg_json *definitions;   /* NULL: no tools */
    const peg_tool_config *config; /* never NULL; not enabled, or choice none: no tools are sent */
    const struct peg__names *names;
    const struct peg__history *history;
    bool is_streaming;
};

/* Whether tools are sent at all. */
bool peg__offers_tools(const struct peg__request *request);

/* ---- content: what blocks say to a model, in text and in media ----------------------------- */

/* The same for every vendor and the same each time. Text is freed with peg__free(). */

/* Without white space at the end. */
peg_str peg__trim_end(peg_str text);

/* The answer to a call, as the request wants results: an envelope (envelope.h), or plain: the text
 * itself, "" for nothing, and {"error": ...} of a failure. Large results are a handle in either
 * case, with the queries that the request offers. record NULL: the outcome is unknown. Media is
 * described in text; vendors that take it get it beside. */
peg_status peg__content_result(const struct peg__request *request, const peg_record *record,
                               char **ret_text, size_t *ret_len, peg_error *reterr);
/* Whether the answer is a failure, for vendors that have a flag: true of NULL too. */
bool peg__content_is_error(const peg_record *record);

/* The arguments of a call, always the text of a JSON object: as the model wrote it where that is
 * one, "{}" for nothing, and {"_malformed": "what it wrote"} for anything else. */
peg_status peg__content_args(const peg_block *call, char **ret_json, size_t *ret_len,
                             peg_error *reterr);

/* A block that is no message and no call (OTHER, and RESULT without its call) as text of a user,
 * in an envelope by its trust tier. *ret_text is NULL if it is empty. */
peg_status peg__content_other(const struct peg__request *request, const peg_block *block,
                              char **ret_text, size_t *ret_len, peg_error *reterr);
/* A later system block as text of a user: in a trusted envelope whose name is the same in every
 * request and cannot be known to authors of the conversation. */
peg_status peg__content_system(const peg_block *block, char **ret_text, size_t *ret_len,
                               peg_error *reterr);

/* How media is sent. */
enum peg__media_way {
    PEG__MEDIA_BYTES,   /* base 64: small enough, and the vendor takes the type */
    PEG__MEDIA_URI,     /* by its uri */
    PEG__MEDIA_FILE_ID, /* by the vendor's own id */
    PEG__MEDIA_TEXT,    /* not at all: text in its place */
};
/* What a vendor takes, by media kind: bits of (1 << way). Index is peg_media_kind. */
struct peg__media_rules {
    unsigned ways[PEG_MEDIA_DOCUMENT + 1];
    const char *const *types;   /* sent as bytes, NULL-terminated; NULL: any type */
    const char *const *schemes; /* prefixes of uris, NULL-terminated; NULL: "https://", "http://" */
    bool refuses_empty;         /* media without a byte */
};
/* The vendor's own id before the uri before the bytes, where it has several: the fewest bytes. */
enum peg__media_way peg__media_choose(const peg_media *media, const struct peg__media_rules *rules,
                                      const peg_model_options *options);
/* How many bytes of one media are sent at most. */
size_t peg__media_max(const peg_model_options *options);

/* The text that goes with media i of a message: the marker that comes before media that is sent
 * itself; for PEG__MEDIA_TEXT the marker and, in an envelope, what stands in its place. */
peg_status peg__content_media(const peg_block *block, size_t i, enum peg__media_way way,
                              char **ret_text, size_t *ret_len, peg_error *reterr);

#endif
