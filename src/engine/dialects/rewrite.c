/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What dialects share: types by name and by value, what becomes of keywords by the dialect's table,
 * and members that several of them write.
 */

#include "base/text/str.h"
#include "engine/dialects/internal.h"

static const char *const type_names[] = {"null",   "boolean", "integer", "number",
                                         "string", "array",   "object"};

static bool is_type(const peg_json *name, const char *text, size_t len)
{
    return memcmp(name->u.ptr, text, len) == 0;
}

/* Of the names of one length, a few bytes decide. */
static unsigned type_bit(const peg_json *name)
{
    switch (name->len) {
    case 4:
        return is_type(name, "null", 4) ? PEG__TYPE_NULL : 0;
    case 5:
        return is_type(name, "array", 5) ? PEG__TYPE_ARRAY : 0;
    case 6:
        return is_type(name, "string", 6)   ? PEG__TYPE_STRING
               : is_type(name, "object", 6) ? PEG__TYPE_OBJECT
               : is_type(name, "number", 6) ? PEG__TYPE_NUMBER
                                            : 0;
    case 7:
        return is_type(name, "integer", 7)   ? PEG__TYPE_INTEGER
               : is_type(name, "boolean", 7) ? PEG__TYPE_BOOLEAN
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

unsigned peg__types_of_view_values(const struct peg__view *view)
{
    if (view->has & PEG__KW_BIT(ENUM))
        return peg__types_of_values(view->value[PEG__KW_ENUM]);
    return view->has & PEG__KW_BIT(CONST) ? peg__type_of_value(view->value[PEG__KW_CONST]) : 0;
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

void peg__sort_const(struct peg__render *r, const struct peg__view *view, bool is_taken)
{
    if (is_taken)
        peg__lose_kw(r, peg__view_place(view, PEG__KW_CONST), PEG__KW_CONST, "rewritten",
                     "it is sent as an enum of one value");
    else
        peg__describe(r, view, PEG__KW_CONST, r->dialect->note);
}

enum { PADDING = 16 }; /* that peg__put_string() reads */

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
    padding = peg__buf_reserve(text, PADDING);
    if (!padding) {
        peg__render_nomem(r);
        return (peg_json){.kind = PEG_JSON_STRING};
    }
    memset(padding, 0, PADDING);
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

/* ---- keywords by the table of the dialect -------------------------------------------------- */

void peg__sort_keywords(struct peg__render *r, const struct peg__view *view)
{
    const struct peg__dialect *dialect = r->dialect;
    const uint64_t silent = dialect->written | (dialect->kept & ~dialect->numbers);

    peg__buf_clear(&r->notes);
    for (uint64_t rest = view->has & ~silent; rest; rest &= rest - 1) {
        const enum peg__kw i = (enum peg__kw)__builtin_ctzll(rest);

        if (dialect->numbers >> i & 1 && peg_json_is_number(view->value[i]))
            continue;
        if (dialect->reject && dialect->reject(r, view, i))
            continue;
        if (dialect->dropped >> i & 1)
            peg__lose_kw(r, peg__view_place(view, i), i, "dropped", dialect->note);
        else
            peg__describe(r, view, i, dialect->note);
    }
}

void peg__put_kept(struct peg__render *r, const struct peg__view *view)
{
    for (uint64_t rest = view->has & r->dialect->kept; rest; rest &= rest - 1) {
        const enum peg__kw i = (enum peg__kw)__builtin_ctzll(rest);

        if (!(r->dialect->numbers >> i & 1) || peg_json_is_number(view->value[i]))
            peg__put_member(r, view, i);
    }
}

void peg__put_only_value(struct peg__render *r, const peg_json *value, bool is_nullable)
{
    peg__put_kw(r->out, PEG__KW_ENUM);
    peg__put_open(r->out, "[");
    peg__put_value(r->out, value);
    if (is_nullable)
        peg__out_null(r->out);
    peg__put_close(r->out, "]");
}

void peg__put_required(struct peg__render *r, const struct peg__view *view)
{
    struct peg__required required;

    if (view->n_sources == 1 && !(view->has & PEG__KW_BIT(REQUIRED)))
        return;
    peg__required_make(r, view, &required);
    if (required.n && required.is_mapped) {
        peg__put_before(r->out, "\"required\":[");
        PEG__MAP_EACH(&required.map, entry)
        peg__out_string(r->out, entry->name);
        peg__put_close(r->out, "]");
    } else if (required.n) {
        peg__put_member(r, view, PEG__KW_REQUIRED);
    }
    peg__required_free(&required);
}

void peg__write_list(struct peg__render *r, const peg_json *list, const struct peg__place *up,
                     enum peg__kw keyword)
{
    uint32_t i = 0;

    PEG_JSON_EACH_ITEM (list, item) {
        const struct peg__place place = peg__place_index(up, keyword, i++);

        r->dialect->write(r, item, &place);
    }
}

void peg__write_named(struct peg__render *r, const peg_json *members, const struct peg__place *up,
                      enum peg__kw keyword, const peg_json *skipped)
{
    PEG_JSON_EACH_MEMBER (members, key) {
        const struct peg__place place = peg__place_name(up, keyword, key);

        if (skipped && peg_json_get_str(skipped, peg_json_str(key)))
            continue;
        peg__put_key(r->out, key);
        r->dialect->write(r, key + 1, &place);
    }
}

void peg__lose_root(struct peg__render *r, const struct peg__view *view, const char *note)
{
    const peg_json *type = peg__view_get(view, PEG__KW_TYPE);

    for (enum peg__kw i = PEG__KW_ANY_OF; i <= PEG__KW_ONE_OF; i++) {
        if (view->has >> i & 1)
            peg__lose_kw(r, peg__view_place(view, i), i, "rewritten", note);
    }
    if (type && peg__types_of(type) != PEG__TYPE_OBJECT)
        peg__lose_kw(r, peg__view_place(view, PEG__KW_TYPE), PEG__KW_TYPE, "rewritten",
                     "arguments are always an object");
}

void peg__lose_beside_ref(struct peg__render *r, const struct peg__view *view, const char *note)
{
    const uint64_t beside =
        view->has & (r->dialect->written | r->dialect->kept) &
        ~(PEG__KW_BIT(REF) | PEG__KW_BIT(DESCRIPTION) | PEG__KW_BIT(DEFS) |
          PEG__KW_BIT(DEFINITIONS) | PEG__KW_BIT(ID) | PEG__KW_BIT(ANCHOR) | PEG__KW_BIT(NULLABLE));

    for (uint64_t rest = beside; rest; rest &= rest - 1)
        peg__lose_kw(r, view->sources[0].place, (enum peg__kw)__builtin_ctzll(rest), "dropped",
                     note);
}
