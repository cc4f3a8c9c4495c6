/* SPDX-License-Identifier: Apache-2.0 */

/* Objects: properties, required and additionalProperties in one loop over the members. */

#include "schema/check/run.h"

/* ---- a loop over the members ----------------------------------------------------- */

/* The key of a member, or NULL. Length and first bytes tell nearly all others apart. */
static inline const peg_json *find_key(const peg_json *object, peg_str name)
{
    const uint64_t head = peg__name_head(name.ptr, (uint32_t)name.len);

    PEG_JSON_EACH_MEMBER (object, key)
        if (key->len == name.len && peg__name_head(key->u.ptr, key->len) == head &&
            (name.len <= 8 || memcmp(key->u.ptr + 8, name.ptr + 8, name.len - 8) == 0))
            return key;
    return NULL;
}

static const peg_json *find_value(const peg_json *object, const peg_json *name)
{
    const peg_json *key = find_key(object, (peg_str){name->u.ptr, name->len});

    return key ? key + 1 : NULL;
}

static void set_bit(uint64_t *words, uint32_t i)
{
    words[i / 64] |= 1ULL << (i % 64);
}

static bool has_bit(const uint64_t *words, uint32_t i)
{
    return (words[i / 64] >> (i % 64)) & 1;
}

/* Reports each required name that is missing. The names that are there are marked first: there
 * may be as many of them as members. */
static bool fail_missing(struct peg_checker *ck, const struct peg__members *m, const peg_json *v)
{
    size_t seen;

    if (ck->mode == MODE_VERDICT)
        return false;
    seen = peg__scratch(ck, m->names.mask / 64 + 1);
    if (seen == SIZE_MAX)
        return false;
    PEG_JSON_EACH_MEMBER (v, key) {
        const struct peg__slot *slot = peg__names_find(&m->names, key);

        if (slot)
            set_bit(ck->words + seen, peg__names_number(&m->names, slot));
    }
    PEG_JSON_EACH_ITEM (m->required_rule + 1, name) {
        const struct peg__slot *slot = peg__names_find(&m->names, name);

        if (!has_bit(ck->words + seen, peg__names_number(&m->names, slot)) &&
            !peg__fail_rule(ck, m->required_rule, v, name))
            return false;
    }
    ck->n_words = seen;
    return true;
}

static bool apply_additional(struct peg_checker *ck, const struct peg__members *m,
                             const peg_json *v, const peg_json *key)
{
    if (m->is_closed)
        return peg__fail_rule(ck, m->additional_rule, v, key);
    return peg__apply(ck, m->additional, key + 1);
}

/* Applies every patternProperties that matches. False after a failure or a halt. */
static bool apply_patterns(struct peg_checker *ck, const struct peg__members *m,
                           const peg_json *key, bool *matched)
{
    for (uint32_t i = 0; i < m->n_patterns; i++) {
        switch (peg__checker_match(ck, m->patterns[i].pattern, peg_json_str(key))) {
        case PEG__MATCH_YES:
            *matched = true;
            if (!peg__apply(ck, m->patterns[i].node, key + 1))
                return false;
            break;
        case PEG__MATCH_NO:
            break;
        case PEG__MATCH_LIMIT:
        case PEG__MATCH_NOMEM:
            return false;
        }
    }
    return true;
}

/* The general loop: patterns, additional members, marks. */
static bool check_all_members(struct peg_checker *ck, const struct peg__insn *insn,
                              const peg_json *v, const struct peg__members *m)
{
    uint32_t missing = m->n_required;
    size_t i = 0;

    if (!peg__enter(ck, v) || !peg__charge(ck, (uint64_t)v->len * m->n_patterns / 4))
        return false;
    PEG_JSON_EACH_MEMBER (v, key) {
        const struct peg__slot *slot = peg__names_find(&m->names, key);
        bool matched = slot && (slot->flags & MEMBER_DECLARED);

        missing -= slot ? slot->flags & MEMBER_REQUIRED : 0;
        if (matched && !peg__apply(ck, slot->node, key + 1))
            return false;
        if (!apply_patterns(ck, m, key, &matched))
            return false;
        if (!matched && !apply_additional(ck, m, v, key))
            return false;
        if (matched || m->has_additional)
            peg__mark(ck, insn, i);
        i++;
    }
    peg__leave(ck);
    return missing == 0 || fail_missing(ck, m, v);
}

/* Members may be objects again: the recursion is bounded by depth_left.
 * NOLINTBEGIN(misc-no-recursion) */

/* Few properties of an open object: each is looked for among the members. */
bool peg__check_few_members(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    const struct peg__members *m = &ck->schema->members[insn->a];
    const struct peg__slot *slot = peg__names_guess(&m->names);
    uint32_t missing = m->n_required;

    if (!peg__enter(ck, v))
        return false;
    for (uint32_t i = 0; i < m->names.n; i++, slot = &m->names.slots[slot->next]) {
        const peg_json *key = find_key(v, (peg_str){slot->ptr, slot->len});
        uint32_t pc;

        if (!key)
            continue;
        missing -= slot->flags & MEMBER_REQUIRED;
        pc = ck->schema->nodes[slot->node].entry[key[1].kind];
        if (pc != 0 && !peg__run_inline(ck, pc, key + 1))
            return false;
    }
    peg__leave(ck);
    return missing == 0 || fail_missing(ck, m, v);
}

bool peg__check_members(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    const struct peg__members *m = &ck->schema->members[insn->a];
    const struct peg__node *nodes = ck->schema->nodes;
    const struct peg__slot *guess = peg__names_guess(&m->names);
    uint32_t missing = m->n_required;

    if (m->n_patterns || (insn->flags & FLAG_TRACKED))
        return check_all_members(ck, insn, v, m);
    if (!peg__enter(ck, v))
        return false;
    PEG_JSON_EACH_MEMBER (v, key) {
        const struct peg__slot *slot = peg__names_find_next(&m->names, &guess, key);

        if (slot && (slot->flags & MEMBER_DECLARED)) {
            const uint32_t pc = nodes[slot->node].entry[key[1].kind];

            missing -= slot->flags & MEMBER_REQUIRED;
            if (pc != 0 && !peg__run_inline(ck, pc, key + 1))
                return false;
            continue;
        }
        missing -= slot ? slot->flags & MEMBER_REQUIRED : 0;
        if (!apply_additional(ck, m, v, key))
            return false;
    }
    peg__leave(ck);
    return missing == 0 || fail_missing(ck, m, v);
}

bool peg__check_record(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    if (peg__is_record(&ck->schema->members[insn->a], v))
        return peg__pass(ck, v);
    return peg__check_members(ck, insn, v);
}

/* Values that contain nothing are decided by their kinds, all others one by one. */
bool peg__check_map_of_kinds(struct peg_checker *ck, const struct peg__insn *insn,
                             const peg_json *v)
{
    if (v->u.extent == 2 * (size_t)v->len + 1 && peg__are_of_kinds(v + 2, v->len, 2, insn->b))
        return peg__pass(ck, v);
    return peg__check_members(ck, insn, v);
}

/* NOLINTEND(misc-no-recursion) */

/* The member that tells the branches of anyOf or oneOf apart decides alone. */
bool peg__check_switch(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    const struct peg__switch *branches = &ck->schema->switches[insn->a];
    const peg_json *member = find_value(v, branches->name);
    const struct peg__slot *slot = member && member->kind == PEG_JSON_STRING
                                       ? peg__names_find(&branches->cases, member)
                                       : NULL;
    bool goes_on;

    if (!slot)
        return peg__fail_rule(ck, peg__rule(ck, insn), v, branches->name);
    if (!peg__enter(ck, v))
        return false;
    goes_on = peg__apply(ck, slot->node, v);
    return goes_on && peg__leave(ck);
}

/* ---- other keywords ------------------------------------------------------------- */

bool peg__check_required(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    for (uint32_t i = 0; i < insn->b; i++) {
        const peg_json *name = ck->schema->words[insn->a + i];

        if (!find_value(v, name) && !peg__fail_rule(ck, peg__rule(ck, insn), v, name))
            return false;
    }
    return true;
}

bool peg__check_member_names(struct peg_checker *ck, const struct peg__insn *insn,
                             const peg_json *v)
{
    if (!peg__enter(ck, v))
        return false;
    PEG_JSON_EACH_MEMBER (v, key)
        if (!peg__apply(ck, insn->a, key))
            return false;
    return peg__leave(ck);
}

bool peg__check_dependent_required(struct peg_checker *ck, const struct peg__insn *insn,
                                   const peg_json *v)
{
    const peg_json *name = ck->schema->words[insn->a];

    if (!find_value(v, name))
        return true;
    PEG_JSON_EACH_ITEM (name + 1, needed)
        if (!peg__charge(ck, peg__size_in_steps(v)) ||
            (!find_value(v, needed) && !peg__fail_rule(ck, peg__rule(ck, insn), v, needed)))
            return false;
    return true;
}

bool peg__check_dependent_schema(struct peg_checker *ck, const struct peg__insn *insn,
                                 const peg_json *v)
{
    return !find_value(v, ck->schema->words[insn->b]) || peg__check_call(ck, insn, v);
}

bool peg__check_dependent_value(struct peg_checker *ck, const struct peg__insn *insn,
                                const peg_json *v)
{
    const peg_json *member = find_value(v, ck->schema->words[insn->b]);
    const peg_json *wanted = ck->schema->words[insn->c];

    if (!member || member->kind != PEG_JSON_STRING || !peg_json_equal(member, wanted))
        return true;
    return peg__check_call(ck, insn, v);
}
