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
    /* Calls that go on when the client has closed the pipe. */
    PEG_LIMIT_MCP_DRAIN_MS = 1000,
    /* Values of one completion: what the protocol allows. */
    PEG_LIMIT_MCP_COMPLETIONS = 100,
};

#endif
