/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/terminal/terminal.h"

#include <string.h>

#include "base/text/str.h"

/* The length of the string that starts here, both quotes included. */
static size_t measure_string(peg_str text)
{
    size_t at = 1;

    while (at < text.len && text.ptr[at] != '"')
        at += text.ptr[at] == '\\' ? 2 : 1;
    return at < text.len ? at + 1 : text.len;
}

/* What stands between two strings: punctuation, white space, numbers, true, false, null. */
static size_t measure_rest(peg_str text)
{
    const char *quote = memchr(text.ptr, '"', text.len);

    return quote ? (size_t)(quote - text.ptr) : text.len;
}

static void put_json_string(struct peg__buf *out, const struct cli_style *style, peg_str string,
                            bool is_name)
{
    peg__buf_puts(out, is_name ? style->bold : style->good);
    cli_put_safe(out, string);
    peg__buf_puts(out, style->off);
}

/* Line ends and tabs are the layout; no other control character is in valid JSON outside strings.
 */
void cli_put_json(struct peg__buf *out, const struct cli_style *style, peg_str json)
{
    while (json.len) {
        const bool is_string = json.ptr[0] == '"';
        const size_t len = is_string ? measure_string(json) : measure_rest(json);
        const peg_str piece = peg__strn(json.ptr, len);

        json = peg__str_from(json, len);
        if (is_string)
            put_json_string(out, style, piece, json.len && json.ptr[0] == ':');
        else
            peg__buf_str(out, piece);
    }
}
