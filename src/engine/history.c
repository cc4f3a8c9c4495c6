/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Read it from the bottom up:
 *
 *   peg__history_make -> walk_turn -> add_round -> add_exchange -> make_wire_id
 *
 * A round stands where its first call stands, with all its answers; whatever stood between follows
 * by itself. What has been written for one block never depends on the blocks after it, so that a
 * conversation that goes on keeps its beginning byte for byte, which vendors' caches live on.
 */

#include "engine/engine.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/text/str.h"

struct maker {
    const peg_turn *turn;
    peg_unanswered unanswered;
    struct peg__history *history;
    struct peg__exchange *calls; /* all of them; rounds are runs of it */
    size_t n_calls;
    struct peg__map ids; /* wire ids that are taken */
    peg_error *reterr;
};

/* ---- ids ---------------------------------------------------------------------------- */

enum {
    MAX_WIRE_ID = 64, /* of OpenAI's Responses and Anthropic */
    MADE_DIGITS = 24,
    MADE_LEN = 5 + MADE_DIGITS, /* "call_" and hexadecimal digits */
};

static bool is_wire_char(char c)
{
    return peg__is_alnum(c) || c == '_' || c == '-';
}

static bool is_wire_id(peg_str id)
{
    if (id.len == 0 || id.len > MAX_WIRE_ID)
        return false;
    for (size_t i = 0; i < id.len; i++) {
        if (!is_wire_char(id.ptr[i]))
            return false;
    }
    return true;
}

/* From the vendor's id and the block's, which no other call has. `again` is not 0 only if a
 * digest met an id that was there before. */
static bool digest_id(const peg_block *call, unsigned again, char ret_id[MADE_LEN + 1])
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    unsigned char digest[PEG_SHA256_BYTES];
    char hex[MADE_DIGITS + 1];
    bool is_made;

    peg__buf_str(&text, peg_block_call_id(call));
    peg__buf_putc(&text, '\0');
    peg__buf_str(&text, peg_block_id(call));
    peg__buf_printf(&text, "%c%u", '\0', again);
    is_made = text.status == PEG_OK && peg__sha256(peg__buf_view(&text), digest);
    peg__buf_free(&text);
    if (!is_made)
        return false;
    peg__hex(digest, MADE_DIGITS / 2, hex);
    snprintf(ret_id, MADE_LEN + 1, "call_%s", hex);
    return true;
}

static peg_status made_id(struct maker *maker, const peg_block *call, peg_str *ret_id)
{
    char id[MADE_LEN + 1];
    char *copy;
    unsigned again = 0;

    do {
        if (!digest_id(call, again++, id))
            return PEG_ENOMEM;
    } while (peg__map_find(&maker->ids, peg__strn(id, MADE_LEN)));
    copy = peg__arena_copy(&maker->history->arena, peg__strn(id, MADE_LEN));
    if (!copy)
        return PEG_ENOMEM;
    *ret_id = peg__strn(copy, MADE_LEN);
    return PEG_OK;
}

static peg_status make_wire_id(struct maker *maker, const peg_block *call, peg_str *ret_id)
{
    peg_str id = peg_block_call_id(call);
    peg_status status = PEG_OK;

    if (!is_wire_id(id) || peg__map_find(&maker->ids, id))
        status = made_id(maker, call, &id);
    if (!status)
        status = peg__map_add(&maker->ids, id, NULL);
    if (!status)
        *ret_id = id;
    return status;
}

/* ---- passages ------------------------------------------------------------------------- */

static peg_status fail_unanswered(const peg_block *call, peg_error *reterr)
{
    const peg_str id = peg_block_call_id(call);
    const peg_str tool = peg_block_tool(call);

    return peg__fail(
        reterr, PEG_ESTATE, "E_ENGINE_UNANSWERED",
        "call '%.*s' of tool '%.*s' has no result: run it, add a result for it, or allow "
        "unanswered calls, whose outcome the model then learns is unknown",
        (int)(id.len < 64 ? id.len : 64), id.ptr, (int)(tool.len < 64 ? tool.len : 64), tool.ptr);
}

static peg_status add_exchange(struct maker *maker, const peg_block *call)
{
    struct peg__exchange exchange = {.call = call};
    peg_status status;

    exchange.record = peg_turn_result_of(maker->turn, peg_block_id(call));
    if (!exchange.record && maker->unanswered == PEG_UNANSWERED_REFUSE)
        return fail_unanswered(call, maker->reterr);
    status = make_wire_id(maker, call, &exchange.wire_id);
    if (status)
        return peg__fail_nomem(maker->reterr);
    maker->calls[maker->n_calls++] = exchange;
    return PEG_OK;
}

/* All calls from block i on that stand side by side; *ret_next is the block after them. */
static peg_status add_round(struct maker *maker, size_t i, size_t *ret_next)
{
    struct peg__passage *round = &maker->history->passages[maker->history->n];
    const size_t n = peg_turn_len(maker->turn);
    peg_status status = PEG_OK;

    *round = (struct peg__passage){.calls = maker->calls + maker->n_calls};
    for (; i < n && !status; i++) {
        const peg_block *block = peg_turn_at(maker->turn, i);

        if (peg_block_kind_of(block) != PEG_BLOCK_CALL)
            break;
        status = add_exchange(maker, block);
    }
    if (status)
        return status;
    round->n_calls = (size_t)(maker->calls + maker->n_calls - round->calls);
    maker->history->n++;
    *ret_next = i;
    return PEG_OK;
}

/* A result goes with its call. One whose call is gone, and a second one of a call, do not. */
static bool is_answer(const peg_turn *turn, const peg_block *block)
{
    const peg_block *call;
    peg_record *record;

    if (peg_block_kind_of(block) != PEG_BLOCK_RESULT)
        return false;
    record = peg_block_record(block);
    call = peg_turn_find(turn, peg_record_key(record));
    return call && peg_block_kind_of(call) == PEG_BLOCK_CALL &&
           peg_turn_result_of(turn, peg_record_key(record)) == record;
}

static peg_status walk_turn(struct maker *maker)
{
    const size_t n = peg_turn_len(maker->turn);
    size_t i = 0;

    while (i < n) {
        const peg_block *block = peg_turn_at(maker->turn, i);

        if (peg_block_kind_of(block) == PEG_BLOCK_CALL) {
            const peg_status status = add_round(maker, i, &i);

            if (status)
                return status;
            continue;
        }
        if (!is_answer(maker->turn, block))
            maker->history->passages[maker->history->n++] = (struct peg__passage){.block = block};
        i++;
    }
    return PEG_OK;
}

peg_status peg__history_make(const peg_turn *turn, peg_unanswered unanswered,
                             struct peg__history *ret_history, peg_error *reterr)
{
    struct peg__history history = {0};
    struct maker maker = {.turn = turn,
                          .unanswered = unanswered,
                          .history = &history,
                          .ids = PEG__MAP(PEG_LIMIT_TURN_BLOCKS),
                          .reterr = reterr};
    const size_t n_calls = peg_turn_count(turn, PEG_BLOCKS(PEG_BLOCK_CALL));
    peg_status status;

    history.passages =
        peg__arena_alloc(&history.arena, (peg_turn_len(turn) + 1) * sizeof(*history.passages));
    maker.calls = peg__arena_alloc(&history.arena, (n_calls + 1) * sizeof(*maker.calls));
    if (history.passages && maker.calls)
        status = walk_turn(&maker);
    else
        status = peg__fail_nomem(reterr);
    peg__map_free(&maker.ids);
    if (status) {
        peg__history_free(&history);
        return status;
    }
    *ret_history = history;
    return PEG_OK;
}

void peg__history_free(struct peg__history *history)
{
    peg__arena_free(&history->arena);
    *history = (struct peg__history){0};
}
