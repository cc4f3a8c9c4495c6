/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_HOST_H
#define PEG_TURN_HOST_H

/*
 * Errors of a host's callbacks. A callback may fail without a word, or with half an error; what
 * goes on from here is whole.
 *
 *   peg_error error = PEG__HOST_ERROR;
 *   status = storage->store(user, ctx, block, &error);
 *   if (status)
 *       return peg__host_failed(status, &error, "E_STORAGE_FAILED", "the storage", reterr);
 */

#include "pegboard/common.h"

#define PEG__HOST_ERROR                                                                            \
    {                                                                                              \
        .code = "", .cause = ""                                                                    \
    }

/* Did the callback leave it as it was? */
bool peg__host_is_silent(const peg_error *error);

/* Returns status, with the callback's error in *reterr (may be NULL, may be `error` itself). Where
 * that says nothing, `code` and a sentence about `who`. */
peg_status peg__host_failed(peg_status status, const peg_error *error, const char *code,
                            const char *who, peg_error *reterr);

#endif
