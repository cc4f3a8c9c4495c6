/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_NET_SIDE_H
#define PEG_TESTS_NET_SIDE_H

/*
 * One end of a stream, for tests that run the loop in their own thread: it writes down what it
 * hears, does what it was told to do at an event, and wakes the test after each. Tests of streams
 * are built twice, with and without SIDE_TURNS: those that take turns do the same, only later.
 */

#include "base/buf.h"
#include "net/stream/stream.h"

enum side_act { SIDE_NOTHING, SIDE_DROP, SIDE_CLOSE, SIDE_PAUSE, SIDE_ECHO };

struct side {
    struct net_loop *loop;
    struct net_stream *stream; /* NULL once it has ended */
    struct peg__buf got;
    unsigned n_opened;
    unsigned n_bytes; /* calls of on_bytes */
    unsigned n_drained;
    unsigned n_closed;
    peg_error error; /* of on_closed */
    enum side_act at_open;
    enum side_act at_bytes;
    enum side_act at_drained;
    peg_status written; /* of an echo */
    unsigned n_late;    /* events after the end */
};

static void side_act(struct side *side, enum side_act act, const uint8_t *bytes, size_t len)
{
    struct net_stream *stream = side->stream;

    if (act == SIDE_DROP || act == SIDE_CLOSE)
        side->stream = NULL;
    if (act == SIDE_DROP)
        net_stream_drop(stream);
    else if (act == SIDE_CLOSE)
        net_stream_close(stream);
    else if (act == SIDE_PAUSE)
        net_stream_pause(stream);
    else if (act == SIDE_ECHO)
        side->written = net_stream_write(stream, bytes, len, NULL);
    net_loop_stop(side->loop);
}

static void side_on_open(void *user)
{
    struct side *side = (struct side *)user;

    side->n_opened++;
    side->n_late += !side->stream;
    side_act(side, side->at_open, (const uint8_t *)"hello", 5);
}

static void side_on_bytes(void *user, const uint8_t *bytes, size_t len)
{
    struct side *side = (struct side *)user;

    side->n_bytes++;
    side->n_late += !side->stream;
    peg__buf_add(&side->got, bytes, len);
    side_act(side, side->at_bytes, bytes, len);
}

static void side_on_drained(void *user)
{
    struct side *side = (struct side *)user;

    side->n_drained++;
    side->n_late += !side->stream;
    side_act(side, side->at_drained, (const uint8_t *)"more", 4);
}

static void side_on_closed(void *user, const peg_error *error)
{
    struct side *side = (struct side *)user;

    side->n_closed++;
    side->n_late += !side->stream;
    side->error = *error;
    side->stream = NULL;
    net_loop_stop(side->loop);
}

static const struct net_stream_events side_events = {
    .on_open = side_on_open,
    .on_bytes = side_on_bytes,
    .on_drained = side_on_drained,
    .on_closed = side_on_closed,
};

#ifndef SIDE_TURNS
#define SIDE_TURNS NET_NO_FAIR_QUEUE
#endif

static inline peg_status side_take(struct side *side, struct net_loop *loop, int fd,
                                   const struct net_stream_options *options, peg_error *reterr)
{
    const peg_status status =
        net_stream_take(loop, fd, options, &side_events, side, &side->stream, reterr);

    if (!status)
        net_stream_set_fair_queue(side->stream, SIDE_TURNS);
    return status;
}

static inline void side_init(struct side *side, struct net_loop *loop)
{
    *side = (struct side){.loop = loop, .got = PEG__BUF(64 << 20)};
}

static inline void side_free(struct side *side)
{
    if (side->stream)
        net_stream_drop(side->stream);
    peg__buf_free(&side->got);
}

/* Runs the loop, which every event stops, until the condition holds. */
#define RUN_UNTIL(loop, condition)                                                                 \
    do {                                                                                           \
        while (!(condition))                                                                       \
            net_loop_run(loop);                                                                    \
    } while (0)

/* So many rounds, for what must not happen. */
static inline void run_rounds(struct net_loop *loop, unsigned n)
{
    while (n-- > 0) {
        net_loop_stop(loop);
        net_loop_run(loop);
    }
}

#endif
