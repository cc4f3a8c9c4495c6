/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_ENGINE_TURNS_H
#define PEG_TESTS_ENGINE_TURNS_H

/*
 * Turns for tests of requests, block after block; the first failure sticks in `status`, so that
 * torture tests can use them:
 *
 *   struct t_turn t = t_turn_new();
 *   t_text(&t, PEG_BLOCK_USER, "u1", "hello");
 *   t_call(&t, "b1", "c1", "echo", "{}");
 *   t_answer(&t, "b1", "done");
 *   CHECK_INT(t.status, PEG_OK);
 *   t_turn_free(&t);
 */

#include "base/text/str.h"
#include "core/result/result.h"
#include "pegboard/turn.h"

struct t_turn {
    peg_turn *turn;
    peg_status status;
    peg_error error;
};

static inline struct t_turn t_turn_new(void)
{
    struct t_turn t = {0};

    t.status = peg_turn_new(&t.turn, &t.error);
    return t;
}

static inline void t_turn_free(struct t_turn *t)
{
    t->turn = peg_turn_free(t->turn);
}

static inline void t_block(struct t_turn *t, const peg_block_def *def)
{
    peg_block *block = NULL;

    if (!t->status)
        t->status = peg_block_new(def, &block, &t->error);
    if (!t->status)
        t->status = peg_turn_add(t->turn, block, &t->error);
    peg_block_unref(block);
}

static inline void t_text(struct t_turn *t, peg_block_kind kind, const char *id, const char *text)
{
    t_block(t, &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = kind, .id = peg_cstr(id),
                                      .text = peg_cstr(text)});
}

static inline void t_call(struct t_turn *t, const char *id, const char *call_id, const char *tool,
                          const char *args)
{
    t_block(t, &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_CALL,
                                      .id = peg_cstr(id), .call_id = peg_cstr(call_id),
                                      .tool = peg_cstr(tool), .args = peg_cstr(args)});
}

#define T_NONCE "0123456789abcdef0123456789abcdef"

/* The result of the call block `key`; def says the rest. */
static inline void t_record(struct t_turn *t, const char *key, peg_record_def def)
{
    peg_record *record = NULL;

    def.key = peg_cstr(key);
    def.call_id = def.call_id.len ? def.call_id : peg_cstr(key);
    def.tool = def.tool.len ? def.tool : peg_cstr("echo");
    def.args = def.args.len ? def.args : peg_cstr("{}");
    def.nonce = T_NONCE;
    if (!t->status)
        t->status = peg_record_new(&def, &record, &t->error);
    t_block(t,
            &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_RESULT, .record = record});
    peg_record_unref(record);
}

static inline void t_answer(struct t_turn *t, const char *key, const char *text)
{
    t_record(t, key,
             (peg_record_def){PEG_RECORD_DEF_INIT, .text = peg_cstr(text), .is_trusted = true});
}

static inline void t_failure(struct t_turn *t, const char *key, const char *text)
{
    t_record(t, key,
             (peg_record_def){PEG_RECORD_DEF_INIT, .text = peg_cstr(text), .is_trusted = true,
                              .is_error = true});
}

/* Media of a def, with bytes unless they are NULL; NULL if the status is a failure. */
static inline peg_media *t_media(struct t_turn *t, peg_media_def def, const char *bytes)
{
    peg_reader *reader = NULL;
    peg_media *media = NULL;

    def.tier = def.tier ? def.tier : PEG_TIER_FIRST_PARTY;
    def.hazard = def.hazard ? def.hazard : PEG_HAZARD_OPAQUE;
    if (!t->status && bytes)
        t->status = peg_reader_from_bytes(peg_cstr(bytes), &reader, &t->error);
    def.reader = reader;
    if (!t->status)
        t->status = peg_media_new(&def, &media, &t->error);
    peg_reader_unref(reader);
    return media;
}

#endif
