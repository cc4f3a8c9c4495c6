/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
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

    if (!checksum)
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

peg_status peg__turn_handle(const peg_turn *turn, peg_str call_id,
                            const struct peg__map *also_taken, char **ret_handle, size_t *ret_len)
{
    enum { SUFFIX = 24 }; /* '~', the digits of a number and a NUL */
    char *handle = peg__alloc(call_id.len + SUFFIX);
    size_t len = call_id.len;

    if (!handle)
        return PEG_ENOMEM;
    if (call_id.len)
        memcpy(handle, call_id.ptr, call_id.len);
    handle[len] = '\0';
    /* Ends: there are no more handles than blocks and names in the map. */
    for (size_t n = 2; is_taken(turn, also_taken, peg__strn(handle, len)); n++)
        len = call_id.len + (size_t)snprintf(handle + call_id.len, SUFFIX, "~%zu", n);
    *ret_handle = handle;
    if (ret_len)
        *ret_len = len;
    return PEG_OK;
}
