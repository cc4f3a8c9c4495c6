/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_HTTP_H
#define PEGBOARD_HTTP_H

/*
 * Requests over HTTP, for what sends some and does not bring libcurl along itself: MCP servers
 * (mcp.h). Needs libpegboard-engine.
 *
 *   status = peg_http_new(&http, &error);
 *   peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT, .url = url, .http = http};
 *   ...
 *   http = peg_http_free(http);
 */

#include <pegboard/common.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Any thread; any number of users, who hold it for as long as they need it. */
typedef struct peg_http peg_http;

/* Opens nothing yet. Connections are kept for the next request. PEG_EIO (E_ENGINE_TRANSPORT):
 * libcurl does not start; PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_http_new(peg_http **ret_http, peg_error *reterr);
/* Those who hold it go on. */
PEG_API peg_http *peg_http_free(peg_http *http);

#ifdef __cplusplus
}
#endif
#endif
