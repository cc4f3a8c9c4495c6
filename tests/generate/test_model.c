/* SPDX-License-Identifier: Apache-2.0 */

#include "generate/model.h"

#include "world.h"

/* ---- fixture: the types of a tool, in short ------------------------------------------------ */

static void put_slot(struct peg__buf *out, struct gen_slot slot)
{
    peg__buf_puts(out, slot.is_boxed ? "*" : "");
    peg__buf_puts(out, slot.type->name);
}

static void put_members(struct peg__buf *out, const struct gen_type *type)
{
    peg__buf_puts(out, type->is_wrapper ? " (" : " {");
    for (size_t i = 0; i < type->n_members; i++) {
        peg__buf_puts(out, i ? ", " : "");
        peg__buf_str(out, type->members[i].name);
        peg__buf_puts(out, type->members[i].is_required ? ": " : "?: ");
        put_slot(out, type->members[i].slot);
    }
    if (type->others)
        peg__buf_printf(out, "%s...: %s", type->n_members ? ", " : "", type->others->name);
    peg__buf_puts(out, type->is_wrapper ? ")" : "}");
}

static void put_branches(struct peg__buf *out, const struct gen_type *type)
{
    peg__buf_puts(out, " <");
    peg__buf_str(out, type->tag);
    peg__buf_puts(out, type->tag.len ? ": " : "");
    for (size_t i = 0; i < type->n_branches; i++) {
        const struct gen_branch *branch = &type->branches[i];

        peg__buf_printf(out, "%s%s", i ? " | " : "", branch->name);
        for (size_t k = 1; k < branch->n_tags; k++)
            peg__buf_printf(out, "/%s", branch->tags[k].ptr);
        peg__buf_puts(out, " ");
        put_slot(out, branch->slot);
    }
    peg__buf_puts(out, ">");
}

static void put_type(struct peg__buf *out, const struct gen_type *type)
{
    peg__buf_puts(out, type->name);
    if (type->kind == GEN_STRUCT)
        put_members(out, type);
    if (type->kind == GEN_UNION)
        put_branches(out, type);
    for (size_t i = 0; i < type->n_values; i++)
        peg__buf_printf(out, "%s%s", i ? "|" : " ", type->values[i].ptr);
    if (type->kind == GEN_NULLABLE || type->kind == GEN_ARRAY || type->kind == GEN_MAP) {
        peg__buf_puts(out, " = ");
        put_slot(out, type->item);
    }
    peg__buf_putc(out, '\n');
}

/* The types of a tool t whose input schema this is. */
static void check_types(const char *schema, const char *expected)
{
    struct world w;
    struct peg__buf yaml = PEG__BUF(1 << 16);

    peg__buf_printf(&yaml, "{toolset: s, tools: [{name: t, input_schema: %s}]}", schema);
    CHECK_STATUS(world_make(&w, yaml.ptr, (struct gen_options){.raw = false}), PEG_OK, w.error);
    for (const struct gen_type *t = w.service.toolsets[0].types; t; t = t->next) {
        if (strcmp(t->name, "t_result") != 0)
            put_type(&w.text, t);
    }
    CHECK_STR(peg__buf_view(&w.text), expected);
    peg__buf_free(&yaml);
    world_done(&w);
}

static void check_refused(const char *schema, const char *where, const char *reason)
{
    struct world w;
    struct peg__buf yaml = PEG__BUF(1 << 16);

    peg__buf_printf(&yaml, "{toolset: s, tools: [{name: t, input_schema: %s}]}", schema);
    CHECK_INT(world_make(&w, yaml.ptr, (struct gen_options){.raw = false}), PEG_ESCHEMA);
    CHECK_STR(peg__str(w.error.code), "E_GENERATE_UNTYPED");
    CHECK_STR(peg__str(w.error.where), where);
    CHECK(strstr(w.error.message, reason));
    world_done(&w);
    CHECK_STATUS(world_make(&w, yaml.ptr, (struct gen_options){.raw = true}), PEG_OK, w.error);
    peg__buf_free(&yaml);
    world_done(&w);
}

#define PROPERTY(schema) "{type: object, required: [x], properties: {x: " schema "}}"

/* ---- scalars ------------------------------------------------------------------------------- */

TEST(members_are_required_or_optional)
{
    check_types("{type: object, properties: {a: {type: string}, b: {type: integer}, c: {type: "
                "number}, d: {type: boolean}, e: {type: 'null'}, f: {}}, required: [b]}",
                "t_args {a?: string, b: integer, c?: number, d?: bool, e?: null, f?: json}\n");
}

TEST(a_tool_without_schema_takes_nothing)
{
    struct world w;

    CHECK_STATUS(
        world_make(&w, "{toolset: s, tools: [{name: t}]}", (struct gen_options){.raw = false}),
        PEG_OK, w.error);
    for (const struct gen_type *t = w.service.toolsets[0].types; t; t = t->next)
        put_type(&w.text, t);
    CHECK_STR(peg__buf_view(&w.text), "t_args {}\nt_result (value: json)\n");
    world_done(&w);
}

TEST(strings_of_a_list_are_an_enum)
{
    check_types(PROPERTY("{enum: [a, b, a]}"), "t_args_x a|b\nt_args {x: t_args_x}\n");
    check_types(PROPERTY("{const: a}"), "t_args_x a\nt_args {x: t_args_x}\n");
    check_types(PROPERTY("{oneOf: [{const: a, title: A}, {const: b}]}"),
                "t_args_x a|b\nt_args {x: t_args_x}\n");
}

TEST(numbers_of_a_list_are_numbers)
{
    check_types(PROPERTY("{enum: [1, 2]}"), "t_args {x: integer}\n");
    check_types(PROPERTY("{enum: [1, 2.5]}"), "t_args {x: number}\n");
}

TEST(null_beside_another_type_makes_it_nullable)
{
    check_types(PROPERTY("{type: [string, 'null']}"),
                "string_or_null = string\nt_args {x: string_or_null}\n");
    check_types(PROPERTY("{anyOf: [{type: integer}, {type: 'null'}]}"),
                "integer_or_null = integer\nt_args {x: integer_or_null}\n");
    check_types(PROPERTY("{enum: [a, null]}"),
                "t_args_x a\nt_args_x_or_null = t_args_x\nt_args {x: t_args_x_or_null}\n");
}

/* ---- containers ---------------------------------------------------------------------------- */

TEST(arrays_have_items)
{
    check_types(PROPERTY("{type: array, items: {type: array, items: {type: string}}}"),
                "string_list = string\nstring_list_list = string_list\n"
                "t_args {x: string_list_list}\n");
    check_types(PROPERTY("{type: array}"), "json_list = json\nt_args {x: json_list}\n");
}

TEST(open_objects_without_names_are_maps)
{
    check_types(PROPERTY("{type: object, additionalProperties: {type: integer}}"),
                "integer_map = integer\nt_args {x: integer_map}\n");
    check_types(PROPERTY("{type: object}"), "json_map = json\nt_args {x: json_map}\n");
    check_types(PROPERTY("{type: object, patternProperties: {'^a': {type: string}}, "
                         "additionalProperties: false}"),
                "string_map = string\nt_args {x: string_map}\n");
}

TEST(open_objects_with_names_keep_the_others)
{
    check_types("{type: object, properties: {a: {}}, additionalProperties: {type: string}}",
                "t_args {a?: json, ...: string}\n");
    check_types("{type: object, properties: {a: {}}, additionalProperties: false}",
                "t_args {a?: json}\n");
}

TEST(schemas_that_hold_together_are_one_struct)
{
    check_types(
        "{type: object, allOf: [{properties: {a: {type: string}}, required: [b]}, "
        "{$ref: '#/$defs/b'}], $defs: {b: {properties: {b: {type: integer}, a: {enum: [k]}}}}}",
        "t_args_a k\nt_args {a?: t_args_a, b: integer}\n");
}

/* ---- references ---------------------------------------------------------------------------- */

TEST(a_definition_is_one_type)
{
    check_types("{type: object, properties: {a: {$ref: '#/$defs/Point', description: here}, b: "
                "{$ref: '#/$defs/Point'}, c: {type: array, items: {$ref: '#/$defs/Point'}}}, "
                "$defs: {Point: {type: object, properties: {x: {type: number}}}}}",
                "t_args_Point {x?: number}\nt_args_Point_list = t_args_Point\n"
                "t_args {a?: t_args_Point, b?: t_args_Point, c?: t_args_Point_list}\n");
}

TEST(a_type_may_contain_itself)
{
    check_types("{type: object, properties: {next: {$ref: '#'}, all: {type: array, items: {$ref: "
                "'#'}}}}",
                "t_args_list = t_args\nt_args {next?: *t_args, all?: t_args_list}\n");
    check_types(PROPERTY("{$ref: '#/$defs/n'}, y: {}}, $defs: {n: {type: [object, 'null'], "
                         "properties: {n: {$ref: '#/$defs/n'}}}"),
                "t_args_n_or_null = *t_args_n\nt_args_n {n?: t_args_n_or_null}\n"
                "t_args {x: t_args_n_or_null, y?: json}\n");
}

TEST(references_that_lead_nowhere_are_refused)
{
    check_refused(PROPERTY("{$ref: '#/$defs/a'}}, $defs: {a: {$ref: '#/$defs/a'}"),
                  "/tools/0/input_schema/$defs/a", "no end");
}

/* ---- alternatives -------------------------------------------------------------------------- */

#define SHAPES                                                                                     \
    "{oneOf: [{type: object, properties: {kind: {const: circle}, r: {type: number}}, required: "   \
    "[kind]}, {type: object, properties: {kind: {enum: [box, cube]}}, required: [kind]}]}"

TEST(a_const_tells_objects_apart)
{
    check_types(PROPERTY(SHAPES),
                "t_args_x_circle_kind circle\n"
                "t_args_x_circle {kind: t_args_x_circle_kind, r?: number}\n"
                "t_args_x_box_kind box|cube\nt_args_x_box {kind: t_args_x_box_kind}\n"
                "t_args_x <kind: circle t_args_x_circle | box/cube t_args_x_box>\n"
                "t_args {x: t_args_x}\n");
}

TEST(kinds_tell_alternatives_apart)
{
    check_types(PROPERTY("{type: [string, integer, 'null']}"),
                "t_args_x <integer integer | string string>\nt_args_x_or_null = t_args_x\n"
                "t_args {x: t_args_x_or_null}\n");
    check_types(PROPERTY("{anyOf: [{type: string}, {type: array, items: {type: string}}]}"),
                "string_list = string\nt_args_x <string string | array string_list>\n"
                "t_args {x: t_args_x}\n");
}

TEST(alternatives_of_one_scalar_are_that_scalar)
{
    check_types(PROPERTY("{anyOf: [{type: string, format: date}, {type: string, maxLength: 3}]}"),
                "t_args {x: string}\n");
    check_types(PROPERTY("{anyOf: [{type: integer}, {type: number}]}"), "t_args {x: number}\n");
}

TEST(alternatives_that_only_check_are_no_types)
{
    check_types("{type: object, properties: {a: {type: string}}, anyOf: [{required: [a]}, "
                "{minProperties: 2}]}",
                "t_args {a?: string}\n");
}

TEST(alternatives_may_contain_themselves)
{
    check_types(PROPERTY("{$ref: '#/$defs/tree'}}, $defs: {tree: {anyOf: [{type: string}, {type: "
                         "object, properties: {l: {$ref: '#/$defs/tree'}}}]}"),
                "t_args_tree_object {l?: *t_args_tree}\n"
                "t_args_tree <string string | object t_args_tree_object>\n"
                "t_args {x: t_args_tree}\n");
}

TEST(alternatives_that_nothing_tells_apart_are_refused)
{
    check_refused(PROPERTY("{oneOf: [{type: object, properties: {a: {}}}, {type: object, "
                           "properties: {b: {}}}]}"),
                  "/tools/0/input_schema/properties/x/oneOf", "no member tells");
    check_refused(PROPERTY("{anyOf: [{type: array, items: {type: string}}, {type: array}]}"),
                  "/tools/0/input_schema/properties/x/anyOf", "of one kind");
}

/* ---- what has no type ---------------------------------------------------------------------- */

TEST(tuples_conditions_and_dynamic_references_are_refused)
{
    check_refused(PROPERTY("{type: array, prefixItems: [{type: string}]}"),
                  "/tools/0/input_schema/properties/x/prefixItems", "differ by their place");
    check_refused(PROPERTY("{type: object, properties: {a: {}}, if: {required: [a]}, then: "
                           "{properties: {b: {}}}}"),
                  "/tools/0/input_schema/properties/x/then", "under a condition");
    check_refused(PROPERTY("{$dynamicRef: '#m'}}, $defs: {m: {$dynamicAnchor: m}"),
                  "/tools/0/input_schema/properties/x", "dynamic");
    check_refused(PROPERTY("{type: string, enum: [1]}"), "/tools/0/input_schema/properties/x",
                  "no value fits");
}

TEST(results_that_are_no_objects_are_wrapped)
{
    struct world w;

    CHECK_STATUS(world_make(&w,
                            "{toolset: s, tools: [{name: t, output_schema: {type: array, items: "
                            "{type: string}}, server_data: [{kind: a.b, audience: x, schema: "
                            "{type: object, properties: {n: {type: integer}}}}]}]}",
                            (struct gen_options){.raw = false}),
                 PEG_OK, w.error);
    for (const struct gen_type *t = w.service.toolsets[0].types; t; t = t->next)
        put_type(&w.text, t);
    CHECK_STR(peg__buf_view(&w.text), "t_args {}\nstring_list = string\n"
                                      "t_result (value: string_list)\nt_a_b {n?: integer}\n");
    world_done(&w);
}

TEST(names_that_become_equal_are_numbered)
{
    struct world w;

    CHECK_STATUS(world_make(&w, "{toolset: s, tools: [{name: a.b}, {name: a-b}, {name: a_b}]}",
                            (struct gen_options){.raw = false}),
                 PEG_OK, w.error);
    CHECK_STR(peg__str(w.service.toolsets[0].tools[0].word), "a_b");
    CHECK_STR(peg__str(w.service.toolsets[0].tools[1].word), "a_b_2");
    CHECK_STR(peg__str(w.service.toolsets[0].tools[2].word), "a_b_3");
    world_done(&w);
}

/* Names of another script all become one word: each costs one try, not one for each before it. */
TEST(a_name_for_each_of_many_members_takes_little_memory)
{
    enum { N = 10000 };
    struct peg__arena arena = {.held = 0};
    struct peg__map taken = PEG__MAP(2 * N);
    char *name = gen_unique(&arena, &taken, "a_3");

    for (int i = 0; i < N; i++)
        name = gen_unique(&arena, &taken, "a");
    CHECK_STR(peg__str(name), "a_10001");
    CHECK_STR(peg__str(gen_unique(&arena, &taken, "a_3")), "a_3_2");
    CHECK(arena.held < (size_t)100 * N);
    peg__map_free(&taken);
    peg__arena_free(&arena);
}

TEST(numbers_that_may_exceed_their_type_are_raw_by_option)
{
    struct world w;

    CHECK_STATUS(world_make(&w,
                            "{toolset: s, tools: [{name: t, input_schema: {type: object, "
                            "properties: {a: {type: integer}, b: {type: integer, minimum: 0, "
                            "maximum: 9}, c: {type: number}}}}]}",
                            (struct gen_options){.raw_numbers = true}),
                 PEG_OK, w.error);
    put_type(&w.text, w.service.toolsets[0].tools[0].args);
    CHECK_STR(peg__buf_view(&w.text), "t_args {a?: json, b?: integer, c?: json}\n");
    world_done(&w);
}

TEST(levels_have_a_limit)
{
    struct world w;
    struct peg__buf yaml = PEG__BUF(1 << 16);

    peg__buf_puts(&yaml, "{toolset: s, tools: [{name: t, output_schema: ");
    for (int i = 0; i < 100; i++)
        peg__buf_puts(&yaml, "{type: array, items: ");
    peg__buf_puts(&yaml, "{}");
    for (int i = 0; i < 100; i++)
        peg__buf_puts(&yaml, "}");
    peg__buf_puts(&yaml, "}]}");
    CHECK_INT(world_make(&w, yaml.ptr, (struct gen_options){.raw = false}), PEG_ELIMIT);
    CHECK_STR(peg__str(w.error.code), "E_GENERATE_LIMIT");
    peg__buf_free(&yaml);
    world_done(&w);
}

/* ---- declarations -------------------------------------------------------------------------- */

static void check_unreadable(const char *yaml, const char *where, const char *reason)
{
    struct world w;

    CHECK_INT(world_make(&w, yaml, (struct gen_options){.raw = false}), PEG_EINVAL);
    CHECK_STR(peg__str(w.error.code), "E_GENERATE");
    CHECK_STR(peg__str(w.error.where), where);
    CHECK(strstr(w.error.message, reason));
    world_done(&w);
}

TEST(declarations_have_several_forms)
{
    static const char *const forms[] = {
        "{service: s, toolsets: [{name: tools, tools: [{name: t}]}]}",
        "{toolset: tools, tools: [{name: t, command: [x]}]}",
        "[{type: function, function: {name: t, parameters: {type: object}}}]",
        "{blocks: [], data: {'pegboard.tool_definitions@v1': [{name: t, inputSchema: {}}]}}",
    };

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct world w;

        CHECK_STATUS(world_make(&w, forms[i], (struct gen_options){.raw = false}), PEG_OK, w.error);
        CHECK_STR(w.service.name, i ? "tools" : "s");
        CHECK_STR(w.service.toolsets[0].name, "tools");
        CHECK_STR(w.service.toolsets[0].tools[0].name, "t");
        world_done(&w);
    }
}

TEST(declarations_that_make_no_tools_are_refused)
{
    check_unreadable("{a: 1}", "", "there are no tools here");
    check_unreadable("{toolset: s, tools: []}", "/tools", "no tools in this");
    check_unreadable("{toolset: s, tools: [{name: 'a b'}]}", "/tools/0", "has a name");
    check_unreadable("{toolset: s, tools: [{name: a}, {name: a}]}", "/tools/1", "two tools");
    check_unreadable("{toolset: s, tools: [{name: a, timeout: x}]}", "/tools/0/timeout",
                     "duration");
    check_unreadable("{toolset: s, tools: [{name: a, server_data: [{kind: k}]}]}",
                     "/tools/0/server_data/0", "audience");
}

TEST(schemas_that_do_not_compile_are_refused_with_their_place)
{
    struct world w;

    CHECK_INT(world_make(&w,
                         "{toolset: s, tools: [{name: t, input_schema: {properties: {a: {type: "
                         "strin}}}}]}",
                         (struct gen_options){.raw = false}),
              PEG_ESCHEMA);
    CHECK(strstr(w.error.where, "/tools/0/input_schema/properties/a"));
    world_done(&w);
}

TORTURE(models_survive_any_allocation_failure)
{
    struct world w;
    peg_status status = world_make(
        &w,
        "{toolset: s, tools: [{name: t, server_data: [{kind: k, audience: a}], "
        "input_schema: " PROPERTY(
            SHAPES) ", output_schema: {type: object, properties: "
                    "{a: {type: [string, 'null']}, b: {enum: [x, y]}, c: {type: array}, d: "
                    "{type: object, additionalProperties: {type: integer}}}}}]}",
        (struct gen_options){.raw = false});

    world_done(&w);
    return status;
}
