/* SPDX-License-Identifier: Apache-2.0 */

/* A turn as a file, with a key of one's own that has got another shape since it was written. */

#include <pegboard/pegboard.h>
#include <stdio.h>
#include <string.h>

/* Written by the last release, whose orders were a line of text; and somebody added a mood. */
static const char file[] = "id: orders-1\n"
                           "blocks:\n"
                           "  - {id: b1, kind: user, payload: {text: Two rolls for Ada.}}\n"
                           "mood: cheerful\n"
                           "data: {bakery.order@v1: 'Ada: 2 rolls', other.thing@v7: [1, 2]}\n";

/* "Ada: 2 rolls" becomes {"customer": "Ada", "items": ["2 rolls"]}. */
static peg_status from_v1(const peg_json *old, peg_json_builder *into, peg_error *e)
{
    const char *line = peg_json_str(old).ptr;
    const char *colon = line ? strstr(line, ": ") : NULL;
    if (!colon)
        return snprintf(e->message, sizeof(e->message), "no customer in the order"), PEG_EHOST;
    peg_json_open_object(into);
    peg_json_add_key(into, peg_cstr("customer"));
    peg_json_add_string(into, (peg_str){line, (size_t)(colon - line)});
    peg_json_add_key(into, peg_cstr("items"));
    peg_json_open_array(into);
    peg_json_add_string(into, peg_cstr(colon + 2));
    peg_json_close(into);
    peg_json_close(into);
    return PEG_OK;
}

static const peg_key_older older[] = {{"bakery.order@v1", from_v1}};
static const peg_key order = {.bag = PEG_BAG_DATA,
                              .id = "bakery.order@v2",
                              .type = PEG_KEY_OBJECT,
                              .older = older,
                              .n_older = 1};

int main(void)
{
    const peg_turn_write_options yaml = {PEG_TURN_WRITE_OPTIONS_INIT, .format = PEG_FORMAT_YAML};
    const peg_block_def answer = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_ASSISTANT,
                                  .id = peg_cstr("b2"), .text = peg_cstr("They are ready at nine."),
                                  .created_ms = 1763197202000};
    const peg_json *value = NULL;
    peg_block *block = NULL;
    peg_turn *turn = NULL;
    char *text = NULL;
    peg_error e;

    if (peg_turn_read(peg_cstr(file), NULL, &turn, &e))
        return fprintf(stderr, "%s:%u: %s\n", e.code, (unsigned)e.line, e.message), 1;
    if (peg_turn_get(turn, &order, &value, &e)) /* it is there, but not as we know it */
        printf("%s: %s\n\n", e.code, e.message);
    if (peg_turn_upgrade(turn, &order, &e) || peg_turn_get(turn, &order, &value, &e) ||
        peg_block_new(&answer, &block, &e) || peg_turn_add(turn, block, &e) ||
        peg_turn_write(turn, &yaml, &text, NULL, &e))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    printf("order of %s\n\n%s", peg_json_str(peg_json_get(value, "customer")).ptr, text);
    peg_block_unref(block);
    peg_turn_free(turn);
    peg_free(text);
    return 0;
}
