/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Matches plans (plan.c): one walk over the subject, no memory, no limit needed. Counts
 * are of characters, not bytes; subjects are valid UTF-8.
 */

#include "base/mem.h"
#include "base/text/str.h"
#include "schema/pattern/internal.h"

struct peg__simple {
    enum peg__plan_kind kind;
    bool from_start;
    bool to_end;
    uint32_t n_steps;
    size_t bytes;
    const char *literals; /* behind the steps, in the same block */
    struct peg__step steps[];
};

struct peg__simple *peg__simple_new(const struct peg__plan *plan)
{
    const size_t steps_bytes = plan->n_steps * sizeof(plan->steps[0]);
    const size_t bytes = sizeof(struct peg__simple) + steps_bytes + plan->n_literal_bytes;
    struct peg__simple *simple = peg__alloc(bytes);
    char *literals;

    if (!simple)
        return NULL;
    *simple = (struct peg__simple){.kind = plan->kind,
                                   .from_start = plan->from_start,
                                   .to_end = plan->to_end,
                                   .n_steps = plan->n_steps,
                                   .bytes = bytes};
    memcpy(simple->steps, plan->steps, steps_bytes);
    literals = (char *)(simple->steps + plan->n_steps);
    memcpy(literals, plan->literals, plan->n_literal_bytes);
    simple->literals = literals;
    return simple;
}

struct peg__simple *peg__simple_free(struct peg__simple *simple)
{
    peg__free(simple);
    return NULL;
}

size_t peg__simple_bytes(const struct peg__simple *simple)
{
    return simple->bytes;
}

/* ---- characters ------------------------------------------------------------------ */

static bool is_in_beyond(enum peg__beyond beyond, uint32_t c)
{
    switch (beyond) {
    case PEG__BEYOND_NONE:
        return false;
    case PEG__BEYOND_ALL:
        return true;
    case PEG__BEYOND_SPACES:
        return peg__is_wide_space(c);
    case PEG__BEYOND_NOT_SPACES:
        return !peg__is_wide_space(c);
    case PEG__BEYOND_NOT_LINE_ENDS:
        return c != 0x2028 && c != 0x2029;
    }
    return false;
}

/* Where the character at `at` ends, or NULL if it is not in the set. */
static const unsigned char *take_wide(const struct peg__charset *set, const unsigned char *at)
{
    const uint32_t c = peg__utf8_next(&at);

    return is_in_beyond(set->beyond, c) ? at : NULL;
}

/* ---- plans ------------------------------------------------------------------------- */

/* Takes as many characters as it can; NULL if those are fewer than the minimum. */
static const unsigned char *take_set(const struct peg__step *step, const unsigned char *at,
                                     const unsigned char *end)
{
    uint32_t left = step->max;

    while (left > 0) {
        const unsigned char *start = at;
        const unsigned char *stop = (size_t)(end - at) < left ? end : at + left;

        while (at < stop && peg__in_ascii(&step->set, *at))
            at++;
        left -= (uint32_t)(at - start);
        if (at == stop || *at < 128)
            break;
        start = at;
        at = take_wide(&step->set, at);
        if (!at) {
            at = start;
            break;
        }
        left--;
    }
    return step->max - left >= step->min ? at : NULL;
}

static const unsigned char *take_literal(const struct peg__simple *simple,
                                         const struct peg__step *step, const unsigned char *at,
                                         const unsigned char *end)
{
    if ((size_t)(end - at) < step->len || memcmp(at, simple->literals + step->at, step->len) != 0)
        return NULL;
    return at + step->len;
}

/* Another round of the group whose first step is `first`? The character says so, since what
 * comes after the group starts with others. */
static bool starts_group(const struct peg__step *first, const unsigned char *at,
                         const unsigned char *end)
{
    if (at == end)
        return false;
    if (*at < 128)
        return peg__in_ascii(&first->set, *at);
    return take_wide(&first->set, at) != NULL;
}

/* At the start of a round of the group: the step to go on with. */
static uint32_t next_round(const struct peg__step *open, uint32_t body, bool starts,
                           uint32_t *n_rounds)
{
    if (*n_rounds < open->min || (*n_rounds < open->max && starts)) {
        (*n_rounds)++;
        return body;
    }
    *n_rounds = 0;
    return open->other + 1;
}

static bool match_steps(const struct peg__simple *simple, const unsigned char *at,
                        const unsigned char *end)
{
    uint32_t n_rounds = 0; /* of the group we are in: groups don't nest */
    uint32_t i = 0;

    while (at && i < simple->n_steps) {
        const struct peg__step *step = &simple->steps[i++];

        switch (step->kind) {
        case PEG__STEP_SET:
            at = take_set(step, at, end);
            break;
        case PEG__STEP_LITERAL:
            at = take_literal(simple, step, at, end);
            break;
        case PEG__STEP_OPEN:
            i = next_round(step, i, starts_group(step + 1, at, end), &n_rounds);
            break;
        case PEG__STEP_CLOSE:
            i = step->other;
            break;
        }
    }
    return at && (!simple->to_end || at == end);
}

static bool match_literal(const struct peg__simple *simple, const struct peg__step *step,
                          peg_str subject)
{
    const char *literal = simple->literals + step->at;

    if (subject.len < step->len ||
        (simple->from_start && simple->to_end && subject.len != step->len))
        return false;
    if (step->len == 0)
        return true;
    if (simple->from_start)
        return memcmp(subject.ptr, literal, step->len) == 0;
    if (simple->to_end)
        return memcmp(subject.ptr + subject.len - step->len, literal, step->len) == 0;
    return memmem(subject.ptr, subject.len, literal, step->len) != NULL;
}

static bool match_literals(const struct peg__simple *simple, peg_str subject)
{
    for (uint32_t i = 0; i < simple->n_steps; i++) {
        if (match_literal(simple, &simple->steps[i], subject))
            return true;
    }
    return false;
}

/* Are there min characters of the set in a row? */
static bool match_run(const struct peg__step *step, const unsigned char *at,
                      const unsigned char *end)
{
    uint32_t n = 0;

    while (at < end) {
        const uint32_t c = peg__utf8_next(&at);
        const bool is_in = c < 128 ? peg__in_ascii(&step->set, (unsigned char)c)
                                   : is_in_beyond(step->set.beyond, c);

        n = is_in ? n + 1 : 0;
        if (n >= step->min)
            return true;
    }
    return false;
}

bool peg__simple_match(const struct peg__simple *simple, peg_str subject)
{
    const char *text = subject.len ? subject.ptr : "";
    const unsigned char *at = (const unsigned char *)text;
    const unsigned char *end = at + subject.len;

    switch (simple->kind) {
    case PEG__PLAN_ALWAYS:
        return true;
    case PEG__PLAN_LITERALS:
        return match_literals(simple, subject);
    case PEG__PLAN_RUN:
        return match_run(&simple->steps[0], at, end);
    case PEG__PLAN_STEPS:
        return match_steps(simple, at, end);
    }
    return false;
}
