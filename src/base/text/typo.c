/* SPDX-License-Identifier: Apache-2.0 */

#include "base/text/str.h"

enum { MAX_LEN = 48, MAX_NAMES = 256 };

/* Edits between two short names; a row of the usual table at a time. */
static unsigned distance(peg_str a, peg_str b)
{
    unsigned row[MAX_LEN + 1];

    for (size_t j = 0; j <= b.len; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a.len; i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b.len; j++) {
            const unsigned above = row[j];
            const unsigned change = diagonal + ((a.ptr[i - 1] | 0x20) != (b.ptr[j - 1] | 0x20));
            const unsigned gap = (above < row[j - 1] ? above : row[j - 1]) + 1;

            row[j] = change < gap ? change : gap;
            diagonal = above;
        }
    }
    return row[b.len];
}

/* In very short names only the case may differ: any two are a few edits apart. */
void peg__typo_start(struct peg__typo *typo, peg_str unknown)
{
    const size_t len = unknown.len;

    *typo = (struct peg__typo){.unknown = unknown,
                               .best = len < 3 ? 1 : (unsigned)len / 3 + (len > 3) + 1};
}

bool peg__typo_offer(struct peg__typo *typo, peg_str name)
{
    unsigned edits;

    if (typo->unknown.len > MAX_LEN || name.len > MAX_LEN || typo->n_seen++ >= MAX_NAMES)
        return false;
    edits = distance(typo->unknown, name);
    if (edits >= typo->best)
        return false;
    typo->best = edits;
    return true;
}
