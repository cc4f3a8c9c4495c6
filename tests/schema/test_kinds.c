/* SPDX-License-Identifier: Apache-2.0 */

/* Instructions for members and items that their kind decides: which schemas get them, and that
 * nobody can tell from verdicts, reports and steps. */

#include "fixture.h"
#include "schema/compile/program.h"

#define POINT                                                                                      \
    "{'type':'object','properties':{'x':{'type':'number'},'y':{'type':'number'},"                  \
    "'label':{'type':'string'}},'required':['x','y'],'additionalProperties':false}"

/* The first instruction of a schema for values of a kind. */
static int first_op(const char *schema_text, peg_json_kind kind)
{
    peg_schema *schema = compiled(schema_text);
    const uint32_t pc = schema->nodes[schema->root].entry[kind];
    const int op = pc ? schema->code[pc].op : -1;

    peg_schema_unref(schema);
    return op;
}

/* The least max_steps with which a verdict is reached. */
static uint64_t steps_of(const char *schema_text, const char *instance_text)
{
    peg_schema *schema = compiled(schema_text);
    peg_json_doc *doc = parsed(instance_text);
    peg_verdict verdict = PEG_UNDECIDED;
    uint64_t steps = 0;

    while (verdict == PEG_UNDECIDED) {
        const peg_checker_options options = {PEG_CHECKER_OPTIONS_INIT, .max_steps = ++steps};
        peg_checker *checker = NULL;

        CHECK_INT(peg_checker_new(&options, &checker, NULL), PEG_OK);
        verdict = peg_schema_check(schema, checker, peg_json_root(doc));
        peg_checker_free(checker);
    }
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
    return steps;
}

/* Where the failures are, each followed by a blank. */
static void check_places(const char *schema_text, const char *instance_text, const char *expected)
{
    peg_schema *schema = compiled(schema_text);
    peg_json_doc *doc = parsed(instance_text);
    peg_checker *checker = new_checker();
    peg_report *report = new_report();
    struct peg__buf places = PEG__BUF(4096);

    CHECK_INT(peg_schema_report(schema, checker, peg_json_root(doc), report), PEG_INVALID);
    for (size_t i = 0; i < peg_report_len(report); i++) {
        const peg_str place = peg_report_at(report, i)->instance;

        peg__buf_add(&places, place.ptr, place.len);
        peg__buf_putc(&places, ' ');
    }
    CHECK_STR(peg__buf_view(&places), expected);
    peg__buf_free(&places);
    peg_report_free(report);
    peg_checker_free(checker);
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
}

/* ---- which instruction ------------------------------------------------------------------ */

TEST(items_of_one_type_maps_and_records_have_instructions_of_their_own)
{
    CHECK_INT(first_op("{'items':{'type':'string'}}", PEG_JSON_ARRAY), OP_ITEMS_OF_KINDS);
    CHECK_INT(first_op("{'items':{'type':['null','integer']}}", PEG_JSON_ARRAY), OP_ITEMS_OF_KINDS);
    CHECK_INT(first_op("{'additionalProperties':{'type':'string'}}", PEG_JSON_OBJECT),
              OP_MAP_OF_KINDS);
    CHECK_INT(first_op(POINT, PEG_JSON_OBJECT), OP_RECORD);
    CHECK_INT(first_op("{'items':" POINT "}", PEG_JSON_ARRAY), OP_ITEMS_RECORDS);
}

TEST(a_reference_to_a_type_is_a_type)
{
    CHECK_INT(
        first_op("{'$defs':{'s':{'type':'string'}},'items':{'$ref':'#/$defs/s'}}", PEG_JSON_ARRAY),
        OP_ITEMS_OF_KINDS);
    CHECK_INT(first_op("{'$defs':{'s':{'type':'string'}},"
                       "'additionalProperties':{'$ref':'#/$defs/s'}}",
                       PEG_JSON_OBJECT),
              OP_MAP_OF_KINDS);
    CHECK_INT(first_op("{'$defs':{'p':" POINT "},'items':{'$ref':'#/$defs/p'}}", PEG_JSON_ARRAY),
              OP_ITEMS_RECORDS);
}

TEST(what_a_kind_alone_does_not_decide_keeps_the_general_instruction)
{
    CHECK_INT(first_op("{'items':{'type':'string','minLength':1}}", PEG_JSON_ARRAY), OP_ITEMS);
    CHECK_INT(first_op("{'additionalProperties':{'const':1}}", PEG_JSON_OBJECT), OP_MEMBERS);
    CHECK_INT(first_op("{'additionalProperties':false}", PEG_JSON_OBJECT), OP_MEMBERS);
    CHECK_INT(first_op("{'properties':{'a':{'type':'string'},'b':{'const':1}}}", PEG_JSON_OBJECT),
              OP_MEMBERS);
    CHECK_INT(first_op("{'properties':{'a':true},'required':['a','b']}", PEG_JSON_OBJECT),
              OP_MEMBERS);
    CHECK_INT(first_op("{'properties':{'a':true,'':true}}", PEG_JSON_OBJECT), OP_MEMBERS);
    CHECK_INT(
        first_op("{'properties':{'a':true,'a name of 17 byt':true,'b':true}}", PEG_JSON_OBJECT),
        OP_RECORD);
    CHECK_INT(
        first_op("{'properties':{'a':true,'a name of 17 byte':true,'b':true}}", PEG_JSON_OBJECT),
        OP_MEMBERS);
    CHECK_INT(first_op("{'properties':{'a':true,'b':true},'patternProperties':{'a':false}}",
                       PEG_JSON_OBJECT),
              OP_MEMBERS);
    CHECK_INT(first_op("{'items':{'type':'object','properties':{'a':true,'b':true},"
                       "'minProperties':1}}",
                       PEG_JSON_ARRAY),
              OP_ITEMS);
}

/* ---- verdicts ---------------------------------------------------------------------------- */

TEST(each_type_of_item_and_member_accepts_its_own_kind_and_no_other)
{
    static const char *const types[] = {"null",   "boolean", "integer", "number",
                                        "string", "array",   "object"};
    static const char *const values[] = {"null", "true", "1", "1.5", "'x'", "[]", "{}"};

    for (size_t i = 0; i < 7; i++)
        for (size_t j = 0; j < 7; j++) {
            const peg_verdict fits = i == j || (i == 3 && j == 2) ? PEG_VALID : PEG_INVALID;
            char schema[160];
            char value[64];

            snprintf(schema, sizeof(schema), "{'items':{'type':'%s'}}", types[i]);
            snprintf(value, sizeof(value), "[%s,%s,%s]", values[i], values[j], values[i]);
            CHECK_INT(check(schema, value), fits);
            snprintf(schema, sizeof(schema), "{'additionalProperties':{'type':'%s'}}", types[i]);
            snprintf(value, sizeof(value), "{'a':%s,'b':%s}", values[i], values[j]);
            CHECK_INT(check(schema, value), fits);
            snprintf(schema, sizeof(schema),
                     "{'items':{'type':'object','properties':{'a':{'type':'%s'},'b':true}}}",
                     types[i]);
            snprintf(value, sizeof(value), "[{'a':%s,'b':1},{'a':%s}]", values[i], values[j]);
            CHECK_INT(check(schema, value), fits);
        }
}

TEST(a_whole_decimal_among_integers_is_an_integer)
{
    VALID("{'items':{'type':'integer'}}", "[1,2.0,3]");
    INVALID("{'items':{'type':'integer'}}", "[1,2.5,3]");
    VALID("{'additionalProperties':{'type':'integer'}}", "{'a':1,'b':2.0}");
    INVALID("{'additionalProperties':{'type':'integer'}}", "{'a':1,'b':2.5}");
    VALID("{'properties':{'a':{'type':'integer'},'b':true}}", "{'a':1.0,'b':2}");
    INVALID("{'properties':{'a':{'type':'integer'},'b':true}}", "{'a':1.5,'b':2}");
}

TEST(empty_and_mixed_containers_are_decided_too)
{
    VALID("{'items':{'type':'string'}}", "[]");
    VALID("{'additionalProperties':{'type':'string'}}", "{}");
    VALID("{'items':" POINT "}", "[]");
    INVALID("{'items':" POINT "}", "[{}]");
    INVALID("{'items':" POINT "}", "[{'x':1,'y':2},3]");
    VALID("{'items':{'properties':{'a':{'type':'null'},'b':true}}}", "[3,{'a':null},'x',[1]]");
    INVALID("{'items':{'properties':{'a':{'type':'null'},'b':true}}}", "[3,{'a':0},'x',[1]]");
    VALID("{'items':{'type':['string','array']}}", "['a',[],[1,[2]],'b']");
    INVALID("{'items':{'type':['string','array']}}", "['a',[1],{},'b']");
    VALID("{'additionalProperties':{'type':['object','null']}}", "{'a':{'b':1},'c':null,'d':{}}");
    INVALID("{'additionalProperties':{'type':['object','null']}}", "{'a':{'b':1},'c':[]}");
    INVALID("{'additionalProperties':{'additionalProperties':{'type':'string'}}}",
            "{'a':{'b':'c'},'d':{'e':1}}");
    VALID("{'items':{'items':{'type':'number'}}}", "[[1,2],[],[3.5]]");
    INVALID("{'items':{'items':{'type':'number'}}}", "[[1,2],[],['3.5']]");
}

TEST(a_record_may_have_its_members_in_any_order)
{
    VALID(POINT, "{'x':1,'y':2,'label':'a'}");
    VALID(POINT, "{'x':1,'y':2}");
    VALID(POINT, "{'label':'a','y':2,'x':1}");
    VALID("{'items':" POINT "}", "[{'y':2,'x':1},{'x':1,'y':2.5},{'x':1,'label':'','y':2}]");
    INVALID(POINT, "{'x':1,'label':'a'}");
    INVALID(POINT, "{'y':1}");
    INVALID(POINT, "{'x':1,'y':2,'z':3}");
    INVALID(POINT, "{'x':1,'z':3,'y':2}");
    INVALID(POINT, "{'x':1,'y':'2'}");
    INVALID(POINT, "{'x':1,'y':2,'label':[1,2]}");
}

TEST(names_of_a_record_are_told_apart_to_the_last_byte)
{
    const char *schema = "{'properties':{'seven77':{'type':'null'},'eight888':{'type':'null'},"
                         "'nine99999':{'type':'null'},'a name of 16 byt':{'type':'null'}},"
                         "'additionalProperties':false}";

    CHECK_INT(first_op(schema, PEG_JSON_OBJECT), OP_RECORD);
    VALID(schema, "{'seven77':null,'eight888':null,'nine99999':null,'a name of 16 byt':null}");
    INVALID(schema, "{'seven78':null}");
    INVALID(schema, "{'seven7':null}");
    INVALID(schema, "{'seven77\\u0000':null}");
    INVALID(schema, "{'eight889':null}");
    INVALID(schema, "{'nine99998':null}");
    INVALID(schema, "{'a name of 16 byx':null}");
    INVALID(schema, "{'a name_of 16 byt':null}");
}

TEST(an_open_record_accepts_strangers_and_holds_them_to_additional_properties)
{
    VALID("{'properties':{'a':{'type':'string'},'b':true}}", "{'a':'x','c':1}");
    INVALID("{'properties':{'a':{'type':'string'},'b':true}}", "{'c':1,'a':1}");
    VALID("{'properties':{'a':{'type':'string'},'b':true},"
          "'additionalProperties':{'type':'null'}}",
          "{'a':'x','c':null}");
    INVALID("{'properties':{'a':{'type':'string'},'b':true},"
            "'additionalProperties':{'type':'null'}}",
            "{'a':'x','c':1}");
}

TEST(a_schema_that_contains_itself_is_decided_below_too)
{
    const char *tree = "{'type':'object','properties':{'name':{'type':'string'},"
                       "'children':{'type':'array','items':{'$ref':'#'}}},'required':['name'],"
                       "'additionalProperties':false}";

    VALID(tree, "{'name':'a','children':[{'name':'b'},{'name':'c','children':[{'name':'d'}]}]}");
    INVALID(tree, "{'name':'a','children':[{'name':'b','children':[{'name':1}]}]}");
    INVALID("{'type':['array','null'],'items':{'$ref':'#'}}", "[null,[],[[],[null,1]]]");
    VALID("{'type':['array','null'],'items':{'$ref':'#'}}", "[null,[],[[],[null]]]");
}

/* ---- unevaluated --------------------------------------------------------------------------- */

TEST(what_kinds_decide_counts_as_evaluated)
{
    const char *map = "{'allOf':[{'additionalProperties':{'type':'string'}}],"
                      "'unevaluatedProperties':false}";
    const char *list = "{'allOf':[{'items':{'type':'string'}}],'unevaluatedItems':false}";
    const char *records = "{'allOf':[{'items':" POINT "}],'unevaluatedItems':false}";
    const char *record = "{'anyOf':[{'properties':{'a':{'type':'string'},'b':true}}],"
                         "'unevaluatedProperties':false}";

    VALID(map, "{'a':'x','b':'y'}");
    INVALID(map, "{'a':'x','b':1}");
    VALID(list, "['a','b']");
    INVALID(list, "['a',1]");
    VALID(records, "[{'x':1,'y':2},{'y':1,'x':2}]");
    INVALID(records, "[{'x':1,'y':2},{'y':1}]");
    VALID(record, "{'a':'x','b':1}");
    INVALID(record, "{'a':'x','c':1}");
    VALID("{'unevaluatedProperties':{'type':'string'}}", "{'a':'x'}");
    INVALID("{'unevaluatedProperties':{'type':'string'}}", "{'a':1}");
}

TEST(a_branch_that_fails_evaluates_nothing)
{
    const char *schema = "{'anyOf':[{'items':{'type':'string'}},{'prefixItems':[true]}],"
                         "'unevaluatedItems':false}";

    VALID(schema, "['a','b']");
    VALID(schema, "[1]");
    INVALID(schema, "[1,'b']");
}

/* ---- reports and limits -------------------------------------------------------------------- */

TEST(a_report_names_every_item_and_member_that_does_not_fit)
{
    check_places("{'items':{'type':'string'}}", "['a',1,'b',null]", "/1 /3 ");
    check_places("{'additionalProperties':{'type':'string'}}", "{'a':1,'b':'x','c':[2]}", "/a /c ");
    check_places("{'items':" POINT "}", "[{'x':1,'y':2},{'x':'1','y':null},7,{'x':1,'y':2}]",
                 "/1/x /1/y /2 ");
    check_places(POINT, "{'x':true,'y':2,'label':3}", "/x /label ");
}

TEST(steps_are_the_same_whichever_loop_decides)
{
    CHECK_INT(steps_of("{'items':" POINT "}", "[{'x':1,'y':2,'label':''},{'x':1,'y':2}]"),
              steps_of("{'items':" POINT "}", "[{'y':1,'x':2,'label':''},{'y':1,'x':2}]"));
    CHECK_INT(steps_of(POINT, "{'x':1,'y':2}"), steps_of(POINT, "{'y':1,'x':2}"));
    CHECK_INT(steps_of("{'items':{'type':['array','null']}}", "[[],[],null,[],[],[],[],[],[]]"),
              steps_of("{'items':{'type':['array','null']}}", "[[1],[],null,[],[],[],[],[],[]]"));
    CHECK_INT(
        steps_of("{'additionalProperties':{'type':'array'}}", "{'a':[],'b':[],'c':[],'d':[]}"),
        steps_of("{'additionalProperties':{'type':'array'}}", "{'a':[],'b':[1],'c':[],'d':[]}"));
    CHECK_INT(steps_of("{'items':{'type':'null'}}", "[null,null,null,null,null,null,null,null]"),
              3);
}

TEST(depth_is_counted_whichever_loop_decides)
{
    static const char *const instances[] = {"[{'x':1,'y':2}]", "[{'y':1,'x':2}]"};
    peg_schema *schema = compiled("{'items':" POINT "}");

    for (size_t i = 0; i < 2; i++)
        for (unsigned depth = 1; depth <= 2; depth++) {
            const peg_checker_options options = {PEG_CHECKER_OPTIONS_INIT, .max_depth = depth};
            peg_json_doc *doc = parsed(instances[i]);
            peg_checker *checker = NULL;

            CHECK_INT(peg_checker_new(&options, &checker, NULL), PEG_OK);
            CHECK_INT(peg_schema_check(schema, checker, peg_json_root(doc)),
                      depth == 1 ? PEG_UNDECIDED : PEG_VALID);
            CHECK_STR(peg__str(peg_checker_reason(checker)), depth == 1 ? "max_depth" : "");
            peg_checker_free(checker);
            peg_json_doc_free(doc);
        }
    peg_schema_unref(schema);
}

TEST(defaults_of_records_are_filled_in_as_before)
{
    peg_schema *schema = compiled("{'items':{'type':'object','properties':{'a':{'type':'string'},"
                                  "'b':{'type':'integer','default':7}},"
                                  "'additionalProperties':false}}");
    peg_json_doc *doc = parsed("[{'a':'x'}]");
    peg_json_doc *filled = NULL;
    peg_error error;
    const peg_json *b;

    CHECK_INT(verdict_on(schema, peg_json_root(doc)), PEG_VALID);
    CHECK_STATUS(peg_schema_fill(schema, peg_json_root(doc), &filled, &error), PEG_OK, error);
    b = peg_json_get(peg_json_at(peg_json_root(filled), 0), "b");
    CHECK(b && b->u.number == 7);
    CHECK_INT(verdict_on(schema, peg_json_root(filled)), PEG_VALID);
    peg_json_doc_free(filled);
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
}
