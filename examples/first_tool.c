/* SPDX-License-Identifier: Apache-2.0 */
#include <pegboard/pegboard.h>
#include <stdio.h>
static void forecast(peg_call *call, const peg_json *args, void *user)
{
    (void)user; /* both members are there and are what the schema says: that was checked */
    peg_call_replyf(call, "%s: %g sunny days", peg_json_str(peg_json_get(args, "city")).ptr,
                    peg_json_double(peg_json_get(args, "days")));
}
int main(int argc, char **argv)
{
    const char *schema = "{\"type\": \"object\", \"required\": [\"city\"], \"properties\": {"
                         "  \"city\": {\"type\": \"string\"},"
                         "  \"days\": {\"type\": \"integer\", \"maximum\": 14, \"default\": 3}}}";
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, "forecast", "Tells the weather", schema,
                              .run = forecast};
    peg_tool *tool;
    peg_registry *registry; /* what may be called */
    peg_record *record;     /* what became of a call */
    peg_str answer;
    peg_error error;
    if (peg_tool_new(&def, &tool, &error) || peg_registry_new(&tool, 1, &registry, &error) ||
        peg_registry_call(registry, "forecast", argc > 1 ? argv[1] : "{}", &record, &error) ||
        peg_record_answer(record, &answer, &error))
        return fprintf(stderr, "%s: %s\n", error.code, error.message), 2;
    printf("%.*s\n", (int)answer.len, answer.ptr);
    peg_record_unref(record);
    peg_registry_unref(registry);
    peg_tool_unref(tool);
}
