/* SPDX-License-Identifier: Apache-2.0 */

/* What a report says, to the word: a language model has to correct its call by it. */

#include "fixture.h"

/* ---- fixture ---------------------------------------------------------------------- */

struct reported {
    peg_schema *schema;
    peg_json_doc *doc;
    peg_checker *checker;
    peg_report *report;
};

static struct reported report_with(const char *schema_text, const peg_schema_options *options,
                                   const char *instance_text)
{
    struct reported r = {.schema = compiled_with(schema_text, options),
                         .doc = parsed(instance_text),
                         .checker = new_checker(),
                         .report = new_report()};
    const peg_verdict verdict = peg_schema_check(r.schema, r.checker, peg_json_root(r.doc));

    CHECK_INT(peg_schema_report(r.schema, r.checker, peg_json_root(r.doc), r.report), verdict);
    for (size_t i = 0; i < peg_report_len(r.report); i++)
        look_at_failure(peg_report_at(r.report, i));
    return r;
}

static void reported_free(struct reported *r)
{
    peg_report_free(r->report);
    peg_checker_free(r->checker);
    peg_json_doc_free(r->doc);
    peg_schema_unref(r->schema);
}

/* All of it, with pointers. Quotes may be ' in `text`, so those in messages are not told apart. */
static void check_text(const char *schema_text, const char *instance_text, const char *text)
{
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .format = PEG_FORMAT_ASSERT};
    struct reported r = report_with(schema_text, &options, instance_text);
    struct peg__buf simple = PEG__BUF(1 << 16);

    peg__buf_str(&simple, peg_report_text(r.report));
    for (size_t i = 0; i < simple.len; i++)
        if (simple.ptr[i] == '"')
            simple.ptr[i] = '\'';
    CHECK_STR(peg__buf_view(&simple), text);
    peg__buf_free(&simple);
    reported_free(&r);
}

/* ---- sentences ---------------------------------------------------------------------------- */

TEST(types_are_told_with_what_stands_there)
{
    check_text("{'type':'string'}", "5", "must be a string, but is an integer: 5\n");
    check_text("{'type':'integer'}", "1.5", "must be an integer, but is a number: 1.5\n");
    check_text("{'type':['string','null']}", "true",
               "must be a string or null, but is a boolean: true\n");
    check_text("{'type':['array','object','number']}", "null",
               "must be an array, an object or a number, but is null\n");
    check_text("{'type':'object'}", "[1]", "must be an object, but is an array\n");
}

TEST(missing_and_unknown_members_are_named)
{
    check_text("{'required':['city']}", "{}", "the member 'city' is missing; add it\n");
    check_text("{'properties':{'city':true,'unit':true},'additionalProperties':false}",
               "{'ctiy':1}", "the member 'ctiy' is not allowed here; did you mean 'city'?\n");
    check_text("{'properties':{'city':true,'unit':true},'additionalProperties':false}",
               "{'wholly_other':1}",
               "the member 'wholly_other' is not allowed here; known are 'city', 'unit'\n");
    check_text("{'additionalProperties':false}", "{'a':1}", "the member 'a' is not allowed here\n");
    check_text("{'dependentRequired':{'a':['b']}}", "{'a':1}",
               "the member 'b' is missing, which 'a' asks for; add it\n");
    check_text("{'allOf':[true],'properties':{'city':true},'unevaluatedProperties':false}",
               "{'City':1}", "the member 'City' is not allowed here; did you mean 'city'?\n");
}

TEST(a_name_that_is_there_already_was_not_meant)
{
    check_text("{'properties':{'city':true},'additionalProperties':false}", "{'city':1,'cityy':2}",
               "the member 'cityy' is not allowed here; known are 'city'\n");
    check_text("{'properties':{'a':true,'b':true},'additionalProperties':false}", "{'c':2}",
               "the member 'c' is not allowed here; known are 'a', 'b'\n");
}

TEST(choices_are_listed)
{
    check_text("{'enum':['a','b',3]}", "'c'", "must be one of 'a', 'b', 3, but is 'c'\n");
    check_text("{'enum':[1,2,3,4,5,6,7,8,9,10,11,12,13,14]}", "0",
               "must be one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, ... (14 in all), but is 0\n");
    check_text("{'const':{'a':1}}", "{'a':2}", "must be {'a':1}, but is {'a':2}\n");
}

TEST(bounds_are_told_with_the_value)
{
    check_text("{'minimum':5}", "4.5", "must be at least 5, but is 4.5\n");
    check_text("{'maximum':5}", "6", "must be at most 5, but is 6\n");
    check_text("{'exclusiveMinimum':5}", "5", "must be more than 5, but is 5\n");
    check_text("{'exclusiveMaximum':5}", "5", "must be less than 5, but is 5\n");
    check_text("{'multipleOf':0.5}", "0.7", "must be a multiple of 0.5, but is 0.7\n");
    check_text("{'minLength':2}", "'\xc3\xa9'", "must have at least 2 characters, but has 1\n");
    check_text("{'maxLength':1}", "'ab'", "must have at most 1 character, but has 2\n");
    check_text("{'minItems':1}", "[]", "must have at least 1 item, but has 0\n");
    check_text("{'maxProperties':1}", "{'a':1,'b':2}", "must have at most 1 member, but has 2\n");
}

TEST(patterns_and_formats_say_what_fits)
{
    check_text("{'pattern':'^a'}", "'b'", "must be text that matches the pattern ^a, but is 'b'\n");
    check_text("{'format':'date'}", "'31.5.2024'",
               "must be a date such as 2024-05-31, but is '31.5.2024'\n");
    check_text("{'format':'uuid'}", "'x'",
               "must be a UUID such as 123e4567-e89b-12d3-a456-426614174000, but is 'x'\n");
}

TEST(arrays_say_which_item)
{
    check_text("{'uniqueItems':true}", "[1,{'a':2},{'a':2.0}]",
               "must not have equal items, but has this one twice: {'a':2.0}\n");
    check_text("{'contains':{'type':'string'}}", "[1]",
               "must have at least 1 item that fits {'type':'string'}, but has none\n");
    check_text("{'contains':{'type':'string'},'minContains':2}", "['a']",
               "must have at least 2 items that fit {'type':'string'}\n");
    check_text("{'items':{'type':'integer'}}", "[1,'a',2,null]",
               "at /1: must be an integer, but is a string: 'a'\n"
               "at /3: must be an integer, but is null\n");
}

TEST(what_must_not_be_is_told)
{
    check_text("{'not':{'type':'integer'}}", "5",
               "must not fit {'type':'integer'}, but does; change it\n");
    check_text("{'properties':{'a':false}}", "{'a':1}",
               "at /a: nothing is allowed here; remove it\n");
    check_text("false", "1", "nothing is allowed here; remove it\n");
    check_text("{'oneOf':[{'type':'integer'},{'minimum':2}]}", "3",
               "must fit exactly one of 2 alternatives, but fits several; remove what makes it fit "
               "the others\n");
}

TEST(names_of_members_are_told_as_names)
{
    check_text("{'propertyNames':{'pattern':'^[a-z]+$'}}", "{'A/b~':1}",
               "at /A~1b~0: the name of this member must be text that matches the pattern "
               "^[a-z]+$, but is 'A/b~'\n");
    check_text("{'propertyNames':{'maxLength':2}}", "{'abc':1}",
               "at /abc: the name of this member must have at most 2 characters, but has 3\n");
    check_text("{'propertyNames':false}", "{'a':1}",
               "at /a: the name of this member is not allowed; remove the member\n");
}

/* ---- where ----------------------------------------------------------------------------------- */

TEST(a_failure_tells_all_its_parts)
{
    struct reported r = report_with("{'$defs':{'n':{'minimum':5}},'properties':{'a/b~c':{'items':{"
                                    "'$ref':'#/$defs/n'}}}}",
                                    NULL, "{'a/b~c':[7,3]}");
    const peg_failure *failure = peg_report_at(r.report, 0);

    CHECK_INT(peg_report_len(r.report), 1);
    CHECK_INT(peg_report_more(r.report), 0);
    CHECK(peg_report_at(r.report, 1) == NULL);
    CHECK_STR(failure->instance, "/a~1b~0c/1");
    CHECK_STR(failure->schema, "/$defs/n/minimum");
    CHECK_STR(failure->keyword, "minimum");
    CHECK_STR(failure->expected, "at least 5");
    CHECK_STR(failure->got, "3");
    CHECK_STR(failure->message, "must be at least 5, but is 3");
    reported_free(&r);
}

TEST(a_rule_in_another_document_is_told_with_its_uri)
{
    peg_schema_docs *docs = peg_schema_docs_new();
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .docs = docs};
    peg_json_doc *doc = parsed("{'$defs':{'s':{'type':'string'}}}");
    struct reported r;

    CHECK_INT(peg_schema_docs_add(docs, peg__str("http://x/y"), peg_json_root(doc), NULL), PEG_OK);
    r = report_with("{'$ref':'http://x/y#/$defs/s'}", &options, "1");
    CHECK_STR(peg_report_at(r.report, 0)->schema, "http://x/y#/$defs/s/type");
    reported_free(&r);
    peg_json_doc_free(doc);
    peg_schema_docs_free(docs);
}

/* ---- branches ---------------------------------------------------------------------------------
 */

/* The keyword and place of the last failure: what the chosen branch lacks. */
static void check_last(const char *schema_text, const char *instance_text, const char *schema_place)
{
    struct reported r = report_with(schema_text, NULL, instance_text);

    CHECK(peg_report_len(r.report) > 0);
    CHECK_STR(peg_report_at(r.report, peg_report_len(r.report) - 1)->schema, schema_place);
    reported_free(&r);
}

TEST(the_branch_of_the_right_type_is_reported)
{
    const char *schema = "{'anyOf':[{'type':'integer'},{'type':'object','required':['a']},"
                         "{'type':'string','minLength':3}]}";

    check_last(schema, "{}", "/anyOf/1/required");
    check_last(schema, "'x'", "/anyOf/2/minLength");
}

TEST(the_branch_of_the_right_constant_is_reported)
{
    const char *schema =
        "{'oneOf':[{'properties':{'kind':{'const':'a'},'x':{'type':'integer'}},"
        "'required':['kind','x']},{'properties':{'kind':{'const':'b'},'y':{'type':'integer'},"
        "'z':{'type':'integer'}},'required':['kind','y','z']}]}";

    check_last(schema, "{'kind':'b','x':1}", "/oneOf/1/required");
    check_last(schema, "{'kind':'b','y':'no','z':1}", "/oneOf/1/properties/y/type");
    check_last(schema, "{'kind':'a','x':'no','y':1,'z':2}", "/oneOf/0/properties/x/type");
}

TEST(the_branch_that_misses_fewest_members_is_reported)
{
    check_last("{'anyOf':[{'required':['a','b','c']},{'required':['d','e']},"
               "{'required':['f','g','h']}]}",
               "{'d':1}", "/anyOf/1/required");
}

/* ---- bounds ------------------------------------------------------------------------------------
 */

static struct reported report_of_items(int n)
{
    struct peg__buf text = PEG__BUF(1 << 20);
    struct reported r;

    peg__buf_putc(&text, '[');
    for (int i = 0; i < n; i++)
        peg__buf_puts(&text, i ? ",''" : "''");
    peg__buf_putc(&text, ']');
    r = report_with("{'items':{'type':'integer'}}", NULL, text.ptr);
    peg__buf_free(&text);
    return r;
}

TEST(a_report_keeps_32_failures_and_counts_the_others)
{
    static const int counts[] = {1, 31, 32, 33, 100};

    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        struct reported r = report_of_items(counts[i]);
        const size_t kept = counts[i] < 32 ? (size_t)counts[i] : 32;

        CHECK_INT(peg_report_len(r.report), kept);
        CHECK_INT(peg_report_more(r.report), (size_t)counts[i] - kept);
        if (counts[i] == 33)
            CHECK(strstr(peg_report_text(r.report).ptr, "\nand 1 more\n"));
        reported_free(&r);
    }
}

TEST(a_report_is_filled_anew_each_time)
{
    struct reported r = report_of_items(100);
    peg_json_doc *good = parsed("[1]");

    CHECK_INT(peg_schema_report(r.schema, r.checker, peg_json_root(good), r.report), PEG_VALID);
    CHECK_INT(peg_report_len(r.report), 0);
    CHECK_INT(peg_report_more(r.report), 0);
    CHECK_STR(peg_report_text(r.report), "");
    peg_json_doc_free(good);
    reported_free(&r);
}

/* Every length, so that the cut falls at every place of a character and of an escape. */
static void check_cuts(const char *unit)
{
    static const char *const schemas[] = {"{'type':'integer'}", "{'const':1}",
                                          "{'pattern':'^$','minLength':1000}", "{'enum':['a']}",
                                          "{'not':{'type':'string'}}"};

    for (size_t s = 0; s < sizeof(schemas) / sizeof(*schemas); s++)
        for (int pad = 0; pad < 8; pad++) {
            struct peg__buf text = PEG__BUF(4000);
            struct reported r;

            peg__buf_putc(&text, '\'');
            peg__buf_repeat(&text, 'x', (size_t)pad);
            for (int i = 0; i < 40; i++)
                peg__buf_puts(&text, unit);
            peg__buf_putc(&text, '\'');
            r = report_with(schemas[s], NULL, text.ptr);
            CHECK_INT(peg_report_len(r.report) >= 1, 1);
            CHECK(peg_report_at(r.report, 0)->got.len <= 64);
            peg__buf_free(&text);
            reported_free(&r);
        }
}

TEST(at_most_64_bytes_of_a_string_are_shown_cut_between_characters)
{
    check_cuts("a");
    check_cuts("\xc3\xa9");
    check_cuts("\xe2\x82\xac");
    check_cuts("\xf0\x9f\x92\xa9");
    check_cuts("\\u0001");
    check_cuts("\\\"");
    check_cuts("\\n\xf0\x9f\x92\xa9");
}

TEST(long_names_are_cut_and_control_characters_escaped)
{
    struct peg__buf text = PEG__BUF(4000);
    struct reported r;

    check_text("{'additionalProperties':false}", "{'a\\nb\\u001b':1}",
               "the member 'a\\u000ab\\u001b' is not allowed here\n");
    peg__buf_puts(&text, "{'");
    for (int i = 0; i < 300; i++)
        peg__buf_puts(&text, "\xe2\x82\xac");
    peg__buf_puts(&text, "':{'x\\ny':1}}");
    r = report_with("{'additionalProperties':{'additionalProperties':{'type':'string'}}}", NULL,
                    text.ptr);
    CHECK_INT(peg_report_len(r.report), 1);
    CHECK(!memchr(peg_report_text(r.report).ptr, '\n', peg_report_text(r.report).len - 1));
    reported_free(&r);
    r = report_with("{'additionalProperties':false}", NULL, text.ptr);
    CHECK(peg_report_at(r.report, 0)->got.len <= 66);
    CHECK(peg_report_at(r.report, 0)->message.len < 200);
    reported_free(&r);
    peg__buf_free(&text);
}

TEST(large_containers_are_described)
{
    struct peg__buf text = PEG__BUF(4000);
    struct reported r;

    peg__buf_puts(&text, "[0");
    for (int i = 0; i < 200; i++)
        peg__buf_puts(&text, ",1");
    peg__buf_putc(&text, ']');
    r = report_with("{'const':1}", NULL, text.ptr);
    CHECK_STR(peg_report_at(r.report, 0)->got, "an array of 201");
    reported_free(&r);
    peg__buf_free(&text);
}

/* ---- agreement
 * ----------------------------------------------------------------------------------- */

TEST(verdict_and_report_agree_where_a_limit_comes_after_a_failure)
{
    peg_schema *schema = compiled("{'properties':{'a':{'type':'string'},'b':{'$ref':'#/$defs/r'}},"
                                  "'$defs':{'r':{'allOf':[{'$ref':'#/$defs/r'}]}}}");
    peg_json_doc *both = parsed("{'a':1,'b':1}");
    peg_json_doc *late = parsed("{'b':1,'a':1}");

    CHECK_INT(verdict_on(schema, peg_json_root(both)), PEG_INVALID);
    CHECK_INT(verdict_on(schema, peg_json_root(late)), PEG_UNDECIDED);
    peg_json_doc_free(both);
    peg_json_doc_free(late);
    peg_schema_unref(schema);
}

/* ---- memory
 * ----------------------------------------------------------------------------------------- */

static peg_status report_once(const peg_schema *schema, const peg_json *value)
{
    peg_checker *checker = NULL;
    peg_report *report = NULL;
    peg_status status = peg_checker_new(NULL, &checker, NULL);

    if (!status)
        status = peg_report_new(&report, NULL);
    if (!status)
        switch (peg_schema_report(schema, checker, value, report)) {
        case PEG_VALID:
            status = PEG_ESCHEMA;
            break;
        case PEG_INVALID:
            status = peg_report_text(report).len ? PEG_OK : PEG_ENOMEM;
            break;
        case PEG_UNDECIDED:
            status = strcmp(peg_checker_reason(checker), "memory") ? PEG_ELIMIT : PEG_ENOMEM;
            break;
        }
    peg_report_free(report);
    peg_checker_free(checker);
    return status;
}

TORTURE(reporting_survives_any_allocation_failure)
{
    static const char schema_text[] =
        "{'properties':{'a':{'anyOf':[{'type':'integer','minimum':3},{'type':'string',"
        "'pattern':'^(x|y)+$'}]},'city':{'enum':['a','b']}},'required':['b','c','d','e','f'],"
        "'allOf':[{'propertyNames':{'maxLength':4}}],'unevaluatedProperties':false}";
    peg_schema *schema = NULL;
    peg_json_doc *doc = NULL;
    peg_status status = peg_schema_compile(peg__str(json(schema_text)), NULL, &schema, NULL);

    if (!status)
        status =
            peg_json_parse(peg__str(json("{'a':'z','city':'c','ctiy':[1,2]}")), NULL, &doc, NULL);
    if (!status)
        status = report_once(schema, peg_json_root(doc));
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
    return status;
}
