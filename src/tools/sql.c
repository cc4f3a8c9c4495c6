/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/sql.h"

#include "base/mem.h"
#include "base/text/str.h"

/* ---- tokens ------------------------------------------------------------------------------ */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r' && c != '\v');
}

/* Letters are all of ASCII's and every byte of other characters. */
static bool is_letter(char c)
{
    const char lower = (char)(c | 0x20);

    return (lower >= 'a' && lower <= 'z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_word_char(char c)
{
    return is_letter(c) || peg__is_digit(c) || c == '$';
}

static bool has(peg_str s, size_t at, char c)
{
    return at < s.len && s.ptr[at] == c;
}

/* Bytes of a comment at the start, 0 if there is none. One without an end goes to the end. */
static size_t comment_len(peg_str s)
{
    size_t at = 2;

    if (has(s, 0, '-') && has(s, 1, '-')) {
        while (at < s.len && s.ptr[at] != '\n')
            at++;
        return at;
    }
    if (!has(s, 0, '/') || !has(s, 1, '*'))
        return 0;
    while (at < s.len && !(has(s, at, '*') && has(s, at + 1, '/')))
        at++;
    return at < s.len ? at + 2 : s.len;
}

/* Of the space, the byte order mark or the comment at the start: SQLite skips all of them. */
static size_t space_len(peg_str s)
{
    static const peg_str mark = PEG_LIT("\xEF\xBB\xBF");

    if (is_space(s.ptr[0]))
        return 1;
    return peg__str_starts(s, mark) ? mark.len : comment_len(s);
}

static peg_str skip_space(peg_str s)
{
    while (s.len) {
        const size_t len = space_len(s);

        if (len == 0)
            break;
        s = peg__str_from(s, len);
    }
    return s;
}

static char closing_quote(char c)
{
    if (c == '[')
        return ']';
    if (c == '\'' || c == '"' || c == '`')
        return c;
    return '\0';
}

/* A doubled quote stands for itself, but not in brackets. */
static size_t quoted_len(peg_str s, char quote)
{
    for (size_t at = 1; at < s.len; at++) {
        if (s.ptr[at] != quote)
            continue;
        if (quote == ']' || !has(s, at + 1, quote))
            return at + 1;
        at++;
    }
    return s.len;
}

/* $name, @name, :name and #name; a name may go on with :: and end with (anything). */
static size_t parameter_len(peg_str s)
{
    size_t at = 1;

    while (at < s.len) {
        if (is_word_char(s.ptr[at])) {
            at++;
        } else if (s.ptr[at] == '(' && at > 1) {
            while (at < s.len && !is_space(s.ptr[at]) && s.ptr[at] != ')')
                at++;
            return at < s.len ? at + 1 : at;
        } else if (has(s, at, ':') && has(s, at + 1, ':')) {
            at += 2;
        } else {
            break;
        }
    }
    return at;
}

static size_t word_len(peg_str s)
{
    size_t at = 1;

    while (at < s.len && is_word_char(s.ptr[at]))
        at++;
    return at;
}

static size_t number_len(peg_str s)
{
    size_t at = 1;

    while (at < s.len && (is_word_char(s.ptr[at]) || s.ptr[at] == '.'))
        at++;
    return at;
}

static size_t token_len(peg_str s, enum peg__sql_kind *ret_kind)
{
    const char c = s.ptr[0];
    const char quote = closing_quote(c);

    *ret_kind = PEG__SQL_OTHER;
    if (quote) {
        *ret_kind = PEG__SQL_QUOTED;
        return quoted_len(s, quote);
    }
    if (c == '$' || c == '@' || c == ':' || c == '#')
        return parameter_len(s);
    if (peg__is_digit(c))
        return number_len(s);
    if (!is_letter(c))
        return 1;
    *ret_kind = PEG__SQL_WORD;
    return word_len(s);
}

bool peg__sql_next(peg_str *rest, unsigned *depth, struct peg__sql_token *ret_token)
{
    const peg_str s = skip_space(*rest);
    size_t len;

    *rest = s;
    if (s.len == 0)
        return false;
    len = token_len(s, &ret_token->kind);
    ret_token->text = peg__strn(s.ptr, len);
    if (s.ptr[0] == ')' && *depth)
        --*depth;
    ret_token->depth = *depth;
    if (s.ptr[0] == '(')
        ++*depth;
    *rest = peg__str_from(s, len);
    return true;
}

/* ---- names ---------------------------------------------------------------------------------- */

bool peg__sql_names_equal(peg_str a, peg_str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++) {
        if (peg__to_lower(a.ptr[i]) != peg__to_lower(b.ptr[i]))
            return false;
    }
    return true;
}

bool peg__sql_is_name(const struct peg__sql_token *token, peg_str name)
{
    const peg_str text = token->text;
    const char quote = closing_quote(text.ptr[0]);
    size_t n = 0;

    if (token->kind == PEG__SQL_OTHER)
        return false;
    if (!quote)
        return peg__sql_names_equal(text, name);
    for (size_t i = 1; i < text.len; i++) {
        if (text.ptr[i] == quote) {
            if (!has(text, i + 1, quote) || quote == ']')
                break;
            i++;
        }
        if (n >= name.len || peg__to_lower(text.ptr[i]) != peg__to_lower(name.ptr[n]))
            return false;
        n++;
    }
    return n == name.len;
}

static bool is_word(const struct peg__sql *sql, size_t at, const char *word)
{
    return at < sql->n_tokens && sql->tokens[at].kind == PEG__SQL_WORD &&
           peg__sql_names_equal(sql->tokens[at].text, peg__str(word));
}

static bool is_char(const struct peg__sql *sql, size_t at, char c)
{
    return at < sql->n_tokens && sql->tokens[at].text.ptr[0] == c;
}

/* ---- what a query says ---- */

/* AS [[NOT] MATERIALIZED] ( */
static bool opens_body(const struct peg__sql *sql, size_t at)
{
    if (!is_word(sql, at, "as"))
        return false;
    at++;
    if (is_word(sql, at, "not"))
        at++;
    if (is_word(sql, at, "materialized"))
        at++;
    return is_char(sql, at, '(');
}

/* The name before an AS, with or without a list of columns between them; NULL if there is none. */
static const struct peg__sql_token *name_before(const struct peg__sql *sql, size_t as)
{
    size_t at = as;

    if (at == 0)
        return NULL;
    at--;
    if (is_char(sql, at, ')')) {
        const unsigned depth = sql->tokens[at].depth;

        while (at > 0 && !(is_char(sql, at, '(') && sql->tokens[at].depth == depth))
            at--;
        if (at == 0)
            return NULL;
        at--;
    }
    return sql->tokens[at].kind == PEG__SQL_OTHER ? NULL : &sql->tokens[at];
}

static peg_status find_names(struct peg__sql *sql)
{
    for (size_t i = 0; i < sql->n_tokens; i++) {
        const struct peg__sql_token *name = opens_body(sql, i) ? name_before(sql, i) : NULL;

        if (is_word(sql, i, "order") && sql->tokens[i].depth == 0 && is_word(sql, i + 1, "by"))
            sql->is_ordered = true;
        if (!name)
            continue;
        if (!PEG__RESERVE(sql->names, sql->n_names + 1, sql->names_capacity))
            return PEG_ENOMEM;
        sql->names[sql->n_names++] = name;
    }
    return PEG_OK;
}

static peg_status find_tokens(struct peg__sql *sql, peg_str text)
{
    unsigned depth = 0;
    struct peg__sql_token token;

    while (peg__sql_next(&text, &depth, &token)) {
        if (!PEG__RESERVE(sql->tokens, sql->n_tokens + 1, sql->capacity))
            return PEG_ENOMEM;
        sql->tokens[sql->n_tokens++] = token;
    }
    return PEG_OK;
}

peg_status peg__sql_read(peg_str text, struct peg__sql *ret_sql)
{
    struct peg__sql sql = {0};
    peg_status status = find_tokens(&sql, text);

    if (!status)
        status = find_names(&sql);
    if (status)
        peg__sql_free(&sql);
    else
        *ret_sql = sql;
    return status;
}

void peg__sql_free(struct peg__sql *sql)
{
    peg__free(sql->tokens);
    peg__free(sql->names);
    *sql = (struct peg__sql){0};
}

bool peg__sql_gives_name(const struct peg__sql *sql, peg_str name)
{
    for (size_t i = 0; i < sql->n_names; i++) {
        if (peg__sql_is_name(sql->names[i], name))
            return true;
    }
    return false;
}

bool peg__sql_is_blank(peg_str text)
{
    unsigned depth = 0;
    struct peg__sql_token token;

    while (peg__sql_next(&text, &depth, &token)) {
        if (token.text.ptr[0] != ';')
            return false;
    }
    return true;
}
