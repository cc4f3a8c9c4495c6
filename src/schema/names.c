/* SPDX-License-Identifier: Apache-2.0 */

#include "schema/names.h"

enum { SEEDS_TRIED = 24, FEW = 64 };

/* Odd multipliers, from a fixed sequence: the same schema gives the same table always. */
static uint64_t next_seed(uint64_t seed)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static uint32_t log2_above(uint32_t n)
{
    uint32_t bits = 1;

    while ((1U << bits) < n)
        bits++;
    return bits;
}

static uint64_t tail_of(peg_str text)
{
    return text.len > 8 ? peg__load8(text.ptr + text.len - 8)
                        : peg__name_head(text.ptr, (uint32_t)text.len);
}

/* Puts every name into its slot; returns how many did not get their first choice. */
static uint32_t fill(struct peg__names *names, const struct peg__name *list, uint32_t n)
{
    uint32_t displaced = 0;

    memset(names->slots, 0, (names->mask + 1) * sizeof(*names->slots));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t len = (uint32_t)list[i].text.len;
        const uint64_t head = peg__name_head(list[i].text.ptr, len);
        const uint64_t tail = tail_of(list[i].text);
        uint32_t at = peg__name_slot(names, head, tail, len);

        displaced += names->slots[at].ptr != NULL;
        while (names->slots[at].ptr)
            at = (at + 1) & names->mask;
        names->slots[at] = (struct peg__slot){.head = head,
                                              .tail = tail,
                                              .ptr = list[i].text.ptr,
                                              .len = len,
                                              .node = list[i].node,
                                              .flags = list[i].flags};
    }
    return displaced;
}

bool peg__names_init(struct peg__names *names, const struct peg__name *list, uint32_t n,
                     struct peg__arena *arena)
{
    /* Twice the names, or a little less: memory counts when there are 10,000 tools. */
    const uint32_t bits = log2_above(n < FEW ? n * 2 : n + n / 2);
    uint64_t seed = 0x9E3779B97F4A7C15ULL;
    uint64_t best = seed;
    uint32_t least = UINT32_MAX;

    *names = (struct peg__names){.n = n};
    if (n == 0)
        return true;
    names->mask = (1U << bits) - 1;
    names->shift = 64 - bits;
    names->slots = peg__arena_alloc(arena, ((size_t)names->mask + 1) * sizeof(*names->slots));
    if (!names->slots)
        return false;

    for (int i = 0; i < SEEDS_TRIED && least > 0; i++) {
        uint32_t displaced;

        names->seed = seed;
        displaced = fill(names, list, n);
        if (displaced < least) {
            least = displaced;
            best = seed;
        }
        seed = next_seed(seed) | 1;
    }
    if (names->seed != best) {
        names->seed = best;
        fill(names, list, n);
    }
    return true;
}
