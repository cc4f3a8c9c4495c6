/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_LIMITS_MCP_H
#define PEG_BASE_LIMITS_MCP_H

/* The limits of MCP: base/limits.h goes on here. */

#include "base/limits.h"

enum {
    /* One message of a client: arguments of a tool, and what goes with them. */
    PEG_LIMIT_MCP_MESSAGE_BYTES = 8 << 20,
    /* One message to a client: results with media in base 64. */
    PEG_LIMIT_MCP_RESULT_BYTES = 16 << 20,
    PEG_LIMIT_MCP_SENTENCE_BYTES = 8192,
    /* Ids of requests and tokens of progress are numbers or UUIDs. */
    PEG_LIMIT_MCP_ID_BYTES = 256,
    PEG_LIMIT_MCP_URI_BYTES = 8192,
    PEG_LIMIT_MCP_CURSOR_BYTES = 1024,
    /* A page of a list: definitions, and bytes of them after which it ends early. */
    PEG_LIMIT_MCP_PAGE_ITEMS = 200,
    PEG_LIMIT_MCP_PAGE_BYTES = 1 << 20,
    /* Calls of all clients of a loop; tasks that have ended and are kept, with their results. */
    PEG_LIMIT_MCP_CALLS = 1024,
    PEG_LIMIT_MCP_TASKS = 256,
    PEG_LIMIT_MCP_TASK_MS = 60 * 60 * 1000,
    /* Arguments of a tool that headers repeat: as many as a request has headers. */
    PEG_LIMIT_MCP_PARAMS = 64,
    /* Resources that one client subscribes to. */
    PEG_LIMIT_MCP_SUBSCRIPTIONS = 1000,
    /* Requests of one client that have no answer, listening ones too. */
    PEG_LIMIT_MCP_REQUESTS = 2048,
    /* A person who is asked may be away for a while; the handler waits with its memory. */
    PEG_LIMIT_MCP_WAIT_MS = 10 * 60 * 1000,
    /* Handlers at once, and those that wait for a person beside them. */
    PEG_LIMIT_MCP_CONCURRENCY = 256,
    PEG_LIMIT_MCP_WAITING = 256,
    /* Reports of one call that wait for the loop; more are dropped. */
    PEG_LIMIT_MCP_REPORT_BYTES = 512 << 10,
    /* Output that waits for the reader of a pipe: reading stops above it, and reports are lost. */
    PEG_LIMIT_MCP_OUTPUT_BYTES = 4 << 20,
    /* Resources, templates and prompts that a host adds. */
    PEG_LIMIT_MCP_ITEMS = 10000,
    /* Sessions of legacy clients of one server over HTTP, each some KiB; beyond it the one that was
     * not used for the longest time ends. And how long one is kept that is not used. */
    PEG_LIMIT_MCP_SESSIONS = 1000,
    PEG_LIMIT_MCP_SESSION_MS = 30 * 60 * 1000,
    /* Calls that go on when the client has closed the pipe: enough for a command in a script, `echo
     * REQUEST | pegboard mcp FILE`, on a busy machine. A client that wants to leave earlier sends
     * SIGTERM, as the SDKs do after 2 s. */
    PEG_LIMIT_MCP_DRAIN_MS = 10000,
    /* Calls of MCP clients on one loop of a gateway, and streams on which they wait for changes: of
     * both, each principal has its share. A stream costs some 5 KiB with its request of HTTP/2. */
    PEG_LIMIT_GATEWAY_MCP_CALLS = 20000,
    PEG_LIMIT_GATEWAY_MCP_STREAMS = 10000,
    /* Sessions of legacy clients that can be asked, on one node: each principal has its share. One
     * costs less than 1 KiB. It ends when its client is silent and waits for nothing; a person who
     * is asked has 10 minutes. */
    PEG_LIMIT_GATEWAY_MCP_SESSIONS = 10000,
    PEG_LIMIT_GATEWAY_MCP_SESSION_IDLE_MS = 30 * 60 * 1000,
    /* Loops that have requests of one session: a balancer spreads its connections. */
    PEG_LIMIT_GATEWAY_MCP_SESSION_LOOPS = 32,
    /* Between two signs of life on a silent stream; proxies wait for a minute, most of them. */
    PEG_LIMIT_GATEWAY_MCP_KEEPALIVE_MS = 15 * 1000,
    /* A call that takes longer becomes a task, for clients that take tasks. They ask for one once a
     * second: a call that is faster than two of that is answered sooner if it is waited for. */
    PEG_LIMIT_GATEWAY_MCP_TASK_MS = 2000,
    /* Values of one completion: what the protocol allows. */
    PEG_LIMIT_MCP_COMPLETIONS = 100,

    /* ---- servers whose tools are imported ---- */

    /* One line or event of a server: a result with media in base 64. */
    PEG_LIMIT_MCP_IMPORT_BYTES = 16 << 20,
    /* Tools that one server offers: what a manifest may have, too. */
    PEG_LIMIT_MCP_IMPORT_TOOLS = 10000,
    /* Pages of a list: a server that sends one tool a page needs as many. */
    PEG_LIMIT_MCP_IMPORT_PAGES = 10000,
    /* Requests that wait for one server at once; handlers are threads, so they are far fewer. */
    PEG_LIMIT_MCP_IMPORT_CALLS = 1024,
    /* What waits for a server that does not read. One request may have it for itself. */
    PEG_LIMIT_MCP_IMPORT_OUTPUT_BYTES = 4 << 20,
    /* Notifications that wait for the thread of their call; more are dropped. */
    PEG_LIMIT_MCP_IMPORT_NOTES = 256,
    /* Times that one call may be answered with a question. */
    PEG_LIMIT_MCP_IMPORT_ROUNDS = 16,
    /* Messages that belong to no request, in a window of ten seconds: more is a flood. */
    PEG_LIMIT_MCP_IMPORT_STRAYS = 10000,
    /* Lines of standard error that are reported in such a window; the rest is counted. */
    PEG_LIMIT_MCP_IMPORT_STDERR = 100,
    PEG_LIMIT_MCP_IMPORT_WINDOW_MS = 10000,
    /* A server that is asked for its era and has not answered is taken for a legacy one, which may
     * ignore what it does not know. */
    PEG_LIMIT_MCP_IMPORT_PROBE_MS = 5000,
    PEG_LIMIT_MCP_IMPORT_START_MS = 60000,
    /* Between the steps of ending a process. */
    PEG_LIMIT_MCP_IMPORT_GRACE_MS = 2000,
    PEG_LIMIT_MCP_IMPORT_BACKOFF_MS = 500,
    PEG_LIMIT_MCP_IMPORT_BACKOFF_MAX_MS = 30000,
    /* Servers over HTTP: how often they are asked whether they are there. */
    PEG_LIMIT_MCP_IMPORT_CHECK_MS = 15000,
    PEG_LIMIT_MCP_IMPORT_CONNECT_MS = 10000,
    /* For a message that has no answer, and for the end of a session. */
    PEG_LIMIT_MCP_IMPORT_POST_MS = 10000,
    PEG_LIMIT_MCP_IMPORT_DELETE_MS = 2000,
    /* Ids of sessions: JWTs, too. */
    PEG_LIMIT_MCP_SESSION_BYTES = 4096,
    /* Headers of one request: those of a manifest, and arguments that travel as headers. */
    PEG_LIMIT_MCP_IMPORT_HEADER_BYTES = 64 << 10,
    PEG_LIMIT_MCP_IMPORT_URL_BYTES = 8192,
    /* Until the stream is there on which a server speaks unasked: calls wait for it, and some open
     * it with the first event only. */
    PEG_LIMIT_MCP_IMPORT_STREAM_MS = 5000,
    /* Times that a stream is taken up again without an event in between. */
    PEG_LIMIT_MCP_IMPORT_RESUMES = 8,
    /* Before a stream that ended is opened again, unless the server names a time. */
    PEG_LIMIT_MCP_IMPORT_RESUME_MS = 1000,
    /* Levels of arguments that travel as headers. */
    PEG_LIMIT_MCP_PARAM_DEPTH = 32,
    /* Between two readings of a list that keeps changing. */
    PEG_LIMIT_MCP_IMPORT_RELIST_MS = 1000,
};

#endif
