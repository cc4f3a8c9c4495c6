/* SPDX-License-Identifier: Apache-2.0 */

#include "pegboard/storage.h"

#include <stdio.h>

#include "base/error.h"
#include "base/text/str.h"
#include "turn/turn.h"

peg_status peg__storage_check(const peg_storage *storage, peg_error *reterr)
{
    char missing[64] = "";
    size_t len = 0;

    if (!storage)
        return PEG_OK;

    const struct {
        const char *name;
        bool is_there;
    } members[] = {
        {"store", storage->store != NULL},
        {"mutate", storage->mutate != NULL},
        {"remove", storage->remove != NULL},
        {"fetch", storage->fetch != NULL},
        {"store_bytes", storage->store_bytes != NULL},
    };

    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if (members[i].is_there)
            continue;
        len += (size_t)snprintf(missing + len, sizeof(missing) - len, "%s%s", len ? ", " : "",
                                members[i].name);
    }
    if (!len)
        return PEG_OK;
    peg__fail(reterr, PEG_EINVAL, "E_INVALID_TURN_RUNNER_CONFIG",
              "the storage lacks %s: set every function, or leave storage NULL", missing);
    peg__error_where(reterr, peg__str("/storage"));
    return PEG_EINVAL;
}
