/* SPDX-License-Identifier: Apache-2.0 */

#include "generate/ts/ts.h"

#include "world.h"

/* ---- fixture: all files of a toolset -------------------------------------------------------- */

static const char *const every_construct =
    "{service: a, toolsets: [{name: b-1, description: 'says \"?\"', tools: [\n"
    "{name: get_it, description: 'Gets */ it, @ts-ignore or a@b.', tags: [x], timeout: 10s, "
    "read_only: true,\n"
    " examples: [{int: 1}], server_data: [{kind: k.1, audience: z, schema: {type: string}}, {kind: "
    "k-1, audience: z, always: true}],\n"
    " input_schema: {type: object, required: [int], properties: {int: {type: integer}, e: {enum: "
    "[a b, a-b]}, l: {type: array, items: {type: [string, 'null']}}, m: {type: object}, u: {type: "
    "[string, boolean]}, r: {$ref: '#'}, a-b: {const: '\"'}}, additionalProperties: {type: "
    "number}},\n"
    " output_schema: {oneOf: [{type: object, required: [k], properties: {k: {const: x}}}, {type: "
    "object, required: [k], properties: {k: {const: y}, n: {type: 'null'}}}]}},\n"
    "{name: then, description: d}, {name: 2nd, description: d}, {name: HTTPGet, description: d},\n"
    "{name: getIt, description: d, output_schema: {oneOf: [{type: string}, {type: object, "
    "additionalProperties: {$ref: '#'}}]}}]}]}";

/* ---- tests ---------------------------------------------------------------------------------- */

TEST(each_construct_has_a_type)
{
    struct world w;

    CHECK_STATUS(world_write(&w, &gen_ts, every_construct), PEG_OK, w.error);

    check_has(&w, "export type GetItArgsE = \"a b\" | \"a-b\";\n");
    check_has(&w, "  int: number;\n  e?: GetItArgsE;\n  l?: (string | null)[];\n"
                  "  m?: Record<string, unknown>;\n");
    check_has(&w, "export type GetItArgsU = boolean | string;\n");
    check_has(&w, "  r?: GetItArgs;\n  \"a-b\"?: '\"';\n");
    check_has(&w, "  k: \"y\";\n  n?: null;\n");
    check_has(&w, "export type GetItResultValue = GetItResultValueX | GetItResultValueY;\n");
    check_has(&w, "export type _2ndArgs = Record<string, never>;\n");
    world_done(&w);
}

/* Of named members as well: the compiler wants each of them to fit. */
TEST(members_without_a_name_have_the_types_of_all)
{
    struct world w;

    CHECK_STATUS(world_write(&w, &gen_ts, every_construct), PEG_OK, w.error);

    check_has(&w, "  [name: string]:\n    | number\n    | GetItArgsE\n    | (string | null)[]\n"
                  "    | Record<string, unknown>\n    | GetItArgsU\n    | GetItArgs\n    | '\"'\n"
                  "    | undefined;\n");
    world_done(&w);
}

/* Record<> of itself would be an error of the compiler. */
TEST(an_alias_may_contain_itself)
{
    struct world w;

    CHECK_STATUS(world_write(&w, &gen_ts, every_construct), PEG_OK, w.error);

    check_has(&w, "= string | { [name: string]: GetItResult");
    world_done(&w);
}

TEST(names_are_safe_and_distinct)
{
    struct world w;

    CHECK_STATUS(world_write(&w, &gen_ts, every_construct), PEG_OK, w.error);

    check_has(&w, "export interface B1Tools {\n");
    check_has(&w, "export class B1Client {\n");
    check_has(&w, "  then_: pegboard.Handler<ThenArgs, ThenResult>;\n");
    check_has(&w, "  _2nd: pegboard.Handler<_2ndArgs, _2ndResult>;\n");
    check_has(&w, "  HTTPGet: pegboard.Handler<HTTPGetArgs, HTTPGetResult>;\n");
    check_has(&w, "  getIt_2: pegboard.Handler<GetItArgs_2, GetItResult_2>;\n");
    check_has(&w, "  k1?: string;\n  k12: unknown;\n");
    world_done(&w);
}

TEST(comments_and_literals_stay_what_they_are)
{
    struct world w;

    CHECK_STATUS(world_write(&w, &gen_ts, every_construct), PEG_OK, w.error);

    check_has(&w, "/** Gets * / it, \\@ts-ignore or a@b. */\n");
    check_has(&w, "description: \"Gets */ it, @ts-ignore or a@b.\",\n");
    check_has(&w, "description: 'says \"?\"',\n");
    world_done(&w);
}

/* tsc runs out of stack within a sum of some thousand literals. */
TEST(a_very_long_text_is_no_sum)
{
    struct peg__buf yaml = PEG__BUF(1 << 20);
    struct world w;

    peg__buf_puts(&yaml, "{toolset: t, tools: [{name: a, description: '");
    peg__buf_repeat(&yaml, 'x', 60000);
    peg__buf_puts(&yaml, "'}]}");
    CHECK_STATUS(world_write(&w, &gen_ts, yaml.ptr), PEG_OK, w.error);

    check_has(&w, "        description: [\n          \"xxx");
    check_has(&w, "xxx\",\n        ].join(\"\"),\n");
    CHECK(!strstr(w.text.ptr, " +\n"));
    peg__buf_free(&yaml);
    world_done(&w);
}

TEST(hints_of_a_tool_are_in_its_definition)
{
    struct world w;

    CHECK_STATUS(world_write(&w, &gen_ts, every_construct), PEG_OK, w.error);

    check_has(&w, "        readOnly: true,\n        timeoutMs: 10000,\n        tags: [\"x\"],\n"
                  "        examples: '[{\"int\":1}]',\n");
    check_has(&w, "        input: '{\"type\":\"object\",\"additionalProperties\":false}',\n");
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
        CHECK_INT(world_write(&w, &gen_ts, every_construct), PEG_OK);
        whole = strdup(w.text.ptr);
        world_done(&w);
        return PEG_ENOMEM;
    }
    status = world_write(&w, &gen_ts, every_construct);
    if (!status)
        CHECK(strcmp(whole, w.text.ptr) == 0);
    world_done(&w);
    return status;
}
