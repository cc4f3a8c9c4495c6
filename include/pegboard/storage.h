/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_STORAGE_H
#define PEGBOARD_STORAGE_H

/*
 * Where a host keeps what a run changes. All functions are required; a run without storage keeps
 * its blocks in the turn alone. They are called on the thread of the run, in the order of the
 * changes, before the change is made; failing leaves the turn as it was.
 */

#include <pegboard/turn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct peg_storage {
    /* A block that is new to the turn. Its id may have been stored before: by a dispatch whose
     * changes did not reach the turn, or because a middleware adds what it fetched. */
    peg_status (*store)(void *user, peg_ctx *ctx, peg_block *block, peg_error *reterr);
    /* A block in the place of the one with its id. */
    peg_status (*mutate)(void *user, peg_ctx *ctx, peg_block *block, peg_error *reterr);
    /* Only for blocks that the turn has. */
    peg_status (*remove)(void *user, peg_ctx *ctx, peg_str id, peg_error *reterr);
    /* Adds the kept blocks of these kinds to `into`. Only called when a middleware asks. */
    peg_status (*fetch)(void *user, peg_ctx *ctx, unsigned kinds, peg_turn *into,
                        peg_error *reterr);
    /* Bytes of media ("media") or of something retrieved ("retrieved"); changes no turn. */
    peg_status (*store_bytes)(void *user, peg_ctx *ctx, const char *what, peg_str id, peg_str bytes,
                              peg_reader **ret_reader, peg_error *reterr);
    void *user;
} peg_storage;

/*
 * In memory, shared by any number of runs on any thread; freed after all of them. Contexts with
 * different run_ids see nothing of each other. PEG_ELIMIT (E_STORAGE_FULL) beyond 200,000 blocks,
 * 10,000 run_ids, 10,000 names of bytes in a run or 256 MiB of bytes.
 */
typedef struct peg_memory_storage peg_memory_storage;
PEG_API PEG_MUST_USE peg_status peg_memory_storage_new(peg_memory_storage **ret_storage,
                                                       peg_error *reterr);
PEG_API peg_memory_storage *peg_memory_storage_free(peg_memory_storage *storage);
PEG_API peg_storage peg_memory_storage_ops(peg_memory_storage *storage);
/* The bytes that store_bytes kept last under that name: a new reference, or NULL. */
PEG_API peg_reader *peg_memory_storage_bytes(peg_memory_storage *storage, peg_ctx *ctx,
                                             const char *what, peg_str id);

#ifdef __cplusplus
}
#endif
#endif
