/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_FILE_INPUT_H
#define PEG_TURN_FILE_INPUT_H

/*
 * Members of an object in a file. The first thing that is wrong sticks: later reads give nothing,
 * and `status` tells it once at the end. Members that are null count as missing.
 *
 * Value; borrows all.
 */

#include "base/mem.h"
#include "pegboard/json.h"

struct peg__in {
    const peg_json *object;
    const char *at; /* where it stands: a pointer such as "/payload/media/3" */
    bool is_strict;
    peg_status status;
    peg_error *reterr;
};

/* Room for what `at` points to. */
enum { PEG__IN_AT = 96 };

/* PEG_EPARSE (E_TURN_FORMAT) at a member, or at the object itself if name is NULL. */
peg_status peg__in_fail(struct peg__in *in, const char *name, const char *fmt, ...)
    PEG_PRINTF(3, 4);

/* NULL if it is missing. */
const peg_json *peg__in_any(const struct peg__in *in, const char *name);
const peg_json *peg__in_object(struct peg__in *in, const char *name);
const peg_json *peg__in_array(struct peg__in *in, const char *name);
/* ptr is NULL if it is missing; NUL-terminated. */
peg_str peg__in_string(struct peg__in *in, const char *name);
/* The same without NULs in it; NULL if it is missing. */
const char *peg__in_cstring(struct peg__in *in, const char *name);
/* 0 if it is missing. */
int64_t peg__in_integer(struct peg__in *in, const char *name, int64_t most);
/* False if it is missing. */
bool peg__in_bool(struct peg__in *in, const char *name);

/* Is a name in a list that ends in NULL? */
bool peg__in_list(const char *const *list, peg_str name);
/* Fails if it is strict and has a member that is not in the list. */
void peg__in_only(struct peg__in *in, const char *const *list);
/* Are there members that are not in the list? */
bool peg__in_has_others(const peg_json *object, const char *const *list);
/* Adds these members to an object that the builder has open. */
void peg__in_copy_others(const peg_json *object, const char *const *list, peg_json_builder *b);

/* Puts a pointer before `where` of an error. */
void peg__in_below(peg_error *reterr, const char *at);
/* What a definition was refused with, as an error of the file: `where` becomes `at`. PEG_ELIMIT and
 * PEG_ENOMEM stay. */
peg_status peg__in_refused(peg_status status, const char *at, peg_error *reterr);

#endif
