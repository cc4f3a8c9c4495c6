/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: the headers of a request of MCP over HTTP, a line each: MCP-Protocol-Version, Mcp-Method,
 * Mcp-Name; then its body.
 *
 * Properties: there is one answer at most, with a status of HTTP, and one line of JSON-RPC 2.0; a
 * modern request that reaches a tool has headers that say what its message says; all is freed in
 * the end.
 */

#include "base/text/base64.h"
#include "fuzz.h"
#include "mcp/protocol/protocol.h"
#include "mcp_source.h"

struct world {
    struct mcp_source source;
    struct mcp_http http;
    unsigned n_answers;
};

/* ---- the source ---- */

/* A header in base 64 is decoded; another one is what it is. */
static bool says(peg_str header, peg_str name)
{
    static const char head[] = "=?base64?";
    const size_t before = sizeof(head) - 1;
    char *text;
    bool is_same;

    if (header.len < before + 2 || memcmp(header.ptr, head, before) != 0)
        return peg__str_eq(header, name);
    if (header.len - before - 2 < (name.len + 2) / 3 * 4)
        return false;
    text = malloc((name.len + 2) / 3 * 4 + 1);
    REQUIRE(text, "memory");
    peg__base64_encode(name, text);
    is_same = memcmp(text, header.ptr + before, strcspn(text, "=")) == 0;
    free(text);
    return is_same;
}

static void begin(struct mcp_source *source, struct mcp_call *call)
{
    const struct world *w = peg__container_of(source, struct world, source);
    const struct mcp_request *request = mcp_call_request(call);

    if (request->era == MCP_MODERN) {
        REQUIRE(peg__str_is(w->http.version, MCP_VERSION_MODERN), "the version");
        REQUIRE(request->kind == MCP_COMPLETE || says(w->http.name, request->name), "the name");
        REQUIRE(request->kind != MCP_CALL_TOOL || says(w->http.method, peg__str("tools/call")),
                "the method");
    }
    mcp_call_end(call, &(struct mcp_result){0});
}

/* ---- the client ---- */

static void check_sent(void *user, const struct mcp_sent *sent)
{
    struct world *w = user;
    peg_json_doc *doc = fuzz_parse_own(sent->text.ptr, sent->text.len);

    REQUIRE(!memchr(sent->text.ptr, '\n', sent->text.len), "a message is one line");
    REQUIRE(peg__str_is(peg_json_str(peg_json_get(peg_json_root(doc), "jsonrpc")), "2.0"),
            "it is JSON-RPC 2.0");
    peg_json_doc_free(doc);
    if (!sent->is_end)
        return;
    REQUIRE(sent->http_status == 200 || (sent->http_status >= 400 && sent->http_status < 600),
            "status %d", sent->http_status);
    REQUIRE(++w->n_answers == 1, "there is one answer");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct mcp_source_ops source_ops = FUZZ_SOURCE_OPS(begin);
    static const struct mcp_peer_ops peer_ops = {.send = check_sent};
    peg_str rest = fuzz_input(data, size);
    struct world w = {0};
    const struct mcp_config config = {.name = "fuzz",
                                      .version = "1",
                                      .source = &w.source,
                                      .page_items = 4,
                                      .ttl_ms = 1,
                                      .wait_ms = 60000};
    struct mcp_server *server = NULL;
    struct mcp_peer *peer = NULL;

    w.source = (struct mcp_source){.ops = &source_ops, .offers = (MCP_OFFERS_UPDATES << 1) - 1};
    w.http.version = fuzz_line(&rest);
    w.http.method = fuzz_line(&rest);
    w.http.name = fuzz_line(&rest);
    REQUIRE(mcp_server_new(&config, &server) == PEG_OK, "a server");
    mcp_server_advance(server, 1, 1);
    REQUIRE(mcp_peer_new(server, &peer_ops, &w, "somebody", &peer) == PEG_OK, "a peer");
    REQUIRE(mcp_peer_receive_http(peer, rest, &w, &w.http) == PEG_OK, "there is memory");
    mcp_peer_finish(peer);
    mcp_peer_free(peer);
    REQUIRE(mcp_server_n_calls(server) == 0, "no call is left");
    mcp_server_free(server);
    return 0;
}
