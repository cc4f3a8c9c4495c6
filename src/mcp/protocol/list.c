/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lists, page by page. A cursor is a position of the source behind a letter for the list, in base
 * 64: opaque to clients, and a cursor of another list is not taken for one of this.
 */

#include "base/limits/mcp.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "mcp/protocol/internal.h"

struct mcp_page {
    void *scope;
    struct peg__out *out;
    enum mcp_era era;
    unsigned n;
    unsigned max;
    size_t start; /* of the first item in the buffer */
    struct peg__buf position;
    bool has_more;
};

static const char list_letters[MCP_N_LISTS] = {'t', 'r', 'm', 'p'};
static const char *const list_names[MCP_N_LISTS] = {"tools", "resources", "resourceTemplates",
                                                    "prompts"};

/* A page has at least one item, however large. */
static bool is_full(const struct mcp_page *page)
{
    return page->n >= page->max ||
           (page->n && page->out->buf->len - page->start > PEG_LIMIT_MCP_PAGE_BYTES);
}

void *mcp_page_scope(const struct mcp_page *page)
{
    return page->scope;
}

bool mcp_page_add_tool(struct mcp_page *page, const struct mcp_tool *tool)
{
    if (is_full(page))
        return false;
    page->n++;
    mcp_put_tool(page->out, tool, page->era);
    return true;
}

bool mcp_page_add(struct mcp_page *page, peg_str json)
{
    if (is_full(page))
        return false;
    page->n++;
    peg__out_raw(page->out, json);
    return true;
}

void mcp_page_more(struct mcp_page *page, peg_str position)
{
    peg__buf_clear(&page->position);
    peg__buf_str(&page->position, position);
    page->has_more = true;
}

/* PEG_EINVAL: it is none of ours. */
static peg_status decode_cursor(const peg_json *cursor, enum mcp_list_kind kind,
                                struct peg__buf *ret_position)
{
    const peg_str text = peg_json_str(cursor);
    char *at;
    size_t len = 0;

    if (!cursor)
        return PEG_OK;
    if (cursor->kind != PEG_JSON_STRING || text.len > PEG_LIMIT_MCP_CURSOR_BYTES)
        return PEG_EINVAL;
    at = peg__buf_reserve(ret_position, peg__base64_bytes(text.len));
    if (!at)
        return PEG_ENOMEM;
    if (!peg__base64_decode(text, at, &len) || len < 2 || at[0] != list_letters[kind])
        return PEG_EINVAL;
    memmove(at, at + 1, len - 1);
    at[len - 1] = '\0';
    ret_position->len = len - 1;
    return PEG_OK;
}

static void put_cursor(struct peg__out *out, enum mcp_list_kind kind, peg_str position)
{
    struct peg__buf bytes = PEG__BUF(PEG_LIMIT_MCP_CURSOR_BYTES);
    struct peg__buf text = PEG__BUF(PEG_LIMIT_MCP_CURSOR_BYTES);
    char *at;

    peg__buf_putc(&bytes, list_letters[kind]);
    peg__buf_str(&bytes, position);
    at = bytes.status ? NULL : peg__buf_reserve(&text, peg__base64_len(bytes.len));
    if (at) {
        peg__base64_encode(peg__buf_view(&bytes), at);
        text.len = peg__base64_len(bytes.len);
        peg__out_member(out, "nextCursor", peg__buf_view(&text));
    } else {
        out->buf->status = bytes.status ? bytes.status : text.status;
    }
    peg__buf_free(&bytes);
    peg__buf_free(&text);
}

static peg_status put_page(struct mcp__request *rq, enum mcp_list_kind kind, peg_str after)
{
    struct mcp_server *server = rq->peer->server;
    struct mcp_source *source = server->config.source;
    struct peg__out *out = mcp__open_result(rq, "complete");
    struct mcp_page page = {.scope = rq->peer->scope,
                            .out = out,
                            .era = rq->era,
                            .max = server->config.page_items,
                            .position = PEG__BUF(PEG_LIMIT_MCP_CURSOR_BYTES)};
    peg_status status;

    peg__out_key(out, list_names[kind]);
    peg__out_array(out);
    page.start = out->buf->len;
    status = source->ops->list(source, kind, after, &page);
    peg__out_end_array(out);
    if (page.has_more && !status)
        put_cursor(out, kind, peg__buf_view(&page.position));
    if (page.position.status)
        status = page.position.status;
    peg__buf_free(&page.position);
    mcp__put_cache_hints(rq, out);
    return status;
}

static void send_page(struct mcp__request *rq, enum mcp_list_kind kind)
{
    struct peg__buf position = PEG__BUF(PEG_LIMIT_MCP_CURSOR_BYTES);
    peg_status status = decode_cursor(peg_json_get(rq->params, "cursor"), kind, &position);

    if (!status)
        status = put_page(rq, kind, peg__buf_view(&position));
    if (status == PEG_EINVAL)
        mcp__send_errorf(rq, MCP_INVALID_PARAMS,
                         "the cursor is none that this list gave: start again without one");
    else if (status)
        mcp__send_errorf(rq, MCP_INTERNAL_ERROR, "the list could not be made: try again later");
    else
        mcp__send_result(rq, (peg_str){"", 0});
    peg__buf_free(&position);
}

void mcp__list_tools(struct mcp__request *rq)
{
    send_page(rq, MCP_TOOLS);
}

void mcp__list_resources(struct mcp__request *rq)
{
    send_page(rq, MCP_RESOURCES);
}

void mcp__list_templates(struct mcp__request *rq)
{
    send_page(rq, MCP_TEMPLATES);
}

void mcp__list_prompts(struct mcp__request *rq)
{
    send_page(rq, MCP_PROMPTS);
}
