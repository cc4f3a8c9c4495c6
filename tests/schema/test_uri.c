/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/text/str.h"
#include "schema/compile/compile.h"

/* ---- fixture ---------------------------------------------------------------------- */

struct resolution {
    const char *reference;
    const char *expected;
};

static void resolve_all(const char *base, const struct resolution *list, size_t n)
{
    struct peg__arena arena = {0};

    for (size_t i = 0; i < n; i++) {
        const struct peg__reference split = peg__uri_split(peg__str(list[i].reference));
        const peg_str uri = peg__uri_resolve(&arena, peg__str(base), split.uri);
        char whole[256];

        snprintf(whole, sizeof(whole), "%.*s%s%.*s", PEG_ARG(uri), split.has_fragment ? "#" : "",
                 PEG_ARG(split.fragment));
        CHECK_STR(peg__str(whole), list[i].expected);
    }
    peg__arena_free(&arena);
}

#define RESOLVE(base, list) resolve_all(base, list, sizeof(list) / sizeof(*(list)))

static const char rfc_base[] = "http://a/b/c/d;p?q";

/* ---- RFC 3986 ------------------------------------------------------------------------ */

TEST(resolve_gives_the_normal_examples_of_rfc_3986_section_5_4_1)
{
    static const struct resolution list[] = {
        {"g:h", "g:h"},
        {"g", "http://a/b/c/g"},
        {"./g", "http://a/b/c/g"},
        {"g/", "http://a/b/c/g/"},
        {"/g", "http://a/g"},
        {"//g", "http://g"},
        {"?y", "http://a/b/c/d;p?y"},
        {"g?y", "http://a/b/c/g?y"},
        {"#s", "http://a/b/c/d;p?q#s"},
        {"g#s", "http://a/b/c/g#s"},
        {"g?y#s", "http://a/b/c/g?y#s"},
        {";x", "http://a/b/c/;x"},
        {"g;x", "http://a/b/c/g;x"},
        {"g;x?y#s", "http://a/b/c/g;x?y#s"},
        {"", "http://a/b/c/d;p?q"},
        {".", "http://a/b/c/"},
        {"./", "http://a/b/c/"},
        {"..", "http://a/b/"},
        {"../", "http://a/b/"},
        {"../g", "http://a/b/g"},
        {"../..", "http://a/"},
        {"../../", "http://a/"},
        {"../../g", "http://a/g"},
    };

    RESOLVE(rfc_base, list);
}

TEST(resolve_gives_the_abnormal_examples_of_rfc_3986_section_5_4_2)
{
    static const struct resolution list[] = {
        {"../../../g", "http://a/g"},
        {"../../../../g", "http://a/g"},
        {"http://q/x/../z", "http://q/z"},
        {"http://q/./z?../y", "http://q/z?../y"},
        {"/./g", "http://a/g"},
        {"/../g", "http://a/g"},
        {"g.", "http://a/b/c/g."},
        {".g", "http://a/b/c/.g"},
        {"g..", "http://a/b/c/g.."},
        {"..g", "http://a/b/c/..g"},
        {"./../g", "http://a/b/g"},
        {"./g/.", "http://a/b/c/g/"},
        {"g/./h", "http://a/b/c/g/h"},
        {"g/../h", "http://a/b/c/h"},
        {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
        {"g;x=1/../y", "http://a/b/c/y"},
        {"g?y/./x", "http://a/b/c/g?y/./x"},
        {"g?y/../x", "http://a/b/c/g?y/../x"},
        {"g#s/./x", "http://a/b/c/g#s/./x"},
        {"g#s/../x", "http://a/b/c/g#s/../x"},
        {"http:g", "http:g"},
    };

    RESOLVE(rfc_base, list);
}

TEST(resolve_knows_bases_without_path_without_authority_and_without_anything)
{
    static const struct resolution no_path[] = {{"g", "http://a/g"}, {"?y", "http://a?y"}};
    static const struct resolution urn[] = {{"#x", "urn:uuid:1#x"}, {"g", "urn:g"}};
    static const struct resolution nothing[] = {
        {"g", "g"}, {"../g", "../g"}, {"/a/../g", "/g"}, {"", ""}, {"#", "#"}};
    static const struct resolution relative[] = {{"g", "b/g"}, {"../g", "/g"}};

    RESOLVE("http://a", no_path);
    RESOLVE("urn:uuid:1", urn);
    RESOLVE("", nothing);
    RESOLVE("b/c", relative);
}

TEST(resolve_takes_a_colon_behind_a_slash_or_a_digit_for_no_scheme)
{
    static const struct resolution list[] = {{"./a:b", "http://a/b/c/a:b"},
                                             {"1a:b", "http://a/b/c/1a:b"},
                                             {":b", "http://a/b/c/:b"},
                                             {"a+1-2.x:b", "a+1-2.x:b"}};

    RESOLVE(rfc_base, list);
}

TEST(split_cuts_at_the_first_hash_and_tells_an_empty_fragment_from_none)
{
    const struct peg__reference none = peg__uri_split(peg__str("a"));
    const struct peg__reference empty = peg__uri_split(peg__str("a#"));
    const struct peg__reference two = peg__uri_split(peg__str("#a#b"));

    CHECK(!none.has_fragment);
    CHECK(empty.has_fragment);
    CHECK_STR(empty.uri, "a");
    CHECK_STR(empty.fragment, "");
    CHECK_STR(two.uri, "");
    CHECK_STR(two.fragment, "a#b");
}

/* ---- percent-encoding ------------------------------------------------------------------ */

TEST(decode_reads_escapes_and_leaves_what_is_none)
{
    static const struct resolution list[] = {
        {"", ""},         {"/a", "/a"},   {"%2Fa%2f", "/a/"}, {"a%25b", "a%b"},
        {"%", "%"},       {"%4", "%4"},   {"%zz%41", "%zzA"}, {"%e4%bd%a0", "\xe4\xbd\xa0"},
        {"100%", "100%"}, {"%%41", "%A"},
    };
    struct peg__arena arena = {0};

    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
        CHECK_STR(peg__uri_decode(&arena, peg__str(list[i].reference)), list[i].expected);
    peg__arena_free(&arena);
}

/* ---- memory ------------------------------------------------------------------------------- */

TORTURE(resolve_and_decode_survive_any_allocation_failure)
{
    struct peg__arena arena = {0};
    peg_status status = PEG_OK;

    if (!peg__uri_resolve(&arena, peg__str(rfc_base), peg__str("../x")).ptr ||
        !peg__uri_decode(&arena, peg__str("%41")).ptr)
        status = PEG_ENOMEM;
    peg__arena_free(&arena);
    return status;
}
