/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_TURN_STORE_H
#define PEGBOARD_TURN_STORE_H

/*
 * Where turns are kept between runs. A store saved at each phase of a run (peg_turn_store_snapshot
 * as the loop's snapshot function) can be resumed from wherever a process was killed: calls with a
 * recorded result are not run again, and those that had begun without one are known
 * (pegboard.calls_started@v1; see peg_pending_policy).
 *
 * Shared, reference counted; any thread. Saving is atomic: a turn that was saved is there whole,
 * also after a crash in the midst of saving the next state.
 */

#include <pegboard/dispatch.h>
#include <pegboard/turn_file.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct peg_turn_store peg_turn_store;

/* Copies in memory: 10,000 turns and 1,000,000 blocks at most (E_TURN_STORE_FULL). */
PEG_API PEG_MUST_USE peg_status peg_turn_store_memory_new(peg_turn_store **ret_store,
                                                          peg_error *reterr);
/* A directory, made if its parent exists, which only its owner may be able to write into: ID.json
 * for each turn, replaced atomically, and its larger bytes in ID.bytes/ (spool.h). A file is the
 * turn as peg_turn_write() writes it, with one member more, "pegboard_store", which tells phase and
 * time; files that somebody else puts there are turns too. Ids are made safe: %2f. Several
 * processes may use one. PEG_EIO (E_TURN_STORE). */
PEG_API PEG_MUST_USE peg_status peg_turn_store_files_new(const char *directory,
                                                         peg_turn_store **ret_store,
                                                         peg_error *reterr);
/* A SQLite database, made if its directory exists: each block and each run of bytes is stored once,
 * by its content hash, however many turns and states share it. A save writes what is new, however
 * long the turn is. Several processes may use one; who has to wait for longer than 5 s fails.
 * PEG_EIO (E_TURN_STORE): it cannot be opened, is no store, or one of a newer version. */
PEG_API PEG_MUST_USE peg_status peg_turn_store_sqlite_new(const char *path,
                                                          peg_turn_store **ret_store,
                                                          peg_error *reterr);
PEG_API peg_turn_store *peg_turn_store_ref(peg_turn_store *store);
PEG_API peg_turn_store *peg_turn_store_unref(peg_turn_store *store);

/* Artifact kinds of the host's, for reading. Borrowed; set it before the store is shared. */
PEG_API void peg_turn_store_set_kinds(peg_turn_store *store, const peg_artifact_kind *const *kinds,
                                      size_t n_kinds);

/* Keeps the turn under its id, in the place of what was there. PEG_EINVAL (E_INVALID_ARGUMENT) if
 * it has none, or the phase is none; PEG_EIO (E_TURN_STORE), PEG_ELIMIT, PEG_ENOMEM. phase is kept
 * with it. */
PEG_API PEG_MUST_USE peg_status peg_turn_store_save(peg_turn_store *store, const peg_turn *turn,
                                                    peg_phase phase, peg_error *reterr);
/* *ret_turn is NULL if there is none. ret_phase (may be NULL): how far it had come. Larger bytes
 * are read from the store when they are needed, so they can be read for as long as the store keeps
 * them; the turn may outlive the store object. PEG_EIO (E_TURN_STORE): what is kept is damaged. */
PEG_API PEG_MUST_USE peg_status peg_turn_store_load(peg_turn_store *store, peg_str id,
                                                    peg_turn **ret_turn, peg_phase *ret_phase,
                                                    peg_error *reterr);
/* Has a turn that was kept at this phase come to its end, as far as the standard loop goes: it is
 * final, or the model answered and asks for nothing more? Else run it again to go on. A process
 * that was killed in between has not run its output pipeline. */
PEG_API bool peg_turn_is_over(const peg_turn *turn, peg_phase phase);
/* Silent if there is none. Blocks and bytes that no other turn uses go with it. */
PEG_API PEG_MUST_USE peg_status peg_turn_store_remove(peg_turn_store *store, peg_str id,
                                                      peg_error *reterr);

typedef struct peg_turn_info {
    peg_str id;
    peg_str session_id; /* "" if it has none */
    peg_phase phase;
    int64_t saved_ms;
    size_t n_blocks;
} peg_turn_info;
/* Tells of each turn, those saved last first, until fn returns false. session_id.len 0: all. Its
 * arguments are borrowed for the time of the call. */
PEG_API PEG_MUST_USE peg_status peg_turn_store_list(peg_turn_store *store, peg_str session_id,
                                                    bool (*fn)(const peg_turn_info *info,
                                                               void *user),
                                                    void *user, peg_error *reterr);

/* .snapshot = peg_turn_store_snapshot, .snapshot_user = store */
PEG_API peg_status peg_turn_store_snapshot(peg_ctx *ctx, const peg_turn *turn, peg_phase phase,
                                           void *store, peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
