/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_EVENT_H
#define PEGBOARD_EVENT_H

/*
 * What happens, told while it happens. Output leaves through the functional
 * events (message, thought, tool call); all others are for watching.
 *
 * An event is plain data on the emitter's stack; everything it points to is
 * borrowed for the time of the call. A sink is called on the thread on which the
 * thing happens, outside every lock, and may be called from several at once.
 */

#include <pegboard/json.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum peg_event_kind {
    /* functional */
    PEG_EVENT_MESSAGE = 0,
    PEG_EVENT_THOUGHT,
    PEG_EVENT_TOOL_CALL,
    /* observability */
    PEG_EVENT_TURN_START,
    PEG_EVENT_TURN_END,
    PEG_EVENT_DISPATCH_START,
    PEG_EVENT_DISPATCH_END,
    PEG_EVENT_ITERATION_START,
    PEG_EVENT_ITERATION_END,
    PEG_EVENT_TOOL_START,
    PEG_EVENT_TOOL_END,
    PEG_EVENT_GATE_OPEN,
    PEG_EVENT_GATE_CLOSED,
    PEG_EVENT_LOG,
    PEG_EVENT_STATS,
    PEG_EVENT_LIMIT,   /* a bound was reached; `error` names it */
    PEG_EVENT_WARNING, /* it went on, but somebody should look */
    PEG_EVENT_ERROR,
    PEG_EVENT_INFERENCE_START, /* the model is about to be asked */
    PEG_EVENT_INFERENCE_END,
    PEG_EVENT_TOOL_ARGS, /* a model writes the arguments of a call */
    PEG_EVENT_PAUSE,     /* the step controller waits for somebody to go on: step.h */
    PEG_N_EVENT_KINDS,
} peg_event_kind;

typedef enum peg_turn_end {
    PEG_END_ACK = 0,
    PEG_END_NACK,
    PEG_END_ABORTED,
} peg_turn_end;

/* Where an event belongs. "" where there is no such thing, iteration -1. */
typedef struct peg_ids {
    const char *run_id;      /* the host's name for a longer undertaking */
    const char *turn_id;     /* one run of a runner */
    const char *dispatch_id; /* one dispatch */
    int iteration;           /* from 0 */
} peg_ids;

/* A message or thought that grows. */
typedef struct peg_stream_event {
    peg_str id;
    peg_str full;  /* all of it so far */
    peg_str delta; /* what this event adds */
    bool is_complete;
    int64_t created_ms;
    int64_t updated_ms;
    int64_t completed_ms; /* 0 until complete */
} peg_stream_event;

/* A tool call: announced once, completed once. */
typedef struct peg_tool_call_event {
    peg_str call_id; /* as the model gave it */
    peg_str tool;
    peg_str args;     /* JSON text, masked if the host masks */
    peg_str checksum; /* 64 hex digits; equals call_checksum of the tool events */
    bool is_complete;
    bool is_error;
    const peg_record *record; /* NULL until complete */
    int64_t created_ms;
    int64_t updated_ms;
    int64_t completed_ms;
} peg_tool_call_event;

/* A handler starts and ends. */
typedef struct peg_tool_event {
    peg_str tool;
    peg_str call_id;      /* the vendor's */
    peg_str checksum;     /* of tool and raw arguments: equal calls have equal ones */
    const peg_json *args; /* start: validated, or masked if the host masks */
    unsigned attempt;     /* start: 1; end: how many there were, 0 if no thread was free */
    int64_t started_ms;
    int64_t ended_ms;    /* end */
    int64_t duration_ns; /* end */
    bool is_error;       /* end */
} peg_tool_event;

/* Start and end of a turn, dispatch or iteration. */
typedef struct peg_span_event {
    int64_t started_ms;
    int64_t ended_ms;    /* end */
    int64_t duration_ns; /* end */
    unsigned iterations; /* dispatch and turn end: how many began */
    peg_turn_end end;    /* dispatch and turn end; an iteration that did not end well has no end */
} peg_span_event;

typedef struct peg_gate_event {
    peg_gate *gate; /* open: the live gate, which a listener may settle at once or keep by ref */
    peg_str id;
    peg_str reason;
    const char *result; /* closed: "resolved", "rejected", "aborted" or "timeout" */
    int64_t settled_ms; /* closed */
} peg_gate_event;

/* The model is asked, and has answered. */
typedef struct peg_inference_event {
    const peg_json *definitions; /* what it is offered, as the turn has it; NULL: nothing */
    const peg_json *result; /* end: pegboard.inference_result@v1; NULL if the engine set none */
    int64_t duration_ns;    /* end */
    size_t n_calls;         /* end: how many calls it asks for */
    bool is_error;          /* end: the engine failed */
} peg_inference_event;

/* Arguments of a call while they come in. */
typedef struct peg_tool_args_event {
    peg_str call_id; /* as the model gave it */
    peg_str tool;
    peg_str full;      /* all of it so far */
    peg_str delta;     /* what this event adds */
    unsigned sequence; /* from 1 */
} peg_tool_args_event;

typedef struct peg_pause_event {
    const char *pause_id; /* for peg_stepper_continue() */
    const char *session_id;
    const char *phase;   /* "after_inference" or "after_tools" */
    const char *summary; /* for a person */
    size_t n_pending;    /* calls that would run now */
    int64_t deadline_ms; /* when it goes on by itself, wall time */
} peg_pause_event;

typedef struct peg_log_event {
    const char *level; /* "trace", "debug", "info", "warn", "error" */
    peg_str kind;
    peg_str message;
    const peg_json *payload; /* NULL if none was given */
} peg_log_event;

typedef struct peg_event {
    peg_event_kind kind;
    peg_ids ids;
    int64_t at_ms;
    /* ERROR, LIMIT, WARNING; why, of a DISPATCH_END or TURN_END that is no ack; else NULL */
    const peg_error *error;
    union {
        peg_stream_event stream;       /* MESSAGE, THOUGHT */
        peg_tool_call_event tool_call; /* TOOL_CALL */
        peg_tool_event tool;           /* TOOL_START, TOOL_END */
        peg_span_event span;           /* TURN_, DISPATCH_, ITERATION_ */
        peg_gate_event gate;           /* GATE_ */
        peg_log_event log;             /* LOG */
        const peg_json *stats;         /* STATS */
        peg_inference_event inference; /* INFERENCE_ */
        peg_tool_args_event tool_args; /* TOOL_ARGS */
        peg_pause_event pause;         /* PAUSE */
    } u;
} peg_event;

typedef void (*peg_event_fn)(const peg_event *event, void *user);

/* A short English name such as "turn_start"; static. */
PEG_API const char *peg_event_name(peg_event_kind kind);
PEG_API bool peg_event_is_functional(peg_event_kind kind);
/* "ack", "nack", "aborted"; static. */
PEG_API const char *peg_turn_end_name(peg_turn_end end);

#ifdef __cplusplus
}
#endif
#endif
