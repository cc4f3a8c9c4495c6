/* SPDX-License-Identifier: Apache-2.0 */

#include "schema/compile/program.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/text/str.h"

enum {
    SEEDS_TRIED = 24,
    SEEDS_TRIED_FOR_MANY = 3, /* none gives every name its own slot anyway */
    FEW = 64,
    MANY = 1000,
    PROBES_PER_NAME = 4, /* an honest set takes about one */
};

struct peg__hashed_names {
    struct peg__hash_key key;
    uint32_t mask;
    struct peg__slot slots[];
};

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

/* Puts every name into its slot; returns how many did not get their first choice, or UINT32_MAX
 * if they are all in each other's way. */
static uint32_t fill_slots(struct peg__names *names, const struct peg__name *list, uint32_t n)
{
    uint64_t probes_left = (uint64_t)n * PROBES_PER_NAME + FEW;
    uint32_t displaced = 0;

    memset(names->slots, 0, ((size_t)names->mask + 1) * sizeof(*names->slots));
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t len = (uint32_t)list[i].text.len;
        const uint64_t head = peg__name_head(list[i].text.ptr, len);
        const uint64_t tail = tail_of(list[i].text);
        uint32_t at = peg__name_slot(names, head, tail, len);

        displaced += names->slots[at].ptr != NULL;
        for (; names->slots[at].ptr; at = (at + 1) & names->mask)
            if (probes_left-- == 0)
                return UINT32_MAX;
        names->slots[at] = (struct peg__slot){.head = head,
                                              .tail = tail,
                                              .ptr = list[i].text.ptr,
                                              .len = len,
                                              .node = list[i].node,
                                              .flags = list[i].flags,
                                              .next = list[i].order};
    }
    return displaced;
}

/* ---- sets that collide ------------------------------------------------------------- */

static struct peg__slot *find_hashed(struct peg__hashed_names *hashed, peg_str text)
{
    uint32_t at = (uint32_t)peg__hash(hashed->key, text) & hashed->mask;

    while (hashed->slots[at].ptr &&
           !peg__str_eq(peg__strn(hashed->slots[at].ptr, hashed->slots[at].len), text))
        at = (at + 1) & hashed->mask;
    return &hashed->slots[at];
}

const struct peg__slot *peg__names_find_hashed(const struct peg__names *names,
                                               const peg_json *string)
{
    const struct peg__slot *slot = find_hashed(names->hashed, peg_json_str(string));

    return slot->ptr ? slot : NULL;
}

uint32_t peg__names_number(const struct peg__names *names, const struct peg__slot *slot)
{
    return (uint32_t)(slot - (names->slots ? names->slots : names->hashed->slots));
}

static bool use_hash(struct peg__names *names, const struct peg__name *list,
                     struct peg__arena *arena)
{
    struct peg__hashed_names *hashed = peg__arena_alloc_zero(
        arena, sizeof(*hashed) + ((size_t)names->mask + 1) * sizeof(*hashed->slots));

    if (!hashed)
        return false;
    hashed->key = peg__hash_key_new();
    hashed->mask = names->mask;
    for (uint32_t i = 0; i < names->n; i++)
        *find_hashed(hashed, list[i].text) = (struct peg__slot){.ptr = list[i].text.ptr,
                                                                .len = (uint32_t)list[i].text.len,
                                                                .node = list[i].node,
                                                                .flags = list[i].flags};
    names->slots = NULL;
    names->hashed = hashed;
    return true;
}

/* ---- the order in which names are given --------------------------------------------- */

static int compare_slots(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Makes `next`, which holds the order so far, the slot of the name given after it. */
static bool link_in_order(struct peg__names *names)
{
    uint64_t *places = peg__alloc(names->n * sizeof(*places));
    uint32_t n = 0;

    if (!places)
        return false;
    for (uint32_t at = 0; at <= names->mask; at++)
        if (names->slots[at].ptr)
            places[n++] = (uint64_t)names->slots[at].next << 32 | at;
    qsort(places, n, sizeof(*places), compare_slots);
    names->first = (uint32_t)places[0];
    for (uint32_t i = 0; i < n; i++)
        names->slots[(uint32_t)places[i]].next = (uint32_t)places[(i + 1) % n];
    peg__free(places);
    return true;
}

bool peg__names_init(struct peg__names *names, const struct peg__name *list, uint32_t n,
                     struct peg__arena *arena)
{
    /* A third more than the names, up to a power of two: memory counts with 10,000 tools. */
    const uint32_t bits = log2_above(n + n / 3 + 1);
    const int n_seeds = n < MANY ? SEEDS_TRIED : SEEDS_TRIED_FOR_MANY;
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

    for (int i = 0; i < n_seeds && least > 0; i++) {
        uint32_t displaced;

        names->seed = seed;
        displaced = fill_slots(names, list, n);
        if (displaced < least) {
            least = displaced;
            best = seed;
        }
        seed = next_seed(seed) | 1;
    }
    if (least == UINT32_MAX)
        return use_hash(names, list, arena);
    if (names->seed != best) {
        names->seed = best;
        fill_slots(names, list, n);
    }
    return link_in_order(names);
}
