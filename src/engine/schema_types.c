/* SPDX-License-Identifier: Apache-2.0 */

/* Types by name and by value, and what is moved into descriptions. */

#include "base/str.h"
#include "engine/schema_view.h"
#include "json/number.h"

static const peg_str type_names[] = {PEG_LIT("null"),   PEG_LIT("boolean"), PEG_LIT("integer"),
                                     PEG_LIT("number"), PEG_LIT("string"),  PEG_LIT("array"),
                                     PEG_LIT("object")};

/* A name is looked at by its length and first letter, then compared once. */
unsigned peg__type_bit(peg_str name)
{
    unsigned i;

    switch (name.len) {
    case 4:
        i = 0;
        break;
    case 5:
        i = 5;
        break;
    case 6:
        i = name.ptr[0] == 's' ? 4 : name.ptr[0] == 'n' ? 3 : 6;
        break;
    case 7:
        i = name.ptr[0] == 'b' ? 1 : 2;
        break;
    default:
        return 0;
    }
    return peg__str_eq(name, type_names[i]) ? 1U << i : 0;
}

const char *peg__type_name(unsigned bit)
{
    return type_names[__builtin_ctz(bit)].ptr;
}

unsigned peg__types_of(const peg_json *type)
{
    unsigned types = 0;

    if (!type)
        return 0;
    if (type->kind == PEG_JSON_STRING)
        return peg__type_bit(peg_json_str(type));
    if (type->kind != PEG_JSON_ARRAY)
        return 0;
    PEG_JSON_EACH_ITEM (type, item) {
        if (item->kind == PEG_JSON_STRING)
            types |= peg__type_bit(peg_json_str(item));
    }
    return types;
}

unsigned peg__type_of_value(const peg_json *value)
{
    switch (value->kind) {
    case PEG_JSON_NULL:
        return PEG__TYPE_NULL;
    case PEG_JSON_BOOL:
        return PEG__TYPE_BOOLEAN;
    case PEG_JSON_INTEGER:
        return PEG__TYPE_INTEGER;
    case PEG_JSON_DECIMAL:
        return PEG__TYPE_NUMBER;
    case PEG_JSON_STRING:
        return PEG__TYPE_STRING;
    case PEG_JSON_ARRAY:
        return PEG__TYPE_ARRAY;
    default:
        return PEG__TYPE_OBJECT;
    }
}

unsigned peg__types_of_values(const peg_json *array)
{
    unsigned types = 0;

    if (array->kind == PEG_JSON_ARRAY) {
        PEG_JSON_EACH_ITEM (array, item)
            types |= peg__type_of_value(item);
    }
    /* A number is a whole one, too. */
    return types & PEG__TYPE_NUMBER ? types & ~(unsigned)PEG__TYPE_INTEGER : types;
}

/* ---- writing ---------------------------------------------------------------------------- */

void peg__put_key(struct peg__out *out, const peg_json *key)
{
    if (out->needs_comma)
        peg__put_char(out->buf, ',');
    peg__json_write_doc_string(key, out->buf);
    peg__put_char(out->buf, ':');
    out->needs_comma = false;
}

void peg__put_value(struct peg__out *out, const peg_json *value)
{
    if (value->kind != PEG_JSON_STRING && !peg_json_is_number(value)) {
        peg__out_value(out, value);
        return;
    }
    if (out->needs_comma)
        peg__put_char(out->buf, ',');
    out->needs_comma = true;
    if (value->kind == PEG_JSON_STRING)
        peg__json_write_doc_string(value, out->buf);
    else
        peg__number_write(value, out->buf);
}

/* ---- descriptions ----------------------------------------------------------------------- */

/* Appends `keyword: value`, or leaves the notes as they were. */
static bool add_note(struct peg__render *r, enum peg__kw keyword, const peg_json *value)
{
    const size_t before = r->notes.len;
    const size_t max = before + PEG_LIMIT_DESCRIBED_BYTES < PEG_LIMIT_DESCRIBED_BYTES_ALL
                           ? before + PEG_LIMIT_DESCRIBED_BYTES
                           : PEG_LIMIT_DESCRIBED_BYTES_ALL;

    /* Text takes at least a byte a value: what cannot fit is not even tried. */
    if (before > max || peg_json_extent(value) > max - before)
        return false;
    r->notes.max = max;
    peg__buf_puts(&r->notes, before ? "; " : "");
    peg__buf_str(&r->notes, peg__kw_name(keyword));
    peg__buf_puts(&r->notes, ": ");
    peg__json_write(value, PEG_JSON_COMPACT, &r->notes);
    if (!r->notes.status)
        return true;
    if (r->notes.status == PEG_ENOMEM)
        peg__render_nomem(r);
    r->notes.status = PEG_OK;
    r->notes.len = before;
    return false;
}

void peg__describe(struct peg__render *r, const struct peg__view *view, enum peg__kw keyword,
                   const char *note)
{
    const bool fits = add_note(r, keyword, view->value[keyword]);

    peg__lose_kw(r, peg__view_place(view, keyword), keyword, fits ? "described" : "dropped", note);
}

void peg__write_description(struct peg__render *r, const struct peg__view *view)
{
    const peg_json *description = peg__view_get(view, PEG__KW_DESCRIPTION);
    const bool is_there =
        description && description->kind == PEG_JSON_STRING && description->len > 0;

    if (!is_there && r->notes.len == 0)
        return;
    peg__put_kw(r->out, PEG__KW_DESCRIPTION);
    if (r->notes.len == 0) {
        peg__put_value(r->out, description);
        return;
    }
    peg__buf_clear(&r->scratch);
    if (is_there) {
        peg__buf_str(&r->scratch, peg_json_str(description));
        peg__buf_putc(&r->scratch, ' ');
    }
    peg__buf_putc(&r->scratch, '(');
    peg__buf_str(&r->scratch, peg__buf_view(&r->notes));
    peg__buf_putc(&r->scratch, ')');
    if (r->scratch.status)
        peg__render_nomem(r);
    peg__out_string(r->out, peg__buf_view(&r->scratch));
}

void peg__write_ref(struct peg__render *r, const struct peg__view *view, peg_str ref,
                    bool is_nullable)
{
    const bool is_alone =
        !is_nullable && r->notes.len == 0 && !peg__view_get(view, PEG__KW_DESCRIPTION);

    if (is_alone) {
        peg__out_member(r->out, "$ref", ref);
        return;
    }
    peg__write_description(r, view);
    peg__put_kw(r->out, PEG__KW_ANY_OF);
    peg__put_open(r->out, "[");
    peg__put_open(r->out, "{");
    peg__out_member(r->out, "$ref", ref);
    peg__put_close(r->out, "}");
    if (is_nullable)
        peg__out_raw(r->out, peg__str("{\"type\":\"null\"}"));
    peg__put_close(r->out, "]");
}
