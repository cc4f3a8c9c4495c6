/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The last step, when every node has its instructions: members and items that are accepted by
 * their kind alone get instructions that look at nothing but the kind. What these cannot accept
 * is left to the general loops, so that a report is the same with and without them.
 */

#include "schema/compile/compile.h"

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
