/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_TRANSPORT_WIRE_H
#define PEG_ENGINE_TRANSPORT_WIRE_H

/*
 * A provider's protocol: how a turn becomes a request, and how what comes back becomes a reply. No
 * I/O: the transport (http.h) carries the bytes.
 *
 *   chat_request.c       chat_reply.c        OpenAI Chat Completions
 *   responses_request.c  responses_reply.c   OpenAI Responses
 *   anthropic_request.c  anthropic_reply.c   Anthropic Messages
 *   gemini_request.c     gemini_reply.c      Gemini generateContent
 */

#include "engine/dialects/names.h"
#include "engine/history.h"
#include "engine/reply.h"
#include "pegboard/engine.h"

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

struct peg__wire {
    peg_vendor provider;
    const char *base_url; /* "https://api.openai.com/v1" */
    const char *key_env;  /* "OPENAI_API_KEY" */
    /* What comes behind the base URL: "/chat/completions". */
    void (*write_path)(const peg_model_options *options, bool is_streaming, struct peg__buf *out);
    /* Header lines with the key (NULL: without), each ended by LF: "Authorization: Bearer ..." */
    void (*write_headers)(const char *api_key, struct peg__buf *out);
    /* The body. */
    peg_status (*write_body)(const struct peg__request *request, struct peg__buf *out,
                             peg_error *reterr);
    /* One event of a stream. *ret_is_end: nothing comes after it that matters. An error that the
     * stream tells is returned as peg__wire_error() makes it. */
    peg_status (*read_event)(struct peg__reply *reply, peg_str name, peg_str data, bool *ret_is_end,
                             peg_error *reterr);
    /* The whole answer of a request without a stream. */
    peg_status (*read_body)(struct peg__reply *reply, peg_str body, peg_error *reterr);
    /* A stream that ended: was it whole? Providers whose last event says so check that it came. */
    bool (*is_whole)(const struct peg__reply *reply);
};

extern const struct peg__wire peg__wire_chat;
extern const struct peg__wire peg__wire_responses;
extern const struct peg__wire peg__wire_anthropic;
extern const struct peg__wire peg__wire_gemini;

/* NULL for PEG_VENDOR_NEUTRAL, which nobody speaks. */
const struct peg__wire *peg__wire_of(peg_vendor provider);

/* Writes a request: names and history made where they are NULL, the body written, model.extra
 * merged in: its members win over ours, inside objects too; null takes one of ours away; tools are
 * added to ours, but not if the turn wants none. PEG_EINVAL (E_ENGINE_CONFIG) if extra is no object
 * or no model is named. */
peg_status peg__wire_write(const struct peg__wire *wire, const struct peg__request *partial,
                           struct peg__buf *out, peg_error *reterr);

/* What an error answer says: {"error": {"message", "type"|"status"|"code"}} in every provider's
 * variety, or any other text. Codes as engine.h lists them, by HTTP status; status 0: told in a
 * stream, judged by its type. Always returns the status it put into *reterr. */
peg_status peg__wire_error(const struct peg__wire *wire, long http_status, peg_str body,
                           peg_error *reterr);

/* How long a refusal asks to wait, in its body: Gemini has no Retry-After. -1: it does not say. */
int64_t peg__wire_retry_ms(peg_str body);

/* Shared by those who speak OpenAI. */
void peg__openai_headers(const char *api_key, struct peg__buf *out);

#endif
