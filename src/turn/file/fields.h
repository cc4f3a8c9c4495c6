/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_FILE_FIELDS_H
#define PEG_TURN_FILE_FIELDS_H

/*
 * The members of an object, gathered in any order and written in the order of their names, so that
 * the same thing has the same bytes however it came about. Names and values are borrowed. Running
 * out of memory sticks and is told when they are written.
 *
 * Owned; starts as {0}.
 */

#include "pegboard/json.h"

/* Adds one value to the builder. */
typedef peg_status (*peg__field_fn)(const void *self, peg_json_builder *b, peg_error *reterr);

struct peg__field {
    peg_str name;
    enum {
        PEG__FIELD_STRING,
        PEG__FIELD_INTEGER,
        PEG__FIELD_BOOL,
        PEG__FIELD_JSON, /* sorted at every level; NULL is null */
        PEG__FIELD_MADE, /* by a function */
    } type;
    union {
        peg_str string;
        int64_t integer;
        bool truth;
        const peg_json *json;
        struct {
            peg__field_fn make;
            const void *self;
        } made;
    } u;
};

struct peg__fields {
    struct peg__field *items;
    size_t n;
    size_t capacity;
    bool is_out_of_memory;
};

void peg__fields_string(struct peg__fields *fields, const char *name, peg_str string);
/* Nothing if the string is empty. */
void peg__fields_text(struct peg__fields *fields, const char *name, peg_str string);
/* Nothing if it is 0. */
void peg__fields_integer(struct peg__fields *fields, const char *name, int64_t integer);
/* Nothing if it is false. */
void peg__fields_true(struct peg__fields *fields, const char *name, bool truth);
void peg__fields_bool(struct peg__fields *fields, const char *name, bool truth);
void peg__fields_null(struct peg__fields *fields, const char *name);
void peg__fields_json(struct peg__fields *fields, const char *name, const peg_json *value);
void peg__fields_made(struct peg__fields *fields, const char *name, peg__field_fn make,
                      const void *self);
/* Every member of an object, each in place of a field of its name. Nothing if
 * there is no object. */
void peg__fields_members(struct peg__fields *fields, const peg_json *object);

/* One member, by its key, in place of one of the first n_before fields. */
void peg__fields_member(struct peg__fields *fields, const peg_json *key, size_t n_before);

/* Adds an object with all of them. What a function fails with, PEG_ELIMIT, PEG_ENOMEM. */
peg_status peg__fields_write(struct peg__fields *fields, peg_json_builder *b, peg_error *reterr);
/* The same into an object that is open. */
peg_status peg__fields_write_members(struct peg__fields *fields, peg_json_builder *b,
                                     peg_error *reterr);
void peg__fields_free(struct peg__fields *fields);

#endif
