/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: the name of a tool, a line end, a body. Whatever they hold, the text has one opening tag
 * of an envelope, at its start, and one closing tag, at its end; and of the body nothing changes
 * but '<' into "&lt;" and bytes that are no UTF-8 into U+FFFD.
 */

#include "pegboard/envelope.h"
#include "../tests/core/envelope_scan.h"
#include "base/text/str.h"
#include "fuzz.h"

static const char closing[] = "\n</untrusted_content_n1>";
static const char replacement[] = "\xEF\xBF\xBD";

static void check_tags(peg_str text)
{
    const struct scan found = scan_text(text);

    REQUIRE(peg__utf8_is_valid(text), "a provider takes UTF-8 only");
    REQUIRE(found.n_opening == 1 && found.first_opening == 0, "%zu opening", found.n_opening);
    REQUIRE(found.n_closing == 1, "%zu closing", found.n_closing);
    REQUIRE(found.last_closing == text.len - strlen(closing) + 1, "at %zu", found.last_closing);
    REQUIRE(found.n_rules == 0, "%zu tags of system_instructions", found.n_rules);
}

/* What is between the lines of the tags. The first line has one '<' and one '>', and an even
 * number of quotes: no attribute ends early. */
static peg_str inside(peg_str text)
{
    peg_str rest = text;
    const peg_str line = fuzz_line(&rest);
    size_t n_quotes = 0;

    for (size_t i = 0; i < line.len; i++) {
        n_quotes += line.ptr[i] == '"';
        REQUIRE((line.ptr[i] == '<') == (i == 0), "'<' at %zu of the first line", i);
        REQUIRE((line.ptr[i] == '>') == (i == line.len - 1), "'>' at %zu of the first line", i);
        REQUIRE((unsigned char)line.ptr[i] >= 0x20, "a control at %zu of the first line", i);
    }
    REQUIRE(n_quotes == 6, "%zu quotes", n_quotes);
    REQUIRE(rest.len >= strlen(closing), "the text goes on");
    return peg__strn(rest.ptr, rest.len - strlen(closing));
}

/* How many bytes of the text stand for the first byte of the body. */
static size_t stands_for(peg_str text, char first)
{
    REQUIRE(text.len > 0, "the body is longer than its text");
    if (first == '<' && peg__str_starts(text, peg__str("&lt;")))
        return 4;
    if (text.ptr[0] == first && !((unsigned char)first == 0xEF))
        return 1;
    if ((unsigned char)first >= 0x80 && peg__str_starts(text, peg__str(replacement)))
        return 3;
    REQUIRE(text.ptr[0] == first, "0x%02x became 0x%02x", (unsigned char)first, text.ptr[0]);
    return 1;
}

static void check_body(peg_str body, peg_str text)
{
    while (body.len > 0) {
        const bool is_whole = peg__str_starts(body, peg__str(replacement));

        text = peg__str_from(text, stands_for(text, body.ptr[0]));
        body = peg__str_from(body, is_whole ? 3 : 1);
    }
    REQUIRE(text.len == 0, "%zu bytes more than the body had", text.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peg_str body = fuzz_input(data, size);
    const peg_str name = fuzz_line(&body);
    char *tool = calloc(name.len + 1, 1);
    const peg_envelope envelope = {.nonce = "n1", .kind = "tool-result", .tool = tool};
    char *text = NULL;
    size_t len = 0;
    peg_error error;

    if (!tool)
        abort();
    if (name.len)
        memcpy(tool, name.ptr, name.len);
    REQUIRE(peg_envelope_wrap(&envelope, body, &text, &len, &error) == PEG_OK, "%s", error.message);
    check_tags(peg__strn(text, len));
    check_body(body, inside(peg__strn(text, len)));
    peg_free(text);
    free(tool);
    return 0;
}
