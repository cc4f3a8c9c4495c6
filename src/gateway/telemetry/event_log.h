/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_TELEMETRY_EVENT_LOG_H
#define PEG_GATEWAY_TELEMETRY_EVENT_LOG_H

#include "base/limits.h"
#include "pegboard/common.h"
#include "pegboard/log.h"

/*
 * The event log of a gateway: one line for each event, in a form that programs can parse:
 *
 *   time=2026-02-22T09:30:00.125Z level=info event=health toolset=weather state=healthy providers=1
 *
 * A value with other characters than these is written as a JSON string. Never a payload: names,
 * ids, sizes, durations, and the gateway's own sentences.
 *
 * A thread writes the lines, so that a slow disk or terminal blocks no caller. Lines over its
 * capacity, and those of an event that comes too often, are dropped, counted and reported: bad
 * calls cannot fill a disk.
 */

struct peg_clock;
struct gw_event_log;

enum gw_event {
    GW_EVENT_START,
    GW_EVENT_STOP,
    GW_EVENT_DRAIN,
    GW_EVENT_RELOAD,
    GW_EVENT_HEALTH,     /* toolset, state, providers */
    GW_EVENT_REGISTER,   /* toolset, owner, revision; via, replaced of one that came with Hello */
    GW_EVENT_UNREGISTER, /* toolset */
    GW_EVENT_ATTACH,     /* toolset, incarnation, peer */
    GW_EVENT_DETACH,
    GW_EVENT_REFUSED, /* a caller or provider that was refused: error, rpc, principal, peer */
    GW_EVENT_CALL,    /* a call that ended badly: toolset, tool, outcome, ms */
    GW_EVENT_LATE,    /* a result after the end of its call */
    GW_EVENT_STORE,
    GW_EVENT_LIBRARY, /* from pegboard/log.h */
    GW_N_EVENTS,
};

struct gw_event_log_options {
    const char *path;              /* NULL: standard error */
    peg_log_level least;           /* events below are not written */
    bool is_json;                  /* a JSON object for each line instead */
    const struct peg_clock *clock; /* NULL: the system's */
    int fd;                        /* tests: to be written to if path is NULL; 0: standard error */
};

/* PEG_EIO (E_LOG_FILE) with the system's words. */
peg_status gw_event_log_new(const struct gw_event_log_options *options,
                            struct gw_event_log **ret_log, peg_error *reterr);
/* Writes the lines that wait, for at most a second. */
struct gw_event_log *gw_event_log_free(struct gw_event_log *log);
/* Any thread that may block. Opens the file again, so that it may be moved away before; a failure
 * leaves the old one in use. */
peg_status gw_event_log_reopen(struct gw_event_log *log, peg_error *reterr);
/* Any thread: waits until all lines so far are written. */
void gw_event_log_flush(struct gw_event_log *log);

/* ---- writing: any thread, never waits for a disk; a NULL log writes nothing ---- */

struct gw_field {
    const char *key; /* [a-z_]+ */
    const char *text;
    size_t len;
    int64_t number;
    bool is_number;
};

static inline struct gw_field gw_field_str(const char *key, peg_str text)
{
    return (struct gw_field){.key = key, .text = text.ptr, .len = text.len};
}
static inline struct gw_field gw_field_text(const char *key, const char *text)
{
    return gw_field_str(key, peg_cstr(text));
}
static inline struct gw_field gw_field_number(const char *key, int64_t number)
{
    return (struct gw_field){.key = key, .number = number, .is_number = true};
}

/* gw_event_log_write(log, PEG_LOG_INFO, GW_EVENT_HEALTH,
 *                 GW_FIELDS(gw_field_str("toolset", name), gw_field_text("state", "healthy"))); */
#define GW_FIELDS(...)                                                                             \
    (const struct gw_field[]){__VA_ARGS__},                                                        \
        sizeof((const struct gw_field[]){__VA_ARGS__}) / sizeof(struct gw_field)
/* At most GW_EVENT_LOG_FIELDS, and PEG_LIMIT_GATEWAY_LOG_LINE_BYTES: longer values are cut. */
enum { GW_EVENT_LOG_FIELDS = 16 };
void gw_event_log_write(struct gw_event_log *log, peg_log_level level, enum gw_event event,
                        const struct gw_field *fields, size_t n_fields);
/* Would it be written? For texts that are costly to make. */
bool gw_event_log_wants(const struct gw_event_log *log, peg_log_level level);

/* For peg_log_set(), the log being the user. */
void gw_event_log_hook(peg_log_level level, const char *code, const char *message, void *log);

/* Lines that were left out since the start, for either reason. */
uint64_t gw_event_log_n_dropped(const struct gw_event_log *log);

/* ---- one line as bytes: no I/O, no allocation ---- */

struct gw_line {
    size_t len;
    char bytes[PEG_LIMIT_GATEWAY_LOG_LINE_BYTES];
};

const char *gw_event_name(enum gw_event event);

struct gw_line_head {
    bool is_json;
    int64_t now_ms;
    peg_log_level level;
    const char *event;
};
/* Ends with a line feed, the only one in it; always UTF-8. Values are cut, and fields that have no
 * room are left out whole. */
void gw_line_make(struct gw_line *ret_line, const struct gw_line_head *head,
                  const struct gw_field *fields, size_t n_fields);

#endif
