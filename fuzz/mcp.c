/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: what a client of MCP does, a line each. A line is a message, unless it is
 *
 *   <n     the source ends call n with a text     ?n  call n asks its client
 *   +n     n seconds pass                         ^   the list of tools changes
 *   %      the client goes, another one comes
 *
 * "$S" in a message becomes the last requestState, "$T" the last task, "$I" the id of our last
 * request.
 *
 * Properties: what is sent is one line of JSON-RPC 2.0; a request has at most one answer, and none
 * after it was canceled; whatever comes, all is freed in the end.
 */

#include "base/limits/mcp.h"
#include "fuzz.h"
#include "mcp/protocol/protocol.h"

enum { MAX_CALLS = 64, MAX_LINES = 200, KEPT_BYTES = 512 };

struct world {
    struct mcp_source source;
    struct mcp_server *server;
    struct mcp_peer *peer;
    struct mcp_call *calls[MAX_CALLS];
    size_t n_calls;
    int64_t now_ms;
    char state[KEPT_BYTES];
    char task[KEPT_BYTES];
    char id[KEPT_BYTES];
};

static struct world *world_of(struct mcp_source *source)
{
    return peg__container_of(source, struct world, source);
}

/* ---- the source ---- */

static peg_status list_some(struct mcp_source *source, enum mcp_list_kind kind, peg_str after,
                            struct mcp_page *page)
{
    static const peg_json object = {.kind = PEG_JSON_OBJECT, .u.extent = 1};
    const struct mcp_tool tool = {.name = peg__str("t"), .input_schema = &object};
    int i = after.len ? atoi(after.ptr) : 0;

    (void)source;
    if (kind != MCP_TOOLS)
        return PEG_OK;
    if (i < 0 || i > 9)
        return PEG_EINVAL;
    while (i < 9 && mcp_page_add_tool(page, &tool))
        i++;
    if (i < 9)
        mcp_page_more(page, peg__strn((char[]){(char)('0' + i)}, 1));
    return PEG_OK;
}

static void end_call(struct world *w, size_t i)
{
    struct mcp_call *call = i < w->n_calls ? w->calls[i] : NULL;
    struct mcp_result result = {.members = PEG__BUF(1000)};

    if (!call)
        return;
    w->calls[i] = NULL;
    peg__buf_puts(&result.members, "\"content\":[]");
    mcp_call_end(call, &result);
}

static void begin(struct mcp_source *source, struct mcp_call *call)
{
    struct world *w = world_of(source);

    if (w->n_calls == MAX_CALLS) {
        mcp_call_end(call, &(struct mcp_result){0});
        return;
    }
    w->calls[w->n_calls++] = call;
    mcp_call_progress(call, 1, 0, peg__str("begun"));
}

static void answer(struct mcp_source *source, struct mcp_call *call, const peg_json *answers,
                   const char *reason)
{
    (void)source;
    REQUIRE(!answers != !reason, "there are answers, or a reason");
    mcp_call_log(call, MCP_LEVEL_ERROR, peg__str("fuzz"), peg__str("1"));
}

static void cancel(struct mcp_source *source, struct mcp_call *call, const char *reason)
{
    struct world *w = world_of(source);

    REQUIRE(reason[0], "a cancellation has a reason");
    for (size_t i = 0; i < w->n_calls; i += 2) { /* others end later */
        if (w->calls[i] == call)
            end_call(w, i);
    }
}

static const struct mcp_source_ops source_ops = {
    .list = list_some, .begin = begin, .answer = answer, .cancel = cancel};

static void ask(struct world *w, size_t i)
{
    static const char requests[] =
        "{\"k\":{\"method\":\"elicitation/create\",\"params\":{\"message\":\"m\","
        "\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}},"
        "\"r\":{\"method\":\"roots/list\"}}";
    peg_json_doc *doc;

    if (i >= w->n_calls || !w->calls[i])
        return;
    doc = fuzz_parse_own(requests, sizeof(requests) - 1);
    mcp_call_ask(w->calls[i], peg_json_root(doc));
    peg_json_doc_free(doc);
}

/* ---- the client ---- */

static void keep(char kept[KEPT_BYTES], const peg_json *value)
{
    if (peg_json_kind_of(value) == PEG_JSON_STRING)
        snprintf(kept, KEPT_BYTES, "%s", peg_json_str(value).ptr);
}

static void check_sent(void *user, const struct mcp_sent *sent)
{
    struct world *w = user;
    peg_json_doc *doc = fuzz_parse_own(sent->text.ptr, sent->text.len);
    const peg_json *root = peg_json_root(doc);
    const peg_json *result = peg_json_get(root, "result");
    const bool is_answer = result || peg_json_get(root, "error");

    REQUIRE(!memchr(sent->text.ptr, '\n', sent->text.len), "a message is one line");
    REQUIRE(peg__str_is(peg_json_str(peg_json_get(root, "jsonrpc")), "2.0"), "it is JSON-RPC 2.0");
    REQUIRE(is_answer == !peg_json_get(root, "method"), "it is an answer, or has a method");
    REQUIRE(is_answer == sent->is_end, "answers end a stream, and nothing else does");
    keep(w->state, peg_json_get(result, "requestState"));
    keep(w->task, peg_json_get(result, "taskId"));
    if (!is_answer)
        keep(w->id, peg_json_get(root, "id"));
    peg_json_doc_free(doc);
}

static const struct mcp_peer_ops peer_ops = {.send = check_sent};

static void put_kept(struct peg__buf *out, const struct world *w, char name)
{
    peg__buf_puts(out, name == 'S' ? w->state : name == 'T' ? w->task : w->id);
}

static void receive(struct world *w, peg_str line)
{
    struct peg__buf text = PEG__BUF(1 << 20);

    for (size_t i = 0; i < line.len; i++) {
        if (line.ptr[i] == '$' && i + 1 < line.len && line.ptr[i + 1] &&
            strchr("STI", line.ptr[i + 1]))
            put_kept(&text, w, line.ptr[++i]);
        else
            peg__buf_putc(&text, line.ptr[i]);
    }
    REQUIRE(mcp_peer_receive(w->peer, peg__buf_view(&text), NULL) == PEG_OK, "there is memory");
    peg__buf_free(&text);
}

static void replace_peer(struct world *w)
{
    mcp_peer_finish(w->peer);
    mcp_peer_free(w->peer);
    REQUIRE(mcp_peer_new(w->server, &peer_ops, w, "somebody", &w->peer) == PEG_OK, "a peer");
}

static void act(struct world *w, peg_str line)
{
    const size_t n = line.len > 1 && line.ptr[1] >= '0' ? (size_t)(line.ptr[1] - '0') : 0;

    switch (line.len ? line.ptr[0] : ' ') {
    case '<':
        end_call(w, n);
        return;
    case '?':
        ask(w, n);
        return;
    case '+':
        w->now_ms += 1000 * (int64_t)(n * n * n * n);
        mcp_server_advance(w->server, w->now_ms, w->now_ms);
        return;
    case '^':
        mcp_server_changed(w->server, MCP_TOOLS);
        mcp_server_updated(w->server, peg__str("a:b"));
        return;
    case '%':
        replace_peer(w);
        return;
    default:
        receive(w, line);
    }
}

static void finish(struct world *w)
{
    mcp_peer_finish(w->peer);
    REQUIRE(mcp_peer_n_requests(w->peer) <= PEG_LIMIT_MCP_REQUESTS, "requests are bounded");
    mcp_peer_free(w->peer);
    mcp_server_cancel_all(w->server, "the end");
    for (size_t i = 0; i < w->n_calls; i++)
        end_call(w, i);
    REQUIRE(mcp_server_n_calls(w->server) == 0, "no call is left");
    mcp_server_free(w->server);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peg_str rest = fuzz_input(data, size);
    struct world w = {.now_ms = 1000};
    const struct mcp_config config = {.name = "fuzz",
                                      .version = "1",
                                      .source = &w.source,
                                      .page_items = 4,
                                      .ttl_ms = 1,
                                      .wait_ms = 60000,
                                      .task_ms = 2000};

    w.source = (struct mcp_source){.ops = &source_ops, .offers = (MCP_OFFERS_UPDATES << 1) - 1};
    REQUIRE(mcp_server_new(&config, &w.server) == PEG_OK, "a server");
    mcp_server_advance(w.server, w.now_ms, w.now_ms);
    REQUIRE(mcp_peer_new(w.server, &peer_ops, &w, "somebody", &w.peer) == PEG_OK, "a peer");
    for (int i = 0; i < MAX_LINES && rest.len; i++)
        act(&w, fuzz_line(&rest));
    finish(&w);
    return 0;
}
