/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: what clients send as requestState, a line each. A line begins with who and what:
 *
 *   one of "aA"   the principal that was asked, or another one
 *   one of "rR"   the request that was asked about, or another one
 *   a digit       so many minutes pass before it
 *
 * and goes on with the state, in which "$" stands for the one that the client was given.
 *
 * Properties: the request is taken for a retry if it has that state (its bytes: base 64 has blanks
 * that say nothing), comes from the same principal, is the same request and comes in time, and then
 * has the token of the call; else it is refused as invalid. (What was sealed is opened by any
 * server that has the secret.)
 */

#include "base/text/base64.h"
#include "fuzz.h"
#include "mcp/protocol/protocol.h"
#include "mcp_source.h"

enum { MINUTE_MS = 60000, WAIT_MS = 10 * MINUTE_MS, MAX_LINES = 100, MAX_STATE = 512 };

static const char TOKEN[] = "the-token-of-a-call";

struct world {
    struct mcp_source source;
    struct mcp_server *server;
    int64_t now_ms;
    char state[MAX_STATE];
    bool is_asking; /* the first request, which is answered with a question */
    unsigned n_resumed;
    unsigned n_refused;
};

/* ---- the source ---- */

static void begin(struct mcp_source *source, struct mcp_call *call)
{
    static const char questions[] =
        "{\"k\":{\"method\":\"elicitation/create\",\"params\":{\"message\":\"m\","
        "\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}}";
    struct world *w = peg__container_of(source, struct world, source);
    const struct mcp_request *request = mcp_call_request(call);

    if (w->is_asking) {
        peg_json_doc *doc = fuzz_parse_own(questions, sizeof(questions) - 1);

        REQUIRE(mcp_call_ask_apart(call, peg_json_root(doc), peg__str(TOKEN)), "it can be asked");
        peg_json_doc_free(doc);
        return;
    }
    REQUIRE(peg__str_is(request->resumed, TOKEN), "a retry has the token of its call");
    w->n_resumed++;
    mcp_call_end(call, &(struct mcp_result){0});
}

/* ---- the client ---- */

static void take_sent(void *user, const struct mcp_sent *sent)
{
    struct world *w = user;
    peg_json_doc *doc = fuzz_parse_own(sent->text.ptr, sent->text.len);
    const peg_json *root = peg_json_root(doc);
    const peg_str state = peg_json_str(peg_json_get(peg_json_get(root, "result"), "requestState"));
    const peg_json *error = peg_json_get(root, "error");

    if (w->is_asking) {
        REQUIRE(state.len && state.len < MAX_STATE, "a question has a state");
        snprintf(w->state, sizeof(w->state), "%s", state.ptr);
    }
    if (error) {
        REQUIRE(peg_json_double(peg_json_get(error, "code")) == MCP_INVALID_PARAMS, "%s",
                sent->text.ptr);
        w->n_refused++;
    }
    peg_json_doc_free(doc);
}

/* `state` NULL: the first request. */
static void ask(struct world *w, const char *principal, int argument, const peg_str *state)
{
    static const struct mcp_peer_ops ops = {.send = take_sent};
    struct peg__buf text = PEG__BUF(1 << 20);
    struct peg__out out = {.buf = &text};
    struct mcp_peer *peer = NULL;

    peg__buf_printf(&text,
                    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
                    "\"t\",\"arguments\":{\"n\":%d},\"_meta\":{\"io.modelcontextprotocol/"
                    "protocolVersion\":\"" MCP_VERSION_MODERN "\",\"io.modelcontextprotocol/"
                    "clientInfo\":{\"name\":\"f\",\"version\":\"1\"},\"io.modelcontextprotocol/"
                    "clientCapabilities\":{\"elicitation\":{\"form\":{}}}}",
                    argument);
    if (state) {
        peg__buf_puts(&text, ",\"inputResponses\":{},\"requestState\":");
        peg__out_string(&out, *state);
    }
    peg__buf_puts(&text, "}}");
    REQUIRE(mcp_peer_new(w->server, &ops, w, principal, &peer) == PEG_OK, "a peer");
    REQUIRE(mcp_peer_receive(peer, peg__buf_view(&text), NULL) == PEG_OK, "there is memory");
    mcp_peer_free(peer);
    peg__buf_free(&text);
}

/* The line's state, as valid UTF-8. */
static void put_state(struct peg__buf *out, const struct world *w, peg_str line)
{
    const peg_str text = fuzz_utf8(line);

    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '$')
            peg__buf_puts(out, w->state);
        else
            peg__buf_putc(out, text.ptr[i]);
    }
    fuzz_free(text);
}

static bool has_bytes_of(const char *state, peg_str text)
{
    char *bytes = malloc(peg__base64_bytes(text.len) + 1);
    char expected[MAX_STATE];
    size_t expected_len = 0;
    size_t len = 0;
    bool is_same;

    REQUIRE(bytes, "memory");
    REQUIRE(peg__base64_decode(peg__str(state), expected, &expected_len), "base 64");
    is_same = peg__base64_decode(text, bytes, &len) && len == expected_len &&
              memcmp(bytes, expected, len) == 0;
    free(bytes);
    return is_same;
}

static void retry(struct world *w, peg_str line)
{
    struct peg__buf state = PEG__BUF(1 << 20);
    const bool is_own = line.ptr[0] == 'a';
    const bool is_same = line.ptr[1] == 'r';
    const unsigned n_resumed = w->n_resumed;
    const unsigned n_refused = w->n_refused;
    bool is_good;
    peg_str text;

    w->now_ms += (int64_t)MINUTE_MS * (line.ptr[2] - '0');
    mcp_server_advance(w->server, w->now_ms, w->now_ms);
    put_state(&state, w, peg__str_from(line, 3));
    text = peg__buf_view(&state);
    is_good = has_bytes_of(w->state, text) && is_own && is_same && w->now_ms < MINUTE_MS + WAIT_MS;
    ask(w, is_own ? "anna" : "ben", is_same ? 1 : 2, &text);
    REQUIRE(w->n_resumed - n_resumed == is_good, "%.*s is taken for a retry", (int)line.len,
            line.ptr);
    REQUIRE(w->n_refused - n_refused == !is_good, "%.*s is refused", (int)line.len, line.ptr);
    peg__buf_free(&state);
}

static bool is_retry(peg_str line)
{
    return line.len >= 3 && (line.ptr[0] == 'a' || line.ptr[0] == 'A') &&
           (line.ptr[1] == 'r' || line.ptr[1] == 'R') && line.ptr[2] >= '0' && line.ptr[2] <= '9';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct mcp_source_ops source_ops = FUZZ_SOURCE_OPS(begin);
    static const unsigned char secret[32] = "a secret of thirty-two bytes 012";
    peg_str rest = fuzz_input(data, size);
    struct world w = {.now_ms = MINUTE_MS};
    const struct mcp_config config = {.name = "fuzz",
                                      .version = "1",
                                      .source = &w.source,
                                      .page_items = 4,
                                      .ttl_ms = 1,
                                      .wait_ms = WAIT_MS,
                                      .secret = secret};

    w.source = (struct mcp_source){.ops = &source_ops, .offers = MCP_OFFERS_TOOLS};
    REQUIRE(mcp_server_new(&config, &w.server) == PEG_OK, "a server");
    mcp_server_advance(w.server, w.now_ms, w.now_ms);
    w.is_asking = true;
    ask(&w, "anna", 1, NULL);
    w.is_asking = false;
    for (int i = 0; i < MAX_LINES && rest.len; i++) {
        const peg_str line = fuzz_line(&rest);

        if (is_retry(line))
            retry(&w, line);
    }
    REQUIRE(mcp_server_n_calls(w.server) == 0, "no call is left");
    mcp_server_free(w.server);
    return 0;
}
