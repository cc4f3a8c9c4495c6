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
    const peg_tool_def def = {"forecast", "Tells the weather", schema, .run = forecast};
    const peg_request request = {.tool = peg_cstr("forecast"),
                                 .args = peg_cstr(argc > 1 ? argv[1] : "{}")}; /* by the model */
    peg_tool *tool;
    peg_registry *registry; /* what may be called */
    peg_ctx *root, *ctx;    /* what a call runs in: clock, cancellation, registry */
    peg_record *record;     /* what became of it */
    peg_str answer;
    peg_error error;
    if (peg_tool_new(&def, &tool, &error) || peg_registry_new(&tool, 1, &registry, &error) ||
        peg_ctx_new(&root, &error) || peg_ctx_with_registry(root, registry, &ctx, &error) ||
        peg_call_run(ctx, &request, NULL, &record, &error) ||
        peg_record_answer(record, &answer, &error))
        return fprintf(stderr, "%s: %s\n", error.code, error.message), 2;
    printf("%.*s\n", (int)answer.len, answer.ptr);
    const int status = peg_record_is_error(record) ? 1 : 0;
    peg_record_unref(record);
    peg_ctx_unref(ctx);
    peg_ctx_unref(root);
    peg_registry_unref(registry);
    peg_tool_unref(tool);
    return status;
}
