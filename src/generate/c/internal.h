/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GENERATE_C_INTERNAL_H
#define PEG_GENERATE_C_INTERNAL_H

/* What the files of generate/c/ share: identifiers of C for a toolset, and how text is laid out. */

#include "generate/c/c.h"

/* The identifiers of a type. */
struct c_type {
    const struct gen_type *type;
    const char *name;       /* "weather_get_args" */
    const char **members;   /* STRUCT: of each member; UNION: of each branch */
    const char **flags;     /* STRUCT: "has_x" of each optional member, else NULL */
    const char **constants; /* ENUM: of each value; UNION: of each branch */
    const char *others;     /* STRUCT */
};

/* The identifiers of a tool. */
struct c_tool {
    const struct gen_tool *tool;
    const char *name;   /* "weather_get" */
    const char **data;  /* of server-data: members of "weather_get_server_data" */
    const char **flags; /* "has_x", NULL for what is always there */
    const char *member; /* of the result: "server_data" */
    const char *arena;  /* of the result: "arena" */
};

/* In the arena. */
struct c_names {
    const struct gen_toolset *toolset;
    const char *prefix;    /* "weather" */
    const char *upper;     /* "WEATHER" */
    struct peg__map types; /* by the name of the model: struct c_type */
    struct c_tool *tools;
};

/* False: out of memory. The map is freed with c_names_free(), in either case. */
bool c_names_make(const struct gen_toolset *toolset, struct peg__arena *arena,
                  struct c_names *ret_names);
void c_names_free(struct c_names *names);
const struct c_type *c_type_of(const struct c_names *names, const struct gen_type *type);
/* "int64_t", "peg_str", "const peg_json *", "weather_get_args_place"; a pointer ends in '*'. */
const char *c_spell(const struct c_names *names, const struct gen_type *type);
/* Does JSON of the struct say anything, or is all of it null that is always there? */
bool c_says_anything(const struct gen_type *type);
/* Is the struct the result of a tool? That tool, or NULL. */
const struct c_tool *c_tool_of_result(const struct c_names *names, const struct gen_type *type);

/* The types that tools use, in an order in which C wants them. */
#define C_EACH_TYPE(names, type)                                                                   \
    for (const struct gen_type *type = (names)->toolset->types; type; type = type->next)           \
        if (type->is_used)
#define C_EACH_TOOL(names, tool)                                                                   \
    for (const struct c_tool *tool = (names)->tools;                                               \
         tool < (names)->tools + (names)->toolset->n_tools; tool++)

/* ---- laying text out: text.c ---- */

enum { C_COLUMNS = 100 };

/* A comment that says what the file is. */
void c_put_head(struct peg__buf *out, const struct gen_service *service,
                const struct gen_toolset *toolset, const char *what);
/* A comment of any text, wrapped; nothing for "". */
void c_put_comment(struct peg__buf *out, unsigned indent, peg_str text);
/* head, arguments with commas between them, tail; on several lines if one is too short. The head
 * ends in the bracket. `args` is NULL-terminated. */
void c_put_call(struct peg__buf *out, const char *head, const char *const *args, const char *tail);
/* The same with a head made like printf's. */
void c_put_callf(struct peg__buf *out, const char *const *args, const char *tail, const char *fmt,
                 ...) PEG_PRINTF(4, 5);
/* A literal of C, with its quotes. */
void c_put_literal(struct peg__buf *out, peg_str text);
/* "type name", with the star where it belongs. */
void c_put_declarator(struct peg__buf *out, const char *type, const char *name);

/* ---- parts ---- */

void c_write_types_h(const struct c_names *names, struct peg__buf *out);
void c_write_types_c(const struct c_names *names, struct peg__buf *out);
/* The bodies of decoding and of encoding: decode.c, encode.c. */
void c_write_decoders(const struct c_names *names, struct peg__buf *out);
void c_write_encoders(const struct c_names *names, struct peg__buf *out);
/* Statements that decode `from` into a place, and leave the function with false if that fails. */
void c_put_decode_slot(const struct c_names *names, struct peg__buf *out, unsigned indent,
                       struct gen_slot slot, const char *from, const char *to);
/* Statements that encode what is in a place. */
void c_put_encode_slot(const struct c_names *names, struct peg__buf *out, unsigned indent,
                       struct gen_slot slot, const char *from);
void c_write_provider_h(const struct c_names *names, struct peg__buf *out);
void c_write_provider_c(const struct c_names *names, struct peg__buf *out);
void c_write_client_h(const struct c_names *names, struct peg__buf *out);
void c_write_client_c(const struct c_names *names, struct peg__buf *out);

#endif
