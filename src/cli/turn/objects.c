/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A turn as JSON lines. First what is known about it:
 *
 *   {"type":"turn","file":"turn.yaml","id":"t-1","session_id":"s-1","blocks":5,
 *    "tools":["query_orders"],"inference_result":{...},"pending":["call_7"]}
 *
 * then each block, as it stands in a file but complete without the others:
 *
 *   {"type":"block","index":2,"state":"answered","block":{"id":"call_7","kind":"tool_call",...}}
 *
 * pegboard-turn(1) documents it.
 */

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/turn/turn.h"
#include "pegboard/definitions.h"
#include "turn/file/block.h"
#include "json/json.h"

/* ---- the turn --------------------------------------------------------------------------- */

static void put_string_or_null(struct peg__out *out, const char *name, peg_str text)
{
    peg__out_key(out, name);
    if (text.ptr)
        peg__out_string(out, text);
    else
        peg__out_null(out);
}

static void put_tools(struct peg__out *out, const peg_turn *turn)
{
    const peg_json *definitions = NULL;

    peg__out_key(out, "tools");
    peg__out_array(out);
    if (!peg_turn_definitions(turn, &definitions, NULL) && definitions) {
        PEG_JSON_EACH_ITEM (definitions, definition)
            peg__out_string(out, peg_json_str(peg_json_get(definition, "name")));
    }
    peg__out_end_array(out);
}

static void put_result(struct peg__out *out, const peg_turn *turn)
{
    const peg_json *result = NULL;

    peg__out_key(out, "inference_result");
    if (!peg_turn_get(turn, &peg_key_inference_result, &result, NULL) && result)
        peg__out_value(out, result);
    else
        peg__out_null(out);
}

static void put_pending(struct peg__out *out, const peg_turn *turn)
{
    peg__out_key(out, "pending");
    peg__out_array(out);
    for (size_t i = peg_turn_next_pending(turn, 0); i < peg_turn_len(turn);
         i = peg_turn_next_pending(turn, i + 1))
        peg__out_string(out, peg_block_id(peg_turn_at(turn, i)));
    peg__out_end_array(out);
}

static void put_turn(struct peg__out *out, const struct turn_file *file)
{
    peg_str session = {NULL, 0};

    if (peg_turn_get_string(file->turn, &peg_key_session_id, &session, NULL))
        session = (peg_str){NULL, 0};
    peg__out_object(out);
    peg__out_cmember(out, "type", "turn");
    turn_out_file(out, file->path);
    peg__out_member(out, "id", peg_turn_id(file->turn));
    put_string_or_null(out, "session_id", session);
    peg__out_key(out, "blocks");
    peg__out_integer(out, (int64_t)peg_turn_len(file->turn));
    put_tools(out, file->turn);
    put_result(out, file->turn);
    put_pending(out, file->turn);
    peg__out_end_object(out);
}

/* ---- blocks ----------------------------------------------------------------------------- */

static const char *state_of(const struct turn_file *file, const peg_block *call)
{
    if (peg_turn_result_of(file->turn, peg_block_id(call)))
        return "answered";
    return turn_has_begun(file, peg_block_id(call)) ? "begun" : "pending";
}

static peg_status put_block(struct peg__out *out, const struct turn_file *file, size_t i,
                            peg_error *reterr)
{
    /* What is in the file stays in the text, however large. */
    static const peg_turn_write_options options = {PEG_TURN_WRITE_OPTIONS_INIT,
                                                   .inline_below = INT64_MAX};
    static const struct peg__block_write how = {.options = &options};
    const peg_block *block = peg_turn_at(file->turn, i);
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc = NULL;
    peg_status status = peg__block_write(&how, block, b, reterr);

    if (status) {
        peg_json_builder_free(b);
        return status;
    }
    status = peg_json_builder_finish(b, &doc, reterr);
    if (status)
        return status;
    peg__out_object(out);
    peg__out_cmember(out, "type", "block");
    peg__out_key(out, "index");
    peg__out_integer(out, (int64_t)i);
    if (peg_block_kind_of(block) == PEG_BLOCK_CALL)
        peg__out_cmember(out, "state", state_of(file, block));
    peg__out_key(out, "block");
    peg__out_value(out, peg_json_root(doc));
    peg__out_end_object(out);
    peg_json_doc_free(doc);
    return PEG_OK;
}

static peg_status end_line(struct peg__out *out, peg_error *reterr)
{
    peg__buf_putc(out->buf, '\n');
    out->needs_comma = false;
    return turn_flush(out->buf, reterr);
}

peg_status turn_print_objects(const struct turn_show_options *options, const struct turn_file *file,
                              peg_error *reterr)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__out out = {.buf = &line};
    peg_status status;

    put_turn(&out, file);
    status = end_line(&out, reterr);
    for (size_t i = turn_show_from(options, file->turn); !status && i < peg_turn_len(file->turn);
         i = peg_turn_next(file->turn, options->kinds, i + 1)) {
        status = put_block(&out, file, i, reterr);
        if (!status)
            status = end_line(&out, reterr);
    }
    peg__buf_free(&line);
    return status;
}
