/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_MCP_PROTOCOL_PROTOCOL_H
#define PEG_MCP_PROTOCOL_PROTOCOL_H

/*
 * The Model Context Protocol as a machine without I/O. Bytes of one JSON-RPC message go in,
 * messages come out through a callback, time is given from outside:
 *
 *   transport -- mcp_peer_receive() --> peer -- ops->list, begin, answer, cancel --> source
 *   transport <--- peer ops->send ----- peer <- mcp_call_progress, log, ask, end --- source
 *
 *   mcp_server  what all peers of a loop share: who we are, the source, calls that wait for input
 *   mcp_peer    one client: a stdio process, a legacy session, or one modern HTTP request
 *   mcp_call    one request that the source works on
 *   mcp_source  the side that offers tools, resources and prompts
 *
 * Both eras are spoken, decided for each message: a request with modern `_meta` is served by
 * 2026-07-28 and without state; `initialize` makes the peer a legacy one.
 *
 * One thread owns a server with its peers, calls and source. Nothing here blocks.
 */

#include "base/buf.h"
#include "pegboard/common.h"
#include "json/json.h"

struct mcp_server;
struct mcp_peer;
struct mcp_call;
struct mcp_page;
struct mcp_source;

#define MCP_VERSION_MODERN "2026-07-28"
#define MCP_VERSION_LEGACY "2025-11-25"
#define MCP_VERSION_OLDEST "2025-06-18"

enum mcp_era { MCP_LEGACY, MCP_MODERN };

/* JSON-RPC errors. */
enum {
    MCP_PARSE_ERROR = -32700,
    MCP_INVALID_REQUEST = -32600,
    MCP_METHOD_NOT_FOUND = -32601,
    MCP_INVALID_PARAMS = -32602,
    MCP_INTERNAL_ERROR = -32603,
    MCP_RESOURCE_NOT_FOUND = -32002, /* of a source; modern clients get MCP_INVALID_PARAMS */
    MCP_HEADER_MISMATCH = -32020,
    MCP_MISSING_CAPABILITY = -32021,
    MCP_UNSUPPORTED_VERSION = -32022,
};

/* As RFC 5424 orders them, the least severe first. */
enum mcp_level {
    MCP_LEVEL_DEBUG = 0,
    MCP_LEVEL_INFO,
    MCP_LEVEL_NOTICE,
    MCP_LEVEL_WARNING,
    MCP_LEVEL_ERROR,
    MCP_LEVEL_CRITICAL,
    MCP_LEVEL_ALERT,
    MCP_LEVEL_EMERGENCY,
    MCP_N_LEVELS,
};

/* ---- the source ------------------------------------------------------------------------------ */

enum mcp_list_kind { MCP_TOOLS = 0, MCP_RESOURCES, MCP_TEMPLATES, MCP_PROMPTS, MCP_N_LISTS };

/* What a source offers: bits of mcp_source.offers. */
enum {
    MCP_OFFERS_TOOLS = 1 << 0,
    MCP_OFFERS_RESOURCES = 1 << 1,
    MCP_OFFERS_PROMPTS = 1 << 2,
    MCP_OFFERS_COMPLETION = 1 << 3,
    MCP_OFFERS_LOG = 1 << 4,     /* handlers may report log messages */
    MCP_OFFERS_UPDATES = 1 << 5, /* mcp_server_updated() is called for resources */
    /* It keeps tasks itself: it makes them with mcp_call_tell_task(), and gets calls about them.
     * Without this the server keeps them, if it has task_ms. */
    MCP_OFFERS_TASKS = 1 << 6,
    /* Modern clients may list resources and prompts, and find none. */
    MCP_OFFERS_EMPTY_LISTS = 1 << 7,
};

struct mcp_source_ops {
    /* Adds definitions to a page, from behind `after`: "" for the first page, else what
     * mcp_page_more() was given for an earlier one, NUL-terminated. PEG_EINVAL: it is no such
     * position. */
    peg_status (*list)(struct mcp_source *source, enum mcp_list_kind kind, peg_str after,
                       struct mcp_page *page);
    /* Starts working on a call. Ends it exactly once with mcp_call_end(), now or later, canceled or
     * not. */
    void (*begin)(struct mcp_source *source, struct mcp_call *call);
    /* The answers to mcp_call_ask(), by key. NULL: it could not be asked; `reason` says why. The
     * source asks again for what is missing. */
    void (*answer)(struct mcp_source *source, struct mcp_call *call, const peg_json *answers,
                   const char *reason);
    /* No peer waits any more. The call still ends. */
    void (*cancel)(struct mcp_source *source, struct mcp_call *call, const char *reason);
};

struct mcp_source {
    const struct mcp_source_ops *ops;
    unsigned offers;
};

/* A tool as lists show it. Strings may be empty, values NULL. */
struct mcp_tool {
    peg_str name;
    peg_str title;
    peg_str description;
    const peg_json *input_schema;
    const peg_json *output_schema;
    bool is_read_only;
    bool is_idempotent;
    bool is_destructive;
    bool is_additive; /* known not to be destructive */
    const char *version;
    const char *const *tags; /* NULL-terminated, or NULL */
    const peg_json *examples;
    const char *artifact_kind; /* of its texts; "" or NULL: none is named */
    int64_t answer_ms;         /* what a call has for answers of a person; 0: not told */
};

/* As lists show it to clients of that era. */
void mcp_put_tool(struct peg__out *out, const struct mcp_tool *tool, enum mcp_era era);
/* Of the peer that asks: see mcp_peer_set_scope(). */
void *mcp_page_scope(const struct mcp_page *page);
/* False: the page is full, and this one belongs to the next. */
bool mcp_page_add_tool(struct mcp_page *page, const struct mcp_tool *tool);
/* A definition of a resource, template or prompt as JSON. */
bool mcp_page_add(struct mcp_page *page, peg_str json);
/* There are more, behind this position. */
void mcp_page_more(struct mcp_page *page, peg_str position);

/* ---- calls: what the source sees ------------------------------------------------------------- */

enum mcp_call_kind {
    MCP_CALL_TOOL,
    MCP_READ_RESOURCE,
    MCP_GET_PROMPT,
    MCP_COMPLETE,
    /* Of a task that the source keeps. An empty result is the answer to the latter two. */
    MCP_GET_TASK,
    MCP_UPDATE_TASK,
    MCP_CANCEL_TASK,
};

/* Borrowed from the call, until it has ended. */
struct mcp_request {
    enum mcp_call_kind kind;
    enum mcp_era era;
    peg_str name;           /* of the tool or prompt, the URI, or the task's id */
    const peg_json *args;   /* `arguments`, an object or NULL */
    const peg_json *params; /* all of them */
    const char *principal;
    void *scope; /* of its peer; for ops->begin only */
    peg_str idempotency_key;
    peg_str traceparent;
    peg_str tracestate;
    peg_str baggage;
    bool wants_output; /* progress or log */
    bool can_be_asked; /* the client declares something that it can be asked for */
    bool takes_task;   /* the call of a tool may become a task */
    /* The retry of a request that ended with mcp_call_ask_apart(): its token; "": it is none. */
    peg_str resumed;
    /* The answers to that, or to what a task asks, by key, as the client sent them; or NULL. */
    const peg_json *responses;
};

const struct mcp_request *mcp_call_request(const struct mcp_call *call);
/* Within ops->begin: do the headers of an HTTP request repeat the arguments that this schema of the
 * tool wants repeated (`x-mcp-header`)? False: they do not, and the call has ended. */
bool mcp_call_check_params(struct mcp_call *call, const peg_json *input_schema);
/* For the source's own use. */
void mcp_call_set_user(struct mcp_call *call, void *user);
void *mcp_call_user(const struct mcp_call *call);

/* Reports progress, if the client asked for it. Dropped unless it is more than before; total 0: not
 * known. */
void mcp_call_progress(struct mcp_call *call, double progress, double total, peg_str message);
/* Reports a log message whose data is JSON text, if the client asked for this level. */
void mcp_call_log(struct mcp_call *call, enum mcp_level level, peg_str logger, peg_str data);
/* Output of a handler while it works: a log message of level info, and progress by one. */
void mcp_call_output(struct mcp_call *call, peg_str stream, peg_str text);
/* Asks the client: {KEY: {"method": ..., "params": ...}, ...} of elicitation/create,
 * sampling/createMessage and roots/list; "optional": true leaves one out that the client cannot be
 * asked. ops->answer follows, perhaps at once, unless the call is canceled. Keys are never used
 * twice within a call. */
void mcp_call_ask(struct mcp_call *call, const peg_json *requests);

/* The same for calls that outlive their requests and are known by a token of at most
 * MCP_TOKEN_BYTES, of modern clients: the request ends, and so does this call, without
 * mcp_call_end(). A retry, at any server that has the same secret, is a call of its own, `resumed`.
 * False: the client cannot be asked, or need not be, and ops->cancel or ops->answer was called. */
enum { MCP_TOKEN_BYTES = 80 };
bool mcp_call_ask_apart(struct mcp_call *call, const peg_json *requests, peg_str token);

/* Of these requests, those that this client is to be asked: not optional ones that it cannot be.
 * PEG_EINVAL: it did not declare all that the others need; PEG_ENOMEM. */
peg_status mcp_call_select(const struct mcp_call *call, const peg_json *requests,
                           peg_json_doc **ret_asked);

/* How a call ended. Buffers are the source's to fill and are taken over; zero is an empty result.
 */
struct mcp_result {
    struct peg__buf members; /* of the result: "content":[...] without braces */
    bool is_error;           /* of a tool */
    struct peg__buf structured;
    bool is_structured_object; /* legacy clients take objects alone */
    struct peg__buf meta;      /* members of _meta, without braces */
    int code;                  /* not 0: a JSON-RPC error instead */
    struct peg__buf message;   /* of the error */
    struct peg__buf data;      /* of the error: JSON */
};

void mcp_result_free(struct mcp_result *result);
/* A JSON-RPC error. */
void mcp_result_fail(struct mcp_result *result, int code, const char *fmt, ...) PEG_PRINTF(3, 4);
/* A tool that failed with a sentence; `name` (or NULL) becomes _meta["pegboard/error"]. */
void mcp_result_fail_tool(struct mcp_result *result, const char *name, peg_str sentence);
/* Ends the call, which is gone. What the buffers lost for want of memory becomes an error. */
void mcp_call_end(struct mcp_call *call, struct mcp_result *result);

/* ---- tasks that the source keeps ------------------------------------------------------------- */

enum mcp_task_status {
    MCP_TASK_WORKING,
    MCP_TASK_ASKS, /* input_required */
    MCP_TASK_COMPLETED,
    MCP_TASK_FAILED, /* with a JSON-RPC error */
    MCP_TASK_CANCELED,
};

struct mcp_task {
    peg_str id;
    enum mcp_task_status status;
    peg_str message;    /* about it; "": none */
    int64_t created_ms; /* since 1970 */
    int64_t updated_ms;
    int64_t ttl_ms;         /* since it was created */
    const peg_json *asked;  /* MCP_TASK_ASKS: the open requests by key */
    struct mcp_result *end; /* MCP_TASK_COMPLETED, MCP_TASK_FAILED: is taken over */
};

/* Ends the call of a tool, which goes on as this task, or MCP_GET_TASK with what the task is. */
void mcp_call_tell_task(struct mcp_call *call, const struct mcp_task *task);

/* ---- content: items of "content":[...], written by the source -------------------------------- */

void mcp_put_text(struct peg__out *out, peg_str utf8);
/* "image" or "audio". */
void mcp_put_media(struct peg__out *out, const char *type, peg_str base64, const char *mime_type);
void mcp_put_link(struct peg__out *out, const char *uri, const char *name, const char *mime_type);
/* Contents of a resource: text if `text` has a pointer, else a blob in base 64. */
void mcp_put_contents(struct peg__out *out, peg_str uri, const char *mime_type, peg_str text,
                      peg_str base64);

/* ---- the server ------------------------------------------------------------------------------ */

/* Strings are copied. */
struct mcp_config {
    const char *name; /* required */
    const char *version;
    const char *title;        /* NULL: none */
    const char *instructions; /* NULL: none */
    const char *website;      /* NULL: none */
    struct mcp_source *source;
    unsigned page_items;         /* of a list */
    int64_t ttl_ms;              /* how long a client may keep lists */
    bool is_private;             /* lists differ between principals */
    int64_t wait_ms;             /* how long a call waits for input */
    int64_t task_ms;             /* a call that takes longer becomes a task; 0: never */
    size_t max_calls;            /* at once; 0: PEG_LIMIT_MCP_CALLS */
    const unsigned char *secret; /* 32 bytes, which seal requestState; NULL: random ones */
    const char *ask_prefix;      /* of the ids of requests to legacy clients; NULL: none */
};

/* PEG_EIO: no randomness; PEG_ENOMEM. */
peg_status mcp_server_new(const struct mcp_config *config, struct mcp_server **ret_server);
/* As mcp_config.secret: what another one has sealed is refused from now on. */
void mcp_server_set_secret(struct mcp_server *server, const unsigned char secret[32]);
/* Its peers and calls are gone by now. */
struct mcp_server *mcp_server_free(struct mcp_server *server);
/* Time passes, by a clock that does not step and by that on the wall: what is due happens. */
void mcp_server_advance(struct mcp_server *server, int64_t now_ms, int64_t wall_ms);
/* It is that time now; what is due happens later. For what comes between two of the former. */
void mcp_server_set_time(struct mcp_server *server, int64_t now_ms, int64_t wall_ms);
/* When to call it next, or INT64_MAX. */
int64_t mcp_server_due_ms(const struct mcp_server *server);
/* A list of the source has changed. Clients that asked are notified, at most once a second. */
void mcp_server_changed(struct mcp_server *server, enum mcp_list_kind kind);
/* A resource has changed. */
void mcp_server_updated(struct mcp_server *server, peg_str uri);
/* Calls that the source has not ended, with and without a client. */
size_t mcp_server_n_calls(const struct mcp_server *server);
/* Cancels all calls, those that wait for input and tasks too. */
void mcp_server_cancel_all(struct mcp_server *server, const char *reason);

/* ---- a peer ---------------------------------------------------------------------------------- */

/* One message to the client. Borrowed for the time of the call. */
struct mcp_sent {
    void
        *stream; /* of the request that it belongs to, as given to mcp_peer_receive(); NULL: none */
    peg_str text;     /* one line of JSON, without its end */
    bool is_end;      /* the answer: nothing follows on this stream */
    int http_status;  /* of an answer, where nothing was sent before it */
    bool may_be_lost; /* progress or a log message */
    bool is_question; /* a request to a legacy client, whose answer the call waits for */
};

struct mcp_peer_ops {
    void (*send)(void *user, const struct mcp_sent *sent);
};

/* principal is copied. PEG_ENOMEM. */
peg_status mcp_peer_new(struct mcp_server *server, const struct mcp_peer_ops *ops, void *user,
                        const char *principal, struct mcp_peer **ret_peer);
/* What the client sees of the source, which reads it in ops->list and ops->begin. The caller's. */
void mcp_peer_set_scope(struct mcp_peer *peer, void *scope);
/* Peers of one principal and session are one client, whose requests come on several connections: it
 * cancels with one what it has asked with another. PEG_ENOMEM. */
peg_status mcp_peer_set_session(struct mcp_peer *peer, peg_str session);
/* What a session of a legacy client keeps between its requests. */
struct mcp_client {
    unsigned abilities; /* what it can be asked for: mcp_peer_abilities() of its initialize */
    int log_level;      /* an enum mcp_level; MCP_N_LEVELS: it has set none */
};
/* Requests that the peer receives belong to such a session. */
void mcp_peer_set_client(struct mcp_peer *peer, const struct mcp_client *client);
/* Of a legacy client that has initialized; 0: it cannot be asked, and needs no session. */
unsigned mcp_peer_abilities(const struct mcp_peer *peer);
/* Its session is over: what it was asked has no answer, and it is not asked again. */
void mcp_peer_refuse(struct mcp_peer *peer, const char *reason);
/* MCP_N_LEVELS if there is none of this name. */
int mcp_level_of(peg_str name);
/* It is notified of changes, as a legacy client that has initialized. */
void mcp_peer_notify(struct mcp_peer *peer);
/* The version that a legacy client has initialized with; NULL: it has not. */
const char *mcp_peer_version(const struct mcp_peer *peer);
/* The client is gone: its calls are canceled, those that wait for a retry are not. */
struct mcp_peer *mcp_peer_free(struct mcp_peer *peer);
/* A message. `stream` is the transport's and comes back with what belongs to it. PEG_ENOMEM: no
 * answer could be made, and the peer should be dropped. */
peg_status mcp_peer_receive(struct mcp_peer *peer, peg_str text, void *stream);
/* A header Mcp-Param-{name}. */
struct mcp_param {
    peg_str name;
    peg_str value;
};
/* The same with what came beside the message in an HTTP request; borrowed until it returns, and ""
 * where it was missing. A peer that lives for one request keeps no state for legacy clients: the
 * transport makes a session for those that can be asked, and gives what it keeps back with
 * mcp_peer_set_client(). */
struct mcp_http {
    bool has_session; /* the peer outlives the request, or mcp_peer_set_client() was called */
    peg_str version;  /* MCP-Protocol-Version */
    peg_str method;   /* Mcp-Method */
    peg_str name;     /* Mcp-Name */
    const struct mcp_param *params;
    size_t n_params;
};
peg_status mcp_peer_receive_http(struct mcp_peer *peer, peg_str text, void *stream,
                                 const struct mcp_http *http);
/* Does a request of this stream wait for its answer? */
bool mcp_peer_awaits(const struct mcp_peer *peer, const void *stream);
/* The stream was closed by the client: a modern request is canceled; a legacy one goes on, and asks
 * nothing more. */
void mcp_peer_close_stream(struct mcp_peer *peer, void *stream);
/* Ends subscriptions in good order, before the transport closes. */
void mcp_peer_finish(struct mcp_peer *peer);
/* Requests that have no answer yet. */
size_t mcp_peer_n_requests(const struct mcp_peer *peer);

#endif
