/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: a token file. A bad line is named by its number, and no error shows what the line holds;
 * a good file has as many tokens as lines that are neither blank nor comments.
 */

#include "fuzz.h"
#include "gateway/access/tokens.h"

static size_t count_entries(peg_str text)
{
    size_t n = 0;

    while (text.len) {
        peg_str line = fuzz_line(&text);

        while (line.len && strchr(" \t\r", line.ptr[0]) && line.ptr[0])
            line = peg__str_from(line, 1);
        n += line.len && line.ptr[0] != '#';
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const peg_str text = fuzz_input(data, size);
    static const unsigned char nobody[32];
    struct gw_token_table *table = NULL;
    peg_error error;

    if (gw_token_table_parse(text, "tokens", &table, &error) == PEG_OK) {
        REQUIRE(gw_token_table_len(table) == count_entries(text), "%zu tokens",
                gw_token_table_len(table));
        (void)gw_token_table_find(table, nobody);
    } else {
        fuzz_check_error(&error, text);
        REQUIRE(error.status != PEG_EPARSE || error.line > 0, "a bad line has a number");
        REQUIRE(strncmp(error.message, "tokens:", 7) == 0 || error.status == PEG_ELIMIT, "%s",
                error.message);
    }
    gw_token_table_free(table);
    return 0;
}
