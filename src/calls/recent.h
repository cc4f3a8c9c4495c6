/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_RECENT_H
#define PEG_CALLS_RECENT_H

/*
 * The calls of one loop that ended lately, for their principals: PEG_LIMIT_GATEWAY_RECENT_CALLS of
 * them, or as many as have texts of PEG_LIMIT_GATEWAY_RECENT_BYTES. Nothing is allocated when a
 * call ends: its record overwrites the oldest one.
 */

#include "bus/bus.h"
#include "calls/outcome.h"

/* What is known of a call without reading its registers. Strings are borrowed. */
struct calls_summary {
    struct bus_id id;
    int64_t begun_ns; /* of bus_now_ns() */
    int64_t took_ns;  /* until it ended, or until now */
    int64_t admitted_ms;
    int64_t deadline_ms;
    uint32_t attempt; /* the last one; 0: none yet */
    bool was_sent;    /* a provider was asked to run it */
    bool has_ended;   /* and how: */
    enum calls_outcome_kind kind;
    enum calls_error error;
    peg_str code; /* of a tool's own error; "": it is none */
    peg_str principal;
    peg_str toolset;
    peg_str tool;
    peg_str provider; /* of the last attempt; "": none, or it is not known */
};

/* A call ended like this. `summary` has the rest, and keeps what it has if `outcome` is borrowed
 * for as long. */
void calls_summary_set_outcome(struct calls_summary *summary, const struct calls_outcome *outcome);

struct calls_recent;
/* NULL: no memory. */
struct calls_recent *calls_recent_new(void);
struct calls_recent *calls_recent_free(struct calls_recent *recent);
/* Copies it. */
void calls_recent_add(struct calls_recent *recent, const struct calls_summary *summary);
/* The one that ended last is number 0, the one before it 1, and so on; its strings live until the
 * next one is added. False: there is none. */
bool calls_recent_get(const struct calls_recent *recent, size_t number,
                      struct calls_summary *ret_summary);

#endif
