/* SPDX-License-Identifier: Apache-2.0 */

/* Who the provider says it is: a token, or what stands in a file whenever it is asked for. */

#include "remote/token.h"
#include "base/text/str.h"
#include "remote/provider/provider.h"

#define CODE "E_PROVIDER_TOKEN"

peg_status remote__prov_check_token(const peg_provider *prov, peg_error *reterr)
{
    struct peg__blob *authorization = NULL;
    const peg_status status =
        prov->config.token_file
            ? remote__token_read(prov->config.token_file, CODE, &authorization, reterr)
            : PEG_OK;

    peg__blob_unref(authorization);
    return status;
}

peg_status remote__prov_put_token(const peg_provider *prov, struct peg__arena *arena,
                                  struct grpc_metadata *metadata, peg_error *reterr)
{
    const struct remote__prov_config *config = &prov->config;
    struct peg__blob *authorization = NULL;
    peg_status status = PEG_OK;

    if (config->token_file)
        status = remote__token_read(config->token_file, CODE, &authorization, reterr);
    else if (config->token)
        status = remote__token_make(peg__str(config->token), "token", CODE, &authorization, reterr);
    if (!status && authorization)
        status = grpc_metadata_add(metadata, arena, peg__str("authorization"),
                                   peg__blob_str(authorization), reterr);
    peg__blob_unref(authorization);
    return status;
}
