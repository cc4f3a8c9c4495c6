/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_MCP_PROTOCOL_INTERNAL_H
#define PEG_MCP_PROTOCOL_INTERNAL_H

/*
 * The files of the protocol; each calls those below it:
 *
 *   peer.c       a peer: takes messages, decides the era, finds the method
 *   server.c     what peers share; time
 *   lifecycle.c  initialize, server/discover, ping, logging/setLevel: who we are
 *   task.c       tasks/get, tasks/update, tasks/cancel: calls that outlive their request
 *   listen.c     subscriptions/listen, resources/subscribe: notifications of changes
 *   list.c       tools/list and its relatives, page by page
 *   call.c       requests that the source works on: begin, progress, cancel, end
 *   ask.c        input from the client: requests to legacy ones, input_required and its retry
 *   ability.c    what a client can be asked
 *   definition.c a tool as its era writes it
 *   content.c    items of content and results
 *   param.c      headers of arguments: likewise
 *   header.c     headers of HTTP: they agree with the message
 *   message.c    JSON-RPC: what a message is, answers, errors, notifications
 */

#include "base/arena.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/list.h"
#include "base/map.h"
#include "mcp/protocol/protocol.h"

#define MCP_META "io.modelcontextprotocol/"
#define MCP_TASKS "io.modelcontextprotocol/tasks"

struct mcp__listen;

enum mcp__waiter { MCP__NO_WAITER, MCP__CALL, MCP__LISTEN };

/* A request of a client: on the stack of mcp_peer_receive(), or part of what works on it. */
struct mcp__request {
    struct mcp_peer *peer; /* NULL: no peer waits for an answer */
    void *stream;
    peg_json_doc *doc; /* owned */
    const peg_json *id;
    peg_str method;
    const peg_json *params;
    const peg_json *meta;
    const peg_json *capabilities; /* of a modern client */
    unsigned can;                 /* what the client can be asked for: ask.c */
    const peg_json *token;        /* of progress; NULL: not wanted */
    enum mcp_era era;
    int log_level;     /* the least; MCP_N_LEVELS: none wanted */
    double progress;   /* the last one sent */
    bool has_progress; /* one was sent */
    bool wants_log;    /* the client asked for log messages itself */
    bool has_streamed; /* something went out before the answer */
    bool is_lost;      /* nothing can be sent before the answer any more */
    enum mcp__waiter waiter;
    char resumed[MCP_TOKEN_BYTES + 1]; /* what its requestState names; "": nothing */
};

struct mcp_call {
    struct mcp__request request; /* the last one: a retry takes the first one's place */
    struct mcp_request face;
    peg_json_doc *origin; /* of the first request, which the face is borrowed from */
    struct mcp_server *server;
    struct mcp_call *next;
    struct mcp_call *prev;
    void *user;
    char id[PEG_ID_HEX_TEXT]; /* what requestState and tasks name it by */
    char *principal;          /* owned */
    int64_t began_ms;
    bool is_canceled;
    bool refuses_task;
    /* asking */
    peg_json_doc *asked;   /* open requests by key; NULL: none */
    peg_json_doc *answers; /* those that came so far, by key */
    int64_t expires_ms;    /* of the wait for answers; 0: it does not wait for any */
    bool has_given;        /* what its request had of answers was used */
    struct mcp__task *task;
};

struct mcp_server {
    struct peg__arena arena;
    struct mcp_config config;
    peg_str info; /* serverInfo as JSON */
    unsigned char secret[32];
    int64_t now_ms;  /* any clock that does not step */
    int64_t wall_ms; /* since 1970 */
    struct mcp_peer *peers;
    struct mcp_call *calls; /* all that the source has */
    size_t n_calls;
    struct mcp__task *tasks;
    size_t n_tasks;
    bool is_changed[MCP_N_LISTS];
    int64_t notified_ms[MCP_N_LISTS]; /* last; 0: never */
};

struct mcp_peer {
    struct mcp_server *server;
    const struct mcp_peer_ops *ops;
    void *user;
    char *principal;             /* owned */
    char *session;               /* owned; NULL: none */
    void *scope;                 /* the source's */
    const struct mcp_http *http; /* of the message that is being read; NULL: it came otherwise */
    bool is_stateless;           /* it lives for one request: nothing can be set for later ones */
    struct mcp_peer *next;
    struct mcp_peer *prev;
    const char *version; /* of a legacy client, once it has initialized; else NULL */
    unsigned abilities;  /* what that one can be asked for */
    bool is_initialized;
    int log_level; /* of a legacy client */
    bool has_set_level;
    struct peg__map requests;   /* id as JSON -> struct mcp__request: without an answer */
    struct peg__map subscribed; /* legacy: URIs of resources */
    struct mcp__listen *listens;
    struct peg__buf buf; /* the message that is being written */
    struct peg__out out;
    struct peg__buf key;
    peg_status status; /* sticks: a message could not be written */
};

/* ---- message.c ---- */

enum mcp__kind { MCP__INVALID, MCP__REQUEST, MCP__NOTIFICATION, MCP__RESPONSE };

/* What a message is. Sets method, id and params of the request; id stays NULL if it can't be read.
 */
enum mcp__kind mcp__classify(const peg_json *message, struct mcp__request *rq);
/* {"jsonrpc":"2.0": the first members follow. */
struct peg__out *mcp__open(struct mcp_peer *peer);
/* Closes the message and sends it. */
void mcp__send(struct mcp_peer *peer, const struct mcp_sent *how);
/* A result up to its members, of a type in the modern era; the members follow. */
struct peg__out *mcp__open_result(struct mcp__request *rq, const char *type);
/* `meta`: further members of _meta, or "". */
void mcp__send_result(struct mcp__request *rq, peg_str meta);
/* One without members. */
void mcp__send_empty(struct mcp__request *rq);
/* `data` is JSON, or "". */
void mcp__send_error(struct mcp__request *rq, int code, peg_str message, peg_str data);
void mcp__send_errorf(struct mcp__request *rq, int code, const char *fmt, ...) PEG_PRINTF(3, 4);
/* A notification up to its params, whose members follow. */
struct peg__out *mcp__open_notification(struct mcp_peer *peer, const char *method);
void mcp__send_notification(struct mcp_peer *peer, struct mcp__request *rq, bool may_be_lost);
/* An id as JSON, borrowed from the peer until the next one. */
peg_str mcp__id_text(struct mcp_peer *peer, const peg_json *id);
const char *mcp__level_name(int level);
/* Are both peers connections of one client? */
bool mcp__is_same_client(const struct mcp_peer *peer, const struct mcp_peer *other);
/* The client has a request of this id that is not answered: registers it; PEG_EEXISTS. */
peg_status mcp__add_request(struct mcp__request *rq);
void mcp__remove_request(struct mcp__request *rq);
struct mcp__request *mcp__find_request(struct mcp_peer *peer, const peg_json *id);
void mcp__request_free(struct mcp__request *rq);
/* "ttlMs" and "cacheScope" of what a modern client may keep. */
void mcp__put_cache_hints(struct mcp__request *rq, struct peg__out *out);

/* ---- header.c ---- */

/* Do the headers say that the message is a modern one? */
bool mcp__has_modern_header(const struct mcp_peer *peer);
/* False: they disagree with the message, or name a version that is not spoken; it was answered. */
bool mcp__check_headers(struct mcp__request *rq);
/* The text of a header, as it came or decoded into `bytes`. False: it is neither, or no memory. */
bool mcp__decode_header(peg_str header, struct peg__buf *bytes, peg_str *ret_text);
/* Answers that a version is not spoken. */
void mcp__reject_version(struct mcp__request *rq, peg_str version);

/* ---- ability.c ---- */

/* Bits. All of them: what no client can do, an unknown method. */
enum { MCP__CAN_ALL = (1 << 5) - 1 };
/* What a client can be asked for that declares these capabilities; 0: nothing. */
unsigned mcp__abilities_of(const peg_json *capabilities);
/* What it takes to answer a question. */
unsigned mcp__needs_of(const peg_json *request);
/* {"requiredCapabilities": ...} */
void mcp__put_needs(struct peg__out *out, unsigned needs);

/* ---- ask.c ---- */

/* A response of a legacy client. */
void mcp__take_response(struct mcp_peer *peer, const peg_json *id, const peg_json *message);
/* The answers did not come in time. */
void mcp__expire_ask(struct mcp_call *call);
/* Forgets what was asked: the call is ending or canceled. */
void mcp__drop_ask(struct mcp_call *call);
/* The call is over; notifies no one. */
void mcp__drop_call(struct mcp_call *call);
/* A retry that names its call: true, and the request was taken over or answered. False: it is none,
 * or it resumes what was asked apart. */
bool mcp__take_retry(struct mcp__request *rq);
/* Answers by key, of which unknown ones are ignored. When none is missing, the source has them. */
void mcp__give_answers(struct mcp_call *call, const peg_json *answers);
/* The open requests that have no answer yet, as members of an object. */
void mcp__put_asked(struct peg__out *out, const struct mcp_call *call);

/* ---- call.c ---- */

void mcp__begin_call(struct mcp__request *rq, enum mcp_call_kind kind, peg_str name);
/* No peer waits for the call any more: cancels it. */
void mcp__cancel_call(struct mcp_call *call, const char *reason);
/* Its request was answered, or no peer waits for an answer. */
void mcp__detach_call(struct mcp_call *call);
/* What the buffers of a result lost becomes an error. */
void mcp__replace_broken(enum mcp_call_kind kind, struct mcp_result *result);
/* The members of a result. */
void mcp__put_end(struct peg__out *out, const struct mcp_result *result, enum mcp_era era);
/* An id of ours: the call that has it, or NULL. */
struct mcp_call *mcp__find_call(struct mcp_server *server, peg_str id);

/* ---- task.c ---- */

/* Do calls of tools become tasks here, ours or the source's? */
bool mcp__has_tasks(const struct mcp_server *server);
/* And does the client take them? */
bool mcp__takes_tasks(const struct mcp__request *rq);
/* Does its client take a task instead of an answer? */
bool mcp__may_become_task(const struct mcp_call *call);
/* The call outlives its request, which is answered with a task. */
void mcp__become_task(struct mcp_call *call);
/* It was updated now. */
void mcp__touch_task(struct mcp_call *call);
/* The end of a call that is a task. */
void mcp__end_task(struct mcp_call *call, struct mcp_result *result);
void mcp__expire_tasks(struct mcp_server *server);
int64_t mcp__tasks_due_ms(const struct mcp_server *server);
void mcp__drop_tasks(struct mcp_server *server);

/* ---- listen.c ---- */

/* All of a peer; `says_so`: with an answer. */
void mcp__drop_listens(struct mcp_peer *peer, bool says_so);
void mcp__drop_listen(struct mcp__request *rq);
/* Notifies of the lists that changed, if it is time. */
void mcp__notify_changes(struct mcp_server *server);
int64_t mcp__changes_due_ms(const struct mcp_server *server);

/* ---- methods: each answers its request or takes it over ---- */

typedef void mcp__method_fn(struct mcp__request *rq);
mcp__method_fn mcp__initialize, mcp__discover, mcp__ping, mcp__set_level;
mcp__method_fn mcp__list_tools, mcp__list_resources, mcp__list_templates, mcp__list_prompts;
mcp__method_fn mcp__call_tool, mcp__read_resource, mcp__get_prompt, mcp__complete;
mcp__method_fn mcp__listen_to, mcp__subscribe, mcp__unsubscribe;
mcp__method_fn mcp__get_task, mcp__update_task, mcp__cancel_task;

#endif
