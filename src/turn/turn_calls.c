/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "turn/turn.h"

peg_record *peg_turn_result_of(const peg_turn *turn, peg_str block_id)
{
    const size_t i = peg__blocks_find(turn->blocks, PEG__NAME_ANSWER, block_id);

    return i == PEG__NO_BLOCK ? NULL : peg_block_record(peg__blocks_at(turn->blocks, i));
}

size_t peg_turn_next_pending(const peg_turn *turn, size_t i)
{
    const unsigned calls = PEG_BLOCKS(PEG_BLOCK_CALL);

    for (i = peg_turn_next(turn, calls, i); i < peg_turn_len(turn);
         i = peg_turn_next(turn, calls, i + 1)) {
        if (!peg_turn_result_of(turn, peg_block_id(peg_turn_at(turn, i))))
            break;
    }
    return i;
}

size_t peg_turn_call_count(const peg_turn *turn, const char *checksum)
{
    const unsigned results = PEG_BLOCKS(PEG_BLOCK_RESULT);
    size_t n = 0;

    if (!checksum || !*checksum)
        return 0;
    for (size_t i = peg_turn_next(turn, results, 0); i < peg_turn_len(turn);
         i = peg_turn_next(turn, results, i + 1)) {
        const peg_record *record = peg_block_record(peg_turn_at(turn, i));

        n += strcmp(peg_record_checksum(record), checksum) == 0;
    }
    return n;
}

/* ---- handles -------------------------------------------------------------------- */

static bool is_taken(const peg_turn *turn, const struct peg__map *also_taken, peg_str handle)
{
    return peg__blocks_find(turn->blocks, PEG__NAME_HANDLE, handle) != PEG__NO_BLOCK ||
           (also_taken && peg__map_find(also_taken, handle));
}

enum {
    SUFFIX = 24, /* '~', the digits of a number and a NUL */
    /* So many are tried one by one. Beyond, the number is doubled until one is free, and halved
     * towards those that are not: a file may well want one handle a hundred thousand times. */
    FEW_HANDLES = 64,
};

/* The n-th handle of a call: its id, then "id~2", "id~3", ... Is it taken? */
static bool is_nth_taken(const peg_turn *turn, const struct peg__map *also_taken, char *handle,
                         size_t id_len, size_t n)
{
    size_t len = id_len;

    handle[len] = '\0';
    if (n > 1)
        len += (size_t)snprintf(handle + id_len, SUFFIX, "~%zu", n);
    return is_taken(turn, also_taken, peg__strn(handle, len));
}

peg_status peg__turn_handle(const peg_turn *turn, peg_str call_id,
                            const struct peg__map *also_taken, char **ret_handle, size_t *ret_len)
{
    char *handle = peg__alloc(call_id.len + SUFFIX);
    size_t taken = 0;
    size_t n = 1;

    if (!handle)
        return PEG_ENOMEM;
    if (call_id.len)
        memcpy(handle, call_id.ptr, call_id.len);
    /* Ends: there are no more handles than blocks and names in the map. */
    while (is_nth_taken(turn, also_taken, handle, call_id.len, n)) {
        taken = n;
        n += n < FEW_HANDLES ? 1 : n;
    }
    while (n - taken > 1) {
        const size_t between = taken + (n - taken) / 2;

        if (is_nth_taken(turn, also_taken, handle, call_id.len, between))
            taken = between;
        else
            n = between;
    }
    (void)is_nth_taken(turn, also_taken, handle, call_id.len, n); /* writes it */
    *ret_handle = handle;
    if (ret_len)
        *ret_len = call_id.len + strlen(handle + call_id.len);
    return PEG_OK;
}
