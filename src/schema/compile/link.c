/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a draft to code: one list of instructions for each kind of value, with the instructions
 * of short calls copied in, and lists that are the same for several kinds written once.
 */

#include <string.h>

#include "schema/compile/internal.h"

enum { MAX_INLINED = 6 }; /* instructions of a target that are copied instead of called */

bool peg__put_insn(struct peg__compiler *c, struct peg__insn insn, const peg_json *rule)
{
    struct peg__insn *code = PEG__ADD(c, code, code, 1);
    const peg_json **rules = PEG__ADD(c, rules, rules, 1);

    if (!code || !rules)
        return false;
    *code = insn;
    *rules = rule;
    return true;
}

/* Instructions of a list up to its end, or more than MAX_INLINED. */
static unsigned list_len(const peg_schema *out, uint32_t pc)
{
    unsigned n = 0;

    while (out->code[pc + n].op != OP_END && n <= MAX_INLINED)
        n++;
    return n;
}

/* A call becomes the instructions themselves if they are known and few. */
static bool put_node_call(struct peg__compiler *c, const struct peg__draft_insn *d, unsigned kind)
{
    const struct peg__node target = c->out->nodes[d->insn.a];
    const uint32_t pc = target.entry[kind];
    unsigned n;

    if (!target.is_done)
        return peg__put_insn(c, d->insn, d->rule);
    if (pc == 0)
        return true;
    n = list_len(c->out, pc);
    if (n > MAX_INLINED)
        return peg__put_insn(c, d->insn, d->rule);
    for (unsigned i = 0; i < n; i++)
        if (!peg__put_insn(c, c->out->code[pc + i], c->out->rules[pc + i]))
            return false;
    return true;
}

/* ---- branches: those that this kind decides are decided here ------------------------- */

static bool is_refused(const peg_schema *out, uint32_t node, unsigned kind)
{
    const struct peg__node *n = &out->nodes[node];

    return n->is_done && n->entry[kind] != 0 && out->code[n->entry[kind]].op == OP_FAIL;
}

bool peg__refuses_objects(const struct peg__compiler *c, uint32_t node)
{
    return is_refused(c->out, node, PEG_JSON_OBJECT);
}

static bool is_accepted(const peg_schema *out, uint32_t node, unsigned kind)
{
    return out->nodes[node].is_done && out->nodes[node].entry[kind] == 0;
}

struct branches {
    uint32_t n_open; /* neither refused nor accepted for certain, or accepted */
    uint32_t n_accepted;
    uint32_t last_open;
};

static struct branches count_branches(const peg_schema *out, const struct peg__insn *insn,
                                      unsigned kind)
{
    struct branches count = {0};

    for (uint32_t i = 0; i < insn->b; i++) {
        const uint32_t node = out->lists[insn->a + i];

        if (is_refused(out, node, kind))
            continue;
        count.n_open++;
        count.n_accepted += is_accepted(out, node, kind);
        count.last_open = node;
    }
    return count;
}

/* A list of only the branches that are open for this kind. */
static bool narrow_list(struct peg__compiler *c, struct peg__insn *insn, unsigned kind,
                        uint32_t n_open)
{
    const uint32_t start = (uint32_t)c->lists.n;
    uint32_t n = 0;

    if (n_open == insn->b)
        return true;
    if (!PEG__ADD(c, lists, lists, n_open))
        return false;
    for (uint32_t i = 0; i < insn->b; i++)
        if (!is_refused(c->out, c->out->lists[insn->a + i], kind))
            c->out->lists[start + n++] = c->out->lists[insn->a + i];
    insn->a = start;
    insn->b = n;
    return true;
}

static bool put_branches(struct peg__compiler *c, const struct peg__draft_insn *d, unsigned kind)
{
    const struct branches count = count_branches(c->out, &d->insn, kind);
    const bool is_tracked = d->insn.flags & FLAG_TRACKED;
    struct peg__draft_insn only = *d;

    if (count.n_open == 0)
        return peg__put_insn(c, (struct peg__insn){.op = OP_FAIL}, d->rule);
    if (count.n_open == 1) {
        only.insn.op = OP_CALL;
        only.insn.a = count.last_open;
        return put_node_call(c, &only, kind);
    }
    if (!is_tracked && d->insn.op == OP_ANY_OF && count.n_accepted > 0)
        return true;
    return narrow_list(c, &only.insn, kind, count.n_open) && peg__put_insn(c, only.insn, d->rule);
}

static bool put_draft(struct peg__compiler *c, const struct peg__draft_insn *d, unsigned kind)
{
    switch (d->insn.op) {
    case OP_CALL:
        return put_node_call(c, d, kind);
    case OP_ANY_OF:
    case OP_ONE_OF:
        return put_branches(c, d, kind);
    default:
        return peg__put_insn(c, d->insn, d->rule);
    }
}

/* ---- ranges: a lower and an upper bound in one ------------------------------------------ */

/* The instruction for this kind that comes after the i-th, or NULL. */
static const struct peg__insn *next_of_kind(const struct peg__draft *d, size_t i, unsigned kind)
{
    while (++i < d->n)
        if ((d->insns[i].kinds >> kind) & 1)
            return &d->insns[i].insn;
    return NULL;
}

static bool is_short(const struct peg__insn *insn)
{
    return peg__immediate(insn) == (int32_t)peg__immediate(insn);
}

/* Puts a range before a lower bound that an upper one follows. */
static bool put_bounds(struct peg__compiler *c, const struct peg__draft *d, size_t i, unsigned kind)
{
    const struct peg__insn *low = &d->insns[i].insn;
    const bool is_decimal = low->op == OP_DECIMAL_MIN;
    const struct peg__insn *high;

    if (low->op != OP_INT_MIN && !is_decimal)
        return true;
    high = next_of_kind(d, i, kind);
    if (!high || high->op != (is_decimal ? OP_DECIMAL_MAX : OP_INT_MAX) || !is_short(low) ||
        !is_short(high))
        return true;
    return peg__put_insn(c,
                         (struct peg__insn){.op = is_decimal ? OP_DECIMAL_RANGE : OP_INT_RANGE,
                                            .b = low->b,
                                            .c = high->b},
                         d->insns[i].rule);
}

static bool put_list(struct peg__compiler *c, const struct peg__draft *d, unsigned kind)
{
    const struct peg__insn fail = {.op = OP_FAIL};

    if (!((d->kinds >> kind) & 1))
        return peg__put_insn(c, fail, d->sub.key[KW_TYPE]);
    for (size_t i = 0; i < d->n; i++)
        if (((d->insns[i].kinds >> kind) & 1) && d->insns[i].insn.op == OP_FAIL)
            return peg__put_insn(c, fail, d->insns[i].rule);
    for (size_t i = 0; i < d->n; i++) {
        struct peg__draft_insn insn = d->insns[i];

        if (!((insn.kinds >> kind) & 1))
            continue;
        /* Only arrays and objects are tracked: there is nothing to mark in anything else. */
        if (kind < PEG_JSON_ARRAY)
            insn.insn.flags &= (uint8_t)~FLAG_TRACKED;
        if (!put_bounds(c, d, i, kind) || !put_draft(c, &insn, kind))
            return false;
    }
    return true;
}

static bool is_same_list(const peg_schema *out, uint32_t a, uint32_t b, size_t n)
{
    return memcmp(&out->code[a], &out->code[b], n * sizeof(*out->code)) == 0 &&
           memcmp(&out->rules[a], &out->rules[b], n * sizeof(*out->rules)) == 0;
}

/* An earlier kind of this node whose list is the same as the one that starts at `start`. */
static uint32_t find_same_list(const struct peg__compiler *c, const struct peg__node *node,
                               unsigned kind, size_t start)
{
    const size_t n = c->code.n - start;

    for (unsigned earlier = 0; earlier < kind; earlier++) {
        const uint32_t pc = node->entry[earlier];

        if (pc != 0 && pc + n <= start && is_same_list(c->out, pc, (uint32_t)start, n))
            return pc;
    }
    return 0;
}

static bool link_kind(struct peg__compiler *c, const struct peg__draft *d, struct peg__node *node,
                      unsigned kind)
{
    const size_t start = c->code.n;
    uint32_t same;

    if (!put_list(c, d, kind))
        return false;
    if (c->code.n == start) {
        node->entry[kind] = 0;
        return true;
    }
    if (!peg__put_insn(c, (struct peg__insn){.op = OP_END}, NULL))
        return false;
    same = find_same_list(c, node, kind, start);
    if (same)
        c->code.n = c->rules.n = start;
    node->entry[kind] = same ? same : (uint32_t)start;
    return true;
}

bool peg__link(struct peg__compiler *c, const struct peg__draft *d, uint32_t node)
{
    struct peg__node linked = {.is_done = 1};

    for (unsigned kind = 0; kind < PEG_KINDS; kind++)
        if (!link_kind(c, d, &linked, kind))
            return false;
    c->out->nodes[node] = linked;
    return true;
}

/* ---- what the kind of a value decides -------------------------------------------------
 *
 * The last step, when every node has its instructions: members and items that are accepted by
 * their kind alone get instructions that look at nothing but the kind. What these cannot accept
 * is left to the general loops, so that a report is the same with and without them.
 */

/* Names of a record are compared one after the other, each by its first and last eight bytes. */
enum { RECORD_MEMBERS = 16, RECORD_NAME = 16 };

/* A bit for each kind that the node accepts without an instruction. */
static uint32_t accepted_kinds(const peg_schema *out, uint32_t node)
{
    uint32_t kinds = 0;

    for (unsigned kind = 0; kind < PEG_KINDS; kind++)
        kinds |= (uint32_t)(out->nodes[node].entry[kind] == 0) << kind;
    return kinds;
}

/* Does each member have kinds that need no instruction? Notes them in its slot. */
static bool note_kinds(const peg_schema *out, struct peg__members *m)
{
    struct peg__slot *slot;

    if (!m->names.slots || m->names.n > RECORD_MEMBERS || m->n_patterns)
        return false;
    slot = &m->names.slots[m->names.first];
    for (uint32_t i = 0; i < m->names.n; i++, slot = &m->names.slots[slot->next]) {
        const uint32_t kinds = accepted_kinds(out, slot->node);

        const uint32_t unused = slot->len < 8 ? 64 - 8 * slot->len : 0;

        if (!(slot->flags & MEMBER_DECLARED) || kinds == 0 || slot->len == 0 ||
            slot->len > RECORD_NAME)
            return false;
        slot->flags |= kinds << MEMBER_KINDS_SHIFT | unused << MEMBER_UNUSED_SHIFT;
    }
    return true;
}

static bool is_map(const struct peg__members *m)
{
    return m->names.n == 0 && !m->n_patterns && m->has_additional && !m->is_closed;
}

static void choose_for_members(peg_schema *out, struct peg__insn *insn)
{
    struct peg__members *m = &out->members[insn->a];

    if (insn->flags & FLAG_TRACKED)
        return;
    if (is_map(m)) {
        insn->b = accepted_kinds(out, m->additional);
        insn->op = insn->b ? OP_MAP_OF_KINDS : OP_MEMBERS;
    } else if (note_kinds(out, m)) {
        insn->op = OP_RECORD;
    }
}

static void choose_for_items(const peg_schema *out, struct peg__insn *insn)
{
    const struct peg__insn *of_object = &out->code[out->nodes[insn->a].entry[PEG_JSON_OBJECT]];

    if (of_object[0].op == OP_RECORD && of_object[1].op == OP_END) {
        insn->op = OP_ITEMS_RECORDS;
        insn->b = of_object->a;
        return;
    }
    insn->b = accepted_kinds(out, insn->a);
    if (insn->b)
        insn->op = OP_ITEMS_OF_KINDS;
}

void peg__choose_by_kinds(struct peg__compiler *c)
{
    struct peg__insn *code = c->out->code;

    for (size_t i = 0; i < c->code.n; i++)
        if (code[i].op == OP_MEMBERS)
            choose_for_members(c->out, &code[i]);
    /* Then arrays of what these have become. */
    for (size_t i = 0; i < c->code.n; i++)
        if (code[i].op == OP_ITEMS)
            choose_for_items(c->out, &code[i]);
}
