/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_TURN_STORAGE_WORLD_H
#define PEG_TESTS_TURN_STORAGE_WORLD_H

/* Blocks made and added in one step, for the tests of storages. */

#include "../t.h"
#include "base/text/str.h"
#include "pegboard/ctx.h"
#include "pegboard/storage.h"

static inline peg_block *block_of(peg_block_kind kind, const char *id, const char *text)
{
    peg_block *block = NULL;

    CHECK_INT(peg_block_new(&(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = kind,
                                                   .id = peg_cstr(id), .text = peg_cstr(text)},
                            &block, NULL),
              PEG_OK);
    return block;
}

static inline peg_turn *turn_new(void)
{
    peg_turn *turn = NULL;

    CHECK_INT(peg_turn_new(&turn, NULL), PEG_OK);
    return turn;
}

static inline peg_status add(peg_turn *turn, const char *id, peg_error *reterr)
{
    peg_block *block = block_of(PEG_BLOCK_USER, id, id);
    const peg_status status = peg_turn_add(turn, block, reterr);

    peg_block_unref(block);
    return status;
}

static inline peg_status put(peg_turn *turn, const char *id, const char *text, peg_error *reterr)
{
    peg_block *block = block_of(PEG_BLOCK_USER, id, text);
    const peg_status status = peg_turn_put(turn, block, reterr);

    peg_block_unref(block);
    return status;
}

/* The texts of all blocks; borrowed until the next call. */
static inline peg_str texts(const peg_turn *turn)
{
    static char text[256];
    size_t len = 0;

    for (size_t i = 0; i < peg_turn_len(turn); i++) {
        const peg_str s = peg_block_text(peg_turn_at(turn, i));

        len += (size_t)snprintf(text + len, sizeof(text) - len, "%.*s ", PEG_ARG(s));
    }
    return peg__strn(text, len);
}

static inline peg_ctx *ctx_of_run(const char *run_id)
{
    const peg_ids run = {.run_id = run_id, .iteration = -1};
    peg_ctx *plain = NULL;
    peg_ctx *ctx = NULL;

    CHECK_INT(peg_ctx_new(&plain, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_ids(plain, &run, &ctx, NULL), PEG_OK);
    peg_ctx_unref(plain);
    return ctx;
}

#endif
