/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BUS_REDIS_RESP_H
#define PEG_BUS_REDIS_RESP_H

/*
 * RESP3, the protocol of Redis, without I/O: bytes in, values out; and commands as bytes. A value
 * that comes in one piece is read where it lies; only one that comes in pieces is copied.
 */

#include "base/buf.h"
#include "pegboard/common.h"

/* ---- values ---- */

enum resp_kind {
    RESP_NULL,
    RESP_TEXT, /* also of numbers that are no integers */
    RESP_ERROR,
    RESP_INTEGER, /* also of booleans */
    RESP_LIST,    /* also of sets */
    RESP_MAP,     /* a list in which each second item is the value of the one before */
    RESP_PUSH,    /* a list that answers no command */
};

/* A value is followed by those inside it. */
struct resp_value {
    enum resp_kind kind;
    uint32_t n_items;
    uint32_t extent; /* this one and all inside it */
    int64_t integer;
    peg_str text; /* RESP_TEXT, RESP_ERROR */
};

/* The value behind this one and all inside it. */
static inline const struct resp_value *resp_next(const struct resp_value *value)
{
    return value + value->extent;
}

/* The item of a list; NULL: it has fewer, or is no list. */
const struct resp_value *resp_item(const struct resp_value *list, size_t i);
/* The text of an item of a map; "" if there is none. */
peg_str resp_member(const struct resp_value *map, const char *name);
bool resp_is_list(const struct resp_value *value);
/* An error whose first word is this. */
bool resp_is_error(const struct resp_value *value, const char *word);
/* A whole number that is no integer of the protocol. False: it is not in 0..2^63-1. */
bool resp_parse_number(peg_str text, uint64_t *ret_number);

/* ---- reader ---- */

enum { RESP_MAX_DEPTH = 8 };

/* Owned; all zero is a new one. */
struct resp_reader {
    struct peg__buf piece; /* of a value that is not whole yet */
    bool is_piece_done;    /* the piece was a whole value, which has been returned */
    size_t at;             /* read so far, from the beginning of the value */
    struct resp_value *values;
    size_t n_values;
    size_t capacity;
    unsigned depth;
    struct {
        size_t list; /* of values */
        size_t n_to_come;
    } lists[RESP_MAX_DEPTH];
};

void resp_reader_free(struct resp_reader *reader);

/* Takes bytes from *bytes, up to the end of a value. *ret_value is that value, borrowed until the
 * next call and while the bytes are there; NULL: it is not whole, and all bytes were taken.
 * PEG_EPARSE (E_REDIS_PROTOCOL), PEG_ELIMIT (E_REDIS_PROTOCOL), PEG_ENOMEM: the reader is of no use
 * any more. */
peg_status resp_reader_next(struct resp_reader *reader, peg_str *bytes,
                            const struct resp_value **ret_value, peg_error *reterr) PEG_MUST_USE;

/* ---- commands ---- */

/* A command is the number of its arguments, then each of them. */
void resp_put_command(struct peg__buf *out, size_t n_args);
void resp_put(struct peg__buf *out, peg_str arg);
void resp_puts(struct peg__buf *out, const char *arg);
void resp_put_number(struct peg__buf *out, int64_t number);
/* An argument of several parts that the caller adds himself: its length, the parts, resp_end(). */
void resp_begin(struct peg__buf *out, size_t len);
void resp_end(struct peg__buf *out);

#endif
