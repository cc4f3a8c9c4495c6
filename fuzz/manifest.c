/* SPDX-License-Identifier: Apache-2.0 */

/* Input: a manifest. It is refused with a place, or becomes tools that have names; nothing of it
 * runs. */

#include "pegboard/manifest.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const peg_str text = fuzz_input(data, size);
    peg_manifest *manifest = NULL;
    peg_tool_list tools;
    peg_error error;

    if (peg_manifest_parse(text, "/nowhere", &manifest, &error)) {
        fuzz_check_error(&error, text);
        return 0;
    }
    REQUIRE(peg_manifest_toolset(manifest)[0], "a toolset has a name");
    REQUIRE(peg_registry_all(peg_manifest_registry(manifest), &tools, NULL) == PEG_OK, "memory");
    REQUIRE(tools.len > 0, "a toolset has tools");
    for (size_t i = 0; i < tools.len; i++)
        REQUIRE(peg_tool_name(tools.items[i])[0], "a tool has a name");
    peg_tool_list_free(&tools);
    peg_manifest_free(manifest);
    return 0;
}
