/* SPDX-License-Identifier: Apache-2.0 */

/* Input: an ECMA-262 pattern, a line end, a subject. Nothing exceeds its bounds. */

#include "schema/pattern/pattern.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "fuzz.h"

static void check_translation(peg_str ecma, bool is_valid)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_error error;
    const peg_status status = peg__pattern_translate(ecma, &out, &error);

    REQUIRE(out.len <= 64 * ecma.len + 1024, "%zu bytes became %zu", ecma.len, out.len);
    if (status == PEG_OK)
        REQUIRE(peg__utf8_is_valid(peg__buf_view(&out)), "%s", out.ptr);
    else
        fuzz_check_error(&error, ecma);
    REQUIRE(!is_valid || status != PEG_EPARSE, "valid, but not translated: %s", error.message);
    peg__buf_free(&out);
}

/* By the automaton, if there is one. */
static void check_counted(const struct peg__pattern *pattern, struct peg__matcher *matcher,
                          peg_str subject, enum peg__match expected)
{
    uint64_t steps = 1000000;
    enum peg__match match;

    peg__matcher_set_steps(matcher, &steps);
    match = peg__pattern_match(pattern, matcher, subject);
    peg__matcher_set_steps(matcher, NULL);
    REQUIRE(match == expected || match == PEG__MATCH_LIMIT || expected == PEG__MATCH_LIMIT,
            "%d, and %d where steps are counted", (int)expected, (int)match);
}

static void check_match(const struct peg__pattern *pattern, peg_str subject)
{
    static struct peg__matcher *matcher;
    enum peg__match match;

    if (!matcher)
        matcher = peg__matcher_new(PEG_LIMIT_MATCH);
    REQUIRE(matcher, "memory");
    match = peg__pattern_match(pattern, matcher, subject);
    REQUIRE(match != PEG__MATCH_NOMEM, "memory");
    REQUIRE(match == peg__pattern_match(pattern, matcher, subject), "the same subject, twice");
    check_counted(pattern, matcher, subject, match);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const peg_str text = fuzz_utf8(fuzz_input(data, size));
    peg_str subject = text;
    const peg_str ecma = fuzz_line(&subject);
    struct peg__pattern *pattern = NULL;
    peg_error error;

    check_translation(ecma, peg__pattern_is_valid(ecma));
    if (peg__pattern_new(ecma, PEG_LIMIT_PATTERN_BYTES, &pattern, &error) == PEG_OK)
        check_match(pattern, subject);
    else
        fuzz_check_error(&error, ecma);
    peg__pattern_free(pattern);
    fuzz_free(text);
    return 0;
}
