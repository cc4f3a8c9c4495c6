/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_VENDORS_VENDORS_H
#define PEG_ENGINE_VENDORS_VENDORS_H

/*
 * A vendor's protocol: how a turn becomes a request, and how the answer becomes a reply. No I/O:
 * the transport carries the bytes.
 *
 *   chat_request.c       chat_reply.c        OpenAI Chat Completions
 *   responses_request.c  responses_reply.c   OpenAI Responses
 *   anthropic_request.c  anthropic_reply.c   Anthropic Messages
 *   gemini_request.c     gemini_reply.c      Gemini generateContent
 */

#include "base/buf.h"
#include "pegboard/engine.h"

struct peg__format;
struct peg__reply;
struct peg__request;

struct peg__wire {
    peg_vendor vendor;
    const char *base_url;   /* "https://api.openai.com/v1" */
    const char *key_env;    /* "OPENAI_API_KEY" */
    const char *headers;    /* lines ended by LF */
    const char *key_header; /* before the key: "Authorization: Bearer " */
    const char *path;       /* behind the base URL; NULL: write_path() */
    void (*write_path)(const peg_model_options *options, bool is_streaming, struct peg__buf *out);
    const struct peg__format *format; /* of requests */
    bool ends_with_done;              /* "[DONE]" ends a stream */
    bool ends_at_once;  /* nothing that matters comes behind the event that ends the reply */
    size_t reader_size; /* of reply->reader */
    /* Whether an event or a body says that the request failed. `type` is the event's name; ptr
     * NULL: a body. */
    bool (*is_error)(const peg_json *root, peg_str type);
    /* One event of a stream, or a whole body. Failures stick to the reply; reply->is_ended once
     * nothing is missing. */
    void (*read)(struct peg__reply *reply, peg_str type, const peg_json *root);
};

extern const struct peg__wire peg__wire_chat;
extern const struct peg__wire peg__wire_responses;
extern const struct peg__wire peg__wire_anthropic;
extern const struct peg__wire peg__wire_gemini;

/* NULL for PEG_VENDOR_NEUTRAL, which has no protocol. */
const struct peg__wire *peg__wire_of(peg_vendor vendor);

/* What comes behind the base URL: "/chat/completions". */
void peg__wire_path(const struct peg__wire *wire, const peg_model_options *options,
                    bool is_streaming, struct peg__buf *out);
/* Header lines with the key (NULL or "": without), each ended by LF. */
void peg__wire_headers(const struct peg__wire *wire, const char *api_key, struct peg__buf *out);

/* Writes a request: names and history made where they are NULL, the body written, model.extra
 * merged in: its members win over ours, inside objects too; null takes one of ours away; tools are
 * added to ours, but not if the turn wants none. PEG_EINVAL (E_ENGINE_CONFIG) if extra is no object
 * or no model is named. */
peg_status peg__wire_write(const struct peg__wire *wire, const struct peg__request *partial,
                           struct peg__buf *out, peg_error *reterr);
/* The body alone. */
peg_status peg__wire_write_body(const struct peg__wire *wire, const struct peg__request *request,
                                struct peg__buf *out, peg_error *reterr);

/* Reads one event of a stream. *ret_is_end: nothing comes after it that matters. An error that the
 * stream reports is returned as peg__wire_error() makes it. */
peg_status peg__wire_read_event(const struct peg__wire *wire, struct peg__reply *reply,
                                peg_str name, peg_str data, bool *ret_is_end, peg_error *reterr);
/* Reads the whole answer of a request without a stream. */
peg_status peg__wire_read_body(const struct peg__wire *wire, struct peg__reply *reply, peg_str body,
                               peg_error *reterr);

/* What an error answer says: {"error": {"message", "type"|"status"|"code"}} in every vendor's
 * variety, or any other text. Codes as engine.h lists them, by HTTP status; status 0: reported in a
 * stream, judged by its type. Always returns the status it put into *reterr. */
peg_status peg__wire_error(const struct peg__wire *wire, long http_status, peg_str body,
                           peg_error *reterr);

/* How long a refusal asks to wait, in its body: Gemini has no Retry-After. -1: it does not say. */
int64_t peg__wire_retry_ms(peg_str body);

#endif
