/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GENERATE_CHOICE_H
#define PEG_GENERATE_CHOICE_H

/* The alternatives of a place, from oneOf or anyOf: which there are, and how a value tells them
 * apart. */

#include "generate/place.h"

struct gen_alternative {
    struct gen_place place; /* the branch together with what stands around the alternatives */
    unsigned kinds;         /* without null */
    bool is_plain;          /* several of one scalar kind: only the kind is known */
    const peg_str *values;  /* strings that fit; NULL: any */
    size_t n_values;
    const peg_str *tags;
    size_t n_tags;
};

struct gen_choice {
    struct gen_alternative *items; /* in the arena */
    size_t n;
    bool has_null;
    peg_str tag; /* the member that tells objects apart; "": none is needed */
    bool is_out_of_memory;
    const char *reason; /* why they cannot be told apart; NULL: they can */
};

/* False: out of memory. */
bool gen_choice_read(const struct gen_place *place, const peg_json *root, const peg_json *choice,
                     struct peg__arena *arena, struct gen_choice *ret_choice);

#endif
