/* SPDX-License-Identifier: Apache-2.0 */

/*
 * OpenAI's strict subset: every object is closed, every member required, and what was optional may
 * be null instead. What the subset has no word for goes into the description; what cannot be left
 * out without changing what is valid ends the attempt, and the tool is sent without strict mode.
 */

#include "base/text/str.h"
#include "engine/dialects/internal.h"

static void write_strict(struct peg__render *r, const peg_json *schema,
                         const struct peg__place *place, bool is_nullable);
static void write_inner(struct peg__render *r, const peg_json *schema,
                        const struct peg__place *place);

/* ---- giving up -------------------------------------------------------------------------- */

/* Only the reason is reported: what was rewritten until here will not be sent. */
static bool begin_failing(struct peg__render *r)
{
    if (r->strict.failed)
        return false;
    r->strict.failed = true;
    peg__losses_cut(r->losses, r->strict.n_losses);
    return true;
}

static void end_failing(struct peg__render *r)
{
    r->strict.losses = r->losses;
    r->losses = NULL;
}

static void fail_at(struct peg__render *r, const struct peg__place *place, enum peg__kw keyword,
                    const char *note)
{
    if (!begin_failing(r))
        return;
    peg__lose_kw(r, place, keyword, "rewritten", note);
    end_failing(r);
}

static void fail_here(struct peg__render *r, const struct peg__place *place, enum peg__kw keyword,
                      const char *note)
{
    if (!begin_failing(r))
        return;
    peg__lose_here(r, place, keyword, "rewritten", note);
    end_failing(r);
}

static void count_bytes(struct peg__render *r, const struct peg__place *place, enum peg__kw keyword,
                        size_t bytes)
{
    r->strict.n_bytes += bytes;
    if (r->strict.n_bytes > PEG_LIMIT_STRICT_BYTES)
        fail_at(r, place, keyword,
                "sent without strict: its names and values have more than 120,000 bytes");
}

/* ---- keywords --------------------------------------------------------------------------- */

static bool reject_keyword(struct peg__render *r, const struct peg__view *view,
                           enum peg__kw keyword)
{
    const uint64_t rejected = PEG__KW_BIT(ALL_OF) | PEG__KW_BIT(ONE_OF) | PEG__KW_BIT(NOT) |
                              PEG__KW_BIT(IF) | PEG__KW_BIT(THEN) | PEG__KW_BIT(ELSE) |
                              PEG__KW_BIT(PREFIX_ITEMS) | PEG__KW_BIT(PATTERN_PROPERTIES) |
                              PEG__KW_BIT(DEPENDENT_SCHEMAS) | PEG__KW_BIT(DEPENDENCIES);

    if (!(rejected >> keyword & 1))
        return false;
    fail_at(r, peg__view_place(view, keyword), keyword,
            "sent without strict: OpenAI's strict mode cannot say this");
    return true;
}

static const struct peg__dialect dialect = {
    .kept = PEG__KW_BIT(TITLE) | PEG__KW_BIT(PATTERN) | PEG__KW_BIT(MULTIPLE_OF) |
            PEG__KW_BIT(MINIMUM) | PEG__KW_BIT(MAXIMUM) | PEG__KW_BIT(MIN_ITEMS) |
            PEG__KW_BIT(MAX_ITEMS) | PEG__KW_BIT(EXCLUSIVE_MINIMUM) |
            PEG__KW_BIT(EXCLUSIVE_MAXIMUM),
    .numbers = PEG__KW_BIT(EXCLUSIVE_MINIMUM) | PEG__KW_BIT(EXCLUSIVE_MAXIMUM),
    .written = PEG__KW_BIT(TYPE) | PEG__KW_BIT(ENUM) | PEG__KW_BIT(CONST) | PEG__KW_BIT(FORMAT) |
               PEG__KW_BIT(DESCRIPTION) | PEG__KW_BIT(PROPERTIES) | PEG__KW_BIT(REQUIRED) |
               PEG__KW_BIT(ADDITIONAL_PROPERTIES) | PEG__KW_BIT(UNEVALUATED_PROPERTIES) |
               PEG__KW_BIT(ITEMS) | PEG__KW_BIT(ANY_OF) | PEG__KW_BIT(REF) | PEG__KW_BIT(DEFS) |
               PEG__KW_BIT(DEFINITIONS) | PEG__KW_BIT(NULLABLE),
    .dropped = PEG__KW_BIT(SCHEMA) | PEG__KW_BIT(ID) | PEG__KW_BIT(ANCHOR) | PEG__KW_BIT(COMMENT) |
               PEG__KW_BIT(READ_ONLY) | PEG__KW_BIT(WRITE_ONLY) | PEG__KW_BIT(PROPERTY_ORDERING),
    .note = "OpenAI's strict mode does not take it",
    .reject = reject_keyword,
    .write = write_inner,
};

static bool is_known_format(const peg_json *format)
{
    static const char *const formats[] = {"date-time", "time", "date", "duration", "email",
                                          "hostname",  "ipv4", "ipv6", "uuid"};

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (format->kind == PEG_JSON_STRING && peg__str_is(peg_json_str(format), formats[i]))
            return true;
    }
    return false;
}

/* ---- types and values ------------------------------------------------------------------- */

/* What is not said can be told from the rest, or there is no telling. */
static unsigned types_of(const struct peg__view *view)
{
    const peg_json *type = peg__view_get(view, PEG__KW_TYPE);

    if (type)
        return peg__types_of(type);
    if (view->has & (PEG__KW_BIT(ENUM) | PEG__KW_BIT(CONST)))
        return peg__types_of_view_values(view);
    if (view->has & PEG__KW_BIT(PROPERTIES))
        return PEG__TYPE_OBJECT;
    return view->has & PEG__KW_BIT(ITEMS) ? PEG__TYPE_ARRAY : 0;
}

/* One type, alone or with null. */
static const struct peg__kw_text one_type[][2] = {
#define BOTH(name)                                                                                 \
    {                                                                                              \
        PEG__KW_TEXT("\"type\":\"" name "\""), PEG__KW_TEXT("\"type\":[\"" name "\",\"null\"]")    \
    }
    {PEG__KW_TEXT("\"type\":\"null\""), PEG__KW_TEXT("\"type\":\"null\"")},
    BOTH("boolean"),
    BOTH("integer"),
    BOTH("number"),
    BOTH("string"),
    BOTH("array"),
    BOTH("object"),
#undef BOTH
};

static void write_type_list(struct peg__render *r, unsigned types)
{
    const unsigned others = types & ~(unsigned)PEG__TYPE_NULL;
    const bool has_null = types & PEG__TYPE_NULL;

    if ((others & (others - 1)) == 0) {
        peg__put_text(r->out, &one_type[__builtin_ctz(others ? others : types)][has_null]);
        return;
    }
    peg__put_before(r->out, "\"type\":[");
    for (unsigned rest = others; rest; rest &= rest - 1)
        peg__out_cstring(r->out, peg__type_name(rest & -rest));
    if (has_null)
        peg__out_cstring(r->out, "null");
    peg__put_close(r->out, "]");
}

static void count_value(struct peg__render *r, const struct peg__view *view, enum peg__kw keyword,
                        const peg_json *value)
{
    if (value->kind == PEG_JSON_STRING)
        count_bytes(r, peg__view_place(view, keyword), keyword, value->len);
}

static void write_enum(struct peg__render *r, const struct peg__view *view, bool is_nullable)
{
    const peg_json *values = view->value[PEG__KW_ENUM];
    bool has_null = false;

    if (values->kind != PEG_JSON_ARRAY)
        return;
    r->strict.n_enum += values->len;
    if (r->strict.n_enum > PEG_LIMIT_STRICT_ENUM) {
        fail_at(r, peg__view_place(view, PEG__KW_ENUM), PEG__KW_ENUM,
                "sent without strict: OpenAI's strict mode takes at most 1,000 values");
        return;
    }
    peg__put_kw(r->out, PEG__KW_ENUM);
    peg__put_open(r->out, "[");
    PEG_JSON_EACH_ITEM (values, value) {
        has_null = has_null || value->kind == PEG_JSON_NULL;
        count_value(r, view, PEG__KW_ENUM, value);
        peg__put_value(r->out, value);
    }
    if (is_nullable && !has_null)
        peg__out_null(r->out);
    peg__put_close(r->out, "]");
}

static void write_const(struct peg__render *r, const struct peg__view *view, bool is_nullable)
{
    const peg_json *value = view->value[PEG__KW_CONST];

    count_value(r, view, PEG__KW_CONST, value);
    if (is_nullable && value->kind != PEG_JSON_NULL)
        peg__put_only_value(r, value, true);
    else
        peg__put_member(r, view, PEG__KW_CONST);
}

/* ---- objects ---------------------------------------------------------------------------- */

struct members {
    struct peg__required required;
    size_t n_required; /* of them that there are */
};

static void write_required_property(struct peg__render *r, const peg_json *key,
                                    const struct peg__place *place, void *user)
{
    struct members *members = user;
    const bool is_required = peg__required_has(&members->required, key);

    if (r->strict.failed)
        return;
    members->n_required += is_required;
    count_bytes(r, place->up, PEG__KW_PROPERTIES, key->len);
    if (++r->strict.n_properties > PEG_LIMIT_STRICT_PROPERTIES)
        fail_at(r, place->up, PEG__KW_PROPERTIES,
                "sent without strict: OpenAI's strict mode takes at most 5,000 members");
    if (!is_required)
        peg__lose_here(r, place, PEG__KW_REQUIRED, "rewritten",
                       "it is optional, so it is sent as required and may be null");
    peg__put_key(r->out, key);
    write_strict(r, key + 1, place, !is_required);
}

static void write_property_name(struct peg__render *r, const peg_json *key,
                                const struct peg__place *place, void *user)
{
    (void)place;
    (void)user;
    peg__put_string(r->out, key);
}

/* An object that is open on purpose cannot be closed; one that is silent about it is. */
static void check_closed(struct peg__render *r, const struct peg__view *view)
{
    const peg_json *extra = peg__view_get(view, PEG__KW_ADDITIONAL_PROPERTIES);
    const peg_json *rest = peg__view_get(view, PEG__KW_UNEVALUATED_PROPERTIES);
    const struct peg__place *place = view->sources[0].place;

    if (extra && (extra->kind != PEG_JSON_BOOL || peg_json_is_true(extra)))
        fail_at(r, place, PEG__KW_ADDITIONAL_PROPERTIES,
                "sent without strict: OpenAI's strict mode takes closed objects only");
    else if (!extra && rest && (rest->kind != PEG_JSON_BOOL || peg_json_is_true(rest)))
        fail_at(r, place, PEG__KW_UNEVALUATED_PROPERTIES,
                "sent without strict: OpenAI's strict mode takes closed objects only");
    else if (!extra && !rest && !(view->has & PEG__KW_BIT(PROPERTIES)) && r->depth > 1)
        fail_here(r, place, PEG__KW_PROPERTIES,
                  "sent without strict: an object of any members cannot be said in OpenAI's strict "
                  "mode");
    else if (!extra && !rest)
        peg__lose_here(r, place, PEG__KW_ADDITIONAL_PROPERTIES, "rewritten",
                       "it is silent about other members, so it is sent closed");
    else if (!extra)
        peg__lose_kw(r, place, PEG__KW_UNEVALUATED_PROPERTIES, "rewritten",
                     "it is sent as additionalProperties");
}

// NOLINTNEXTLINE(misc-no-recursion): write_strict() has the bound
static void write_object(struct peg__render *r, const struct peg__view *view)
{
    struct members members;

    members.n_required = 0;
    check_closed(r, view);
    if (++r->strict.n_objects > PEG_LIMIT_STRICT_DEPTH)
        fail_here(r, view->sources[0].place, PEG__KW_PROPERTIES,
                  "sent without strict: objects are more than ten levels deep");
    peg__required_make(r, view, &members.required);
    peg__put_before(r->out, "\"properties\":{");
    peg__view_members(r, view, write_required_property, &members);
    peg__put_close(r->out, "}");
    peg__put_before(r->out, "\"required\":[");
    peg__view_members(r, view, write_property_name, NULL);
    peg__put_close(r->out, "]");
    peg__put(r->out, PEG__LIT("\"additionalProperties\":false"));
    if (members.n_required < members.required.n)
        fail_at(r, peg__view_place(view, PEG__KW_REQUIRED), PEG__KW_REQUIRED,
                "sent without strict: it names a member that is not described");
    peg__required_free(&members.required);
    r->strict.n_objects--;
}

/* ---- the rest --------------------------------------------------------------------------- */

// NOLINTNEXTLINE(misc-no-recursion): write_strict() has the bound
static void write_items(struct peg__render *r, const struct peg__view *view)
{
    const peg_json *items = peg__view_get(view, PEG__KW_ITEMS);
    const struct peg__place place = peg__place_of(view->sources[0].place, PEG__KW_ITEMS);

    if (!items) {
        fail_here(r, view->sources[0].place, PEG__KW_ITEMS,
                  "sent without strict: the array does not say what its items are");
        return;
    }
    peg__put_kw(r->out, PEG__KW_ITEMS);
    write_strict(r, items, &place, false);
}

static bool is_null_schema(const peg_json *schema)
{
    return peg__types_of(peg_json_get(schema, "type")) == PEG__TYPE_NULL;
}

// NOLINTNEXTLINE(misc-no-recursion): write_strict() has the bound
static void write_any_of(struct peg__render *r, const struct peg__view *view, bool is_nullable)
{
    const uint64_t beside = PEG__KW_BIT(TYPE) | PEG__KW_BIT(PROPERTIES) | PEG__KW_BIT(ITEMS) |
                            PEG__KW_BIT(ENUM) | PEG__KW_BIT(CONST) | PEG__KW_BIT(REQUIRED);
    const peg_json *list = view->value[PEG__KW_ANY_OF];
    bool has_null = false;

    if (view->has & beside || list->kind != PEG_JSON_ARRAY) {
        fail_at(r, view->sources[0].place, PEG__KW_ANY_OF,
                "sent without strict: OpenAI's strict mode takes anyOf without other rules beside "
                "it");
        return;
    }
    peg__write_description(r, view);
    peg__put_kw(r->out, PEG__KW_ANY_OF);
    peg__put_open(r->out, "[");
    PEG_JSON_EACH_ITEM (list, branch)
        has_null = has_null || is_null_schema(branch);
    peg__write_list(r, list, view->sources[0].place, PEG__KW_ANY_OF);
    if (is_nullable && !has_null)
        peg__out_raw(r->out, peg__str("{\"type\":\"null\"}"));
    peg__put_close(r->out, "]");
}

static void write_reference(struct peg__render *r, const struct peg__view *view, bool is_nullable)
{
    const peg_json *ref = view->value[PEG__KW_REF];
    peg_str pointer;

    if (ref->kind != PEG_JSON_STRING || !peg__ref_target(r, peg_json_str(ref), &pointer)) {
        fail_at(r, view->sources[0].place, PEG__KW_REF,
                "sent without strict: it leads out of the parameters");
        return;
    }
    peg__lose_beside_ref(r, view, "OpenAI's strict mode takes no other rule beside $ref");
    peg__write_ref(r, view, peg_json_str(ref), is_nullable);
}

// NOLINTNEXTLINE(misc-no-recursion): write_strict() has the bound
static void write_typed(struct peg__render *r, const struct peg__view *view, bool is_nullable)
{
    unsigned types = types_of(view);

    if (!types) {
        fail_here(r, view->sources[0].place, PEG__KW_TYPE,
                  "sent without strict: it does not say its type");
        return;
    }
    types |= is_nullable ? PEG__TYPE_NULL : 0;
    write_type_list(r, types);
    peg__write_description(r, view);
    peg__put_kept(r, view);
    if (view->has & PEG__KW_BIT(FORMAT) && is_known_format(view->value[PEG__KW_FORMAT]))
        peg__put_member(r, view, PEG__KW_FORMAT);
    if (view->has & PEG__KW_BIT(ENUM))
        write_enum(r, view, is_nullable);
    else if (view->has & PEG__KW_BIT(CONST))
        write_const(r, view, is_nullable);
    if (types & PEG__TYPE_OBJECT)
        write_object(r, view);
    if (types & PEG__TYPE_ARRAY)
        write_items(r, view);
}

// NOLINTNEXTLINE(misc-no-recursion): write_strict() has the bound
static void write_defs(struct peg__render *r, const struct peg__view *view, enum peg__kw keyword)
{
    const peg_json *defs = peg__view_get(view, keyword);

    if (!defs || defs->kind != PEG_JSON_OBJECT)
        return;
    peg__put_kw(r->out, keyword);
    peg__put_open(r->out, "{");
    PEG_JSON_EACH_MEMBER (defs, key)
        count_bytes(r, view->sources[0].place, keyword, key->len);
    peg__write_named(r, defs, view->sources[0].place, keyword, NULL);
    peg__put_close(r->out, "}");
}

// NOLINTNEXTLINE(misc-no-recursion): write_strict() has the bound
static void write_strict_view(struct peg__render *r, const struct peg__view *view, bool is_nullable)
{
    const peg_json *nullable = peg__view_get(view, PEG__KW_NULLABLE);

    peg__sort_keywords(r, view);
    if (view->has & PEG__KW_BIT(FORMAT) && !is_known_format(view->value[PEG__KW_FORMAT]))
        peg__describe(r, view, PEG__KW_FORMAT, "OpenAI's strict mode does not know this format");
    is_nullable = is_nullable || (nullable && peg_json_is_true(nullable));
    peg__put_open(r->out, "{");
    if (view->has & PEG__KW_BIT(REF))
        write_reference(r, view, is_nullable);
    else if (view->has & PEG__KW_BIT(ANY_OF))
        write_any_of(r, view, is_nullable);
    else
        write_typed(r, view, is_nullable);
    if (view->has & (PEG__KW_BIT(DEFS) | PEG__KW_BIT(DEFINITIONS))) {
        write_defs(r, view, PEG__KW_DEFS);
        write_defs(r, view, PEG__KW_DEFINITIONS);
    }
    peg__put_close(r->out, "}");
}

/* At most PEG_LIMIT_REWRITE_DEPTH deep. */
// NOLINTNEXTLINE(misc-no-recursion)
static void write_strict(struct peg__render *r, const peg_json *schema,
                         const struct peg__place *place, bool is_nullable)
{
    struct peg__view view;

    if (r->strict.failed)
        return;
    if (schema->kind != PEG_JSON_OBJECT) {
        fail_here(r, place, PEG__KW_TYPE, "sent without strict: it does not say its type");
        return;
    }
    if (r->depth == PEG_LIMIT_REWRITE_DEPTH) {
        fail_here(r, place, PEG__KW_TYPE, "sent without strict: it is nested too deeply");
        return;
    }
    r->depth++;
    peg__view_make(r, schema, place, 0, &view);
    write_strict_view(r, &view, is_nullable);
    r->depth--;
}

static void write_inner(struct peg__render *r, const peg_json *schema,
                        const struct peg__place *place)
{
    write_strict(r, schema, place, false);
}

/* The root has to be an object, by its own type. */
static bool is_fine_root(const struct peg__view *view)
{
    const peg_json *type = peg__view_get(view, PEG__KW_TYPE);

    return !(view->has & (PEG__KW_BIT(REF) | PEG__KW_BIT(ANY_OF) | PEG__KW_BIT(ENUM))) &&
           (!type || peg__types_of(type) == PEG__TYPE_OBJECT);
}

/* The first keyword that is wrong is the reason. */
static void refuse_root(struct peg__render *r)
{
    PEG_JSON_EACH_MEMBER (r->root, key) {
        const enum peg__kw keyword = peg__kw_find(key);

        if (keyword == PEG__KW_REF || keyword == PEG__KW_ANY_OF || keyword == PEG__KW_ENUM)
            fail_at(r, NULL, keyword,
                    "sent without strict: OpenAI's strict mode does not take it at the root");
        if (keyword == PEG__KW_TYPE && peg__types_of(key + 1) != PEG__TYPE_OBJECT)
            fail_at(r, NULL, keyword, "sent without strict: arguments are always an object");
    }
}

static void write_root(struct peg__render *r)
{
    struct peg__view view;

    peg__view_make(r, r->root, NULL, 0, &view);
    if (!is_fine_root(&view)) {
        refuse_root(r);
        return;
    }
    if (!(view.has & PEG__KW_BIT(TYPE))) {
        static const peg_json object = {.kind = PEG_JSON_STRING, .len = 6, .u.ptr = "object"};

        view.has |= PEG__KW_BIT(TYPE);
        view.value[PEG__KW_TYPE] = &object;
        view.from[PEG__KW_TYPE] = 0;
    }
    r->depth = 1;
    write_strict_view(r, &view, false);
    r->depth = 0;
}

bool peg__schema_write_strict(struct peg__render *r)
{
    if (!r->root || r->root->len == 0) {
        peg__out_raw(r->out, peg__str("{\"type\":\"object\",\"properties\":{},\"required\":[],"
                                      "\"additionalProperties\":false}"));
        return true;
    }
    r->dialect = &dialect;
    r->strict = (struct peg__strict){.n_losses = peg_definition_losses_len(r->losses)};
    write_root(r);
    if (!r->strict.failed)
        return true;
    r->losses = r->strict.losses;
    r->depth = 0;
    return false;
}
