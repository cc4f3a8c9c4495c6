/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes an automaton of a pattern without lookaround, backreferences and properties, in one pass
 * over its tokens. Jumps are relative, so that what is repeated is copied as it is:
 *
 *   a|b      SPLIT 3, a, JUMP 2, b            a?       SPLIT 2, a
 *   a*       SPLIT 3, a, JUMP -2              a{2,}    a, a, SPLIT -1
 *
 * Matching follows all ways through it at once, character by character. A place is entered once
 * for a character, whichever ways lead to it, so the work for one is at most the instructions.
 */

#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "schema/pattern/internal.h"

enum { MAX_SETS = 256, MAX_RANGES = 1024 };

struct level {
    uint32_t start;       /* of the group's instructions */
    uint32_t alternative; /* of those of the alternative being read */
};

struct builder {
    struct peg__pattern_reader reader;
    struct level levels[PEG_LIMIT_PATTERN_NESTING + 1];
    uint32_t depth;
    uint32_t atom; /* what a quantifier would repeat starts here */
    uint32_t n_insns;
    uint32_t n_sets;
    uint32_t n_ranges;
    bool fits; /* false: it is no such pattern, or too large */
    struct peg__nfa_insn insns[PEG__NFA_MAX];
    struct peg__nfa_set sets[MAX_SETS];
    struct peg__nfa_range ranges[MAX_RANGES];
};

/* ---- sets --------------------------------------------------------------------------- */

static struct peg__nfa_set *add_set(struct builder *b)
{
    if (b->n_sets == MAX_SETS) {
        b->fits = false;
        return NULL;
    }
    b->sets[b->n_sets] = (struct peg__nfa_set){.first = (uint16_t)b->n_ranges};
    return &b->sets[b->n_sets++];
}

static void add_range(struct builder *b, struct peg__nfa_set *set, uint32_t lo, uint32_t hi)
{
    for (uint32_t c = lo; c <= hi && c < 128; c++)
        set->ascii[c >> 6] |= UINT64_C(1) << (c & 63);
    if (hi < 128)
        return;
    if (b->n_ranges == MAX_RANGES) {
        b->fits = false;
        return;
    }
    b->ranges[b->n_ranges++] = (struct peg__nfa_range){lo < 128 ? 128 : lo, hi};
    set->n++;
}

/* What is not in a list of ranges in order. */
static void add_others(struct builder *b, struct peg__nfa_set *set,
                       const struct peg__nfa_range *ranges, size_t n)
{
    uint32_t next = 0;

    for (size_t i = 0; i < n; i++) {
        if (ranges[i].lo > next)
            add_range(b, set, next, ranges[i].lo - 1);
        next = ranges[i].hi + 1;
    }
    add_range(b, set, next, 0x10FFFF);
}

static void add_ranges(struct builder *b, struct peg__nfa_set *set,
                       const struct peg__nfa_range *ranges, size_t n, bool negated)
{
    if (negated) {
        add_others(b, set, ranges, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        add_range(b, set, ranges[i].lo, ranges[i].hi);
}

#define ADD_RANGES(b, set, ranges, negated)                                                        \
    add_ranges(b, set, ranges, sizeof(ranges) / sizeof((ranges)[0]), negated)

static void add_escape(struct builder *b, struct peg__nfa_set *set, char letter)
{
    static const struct peg__nfa_range digits[] = {{'0', '9'}};
    static const struct peg__nfa_range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    static const struct peg__nfa_range spaces[] = {
        {'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
        {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};

    switch (letter | 0x20) {
    case 'd':
        ADD_RANGES(b, set, digits, letter == 'D');
        break;
    case 'w':
        ADD_RANGES(b, set, words, letter == 'W');
        break;
    default:
        ADD_RANGES(b, set, spaces, letter == 'S');
        break;
    }
}

/* ---- instructions --------------------------------------------------------------------- */

static void add_insn(struct builder *b, enum peg__nfa_op op, uint32_t set, int32_t to)
{
    if (b->n_insns == PEG__NFA_MAX) {
        b->fits = false;
        return;
    }
    b->insns[b->n_insns++] =
        (struct peg__nfa_insn){.op = (uint16_t)op, .set = (uint16_t)set, .to = (int16_t)to};
}

/* Where nothing jumps over: at the start of an atom or an alternative. */
static void insert_insn(struct builder *b, uint32_t at, enum peg__nfa_op op, int32_t to)
{
    add_insn(b, op, 0, to);
    if (!b->fits)
        return;
    memmove(&b->insns[at + 1], &b->insns[at], (b->n_insns - 1 - at) * sizeof(b->insns[0]));
    b->insns[at] = (struct peg__nfa_insn){.op = (uint16_t)op, .to = (int16_t)to};
}

static void copy_insns(struct builder *b, uint32_t from, uint32_t n)
{
    if (b->n_insns + n > PEG__NFA_MAX) {
        b->fits = false;
        return;
    }
    memcpy(&b->insns[b->n_insns], &b->insns[from], n * sizeof(b->insns[0]));
    b->n_insns += n;
}

static void add_set_insn(struct builder *b)
{
    b->atom = b->n_insns;
    add_insn(b, PEG__NFA_SET, b->n_sets - 1, 0);
}

static void add_char(struct builder *b, uint32_t c)
{
    struct peg__nfa_set *set = add_set(b);

    if (set && !peg__is_surrogate(c))
        add_range(b, set, c, c);
    add_set_insn(b);
}

static void add_dot(struct builder *b)
{
    static const struct peg__nfa_range line_ends[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
    struct peg__nfa_set *set = add_set(b);

    if (set)
        ADD_RANGES(b, set, line_ends, true);
    add_set_insn(b);
}

static void add_letter(struct builder *b, char letter)
{
    struct peg__nfa_set *set = add_set(b);

    if (set)
        add_escape(b, set, letter);
    add_set_insn(b);
}

static void read_class(struct builder *b, bool negated)
{
    struct peg__nfa_set *set = add_set(b);
    struct peg__token token = {.kind = PEG__TOKEN_END};

    while (b->fits && !peg__pattern_next(&b->reader, &token)) {
        if (token.kind == PEG__TOKEN_RANGE)
            add_range(b, set, token.lo, token.hi);
        else if (token.kind == PEG__TOKEN_SET)
            add_escape(b, set, token.letter);
        else
            break;
    }
    if (!b->fits || token.kind != PEG__TOKEN_CLASS_CLOSE) {
        b->fits = false;
        return;
    }
    set->is_negated = negated;
    add_set_insn(b);
}

/* ---- structure ------------------------------------------------------------------------ */

static void open_nfa_group(struct builder *b, enum peg__group group)
{
    if (group != PEG__GROUP_CAPTURE && group != PEG__GROUP_PLAIN) {
        b->fits = false;
        return;
    }
    b->levels[++b->depth] = (struct level){b->n_insns, b->n_insns};
}

/* The end of its jump is known when the group ends: until then it is 0. */
static void end_alternative(struct builder *b)
{
    struct level *level = &b->levels[b->depth];

    insert_insn(b, level->alternative, PEG__NFA_SPLIT,
                (int32_t)(b->n_insns - level->alternative) + 2);
    add_insn(b, PEG__NFA_JUMP, 0, 0);
    level->alternative = b->n_insns;
}

static void close_nfa_group(struct builder *b)
{
    const struct level *level = &b->levels[b->depth];

    for (uint32_t i = level->start; i < level->alternative; i++) {
        if (b->insns[i].op == PEG__NFA_JUMP && b->insns[i].to == 0)
            b->insns[i].to = (int16_t)(b->n_insns - i);
    }
    b->atom = level->start;
    if (b->depth)
        b->depth--;
}

static void repeat_rest(struct builder *b, uint32_t n, const struct peg__token *token)
{
    const uint32_t body = b->n_insns - n; /* the last copy */
    uint32_t n_more = token->max - token->min;

    if (token->max == PEG__REPEAT_FOREVER) {
        add_insn(b, PEG__NFA_SPLIT, 0, -(int32_t)n);
        return;
    }
    /* From each of them to the end of all. */
    for (; n_more > 0 && b->fits; n_more--) {
        add_insn(b, PEG__NFA_SPLIT, 0, (int32_t)((n + 1) * n_more));
        copy_insns(b, body, n);
    }
}

static void repeat_optional(struct builder *b, uint32_t n, const struct peg__token *token)
{
    const struct peg__token rest = {.min = 1, .max = token->max};

    if (token->max == PEG__REPEAT_FOREVER) {
        insert_insn(b, b->atom, PEG__NFA_SPLIT, (int32_t)n + 2);
        add_insn(b, PEG__NFA_JUMP, 0, -(int32_t)(n + 1));
        return;
    }
    insert_insn(b, b->atom, PEG__NFA_SPLIT, (int32_t)((n + 1) * token->max));
    repeat_rest(b, n, &rest);
}

/* Distances fit their type: nothing is longer than PEG__NFA_MAX, which is checked first. */
static void repeat(struct builder *b, const struct peg__token *token)
{
    const uint32_t n = b->n_insns - b->atom;
    const uint32_t most = token->max == PEG__REPEAT_FOREVER ? token->min : token->max;

    if (token->max == 0)
        b->n_insns = b->atom;
    if (n == 0 || token->max == 0)
        return;
    if (most > PEG__NFA_MAX || (uint64_t)(n + 1) * most > PEG__NFA_MAX) {
        b->fits = false;
        return;
    }
    if (token->min == 0) {
        repeat_optional(b, n, token);
        return;
    }
    for (uint32_t i = 1; i < token->min && b->fits; i++)
        copy_insns(b, b->atom, n);
    repeat_rest(b, n, token);
}

static void add_token_insns(struct builder *b, const struct peg__token *token)
{
    switch (token->kind) {
    case PEG__TOKEN_CHAR:
        add_char(b, token->lo);
        break;
    case PEG__TOKEN_ANY:
        add_dot(b);
        break;
    case PEG__TOKEN_SET:
        add_letter(b, token->letter);
        break;
    case PEG__TOKEN_CLASS_OPEN:
        read_class(b, token->negated);
        break;
    case PEG__TOKEN_START:
        add_insn(b, PEG__NFA_START, 0, 0);
        break;
    case PEG__TOKEN_FINISH:
        add_insn(b, PEG__NFA_FINISH, 0, 0);
        break;
    case PEG__TOKEN_BOUNDARY:
        add_insn(b, token->negated ? PEG__NFA_NO_BOUNDARY : PEG__NFA_BOUNDARY, 0, 0);
        break;
    case PEG__TOKEN_GROUP_OPEN:
        open_nfa_group(b, token->group);
        break;
    case PEG__TOKEN_OR:
        end_alternative(b);
        break;
    case PEG__TOKEN_GROUP_CLOSE:
        close_nfa_group(b);
        break;
    case PEG__TOKEN_REPEAT:
        repeat(b, token);
        break;
    default:
        b->fits = false;
        break;
    }
}

static void build_automaton(struct builder *b, peg_str ecma)
{
    struct peg__token token;

    b->fits = true;
    peg__pattern_reader_init(&b->reader, ecma, NULL);
    while (b->fits) {
        if (peg__pattern_next(&b->reader, &token))
            b->fits = false;
        else if (token.kind == PEG__TOKEN_END)
            break;
        else
            add_token_insns(b, &token);
    }
    close_nfa_group(b);
    add_insn(b, PEG__NFA_MATCH, 0, 0);
}

/* ---- the automaton --------------------------------------------------------------------- */

static struct peg__nfa *copy_automaton(const struct builder *b)
{
    const size_t sets = b->n_sets * sizeof(b->sets[0]);
    const size_t ranges = b->n_ranges * sizeof(b->ranges[0]);
    const size_t insns = b->n_insns * sizeof(b->insns[0]);
    struct peg__nfa *nfa = peg__alloc(sizeof(*nfa) + sets + ranges + insns);
    char *at;

    if (!nfa)
        return NULL;
    at = (char *)(nfa + 1);
    *nfa = (struct peg__nfa){
        .sets = memcpy(at, b->sets, sets),
        .ranges = memcpy(at + sets, b->ranges, ranges),
        .insns = memcpy(at + sets + ranges, b->insns, insns),
        .n_insns = b->n_insns,
        .bytes = sizeof(*nfa) + sets + ranges + insns,
        .from_start = b->insns[0].op == PEG__NFA_START,
    };
    return nfa;
}

peg_status peg__nfa_new(peg_str ecma, struct peg__nfa **ret_nfa)
{
    struct builder b;
    struct peg__nfa *nfa;

    memset(&b, 0, offsetof(struct builder, insns));
    build_automaton(&b, ecma);
    if (!b.fits)
        return PEG_EUNSUPPORTED;
    nfa = copy_automaton(&b);
    if (!nfa)
        return PEG_ENOMEM;
    *ret_nfa = nfa;
    return PEG_OK;
}

struct peg__nfa *peg__nfa_free(struct peg__nfa *nfa)
{
    peg__free(nfa);
    return NULL;
}

size_t peg__nfa_bytes(const struct peg__nfa *nfa)
{
    return nfa->bytes;
}

/* ---- matching ------------------------------------------------------------------------ */

/* Places whose next instruction takes a character. */
struct places {
    uint32_t n;
    uint16_t at[PEG__NFA_MAX];
};

struct run {
    const struct peg__nfa *nfa;
    const unsigned char *start;
    const unsigned char *at; /* between two characters */
    const unsigned char *end;
    uint64_t n_steps;
    uint32_t round; /* number of `at`, from 1 */
    bool is_matched;
    struct places *next;
    uint32_t entered[PEG__NFA_MAX]; /* the round in which a place was entered */
    uint16_t to_do[PEG__NFA_MAX];
};

/* ---- characters ------------------------------------------------------------------------ */

static bool is_in_ranges(struct run *r, const struct peg__nfa_set *set, uint32_t c)
{
    const struct peg__nfa_range *range = r->nfa->ranges + set->first;

    r->n_steps += set->n / 4;
    for (uint32_t i = 0; i < set->n; i++)
        if (c >= range[i].lo && c <= range[i].hi)
            return true;
    return false;
}

static bool is_in_set(struct run *r, const struct peg__nfa_set *set, uint32_t c)
{
    const bool is_listed = c < 128 ? set->ascii[c >> 6] >> (c & 63) & 1 : is_in_ranges(r, set, c);

    return is_listed != set->is_negated;
}

static bool is_word_char(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z');
}

static bool is_boundary(const struct run *r)
{
    const bool before = r->at > r->start && is_word_char(r->at[-1]);
    const bool after = r->at < r->end && is_word_char(*r->at);

    return before != after;
}

/* ---- places ---------------------------------------------------------------------------- */

/* Adds a place to the list, unless it was there in this round. */
static inline uint32_t enter_place(struct run *r, uint32_t n_to_do, uint32_t pc)
{
    if (r->entered[pc] == r->round)
        return n_to_do;
    r->entered[pc] = r->round;
    r->to_do[n_to_do] = (uint16_t)pc;
    return n_to_do + 1;
}

/* Follows everything that takes no character from a place on. */
static void follow_insn(struct run *r, uint32_t pc)
{
    uint32_t n = enter_place(r, 0, pc);

    while (n > 0) {
        const struct peg__nfa_insn *insn;
        bool goes_on = true;

        pc = r->to_do[--n];
        insn = &r->nfa->insns[pc];
        r->n_steps++;
        switch ((enum peg__nfa_op)insn->op) {
        case PEG__NFA_SET:
            r->next->at[r->next->n++] = (uint16_t)pc;
            continue;
        case PEG__NFA_MATCH:
            r->is_matched = true;
            return;
        case PEG__NFA_SPLIT:
            n = enter_place(r, n, (uint32_t)((int32_t)pc + insn->to));
            break;
        case PEG__NFA_JUMP:
            n = enter_place(r, n, (uint32_t)((int32_t)pc + insn->to));
            continue;
        case PEG__NFA_START:
            goes_on = r->at == r->start;
            break;
        case PEG__NFA_FINISH:
            goes_on = r->at == r->end;
            break;
        case PEG__NFA_BOUNDARY:
            goes_on = is_boundary(r);
            break;
        case PEG__NFA_NO_BOUNDARY:
            goes_on = !is_boundary(r);
            break;
        }
        if (goes_on)
            n = enter_place(r, n, pc + 1);
    }
}

/* Takes the character at r->at with every place, and begins anew behind it. */
static void take_char(struct run *r, const struct places *now)
{
    const uint32_t c = peg__utf8_next(&r->at);

    r->round++;
    r->next->n = 0;
    for (uint32_t i = 0; i < now->n && !r->is_matched; i++) {
        const uint32_t pc = now->at[i];

        r->n_steps++;
        if (is_in_set(r, &r->nfa->sets[r->nfa->insns[pc].set], c))
            follow_insn(r, pc + 1);
    }
    if (!r->nfa->from_start && !r->is_matched)
        follow_insn(r, 0);
}

enum peg__match peg__nfa_match(const struct peg__nfa *nfa, peg_str subject, uint64_t *steps)
{
    const unsigned char *start = (const unsigned char *)(subject.len ? subject.ptr : "");
    struct places places[2];
    unsigned turn = 0;
    struct run r;
    bool is_over;

    r.nfa = nfa;
    r.start = r.at = start;
    r.end = start + subject.len;
    r.n_steps = 0;
    r.round = 1;
    r.is_matched = false;
    r.next = &places[0];
    r.next->n = 0;
    memset(r.entered, 0, nfa->n_insns * sizeof(r.entered[0]));
    follow_insn(&r, 0);
    do {
        is_over = r.is_matched || r.at == r.end || (nfa->from_start && places[turn].n == 0);
        if (!is_over) {
            r.next = &places[!turn];
            take_char(&r, &places[turn]);
            turn = !turn;
        }
    } while (!is_over && r.n_steps <= *steps);
    if (!is_over) {
        *steps = 0;
        return PEG__MATCH_LIMIT;
    }
    *steps -= r.n_steps < *steps ? r.n_steps : *steps;
    return r.is_matched ? PEG__MATCH_YES : PEG__MATCH_NO;
}
