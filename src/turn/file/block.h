/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_FILE_BLOCK_H
#define PEG_TURN_FILE_BLOCK_H

/*
 * One block as JSON and back, in the form of docs/turn-format.md. A turn's file is a list of them;
 * a store may keep each by itself.
 *
 *   write: struct peg__block_write how = {.options = &options};
 *          peg__block_write(&how, block, builder, reterr);
 *   read:  struct peg__block_read how = {.options = &options};
 *          peg__block_read(&how, value, id, &block, reterr);
 */

#include "pegboard/turn_file.h"

/* The calls of a turn that came before, see turn/call_match.h. */
struct peg__call_match;

struct peg__block_write {
    const peg_turn_write_options *options; /* never NULL */
    /* The calls before, so that results need not repeat what these say; peg__block_write() adds
     * what it writes. NULL: each block says everything, and can be read alone. */
    struct peg__call_match *calls;
};

/* Adds an object. The same block gives the same bytes, always. PEG_ELIMIT (E_TURN_BYTES), what a
 * reader or the spool store fails with, PEG_ENOMEM; what the builder does not take it tells at its
 * end. */
peg_status peg__block_write(const struct peg__block_write *how, const peg_block *block,
                            peg_json_builder *b, peg_error *reterr) PEG_MUST_USE;

struct peg__block_read {
    const peg_turn_read_options *options; /* never NULL */
    /* The calls before, which tell what a result leaves out. peg__block_read() notes which of them
     * is answered; whoever keeps the block of a call adds it. NULL: there are none. */
    struct peg__call_match *calls;
};

/* `id` is the block's, whatever its file says: unique in its turn, not empty. PEG_EPARSE
 * (E_TURN_FORMAT) with the place below the block as `where` ("/payload/args"); PEG_ELIMIT,
 * PEG_ENOMEM. */
peg_status peg__block_read(const struct peg__block_read *how, const peg_json *value, peg_str id,
                           peg_block **ret_block, peg_error *reterr) PEG_MUST_USE;

/* What a kind and its role are called in a file: "tool_use" is a result, "" is no role; static. */
const char *peg__block_file_kind(peg_block_kind kind);
const char *peg__block_file_role(peg_block_kind kind);
/* The kind of that name, whatever its case and the space around it; false if it is none. */
bool peg__block_file_kind_named(peg_str name, peg_block_kind *ret_kind);

/* The object of a bag, its values in the order of their names too: the same bag, the same bytes.
 * PEG_ENOMEM. */
peg_status peg__bag_write(const peg_bag *bag, peg_json_builder *b, peg_error *reterr) PEG_MUST_USE;

#endif
