/* SPDX-License-Identifier: Apache-2.0 */

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/text/str.h"
#include "cli/cli.h"
#include "schema/compile/compile.h"

/* May it stand in the path of a URI as it is? RFC 3986: pchar, and the slash. */
static bool is_path_byte(char c)
{
    return peg__is_alnum(c) || (c && strchr("/-._~!$&'()*+,;=:@", c));
}

/* Of slashes in a row one is kept: two at the start of a path would be a host in a URI. */
static void put_path(struct peg__buf *out, const char *path)
{
    for (; *path; path++) {
        if (*path == '/' && out->len && out->ptr[out->len - 1] == '/')
            continue;
        if (is_path_byte(*path))
            peg__buf_putc(out, *path);
        else
            peg__buf_printf(out, "%%%02X", (unsigned)(unsigned char)*path);
    }
}

static peg_status put_directory(struct peg__buf *out, peg_error *reterr)
{
    char directory[PATH_MAX];

    if (!getcwd(directory, sizeof(directory)))
        return peg__fail(reterr, PEG_ENOTFOUND, "E_FILE",
                         "has no absolute name, for the current directory is unknown (%m); "
                         "start in another one");
    put_path(out, directory);
    put_path(out, "/");
    return PEG_OK;
}

peg_status cli_file_uri(struct peg__arena *arena, const char *path, peg_str *ret_uri,
                        peg_error *reterr)
{
    /* Each of two names, every byte as %XX. */
    struct peg__buf absolute = PEG__BUF((size_t)2 * 3 * PATH_MAX);
    peg_str uri = {NULL, 0};
    peg_status status = *path == '/' ? PEG_OK : put_directory(&absolute, reterr);

    if (!status) {
        put_path(&absolute, cli_is_stdin(path) ? "" : path);
        if (absolute.status == PEG_OK)
            uri = peg__uri_resolve(arena, peg__str("file:///"), peg__buf_view(&absolute));
        if (uri.ptr)
            uri.ptr = peg__arena_copy(arena, uri);
        if (!uri.ptr)
            status = peg__fail_nomem(reterr);
    }
    peg__buf_free(&absolute);
    if (!status)
        *ret_uri = uri;
    return status;
}
