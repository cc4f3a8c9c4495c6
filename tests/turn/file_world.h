/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_TURN_FILE_WORLD_H
#define PEG_TESTS_TURN_FILE_WORLD_H

/* Turns and their files, in one line each. */

#include "../t.h"
#include "base/text/str.h"
#include "pegboard/turn_file.h"

static inline peg_turn *must_read_as(const char *text, const peg_turn_read_options *options)
{
    peg_turn *turn = NULL;
    peg_error error;

    if (peg_turn_read(peg_cstr(text), options, &turn, &error))
        T_FAIL("%s (%s, line %u)", error.message, error.where, error.line);
    return turn;
}

static inline peg_turn *must_read(const char *text)
{
    return must_read_as(text, NULL);
}

static inline char *must_write_as(const peg_turn *turn, const peg_turn_write_options *options)
{
    char *text = NULL;
    peg_error error;

    if (peg_turn_write(turn, options, &text, NULL, &error))
        T_FAIL("%s", error.message);
    return text;
}

static inline char *must_write(const peg_turn *turn, peg_format format)
{
    return must_write_as(
        turn, &(const peg_turn_write_options){PEG_TURN_WRITE_OPTIONS_INIT, .format = format});
}

/* Reading a text and writing it gives these bytes, and again. */
static inline void check_rewritten(const char *text, peg_format format, const char *expected)
{
    peg_turn *turn = must_read(text);
    char *first = must_write(turn, format);
    peg_turn *again = must_read(first);
    char *second = must_write(again, format);

    CHECK_STR(peg_cstr(first), expected);
    CHECK_STR(peg_cstr(second), expected);
    peg_free(second);
    peg_turn_free(again);
    peg_free(first);
    peg_turn_free(turn);
}

/* A text that is what we write ourselves. */
static inline void check_stays(const char *text)
{
    check_rewritten(text, PEG_FORMAT_JSON, text);
}

/* Refused at a place: where, and the text that stands at the offset. */
static inline void check_refused_as(const char *text, const peg_turn_read_options *options,
                                    const char *where, const char *there)
{
    peg_turn *turn = NULL;
    peg_error error;

    CHECK_STATUS(peg_turn_read(peg_cstr(text), options, &turn, &error), PEG_EPARSE, error);
    CHECK(!turn);
    CHECK_STR(peg_cstr(error.code), "E_TURN_FORMAT");
    CHECK_STR(peg_cstr(error.where), where);
    CHECK(error.line > 0 && error.column > 0);
    if (strncmp(text + error.offset, there, strlen(there)) != 0)
        T_FAIL("%s is found at: %s", where, text + error.offset);
    CHECK_INT(peg_turn_read(peg_cstr(text), options, &turn, NULL), PEG_EPARSE);
}

static inline void check_refused(const char *text, const char *where, const char *there)
{
    check_refused_as(text, NULL, where, there);
}

static inline void check_strict_refused(const char *text, const char *where, const char *there)
{
    const peg_turn_read_options strict = {PEG_TURN_READ_OPTIONS_INIT, .strict = true};

    peg_turn_free(must_read(text));
    check_refused_as(text, &strict, where, there);
}

static inline peg_record *record_at(const peg_turn *turn, size_t i)
{
    return peg_block_record(peg_turn_at(turn, i));
}

static inline peg_artifact *artifact_of(peg_str bytes, const peg_artifact_kind *kind)
{
    peg_artifact *artifact = NULL;
    peg_reader *reader = NULL;

    CHECK_INT(peg_reader_from_bytes(bytes, &reader, NULL), PEG_OK);
    CHECK_INT(peg_artifact_new(kind, reader, &artifact, NULL), PEG_OK);
    peg_reader_unref(reader);
    return artifact;
}

#endif
