/* SPDX-License-Identifier: Apache-2.0 */

/* What one line of Markdown can start. Nothing here knows about other lines. */

#include "core/markdown/internal.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/text/str.h"

/* ---- columns ------------------------------------------------------------------------------- */

unsigned peg__md_indent(const struct peg__md_cursor *cursor)
{
    unsigned column = cursor->column;

    for (size_t i = cursor->at; i < cursor->end; i++) {
        if (cursor->text[i] == ' ')
            column++;
        else if (cursor->text[i] == '\t')
            column += 4 - column % 4;
        else
            break;
    }
    return column - cursor->column + cursor->spare;
}

void peg__md_skip_columns(struct peg__md_cursor *cursor, unsigned n)
{
    const unsigned spare = n < cursor->spare ? n : cursor->spare;

    cursor->spare -= spare;
    n -= spare;
    while (n > 0 && cursor->at < cursor->end) {
        const char c = cursor->text[cursor->at];
        const unsigned width = c == '\t' ? 4 - cursor->column % 4 : 1;

        if (c != ' ' && c != '\t')
            return;
        cursor->at++;
        cursor->column += width;
        cursor->spare = width > n ? width - n : 0;
        n -= width > n ? n : width;
    }
}

peg_str peg__md_rest(const struct peg__md_cursor *cursor)
{
    size_t at = cursor->at;

    while (at < cursor->end && (cursor->text[at] == ' ' || cursor->text[at] == '\t'))
        at++;
    return peg__strn(cursor->text + at, cursor->end - at);
}

/* ---- headings, fences, breaks -------------------------------------------------------------- */

static char at(peg_str s, size_t i)
{
    return (char)(i < s.len ? s.ptr[i] : '\0');
}

/* How often the byte at i comes in a row. */
static size_t run_len(peg_str s, size_t i)
{
    size_t n = 1;

    while (i + n < s.len && s.ptr[i + n] == s.ptr[i])
        n++;
    return n;
}

static peg_str trim(peg_str s)
{
    while (s.len && peg__md_is_space(s.ptr[0]))
        s = peg__str_from(s, 1);
    while (s.len && peg__md_is_space(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

unsigned peg__md_atx(peg_str rest, peg_str *ret_content)
{
    const size_t depth = at(rest, 0) == '#' ? run_len(rest, 0) : 0;
    peg_str content;
    size_t len;

    if (depth < 1 || depth > 6 || (depth < rest.len && !peg__md_is_space(rest.ptr[depth])))
        return 0;
    content = trim(peg__str_from(rest, depth));
    len = content.len;
    while (len && content.ptr[len - 1] == '#')
        len--;
    /* A closing sequence stands alone: `# C#` is about C#. */
    if (len < content.len && (len == 0 || peg__md_is_space(content.ptr[len - 1])))
        content = trim(peg__strn(content.ptr, len));
    *ret_content = content;
    return (unsigned)depth;
}

char peg__md_underline(peg_str rest)
{
    const char c = at(rest, 0);

    return (char)((c == '=' || c == '-') && run_len(rest, 0) == rest.len ? c : '\0');
}

size_t peg__md_fence(peg_str rest)
{
    const char c = at(rest, 0);
    const size_t len = c == '`' || c == '~' ? run_len(rest, 0) : 0;

    if (len < 3)
        return 0;
    /* Backticks with more of them behind are code within a line. */
    if (c == '`' && memchr(rest.ptr + len, '`', rest.len - len))
        return 0;
    return len;
}

bool peg__md_is_closing_fence(peg_str rest, char marker, size_t len)
{
    return at(rest, 0) == marker && rest.len >= len && run_len(rest, 0) == rest.len;
}

bool peg__md_is_break(peg_str rest)
{
    const char c = at(rest, 0);
    size_t n = 0;

    if (c != '-' && c != '*' && c != '_')
        return false;
    for (size_t i = 0; i < rest.len; i++) {
        if (rest.ptr[i] == c)
            n++;
        else if (rest.ptr[i] != ' ' && rest.ptr[i] != '\t')
            return false;
    }
    return n >= 3;
}

/* ---- tables -------------------------------------------------------------------------------- */

size_t peg__md_cells(peg_str rest)
{
    size_t n_pipes = 0;
    bool ends_with_pipe = false;

    for (size_t i = at(rest, 0) == '|'; i < rest.len; i++) {
        ends_with_pipe = rest.ptr[i] == '|';
        n_pipes += ends_with_pipe;
        i += rest.ptr[i] == '\\';
    }
    return n_pipes + !ends_with_pipe;
}

/* -, :-, -: or :-: with any number of dashes, spaces around. Tells where it ends, 0 if it is none.
 */
static size_t skip_delimiter(peg_str rest, size_t i)
{
    size_t n;

    while (peg__md_is_space(at(rest, i)))
        i++;
    i += at(rest, i) == ':';
    if (at(rest, i) != '-')
        return 0;
    n = run_len(rest, i);
    i += n;
    i += at(rest, i) == ':';
    while (peg__md_is_space(at(rest, i)))
        i++;
    return i;
}

size_t peg__md_delimiter_row(peg_str rest)
{
    size_t i = at(rest, 0) == '|';
    size_t n = 0;

    if (!memchr(rest.ptr, '|', rest.len))
        return 0; /* a line of dashes is something else */
    while (i < rest.len) {
        i = skip_delimiter(rest, i);
        if (i == 0 || (i < rest.len && rest.ptr[i] != '|'))
            return 0;
        i++;
        n++;
    }
    return n;
}

/* ---- lists --------------------------------------------------------------------------------- */

size_t peg__md_list_marker(peg_str rest, struct peg__md_marker *ret_marker)
{
    struct peg__md_marker marker = {.type = at(rest, 0), .len = 1};

    if (marker.type >= '0' && marker.type <= '9') {
        size_t i = 0;

        for (; i < 9 && at(rest, i) >= '0' && at(rest, i) <= '9'; i++)
            marker.number = marker.number * 10 + (uint32_t)(rest.ptr[i] - '0');
        marker.type = at(rest, i);
        marker.len = i + 1;
        if (marker.type != '.' && marker.type != ')')
            return 0;
    } else if (marker.type != '-' && marker.type != '+' && marker.type != '*') {
        return 0;
    }
    if (marker.len < rest.len && !peg__md_is_space(rest.ptr[marker.len]))
        return 0;
    *ret_marker = marker;
    return marker.len;
}

/* ---- HTML ---------------------------------------------------------------------------------- */

static bool starts_nocase(peg_str s, const char *prefix)
{
    const size_t len = strlen(prefix);

    return s.len >= len && strncasecmp(s.ptr, prefix, len) == 0;
}

/* One of the names, separated by spaces, and then no more letters? */
static bool has_name(peg_str s, const char *names)
{
    char name[12] = "";
    size_t len = 0;

    while (len < s.len && peg__md_is_alnum(s.ptr[len]))
        len++;
    if (len == 0 || len + 2 > sizeof(name) - 1)
        return false;
    name[0] = ' ';
    for (size_t i = 0; i < len; i++)
        name[i + 1] = peg__to_lower(s.ptr[i]);
    name[len + 1] = ' ';
    return strstr(names, name);
}

static bool is_block_tag(peg_str rest)
{
    static const char names[] =
        " address article aside base basefont blockquote body caption center col colgroup dd "
        "details dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 "
        "h3 h4 h5 h6 head header hr html iframe legend li link main menu menuitem nav noframes ol "
        "optgroup option p param search section summary table tbody td tfoot th thead title tr "
        "track ul ";

    return has_name(peg__str_from(rest, at(rest, 1) == '/' ? 2 : 1), names);
}

/* A tag and nothing else. */
static bool is_lone_tag(peg_str rest)
{
    struct peg__md_scan scan = {.text = rest};

    return peg__md_scan_html(&scan) && scan.at == rest.len;
}

unsigned peg__md_html(peg_str rest)
{
    if (at(rest, 0) != '<')
        return 0;
    if (has_name(peg__str_from(rest, 1), " script pre style textarea "))
        return 1;
    if (starts_nocase(rest, "<!--"))
        return 2;
    if (at(rest, 1) == '?')
        return 3;
    if (starts_nocase(rest, "<![CDATA["))
        return 5;
    if (at(rest, 1) == '!' && peg__md_is_alnum(at(rest, 2)))
        return 4;
    if (is_block_tag(rest))
        return 6;
    return is_lone_tag(rest) ? 7 : 0;
}

static bool contains(peg_str s, const char *part)
{
    return s.len && memmem(s.ptr, s.len, part, strlen(part));
}

static bool ends_raw_text(peg_str rest)
{
    for (size_t i = 0; i + 1 < rest.len; i++)
        if (rest.ptr[i] == '<' && rest.ptr[i + 1] == '/' &&
            has_name(peg__str_from(rest, i + 2), " script pre style textarea "))
            return true;
    return false;
}

bool peg__md_html_ends(peg_str rest, unsigned kind)
{
    static const char *const ends[] = {[2] = "-->", [3] = "?>", [4] = ">", [5] = "]]>"};

    if (kind == 1)
        return ends_raw_text(rest);
    return kind <= 5 && contains(rest, ends[kind]);
}
