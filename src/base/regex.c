/* SPDX-License-Identifier: Apache-2.0 */

#include "base/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"

struct peg__regex {
    pcre2_code *code;
    size_t bytes;
};

struct peg__matcher {
    pcre2_match_context *context;
    pcre2_match_data *data;
    uint32_t limit;
};

static void *allocate(size_t size, void *unused)
{
    (void)unused;
    return peg__alloc(size);
}

static void release(void *memory, void *unused)
{
    (void)unused;
    peg__free(memory);
}

static peg_status fail_compile(int number, size_t offset, peg_error *reterr)
{
    PCRE2_UCHAR words[160];

    if (number == PCRE2_ERROR_HEAP_FAILED || number == 121 /* failed to allocate */)
        return peg__fail_nomem(reterr);
    if (number == PCRE2_ERROR_PATTERN_TOO_LARGE || number == 188)
        return peg__fail(reterr, PEG_ELIMIT, "E_PATTERN_TOO_LARGE",
                         "the compiled pattern is larger than %d bytes; repeat less",
                         PEG_LIMIT_PATTERN_COMPILED);
    if (pcre2_get_error_message(number, words, sizeof(words)) < 0)
        words[0] = '\0';
    peg__fail(reterr, PEG_EPARSE, "E_PATTERN_SYNTAX", "%s", (const char *)words);
    if (reterr)
        reterr->offset = offset;
    return PEG_EPARSE;
}

static pcre2_code *compile(peg_str pattern, uint32_t options, int *ret_number, size_t *ret_offset)
{
    pcre2_general_context *general = pcre2_general_context_create(allocate, release, NULL);
    pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;
    pcre2_code *code = NULL;

    *ret_number = PCRE2_ERROR_HEAP_FAILED;
    if (context) {
        pcre2_set_parens_nest_limit(context, PEG_LIMIT_PATTERN_NESTING);
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
                             PCRE2_MATCH_UNSET_BACKREF | (caseless ? PCRE2_CASELESS : 0U);
    struct peg__regex *regex = peg__alloc(sizeof(*regex));
    int number;
    size_t offset = 0;
    size_t jit = 0;

    if (!regex)
        return peg__fail_nomem(reterr);
    *regex = (struct peg__regex){.code = compile(pattern, options, &number, &offset)};
    if (!regex->code) {
        peg__free(regex);
        return fail_compile(number, offset, reterr);
    }
    pcre2_pattern_info(regex->code, PCRE2_INFO_SIZE, &regex->bytes);
    if (regex->bytes > PEG_LIMIT_PATTERN_COMPILED) {
        peg__regex_free(regex);
        return fail_compile(PCRE2_ERROR_PATTERN_TOO_LARGE, 0, reterr);
    }
    /* Without JIT, or without memory for it, the interpreter matches: slower, equally right. */
    (void)pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE);
    pcre2_pattern_info(regex->code, PCRE2_INFO_JITSIZE, &jit);
    regex->bytes += sizeof(*regex) + jit;
    *ret_regex = regex;
    return PEG_OK;
}

struct peg__regex *peg__regex_free(struct peg__regex *regex)
{
    if (regex)
        pcre2_code_free(regex->code);
    peg__free(regex);
    return NULL;
}

size_t peg__regex_bytes(const struct peg__regex *regex)
{
    return regex->bytes;
}

struct peg__matcher *peg__matcher_new(uint32_t match_limit)
{
    struct peg__matcher *matcher = peg__alloc_zero(1, sizeof(*matcher));
    pcre2_general_context *general = pcre2_general_context_create(allocate, release, NULL);

    if (matcher && general) {
        matcher->limit = match_limit;
        matcher->context = pcre2_match_context_create(general);
        matcher->data = pcre2_match_data_create(1, general);
    }
    pcre2_general_context_free(general);
    if (!matcher || !matcher->context || !matcher->data)
        return peg__matcher_free(matcher);
    pcre2_set_heap_limit(matcher->context, 8192); /* KiB, for the interpreter */
    return matcher;
}

struct peg__matcher *peg__matcher_free(struct peg__matcher *matcher)
{
    if (matcher) {
        pcre2_match_data_free(matcher->data);
        pcre2_match_context_free(matcher->context);
    }
    peg__free(matcher);
    return NULL;
}

/* PCRE2 counts backtracks over the whole call in JIT code but per start in words of its manual;
 * either way a subject twice as long may honestly need twice as many. */
static uint32_t scaled_limit(uint32_t limit, size_t len)
{
    const uint64_t scaled = (uint64_t)limit + (uint64_t)limit * (len / 64);

    return scaled > 10000000 ? 10000000 : (uint32_t)scaled;
}

enum peg__match peg__regex_match(const struct peg__regex *regex, struct peg__matcher *matcher,
                                 peg_str subject)
{
    int result;

    pcre2_set_match_limit(matcher->context, scaled_limit(matcher->limit, subject.len));
    result = pcre2_match(regex->code, (PCRE2_SPTR)subject.ptr, subject.len, 0, PCRE2_NO_UTF_CHECK,
                         matcher->data, matcher->context);
    if (result >= 0)
        return PEG__MATCH_YES;
    if (result == PCRE2_ERROR_NOMATCH)
        return PEG__MATCH_NO;
    return result == PCRE2_ERROR_NOMEMORY ? PEG__MATCH_NOMEM : PEG__MATCH_LIMIT;
}
