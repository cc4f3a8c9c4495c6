/* SPDX-License-Identifier: Apache-2.0 */

/* The text has been parsed before, so this scanner believes what it sees; it still never reads
 * beyond the end. */

#include "json/parse/locate.h"

#include "base/text/str.h"

/* ---- tokens of a pointer ---------------------------------------------------------------- */

bool peg__pointer_next(peg_str *pointer, peg_str *ret_token)
{
    size_t end = 1;

    if (!pointer->len || pointer->ptr[0] != '/')
        return false;
    while (end < pointer->len && pointer->ptr[end] != '/')
        end++;
    *ret_token = peg__strn(pointer->ptr + 1, end - 1);
    *pointer = peg__str_from(*pointer, end);
    return true;
}

bool peg__pointer_is_name(peg_str token, peg_str name)
{
    size_t n = 0;

    for (size_t i = 0; i < token.len; i++, n++) {
        char c = token.ptr[i];

        if (c == '~' && i + 1 < token.len)
            c = token.ptr[++i] == '1' ? '/' : '~';
        if (n >= name.len || name.ptr[n] != c)
            return false;
    }
    return n == name.len;
}

size_t peg__pointer_index(peg_str token)
{
    size_t index = 0;

    if (!token.len || token.len > 9)
        return SIZE_MAX;
    for (size_t i = 0; i < token.len; i++) {
        if (token.ptr[i] < '0' || token.ptr[i] > '9')
            return SIZE_MAX;
        index = index * 10 + (size_t)(token.ptr[i] - '0');
    }
    return index;
}

/* ---- the text --------------------------------------------------------------------------- */

struct scanner {
    peg_str text;
    size_t at;
};

static char look(const struct scanner *s)
{
    return (char)(s->at < s->text.len ? s->text.ptr[s->at] : '\0');
}

static void skip_space(struct scanner *s)
{
    while (look(s) == ' ' || look(s) == '\t' || look(s) == '\n' || look(s) == '\r')
        s->at++;
}

/* Behind the next ',' or ':', and the space around it. */
static void skip_past(struct scanner *s)
{
    skip_space(s);
    s->at++;
    skip_space(s);
}

static void skip_string(struct scanner *s)
{
    s->at++;
    while (s->at < s->text.len && look(s) != '"')
        s->at += look(s) == '\\' ? 2 : 1;
    s->at++;
}

static void skip_value(struct scanner *s)
{
    size_t depth = 0;

    do {
        const char c = look(s);

        if (c == '"') {
            skip_string(s);
            continue;
        }
        if (c == '{' || c == '[')
            depth++;
        else if (c == '}' || c == ']')
            depth--;
        s->at++;
    } while (s->at < s->text.len &&
             (depth || (look(s) != ',' && look(s) != '}' && look(s) != ']')));
}

/* The name is quoted text; only one with escapes has to be read. */
static bool is_named(peg_str quoted, peg_str token)
{
    const peg_str raw = peg__strn(quoted.ptr + 1, quoted.len - 2);
    peg_json_doc *doc = NULL;
    bool is_same;

    if (!memchr(raw.ptr, '\\', raw.len))
        return peg__pointer_is_name(token, raw);
    if (peg_json_parse(quoted, NULL, &doc, NULL))
        return false;
    is_same = peg__pointer_is_name(token, peg_json_str(peg_json_root(doc)));
    peg_json_doc_free(doc);
    return is_same;
}

/* From '{' or '[' to the value of a token within; false if there is none. */
static bool enter(struct scanner *s, peg_str token)
{
    const bool is_object = look(s) == '{';
    const char end = (char)(is_object ? '}' : ']');
    size_t index = is_object ? 0 : peg__pointer_index(token);

    if (!is_object && (look(s) != '[' || index == SIZE_MAX))
        return false;
    for (skip_past(s); s->at < s->text.len && look(s) != end;) {
        if (is_object) {
            const size_t start = s->at;

            skip_string(s);
            if (s->at > s->text.len)
                return false;
            index = !is_named(peg__strn(s->text.ptr + start, s->at - start), token);
            skip_past(s);
        }
        if (index-- == 0)
            return true;
        skip_value(s);
        skip_space(s);
        if (look(s) == ',')
            skip_past(s);
    }
    return false;
}

size_t peg__json_locate(peg_str text, peg_str pointer)
{
    struct scanner s = {text, 0};
    size_t found;
    peg_str token;

    skip_space(&s);
    found = s.at;
    while (peg__pointer_next(&pointer, &token) && enter(&s, token))
        found = s.at;
    return found < text.len ? found : text.len;
}
