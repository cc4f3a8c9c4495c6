/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: what an MCP server sends whose tools are imported, a line each. Each request takes lines
 * until it is answered, and ids are 1, 2, 3, ...; at the end of the input the server is lost. Every
 * tool that it offers is called.
 *
 * Properties: what is sent is one line of JSON-RPC 2.0; no request is left without an end; whatever
 * comes, all is freed in the end.
 */

#include "fuzz.h"
#include "mcp/client/internal.h"
#include "pegboard/run.h"

enum { MAX_TOOLS = 16, MAX_LINES = 500 };

static peg_str rest;
static int n_lines;

static void check_message(peg_str text)
{
    peg_json_doc *doc = NULL;

    REQUIRE(!memchr(text.ptr, '\n', text.len), "a message is one line");
    REQUIRE(peg_json_parse(text, NULL, &doc, NULL) == PEG_OK, "a message is JSON");
    REQUIRE(peg__str_is(peg_json_str(peg_json_get(peg_json_root(doc), "jsonrpc")), "2.0"),
            "a message is JSON-RPC");
    peg_json_doc_free(doc);
}

/* ---- the link ---- */

static peg_status open_server(peg_mcp_client *client, peg_error *reterr)
{
    (void)reterr;
    mcp__opened(client);
    return PEG_OK;
}

static void close_server(peg_mcp_client *client)
{
    const peg_error why = {.status = PEG_EIO, .code = "E_MCP_START", .cause = ""};

    mcp__lose(client, &why, UINT64_MAX);
}

static peg_status exchange_lines(struct mcp__exchange *x, peg_ctx *ctx, peg_str message,
                                 peg_error *reterr)
{
    peg_status status = PEG_OK;

    check_message(message);
    while (!x->is_done && !status) {
        if (rest.len && n_lines++ < MAX_LINES)
            status = mcp__receive(x->client, NULL, fuzz_line(&rest), reterr);
        else
            close_server(x->client);
        mcp__exchange_take_notes(x);
    }
    return status ? status : mcp__exchange_wait(x, ctx, reterr);
}

static void send_line(peg_mcp_client *client, peg_str message, bool waits)
{
    (void)client;
    (void)waits;
    check_message(message);
}

static void listen_to_lines(peg_mcp_client *client, peg_str message)
{
    (void)client;
    if (message.len)
        check_message(message);
}

static const struct mcp__link_ops fuzz_link = {.open = open_server,
                                               .exchange = exchange_lines,
                                               .send = send_line,
                                               .listen = listen_to_lines,
                                               .close = close_server};

/* ---- its tools ---- */

static void call_all(peg_registry *registry)
{
    peg_tool_list tools;

    REQUIRE(peg_registry_visible(registry, &tools, NULL) == PEG_OK, "a list");
    for (size_t i = 0; i < tools.len && i < MAX_TOOLS; i++) {
        peg_record *record = NULL;

        REQUIRE(peg_registry_call(registry, peg_tool_name(tools.items[i]), "{}", &record, NULL) ==
                    PEG_OK,
                "a record");
        peg_record_unref(record);
    }
    peg_tool_list_free(&tools);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *const command[] = {"fuzz", NULL};
    const peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT, .command = command};
    peg_registry *registry = NULL;
    peg_mcp_client *client = NULL;
    peg_error error;

    rest = fuzz_input(data, size);
    n_lines = 0;
    REQUIRE(peg_registry_new(NULL, 0, &registry, NULL) == PEG_OK, "a registry");
    REQUIRE(mcp__client_new(registry, &fuzz_link, &options, &client, &error) == PEG_OK, "a client");
    if (mcp__connect_and_list(client, &error) == PEG_OK)
        call_all(registry);
    REQUIRE(client->n_exchanges == 0, "no request is left");
    peg_mcp_client_free(client);
    REQUIRE(peg_registry_len(registry) == 0, "no tool is left");
    peg_registry_unref(registry);
    return 0;
}
