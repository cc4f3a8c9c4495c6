/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The cases of JSONTestSuite ("Parsing JSON is a minefield"), one file each: y_ must be accepted,
 * n_ refused, and i_ is ours to decide. What we decided stands in the table below, and why in
 * docs/decisions/0002-json-parsing-choices.md.
 */

#include "base/text/str.h"
#include "pegboard/json.h"
#include "suite.h"

struct choice {
    const char *file; /* without ".json" */
    const char *code; /* of the error; NULL means accepted */
};

static const struct choice choices[] = {
    {"i_number_double_huge_neg_exp", NULL},
    {"i_number_huge_exp", "E_JSON_TOO_LARGE"},
    {"i_number_neg_int_huge_exp", NULL},
    {"i_number_pos_double_huge_exp", NULL},
    {"i_number_real_neg_overflow", "E_JSON_TOO_LARGE"},
    {"i_number_real_pos_overflow", "E_JSON_TOO_LARGE"},
    {"i_number_real_underflow", "E_JSON_TOO_LARGE"},
    {"i_number_too_big_neg_int", NULL},
    {"i_number_too_big_pos_int", NULL},
    {"i_number_very_big_negative_int", NULL},
    {"i_object_key_lone_2nd_surrogate", "E_JSON_SYNTAX"},
    {"i_string_1st_surrogate_but_2nd_missing", "E_JSON_SYNTAX"},
    {"i_string_1st_valid_surrogate_2nd_invalid", "E_JSON_SYNTAX"},
    {"i_string_UTF-16LE_with_BOM", "E_JSON_SYNTAX"},
    {"i_string_UTF-8_invalid_sequence", "E_JSON_UTF8"},
    {"i_string_UTF8_surrogate_U+D800", "E_JSON_UTF8"},
    {"i_string_incomplete_surrogate_and_escape_valid", "E_JSON_SYNTAX"},
    {"i_string_incomplete_surrogate_pair", "E_JSON_SYNTAX"},
    {"i_string_incomplete_surrogates_escape_valid", "E_JSON_SYNTAX"},
    {"i_string_invalid_lonely_surrogate", "E_JSON_SYNTAX"},
    {"i_string_invalid_surrogate", "E_JSON_SYNTAX"},
    {"i_string_invalid_utf-8", "E_JSON_UTF8"},
    {"i_string_inverted_surrogates_U+1D11E", "E_JSON_SYNTAX"},
    {"i_string_iso_latin_1", "E_JSON_UTF8"},
    {"i_string_lone_second_surrogate", "E_JSON_SYNTAX"},
    {"i_string_lone_utf8_continuation_byte", "E_JSON_UTF8"},
    {"i_string_not_in_unicode_range", "E_JSON_UTF8"},
    {"i_string_overlong_sequence_2_bytes", "E_JSON_UTF8"},
    {"i_string_overlong_sequence_6_bytes", "E_JSON_UTF8"},
    {"i_string_overlong_sequence_6_bytes_null", "E_JSON_UTF8"},
    {"i_string_truncated-utf-8", "E_JSON_UTF8"},
    {"i_string_utf16BE_no_BOM", "E_JSON_SYNTAX"},
    {"i_string_utf16LE_no_BOM", "E_JSON_SYNTAX"},
    {"i_structure_500_nested_arrays", "E_JSON_TOO_DEEP"},
    {"i_structure_UTF-8_BOM_empty_object", "E_JSON_SYNTAX"},
};

enum { N_CHOICES = sizeof(choices) / sizeof(choices[0]) };

static const struct choice *find_choice(const char *file)
{
    for (size_t i = 0; i < N_CHOICES; i++) {
        const size_t len = strlen(choices[i].file);

        if (strncmp(file, choices[i].file, len) == 0 && strcmp(file + len, ".json") == 0)
            return &choices[i];
    }
    return NULL;
}

/* An accepted text must survive being written and read again. */
static bool survives_writing(const peg_json *value)
{
    peg_json_doc *again = NULL;
    char *text = NULL;
    size_t len = 0;
    bool same = false;

    if (peg_json_write(value, PEG_JSON_COMPACT, &text, &len, NULL) == PEG_OK &&
        peg_json_parse((peg_str){text, len}, NULL, &again, NULL) == PEG_OK)
        same = peg_json_equal(value, peg_json_root(again));
    if (!same)
        printf("# written as %s, which does not read as the same\n", text ? text : "nothing");
    peg_json_doc_free(again);
    peg_free(text);
    return same;
}

static bool is_accepted(peg_str text)
{
    peg_json_doc *doc = NULL;
    peg_error error;
    bool passed;

    if (peg_json_parse(text, NULL, &doc, &error) != PEG_OK) {
        printf("# refused at byte %zu: %s %s\n", error.offset, error.code, error.message);
        return false;
    }
    passed = survives_writing(peg_json_root(doc));
    peg_json_doc_free(doc);
    return passed;
}

/* code NULL: any reason will do, as long as its place is inside the text. */
static bool is_refused(peg_str text, const char *code)
{
    peg_json_doc *doc = NULL;
    peg_error error;

    if (peg_json_parse(text, NULL, &doc, &error) == PEG_OK) {
        printf("# accepted\n");
        peg_json_doc_free(doc);
        return false;
    }
    if ((error.status != PEG_EPARSE && error.status != PEG_ELIMIT) || error.offset > text.len ||
        error.line == 0 || error.column == 0 || (code && strcmp(code, error.code) != 0)) {
        printf("# refused with %s at byte %zu, line %u, column %u, expected %s\n", error.code,
               error.offset, error.line, error.column, code ? code : "any code inside the text");
        return false;
    }
    return true;
}

static bool run_file(const char *name, peg_str text)
{
    const struct choice *choice;

    if (name[0] == 'y')
        return is_accepted(text);
    if (name[0] == 'n')
        return is_refused(text, NULL);
    choice = find_choice(name);
    if (!choice) {
        printf("# decide it: add it to the table here and to the decision record\n");
        return false;
    }
    return choice->code ? is_refused(text, choice->code) : is_accepted(text);
}

int main(void)
{
    struct suite_tap tap = {0};
    struct dirent **files;
    char folder[SUITE_PATH];
    int n_files;

    if (!suite_find(folder, "json-parsing/test_parsing", "PEG_JSON_PARSING")) {
        suite_skip(&tap, "JSON parsing cases",
                   "no JSONTestSuite; name its folder in PEG_JSON_PARSING");
        return suite_done(&tap);
    }
    n_files = suite_list(folder, &files);
    for (int i = 0; i < n_files; i++) {
        char path[SUITE_PATH];
        peg_str text;

        suite_path(path, "%s/%s", folder, files[i]->d_name);
        text = suite_read(path);
        suite_line(&tap, run_file(files[i]->d_name, text), files[i]->d_name);
        suite_read_free(text);
    }
    suite_list_free(files, n_files);
    return suite_done(&tap);
}
