/* SPDX-License-Identifier: Apache-2.0 */

#include "bus/redis/url.h"

#include "../t.h"
#include "base/text/str.h"

/* What a text says, in one line. */
static const char *read_url(const char *text, const char *password)
{
    static char told[2048];
    struct redis_url url;
    peg_error error;

    if (redis_url_parse(text, password, &url, &error)) {
        CHECK_INT(error.status, PEG_EPARSE);
        CHECK_STR(peg__str(error.code), "E_REDIS_URL");
        CHECK(!strstr(error.message, "secret"));
        return "refused";
    }
    snprintf(told, sizeof(told), "%s%s:%d db=%u user=%s password=%s%s", url.is_tls ? "tls " : "",
             url.endpoint.is_unix ? url.endpoint.unix_address.at.unix_path.sun_path
                                  : url.endpoint.host,
             url.endpoint.is_unix ? 0 : url.endpoint.port, url.db, url.user, url.password,
             url.has_password ? "" : " (none)");
    return told;
}

struct row {
    const char *text;
    const char *told;
};

TEST(each_form_of_an_address_is_read)
{
    static const struct row rows[] = {
        {"redis:6379", "redis:6379 db=0 user= password= (none)"},
        {"localhost:7000", "localhost:7000 db=0 user= password= (none)"},
        {"cache.example.org", "cache.example.org:6379 db=0 user= password= (none)"},
        {":6380", "localhost:6380 db=0 user= password= (none)"},
        {"[::1]:6380", "::1:6380 db=0 user= password= (none)"},
        {"[::1]", "::1:6379 db=0 user= password= (none)"},
        {"redis://h", "h:6379 db=0 user= password= (none)"},
        {"redis://h:1/", "h:1 db=0 user= password= (none)"},
        {"redis://h:1/5", "h:1 db=5 user= password= (none)"},
        {"redis://h:1?db=5", "h:1 db=5 user= password= (none)"},
        {"redis://:pw@h:1/2", "h:1 db=2 user= password=pw"},
        {"redis://me:pw@h", "h:6379 db=0 user=me password=pw"},
        {"redis://me@h", "h:6379 db=0 user=me password= (none)"},
        {"redis://me:@h", "h:6379 db=0 user=me password="},
        {"redis://me:p%40s%3As%2Fw%25@h", "h:6379 db=0 user=me password=p@s:s/w%"},
        {"redis://me:p@ss@h", "h:6379 db=0 user=me password=p@ss"},
        {"redis://u:p@[2001:db8::1]:7/1", "2001:db8::1:7 db=1 user=u password=p"},
        {"rediss://h:6390", "tls h:6390 db=0 user= password= (none)"},
        {"unix:///run/redis.sock", "/run/redis.sock:0 db=0 user= password= (none)"},
        {"unix:///run/redis.sock?db=3", "/run/redis.sock:0 db=3 user= password= (none)"},
        {"unix://me:pw@/run/a%20b.sock", "/run/a b.sock:0 db=0 user=me password=pw"},
        {"unix:///run/me@home.sock", "/run/me@home.sock:0 db=0 user= password= (none)"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        CHECK_STR(peg__str(read_url(rows[i].text, NULL)), rows[i].told);
}

TEST(what_is_no_address_is_refused_without_showing_it)
{
    static const char *const texts[] = {
        "",
        "redis://",
        "redis://:secret@",
        "redis://h:port",
        "redis://h:0",
        "redis://h:99999",
        "redis://h/secret",
        "redis://h/-1",
        "redis://h/99999999999999999999",
        "redis://h?timeout=5",
        "redis://u:secret%zz@h",
        "redis://u:secret%4@h",
        "redis://u:secret%00@h",
        "http://u:secret@h",
        "unix://",
        "unix://run/x",
        "unix:///x?db=y",
        "h:1:2:secret",
        "2001:db8::1",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        CHECK_STR(peg__str(read_url(texts[i], NULL)), "refused");
    CHECK_STR(peg__str(read_url(NULL, NULL)), "refused");
}

TEST(a_text_that_is_too_long_is_refused)
{
    char text[4096];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    CHECK_STR(peg__str(read_url(text, NULL)), "refused");
    text[2000] = '\0';
    CHECK_STR(peg__str(read_url(text, NULL)), "refused");
    memcpy(text, "redis://:", 9);
    memcpy(text + 700, "@h", 3);
    CHECK_STR(peg__str(read_url(text, NULL)), "refused");
    text[700] = '\0';
    CHECK_STR(peg__str(read_url("h:1", text)), "refused");
}

TEST(a_password_beside_the_address_holds_if_the_address_has_none)
{
    CHECK_STR(peg__str(read_url("h:1", "pw")), "h:1 db=0 user= password=pw");
    CHECK_STR(peg__str(read_url("redis://me@h:1", "pw")), "h:1 db=0 user=me password=pw");
    CHECK_STR(peg__str(read_url("redis://:own@h:1", "pw")), "h:1 db=0 user= password=own");
    CHECK_STR(peg__str(read_url("h:1", "")), "h:1 db=0 user= password= (none)");
}
