/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_CATALOG_TOOLSET_H
#define PEG_GATEWAY_CATALOG_TOOLSET_H

/* A toolset as the catalog holds it. Immutable, reference counted, shared by all loops. */

#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "pegboard/json.h"
#include "pegboard/schema.h"
#include "wire/error.h"

struct gw_schema;

enum gw_kind { GW_ATTACHED, GW_DIRECT };

struct gw_tool {
    peg_str name;
    peg_str description;
    const peg_str *tags;
    size_t n_tags;
    peg_str input_schema;  /* as registered */
    peg_str output_schema; /* "": results are not checked */
    bool is_idempotent;
    int64_t timeout_ms; /* 0: the gateway's */
    /* toolset_schema.c's: compiled, or to be compiled again. NULL: there is none. The texts above
     * are theirs. */
    struct gw_schema *input;
    struct gw_schema *output;
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
    const uint32_t *by_name; /* places in tools, by name */
    enum gw_kind kind;
    peg_str owner; /* the principal */
    int64_t registered_at_ms;
    uint64_t revision;
    size_t stored_bytes; /* of its JSON in the map; 0: not written yet */
    /* SHA-256 of what a caller sees of it, owner and dates aside: a registration that is equal
     * changes nothing. */
    unsigned char digest[32];
};

/* Takes a registration apart: names, limits, every schema compiled. Nothing is kept on failure.
 * PEG_EINVAL (E_MISSING_FIELD, E_INVALID_LENGTH, E_INVALID_PATTERN, E_INVALID_RANGE, E_NAME, E_TAG,
 * E_TOOL_TWICE), PEG_ESCHEMA (E_TOOL_SCHEMA: `invalid tool schema: tool "x": input schema: ...`),
 * PEG_ELIMIT (names the limit), PEG_ENOMEM. Any thread: it may take milliseconds, workers do it. */
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

/* The time of a call or of a wait, wherever a request names one: 0 (the gateway's own) to
 * PEG_LIMIT_GATEWAY_MAX_CALL_MS. PEG_EINVAL (E_INVALID_RANGE). */
peg_status gw_check_timeout(int64_t timeout_ms, peg_error *reterr);

/* The registry's word for what gw_toolset_make(), a request check or the catalog failed with:
 * missing_field, invalid_length, permission_denied, conflict, ... */
enum wire_error gw_wire_error(const peg_error *error);

/* The one with that name, or NULL. */
const struct gw_tool *gw_toolset_tool(const struct gw_toolset *toolset, peg_str name);

/* The same tools, taking and giving the same? Then those who provide one can provide the other. */
bool gw_toolset_has_schemas_of(const struct gw_toolset *toolset, const struct gw_toolset *other);

/* The JSON that stores and maps keep; reading it checks everything again. */
peg_status gw_toolset_write(const struct gw_toolset *toolset, struct peg__buf *ret_json,
                            peg_error *reterr);
peg_status gw_toolset_read(peg_str json, struct gw_toolset **ret_toolset, peg_error *reterr);
/* The members of that JSON which make the digest: all but owner and dates. */
struct peg__out;
void gw_toolset_write_content(const struct gw_toolset *toolset, struct peg__out *out);

/* A reference on the compiled schema of a tool; NULL only without memory, or where there is no
 * output schema. Any thread. It is compiled again, in microseconds, if it had to make room; else
 * it costs two locked instructions. */
peg_schema *gw_tool_input_schema(const struct gw_tool *tool);
peg_schema *gw_tool_output_schema(const struct gw_tool *tool);

/* ---- toolset_schema.c: schemas by their text, shared by all toolsets of the process ---- */

/* Compiles the text, unless it is known. One reference for the caller. PEG_ESCHEMA, PEG_EPARSE,
 * PEG_ELIMIT as peg_schema_compile(). */
peg_status gw_schema_get(peg_str text, struct gw_schema **ret_schema, peg_error *reterr);
struct gw_schema *gw_schema_unref(struct gw_schema *schema);
/* As it was registered; lives as long as the schema does. */
peg_str gw_schema_text(const struct gw_schema *schema);
/* How many there are, and bytes of those that are compiled now. */
size_t gw_schema_count(size_t *ret_compiled_bytes);
/* Tests: another bound than PEG_LIMIT_GATEWAY_COMPILED_BYTES; 0: that one. */
void gw_schema_set_budget(size_t bytes);

#endif
