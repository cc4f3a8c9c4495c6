/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_MCP_WORLD_H
#define PEG_TESTS_MCP_WORLD_H

/*
 * A client and a source, both scripts: messages go in with receive(), what comes out is kept as
 * lines and checked against the protocol's schemas; the test ends calls itself.
 */

#include "../t.h"
#include "base/limits/mcp.h"
#include "base/text/str.h"
#include "mcp/protocol/protocol.h"
#include "schemas.h"

enum { MAX_SENT = 64, MAX_CALLS = PEG_LIMIT_MCP_CALLS + 1, MAX_ASKED = 64 };

#define META_WITH(capabilities, more)                                                              \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":" capabilities more "}"
#define META META_WITH("{}", "")
/* A modern request: M("1", "tools/call", "\"name\":\"t\",") */
#define M(id, method, params)                                                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":{" params META "}}"
#define M_WITH(id, method, params, capabilities, more)                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":{" params META_WITH(  \
        capabilities, more) "}}"
/* A legacy one: L("1", "ping", "{}") */
#define L(id, method, params)                                                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":" params "}"
#define N(method, params) "{\"jsonrpc\":\"2.0\",\"method\":\"" method "\",\"params\":" params "}"
#define INFO "\"io.modelcontextprotocol/serverInfo\":{\"name\":\"test\",\"version\":\"1\"}"

struct world {
    struct mcp_source source;
    struct mcp_server *server;
    struct mcp_peer *peer;
    struct schemas schemas;
    char *sent[MAX_SENT]; /* from malloc */
    struct mcp_sent how[MAX_SENT];
    size_t n_sent;
    struct {
        char id[64];
        char method[64];
        bool is_modern;
    } asked[MAX_ASKED];
    size_t n_asked;
    struct mcp_call *calls[MAX_CALLS]; /* NULL: ended */
    size_t n_calls;
    size_t n_canceled;
    size_t n_answered;
    char answers[1024];
    char reason[256];
    size_t n_tools; /* that the source lists */
    const struct mcp_tool *tools;
    bool ends_when_canceled;
};

/* ---- the source ---- */

static inline struct world *world_of(struct mcp_source *source)
{
    return peg__container_of(source, struct world, source);
}

static inline bool list_one(struct world *w, struct mcp_page *page, size_t i)
{
    static const peg_json object = {.kind = PEG_JSON_OBJECT, .u.extent = 1};
    char name[32];

    if (w->tools)
        return mcp_page_add_tool(page, &w->tools[i]);
    snprintf(name, sizeof(name), "tool%zu", i);
    return mcp_page_add_tool(page,
                             &(struct mcp_tool){.name = peg__str(name), .input_schema = &object});
}

static inline peg_status list_script(struct mcp_source *source, enum mcp_list_kind kind,
                                     peg_str after, struct mcp_page *page)
{
    struct world *w = world_of(source);
    size_t i = after.len ? (size_t)atoi(after.ptr) : 0;
    char position[32];

    if (kind != MCP_TOOLS)
        return PEG_OK;
    if (after.len && !peg__is_digit(after.ptr[0]))
        return PEG_EINVAL;
    while (i < w->n_tools && list_one(w, page, i))
        i++;
    if (i < w->n_tools) {
        snprintf(position, sizeof(position), "%zu", i);
        mcp_page_more(page, peg__str(position));
    }
    return PEG_OK;
}

static inline void begin_script(struct mcp_source *source, struct mcp_call *call)
{
    struct world *w = world_of(source);

    if (w->n_calls == MAX_CALLS)
        exit(EXIT_FAILURE);
    w->calls[w->n_calls++] = call;
}

static inline void answer_script(struct mcp_source *source, struct mcp_call *call,
                                 const peg_json *answers, const char *reason)
{
    struct world *w = world_of(source);
    PEG_CLEANUP(peg_freep) char *text = NULL;

    (void)call;
    w->n_answered++;
    snprintf(w->reason, sizeof(w->reason), "%s", reason ? reason : "");
    w->answers[0] = '\0';
    if (answers && peg_json_write(answers, PEG_JSON_COMPACT, &text, NULL, NULL) == PEG_OK)
        snprintf(w->answers, sizeof(w->answers), "%s", text);
}

static inline void end_call(struct world *w, size_t i, struct mcp_result *result)
{
    struct mcp_call *call = w->calls[i];

    w->calls[i] = NULL;
    mcp_call_end(call, result);
}

static inline void cancel_script(struct mcp_source *source, struct mcp_call *call,
                                 const char *reason)
{
    struct world *w = world_of(source);

    w->n_canceled++;
    snprintf(w->reason, sizeof(w->reason), "%s", reason);
    for (size_t i = 0; w->ends_when_canceled && i < w->n_calls; i++) {
        if (w->calls[i] == call)
            end_call(w, i, &(struct mcp_result){0});
    }
}

static const struct mcp_source_ops script_ops = {
    .list = list_script, .begin = begin_script, .answer = answer_script, .cancel = cancel_script};

/* A tool answers with a text. */
static inline void finish(struct world *w, size_t i, const char *text)
{
    struct mcp_result result = {.members = PEG__BUF(PEG_LIMIT_MCP_RESULT_BYTES)};
    struct peg__out out = {.buf = &result.members};

    peg__out_key(&out, "content");
    peg__out_array(&out);
    mcp_put_text(&out, peg__str(text));
    peg__out_end_array(&out);
    end_call(w, i, &result);
}

/* ---- the client ---- */

static inline size_t find_asked(const struct world *w, const peg_json *id)
{
    PEG_CLEANUP(peg_freep) char *text = NULL;

    if (id && peg_json_write(id, PEG_JSON_COMPACT, &text, NULL, NULL) == PEG_OK) {
        for (size_t i = w->n_asked; i-- > 0;) {
            if (!strcmp(w->asked[i].id, text))
                return i;
        }
    }
    return MAX_ASKED;
}

static inline void check_sent(struct world *w, peg_str text)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    const peg_json *root;
    const peg_json *result;
    const peg_json *method;
    size_t i;
    bool is_modern;
    char why[512] = "";

    CHECK(!memchr(text.ptr, '\n', text.len));
    CHECK_INT(peg_json_parse(text, NULL, &doc, NULL), PEG_OK);
    root = peg_json_root(doc);
    result = peg_json_get(root, "result");
    method = peg_json_get(root, "method");
    i = find_asked(w, peg_json_get(root, "id"));
    is_modern =
        i < MAX_ASKED ? w->asked[i].is_modern : !!strstr(text.ptr, "io.modelcontextprotocol/");
    schemas_check(&w->schemas, is_modern, "JSONRPCMessage", root, why);
    if (!why[0] && method)
        schemas_check(&w->schemas, is_modern, schemas_message(peg_json_str(method)), root, why);
    if (!why[0] && result && i < MAX_ASKED)
        schemas_check(&w->schemas, is_modern, schemas_result(peg_cstr(w->asked[i].method), result),
                      result, why);
    if (!why[0] && peg_json_get(root, "error"))
        schemas_check(&w->schemas, is_modern, schemas_error(peg_json_get(root, "error"), is_modern),
                      root, why);
    if (why[0])
        T_FAIL("%s: %.*s", why, (int)text.len, text.ptr);
}

static inline void keep_sent(void *user, const struct mcp_sent *sent)
{
    struct world *w = user;

    if (w->n_sent == MAX_SENT)
        exit(EXIT_FAILURE);
    w->how[w->n_sent] = *sent;
    w->sent[w->n_sent++] = strndup(sent->text.ptr, sent->text.len);
    if (w->schemas.docs)
        check_sent(w, sent->text);
}

static const struct mcp_peer_ops keep_ops = {.send = keep_sent};

static inline void note_asked(struct world *w, const char *text)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    PEG_CLEANUP(peg_freep) char *id = NULL;
    const peg_json *root;

    if (!w->schemas.docs || w->n_asked == MAX_ASKED ||
        peg_json_parse(peg_cstr(text), NULL, &doc, NULL))
        return;
    root = peg_json_root(doc);
    if (!peg_json_get(root, "id") || !peg_json_get(root, "method") ||
        peg_json_write(peg_json_get(root, "id"), PEG_JSON_COMPACT, &id, NULL, NULL))
        return;
    snprintf(w->asked[w->n_asked].id, 64, "%s", id);
    snprintf(w->asked[w->n_asked].method, 64, "%s", peg_json_str(peg_json_get(root, "method")).ptr);
    w->asked[w->n_asked++].is_modern = strstr(text, "io.modelcontextprotocol/") != NULL;
}

static inline void forget_sent(struct world *w)
{
    while (w->n_sent)
        free(w->sent[--w->n_sent]);
}

/* What was sent before is forgotten. */
static inline peg_status receive_on(struct world *w, const char *text, void *stream)
{
    forget_sent(w);
    note_asked(w, text);
    return mcp_peer_receive(w->peer, peg_cstr(text), stream);
}

static inline peg_status receive(struct world *w, const char *text)
{
    return receive_on(w, text, NULL);
}

/* The only message that was sent. */
#define CHECK_SENT(w, expected)                                                                    \
    do {                                                                                           \
        CHECK_INT((w)->n_sent, 1);                                                                 \
        CHECK_STR(peg_cstr((w)->sent[0]), expected);                                               \
    } while (0)
#define CHECK_HAS(w, i, part)                                                                      \
    do {                                                                                           \
        CHECK((w)->n_sent > (i));                                                                  \
        if (!strstr((w)->sent[i], part))                                                           \
            T_FAIL("\"%s\" is not in %s", part, (w)->sent[i]);                                     \
    } while (0)

/* ---- both ---- */

static inline struct mcp_config world_config(struct world *w)
{
    return (struct mcp_config){.name = "test",
                               .version = "1",
                               .source = &w->source,
                               .page_items = 3,
                               .ttl_ms = 5000,
                               .wait_ms = 60000};
}

static inline peg_status world_open(struct world *w, const struct mcp_config *config)
{
    peg_status status = mcp_server_new(config, &w->server);

    if (!status)
        mcp_server_advance(w->server, 1000, 1000);
    return status ? status : mcp_peer_new(w->server, &keep_ops, w, "somebody", &w->peer);
}

static inline void world_init_bare(struct world *w)
{
    *w = (struct world){.ends_when_canceled = true};
    w->source =
        (struct mcp_source){.ops = &script_ops, .offers = MCP_OFFERS_TOOLS | MCP_OFFERS_LOG};
}

static inline void world_init(struct world *w)
{
    struct mcp_config config;

    world_init_bare(w);
    schemas_load(&w->schemas);
    config = world_config(w);
    CHECK_INT(world_open(w, &config), PEG_OK);
}

static inline void world_free(struct world *w)
{
    forget_sent(w);
    mcp_peer_free(w->peer);
    if (w->server)
        mcp_server_cancel_all(w->server, "the test is over");
    for (size_t i = 0; i < w->n_calls; i++) {
        if (w->calls[i])
            end_call(w, i, &(struct mcp_result){0});
    }
    mcp_server_free(w->server);
    schemas_free(&w->schemas);
}

/* A legacy client with these capabilities. */
static inline void initialize(struct world *w, const char *capabilities)
{
    char text[512];

    snprintf(text, sizeof(text),
             L("0", "initialize",
               "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":%s,"
               "\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}"),
             capabilities);
    CHECK_INT(receive(w, text), PEG_OK);
    CHECK_INT(receive(w, N("notifications/initialized", "{}")), PEG_OK);
}

#endif
