/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_BLOCKS_H
#define PEG_TURN_BLOCKS_H

/*
 * A list of blocks with an index of their names, shared copy on write. It has no opinion about
 * what may stand in it: that is the business of turn.c and storage_memory.c.
 *
 * NULL is the empty list. Reference counted; lists that share may be used from several threads, a
 * pointer to one by one thread at a time. Changing takes two steps, so that somebody can be asked
 * in between: peg__blocks_reserve() may fail and changes nothing that can be seen, what follows
 * cannot fail.
 */

#include "pegboard/turn.h"

struct peg__blocks;

enum peg__block_name {
    PEG__NAME_ID,     /* the block's own */
    PEG__NAME_ANSWER, /* RESULT: the id of the call block it answers */
    PEG__NAME_HANDLE, /* RESULT: the record's handle; OTHER with an artifact: its id */
};

#define PEG__NO_BLOCK SIZE_MAX

struct peg__blocks *peg__blocks_ref(struct peg__blocks *list);
struct peg__blocks *peg__blocks_unref(struct peg__blocks *list);

size_t peg__blocks_len(const struct peg__blocks *list);
/* Borrowed from the list. Requires i < len. */
peg_block *peg__blocks_at(const struct peg__blocks *list, size_t i);
/* Where the block of that name stands, or PEG__NO_BLOCK. If there are several it is the first; of
 * those with one handle, one that has an artifact. */
size_t peg__blocks_find(const struct peg__blocks *list, enum peg__block_name which, peg_str name);
/* The same as if block `except` were not there. Linear, but for PEG__NAME_ID, which is unique. */
size_t peg__blocks_find_other(const struct peg__blocks *list, enum peg__block_name which,
                              peg_str name, size_t except);

/* "" if the block has no such name; borrowed from the block. */
peg_str peg__block_name(const peg_block *block, enum peg__block_name which);

/* Makes *list the caller's alone, with room for one block more or another one in its place. */
peg_status peg__blocks_reserve(struct peg__blocks **list) PEG_MUST_USE;
/* After peg__blocks_reserve(). These take a reference of their own. */
void peg__blocks_insert(struct peg__blocks *list, size_t i,
                        peg_block *block); /* i <= len; linear */
void peg__blocks_append(struct peg__blocks *list, peg_block *block);
void peg__blocks_replace(struct peg__blocks *list, size_t i, peg_block *block);
void peg__blocks_remove(struct peg__blocks *list, size_t i);

#endif
