/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <string.h>

#include "base/text/str.h"
#include "generate/model.h"

static bool is_plain_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

char *gen_word(struct peg__arena *arena, peg_str text)
{
    char *word = peg__arena_alloc(arena, text.len + sizeof("empty"));
    size_t n = 0;

    if (!word)
        return NULL;
    for (size_t i = 0; i < text.len; i++) {
        if (is_plain_char(text.ptr[i]))
            word[n++] = text.ptr[i];
        else if (n && word[n - 1] != '_')
            word[n++] = '_';
    }
    while (n && word[n - 1] == '_')
        n--;
    word[n] = 0;
    if (!n)
        memcpy(word, "empty", sizeof("empty"));
    return word;
}

char *gen_join(struct peg__arena *arena, const char *a, const char *b)
{
    const size_t n = strlen(a) + strlen(b) + 2;
    char *joined = peg__arena_alloc(arena, n);

    if (joined)
        snprintf(joined, n, "%s_%s", a, b);
    return joined;
}

/* A word that is taken is where the search for its next number begins: 10,000 members whose names
 * become one word would be 50 million tries otherwise. */
char *gen_unique(struct peg__arena *arena, struct peg__map *taken, const char *word)
{
    const struct peg__map_entry *entry = peg__map_find(taken, peg__str(word));
    unsigned *last = entry ? entry->value : NULL;
    unsigned *number = peg__arena_alloc_zero(arena, sizeof(*number));
    char *name = peg__arena_copy(arena, peg__str(word));
    peg_status status;

    if (!number || !name)
        return NULL;
    *number = 1;
    if (!last)
        return peg__map_add(taken, peg__str(name), number) ? NULL : name;
    do {
        char digits[24];

        snprintf(digits, sizeof(digits), "%u", ++*last);
        name = gen_join(arena, word, digits);
        status = name ? peg__map_add(taken, peg__str(name), number) : PEG_ENOMEM;
    } while (status == PEG_EEXISTS);
    return status ? NULL : name;
}
