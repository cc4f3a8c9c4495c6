/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/http/internal.h"

#include "base/text/str.h"
#include "pegboard/v1/registry.pb-c.h"
#include "t.h"

enum { MOST = 1 << 20 };

TEST(schema_of_an_answer_requires_what_is_always_written)
{
    struct peg__buf text = PEG__BUF(MOST);
    struct peg__out out = {.buf = &text};

    gw_schema_write(&out, &pegboard__v1__question__descriptor, true);

    CHECK_STR(peg__buf_view(&text),
              "{\"type\":\"object\",\"properties\":{\"number\":{\"type\":\"integer\",\"format\":"
              "\"int64\"},\"requests\":{}},\"required\":[\"number\"]}");
    peg__buf_free(&text);
}

TEST(schema_has_words_lists_references_and_base_64)
{
    struct peg__buf text = PEG__BUF(MOST);
    struct peg__out out = {.buf = &text};

    gw_schema_write(&out, &pegboard__v1__register_request__descriptor, false);
    gw_schema_write(&out, &pegboard__v1__content__descriptor, true);

    CHECK(strstr(text.ptr, "\"enum\":[\"unspecified\",\"attached\",\"direct\"]") != NULL);
    CHECK(strstr(text.ptr, "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}") !=
          NULL);
    CHECK(strstr(text.ptr, "{\"$ref\":\"#/components/schemas/Tool\"}") != NULL);
    CHECK(strstr(text.ptr, "\"bytes\":{\"type\":\"string\",\"contentEncoding\":\"base64\"}") !=
          NULL);
    CHECK(strstr(text.ptr, "\"json\":{}") != NULL);
    peg__buf_free(&text);
}

static const char schema[] =
    "{\"$ref\":\"#\",\"a\":[{\"$ref\":\"#/$defs/x\"},1.50,null],\"$defs\":{\"x\":{\"$ref\":"
    "\"https://e.example/#/y\"},\"$ref\":{\"$ref\":\"#anchor\"}}}";

TEST(schema_that_is_moved_keeps_all_but_references_to_its_root)
{
    struct peg__buf text = PEG__BUF(MOST);
    struct peg__out out = {.buf = &text};

    CHECK_INT(gw_schema_move(&out, peg__str(schema), "n"), PEG_OK);

    CHECK_STR(
        peg__buf_view(&text),
        "{\"$ref\":\"#/components/schemas/n\",\"a\":[{\"$ref\":\"#/components/schemas/n/"
        "$defs/x\"},1.50,null],\"$defs\":{\"x\":{\"$ref\":\"https://e.example/#/y\"},\"$ref\":"
        "{\"$ref\":\"#anchor\"}}}");
    peg__buf_free(&text);
}

TEST(schema_with_a_long_reference_is_moved)
{
    enum { LONG = 100000 };
    struct peg__buf from = PEG__BUF(MOST);
    struct peg__buf text = PEG__BUF(MOST);
    struct peg__out out = {.buf = &text};

    peg__buf_printf(&from, "{\"$ref\":\"#/$defs/%0*d\"}", LONG, 1);
    CHECK_INT(gw_schema_move(&out, peg__buf_view(&from), "n"), PEG_OK);
    CHECK_INT(text.len, from.len + strlen("/components/schemas/n"));
    peg__buf_free(&text);
    peg__buf_free(&from);
}

TEST(schema_that_is_no_json_is_not_moved)
{
    struct peg__buf text = PEG__BUF(MOST);
    struct peg__out out = {.buf = &text};

    CHECK_INT(gw_schema_move(&out, peg__str("{"), "n"), PEG_EPARSE);
    peg__buf_free(&text);
}

TORTURE(schema_survives_any_allocation_failure)
{
    struct peg__buf text = PEG__BUF(MOST);
    struct peg__out out = {.buf = &text};
    peg_status status = gw_schema_move(&out, peg__str(schema), "n");

    if (!status) {
        gw_schema_write(&out, &pegboard__v1__tool__descriptor, true);
        status = text.status;
    }
    peg__buf_free(&text);
    return status;
}
