/* SPDX-License-Identifier: Apache-2.0 */

#include "base/text/str.h"
#include "fixture.h"
#include "schema/compile/compile.h"

/* ---- fixture ---------------------------------------------------------------------- */

static peg__keywords keywords_of(peg_dialect dialect, const char *schema_text)
{
    const struct peg__dialect d = peg__dialect_of(dialect);
    peg_json_doc *doc = parsed(schema_text);
    struct peg__subschema sub;

    peg__subschema_read(peg_json_root(doc), &d, &sub);
    peg_json_doc_free(doc);
    return sub.present;
}

#define BIT(keyword) (1ULL << (keyword))

/* ---- keywords ------------------------------------------------------------------------- */

TEST(every_keyword_has_a_name_of_its_own_and_is_found_by_it)
{
    for (int i = 0; i < KW_COUNT; i++) {
        const char *name = peg__keyword_name((enum peg__keyword)i);
        peg__keywords found = 0;
        char text[64];

        CHECK(name && *name);
        snprintf(text, sizeof(text), "{'%s':1}", name);
        for (int dialect = PEG_DIALECT_DRAFT4; dialect <= PEG_DIALECT_V1; dialect++)
            found |= keywords_of((peg_dialect)dialect, text);
        CHECK(found == BIT(i));
    }
}

TEST(dialects_know_their_own_keywords_only)
{
    const char *schema = "{'id':'x','$id':'x','const':1,'if':true,'$defs':{},'$anchor':'a',"
                         "'prefixItems':[],'$dynamicRef':'#a','$recursiveRef':'#',"
                         "'additionalItems':true,'propertyDependencies':{}}";

    CHECK(keywords_of(PEG_DIALECT_DRAFT4, schema) ==
          (BIT(KW_ID_DRAFT4) | BIT(KW_ADDITIONAL_ITEMS)));
    CHECK(keywords_of(PEG_DIALECT_DRAFT6, schema) ==
          (BIT(KW_ID) | BIT(KW_CONST) | BIT(KW_ADDITIONAL_ITEMS)));
    CHECK(keywords_of(PEG_DIALECT_DRAFT7, schema) ==
          (BIT(KW_ID) | BIT(KW_CONST) | BIT(KW_IF) | BIT(KW_ADDITIONAL_ITEMS)));
    CHECK(keywords_of(PEG_DIALECT_2019_09, schema) ==
          (BIT(KW_ID) | BIT(KW_CONST) | BIT(KW_IF) | BIT(KW_DEFS) | BIT(KW_ANCHOR) |
           BIT(KW_RECURSIVE_REF) | BIT(KW_ADDITIONAL_ITEMS)));
    CHECK(keywords_of(PEG_DIALECT_DEFAULT, schema) ==
          (BIT(KW_ID) | BIT(KW_CONST) | BIT(KW_IF) | BIT(KW_DEFS) | BIT(KW_ANCHOR) |
           BIT(KW_PREFIX_ITEMS) | BIT(KW_DYNAMIC_REF)));
    CHECK(keywords_of(PEG_DIALECT_V1, schema) & BIT(KW_PROPERTY_DEPENDENCIES));
}

TEST(names_that_resemble_keywords_are_none)
{
    CHECK(keywords_of(PEG_DIALECT_DEFAULT, "{'':1,'t':1,'Type':1,'types':1,'typ':1,'$type':1,"
                                           "'unevaluatedPropertiesX':1,'x-type':1}") == 0);
}

TEST(ref_hides_its_siblings_up_to_draft_07_but_not_the_definitions)
{
    const char *schema = "{'$ref':'#/definitions/a','type':'string','definitions':{}}";

    CHECK(keywords_of(PEG_DIALECT_DRAFT7, schema) == (BIT(KW_REF) | BIT(KW_DEFINITIONS)));
    CHECK(keywords_of(PEG_DIALECT_2019_09, schema) ==
          (BIT(KW_REF) | BIT(KW_TYPE) | BIT(KW_DEFINITIONS)));
}

TEST(items_holds_one_schema_since_2020_12_and_may_hold_an_array_before)
{
    const struct peg__dialect before = peg__dialect_of(PEG_DIALECT_2019_09);
    const struct peg__dialect since = peg__dialect_of(PEG_DIALECT_2020_12);

    CHECK_INT(peg__keyword_shape(KW_ITEMS, &before), SHAPE_SCHEMA_OR_ARRAY);
    CHECK_INT(peg__keyword_shape(KW_ITEMS, &since), SHAPE_SCHEMA);
}

/* ---- dialects ----------------------------------------------------------------------------- */

TEST(dialects_are_found_by_uri_with_or_without_empty_fragment)
{
    struct peg__dialect d;

    CHECK(peg__dialect_by_uri(peg__str("http://json-schema.org/draft-07/schema#"), &d));
    CHECK_INT(d.id, PEG_DIALECT_DRAFT7);
    CHECK(d.asserts_format && d.asserts_content && d.ref_stands_alone);
    CHECK(peg__dialect_by_uri(peg__str("https://json-schema.org/draft/2020-12/schema"), &d));
    CHECK_INT(d.id, PEG_DIALECT_2020_12);
    CHECK(!d.asserts_format && !d.asserts_content && !d.ref_stands_alone);
    CHECK(peg__dialect_by_uri(peg__str("https://json-schema.org/draft-07/schema#"), &d));
    CHECK_INT(d.id, PEG_DIALECT_DRAFT7);
    CHECK(!peg__dialect_by_uri(peg__str("https://json-schema.org/draft-03/schema#"), &d));
    CHECK(!peg__dialect_by_uri(peg__str(""), &d));
}

TEST(vocabularies_narrow_a_dialect_and_an_unknown_required_one_is_told)
{
    peg_json_doc *known = parsed("{'https://json-schema.org/draft/2020-12/vocab/core':true,"
                                 "'https://json-schema.org/draft/2020-12/vocab/applicator':true,"
                                 "'https://json-schema.org/draft/2020-12/vocab/format-assertion':"
                                 "false,'https://example.com/mine':false}");
    peg_json_doc *unknown = parsed("{'https://example.com/mine':true}");
    struct peg__dialect d = peg__dialect_of(PEG_DIALECT_2020_12);
    const peg_json *key = NULL;

    CHECK(peg__dialect_narrow(&d, peg_json_root(known), &key));
    CHECK(d.keywords & BIT(KW_PROPERTIES));
    CHECK(!(d.keywords & BIT(KW_TYPE)));
    CHECK(!(d.keywords & BIT(KW_UNEVALUATED_ITEMS)));
    CHECK(d.asserts_format);
    CHECK(!peg__dialect_narrow(&d, peg_json_root(unknown), &key));
    CHECK_STR(peg_json_str(key), "https://example.com/mine");
    peg_json_doc_free(known);
    peg_json_doc_free(unknown);
}
