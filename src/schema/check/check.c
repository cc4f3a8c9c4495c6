/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A whole check. The loop over the instructions for one value is in check_run.h; what goes
 * through branches, items or members is in check_logic.c, check_array.c and check_object.c,
 * which come back to that loop for each of them.
 */

#include "schema/check/run.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "schema/check/check.h"
#include "json/json.h"
#include "json/number/number.h"

bool peg__halt(struct peg_checker *ck, const char *limit)
{
    if (!ck->halted)
        ck->halted = limit;
    return false;
}

bool peg__fail_rule(struct peg_checker *ck, const peg_json *rule, const peg_json *value,
                    const peg_json *detail)
{
    switch (ck->mode) {
    case MODE_VERDICT:
        return false;
    case MODE_REPORT:
        peg__report_add(ck, rule, value, detail);
        return true;
    case MODE_SCORE:
        peg__report_score(ck, rule, value);
        return true;
    }
    return false;
}

size_t peg__scratch(struct peg_checker *ck, size_t n)
{
    const size_t offset = ck->n_words;

    if (!PEG__RESERVE(ck->words, offset + n, ck->words_capacity)) {
        peg__halt(ck, "memory");
        return SIZE_MAX;
    }
    memset(ck->words + offset, 0, n * sizeof(*ck->words));
    ck->n_words = offset + n;
    return offset;
}

/* ---- longer instructions -------------------------------------------------------- */

static bool check_pattern(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    switch (peg__checker_match(ck, ck->schema->patterns[insn->a], peg_json_str(v))) {
    case PEG__MATCH_YES:
        return true;
    case PEG__MATCH_NO:
        return peg__fail_insn(ck, insn, v);
    case PEG__MATCH_LIMIT:
    case PEG__MATCH_NOMEM:
        break;
    }
    return false;
}

static bool is_written_whole(const peg_json *number)
{
    if (number->form != PEG_JSON_FORM_TEXT)
        return number->form == PEG_JSON_FORM_MINUS0 && number->exponent == 0;
    for (uint32_t i = 0; i < number->len; i++)
        if (number->u.ptr[i] == '.' || (number->u.ptr[i] | 0x20) == 'e')
            return false;
    return true;
}

static bool fits_number(const struct peg_checker *ck, const struct peg__insn *insn,
                        const peg_json *v)
{
    const peg_json *bound = peg__rule(ck, insn) + 1;

    switch (insn->op) {
    case OP_MIN:
        return peg_json_compare_numbers(v, bound) >= 0;
    case OP_MAX:
        return peg_json_compare_numbers(v, bound) <= 0;
    case OP_ABOVE:
        return peg_json_compare_numbers(v, bound) > 0;
    case OP_BELOW:
        return peg_json_compare_numbers(v, bound) < 0;
    case OP_MULTIPLE:
        return peg__number_is_multiple(v, bound);
    case OP_WHOLE:
        return peg_json_is_whole(v);
    default:
        return is_written_whole(v);
    }
}

/* Those that look at everything that the value contains, and those that look at its first level. */
static inline uint64_t cost_of(const struct peg__insn *insn, const peg_json *v)
{
    if (insn->op == OP_UNIQUE)
        return peg_json_extent(v) / 2;
    if (insn->op == OP_CONST || insn->op == OP_ENUM || insn->op == OP_ENUM_HASH)
        return peg_json_extent(v) / 16;
    if (insn->op == OP_PATTERN)
        return v->len / 256;
    return peg__size_in_steps(v);
}

bool peg__run_long(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    if (!peg__charge(ck, cost_of(insn, v)))
        return false;
    switch (insn->op) {
    case OP_CALL:
        return peg__check_call(ck, insn, v);
    case OP_ANY_OF:
        return peg__check_any_of(ck, insn, v);
    case OP_ONE_OF:
        return peg__check_one_of(ck, insn, v);
    case OP_SWITCH:
        return peg__check_switch(ck, insn, v);
    case OP_NOT:
        return peg__check_not(ck, insn, v);
    case OP_IF:
        return peg__check_if(ck, insn, v);
    case OP_TRACK:
        return peg__check_track(ck, insn, v);
    case OP_PATTERN:
        return check_pattern(ck, insn, v);
    case OP_CONTENT:
        return peg__check_content(ck, insn, v);
    case OP_CONTAINS:
        return peg__check_contains(ck, insn, v);
    case OP_UNIQUE:
        return peg__check_unique(ck, insn, v);
    case OP_FEW_MEMBERS:
        return peg__check_few_members(ck, insn, v);
    case OP_REQUIRED:
        return peg__check_required(ck, insn, v);
    case OP_MEMBER_NAMES:
        return peg__check_member_names(ck, insn, v);
    case OP_DEPENDENT_REQUIRED:
        return peg__check_dependent_required(ck, insn, v);
    case OP_DEPENDENT_SCHEMA:
        return peg__check_dependent_schema(ck, insn, v);
    case OP_DEPENDENT_VALUE:
        return peg__check_dependent_value(ck, insn, v);
    case OP_ENUM:
    case OP_ENUM_HASH:
    case OP_CONST:
        return peg__check_enum(ck, insn, v);
    default:
        return fits_number(ck, insn, v) || peg__fail_insn(ck, insn, v);
    }
}

/* Recursion is bounded by depth_left, which every function that applies a schema uses up. */
bool peg__run(struct peg_checker *ck, uint32_t pc,
              const peg_json *v) /* NOLINT(misc-no-recursion) */
{
    return peg__run_inline(ck, pc, v);
}

/* ---- a whole check ------------------------------------------------------------ */

static uint64_t step_budget(const struct peg_checker *ck, const peg_json *value)
{
    if (ck->options.max_steps)
        return ck->options.max_steps;
    return PEG_LIMIT_CHECK_STEPS +
           PEG_LIMIT_CHECK_STEPS_PER_VALUE * (uint64_t)peg_json_extent(value);
}

peg_verdict peg__check(const peg_schema *schema, struct peg_checker *ck, const peg_json *value,
                       enum peg__mode mode)
{
    bool fits;

    ck->schema = schema;
    ck->steps_left = step_budget(ck, value);
    ck->pattern_steps_left = ck->options.max_pattern_steps;
    ck->depth_left = ck->options.max_depth;
    ck->mode = mode;
    ck->halted = NULL;
    ck->track = NULL;
    ck->n_words = 0;
    value = peg__json_or_null(value);
    ck->root = value;
    fits = peg__apply(ck, schema->root, value);
    if (fits)
        return PEG_VALID;
    return ck->halted ? PEG_UNDECIDED : PEG_INVALID;
}

peg_verdict peg_schema_check(const peg_schema *schema, peg_checker *checker, const peg_json *value)
{
    return peg__check(schema, checker, value, MODE_VERDICT);
}

const char *peg_checker_reason(const peg_checker *checker)
{
    return checker->halted ? checker->halted : "";
}

void peg__checker_init(struct peg_checker *ck, const peg_checker_options *options)
{
    *ck = (struct peg_checker){.schema = NULL};
    if (options)
        ck->options = *options;
    if (!ck->options.max_depth)
        ck->options.max_depth = PEG_LIMIT_CHECK_DEPTH;
    if (ck->options.max_depth > PEG_LIMIT_CHECK_DEPTH_MAX)
        ck->options.max_depth = PEG_LIMIT_CHECK_DEPTH_MAX;
    if (!ck->options.match_limit)
        ck->options.match_limit = PEG_LIMIT_MATCH;
}

void peg__checker_done(struct peg_checker *ck)
{
    peg__matcher_free(ck->matcher);
    peg_json_doc_free(ck->content);
    peg__free(ck->words);
}

enum peg__match peg__checker_match(struct peg_checker *ck, const struct peg__pattern *pattern,
                                   peg_str subject)
{
    const bool counts = ck->options.max_pattern_steps > 0;
    enum peg__match result = PEG__MATCH_NOMEM;

    if (!ck->matcher)
        ck->matcher = peg__matcher_new(ck->options.match_limit);
    if (ck->matcher) {
        /* Each time: a checker may have moved. */
        peg__matcher_set_steps(ck->matcher, counts ? &ck->pattern_steps_left : NULL);
        result = peg__pattern_match(pattern, ck->matcher, subject);
    }
    if (result == PEG__MATCH_NOMEM)
        peg__halt(ck, "memory");
    else if (result == PEG__MATCH_LIMIT)
        peg__halt(ck, counts ? "max_pattern_steps" : "match_limit");
    return result;
}

uint64_t peg__checker_seed(struct peg_checker *ck)
{
    if (!ck->seed)
        ck->seed = peg__hash_key_new().k0;
    return ck->seed;
}

peg_status peg_checker_new(const peg_checker_options *options, peg_checker **ret_checker,
                           peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_CHECKER_OPTIONS_INIT, reterr);
    peg_checker *ck = peg__alloc(sizeof(*ck));

    if (!ck)
        return peg__fail_nomem(reterr);
    peg__checker_init(ck, options);
    *ret_checker = ck;
    return PEG_OK;
}

peg_checker *peg_checker_free(peg_checker *checker)
{
    if (checker)
        peg__checker_done(checker);
    peg__free(checker);
    return NULL;
}
