/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_MEMBERS_H
#define PEG_JSON_MEMBERS_H

/* Members of an object by the order of their names. */

#include "pegboard/json.h"

/* Less than 0, 0 or greater than 0. */
typedef int peg__key_order(const peg_json *a, const peg_json *b);

/* By UTF-16 code units, as RFC 8785 and ECMAScript sort. */
int peg__key_order_utf16(const peg_json *a, const peg_json *b);

/* Any order that is the same for equal names, told quickly. */
int peg__key_order_quick(const peg_json *a, const peg_json *b);

/* Sorts n keys, stably and without allocating; `spare` has room for n. The result is in
 * `keys`. */
void peg__keys_sort(const peg_json **keys, const peg_json **spare, size_t n, peg__key_order *order);

#endif
