/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Schemas and instances made to exhaust: each must be refused by a named error, or decided, or be
 * undecided for a named reason, soon. How long each takes is printed, never asserted.
 */

#include <time.h>

#include "fixture.h"
#include "pegboard/yaml.h"

enum { MAX_TEXT = 96 << 20 };

/* ---- fixture ---------------------------------------------------------------------- */

struct bomb {
    struct peg__buf schema;
    struct peg__buf instance;
    const char *name;
};

static struct bomb new_bomb(const char *name)
{
    return (struct bomb){
        .schema = PEG__BUF(MAX_TEXT), .instance = PEG__BUF(MAX_TEXT), .name = name};
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void tell_time(const char *name, const char *what, double since)
{
    printf("# %s: %s in %.1f ms\n", name, what, now_ms() - since);
}

/* Adds the text with " for '. */
static void add(struct peg__buf *text, const char *quoted)
{
    for (; *quoted; quoted++)
        peg__buf_putc(text, *quoted == '\'' ? '"' : *quoted);
}

/* Adds a format with one number n times, with commas between. */
static void add_each(struct peg__buf *text, const char *before, const char *after, int n)
{
    for (int i = 0; i < n; i++) {
        peg__buf_puts(text, i ? "," : "");
        add(text, before);
        peg__buf_printf(text, "%d", i);
        add(text, after);
    }
}

static peg_json_doc *instance_of(struct bomb *b)
{
    peg_json_doc *doc = NULL;
    peg_error error;

    CHECK_INT(b->instance.status, PEG_OK);
    CHECK_STATUS(peg_json_parse(peg__buf_view(&b->instance), NULL, &doc, &error), PEG_OK, error);
    return doc;
}

static void bomb_free(struct bomb *b)
{
    peg__buf_free(&b->schema);
    peg__buf_free(&b->instance);
}

/* The schema is refused with this code. */
static void expect_refused(struct bomb *b, const char *code)
{
    const double start = now_ms();
    peg_schema *schema = NULL;
    peg_error error;

    CHECK_INT(b->schema.status, PEG_OK);
    CHECK(peg_schema_compile(peg__buf_view(&b->schema), NULL, &schema, &error) != PEG_OK);
    tell_time(b->name, "refused", start);
    CHECK_STR(peg__str(error.code), code);
    bomb_free(b);
}

/* Compiles, checks and reports. The reason is that of an undecided check, or "". */
static void expect(struct bomb *b, peg_verdict expected, const char *reason)
{
    double start = now_ms();
    peg_schema *schema = NULL;
    peg_json_doc *doc;
    peg_checker *checker = new_checker();
    peg_report *report = new_report();
    peg_error error;

    CHECK_INT(b->schema.status, PEG_OK);
    CHECK_STATUS(peg_schema_compile(peg__buf_view(&b->schema), NULL, &schema, &error), PEG_OK,
                 error);
    tell_time(b->name, "compiled", start);
    doc = instance_of(b);
    start = now_ms();
    CHECK_INT(peg_schema_check(schema, checker, peg_json_root(doc)), expected);
    tell_time(b->name, "checked", start);
    CHECK_STR(peg__str(peg_checker_reason(checker)), reason);
    start = now_ms();
    CHECK_INT(peg_schema_report(schema, checker, peg_json_root(doc), report), expected);
    tell_time(b->name, "reported", start);
    peg_report_free(report);
    peg_checker_free(checker);
    peg_json_doc_free(doc);
    peg_schema_unref(schema);
    bomb_free(b);
}

/* ---- size and depth ---------------------------------------------------------------------------
 */

TEST(a_document_of_100_mb_is_refused_by_its_size)
{
    const size_t len = (size_t)100 << 20;
    char *text = malloc(len);
    peg_schema *schema = NULL;
    peg_json_doc *doc = NULL;
    peg_error error;
    double start;

    CHECK(text);
    memset(text, '[', len);
    start = now_ms();
    CHECK_INT(peg_schema_compile(peg__strn(text, len), NULL, &schema, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_SCHEMA_TOO_LARGE");
    CHECK_INT(peg_json_parse(peg__strn(text, len), NULL, &doc, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_JSON_TOO_LARGE");
    tell_time("100 MB", "refused", start);
    free(text);
}

TEST(deep_nesting_is_refused)
{
    struct bomb b = new_bomb("nested 10,000 deep");

    for (int i = 0; i < 10000; i++)
        add(&b.schema, "{'not':");
    peg__buf_puts(&b.schema, "true");
    peg__buf_repeat(&b.schema, '}', 10000);
    expect_refused(&b, "E_SCHEMA_TOO_LARGE");
    b = new_bomb("nested 200 deep");
    for (int i = 0; i < 200; i++)
        add(&b.schema, "{'items':");
    peg__buf_puts(&b.schema, "{}");
    peg__buf_repeat(&b.schema, '}', 200);
    expect_refused(&b, "E_SCHEMA_TOO_LARGE");
}

TEST(too_many_subschemas_are_refused)
{
    struct bomb b = new_bomb("30,000 subschemas");

    add(&b.schema, "{'properties':{");
    add_each(&b.schema, "'p", "':{'minimum':1}", 30000);
    peg__buf_puts(&b.schema, "}}");
    expect_refused(&b, "E_SCHEMA_TOO_LARGE");
}

TEST(ten_thousand_properties_that_are_all_required_are_fine)
{
    struct bomb b = new_bomb("10,000 required");

    add(&b.schema, "{'properties':{");
    add_each(&b.schema, "'p", "':{'minimum':1}", 10000);
    add(&b.schema, "},'additionalProperties':false,'required':[");
    add_each(&b.schema, "'p", "'", 10000);
    peg__buf_puts(&b.schema, "]}");
    add(&b.instance, "{");
    add_each(&b.instance, "'p", "':1", 9999);
    peg__buf_puts(&b.instance, "}");
    expect(&b, PEG_INVALID, "");
}

TEST(an_enum_of_a_megabyte_is_fine)
{
    struct bomb b = new_bomb("enum of 100,000");

    add(&b.schema, "{'enum':[");
    add_each(&b.schema, "", "", 100000);
    peg__buf_puts(&b.schema, "]}");
    peg__buf_puts(&b.instance, "99999.0");
    expect(&b, PEG_VALID, "");
    b = new_bomb("enum of 60,000 strings");
    add(&b.schema, "{'enum':[");
    add_each(&b.schema, "'value", "'", 60000);
    peg__buf_puts(&b.schema, "]}");
    add(&b.instance, "'value59999'");
    expect(&b, PEG_VALID, "");
}

/* ---- schemas that apply themselves
 * ---------------------------------------------------------------- */

/* a0 applies a1 twice, a1 applies a2 twice, ...: 2^30 applications of the last. */
static void add_doubling(struct bomb *b, const char *keyword, const char *last)
{
    add(&b->schema, "{'$ref':'#/$defs/a0','$defs':{");
    for (int i = 0; i < 30; i++) {
        char text[200];

        snprintf(text, sizeof(text),
                 "'a%d':{'%s':[{'$ref':'#/$defs/a%d'},{'$ref':'#/$defs/a%d'}]},", i, keyword, i + 1,
                 i + 1);
        add(&b->schema, text);
    }
    add(&b->schema, "'a30':");
    add(&b->schema, last);
    peg__buf_puts(&b->schema, "}}");
}

TEST(doubling_ends_at_max_steps)
{
    struct bomb b = new_bomb("2^30 by allOf");

    add_doubling(&b, "allOf", "{'minimum':1}");
    peg__buf_puts(&b.instance, "2");
    expect(&b, PEG_UNDECIDED, "max_steps");
    b = new_bomb("2^30 by anyOf");
    add_doubling(&b, "anyOf", "{'minimum':5}");
    peg__buf_puts(&b.instance, "2");
    expect(&b, PEG_UNDECIDED, "max_steps");
    b = new_bomb("2^30 by oneOf");
    add_doubling(&b, "oneOf", "{'minimum':5}");
    peg__buf_puts(&b.instance, "2");
    expect(&b, PEG_UNDECIDED, "max_steps");
}

VOLUME_TEST(doubling_over_a_large_value_ends_as_soon)
{
    static const char *const of_arrays[] = {"{'items':{'minimum':0}}", "{'uniqueItems':true}",
                                            "{'contains':{'const':-1},'minContains':0}"};
    static const char *const of_objects[] = {"{'additionalProperties':{'minimum':0}}",
                                             "{'propertyNames':{'minLength':1}}",
                                             "{'patternProperties':{'^p[0-9]':{'minimum':0}}}"};

    for (int i = 0; i < 6; i++) {
        struct bomb b = new_bomb(i < 3 ? of_arrays[i] : of_objects[i - 3]);

        add_doubling(&b, "allOf", b.name);
        peg__buf_putc(&b.instance, i < 3 ? '[' : '{');
        add_each(&b.instance, i < 3 ? "" : "'p", i < 3 ? "" : "':1", 20000);
        peg__buf_putc(&b.instance, i < 3 ? ']' : '}');
        expect(&b, PEG_UNDECIDED, "max_steps");
    }
}

TEST(doubling_under_tracking_ends_at_max_steps)
{
    struct bomb b = new_bomb("2^30 tracked");

    add_doubling(&b, "anyOf", "{'properties':{'a':{'minimum':1}}}");
    b.schema.len--;
    add(&b.schema, ",'unevaluatedProperties':false}");
    add(&b.instance, "{'a':1}");
    expect(&b, PEG_UNDECIDED, "max_steps");
}

TEST(circles_end_at_max_depth)
{
    struct bomb b = new_bomb("a circle of two");

    add(&b.schema, "{'$ref':'#/$defs/a','$defs':{'a':{'$ref':'#/$defs/b'},'b':{'$ref':'#/$defs/a'"
                   "}}}");
    peg__buf_puts(&b.instance, "1");
    expect(&b, PEG_UNDECIDED, "max_depth");
    b = new_bomb("a circle that doubles");
    add(&b.schema, "{'allOf':[{'$ref':'#'},{'$ref':'#'}]}");
    peg__buf_puts(&b.instance, "1");
    expect(&b, PEG_UNDECIDED, "max_depth");
}

/* ---- references
 * ------------------------------------------------------------------------------------- */

VOLUME_TEST(references_by_the_thousand_are_resolved)
{
    struct bomb b = new_bomb("9,000 references into 9,000 definitions");

    add(&b.schema, "{'properties':{");
    for (int i = 0; i < 9000; i++) {
        char text[64];

        snprintf(text, sizeof(text), "%s'p%d':{'$ref':'#/$defs/d%d'}", i ? "," : "", i, 8999 - i);
        add(&b.schema, text);
    }
    add(&b.schema, "},'$defs':{");
    add_each(&b.schema, "'d", "':{'minimum':1}", 9000);
    peg__buf_puts(&b.schema, "}}");
    add(&b.instance, "{'p8999':0}");
    expect(&b, PEG_INVALID, "");
}

VOLUME_TEST(chains_of_references_with_defaults_compile)
{
    struct bomb b = new_bomb("9,000 defaults through each other");

    add(&b.schema, "{'properties':{'d0':{'default':1}");
    for (int i = 1; i < 9000; i++) {
        char text[64];

        snprintf(text, sizeof(text), ",'d%d':{'$ref':'#/properties/d%d'}", i, i - 1);
        add(&b.schema, text);
    }
    peg__buf_puts(&b.schema, "}}");
    add(&b.instance, "{'d8999':0}");
    expect(&b, PEG_VALID, "");
}

VOLUME_TEST(anchors_by_the_thousand_compile)
{
    struct bomb b = new_bomb("20,000 anchors");

    add(&b.schema, "{'$ref':'#x19999','$defs':{");
    for (int i = 0; i < 20000; i++) {
        char text[64];

        snprintf(text, sizeof(text), "%s'a%d':{'$anchor':'x%d'}", i ? "," : "", i, i);
        add(&b.schema, text);
    }
    peg__buf_puts(&b.schema, "}}");
    peg__buf_puts(&b.instance, "1");
    expect(&b, PEG_VALID, "");
}

VOLUME_TEST(long_uris_are_refused)
{
    struct bomb b = new_bomb("10,000 references against a base of 400 KB");

    add(&b.schema, "{'$id':'http://x/");
    peg__buf_repeat(&b.schema, 'a', 400000);
    add(&b.schema, "/b','properties':{");
    add_each(&b.schema, "'p", "':{'$ref':'b'}", 10000);
    peg__buf_puts(&b.schema, "}}");
    expect_refused(&b, "E_SCHEMA_TOO_LARGE");
    b = new_bomb("30,000 identifiers against a base of 4,000 bytes");
    add(&b.schema, "{'$id':'http://x/");
    peg__buf_repeat(&b.schema, 'a', 4000);
    add(&b.schema, "/b','$defs':{");
    for (int i = 0; i < 30000; i++) {
        peg__buf_printf(&b.schema, "%s\"p%d\":{\"$id\":\"c%d\"}", i ? "," : "", i, i);
    }
    peg__buf_puts(&b.schema, "}}");
    expect_refused(&b, "E_SCHEMA_TOO_LARGE");
}

/* Resources that lead into each other, each with a dynamic anchor of its own. */
TEST(dynamic_scopes_are_bounded)
{
    struct bomb b = new_bomb("300 dynamic scopes inside each other");

    add(&b.schema, "{'$ref':'r0','$defs':{");
    for (int i = 0; i < 300; i++) {
        char text[200];

        snprintf(text, sizeof(text),
                 "'r%d':{'$id':'r%d','$dynamicAnchor':'n%d','items':{'$ref':'r%d'},"
                 "'contains':{'$ref':'r%d'},'not':{'$dynamicRef':'#n%d'}},",
                 i, i, i, i + 1, (i * 7) % 300, i);
        add(&b.schema, text);
    }
    add(&b.schema, "'last':{'$id':'r300'}}}");
    expect_refused(&b, "E_SCHEMA_TOO_LARGE");
    b = new_bomb("1,000 dynamic anchors of one resource");
    add(&b.schema, "{'$defs':{");
    for (int i = 0; i < 1000; i++) {
        char text[64];

        snprintf(text, sizeof(text), "%s'a%d':{'$dynamicAnchor':'x%d'}", i ? "," : "", i, i);
        add(&b.schema, text);
    }
    peg__buf_puts(&b.schema, "}}");
    expect_refused(&b, "E_SCHEMA_TOO_LARGE");
}

/* ---- patterns
 * --------------------------------------------------------------------------------------- */

TEST(catastrophic_patterns_are_decided_or_end_at_match_limit)
{
    static const char *const patterns[] = {
        "^(a+)+$",     "^(a|a)*$",      "^(a|aa)+$", "(.*a){20}$", "^(([a-z])+.)+[A-Z]([a-z])+$",
        "^(?=(a+)+$)", "^(a|aa)+\\\\1$"};

    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
        struct bomb b = new_bomb(patterns[i]);

        add(&b.schema, "{'pattern':'");
        add(&b.schema, patterns[i]);
        add(&b.schema, "'}");
        add(&b.instance, "'");
        peg__buf_repeat(&b.instance, 'a', 60);
        add(&b.instance, i == 3 ? "b!'" : "!'");
        if (i < 5)
            expect(&b, PEG_INVALID, "");
        else
            expect(&b, PEG_UNDECIDED, "match_limit");
    }
}

TEST(catastrophic_patterns_of_names_end_at_match_limit)
{
    struct bomb b = new_bomb("100 catastrophic patternProperties");

    add(&b.schema, "{'patternProperties':{");
    add_each(&b.schema, "'", "|^(?=(a+)+$)':true", 100);
    peg__buf_puts(&b.schema, "}}");
    add(&b.instance, "{'");
    peg__buf_repeat(&b.instance, 'a', 60);
    add(&b.instance, "!':1}");
    expect(&b, PEG_UNDECIDED, "match_limit");
}

TEST(patterns_that_grow_are_refused)
{
    static const char *const patterns[] = {"((a{1000}){1000}){1000}", "((a{100}){100}){100}",
                                           "(([a-z]{500}){500}|b{1000}){9}"};

    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
        struct bomb b = new_bomb(patterns[i]);

        add(&b.schema, "{'pattern':'");
        add(&b.schema, patterns[i]);
        add(&b.schema, "'}");
        expect_refused(&b, "E_SCHEMA_TOO_LARGE");
    }
}

/* ---- collisions
 * ------------------------------------------------------------------------------------- */

TEST(names_that_collide_are_found_quickly)
{
    struct bomb b = new_bomb("15,000 names with equal ends");

    add(&b.schema, "{'additionalProperties':false,'properties':{");
    add(&b.instance, "{");
    for (int i = 0; i < 15000; i++) {
        char text[64];

        snprintf(text, sizeof(text), "%s'same_head_%05d_same_tail':true", i ? "," : "", i);
        add(&b.schema, text);
        add(&b.instance, text);
    }
    peg__buf_puts(&b.schema, "}}");
    peg__buf_puts(&b.instance, "}");
    expect(&b, PEG_VALID, "");
}

VOLUME_TEST(items_made_to_collide_do_not)
{
    struct bomb b = new_bomb("100,000 items that differ in high bits only");

    add(&b.schema, "{'uniqueItems':true}");
    peg__buf_putc(&b.instance, '[');
    for (int64_t i = 0; i < 100000; i++)
        peg__buf_printf(&b.instance, "%s%lld", i ? "," : "", (long long)(i << 40));
    peg__buf_putc(&b.instance, ']');
    expect(&b, PEG_VALID, "");
    b = new_bomb("50,000 strings that differ in the middle only");
    add(&b.schema, "{'uniqueItems':true}");
    peg__buf_putc(&b.instance, '[');
    add_each(&b.instance, "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbb'", 50000);
    peg__buf_putc(&b.instance, ']');
    expect(&b, PEG_VALID, "");
}

TEST(required_names_against_many_members_end)
{
    struct bomb b = new_bomb("20,000 dependentRequired against 20,000 members");

    add(&b.schema, "{'dependentRequired':{'p0':[");
    add_each(&b.schema, "'p", "'", 20000);
    peg__buf_puts(&b.schema, "]}}");
    peg__buf_putc(&b.instance, '{');
    add_each(&b.instance, "'p", "':1", 20000);
    peg__buf_putc(&b.instance, '}');
    expect(&b, PEG_UNDECIDED, "max_steps");
}

/* ---- reports
 * ---------------------------------------------------------------------------------------- */

TEST(a_hundred_thousand_failures_are_counted_quickly)
{
    struct bomb b = new_bomb("100,000 failures");

    add(&b.schema, "{'items':{'type':'integer'}}");
    peg__buf_putc(&b.instance, '[');
    add_each(&b.instance, "'", "'", 100000);
    peg__buf_putc(&b.instance, ']');
    expect(&b, PEG_INVALID, "");
    b = new_bomb("100,000 failures in each of two branches");
    add(&b.schema, "{'anyOf':[{'items':{'type':'integer'}},{'items':{'type':'null'}}]}");
    peg__buf_putc(&b.instance, '[');
    add_each(&b.instance, "'", "'", 100000);
    peg__buf_putc(&b.instance, ']');
    expect(&b, PEG_INVALID, "");
}

TEST(names_that_nearly_fit_are_compared_with_few)
{
    struct bomb b = new_bomb("100 unknown names among 9,000");

    add(&b.schema, "{'additionalProperties':false,'properties':{");
    add_each(&b.schema, "'a_name_of_quite_some_length_number_", "':true", 9000);
    peg__buf_puts(&b.schema, "}}");
    add(&b.instance, "{");
    add_each(&b.instance, "'a_name_of_quite_same_length_number_", "':1", 100);
    add(&b.instance, "}");
    expect(&b, PEG_INVALID, "");
}

/* ---- numbers
 * ----------------------------------------------------------------------------------------- */

TEST(giant_numbers_are_compared_and_divided_quickly)
{
    struct bomb b = new_bomb("multipleOf 1e-9999 of 1e9999");

    add(&b.schema, "{'multipleOf':1e-9999,'maximum':1e9999,'minimum':-1e-9999}");
    peg__buf_puts(&b.instance, "1e9999");
    expect(&b, PEG_VALID, "");
    b = new_bomb("multipleOf with 999 digits");
    add(&b.schema, "{'multipleOf':");
    peg__buf_repeat(&b.schema, '7', 999);
    peg__buf_puts(&b.schema, "e-9000}");
    peg__buf_repeat(&b.instance, '9', 999);
    peg__buf_puts(&b.instance, "e9000");
    expect(&b, PEG_INVALID, "");
}

/* ---- YAML
 * --------------------------------------------------------------------------------------------- */

TEST(a_billion_laughs_are_refused)
{
    struct peg__buf text = PEG__BUF(MAX_TEXT);
    const double start = now_ms();
    peg_json_doc *doc = NULL;
    peg_error error;

    peg__buf_puts(&text, "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for (int i = 1; i < 12; i++) {
        peg__buf_printf(&text, "a%d: &a%d [", i, i);
        for (int j = 0; j < 9; j++)
            peg__buf_printf(&text, "%s*a%d", j ? ", " : "", i - 1);
        peg__buf_puts(&text, "]\n");
    }
    CHECK_INT(peg_yaml_parse(peg__buf_view(&text), NULL, &doc, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_JSON_TOO_LARGE");
    tell_time("billion laughs", "refused", start);
    peg__buf_free(&text);
}
