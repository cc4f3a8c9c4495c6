/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a draft to code: one list of instructions for each kind of value, with the instructions
 * of short calls copied in, and lists that are the same for several kinds written once.
 */

#include <string.h>

#include "schema/compile.h"

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
static bool put_call(struct peg__compiler *c, const struct peg__draft_insn *d, unsigned kind)
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
        bool put;

        if (!((insn.kinds >> kind) & 1))
            continue;
        /* Only arrays and objects are tracked: there is nothing to mark in anything else. */
        if (kind < PEG_JSON_ARRAY)
            insn.insn.flags &= (uint8_t)~FLAG_TRACKED;
        put = insn.insn.op == OP_CALL ? put_call(c, &insn, kind)
                                      : peg__put_insn(c, insn.insn, insn.rule);
        if (!put)
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
