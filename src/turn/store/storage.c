/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>

#include "base/error.h"
#include "base/text/str.h"
#include "pegboard/storage.h"
#include "turn/store/store.h"
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

peg_status peg__storage_fetch(const peg_turn *turn, unsigned kinds, peg_turn **ret_turn,
                              peg_error *reterr)
{
    const peg_storage *storage = turn->storage;
    peg_error why = PEG__HOST_ERROR;
    peg_turn *kept;
    peg_status status = peg_turn_new(&kept, reterr);

    if (status)
        return status;
    if (storage)
        status = storage->fetch(storage->user, turn->ctx, kinds, kept, &why);
    if (status) {
        peg_turn_free(kept);
        return peg__host_failed(status, &why, "E_STORAGE_FAILED", "the storage", reterr);
    }
    *ret_turn = kept;
    return PEG_OK;
}

static bool is_known_use(const char *what)
{
    return what && (strcmp(what, "media") == 0 || strcmp(what, "retrieved") == 0);
}

peg_status peg__storage_store_bytes(const peg_turn *turn, const char *what, peg_str id,
                                    peg_str bytes, peg_reader **ret_reader, peg_error *reterr)
{
    const peg_storage *storage = turn->storage;
    peg_error why = PEG__HOST_ERROR;
    peg_status status;

    if (!is_known_use(what) || !id.len)
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "bytes are stored as \"media\" or \"retrieved\", under an id");
    if (!storage)
        return peg_reader_from_bytes(bytes, ret_reader, reterr);
    status = storage->store_bytes(storage->user, turn->ctx, what, id, bytes, ret_reader, &why);
    if (status)
        return peg__host_failed(status, &why, "E_STORAGE_FAILED", "the storage", reterr);
    return PEG_OK;
}
