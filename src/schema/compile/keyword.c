/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include "base/text/str.h"
#include "schema/compile/compile.h"

/* The vocabularies, and CORE for what is always there. */
enum vocabulary {
    CORE = 1 << 0,
    APPLICATOR = 1 << 1,
    UNEVALUATED = 1 << 2,
    VALIDATION = 1 << 3,
    FORMAT = 1 << 4,
    CONTENT = 1 << 5,
    META_DATA = 1 << 6,
    FORMAT_ASSERTION = 1 << 7, /* the same keyword as FORMAT, asserted */
};

#define D4 (1U << PEG_DIALECT_DRAFT4)
#define D6 (1U << PEG_DIALECT_DRAFT6)
#define D7 (1U << PEG_DIALECT_DRAFT7)
#define D19 (1U << PEG_DIALECT_2019_09)
#define D20 (1U << PEG_DIALECT_2020_12)
#define V1 (1U << PEG_DIALECT_V1)
#define FROM_19 (D19 | D20 | V1)
#define FROM_7 (D7 | FROM_19)
#define FROM_6 (D6 | FROM_7)
#define ALL (D4 | FROM_6)

struct keyword {
    const char *name;
    unsigned dialects;
    enum vocabulary vocabulary;
    enum peg__shape shape;
};

static const struct keyword keywords[KW_COUNT] = {
    [KW_ADDITIONAL_ITEMS] = {"additionalItems", D4 | D6 | D7 | D19, APPLICATOR, SHAPE_SCHEMA},
    [KW_ADDITIONAL_PROPERTIES] = {"additionalProperties", ALL, APPLICATOR, SHAPE_SCHEMA},
    [KW_ALL_OF] = {"allOf", ALL, APPLICATOR, SHAPE_ARRAY},
    [KW_ANCHOR] = {"$anchor", FROM_19, CORE, SHAPE_NONE},
    [KW_ANY_OF] = {"anyOf", ALL, APPLICATOR, SHAPE_ARRAY},
    [KW_CONST] = {"const", FROM_6, VALIDATION, SHAPE_NONE},
    [KW_CONTAINS] = {"contains", FROM_6, APPLICATOR, SHAPE_SCHEMA},
    [KW_CONTENT_ENCODING] = {"contentEncoding", FROM_7, CONTENT, SHAPE_NONE},
    [KW_CONTENT_MEDIA_TYPE] = {"contentMediaType", FROM_7, CONTENT, SHAPE_NONE},
    [KW_CONTENT_SCHEMA] = {"contentSchema", FROM_19, CONTENT, SHAPE_SCHEMA},
    [KW_DEFAULT] = {"default", ALL, META_DATA, SHAPE_NONE},
    /* Renamed to $defs in 2019-09, but every reader still finds it, and so must we. */
    [KW_DEFINITIONS] = {"definitions", ALL, CORE, SHAPE_MAP},
    [KW_DEFS] = {"$defs", FROM_19, CORE, SHAPE_MAP},
    /* Split in two in 2019-09; kept as the specification allows. */
    [KW_DEPENDENCIES] = {"dependencies", ALL, APPLICATOR, SHAPE_MAP_OR_NAMES},
    [KW_DEPENDENT_REQUIRED] = {"dependentRequired", FROM_19, VALIDATION, SHAPE_NONE},
    [KW_DEPENDENT_SCHEMAS] = {"dependentSchemas", FROM_19, APPLICATOR, SHAPE_MAP},
    [KW_DYNAMIC_ANCHOR] = {"$dynamicAnchor", D20 | V1, CORE, SHAPE_NONE},
    [KW_DYNAMIC_REF] = {"$dynamicRef", D20 | V1, CORE, SHAPE_NONE},
    [KW_ELSE] = {"else", FROM_7, APPLICATOR, SHAPE_SCHEMA},
    [KW_ENUM] = {"enum", ALL, VALIDATION, SHAPE_NONE},
    [KW_EXCLUSIVE_MAXIMUM] = {"exclusiveMaximum", ALL, VALIDATION, SHAPE_NONE},
    [KW_EXCLUSIVE_MINIMUM] = {"exclusiveMinimum", ALL, VALIDATION, SHAPE_NONE},
    [KW_FORMAT] = {"format", ALL, FORMAT, SHAPE_NONE},
    [KW_ID] = {"$id", FROM_6, CORE, SHAPE_NONE},
    [KW_ID_DRAFT4] = {"id", D4, CORE, SHAPE_NONE},
    [KW_IF] = {"if", FROM_7, APPLICATOR, SHAPE_SCHEMA},
    [KW_ITEMS] = {"items", ALL, APPLICATOR, SHAPE_SCHEMA_OR_ARRAY},
    [KW_MAX_CONTAINS] = {"maxContains", FROM_19, VALIDATION, SHAPE_NONE},
    [KW_MAX_ITEMS] = {"maxItems", ALL, VALIDATION, SHAPE_NONE},
    [KW_MAX_LENGTH] = {"maxLength", ALL, VALIDATION, SHAPE_NONE},
    [KW_MAX_PROPERTIES] = {"maxProperties", ALL, VALIDATION, SHAPE_NONE},
    [KW_MAXIMUM] = {"maximum", ALL, VALIDATION, SHAPE_NONE},
    [KW_MIN_CONTAINS] = {"minContains", FROM_19, VALIDATION, SHAPE_NONE},
    [KW_MIN_ITEMS] = {"minItems", ALL, VALIDATION, SHAPE_NONE},
    [KW_MIN_LENGTH] = {"minLength", ALL, VALIDATION, SHAPE_NONE},
    [KW_MIN_PROPERTIES] = {"minProperties", ALL, VALIDATION, SHAPE_NONE},
    [KW_MINIMUM] = {"minimum", ALL, VALIDATION, SHAPE_NONE},
    [KW_MULTIPLE_OF] = {"multipleOf", ALL, VALIDATION, SHAPE_NONE},
    [KW_NOT] = {"not", ALL, APPLICATOR, SHAPE_SCHEMA},
    [KW_ONE_OF] = {"oneOf", ALL, APPLICATOR, SHAPE_ARRAY},
    [KW_PATTERN] = {"pattern", ALL, VALIDATION, SHAPE_NONE},
    [KW_PATTERN_PROPERTIES] = {"patternProperties", ALL, APPLICATOR, SHAPE_MAP},
    [KW_PREFIX_ITEMS] = {"prefixItems", D20 | V1, APPLICATOR, SHAPE_ARRAY},
    [KW_PROPERTIES] = {"properties", ALL, APPLICATOR, SHAPE_MAP},
    [KW_PROPERTY_DEPENDENCIES] = {"propertyDependencies", V1, APPLICATOR, SHAPE_MAP_OF_MAPS},
    [KW_PROPERTY_NAMES] = {"propertyNames", FROM_6, APPLICATOR, SHAPE_SCHEMA},
    [KW_RECURSIVE_ANCHOR] = {"$recursiveAnchor", D19, CORE, SHAPE_NONE},
    [KW_RECURSIVE_REF] = {"$recursiveRef", D19, CORE, SHAPE_NONE},
    [KW_REF] = {"$ref", ALL, CORE, SHAPE_NONE},
    [KW_REQUIRED] = {"required", ALL, VALIDATION, SHAPE_NONE},
    [KW_SCHEMA] = {"$schema", ALL, CORE, SHAPE_NONE},
    [KW_THEN] = {"then", FROM_7, APPLICATOR, SHAPE_SCHEMA},
    [KW_TYPE] = {"type", ALL, VALIDATION, SHAPE_NONE},
    [KW_UNEVALUATED_ITEMS] = {"unevaluatedItems", FROM_19, UNEVALUATED, SHAPE_SCHEMA},
    [KW_UNEVALUATED_PROPERTIES] = {"unevaluatedProperties", FROM_19, UNEVALUATED, SHAPE_SCHEMA},
    [KW_UNIQUE_ITEMS] = {"uniqueItems", ALL, VALIDATION, SHAPE_NONE},
    [KW_VOCABULARY] = {"$vocabulary", FROM_19, CORE, SHAPE_NONE},
};

static const struct {
    const char *uri;
    peg_dialect dialect;
} dialect_uris[] = {
    {"http://json-schema.org/draft-04/schema", PEG_DIALECT_DRAFT4},
    {"http://json-schema.org/draft-06/schema", PEG_DIALECT_DRAFT6},
    {"http://json-schema.org/draft-07/schema", PEG_DIALECT_DRAFT7},
    {"https://json-schema.org/draft/2019-09/schema", PEG_DIALECT_2019_09},
    {"https://json-schema.org/draft/2020-12/schema", PEG_DIALECT_2020_12},
    {"https://json-schema.org/v1", PEG_DIALECT_V1},
    {"https://json-schema.org/v1/2026", PEG_DIALECT_V1},
};

/* The last part of a vocabulary's URI. */
static const struct {
    const char *name;
    unsigned vocabulary;
} vocabularies[] = {
    {"core", CORE},
    {"applicator", APPLICATOR},
    {"unevaluated", UNEVALUATED},
    {"validation", VALIDATION},
    {"format", FORMAT},
    {"format-annotation", FORMAT},
    {"format-assertion", FORMAT | FORMAT_ASSERTION},
    {"content", CONTENT},
    {"meta-data", META_DATA},
};

/* ---- dialects ------------------------------------------------------------- */

struct peg__dialect peg__dialect_of(peg_dialect id)
{
    struct peg__dialect dialect = {.id = id == PEG_DIALECT_DEFAULT ? PEG_DIALECT_2020_12 : id};
    const unsigned bit = 1U << dialect.id;

    for (int i = 0; i < KW_COUNT; i++)
        if (keywords[i].dialects & bit)
            dialect.keywords |= 1ULL << i;
    dialect.ref_stands_alone = (bit & (D4 | D6 | D7)) != 0;
    dialect.asserts_format = dialect.ref_stands_alone || dialect.id == PEG_DIALECT_V1;
    dialect.asserts_content = dialect.id == PEG_DIALECT_DRAFT7;
    return dialect;
}

bool peg__dialect_by_uri(peg_str uri, struct peg__dialect *ret_dialect)
{
    static const peg_str https_draft = PEG_LIT("https://json-schema.org/draft-0");

    if (uri.len > 0 && uri.ptr[uri.len - 1] == '#')
        uri.len--;
    for (size_t i = 0; i < sizeof(dialect_uris) / sizeof(*dialect_uris); i++)
        if (peg__str_is(uri, dialect_uris[i].uri) ||
            /* The old drafts are named with http; many write https, and nothing else is meant. */
            (peg__str_starts(uri, https_draft) &&
             peg__str_is(peg__str_from(uri, 5), dialect_uris[i].uri + 4))) {
            *ret_dialect = peg__dialect_of(dialect_uris[i].dialect);
            return true;
        }
    return false;
}

static unsigned find_vocabulary(peg_str uri)
{
    static const peg_str prefixes[] = {PEG_LIT("https://json-schema.org/draft/2019-09/vocab/"),
                                       PEG_LIT("https://json-schema.org/draft/2020-12/vocab/")};

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
        if (!peg__str_starts(uri, prefixes[i]))
            continue;
        for (size_t j = 0; j < sizeof(vocabularies) / sizeof(*vocabularies); j++)
            if (peg__str_is(peg__str_from(uri, prefixes[i].len), vocabularies[j].name))
                return vocabularies[j].vocabulary;
    }
    return 0;
}

bool peg__dialect_narrow(struct peg__dialect *dialect, const peg_json *vocabulary,
                         const peg_json **ret_unknown)
{
    unsigned known = CORE;

    PEG_JSON_EACH_MEMBER (vocabulary, key) {
        const unsigned found = find_vocabulary(peg_json_str(key));

        if (!found && peg_json_is_true(key + 1)) {
            *ret_unknown = key;
            return false;
        }
        known |= found;
    }
    /* In 2019-09 the unevaluated keywords belonged to the applicators. */
    if (dialect->id == PEG_DIALECT_2019_09 && (known & APPLICATOR))
        known |= UNEVALUATED;
    for (int i = 0; i < KW_COUNT; i++)
        if (!(keywords[i].vocabulary & known))
            dialect->keywords &= ~(1ULL << i);
    dialect->asserts_format |= (known & FORMAT_ASSERTION) != 0;
    return true;
}

/* ---- keywords ------------------------------------------------------------- */

const char *peg__keyword_name(enum peg__keyword keyword)
{
    return keywords[keyword].name;
}

enum peg__shape peg__keyword_shape(enum peg__keyword keyword, const struct peg__dialect *dialect)
{
    if (keyword == KW_ITEMS && dialect->id >= PEG_DIALECT_2020_12)
        return SHAPE_SCHEMA;
    return keywords[keyword].shape;
}

static bool visit_items(const peg_json *array, peg__visit_schema *visit, void *user)
{
    PEG_JSON_EACH_ITEM (array, item)
        if (!visit(item, user))
            return false;
    return true;
}

static bool visit_members(const peg_json *map, peg__visit_schema *visit, void *user)
{
    PEG_JSON_EACH_MEMBER (map, key)
        if (!visit(key + 1, user))
            return false;
    return true;
}

/* NOLINTNEXTLINE(misc-no-recursion): by the depth of a document, which is limited */
bool peg__visit_subschemas(enum peg__shape shape, const peg_json *value, peg__visit_schema *visit,
                           void *user)
{
    switch (shape) {
    case SHAPE_NONE:
        return true;
    case SHAPE_SCHEMA:
        return visit(value, user);
    case SHAPE_ARRAY:
        return visit_items(value, visit, user);
    case SHAPE_MAP:
    case SHAPE_MAP_OR_NAMES:
        return visit_members(value, visit, user);
    case SHAPE_SCHEMA_OR_ARRAY:
        return value->kind == PEG_JSON_ARRAY ? visit_items(value, visit, user) : visit(value, user);
    case SHAPE_MAP_OF_MAPS:
        PEG_JSON_EACH_MEMBER (value, key)
            if (!visit_members(key + 1, visit, user))
                return false;
        return true;
    }
    return true;
}

/* A scan that compares two bytes of each name first: some 20 ns, and only while compiling. */
static enum peg__keyword find_keyword(peg_str name)
{
    static const unsigned longest = sizeof("unevaluatedProperties") - 1;

    if (name.len < 2 || name.len > longest)
        return KW_COUNT;
    for (int i = 0; i < KW_COUNT; i++)
        if (keywords[i].name[0] == name.ptr[0] && keywords[i].name[1] == name.ptr[1] &&
            peg__str_is(name, keywords[i].name))
            return (enum peg__keyword)i;
    return KW_COUNT;
}

void peg__subschema_read(const peg_json *object, const struct peg__dialect *dialect,
                         struct peg__subschema *ret_sub)
{
    memset(ret_sub, 0, sizeof(*ret_sub));
    PEG_JSON_EACH_MEMBER (object, key) {
        const enum peg__keyword keyword = find_keyword(peg_json_str(key));

        if (keyword == KW_COUNT || !((dialect->keywords >> keyword) & 1))
            continue;
        ret_sub->key[keyword] = key;
        ret_sub->present |= 1ULL << keyword;
    }
    if (dialect->ref_stands_alone && peg__has(ret_sub, KW_REF))
        ret_sub->present &= 1ULL << KW_REF | 1ULL << KW_DEFINITIONS;
}

peg__keywords peg__active_keywords(const struct peg__subschema *sub)
{
    static const peg__keywords silent =
        1ULL << KW_ANCHOR | 1ULL << KW_CONTENT_SCHEMA | 1ULL << KW_DEFAULT |
        1ULL << KW_DEFINITIONS | 1ULL << KW_DEFS | 1ULL << KW_DYNAMIC_ANCHOR |
        1ULL << KW_RECURSIVE_ANCHOR | 1ULL << KW_REF | 1ULL << KW_SCHEMA | 1ULL << KW_VOCABULARY;

    return sub->present & ~silent;
}

/* ---- typos ---------------------------------------------------------------- */

struct search {
    const struct peg__dialect *dialect;
    peg__found_typo *found;
    void *user;
};

/* Shorter names are one edit from too many words. */
enum { MIN_KEYWORD = 4, MIN_NAME = 3 };

/* The keyword that a name is, or the one that it is an edit away from; KW_COUNT if it is neither.
 */
static enum peg__keyword find_closest(peg_str name, bool *ret_is_keyword)
{
    enum peg__keyword best = KW_COUNT;
    struct peg__typo typo;

    *ret_is_keyword = false;
    peg__typo_start(&typo, name);
    typo.best = 2; /* below it: one edit, or another case */
    for (int i = 0; i < KW_COUNT; i++) {
        const char *keyword = peg__keyword_name((enum peg__keyword)i);

        if (peg__str_is(name, keyword)) {
            *ret_is_keyword = true;
            return (enum peg__keyword)i;
        }
        if (strlen(keyword) >= MIN_KEYWORD && name.len >= MIN_NAME &&
            peg__typo_offer(&typo, peg__str(keyword)))
            best = (enum peg__keyword)i;
    }
    return best;
}

/* A peg__visit_schema.
 * NOLINTNEXTLINE(misc-no-recursion): by the depth of a document, which is limited */
static bool search_schema(const peg_json *schema, void *user)
{
    const struct search *s = user;

    if (schema->kind != PEG_JSON_OBJECT)
        return true;
    PEG_JSON_EACH_MEMBER (schema, key) {
        bool is_keyword;
        const enum peg__keyword keyword = find_closest(peg_json_str(key), &is_keyword);

        if (is_keyword)
            peg__visit_subschemas(peg__keyword_shape(keyword, s->dialect), key + 1, search_schema,
                                  user);
        else if (keyword != KW_COUNT)
            s->found(key, peg__keyword_name(keyword), s->user);
    }
    return true;
}

void peg__schema_typos(const peg_json *schema, peg__found_typo *found, void *user)
{
    /* Of the shapes only that of items depends on it, and a draft that has no array there has no
     * use for one. */
    const struct peg__dialect dialect = peg__dialect_of(PEG_DIALECT_DRAFT7);
    struct search search = {.dialect = &dialect, .found = found, .user = user};

    search_schema(schema, &search);
}
