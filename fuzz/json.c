/* SPDX-License-Identifier: Apache-2.0 */

/* Input: a JSON text. What is accepted survives every way of writing it. */

#include "fuzz.h"

static void check_style(const peg_json *value, peg_json_style style)
{
    char *text = NULL;
    char *again = NULL;
    peg_json_doc *doc;
    size_t text_len;
    size_t again_len;

    REQUIRE(peg_json_write(value, style, &text, &text_len, NULL) == PEG_OK, "it can be written");
    doc = fuzz_parse_own(text, text_len);
    REQUIRE(peg_json_equal(value, peg_json_root(doc)), "written as %s", text);
    REQUIRE(peg_json_equal(peg_json_root(doc), value), "equality is symmetric");
    REQUIRE(peg_json_hash(value, 7) == peg_json_hash(peg_json_root(doc), 7), "equal, equal hash");
    REQUIRE(peg_json_write(peg_json_root(doc), style, &again, &again_len, NULL) == PEG_OK, "again");
    REQUIRE(text_len == again_len && memcmp(text, again, text_len) == 0, "%s, then %s", text,
            again);
    peg_json_doc_free(doc);
    peg_free(again);
    peg_free(text);
}

static void check_canonical(const peg_json *value)
{
    char *text = NULL;
    char *again = NULL;
    peg_json_doc *doc;
    size_t text_len;
    size_t again_len;

    REQUIRE(peg_json_canonical(value, &text, &text_len, NULL) == PEG_OK,
            "there is a canonical form");
    doc = fuzz_parse_own(text, text_len);
    REQUIRE(peg_json_canonical(peg_json_root(doc), &again, &again_len, NULL) == PEG_OK, "again");
    REQUIRE(text_len == again_len && memcmp(text, again, text_len) == 0, "%s, then %s", text,
            again);
    peg_json_doc_free(doc);
    peg_free(again);
    peg_free(text);
}

/* Memory of earlier texts must not shine through. */
static void check_reparse(peg_str text, const peg_json *expected)
{
    static peg_json_doc *used;
    peg_error error;

    if (!used)
        used = fuzz_parse_own("[1,{\"a\":[]}]", 12);
    if (!expected) {
        REQUIRE(peg_json_reparse(used, text, NULL, &error) != PEG_OK,
                "refused once, refused twice");
        REQUIRE(peg_json_root(used)->kind == PEG_JSON_NULL, "a failed document is null");
        return;
    }
    REQUIRE(peg_json_reparse(used, text, NULL, &error) == PEG_OK, "%s", error.message);
    fuzz_check_form(peg_json_root(used));
    REQUIRE(peg_json_equal(peg_json_root(used), expected), "parsed the same again");
}

/* Where no key is given twice, the policy makes no difference. */
static void check_duplicates(peg_str text, const peg_json *last_wins)
{
    peg_json_options options = {PEG_JSON_OPTIONS_INIT, .duplicates = PEG_JSON_FIRST_WINS};
    peg_json_doc *first_wins = NULL;
    peg_json_doc *refused = NULL;
    peg_error error;

    REQUIRE(peg_json_parse(text, &options, &first_wins, &error) == PEG_OK, "%s", error.message);
    fuzz_check_form(peg_json_root(first_wins));
    options.duplicates = PEG_JSON_REFUSE;
    if (peg_json_parse(text, &options, &refused, &error) == PEG_OK)
        REQUIRE(peg_json_equal(peg_json_root(first_wins), last_wins), "no duplicates, same value");
    else
        REQUIRE(strcmp(error.code, "E_JSON_DUPLICATE_KEY") == 0, "%s", error.code);
    peg_json_doc_free(refused);
    peg_json_doc_free(first_wins);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const peg_str text = fuzz_input(data, size);
    peg_json_doc *doc = NULL;
    peg_error error;

    if (peg_json_parse(text, NULL, &doc, &error) != PEG_OK) {
        fuzz_check_error(&error, text);
        REQUIRE(error.line >= 1 && error.column >= 1, "a text has lines");
        check_reparse(text, NULL);
        return 0;
    }
    fuzz_check_form(peg_json_root(doc));
    check_reparse(text, peg_json_root(doc));
    check_duplicates(text, peg_json_root(doc));
    check_style(peg_json_root(doc), PEG_JSON_COMPACT);
    check_style(peg_json_root(doc), PEG_JSON_PRETTY);
    check_canonical(peg_json_root(doc));
    peg_json_doc_free(doc);
    return 0;
}
