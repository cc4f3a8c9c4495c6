/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_MCP_CLIENT_INTERNAL_H
#define PEG_MCP_CLIENT_INTERNAL_H

/*
 * A server whose tools are imported; each file calls those below it:
 *
 *   manifest.c  the server of a manifest
 *   import.c    the public face: options, new, free, state
 *   manage.c    its life: connect, follow its list, connect again; a thread
 *   list.c      tools/list, page by page, into the registry
 *   tool.c      a definition as a tool
 *   call.c      a call: the handler of such a tool, with progress and questions
 *   result.c    content as a result
 *   connect.c   finds out its era, and says hello
 *   stdio.c     the link to a process; a thread
 *   http.c      the link to a URL; threads that listen and send
 *   request.c   one request over HTTP, and its answer
 *   headers.c   what stands in its headers
 *   param.c     arguments that travel as headers
 *   exchange.c  requests that wait for an answer; what the server sends
 *   write.c     messages to the server
 *
 * A request is sent, and its answer awaited, on one thread: handlers for tools/call, the
 * manager for everything else. A link brings messages to the server and hands over those that come;
 * the lock of `wait` guards what its threads share with those who wait.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits/mcp.h"
#include "base/map.h"
#include "core/context/context.h"
#include "engine/transport/transport.h"
#include "mcp/protocol/protocol.h"
#include "pegboard/mcp.h"
#include "json/json.h"

struct mcp__exchange;

/* ---- the link -------------------------------------------------------------------------------- */

struct mcp__link_ops {
    /* Before it is used, and again after each close. PEG_EIO (E_MCP_START), PEG_ENOMEM. */
    peg_status (*open)(peg_mcp_client *client, peg_error *reterr);
    /* Sends a request, and waits until it is answered, or until the context ends. */
    peg_status (*exchange)(struct mcp__exchange *x, peg_ctx *ctx, peg_str message,
                           peg_error *reterr);
    /* Sends a notification or a response, which may be lost with the server. `waits`: until the
     * server has it, where the link can tell. */
    void (*send)(peg_mcp_client *client, peg_str message, bool waits);
    /* Asks for what the server says of itself, which comes in from then on; over HTTP once its
     * stream is there (awaits_stream). `message` is the request for that, or empty: in that era
     * none is needed. */
    void (*listen)(peg_mcp_client *client, peg_str message);
    /* Ends what is open, and waits for that. */
    void (*close)(peg_mcp_client *client);
    /* Each request has a connection of its own: the end of one says nothing of the others, a modern
     * server takes its end for a cancellation, and an end of the server shows when it is asked. */
    bool is_http;
};

extern const struct mcp__link_ops mcp__stdio_link;
extern const struct mcp__link_ops mcp__http_link;

/* ---- the client ------------------------------------------------------------------------------ */

/* Counted: the host's, and each tool's. */
struct peg_mcp_client {
    atomic_uint n_refs;
    struct peg__arena arena; /* of the options */
    peg_mcp_import_options options;
    const struct mcp__link_ops *link;
    void *link_state; /* the link's; NULL: closed */
    peg_http *http;   /* a reference; NULL: it is a process */
    bool only_public; /* the URL has a name, which may lead to public addresses only */
    peg_registry *registry;
    peg_ctx *ctx; /* of the manager's requests */
    peg_cancel *cancel;
    pthread_t manager;
    bool has_manager;
    pthread_mutex_t reporting; /* held while the host is notified */

    /* the manager's */
    struct peg__map tools; /* names that it registered -> themselves */
    int64_t backoff_ms;    /* of the next pause */

    /* while it is connected: written by the manager, before is_ready */
    _Atomic(enum mcp_era) era; /* also read by calls that a loss overtook */
    bool has_tools;            /* it offers any */
    bool tells_changes;        /* of their list */

    struct peg__wait wait;
    /* under its lock */
    bool is_open;  /* messages can be sent */
    bool is_ready; /* calls too */
    bool is_stopping;
    bool has_new_list;
    bool awaits_stream; /* it was asked for a stream of its own, and has not answered */
    bool ended_session; /* it was lost for want of a session: a new one can begin at once */
    char session[PEG_LIMIT_MCP_SESSION_BYTES + 1]; /* of a legacy server over HTTP; "": none */
    peg_status lost;                               /* and why, once it was open and is not */
    peg_error why;
    int64_t next_id;
    struct mcp__exchange *exchanges; /* that have no answer */
    unsigned n_exchanges;
    unsigned n_calls; /* of them */
    int64_t window_ns;
    unsigned n_strays; /* in the window */
    peg_mcp_client_state state;
};

/* Not connected yet. */
peg_status mcp__client_new(peg_registry *registry, const struct mcp__link_ops *link,
                           const peg_mcp_import_options *options, peg_mcp_client **ret_client,
                           peg_error *reterr);
void mcp__client_unref(peg_mcp_client *client);
/* Fills in what an event is silent about, and tells the host. */
void mcp__report(peg_mcp_client *client, const peg_mcp_event *event);

/* ---- manage.c ---- */

/* Opens the link, connects and lists: ready, or closed again. */
peg_status mcp__connect_and_list(peg_mcp_client *client, peg_error *reterr);
/* A thread: from then on. */
void *mcp__manage(void *user);
/* Tells the host of the server and its tools. */
void mcp__report_tools(peg_mcp_client *client, peg_mcp_event_kind kind);

/* ---- list.c, tool.c, call.c ---- */

/* Asks for the tools, and brings them into the registry. */
peg_status mcp__list_imported(peg_mcp_client *client, peg_ctx *ctx, peg_error *reterr);
/* Takes them out again. */
void mcp__remove_imported(peg_mcp_client *client);
/* PEG_EINVAL and so on: it cannot be a tool here. */
peg_status mcp__make_imported(peg_mcp_client *client, const peg_json *definition,
                              peg_tool **ret_tool, peg_error *reterr);

/* What a handler needs; dies with its tool. */
struct mcp__imported {
    peg_mcp_client *client; /* a reference */
    char *name;             /* the server's; owned */
    peg_json_doc *schema;   /* whose arguments travel as headers; NULL: none do */
    bool is_repeatable;     /* idempotent or read-only */
    bool has_output_schema;
};

void mcp__run_imported(peg_call *call, const peg_json *args, void *user);

/* ---- result.c ---- */

/* Answers a call with the result of tools/call. */
void mcp__reply_result(peg_call *call, const peg_json *result, bool has_output_schema);

/* ---- connect.c ---- */

/* Sets the era, and what the server calls itself. */
peg_status mcp__connect(peg_mcp_client *client, peg_ctx *ctx, peg_error *reterr);

/* ---- exchange.c ------------------------------------------------------------------------------ */

/* A message that waits for the thread of an exchange. */
struct mcp__note {
    peg_json_doc *doc;
    struct mcp__note *next;
};

/* A request of ours, on the stack of the thread that waits for it. */
struct mcp__exchange {
    peg_mcp_client *client;
    bool is_call; /* a tool's */
    /* A notification or a request of the server that belongs to it, on its own thread; may be NULL.
     */
    void (*on_note)(struct mcp__exchange *x, const peg_json *message);
    void *user;
    const char *method;
    /* for links over HTTP */
    const char *name;   /* of the tool; NULL: none */
    peg_str headers;    /* more of them: lines ended by LF */
    bool is_repeatable; /* it does no harm to send it twice */
    bool is_refused;    /* set by the link: the server answered, and not as MCP does */
    bool lost_session;  /* set by the link: it was not started, as the session is over */

    int64_t id;
    uint64_t sent_at; /* the link's: where it begins */
    /* under the lock */
    struct mcp__exchange *next;
    struct mcp__exchange *prev;
    peg_cancel *cancel; /* of the link's; NULL: none */
    bool is_done;
    peg_json_doc *answer; /* NULL: it failed */
    peg_status status;
    peg_error error;
    struct mcp__note *first;
    struct mcp__note *last;
    unsigned n_notes;
};

/* Gives it an id. PEG_EIO (E_MCP_UNAVAILABLE): the server is not there; PEG_ELIMIT (E_MCP_LIMIT).
 */
peg_status mcp__exchange_begin(struct mcp__exchange *x, peg_error *reterr);
/* For links: waits until it is done, and hands over notes meanwhile. */
peg_status mcp__exchange_wait(struct mcp__exchange *x, peg_ctx *ctx, peg_error *reterr);
/* The notes that came so far. */
void mcp__exchange_take_notes(struct mcp__exchange *x);
/* In any state, also one that was never begun. */
void mcp__exchange_end(struct mcp__exchange *x);
/* begin, write, exchange: `message` is written by the caller between the first two. */
peg_status mcp__exchange_run(struct mcp__exchange *x, peg_ctx *ctx, struct peg__buf *message,
                             peg_error *reterr);
/* For links, before messages can come: it is open. */
void mcp__opened(peg_mcp_client *client);
/* The result, or NULL: the server answered with an error, which becomes E_MCP_SERVER. */
const peg_json *mcp__read_result(const peg_json_doc *answer, peg_error *reterr);
const peg_json *mcp__exchange_result(const struct mcp__exchange *x, peg_error *reterr);

/* For links: a message of the server. `stream`: of the request on whose stream it came, or NULL.
 * PEG_EHOST (E_MCP_LIMIT, E_MCP_PROTOCOL): it should be given up. PEG_ENOMEM. */
peg_status mcp__receive(peg_mcp_client *client, struct mcp__exchange *stream, peg_str text,
                        peg_error *reterr);
/* For links: a text that answers this exchange, whatever its id. False: it is no answer. */
bool mcp__exchange_take(struct mcp__exchange *x, peg_str text);
/* For links: it fails, unless it is done. */
void mcp__exchange_fail(struct mcp__exchange *x, const peg_error *why);
/* The same, for want of a server. `was_sent`: it may have been read. */
void mcp__exchange_lose(struct mcp__exchange *x, const peg_error *why, bool was_sent);
bool mcp__exchange_is_done(struct mcp__exchange *x);
/* For links: what was sent fails, if the client ends: else calls go on, each on its connection. */
void mcp__lose_all(peg_mcp_client *client, const peg_error *why);
/* For links: nothing can be sent any more; what was sent goes on. */
void mcp__mark_lost(peg_mcp_client *client, const peg_error *why, bool ended_session);
/* For links: the server's own stream is open, or there is none. */
void mcp__settle_stream(peg_mcp_client *client);
/* For links: the server may be gone, or its tools others: the manager asks it. */
void mcp__doubt(peg_mcp_client *client);
/* Until calls can be sent. PEG_EIO (E_MCP_UNAVAILABLE), or as peg_ctx_check(). */
peg_status mcp__await_ready(peg_mcp_client *client, peg_ctx *ctx, peg_error *reterr);
/* For links: the server is gone; all exchanges fail. `sent`: those that begin before it may have
 * been read. */
void mcp__lose(peg_mcp_client *client, const peg_error *why, uint64_t sent);

/* ---- request.c ------------------------------------------------------------------------------- */

/* One request over HTTP, on the thread that sends it; on its stack. */
struct mcp__request_http {
    peg_mcp_client *client;
    struct mcp__exchange *x; /* that it is for; NULL: none */
    const char *verb;        /* "GET", "DELETE"; NULL: POST */
    bool is_own_stream;      /* it asks for what the server says of itself */
    peg_str message;
    struct peg__sse sse; /* whose id and retry_ms outlive a request */
    struct peg__buf body;
    char session[PEG_LIMIT_MCP_SESSION_BYTES + 1];      /* that came */
    char used_session[PEG_LIMIT_MCP_SESSION_BYTES + 1]; /* that the request went with; "": none */
    struct peg__http_answer answer;
    unsigned n_events; /* of this request */
    bool is_listening; /* set: a stream that opens is news of its own */
};

void mcp__http_begin(struct mcp__request_http *r, peg_mcp_client *client);
/* Sends it, and hands over what comes. As struct peg__transport has it, or as mcp__receive(). */
peg_status mcp__http_send(struct mcp__request_http *r, peg_ctx *ctx, peg_error *reterr);
void mcp__http_end(struct mcp__request_http *r);
/* The server knows the session no more. */
bool mcp__http_lost_session(const struct mcp__request_http *r);
/* How an exchange over HTTP ends: it is done, or the context has ended. */
void mcp__http_exchange(struct mcp__exchange *x, peg_ctx *ctx, peg_str message);
/* What the transport says, in words about an MCP server. */
void mcp__http_explain(const peg_error *why, peg_error *reterr);

/* ---- headers.c ------------------------------------------------------------------------------- */

/* Lines of a request, each ended by LF. `session`: "" for none. */
void mcp__write_headers(struct peg__buf *out, const peg_mcp_client *client,
                        const struct mcp__request_http *r, const char *session);
/* Name and value; what is no plain ASCII goes in base 64. */
void mcp__put_header(struct peg__buf *out, const char *name, peg_str value);
/* A name and a value without line ends? */
bool mcp__is_header(const char *line);
/* PEG_EINVAL (E_MCP). *ret_is_name: its host is a name, and no address or localhost. */
peg_status mcp__check_url(const char *url, bool *ret_is_name, peg_error *reterr);

/* ---- param.c --------------------------------------------------------------------------------- */

/* Arguments that a schema marks with x-mcp-header. PEG_EINVAL (E_MCP_HEADER): a mark is not as it
 * has to be. */
peg_status mcp__check_params(const peg_json *schema, bool *ret_has_some, peg_error *reterr);
/* PEG_EINVAL (E_MCP_HEADER): a number is too large for it. PEG_ELIMIT, PEG_ENOMEM. */
peg_status mcp__put_params(struct peg__buf *out, const peg_json *schema, const peg_json *args,
                           peg_error *reterr);

/* ---- write.c --------------------------------------------------------------------------------- */

/* What a message is written to. */
struct mcp__message {
    struct peg__buf text;
    struct peg__out out;
};

/* A request up to its params, whose members follow. `id` 0: a notification. */
void mcp__open_request(struct mcp__message *m, int64_t id, const char *method);
/* _meta of a request: what its era needs, and a progress token if wanted. */
void mcp__put_request_meta(struct mcp__message *m, const peg_mcp_client *client, bool can_be_asked,
                           int64_t progress_token);
void mcp__close_request(struct mcp__message *m);
/* {"name": "pegboard", "version": ...} as a member. */
void mcp__put_client_info(struct mcp__message *m, const char *name);
/* A response with a result: its JSON. */
void mcp__write_response(struct mcp__message *m, const peg_json *id, peg_str result);
void mcp__write_error(struct mcp__message *m, const peg_json *id, int code, const char *message);
void mcp__message_free(struct mcp__message *m);

#define MCP__MESSAGE                                                                               \
    {                                                                                              \
        .text = PEG__BUF(PEG_LIMIT_MCP_IMPORT_BYTES)                                               \
    }

#endif
