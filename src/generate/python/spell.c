/* SPDX-License-Identifier: Apache-2.0 */

#include "generate/python/internal.h"

/* Arrays, maps and nullables are spelled where they are used; a struct or a union is within each
 * type that contains itself, so this ends. */
// NOLINTNEXTLINE(misc-no-recursion): 64 levels deep at most
void py_put_type(const struct py_names *names, struct peg__buf *out, const struct gen_type *type)
{
    static const char *const scalars[] = {
        [GEN_BOOL] = "bool",  [GEN_INTEGER] = "int", [GEN_NUMBER] = "float",
        [GEN_STRING] = "str", [GEN_NULL] = "None",   [GEN_RAW] = "Any",
    };

    if (gen_is_scalar(type->kind)) {
        peg__buf_puts(out, scalars[type->kind]);
    } else if (type->kind == GEN_NULLABLE) {
        py_put_type(names, out, type->item.type);
        peg__buf_puts(out, " | None");
    } else if (type->kind == GEN_ARRAY || type->kind == GEN_MAP) {
        peg__buf_puts(out, type->kind == GEN_ARRAY ? "list[" : "dict[str, ");
        py_put_type(names, out, type->item.type);
        peg__buf_putc(out, ']');
    } else {
        peg__buf_puts(out, py_type_of(names, type)->name);
    }
}

// NOLINTNEXTLINE(misc-no-recursion): as above
void py_put_decoder(struct peg__buf *out, const struct gen_type *type)
{
    static const char *const scalars[] = {
        [GEN_BOOL] = "boolean",  [GEN_INTEGER] = "integer", [GEN_NUMBER] = "number",
        [GEN_STRING] = "string", [GEN_NULL] = "null",       [GEN_RAW] = "anything",
    };
    static const char *const compounds[] = {
        [GEN_NULLABLE] = "nullable", [GEN_ARRAY] = "array_of", [GEN_MAP] = "map_of"};

    if (gen_is_scalar(type->kind)) {
        peg__buf_printf(out, "typed.%s", scalars[type->kind]);
    } else if (type->kind == GEN_NULLABLE || type->kind == GEN_ARRAY || type->kind == GEN_MAP) {
        peg__buf_printf(out, "typed.%s(", compounds[type->kind]);
        py_put_decoder(out, type->item.type);
        peg__buf_putc(out, ')');
    } else {
        peg__buf_printf(out, "decode_%s", type->name);
    }
}

bool py_takes_null(const struct gen_type *type)
{
    if (type->kind == GEN_UNION) {
        for (size_t i = 0; i < type->n_branches; i++) {
            const enum gen_kind kind = type->branches[i].slot.type->kind;

            if (kind == GEN_NULL || kind == GEN_NULLABLE || kind == GEN_RAW)
                return true;
        }
    }
    return type->kind == GEN_NULL || type->kind == GEN_NULLABLE || type->kind == GEN_RAW;
}

/* What has one value need not be given: the member that tells the objects of a union apart. */
static void put_only_value(struct peg__buf *out, const struct gen_type *type)
{
    if (type->kind == GEN_NULL) {
        peg__buf_puts(out, " = None");
    } else if (type->kind == GEN_ENUM && type->n_values == 1) {
        peg__buf_puts(out, " = ");
        py_put_literal(out, type->values[0]);
    }
}

void py_put_attribute(const struct py_names *names, struct peg__buf *out, const char *name,
                      const struct gen_type *type, bool is_required)
{
    peg__buf_printf(out, "    %s: ", name);
    py_put_type(names, out, type);
    if (is_required)
        put_only_value(out, type);
    else if (type->kind == GEN_RAW)
        peg__buf_puts(out, " = typed.MISSING");
    else
        peg__buf_puts(out,
                      py_takes_null(type) ? " | typed.Missing = typed.MISSING" : " | None = None");
    peg__buf_putc(out, '\n');
}
