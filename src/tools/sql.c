/* SPDX-License-Identifier: Apache-2.0 */

/* ---- tokens ------------------------------------------------------------------------------ */

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "tools/sqlite.h"

static bool is_sql_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r' && c != '\v');
}

/* Letters are all of ASCII's and every byte of other characters. */
static bool is_name_start(char c)
{
    const char lower_ascii = (char)(c | 0x20);

    return (lower_ascii >= 'a' && lower_ascii <= 'z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_word_char(char c)
{
    return is_name_start(c) || peg__is_digit(c) || c == '$';
}

static bool has_char(peg_str s, size_t at, char c)
{
    return at < s.len && s.ptr[at] == c;
}

/* Bytes of a comment at the start, 0 if there is none. One without an end goes to the end. */
static size_t comment_len(peg_str s)
{
    size_t at = 2;

    if (has_char(s, 0, '-') && has_char(s, 1, '-')) {
        while (at < s.len && s.ptr[at] != '\n')
            at++;
        return at;
    }
    if (!has_char(s, 0, '/') || !has_char(s, 1, '*'))
        return 0;
    while (at < s.len && !(has_char(s, at, '*') && has_char(s, at + 1, '/')))
        at++;
    return at < s.len ? at + 2 : s.len;
}

/* Of the space, the byte order mark or the comment at the start: SQLite skips all of them. */
static size_t space_len(peg_str s)
{
    static const peg_str mark = PEG_LIT("\xEF\xBB\xBF");

    if (is_sql_space(s.ptr[0]))
        return 1;
    return peg__str_starts(s, mark) ? mark.len : comment_len(s);
}

static peg_str skip_sql_space(peg_str s)
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
        if (quote == ']' || !has_char(s, at + 1, quote))
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
            while (at < s.len && !is_sql_space(s.ptr[at]) && s.ptr[at] != ')')
                at++;
            return at < s.len ? at + 1 : at;
        } else if (has_char(s, at, ':') && has_char(s, at + 1, ':')) {
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
    if (!is_name_start(c))
        return 1;
    *ret_kind = PEG__SQL_WORD;
    return word_len(s);
}

bool peg__sql_next(peg_str *rest, unsigned *depth, struct peg__sql_token *ret_token)
{
    const peg_str s = skip_sql_space(*rest);
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

bool peg__sql_is_reserved(peg_str name)
{
    return name.len >= 7 && (peg__sql_names_equal(peg__strn(name.ptr, 7), peg__str("sqlite_")) ||
                             peg__sql_names_equal(peg__strn(name.ptr, 7), peg__str("pragma_")));
}

/* A name's characters without its quotes, -1 at the end. */
static int next_name_char(const struct peg__sql_token *token, size_t *at)
{
    const peg_str text = token->text;
    char quote = '\0';

    if (token->kind == PEG__SQL_QUOTED)
        quote = closing_quote(text.ptr[0]);
    if (quote && *at == 0)
        *at = 1;
    if (*at >= text.len)
        return -1;
    if (quote && text.ptr[*at] == quote) {
        if (quote == ']' || *at + 1 >= text.len)
            return -1;
        ++*at; /* a doubled one */
    }
    return (unsigned char)text.ptr[(*at)++];
}

static int lower_code(int c)
{
    return peg__is_upper(c) ? c | 0x20 : c;
}

bool peg__sql_is_name(const struct peg__sql_token *token, peg_str name)
{
    size_t at = 0;

    for (size_t i = 0; i < name.len; i++) {
        if (lower_code(next_name_char(token, &at)) != lower_code((unsigned char)name.ptr[i]))
            return false;
    }
    return token->kind != PEG__SQL_OTHER && next_name_char(token, &at) < 0;
}

static bool is_keyword(const struct peg__sql *sql, size_t at, const char *word)
{
    return at < sql->n_tokens && sql->tokens[at].kind == PEG__SQL_WORD &&
           peg__sql_names_equal(sql->tokens[at].text, peg__str(word));
}

static bool is_char_at(const struct peg__sql *sql, size_t at, char c)
{
    return at < sql->n_tokens && sql->tokens[at].text.ptr[0] == c;
}

/* ---- what a query says ---- */

/* AS [[NOT] MATERIALIZED] ( */
static bool opens_body(const struct peg__sql *sql, size_t at)
{
    if (!is_keyword(sql, at, "as"))
        return false;
    at++;
    if (is_keyword(sql, at, "not"))
        at++;
    if (is_keyword(sql, at, "materialized"))
        at++;
    return is_char_at(sql, at, '(');
}

/* The name before an AS, with or without a list of columns between them; NULL if there is none. */
static const struct peg__sql_token *name_before(const struct peg__sql *sql, size_t as)
{
    size_t at = as;

    if (at == 0)
        return NULL;
    at--;
    if (is_char_at(sql, at, ')')) {
        const unsigned depth = sql->tokens[at].depth;

        while (at > 0 && !(is_char_at(sql, at, '(') && sql->tokens[at].depth == depth))
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

        if (is_keyword(sql, i, "order") && sql->tokens[i].depth == 0 &&
            is_keyword(sql, i + 1, "by"))
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

/*
 * ---- the size of a query once SQLite has written out every CTE where it is used ----
 *
 * Fifty of them, each the join of the one before with itself, are a short text and more than any
 * memory: SQLite copies them before it asks anybody or looks at the clock.
 *
 *   peg__sql_size -> find_uses     which body stands where, and what it uses
 *                 -> grow_sizes    sizes, until they do not change any more
 */

/* Of a CTE; the last one is the query itself. */
struct body {
    size_t opens;    /* its parenthesis */
    size_t name;     /* the first body that is called so */
    bool is_only;    /* no other one is */
    size_t n_tokens; /* of its own */
    size_t size;     /* with what it uses */
    size_t next_size;
};

struct use {
    size_t by;
    size_t name;
};

/* What holds between two parentheses. */
struct level {
    size_t body;
    bool is_from; /* in a FROM clause: what follows a comma is a table */
};

struct sizing {
    const struct peg__sql *sql;
    struct body *bodies;
    struct use *uses;
    size_t n_uses;
    struct level *levels;
};

/* ---- words -------------------------------------------------------------------------------- */

static bool is_any_keyword(const struct peg__sql_token *token, const char *const *words)
{
    for (; *words; words++) {
        if (token->kind == PEG__SQL_WORD && peg__sql_names_equal(token->text, peg__str(*words)))
            return true;
    }
    return false;
}

static bool is_char_token(const struct peg__sql_token *token, char c)
{
    return token->kind == PEG__SQL_OTHER && token->text.ptr[0] == c;
}

/* ---- bodies ------------------------------------------------------------------------------- */

/* name [(columns)] AS [NOT] [MATERIALIZED] ( */
static size_t opening_of(const struct peg__sql *sql, const struct peg__sql_token *name)
{
    static const char *const as[] = {"as", NULL};
    size_t at = (size_t)(name - sql->tokens) + 1;

    while (at < sql->n_tokens &&
           !(sql->tokens[at].depth == name->depth && is_any_keyword(&sql->tokens[at], as)))
        at++;
    while (at < sql->n_tokens && !is_char_token(&sql->tokens[at], '('))
        at++;
    return at;
}

static bool is_same_name(const struct peg__sql_token *a, const struct peg__sql_token *b)
{
    size_t at = 0;
    size_t bt = 0;
    int c;

    do {
        c = lower_code(next_name_char(a, &at));
        if (c != lower_code(next_name_char(b, &bt)))
            return false;
    } while (c >= 0);
    return true;
}

/* The first body of that name, or how many there are. */
static size_t find_body(const struct peg__sql *sql, const struct peg__sql_token *name)
{
    size_t i = 0;

    while (i < sql->n_names && !is_same_name(sql->names[i], name))
        i++;
    return i;
}

static void find_bodies(struct sizing *s)
{
    for (size_t i = 0; i < s->sql->n_names; i++) {
        struct body *body = &s->bodies[i];

        body->opens = opening_of(s->sql, s->sql->names[i]);
        body->name = find_body(s->sql, s->sql->names[i]);
        body->is_only = true;
        if (body->name != i)
            body->is_only = s->bodies[body->name].is_only = false;
    }
}

/* ---- uses --------------------------------------------------------------------------------- */

static void enter_level(struct sizing *s, size_t at, bool is_table)
{
    const unsigned depth = s->sql->tokens[at].depth;
    struct level *level = &s->levels[depth + 1];

    *level = (struct level){.body = s->levels[depth].body, .is_from = is_table};
    for (size_t i = 0; i < s->sql->n_names; i++) {
        if (s->bodies[i].opens == at)
            level->body = i;
    }
}

/* Whether a table stands behind this token. */
static bool precedes_table(struct sizing *s, size_t at, bool is_table)
{
    static const char *const first[] = {"from", "join", "in", NULL};
    static const char *const from[] = {"from", NULL};
    static const char *const in[] = {"in", NULL};
    static const char *const ends[] = {"where", "group",  "having",    "order",  "limit",
                                       "union", "except", "intersect", "select", NULL};
    const struct peg__sql_token *token = &s->sql->tokens[at];
    struct level *level = &s->levels[token->depth];

    if (is_char_token(token, '(')) {
        is_table = is_table && !(at > 0 && is_any_keyword(&s->sql->tokens[at - 1], in));
        enter_level(s, at, is_table);
        return is_table;
    }
    if (is_char_token(token, ','))
        return level->is_from;
    if (is_any_keyword(token, from))
        level->is_from = true;
    else if (is_any_keyword(token, ends))
        level->is_from = false;
    return is_any_keyword(token, first);
}

static void find_uses(struct sizing *s)
{
    bool is_table = false;

    for (size_t i = 0; i < s->sql->n_tokens; i++) {
        const struct peg__sql_token *token = &s->sql->tokens[i];
        const size_t by = s->levels[token->depth].body;
        const size_t name =
            is_table && token->kind != PEG__SQL_OTHER ? find_body(s->sql, token) : s->sql->n_names;

        s->bodies[by].n_tokens++;
        /* A recursive one is not written out in itself. */
        if (name < s->sql->n_names && !(name == by && s->bodies[by].is_only))
            s->uses[s->n_uses++] = (struct use){by, name};
        is_table = precedes_table(s, i, is_table);
    }
}

/* ---- sizes -------------------------------------------------------------------------------- */

/* One more step: what a body uses has the size of the step before. True if any became larger. */
static bool grow_sizes(struct sizing *s, size_t max)
{
    bool has_grown = false;

    for (size_t i = 0; i <= s->sql->n_names; i++)
        s->bodies[i].next_size = s->bodies[i].n_tokens;
    for (size_t i = 0; i < s->n_uses; i++)
        s->bodies[s->uses[i].by].next_size += s->bodies[s->uses[i].name].size;
    for (size_t i = 0; i <= s->sql->n_names; i++) {
        struct body *body = &s->bodies[i];
        struct body *first = &s->bodies[body->name];
        const size_t size = body->next_size <= max ? body->next_size : max + 1;

        has_grown |= size > body->size;
        body->size = size > body->size ? size : body->size;
        /* Of several with one name, the first stands for the largest. */
        first->size = first->size < body->size ? body->size : first->size;
    }
    return has_grown;
}

static size_t measure_query(struct sizing *s, size_t max)
{
    struct body *whole = &s->bodies[s->sql->n_names];
    size_t n_steps = 0;

    whole->name = s->sql->n_names;
    s->levels[0].body = s->sql->n_names;
    find_bodies(s);
    find_uses(s);
    while (grow_sizes(s, max)) {
        if (++n_steps > s->sql->n_names + 1) /* some use each other in a circle */
            return max + 1;
    }
    return whole->size;
}

peg_status peg__sql_size(const struct peg__sql *sql, size_t max, size_t *ret_size)
{
    struct sizing s = {.sql = sql};
    peg_status status = PEG_ENOMEM;

    if (sql->n_names == 0) {
        *ret_size = sql->n_tokens;
        return PEG_OK;
    }
    if (sql->n_names > PEG_LIMIT_SQL_NAMES) {
        *ret_size = max + 1;
        return PEG_OK;
    }
    s.bodies = peg__alloc_zero(sql->n_names + 1, sizeof(*s.bodies));
    s.uses = peg__alloc_zero(sql->n_tokens + 1, sizeof(*s.uses));
    s.levels = peg__alloc_zero(sql->n_tokens + 2, sizeof(*s.levels));
    if (s.bodies && s.uses && s.levels) {
        *ret_size = measure_query(&s, max);
        status = PEG_OK;
    }
    peg__free(s.bodies);
    peg__free(s.uses);
    peg__free(s.levels);
    return status;
}
