/* SPDX-License-Identifier: Apache-2.0 */

/* Schema keywords one edit from a known one. */

#include "fixture.h"
#include "schema/compile/compile.h"

struct told {
    char text[512];
};

static void tell(const peg_json *key, const char *keyword, void *user)
{
    struct told *told = user;
    const size_t len = strlen(told->text);

    snprintf(told->text + len, sizeof(told->text) - len, "%.*s:%s ", PEG_ARG(peg_json_str(key)),
             keyword);
}

static void check_told(const char *schema, const char *expected)
{
    peg_json_doc *doc = parsed(schema);
    struct told told = {""};

    peg__schema_typos(peg_json_root(doc), tell, &told);
    CHECK_STR(peg__str(told.text), expected);
    peg_json_doc_free(doc);
}

TEST(a_keyword_with_one_edit_is_told_with_the_one_that_was_meant)
{
    check_told("{'requird':['a'],'propertys':{}}", "requird:required ");
    check_told("{'Properties':{},'ref':'#/x','additionalPropertie':false}",
               "Properties:properties ref:$ref additionalPropertie:additionalProperties ");
}

TEST(typos_are_looked_for_wherever_a_schema_stands)
{
    check_told("{'properties':{'a':{'typ':'string'}},'items':[{'minimun':1}],"
               "'anyOf':[{'not':{'enums':[1]}}],'$defs':{'d':{'patern':'x'}}}",
               "typ:type minimun:minimum enums:enum patern:pattern ");
}

TEST(names_that_are_no_keywords_are_not_taken_for_typos)
{
    check_told("{'properties':{'typ':true,'item':{}},'title':'t','description':'d','examples':[{"
               "'typ':1}],'enum':[{'typ':1}],'default':{'requird':1},'x-order':1,'readOnly':true,"
               "'deprecated':true,'$comment':'c','note':1,'example':1,'nullable':true}",
               "");
}
