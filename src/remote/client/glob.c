/* SPDX-License-Identifier: Apache-2.0 */

/* Which toolsets of a registry there are for a client. */

#include "base/text/str.h"
#include "remote/client/remote.h"

static bool ends_in(peg_str s, const char *end)
{
    const peg_str tail = peg__str(end);

    return s.len >= tail.len && memcmp(s.ptr + s.len - tail.len, tail.ptr, tail.len) == 0;
}

static bool is_below(peg_str glob, size_t n_stars, peg_str name)
{
    const peg_str folder = peg__strn(glob.ptr, glob.len - n_stars); /* "p/" */

    return peg__str_starts(name, folder) && name.len > folder.len;
}

bool remote__glob_matches(peg_str glob, peg_str name)
{
    if (peg__str_is(glob, "**"))
        return true;
    if (ends_in(glob, "/**"))
        return is_below(glob, 2, name);
    if (ends_in(glob, "/*"))
        return is_below(glob, 1, name) &&
               !memchr(name.ptr + glob.len - 1, '/', name.len - (glob.len - 1));
    if (ends_in(glob, "*"))
        return peg__str_starts(name, peg__strn(glob.ptr, glob.len - 1));
    return peg__str_eq(glob, name);
}

bool remote__glob_is_name(peg_str glob)
{
    return !ends_in(glob, "*");
}

static bool is_in(const char *const *globs, peg_str name)
{
    for (size_t i = 0; globs[i]; i++) {
        if (remote__glob_matches(peg__str(globs[i]), name))
            return true;
    }
    return false;
}

bool remote__registry_admits(const struct remote__registry *registry, peg_str toolset)
{
    if (registry->exclude && is_in(registry->exclude, toolset))
        return false;
    return !registry->include || !registry->include[0] || is_in(registry->include, toolset);
}
