/* SPDX-License-Identifier: Apache-2.0 */

#include "remote/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "base/text/token.h"

static bool is_token_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static peg_str trim_token(peg_str s)
{
    while (s.len && is_token_space(s.ptr[s.len - 1]))
        s.len--;
    while (s.len && is_token_space(s.ptr[0]))
        s = peg__str_from(s, 1);
    return s;
}

static peg_status check_token_text(peg_str token, const char *where, const char *code,
                                   peg_error *reterr)
{
    if (token.len == 0)
        return peg__fail(reterr, PEG_EINVAL, code,
                         "%s has no token: add one, see pegboard-token(1)", where);
    if (token.len > PEG_LIMIT_REMOTE_TOKEN_BYTES)
        return peg__fail(reterr, PEG_ELIMIT, code,
                         "%s has more than %d bytes: it should have one token, see "
                         "pegboard-token(1)",
                         where, PEG_LIMIT_REMOTE_TOKEN_BYTES);
    for (size_t i = 0; i < token.len; i++) {
        if (token.ptr[i] <= ' ' || token.ptr[i] > '~')
            return peg__fail(reterr, PEG_EINVAL, code,
                             "%s is not a single token: it should be one line of printable "
                             "characters",
                             where);
    }
    return PEG_OK;
}

peg_status remote__token_make(peg_str token, const char *where, const char *code,
                              struct peg__blob **ret_authorization, peg_error *reterr)
{
    static const peg_str scheme = PEG_LIT("Bearer ");
    const peg_status status = check_token_text(token, where, code, reterr);
    struct peg__blob *blob;

    if (status)
        return status;
    blob = peg__blob_new(scheme.len + token.len);
    if (!blob)
        return peg__fail_nomem(reterr);
    memcpy(blob->bytes, scheme.ptr, scheme.len);
    memcpy(blob->bytes + scheme.len, token.ptr, token.len);
    *ret_authorization = blob;
    return PEG_OK;
}

/* 0, or errno. */
static int read_token_file(const char *path, char *bytes, size_t size, size_t *ret_len)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n = fd < 0 ? -1 : 1;
    int failed;

    while (n > 0 && len < size) {
        n = read(fd, bytes + len, size - len);
        len += n > 0 ? (size_t)n : 0;
    }
    failed = n < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    *ret_len = len;
    return failed;
}

peg_status remote__token_read(const char *path, const char *code,
                              struct peg__blob **ret_authorization, peg_error *reterr)
{
    char text[PEG_LIMIT_REMOTE_TOKEN_BYTES + 1]; /* one more shows that there is too much */
    char where[160];
    char reason[128];
    size_t len;
    const int failed = read_token_file(path, text, sizeof(text), &len);

    if (failed && peg__is_token_for_path(path))
        return peg__fail(reterr, PEG_EIO, code,
                         "token_file is not a file: to give the token itself, use token");
    if (failed)
        return peg__fail(reterr, PEG_EIO, code,
                         "the token file '%.128s' cannot be read: %s; see pegboard-token(1)", path,
                         strerror_r(failed, reason, sizeof(reason)));
    snprintf(where, sizeof(where), "the token file '%.128s'", path);
    /* Trimmed only if all of it was read. */
    return remote__token_make(len == sizeof(text) ? peg__strn(text, len)
                                                  : trim_token(peg__strn(text, len)),
                              where, code, ret_authorization, reterr);
}
