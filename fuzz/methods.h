/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_FUZZ_METHODS_H
#define PEG_FUZZ_METHODS_H

/* The methods of a gateway. An input names its method, as a call does: whatever is added to a
 * service, a seed goes on to mean what it meant. */

#include "fuzz.h"
#include "goa_ai_registry/registry.grpc.h"
#include "pegboard/v1/admin.grpc.h"
#include "pegboard/v1/registry.grpc.h"
#include "registry/registry.grpc.h"

static const struct grpc_service *const fuzz_services[] = {
    &pegboard_v1_registry_service,
    &pegboard_v1_admin_service,
    &registry_registry_service,
    &goa_ai_registry_registry_service,
};

/* By its path, "/pegboard.v1.Registry/CallTool"; NULL: there is none. */
static inline const struct grpc_method *fuzz_method(peg_str path)
{
    for (size_t i = 0; i < sizeof(fuzz_services) / sizeof(fuzz_services[0]); i++) {
        const struct grpc_service *service = fuzz_services[i];

        for (size_t k = 0; k < service->n_methods; k++) {
            if (peg__str_is(path, service->methods[k].path))
                return &service->methods[k];
        }
    }
    return NULL;
}

#endif
