/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_RPC_INFO_H
#define PEG_GATEWAY_RPC_INFO_H

/*
 * Toolsets as messages, for all that tell of them. Everything lies in the arena or is borrowed from
 * the toolset, which must outlive the message. NULL: no memory.
 */

#include "base/arena.h"
#include "gateway/catalog/presence.h"
#include "grpc/client/call.h"
#include "pegboard/v1/registry.pb-c.h"

/* Names of toolsets and tools in a message: those of protobuf-c are not const. */
static inline char *gw_text(peg_str text)
{
    union {
        const char *theirs;
        char *ours;
    } pointer = {text.ptr};

    return pointer.ours;
}

char **gw_info_tags(const peg_str *tags, size_t n, struct peg__arena *arena);
/* RFC 3339, seconds. */
char *gw_info_date(int64_t unix_ms, struct peg__arena *arena);
/* Where direct providers would read: "toolset:<name>:requests". */
char *gw_info_stream_id(peg_str toolset, struct peg__arena *arena);
Pegboard__V1__Health *gw_info_health(peg_str toolset, struct gw_presence *presence,
                                     struct peg__arena *arena);
/* With its health as the presence tells it; without one if that is NULL. */
Pegboard__V1__ToolsetInfo *gw_info_toolset(const struct gw_toolset *toolset,
                                           struct gw_presence *presence, struct peg__arena *arena);
/* All of its tools, with their schemas. */
Pegboard__V1__Tool **gw_info_tools(const struct gw_toolset *toolset, struct peg__arena *arena);

/* Does it have all of these tags? */
bool gw_info_has_tags(const struct gw_toolset *toolset, char *const *tags, size_t n);

/* Checks of requests, as the reference names them. PEG_EINVAL (E_MISSING_FIELD, E_INVALID_LENGTH,
 * E_NAME), PEG_ELIMIT. */
peg_status gw_check_name(const char *name, const char *field, peg_error *reterr);
peg_status gw_check_query(const char *query, peg_error *reterr);
peg_status gw_check_tags(size_t n, peg_error *reterr);
/* Of a page or a list of hits: E_INVALID_RANGE. 0 means the default. */
peg_status gw_check_size(uint32_t size, const char *field, peg_error *reterr);
size_t gw_size_or_default(uint32_t size);

/* Ends a call: there is no memory to answer it, or no such toolset. */
void gw_fail_memory(struct grpc_call *call);
void gw_fail_toolset(struct grpc_call *call, peg_str name);

#endif
