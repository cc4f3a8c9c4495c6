/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_FILE_FILE_H
#define PEG_TURN_FILE_FILE_H

#include "base/hash.h"
#include "pegboard/bag.h"
#include "pegboard/turn_file.h"

/*
 * One block as JSON and back, in the form of docs/turn-format.md. A turn's file is a list of them;
 * a store may keep each by itself.
 *
 *   write: struct peg__block_write how = {.options = &options};
 *          peg__block_write(&how, block, builder, reterr);
 *   read:  struct peg__block_read how = {.options = &options};
 *          peg__block_read(&how, value, id, &block, reterr);
 */

/* The calls of a turn that came before, see turn/file/internal.h. */
struct peg__call_match;

struct peg__block_write {
    const peg_turn_write_options *options; /* never NULL */
    /* The calls before, so that results need not repeat them; peg__block_write() adds those that
     * it writes. NULL: each block is complete and can be read alone. */
    struct peg__call_match *calls;
};

/* Adds an object. The same block always gives the same bytes. PEG_ELIMIT (E_TURN_BYTES),
 * PEG_ENOMEM, errors of a reader or the spool store; the builder reports its own when it finishes.
 */
peg_status peg__block_write(const struct peg__block_write *how, const peg_block *block,
                            peg_json_builder *b, peg_error *reterr) PEG_MUST_USE;

struct peg__block_read {
    const peg_turn_read_options *options; /* never NULL */
    /* The calls before, for what a result leaves out. peg__block_read() notes which of them is
     * answered; the caller adds those that it reads. NULL: there are none. */
    struct peg__call_match *calls;
};

/* `id` replaces the one in the file: unique in its turn, not empty. PEG_EPARSE
 * (E_TURN_FORMAT) with the place below the block as `where` ("/payload/args"); PEG_ELIMIT,
 * PEG_ENOMEM. */
peg_status peg__block_read(const struct peg__block_read *how, const peg_json *value, peg_str id,
                           peg_block **ret_block, peg_error *reterr) PEG_MUST_USE;

/* The name of a kind in a file: "tool_use" is a result; static. */
const char *peg__block_file_kind(peg_block_kind kind);
/* The kind of that name, whatever its case and the space around it; false if it is none. */
bool peg__block_file_kind_named(peg_str name, peg_block_kind *ret_kind);

/* The object of a bag, its values in the order of their names too: the same bag, the same bytes.
 * PEG_ENOMEM. */
peg_status peg__bag_write(const void *bag, peg_json_builder *b, peg_error *reterr) PEG_MUST_USE;

/* Bytes that stand in a spool store. */
struct peg__bytes_ref {
    char sha256[PEG_SHA256_HEX];
    int64_t n_bytes;
};
/* The reference behind a reader that a file led to, or NULL if it is another; borrowed. */
const struct peg__bytes_ref *peg__bytes_ref_of(const peg_reader *reader);

/* namespace.slug@vN as peg_key has it. */
bool peg__key_id_is_canonical(peg_str id);
/* PEG_EINVAL (E_KEY): it is no key, or one of another bag. */
peg_status peg__key_check_bag(const peg_key *key, peg_bag_kind kind, peg_error *reterr);

/* All keys of the library, NULL at the end. */
extern const peg_key *const peg__own_keys[];

/* The first member of a payload that is pegboard's own for this kind of block, or NULL; static. */
const char *peg__payload_reserved(peg_block_kind kind, const peg_json *payload);

#endif
