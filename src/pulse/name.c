/* SPDX-License-Identifier: Apache-2.0 */

#include "pulse/pulse.h"

#include <string.h>

#include "base/text/str.h"

enum { STREAM_BYTES = 512 };

#define STREAM_KEY "pulse:stream:"
#define REQUESTS_BEFORE "toolset:"
#define REQUESTS_AFTER ":requests"
#define RESULT "result:"
#define SINKS_BEFORE "map:stream:"
#define SINKS_AFTER ":sinks:content"

bool pulse_is_stream(peg_str stream)
{
    if (!stream.len || stream.len > STREAM_BYTES)
        return false;
    for (size_t i = 0; i < stream.len; i++) {
        if (strchr(" *?[]", stream.ptr[i])) /* a NUL, too */
            return false;
    }
    return true;
}

static peg_str write_name(char ret_text[PULSE_NAME], const char *before, peg_str middle,
                          const char *after)
{
    const size_t n_before = strlen(before);
    const size_t n_after = strlen(after);
    const size_t len = n_before + middle.len + n_after;

    ret_text[0] = '\0';
    if (!pulse_is_stream(middle) || len >= PULSE_NAME)
        return (peg_str){ret_text, 0};
    memcpy(ret_text, before, n_before);
    memcpy(ret_text + n_before, middle.ptr, middle.len);
    memcpy(ret_text + n_before + middle.len, after, n_after + 1);
    return (peg_str){ret_text, len};
}

peg_str pulse_request_stream(peg_str toolset, char ret_text[PULSE_NAME])
{
    return write_name(ret_text, REQUESTS_BEFORE, toolset, REQUESTS_AFTER);
}

peg_str pulse_result_stream(peg_str tool_use_id, char ret_text[PULSE_NAME])
{
    return write_name(ret_text, RESULT, tool_use_id, "");
}

peg_str pulse_stream_key(peg_str stream, char ret_text[PULSE_NAME])
{
    return write_name(ret_text, STREAM_KEY, stream, "");
}

peg_str pulse_request_key(peg_str toolset, char ret_text[PULSE_NAME])
{
    return write_name(ret_text, STREAM_KEY REQUESTS_BEFORE, toolset, REQUESTS_AFTER);
}

peg_str pulse_result_key(peg_str tool_use_id, char ret_text[PULSE_NAME])
{
    return write_name(ret_text, STREAM_KEY RESULT, tool_use_id, "");
}

peg_str pulse_mapping_key(peg_str tool_use_id, char ret_text[PULSE_NAME])
{
    return write_name(ret_text, "registry:result-stream:", tool_use_id, "");
}

peg_str pulse_sinks_key(peg_str stream, char ret_text[PULSE_NAME])
{
    return write_name(ret_text, SINKS_BEFORE, stream, SINKS_AFTER);
}

peg_str pulse_sinks_channel(peg_str stream, char ret_text[PULSE_NAME])
{
    return write_name(ret_text, SINKS_BEFORE, stream, ":sinks:updates");
}

peg_str pulse_keepalive_key(peg_str group, char ret_text[PULSE_NAME])
{
    return write_name(ret_text, "map:sink:", group, ":keepalive:content");
}

peg_str pulse_keepalive_channel(peg_str group, char ret_text[PULSE_NAME])
{
    return write_name(ret_text, "map:sink:", group, ":keepalive:updates");
}

peg_str pulse_stale_lease_key(peg_str group, char ret_text[PULSE_NAME])
{
    return write_name(ret_text, "sink:", group, ":stalelease");
}

static bool ends_with(peg_str text, peg_str end)
{
    return text.len >= end.len && peg__str_eq(peg__str_from(text, text.len - end.len), end);
}

static bool take_middle(peg_str key, const char *before, const char *after, peg_str *ret_middle)
{
    const size_t n_before = strlen(before);
    const size_t n_after = strlen(after);

    if (key.len <= n_before + n_after || !peg__str_starts(key, peg__str(before)) ||
        !ends_with(key, peg__str(after)))
        return false;
    *ret_middle = peg__strn(key.ptr + n_before, key.len - n_before - n_after);
    return true;
}

bool pulse_result_of_key(peg_str key, peg_str *ret_tool_use_id)
{
    return take_middle(key, STREAM_KEY RESULT, "", ret_tool_use_id);
}

bool pulse_result_of_sinks_key(peg_str key, peg_str *ret_tool_use_id)
{
    return take_middle(key, SINKS_BEFORE RESULT, SINKS_AFTER, ret_tool_use_id);
}
