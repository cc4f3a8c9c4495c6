/* SPDX-License-Identifier: Apache-2.0 */

/* In libpegboard-engine, as http.c: engines, and others who send requests, over libcurl. */

#include "base/error.h"
#include "engine/transport/transport.h"
#include "pegboard/engine.h"

peg_status peg_model_new(const peg_model_config *config, peg_model **ret_engine, peg_error *reterr)
{
    struct peg__transport transport;
    peg_status status = peg__http_new(&transport, reterr);

    if (status)
        return status;
    status = peg__engine_new(config, &transport, ret_engine, reterr);
    if (status)
        transport.free(transport.self);
    return status;
}

peg_status peg_http_new(peg_http **ret_http, peg_error *reterr)
{
    peg_http *http = peg__alloc_zero(1, sizeof(*http));
    peg_status status;

    if (!http)
        return peg__fail_nomem(reterr);
    atomic_init(&http->n_refs, 1);
    status = peg__http_new(&http->transport, reterr);
    if (status)
        peg__free(http);
    else
        *ret_http = http;
    return status;
}

peg_http *peg_http_free(peg_http *http)
{
    return peg__http_unref(http);
}
