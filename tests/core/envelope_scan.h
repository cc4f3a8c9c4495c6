/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_ENVELOPE_SCAN_H
#define PEG_TESTS_ENVELOPE_SCAN_H

/*
 * What a suspicious reader makes of a text: counts everything that could be taken for a tag of an
 * envelope, or of system_instructions. It forgets all that is not a visible ASCII character, and
 * knows nothing of how envelopes are written.
 */

#include <stdlib.h>
#include <string.h>

#include "pegboard/common.h"

struct scan {
    size_t n_opening;
    size_t n_closing;
    size_t first_opening; /* offsets; SIZE_MAX if there is none */
    size_t last_closing;
    size_t n_rules; /* tags of system_instructions */
};

/* The letters after '<', lower case, without anything between them. */
static inline void scan_name(peg_str text, size_t at, char name[32], bool *ret_is_closing)
{
    size_t n = 0;

    *ret_is_closing = false;
    while (++at < text.len && n < 31 && !strchr("<>", text.ptr[at] ? text.ptr[at] : ' ')) {
        const char c = text.ptr[at];

        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            name[n++] = c;
        else if (c >= 'A' && c <= 'Z')
            name[n++] = (char)(c - 'A' + 'a');
        else if (n == 0 && c == '/')
            *ret_is_closing = true;
    }
    name[n] = '\0';
}

static inline bool scan_begins(const char name[32], const char *with)
{
    return memcmp(name, with, strlen(with)) == 0;
}

static inline struct scan scan_text(peg_str text)
{
    struct scan found = {.first_opening = SIZE_MAX, .last_closing = SIZE_MAX};

    for (size_t at = 0; at < text.len; at++) {
        char name[32] = "";
        bool is_closing;

        if (text.ptr[at] != '<')
            continue;
        scan_name(text, at, name, &is_closing);
        if (scan_begins(name, "systeminstructions"))
            found.n_rules++;
        if (!scan_begins(name, "trustedcontent") && !scan_begins(name, "untrustedcontent"))
            continue;
        if (is_closing) {
            found.n_closing++;
            found.last_closing = at;
        } else if (found.n_opening++ == 0) {
            found.first_opening = at;
        }
    }
    return found;
}

#endif
