/* SPDX-License-Identifier: Apache-2.0 */

#include "base/error.h"
#include "base/limits.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "pegboard/yaml.h"
#include "turn/call_match.h"
#include "turn/file/block.h"
#include "turn/file/fields.h"
#include "turn/turn.h"
#include "json/json.h"

static peg_status write_bag(const char *name, const peg_bag *bag, peg_json_builder *b,
                            peg_error *reterr)
{
    if (!peg_bag_len(bag))
        return PEG_OK;
    peg_json_add_key(b, peg__str(name));
    return peg__bag_write(bag, b, reterr);
}

static peg_status write_blocks(const peg_turn *turn, const peg_turn_write_options *options,
                               peg_json_builder *b, peg_error *reterr)
{
    struct peg__call_match calls = PEG__CALL_MATCH;
    const struct peg__block_write how = {.options = options, .calls = &calls};
    peg_status status = PEG_OK;

    peg_json_add_key(b, peg__str("blocks"));
    peg_json_open_array(b);
    for (size_t i = 0; i < peg_turn_len(turn) && !status; i++)
        status = peg__block_write(&how, peg_turn_at(turn, i), b, reterr);
    peg_json_close(b);
    peg__call_match_free(&calls);
    return status;
}

/* What the file had beside what we know, in the order of the names. */
static peg_status write_members(const peg_turn *turn, peg_json_builder *b, peg_error *reterr)
{
    struct peg__fields fields = {0};
    peg_status status;

    peg__fields_members(&fields, peg__shared_root(turn->members));
    status = peg__fields_write_members(&fields, b, reterr);
    peg__fields_free(&fields);
    return status;
}

static peg_status write_turn(const peg_turn *turn, const peg_turn_write_options *options,
                             peg_json_builder *b, peg_error *reterr)
{
    const peg_str id = peg_turn_id(turn);
    peg_status status;

    if (id.len) {
        peg_json_add_key(b, peg__str("id"));
        peg_json_add_string(b, id);
    }
    if ((status = write_blocks(turn, options, b, reterr)) ||
        (status = write_bag("metadata", peg_turn_metadata(turn), b, reterr)) ||
        (!options->omit_data && (status = write_bag("data", peg_turn_data(turn), b, reterr))))
        return status;
    return write_members(turn, b, reterr);
}

/* Nobody could read it back. */
static peg_status check_depth(const peg_json *root, peg_error *reterr)
{
    if (peg__json_depth(root, PEG_LIMIT_JSON_DEPTH) <= PEG_LIMIT_JSON_DEPTH)
        return PEG_OK;
    return peg__fail(reterr, PEG_ELIMIT, "E_TURN_TOO_DEEP",
                     "a value in the turn nests so deep that its file would have more than %d "
                     "levels (PEG_LIMIT_JSON_DEPTH); make it flatter",
                     PEG_LIMIT_JSON_DEPTH);
}

peg_status peg_turn_to_json(const peg_turn *turn, const peg_turn_write_options *options,
                            peg_json_doc **ret_doc, peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_TURN_WRITE_OPTIONS_INIT, reterr);
    static const peg_turn_write_options defaults = {PEG_TURN_WRITE_OPTIONS_INIT,
                                                    .format = PEG_FORMAT_AUTO};
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc = NULL;
    peg_status status = PEG_OK;

    peg_json_open_object(b);
    if (turn)
        status = write_turn(turn, options ? options : &defaults, b, reterr);
    peg_json_close(b);
    if (status) {
        peg_json_builder_free(b);
        return status;
    }
    status = peg_json_builder_finish(b, &doc, reterr);
    if (!status)
        status = check_depth(peg_json_root(doc), reterr);
    if (status)
        peg_json_doc_free(doc);
    else
        *ret_doc = doc;
    return status;
}

peg_status peg_turn_write(const peg_turn *turn, const peg_turn_write_options *options,
                          char **ret_text, size_t *ret_len, peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_TURN_WRITE_OPTIONS_INIT, reterr);
    const bool is_pretty = options && options->pretty;
    peg_json_doc *doc = NULL;
    peg_status status = peg_turn_to_json(turn, options, &doc, reterr);

    if (status)
        return status;
    if (options && options->format == PEG_FORMAT_YAML)
        status = peg_yaml_write(peg_json_root(doc), ret_text, ret_len, reterr);
    else
        status = peg_json_write(peg_json_root(doc), is_pretty ? PEG_JSON_PRETTY : PEG_JSON_COMPACT,
                                ret_text, ret_len, reterr);
    peg_json_doc_free(doc);
    return status;
}
