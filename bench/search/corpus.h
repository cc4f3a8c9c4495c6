/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BENCH_SEARCH_CORPUS_H
#define PEG_BENCH_SEARCH_CORPUS_H

/* Tools and questions of a folder (tools.jsonl, queries.jsonl), and large catalogs made of the
 * words of those tools. Programs end with a message where something can't be read. */

#include <stdbool.h>
#include <stddef.h>

#include "pegboard/v1/registry.pb-c.h"

struct bench_pair {
    char *first;  /* name of a tool; a question */
    char *second; /* its description; the name of its tool */
    char *schema; /* of its arguments; NULL: none is given */
};

struct bench_corpus {
    struct bench_pair *tools;
    size_t n_tools;
    struct bench_pair *questions;
    size_t n_questions;
    char **words; /* of all descriptions, as often as they stand there */
    size_t n_words;
};

void bench_corpus_read(const char *folder, struct bench_corpus *ret_corpus);

/* A registration with one tool; what it points to lasts until the next one. */
const Pegboard__V1__RegisterRequest *bench_request_of(const struct bench_pair *tool);
/* The same, made up: `number` makes its name its own, and seeds it. */
const Pegboard__V1__RegisterRequest *bench_request_made(const struct bench_corpus *corpus,
                                                        unsigned number);

_Noreturn void bench_fail(const char *what, const char *why);

#endif
