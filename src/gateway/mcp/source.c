/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The catalog as a source of tools, by toolset and then in the order of registration. Toolsets that
 * are not healthy are listed too: to a model a tool that comes and goes is worse than one that says
 * why it cannot run.
 *
 * A position in the list names the tool before it, "PLACE TOOL TOOLSET", and means the same on
 * every node and in every later snapshot: the next tool in order.
 */

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/mcp/internal.h"

/* PEG_ELIMIT: it belongs to the next page. */
static peg_status add_catalog_tool(struct mcp_page *page, const struct gw_toolset *toolset,
                                   const struct gw_tool *tool, bool is_qualified)
{
    struct gw_mcp_definition definition;
    peg_status status = gw_mcp_define(&definition, toolset, tool, is_qualified);

    if (!status && !mcp_page_add_tool(page, &definition.tool))
        status = PEG_ELIMIT;
    gw_mcp_undefine(&definition);
    return status;
}

/* ---- places in the list ---- */

struct place {
    size_t toolset;
    size_t tool;
};

/* The tool that was added to a page last. */
struct listed {
    const struct gw_toolset *toolset; /* NULL: none yet */
    size_t place;
};

/* The word before the next blank; what follows stays in *rest. */
static peg_str read_position_word(peg_str *rest)
{
    const char *end = rest->len ? memchr(rest->ptr, ' ', rest->len) : NULL;
    const peg_str word = peg__strn(rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len);

    *rest = peg__str_from(*rest, end ? word.len + 1 : word.len);
    return word;
}

static bool read_number(peg_str digits, size_t *ret_number)
{
    size_t number = 0;

    for (size_t i = 0; i < digits.len; i++) {
        if (!peg__is_digit(digits.ptr[i]))
            return false;
        number = number * 10 + (size_t)(digits.ptr[i] - '0');
    }
    *ret_number = number;
    return digits.len > 0 && digits.len < 10;
}

static size_t place_of_tool(const struct gw_toolset *toolset, peg_str name, size_t otherwise)
{
    const struct gw_tool *tool = gw_toolset_tool(toolset, name);

    return tool ? (size_t)(tool - toolset->tools) + 1 : otherwise;
}

static peg_status find_next_tool(const struct gw_snapshot *snapshot, peg_str after,
                                 struct place *ret_place)
{
    const peg_str digits = read_position_word(&after);
    const peg_str tool = read_position_word(&after);
    const size_t behind = gw_snapshot_behind(snapshot, after);
    size_t number;

    if (!read_number(digits, &number) || !tool.len || !after.len)
        return PEG_EINVAL;
    *ret_place = (struct place){.toolset = behind};
    if (behind > 0 && peg__str_eq(snapshot->toolsets[behind - 1]->name, after)) {
        ret_place->toolset = behind - 1;
        ret_place->tool = place_of_tool(snapshot->toolsets[behind - 1], tool, number);
    }
    return PEG_OK;
}

static void put_more(struct mcp_page *page, const struct gw_toolset *toolset, size_t place)
{
    char position[2 * PEG_LIMIT_NAME_BYTES + 32];

    snprintf(position, sizeof(position), "%zu " PEG_FMT " " PEG_FMT, place,
             PEG_ARG(toolset->tools[place].name), PEG_ARG(toolset->name));
    mcp_page_more(page, peg__str(position));
}

/* ---- lists ---- */

/* The toolsets of a scope: [*ret_first, *ret_end). */
static void bound_scope(const struct gw_snapshot *snapshot, const struct gw_mcp_scope *scope,
                        size_t *ret_first, size_t *ret_end)
{
    const size_t behind = scope->toolset.len ? gw_snapshot_behind(snapshot, scope->toolset) : 0;
    const bool is_there =
        behind > 0 && peg__str_eq(snapshot->toolsets[behind - 1]->name, scope->toolset);

    *ret_first = scope->toolset.len && is_there ? behind - 1 : behind;
    *ret_end = scope->toolset.len ? behind : snapshot->n;
}

/* The tools of a toolset, from one of them on; *ret_last is the one that was added last. */
static peg_status list_toolset(const struct gw_toolset *toolset, size_t from, bool is_qualified,
                               struct mcp_page *page, struct listed *ret_last)
{
    for (size_t i = from; i < toolset->n_tools; i++) {
        const peg_status status = add_catalog_tool(page, toolset, &toolset->tools[i], is_qualified);

        if (status)
            return status;
        *ret_last = (struct listed){toolset, i};
    }
    return PEG_OK;
}

static peg_status list_catalog(const struct gw_snapshot *snapshot, const struct gw_mcp_scope *scope,
                               peg_str after, struct mcp_page *page)
{
    struct place at = {0};
    struct listed last = {0};
    size_t first;
    size_t end;
    peg_status status = after.len ? find_next_tool(snapshot, after, &at) : PEG_OK;

    bound_scope(snapshot, scope, &first, &end);
    if (at.toolset < first)
        at = (struct place){.toolset = first};
    for (; !status && at.toolset < end; at = (struct place){.toolset = at.toolset + 1})
        status =
            list_toolset(snapshot->toolsets[at.toolset], at.tool, !scope->toolset.len, page, &last);
    if (status != PEG_ELIMIT)
        return status;
    if (last.toolset)
        put_more(page, last.toolset, last.place);
    return PEG_OK;
}

static peg_status list_page(struct mcp_source *source, enum mcp_list_kind kind, peg_str after,
                            struct mcp_page *page)
{
    const struct gw_mcp *mcp = peg__container_of(source, struct gw_mcp, source);
    const struct gw_mcp_scope *scope = mcp_page_scope(page);
    const struct gw_snapshot *snapshot = gw_mcp_snapshot(mcp);

    if (kind != MCP_TOOLS || !snapshot)
        return PEG_OK;
    if (scope->is_search)
        return after.len ? PEG_EINVAL : gw_mcp_list_search(page);
    return list_catalog(snapshot, scope, after, page);
}

/* ---- calls ---- */

/* Few tools have arguments that headers repeat, so their schemas are read for the call. False: the
 * call has ended. */
static bool check_params(struct mcp_call *call, const struct gw_tool *tool)
{
    static const char mark[] = "x-mcp-header";
    const peg_str schema = tool->input_schema;
    struct mcp_result result = {0};
    peg_json_doc *doc = NULL;
    bool is_good;

    if (!schema.len || mcp_call_request(call)->era != MCP_MODERN ||
        !memmem(schema.ptr, schema.len, mark, sizeof(mark) - 1))
        return true;
    if (peg_json_parse(schema, NULL, &doc, NULL)) {
        mcp_result_fail(&result, MCP_INTERNAL_ERROR,
                        "the gateway is out of memory: try again later");
        mcp_call_end(call, &result);
        return false;
    }
    is_good = mcp_call_check_params(call, peg_json_root(doc));
    peg_json_doc_free(doc);
    return is_good;
}

static void begin_catalog_call(struct mcp_source *source, struct mcp_call *call)
{
    struct gw_mcp *mcp = peg__container_of(source, struct gw_mcp, source);
    const struct mcp_request *request = mcp_call_request(call);
    const struct gw_mcp_scope *scope = request->scope;
    const struct gw_toolset *toolset;
    const struct gw_tool *tool;

    if (request->kind != MCP_CALL_TOOL) {
        gw_mcp_begin_task_request(mcp, call);
        return;
    }
    if (scope->is_search) {
        gw_mcp_begin_search(mcp, call);
        return;
    }
    tool = gw_mcp_find_in(gw_mcp_snapshot(mcp), scope, request->name, &toolset);
    if (!tool)
        gw_mcp_reject_name(call, request->name);
    else if (check_params(call, tool))
        gw_mcp_call(mcp, call, toolset, tool, request->args);
}

/* Most answers of modern clients come with a call of their own, which resumes this one. */
static void answer_catalog_call(struct mcp_source *source, struct mcp_call *call,
                                const peg_json *answers, const char *reason)
{
    (void)source;
    if (answers)
        gw_mcp_answer(call, answers);
    else
        gw_mcp_refuse(call, reason);
}

static void cancel_catalog_call(struct mcp_source *source, struct mcp_call *call,
                                const char *reason)
{
    (void)source;
    (void)reason;
    if (mcp_call_request(call)->kind == MCP_CALL_TOOL)
        gw_mcp_cancel(call);
    else
        gw_mcp_drop_task_request(call);
}

const struct mcp_source_ops gw_mcp_source_ops = {
    .list = list_page,
    .begin = begin_catalog_call,
    .answer = answer_catalog_call,
    .cancel = cancel_catalog_call,
};
