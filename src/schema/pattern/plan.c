/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Decides whether a pattern can be matched by hand, and how. Three passes:
 *
 *   read_steps   tokens to steps: literals, sets with counts, groups one level deep
 *   trim         drops what can't change the verdict: .* at an open end, (?:...) once
 *   is_decided   may each step take all it can, without ever giving back?
 *
 * The last is the heart. A step that may stop early, and a group that may be left out, must share
 * no character with anything that could come next; then at every place there is only one way to
 * go on and greedy matching without backtracking is exact. Patterns of ids, slugs, dates, numbers
 * and versions are of this kind.
 */

#include "base/text/str.h"
#include "schema/pattern/internal.h"

struct planner {
    struct peg__pattern_reader reader;
    struct peg__plan *plan;
    uint32_t open; /* index of the OPEN step + 1, or 0 */
    bool simple;
};

/* ---- sets -------------------------------------------------------------------- */

static void add_range(struct peg__charset *set, uint32_t lo, uint32_t hi)
{
    for (uint32_t c = lo; c <= hi && c < 128; c++)
        set->ascii[c >> 6] |= UINT64_C(1) << (c & 63);
}

static struct peg__charset complement(struct peg__charset set)
{
    static const enum peg__beyond others[] = {
        [PEG__BEYOND_NONE] = PEG__BEYOND_ALL,
        [PEG__BEYOND_ALL] = PEG__BEYOND_NONE,
        [PEG__BEYOND_SPACES] = PEG__BEYOND_NOT_SPACES,
        [PEG__BEYOND_NOT_SPACES] = PEG__BEYOND_SPACES,
        [PEG__BEYOND_NOT_LINE_ENDS] = PEG__BEYOND_NOT_LINE_ENDS, /* the dot is never negated */
    };

    return (struct peg__charset){{~set.ascii[0], ~set.ascii[1]}, others[set.beyond]};
}

static struct peg__charset escape_set(char letter)
{
    struct peg__charset set = {{0}, PEG__BEYOND_NONE};

    switch (letter | 0x20) {
    case 'd':
        add_range(&set, '0', '9');
        break;
    case 'w':
        add_range(&set, '0', '9');
        add_range(&set, 'A', 'Z');
        add_range(&set, '_', '_');
        add_range(&set, 'a', 'z');
        break;
    default:
        add_range(&set, '\t', '\r');
        add_range(&set, ' ', ' ');
        set.beyond = PEG__BEYOND_SPACES;
        break;
    }
    return letter & 0x20 ? set : complement(set);
}

static void add_set(struct peg__charset *set, struct peg__charset more)
{
    set->ascii[0] |= more.ascii[0];
    set->ascii[1] |= more.ascii[1];
    if (set->beyond == PEG__BEYOND_NONE)
        set->beyond = more.beyond;
    else if (more.beyond != PEG__BEYOND_NONE && more.beyond != set->beyond)
        set->beyond = PEG__BEYOND_ALL; /* of spaces, not spaces and all: any two are all */
}

static bool are_disjoint(const struct peg__charset *a, const struct peg__charset *b)
{
    if ((a->ascii[0] & b->ascii[0]) || (a->ascii[1] & b->ascii[1]))
        return false;
    return a->beyond == PEG__BEYOND_NONE || b->beyond == PEG__BEYOND_NONE ||
           (a->beyond == PEG__BEYOND_SPACES && b->beyond == PEG__BEYOND_NOT_SPACES) ||
           (a->beyond == PEG__BEYOND_NOT_SPACES && b->beyond == PEG__BEYOND_SPACES);
}

/* ---- tokens to steps ------------------------------------------------------------ */

static struct peg__step *add_step(struct planner *p, enum peg__step_kind kind)
{
    struct peg__plan *plan = p->plan;
    struct peg__step *step;

    if (plan->n_steps == PEG__PLAN_STEPS_MAX) {
        p->simple = false;
        return NULL;
    }
    step = &plan->steps[plan->n_steps++];
    *step = (struct peg__step){.kind = kind, .min = 1, .max = 1};
    return step;
}

static void add_set_step(struct planner *p, struct peg__charset set)
{
    struct peg__step *step = add_step(p, PEG__STEP_SET);

    if (step)
        step->set = set;
}

/* Appends the bytes of the pattern's character to the literal step before, or to a new one. */
static void add_literal(struct planner *p, uint32_t c, peg_str bytes)
{
    struct peg__plan *plan = p->plan;
    struct peg__step *step = plan->n_steps ? &plan->steps[plan->n_steps - 1] : NULL;

    if (plan->n_literal_bytes + bytes.len > PEG__PLAN_LITERAL_BYTES_MAX) {
        p->simple = false;
        return;
    }
    if (!step || step->kind != PEG__STEP_LITERAL) {
        step = add_step(p, PEG__STEP_LITERAL);
        if (!step)
            return;
        step->at = plan->n_literal_bytes;
        add_range(&step->set, c, c);
        /* Which one matters little: a set with any beyond ASCII counts as sharing it. */
        step->set.beyond = c < 128 ? PEG__BEYOND_NONE : PEG__BEYOND_ALL;
    }
    memcpy(plan->literals + plan->n_literal_bytes, bytes.ptr, bytes.len);
    step->len += (uint32_t)bytes.len;
    plan->n_literal_bytes += (uint32_t)bytes.len;
}

static void add_char(struct planner *p, const struct peg__token *token)
{
    const char ascii = (char)token->lo;

    if (token->lo < 128)
        add_literal(p, token->lo, (peg_str){&ascii, 1});
    else if (p->reader.text.ptr[token->at] != '\\')
        add_literal(p, token->lo,
                    (peg_str){p->reader.text.ptr + token->at, p->reader.at - token->at});
    else
        p->simple = false;
}

/* A quantifier behind a literal is about its last character alone. */
static struct peg__step *split_last_char(struct planner *p, struct peg__step *step)
{
    struct peg__plan *plan = p->plan;
    const unsigned char last = (unsigned char)plan->literals[plan->n_literal_bytes - 1];

    if (last >= 128) {
        p->simple = false;
        return NULL;
    }
    plan->n_literal_bytes--;
    if (--step->len > 0)
        step = add_step(p, PEG__STEP_SET);
    if (!step)
        return NULL;
    *step = (struct peg__step){.kind = PEG__STEP_SET};
    add_range(&step->set, last, last);
    return step;
}

static void repeat_last(struct planner *p, const struct peg__token *token)
{
    struct peg__plan *plan = p->plan;
    struct peg__step *step =
        &plan->steps[plan->n_steps - 1]; /* the reader ensures that there is one */

    if (step->kind == PEG__STEP_LITERAL)
        step = split_last_char(p, step);
    else if (step->kind == PEG__STEP_CLOSE)
        step = &plan->steps[step->other];
    if (!step)
        return;
    step->min = token->min;
    step->max = token->max;
    if (token->max == 0)
        p->simple = false;
}

static peg_status read_class(struct planner *p, bool negated)
{
    struct peg__charset set = {{0}, PEG__BEYOND_NONE};
    struct peg__token token;

    for (;;) {
        const peg_status status = peg__pattern_next(&p->reader, &token);

        if (status)
            return status;
        if (token.kind == PEG__TOKEN_CLASS_CLOSE)
            break;
        if (token.kind == PEG__TOKEN_RANGE && token.hi < 128)
            add_range(&set, token.lo, token.hi);
        else if (token.kind == PEG__TOKEN_SET)
            add_set(&set, escape_set(token.letter));
        else
            p->simple = false;
    }
    add_set_step(p, negated ? complement(set) : set);
    return PEG_OK;
}

static void open_step(struct planner *p, enum peg__group group)
{
    if (p->open || (group != PEG__GROUP_CAPTURE && group != PEG__GROUP_PLAIN)) {
        p->simple = false;
        return;
    }
    if (add_step(p, PEG__STEP_OPEN))
        p->open = p->plan->n_steps;
}

static void close_step(struct planner *p)
{
    const uint32_t open = p->open - 1;
    struct peg__step *step = add_step(p, PEG__STEP_CLOSE);

    if (!step)
        return;
    step->other = open;
    p->plan->steps[open].other = p->plan->n_steps - 1;
    p->open = 0;
}

static peg_status plan_token(struct planner *p, const struct peg__token *token)
{
    struct peg__charset dot = {{0}, PEG__BEYOND_NONE};

    switch (token->kind) {
    case PEG__TOKEN_CHAR:
        add_char(p, token);
        break;
    case PEG__TOKEN_ANY:
        add_range(&dot, '\n', '\n');
        add_range(&dot, '\r', '\r');
        dot = complement(dot);
        dot.beyond = PEG__BEYOND_NOT_LINE_ENDS;
        add_set_step(p, dot);
        break;
    case PEG__TOKEN_SET:
        add_set_step(p, escape_set(token->letter));
        break;
    case PEG__TOKEN_CLASS_OPEN:
        return read_class(p, token->negated);
    case PEG__TOKEN_GROUP_OPEN:
        open_step(p, token->group);
        break;
    case PEG__TOKEN_GROUP_CLOSE:
        close_step(p);
        break;
    case PEG__TOKEN_REPEAT:
        repeat_last(p, token);
        break;
    default:
        p->simple = false;
        break;
    }
    return PEG_OK;
}

/* ^ only as the first and $ only as the last token; stops early where it is not simple. */
static peg_status read_steps(struct planner *p)
{
    struct peg__token token;
    peg_status status;

    for (bool first = true; p->simple; first = false) {
        status = peg__pattern_next(&p->reader, &token);
        if (status || token.kind == PEG__TOKEN_END)
            return status;
        if (p->plan->to_end)
            p->simple = false;
        else if (first && token.kind == PEG__TOKEN_START)
            p->plan->from_start = true;
        else if (token.kind == PEG__TOKEN_FINISH && !p->open)
            p->plan->to_end = true;
        else if ((status = plan_token(p, &token)))
            return status;
    }
    return PEG_OK;
}

/* ---- trimming --------------------------------------------------------------------- */

static void remove_steps(struct peg__plan *plan, uint32_t first, uint32_t n)
{
    memmove(&plan->steps[first], &plan->steps[first + n],
            (plan->n_steps - first - n) * sizeof(plan->steps[0]));
    plan->n_steps -= n;
    for (uint32_t i = first; i < plan->n_steps; i++) {
        if (plan->steps[i].kind >= PEG__STEP_OPEN)
            plan->steps[i].other -= n;
    }
}

/* A group taken exactly once is just its steps. */
static void flatten(struct peg__plan *plan, uint32_t open)
{
    remove_steps(plan, plan->steps[open].other, 1);
    remove_steps(plan, open, 1);
}

static void flatten_single_groups(struct peg__plan *plan)
{
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct peg__step *step = &plan->steps[i];

        if (step->kind == PEG__STEP_OPEN && step->min == 1 && step->max == 1)
            flatten(plan, i);
    }
}

/* Their bytes are next to each other: nothing between them was a literal. */
static void join_literals(struct peg__plan *plan)
{
    for (uint32_t i = 1; i < plan->n_steps; i++) {
        struct peg__step *before = &plan->steps[i - 1];

        if (before->kind != PEG__STEP_LITERAL || plan->steps[i].kind != PEG__STEP_LITERAL)
            continue;
        before->len += plan->steps[i].len;
        remove_steps(plan, i--, 1);
    }
}

/* At an end that is not anchored a step needs to take no more than its minimum. */
static void trim_end(struct peg__plan *plan)
{
    while (plan->n_steps) {
        struct peg__step *last = &plan->steps[plan->n_steps - 1];
        const uint32_t open = last->kind == PEG__STEP_CLOSE ? last->other : plan->n_steps - 1;

        plan->steps[open].max = plan->steps[open].min;
        if (plan->steps[open].min == 0)
            plan->n_steps = open;
        else if (last->kind == PEG__STEP_CLOSE && plan->steps[open].min == 1)
            flatten(plan, open);
        else
            return;
    }
}

static void trim_start(struct peg__plan *plan)
{
    while (plan->n_steps) {
        struct peg__step *first = &plan->steps[0];
        const uint32_t n = first->kind == PEG__STEP_OPEN ? first->other + 1 : 1;

        first->max = first->min;
        if (first->min > 0)
            return;
        remove_steps(plan, 0, n);
    }
}

/* ---- is greedy exact? --------------------------------------------------------------- */

/* The characters with which a match can go on from step i. */
static struct peg__charset next_chars(const struct peg__plan *plan, uint32_t i)
{
    struct peg__charset chars = {{0}, PEG__BEYOND_NONE};

    while (i < plan->n_steps) {
        const struct peg__step *step = &plan->steps[i];

        switch (step->kind) {
        case PEG__STEP_OPEN:
            add_set(&chars, step[1].set);
            if (step->min > 0)
                return chars;
            i = step->other + 1;
            break;
        case PEG__STEP_CLOSE:
            if (plan->steps[step->other].max > 1)
                add_set(&chars, plan->steps[step->other + 1].set);
            i++;
            break;
        default:
            add_set(&chars, step->set);
            if (step->min > 0)
                return chars;
            i++;
            break;
        }
    }
    return chars;
}

/* The first character of a group decides whether to enter it: there has to be one. */
static bool groups_start_with_a_character(const struct peg__plan *plan)
{
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct peg__step *step = &plan->steps[i];

        if (step->kind == PEG__STEP_OPEN && (step[1].kind == PEG__STEP_CLOSE || step[1].min == 0))
            return false;
    }
    return true;
}

static bool is_decided(const struct peg__plan *plan)
{
    if (!groups_start_with_a_character(plan))
        return false;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct peg__step *step = &plan->steps[i];
        const bool is_group = step->kind == PEG__STEP_OPEN;
        struct peg__charset after;

        if (step->min == step->max || step->kind == PEG__STEP_CLOSE)
            continue;
        after = next_chars(plan, is_group ? step->other + 1 : i + 1);
        if (!are_disjoint(is_group ? &step[1].set : &step->set, &after))
            return false;
    }
    return true;
}

static bool choose_kind(struct peg__plan *plan)
{
    const bool is_anchored = plan->from_start && plan->to_end;
    const struct peg__step *only = plan->n_steps == 1 ? &plan->steps[0] : NULL;

    plan->kind = PEG__PLAN_STEPS;
    if (plan->n_steps == 0 && !is_anchored)
        plan->kind = PEG__PLAN_ALWAYS;
    else if (only && only->kind == PEG__STEP_LITERAL)
        plan->kind = PEG__PLAN_LITERALS;
    else if (only && only->kind == PEG__STEP_SET && !plan->from_start && !plan->to_end)
        plan->kind = PEG__PLAN_RUN;
    else
        return plan->from_start && is_decided(plan);
    return true;
}

/* ---- alternatives of literals --------------------------------------------------------- */

struct literals {
    bool grouped;
    bool closed;
};

/* False if the token does not belong into ^(a|b)$, (?:a|b), a|b or the like. */
static bool take_literal_token(struct planner *p, struct literals *l,
                               const struct peg__token *token, bool is_first)
{
    struct peg__plan *plan = p->plan;
    struct peg__step *step;

    switch (token->kind) {
    case PEG__TOKEN_START:
        plan->from_start = true;
        return is_first;
    case PEG__TOKEN_GROUP_OPEN:
        l->grouped = true;
        return is_first && token->group <= PEG__GROUP_PLAIN;
    case PEG__TOKEN_GROUP_CLOSE:
        l->closed = true;
        return true;
    case PEG__TOKEN_FINISH:
        if (!l->closed || plan->to_end)
            return false;
        plan->to_end = true;
        return true;
    case PEG__TOKEN_OR:
        if (l->closed || (plan->from_start && !l->grouped))
            return false;
        step = add_step(p, PEG__STEP_LITERAL);
        if (step)
            step->at = plan->n_literal_bytes;
        return step != NULL;
    case PEG__TOKEN_CHAR:
        if (!l->closed)
            add_char(p, token);
        return !l->closed;
    default:
        return false;
    }
}

/* Each alternative becomes one LITERAL step. */
static peg_status read_literals(struct planner *p)
{
    struct literals l = {false, false};
    struct peg__token token;
    bool is_first = true;

    p->plan->kind = PEG__PLAN_LITERALS;
    add_step(p, PEG__STEP_LITERAL);
    while (p->simple) {
        const peg_status status = peg__pattern_next(&p->reader, &token);

        if (status || token.kind == PEG__TOKEN_END)
            return status;
        p->simple = take_literal_token(p, &l, &token, is_first) && p->simple;
        is_first = is_first && token.kind == PEG__TOKEN_START; /* the group may follow ^ */
        if (token.kind == PEG__TOKEN_START && !is_first)
            p->simple = false;
    }
    return PEG_OK;
}

/* ---- both ------------------------------------------------------------------------------- */

static void start_plan(struct planner *p, peg_str ecma, peg_error *reterr)
{
    p->open = 0;
    p->simple = true;
    p->plan->from_start = false;
    p->plan->to_end = false;
    p->plan->n_steps = 0;
    p->plan->n_literal_bytes = 0;
    peg__pattern_reader_init(&p->reader, ecma, reterr);
}

peg_status peg__pattern_plan(peg_str ecma, struct peg__plan *ret_plan, bool *ret_simple,
                             peg_error *reterr)
{
    struct planner p;
    peg_status status;

    p.plan = ret_plan;
    if (ecma.len && memchr(ecma.ptr, '|', ecma.len)) {
        start_plan(&p, ecma, reterr);
        status = read_literals(&p);
        *ret_simple = p.simple;
        if (status || p.simple)
            return status;
    }
    start_plan(&p, ecma, reterr);
    status = read_steps(&p);
    if (status)
        return status;
    if (p.simple) {
        flatten_single_groups(ret_plan);
        if (!ret_plan->to_end)
            trim_end(ret_plan);
        if (!ret_plan->from_start)
            trim_start(ret_plan);
        join_literals(ret_plan);
        p.simple = choose_kind(ret_plan);
    }
    *ret_simple = p.simple;
    return PEG_OK;
}
