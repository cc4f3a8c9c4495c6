/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_CORE_TOOL_WORLD_H
#define PEG_TESTS_CORE_TOOL_WORLD_H

/* Tools made from little, and what construction says. */

#include "../t.h"
#include "base/text/str.h"
#include "pegboard/tool.h"

static inline void answer(peg_call *call, const peg_json *args, void *user)
{
    (void)call;
    (void)args;
    (void)user;
}

static inline peg_tool_def minimal(void)
{
    return (peg_tool_def){PEG_TOOL_DEF_INIT, .name = "search", .description = "Finds things.",
                          .run = answer};
}

static inline peg_tool_def with_schema(const char *schema)
{
    peg_tool_def def = minimal();

    def.input_schema = schema;
    return def;
}

static inline peg_tool *make(const peg_tool_def *def)
{
    peg_tool *tool = NULL;
    peg_error error;

    CHECK_STATUS(peg_tool_new(def, &tool, &error), PEG_OK, error);
    return tool;
}

/* Construction fails at this place; the error says so and how to do better. */
static inline void check_refused(const peg_tool_def *def, const char *where, const char *cause,
                                 const char *words)
{
    peg_tool *tool = NULL;
    peg_error error = {0};

    CHECK_STATUS(peg_tool_new(def, &tool, &error), PEG_EINVAL, error);

    CHECK(!tool);
    CHECK_STR(peg__str(error.code), "E_INVALID_INITIAL_TOOL_VALUE");
    CHECK_STR(peg__str(error.where), where);
    CHECK_STR(peg__str(error.cause), cause);
    if (!strstr(error.message, words))
        T_FAIL("the message is \"%s\", expected it to say \"%s\"", error.message, words);
}

static inline void check_json(const peg_json *value, const char *expected)
{
    char *text = NULL;

    CHECK(value != NULL);
    CHECK_INT(peg_json_write(value, PEG_JSON_COMPACT, &text, NULL, NULL), PEG_OK);
    CHECK_STR(peg__str(text), expected);
    peg_free(text);
}

#endif
