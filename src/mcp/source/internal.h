/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_MCP_SOURCE_INTERNAL_H
#define PEG_MCP_SOURCE_INTERNAL_H

/*
 *   host.c     the source: lists, begins, cancels; what handlers report
 *   items.c    resources and prompts of the host
 *   request.c  a request for one of them, as its function sees it
 *   report.c   progress and log messages of handlers
 *   job.c      a call as its handler sees it: its context
 *   gate.c     a gate as questions to the client, and answers back
 *   result.c   a record as content
 *   workers.c  threads, and the mailbox between them and the loop
 *
 * A job goes loop -> queue -> worker -> mailbox -> loop. Its call is the loop's alone.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/map.h"
#include "core/context/context.h"
#include "core/registry/registry.h"
#include "mcp/source/source.h"
#include "pegboard/gate.h"
#include "pegboard/mcp.h"

struct mcp__job;

/* ---- workers.c ---- */

enum mcp__report_kind {
    MCP__PROGRESS,
    MCP__LOG,
    MCP__OUTPUT,
    MCP__ASK,
    MCP__END,
    MCP__UPDATED, /* a resource, by its URI; of no job */
};

/* From a handler to the loop. Owned by the mailbox, then by the loop. */
struct mcp__report {
    enum mcp__report_kind kind;
    struct mcp__job *job; /* one reference, or NULL */
    struct mcp__report *next;
    double progress;
    double total;
    enum mcp_level level;
    size_t name_len;
    size_t text_len;
    char text[]; /* name, then text */
};

/* Counted: the host's, and the jobs', which a handler that was abandoned on a pool may keep. */
struct mcp__workers {
    atomic_uint n_refs;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct mcp__job *first; /* the queue */
    struct mcp__job *last;
    struct mcp__report *first_report;
    struct mcp__report *last_report;
    unsigned n_threads;
    unsigned n_idle;
    unsigned n_blocked; /* threads whose handler waits at a gate */
    unsigned concurrency;
    bool is_closed;
    bool is_changed[MCP_N_LISTS];
    void (*run)(struct mcp__job *job);
    void (*wake)(void *user);
    void *user;
};

struct mcp__workers *mcp__workers_new(const struct mcp_host_config *config,
                                      void (*run)(struct mcp__job *job));
struct mcp__workers *mcp__workers_unref(struct mcp__workers *workers);
/* Waits for all threads. What is reported later is dropped. */
void mcp__workers_close(struct mcp__workers *workers);
/* The job's reference goes to the queue. PEG_EIO: there is no thread for it, and it is not queued.
 */
peg_status mcp__workers_submit(struct mcp__workers *workers, struct mcp__job *job);
/* A handler waits for a person, or goes on: another one may take its place meanwhile. */
void mcp__workers_block(struct mcp__workers *workers, bool is_blocked);
/* Any thread. Takes the report over. False: reports are not taken any more. */
bool mcp__post(struct mcp__workers *workers, struct mcp__report *report);
/* Any thread, any lock: wakes the loop to look at what has changed. */
void mcp__post_change(struct mcp__workers *workers, enum mcp_list_kind kind);
/* All that waits, the first one first. */
struct mcp__report *mcp__take_reports(struct mcp__workers *workers);

/* ---- job.c ---- */

/* Counted: the loop's, the worker's, the context's. */
struct mcp__job {
    atomic_uint n_refs;
    struct mcp_host *host; /* there while the job has not ended */
    struct mcp__workers *workers;
    struct mcp_call *call; /* the loop's; NULL: it has ended */
    struct mcp__job *next; /* of the queue */
    enum mcp_call_kind kind;
    bool wants_output;
    struct mcp__item *item; /* one reference; NULL: a tool */
    char *name;             /* owned */
    char *args;             /* owned: JSON */
    peg_ctx *ctx;           /* NULL once it is done: the context holds the job */
    peg_cancel *cancel;
    struct mcp_result result; /* the worker's until it has ended */
    struct mcp__report *end;  /* made at the beginning, so that ending needs no memory */
    atomic_size_t n_reported; /* bytes that wait in the mailbox */
    pthread_mutex_t lock;     /* of the gate */
    peg_gate *gate;           /* open; or NULL */
    unsigned n_gates;         /* ever; part of the key of a question */
};

peg_status mcp__job_new(struct mcp_host *host, struct mcp_call *call, struct mcp__job **ret_job);
struct mcp__job *mcp__job_ref(struct mcp__job *job);
struct mcp__job *mcp__job_unref(struct mcp__job *job);
/* NULL: the context is of no call of ours. */
struct mcp__job *mcp__job_of(const peg_ctx *ctx);
/* Breaks the circle of job and context. */
void mcp__job_drop_ctx(struct mcp__job *job);
/* Reports from a handler. PEG_ELIMIT: too much waits; PEG_ENOMEM. */
peg_status mcp__job_report(struct mcp__job *job, const struct mcp__report *head, peg_str name,
                           peg_str text);

/* ---- gate.c ---- */

/* A listener of gates; user is the job. */
void mcp__on_gate(peg_gate *gate, void *user);
/* The loop: the question of a job goes to its client. */
void mcp__ask_gate(struct mcp__job *job);
void mcp__answer_gate(struct mcp__job *job, const peg_json *answers, const char *reason);

/* ---- result.c ---- */

/* What a tool answered. has_schema: its results are checked, and so are structured. */
void mcp__put_record(struct mcp_result *result, const peg_record *record, bool has_schema);

/* ---- items.c ---- */

/* Immutable, counted: the map's, and the jobs'. */
struct mcp__item {
    atomic_uint n_refs;
    struct peg__arena arena; /* all strings */
    enum mcp_list_kind kind;
    const char *key; /* URI, template or name */
    const char *mime_type;
    peg_str json;          /* its definition */
    const char **required; /* arguments of a prompt, NULL behind the last */
    peg_mcp_fn run;
    peg_mcp_fn complete;
    void *user;
    void (*user_free)(void *);
};

struct mcp__item *mcp__item_ref(struct mcp__item *item);
struct mcp__item *mcp__item_unref(struct mcp__item *item);
/* A reference, or NULL. A resource may be one that a template stands for. */
struct mcp__item *mcp__find_item(struct mcp_host *host, enum mcp_list_kind kind, peg_str key);
/* What a template's names stand for in a URI, as a JSON object. */
peg_status mcp__template_values(const struct mcp__item *item, peg_str uri, char **ret_json);
peg_status mcp__list_items(struct mcp_host *host, enum mcp_list_kind kind, peg_str after,
                           struct mcp_page *page);
void mcp__items_free(struct mcp_host *host);

/* ---- request.c ---- */

/* A worker: runs the function of a job's item. */
void mcp__run_item(struct mcp__job *job);

/* ---- host.c ---- */

struct mcp_host {
    struct mcp_source source;
    struct mcp_server *server;
    peg_registry *registry;
    peg_run_options run;
    peg_run_hooks hooks;
    peg_ctx *ctx; /* with the registry */
    pthread_mutex_t items_lock;
    struct peg__map items; /* under the lock: of resources, templates and prompts */
    unsigned new_offers;   /* under the lock: that the loop adds to the source's */
    struct mcp__workers *workers;
    struct peg__registry_observer observer;
};

#endif
