/* SPDX-License-Identifier: Apache-2.0 */

/* What clients can be asked: forms, URLs, samples of their model with and without tools, roots. */

#include "base/text/str.h"
#include "mcp/protocol/internal.h"

enum {
    CAN_FORM = 1 << 0,
    CAN_URL = 1 << 1,
    CAN_SAMPLE = 1 << 2,
    CAN_SAMPLE_TOOLS = 1 << 3,
    CAN_ROOTS = 1 << 4,
};
_Static_assert(MCP__CAN_ALL == 2 * CAN_ROOTS - 1, "all of them");

static bool has_object(const peg_json *parent, const char *name)
{
    return peg_json_kind_of(peg_json_get(parent, name)) == PEG_JSON_OBJECT;
}

unsigned mcp__abilities_of(const peg_json *capabilities)
{
    const peg_json *elicitation = peg_json_get(capabilities, "elicitation");
    const peg_json *sampling = peg_json_get(capabilities, "sampling");
    unsigned can = 0;

    if (has_object(capabilities, "elicitation")) {
        /* An empty one means forms, as it did when there was nothing else. */
        if (has_object(elicitation, "form") || !has_object(elicitation, "url"))
            can |= CAN_FORM;
        if (has_object(elicitation, "url"))
            can |= CAN_URL;
    }
    if (has_object(capabilities, "sampling"))
        can |= CAN_SAMPLE | (has_object(sampling, "tools") ? CAN_SAMPLE_TOOLS : 0);
    if (has_object(capabilities, "roots"))
        can |= CAN_ROOTS;
    return can;
}

unsigned mcp__needs_of(const peg_json *request)
{
    const peg_str method = peg_json_str(peg_json_get(request, "method"));
    const peg_json *params = peg_json_get(request, "params");

    if (peg__str_is(method, "elicitation/create"))
        return peg__str_is(peg_json_str(peg_json_get(params, "mode")), "url") ? CAN_URL : CAN_FORM;
    if (peg__str_is(method, "sampling/createMessage"))
        return CAN_SAMPLE | (peg_json_get(params, "tools") ? CAN_SAMPLE_TOOLS : 0);
    return peg__str_is(method, "roots/list") ? CAN_ROOTS : MCP__CAN_ALL;
}

void mcp__put_needs(struct peg__out *out, unsigned needs)
{
    peg__out_object(out);
    peg__out_key(out, "requiredCapabilities");
    peg__out_object(out);
    if (needs & (CAN_FORM | CAN_URL)) {
        peg__out_key(out, "elicitation");
        peg__out_raw(out, peg__str(!(needs & CAN_URL)    ? "{\"form\":{}}"
                                   : !(needs & CAN_FORM) ? "{\"url\":{}}"
                                                         : "{\"form\":{},\"url\":{}}"));
    }
    if (needs & (CAN_SAMPLE | CAN_SAMPLE_TOOLS)) {
        peg__out_key(out, "sampling");
        peg__out_raw(out, peg__str(needs & CAN_SAMPLE_TOOLS ? "{\"tools\":{}}" : "{}"));
    }
    if (needs & CAN_ROOTS) {
        peg__out_key(out, "roots");
        peg__out_raw(out, peg__str("{}"));
    }
    peg__out_end_object(out);
    peg__out_end_object(out);
}
