/* SPDX-License-Identifier: Apache-2.0 */

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "json/typed/typed.h"

peg_arena *peg_arena_new(void)
{
    return peg__alloc_zero(1, sizeof(peg_arena));
}

peg_arena *peg_arena_free(peg_arena *arena)
{
    if (!arena)
        return NULL;
    for (struct peg__kept *kept = arena->kept; kept; kept = kept->next)
        kept->drop(kept->thing);
    peg__arena_free(&arena->memory);
    peg__free(arena);
    return NULL;
}

bool peg_arena_has_failed(const peg_arena *arena)
{
    return arena->has_failed;
}

void *peg_arena_alloc(peg_arena *arena, size_t n, size_t size)
{
    void *memory = NULL;

    if (!n || !size)
        return NULL;
    if (n <= SIZE_MAX / 2 / size)
        memory = peg__arena_alloc_zero(&arena->memory, n * size);
    arena->has_failed = arena->has_failed || !memory;
    return memory;
}

peg_str peg_arena_copy(peg_arena *arena, peg_str text)
{
    const char *copy = text.len ? peg__arena_copy(&arena->memory, text) : "";

    arena->has_failed = arena->has_failed || !copy;
    return copy ? peg__strn(copy, text.len) : peg__str("");
}

peg_str peg_arena_printf(peg_arena *arena, const char *fmt, ...)
{
    va_list args;
    va_list again;
    int n;
    char *text;

    va_start(args, fmt);
    va_copy(again, args);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    text = n > 0 ? peg_arena_alloc(arena, (size_t)n + 1, 1) : NULL;
    if (text)
        vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return text ? peg__strn(text, (size_t)n) : peg__str("");
}

bool peg__arena_keep(peg_arena *arena, void *thing, void (*drop)(void *thing))
{
    struct peg__kept *kept = peg_arena_alloc(arena, 1, sizeof(*kept));

    if (!kept) {
        drop(thing);
        return false;
    }
    *kept = (struct peg__kept){thing, drop, arena->kept};
    arena->kept = kept;
    return true;
}

static void drop_doc(void *doc)
{
    peg_json_doc_free(doc);
}

peg_status peg_arena_parse(peg_arena *arena, peg_str text, const peg_json **ret_value,
                           peg_error *reterr)
{
    peg_json_doc *doc = NULL;
    peg_status status = peg_json_parse(text, &peg__json_refuse_duplicates, &doc, reterr);

    if (status)
        return status;
    if (!peg__arena_keep(arena, doc, drop_doc))
        return peg__fail_nomem(reterr);
    *ret_value = peg_json_root(doc);
    return PEG_OK;
}
