/* SPDX-License-Identifier: Apache-2.0 */

/* The list of blocks: its index finds what walking the list would find, whatever happened to it. */

#include "../t.h"
#include "base/text/str.h"
#include "turn/turn.h"

enum { N_NAMES = 6, N_TURNS = 3, N_STEPS = 20000 };

/* ---- fixture: names that often meet, and chance that is the same each time -------- */

static uint32_t roll(uint32_t *state, uint32_t n)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state % n;
}

static peg_str name_of(uint32_t i)
{
    static const char *const names[N_NAMES] = {"a", "b", "c", "d", "a~2", "b~2"};

    return peg__str(names[i % N_NAMES]);
}

static peg_artifact *artifact(void)
{
    peg_artifact *made = NULL;
    peg_reader *reader = NULL;

    CHECK_INT(peg_reader_from_bytes(peg__str("x"), &reader, NULL), PEG_OK);
    CHECK_INT(peg_artifact_new(NULL, reader, &made, NULL), PEG_OK);
    peg_reader_unref(reader);
    return made;
}

static peg_record *record(uint32_t *chance)
{
    peg_artifact *kept = roll(chance, 2) ? artifact() : NULL;
    const peg_record_def def = {PEG_RECORD_DEF_INIT,
                                .key = name_of(roll(chance, N_NAMES)),
                                .call_id = name_of(roll(chance, N_NAMES)),
                                .handle = name_of(roll(chance, N_NAMES)),
                                .tool = peg__str("look"),
                                .text = {kept ? NULL : "text", kept ? 0 : 4},
                                .artifact = kept};
    peg_record *made = NULL;

    CHECK_INT(peg_record_new(&def, &made, NULL), PEG_OK);
    peg_artifact_unref(kept);
    return made;
}

static peg_block *block(uint32_t *chance)
{
    peg_block_def def = {PEG_BLOCK_DEF_INIT, .id = name_of(roll(chance, N_NAMES))};
    peg_block *made = NULL;

    switch (roll(chance, 4)) {
    case 0:
        def.kind = PEG_BLOCK_CALL;
        break;
    case 1:
        def.kind = PEG_BLOCK_OTHER;
        def.type = peg__str("retrieved");
        def.tier = PEG_TIER_FIRST_PARTY;
        def.artifact = artifact();
        break;
    default:
        def.kind = PEG_BLOCK_RESULT;
        def.record = record(chance);
    }
    CHECK_INT(peg_block_new(&def, &made, NULL), PEG_OK);
    peg_artifact_unref(def.artifact);
    peg_record_unref(def.record);
    return made;
}

/* ---- what walking the list finds --------------------------------------------------- */

static bool has_name(const peg_block *b, enum peg__block_name which, peg_str name)
{
    return peg__str_eq(peg__block_name(b, which), name);
}

/* The first; of those with one handle, the first with an artifact. */
static size_t walk(const peg_turn *turn, enum peg__block_name which, peg_str name)
{
    size_t found = PEG__NO_BLOCK;

    for (size_t i = 0; i < peg_turn_len(turn); i++) {
        const peg_block *b = peg_turn_at(turn, i);

        if (!has_name(b, which, name))
            continue;
        if (which == PEG__NAME_HANDLE && peg_block_artifact(b))
            return i;
        if (found == PEG__NO_BLOCK)
            found = i;
    }
    return found;
}

static void check_index(const peg_turn *turn)
{
    for (int which = PEG__NAME_ID; which <= PEG__NAME_HANDLE; which++) {
        for (uint32_t i = 0; i < N_NAMES; i++)
            CHECK(peg__blocks_find(turn->blocks, (enum peg__block_name)which, name_of(i)) ==
                  walk(turn, (enum peg__block_name)which, name_of(i)));
    }
}

/* Each id once; each handle at most one artifact. */
static void check_rules(const peg_turn *turn)
{
    for (size_t i = 0; i < peg_turn_len(turn); i++) {
        const peg_block *b = peg_turn_at(turn, i);

        CHECK(walk(turn, PEG__NAME_ID, peg_block_id(b)) == i);
        if (peg_block_artifact(b))
            CHECK(walk(turn, PEG__NAME_HANDLE, peg__block_name(b, PEG__NAME_HANDLE)) == i);
    }
}

/* ---- chance -------------------------------------------------------------------------- */

/* A change that is refused changes nothing; one that is made, one block. */
static void change(peg_turn *turn, uint32_t *chance)
{
    const size_t len = peg_turn_len(turn);
    const peg_str id = name_of(roll(chance, N_NAMES));
    const bool was_there = peg_turn_find(turn, id) != NULL;
    peg_status status;
    peg_block *b;
    bool is_new;

    if (roll(chance, 3) == 0) {
        CHECK_INT(peg_turn_remove(turn, id, NULL), PEG_OK);
        CHECK_INT(peg_turn_len(turn), len - was_there);
        return;
    }
    b = block(chance);
    is_new = !peg_turn_find(turn, peg_block_id(b));
    status = roll(chance, 2) ? peg_turn_add(turn, b, NULL) : peg_turn_put(turn, b, NULL);
    CHECK_INT(peg_turn_len(turn), !status && is_new ? len + 1 : len);
    peg_block_unref(b);
}

TEST(blocks_are_found_as_by_walking_over_many_random_changes)
{
    peg_turn *turns[N_TURNS] = {NULL};
    uint32_t chance = 2463534242U;

    for (size_t i = 0; i < N_TURNS; i++)
        CHECK_INT(peg_turn_new(&turns[i], NULL), PEG_OK);
    for (int i = 0; i < N_STEPS; i++) {
        peg_turn *turn = turns[roll(&chance, N_TURNS)];
        const peg_turn *other = turns[roll(&chance, N_TURNS)];

        if (roll(&chance, 20) == 0)
            peg__turn_swap_in(turn, other); /* they share a list from now on */
        else
            change(turn, &chance);
        for (size_t t = 0; t < N_TURNS; t++)
            check_index(turns[t]);
        check_rules(turn);
    }
    for (size_t i = 0; i < N_TURNS; i++)
        peg_turn_free(turns[i]);
}
