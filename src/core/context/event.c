/* SPDX-License-Identifier: Apache-2.0 */

#include "pegboard/event.h"

static const char *const event_names[PEG_N_EVENT_KINDS] = {
    [PEG_EVENT_MESSAGE] = "message",
    [PEG_EVENT_THOUGHT] = "thought",
    [PEG_EVENT_TOOL_CALL] = "tool_call",
    [PEG_EVENT_TURN_START] = "turn_start",
    [PEG_EVENT_TURN_END] = "turn_end",
    [PEG_EVENT_DISPATCH_START] = "dispatch_start",
    [PEG_EVENT_DISPATCH_END] = "dispatch_end",
    [PEG_EVENT_ITERATION_START] = "iteration_start",
    [PEG_EVENT_ITERATION_END] = "iteration_end",
    [PEG_EVENT_TOOL_START] = "tool_start",
    [PEG_EVENT_TOOL_END] = "tool_end",
    [PEG_EVENT_GATE_OPEN] = "gate_open",
    [PEG_EVENT_GATE_CLOSED] = "gate_closed",
    [PEG_EVENT_LOG] = "log",
    [PEG_EVENT_STATS] = "stats",
    [PEG_EVENT_LIMIT] = "limit",
    [PEG_EVENT_WARNING] = "warning",
    [PEG_EVENT_ERROR] = "error",
    [PEG_EVENT_INFERENCE_START] = "inference_start",
    [PEG_EVENT_INFERENCE_END] = "inference_end",
    [PEG_EVENT_TOOL_ARGS] = "tool_args",
    [PEG_EVENT_PAUSE] = "pause",
};

const char *peg_event_name(peg_event_kind kind)
{
    return (unsigned)kind < PEG_N_EVENT_KINDS ? event_names[kind] : "unknown";
}

bool peg_event_is_functional(peg_event_kind kind)
{
    return kind == PEG_EVENT_MESSAGE || kind == PEG_EVENT_THOUGHT || kind == PEG_EVENT_TOOL_CALL;
}

const char *peg_turn_end_name(peg_turn_end end)
{
    switch (end) {
    case PEG_END_ACK:
        return "ack";
    case PEG_END_NACK:
        return "nack";
    case PEG_END_ABORTED:
        return "aborted";
    }
    return "unknown";
}
