/* SPDX-License-Identifier: Apache-2.0 */

/* What would re-writing a file change? */

#include <stdio.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "cli/turn/turn.h"

/* Value; borrows all. */
struct comparing {
    const struct turn_file *file;
    const struct turn_in_file *in;
    struct turn_findings *findings;
    peg_error *reterr;
};

static bool is_same(const peg_json *a, const peg_json *b)
{
    return a && b ? peg_json_equal(a, b) : a == b;
}

/* The first block that differs; the number of blocks if none does, or if there are more or fewer.
 */
static size_t find_block(const peg_json *before, const peg_json *after)
{
    const peg_json *block = before + 1;
    size_t i = 0;

    if (peg_json_len(before) != peg_json_len(after))
        return peg_json_len(after);
    PEG_JSON_EACH_ITEM (after, other) {
        if (!peg_json_equal(block, other))
            break;
        block = peg_json_next(block);
        i++;
    }
    return i;
}

/* The first block, or else the first member of the turn, that re-writing changes. */
static void find_difference(const struct comparing *c, const peg_json *written)
{
    const peg_json *before = peg_json_get(c->in->root, "blocks");
    const peg_json *after = peg_json_get(written, "blocks");
    const size_t i = before ? find_block(before, after) : peg_json_len(after);
    char *told = c->findings->rewritten;
    const size_t size = sizeof(c->findings->rewritten);

    if (i < peg_json_len(after)) {
        snprintf(told, size, "%s/blocks/%zu", c->in->at, i);
        return;
    }
    PEG_JSON_EACH_MEMBER (written, key) {
        if (!is_same(peg_json_get_str(c->in->root, peg_json_str(key)), key + 1)) {
            snprintf(told, size, "%s/%.40s", c->in->at, peg_json_str(key).ptr);
            return;
        }
    }
    snprintf(told, size, "%s/", c->in->at);
}

static peg_str without_line_end(peg_str text)
{
    if (text.len && text.ptr[text.len - 1] == '\n')
        text.len--;
    return text;
}

/* Is it what we would write? */
static peg_status compare_bytes(const struct comparing *c, const peg_turn *turn, bool is_pretty,
                                bool *ret_same)
{
    const peg_turn_write_options options = {PEG_TURN_WRITE_OPTIONS_INIT, .format = c->file->format,
                                            .pretty = is_pretty, .inline_below = INT64_MAX};
    PEG_CLEANUP(peg__freep) char *text = NULL;
    size_t len = 0;
    const peg_status status = peg_turn_write(turn, &options, &text, &len, c->reterr);

    if (!status)
        *ret_same = peg__str_eq(without_line_end(peg__strn(text, len)),
                                without_line_end(peg__buf_view(&c->file->text)));
    return status;
}

static peg_status compare_values(const struct comparing *c, const peg_turn *turn)
{
    const peg_turn_write_options options = {PEG_TURN_WRITE_OPTIONS_INIT, .inline_below = INT64_MAX};
    peg_json_doc *written = NULL;
    const peg_status status = peg_turn_to_json(turn, &options, &written, c->reterr);

    if (status)
        return status;
    if (!*c->in->at && peg_json_equal(c->in->root, peg_json_root(written))) {
        c->findings->rewrite = TURN_REWRITE_LAYOUT;
    } else {
        c->findings->rewrite = TURN_REWRITE_CONTENT;
        find_difference(c, peg_json_root(written));
    }
    peg_json_doc_free(written);
    return PEG_OK;
}

static peg_status compare(const struct comparing *c, const peg_turn *turn)
{
    bool is_same_text = false;
    peg_status status = compare_bytes(c, turn, false, &is_same_text);

    if (!status && !is_same_text && c->file->format == PEG_FORMAT_JSON)
        status = compare_bytes(c, turn, true, &is_same_text);
    if (!status && !is_same_text)
        status = compare_values(c, turn);
    if (status != PEG_ELIMIT)
        return status;
    /* It can be read, but what is written of it could not. */
    c->findings->rewrite = TURN_REWRITE_CONTENT;
    turn_found(c->findings, true, c->reterr);
    return PEG_OK;
}

peg_status turn_check_rewriting(const struct turn_file *file, const struct turn_in_file *in,
                                struct turn_findings *findings, peg_error *reterr)
{
    const peg_turn_read_options options = {PEG_TURN_READ_OPTIONS_INIT, .format = file->format,
                                           .max_bytes = file->text.max};
    const struct comparing c = {file, in, findings, reterr};
    peg_turn *turn = NULL;
    peg_status status;

    if (!file->bytes)
        return compare(&c, file->turn);
    /* A turn that does not know where its bytes are: references stay what they are, whatever is
     * behind them. */
    status = peg_turn_read(peg__buf_view(&file->text), &options, &turn, reterr);
    if (!status)
        status = compare(&c, turn);
    peg_turn_free(turn);
    return status;
}
