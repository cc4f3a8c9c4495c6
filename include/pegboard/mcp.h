/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_MCP_H
#define PEGBOARD_MCP_H

/*
 * Offers the tools of a registry to any MCP client (Model Context Protocol), over a pair of pipes:
 *
 *   peg_mcp_options options = {PEG_MCP_OPTIONS_INIT, .name = "weather", .version = "1.0"};
 *   status = peg_mcp_serve_stdio(registry, &options, &error);      until the client closes the pipe
 *
 * Both eras are spoken, whichever the client begins with: 2026-07-28 (server/discover, each request
 * by itself) and 2025-11-25 or 2025-06-18 (initialize).
 *
 * It follows its registry: clients that want to hear of changes are notified, at most once a
 * second. Hints, version, tags and examples of tools are part of what clients see; `title` of a
 * tool's meta is its title. A handler that waits at a gate (gate.h) asks the person in front of the
 * client, and peg_call_ask() asks for what else a client can do.
 *
 * Handlers run on `concurrency` threads; one that waits at a gate takes nobody's place. Standard
 * output belongs to the protocol: a program that prints there breaks it. Needs libpegboard-mcp.
 */

#include <pegboard/call.h>
#include <pegboard/registry.h>
#include <pegboard/run.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- serving ----------------------------------------------------------------------------------
 */

/* Only name is required. Zero means the default, told here in brackets. Everything is copied but
 * counted things, which are referenced. */
typedef struct peg_mcp_options {
    size_t size;              /* set by PEG_MCP_OPTIONS_INIT */
    const char *name;         /* of the server: 1 to 256 bytes */
    const char *version;      /* ["0"] */
    const char *title;        /* for people [none] */
    const char *instructions; /* for the model: how to use the tools [none] */
    const char *website;      /* a URL [none] */

    unsigned concurrency; /* handlers at once [4]; at most 256 */
    unsigned page_items;  /* definitions in one answer to a list [200]; at most 1,000 */
    int64_t ttl_ms;       /* how long clients may keep a list [60,000] */
    int64_t wait_ms;      /* how long a call waits for a person [600,000] */
    int64_t task_ms;      /* a call that takes longer becomes a task, for clients that know tasks
                           * [10,000]; negative: never */
    int64_t drain_ms;     /* how long calls go on when the client has closed its end [1,000] */

    const peg_run_options *run; /* limits, hooks, spool and pool of each call [its own defaults] */
    peg_ctx *ctx;               /* what handlers find in their context [an empty one] */
} peg_mcp_options;
#define PEG_MCP_OPTIONS_INIT .size = sizeof(peg_mcp_options)

/* Shared by whoever serves and stops; owned. */
typedef struct peg_mcp_server peg_mcp_server;

/* PEG_EINVAL (E_MCP, `where` names the field), PEG_EIO (E_NO_RANDOMNESS; E_MCP: the system has no
 * descriptor for it), PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_mcp_server_new(peg_registry *registry,
                                                   const peg_mcp_options *options,
                                                   peg_mcp_server **ret_server, peg_error *reterr);
/* Not while it serves. */
PEG_API peg_mcp_server *peg_mcp_server_free(peg_mcp_server *server);
/* Reads messages from one descriptor and writes them to the other, a line each, until the first one
 * ends; they stay the caller's, and may be pipes, sockets or terminals. Calls that still run then
 * have drain_ms, and are canceled. Waits for handlers to return. PEG_OK: the client closed its end,
 * or it was stopped. PEG_EIO (E_MCP): reading failed, or the client does not read any more;
 * PEG_ESTATE (E_MCP): it serves already; PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_mcp_server_serve(peg_mcp_server *server, int in_fd, int out_fd,
                                                     peg_error *reterr);
/* Any thread; async-signal-safe. As if the client had closed its end; the second one cancels calls
 * at once. */
PEG_API void peg_mcp_server_stop(peg_mcp_server *server);
/* All of that on standard input and output, with the errors of each. SIGPIPE is ignored from here
 * on. */
PEG_API PEG_MUST_USE peg_status peg_mcp_serve_stdio(peg_registry *registry,
                                                    const peg_mcp_options *options,
                                                    peg_error *reterr);

/* ---- resources and prompts: any thread, also while it serves ----------------------------------
 */

/* A request for one of them, as its function sees it: on a thread for handlers, until it returns.
 */
typedef struct peg_mcp_request peg_mcp_request;
/* Answers with peg_mcp_reply_...(), as often as there is something, or with peg_mcp_fail(). */
typedef void (*peg_mcp_fn)(peg_mcp_request *request, void *user);

/* Only uri, name and read are required. Everything is copied but user. */
typedef struct peg_mcp_resource_def {
    size_t size; /* set by PEG_MCP_RESOURCE_DEF_INIT */
    /* Such as file:///notes.txt; or a template for many of them, such as note:///{id}: {id} stands
     * for what has no slash, {+id} for anything. */
    const char *uri;
    const char *name;
    const char *title;       /* [none] */
    const char *description; /* [none] */
    const char *mime_type;   /* [unknown] */
    peg_mcp_fn read;
    peg_mcp_fn complete; /* suggests values for the names of a template [none] */
    void *user;
    void (*user_free)(void *); /* called once with user; NULL if not owned */
} peg_mcp_resource_def;
#define PEG_MCP_RESOURCE_DEF_INIT .size = sizeof(peg_mcp_resource_def)

/* PEG_EINVAL (E_MCP, `where` names the field), PEG_EEXISTS (E_MCP): it has the URI already;
 * PEG_ELIMIT (E_MCP), PEG_ENOMEM. On failure user_free is not called. What is first of its kind
 * belongs before the client comes: clients ask once what there is. */
PEG_API PEG_MUST_USE peg_status peg_mcp_server_add_resource(peg_mcp_server *server,
                                                            const peg_mcp_resource_def *def,
                                                            peg_error *reterr);
/* Silent if there is none. Requests that run go on. */
PEG_API void peg_mcp_server_remove_resource(peg_mcp_server *server, const char *uri);
/* Notifies those who subscribed to it. PEG_ENOMEM. */
PEG_API peg_status peg_mcp_server_resource_updated(peg_mcp_server *server, const char *uri);

typedef struct peg_mcp_argument {
    const char *name;
    const char *description; /* [none] */
    bool is_required;
} peg_mcp_argument;

/* Only name and get are required. Everything is copied but user. */
typedef struct peg_mcp_prompt_def {
    size_t size; /* set by PEG_MCP_PROMPT_DEF_INIT */
    const char *name;
    const char *title;       /* [none] */
    const char *description; /* [none] */
    const peg_mcp_argument *arguments;
    size_t n_arguments;
    peg_mcp_fn get;      /* required arguments are there */
    peg_mcp_fn complete; /* suggests values for arguments [none] */
    void *user;
    void (*user_free)(void *); /* called once with user; NULL if not owned */
} peg_mcp_prompt_def;
#define PEG_MCP_PROMPT_DEF_INIT .size = sizeof(peg_mcp_prompt_def)

/* As peg_mcp_server_add_resource(), by name. */
PEG_API PEG_MUST_USE peg_status peg_mcp_server_add_prompt(peg_mcp_server *server,
                                                          const peg_mcp_prompt_def *def,
                                                          peg_error *reterr);
PEG_API void peg_mcp_server_remove_prompt(peg_mcp_server *server, const char *name);

/* What is asked: borrowed from the request. */
PEG_API const char *peg_mcp_request_name(const peg_mcp_request *request); /* or the URI */
/* The value of an argument, or of a name of the template as it stands in the URI; "" if absent. */
PEG_API const char *peg_mcp_request_argument(const peg_mcp_request *request, const char *name);
/* Of a completion: which argument, and what is there of it so far; "" otherwise. */
PEG_API const char *peg_mcp_request_completes(const peg_mcp_request *request);
PEG_API const char *peg_mcp_request_value(const peg_mcp_request *request);
/* Carries its cancellation; gates open on it (gate.h). */
PEG_API peg_ctx *peg_mcp_request_ctx(const peg_mcp_request *request);

/* One more part of the answer: contents of a resource, a message of the user, or a suggestion, of
 * which the first 100 are sent. PEG_EINVAL: no UTF-8; PEG_ESTATE: a prompt has no bytes, and only a
 * prompt has messages; PEG_ELIMIT beyond 16 MiB in all; PEG_ENOMEM. */
PEG_API peg_status peg_mcp_reply_text(peg_mcp_request *request, peg_str utf8);
PEG_API peg_status peg_mcp_reply_bytes(peg_mcp_request *request, peg_str bytes);
/* role: "user" or "assistant". */
PEG_API peg_status peg_mcp_reply_message(peg_mcp_request *request, const char *role, peg_str utf8);
/* It failed; or, is_missing, there is no such thing. */
PEG_API void peg_mcp_fail(peg_mcp_request *request, bool is_missing, const char *fmt, ...)
    PEG_PRINTF(3, 4);

/* ---- within a handler of a tool
 * -------------------------------------------------------------------------
 */

/* As RFC 5424 orders them. */
typedef enum peg_mcp_level {
    PEG_MCP_DEBUG = 0,
    PEG_MCP_INFO,
    PEG_MCP_NOTICE,
    PEG_MCP_WARNING,
    PEG_MCP_ERROR,
    PEG_MCP_CRITICAL,
    PEG_MCP_ALERT,
    PEG_MCP_EMERGENCY,
} peg_mcp_level;

/* Progress, for a client that asked for it: each more than the last; total 0: not known; message
 * may be NULL. Dropped if the call came by no MCP server of this process. PEG_EINVAL: no UTF-8 or
 * no number; PEG_ELIMIT: too much waits for the client, and it was dropped; PEG_ENOMEM. */
PEG_API peg_status peg_mcp_progress(peg_call *call, double progress, double total,
                                    const char *message);
/* A log message: data is any JSON, logger may be NULL. As above. */
PEG_API peg_status peg_mcp_log(peg_call *call, peg_mcp_level level, const char *logger,
                               const peg_json *data);

#ifdef __cplusplus
}
#endif
#endif
