/* SPDX-License-Identifier: Apache-2.0 */

/* Requests over HTTP. libcurl brings some thirty libraries, which would make every start of the
 * command nine times as long: libpegboard-engine, which needs it, is loaded when a URL is used. It
 * finds the functions of libpegboard in the command, which has them all. */

#include <dlfcn.h>

#include "base/error.h"
#include "cli/tools/http.h"
#include "cli/tools/mcp_servers.h"

enum { FLAGS = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };

typedef peg_status (*http_new_fn)(peg_http **ret_http, peg_error *reterr);

static void *load_library(void)
{
    void *library = dlopen(HTTP_LIBRARY, FLAGS);

#ifdef PEG_MODULE_DIR
    if (!library)
        library = dlopen(PEG_MODULE_DIR "/" HTTP_LIBRARY, FLAGS);
#endif
    return library;
}

void *http_library_find(const char *function)
{
    void *library = load_library(); /* stays: libcurl does not like to be taken away */

    return library ? dlsym(library, function) : NULL;
}

peg_status mcp_servers_http_new(peg_http **ret_http, peg_error *reterr)
{
    union {
        void *object;
        http_new_fn fn;
    } found = {.object = http_library_find("peg_http_new")};

    if (!found.object)
        return peg__fail(reterr, PEG_EIO, "E_MCP_START",
                         "servers over HTTP need " HTTP_LIBRARY
                         ", which cannot be loaded: install it "
                         "beside this command");
    return found.fn(ret_http, reterr);
}
