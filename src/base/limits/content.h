/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_LIMITS_CONTENT_H
#define PEG_BASE_LIMITS_CONTENT_H

/* Limits of typed content in results, as of limits.h. What a result may have in all is
 * PEG_LIMIT_GATEWAY_RESULT_BYTES. */

enum {
    /* Parts of one result: as many as an MCP server's may have media (mcp/client/result.c). */
    PEG_LIMIT_CONTENT_PARTS = 64,
    /* A string that describes media: as long as a path. */
    PEG_LIMIT_CONTENT_WORD_BYTES = 4096,
    /* Its type: RFC 6838 has 127 for each half. */
    PEG_LIMIT_CONTENT_TYPE_BYTES = 256,
};

#endif
