/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_MCP_HTTP_INTERNAL_H
#define PEG_MCP_HTTP_INTERNAL_H

/*
 * Each file calls those below it:
 *
 *   serve.c     one request: its head, its message, its answer
 *   exchange.c  what is sent to a request, and how it is written
 *   client.c    clients: a session, or one request
 *   wait.c      threads that wait, and who of them leads
 *   guard.c     Host and Origin
 */

#include <pthread.h>

#include "base/buf.h"
#include "base/id.h"
#include "base/map.h"
#include "mcp/http/http.h"

struct mcp__exchange;

/* Under the lock: the thread that has it owns the protocol. */
struct mcp__web_client {
    struct mcp_web *web;
    struct mcp_peer *peer; /* NULL: its session has ended */
    struct mcp__web_client *next;
    struct mcp__web_client *prev;
    struct mcp__exchange *exchanges;
    int64_t used_ms;
    char id[PEG_ID_HEX_TEXT]; /* of its session; "": it has none */
    char principal[];         /* NUL-terminated */
};

struct mcp_web {
    struct mcp_host *host; /* NULL: not yet */
    struct mcp_server *protocol;
    int64_t drain_ms;
    atomic_uint *n_stops;
    pthread_mutex_t lock;
    struct mcp__web_client *clients;
    struct peg__map sessions; /* id -> client */
    int64_t stopped_ms;       /* when it was found to be stopped; 0: it is not */
    /* Waiting. This lock is the innermost: any other may be held when it is taken. */
    pthread_mutex_t wait_lock;
    struct mcp__exchange *waiting;
    struct mcp__exchange *leader; /* one of them, or NULL */
    bool has_reports;             /* that no thread has taken */
    pthread_cond_t reported;      /* for threads that wait without a request */
};

enum mcp__stage {
    MCP__WAITING,   /* nothing was sent */
    MCP__STREAMING, /* events were */
    MCP__ANSWERED,
};

/* A request. It outlives one that was lost while a legacy client's call runs. */
struct mcp__exchange {
    struct mcp__web_client *client;
    const peg_mcp_http *http; /* NULL: it was lost */
    struct mcp__exchange *next;
    struct mcp__exchange *prev;
    /* under the lock */
    enum mcp__stage stage;
    struct peg__buf out; /* to be written: events, or the answer */
    int status;          /* of an answer that is no event; 0: there is none */
    bool takes_events;
    bool is_listening;             /* a GET: what belongs to no request comes here */
    char session[PEG_ID_HEX_TEXT]; /* that its answer names; "": none */
    /* its thread's */
    bool has_begun;
    bool is_gone; /* the client is */
    int64_t written_ms;
    /* under wait_lock */
    pthread_cond_t woken;
    bool has_news;
    struct mcp__exchange *next_waiting;
    struct mcp__exchange *prev_waiting;
};

int64_t mcp__now_ms(void);

/* ---- wait.c ---- */

/* Until there is something for the exchange, or this time; who leads, until `due_ms` if that is
 * earlier. True: it has led, and is to take what handlers have reported. */
bool mcp__wait(struct mcp__exchange *exchange, int64_t until_ms, int64_t due_ms);
/* There is something for it. */
void mcp__wake(struct mcp__exchange *exchange);
/* The thread that may have led is leaving: another one leads. */
void mcp__resign(struct mcp_web *web);

/* ---- client.c: under the lock ---- */

/* NULL: no memory. */
struct mcp__web_client *mcp__web_client_new(struct mcp_web *web, const char *principal,
                                            const struct mcp_peer_ops *ops);
/* The session of that principal, or NULL. */
struct mcp__web_client *mcp__web_client_find(struct mcp_web *web, peg_str id,
                                             const char *principal);
/* It has initialized: it gets a session, unless there is no memory or place for one. */
void mcp__web_client_keep(struct mcp__web_client *client);
/* Its session is over; requests that it has open end. */
void mcp__web_client_end(struct mcp__web_client *client);
/* A request of the client's. NULL: no memory. */
struct mcp__exchange *mcp__exchange_new(struct mcp__web_client *client, const peg_mcp_http *http);
/* Frees requests that were lost and get no answer any more, clients that nothing keeps, and
 * sessions that were not used for long. */
void mcp__web_reap(struct mcp_web *web);

/* ---- exchange.c ---- */

extern const struct mcp_peer_ops mcp__exchange_ops; /* of a client's peer; user is the client */
/* Its thread, without the lock: writes what there is, and a sign of life if it was silent for long.
 * `out` is what it had. */
void mcp__exchange_write(struct mcp__exchange *exchange, const struct peg__buf *out);
/* It ends; where nothing was written, without an answer. */
void mcp__exchange_finish(struct mcp__exchange *exchange);
/* An answer that is no message. */
void mcp__reply_text(const peg_mcp_http *http, int status, const char *sentence);

#endif
