/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a tool of an MCP server that is a program: mcp_import TOOL ARGUMENTS COMMAND... */
#include <pegboard/mcp.h>
#include <pegboard/pegboard.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    peg_mcp_import_options options = {PEG_MCP_IMPORT_OPTIONS_INIT};
    peg_registry *registry = NULL; /* may have other tools, too */
    peg_mcp_client *client = NULL; /* the server, as long as it is needed */
    peg_record *record = NULL;
    peg_str answer;
    peg_error error;

    if (argc < 4)
        return fprintf(stderr, "usage: mcp_import TOOL ARGUMENTS COMMAND...\n"), 2;
    options.command = (const char *const *)argv + 3;
    if (peg_registry_new(NULL, 0, &registry, &error) ||
        peg_mcp_import(registry, &options, &client, &error) ||
        peg_registry_call(registry, argv[1], argv[2], &record, &error) ||
        peg_record_answer(record, &answer, &error))
        return fprintf(stderr, "%s: %s\n", error.code, error.message), 2;
    printf("%s says: %.*s\n", peg_mcp_client_info(client).server, (int)answer.len, answer.ptr);
    peg_record_unref(record);
    peg_mcp_client_free(client); /* its tools are gone, and so is the process */
    peg_registry_unref(registry);
    return 0;
}
