/* SPDX-License-Identifier: Apache-2.0 */

/* Default values: through what they are filled in, in which order, and where it ends. */

#include "fixture.h"

/* ---- fixture ---------------------------------------------------------------------- */

/* The filled value as text, or "nothing" if nothing was missing. */
static void check_fill_with(const char *schema_text, const peg_schema_options *options,
                            const char *instance_text, const char *expected)
{
    peg_schema *schema = compiled_with(schema_text, options);
    peg_json_doc *doc = parsed(instance_text);
    peg_json_doc *before = parsed(instance_text);
    peg_json_doc *filled = NULL;
    char *text = NULL;
    peg_error error;

    CHECK_STATUS(peg_schema_fill(schema, peg_json_root(doc), &filled, &error), PEG_OK, error);
    CHECK(peg_json_equal(peg_json_root(doc), peg_json_root(before)));
    if (filled)
        CHECK_INT(peg_json_write(peg_json_root(filled), PEG_JSON_COMPACT, &text, NULL, NULL),
                  PEG_OK);
    CHECK_STR(peg__str(text ? text : "nothing"), json(expected));
    peg_free(text);
    peg_json_doc_free(filled);
    peg_json_doc_free(before);
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
}

static void check_fill(const char *schema_text, const char *instance_text, const char *expected)
{
    check_fill_with(schema_text, NULL, instance_text, expected);
}

static void check_limit(const char *schema_text, const char *instance_text)
{
    peg_schema *schema = compiled(schema_text);
    peg_json_doc *doc = parsed(instance_text);
    peg_json_doc *filled = NULL;
    peg_error error;

    CHECK_INT(peg_schema_fill(schema, peg_json_root(doc), &filled, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_SCHEMA_FILL_LIMIT");
    CHECK(filled == NULL);
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
}

/* ---- through what ----------------------------------------------------------------------- */

TEST(missing_members_are_filled_in_the_order_of_the_schema_after_those_that_are_there)
{
    check_fill("{'properties':{'a':{'default':1},'b':{},'c':{'default':[true]},'d':{"
               "'default':null}}}",
               "{'x':0,'c':'mine'}", "{'x':0,'c':'mine','a':1,'d':null}");
}

TEST(a_default_counts_wherever_in_all_of_the_member_is_described)
{
    check_fill("{'allOf':[{'properties':{'a':{}}},{'properties':{'a':{'default':1}}}]}", "{}",
               "{'a':1}");
    check_fill(
        "{'properties':{'a':{'type':'integer'}},'allOf':[{'properties':{'a':{'default':1}}}]}",
        "{}", "{'a':1}");
}

TEST(members_of_members_and_of_items_are_filled_in)
{
    check_fill("{'properties':{'o':{'properties':{'p':{'default':1}}}}}", "{'o':{}}",
               "{'o':{'p':1}}");
    check_fill("{'properties':{'o':{'properties':{'p':{'default':1}}}}}", "{}", "nothing");
    check_fill("{'items':{'properties':{'a':{'default':1}}}}", "[{},{'a':2},5,{}]",
               "[{'a':1},{'a':2},5,{'a':1}]");
}

TEST(missing_items_of_a_prefix_are_filled_in_up_to_the_first_without_default)
{
    const char *schema = "{'prefixItems':[{'default':1},{'default':2},{},{'default':4}],"
                         "'items':{'properties':{'z':{'default':0}}}}";
    const peg_schema_options draft7 = {PEG_SCHEMA_OPTIONS_INIT, .dialect = PEG_DIALECT_DRAFT7};

    check_fill(schema, "[]", "[1,2]");
    check_fill(schema, "[9]", "[9,2]");
    check_fill(schema, "[9,9]", "nothing");
    check_fill(schema, "[9,9,9]", "[9,9,9,4]");
    check_fill(schema, "[9,9,9,9,{}]", "[9,9,9,9,{'z':0}]");
    check_fill_with("{'items':[{'default':1}],'additionalItems':false}", &draft7, "[]", "[1]");
}

TEST(references_and_all_of_are_followed)
{
    check_fill("{'properties':{'a':{'$ref':'#/$defs/d'}},'$defs':{'d':{'default':1}}}", "{}",
               "{'a':1}");
    check_fill("{'properties':{'a':{'$ref':'#/$defs/d'}},'$defs':{'d':{'$ref':'#/$defs/e',"
               "'default':1},'e':{'type':'integer'}}}",
               "{}", "{'a':1}");
    check_fill("{'properties':{'a':{'$ref':'#/$defs/t','default':1}},'$defs':{'t':true}}", "{}",
               "{'a':1}");
    check_fill("{'allOf':[{'properties':{'a':{'default':1}}},{'properties':{'b':{'default':2}}}],"
               "'properties':{'c':{'default':3}}}",
               "{}", "{'c':3,'a':1,'b':2}");
    check_fill("{'$ref':'#/$defs/o','$defs':{'o':{'properties':{'a':{'default':1}}}}}", "{}",
               "{'a':1}");
}

TEST(the_nearest_of_several_defaults_counts)
{
    check_fill("{'properties':{'a':{'$ref':'#/$defs/d','default':'near'}},"
               "'$defs':{'d':{'default':'far'}}}",
               "{}", "{'a':'near'}");
    check_fill("{'properties':{'a':{'default':1}},'allOf':[{'properties':{'a':{'default':2}}}]}",
               "{}", "{'a':1}");
}

TEST(draft_07_ignores_a_default_beside_a_reference)
{
    const peg_schema_options draft7 = {PEG_SCHEMA_OPTIONS_INIT, .dialect = PEG_DIALECT_DRAFT7};

    check_fill_with("{'properties':{'a':{'$ref':'#/definitions/d','default':'near'}},"
                    "'definitions':{'d':{'default':'far'}}}",
                    &draft7, "{}", "{'a':'far'}");
}

TEST(branches_are_not_entered)
{
    check_fill("{'anyOf':[{'properties':{'a':{'default':1}}}]}", "{}", "nothing");
    check_fill("{'oneOf':[{'properties':{'a':{'default':1}}}]}", "{}", "nothing");
    check_fill("{'if':true,'then':{'properties':{'a':{'default':1}}}}", "{}", "nothing");
    check_fill("{'not':{'not':{'properties':{'a':{'default':1}}}}}", "{}", "nothing");
    check_fill("{'dependentSchemas':{'x':{'properties':{'a':{'default':1}}}}}", "{'x':1}",
               "nothing");
    check_fill("{'patternProperties':{'x':{'properties':{'a':{'default':1}}}},"
               "'additionalProperties':{'properties':{'a':{'default':1}}}}",
               "{'x':{},'y':{}}", "nothing");
}

TEST(defaults_inside_defaults_are_filled_in)
{
    check_fill("{'properties':{'o':{'default':{'x':1},'properties':{'p':{'default':[{}],"
               "'items':{'properties':{'q':{'default':2}}}}}}}}",
               "{}", "{'o':{'x':1,'p':[{'q':2}]}}");
}

TEST(values_of_other_kinds_are_left_alone)
{
    const char *schema = "{'default':5,'properties':{'a':{'default':1}},'prefixItems':[{"
                         "'default':1}]}";

    check_fill(schema, "'x'", "nothing");
    check_fill(schema, "null", "nothing");
    check_fill(schema, "{'a':null}", "nothing");
    check_fill("{}", "{}", "nothing");
    check_fill("true", "{}", "nothing");
}

TEST(required_holds_after_filling)
{
    peg_schema *schema = compiled("{'required':['a'],'properties':{'a':{'default':1}}}");
    peg_json_doc *doc = parsed("{}");
    peg_json_doc *filled = NULL;

    CHECK_INT(verdict_on(schema, peg_json_root(doc)), PEG_INVALID);
    CHECK_INT(peg_schema_fill(schema, peg_json_root(doc), &filled, NULL), PEG_OK);
    CHECK_INT(verdict_on(schema, peg_json_root(filled)), PEG_VALID);
    peg_json_doc_free(filled);
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

TEST(a_recursive_schema_is_filled_as_deep_as_the_value_is)
{
    check_fill("{'properties':{'v':{'default':0},'next':{'$ref':'#'}}}", "{'next':{'next':{}}}",
               "{'next':{'next':{'v':0},'v':0},'v':0}");
}

TEST(a_default_that_contains_itself_is_a_limit)
{
    check_limit("{'properties':{'next':{'$ref':'#','default':{}}}}", "{}");
    check_limit("{'properties':{'a':{'$ref':'#','default':{}},'b':{'$ref':'#','default':{}}}}",
                "{}");
    check_limit("{'prefixItems':[{'$ref':'#','default':[]}]}", "[]");
}

TEST(defaults_that_double_are_a_limit)
{
    struct peg__buf text = PEG__BUF(8000);

    peg__buf_puts(&text, "{'$ref':'#/$defs/d0','$defs':{");
    for (int i = 0; i < 30; i++)
        peg__buf_printf(&text,
                        "'d%d':{'default':{},'properties':{'a':{'$ref':'#/$defs/d%d'},"
                        "'b':{'$ref':'#/$defs/d%d'}}},",
                        i, i + 1, i + 1);
    peg__buf_puts(&text, "'d30':{'default':1}}}");
    check_limit(text.ptr, "{}");
    peg__buf_free(&text);
}

/* ---- memory -----------------------------------------------------------------------------------
 */

TEST(nothing_is_allocated_if_nothing_is_missing)
{
    peg_schema *schema = compiled("{'properties':{'a':{'default':1},'b':{'items':{'properties':{"
                                  "'c':{'default':2}}}}}}");
    peg_json_doc *doc = parsed("{'b':[{'c':1},{'c':2}],'a':5}");
    peg_json_doc *filled = doc;

    peg__mem_fail_at(1);
    CHECK_INT(peg_schema_fill(schema, peg_json_root(doc), &filled, NULL), PEG_OK);
    peg__mem_fail_at(0);
    CHECK(filled == NULL);
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
}

TORTURE(filling_survives_any_allocation_failure)
{
    peg_schema *schema = NULL;
    peg_json_doc *doc = NULL;
    peg_json_doc *filled = NULL;
    peg_status status = peg_schema_compile(
        peg__str(json("{'properties':{'a':{'default':'a string of some length'},"
                      "'b':{'items':{'$ref':'#/$defs/c'}}},'allOf':[{'properties':{"
                      "'z':{'default':{'deep':[1,2.50,null]}}}}],"
                      "'$defs':{'c':{'prefixItems':[{'default':2}]}}}")),
        NULL, &schema, NULL);

    if (!status)
        status = peg_json_parse(peg__str(json("{'b':[[],[1],[]]}")), NULL, &doc, NULL);
    if (!status)
        status = peg_schema_fill(schema, peg_json_root(doc), &filled, NULL);
    peg_json_doc_free(filled);
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
    return status;
}
