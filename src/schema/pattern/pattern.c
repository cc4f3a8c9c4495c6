/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A pattern is matched by hand where that is exact, else by PCRE2 or, where that may take long, by
 * an automaton (decision 45). Best of five in CPU time
 * (x86-64, gcc 12 -O2), PCRE2 in machine code:
 *
 *                                        create    match
 *   .*                           hand     80 ns     3 ns
 *   ^(get|set|list|delete)$      hand    290 ns     8 ns
 *   ^[a-z][a-z0-9_]*$            hand    220 ns    22 ns   (18 bytes)
 *   ^\d{4}-\d{2}-\d{2}$          hand    190 ns    23 ns
 *   ^[a-z0-9]+(?:-[a-z0-9]+)*$   hand    300 ns    50 ns   (20 bytes)
 *   ^(?!foo).*bar$               PCRE2   1.2 us    35 ns
 *   ^[^@\s]+@[^@\s]+\.[^@\s]+$   PCRE2   2.6 us    58 ns
 */

#include "schema/pattern/pattern.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "schema/pattern/internal.h"

/* Either simple or regex, and an automaton beside the regex if there is one of the pattern. */
struct peg__pattern {
    struct peg__simple *simple;
    struct peg__regex *regex;
    struct peg__nfa *nfa;
};

/* Subjects of more bytes go to the automaton first: PCRE2 may take a time that grows with the
 * square of the length, here 1 ms. */
enum { NFA_ABOVE = 1024 };

/* What the automaton may take of one subject: 3 ns each. Honest patterns take less than 100 a byte.
 */
enum { NFA_STEPS = 1000000, NFA_STEPS_PER_BYTE = 256 };

PEG_DEFINE_CLEANUP(struct peg__pattern, peg__pattern_free)

static size_t translated_max(peg_str ecma)
{
    return 64 * ecma.len + 1024;
}

/* What PCRE2 10.42 can count to. */
enum { MAX_REPEAT = 65535 };

static uint32_t largest_count(const struct peg__token *repeat)
{
    return repeat->max == PEG__REPEAT_FOREVER ? repeat->min : repeat->max;
}

static peg_status refuse_count(const struct peg__pattern_reader *reader, uint32_t count, size_t at,
                               peg_error *reterr)
{
    peg__fail(reterr, PEG_ELIMIT, "E_PATTERN_TOO_LARGE",
              "a quantifier counts to %u, more than %d; write a smaller bound, or use maxLength",
              count, MAX_REPEAT);
    peg__pattern_refuse_at(reader, at);
    return PEG_ELIMIT;
}

/* Is the token one that PCRE2 can't do? Returns PEG_OK if it is not to blame. */
static peg_status explain_token(const struct peg__pattern_reader *reader,
                                const struct peg__token *token, peg_error *reterr)
{
    if (token->kind == PEG__TOKEN_REPEAT && largest_count(token) > MAX_REPEAT)
        return refuse_count(reader, largest_count(token), token->at, reterr);
    if (token->kind == PEG__TOKEN_BACKREF && token->in_lookbehind)
        return PEG__PATTERN_REFUSE(reader, token->at,
                                   "a backreference inside a lookbehind is not supported; write "
                                   "out what it refers to");
    if (token->kind == PEG__TOKEN_PROPERTY && token->name_len && token->name[0] == 'C' &&
        (peg__str_is((peg_str){token->name, token->name_len}, "Changes_When_NFKC_Casefolded") ||
         peg__str_is((peg_str){token->name, token->name_len}, "CWKCF")))
        return PEG__PATTERN_REFUSE(reader, token->at,
                                   "the property %.*s is not supported; list its characters",
                                   (int)token->name_len, token->name);
    return PEG_OK;
}

/* The reader found no fault, so PCRE2 rejects what it can't do. Finds out what that is; the message
 * already in *reterr stays if it is none of what we know. */
static peg_status explain_refusal(peg_str ecma, peg_error *reterr)
{
    struct peg__pattern_reader reader;
    struct peg__token token;

    peg__pattern_reader_init(&reader, ecma, reterr);
    do {
        peg_status status = peg__pattern_next(&reader, &token);

        if (status == PEG_OK)
            status = explain_token(&reader, &token, reterr);
        if (status)
            return status;
    } while (token.kind != PEG__TOKEN_END);
    if (reader.has_lookbehind)
        return PEG__PATTERN_REFUSE(&reader, reader.lookbehind_at,
                                   "a lookbehind whose alternatives vary in length is not "
                                   "supported; write (?<=a|bb) with one for each length");
    peg__error_at(reterr, ecma, 0);
    return PEG_EPARSE;
}

static peg_status compile_regex(peg_str ecma, unsigned flags, struct peg__regex **ret_regex,
                                peg_error *reterr)
{
    struct peg__buf translated = PEG__BUF(translated_max(ecma));
    peg_status status = peg__pattern_translate_with_flags(ecma, flags, &translated, reterr);

    if (status == PEG_OK) {
        status = peg__regex_new(peg__buf_view(&translated), flags & PEG__PATTERN_CASELESS,
                                ret_regex, reterr);
        if (status == PEG_EPARSE)
            status = explain_refusal(ecma, reterr);
    }
    peg__buf_free(&translated);
    return status;
}

static peg_status choose_matcher(struct peg__pattern *pattern, peg_str ecma, unsigned flags,
                                 peg_error *reterr)
{
    struct peg__plan plan;
    bool simple = false;
    peg_status status = flags ? PEG_OK : peg__pattern_plan(ecma, &plan, &simple, reterr);

    if (status)
        return status;
    if (!simple) {
        status = compile_regex(ecma, flags, &pattern->regex, reterr);
        if (!status && !flags && peg__nfa_new(ecma, &pattern->nfa) == PEG_ENOMEM)
            status = peg__fail_nomem(reterr);
        return status;
    }
    pattern->simple = peg__simple_new(&plan);
    return pattern->simple ? PEG_OK : peg__fail_nomem(reterr);
}

peg_status peg__pattern_new(peg_str ecma, size_t max_bytes, struct peg__pattern **ret_pattern,
                            peg_error *reterr)
{
    return peg__pattern_new_with_flags(ecma, 0, max_bytes, ret_pattern, reterr);
}

peg_status peg__pattern_new_with_flags(peg_str ecma, unsigned flags, size_t max_bytes,
                                       struct peg__pattern **ret_pattern, peg_error *reterr)
{
    PEG_CLEANUP(peg__pattern_freep) struct peg__pattern *pattern = NULL;
    peg_status status;

    if (ecma.len > max_bytes)
        return peg__fail(reterr, PEG_ELIMIT, "E_PATTERN_TOO_LARGE",
                         "the pattern has %zu bytes, more than %zu; write a shorter one", ecma.len,
                         max_bytes);
    pattern = peg__alloc_zero(1, sizeof(*pattern));
    if (!pattern)
        return peg__fail_nomem(reterr);
    status = choose_matcher(pattern, ecma, flags, reterr);
    if (status)
        return status;
    *ret_pattern = pattern;
    pattern = NULL;
    return PEG_OK;
}

struct peg__pattern *peg__pattern_free(struct peg__pattern *pattern)
{
    if (pattern) {
        peg__simple_free(pattern->simple);
        peg__regex_free(pattern->regex);
        peg__nfa_free(pattern->nfa);
    }
    peg__free(pattern);
    return NULL;
}

size_t peg__pattern_bytes(const struct peg__pattern *pattern)
{
    const size_t nfa = pattern->nfa ? peg__nfa_bytes(pattern->nfa) : 0;

    return sizeof(*pattern) + (pattern->simple ? peg__simple_bytes(pattern->simple)
                                               : nfa + peg__regex_bytes(pattern->regex));
}

static enum peg__match match_by_nfa(const struct peg__pattern *pattern, peg_str subject)
{
    uint64_t steps = NFA_STEPS + NFA_STEPS_PER_BYTE * (uint64_t)subject.len;

    return pattern->nfa ? peg__nfa_match(pattern->nfa, subject, &steps) : PEG__MATCH_LIMIT;
}

enum peg__match peg__pattern_match(const struct peg__pattern *pattern, struct peg__matcher *matcher,
                                   peg_str subject)
{
    const bool is_long = subject.len > NFA_ABOVE;
    uint64_t *steps = peg__matcher_steps(matcher);
    enum peg__match result = PEG__MATCH_LIMIT;

    if (pattern->simple)
        return peg__simple_match(pattern->simple, subject) ? PEG__MATCH_YES : PEG__MATCH_NO;
    if (steps && pattern->nfa)
        return peg__nfa_match(pattern->nfa, subject, steps);
    if (is_long && !steps)
        result = match_by_nfa(pattern, subject);
    if (result == PEG__MATCH_LIMIT)
        result = peg__regex_match(pattern->regex, matcher, subject);
    if (result == PEG__MATCH_LIMIT && !is_long && !steps)
        result = match_by_nfa(pattern, subject);
    return result;
}
