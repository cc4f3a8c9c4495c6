/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_VENDORS_OPENAI_H
#define PEG_ENGINE_VENDORS_OPENAI_H

/*
 * What OpenAI's two protocols share: chat_request.c, chat_reply.c, responses_request.c and
 * responses_reply.c.
 */

#include "engine/content.h"
#include "engine/transport/wire.h"
#include "pegboard/envelope.h"
#include "json/json.h"

/* ---- requests --------------------------------------------------------------------------- */

/* A model that thinks first, by its name (o1, o3, o4, gpt-5, also behind "openai/"): it takes no
 * sampling parameters. */
bool peg__openai_reasons(const char *model);
/* One of those that take no parallel_tool_calls either: o1, o3, o4. */
bool peg__openai_is_o_series(const char *model);
/* One that is known not to think: it refuses to be asked for sealed thoughts. */
bool peg__openai_never_reasons(const char *model);

/* Members tools, tool_choice and parallel_tool_calls; nothing at all if no tools are offered. */
peg_status peg__openai_tools(const struct peg__request *request, peg_vendor provider,
                             struct peg__out *out, peg_error *reterr);
/* Members temperature and top_p, for models that take them. */
void peg__openai_sampling(const peg_model_options *options, struct peg__out *out);
/* A string: "data:image/png;base64,...". */
peg_status peg__openai_data_url(const peg_media *media, const peg_model_options *options,
                                struct peg__out *out, peg_error *reterr);
/* What the model itself said: text, and its media in words. */
peg_status peg__openai_spoken(const peg_block *block, struct peg__buf *out, peg_error *reterr);
/* A member of a block's payload that is a string and not empty; else ptr is NULL. */
peg_str peg__openai_payload(const peg_block *block, const char *name);

/* ---- replies ---------------------------------------------------------------------------- */

/* A member that is an index; -1 if it is missing or null. Anything else fails the reply. */
int64_t peg__openai_index(struct peg__reply *reply, const peg_json *object, const char *name);

/*
 * Which part a fragment belongs to. Fragments name their part by an index, by an id, or by both;
 * servers leave out the one or the other, and some give several parts one index.
 *
 * A value; what it points to is in the reply's arena.
 */
struct peg__slots {
    struct peg__slot *items;
    size_t n;
    size_t capacity;
};
enum peg__slots_rule {
    PEG__SLOTS_BY_BOTH,  /* another id under one index is another part */
    PEG__SLOTS_BY_INDEX, /* an index says all; the id counts only where there is none */
};
/* The rank of the part among its kind: its index if that is free. index -1: none; id empty: none.
 * With neither it is the last one. PEG_EPARSE sticks to the reply beyond PEG_LIMIT_REPLY_SLOTS;
 * 0 then. */
uint32_t peg__slots_rank(struct peg__slots *slots, struct peg__reply *reply,
                         enum peg__slots_rule rule, int64_t index, peg_str id);
/* Whether the part of a rank was marked before; it is from now on. */
bool peg__slots_mark(struct peg__slots *slots, uint32_t rank);

#endif
