/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_TYPES_H
#define PEGBOARD_TYPES_H

/*
 * The names of the things that refer to each other, and nothing about them: each has its own
 * header. (C99 lets a typedef stand only once.)
 */

typedef struct peg_clock peg_clock;             /* time that can be owned: clock.h */
typedef struct peg_cancel peg_cancel;           /* a cancellation token: cancel.h */
typedef struct peg_ctx peg_ctx;                 /* what everything below a call shares: ctx.h */
typedef struct peg_tool peg_tool;               /* a named function with a schema: tool.h */
typedef struct peg_call peg_call;               /* a call as its handler sees it: call.h */
typedef struct peg_registry peg_registry;       /* tools by name: registry.h */
typedef struct peg_record peg_record;           /* what became of a call: record.h */
typedef struct peg_reader peg_reader;           /* bytes that can be read again: reader.h */
typedef struct peg_spool_store peg_spool_store; /* where large results are kept: spool.h */
typedef struct peg_media peg_media;             /* an image, sound, video or document: media.h */
typedef struct peg_artifact peg_artifact;       /* a result too large for a prompt: artifact.h */
typedef struct peg_artifact_kind peg_artifact_kind; /* what it can be asked: artifact.h */
typedef struct peg_gate peg_gate;                   /* a question to a person: gate.h */
typedef struct peg_pool peg_pool;                   /* threads for handlers: pool.h */
typedef struct peg_bag peg_bag;                     /* JSON values by key: bag.h */
typedef struct peg_block peg_block;                 /* a piece of a conversation: turn.h */
typedef struct peg_turn peg_turn;                   /* a conversation: turn.h */
typedef struct peg_dispatch peg_dispatch;           /* model and tools in alternation: dispatch.h */
typedef struct peg_turn_scope peg_turn_scope;       /* a turn that runs: runner.h */
typedef struct peg_runner peg_runner;               /* runs turns: runner.h */

#endif
