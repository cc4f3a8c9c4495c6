/* SPDX-License-Identifier: Apache-2.0 */

#include "t.h"

#include <string.h>

#include "base/text/str.h"
#include "wire/wire.h"

static const char *name_of(const char *toolset, const char *tool)
{
    static char name[WIRE_MCP_NAME];

    CHECK(wire_mcp_name(peg__str(toolset), peg__str(tool), name));
    return name;
}

/* Begins like this, and ends with _ and 16 digits of a digest. */
static void check_digested(const char *toolset, const char *tool, const char *beginning)
{
    const char *name = name_of(toolset, tool);
    const size_t len = strlen(name);

    if (strncmp(name, beginning, strlen(beginning)) != 0 || len != strlen(beginning) + 17 ||
        name[len - 17] != '_' || strspn(name + len - 16, "0123456789abcdef") != 16)
        T_FAIL("'%s' does not begin with '%s' and end with a digest", name, beginning);
}

TEST(mcp_name_is_the_toolset_and_the_tool)
{
    CHECK_STR(peg__str(name_of("weather", "forecast")), "weather__forecast");
    CHECK_STR(peg__str(name_of("a-b", "c_d__e")), "a-b__c_d__e");
}

TEST(mcp_name_that_is_changed_ends_with_a_digest)
{
    check_digested("eu/weather", "forecast", "eu_weather__forecast");
    check_digested("weather", "fore.cast", "weather__fore_cast");
}

TEST(mcp_name_that_could_be_anothers_ends_with_a_digest)
{
    check_digested("a__b", "c", "a__b__c");
    check_digested("a_", "b", "a___b");
    check_digested("a", "b_0123456789abcdef", "a__b_0123456789abcdef");
    CHECK_STR(peg__str(name_of("a", "b__c")), "a__b__c");
}

TEST(mcp_name_has_at_most_64_bytes)
{
    const char *longest = "12345678901234567890123456789012345678901234567890123456789012345";

    CHECK_INT(strlen(name_of(longest, "tool")), WIRE_MCP_NAME - 1);
    CHECK_INT(strlen(name_of("toolset", longest)), WIRE_MCP_NAME - 1);
    CHECK_STR(peg__str(name_of("a", longest + 4)),
              "a__5678901234567890123456789012345678901234567890123456789012345");
}

TEST(mcp_names_that_are_cut_differ)
{
    const char *longest = "12345678901234567890123456789012345678901234567890123456789012345";
    char first[WIRE_MCP_NAME];

    CHECK(wire_mcp_name(peg__str(longest), peg__str("a"), first));

    CHECK(strcmp(name_of(longest, "b"), first) != 0);
    CHECK_STR(peg__str(name_of(longest, "a")), first);
}
