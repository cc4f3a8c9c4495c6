/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_LOOP_STREAM_H
#define PEG_TURN_LOOP_STREAM_H

/*
 * What a dispatch tells while it is made: messages and thoughts that grow, tool calls that are
 * announced once and completed once. Lives for a whole dispatch, over all iterations; emits events
 * and stores nothing.
 *
 * A value: start with PEG__STREAMS. One thread at a time. A sink may tell of other things than the
 * one that it is being told of.
 */

#include "base/limits.h"
#include "base/map.h"
#include "pegboard/ctx.h"
#include "pegboard/record.h"

struct peg__streams {
    struct peg__map messages;
    struct peg__map thoughts;
    struct peg__map calls;
    struct peg__map args; /* of calls that are being written, in this iteration */
    size_t n_bytes;       /* of all that is not complete */
};

#define PEG__STREAMS                                                                               \
    {                                                                                              \
        .messages = PEG__MAP(PEG_LIMIT_STREAMS), .thoughts = PEG__MAP(PEG_LIMIT_STREAMS),          \
        .calls = PEG__MAP(PEG_LIMIT_STREAMS), .args = PEG__MAP(PEG_LIMIT_STREAMS)                  \
    }

void peg__streams_free(struct peg__streams *streams);

struct peg__stream_part {
    peg_str id;
    peg_str delta; /* any bytes, perhaps none */
    bool is_complete;
};

/*
 * Adds to a message (PEG_EVENT_MESSAGE) or thought (PEG_EVENT_THOUGHT) and emits the event. On
 * failure nothing was added or emitted. PEG_ESTATE (E_STREAM_COMPLETE; E_STREAM_BUSY: from a sink
 * that hears of this very stream), PEG_EINVAL (E_STREAM_ID), PEG_ELIMIT (E_STREAM_TOO_LARGE),
 * PEG_ENOMEM.
 */
peg_status peg__streams_notify(struct peg__streams *streams, peg_ctx *ctx, peg_event_kind kind,
                               const struct peg__stream_part *part, peg_error *reterr);

/* Adds to the arguments of a call that a model is writing, and emits PEG_EVENT_TOOL_ARGS. Errors as
 * above. */
peg_status peg__streams_notify_args(struct peg__streams *streams, peg_ctx *ctx, peg_str call_id,
                                    peg_str tool, peg_str delta, peg_error *reterr);
/* What is written from now on belongs to other calls, also under the same ids. */
void peg__streams_forget_args(struct peg__streams *streams);

struct peg__call_part {
    peg_str key; /* what tells calls apart, such as the id of the call block; "": call_id */
    peg_str call_id;
    peg_str tool;         /* "": as announced, the record's, or the name for those without one */
    peg_str args;         /* to be shown; "": as announced, the record's, or {} */
    const char *checksum; /* NULL: the record's, or that of tool and args as they stand here */
    const peg_record *record; /* NULL: it is announced; else it is completed */
};

/* Announces a call or completes it; what was not announced is announced first, so that there are
 * always two events. Errors as above, and PEG_ESTATE (E_STREAM_ANNOUNCED). */
peg_status peg__streams_notify_call(struct peg__streams *streams, peg_ctx *ctx,
                                    const struct peg__call_part *part, peg_error *reterr);

/*
 * The same for calls that we run, told apart by the record's key. `args` is what may be shown of
 * the arguments, NULL if nothing may; what the record has of them is never shown. An announcement
 * that cannot be made for lack of memory is made before the completion.
 */
void peg__streams_announce_call(struct peg__streams *streams, peg_ctx *ctx,
                                const peg_record *record, const peg_json *args);
peg_status peg__streams_complete_call(struct peg__streams *streams, peg_ctx *ctx,
                                      const peg_record *record, peg_error *reterr);

#endif
