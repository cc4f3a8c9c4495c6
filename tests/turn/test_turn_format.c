/* SPDX-License-Identifier: Apache-2.0 */

/* docs/turn-format.md: its examples are what we write, and one turn. */

#include "file_world.h"

/* The first block of a language. Freed with free(). */
static char *example(const char *language)
{
    const char *root = getenv("PEG_SOURCE_ROOT");
    static char doc[1 << 20];
    char path[4096];
    char fence[32];
    char *start;
    char *end;
    FILE *file;

    if (!root)
        SKIP("PEG_SOURCE_ROOT does not name the directory of docs/");
    snprintf(path, sizeof(path), "%s/docs/turn-format.md", root);
    file = fopen(path, "r");
    if (!file)
        T_FAIL("%s cannot be read", path);
    doc[fread(doc, 1, sizeof(doc) - 1, file)] = '\0';
    fclose(file);
    snprintf(fence, sizeof(fence), "```%s\n", language);
    start = strstr(doc, fence);
    end = start ? strstr(start + strlen(fence), "```\n") : NULL;
    if (!end)
        T_FAIL("there is no example in %s", language);
    start += strlen(fence);
    return strndup(start, (size_t)(end - start));
}

static peg_turn *read_example(const char *language, char **ret_text)
{
    const peg_turn_read_options strict = {PEG_TURN_READ_OPTIONS_INIT, .strict = true};

    *ret_text = example(language);
    return must_read_as(*ret_text, &strict);
}

/* G30 */
TEST(the_example_in_yaml_is_what_we_write)
{
    char *text;
    peg_turn *turn = read_example("yaml", &text);
    char *written = must_write(turn, PEG_FORMAT_YAML);

    CHECK_STR(peg_cstr(written), text);
    peg_free(written);
    peg_turn_free(turn);
    free(text);
}

/* G30 */
TEST(the_example_in_json_is_what_we_write)
{
    char *text;
    peg_turn *turn = read_example("json", &text);
    char *written = must_write_as(turn, &(const peg_turn_write_options){PEG_TURN_WRITE_OPTIONS_INIT,
                                                                        .format = PEG_FORMAT_JSON,
                                                                        .pretty = true});

    text[strlen(text) - 1] = '\0'; /* the line end before the fence */
    CHECK_STR(peg_cstr(written), text);
    peg_free(written);
    peg_turn_free(turn);
    free(text);
}

/* G22 */
TEST(the_examples_are_one_turn)
{
    char *yaml;
    char *json;
    peg_turn *from_yaml = read_example("yaml", &yaml);
    peg_turn *from_json = read_example("json", &json);
    char *a = must_write(from_yaml, PEG_FORMAT_JSON);
    char *b = must_write(from_json, PEG_FORMAT_JSON);

    CHECK_STR(peg_cstr(a), b);
    CHECK_INT(peg_turn_len(from_yaml), 9);
    peg_free(a);
    peg_free(b);
    peg_turn_free(from_yaml);
    peg_turn_free(from_json);
    free(yaml);
    free(json);
}
