/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/cli.h"

#include <unistd.h>

#include "base/text/str.h"
#include "t.h"

static void check_uri(const char *path, const char *expected)
{
    struct peg__arena arena = {0};
    peg_error error;
    peg_str uri;

    CHECK_STATUS(cli_file_uri(&arena, path, &uri, &error), PEG_OK, error);
    CHECK_STR(uri, expected);
    CHECK(uri.ptr[uri.len] == '\0');
    peg__arena_free(&arena);
}

TEST(an_absolute_path_is_the_path_of_its_uri)
{
    check_uri("/a/b.json", "file:///a/b.json");
    check_uri("/a/./c/..//b.json", "file:///a/b.json");
    check_uri("//host/b.json", "file:///host/b.json");
    check_uri("/../b.json", "file:///b.json");
}

TEST(what_a_uri_cannot_hold_is_percent_encoded)
{
    check_uri("/a b/100%/c?d#e.json", "file:///a%20b/100%25/c%3Fd%23e.json");
    check_uri("/\xC3\xB8\n\xFF", "file:///%C3%B8%0A%FF");
    check_uri("/-._~!$&'()*+,;=:@", "file:///-._~!$&'()*+,;=:@");
}

TEST(a_relative_path_starts_in_the_current_directory)
{
    CHECK_INT(chdir("/usr"), 0);
    check_uri("b.json", "file:///usr/b.json");
    check_uri("../a:b.json", "file:///a:b.json");
    check_uri("-", "file:///usr/");
    CHECK_INT(chdir("/"), 0);
    check_uri("b.json", "file:///b.json");
}

TORTURE(a_file_uri_survives_any_allocation_failure)
{
    struct peg__arena arena = {0};
    peg_error error;
    peg_str uri;
    peg_status status = cli_file_uri(&arena, "/a/../b.json", &uri, &error);

    peg__arena_free(&arena);
    return status;
}
