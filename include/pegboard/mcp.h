/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_MCP_H
#define PEGBOARD_MCP_H

/*
 * Offers the tools of a registry to any MCP client (Model Context Protocol), over a pair of pipes:
 *
 *   peg_mcp_options options = {PEG_MCP_OPTIONS_INIT, .name = "weather", .version = "1.0"};
 *   status = peg_mcp_serve_stdio(registry, &options, &error);      until the client closes the pipe
 *
 * or to clients of an HTTP server that the program has, request by request: peg_mcp_server_http().
 *
 * Both eras are spoken, whichever the client begins with: 2026-07-28 (server/discover, each request
 * by itself) and 2025-11-25 or 2025-06-18 (initialize).
 *
 * It follows its registry: clients that want to hear of changes are notified, at most once a
 * second. Hints, version, tags and examples of tools are part of what clients see; `title` of a
 * tool's meta is its title. A handler that waits at a gate (gate.h) asks the person in front of the
 * client, and peg_call_ask() asks for what else a client can do.
 *
 * Handlers run on `concurrency` threads; one that waits at a gate takes no thread from others.
 * Standard output belongs to the protocol: a program that prints there breaks it. Needs
 * libpegboard-mcp.
 *
 * The other way round, peg_mcp_import() makes the tools of any MCP server tools of a registry.
 */

#include <pegboard/call.h>
#include <pegboard/http.h>
#include <pegboard/manifest.h>
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
    int64_t drain_ms;     /* how long calls go on when the client has closed its end [10,000] */

    const peg_run_options *run; /* limits, hooks, spool and pool of each call [its own defaults] */
    peg_ctx *ctx;               /* what handlers find in their context [an empty one] */
} peg_mcp_options;
#define PEG_MCP_OPTIONS_INIT .size = sizeof(peg_mcp_options)

/* Shared by the threads that serve and stop it; owned. */
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
/* Any thread; async-signal-safe. As if the client had closed its end. Calls are canceled at once if
 * the client has closed its end already, or by the second stop. */
PEG_API void peg_mcp_server_stop(peg_mcp_server *server);
/* All of that on standard input and output, with the errors of each. SIGPIPE is ignored from here
 * on. */
PEG_API PEG_MUST_USE peg_status peg_mcp_serve_stdio(peg_registry *registry,
                                                    const peg_mcp_options *options,
                                                    peg_error *reterr);

/* ---- over HTTP: any thread, any number at once ------------------------------------------------
 *
 * For a host that has an HTTP server. It chooses a path and hands every request for it over; the
 * answer is written with functions of its own, on the same thread, which waits for it. A stream on
 * which a client waits for changes holds its thread until the client closes it.
 */

typedef struct peg_mcp_header {
    const char *name; /* of an answer: in lower case */
    const char *value;
} peg_mcp_header;

/* One request. method, headers, begin and write are required; all of it is borrowed. */
typedef struct peg_mcp_http {
    size_t size;                   /* set by PEG_MCP_HTTP_INIT */
    const char *method;            /* POST, GET or DELETE; another one is answered with 405 */
    const peg_mcp_header *headers; /* all that came, without blanks around their values */
    size_t n_headers;
    peg_str body;          /* whole; at most 8 MiB are taken */
    const char *principal; /* who asks, as the host knows it: sessions are its own ["local"] */
    /* Names, between commas, by which clients reach it and whose pages may use it: others are
     * refused with 403, as pages elsewhere may have a browser send requests. Addresses and
     * localhost need none [none]. */
    const char *hosts;
    /* Begins the answer, once. Without content-length among its headers the end is not known: send
     * it in chunks, or close the connection behind it. False: the client is gone. */
    bool (*begin)(int status, const peg_mcp_header *headers, size_t n_headers, void *user);
    /* More of its body, to be sent at once. */
    bool (*write)(peg_str bytes, void *user);
    /* Is the client gone? Asked twice a second, so that its request is canceled [when write fails].
     */
    bool (*is_gone)(void *user);
    void *user;
} peg_mcp_http;
#define PEG_MCP_HTTP_INIT .size = sizeof(peg_mcp_http)

/* Streamable HTTP: answers one request. Returns when its answer is written or its client gone.
 * peg_mcp_server_stop() refuses what comes (503), ends streams within half a second, and calls
 * after drain_ms. PEG_EINVAL, PEG_ESTATE (E_MCP): it serves a client on descriptors; PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_mcp_server_http(peg_mcp_server *server,
                                                    const peg_mcp_http *http, peg_error *reterr);

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
/* A message that is an image or a sound: PEG_EINVAL for another type than image/... and audio/...
 */
PEG_API peg_status peg_mcp_reply_media(peg_mcp_request *request, const char *role,
                                       const char *mime_type, peg_str bytes);
/* A message that is a resource, with its text. mime_type may be NULL. */
PEG_API peg_status peg_mcp_reply_resource(peg_mcp_request *request, const char *role,
                                          const char *uri, const char *mime_type, peg_str utf8);
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

/* ---- importing --------------------------------------------------------------------------------
 */

/*
 * An MCP server whose tools are tools of a registry. A call of one is a call of the server, after
 * its arguments were checked here; its result is checked against its outputSchema.
 *
 *   const char *const command[] = {"npx", "-y", "@modelcontextprotocol/server-memory", NULL};
 *   peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT, .command = command};
 *   status = peg_mcp_import(registry, &options, &client, &error);
 *
 * One process serves all calls. When it ends it is started again, after a pause that grows, and its
 * tools stay in the registry: calls meanwhile fail at once (E_MCP_UNAVAILABLE), and a call that the
 * server had fails with E_MCP_LOST, as it may have taken effect. When its list of tools changes,
 * the registry follows. A question of the server to a person (elicitation) becomes a gate of the
 * call (gate.h), and is declined where the call has no listener for gates. What the server says of
 * progress is passed on to the caller.
 *
 * Content becomes a result: text as text, structured content as JSON, images, sounds and blobs as
 * media (third-party-private), with the text beside them as a note of the first. A call whose
 * result says isError fails with its text.
 *
 * Failures have a code as their cause: E_MCP_UNAVAILABLE, E_MCP_LOST, E_MCP_SERVER (the server
 * answered with an error), E_MCP_RESULT (no result of a tool), E_MCP_ASK, E_MCP_LIMIT.
 */
typedef struct peg_mcp_client peg_mcp_client;

typedef enum peg_mcp_event_kind {
    PEG_MCP_CONNECTED,     /* its tools are in the registry: n_tools, server, version */
    PEG_MCP_LOST,          /* it ended, and is started again in retry_ms: code, message */
    PEG_MCP_TOOLS_CHANGED, /* the registry has its new tools: n_tools */
    PEG_MCP_TOOL_REJECTED, /* one cannot be a tool here, and was left out: tool, code, message */
    PEG_MCP_STDERR,        /* a line that it wrote, printable and cut at 512 bytes: message */
} peg_mcp_event_kind;

/* Plain data, borrowed for the time of the call. "" and 0 for what does not apply. */
typedef struct peg_mcp_event {
    peg_mcp_event_kind kind;
    const char *server;  /* what it calls itself */
    const char *version; /* of the protocol that is spoken */
    const char *tool;
    const char *code;
    const char *message;
    size_t n_tools;
    int64_t retry_ms;
} peg_mcp_event;

/* Only command or url is required, and only one of them. Zero means the default, told here in
 * brackets. Everything is copied but user. */
typedef struct peg_mcp_import_options {
    size_t size; /* set by PEG_MCP_IMPORT_OPTIONS_INIT */
    /* A program that speaks over its standard input and output. NULL-terminated, no shell; argv[0]
     * is looked up in the absolute folders of its PATH. */
    const char *const *command;
    const char *const *env; /* NULL-terminated NAME=value; only these, and PATH if not given */
    const char *directory;  /* to run in [the host's] */

    const char *prefix;         /* before the name of each tool [""] */
    const char *const *include; /* globs such as "read_*", of the server's names [all] */
    const char *const *exclude; /* of those, not these [none] */
    int64_t timeout_ms;         /* of a call [the run's] */
    int64_t start_ms;           /* until it has answered and listed its tools [60,000] */
    int64_t backoff_ms;         /* before it is started again, then twice that... [500] */
    int64_t max_backoff_ms;     /* ...up to this [30,000] */

    /* One at a time, on a thread of the client's; during peg_mcp_import() also on the caller's.
     * Must not call back. */
    void (*on_event)(const peg_mcp_event *event, void *user);
    void *user;

    /* Or a server over HTTP: the URL of its endpoint, http:// or https://. No redirect is followed,
     * and a host that is a name must lead to public addresses; what is written as an address, or
     * localhost, is taken as it is. */
    const char *url;
    peg_http *http;             /* http.h; with url it is required, and held */
    const char *const *headers; /* NULL-terminated "Name: value", with every request [none] */
    bool private_addresses;     /* the name may also lead to this machine or a private network */
    int64_t check_ms;           /* how often it is asked whether it is there [15,000] */
} peg_mcp_import_options;
#define PEG_MCP_IMPORT_OPTIONS_INIT .size = sizeof(peg_mcp_import_options)

/* Starts the server, registers its tools and starts two threads. Which era it speaks is found out:
 * 2026-07-28 or, after initialize, 2025-11-25 and before. A tool that cannot be one here, because
 * of its name or a schema in an unknown dialect, is left out (PEG_MCP_TOOL_REJECTED), and so is one
 * whose name the registry has already.
 *
 * PEG_EINVAL (E_MCP, `where` names the field); PEG_EIO (E_MCP_START): the program cannot be
 * started, or ended; PEG_ETIMEOUT (E_MCP_START): it did not answer in time; PEG_EHOST
 * (E_MCP_SERVER, E_MCP_VERSION, E_MCP_PROTOCOL): it answered with an error, with an unknown version
 * of the protocol or with something else than MCP; PEG_ELIMIT (E_MCP_LIMIT): a line of more than
 * 16 MiB, or more than 10,000 tools; PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_mcp_import(peg_registry *registry,
                                               const peg_mcp_import_options *options,
                                               peg_mcp_client **ret_client, peg_error *reterr);
/* The server that the key `mcp` of a manifest (manifest.h) names, with its command, variables and
 * directory, or its URL and headers, and with its globs and timeout in place of those of the
 * options. Variables and files that headers come from are read now. *ret_client is NULL if there is
 * none. As peg_mcp_import(). */
PEG_API PEG_MUST_USE peg_status peg_mcp_import_manifest(peg_registry *registry,
                                                        const peg_manifest *manifest,
                                                        const peg_mcp_import_options *options,
                                                        peg_mcp_client **ret_client,
                                                        peg_error *reterr);
/* Takes its tools out of the registry, ends the server and waits for that: its input is closed,
 * after 2 s it gets SIGTERM, after 2 more SIGKILL. Calls that run fail. Not from a handler or
 * on_event. */
PEG_API peg_mcp_client *peg_mcp_client_free(peg_mcp_client *client);

typedef struct peg_mcp_client_state {
    bool is_connected;
    char server[257];    /* what it calls itself, the last time */
    char version[16];    /* of the protocol */
    size_t n_tools;      /* in the registry */
    unsigned n_running;  /* calls */
    uint64_t n_connects; /* ever */
} peg_mcp_client_state;

/* Any thread. */
PEG_API peg_mcp_client_state peg_mcp_client_info(peg_mcp_client *client);

#ifdef __cplusplus
}
#endif
#endif
