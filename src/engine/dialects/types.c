/* SPDX-License-Identifier: Apache-2.0 */

/* Types by name and by value, how values of a document are written, and what is moved into
 * descriptions. */

#include "base/text/str.h"
#include "engine/dialects/internal.h"

static const char *const type_names[] = {"null",   "boolean", "integer", "number",
                                         "string", "array",   "object"};

static bool is_name(const peg_json *name, const char *text, size_t len)
{
    return memcmp(name->u.ptr, text, len) == 0;
}

/* Of the names of one length, a few bytes decide. */
static unsigned type_bit(const peg_json *name)
{
    switch (name->len) {
    case 4:
        return is_name(name, "null", 4) ? PEG__TYPE_NULL : 0;
    case 5:
        return is_name(name, "array", 5) ? PEG__TYPE_ARRAY : 0;
    case 6:
        return is_name(name, "string", 6)   ? PEG__TYPE_STRING
               : is_name(name, "object", 6) ? PEG__TYPE_OBJECT
               : is_name(name, "number", 6) ? PEG__TYPE_NUMBER
                                            : 0;
    case 7:
        return is_name(name, "integer", 7)   ? PEG__TYPE_INTEGER
               : is_name(name, "boolean", 7) ? PEG__TYPE_BOOLEAN
                                             : 0;
    default:
        return 0;
    }
}

const char *peg__type_name(unsigned bit)
{
    return type_names[__builtin_ctz(bit)];
}

unsigned peg__types_of(const peg_json *type)
{
    unsigned types = 0;

    if (!type)
        return 0;
    if (type->kind == PEG_JSON_STRING)
        return type_bit(type);
    if (type->kind != PEG_JSON_ARRAY)
        return 0;
    PEG_JSON_EACH_ITEM (type, item) {
        if (item->kind == PEG_JSON_STRING)
            types |= type_bit(item);
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

enum { BLOCK = 16 }; /* so much of a string is looked at in one go */

typedef uint8_t block __attribute__((vector_size(BLOCK)));

/* Does none of the first `len` bytes need an escape? */
static bool is_plain(block bytes, size_t len)
{
    static const uint8_t wanted_then_not[2 * BLOCK] = {[0 ... BLOCK - 1] = 0xFF};
    uint64_t halves[2];
    block wanted;

    memcpy(&wanted, wanted_then_not + BLOCK - len, sizeof(wanted));
    wanted &= (block)(bytes < 0x20) | (block)(bytes == '"') | (block)(bytes == '\\');
    memcpy(halves, &wanted, sizeof(halves));
    return !(halves[0] | halves[1]);
}

/* A string of a document in quotes, if it is short and nothing in it needs an escape; its padding
 * is read. False: nothing is written. */
static inline bool put_short(struct peg__out *out, const peg_json *string, char **ret_end)
{
    const size_t len = string->len;
    block bytes;
    char *p;

    if (len > BLOCK || !peg__put_fits(out->buf, BLOCK + 3))
        return false;
    memcpy(&bytes, string->u.ptr, sizeof(bytes));
    if (!is_plain(bytes, len))
        return false;
    p = peg__put_begin(out);
    *p++ = '"';
    memcpy(p, &bytes, sizeof(bytes));
    p[len] = '"';
    *ret_end = p + len + 1;
    return true;
}

void peg__put_string(struct peg__out *out, const peg_json *string)
{
    char *end;

    if (put_short(out, string, &end)) {
        peg__put_end(out, end, true);
        return;
    }
    if (out->needs_comma)
        peg__buf_putc(out->buf, ',');
    peg__json_write_doc_string(string, out->buf);
    out->needs_comma = true;
}

void peg__put_key(struct peg__out *out, const peg_json *key)
{
    char *end;

    if (put_short(out, key, &end)) {
        *end++ = ':';
        peg__put_end(out, end, false);
        return;
    }
    peg__put_string(out, key);
    peg__buf_putc(out->buf, ':');
    out->needs_comma = false;
}

/* Most bounds are small. */
static void put_number(struct peg__out *out, const peg_json *number)
{
    const uint64_t n = (uint64_t)number->u.number;
    char *p;

    if (number->kind != PEG_JSON_INTEGER || n >= 1000 || !peg__put_fits(out->buf, 3)) {
        peg__out_value(out, number);
        return;
    }
    p = peg__put_begin(out);
    if (n >= 100)
        *p++ = (char)('0' + n / 100);
    if (n >= 10)
        *p++ = (char)('0' + n / 10 % 10);
    *p++ = (char)('0' + n % 10);
    peg__put_end(out, p, true);
}

/* A value that contains no other. */
static void put_single(struct peg__out *out, const peg_json *value)
{
    switch (peg_json_kind_of(value)) {
    case PEG_JSON_STRING:
        peg__put_string(out, value);
        break;
    case PEG_JSON_INTEGER:
    case PEG_JSON_DECIMAL:
        put_number(out, value);
        break;
    default:
        peg__out_value(out, value);
        break;
    }
}

void peg__put_value(struct peg__out *out, const peg_json *value)
{
    if (value->kind < PEG_JSON_ARRAY) {
        put_single(out, value);
        return;
    }
    if (value->kind != PEG_JSON_ARRAY || value->u.extent != (uint64_t)value->len + 1) {
        peg__out_value(out, value);
        return;
    }
    /* As `required` and `enum` are. */
    peg__put_open(out, "[");
    PEG_JSON_EACH_ITEM (value, item)
        put_single(out, item);
    peg__put_close(out, "]");
}

/* ---- descriptions ----------------------------------------------------------------------- */

/* Appends `keyword: value`, or leaves the notes as they were. */
static bool add_note(struct peg__render *r, enum peg__kw keyword, const peg_json *value)
{
    struct peg__out out = {.buf = &r->notes};
    const size_t before = r->notes.len;
    const size_t max = before + PEG_LIMIT_DESCRIBED_BYTES < PEG_LIMIT_DESCRIBED_BYTES_ALL
                           ? before + PEG_LIMIT_DESCRIBED_BYTES
                           : PEG_LIMIT_DESCRIBED_BYTES_ALL;

    /* Text takes at least a byte a value: what cannot fit is not even tried. */
    if (before > max || peg_json_extent(value) > max - before)
        return false;
    r->notes.max = max;
    if (before)
        peg__put_before(&out, "; ");
    peg__put_text(&out, &peg__kw_names[keyword]);
    out.needs_comma = false;
    peg__put_before(&out, ": ");
    peg__put_value(&out, value);
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

/* The description and the notes, with padding as a string of a document has it. */
static peg_json join_notes(struct peg__render *r, const peg_json *description)
{
    struct peg__buf *text = &r->scratch;
    char *padding;

    peg__buf_clear(text);
    if (description) {
        peg__buf_str(text, peg_json_str(description));
        peg__buf_putc(text, ' ');
    }
    peg__buf_putc(text, '(');
    peg__buf_str(text, peg__buf_view(&r->notes));
    peg__buf_putc(text, ')');
    padding = peg__buf_reserve(text, BLOCK);
    if (!padding) {
        peg__render_nomem(r);
        return (peg_json){.kind = PEG_JSON_STRING};
    }
    memset(padding, 0, BLOCK);
    return (peg_json){.kind = PEG_JSON_STRING, .len = (uint32_t)text->len, .u.ptr = text->ptr};
}

void peg__put_description(struct peg__render *r, const struct peg__view *view)
{
    const peg_json *description = peg__view_get(view, PEG__KW_DESCRIPTION);

    if (description && (description->kind != PEG_JSON_STRING || description->len == 0))
        description = NULL;
    if (r->notes.len) {
        const peg_json joined = join_notes(r, description);

        peg__put_kw(r->out, PEG__KW_DESCRIPTION);
        peg__put_string(r->out, &joined);
    } else if (description) {
        peg__put_kw(r->out, PEG__KW_DESCRIPTION);
        peg__put_string(r->out, description);
    }
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
