/* SPDX-License-Identifier: Apache-2.0 */

/* The parts of links and of HTML, as CommonMark 0.31 has them. See the header for how time is kept
 * linear. */

#include "core/markdown/internal.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/text/str.h"

enum {
    MAX_LABEL = 999,
    /* Inside each other in a URL. Looking ahead from each `](` of many ends after as many. */
    MAX_PARENTHESES = 8,
    MAX_SCHEME = 32,
};

static char peek(const struct peg__md_scan *s, size_t i)
{
    return (char)(s->at + i < s->text.len ? s->text.ptr[s->at + i] : '\0');
}

static bool is_over(const struct peg__md_scan *s)
{
    return s->at >= s->text.len;
}

/* Ends every function: counts, and goes back if it failed. */
static bool settle_scan(struct peg__md_scan *s, size_t start, bool ok)
{
    s->n_steps += s->at - start + 1;
    if (!ok)
        s->at = start;
    return ok;
}

static peg_str since(const struct peg__md_scan *s, size_t start)
{
    return peg__strn(s->text.ptr + start, s->at - start);
}

static void skip_spaces(struct peg__md_scan *s)
{
    while (!is_over(s) && peg__md_is_space(s->text.ptr[s->at]))
        s->at++;
}

/* Spaces and at most one line end. */
static void skip_gap(struct peg__md_scan *s)
{
    skip_spaces(s);
    if (peek(s, 0) == '\n') {
        s->at++;
        skip_spaces(s);
    }
}

/* ---- links --------------------------------------------------------------------------------- */

bool peg__md_scan_label(struct peg__md_scan *s, peg_str *ret_label)
{
    const size_t start = s->at;
    bool has_letter = false;

    if (peek(s, 0) != '[')
        return false;
    for (s->at++; !is_over(s) && s->at - start <= MAX_LABEL + 1; s->at++) {
        const char c = peek(s, 0);

        if (c == ']') {
            const peg_str label = peg__strn(s->text.ptr + start + 1, s->at - start - 1);

            s->at++;
            if (has_letter)
                *ret_label = label;
            return settle_scan(s, start, has_letter);
        }
        if (c == '[')
            break;
        has_letter = has_letter || (!peg__md_is_space(c) && c != '\n');
        if (c == '\\' && peg__md_is_punctuation(peek(s, 1)))
            s->at++;
    }
    return settle_scan(s, start, false);
}

/* <between angle brackets> */
static bool scan_angle_url(struct peg__md_scan *s, peg_str *ret_url)
{
    const size_t start = ++s->at;

    for (; !is_over(s) && !strchr("<>\n", peek(s, 0)); s->at++)
        if (peek(s, 0) == '\\' && peg__md_is_punctuation(peek(s, 1)))
            s->at++;
    if (peek(s, 0) != '>')
        return false;
    *ret_url = since(s, start);
    s->at++;
    return true;
}

/* Without spaces, parentheses balanced; one too many ends it. */
static bool scan_plain_url(struct peg__md_scan *s, peg_str *ret_url)
{
    const size_t start = s->at;
    unsigned depth = 0;

    for (; !is_over(s) && (unsigned char)peek(s, 0) > ' '; s->at++) {
        const char c = peek(s, 0);

        if (c == ')' && depth == 0)
            break;
        if (c == '(' && depth == MAX_PARENTHESES)
            return false;
        depth += c == '(';
        depth -= c == ')';
        if (c == '\\' && peg__md_is_punctuation(peek(s, 1)))
            s->at++;
    }
    *ret_url = since(s, start);
    return depth == 0;
}

static bool scan_url(struct peg__md_scan *s, peg_str *ret_url)
{
    const size_t start = s->at;

    return settle_scan(s, start,
                       peek(s, 0) == '<' ? scan_angle_url(s, ret_url) : scan_plain_url(s, ret_url));
}

/* "..." or '...' or (...), without a blank line. */
static bool scan_title(struct peg__md_scan *s, peg_str *ret_title)
{
    const size_t start = s->at;
    const char open = peek(s, 0);
    const char close = (char)(open == '(' ? ')' : open);

    if (open != '"' && open != '\'' && open != '(')
        return false;
    for (s->at++; !is_over(s); s->at++) {
        const char c = peek(s, 0);

        if (c == close) {
            *ret_title = peg__strn(s->text.ptr + start + 1, s->at - start - 1);
            s->at++;
            return settle_scan(s, start, true);
        }
        if ((c == '(' && open == '(') || (c == '\n' && peek(s, 1) == '\n'))
            break;
        if (c == '\\' && peg__md_is_punctuation(peek(s, 1)))
            s->at++;
    }
    return settle_scan(s, start, false);
}

bool peg__md_scan_target(struct peg__md_scan *s, peg_str *ret_url, peg_str *ret_title)
{
    const size_t start = s->at;
    peg_str url = {"", 0};
    peg_str title = {NULL, 0};
    size_t before;

    if (peek(s, 0) != '(')
        return false;
    s->at++;
    skip_gap(s);
    if (!scan_url(s, &url))
        return settle_scan(s, start, false);
    before = s->at;
    skip_gap(s);
    if (s->at > before && scan_title(s, &title))
        skip_gap(s);
    if (peek(s, 0) != ')')
        return settle_scan(s, start, false);
    s->at++;
    *ret_url = url;
    *ret_title = title;
    return settle_scan(s, start, true);
}

/* Nothing but spaces up to the end of the line, which is taken. */
static bool end_line(struct peg__md_scan *s)
{
    skip_spaces(s);
    if (!is_over(s) && peek(s, 0) != '\n')
        return false;
    s->at += !is_over(s);
    return true;
}

/* The title may stand in the next line, but if it is none, that line is not the definition's. */
static bool end_definition(struct peg__md_scan *s, peg_str *ret_title)
{
    const size_t url_end = s->at;
    peg_str title;

    skip_gap(s);
    if (s->at > url_end && scan_title(s, &title) && end_line(s)) {
        *ret_title = title;
        return true;
    }
    s->at = url_end;
    return end_line(s);
}

bool peg__md_scan_definition(struct peg__md_scan *s, peg_str *ret_label, peg_str *ret_url,
                             peg_str *ret_title)
{
    const size_t start = s->at;
    peg_str label;
    peg_str url = {"", 0};
    peg_str title = {NULL, 0};
    size_t before;

    if (!peg__md_scan_label(s, &label) || peek(s, 0) != ':')
        return settle_scan(s, start, false);
    s->at++;
    skip_gap(s);
    before = s->at;
    if (is_over(s) || !scan_url(s, &url) || s->at == before || !end_definition(s, &title))
        return settle_scan(s, start, false);
    *ret_label = label;
    *ret_url = url;
    *ret_title = title;
    return settle_scan(s, start, true);
}

/* ---- autolinks ----------------------------------------------------------------------------- */

/* The letters of a scheme and its colon. */
static bool scan_scheme(struct peg__md_scan *s)
{
    const size_t start = s->at;

    if (!peg__md_is_alnum(peek(s, 0)) || peek(s, 0) <= '9')
        return false;
    while (peg__md_is_alnum(peek(s, 0)) || (peek(s, 0) && strchr("+.-", peek(s, 0))))
        s->at++;
    return peek(s, 0) == ':' && s->at - start >= 2 && s->at - start <= MAX_SCHEME;
}

/* name@host.tld: something before and something behind the one @. */
static bool is_email(peg_str s)
{
    const char *sign = memchr(s.ptr, '@', s.len);
    const size_t n_before = sign ? (size_t)(sign - s.ptr) : 0;

    if (n_before == 0 || n_before + 1 == s.len)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];

        if (!peg__md_is_alnum(c) && c != '.' && c != '-' && i != n_before &&
            (i > n_before || !strchr("!#$%&'*+/=?^_`{|}~", c)))
            return false;
    }
    return true;
}

bool peg__md_scan_autolink(struct peg__md_scan *s, peg_str *ret_url, bool *ret_is_email)
{
    const size_t start = s->at;
    peg_str url;
    bool has_scheme;

    if (peek(s, 0) != '<')
        return false;
    s->at++;
    has_scheme = scan_scheme(s);
    while ((unsigned char)peek(s, 0) > ' ' && peek(s, 0) != '<' && peek(s, 0) != '>')
        s->at++;
    url = since(s, start + 1);
    if (peek(s, 0) != '>' || (!has_scheme && !is_email(url)))
        return settle_scan(s, start, false);
    s->at++;
    *ret_url = url;
    *ret_is_email = !has_scheme;
    return settle_scan(s, start, true);
}

/* What stands behind a URL in a sentence is not part of it. */
static peg_str trim_url(peg_str url)
{
    size_t n_open = 0;
    size_t n_close = 0;

    for (size_t i = 0; i < url.len; i++) {
        n_open += url.ptr[i] == '(';
        n_close += url.ptr[i] == ')';
    }
    while (url.len) {
        const char c = url.ptr[url.len - 1];

        if (c == ')' && n_close > n_open)
            n_close--;
        else if (!strchr("?!.,:;*_~'", c))
            break;
        url.len--;
    }
    return url;
}

bool peg__md_scan_bare_url(struct peg__md_scan *s, peg_str *ret_url)
{
    static const peg_str starts[] = {PEG_LIT("https://"), PEG_LIT("http://"), PEG_LIT("www.")};
    const size_t start = s->at;
    const peg_str rest = peg__str_from(s->text, start);
    size_t n_start = 0;
    peg_str url;

    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]) && !n_start; i++)
        if (peg__str_starts(rest, starts[i]))
            n_start = starts[i].len;
    if (n_start == 0)
        return false;
    while ((unsigned char)peek(s, 0) > ' ' && !strchr("<>[]|`\"", peek(s, 0)))
        s->at++;
    url = trim_url(since(s, start));
    /* A host has a letter at least. */
    if (url.len <= n_start || peg__md_is_punctuation(url.ptr[n_start]))
        return settle_scan(s, start, false);
    s->n_steps += s->at - start;
    s->at = start + url.len;
    *ret_url = url;
    return settle_scan(s, start, true);
}

/* ---- HTML ---------------------------------------------------------------------------------- */

static bool skip_space_of_tag(struct peg__md_scan *s)
{
    const size_t start = s->at;

    while (!is_over(s) && (peg__md_is_space(peek(s, 0)) || peek(s, 0) == '\n'))
        s->at++;
    return s->at > start;
}

static bool scan_value(struct peg__md_scan *s)
{
    const char quote = peek(s, 0);
    const size_t start = s->at;

    if (quote == '"' || quote == '\'') {
        const char *end = memchr(s->text.ptr + s->at + 1, quote, s->text.len - s->at - 1);

        s->at = end ? (size_t)(end - s->text.ptr) + 1 : s->text.len;
        return end;
    }
    while ((unsigned char)peek(s, 0) > ' ' && !strchr("\"'=<>`", peek(s, 0)))
        s->at++;
    return s->at > start;
}

/* name, name=value, name = "value" */
static bool scan_attribute(struct peg__md_scan *s)
{
    const size_t start = s->at;
    size_t name_end;

    while (peg__md_is_alnum(peek(s, 0)) || (peek(s, 0) && strchr("_:.-", peek(s, 0))))
        s->at++;
    if (s->at == start)
        return false;
    name_end = s->at;
    skip_space_of_tag(s);
    if (peek(s, 0) != '=') {
        s->at = name_end;
        return true;
    }
    s->at++;
    skip_space_of_tag(s);
    return scan_value(s);
}

static bool scan_tag(struct peg__md_scan *s)
{
    const bool is_closing = peek(s, 1) == '/';

    s->at += 1 + is_closing;
    if (!peg__md_is_alnum(peek(s, 0)) || peek(s, 0) <= '9')
        return false;
    while (peg__md_is_alnum(peek(s, 0)) || peek(s, 0) == '-')
        s->at++;
    while (skip_space_of_tag(s) && !is_closing && peek(s, 0) != '/' && peek(s, 0) != '>')
        if (!scan_attribute(s))
            return false;
    if (!is_closing && peek(s, 0) == '/')
        s->at++;
    if (peek(s, 0) != '>')
        return false;
    s->at++;
    return true;
}

/* Up to an end that need not come: whether it does is found out once. */
static bool scan_until(struct peg__md_scan *s, unsigned kind, const char *end)
{
    const char *found;

    if (s->lacks & kind)
        return false;
    found = memmem(s->text.ptr + s->at, s->text.len - s->at, end, strlen(end));
    if (!found) {
        s->n_steps += s->text.len - s->at;
        s->lacks |= kind;
        return false;
    }
    s->at = (size_t)(found - s->text.ptr) + strlen(end);
    return true;
}

static bool scan_special(struct peg__md_scan *s)
{
    static const peg_str comment = PEG_LIT("<!--");
    static const peg_str cdata = PEG_LIT("<![CDATA[");
    const peg_str rest = peg__str_from(s->text, s->at);

    if (peek(s, 1) == '?') {
        s->at += 2;
        return scan_until(s, 1, "?>");
    }
    if (peg__str_starts(rest, comment)) {
        s->at += 2; /* <!--> is one, too */
        return scan_until(s, 2, "-->");
    }
    if (peg__str_starts(rest, cdata)) {
        s->at += cdata.len;
        return scan_until(s, 4, "]]>");
    }
    return peg__md_is_alnum(peek(s, 2)) && scan_until(s, 8, ">");
}

bool peg__md_scan_html(struct peg__md_scan *s)
{
    const size_t start = s->at;

    if (peek(s, 0) != '<')
        return false;
    if (peek(s, 1) == '?' || peek(s, 1) == '!')
        return settle_scan(s, start, scan_special(s));
    return settle_scan(s, start, scan_tag(s));
}

/* ---- characters ---------------------------------------------------------------------------- */

/* &#35; or &#x23; with up to 7 or 6 digits. */
static size_t numeric_entity(peg_str s, struct peg__buf *out)
{
    const bool is_hex = s.len > 2 && (s.ptr[2] | 0x20) == 'x';
    const size_t start = is_hex ? 3 : 2;
    const size_t max = start + (is_hex ? 6 : 7);
    unsigned long c = 0;
    size_t i = start;

    for (; i < s.len && i < max; i++) {
        const int digit = peg__hex_value(s.ptr[i]);

        if (digit < 0 || (!is_hex && digit > 9))
            break;
        c = c * (is_hex ? 16 : 10) + (unsigned long)digit;
    }
    if (i == start || i >= s.len || s.ptr[i] != ';')
        return 0;
    if (c == 0 || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
        c = 0xFFFD;
    if (out)
        peg__buf_utf8(out, (uint32_t)c);
    return i + 1;
}

/* Those that documents have; others stay as they are written. */
static const struct {
    peg_str name;
    const char *text;
} entities[] = {
    {PEG_LIT("&amp;"), "&"},        {PEG_LIT("&lt;"), "<"},
    {PEG_LIT("&gt;"), ">"},         {PEG_LIT("&quot;"), "\""},
    {PEG_LIT("&apos;"), "'"},       {PEG_LIT("&nbsp;"), "\u00A0"},
    {PEG_LIT("&copy;"), "\u00A9"},  {PEG_LIT("&reg;"), "\u00AE"},
    {PEG_LIT("&trade;"), "\u2122"}, {PEG_LIT("&hellip;"), "\u2026"},
    {PEG_LIT("&ndash;"), "\u2013"}, {PEG_LIT("&mdash;"), "\u2014"},
    {PEG_LIT("&lsquo;"), "\u2018"}, {PEG_LIT("&rsquo;"), "\u2019"},
    {PEG_LIT("&ldquo;"), "\u201C"}, {PEG_LIT("&rdquo;"), "\u201D"},
    {PEG_LIT("&laquo;"), "\u00AB"}, {PEG_LIT("&raquo;"), "\u00BB"},
    {PEG_LIT("&bull;"), "\u2022"},  {PEG_LIT("&middot;"), "\u00B7"},
    {PEG_LIT("&times;"), "\u00D7"}, {PEG_LIT("&deg;"), "\u00B0"},
    {PEG_LIT("&rarr;"), "\u2192"},  {PEG_LIT("&larr;"), "\u2190"},
};

size_t peg__md_entity(peg_str s, struct peg__buf *out)
{
    if (s.len < 2)
        return 0;
    if (s.ptr[1] == '#')
        return numeric_entity(s, out);
    for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++) {
        if (s.ptr[1] != entities[i].name.ptr[1] || !peg__str_starts(s, entities[i].name))
            continue;
        if (out)
            peg__buf_puts(out, entities[i].text);
        return entities[i].name.len;
    }
    return 0;
}

void peg__md_unescape(peg_str s, struct peg__buf *out)
{
    for (size_t i = 0; i < s.len;) {
        const size_t n_entity = s.ptr[i] == '&' ? peg__md_entity(peg__str_from(s, i), out) : 0;

        if (n_entity) {
            i += n_entity;
            continue;
        }
        if (s.ptr[i] == '\\' && i + 1 < s.len && peg__md_is_punctuation(s.ptr[i + 1]))
            i++;
        peg__buf_putc(out, s.ptr[i++]);
    }
}
