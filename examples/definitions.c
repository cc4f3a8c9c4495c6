/* SPDX-License-Identifier: Apache-2.0 */

/* What each vendor is told about one tool, and what of it is lost on the way. */

#include <pegboard/pegboard.h>
#include <stdio.h>

#define SHOWN(s) (int)(s).len, (s).ptr

static const char schema[] =
    "{\"type\": \"object\", \"required\": [\"path\"], \"properties\": {"
    "  \"path\": {\"type\": \"string\", \"pattern\": \"^/srv/\", \"maxLength\": 200},"
    "  \"lines\": {\"type\": \"integer\", \"exclusiveMinimum\": 0, \"default\": 10}}}";

static void read_file(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    peg_call_reply_json(call, args);
}

static peg_status show(const peg_json *defs, const peg_definitions_options *options, peg_error *e)
{
    peg_definition_losses *losses = NULL;
    char *text = NULL;
    peg_status status = peg_definitions_render(defs, options, &text, NULL, &losses, e);
    if (status)
        return status;
    printf("%s%s\n  %s\n", peg_vendor_name(options->vendor), options->strict ? ", strict" : "",
           text);
    for (size_t i = 0; i < peg_definition_losses_len(losses); i++) {
        const peg_definition_loss *loss = peg_definition_losses_at(losses, i);
        printf("  %s %.*s %.*s: %.*s\n", loss->what, SHOWN(loss->keyword), SHOWN(loss->where),
               SHOWN(loss->note));
    }
    peg_definition_losses_free(losses);
    peg_free(text);
    return PEG_OK;
}

int main(void)
{
    static const peg_definitions_options options[] = {
        {PEG_DEFINITIONS_OPTIONS_INIT, .vendor = PEG_VENDOR_OPENAI_CHAT},
        {PEG_DEFINITIONS_OPTIONS_INIT, .vendor = PEG_VENDOR_OPENAI_RESPONSES, .strict = true},
        {PEG_DEFINITIONS_OPTIONS_INIT, .vendor = PEG_VENDOR_ANTHROPIC},
        {PEG_DEFINITIONS_OPTIONS_INIT, .vendor = PEG_VENDOR_GEMINI}};
    const peg_tool_def def = {
        PEG_TOOL_DEF_INIT, "fs.read",        "Reads the first lines of a file.", schema,
        .run = read_file,  .read_only = true};
    peg_registry *registry = NULL;
    peg_json_doc *defs = NULL;
    peg_tool *tool = NULL;
    peg_error e;
    if (peg_tool_new(&def, &tool, &e) || peg_registry_new(&tool, 1, &registry, &e) ||
        peg_registry_definitions(registry, &defs, &e))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (show(peg_json_root(defs), &options[i], &e))
            return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    peg_json_doc_free(defs);
    peg_registry_unref(registry);
    peg_tool_unref(tool);
    return 0;
}
