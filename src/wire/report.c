/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/report.h"

#include <string.h>

#include "base/text/str.h"

/* "and 7 more" is 7, any other line 1. */
static size_t count_line(peg_str line)
{
    static const peg_str first = PEG_LIT("and ");
    size_t n = 0;
    size_t at = first.len;

    if (!peg__str_starts(line, first))
        return 1;
    for (; at < line.len && line.ptr[at] >= '0' && line.ptr[at] <= '9'; at++)
        n = n * 10 + (size_t)(line.ptr[at] - '0');
    return at > first.len && peg__str_is(peg__str_from(line, at), " more") ? n : 1;
}

size_t wire_report_count(peg_str lines)
{
    size_t n = 0;

    while (lines.len) {
        const char *end = memchr(lines.ptr, '\n', lines.len);
        const size_t len = end ? (size_t)(end - lines.ptr) : lines.len;

        n += count_line(peg__strn(lines.ptr, len));
        lines = peg__str_from(lines, end ? len + 1 : len);
    }
    return n;
}
