/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_MARKDOWN_BLOCK_H
#define PEG_CORE_MARKDOWN_BLOCK_H

/* Between the index and the reading of blocks. */

#include "core/markdown/markdown.h"

/* Reads the blocks of md->text from the line that starts at `at` on. PEG_ELIMIT, PEG_ENOMEM. */
peg_status peg__md_read_blocks(struct peg__md *md, size_t at, size_t line,
                               peg_error *reterr) PEG_MUST_USE;

/* Appends a copy. PEG_ELIMIT (PEG_LIMIT_MARKDOWN_BLOCKS), PEG_ENOMEM. */
peg_status peg__md_add_block(struct peg__md *md, const struct peg__md_block *block,
                             peg_error *reterr) PEG_MUST_USE;

/*
 * Takes the definitions of links from the start of a paragraph that is the last block: each becomes
 * a block, and what is left, if anything, stays a paragraph. *ret_is_left tells.
 */
peg_status peg__md_take_definitions(struct peg__md *md, bool *ret_is_left,
                                    peg_error *reterr) PEG_MUST_USE;

#endif
