/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_VALIDATE_VALIDATE_H
#define PEG_CLI_VALIDATE_VALIDATE_H

/*
 * What the files of `pegboard validate` share:
 *
 *   validate.c  options, and the order of things
 *   schema.c    reads the schema and the documents it refers to
 *   input.c     turns files into values, one at a time
 *   print.c     prints the outcome, for people or for programs
 *   bench.c     --benchmark
 */

#include "base/arena.h"
#include "cli/cli.h"
#include "cli/terminal/terminal.h"
#include "pegboard/schema.h"

/* What was asked for. Strings are borrowed from argv. */
struct validate_options {
    const char *schema_path;
    char **paths; /* of the instances; n_paths of them */
    size_t n_paths;
    const char **refs; /* FILE or URI=FILE; n_refs of them */
    size_t n_refs;
    enum cli_syntax syntax;
    peg_dialect dialect;
    peg_format_mode format;
    enum cli_color color;
    peg_json_options json;
    bool as_json;
    bool quiet;
    bool benchmark;
    size_t loops; /* 0: enough for about a second */
};

/* Owned by validate.c; lives as long as the command. */
struct validate {
    const struct validate_options *options;
    struct peg__buf schema_text; /* as JSON, also when it was YAML */
    struct peg__arena uris;      /* of the schema and of what --ref names */
    peg_schema_docs *docs;       /* what --ref registered */
    peg_schema_options schema_options;
    peg_schema *schema;
    peg_checker *checker;
    peg_report *report;
    peg_json_doc *doc;    /* the instance; parsed into again and again */
    struct peg__buf text; /* of a file that is one instance */
    struct peg__buf out;  /* what is printed about one instance */
    const struct cli_style *style;
    const struct cli_style *err_style;
    struct cli_progress progress;
    uint64_t n_valid;
    uint64_t n_invalid;
    uint64_t n_unusable; /* undecided ones too */
};

/* Where an instance stands: line 0 means that it is the whole file. */
struct validate_place {
    const char *path;
    uint64_t line;
};

/* One value, valid during the call. */
struct validate_instance {
    struct validate_place place;
    const peg_json *value;
    peg_str text; /* its JSON; empty if it was YAML */
};

/* What happens to each value. */
typedef void validate_fn(struct validate *v, const struct validate_instance *instance, void *user);

/* The FILE of what --ref names; borrowed from it. */
const char *validate_ref_path(const char *ref);
/* Fills schema_text, docs, schema_options and schema; complains itself. */
peg_status validate_load_schema(struct validate *v);

/* Calls fn for each instance of a file; reports and counts unusable ones. */
void validate_each(struct validate *v, const char *path, validate_fn *fn, void *user);

/* A validate_fn: check, count, print. */
void validate_check(struct validate *v, const struct validate_instance *instance, void *user);
/* Tells why an instance cannot be used, and counts it: on stderr, or with --json on stdout. */
void validate_unusable(struct validate *v, const struct validate_place *place,
                       const peg_error *error);
/* The same for the schema or a document of --ref; as no instance can tell it then, it is always
 * told on stderr, and with --json on stdout too. */
void validate_unusable_schema(struct validate *v, const struct validate_place *place,
                              const peg_error *error);
/* After the last line of a .jsonl file: how many were valid. */
void validate_print_lines(struct validate *v, const char *path, uint64_t n, uint64_t n_valid);

/* Measures, and prints the line of figures. */
void validate_benchmark(struct validate *v);

#endif
