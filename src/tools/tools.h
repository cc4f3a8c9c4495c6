/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TOOLS_TOOLS_H
#define PEG_TOOLS_TOOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/shared_symbols.h"
#include "pegboard/manifest.h"

/* Makes this process the parent of what its commands leave behind (tools/internal.h). For the whole
 * process, once, before any command runs. False: the kernel cannot (errno). */
bool peg__descendants_adopt(void);

/* A header of its requests: `value`, or what a variable or a file has, behind `prefix`. Looked up
 * when the server is connected to. */
struct peg__manifest_header {
    const char *name;
    const char *value; /* NULL: one of the next two */
    const char *env;
    const char *file;
    const char *prefix; /* "" if none */
};

/* The MCP server of a manifest: a command or a URL. Lists are NULL-terminated, or NULL; all lies in
 * its arena. */
struct peg__manifest_mcp {
    const char **command;
    const char **env;
    const char *directory;
    const char **include;
    const char **exclude;
    int64_t timeout_ms; /* 0: none */
    const char *url;    /* NULL: it is a command */
    const struct peg__manifest_header *headers;
    size_t n_headers;
    bool private_addresses;
};

/* NULL: it has none. */
PEG__SHARED const struct peg__manifest_mcp *peg__manifest_mcp(const peg_manifest *manifest);

#endif
