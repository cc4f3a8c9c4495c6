/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BUS_REDIS_STREAMS_H
#define PEG_BUS_REDIS_STREAMS_H

/*
 * Streams of a Redis that other programs read and write too: those of direct toolsets. Only a bus
 * on Redis has them. Keys are whole, entries have two fields: `n`, a name, and `p`, a payload.
 *
 * Every request is answered once, unless it is forgotten with bus_forget_wait(bus, &wait->wait).
 * `wait` may be NULL where no answer is wanted. A wait lies in the caller's memory.
 *
 * Nothing polls: a key that is tracked is reported when somebody has changed it since it was last
 * read. The server forgets a key when it reports it, so the next read asks for it again.
 */

#include "bus/bus.h"

bool bus_has_streams(const struct bus *bus);
/* Redis lets this loop track keys. False also before the first connection. */
bool bus_can_track(const struct bus *bus);

/* ---- answers ---- */

struct bus_stream_entry {
    peg_str id;
    peg_str name;
    peg_str payload;
};

/* Everything is borrowed until fn returns. */
struct bus_stream_reply {
    /* PEG_OK; PEG_ENOTFOUND: there is no such key; PEG_EIO, PEG_ELIMIT, PEG_ENOMEM as in bus.h. */
    peg_status status;
    uint64_t epoch; /* at the time of the answer; of a withdrawal: read behind it */
    peg_str text;   /* the id of the new entry; the value; the next cursor */
    const struct bus_stream_entry *entries;
    size_t n_entries;
    const peg_str *texts; /* keys; or fields, each with its value behind it */
    size_t n_texts;
    bool is_undelivered; /* of a withdrawal */
};

struct bus_stream_wait {
    struct bus_wait wait; /* first */
    void (*fn)(struct bus_stream_wait *wait, const struct bus_stream_reply *reply);
    struct bus_stream_reply reply; /* the bus's */
};

/* ---- tracking ---- */

/* Lies in its owner's memory. */
struct bus_tracked {
    /* The key may have changed: read it. Also after each new connection. May untrack any key. */
    void (*fn)(struct bus_tracked *tracked);
    struct bus_tracked *next; /* the bus's */
    struct bus_tracked *prev;
    peg_str key;
};

/* One for each key. PEG_EEXISTS, PEG_ELIMIT (PEG_LIMIT_GATEWAY_CALLS), PEG_ENOMEM. */
peg_status bus_track(struct bus *bus, peg_str key, struct bus_tracked *tracked) PEG_MUST_USE;
/* One that is not tracked is left alone. */
void bus_untrack(struct bus *bus, struct bus_tracked *tracked);

/* ---- calls ---- */

/* SET the mapping, XADD `init` to the result stream and EXPIRE it; then, if there is a request,
 * begin to watch the result stream, and XADD the request. In this order, in one piece: what comes
 * of the request cannot come before. Answers with the id of the request's entry. */
struct bus_stream_call {
    peg_str mapping_key; /* "": none is written */
    peg_str mapping_value;
    int64_t mapping_s;
    peg_str result_key;
    int64_t result_s;
    peg_str request_key; /* "": the result stream is made, and nothing is asked for */
    peg_str request_name;
    peg_str request;
};
void bus_stream_begin_call(struct bus *bus, const struct bus_stream_call *call,
                           struct bus_stream_wait *wait);
/* UNLINKs both, some milliseconds later. */
void bus_stream_drop_call(struct bus *bus, peg_str result_key, peg_str mapping_key);
/* XDEL of an entry, and XINFO GROUPS, at one moment: `is_undelivered` if the entry was there and no
 * group has got it. */
void bus_stream_withdraw(struct bus *bus, peg_str key, peg_str id, struct bus_stream_wait *wait);

/* ---- entries ---- */

enum { BUS_STREAM_ENTRIES = 16 }; /* that one read gives at most */

struct bus_stream_add {
    peg_str key;
    peg_str name;
    peg_str payload;
    bool makes_stream; /* else PEG_ENOTFOUND if there is none */
};
void bus_stream_add(struct bus *bus, const struct bus_stream_add *add,
                    struct bus_stream_wait *wait);
/* The entries behind `after` ("": from the first one), and watches the key again. None if there is
 * no such stream. */
void bus_stream_read(struct bus *bus, peg_str key, peg_str after, struct bus_stream_wait *wait);
/* XGROUP CREATE ... MKSTREAM, at "$" or "0". One that is there is left as it is. */
void bus_stream_make_group(struct bus *bus, peg_str key, peg_str group, const char *start,
                           struct bus_stream_wait *wait);
/* Removes what every group has got and acknowledged; nothing if there is no group. */
void bus_stream_trim(struct bus *bus, peg_str key);

/* ---- keys ---- */

/* GET; PEG_ENOTFOUND. */
void bus_key_get(struct bus *bus, peg_str key, struct bus_stream_wait *wait);
/* EXPIRE of a key that has no expiry. */
void bus_key_expire(struct bus *bus, peg_str key, int64_t seconds);
/* SCAN and HSCAN: `cursor` is "0", then the answer's text until that is "0" again. */
void bus_key_scan(struct bus *bus, peg_str cursor, const char *pattern, int64_t count,
                  struct bus_stream_wait *wait);
void bus_hash_scan(struct bus *bus, peg_str key, peg_str cursor, int64_t count,
                   struct bus_stream_wait *wait);
void bus_hash_remove(struct bus *bus, peg_str key, peg_str field);

#endif
