/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/http2/frame.h"

const char *grpc_h2_error_name(uint32_t h2_error)
{
    static const char *const names[] = {
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    };

    return h2_error < sizeof(names) / sizeof(names[0]) ? names[h2_error] : "an unknown error";
}
