/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_GATEWAY_REQUESTS_H
#define PEG_TESTS_GATEWAY_REQUESTS_H

/* Registrations for tests, without an allocation. Include it behind t.h. */

#include "base/text/str.h"
#include "gateway/catalog/catalog.h"
#include "pegboard/v1/registry.pb-c.h"

enum { REQ_TOOLS = 16, REQ_TAGS = 70 };

struct req {
    Pegboard__V1__RegisterRequest msg;
    Pegboard__V1__Tool tools[REQ_TOOLS];
    Pegboard__V1__Tool *tool_ptrs[REQ_TOOLS];
    char *tags[REQ_TAGS];
};

#define REQ_SCHEMA                                                                                 \
    "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"}},\"required\":[\"city\"]" \
    "}"

static inline char *req_text(const char *text)
{
    return peg__unconst(text);
}

static inline ProtobufCBinaryData req_bytes(const char *text)
{
    return (ProtobufCBinaryData){.len = strlen(text), .data = peg__unconst(text)};
}

static inline Pegboard__V1__Tool *req_tool(struct req *req, const char *name, const char *schema)
{
    Pegboard__V1__Tool *tool = &req->tools[req->msg.n_tools];

    pegboard__v1__tool__init(tool);
    tool->name = req_text(name);
    tool->input_schema = req_bytes(schema);
    req->tool_ptrs[req->msg.n_tools++] = tool;
    return tool;
}

static inline void req_tag(struct req *req, const char *tag)
{
    req->tags[req->msg.n_tags++] = req_text(tag);
}

static inline void req_empty(struct req *req, const char *name)
{
    pegboard__v1__register_request__init(&req->msg);
    req->msg.name = req_text(name);
    req->msg.tools = req->tool_ptrs;
    req->msg.tags = req->tags;
}

/* A toolset with one tool, "get". */
static inline void req_init(struct req *req, const char *name)
{
    req_empty(req, name);
    req_tool(req, "get", REQ_SCHEMA);
}

static inline peg_status req_make(const struct req *req, struct gw_toolset **ret_toolset,
                                  peg_error *error)
{
    const struct gw_toolset_dates dates = {
        .owner = PEG_LIT("local"), .registered_at_ms = 1700000000123, .revision = 7};

    return gw_toolset_make(&req->msg, &dates, ret_toolset, error);
}

/* One that must be made. */
static inline struct gw_toolset *req_toolset(const struct req *req)
{
    struct gw_toolset *toolset = NULL;
    peg_error error;

    if (req_make(req, &toolset, &error))
        T_FAIL("no toolset: %s", error.message);
    return toolset;
}

#endif
