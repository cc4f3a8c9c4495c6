/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How long a query is once SQLite has written out every CTE where it is used. Fifty of them, each
 * the join of the one before with itself, are a short text and more than any memory: SQLite copies
 * them before it asks anybody or looks at the clock.
 *
 *   peg__sql_size -> find_uses     which body stands where, and what it uses
 *                 -> grow          sizes, until they do not change any more
 */

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "tools/sql.h"

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

static bool is_one_of(const struct peg__sql_token *token, const char *const *words)
{
    for (; *words; words++) {
        if (token->kind == PEG__SQL_WORD && peg__sql_names_equal(token->text, peg__str(*words)))
            return true;
    }
    return false;
}

static bool is_char(const struct peg__sql_token *token, char c)
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
           !(sql->tokens[at].depth == name->depth && is_one_of(&sql->tokens[at], as)))
        at++;
    while (at < sql->n_tokens && !is_char(&sql->tokens[at], '('))
        at++;
    return at;
}

/* A name's letters without its quotes, -1 at the end. */
static int next_letter(const struct peg__sql_token *token, size_t *at)
{
    const peg_str text = token->text;
    char quote = '\0';

    if (token->kind == PEG__SQL_QUOTED)
        quote = text.ptr[0];
    if (quote == '[')
        quote = ']';
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

static int lower(int c)
{
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static bool is_same_name(const struct peg__sql_token *a, const struct peg__sql_token *b)
{
    size_t at = 0;
    size_t bt = 0;
    int c;

    do {
        c = lower(next_letter(a, &at));
        if (c != lower(next_letter(b, &bt)))
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

static void enter(struct sizing *s, size_t at, bool is_table)
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

    if (is_char(token, '(')) {
        is_table = is_table && !(at > 0 && is_one_of(&s->sql->tokens[at - 1], in));
        enter(s, at, is_table);
        return is_table;
    }
    if (is_char(token, ','))
        return level->is_from;
    if (is_one_of(token, from))
        level->is_from = true;
    else if (is_one_of(token, ends))
        level->is_from = false;
    return is_one_of(token, first);
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
static bool grow(struct sizing *s, size_t max)
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

static size_t size_of(struct sizing *s, size_t max)
{
    struct body *whole = &s->bodies[s->sql->n_names];
    size_t n_steps = 0;

    whole->name = s->sql->n_names;
    s->levels[0].body = s->sql->n_names;
    find_bodies(s);
    find_uses(s);
    while (grow(s, max)) {
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
        *ret_size = size_of(&s, max);
        status = PEG_OK;
    }
    peg__free(s.bodies);
    peg__free(s.uses);
    peg__free(s.levels);
    return status;
}
