/* SPDX-License-Identifier: Apache-2.0 */

#include "generate/c/c.h"

#include "world.h"

/* ---- fixture: all files of a toolset -------------------------------------------------------- */

static const char *const every_construct =
    "{service: a, toolsets: [{name: b-1, description: 'says \"?\"', tools: [\n"
    "{name: get, description: 'Gets */ it, /* or not.', tags: [x], timeout: 10s, read_only: true,\n"
    " examples: [{int: 1}], server_data: [{kind: k.1, audience: z, schema: {type: string}}, {kind: "
    "k-1, audience: z, always: true}],\n"
    " input_schema: {type: object, required: [int], properties: {int: {type: integer}, e: {enum: "
    "[a b, a-b]}, l: {type: array, items: {type: [string, 'null']}}, m: {type: object}, u: {type: "
    "[string, boolean]}, r: {$ref: '#'}}, additionalProperties: {type: number}},\n"
    " output_schema: {oneOf: [{type: object, required: [k], properties: {k: {const: x}}}, {type: "
    "object, required: [k], properties: {k: {const: y}, n: {type: 'null'}}}]}},\n"
    "{name: 2nd, description: d}]}]}";

/* ---- tests ---------------------------------------------------------------------------------- */

TEST(names_are_safe_and_distinct)
{
    struct world w;

    CHECK_STATUS(world_write(&w, &gen_c, every_construct), PEG_OK, w.error);

    check_has(&w, "int b_1_get_run(const b_1_get_args *args, b_1_get_result *result,");
    check_has(&w, "    int64_t int_;\n");
    check_has(&w, "    B_1_GET_ARGS_E_A_B = 0,\n    B_1_GET_ARGS_E_A_B_2,\n");
    check_has(&w, "    const b_1_get_args *r;\n");
    check_has(&w, "    bool has_k_1;\n    peg_str k_1;\n    const peg_json *k_1_2;\n");
    check_has(&w, "int b_1_2nd_run(");
    world_done(&w);
}

TEST(comments_and_literals_stay_what_they_are)
{
    struct world w;

    CHECK_STATUS(world_write(&w, &gen_c, every_construct), PEG_OK, w.error);

    check_has(&w, "/* Gets * / it, / * or not. */");
    check_has(&w, "#define B_1_DESCRIPTION \"says \\\"?\\\"\"\n");
    check_has(&w, ".description = \"Gets */ it, /* or not.\",\n");
    world_done(&w);
}

/* A reader sees the code in the order that it has. */
TEST(characters_that_change_the_order_of_text_are_not_written)
{
    struct world w;

    CHECK_STATUS(world_write(&w, &gen_c,
                             "{toolset: t, tools: [{name: a, description: '*\xE2\x80\xAE/ x'}]}"),
                 PEG_OK, w.error);

    check_has(&w, "/* *./ x */");
    CHECK(!strstr(w.text.ptr, "\xE2\x80\xAE"));
    world_done(&w);
}

TEST(hints_of_a_tool_are_in_its_definition)
{
    struct world w;

    CHECK_STATUS(world_write(&w, &gen_c, every_construct), PEG_OK, w.error);

    check_has(&w, "        .read_only = true,\n        .timeout_ms = 10000,\n"
                  "        .tags = tags_of_get,\n        .examples = examples_of_get,\n");
    world_done(&w);
}

TEST(a_schema_longer_than_a_literal_is_an_array)
{
    struct peg__buf yaml = PEG__BUF(1 << 20);
    struct world w;

    peg__buf_puts(&yaml, "{toolset: t, tools: [{name: a, description: d, input_schema: {type: "
                         "object, description: '");
    peg__buf_repeat(&yaml, 'x', 5000);
    peg__buf_puts(&yaml, "'}}]}");
    CHECK_STATUS(world_write(&w, &gen_c, yaml.ptr), PEG_OK, w.error);

    check_has(&w, "static const char input_of_a[] = {\n    123, 34, 116,");
    peg__buf_free(&yaml);
    world_done(&w);
}

/* Not only the status: a part that is missing would be a program that is wrong. */
TORTURE(files_are_whole_or_out_of_memory)
{
    static char *whole;
    struct world w;
    peg_status status;

    if (!whole) {
        peg__mem_fail_at(0);
        CHECK_INT(world_write(&w, &gen_c, every_construct), PEG_OK);
        whole = strdup(w.text.ptr);
        world_done(&w);
        return PEG_ENOMEM;
    }
    status = world_write(&w, &gen_c, every_construct);
    if (!status)
        CHECK(strcmp(whole, w.text.ptr) == 0);
    world_done(&w);
    return status;
}
