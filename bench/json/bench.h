/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_JSON_BENCH_H
#define BENCH_JSON_BENCH_H

/*
 * The parser bench: every contestant parses a text and visits every value of it.
 *
 *   docs.c      makes texts, the same on every machine
 *   corpus.c    reads texts that gather.py has gathered
 *   parser_*.c  one contestant a file, each behind struct bench_parser
 *   main.c      interleaves them, checks that they agree, prints the table
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a walk found. Equal for every parser, or the run fails. */
struct bench_tally {
    uint64_t values;       /* keys not counted */
    uint64_t string_bytes; /* of strings and keys, unescaped */
    uint64_t truths;
    double numbers; /* sum in document order, each number as its nearest double */
};

struct bench_parser {
    const char *name;
    /* State kept from text to text; may be NULL where the library has none. */
    void *(*open)(void);
    /* Adds to the tally. False if the text was refused. At least 64 readable bytes follow. */
    bool (*run)(void *state, const char *text, size_t len, struct bench_tally *tally);
    void (*close)(void *state);
    /* A document to keep, and to give back; NULL where there is none apart from the parser. */
    void *(*keep)(const char *text, size_t len);
    void (*drop)(void *document);
};

/* What a library given as --peer has: those that it brings, then NULL. */
extern const struct bench_parser *const bench_peers[];

extern const struct bench_parser bench_pegboard_reused;
extern const struct bench_parser bench_pegboard_fresh;
extern const struct bench_parser bench_jansson;
extern const struct bench_parser bench_cjson;
extern const struct bench_parser bench_yajl;
extern const struct bench_parser bench_simdjson_dom;
extern const struct bench_parser bench_simdjson_ondemand;
extern const struct bench_parser bench_simdjson_ondemand_native;

/* Texts that are read one after the other. */
struct bench_docs {
    const char *label;
    size_t n;
    size_t bytes; /* of all of them */
    struct bench_doc {
        char *text;
        size_t len;
    } * docs;
};

enum { BENCH_PADDING = 64 }; /* readable bytes after a text; simdjson reads ahead */

/* `n` texts of about `size` bytes each; false if memory ran out. */
bool bench_docs_make(struct bench_docs *docs, const char *label, size_t n, size_t size);
/* Those of the .json files of a folder; false if there is none, or one can't be read. */
bool bench_docs_load(struct bench_docs *docs, const char *folder);
void bench_docs_done(struct bench_docs *docs);

#ifdef __cplusplus
}
#endif
#endif
