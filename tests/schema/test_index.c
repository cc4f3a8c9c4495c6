/* SPDX-License-Identifier: Apache-2.0 */

/* What references lead to: resources, anchors, registered documents, meta-schemas. */

#include "fixture.h"

/* ---- fixture ---------------------------------------------------------------------- */

static void add_doc(peg_schema_docs *docs, const char *uri, const char *text)
{
    peg_json_doc *doc = parsed(text);
    peg_error error;

    CHECK_STATUS(peg_schema_docs_add(docs, peg__str(uri), peg_json_root(doc), &error), PEG_OK,
                 error);
    peg_json_doc_free(doc);
}

/* One document under a URI. */
static peg_schema_docs *docs_of(const char *uri, const char *text)
{
    peg_schema_docs *docs = peg_schema_docs_new();

    CHECK(docs);
    add_doc(docs, uri, text);
    return docs;
}

static void refuse_ref(const char *schema_text, const char *where)
{
    refuse(schema_text, "E_SCHEMA_REF", where, "leads nowhere");
}

/* ---- inside one document ------------------------------------------------------------------ */

TEST(a_reference_leads_to_a_pointer_with_escapes_of_both_kinds)
{
    const char *schema = "{'$ref':'#/$defs/a~1b~0c%20d','$defs':{'a/b~c d':{'type':'string'}}}";

    VALID(schema, "'x'");
    INVALID(schema, "1");
}

TEST(a_reference_leads_to_an_anchor_of_its_own_resource_only)
{
    const char *schema = "{'$ref':'#a','$defs':{"
                         "'x':{'$anchor':'a','type':'string'},"
                         "'y':{'$id':'http://example.com/y','$anchor':'a','type':'number'}}}";

    VALID(schema, "'x'");
    INVALID(schema, "1");
    INVALID("{'$ref':'http://example.com/y#a','$defs':{"
            "'x':{'$anchor':'a','type':'string'},"
            "'y':{'$id':'http://example.com/y','$anchor':'a','type':'number'}}}",
            "'x'");
}

TEST(a_reference_is_resolved_against_the_nearest_id)
{
    const char *schema = "{'$id':'http://example.com/root','$ref':'dir/b','$defs':{"
                         "'a':{'$id':'http://example.com/dir/a','type':'integer'},"
                         "'b':{'$id':'dir/b','$ref':'a'}}}";

    VALID(schema, "1");
    INVALID(schema, "'x'");
}

TEST(an_id_inside_an_enum_a_const_or_an_unknown_keyword_names_nothing)
{
    refuse_ref("{'$ref':'http://x/a','enum':[{'$id':'http://x/a'}]}", "/$ref");
    refuse_ref("{'$ref':'http://x/a','const':{'$id':'http://x/a'}}", "/$ref");
    refuse_ref("{'$ref':'http://x/a','x-mine':{'$id':'http://x/a'}}", "/$ref");
    refuse_ref("{'$ref':'http://x/a','default':{'$id':'http://x/a'}}", "/$ref");
}

TEST(a_pointer_may_lead_into_an_unknown_keyword)
{
    INVALID("{'$ref':'#/x-mine/0','x-mine':[{'type':'string'}]}", "1");
}

TEST(a_property_named_like_a_keyword_is_a_property)
{
    const char *schema = "{'properties':{'$ref':{'type':'string'},'$id':{'type':'string'}}}";

    VALID(schema, "{'$ref':'x','$id':'y'}");
    INVALID(schema, "{'$ref':1}");
}

TEST(the_fragment_only_id_of_draft_07_is_an_anchor)
{
    const char *schema = "{'$schema':'http://json-schema.org/draft-07/schema#','$ref':'#foo',"
                         "'definitions':{'a':{'$id':'#foo','type':'string'}}}";

    VALID(schema, "'x'");
    INVALID(schema, "1");
}

TEST(an_embedded_resource_may_be_in_another_dialect)
{
    const char *schema = "{'properties':{'old':{'id':'http://x/old',"
                         "'$schema':'http://json-schema.org/draft-04/schema#',"
                         "'minimum':5,'exclusiveMinimum':true},'new':{'exclusiveMinimum':5}}}";

    INVALID(schema, "{'old':5}");
    INVALID(schema, "{'new':5}");
    VALID(schema, "{'old':5.1,'new':5.1}");
}

TEST(references_that_lead_nowhere_say_where_they_stand)
{
    refuse_ref("{'$ref':'#/$defs/nope'}", "/$ref");
    refuse_ref("{'properties':{'a':{'items':{'$ref':'#nope'}}}}", "/properties/a/items/$ref");
    refuse_ref("{'$ref':'http://example.com/unknown'}", "/$ref");
    refuse_ref("{'$ref':'file:///etc/passwd'}", "/$ref");
    refuse_ref("{'$dynamicRef':'#nope'}", "/$dynamicRef");
    refuse("{'$ref':'http://example.com/unknown'}", "E_SCHEMA_REF", "/$ref",
           "register the document it names; nothing is ever fetched");
}

TEST(many_definitions_are_all_reachable_by_pointer)
{
    struct peg__buf text = PEG__BUF(1 << 20);
    peg_schema *schema = NULL;
    peg_json_doc *doc;
    peg_error error;

    peg__buf_puts(&text, "{\"properties\":{");
    for (int i = 0; i < 100; i++)
        peg__buf_printf(&text, "%s\"p%d\":{\"$ref\":\"#/$defs/d%d\"}", i ? "," : "", i, i);
    peg__buf_puts(&text, "},\"$defs\":{");
    for (int i = 0; i < 100; i++)
        peg__buf_printf(&text, "%s\"d%d\":{\"const\":%d}", i ? "," : "", i, i);
    peg__buf_puts(&text, "}}");
    CHECK_STATUS(peg_schema_compile(peg__buf_view(&text), NULL, &schema, &error), PEG_OK, error);
    doc = parsed("{'p0':0,'p50':50,'p99':99}");
    CHECK_INT(verdict_on(schema, peg_json_root(doc)), PEG_VALID);
    peg_json_doc_free(doc);
    doc = parsed("{'p99':98}");
    CHECK_INT(verdict_on(schema, peg_json_root(doc)), PEG_INVALID);
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
    peg__buf_free(&text);
}

/* ---- registered documents -------------------------------------------------------------- */

TEST(a_registered_document_is_found_by_its_uri_and_by_ids_inside)
{
    peg_schema_docs *docs =
        docs_of("http://example.com/doc", "{'$defs':{'s':{'type':'string'},"
                                          "'inner':{'$id':'http://example.com/inner',"
                                          "'type':'integer'}}}");
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .docs = docs};

    CHECK_INT(check_with("{'$ref':'http://example.com/doc#/$defs/s'}", &options, "'x'"), PEG_VALID);
    CHECK_INT(check_with("{'$ref':'http://example.com/doc#/$defs/s'}", &options, "1"), PEG_INVALID);
    CHECK_INT(check_with("{'$ref':'http://example.com/inner'}", &options, "1"), PEG_VALID);
    CHECK_INT(check_with("{'$ref':'http://example.com/inner'}", &options, "'x'"), PEG_INVALID);
    peg_schema_docs_free(docs);
}

TEST(a_registered_document_is_found_by_its_own_id_too)
{
    peg_schema_docs *docs =
        docs_of("http://example.com/doc", "{'$id':'http://example.com/own','type':'string'}");
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .docs = docs};

    CHECK_INT(check_with("{'$ref':'http://example.com/doc'}", &options, "1"), PEG_INVALID);
    CHECK_INT(check_with("{'$ref':'http://example.com/own'}", &options, "1"), PEG_INVALID);
    peg_schema_docs_free(docs);
}

TEST(registered_documents_refer_to_each_other_in_circles)
{
    peg_schema_docs *docs =
        docs_of("http://x/a", "{'properties':{'b':{'$ref':'b'}},'additionalProperties':false}");
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .docs = docs};

    add_doc(docs, "http://x/b", "{'properties':{'a':{'$ref':'a'}},'additionalProperties':false}");
    CHECK_INT(check_with("{'$ref':'http://x/a'}", &options, "{'b':{'a':{'b':{}}}}"), PEG_VALID);
    CHECK_INT(check_with("{'$ref':'http://x/a'}", &options, "{'b':{'a':{'a':{}}}}"), PEG_INVALID);
    peg_schema_docs_free(docs);
}

TEST(a_schema_outlives_the_documents_it_was_compiled_with)
{
    peg_schema_docs *docs = docs_of("http://x/a", "{'enum':['a long string in the document',2]}");
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .docs = docs};
    peg_schema *schema = compiled_with("{'items':{'$ref':'http://x/a'}}", &options);
    peg_json_doc *good = parsed("['a long string in the document']");
    peg_json_doc *bad = parsed("[3]");

    peg_schema_docs_free(docs);
    CHECK_INT(verdict_on(schema, peg_json_root(good)), PEG_VALID);
    CHECK_INT(verdict_on(schema, peg_json_root(bad)), PEG_INVALID);
    peg_json_doc_free(good);
    peg_json_doc_free(bad);
    peg_schema_unref(schema);
}

TEST(a_uri_can_be_registered_once_and_the_first_document_stays)
{
    peg_schema_docs *docs = docs_of("http://x/a", "{'type':'string'}");
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .docs = docs};
    peg_json_doc *other = parsed("{'type':'integer'}");
    peg_error error;

    CHECK_INT(peg_schema_docs_add(docs, peg__str("http://x/a"), peg_json_root(other), &error),
              PEG_EEXISTS);
    CHECK_STR(peg__str(error.code), "E_SCHEMA_URI_TAKEN");
    CHECK_STR(peg__str(error.message),
              "a document with the URI 'http://x/a' is registered already");
    CHECK_INT(peg_schema_docs_add(docs, peg__str("http://x/a#"), peg_json_root(other), &error),
              PEG_EEXISTS);
    CHECK_INT(check_with("{'$ref':'http://x/a'}", &options, "'x'"), PEG_VALID);
    peg_json_doc_free(other);
    peg_schema_docs_free(docs);
}

TEST(what_is_wrong_in_a_registered_document_is_told_with_its_uri)
{
    peg_schema_docs *docs = docs_of("http://x/a", "{'$defs':{'b':{'minLength':-1}}}");
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .docs = docs};

    refuse_with("{'$ref':'http://x/a#/$defs/b'}", &options, "E_SCHEMA_KEYWORD",
                "http://x/a#/$defs/b/minLength", "'minLength' must be");
    peg_schema_docs_free(docs);
}

TEST(the_base_uri_of_the_options_is_what_relative_references_start_from)
{
    peg_schema_docs *docs = docs_of("http://x/dir/a", "{'type':'string'}");
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .docs = docs,
                                        .base_uri = "http://x/dir/main"};

    CHECK_INT(check_with("{'$ref':'a'}", &options, "1"), PEG_INVALID);
    CHECK_INT(check_with("{'$id':'http://x/other/','$ref':'../dir/a'}", &options, "1"),
              PEG_INVALID);
    peg_schema_docs_free(docs);
}

/* ---- meta-schemas and dialects ------------------------------------------------------------ */

TEST(every_meta_schema_is_there_and_accepts_itself)
{
    static const char *const uris[] = {
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    };

    for (size_t i = 0; i < sizeof(uris) / sizeof(*uris); i++) {
        char text[128];

        snprintf(text, sizeof(text), "{'$ref':'%s'}", uris[i]);
        VALID(text, "{'type':'object','properties':{'a':{'minLength':1}},'required':['a']}");
        INVALID(text, "{'type':'nope'}");
        INVALID(text, "{'properties':{'a':{'minLength':-1}}}");
        INVALID(text, "{'items':{'additionalProperties':{'multipleOf':0}}}");
    }
}

TEST(an_unknown_dialect_is_refused_by_name)
{
    refuse("{'$schema':'http://example.com/mine'}", "E_SCHEMA_DIALECT", "/$schema",
           "the dialect 'http://example.com/mine' is unknown");
    refuse("{'$schema':''}", "E_SCHEMA_DIALECT", "/$schema", "is unknown");
    refuse("{'$schema':5}", "E_SCHEMA_KEYWORD", "/$schema", "'$schema' must be a string");
    refuse("{'$defs':{'a':{'$id':'http://x/a','$schema':'http://x/y'}}}", "E_SCHEMA_DIALECT",
           "/$defs/a/$schema", "'http://x/y'");
}

TEST(a_registered_meta_schema_decides_which_keywords_count)
{
    peg_schema_docs *docs =
        docs_of("http://x/meta", "{'$schema':'https://json-schema.org/draft/2020-12/schema',"
                                 "'$vocabulary':{"
                                 "'https://json-schema.org/draft/2020-12/vocab/core':true,"
                                 "'https://json-schema.org/draft/2020-12/vocab/applicator':true}}");
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .docs = docs};

    CHECK_INT(check_with("{'$schema':'http://x/meta','type':'string'}", &options, "1"), PEG_VALID);
    CHECK_INT(check_with("{'$schema':'http://x/meta','items':false}", &options, "[1]"),
              PEG_INVALID);
    peg_schema_docs_free(docs);
}

TEST(a_vocabulary_that_is_required_but_unknown_is_refused)
{
    peg_schema_docs *docs =
        docs_of("http://x/meta", "{'$schema':'https://json-schema.org/draft/2020-12/schema',"
                                 "'$vocabulary':{'http://x/mine':true}}");
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .docs = docs};

    refuse_with("{'$schema':'http://x/meta'}", &options, "E_SCHEMA_DIALECT", "/$schema",
                "requires the vocabulary 'http://x/mine', which is unknown");
    peg_schema_docs_free(docs);
}

TEST(meta_schemas_in_a_circle_are_an_unknown_dialect)
{
    peg_schema_docs *docs = docs_of("http://x/a", "{'$schema':'http://x/b'}");
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .docs = docs};

    add_doc(docs, "http://x/b", "{'$schema':'http://x/a'}");
    refuse_with("{'$schema':'http://x/a'}", &options, "E_SCHEMA_DIALECT", "/$schema", "unknown");
    peg_schema_docs_free(docs);
}

/* ---- dynamic references ------------------------------------------------------------------- */

TEST(a_dynamic_reference_goes_to_the_outermost_anchor)
{
    const char *tree = "{'$id':'http://x/strict','$dynamicAnchor':'node','$ref':'tree',"
                       "'unevaluatedProperties':false,'$defs':{'tree':{'$id':'http://x/tree',"
                       "'$dynamicAnchor':'node','type':'object','properties':{'data':true,"
                       "'children':{'items':{'$dynamicRef':'#node'}}}}}}";

    VALID(tree, "{'children':[{'data':1,'children':[{'data':2}]}]}");
    INVALID(tree, "{'children':[{'data':1,'children':[{'daat':2}]}]}");
}

TEST(a_recursive_reference_of_2019_09_does_too)
{
    const char *tree = "{'$schema':'https://json-schema.org/draft/2019-09/schema',"
                       "'$id':'http://x/strict','$recursiveAnchor':true,'$ref':'tree',"
                       "'unevaluatedProperties':false,'$defs':{'tree':{'$id':'http://x/tree',"
                       "'$recursiveAnchor':true,'type':'object','properties':{'data':true,"
                       "'children':{'items':{'$recursiveRef':'#'}}}}}}";

    VALID(tree, "{'children':[{'data':1,'children':[{'data':2}]}]}");
    INVALID(tree, "{'children':[{'data':1,'children':[{'daat':2}]}]}");
}

/* ---- memory --------------------------------------------------------------------------------- */

static peg_status register_and_compile(peg_json_doc *doc, peg_schema_docs *docs)
{
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .docs = docs};
    static const char text[] = "{\"$ref\":\"http://x/inner\",\"$defs\":{\"a\":{\"$anchor\":\"b\"},"
                               "\"m\":{\"$ref\":\"http://json-schema.org/draft-07/schema\"}},"
                               "\"properties\":{\"p\":{\"$ref\":\"#/$defs/m\"}}}";
    peg_schema *schema = NULL;
    peg_status status = peg_schema_docs_add(docs, peg__str("http://x/a"), peg_json_root(doc), NULL);

    if (status)
        return status;
    status = peg_schema_compile(peg__str(text), &options, &schema, NULL);
    peg_schema_unref(schema);
    return status;
}

TORTURE(documents_and_references_survive_any_allocation_failure)
{
    static const char text[] = "{\"$defs\":{\"i\":{\"$id\":\"inner\",\"$dynamicAnchor\":\"d\","
                               "\"items\":{\"$dynamicRef\":\"#d\"}}}}";
    peg_schema_docs *docs = peg_schema_docs_new();
    peg_json_doc *doc = NULL;
    peg_status status = docs ? peg_json_parse(peg__str(text), NULL, &doc, NULL) : PEG_ENOMEM;

    if (!status)
        status = register_and_compile(doc, docs);
    peg_json_doc_free(doc);
    peg_schema_docs_free(docs);
    return status;
}
