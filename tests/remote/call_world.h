/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_REMOTE_CALL_WORLD_H
#define PEG_TESTS_REMOTE_CALL_WORLD_H

/* A client of one made-up gateway, and what became of its last call. Include it behind t.h. */

#include "fake_registry.h"
#include "pegboard/client.h"

struct world {
    struct fake fake;
    peg_client *client;
    peg_remote_result *result;
    peg_error error;
};

/* A gateway that is made up answers, however slow the machine is: who is to give it up says so. */
enum { WORLD_TIMEOUT_MS = 300000 };

static inline peg_status world_open(struct world *w)
{
    const peg_client_options options = {PEG_CLIENT_OPTIONS_INIT, .address = w->fake.address,
                                        .timeout_ms = WORLD_TIMEOUT_MS};
    peg_status status;

    memset(w, 0, sizeof(*w));
    status = fake_open(&w->fake);
    w->error = w->fake.error;
    if (!status)
        status = peg_client_new(&options, &w->client, &w->error);
    return status;
}

static inline void world_close(struct world *w)
{
    peg_remote_result_free(w->result);
    peg_client_unref(w->client);
    fake_done(&w->fake);
}

static inline peg_remote_request request_of(const char *tool)
{
    return (peg_remote_request){PEG_REMOTE_REQUEST_INIT, .toolset = "weather", .tool = tool,
                                .args = peg__str("{\"x\":1}")};
}

static inline peg_status call(struct world *w, peg_ctx *ctx, const peg_remote_request *request)
{
    w->result = peg_remote_result_free(w->result);
    return peg_client_call(w->client, ctx, request, &w->result, &w->error);
}

static inline peg_status call_tool(struct world *w, const char *tool)
{
    const peg_remote_request request = request_of(tool);

    return call(w, NULL, &request);
}

/* Somebody who cancels when it is time. */
struct stopper {
    struct world *w;
    peg_cancel *cancel;
    pthread_t thread;
};

#endif
