/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_HTTP_INTERNAL_H
#define PEG_GATEWAY_HTTP_INTERNAL_H

/*
 * Each file calls those below it:
 *
 *   toolsets.c, start_call.c, calls.c, watch.c, openapi.c   the routes
 *   console.c    the files of the console
 *   exchange.c   a request of HTTP and the calls of gRPC that it becomes
 *   admit.c      which pages may ask, and what is written as JSON
 *   problem.c    errors
 *   schema.c     schemas of what is written
 *   message.c    messages as JSON
 */

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"
#include "gateway/http/http.h"
#include "grpc/server/server.h"
#include "wire/wire.h"
#include "json/json.h"

/* ---- message.c ---- */

/* Errors are in the buffer's status. */
void gw_message_write(struct peg__out *out, const ProtobufCMessage *message);
/* Within an object. */
void gw_message_write_members(struct peg__out *out, const ProtobufCMessage *message);
/* In the arena. PEG_EINVAL (E_MEMBER): it is no such object. PEG_ELIMIT (E_MEMBER): the arena would
 * hold more than PEG_LIMIT_GRPC_UNPACKED_BYTES. PEG_ENOMEM. */
peg_status gw_message_read(struct peg__arena *arena, const ProtobufCMessageDescriptor *type,
                           const peg_json *object, ProtobufCMessage **ret_message,
                           peg_error *reterr);

/* Are these bytes in base 64? All others of the services are JSON. */
bool gw_message_is_binary(const ProtobufCMessageDescriptor *type,
                          const ProtobufCFieldDescriptor *field);
/* "STATE_HEALTHY" of "State", "TOOLSET_KIND_DIRECT" of "ToolsetKind": "healthy", "direct". */
enum { GW_ENUM_TEXT = 64 };
void gw_message_enum_text(const ProtobufCEnumDescriptor *type, const char *name,
                          char ret_text[GW_ENUM_TEXT]);

/* ---- schema.c ---- */

/* {"$ref": "#/components/schemas/NAME"} */
void gw_schema_ref(struct peg__out *out, const char *name);
/* What gw_message_write() writes (`is_sent`), or gw_message_read() reads; messages in it are
 * references. */
void gw_schema_write(struct peg__out *out, const ProtobufCMessageDescriptor *type, bool is_sent);
/* A schema as it is, but for references to its root: it stands at #/components/schemas/NAME.
 * PEG_EPARSE, PEG_ENOMEM. */
peg_status gw_schema_move(struct peg__out *out, peg_str schema, const char *name);

/* ---- admit.c ---- */

enum { GW_ANSWER_FIELDS = 12 };

/* An answer, and the fields that all have: those for pages of other origins that may ask. */
struct gw_answer {
    struct net_http_answer answer;
    struct net_http_field fields[GW_ANSWER_FIELDS];
};
void gw_answer_init(struct gw_answer *answer, const struct net_http_request *request,
                    const struct gw_node *node, int status, const char *content_type);
/* Borrowed. What is empty or does not fit is left out. */
void gw_answer_add(struct gw_answer *answer, const char *name, peg_str value);

/* For on_head: only callers that may, and of methods with a body only JSON. */
void gw_api_check_reader(struct net_http_request *request, void *user);
void gw_api_check_writer(struct net_http_request *request, void *user);

/* ---- problem.c: RFC 9457 ---- */

struct gw_problem {
    const char *type; /* the name of the error */
    int status;
    peg_str detail;
    peg_str code;    /* of the tool's own error; "": it is none */
    peg_str call_id; /* "": there is none */
    peg_str started; /* "true", "false"; "": not known */
    peg_str retry_after_ms;
    peg_str epoch; /* of the gateway's memory of calls, for a header; "": no call was made */
    bool is_draining;
};
/* The problem of a status of gRPC, with what headers and trailers tell. Borrowed from the call. */
void gw_problem_of(struct grpc_call *call, const struct grpc_status *status,
                   struct gw_problem *ret_problem);
void gw_problem_write(struct peg__out *out, const struct gw_problem *problem);
void gw_problem_reply(struct net_http_request *request, const struct gw_node *node,
                      const struct gw_problem *problem);
void gw_problem_reply_error(struct net_http_request *request, const struct gw_node *node,
                            enum wire_error error, const char *detail);
/* The same with the word for what a check failed with. */
void gw_problem_reply_failed(struct net_http_request *request, const struct gw_node *node,
                             const peg_error *error);

/* ---- exchange.c ---- */

struct gw_exchange;

/* One call of gRPC, and what becomes of its answer. */
struct gw_operation {
    const char *rpc; /* its path */
    /* A message of the answer: one that is not packed, or else one that is. Both borrowed. */
    peg_status (*take)(struct gw_exchange *exchange, const ProtobufCMessage *message,
                       peg_str packed);
    /* The call is finished. NULL: the answer is what was written to `out`, or the problem. */
    void (*done)(struct gw_exchange *exchange, const struct grpc_status *status);
};

/* A request of HTTP; in its arena. */
struct gw_exchange {
    struct net_http_request *request;
    struct gw_node *node;
    struct grpc_bridge bridge;
    const struct gw_operation *operation;
    struct grpc_call *call; /* that runs, or has just finished */
    struct peg__buf body;   /* of the answer */
    struct peg__out out;    /* writes into it */
    bool is_streaming;      /* the answer is a stream of events */
    /* what may be pending */
    struct net_later later;
    void (*next)(struct gw_exchange *exchange);
    struct net_timer keepalive;
};

/* `size` bytes, the first of which are the exchange. NULL: no memory, and it was answered. */
void *gw_exchange_new(struct net_http_request *request, struct gw_node *node, size_t size);
/* Makes the call; it may be over when this returns. */
void gw_exchange_call(struct gw_exchange *exchange, const struct gw_operation *operation,
                      const ProtobufCMessage *message);
/* From `done`: ends the call, and goes on with the next one, later. */
void gw_exchange_then(struct gw_exchange *exchange, void (*next)(struct gw_exchange *exchange));
/* Writes the message as it is. For `take`. */
peg_status gw_exchange_take_whole(struct gw_exchange *exchange, const ProtobufCMessage *message,
                                  peg_str packed);
/* The message of a stream, unpacked into the arena. NULL: no memory. */
const ProtobufCMessage *gw_exchange_unpack(struct gw_exchange *exchange, peg_str packed,
                                           struct peg__arena *arena);
/* Answers with what was written to `out`; 204 if that is nothing. */
void gw_exchange_reply(struct gw_exchange *exchange, int status);
void gw_exchange_reply_as(struct gw_exchange *exchange, struct gw_answer *answer);
void gw_exchange_reply_problem(struct gw_exchange *exchange, const struct grpc_status *status);
/* Sends an event, the first of which begins the stream; `data` is what was written to `out`. */
peg_status gw_exchange_send_event(struct gw_exchange *exchange, const char *event, const char *id);
/* Ends a stream of events: a status that is not OK is an event of its own. */
void gw_exchange_end_events(struct gw_exchange *exchange, const struct grpc_status *status);

/* A message of the request, zeroed and initialized, in its arena. NULL: no memory, and it was
 * answered. */
void *gw_exchange_message(struct gw_exchange *exchange, const ProtobufCMessageDescriptor *type);
/* The body as a message. NULL: it was answered. */
void *gw_exchange_read(struct gw_exchange *exchange, const ProtobufCMessageDescriptor *type,
                       peg_str body);
/* A number of a query, such as "limit"; 0 if it is not there. False: it is none, and the request
 * was answered. */
bool gw_exchange_query_number(struct gw_exchange *exchange, const char *name, uint32_t *ret_number);
/* The tags of a query. False: no memory, or one cannot be decoded, and it was answered. */
bool gw_exchange_query_tags(struct gw_exchange *exchange, char ***ret_tags, size_t *ret_n);
/* Text of a request in a message, which is not const there. */
static inline char *gw_api_text(peg_str text)
{
    return (char *)peg__unconst(text.ptr ? text.ptr : "");
}

/* For the handlers of all routes. */
void gw_exchange_on_writable(struct net_http_request *request, void *node);
void gw_exchange_on_end(struct net_http_request *request, void *node);

enum { GW_API_NO_BODY = 1 << 10 };

#define GW_API_READS(fn)                                                                           \
    {                                                                                              \
        .on_head = gw_api_check_reader, .on_request = (fn),                                        \
        .on_writable = gw_exchange_on_writable, .on_end = gw_exchange_on_end,                      \
        .max_body = GW_API_NO_BODY                                                                 \
    }
#define GW_API_WRITES(fn)                                                                          \
    {                                                                                              \
        .on_head = gw_api_check_writer, .on_request = (fn),                                        \
        .on_writable = gw_exchange_on_writable, .on_end = gw_exchange_on_end                       \
    }

#endif
