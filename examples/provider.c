/* SPDX-License-Identifier: Apache-2.0 */

/* A tool of this program, offered through a gateway until SIGTERM: provider [ADDRESS] */

#include <pegboard/pegboard.h>
#include <pegboard/provider.h>
#include <stdio.h>

static void measure(peg_call *call, const peg_json *args, void *user)
{
    const peg_str text = peg_json_str(peg_json_get(args, "text"));
    (void)user;
    peg_provider_delta(call, "progress", peg_cstr("measuring\n")); /* to those who listen */
    peg_call_replyf(call, "%zu bytes for %s", text.len, peg_provider_call_of(call)->caller);
}

static void tell(const peg_provider_event *event, void *user)
{
    (void)user;
    if (event->kind == PEG_PROVIDER_ATTACHED)
        printf("%s is offered at %s\n", event->toolset, event->address), fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *schema = "{\"type\": \"object\", \"required\": [\"text\"],"
                         " \"properties\": {\"text\": {\"type\": \"string\"}}}";
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, "measure", "Tells how long a text is.", schema,
                              .run = measure};
    const char *address = argc > 1 ? argv[1] : NULL; /* NULL: 127.0.0.1:9090 */
    const peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT, "texts", .address = address,
                                          .on_event = tell, .handles_signals = true};
    peg_registry *registry = NULL;
    peg_tool *tool = NULL;
    peg_error e;

    if (peg_tool_new(&def, &tool, &e) || peg_registry_new(&tool, 1, &registry, &e) ||
        peg_provider_serve(registry, &options, &e))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    return peg_registry_unref(registry), peg_tool_unref(tool), 0;
}
