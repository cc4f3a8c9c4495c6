/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GENERATE_TS_INTERNAL_H
#define PEG_GENERATE_TS_INTERNAL_H

/* What the files of generate/ts/ share: identifiers of TypeScript for a toolset, and how text is
 * laid out. The layout is that of Prettier for lines of TS_COLUMNS. */

#include "generate/ts/ts.h"

/* The identifiers of a tool. */
struct ts_tool {
    const struct gen_tool *tool;
    const char *method; /* "jobResult" */
    /* Of a tool that declares server-data, else NULL. */
    const char *answer; /* "GetAnswer": the result and the server-data */
    const char *beside; /* "GetServerData" */
    const char **data;  /* its members: "forecastChart" */
};

/* In the arena. */
struct ts_names {
    const struct gen_toolset *toolset;
    const char *implementation; /* "WeatherTools" */
    const char *client;         /* "WeatherClient" */
    struct peg__map types;      /* by the name of the model: "GetArgs"; those with a name only */
    struct ts_tool *tools;
};

/* False: out of memory. The map is freed with ts_names_free(), in either case. */
bool ts_names_make(const struct gen_toolset *toolset, struct peg__arena *arena,
                   struct ts_names *ret_names);
void ts_names_free(struct ts_names *names);
/* "GetArgs". The type is a struct, a union, or an enum of several values. */
const char *ts_name_of(const struct ts_names *names, const struct gen_type *type);
/* Does the type have a name, or is it written where it is used? */
bool ts_is_named(const struct gen_type *type);

#define TS_EACH_TOOL(names, tool)                                                                  \
    for (const struct ts_tool *tool = (names)->tools;                                              \
         tool < (names)->tools + (names)->toolset->n_tools; tool++)

/* ---- laying text out: text.c ---- */

enum { TS_COLUMNS = 100 };

/* A comment that says what the file is. */
void ts_put_head(struct peg__buf *out, const struct gen_service *service,
                 const struct gen_toolset *toolset, const char *what);
/* A comment of JSDoc of any text, wrapped; nothing for "". */
void ts_put_comment(struct peg__buf *out, unsigned indent, peg_str text);
/* A literal, with its quotes. */
void ts_put_literal(struct peg__buf *out, peg_str text);
/* The name of a property: an identifier, or a literal. */
void ts_put_property(struct peg__buf *out, peg_str name);
/* head, a literal, tail; the literal is in pieces, a line each, if the line is too short. The head
 * has no newline. */
void ts_put_text(struct peg__buf *out, unsigned indent, const char *head, peg_str text,
                 const char *tail);
/* head, items with commas between them, tail; an item a line if one is too short. The head ends in
 * a bracket and has no newline; the tail may have one. `items` is NULL-terminated. */
void ts_put_list(struct peg__buf *out, unsigned indent, const char *head, const char *const *items,
                 const char *tail);

/* ---- parts ---- */

void ts_write_types(const struct ts_names *names, struct peg__buf *out);
void ts_write_provider(const struct ts_names *names, struct peg__buf *out);
void ts_write_client(const struct ts_names *names, struct peg__buf *out);
/* import type { GetArgs, ... } from "./types.js", of the types of arguments and results; with those
 * of server-data alone, if they are used, too. */
void ts_put_imports(const struct ts_names *names, struct peg__buf *out, bool has_beside);

#endif
