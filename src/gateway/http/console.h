/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GATEWAY_HTTP_CONSOLE_H
#define PEG_GATEWAY_HTTP_CONSOLE_H

/* The files of console/, as tools/embed wrote them into the program. */

#include <stddef.h>

struct gw_console_file {
    const char *name;
    const char *content_type;
    const char *digest; /* of the bytes */
    const char *bytes;
    size_t len;
    const char *packed; /* the bytes by gzip */
    size_t packed_len;
};

extern const struct gw_console_file gw_console_files[];
extern const size_t gw_n_console_files;

#endif
