/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GENERATE_PYTHON_INTERNAL_H
#define PEG_GENERATE_PYTHON_INTERNAL_H

/* What the files of generate/python/ share: identifiers of Python, and how text is laid out. */

#include "generate/python/python.h"

/* The identifiers of a type. */
struct py_type {
    const struct gen_type *type;
    const char *name;        /* "GetArgs" */
    const char **members;    /* STRUCT: of each member */
    const char *others;      /* STRUCT */
    const char *server_data; /* STRUCT that is a result: its attribute of this name */
};

/* The identifiers of a tool. */
struct py_tool {
    const struct gen_tool *tool;
    const char *method;     /* "get" */
    const char *data_class; /* "GetServerData" */
    const char **data;      /* of server-data: attributes of that class */
};

/* In the arena. */
struct py_names {
    const struct gen_toolset *toolset;
    struct peg__arena *arena;
    struct peg__map types; /* by the name of the model: struct py_type */
    struct py_tool *tools;
};

/* False: out of memory. The map is freed with py_names_free(), in either case. */
bool py_names_make(const struct gen_toolset *toolset, struct peg__arena *arena,
                   struct py_names *ret_names);
void py_names_free(struct py_names *names);
const struct py_type *py_type_of(const struct py_names *names, const struct gen_type *type);
/* The tool that a struct is the result of, or NULL. */
const struct py_tool *py_tool_of_result(const struct py_names *names, const struct gen_type *type);
/* A word that Python takes as a name: "class_", "_2d". In the arena; NULL: out of memory. */
const char *py_safe(struct peg__arena *arena, const char *word);

#define PY_EACH_TOOL(names, tool)                                                                  \
    for (const struct py_tool *tool = (names)->tools;                                              \
         tool < (names)->tools + (names)->toolset->n_tools; tool++)

/* A copy of a part that was made for `out`, in the arena; frees the part. "" if anything has
 * failed, as `out` has then. */
const char *py_keep(const struct py_names *names, struct peg__buf *out, struct peg__buf *part);

/* ---- how types are spelled: spell.c ---- */

/* "int", "list[str | None]", "GetArgsPlace". */
void py_put_type(const struct py_names *names, struct peg__buf *out, const struct gen_type *type);
/* What decodes it: "typed.integer", "typed.array_of(typed.string)", "decode_get_args_place". */
void py_put_decoder(struct peg__buf *out, const struct gen_type *type);
/* Is null a value of the type? An attribute that may be absent is typed.MISSING then, else None. */
bool py_takes_null(const struct gen_type *type);
/* "days: int | None = None" */
void py_put_attribute(const struct py_names *names, struct peg__buf *out, const char *name,
                      const struct gen_type *type, bool is_required);

/* ---- laying text out, as black does: text.c ---- */

enum { PY_COLUMNS = 88 };

/* A docstring of any text, wrapped, with its line; nothing for "". */
void py_put_docstring(struct peg__buf *out, unsigned indent, peg_str text);
/* A string literal, with its quotes. */
void py_put_literal(struct peg__buf *out, peg_str text);
/* head, a literal, tail and the end of the line; a long text as several literals in parentheses. */
void py_put_value(struct peg__buf *out, unsigned indent, const char *head, peg_str text,
                  const char *tail);
/* head, arguments with commas between them, tail and the end of the line; on several lines if one
 * is too short. The head ends in the bracket and the tail begins with one. */
void py_put_call(struct peg__buf *out, unsigned indent, const char *head, const char *const *args,
                 size_t n, const char *tail);

/* ---- parts ---- */

void py_write_types(const struct py_names *names, struct peg__buf *out);
/* The functions that decode types: decode.c. */
void py_put_struct_decoder(const struct py_names *names, struct peg__buf *out,
                           const struct py_type *p);
void py_put_union_decoder(const struct py_names *names, struct peg__buf *out,
                          const struct py_type *p);
void py_put_enum_decoder(struct peg__buf *out, const struct py_type *p);
void py_put_data_decoder(struct peg__buf *out, const struct py_tool *tool);
void py_write_provider(const struct py_names *names, struct peg__buf *out);
void py_write_client(const struct py_names *names, struct peg__buf *out);

#endif
