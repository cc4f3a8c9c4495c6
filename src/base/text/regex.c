/* SPDX-License-Identifier: Apache-2.0 */

/*
 * PCRE2 behind a small face. Three things are decided here:
 *
 * JIT comes late. Compiling takes 1-5 us a pattern, compiling to machine code another 6-17 us,
 * and a match 40-250 ns in the interpreter against 20-50 ns in machine code (PCRE2 10.42, x86-64,
 * patterns of 10-80 bytes). Most schemas check a handful of values, so machine code is made at the
 * JIT_AFTER-th match, or at the first long subject, into a copy, by the thread that got there;
 * other threads go on with the interpreter until the pointer to the copy appears.
 *
 * Match limits. PCRE2 counts backtracking points (JIT: entries of groups and of alternatives, up
 * to a third more than the interpreter) and starts anew at every start position; the first
 * position that reaches the limit ends the search. 10,000 take about 20 us in machine code and
 * 200-300 us in the interpreter. So a search may cost limit * length, and worse: \s+$ over a
 * megabyte of blanks counts little and takes minutes, because each start runs to the end.
 * Long subjects are therefore searched in windows of start positions, with a look at the thread's
 * CPU clock between them. That leaves what one window may take: for 16 KiB 0.2 s. Beyond that
 * the clock is looked at during the match, from callouts before every item of the pattern; they
 * cost 5-70 ns a byte, so the code that has them is only made for subjects of that length.
 *
 * Memory. All of PCRE2's goes through base/mem.h but for machine code and its stack. A matcher
 * keeps what it needed once.
 */

#include "base/text/regex.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"

enum {
    JIT_AFTER = 16,
    /* For backtracking. Machine code needs some 32 bytes for each repetition of a group, so this
     * is one repeated for each byte of a megabyte; only what is touched takes memory, and a stack
     * that served a long subject is given back. */
    JIT_STACK_BYTES = 64 << 20,
    JIT_STACK_BYTES_FIRST = 64 << 10,
    KEEP_STACK_BELOW = 64 << 10,
    INTERPRETER_STACK_KIB = 8 << 10,
    /* Start positions searched before looking at the clock. */
    FIRST_WINDOW = 256,
    /* Honest searches take 1-20 ns a byte. */
    BUDGET_NS = 20000000,
    BUDGET_NS_PER_BYTE = 60,
    /* Subjects of more bytes are watched. */
    WATCH_ABOVE = 16 << 10,
    WATCHED_NS_PER_BYTE = 200,
    /* Bytes that may have been looked at before the next look at the clock: each item may run over
     * the whole subject. */
    BYTES_PER_LOOK = 4 << 20,
    MAX_MATCH_LIMIT = 10000000,
    /* What a callout counts as where steps are counted: itself, and an item that runs over the
     * whole subject, which takes 1 ns a byte. */
    STEPS_PER_CALLOUT = 4,
    BYTES_PER_STEP = 4,
};

/* Changed by matching, so apart from the immutable rest. */
struct warmth {
    _Atomic(pcre2_code *) fast;    /* a copy of code with machine code, once there */
    _Atomic(pcre2_code *) watched; /* with callouts, once a subject was that long */
    atomic_uint n_matches;         /* until JIT_AFTER */
};

struct peg__regex {
    pcre2_code *code;
    size_t bytes;
    uint32_t options;
    bool is_anchored;
    peg_str pattern;       /* in the same block, */
    struct warmth *warmth; /* as this */
};

struct regex_block {
    struct peg__regex regex;
    struct warmth warmth;
    char pattern[];
};

struct peg__matcher {
    pcre2_general_context *general;
    pcre2_match_context *context;
    pcre2_match_data *data;
    pcre2_jit_stack *stack; /* once the 32 KiB on the thread's own stack were too small */
    uint64_t *steps;        /* NULL: they are not counted */
    uint32_t limit;
};

static void *allocate(size_t size, void *unused)
{
    (void)unused;
    return peg__alloc(size);
}

static void release_memory(void *memory, void *unused)
{
    (void)unused;
    peg__free(memory);
}

/* ---- compiling ------------------------------------------------------------------ */

static peg_status fail_compile(int number, size_t offset, peg_error *reterr)
{
    PCRE2_UCHAR words[160];

    if (number == PCRE2_ERROR_HEAP_FAILED)
        return peg__fail_nomem(reterr);
    if (number == PCRE2_ERROR_PATTERN_TOO_LARGE || number == PCRE2_ERROR_PATTERN_TOO_COMPLICATED ||
        number == PCRE2_ERROR_PATTERN_STRING_TOO_LONG)
        return peg__fail(reterr, PEG_ELIMIT, "E_PATTERN_TOO_LARGE",
                         "the pattern is too large once its repetitions are written out; repeat "
                         "less");
    if (pcre2_get_error_message(number, words, sizeof(words)) < 0)
        words[0] = '\0';
    peg__fail(reterr, PEG_EPARSE, "E_PATTERN_SYNTAX", "%s", (const char *)words);
    if (reterr)
        reterr->offset = offset;
    return PEG_EPARSE;
}

static pcre2_code *compile_pattern(peg_str pattern, uint32_t options, int *ret_number,
                                   size_t *ret_offset)
{
    pcre2_general_context *general = pcre2_general_context_create(allocate, release_memory, NULL);
    pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;
    pcre2_code *code = NULL;

    *ret_number = PCRE2_ERROR_HEAP_FAILED;
    if (context) {
        /* The translation may add one level. */
        pcre2_set_parens_nest_limit(context, PEG_LIMIT_PATTERN_NESTING + 1);
        code = pcre2_compile((PCRE2_SPTR)pattern.ptr, pattern.len, options, ret_number, ret_offset,
                             context);
    }
    pcre2_compile_context_free(context);
    pcre2_general_context_free(general);
    return code;
}

peg_status peg__regex_new(peg_str pattern, bool caseless, struct peg__regex **ret_regex,
                          peg_error *reterr)
{
    const uint32_t options = PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_DOLLAR_ENDONLY |
                             PCRE2_MATCH_UNSET_BACKREF | PCRE2_USE_OFFSET_LIMIT |
                             (caseless ? PCRE2_CASELESS : 0U);
    struct regex_block *block = peg__alloc_zero(1, sizeof(*block) + pattern.len);
    struct peg__regex *regex;
    uint32_t all_options = 0;
    size_t size = 0;
    int number;
    size_t offset = 0;

    if (!block)
        return peg__fail_nomem(reterr);
    regex = &block->regex;
    regex->warmth = &block->warmth;
    regex->options = options;
    regex->pattern = (peg_str){block->pattern, pattern.len};
    if (pattern.len)
        memcpy(block->pattern, pattern.ptr, pattern.len);
    regex->code = compile_pattern(regex->pattern, options, &number, &offset);
    if (regex->code)
        pcre2_pattern_info(regex->code, PCRE2_INFO_SIZE, &size);
    if (!regex->code || size > PEG_LIMIT_PATTERN_COMPILED) {
        peg__regex_free(regex);
        return fail_compile(size ? PCRE2_ERROR_PATTERN_TOO_LARGE : number, offset, reterr);
    }
    pcre2_pattern_info(regex->code, PCRE2_INFO_ALLOPTIONS, &all_options);
    regex->is_anchored = all_options & PCRE2_ANCHORED;
    /* As if machine code were there already: 2-6 times the size, and the copy. */
    regex->bytes = sizeof(*block) + pattern.len + 6 * size + 512;
    *ret_regex = regex;
    return PEG_OK;
}

struct peg__regex *peg__regex_free(struct peg__regex *regex)
{
    if (regex) {
        pcre2_code_free(atomic_load_explicit(&regex->warmth->watched, memory_order_acquire));
        pcre2_code_free(atomic_load_explicit(&regex->warmth->fast, memory_order_acquire));
        pcre2_code_free(regex->code);
    }
    peg__free(regex); /* the first member of its block */
    return NULL;
}

size_t peg__regex_bytes(const struct peg__regex *regex)
{
    return regex->bytes;
}

/* Without JIT, or without memory for it, the interpreter goes on: slower, equally right. */
static void make_fast(const struct peg__regex *regex)
{
    pcre2_code *fast = pcre2_code_copy(regex->code);

    if (fast && pcre2_jit_compile(fast, PCRE2_JIT_COMPLETE) == 0)
        atomic_store_explicit(&regex->warmth->fast, fast, memory_order_release);
    else
        pcre2_code_free(fast);
}

/* ---- matching --------------------------------------------------------------------- */

struct peg__matcher *peg__matcher_new(uint32_t match_limit)
{
    struct peg__matcher *matcher = peg__alloc_zero(1, sizeof(*matcher));

    if (!matcher)
        return NULL;
    matcher->limit = match_limit;
    matcher->general = pcre2_general_context_create(allocate, release_memory, NULL);
    if (matcher->general) {
        matcher->context = pcre2_match_context_create(matcher->general);
        matcher->data = pcre2_match_data_create(1, matcher->general);
    }
    if (!matcher->context || !matcher->data)
        return peg__matcher_free(matcher);
    pcre2_set_heap_limit(matcher->context, INTERPRETER_STACK_KIB);
    return matcher;
}

struct peg__matcher *peg__matcher_free(struct peg__matcher *matcher)
{
    if (matcher) {
        pcre2_jit_stack_free(matcher->stack);
        pcre2_match_data_free(matcher->data);
        pcre2_match_context_free(matcher->context);
        pcre2_general_context_free(matcher->general);
    }
    peg__free(matcher);
    return NULL;
}

void peg__matcher_set_steps(struct peg__matcher *matcher, uint64_t *steps)
{
    matcher->steps = steps;
}

uint64_t *peg__matcher_steps(const struct peg__matcher *matcher)
{
    return matcher->steps;
}

/* One search by PCRE2. `fast` may be NULL. */
struct search {
    const pcre2_code *code;
    const pcre2_code *fast;
    struct peg__matcher *matcher;
    peg_str subject;
};

static int run(const struct search *s, size_t start)
{
    const PCRE2_SPTR text = (PCRE2_SPTR)s->subject.ptr;

    if (s->fast)
        return pcre2_jit_match(s->fast, text, s->subject.len, start, PCRE2_NO_UTF_CHECK,
                               s->matcher->data, s->matcher->context);
    return pcre2_match(s->code, text, s->subject.len, start, PCRE2_NO_UTF_CHECK, s->matcher->data,
                       s->matcher->context);
}

static bool add_stack(struct peg__matcher *matcher)
{
    matcher->stack =
        pcre2_jit_stack_create(JIT_STACK_BYTES_FIRST, JIT_STACK_BYTES, matcher->general);
    if (matcher->stack)
        pcre2_jit_stack_assign(matcher->context, NULL, matcher->stack);
    return matcher->stack != NULL;
}

static void drop_stack(struct peg__matcher *matcher)
{
    if (!matcher->stack)
        return;
    pcre2_jit_stack_assign(matcher->context, NULL, NULL);
    pcre2_jit_stack_free(matcher->stack);
    matcher->stack = NULL;
}

/* Do matches start at `start` or up to `last`? */
static enum peg__match search_from(const struct search *s, size_t start, size_t last,
                                   uint32_t limit)
{
    int result;

    pcre2_set_match_limit(s->matcher->context, limit);
    pcre2_set_offset_limit(s->matcher->context, last);
    result = run(s, start);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT && !s->matcher->stack) {
        if (!add_stack(s->matcher))
            return PEG__MATCH_NOMEM;
        result = run(s, start);
    }
    if (result >= 0)
        return PEG__MATCH_YES;
    if (result == PCRE2_ERROR_NOMATCH)
        return PEG__MATCH_NO;
    return result == PCRE2_ERROR_NOMEMORY ? PEG__MATCH_NOMEM : PEG__MATCH_LIMIT;
}

/* What one start position may count: a group repeated over the whole subject is honest. */
static uint32_t long_limit(uint32_t limit, size_t len)
{
    const uint64_t scaled = (uint64_t)limit + 4 * (uint64_t)len;
    const uint32_t most = limit > MAX_MATCH_LIMIT ? limit : MAX_MATCH_LIMIT;

    return scaled > most ? most : (uint32_t)scaled;
}

static int64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static size_t next_char(peg_str subject, size_t at)
{
    while (at < subject.len && peg__utf8_is_tail(subject.ptr[at]))
        at++;
    return at;
}

/* Windows grow while all goes well. One that reaches the limit is halved, down to the position
 * that is to blame, which then gets a second chance with what its subject's length allows. */
static enum peg__match search_windows(const struct search *s)
{
    const size_t len = s->subject.len;
    const size_t max_window = len / 64 > FIRST_WINDOW ? len / 64 : FIRST_WINDOW;
    const int64_t deadline = cpu_ns() + BUDGET_NS + (int64_t)len * BUDGET_NS_PER_BYTE;
    size_t window = FIRST_WINDOW;
    size_t start = 0;

    while (start <= len) {
        enum peg__match result = search_from(s, start, start + window - 1, s->matcher->limit);

        if (result == PEG__MATCH_LIMIT && window > 1) {
            window /= 2;
        } else {
            if (result == PEG__MATCH_LIMIT)
                result = search_from(s, start, start, long_limit(s->matcher->limit, len));
            if (result != PEG__MATCH_NO)
                return result;
            start = next_char(s->subject, start + window);
            window = window * 2 < max_window ? window * 2 : max_window;
        }
        if (cpu_ns() > deadline)
            return PEG__MATCH_LIMIT;
    }
    return PEG__MATCH_NO;
}

/* ---- watched ------------------------------------------------------------------------ */

/* NULL: without memory, or too large with callouts, as *ret_why says. */
static const pcre2_code *watched_code(const struct peg__regex *regex, enum peg__match *ret_why)
{
    pcre2_code *code = atomic_load_explicit(&regex->warmth->watched, memory_order_acquire);
    pcre2_code *other = NULL;
    size_t offset;
    int number;

    if (code)
        return code;
    code = compile_pattern(regex->pattern, regex->options | PCRE2_AUTO_CALLOUT, &number, &offset);
    if (!code) {
        *ret_why = number == PCRE2_ERROR_HEAP_FAILED ? PEG__MATCH_NOMEM : PEG__MATCH_LIMIT;
        return NULL;
    }
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* if it can't, the interpreter does it */
    if (atomic_compare_exchange_strong(&regex->warmth->watched, &other, code))
        return code;
    pcre2_code_free(code); /* somebody was faster */
    return other;
}

struct watch {
    int64_t deadline; /* of the thread's CPU clock */
    struct timespec tick;
    size_t len;
    size_t n_unseen; /* bytes since the last look */
};

/* The CPU clock takes a system call, so it is asked when a cheaper one says that time has passed.
 */
static int look_at_clock(pcre2_callout_block *block, void *user)
{
    struct watch *watch = user;
    struct timespec now;

    (void)block;
    watch->n_unseen += watch->len;
    if (watch->n_unseen < BYTES_PER_LOOK)
        return 0;
    watch->n_unseen = 0;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_nsec == watch->tick.tv_nsec && now.tv_sec == watch->tick.tv_sec)
        return 0;
    watch->tick = now;
    return cpu_ns() > watch->deadline ? PCRE2_ERROR_CALLOUT : 0;
}

static enum peg__match search_watched(const struct peg__regex *regex, struct search *s)
{
    const size_t len = s->subject.len;
    struct watch watch = {
        .deadline = cpu_ns() + BUDGET_NS + (int64_t)len * WATCHED_NS_PER_BYTE,
        .len = len,
    };
    const pcre2_code *code;
    enum peg__match result = PEG__MATCH_NOMEM;

    code = watched_code(regex, &result);
    if (!code)
        return result == PEG__MATCH_LIMIT ? search_windows(s) : result;
    s->fast = NULL;
    s->code = code;
    pcre2_set_callout(s->matcher->context, look_at_clock, &watch);
    result = search_from(s, 0, PCRE2_UNSET, long_limit(s->matcher->limit, len));
    pcre2_set_callout(s->matcher->context, NULL, NULL);
    return result;
}

/* ---- counted ---------------------------------------------------------------------------- */

struct count {
    uint64_t *steps;
    uint64_t n_each;
};

static int count_steps(pcre2_callout_block *block, void *user)
{
    struct count *count = user;

    (void)block;
    if (*count->steps < count->n_each) {
        *count->steps = 0;
        return PCRE2_ERROR_CALLOUT;
    }
    *count->steps -= count->n_each;
    return 0;
}

static enum peg__match search_counted(const struct peg__regex *regex, struct search *s)
{
    struct count count = {.steps = s->matcher->steps,
                          .n_each = STEPS_PER_CALLOUT + s->subject.len / BYTES_PER_STEP};
    enum peg__match result = PEG__MATCH_NOMEM;

    s->code = watched_code(regex, &result);
    if (!s->code)
        return result;
    pcre2_set_callout(s->matcher->context, count_steps, &count);
    result = search_from(s, 0, PCRE2_UNSET, MAX_MATCH_LIMIT);
    pcre2_set_callout(s->matcher->context, NULL, NULL);
    return result;
}

/* ---- any subject --------------------------------------------------------------------- */

/* Counts the matches of a regex that has no machine code yet. A long subject counts for many:
 * the interpreter would reach its limits long before machine code does. */
static bool is_time_for_jit(struct warmth *warmth, size_t len)
{
    const unsigned weight = len > FIRST_WINDOW ? JIT_AFTER : 1;
    unsigned before = atomic_load_explicit(&warmth->n_matches, memory_order_relaxed);

    if (before >= JIT_AFTER)
        return false;
    before = atomic_fetch_add_explicit(&warmth->n_matches, weight, memory_order_relaxed);
    return before < JIT_AFTER && before + weight >= JIT_AFTER;
}

enum peg__match peg__regex_match(const struct peg__regex *regex, struct peg__matcher *matcher,
                                 peg_str subject)
{
    const peg_str text = {subject.len ? subject.ptr : "", subject.len};
    struct search s = {.code = regex->code, .matcher = matcher, .subject = text};
    enum peg__match result;

    if (matcher->steps)
        return search_counted(regex, &s);
    s.fast = atomic_load_explicit(&regex->warmth->fast, memory_order_acquire);
    if (!s.fast && is_time_for_jit(regex->warmth, text.len)) {
        make_fast(regex);
        s.fast = atomic_load_explicit(&regex->warmth->fast, memory_order_acquire);
    }
    if (text.len > WATCH_ABOVE)
        result = search_watched(regex, &s);
    else if (regex->is_anchored || text.len <= FIRST_WINDOW)
        result = search_from(&s, 0, PCRE2_UNSET, long_limit(matcher->limit, text.len));
    else
        result = search_windows(&s);
    if (text.len > KEEP_STACK_BELOW)
        drop_stack(matcher);
    return result;
}
