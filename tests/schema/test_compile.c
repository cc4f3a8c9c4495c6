/* SPDX-License-Identifier: Apache-2.0 */

/* Compiling: what is refused, with which words, and what is not. */

#include "fixture.h"

/* ---- wrong values of keywords ------------------------------------------------------------ */

TEST(every_keyword_says_what_its_value_must_be)
{
    static const struct {
        const char *schema;
        const char *where;
        const char *must;
    } wrong[] = {
        {"{'type':'strnig'}", "/type", "'type' must be one of"},
        {"{'type':5}", "/type", "'type' must be one of"},
        {"{'type':['string',5]}", "/type", "'type' must be one of"},
        {"{'enum':'a'}", "/enum", "'enum' must be an array of values"},
        {"{'multipleOf':0}", "/multipleOf", "'multipleOf' must be a number above 0"},
        {"{'multipleOf':-1.5}", "/multipleOf", "'multipleOf' must be a number above 0"},
        {"{'multipleOf':'2'}", "/multipleOf", "'multipleOf' must be a number above 0"},
        {"{'minimum':'2'}", "/minimum", "'minimum' must be a number"},
        {"{'maximum':null}", "/maximum", "'maximum' must be a number"},
        {"{'exclusiveMinimum':true}", "/exclusiveMinimum", "must be a number"},
        {"{'exclusiveMaximum':[]}", "/exclusiveMaximum", "must be a number"},
        {"{'minLength':-1}", "/minLength", "must be a whole number that is not negative"},
        {"{'maxLength':1.5}", "/maxLength", "must be a whole number that is not negative"},
        {"{'minItems':'1'}", "/minItems", "must be a whole number that is not negative"},
        {"{'maxItems':-5}", "/maxItems", "must be a whole number that is not negative"},
        {"{'minProperties':{}}", "/minProperties", "must be a whole number that is not negative"},
        {"{'maxProperties':0.1}", "/maxProperties", "must be a whole number that is not negative"},
        {"{'contains':true,'minContains':-1}", "/minContains", "must be a whole number"},
        {"{'contains':true,'maxContains':'x'}", "/maxContains", "must be a whole number"},
        {"{'pattern':5}", "/pattern", "'pattern' must be a string with a regular expression"},
        {"{'format':5}", "/format", "'format' must be the name of a format"},
        {"{'uniqueItems':1}", "/uniqueItems", "'uniqueItems' must be a boolean"},
        {"{'required':'a'}", "/required", "'required' must be an array of names"},
        {"{'required':['a',1]}", "/required", "'required' must be an array of names"},
        {"{'properties':[]}", "/properties", "'properties' must be an object of schemas"},
        {"{'patternProperties':1}", "/patternProperties", "must be an object of schemas"},
        {"{'dependentRequired':[]}", "/dependentRequired", "must be an object from names"},
        {"{'dependentRequired':{'a':'b'}}", "/dependentRequired", "must be an array of names"},
        {"{'dependentRequired':{'a':[1]}}", "/dependentRequired", "must be an array of names"},
        {"{'dependentSchemas':5}", "/dependentSchemas", "must be an object from names"},
        {"{'dependencies':5}", "/dependencies", "must be an object from names"},
        {"{'dependencies':{'a':[1]}}", "/dependencies", "must be an array of names"},
        {"{'allOf':[]}", "/allOf", "'allOf' must be an array of at least one schema"},
        {"{'anyOf':{}}", "/anyOf", "'anyOf' must be an array of at least one schema"},
        {"{'oneOf':[]}", "/oneOf", "'oneOf' must be an array of at least one schema"},
        {"{'prefixItems':{}}", "/prefixItems", "'prefixItems' must be an array of schemas"},
        {"{'$ref':5}", "/$ref", "'$ref' must be a string with a URI reference"},
        {"{'$dynamicRef':{}}", "/$dynamicRef", "'$dynamicRef' must be a string"},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        refuse(wrong[i].schema, "E_SCHEMA_KEYWORD", wrong[i].where, wrong[i].must);
}

TEST(every_place_of_a_schema_wants_an_object_or_a_boolean)
{
    static const struct {
        const char *schema;
        const char *where;
    } wrong[] = {
        {"5", ""},
        {"'string'", ""},
        {"[]", ""},
        {"{'properties':{'a':1}}", "/properties/a"},
        {"{'patternProperties':{'a':null}}", "/patternProperties/a"},
        {"{'additionalProperties':'x'}", "/additionalProperties"},
        {"{'propertyNames':[]}", "/propertyNames"},
        {"{'items':[{}]}", "/items"},
        {"{'prefixItems':[true,5]}", "/prefixItems/1"},
        {"{'contains':5}", "/contains"},
        {"{'allOf':[{'anyOf':[{'oneOf':[5]}]}]}", "/allOf/0/anyOf/0/oneOf/0"},
        {"{'not':5}", "/not"},
        {"{'if':true,'then':5}", "/then"},
        {"{'if':5,'else':{}}", "/if"},
        {"{'dependentSchemas':{'a':['b']}}", "/dependentSchemas/a"},
        {"{'unevaluatedProperties':5}", "/unevaluatedProperties"},
        {"{'allOf':[{}],'unevaluatedItems':5}", "/unevaluatedItems"},
        {"{'$ref':'#/$defs/a','$defs':{'a':5}}", "/$defs/a"},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        refuse(wrong[i].schema, "E_SCHEMA_KEYWORD", wrong[i].where,
               "a schema must be an object, true or false");
}

TEST(draft_04_wants_a_boolean_for_exclusive_bounds)
{
    const peg_schema_options draft4 = {PEG_SCHEMA_OPTIONS_INIT, .dialect = PEG_DIALECT_DRAFT4};

    refuse_with("{'minimum':1,'exclusiveMinimum':1}", &draft4, "E_SCHEMA_KEYWORD",
                "/exclusiveMinimum", "'exclusiveMinimum' must be a boolean in draft-04");
}

TEST(where_escapes_names_and_is_cut_if_it_is_long)
{
    char text[2000] = "{'properties':{'";
    peg_schema *schema;
    peg_error error;

    refuse("{'properties':{'a/b~c':{'minLength':-1}}}", "E_SCHEMA_KEYWORD",
           "/properties/a~1b~0c/minLength", "'minLength'");
    memset(text + strlen(text), 'x', 1000);
    strcat(text, "':{'minLength':-1}}}");
    CHECK_INT(peg_schema_compile(peg__str(json(text)), NULL, &schema, &error), PEG_ESCHEMA);
    CHECK(strlen(error.where) < sizeof(error.where));
}

/* ---- patterns ------------------------------------------------------------------------------ */

TEST(a_pattern_that_is_none_is_told_with_its_place)
{
    refuse("{'pattern':'('}", "E_SCHEMA_KEYWORD", "/pattern", "the pattern cannot be used: ");
    refuse("{'properties':{'a':{'pattern':'a**'}}}", "E_SCHEMA_KEYWORD", "/properties/a/pattern",
           "the pattern cannot be used: ");
    refuse("{'patternProperties':{'[':true}}", "E_SCHEMA_KEYWORD", "/patternProperties/[",
           "the pattern cannot be used: ");
}

TEST(a_pattern_that_is_too_large_is_a_limit)
{
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .max_pattern_bytes = 10};

    refuse_with("{'pattern':'aaaaaaaaaaaaaaaaaaaaaaaaaaaaa'}", &options, "E_SCHEMA_TOO_LARGE",
                "/pattern", "has 29 bytes, more than 10");
    refuse("{'pattern':'((a{1000}){1000}){1000}'}", "E_SCHEMA_TOO_LARGE", "/pattern",
           "the pattern cannot be used: ");
}

/* ---- limits --------------------------------------------------------------------------------- */

TEST(limits_of_the_text_are_told_in_the_words_of_a_schema)
{
    const peg_schema_options small = {PEG_SCHEMA_OPTIONS_INIT, .max_bytes = 10};
    const peg_schema_options shallow = {PEG_SCHEMA_OPTIONS_INIT, .max_depth = 2};

    refuse_with("{'type':'string'}", &small, "E_SCHEMA_TOO_LARGE", "", "max_bytes = 10");
    refuse_with("{'items':{'items':{'items':true}}}", &shallow, "E_SCHEMA_TOO_LARGE", "/items",
                "max_depth = 2");
    refuse_with("{'items':{'items':{'items':{'items':{'items':{'items':{}}}}}}}", &shallow,
                "E_SCHEMA_TOO_LARGE", "", "max_depth = 2");
}

TEST(more_subschemas_than_allowed_are_refused)
{
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .max_subschemas = 3};

    CHECK_INT(check_with("{'properties':{'a':{'type':'null'},'b':{'type':'null'}}}", &options,
                         "{'a':null}"),
              PEG_VALID);
    refuse_with("{'properties':{'a':{'type':'null'},'b':{'type':'null'},'c':{'type':'null'}}}",
                &options, "E_SCHEMA_TOO_LARGE", "", "max_subschemas = 3");
}

TEST(text_that_is_not_json_is_a_parse_error_with_its_place)
{
    peg_schema *schema;
    peg_error error;

    CHECK_INT(peg_schema_compile(peg__str("{\n  \"a\": }"), NULL, &schema, &error), PEG_EPARSE);
    CHECK_STR(peg__str(error.code), "E_JSON_SYNTAX");
    CHECK_INT(error.line, 2);
}

/* ---- defaults ---------------------------------------------------------------------------------
 */

TEST(a_default_that_its_schema_refuses_is_refused_if_asked)
{
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .check_defaults = true};
    static const struct {
        const char *schema;
        const char *where;
    } wrong[] = {
        {"{'properties':{'a':{'type':'string','default':1}}}", "/properties/a/default"},
        {"{'type':'object','default':[]}", "/default"},
        {"{'items':{'$ref':'#/$defs/a','default':1},'$defs':{'a':{'type':'string'}}}",
         "/items/default"},
        {"{'items':{'$ref':'#/$defs/a'},'$defs':{'a':{'$ref':'#/$defs/b','default':1},"
         "'b':{'type':'string'}}}",
         "/$defs/a/default"},
        {"{'allOf':[{'default':{'a':1},'properties':{'a':{'type':'string'}}}],"
         "'unevaluatedProperties':false}",
         "/allOf/0/default"},
        /* There is no end to filling it in. */
        {"{'properties':{'a':{'$ref':'#','default':{}}}}", "/properties/a/default"},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        refuse_with(wrong[i].schema, &options, "E_SCHEMA_KEYWORD", wrong[i].where,
                    "this default is refused by its own schema: ");
        peg_schema_unref(compiled(wrong[i].schema));
    }
}

TEST(a_default_that_its_schema_accepts_is_fine)
{
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .check_defaults = true};

    CHECK_INT(check_with("{'properties':{'a':{'type':'string','default':'x'},"
                         "'b':{'$ref':'#/$defs/t','default':1}},'$defs':{'t':true},"
                         "'allOf':[{'default':{'c':1},'properties':{'c':{'type':'integer'}}}],"
                         "'unevaluatedProperties':false}",
                         &options, "{'a':'y','c':2}"),
              PEG_VALID);
}

TEST(a_default_is_checked_as_it_will_be_filled_in)
{
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .check_defaults = true};

    peg_schema_unref(compiled_with("{'properties':{'a':{'type':'object','default':{},"
                                   "'properties':{'b':{'default':1}},'required':['b']}}}",
                                   &options));
}

/* ---- names that are taken ---------------------------------------------------------------------
 */

TEST(two_schemas_of_one_document_cannot_have_one_name)
{
    refuse("{'$defs':{'a':{'$id':'http://x/a'},'b':{'$id':'http://x/a'}}}", "E_SCHEMA_URI_TAKEN",
           "/$defs/a", "two schemas of the document have the URI 'http://x/a'; rename one");
    refuse("{'$defs':{'a':{'$anchor':'n'},'b':{'$anchor':'n'}}}", "E_SCHEMA_URI_TAKEN", "/$defs/a",
           "two schemas of one resource have the anchor 'n'; rename one");
}

TEST(a_member_of_a_schema_that_is_given_twice_is_refused)
{
    peg_schema *schema = NULL;
    peg_error error;

    CHECK_INT(peg_schema_compile(peg__str(json("{'type':'string','type':'integer'}")), NULL,
                                 &schema, &error),
              PEG_EPARSE);
    CHECK_STR(peg__str(error.code), "E_JSON_DUPLICATE_KEY");
}

TEST(documents_are_registered_by_absolute_uris_only)
{
    static const char *const wrong[] = {"", "rel", "/a/b", "http://q/b#x"};
    peg_schema_docs *docs = peg_schema_docs_new();
    peg_json_doc *doc = parsed("{}");
    peg_error error;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        CHECK_INT(peg_schema_docs_add(docs, peg__str(wrong[i]), peg_json_root(doc), &error),
                  PEG_EINVAL);
        CHECK_STR(peg__str(error.code), "E_INVALID_ARGUMENT");
    }
    CHECK_STATUS(peg_schema_docs_add(docs, peg__str("http://q/z#"), peg_json_root(doc), &error),
                 PEG_OK, error);
    peg_json_doc_free(doc);
    peg_schema_docs_free(docs);
}

/* ---- recursion ----------------------------------------------------------------------------------
 */

TEST(a_tree_is_checked_to_its_leaves)
{
    const char *tree = "{'properties':{'value':{'type':'integer'},"
                       "'left':{'$ref':'#'},'right':{'$ref':'#'}},'additionalProperties':false}";

    VALID(tree, "{'value':1,'left':{'value':2,'right':{'value':3}},'right':{}}");
    INVALID(tree, "{'value':1,'left':{'value':2,'right':{'value':'x'}}}");
    INVALID(tree, "{'left':{'left':{'left':{'letf':{}}}}}");
}

TEST(definitions_may_need_each_other)
{
    const char *schema = "{'$ref':'#/$defs/even','$defs':{"
                         "'even':{'prefixItems':[{'$ref':'#/$defs/odd'}],'type':'array'},"
                         "'odd':{'items':{'$ref':'#/$defs/even'},'minItems':1}}}";

    VALID(schema, "[]");
    VALID(schema, "[[[]]]");
    INVALID(schema, "[[]]");
    INVALID(schema, "[[[[]]]]");
}

TEST(a_circle_of_references_is_undecided)
{
    static const char *const circles[] = {
        "{'$ref':'#'}",
        "{'$ref':'#/$defs/a','$defs':{'a':{'$ref':'#/$defs/b'},'b':{'$ref':'#/$defs/a'}}}",
        "{'allOf':[{'$ref':'#'}]}",
        "{'anyOf':[{'$ref':'#'}]}",
        "{'not':{'$ref':'#'}}",
        "{'unevaluatedProperties':false,'$ref':'#'}",
        "{'if':{'$ref':'#'},'then':true}",
    };

    for (size_t i = 0; i < sizeof(circles) / sizeof(*circles); i++) {
        peg_schema *schema = compiled(circles[i]);
        peg_json_doc *doc = parsed("{'a':1}");
        peg_checker *checker = new_checker();

        CHECK_INT(verdict_on(schema, peg_json_root(doc)), PEG_UNDECIDED);
        CHECK_INT(peg_schema_check(schema, checker, peg_json_root(doc)), PEG_UNDECIDED);
        CHECK_STR(peg__str(peg_checker_reason(checker)), "max_depth");
        peg_checker_free(checker);
        peg_json_doc_free(doc);
        peg_schema_unref(schema);
    }
}

static peg_schema *chain_of_refs(int n)
{
    struct peg__buf text = PEG__BUF(1 << 20);
    peg_schema *schema = NULL;
    peg_error error;

    peg__buf_puts(&text, "{\"$ref\":\"#/$defs/r0\",\"$defs\":{");
    for (int i = 0; i < n; i++)
        peg__buf_printf(&text, "\"r%d\":{\"$ref\":\"#/$defs/r%d\"},", i, i + 1);
    peg__buf_printf(&text, "\"r%d\":{\"type\":\"string\"}}}", n);
    CHECK_STATUS(peg_schema_compile(peg__buf_view(&text), NULL, &schema, &error), PEG_OK, error);
    peg__buf_free(&text);
    return schema;
}

TEST(a_chain_of_5000_references_compiles_and_decides)
{
    peg_schema *schema = chain_of_refs(5000);
    peg_json_doc *doc = parsed("['x',1]");

    CHECK_INT(verdict_on(schema, peg_json_at(peg_json_root(doc), 0)), PEG_VALID);
    CHECK_INT(verdict_on(schema, peg_json_at(peg_json_root(doc), 1)), PEG_INVALID);
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
}

/* ---- the object
 * ------------------------------------------------------------------------------------ */

TEST(the_source_is_the_schema_as_it_was_given)
{
    const char *text = "{'type':'object','x-mine':[1,2],'properties':{'b':true,'a':false}}";
    peg_schema *schema = compiled(text);
    char *written = NULL;
    peg_error error;

    CHECK_STATUS(
        peg_json_write(peg_schema_source(schema), PEG_JSON_COMPACT, &written, NULL, &error), PEG_OK,
        error);
    CHECK_STR(peg__str(written), json(text));
    peg_free(written);
    peg_schema_unref(schema);
}

TEST(a_value_compiles_like_its_text_and_may_go_afterwards)
{
    peg_json_doc *source = parsed("{'properties':{'long name of a property':{'enum':['a','b']}}}");
    peg_json_doc *doc = parsed("{'long name of a property':'c'}");
    peg_schema *schema = NULL;
    peg_error error;

    CHECK_STATUS(peg_schema_compile_value(peg_json_root(source), NULL, &schema, &error), PEG_OK,
                 error);
    peg_json_doc_free(source);
    CHECK_INT(verdict_on(schema, peg_json_root(doc)), PEG_INVALID);
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
}

TEST(a_part_of_a_value_compiles_too)
{
    peg_json_doc *source = parsed("{'tools':[{'parameters':{'type':'string'}}]}");
    peg_json_doc *doc = parsed("1");
    const peg_json *part = NULL;
    peg_schema *schema = NULL;
    peg_error error;

    CHECK_STATUS(
        peg_json_pointer(peg_json_root(source), peg__str("/tools/0/parameters"), &part, &error),
        PEG_OK, error);
    CHECK_STATUS(peg_schema_compile_value(part, NULL, &schema, &error), PEG_OK, error);
    CHECK_INT(verdict_on(schema, peg_json_root(doc)), PEG_INVALID);
    CHECK(peg_json_equal(peg_schema_source(schema), part));
    peg_json_doc_free(source);
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
}

TEST(references_are_counted)
{
    peg_schema *schema = compiled("true");

    CHECK(peg_schema_ref(schema) == schema);
    CHECK(peg_schema_unref(schema) == NULL);
    CHECK(peg_schema_bytes(schema) > 0);
    CHECK(peg_schema_unref(schema) == NULL);
    CHECK(peg_schema_unref(NULL) == NULL);
}

TEST(a_failure_leaves_the_result_alone)
{
    peg_schema *schema = (peg_schema *)&schema;

    CHECK_INT(peg_schema_compile(peg__str("{\"type\":1}"), NULL, &schema, NULL), PEG_ESCHEMA);
    CHECK(schema == (peg_schema *)&schema);
}

/* ---- memory
 * ------------------------------------------------------------------------------------------ */

TORTURE(compiling_survives_any_allocation_failure)
{
    static const char text[] =
        "{\"$id\":\"http://x/a\",\"$anchor\":\"top\",\"type\":\"object\",\"properties\":{"
        "\"name\":{\"type\":\"string\",\"pattern\":\"^(a|b)+$\",\"default\":\"a\"},"
        "\"kind\":{\"enum\":[\"x\",\"y\",1,2,3,4,5,6,7,8,9,[1],{\"a\":1}]},"
        "\"list\":{\"items\":{\"$ref\":\"#/$defs/item\"},\"contains\":{\"const\":1},"
        "\"prefixItems\":[{\"format\":\"date\"}]}},\"patternProperties\":{\"^x-\":true},"
        "\"required\":[\"name\",\"a\",\"b\",\"c\",\"d\"],\"dependentRequired\":{\"a\":[\"b\"]},"
        "\"allOf\":[{\"properties\":{\"z\":{\"anyOf\":[{\"type\":\"null\"},{\"minimum\":1}]}}}],"
        "\"unevaluatedProperties\":false,\"$defs\":{\"item\":{\"$dynamicAnchor\":\"i\","
        "\"default\":{},\"additionalProperties\":{\"$dynamicRef\":\"#i\"}}}}";
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .check_defaults = true,
                                        .format = PEG_FORMAT_ASSERT};
    peg_schema *schema = NULL;
    peg_error error;
    peg_status status = peg_schema_compile(peg__str(text), &options, &schema, &error);

    if (status && status != PEG_ENOMEM)
        printf("# %s at '%s': %s\n", error.code, error.where, error.message);
    peg_schema_unref(schema);
    return status;
}
