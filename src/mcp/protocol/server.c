/* SPDX-License-Identifier: Apache-2.0 */

/* What the peers of a loop share, and what happens with time. */

#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "mcp/protocol/internal.h"

static const char *copy_text(struct mcp_server *server, const char *text, bool *is_out)
{
    const char *copy = text ? peg__arena_copy(&server->arena, peg__str(text)) : NULL;

    if (text && !copy)
        *is_out = true;
    return copy;
}

/* Implementation, as both eras write it. */
static bool write_info(struct mcp_server *server)
{
    const struct mcp_config *config = &server->config;
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__out out = {.buf = &text};
    char *copy;

    peg__out_object(&out);
    peg__out_cmember(&out, "name", config->name);
    peg__out_cmember(&out, "version", config->version);
    if (config->title)
        peg__out_cmember(&out, "title", config->title);
    if (config->website)
        peg__out_cmember(&out, "websiteUrl", config->website);
    peg__out_end_object(&out);
    copy = text.status ? NULL : peg__arena_copy(&server->arena, peg__buf_view(&text));
    server->info = peg__strn(copy, text.len);
    peg__buf_free(&text);
    return copy != NULL;
}

static bool copy_config(struct mcp_server *server, const struct mcp_config *config)
{
    bool is_out = false;

    server->config = *config;
    server->config.name = copy_text(server, config->name, &is_out);
    server->config.version = copy_text(server, config->version, &is_out);
    server->config.title = copy_text(server, config->title, &is_out);
    server->config.instructions = copy_text(server, config->instructions, &is_out);
    server->config.website = copy_text(server, config->website, &is_out);
    server->config.ask_prefix = copy_text(server, config->ask_prefix, &is_out);
    return !is_out && write_info(server);
}

peg_status mcp_server_new(const struct mcp_config *config, struct mcp_server **ret_server)
{
    struct mcp_server *server = peg__alloc_zero(1, sizeof(*server));

    if (!server)
        return PEG_ENOMEM;
    if (!copy_config(server, config)) {
        mcp_server_free(server);
        return PEG_ENOMEM;
    }
    if (config->secret) {
        mcp_server_set_secret(server, config->secret);
    } else if (!peg__random(server->secret, sizeof(server->secret))) {
        mcp_server_free(server);
        return PEG_EIO;
    }
    *ret_server = server;
    return PEG_OK;
}

void mcp_server_set_secret(struct mcp_server *server, const unsigned char secret[32])
{
    memcpy(server->secret, secret, sizeof(server->secret));
}

struct mcp_server *mcp_server_free(struct mcp_server *server)
{
    if (server) {
        mcp__drop_tasks(server);
        peg__arena_free(&server->arena);
        peg__free(server);
    }
    return NULL;
}

size_t mcp_server_n_calls(const struct mcp_server *server)
{
    return server->n_calls;
}

/* Canceling one may end it at once, and with it others: begins again after each. */
void mcp_server_cancel_all(struct mcp_server *server, const char *reason)
{
    struct mcp_call *call = server->calls;

    while (call) {
        if (call->is_canceled) {
            call = call->next;
        } else {
            mcp__cancel_call(call, reason);
            call = server->calls;
        }
    }
}

/* ---- time ---- */

static bool is_over(const struct mcp_call *call)
{
    return call->expires_ms && call->expires_ms <= call->server->now_ms && !call->is_canceled;
}

static bool outlives_request(const struct mcp_call *call)
{
    return mcp__may_become_task(call) &&
           call->began_ms + call->server->config.task_ms <= call->server->now_ms;
}

static struct mcp_call *find_due(struct mcp_server *server, bool (*is_due)(const struct mcp_call *))
{
    struct mcp_call *call = server->calls;

    while (call && !is_due(call))
        call = call->next;
    return call;
}

void mcp_server_set_time(struct mcp_server *server, int64_t now_ms, int64_t wall_ms)
{
    server->now_ms = now_ms;
    server->wall_ms = wall_ms;
}

void mcp_server_advance(struct mcp_server *server, int64_t now_ms, int64_t wall_ms)
{
    struct mcp_call *call;

    mcp_server_set_time(server, now_ms, wall_ms);
    while ((call = find_due(server, is_over)))
        mcp__expire_ask(call);
    while ((call = find_due(server, outlives_request)))
        mcp__become_task(call);
    mcp__expire_tasks(server);
    mcp__notify_changes(server);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t mcp_server_due_ms(const struct mcp_server *server)
{
    int64_t due = earlier(mcp__changes_due_ms(server), mcp__tasks_due_ms(server));

    for (const struct mcp_call *call = server->calls; call; call = call->next) {
        if (call->expires_ms && !call->is_canceled)
            due = earlier(due, call->expires_ms);
        if (mcp__may_become_task(call))
            due = earlier(due, call->began_ms + server->config.task_ms);
    }
    return due;
}
