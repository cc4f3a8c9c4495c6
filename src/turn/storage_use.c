/* SPDX-License-Identifier: Apache-2.0 */

#include "base/error.h"
#include "base/str.h"
#include "turn/host.h"
#include "turn/storage.h"

peg_status peg__storage_fetch(const peg_storage *storage, peg_ctx *ctx, unsigned kinds,
                              peg_turn **ret_turn, peg_error *reterr)
{
    peg_error why = PEG__HOST_ERROR;
    peg_turn *turn;
    peg_status status = peg_turn_new(&turn, reterr);

    if (status)
        return status;
    if (storage)
        status = storage->fetch(storage->user, ctx, kinds, turn, &why);
    if (status) {
        peg_turn_free(turn);
        return peg__host_failed(status, &why, "E_STORAGE_FAILED", "the storage", reterr);
    }
    *ret_turn = turn;
    return PEG_OK;
}

static bool is_known(const char *what)
{
    return what && (strcmp(what, "media") == 0 || strcmp(what, "retrieved") == 0);
}

peg_status peg__storage_store_bytes(const peg_storage *storage, peg_ctx *ctx, const char *what,
                                    peg_str id, peg_str bytes, peg_reader **ret_reader,
                                    peg_error *reterr)
{
    peg_error why = PEG__HOST_ERROR;
    peg_status status;

    if (!is_known(what) || !id.len)
        return peg__fail(reterr, PEG_EINVAL, "E_STORAGE_BYTES",
                         "bytes are stored as \"media\" or \"retrieved\", under an id");
    if (!storage)
        return peg_reader_from_bytes(bytes, ret_reader, reterr);
    status = storage->store_bytes(storage->user, ctx, what, id, bytes, ret_reader, &why);
    if (status)
        return peg__host_failed(status, &why, "E_STORAGE_FAILED", "the storage", reterr);
    return PEG_OK;
}
