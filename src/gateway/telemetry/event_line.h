/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_TELEMETRY_EVENT_LINE_H
#define PEG_GATEWAY_TELEMETRY_EVENT_LINE_H

/* One line of the journal as bytes; does no I/O and takes no memory. */

#include "base/limits.h"
#include "gateway/telemetry/event_log.h"

/* A value. */
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
