/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_TYPED_TYPED_H
#define PEG_JSON_TYPED_TYPED_H

/* What is behind pegboard/typed.h. */

#include "base/arena.h"
#include "pegboard/typed.h"
#include "json/json.h"

/* Something that dies with an arena. */
struct peg__kept {
    void *thing;
    void (*drop)(void *thing);
    struct peg__kept *next;
};

struct peg_arena {
    struct peg__arena memory;
    struct peg__kept *kept;
    size_t decoded; /* bytes that decoders took, at most PEG_LIMIT_TYPED_BYTES */
    bool has_failed;
};

/* The arena drops it when it is freed, or at once when out of memory: then false. */
bool peg__arena_keep(peg_arena *arena, void *thing, void (*drop)(void *thing));

struct peg_encoder {
    struct peg__buf text;
    struct peg__out out;
    unsigned depth;
    peg_str key;     /* written last; borrowed from the text's maker, for messages */
    peg_error error; /* status PEG_OK: nothing has failed */
};

#endif
