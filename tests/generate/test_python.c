/* SPDX-License-Identifier: Apache-2.0 */

#include "generate/python/python.h"

#include "world.h"

/* ---- fixture: all files of a toolset -------------------------------------------------------- */

static const char *const every_construct =
    "{service: a, toolsets: [{name: b-1, description: 'says \"?\"', tags: [t, u], tools: [\n"
    "{name: get, description: 'Gets \"\"\" it \\ or \"not\"', tags: [x], timeout: 10s,\n"
    " read_only: true, version: v1,\n"
    " examples: [{int: 1}], server_data: [{kind: k.1, audience: z, schema: {type: string}}, {kind: "
    "k-1, audience: z, always: true}],\n"
    " input_schema: {type: object, required: [int], properties: {int: {type: integer}, e: {enum: "
    "[a b, a-b]}, l: {type: array, items: {type: [string, 'null']}}, m: {type: object}, u: {type: "
    "[string, boolean]}, r: {$ref: '#'}, n: {type: [number, 'null']}}, additionalProperties: "
    "{type: number}},\n"
    " output_schema: {oneOf: [{type: object, required: [k], properties: {k: {const: x}}}, {type: "
    "object, required: [k], properties: {k: {const: y}, n: {type: 'null'}}}]}},\n"
    "{name: 2nd, description: d}]}]}";

/* ---- tests ---------------------------------------------------------------------------------- */

TEST(attributes_have_types_and_safe_names)
{
    struct world w;

    CHECK_STATUS(world_write(&w, &gen_python, every_construct), PEG_OK, w.error);

    check_has(&w, "    int_: int\n    e: GetArgsE | None = None\n    l: list[str | None] | None = "
                  "None\n    m: dict[str, Any] | None = None\n    u: GetArgsU | None = None\n"
                  "    r: GetArgs | None = None\n"
                  "    n: float | None | typed.Missing = typed.MISSING\n"
                  "    others: dict[str, float] = field(default_factory=dict)\n");
    check_has(&w, "GetArgsE: TypeAlias = Literal[\"a b\", \"a-b\"]\n");
    check_has(&w, "GetArgsU: TypeAlias = Union[bool, str]\n");
    check_has(&w, "class _2ndArgs(typed.Struct):\n");
    check_has(&w, "    def _2nd(\n");
    world_done(&w);
}

/* It would hide the class from the annotations of its own. */
TEST(no_attribute_has_the_name_of_a_class)
{
    struct world w;

    CHECK_STATUS(world_write(&w, &gen_python,
                             "{toolset: t, tools: [{name: a, description: d,\n"
                             " server_data: [{kind: AArgs, audience: z}], input_schema:\n"
                             " {type: object, properties: {AArgsE: {type: string}, e: {enum: [x, "
                             "y]}, AServerData: {type: string}}}}]}"),
                 PEG_OK, w.error);

    check_has(&w, "    AArgsE_: str | None = None\n    e: AArgsE | None = None\n"
                  "    AServerData_: str | None = None\n");
    check_has(&w, "    AArgs_: Any = typed.MISSING\n");
    world_done(&w);
}

TEST(a_constant_is_given_by_default)
{
    struct world w;

    CHECK_STATUS(world_write(&w, &gen_python, every_construct), PEG_OK, w.error);

    check_has(&w, "    k: GetResultValueXK = \"x\"\n");
    world_done(&w);
}

TEST(docstrings_and_literals_stay_what_they_are)
{
    struct world w;

    CHECK_STATUS(world_write(&w, &gen_python, every_construct), PEG_OK, w.error);

    check_has(&w, "        \"\"\"Gets \\\"\\\"\\\" it \\\\ or \"not\\\"\"\"\"\n");
    check_has(&w, "            description='Gets \"\"\" it \\\\ or \"not\"',\n");
    check_has(&w, "DESCRIPTION = 'says \"?\"'\n");
    world_done(&w);
}

/* A reader sees the code in the order that it has. */
TEST(characters_that_change_the_order_of_text_are_escaped)
{
    struct world w;

    CHECK_STATUS(world_write(&w, &gen_python,
                             "{toolset: t, tools: [{name: a, description: 'x\xE2\x80\xAEy'}]}"),
                 PEG_OK, w.error);

    check_has(&w, "        \"\"\"x\\u202ey\"\"\"\n");
    check_has(&w, "            description=\"x\\u202ey\",\n");
    CHECK(!strstr(w.text.ptr, "\xE2\x80\xAE"));
    world_done(&w);
}

TEST(hints_of_a_tool_are_in_its_definition)
{
    struct world w;

    CHECK_STATUS(world_write(&w, &gen_python, every_construct), PEG_OK, w.error);

    check_has(&w, "            examples=_examples_of_get,\n            version=\"v1\",\n"
                  "            tags=[\"x\"],\n            timeout_ms=10000,\n"
                  "            read_only=True,\n");
    check_has(&w, "TAGS: list[str] = [\"t\", \"u\"]\n");
    world_done(&w);
}

TEST(a_long_text_is_cut_between_characters)
{
    struct peg__buf yaml = PEG__BUF(1 << 20);
    struct world w;

    peg__buf_puts(&yaml, "{toolset: t, description: 'x");
    for (int i = 0; i < 100; i++)
        peg__buf_puts(&yaml, "\xE2\x82\xAC");
    peg__buf_puts(&yaml, "', tools: [{name: a, description: d}]}");
    CHECK_STATUS(world_write(&w, &gen_python, yaml.ptr), PEG_OK, w.error);

    /* 72 bytes hold 23 of three beside the x, and 24 of three afterwards. */
    check_has(&w, "DESCRIPTION = (\n    \"x\xE2\x82\xAC");
    check_has(&w, "\xE2\x82\xAC\"\n    \"\xE2\x82\xAC");
    CHECK(!strstr(w.text.ptr, "\xE2\x82\"") && !strstr(w.text.ptr, "\xE2\""));
    peg__buf_free(&yaml);
    world_done(&w);
}

TEST(folders_have_names_that_can_be_imported)
{
    struct peg__arena arena = {.held = 0};

    CHECK_STR(peg__str(gen_python.folder(&arena, "class")), "class_");
    CHECK_STR(peg__str(gen_python.folder(&arena, "2d")), "_2d");
    CHECK_STR(peg__str(gen_python.folder(&arena, "weather")), "weather");
    peg__arena_free(&arena);
}

/* Not only the status: a part that is missing would be a program that is wrong. */
TORTURE(files_are_whole_or_out_of_memory)
{
    static char *whole;
    struct world w;
    peg_status status;

    if (!whole) {
        peg__mem_fail_at(0);
        CHECK_INT(world_write(&w, &gen_python, every_construct), PEG_OK);
        whole = strdup(w.text.ptr);
        world_done(&w);
        return PEG_ENOMEM;
    }
    status = world_write(&w, &gen_python, every_construct);
    if (!status)
        CHECK(strcmp(whole, w.text.ptr) == 0);
    world_done(&w);
    return status;
}
