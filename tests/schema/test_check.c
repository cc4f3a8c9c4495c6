/* SPDX-License-Identifier: Apache-2.0 */

/* Verdicts, keyword by keyword, at the edges; limits; a checker's memory. */

#include "fixture.h"

/* ---- fixture ---------------------------------------------------------------------- */

static peg_json_doc *parsed_buf(struct peg__buf *text)
{
    peg_json_doc *doc = NULL;
    peg_error error;

    CHECK_INT(text->status, PEG_OK);
    CHECK_STATUS(peg_json_parse(peg__buf_view(text), NULL, &doc, &error), PEG_OK, error);
    peg__buf_free(text);
    return doc;
}

static peg_schema *compiled_buf(struct peg__buf *text)
{
    peg_schema *schema = NULL;
    peg_error error;

    CHECK_INT(text->status, PEG_OK);
    CHECK_STATUS(peg_schema_compile(peg__buf_view(text), NULL, &schema, &error), PEG_OK, error);
    peg__buf_free(text);
    return schema;
}

#define BIG_TEXT PEG__BUF(32 << 20)

/* What a checker with these limits says, and why. */
static void check_limit(const char *schema_text, const char *instance_text,
                        peg_checker_options options, peg_verdict expected, const char *reason)
{
    peg_schema *schema = compiled(schema_text);
    peg_json_doc *doc = parsed(instance_text);
    peg_checker *checker = NULL;
    peg_report *report = new_report();

    CHECK_INT(peg_checker_new(&options, &checker, NULL), PEG_OK);
    CHECK_INT(peg_schema_check(schema, checker, peg_json_root(doc)), expected);
    CHECK_STR(peg__str(peg_checker_reason(checker)), reason);
    CHECK_INT(peg_schema_report(schema, checker, peg_json_root(doc), report), expected);
    peg_report_free(report);
    peg_checker_free(checker);
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
}

/* ---- types ------------------------------------------------------------------------------ */

TEST(each_type_accepts_its_own_kind_and_no_other)
{
    static const char *const types[] = {"null",   "boolean", "integer", "number",
                                        "string", "array",   "object"};
    static const char *const values[] = {"null", "true", "1", "1.5", "'x'", "[]", "{}"};

    for (size_t i = 0; i < 7; i++)
        for (size_t j = 0; j < 7; j++) {
            const bool fits = i == j || (i == 3 && j == 2);
            char schema[64];

            snprintf(schema, sizeof(schema), "{'type':'%s'}", types[i]);
            CHECK_INT(check(schema, values[j]), fits ? PEG_VALID : PEG_INVALID);
            snprintf(schema, sizeof(schema), "{'type':['%s','null']}", types[i]);
            CHECK_INT(check(schema, values[j]), fits || j == 0 ? PEG_VALID : PEG_INVALID);
        }
}

TEST(a_whole_number_is_an_integer_however_it_is_written_except_in_draft_04)
{
    static const char *const whole[] = {"1.0", "-0.0", "1e3", "10e-1", "1e400", "1.5e1"};
    const peg_schema_options draft4 = {PEG_SCHEMA_OPTIONS_INIT, .dialect = PEG_DIALECT_DRAFT4};

    for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++) {
        VALID("{'type':'integer'}", whole[i]);
        CHECK_INT(check_with("{'type':'integer'}", &draft4, whole[i]), PEG_INVALID);
        CHECK_INT(check_with("{'type':'number'}", &draft4, whole[i]), PEG_VALID);
    }
    INVALID("{'type':'integer'}", "1.5");
    INVALID("{'type':'integer'}", "1e-1");
    CHECK_INT(check_with("{'type':'integer'}", &draft4, "-0"), PEG_VALID);
    CHECK_INT(check_with("{'type':'integer'}", &draft4, "12345678901234567890123"), PEG_VALID);
    CHECK_INT(check_with("{'type':'integer'}", &draft4, "10000000000000000000000"), PEG_VALID);
}

/* ---- numbers ---------------------------------------------------------------------------- */

TEST(numbers_are_compared_exactly)
{
    VALID("{'const':1}", "1.0");
    VALID("{'const':1.0}", "1");
    VALID("{'const':100}", "1e2");
    VALID("{'const':0}", "-0.0");
    INVALID("{'const':9007199254740993}", "9007199254740992");
    INVALID("{'const':9007199254740993}", "9007199254740992.0");
    VALID("{'const':9007199254740993}", "9007199254740993.0");
    INVALID("{'maximum':9007199254740992}", "9007199254740993");
    INVALID("{'const':0.1}", "0.1000000000000000055");
    INVALID("{'const':1e400}", "1e401");
    VALID("{'const':1e400}", "10e399");
    INVALID("{'const':true}", "1");
    INVALID("{'const':0}", "false");
}

TEST(bounds_hold_at_the_ends_of_64_bits)
{
    VALID("{'minimum':9223372036854775807}", "9223372036854775807");
    INVALID("{'minimum':9223372036854775807}", "9223372036854775806");
    INVALID("{'exclusiveMinimum':9223372036854775807}", "9223372036854775807");
    VALID("{'exclusiveMinimum':9223372036854775807}", "9223372036854775808");
    VALID("{'maximum':-9223372036854775808}", "-9223372036854775808");
    INVALID("{'maximum':-9223372036854775808}", "-9223372036854775807");
    INVALID("{'exclusiveMaximum':-9223372036854775808}", "-9223372036854775808");
    VALID("{'exclusiveMaximum':-9223372036854775808}", "-9223372036854775809");
    INVALID("{'maximum':9223372036854775807}", "9223372036854775808");
    VALID("{'minimum':-9223372036854775808}", "9223372036854775807");
    INVALID("{'exclusiveMaximum':9223372036854775806}", "9223372036854775806");
    VALID("{'exclusiveMaximum':9223372036854775806}", "9223372036854775805");
}

TEST(bounds_with_fractions_and_exponents_are_exact)
{
    VALID("{'minimum':0.1}", "0.1");
    INVALID("{'minimum':0.1}", "0.09999999999999999999999");
    INVALID("{'exclusiveMinimum':0.1}", "1e-1");
    VALID("{'exclusiveMaximum':1e400}", "9.99e399");
    INVALID("{'maximum':1.5}", "2");
    VALID("{'maximum':1.5}", "1");
    VALID("{'minimum':-1.5,'maximum':-0.5}", "-1");
    VALID("{'exclusiveMinimum':1}", "1.0000000000000000000001");
    INVALID("{'exclusiveMinimum':1}", "1.0");
    INVALID("{'exclusiveMaximum':1}", "1.0");
}

TEST(multiples_are_exact)
{
    VALID("{'multipleOf':0.01}", "0.1");
    VALID("{'multipleOf':0.0001}", "0.0075");
    INVALID("{'multipleOf':0.0001}", "0.00751");
    VALID("{'multipleOf':0.1}", "0.3");
    VALID("{'multipleOf':1e-8}", "12391239123");
    VALID("{'multipleOf':3}", "-9");
    INVALID("{'multipleOf':3}", "-8");
    VALID("{'multipleOf':3}", "9.0");
    VALID("{'multipleOf':3}", "0");
    VALID("{'multipleOf':9223372036854775807}", "-9223372036854775807");
    INVALID("{'multipleOf':9223372036854775807}", "-9223372036854775808");
    VALID("{'multipleOf':1e300}", "1e301");
    INVALID("{'multipleOf':1e301}", "1e300");
    VALID("{'multipleOf':123456789012345678901234567890}", "370370367037037036703703703670");
    INVALID("{'multipleOf':123456789012345678901234567890}", "370370367037037036703703703671");
}

TEST(draft_04_excludes_a_bound_with_a_boolean)
{
    const peg_schema_options draft4 = {PEG_SCHEMA_OPTIONS_INIT, .dialect = PEG_DIALECT_DRAFT4};

    CHECK_INT(check_with("{'minimum':1,'exclusiveMinimum':true}", &draft4, "1"), PEG_INVALID);
    CHECK_INT(check_with("{'minimum':1,'exclusiveMinimum':false}", &draft4, "1"), PEG_VALID);
    CHECK_INT(check_with("{'maximum':1,'exclusiveMaximum':true}", &draft4, "1"), PEG_INVALID);
    CHECK_INT(check_with("{'exclusiveMaximum':true}", &draft4, "1"), PEG_VALID);
}

/* ---- strings ----------------------------------------------------------------------------- */

TEST(lengths_count_code_points)
{
    VALID("{'maxLength':1}", "'\xf0\x9f\x92\xa9'");
    VALID("{'maxLength':1}", "'\\ud83d\\udca9'");
    INVALID("{'minLength':2}", "'\xf0\x9f\x92\xa9'");
    VALID("{'minLength':2,'maxLength':2}", "'e\xcc\x81'");
    INVALID("{'maxLength':1}", "'e\xcc\x81'");
    VALID("{'minLength':0,'maxLength':0}", "''");
    INVALID("{'minLength':1}", "''");
    VALID("{'minLength':3,'maxLength':3}", "'\\u0000a\\u0000'");
    VALID("{'minLength':2.0}", "'ab'");
    INVALID("{'minLength':1e10}", "'ab'");
    VALID("{'maxLength':1e10}", "'ab'");
}

TEST(lengths_of_long_strings_are_exact)
{
    for (unsigned n = 1; n <= 70; n++) {
        struct peg__buf text = PEG__BUF(4096);
        char schema[64];

        peg__buf_putc(&text, '\'');
        for (unsigned i = 0; i < n; i++)
            peg__buf_puts(&text, i % 2 ? "\xc3\xa9" : "\xe2\x82\xac");
        peg__buf_putc(&text, '\'');
        snprintf(schema, sizeof(schema), "{'minLength':%u,'maxLength':%u}", n, n);
        VALID(schema, text.ptr);
        snprintf(schema, sizeof(schema), "{'minLength':%u}", n + 1);
        INVALID(schema, text.ptr);
        snprintf(schema, sizeof(schema), "{'maxLength':%u}", n - 1);
        INVALID(schema, text.ptr);
        peg__buf_free(&text);
    }
}

TEST(format_is_asserted_by_dialect_or_by_option)
{
    const peg_schema_options draft7 = {PEG_SCHEMA_OPTIONS_INIT, .dialect = PEG_DIALECT_DRAFT7};
    const peg_schema_options ignoring = {PEG_SCHEMA_OPTIONS_INIT, .dialect = PEG_DIALECT_DRAFT7,
                                         .format = PEG_FORMAT_IGNORE};
    const peg_schema_options asserting = {PEG_SCHEMA_OPTIONS_INIT, .format = PEG_FORMAT_ASSERT};
    const char *schema = "{'format':'ipv4'}";

    CHECK_INT(check_with(schema, NULL, "'x'"), PEG_VALID);
    CHECK_INT(check_with(schema, &asserting, "'x'"), PEG_INVALID);
    CHECK_INT(check_with(schema, &draft7, "'x'"), PEG_INVALID);
    CHECK_INT(check_with(schema, &ignoring, "'x'"), PEG_VALID);
    CHECK_INT(check_with(schema, &asserting, "5"), PEG_VALID);
    CHECK_INT(check_with("{'format':'no-such-format'}", &asserting, "'x'"), PEG_VALID);
}

TEST(draft_07_looks_into_content)
{
    const peg_schema_options draft7 = {PEG_SCHEMA_OPTIONS_INIT, .dialect = PEG_DIALECT_DRAFT7};
    const char *schema = "{'contentEncoding':'base64','contentMediaType':'application/json'}";

    CHECK_INT(check_with(schema, &draft7, "'eyJhIjoxfQ=='"), PEG_VALID);
    CHECK_INT(check_with(schema, &draft7, "'eyJhIjox'"), PEG_INVALID);
    CHECK_INT(check_with(schema, &draft7, "'===='"), PEG_INVALID);
    CHECK_INT(check_with(schema, &draft7, "'!'"), PEG_INVALID);
    CHECK_INT(check_with(schema, &draft7, "5"), PEG_VALID);
    CHECK_INT(check_with("{'contentEncoding':'base64'}", &draft7, "''"), PEG_VALID);
    CHECK_INT(check_with(schema, NULL, "'!'"), PEG_VALID);
}

/* ---- enum and const ------------------------------------------------------------------------ */

TEST(an_enum_of_every_kind_accepts_exactly_its_values)
{
    const char *schema = "{'enum':[null,true,1,2.5,'a','',[1,'x'],{'a':1,'b':[2]}]}";
    static const char *const in[] = {"null",  "true", "1",  "1.0",       "2.5",
                                     "25e-1", "'a'",  "''", "[1.0,'x']", "{'b':[2.0],'a':1}"};
    static const char *const out[] = {"false", "0",       "2",  "'b'",     "[]",
                                      "[1]",   "['x',1]", "{}", "{'a':1}", "{'a':1,'b':[3]}"};

    for (size_t i = 0; i < sizeof(in) / sizeof(*in); i++)
        VALID(schema, in[i]);
    for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++)
        INVALID(schema, out[i]);
}

TEST(enums_of_one_kind_refuse_the_others)
{
    INVALID("{'enum':['1']}", "1");
    INVALID("{'enum':[1]}", "'1'");
    INVALID("{'enum':[false]}", "true");
    VALID("{'enum':[false,true]}", "true");
    INVALID("{'enum':[null]}", "false");
    INVALID("{'enum':[]}", "null");
    INVALID("{'enum':[[]]}", "{}");
    VALID("{'enum':['a','a']}", "'a'");
    VALID("{'type':'string','enum':['a',1]}", "'a'");
    INVALID("{'type':'string','enum':['a',1]}", "1");
}

TEST(a_large_enum_finds_numbers_in_any_spelling_and_containers_in_any_order)
{
    struct peg__buf text = BIG_TEXT;
    peg_schema *schema;
    static const char *const in[] = {"0", "4999.0", "25e2", "{'b':4000,'a':[4000]}", "'s123'"};
    static const char *const out[] = {"5000", "0.5", "{'a':[4000],'b':4001}", "'s'", "null"};

    peg__buf_puts(&text, "{\"enum\":[");
    for (int i = 0; i < 5000; i++)
        peg__buf_printf(&text, "%s%d,\"s%d\",{\"a\":[%d],\"b\":%d}", i ? "," : "", i, i, i, i);
    peg__buf_puts(&text, "]}");
    schema = compiled_buf(&text);
    for (int i = 0; i < 10; i++) {
        peg_json_doc *doc = parsed(i < 5 ? in[i] : out[i - 5]);

        CHECK_INT(verdict_on(schema, peg_json_root(doc)), i < 5 ? PEG_VALID : PEG_INVALID);
        peg_json_doc_free(doc);
    }
    peg_schema_unref(schema);
}

/* ---- arrays -------------------------------------------------------------------------------- */

TEST(equal_items_are_found_in_any_spelling)
{
    INVALID("{'uniqueItems':true}", "[1,1.0]");
    INVALID("{'uniqueItems':true}", "[{'a':1,'b':[{'c':2,'d':3}]},{'b':[{'d':3,'c':2}],'a':1.0}]");
    VALID("{'uniqueItems':true}", "[1,true,'1',[1],{'a':1},null,0,false,'',[],{}]");
    VALID("{'uniqueItems':true}", "[[1,2],[2,1]]");
    VALID("{'uniqueItems':true}", "[{'a':1},{'a':2},{'b':1}]");
    INVALID("{'uniqueItems':true}", "['a','\\u0061']");
    VALID("{'uniqueItems':false}", "[1,1]");
    INVALID("{'uniqueItems':true}", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,1]");
}

VOLUME_TEST(a_hundred_thousand_items_are_compared_quickly)
{
    for (int twice = 0; twice < 2; twice++) {
        struct peg__buf text = BIG_TEXT;
        peg_schema *schema = compiled("{'uniqueItems':true}");
        peg_json_doc *doc;

        peg__buf_puts(&text, "[[-1]");
        for (int i = 0; i < 100000; i++)
            peg__buf_printf(&text, ",{\"n\":%d}", i);
        peg__buf_puts(&text, twice ? ",[-1]]" : "]");
        doc = parsed_buf(&text);
        CHECK_INT(verdict_on(schema, peg_json_root(doc)), twice ? PEG_INVALID : PEG_VALID);
        peg_json_doc_free(doc);
        peg_schema_unref(schema);
    }
}

TEST(contains_counts_between_its_bounds)
{
    INVALID("{'contains':{'type':'string'}}", "[1,2]");
    INVALID("{'contains':true}", "[]");
    VALID("{'contains':{'type':'string'},'minContains':0}", "[]");
    INVALID("{'contains':{'type':'string'},'minContains':2}", "['a',1]");
    VALID("{'contains':{'type':'string'},'minContains':2}", "['a',1,'b']");
    INVALID("{'contains':{'type':'string'},'maxContains':1}", "['a',1,'b']");
    VALID("{'contains':{'type':'string'},'maxContains':1}", "['a',1]");
    INVALID("{'contains':{'type':'string'},'minContains':0,'maxContains':0}", "['a']");
    INVALID("{'contains':{'type':'string'},'minContains':3,'maxContains':1}", "['a','b']");
    VALID("{'minContains':5}", "[]");
}

TEST(prefix_items_and_items_share_an_array)
{
    const char *schema = "{'prefixItems':[{'type':'string'},{'type':'integer'}],'items':false}";
    const peg_schema_options draft7 = {PEG_SCHEMA_OPTIONS_INIT, .dialect = PEG_DIALECT_DRAFT7};
    const char *old = "{'items':[{'type':'string'}],'additionalItems':{'type':'null'}}";

    VALID(schema, "[]");
    VALID(schema, "['a',1]");
    INVALID(schema, "['a',1,2]");
    INVALID(schema, "[1]");
    CHECK_INT(check_with(old, &draft7, "['a',null]"), PEG_VALID);
    CHECK_INT(check_with(old, &draft7, "['a',1]"), PEG_INVALID);
}

/* ---- objects ----------------------------------------------------------------------------------
 */

TEST(members_are_matched_by_name_then_pattern_then_the_rest)
{
    const char *schema = "{'properties':{'ab':{'type':'string'}},'patternProperties':{"
                         "'^a':{'minLength':2},'b$':{'maxLength':3}},"
                         "'additionalProperties':{'type':'integer'}}";

    VALID(schema, "{'ab':'xyz','a':'xx','b':'','c':1}");
    INVALID(schema, "{'ab':'x'}");
    INVALID(schema, "{'ab':'wxyz'}");
    INVALID(schema, "{'ab':12}");
    INVALID(schema, "{'a':'x'}");
    INVALID(schema, "{'c':'x'}");
}

TEST(required_holds_with_and_without_properties_and_for_every_number_of_names)
{
    for (int n = 0; n <= 40; n++) {
        struct peg__buf schema = BIG_TEXT;
        struct peg__buf all = BIG_TEXT;
        peg_schema *compiled_schema;
        peg_json_doc *doc;

        peg__buf_puts(&schema, "{\"required\":[");
        peg__buf_puts(&all, "{\"x\":0");
        for (int i = 0; i < n; i++) {
            peg__buf_printf(&schema, "%s\"name%d\"", i ? "," : "", i);
            if (i > 0)
                peg__buf_printf(&all, ",\"name%d\":1", i);
        }
        peg__buf_puts(&schema, n % 2 ? "]}" : "],\"properties\":{\"name1\":{\"const\":1}}}");
        peg__buf_putc(&all, '}');
        compiled_schema = compiled_buf(&schema);
        doc = parsed_buf(&all);
        CHECK_INT(verdict_on(compiled_schema, peg_json_root(doc)), n ? PEG_INVALID : PEG_VALID);
        peg_json_doc_free(doc);
        peg_schema_unref(compiled_schema);
    }
    VALID("{'required':['a','a']}", "{'a':1}");
    INVALID("{'required':['a','a'],'properties':{'a':true}}", "{}");
    INVALID("{'required':['__proto__','toString']}", "{}");
}

TEST(large_objects_are_checked_to_the_last_member)
{
    static const int sizes[] = {15, 16, 17, 64, 65, 1000, 1001, 5000};

    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        struct peg__buf schema_text = BIG_TEXT;
        struct peg__buf good = BIG_TEXT;
        struct peg__buf bad = BIG_TEXT;
        peg_schema *schema;
        peg_json_doc *doc;

        peg__buf_puts(&schema_text, "{\"additionalProperties\":false,\"properties\":{");
        for (int i = 0; i < sizes[s]; i++) {
            peg__buf_printf(&schema_text, "%s\"member%d\":{\"const\":%d}", i ? "," : "", i, i);
            peg__buf_printf(&good, "%s\"member%d\":%d", i ? "," : "{", i, i);
            peg__buf_printf(&bad, "%s\"member%d\":%d", i ? "," : "{", i,
                            i == sizes[s] - 1 ? -1 : i);
        }
        peg__buf_puts(&schema_text, "}}");
        peg__buf_putc(&good, '}');
        peg__buf_putc(&bad, '}');
        schema = compiled_buf(&schema_text);
        doc = parsed_buf(&good);
        CHECK_INT(verdict_on(schema, peg_json_root(doc)), PEG_VALID);
        peg_json_doc_free(doc);
        doc = parsed_buf(&bad);
        CHECK_INT(verdict_on(schema, peg_json_root(doc)), PEG_INVALID);
        peg_json_doc_free(doc);
        peg_schema_unref(schema);
    }
}

TEST(names_are_checked_as_strings)
{
    VALID("{'propertyNames':{'pattern':'^[a-z]+$'}}", "{'abc':1}");
    INVALID("{'propertyNames':{'pattern':'^[a-z]+$'}}", "{'abc':1,'X':2}");
    INVALID("{'propertyNames':{'maxLength':2}}", "{'abc':1}");
    VALID("{'propertyNames':false}", "{}");
    INVALID("{'propertyNames':false}", "{'a':1}");
    INVALID("{'propertyNames':{'enum':['a','b']}}", "{'a':1,'c':2}");
    INVALID("{'propertyNames':{'type':'integer'}}", "{'1':1}");
}

TEST(dependencies_of_all_kinds_hold)
{
    const peg_schema_options draft7 = {PEG_SCHEMA_OPTIONS_INIT, .dialect = PEG_DIALECT_DRAFT7};
    const peg_schema_options v1 = {PEG_SCHEMA_OPTIONS_INIT, .dialect = PEG_DIALECT_V1};
    const char *old = "{'dependencies':{'a':['b','c'],'x':{'required':['y']},'z':false}}";
    const char *by_value = "{'propertyDependencies':{'kind':{'car':{'required':['wheels']}}}}";

    INVALID("{'dependentRequired':{'a':['b','c']}}", "{'a':1,'b':2}");
    VALID("{'dependentRequired':{'a':['b','c']}}", "{'a':1,'b':2,'c':3}");
    VALID("{'dependentRequired':{'a':['b','c']}}", "{'b':2}");
    INVALID("{'dependentSchemas':{'a':{'properties':{'b':{'type':'string'}}}}}", "{'a':1,'b':2}");
    VALID("{'dependentSchemas':{'a':{'properties':{'b':{'type':'string'}}}}}", "{'b':2}");
    CHECK_INT(check_with(old, &draft7, "{'a':1,'b':1}"), PEG_INVALID);
    CHECK_INT(check_with(old, &draft7, "{'x':1}"), PEG_INVALID);
    CHECK_INT(check_with(old, &draft7, "{'z':1}"), PEG_INVALID);
    CHECK_INT(check_with(old, &draft7, "{'a':1,'b':1,'c':1,'x':1,'y':1}"), PEG_VALID);
    CHECK_INT(check_with(by_value, &v1, "{'kind':'car'}"), PEG_INVALID);
    CHECK_INT(check_with(by_value, &v1, "{'kind':'boat'}"), PEG_VALID);
    CHECK_INT(check_with(by_value, &v1, "{'kind':1}"), PEG_VALID);
}

TEST(counts_of_members_and_items_hold)
{
    INVALID("{'minProperties':1}", "{}");
    INVALID("{'maxProperties':1}", "{'a':1,'b':2}");
    INVALID("{'minItems':1}", "[]");
    INVALID("{'maxItems':1}", "[1,2]");
    VALID("{'minItems':1,'minProperties':1}", "'x'");
}

/* ---- combinations ------------------------------------------------------------------------------
 */

TEST(combinations_hold)
{
    const char *one = "{'oneOf':[{'multipleOf':2},{'multipleOf':3}]}";

    VALID(one, "4");
    VALID(one, "9");
    INVALID(one, "6");
    INVALID(one, "7");
    VALID("{'anyOf':[{'multipleOf':2},{'multipleOf':3}]}", "6");
    INVALID("{'anyOf':[{'multipleOf':2},{'multipleOf':3}]}", "7");
    INVALID("{'allOf':[{'multipleOf':2},{'multipleOf':3}]}", "4");
    INVALID("{'not':{'multipleOf':2}}", "4");
    VALID("{'not':{'not':{'multipleOf':2}}}", "4");
    INVALID("{'not':{}}", "null");
}

TEST(if_decides_between_then_and_else)
{
    const char *schema = "{'if':{'type':'string'},'then':{'minLength':2},'else':{'minimum':5}}";

    VALID(schema, "'ab'");
    INVALID(schema, "'a'");
    VALID(schema, "5");
    INVALID(schema, "4");
    VALID("{'if':false,'then':false}", "1");
    VALID("{'if':true,'else':false}", "1");
    VALID("{'then':false,'else':false}", "1");
}

TEST(branches_that_a_type_decides_are_chosen_by_type)
{
    const char *schema = "{'anyOf':[{'type':'string','minLength':2},{'type':'integer','minimum':3},"
                         "{'type':'null'},{'type':'object','required':['a']}]}";

    VALID(schema, "'ab'");
    INVALID(schema, "'a'");
    VALID(schema, "3");
    INVALID(schema, "2");
    INVALID(schema, "3.5");
    VALID(schema, "3.0");
    VALID(schema, "null");
    INVALID(schema, "{}");
    VALID(schema, "{'a':1}");
    INVALID(schema, "[]");
    INVALID(schema, "true");
}

TEST(branches_told_apart_by_a_member_are_chosen_by_it)
{
    const char *schema =
        "{'oneOf':[{'type':'object','properties':{'kind':{'const':'a'},'x':{'type':'integer'}},"
        "'required':['kind','x']},{'type':'object','properties':{'kind':{'const':'b'},"
        "'y':{'type':'string'}},'required':['kind','y']},{'type':'object','properties':{"
        "'kind':{'enum':['c','d']}},'required':['kind']}]}";

    VALID(schema, "{'kind':'a','x':1}");
    VALID(schema, "{'y':'s','kind':'b'}");
    VALID(schema, "{'kind':'d'}");
    INVALID(schema, "{'kind':'a','y':'s'}");
    INVALID(schema, "{'kind':'a','x':'s'}");
    INVALID(schema, "{'kind':'e','x':1,'y':'s'}");
    INVALID(schema, "{'kind':1}");
    INVALID(schema, "{'x':1}");
    INVALID(schema, "{}");
    INVALID(schema, "'a'");
}

TEST(a_member_that_two_branches_share_tells_nothing)
{
    const char *schema = "{'oneOf':[{'properties':{'k':{'const':'a'}},'required':['k','x']},"
                         "{'properties':{'k':{'const':'a'}},'required':['k','y']},"
                         "{'properties':{'k':{'const':'b'}},'required':['k']}]}";
    const char *optional = "{'oneOf':[{'properties':{'k':{'const':'a'}}},"
                           "{'properties':{'k':{'const':'b'}},'required':['z']}]}";

    VALID(schema, "{'k':'a','x':1}");
    VALID(schema, "{'k':'a','y':1}");
    INVALID(schema, "{'k':'a','x':1,'y':1}");
    INVALID(schema, "{'k':'a'}");
    VALID(schema, "{'k':'b'}");
    VALID(optional, "{}");
    INVALID(optional, "{'z':1}");
    VALID(optional, "{'k':'b','z':1}");
    INVALID(optional, "{'k':'b'}");
    INVALID(optional, "5");
}

/* ---- limits
 * -------------------------------------------------------------------------------------- */

TEST(each_limit_is_told_by_name)
{
    check_limit("{'items':{'$ref':'#'},'minItems':1}", "[[[[[[1]]]]]]",
                (peg_checker_options){PEG_CHECKER_OPTIONS_INIT, .max_depth = 2}, PEG_UNDECIDED,
                "max_depth");
    check_limit("{'items':{'items':{'uniqueItems':true}}}", "[[[],[]],[[],[]]]",
                (peg_checker_options){PEG_CHECKER_OPTIONS_INIT, .max_steps = 2}, PEG_UNDECIDED,
                "max_steps");
    check_limit("{'pattern':'^(?=(a+)+$)'}", "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!'",
                (peg_checker_options){PEG_CHECKER_OPTIONS_INIT, .match_limit = 50}, PEG_UNDECIDED,
                "match_limit");
    check_limit("{'patternProperties':{'^(?=(a+)+$)':true}}",
                "{'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!':1}",
                (peg_checker_options){PEG_CHECKER_OPTIONS_INIT, .match_limit = 50}, PEG_UNDECIDED,
                "match_limit");
    check_limit("{'items':{'minimum':1}}", "[1,1]",
                (peg_checker_options){PEG_CHECKER_OPTIONS_INIT, .max_steps = 100}, PEG_VALID, "");
}

TEST(a_limit_inside_a_branch_is_not_taken_for_a_failure)
{
    const peg_checker_options few = {PEG_CHECKER_OPTIONS_INIT, .match_limit = 50};
    static const char *const schemas[] = {
        "{'not':{'pattern':'^(?=(a+)+$)'}}",
        "{'anyOf':[{'pattern':'^(?=(a+)+$)'},{'type':'null'},{'const':5}]}",
        "{'oneOf':[{'pattern':'^(?=(a+)+$)'},true]}",
        "{'if':{'pattern':'^(?=(a+)+$)'},'then':true,'else':false}",
    };

    for (size_t i = 0; i < sizeof(schemas) / sizeof(*schemas); i++)
        check_limit(schemas[i], "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!'", few, PEG_UNDECIDED,
                    "match_limit");
    check_limit("{'contains':{'pattern':'^(?=(a+)+$)'}}",
                "['aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!']", few, PEG_UNDECIDED, "match_limit");
}

TEST(a_checker_serves_any_schema_and_recovers_from_a_limit)
{
    peg_schema *slow = compiled("{'pattern':'^(?=(a+)+$)'}");
    peg_schema *simple = compiled("{'type':'string','minLength':3}");
    peg_schema *tracked = compiled("{'anyOf':[{'properties':{'a':true}},true],"
                                   "'unevaluatedProperties':false}");
    peg_json_doc *text = parsed("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!'");
    peg_json_doc *object = parsed("{'b':1}");
    peg_checker *checker = new_checker();

    for (int i = 0; i < 3; i++) {
        CHECK_INT(peg_schema_check(slow, checker, peg_json_root(text)), PEG_UNDECIDED);
        CHECK_STR(peg__str(peg_checker_reason(checker)), "match_limit");
        CHECK_INT(peg_schema_check(simple, checker, peg_json_root(text)), PEG_VALID);
        CHECK_STR(peg__str(peg_checker_reason(checker)), "");
        CHECK_INT(peg_schema_check(tracked, checker, peg_json_root(object)), PEG_INVALID);
        CHECK_INT(peg_schema_check(tracked, checker, peg_json_root(text)), PEG_VALID);
    }
    peg_checker_free(checker);
    peg_json_doc_free(text);
    peg_json_doc_free(object);
    peg_schema_unref(slow);
    peg_schema_unref(simple);
    peg_schema_unref(tracked);
}

/* ---- memory
 * ----------------------------------------------------------------------------------------- */

/* Uses all that needs scratch memory: marks, hashes of items, matches, decoded content. */
static const char thirsty[] =
    "{'properties':{'list':{'uniqueItems':true,'contains':{'const':3}},"
    "'text':{'pattern':'^(a|b)*c(?=d)'},'tree':{'$ref':'#'}},"
    "'anyOf':[{'required':['list']},{'properties':{'x':true}}],"
    "'allOf':[{'patternProperties':{'^t.*[te]$':true}}],'unevaluatedProperties':false}";
static const char drink[] = "{'list':[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,[16]],'text':'abcd',"
                            "'tree':{'list':[3,[1],[2],[3],[4],[5],[6],[7],[8],[9],[0],[10]]}}";

TEST(a_warm_checker_allocates_nothing)
{
    peg_schema *schema = compiled(thirsty);
    peg_json_doc *doc = parsed(drink);
    peg_checker *checker = new_checker();
    size_t live;

    CHECK_INT(peg_schema_check(schema, checker, peg_json_root(doc)), PEG_VALID);
    live = peg__mem_live();
    for (int i = 0; i < 10; i++) {
        peg__mem_fail_at(1);
        CHECK_INT(peg_schema_check(schema, checker, peg_json_root(doc)), PEG_VALID);
        peg__mem_fail_at(0);
        CHECK_INT(peg__mem_live(), live);
    }
    peg_checker_free(checker);
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
}

static peg_status check_thirsty(const peg_schema *schema, const peg_json *value)
{
    peg_checker *checker = NULL;
    peg_status status = peg_checker_new(NULL, &checker, NULL);

    if (status)
        return status;
    switch (peg_schema_check(schema, checker, value)) {
    case PEG_VALID:
        break;
    case PEG_INVALID:
        status = PEG_ESCHEMA;
        break;
    case PEG_UNDECIDED:
        status = strcmp(peg_checker_reason(checker), "memory") ? PEG_ELIMIT : PEG_ENOMEM;
        break;
    }
    peg_checker_free(checker);
    return status;
}

TORTURE(checking_survives_any_allocation_failure)
{
    peg_schema *schema = NULL;
    peg_json_doc *doc = NULL;
    peg_status status = peg_schema_compile(peg__str(json(thirsty)), NULL, &schema, NULL);

    if (!status)
        status = peg_json_parse(peg__str(json(drink)), NULL, &doc, NULL);
    if (!status)
        status = check_thirsty(schema, peg_json_root(doc));
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
    return status;
}

TEST(an_absent_value_is_checked_as_null)
{
    const struct {
        const char *schema;
        peg_verdict verdict;
    } cases[] = {{"{\"type\":\"null\"}", PEG_VALID}, {"{\"type\":\"object\"}", PEG_INVALID}};
    peg_json_doc *filled = NULL;
    peg_checker *checker = NULL;
    peg_report *report = NULL;
    peg_error error;

    CHECK_STATUS(peg_checker_new(NULL, &checker, &error), PEG_OK, error);
    CHECK_STATUS(peg_report_new(&report, &error), PEG_OK, error);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        peg_schema *schema = NULL;

        CHECK_STATUS(peg_schema_compile(peg_cstr(cases[i].schema), NULL, &schema, &error), PEG_OK,
                     error);
        CHECK_INT(peg_schema_check(schema, checker, NULL), cases[i].verdict);
        CHECK_INT(peg_schema_report(schema, checker, NULL, report), cases[i].verdict);
        CHECK_STATUS(peg_schema_fill(schema, NULL, &filled, &error), PEG_OK, error);
        CHECK(!filled);
        peg_schema_unref(schema);
    }
    peg_report_free(report);
    peg_checker_free(checker);
}
