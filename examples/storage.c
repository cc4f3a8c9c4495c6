/* SPDX-License-Identifier: Apache-2.0 */

/* A conversation that outlives its turns: what a run adds goes to a storage, block by block. */

#include <pegboard/pegboard.h>
#include <stdio.h>

/* A model that knows only what it is shown, and repeats the first thing it was told. */
static peg_status model(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    peg_turn *turn = peg_dispatch_turn(dispatch);

    (void)user;
    return peg_turn_add_text(turn, PEG_BLOCK_ASSISTANT, peg_block_text(peg_turn_at(turn, 0)),
                             reterr);
}

static void show(const char *who, peg_str text)
{
    printf("%s: %.*s\n", who, (int)text.len, text.ptr);
}

/* Puts the question into the storage, makes a turn of all that is there, and runs it. */
static peg_status run(peg_runner *runner, const peg_storage *storage, peg_ctx *ctx,
                      const char *question, peg_error *reterr)
{
    const peg_block_def def = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_USER,
                               .text = peg_cstr(question)};
    peg_block *block = NULL;
    peg_turn *turn = NULL;
    peg_status status;

    show(peg_ctx_ids(ctx)->run_id, def.text);
    if (!(status = peg_block_new(&def, &block, reterr)) &&
        !(status = storage->store(storage->user, ctx, block, reterr)) &&
        !(status = peg_turn_new(&turn, reterr)) &&
        !(status = storage->fetch(storage->user, ctx, PEG_BLOCKS_ALL, turn, reterr)) &&
        !(status = peg_runner_run(runner, ctx, turn, NULL, reterr))) /* stores the answer */
        show("  model", peg_block_text(peg_turn_at(turn, peg_turn_len(turn) - 1)));
    peg_turn_free(turn);
    peg_block_unref(block);
    return status;
}

int main(void)
{
    const peg_ids first_chat = {.run_id = "chat 1", .iteration = -1};
    const peg_ids other_chat = {.run_id = "chat 2", .iteration = -1};
    peg_memory_storage *kept = NULL;
    peg_storage storage;
    peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .loop.engine.fn = model,
                                .loop.storage = &storage};
    peg_runner *runner = NULL;
    peg_ctx *root = NULL, *first = NULL, *other = NULL;
    peg_error e;
    int failed = peg_memory_storage_new(&kept, &e) || peg_ctx_new(&root, &e) ||
                 peg_ctx_with_ids(root, &first_chat, &first, &e) ||
                 peg_ctx_with_ids(root, &other_chat, &other, &e);
    if (!failed)
        storage = peg_memory_storage_ops(kept);
    failed = failed || peg_runner_new(&config, &runner, &e) ||
             run(runner, &storage, first, "I am Ada.", &e) ||
             run(runner, &storage, other, "I am Bob.", &e) ||
             run(runner, &storage, first, "Who am I?", &e);
    if (failed)
        fprintf(stderr, "%s: %s\n", e.code, e.message);
    peg_runner_unref(runner);
    peg_ctx_unref(other);
    peg_ctx_unref(first);
    peg_ctx_unref(root);
    peg_memory_storage_free(kept);
    return failed;
}
