/* SPDX-License-Identifier: Apache-2.0 */

/* Messages to a server. */

#include "base/text/str.h"
#include "mcp/client/internal.h"

#define META "io.modelcontextprotocol/"

static struct peg__out *open_message(struct mcp__message *m)
{
    peg__buf_clear(&m->text);
    m->out = (struct peg__out){.buf = &m->text};
    peg__out_object(&m->out);
    peg__out_cmember(&m->out, "jsonrpc", "2.0");
    return &m->out;
}

void mcp__open_request(struct mcp__message *m, int64_t id, const char *method)
{
    struct peg__out *out = open_message(m);

    if (id) {
        peg__out_key(out, "id");
        peg__out_integer(out, id);
    }
    peg__out_cmember(out, "method", method);
    peg__out_key(out, "params");
    peg__out_object(out);
}

void mcp__put_client_info(struct mcp__message *m, const char *name)
{
    peg__out_key(&m->out, name);
    peg__out_object(&m->out);
    peg__out_cmember(&m->out, "name", "pegboard");
    peg__out_cmember(&m->out, "version", peg_version());
    peg__out_end_object(&m->out);
}

void mcp__put_request_meta(struct mcp__message *m, const peg_mcp_client *client, bool can_be_asked,
                           int64_t progress_token)
{
    struct peg__out *out = &m->out;

    if (client->era == MCP_LEGACY && !progress_token)
        return;
    peg__out_key(out, "_meta");
    peg__out_object(out);
    if (client->era == MCP_MODERN) {
        peg__out_cmember(out, META "protocolVersion", MCP_VERSION_MODERN);
        mcp__put_client_info(m, META "clientInfo");
        peg__out_key(out, META "clientCapabilities");
        peg__out_raw(out, peg__str(can_be_asked ? "{\"elicitation\":{\"form\":{}}}" : "{}"));
    }
    if (progress_token) {
        peg__out_key(out, "progressToken");
        peg__out_integer(out, progress_token);
    }
    peg__out_end_object(out);
}

void mcp__close_request(struct mcp__message *m)
{
    peg__out_end_object(&m->out);
    peg__out_end_object(&m->out);
}

void mcp__write_response(struct mcp__message *m, const peg_json *id, peg_str result)
{
    struct peg__out *out = open_message(m);

    peg__out_key(out, "id");
    peg__out_value(out, id);
    peg__out_key(out, "result");
    peg__out_raw(out, result);
    peg__out_end_object(out);
}

void mcp__write_error(struct mcp__message *m, const peg_json *id, int code, const char *message)
{
    struct peg__out *out = open_message(m);

    peg__out_key(out, "id");
    peg__out_value(out, id);
    peg__out_key(out, "error");
    peg__out_object(out);
    peg__out_key(out, "code");
    peg__out_integer(out, code);
    peg__out_cmember(out, "message", message);
    peg__out_end_object(out);
    peg__out_end_object(out);
}

void mcp__message_free(struct mcp__message *m)
{
    peg__buf_free(&m->text);
}
