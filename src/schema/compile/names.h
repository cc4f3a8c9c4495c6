/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_SCHEMA_COMPILE_NAMES_H
#define PEG_SCHEMA_COMPILE_NAMES_H

/*
 * A fixed set of strings, found in one probe almost always: property names, string enums.
 * The hash reads the first and last eight bytes and the length, whatever the length is; a seed
 * is chosen when the set is made so that (nearly) no two names share a slot. Sets that somebody
 * has made to collide whatever the seed are found by a hash of all bytes with a secret key.
 *
 * Strings that are looked up come from JSON documents, which pad them, so that eight bytes can
 * be read from the start of any of them.
 */

#include <string.h>

#include "base/arena.h"
#include "pegboard/json.h"

struct peg__slot {
    uint64_t head;   /* first eight bytes, the missing ones 0 */
    uint64_t tail;   /* last eight bytes; the head again if there are not more than eight */
    const char *ptr; /* NULL: the slot is empty */
    uint32_t len;
    uint32_t node; /* what the compiler attached to the name */
    uint32_t flags;
    uint32_t next; /* the slot of the name that was given after this one */
};

struct peg__hashed_names;

struct peg__names {
    struct peg__slot *slots;          /* in an arena; NULL if there are none, or `hashed` */
    struct peg__hashed_names *hashed; /* in an arena; NULL but for hostile sets */
    uint64_t seed;
    uint32_t mask;
    uint32_t shift;
    uint32_t n;
    uint32_t first; /* the slot of the name that was given first */
};

/* What is to become a slot: filled by the compiler. */
struct peg__name {
    peg_str text; /* padded, as the strings of a document are */
    uint32_t node;
    uint32_t flags;
    uint32_t order; /* in which the schema gives them */
};

/* Makes the set. Names must be distinct. False when out of memory. */
bool peg__names_init(struct peg__names *names, const struct peg__name *list, uint32_t n,
                     struct peg__arena *arena);

/* The slot of a string among names->hashed. */
const struct peg__slot *peg__names_find_hashed(const struct peg__names *names,
                                               const peg_json *string);

/* A number below names->mask + 1 for a slot of the set. */
uint32_t peg__names_number(const struct peg__names *names, const struct peg__slot *slot);

static inline uint64_t peg__load8(const char *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof(word));
    return word;
}

static inline uint64_t peg__name_head(const char *ptr, uint32_t len)
{
    const uint64_t word = peg__load8(ptr);

    return len >= 8 ? word : word & ((1ULL << (len * 8)) - 1);
}

static inline uint32_t peg__name_slot(const struct peg__names *names, uint64_t head, uint64_t tail,
                                      uint32_t len)
{
    const uint64_t mixed = (head ^ (tail << 29 | tail >> 35)) + len;

    return (uint32_t)((mixed * names->seed) >> names->shift);
}

static inline bool peg__slot_is(const struct peg__slot *slot, uint64_t head, uint64_t tail,
                                const peg_json *string)
{
    return slot->head == head && slot->len == string->len && slot->tail == tail &&
           (string->len <= 16 || memcmp(slot->ptr + 8, string->u.ptr + 8, string->len - 16) == 0);
}

/* Where peg__names_find_next() starts. */
static inline const struct peg__slot *peg__names_guess(const struct peg__names *names)
{
    return names->slots ? &names->slots[names->first] : NULL;
}

/* The same when nothing of the string is at hand yet: the length decides mostly. */
static inline bool peg__slot_is_string(const struct peg__slot *slot, const peg_json *string)
{
    const uint32_t len = string->len;

    if (slot->len != len || slot->head != peg__name_head(string->u.ptr, len))
        return false;
    if (len <= 8)
        return true;
    return slot->tail == peg__load8(string->u.ptr + len - 8) &&
           (len <= 16 || memcmp(slot->ptr + 8, string->u.ptr + 8, len - 16) == 0);
}

/* The slot of a string, or NULL. */
static inline const struct peg__slot *peg__names_find(const struct peg__names *names,
                                                      const peg_json *string)
{
    const uint64_t head = peg__name_head(string->u.ptr, string->len);
    const uint64_t tail = string->len > 8 ? peg__load8(string->u.ptr + string->len - 8) : head;
    uint32_t at;

    if (!names->slots)
        return names->hashed ? peg__names_find_hashed(names, string) : NULL;
    at = peg__name_slot(names, head, tail, string->len);
    while (names->slots[at].ptr) {
        if (peg__slot_is(&names->slots[at], head, tail, string))
            return &names->slots[at];
        at = (at + 1) & names->mask;
    }
    return NULL;
}

/* The same for the members of one object, which mostly come in the order of the schema: the slot
 * after the last one is looked at first. */
static inline const struct peg__slot *peg__names_find_next(const struct peg__names *names,
                                                           const struct peg__slot **guess,
                                                           const peg_json *string)
{
    const struct peg__slot *slot = *guess;

    if (!slot || !peg__slot_is_string(slot, string))
        slot = peg__names_find(names, string);
    if (slot && names->slots)
        *guess = &names->slots[slot->next];
    return slot;
}

#endif
