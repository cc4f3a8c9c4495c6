/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_PULSE_PULSE_H
#define PEG_PULSE_PULSE_H

/*
 * The names and texts that goa-ai's registries, providers and agents put on Redis through Pulse,
 * without I/O. A stream id X is the key "pulse:stream:X". An entry has two fields: `n`, the name of
 * its event, and `p`, its payload.
 *
 *   toolset:<name>:requests   call, ping                   the gateway adds, a provider reads
 *   result:<tool_use_id>      init, output_delta, result   a provider adds, the caller reads
 *
 * Every function may be called from any thread, and keeps nothing beyond what its caller owns.
 */

#include "base/buf.h"
#include "pegboard/json.h"

/* ---- names --------------------------------------------------------------------------------- */

/* Consumer groups: of the providers of a toolset, and of agents (v0.46.0) and registries (v0.31.0)
 * that read a result. */
#define PULSE_PROVIDERS "provider"
#define PULSE_AGENTS "agent"
#define PULSE_GATEWAYS "gateway"

/* Any name below, with its NUL. */
enum { PULSE_NAME = 576 };

/* Does Pulse take it as a stream? 1 to 512 bytes without a blank, a NUL and * ? [ ]. */
bool pulse_is_stream(peg_str stream);

/* Each of them writes a name and returns it, borrowed from ret_text; "" for what pulse_is_stream()
 * refuses. */

/* "toolset:<toolset>:requests" */
peg_str pulse_request_stream(peg_str toolset, char ret_text[PULSE_NAME]);
/* "result:<tool_use_id>" */
peg_str pulse_result_stream(peg_str tool_use_id, char ret_text[PULSE_NAME]);
/* "pulse:stream:<stream>", and of the two above */
peg_str pulse_stream_key(peg_str stream, char ret_text[PULSE_NAME]);
peg_str pulse_request_key(peg_str toolset, char ret_text[PULSE_NAME]);
peg_str pulse_result_key(peg_str tool_use_id, char ret_text[PULSE_NAME]);
/* "registry:result-stream:<tool_use_id>": a string, the result stream's id */
peg_str pulse_mapping_key(peg_str tool_use_id, char ret_text[PULSE_NAME]);

/* Replicated maps: a hash, and a channel for its changes. `sinks` has the consumers of each group
 * of a stream, `keepalive` when each consumer of a group, of whatever stream, was last alive. */

/* "map:stream:<stream>:sinks:content" and ":updates" */
peg_str pulse_sinks_key(peg_str stream, char ret_text[PULSE_NAME]);
peg_str pulse_sinks_channel(peg_str stream, char ret_text[PULSE_NAME]);
/* "map:sink:<group>:keepalive:content" and ":updates" */
peg_str pulse_keepalive_key(peg_str group, char ret_text[PULSE_NAME]);
peg_str pulse_keepalive_channel(peg_str group, char ret_text[PULSE_NAME]);
/* "sink:<group>:stalelease": one consumer at a time claims what dead ones left */
peg_str pulse_stale_lease_key(peg_str group, char ret_text[PULSE_NAME]);

/* The tool_use_id of a key of pulse_result_key(), or of pulse_sinks_key() of a result stream;
 * borrowed from the key. False: it is none. */
bool pulse_result_of_key(peg_str key, peg_str *ret_tool_use_id);
bool pulse_result_of_sinks_key(peg_str key, peg_str *ret_tool_use_id);

/* ---- entries ------------------------------------------------------------------------------- */

enum pulse_event {
    PULSE_UNKNOWN, /* of a later version: to be acknowledged and ignored */
    PULSE_CALL,
    PULSE_PING,
    PULSE_INIT, /* the first of a result stream, so that it is there: no members */
    PULSE_DELTA,
    PULSE_RESULT,
};

/* "call", "ping", "init", "output_delta", "result"; "" of PULSE_UNKNOWN. Static. */
const char *pulse_event_name(enum pulse_event event);
enum pulse_event pulse_event_of(peg_str name);

/* Strings have no bytes where a member is absent, and JSON is text. */

struct pulse_call {
    peg_str tool_use_id;
    peg_str tool;
    peg_str payload; /* JSON; absent: "null" */
    /* Of v0.32.0 and later, whose providers refuse a call without it: run_id and session_id are
     * then required. */
    bool has_meta;
    peg_str run_id;
    peg_str session_id;
    peg_str turn_id;
    peg_str tool_call_id;
    peg_str parent_tool_call_id;
    peg_str traceparent; /* W3C trace context */
    peg_str tracestate;
    peg_str baggage;
    /* As v0.66.0 has it, earlier ones ignore it. 0: none */
    int64_t deadline_unix_ms;
};

struct pulse_ping {
    peg_str ping_id;
};

struct pulse_delta {
    peg_str tool_use_id;
    peg_str stream;
    peg_str delta;
};

struct pulse_result {
    peg_str tool_use_id;
    bool is_failure;
    peg_str json;        /* unless it is a failure; absent: "null" */
    bool is_under_g0;    /* the member is `result`, as in v0.31.0, instead of `result_json` */
    peg_str server_data; /* JSON, a list of {kind, audience, data}; absent: "" */
    peg_str bounds;      /* JSON, an object; absent: "" */
    /* Of a failure. */
    peg_str code;
    peg_str message;
    peg_str issues; /* JSON, a list; absent: "" */
};

/* All zero is an empty one. One that pulse_entry_read() has filled owns what its strings point to;
 * one to be written borrows. */
struct pulse_entry {
    enum pulse_event event;
    union {
        struct pulse_call call;
        struct pulse_ping ping;
        struct pulse_delta delta;
        struct pulse_result result;
    };
    peg_json_doc *doc;
    char *text;
};

/* Reads the fields `n` and `p`. What an event does not need is ignored, as the peers do; one that
 * has another name is PULSE_UNKNOWN, and not parsed. Ids have 1 to 256 bytes and are usable in a
 * stream's name. PEG_EPARSE (E_PULSE_ENTRY): it is malformed, and would be again. PEG_ELIMIT
 * (E_PULSE_ENTRY): it has more than PEG_LIMIT_PULSE_ENTRY_BYTES. PEG_ENOMEM. */
peg_status pulse_entry_read(peg_str n, peg_str p, struct pulse_entry *ret_entry,
                            peg_error *reterr) PEG_MUST_USE;
void pulse_entry_free(struct pulse_entry *entry);

/* Appends the payload, byte for byte as the peers write it but for escapes. Strings are UTF-8 and
 * JSON is JSON: that is the caller's part. The buffer has the errors. */
void pulse_entry_write(const struct pulse_entry *entry, struct peg__buf *out);

#endif
