/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_FUZZ_TURN_FILE_H
#define PEG_FUZZ_TURN_FILE_H

/* A text is refused cleanly, or is a turn that is written, read and written with the same bytes. */

#include "fuzz.h"
#include "pegboard/turn_file.h"

static inline peg_turn *fuzz_read_turn(peg_str text, peg_format format, bool is_own)
{
    const peg_turn_read_options options = {PEG_TURN_READ_OPTIONS_INIT, .format = format};
    peg_turn *turn = NULL;
    peg_error error;

    if (peg_turn_read(text, &options, &turn, &error) == PEG_OK)
        return turn;
    REQUIRE(!is_own, "own text is refused: %s (%s):\n%.*s", error.message, error.where,
            (int)text.len, text.ptr);
    REQUIRE(!turn, "nothing is made of a damaged file");
    fuzz_check_error(&error, text);
    return NULL;
}

/* False where the turn has more than a file may have. */
static inline bool fuzz_write_turn(const peg_turn *turn, peg_format format, char **ret_text,
                                   size_t *ret_len)
{
    const peg_turn_write_options options = {PEG_TURN_WRITE_OPTIONS_INIT, .format = format};
    peg_error error;
    const peg_status status = peg_turn_write(turn, &options, ret_text, ret_len, &error);

    REQUIRE(status == PEG_OK || status == PEG_ELIMIT, "%s", error.message);
    return status == PEG_OK;
}

static inline void fuzz_check_turn(const peg_turn *turn, peg_format format)
{
    char *first = NULL;
    char *second = NULL;
    size_t first_len = 0;
    size_t second_len = 0;
    peg_turn *again;

    if (!fuzz_write_turn(turn, format, &first, &first_len))
        return;
    again = fuzz_read_turn(peg__strn(first, first_len), format, true);
    REQUIRE(peg_turn_len(again) == peg_turn_len(turn), "blocks");
    REQUIRE(fuzz_write_turn(again, format, &second, &second_len), "it was written before");
    REQUIRE(first_len == second_len && memcmp(first, second, first_len) == 0, "%s\nthen:\n%s",
            first, second);
    peg_turn_free(again);
    peg_free(second);
    peg_free(first);
}

/* Strict readers take a part of what others take. */
static inline void fuzz_check_strict(peg_str text, peg_format format, bool is_turn)
{
    const peg_turn_read_options options = {PEG_TURN_READ_OPTIONS_INIT, .format = format,
                                           .strict = true};
    peg_turn *turn = NULL;
    peg_error error;

    if (peg_turn_read(text, &options, &turn, &error) == PEG_OK)
        REQUIRE(is_turn, "only a strict reader takes this");
    else
        fuzz_check_error(&error, text);
    peg_turn_free(turn);
}

static inline void fuzz_turn_file(peg_str text, peg_format format)
{
    peg_turn *turn = fuzz_read_turn(text, format, false);

    fuzz_check_strict(text, format, turn != NULL);
    if (!turn)
        return;
    fuzz_check_turn(turn, PEG_FORMAT_JSON);
    fuzz_check_turn(turn, PEG_FORMAT_YAML);
    peg_turn_free(turn);
}

#endif
