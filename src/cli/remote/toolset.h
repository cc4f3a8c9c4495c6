/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_REMOTE_TOOLSET_H
#define PEG_CLI_REMOTE_TOOLSET_H

/* Toolsets as people and programs see them. */

#include "cli/terminal/table.h"
#include "pegboard/client.h"
#include "json/json.h"

/* The members of what is known about a toolset, in an object that is open:
 *   "name", "description", "version", "tags", "tool_count", "registered_at", "owner", "revision",
 *   "kind", "health": {"state", "reason", "last_pong_ms", "providers", "draining",
 *   "away_since_ms"} (null: it has a provider, or none was heard of) */
void toolset_out(struct peg__out *out, const peg_toolset_info *info);
void toolset_out_strings(struct peg__out *out, const char *name, const char *const *strings,
                         size_t n);
/* "healthy", "unhealthy", "unknown". */
const char *toolset_health(const peg_toolset_info *info);

/* "3d 4h", "2h 5m", "41s". */
void toolset_put_age(struct peg__buf *out, int64_t seconds);

/* The same, or "away since 09:41" of one that nobody provides, and which was heard of last then;
 * "away" if it was not since the gateway began. Local time; a date if that was not today. */
void toolset_put_health(struct peg__buf *out, const peg_toolset_info *info);
/* Cells: the name; "healthy" in green, "unhealthy" or "away" in red; strings with commas between
 * them. */
void toolset_health_cell(struct cli_table *table, const peg_toolset_info *info,
                         const struct cli_style *style);
void toolset_strings_cell(struct cli_table *table, const char *const *strings, size_t n);
/* The first line of a text. */
void toolset_line_cell(struct cli_table *table, const char *text);

/* Registries that did not answer while others did, on standard error. */
void toolset_warn(const peg_registry_failure *failures, size_t n);

/* JSON text as a value, laid out for reading. False if it is none. */
bool toolset_put_pretty(struct peg__buf *out, peg_str json);

#endif
