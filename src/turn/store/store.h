/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_STORE_STORE_H
#define PEG_TURN_STORE_STORE_H

#include "base/arena.h"
#include "pegboard/storage.h"
#include "pegboard/turn_store.h"

/*
 * The kinds of turn stores, and what they share.
 *
 *   store.c   the public functions: checks, sorting, error messages
 *   memory.c  copies
 *   files.c   a file each
 *   sqlite.c  a database
 */

struct peg__turn_list;

/* Functions of a kind. Any thread; what is handed in was checked: a turn with an id, an id of 1 to
 * 256 bytes. They fail with any error: store.c makes PEG_EIO (E_TURN_STORE) of all that are
 * neither PEG_ELIMIT nor PEG_ENOMEM. */
struct peg__turn_store_ops {
    /* info->id is the turn's own. */
    peg_status (*save)(void *self, const peg_turn *turn, const peg_turn_info *info,
                       peg_error *reterr);
    /* *ret_turn is NULL if there is none; *ret_phase is written with it. */
    peg_status (*load)(void *self, peg_str id, const peg_turn_read_options *how,
                       peg_turn **ret_turn, peg_phase *ret_phase, peg_error *reterr);
    peg_status (*remove)(void *self, peg_str id, peg_error *reterr);
    /* Adds each turn to the list, in any order. */
    peg_status (*list)(void *self, peg_str session_id, struct peg__turn_list *list,
                       peg_error *reterr);
    void (*free)(void *self);
};

/* Takes self over; on failure it is freed. */
peg_status peg__turn_store_new(const struct peg__turn_store_ops *ops, void *self,
                               peg_turn_store **ret_store, peg_error *reterr);

/* Its session id; "" if it has none or no string: the turn is kept all the same. */
peg_str peg__turn_session(const peg_turn *turn);
/* The error of one kind of store as that of any turn store: PEG_ELIMIT, PEG_ENOMEM and E_TURN_STORE
 * stay, others become the cause of PEG_EIO (E_TURN_STORE) with the message. */
peg_status peg__turn_store_fail(peg_status status, const peg_error *why, peg_error *reterr,
                                const char *fmt, ...) PEG_PRINTF(4, 5);

/* ---- lists --------------------------------------------------------------------------- */

/* A turn in a list; the one that was saved last has the greatest order. */
struct peg__turn_listed {
    peg_turn_info info;
    int64_t order;
};

struct peg__turn_list {
    struct peg__arena arena; /* of the strings */
    struct peg__turn_listed *items;
    size_t n;
    size_t capacity;
};

/* Copies the strings. PEG_ELIMIT (E_TURN_STORE_FULL) beyond PEG_LIMIT_STORE_TURNS. */
peg_status peg__turn_list_add(struct peg__turn_list *list, const peg_turn_info *info, int64_t order,
                              peg_error *reterr);

/* ---- phases --------------------------------------------------------------------------- */

/* False if no phase has this name. */
bool peg__phase_from_name(peg_str name, peg_phase *ret_phase);

/* Requests of a run to the storage that its turn is attached to. Without any, nothing was kept, and
 * bytes stay in memory. */

peg_status peg__storage_fetch(const peg_turn *turn, unsigned kinds, peg_turn **ret_turn,
                              peg_error *reterr);
peg_status peg__storage_store_bytes(const peg_turn *turn, const char *what, peg_str id,
                                    peg_str bytes, peg_reader **ret_reader, peg_error *reterr);

#endif
