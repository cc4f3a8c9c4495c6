/* SPDX-License-Identifier: Apache-2.0 */

/* In libpegboard-engine, as http.c: an engine over libcurl. */

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
