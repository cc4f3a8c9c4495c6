/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/dialects/internal.h"

#include <inttypes.h>

#include "base/text/str.h"

void peg__render_free(struct peg__render *r)
{
    peg__buf_free(&r->scratch);
    peg__buf_free(&r->renamed);
    peg__buf_free(&r->notes);
}

void peg__render_nomem(struct peg__render *r)
{
    if (!r->out->buf->status)
        r->out->buf->status = PEG_ENOMEM;
}

/* ---- losses ----------------------------------------------------------------------------- */

/* As deep as schemas are: PEG_LIMIT_REWRITE_DEPTH, and PEG_LIMIT_INLINED_TOGETHER for the last. */
// NOLINTNEXTLINE(misc-no-recursion)
static void write_place(struct peg__buf *out, const struct peg__place *place)
{
    if (!place)
        return;
    if (place->pointer.ptr) {
        peg__buf_str(out, place->pointer);
        return;
    }
    write_place(out, place->up);
    peg__json_pointer_push(peg__kw_name(place->keyword), out);
    if (place->name)
        peg__json_pointer_push(peg_json_str(place->name), out);
    if (place->index != UINT32_MAX)
        peg__buf_printf(out, "/%" PRIu32, place->index);
}

static void add_loss(struct peg__render *r, peg_str keyword, const char *what, const char *note)
{
    const peg_definition_loss loss = {.tool = r->tool,
                                      .where = peg__buf_view(&r->scratch),
                                      .keyword = keyword,
                                      .what = what,
                                      .note = peg__str(note)};

    if (r->scratch.status)
        r->losses->status = PEG_ENOMEM;
    else
        peg__losses_add(r->losses, &loss);
}

void peg__notify(struct peg__render *r, const struct peg__place *place, peg_str keyword,
                 const char *what, const char *note)
{
    peg__buf_clear(&r->scratch);
    write_place(&r->scratch, place);
    peg__json_pointer_push(keyword, &r->scratch);
    add_loss(r, keyword, what, note);
}

void peg__notify_here(struct peg__render *r, const struct peg__place *place, enum peg__kw keyword,
                      const char *what, const char *note)
{
    peg__buf_clear(&r->scratch);
    write_place(&r->scratch, place);
    add_loss(r, peg__kw_name(keyword), what, note);
}

/* ---- references ------------------------------------------------------------------------- */

const peg_json *peg__ref_target(const struct peg__render *r, peg_str ref, peg_str *ret_pointer)
{
    const peg_json *target;
    peg_str pointer;

    if (ref.len == 0 || ref.ptr[0] != '#' || memchr(ref.ptr, '%', ref.len))
        return NULL;
    pointer = peg__str_from(ref, 1);
    if (peg_json_pointer(r->root, pointer, &target, NULL))
        return NULL;
    *ret_pointer = pointer;
    return target;
}

static bool is_inside(const struct peg__render *r, const peg_json *target)
{
    for (size_t i = 0; i < r->n_inside; i++) {
        if (r->refs[i] == target)
            return true;
    }
    return target == r->root;
}

static bool may_inline(const struct peg__render *r)
{
    return r->n_inside < PEG_LIMIT_INLINED_DEPTH && r->n_refs < PEG_LIMIT_INLINED_REFS &&
           r->out->buf->len - r->start < PEG_LIMIT_INLINED_BYTES;
}

/* ---- laying out ------------------------------------------------------------------------- */

/* Keywords of which all sources count, or the first one without a word about it. */
static const uint64_t united = PEG__KW_BIT(PROPERTIES) | PEG__KW_BIT(REQUIRED) | PEG__KW_BIT(REF) |
                               PEG__KW_BIT(ALL_OF) | PEG__KW_BIT(DEFS) | PEG__KW_BIT(DEFINITIONS) |
                               PEG__KW_BIT(TITLE) | PEG__KW_BIT(DESCRIPTION) |
                               PEG__KW_BIT(EXAMPLES) | PEG__KW_BIT(DEFAULT) | PEG__KW_BIT(COMMENT) |
                               PEG__KW_BIT(SCHEMA) | PEG__KW_BIT(ID) | PEG__KW_BIT(ANCHOR);

static void lay_out_keyword(struct peg__render *r, struct peg__view *view, enum peg__kw keyword,
                            const peg_json *value)
{
    const uint64_t bit = UINT64_C(1) << keyword;
    const size_t from = view->n_sources - 1;

    if (!(view->has & bit)) {
        view->has |= bit;
        view->value[keyword] = value;
        view->from[keyword] = (uint8_t)from;
        return;
    }
    if (!(united & bit) && !peg_json_equal(view->value[keyword], value))
        peg__lose_kw(r, view->sources[from].place, keyword, "dropped",
                     "another schema that applies here says it differently, and that one is sent");
}

/* What a branch does not take over from the schema it is in. */
static const uint64_t not_base = PEG__KW_BIT(ANY_OF) | PEG__KW_BIT(ONE_OF) | PEG__KW_BIT(TITLE) |
                                 PEG__KW_BIT(DESCRIPTION) | PEG__KW_BIT(EXAMPLES) |
                                 PEG__KW_BIT(DEFAULT) | PEG__KW_BIT(NULLABLE);

static void lay_out_base(struct peg__view *view, const peg_json *schema)
{
    PEG_JSON_EACH_MEMBER (schema, key) {
        const enum peg__kw keyword = peg__kw_find(key);
        const uint64_t taken = not_base | view->has;

        if (keyword == PEG__KW_UNKNOWN || taken >> keyword & 1)
            continue;
        view->has |= UINT64_C(1) << keyword;
        view->of_base |= UINT64_C(1) << keyword;
        view->value[keyword] = key + 1;
        view->from[keyword] = (uint8_t)(view->n_sources - 1);
    }
}

/* Returns which keywords the schema has. */
static uint64_t lay_out(struct peg__render *r, struct peg__view *view, const peg_json *schema,
                        unsigned flags)
{
    const struct peg__source *source = &view->sources[view->n_sources - 1];
    uint64_t seen = 0;

    PEG_JSON_EACH_MEMBER (schema, key) {
        const enum peg__kw keyword = peg__kw_find(key);

        if (keyword != PEG__KW_UNKNOWN) {
            seen |= UINT64_C(1) << keyword;
            lay_out_keyword(r, view, keyword, key + 1);
        } else if (r->losses && !(flags & PEG__VIEW_QUIET)) {
            peg__notify(r, source->place, peg_json_str(key), "dropped",
                        "the vendor knows no such keyword");
        }
    }
    return seen;
}

/* A schema that applies at the same place, which may be gone when the view is used. */
static void add_source(struct peg__render *r, struct peg__view *view, const peg_json *schema,
                       const struct peg__place *place, bool is_optional, unsigned flags);

static void cut_ref(struct peg__render *r, struct peg__view *view, const struct peg__place *place,
                    const char *note)
{
    peg__lose_kw(r, place, PEG__KW_REF, "rewritten", note);
    view->is_cut = true;
}

// NOLINTNEXTLINE(misc-no-recursion): add_source() has the bound
static void follow_ref(struct peg__render *r, struct peg__view *view,
                       const struct peg__source *source, unsigned flags)
{
    const peg_json *ref = peg_json_get(source->schema, "$ref");
    struct peg__place place = {.up = NULL};
    const peg_json *target;

    if (!ref || ref->kind != PEG_JSON_STRING)
        return;
    target = peg__ref_target(r, peg_json_str(ref), &place.pointer);
    if (!target) {
        cut_ref(r, view, source->place, "only references within the parameters can be written out");
    } else if (is_inside(r, target)) {
        cut_ref(r, view, source->place, "it leads back into itself, so its inside is left open");
    } else if (!may_inline(r)) {
        cut_ref(r, view, source->place, "written out, the references would become too large");
    } else {
        r->refs[r->n_inside++] = target;
        r->n_refs++;
        add_source(r, view, target, &place, source->is_optional, flags);
    }
}

// NOLINTNEXTLINE(misc-no-recursion): add_source() has the bound
static void follow_branches(struct peg__render *r, struct peg__view *view,
                            const struct peg__source *source, enum peg__kw keyword, unsigned flags)
{
    const peg_json *list = peg_json_get_str(source->schema, peg__kw_name(keyword));
    const bool is_optional = source->is_optional || keyword != PEG__KW_ALL_OF;
    uint32_t i = 0;

    if (!list || list->kind != PEG_JSON_ARRAY)
        return;
    PEG_JSON_EACH_ITEM (list, branch) {
        const struct peg__place place = peg__place_index(source->place, keyword, i++);

        add_source(r, view, branch, &place, is_optional, flags);
    }
}

/* Takes in a source that has its place in the view. */
// NOLINTNEXTLINE(misc-no-recursion): add_source() has the bound
static void take_source(struct peg__render *r, struct peg__view *view,
                        const struct peg__source *source, unsigned flags)
{
    uint64_t seen = UINT64_MAX;

    view->n_sources++;
    if (flags & PEG__VIEW_BASE)
        lay_out_base(view, source->schema);
    else if (!source->is_optional)
        seen = lay_out(r, view, source->schema, flags);
    if (flags & PEG__VIEW_MERGE_ALL_OF && seen & PEG__KW_BIT(ALL_OF))
        flags |= PEG__VIEW_MERGE;
    if (!(flags & PEG__VIEW_MERGE))
        return;
    if (seen & PEG__KW_BIT(REF))
        follow_ref(r, view, source, flags);
    if (seen & PEG__KW_BIT(ALL_OF))
        follow_branches(r, view, source, PEG__KW_ALL_OF, flags);
    if (!(flags & PEG__VIEW_ROOT))
        return;
    if (seen & PEG__KW_BIT(ANY_OF))
        follow_branches(r, view, source, PEG__KW_ANY_OF, flags);
    if (seen & PEG__KW_BIT(ONE_OF))
        follow_branches(r, view, source, PEG__KW_ONE_OF, flags);
}

/* Each level takes one of PEG_LIMIT_INLINED_TOGETHER sources. */
// NOLINTNEXTLINE(misc-no-recursion)
static void add_source(struct peg__render *r, struct peg__view *view, const peg_json *schema,
                       const struct peg__place *place, bool is_optional, unsigned flags)
{
    const size_t n = view->n_sources;

    if (schema->kind != PEG_JSON_OBJECT) {
        if (!is_optional && peg__is_false_schema(schema))
            view->is_false = true;
        return;
    }
    if (n == PEG_LIMIT_INLINED_TOGETHER) {
        peg__lose_here(r, place, PEG__KW_ALL_OF, "dropped", "too many schemas apply at one place");
        return;
    }
    view->places[n] = *place;
    view->sources[n] = (struct peg__source){
        .schema = schema, .place = &view->places[n], .is_optional = is_optional};
    take_source(r, view, &view->sources[n], flags);
}

void peg__view_add(struct peg__render *r, struct peg__view *view, const peg_json *schema,
                   const struct peg__place *place, unsigned flags)
{
    add_source(r, view, schema, place, false, flags);
}

void peg__view_make(struct peg__render *r, const peg_json *schema, const struct peg__place *place,
                    unsigned flags, struct peg__view *ret_view)
{
    static const struct peg__place root = {.pointer = PEG_LIT("")};

    ret_view->has = 0;
    ret_view->n_sources = 0;
    ret_view->of_base = 0;
    ret_view->is_false = false;
    ret_view->is_nullable = false;
    ret_view->is_cut = false;
    if (schema->kind != PEG_JSON_OBJECT) {
        ret_view->is_false = peg__is_false_schema(schema);
        return;
    }
    ret_view->sources[0].schema = schema;
    ret_view->sources[0].place = place ? place : &root;
    ret_view->sources[0].is_optional = false;
    take_source(r, ret_view, &ret_view->sources[0], flags);
}

/* ---- members ---------------------------------------------------------------------------- */

static const peg_json *properties_of(const struct peg__view *view, size_t source)
{
    const peg_json *properties = peg_json_get(view->sources[source].schema, "properties");

    return properties && properties->kind == PEG_JSON_OBJECT ? properties : NULL;
}

static void members_of_many(struct peg__render *r, const struct peg__view *view, peg__member_fn *fn,
                            void *user)
{
    struct peg__map seen = PEG__MAP(PEG_LIMIT_JSON_BYTES);

    for (size_t i = 0; i < view->n_sources; i++) {
        const peg_json *properties = properties_of(view, i);

        if (!properties)
            continue;
        PEG_JSON_EACH_MEMBER (properties, key) {
            const struct peg__place place =
                peg__place_name(view->sources[i].place, PEG__KW_PROPERTIES, key);
            const peg_status status = peg__map_add(&seen, peg_json_str(key), NULL);

            if (!status)
                fn(r, key, &place, user);
            else if (status != PEG_EEXISTS)
                peg__render_nomem(r);
        }
    }
    peg__map_free(&seen);
}

void peg__view_members(struct peg__render *r, const struct peg__view *view, peg__member_fn *fn,
                       void *user)
{
    const peg_json *properties;

    if (view->n_sources != 1) {
        members_of_many(r, view, fn, user);
        return;
    }
    properties = peg__view_get(view, PEG__KW_PROPERTIES);
    if (!properties || properties->kind != PEG_JSON_OBJECT)
        return;
    PEG_JSON_EACH_MEMBER (properties, key) {
        const struct peg__place place =
            peg__place_name(view->sources[0].place, PEG__KW_PROPERTIES, key);

        fn(r, key, &place, user);
    }
}

static void count_member(struct peg__render *r, const peg_json *key, const struct peg__place *place,
                         void *user)
{
    size_t *n = user;

    (void)r;
    (void)place;
    *n += !peg__is_false_schema(key + 1);
}

bool peg__view_has_members(struct peg__render *r, const struct peg__view *view)
{
    const peg_json *properties = peg__view_get(view, PEG__KW_PROPERTIES);
    size_t n = 0;

    /* The first member of a plain schema mostly decides. */
    if (view->n_sources == 1 && properties && properties->kind == PEG_JSON_OBJECT &&
        properties->len && !peg__is_false_schema(properties + 2))
        return true;
    peg__view_members(r, view, count_member, &n);
    return n > 0;
}

/* ---- branches --------------------------------------------------------------------------- */

enum peg__kw peg__view_branches(const struct peg__view *view)
{
    for (enum peg__kw i = PEG__KW_ANY_OF; i <= PEG__KW_ONE_OF; i++) {
        const peg_json *list = peg__view_get(view, i);

        if (list && list->kind == PEG_JSON_ARRAY && list->len)
            return i;
    }
    return PEG__KW_UNKNOWN;
}

bool peg__is_null_schema(const peg_json *schema)
{
    const peg_json *constant = peg_json_get(schema, "const");

    return peg__types_of(peg_json_get(schema, "type")) == PEG__TYPE_NULL ||
           (constant && constant->kind == PEG_JSON_NULL);
}

static size_t count_real_branches(const peg_json *list)
{
    size_t n = 0;

    PEG_JSON_EACH_ITEM (list, branch)
        n += peg__is_real_branch(branch);
    return n;
}

void peg__view_take_only_branch(struct peg__render *r, struct peg__view *view)
{
    for (enum peg__kw keyword; (keyword = peg__view_branches(view)) != PEG__KW_UNKNOWN;) {
        const peg_json *list = view->value[keyword];
        const struct peg__place *up = peg__view_place(view, keyword);
        uint32_t i = 0;

        if (count_real_branches(list) > 1)
            return;
        view->has &= ~(UINT64_C(1) << keyword);
        PEG_JSON_EACH_ITEM (list, branch) {
            const struct peg__place place = peg__place_index(up, keyword, i++);

            view->is_nullable = view->is_nullable || peg__is_null_schema(branch);
            if (peg__is_real_branch(branch))
                peg__view_add(r, view, branch, &place, PEG__VIEW_MERGE);
        }
    }
}

/* ---- required --------------------------------------------------------------------------- */

enum { REQUIRED_IN_ROW = 16 }; /* so many are compared one by one */

static const peg_json *required_of(const struct peg__view *view, size_t source)
{
    const peg_json *required;

    if (view->sources[source].is_optional)
        return NULL;
    required = peg_json_get(view->sources[source].schema, "required");
    return required && required->kind == PEG_JSON_ARRAY ? required : NULL;
}

static void map_required(struct peg__render *r, const struct peg__view *view,
                         struct peg__required *required)
{
    required->map = (struct peg__map)PEG__MAP(PEG_LIMIT_JSON_BYTES);
    required->is_mapped = true;
    required->few = NULL;
    required->n = 0;
    for (size_t i = 0; i < view->n_sources; i++) {
        const peg_json *names = required_of(view, i);

        if (!names)
            continue;
        PEG_JSON_EACH_ITEM (names, name) {
            peg_status status = PEG_EEXISTS;

            if (name->kind == PEG_JSON_STRING)
                status = peg__map_add(&required->map, peg_json_str(name), NULL);
            required->n += !status;
            if (status && status != PEG_EEXISTS)
                peg__render_nomem(r);
        }
    }
}

void peg__required_make(struct peg__render *r, const struct peg__view *view,
                        struct peg__required *ret_required)
{
    const peg_json *names = peg__view_get(view, PEG__KW_REQUIRED);

    ret_required->few = names && names->kind == PEG_JSON_ARRAY ? names : NULL;
    ret_required->n = ret_required->few ? names->len : 0;
    ret_required->is_mapped = false;
    if (view->n_sources != 1 || ret_required->n > REQUIRED_IN_ROW)
        map_required(r, view, ret_required);
}

bool peg__required_finds(const struct peg__required *required, const peg_json *key)
{
    if (required->is_mapped)
        return peg__map_find(&required->map, peg_json_str(key));
    PEG_JSON_EACH_ITEM (required->few, item) {
        if (item->kind == PEG_JSON_STRING && item->len == key->len &&
            peg__str_eq(peg_json_str(item), peg_json_str(key)))
            return true;
    }
    return false;
}
