/* SPDX-License-Identifier: Apache-2.0 */

#include "base/text/str.h"
#include "otlp/internal.h"
#include "t.h"

static void check_url(const char *text, const char *authority, const char *path, uint16_t port)
{
    struct otlp__url url;

    CHECK_INT(otlp__url_parse(text, &url, NULL), PEG_OK);
    CHECK_STR(peg__str(url.authority), authority);
    CHECK_STR(peg__str(url.path), path);
    CHECK_INT(url.endpoint.port, port);
}

TEST(url_is_a_base_to_which_the_path_of_traces_is_added)
{
    check_url("http://localhost:4318", "localhost:4318", "/v1/traces", 4318);
    check_url("http://localhost:4318/", "localhost:4318", "/v1/traces", 4318);
    check_url("http://10.0.0.1/otlp/", "10.0.0.1", "/otlp/v1/traces", 80);
    check_url("https://[::1]", "[::1]", "/v1/traces", 443);
    check_url("https://[::1]:9/v1/traces", "[::1]:9", "/v1/traces", 9);
}

TEST(url_is_refused_with_a_sentence_that_shows_one)
{
    static const char *const texts[] = {
        "",           "localhost:4318", "grpc://localhost", "http://",         "http://:4318",
        "http://a:b", "http://a:0",     "http://u:p@a",     "http://a/?q=1",   "http://a/#x",
        "http://a/ ", "http://a\r\n",   "http://unix:/x",   "http://a:99999/",
    };
    struct otlp__url url;
    peg_error error;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        CHECK_INT(otlp__url_parse(texts[i], &url, &error), PEG_EINVAL);
        CHECK_STR(peg__str(error.code), "E_OTLP");
        CHECK(strstr(error.message, "http://localhost:4318"));
    }
}

TEST(url_has_a_limit)
{
    char text[PEG_LIMIT_OTLP_URL_BYTES + 2];
    struct otlp__url url;
    peg_error error;

    memset(text, 'a', sizeof(text));
    memcpy(text, "http://a/", 9);
    text[sizeof(text) - 1] = '\0';

    CHECK_INT(otlp__url_parse(text, &url, &error), PEG_EINVAL);

    CHECK(strstr(error.message, "PEG_LIMIT_OTLP_URL_BYTES"));
}
