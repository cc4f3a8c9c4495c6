/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_TOOLSET_H
#define PEG_GATEWAY_TOOLSET_H

/* A toolset as the catalog holds it. Immutable, reference counted, shared by all loops. */

#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "pegboard/json.h"
#include "pegboard/schema.h"

enum gw_kind { GW_ATTACHED, GW_DIRECT };

struct gw_tool {
    peg_str name;
    peg_str description;
    const peg_str *tags;
    size_t n_tags;
    peg_str input_schema;  /* as registered */
    peg_str output_schema; /* "": results are not checked */
    bool is_idempotent;
    int64_t timeout_ms;              /* 0: the gateway's */
    struct gw_tool_schemas *schemas; /* toolset_schema.c's: compiled, or to be compiled again */
};

/* Strings end with NUL and live as long as the toolset. */
struct gw_toolset {
    atomic_uint n_refs;
    peg_str name;
    peg_str description;
    peg_str version;
    const peg_str *tags;
    size_t n_tags;
    const struct gw_tool *tools; /* in the order in which they were registered */
    size_t n_tools;
    enum gw_kind kind;
    peg_str owner; /* the principal */
    int64_t registered_at_ms;
    uint64_t revision;
    /* SHA-256 of what a caller sees of it, owner and dates aside: a registration that is equal
     * keeps its health. */
    unsigned char digest[32];
    struct peg__arena *arena; /* toolset.c's */
};

/* Takes a registration apart: names, limits, every schema compiled. Nothing is kept on failure.
 * PEG_EINVAL (E_NAME, E_TOOLSET), PEG_ESCHEMA (E_TOOL_SCHEMA: `invalid tool schema: tool "x": input
 * schema: ...`), PEG_ELIMIT (names the limit), PEG_ENOMEM. Any thread: it may take milliseconds,
 * workers do it. */
struct Pegboard__V1__RegisterRequest;
struct gw_toolset_dates {
    peg_str owner;
    int64_t registered_at_ms;
    uint64_t revision;
};
peg_status gw_toolset_make(const struct Pegboard__V1__RegisterRequest *request,
                           const struct gw_toolset_dates *dates, struct gw_toolset **ret_toolset,
                           peg_error *reterr);
struct gw_toolset *gw_toolset_ref(struct gw_toolset *toolset);
struct gw_toolset *gw_toolset_unref(struct gw_toolset *toolset);

/* The first one with that name, or NULL. */
const struct gw_tool *gw_toolset_tool(const struct gw_toolset *toolset, peg_str name);

/* The JSON that stores and maps keep; reading it checks everything again. */
peg_status gw_toolset_write(const struct gw_toolset *toolset, struct peg__buf *ret_json,
                            peg_error *reterr);
peg_status gw_toolset_read(peg_str json, struct gw_toolset **ret_toolset, peg_error *reterr);

/* A reference on the compiled schema of a tool; NULL only without memory, or where there is no
 * output schema. Any thread. It is compiled again if it had to make room: see toolset_schema.c. */
peg_schema *gw_tool_input_schema(const struct gw_tool *tool);
peg_schema *gw_tool_output_schema(const struct gw_tool *tool);

#endif
