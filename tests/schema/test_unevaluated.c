/* SPDX-License-Identifier: Apache-2.0 */

/* unevaluatedProperties and unevaluatedItems: who evaluates what. */

#include "fixture.h"

/* ---- members ------------------------------------------------------------------------- */

TEST(alone_they_are_additional_properties_and_items)
{
    INVALID("{'unevaluatedProperties':false}", "{'a':1}");
    VALID("{'properties':{'a':true},'patternProperties':{'^b':true},"
          "'unevaluatedProperties':false}",
          "{'a':1,'b1':2}");
    INVALID("{'properties':{'a':true},'unevaluatedProperties':{'type':'string'}}", "{'b':1}");
    VALID("{'additionalProperties':true,'unevaluatedProperties':false}", "{'b':1}");
    INVALID("{'unevaluatedItems':false}", "[1]");
    VALID("{'items':true,'unevaluatedItems':false}", "[1]");
    INVALID("{'prefixItems':[true],'unevaluatedItems':false}", "[1,2]");
}

TEST(what_all_of_evaluates_is_evaluated)
{
    const char *schema = "{'allOf':[{'properties':{'a':true}},{'properties':{'b':true}}],"
                         "'properties':{'c':true},'unevaluatedProperties':false}";

    VALID(schema, "{'a':1,'b':2,'c':3}");
    INVALID(schema, "{'a':1,'d':2}");
}

TEST(every_branch_of_any_of_that_fits_counts)
{
    const char *schema = "{'anyOf':[{'properties':{'a':{'const':1}},'required':['a']},"
                         "{'properties':{'b':{'const':2}},'required':['b']}],"
                         "'unevaluatedProperties':false}";

    VALID(schema, "{'a':1}");
    VALID(schema, "{'b':2}");
    VALID(schema, "{'a':1,'b':2}");
    INVALID(schema, "{'a':1,'b':3}");
    INVALID(schema, "{'a':1,'c':3}");
}

TEST(only_the_branch_of_one_of_that_fits_counts)
{
    const char *schema = "{'oneOf':[{'properties':{'a':{'const':1},'x':true},'required':['a']},"
                         "{'properties':{'b':{'const':2},'y':true},'required':['b']}],"
                         "'unevaluatedProperties':false}";

    VALID(schema, "{'a':1,'x':1}");
    INVALID(schema, "{'a':1,'y':1}");
    VALID(schema, "{'b':2,'y':1}");
    INVALID(schema, "{'b':2,'x':1}");
}

TEST(an_if_that_holds_counts_with_its_then_and_one_that_does_not_only_its_else)
{
    const char *schema = "{'if':{'properties':{'k':{'const':1}},'required':['k']},"
                         "'then':{'properties':{'t':true}},'else':{'properties':{'e':true}},"
                         "'unevaluatedProperties':false}";

    VALID(schema, "{'k':1,'t':1}");
    INVALID(schema, "{'k':1,'e':1}");
    VALID(schema, "{'e':1}");
    INVALID(schema, "{'k':2,'e':1}");
    VALID("{'if':{'properties':{'k':true},'required':['k']},'unevaluatedProperties':false}",
          "{'k':1}");
}

TEST(what_not_looks_at_never_counts)
{
    INVALID("{'not':{'not':{'properties':{'a':true}}},'unevaluatedProperties':false}", "{'a':1}");
}

TEST(references_and_dependent_schemas_count)
{
    const char *ref = "{'$ref':'#/$defs/r','unevaluatedProperties':false,"
                      "'$defs':{'r':{'properties':{'a':{'type':'integer'}}}}}";
    const char *dependent = "{'properties':{'a':true},'dependentSchemas':{'a':{'properties':{"
                            "'b':true}}},'unevaluatedProperties':false}";

    VALID(ref, "{'a':1}");
    INVALID(ref, "{'a':'x'}");
    INVALID(ref, "{'b':1}");
    VALID(dependent, "{'a':1,'b':2}");
    INVALID(dependent, "{'b':2}");
}

TEST(a_dynamic_reference_counts_as_what_it_leads_to)
{
    const char *schema = "{'$id':'http://x/a','$ref':'base','unevaluatedProperties':false,"
                         "'$defs':{'more':{'$dynamicAnchor':'more','properties':{'b':true}},"
                         "'base':{'$id':'base','properties':{'a':true},'$dynamicRef':'#more',"
                         "'$defs':{'d':{'$dynamicAnchor':'more'}}}}}";

    VALID(schema, "{'a':1,'b':2}");
    INVALID(schema, "{'a':1,'c':2}");
}

TEST(inner_keywords_count_for_outer_ones_but_not_the_other_way_round)
{
    const char *inner = "{'allOf':[{'properties':{'a':true},'unevaluatedProperties':true}],"
                        "'unevaluatedProperties':false}";
    const char *cousins = "{'properties':{'b':true},'allOf':[{'properties':{'a':true},"
                          "'unevaluatedProperties':false}]}";
    const char *in_branch = "{'anyOf':[{'allOf':[{'properties':{'a':true}}],"
                            "'unevaluatedProperties':{'type':'string'}},{'required':['z']}],"
                            "'unevaluatedProperties':false}";

    VALID(inner, "{'a':1,'z':2}");
    INVALID(cousins, "{'a':1,'b':2}");
    VALID(cousins, "{'a':1}");
    VALID(in_branch, "{'a':1,'other':'text'}");
    INVALID(in_branch, "{'a':1,'other':5}");
    INVALID(in_branch, "{'a':1,'z':5}");
}

TEST(nested_objects_have_marks_of_their_own)
{
    const char *schema = "{'allOf':[{'properties':{'o':{'allOf':[{'properties':{'a':true}}],"
                         "'unevaluatedProperties':false},'p':true}}],"
                         "'unevaluatedProperties':false}";

    VALID(schema, "{'o':{'a':1},'p':1}");
    INVALID(schema, "{'o':{'p':1}}");
    INVALID(schema, "{'a':1}");
}

TEST(values_that_are_no_containers_pass_whatever_is_beside)
{
    static const char *const schemas[] = {
        "{'anyOf':[{'type':'string'},true],'unevaluatedProperties':false}",
        "{'oneOf':[{'type':['string','null']},{'type':['number','boolean']}],"
        "'unevaluatedItems':false}",
        "{'if':{'type':'string'},'then':true,'else':true,'unevaluatedProperties':false,"
        "'unevaluatedItems':false}",
        "{'allOf':[{'anyOf':[true,{'type':'null'}]}],'unevaluatedItems':false}",
        "{'dependentSchemas':{'a':true},'$ref':'#/$defs/x','unevaluatedProperties':false,"
        "'$defs':{'x':{'anyOf':[true,true]}}}",
    };
    static const char *const values[] = {"'x'", "1", "1.5", "null", "true"};

    for (size_t i = 0; i < sizeof(schemas) / sizeof(*schemas); i++)
        for (size_t j = 0; j < sizeof(values) / sizeof(*values); j++)
            VALID(schemas[i], values[j]);
}

TEST(a_failed_branch_leaves_no_marks)
{
    const char *schema = "{'anyOf':[{'properties':{'a':true,'b':true},'required':['zz']},"
                         "{'properties':{'a':true}}],'unevaluatedProperties':false}";

    VALID(schema, "{'a':1}");
    INVALID(schema, "{'a':1,'b':2}");
    INVALID(schema, "{'a':1,'b':2,'zz':3}");
}

/* ---- items -------------------------------------------------------------------------------- */

TEST(items_are_evaluated_by_prefix_rest_and_contains)
{
    const char *prefix = "{'allOf':[{'prefixItems':[true,true]}],'unevaluatedItems':false}";
    const char *contains = "{'prefixItems':[true],'contains':{'type':'string'},"
                           "'unevaluatedItems':{'type':'integer'}}";
    const peg_schema_options d19 = {PEG_SCHEMA_OPTIONS_INIT, .dialect = PEG_DIALECT_2019_09};

    VALID(prefix, "[1,2]");
    INVALID(prefix, "[1,2,3]");
    VALID("{'allOf':[{'items':true}],'unevaluatedItems':false}", "[1,2,3]");
    VALID(contains, "[null,'a',1,'b']");
    INVALID(contains, "[null,'a',null]");
    /* In 2019-09 contains evaluated nothing. */
    CHECK_INT(check_with("{'contains':{'type':'string'},'unevaluatedItems':false}", &d19, "['a']"),
              PEG_INVALID);
    CHECK_INT(check_with("{'items':[true],'additionalItems':true,'unevaluatedItems':false}", &d19,
                         "[1,2]"),
              PEG_VALID);
    CHECK_INT(check_with("{'items':[true],'unevaluatedItems':false}", &d19, "[1,2]"), PEG_INVALID);
}

TEST(branches_evaluate_items_too)
{
    const char *schema = "{'prefixItems':[{'const':'a'}],'anyOf':[{'prefixItems':[true,"
                         "{'const':'b'}]},{'prefixItems':[true,true,{'const':'c'}]}],"
                         "'unevaluatedItems':false}";

    VALID(schema, "['a','b']");
    VALID(schema, "['a','b','c']");
    INVALID(schema, "['a','b','c','d']");
    INVALID(schema, "['a','b','x']");
}

/* ---- many ----------------------------------------------------------------------------------- */

/* The i-th member or item. */
static void put(struct peg__buf *text, int i, bool is_object, const char *value)
{
    if (i > 0)
        peg__buf_putc(text, ',');
    if (is_object)
        peg__buf_printf(text, "\"m%d\":", i);
    peg__buf_puts(text, value);
}

static void check_many(int n, bool is_object)
{
    struct peg__buf schema_text = PEG__BUF(1 << 20);
    struct peg__buf text = PEG__BUF(1 << 20);
    peg_schema *schema = NULL;
    peg_error error;

    peg__buf_puts(&schema_text, is_object ? "{\"unevaluatedProperties\":false,\"anyOf\":["
                                          : "{\"unevaluatedItems\":false,\"anyOf\":[");
    peg__buf_puts(&schema_text, is_object ? "{\"properties\":{" : "{\"prefixItems\":[");
    for (int i = 0; i < n; i++)
        put(&schema_text, i, is_object, "true");
    peg__buf_puts(&schema_text,
                  is_object ? "}},{\"type\":\"array\"}]}" : "]},{\"type\":\"null\"}]}");
    CHECK_STATUS(peg_schema_compile(peg__buf_view(&schema_text), NULL, &schema, &error), PEG_OK,
                 error);
    for (int extra = 0; extra < 2; extra++) {
        peg_json_doc *doc = NULL;

        peg__buf_clear(&text);
        peg__buf_putc(&text, is_object ? '{' : '[');
        for (int i = 0; i < n + extra; i++)
            put(&text, i, is_object, "1");
        peg__buf_putc(&text, is_object ? '}' : ']');
        CHECK_STATUS(peg_json_parse(peg__buf_view(&text), NULL, &doc, &error), PEG_OK, error);
        CHECK_INT(verdict_on(schema, peg_json_root(doc)), extra ? PEG_INVALID : PEG_VALID);
        peg_json_doc_free(doc);
    }
    peg_schema_unref(schema);
    peg__buf_free(&schema_text);
    peg__buf_free(&text);
}

TEST(more_than_64_members_or_items_are_told_apart)
{
    static const int sizes[] = {1, 63, 64, 65, 127, 128, 129, 1000};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        check_many(sizes[i], true);
        check_many(sizes[i], false);
    }
}

TEST(unevaluated_items_inside_say_nothing_about_the_members_of_an_object)
{
    const char *schema = "{'anyOf':[{'unevaluatedItems':true,'allOf':[true]}],"
                         "'unevaluatedProperties':{'minimum':6}}";

    INVALID(schema, "{'a':4}");
    VALID(schema, "{'a':6}");
    INVALID("{'anyOf':[{'unevaluatedProperties':true,'allOf':[true]}],'unevaluatedItems':false}",
            "[1]");
}
