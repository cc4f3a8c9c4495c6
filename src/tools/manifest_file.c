/* SPDX-License-Identifier: Apache-2.0 */

/* A manifest from a file, whose folder its commands run in. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/manifest.h"

static peg_status refuse_file(const char *path, int error, peg_error *reterr)
{
    char words[128];

    return peg__fail(reterr, PEG_EIO, "E_MANIFEST_FILE",
                     "'%.160s' cannot be read (%s); check its name and permissions", path,
                     strerror_r(error, words, sizeof(words)));
}

static peg_status read_all(int fd, const char *path, struct peg__buf *out, peg_error *reterr)
{
    enum { STEP = 64 << 10 };

    for (;;) {
        char *at = peg__buf_reserve(out, STEP);
        ssize_t n;

        if (!at)
            return out->status == PEG_ENOMEM
                       ? peg__fail_nomem(reterr)
                       : peg__fail(reterr, PEG_ELIMIT, "E_MANIFEST_FILE",
                                   "'%.160s' is larger than PEG_LIMIT_MANIFEST_BYTES (4 MiB)",
                                   path);
        n = read(fd, at, STEP);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return refuse_file(path, errno, reterr);
        if (n == 0)
            return PEG_OK;
        out->len += (size_t)n;
    }
}

/* "." for a name without a slash. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) + (slash == path) : 1;
    char *folder = peg__alloc(n + 1);

    if (folder) {
        memcpy(folder, slash ? path : ".", n);
        folder[n] = '\0';
    }
    return folder;
}

peg_status peg_manifest_read(const char *path, peg_manifest **ret_manifest, peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_MANIFEST_BYTES + (64 << 10));
    PEG_CLEANUP(peg__freep) char *folder = folder_of(path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    peg_status status;

    if (fd < 0)
        return refuse_file(path, errno, reterr);
    status = folder ? read_all(fd, path, &text, reterr) : peg__fail_nomem(reterr);
    close(fd);
    if (!status)
        status = peg_manifest_parse(peg__buf_view(&text), folder, ret_manifest, reterr);
    peg__buf_free(&text);
    return status;
}
