/* SPDX-License-Identifier: Apache-2.0 */

/* Who the provider says it is: a token, or what stands in a file whenever it is asked for. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/str.h"
#include "remote/provider.h"

enum { TOKEN_BYTES = 4096 };

/* The first line of a file. */
static peg_status read_token(const char *path, char ret_token[TOKEN_BYTES], peg_error *reterr)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret_token, TOKEN_BYTES - 1);
    const int failed = n < 0 ? errno : 0;
    char reason[128];

    if (fd >= 0)
        close(fd);
    if (failed)
        return peg__fail(reterr, PEG_EIO, "E_PROVIDER_TOKEN",
                         "the token file '%.128s' cannot be read: %s", path,
                         strerror_r(failed, reason, sizeof(reason)));
    while (n > 0 && (unsigned char)ret_token[n - 1] <= ' ')
        n--;
    ret_token[n] = '\0';
    return PEG_OK;
}

peg_status remote__prov_check_token(const peg_tool_provider *prov, peg_error *reterr)
{
    char token[TOKEN_BYTES];

    return prov->config.token_file ? read_token(prov->config.token_file, token, reterr) : PEG_OK;
}

peg_status remote__prov_put_token(const peg_tool_provider *prov, struct peg__arena *arena,
                                  struct grpc_metadata *metadata, peg_error *reterr)
{
    char token[TOKEN_BYTES];
    char value[TOKEN_BYTES + 8];
    peg_status status = PEG_OK;
    int n;

    if (prov->config.token_file)
        status = read_token(prov->config.token_file, token, reterr);
    else if (prov->config.token)
        snprintf(token, sizeof(token), "%s", prov->config.token);
    else
        return PEG_OK;
    if (status)
        return status;
    n = snprintf(value, sizeof(value), "Bearer %s", token);
    return grpc_metadata_add(metadata, arena, peg__str("authorization"),
                             peg__strn(value, (size_t)n), reterr);
}
