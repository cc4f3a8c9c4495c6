/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_VENDORS_ALTERNATING_H
#define PEG_ENGINE_VENDORS_ALTERNATING_H

/*
 * What Anthropic and Gemini share: a conversation in which a user and the model take turns, the
 * user first, with what the system says apart from it.
 */

#include "engine/content.h"
#include "engine/transport/wire.h"
#include "json/json.h"

/* What a user is made to say where the model speaks first, because both want the user to. */
extern const char peg__opening_words[];

/* Nothing but white space: Anthropic refuses a whole request for it. */
bool peg__is_blank(peg_str text);
/* Without white space at the end. */
peg_str peg__without_end_space(peg_str text);

/* How many passages at the start are the system's. */
size_t peg__n_system_first(const struct peg__history *history);
/* What the system says later, as words of a user: in a trusted envelope whose name is the same in
 * every request and known to nobody who writes into the conversation. Free with peg__free(). */
peg_status peg__system_apart(const peg_block *block, char **ret_text, size_t *ret_len,
                             peg_error *reterr);

/* As peg__media_choose(); media without a byte is told in words, because both refuse it. */
enum peg__media_way peg__choose_media(const peg_media *media, const struct peg__media_rules *rules,
                                      const peg_model_options *options);

/* Whether tools are sent at all. */
bool peg__offers_tools(const struct peg__request *request);
/* Whether the model has to call one: it was asked to, and no result has come since the user last
 * spoke. */
bool peg__must_call(const struct peg__request *request);
/* Member "tools" with the definitions. */
peg_status peg__write_tools(const struct peg__request *request, peg_vendor provider,
                            struct peg__out *out, peg_error *reterr);

#endif
