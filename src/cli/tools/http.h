/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_TOOLS_HTTP_H
#define PEG_CLI_TOOLS_HTTP_H

/* libpegboard-engine, which is loaded when a command sends requests over HTTP. */

#define HTTP_LIBRARY "libpegboard-engine.so.0"

/* A function of it; NULL: the library cannot be loaded. */
void *http_library_find(const char *function);

#endif
