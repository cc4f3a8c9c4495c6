/* SPDX-License-Identifier: Apache-2.0 */

/* Input: calls of the builder, one byte each, strings and numbers taken from what follows. */

#include "fuzz.h"

/* The next few bytes: a length in one byte, then as many as there are. */
static peg_str take(peg_str *rest)
{
    const size_t wanted = rest->len ? (unsigned char)rest->ptr[0] % 24 : 0;
    const size_t start = rest->len ? 1 : 0;
    const size_t len = wanted < rest->len - start ? wanted : rest->len - start;
    const peg_str taken = {rest->ptr + start, len};

    *rest = peg__str_from(*rest, start + len);
    return taken;
}

static double take_double(peg_str *rest)
{
    const peg_str bytes = take(rest);
    double number = 0;

    memcpy(&number, bytes.ptr, bytes.len < sizeof(number) ? bytes.len : sizeof(number));
    return number;
}

static void add(peg_json_builder *builder, char call, peg_str *rest)
{
    switch (call) {
    case 'n':
        peg_json_add_null(builder);
        break;
    case 't':
        peg_json_add_bool(builder, true);
        break;
    case 'i':
        peg_json_add_integer(builder, (int64_t)take(rest).len - 8);
        break;
    case 'd':
        peg_json_add_double(builder, take_double(rest));
        break;
    case '#':
        peg_json_add_number(builder, take(rest));
        break;
    case 's':
        peg_json_add_string(builder, take(rest));
        break;
    case '[':
        peg_json_open_array(builder);
        break;
    case '{':
        peg_json_open_object(builder);
        break;
    case 'k':
        peg_json_add_key(builder, take(rest));
        break;
    default:
        peg_json_close(builder);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peg_json_builder *builder = peg_json_builder_new();
    peg_str rest = fuzz_input(data, size);
    peg_json_doc *doc = NULL;
    peg_json_doc *again;
    char *text = NULL;
    size_t len;
    peg_error error;

    while (rest.len) {
        const char call = rest.ptr[0];

        rest = peg__str_from(rest, 1);
        add(builder, call, &rest);
    }
    if (peg_json_builder_finish(builder, &doc, &error) != PEG_OK) {
        REQUIRE(error.message[0] != '\0', "an error says what to do");
        return 0;
    }
    fuzz_check_form(peg_json_root(doc));
    REQUIRE(peg_json_write(peg_json_root(doc), PEG_JSON_COMPACT, &text, &len, &error) == PEG_OK,
            "%s", error.message);
    again = fuzz_parse_own(text, len);
    REQUIRE(peg_json_equal(peg_json_root(doc), peg_json_root(again)), "written as %s", text);
    peg_json_doc_free(again);
    peg_json_doc_free(doc);
    peg_free(text);
    return 0;
}
