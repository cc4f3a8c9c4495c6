/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/text/str.h"
#include "remote/client/remote.h"

static bool fits(const char *glob, const char *name)
{
    return remote__glob_matches(peg__str(glob), peg__str(name));
}

TEST(a_glob_without_a_star_is_a_name)
{
    CHECK(fits("weather", "weather"));
    CHECK(!fits("weather", "weather2"));
    CHECK(!fits("weather", "weathe"));
    CHECK(remote__glob_is_name(peg__str("weather")));
}

TEST(two_stars_fit_everything)
{
    CHECK(fits("**", "weather"));
    CHECK(fits("**", "geo/weather/eu"));
    CHECK(!remote__glob_is_name(peg__str("**")));
}

TEST(a_star_behind_a_slash_is_one_level)
{
    CHECK(fits("geo/*", "geo/weather"));
    CHECK(!fits("geo/*", "geo/weather/eu"));
    CHECK(!fits("geo/*", "geo/"));
    CHECK(!fits("geo/*", "geo"));
    CHECK(!fits("geo/*", "geography"));
}

TEST(two_stars_behind_a_slash_are_any_level)
{
    CHECK(fits("geo/**", "geo/weather"));
    CHECK(fits("geo/**", "geo/weather/eu"));
    CHECK(!fits("geo/**", "geo"));
    CHECK(!fits("geo/**", "geography/x"));
}

TEST(a_star_at_the_end_is_a_beginning)
{
    CHECK(fits("geo*", "geo"));
    CHECK(fits("geo*", "geography"));
    CHECK(fits("geo*", "geo/weather"));
    CHECK(!fits("geo*", "ge"));
    CHECK(fits("*", "anything"));
}

TEST(an_exclude_wins_over_an_include)
{
    const char *const include[] = {"geo/**", "mail", NULL};
    const char *const exclude[] = {"geo/secret*", NULL};
    const struct remote__registry registry = {.include = include, .exclude = exclude};
    const struct remote__registry open = {.exclude = exclude};

    CHECK(remote__registry_admits(&registry, peg__str("geo/weather")));
    CHECK(remote__registry_admits(&registry, peg__str("mail")));
    CHECK(!remote__registry_admits(&registry, peg__str("geo/secrets")));
    CHECK(!remote__registry_admits(&registry, peg__str("chat")));
    CHECK(remote__registry_admits(&open, peg__str("chat")));
    CHECK(!remote__registry_admits(&open, peg__str("geo/secret")));
}
