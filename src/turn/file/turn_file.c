/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A turn from text. All blocks get their ids first: those of the file where they are unique, else
 * ones that follow from them, so that the same file is the same turn always.
 */

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "pegboard/cleanup.h"
#include "pegboard/yaml.h"
#include "turn/file/file.h"
#include "turn/file/internal.h"
#include "turn/turn.h"
#include "json/json.h"

/* The members of a turn, in the order in which they are written. */
struct turn_head {
    peg_str id;
    struct peg__made blocks;
    struct peg__made metadata;
    struct peg__made data;
};

static const struct peg__member turn_members[] = {
    PEG__ROW(struct turn_head, id, "id", ID),
    PEG__ROW(struct turn_head, blocks, "blocks", MADE),
    PEG__ROW(struct turn_head, metadata, "metadata", MADE),
    PEG__ROW(struct turn_head, data, "data", MADE),
    {0},
};

/* ---- ids ---------------------------------------------------------------------------------- */

/* Bytes of an id that was made unique, with a NUL. */
enum { ID_SIZE = PEG_LIMIT_BLOCK_ID_BYTES + 1 };

/* Ids in a map, each with a number in place of a pointer: whether a block has it, and how many
 * others were named after it. */
enum { IS_TAKEN = 1, ONE_MORE = 2 };

static void *as_value(uintptr_t number)
{
    return (void *)number; // NOLINT(performance-no-int-to-ptr): the map never follows it
}

/* The id of a block in the file; YAML reads one of digits as a number. Empty if it has no id. */
static peg_str id_in_file(const peg_json *block, char buffer[ID_SIZE])
{
    const peg_json *id = peg_json_get(block, "id");
    int len;

    if (id && id->kind == PEG_JSON_STRING)
        return peg_json_str(id);
    if (!id || id->kind != PEG_JSON_INTEGER)
        return (peg_str){NULL, 0};
    len = snprintf(buffer, ID_SIZE, "%lld", (long long)id->u.number);
    return peg__strn(buffer, (size_t)len);
}

static peg_status gather_ids(struct peg__map *ids, const peg_json *blocks, peg_error *reterr)
{
    PEG_JSON_EACH_ITEM (blocks, block) {
        char buffer[ID_SIZE];
        const peg_str id = id_in_file(block, buffer);
        peg_status status;

        if (!id.len)
            continue;
        status = peg__map_add(ids, id, NULL);
        if (status && status != PEG_EEXISTS)
            return peg__fail_nomem(reterr);
    }
    return PEG_OK;
}

/* The first of "base~2", "base~3", ... that is free. */
static peg_status make_unique(struct peg__map *ids, struct peg__map_entry *base,
                              char ret_id[ID_SIZE], peg_error *reterr)
{
    size_t len = base->name.len;

    if (len > PEG_LIMIT_BLOCK_ID_BYTES - 12)
        len = peg__utf8_cut(base->name.ptr, PEG_LIMIT_BLOCK_ID_BYTES - 12);
    do {
        base->value = as_value((uintptr_t)base->value + ONE_MORE);
        snprintf(ret_id, ID_SIZE, "%.*s~%zu", (int)len, base->name.ptr,
                 (size_t)((uintptr_t)base->value / ONE_MORE + 1));
    } while (peg__map_find(ids, peg__str(ret_id)));
    return peg__map_add(ids, peg__str(ret_id), as_value(IS_TAKEN)) ? peg__fail_nomem(reterr)
                                                                   : PEG_OK;
}

/* A block of a call is called as the call is, any other by its place. */
static peg_str default_id(const peg_json *block, size_t i, char buffer[ID_SIZE])
{
    const peg_str kind = peg_json_str(peg_json_get(block, "kind"));
    const peg_str call_id = peg_json_str(peg_json_get(peg_json_get(block, "payload"), "id"));
    peg_block_kind known = PEG_BLOCK_OTHER;
    int len;

    if (peg__block_file_kind_named(kind, &known) && known == PEG_BLOCK_CALL && call_id.len &&
        call_id.len <= PEG_LIMIT_BLOCK_ID_BYTES)
        return call_id;
    len = snprintf(buffer, ID_SIZE, "b%zu", i + 1);
    return peg__strn(buffer, (size_t)len);
}

/* *ret_id is borrowed from the file or from `buffer`. */
static peg_status choose_id(struct peg__map *ids, const peg_json *block, size_t i,
                            char buffer[ID_SIZE], peg_str *ret_id, peg_error *reterr)
{
    char other[ID_SIZE];
    peg_str id = id_in_file(block, buffer);
    const bool has_own = id.len > 0;
    struct peg__map_entry *entry;

    if (!has_own)
        id = default_id(block, i, buffer);
    entry = peg__map_find(ids, id);
    if (!entry) {
        *ret_id = id;
        return peg__map_add(ids, id, as_value(IS_TAKEN)) ? peg__fail_nomem(reterr) : PEG_OK;
    }
    if (has_own && !((uintptr_t)entry->value & IS_TAKEN)) {
        entry->value = as_value((uintptr_t)entry->value | IS_TAKEN);
        *ret_id = id;
        return PEG_OK;
    }
    if (make_unique(ids, entry, other, reterr))
        return PEG_ENOMEM;
    memcpy(buffer, other, sizeof(other));
    *ret_id = peg__str(buffer);
    return PEG_OK;
}

/* ---- blocks ------------------------------------------------------------------------------- */

/* Owned. */
struct reading {
    const peg_turn_read_options *options;
    const char *at; /* where the turn stands in its file */
    peg_error *reterr;
    peg_turn *turn;
    struct peg__map ids;
    struct peg__call_match calls;
};

static peg_status read_id(struct peg__in *in, int max, char buffer[ID_SIZE], peg_str *ret_id)
{
    const peg_json *id = peg_json_get(in->object, "id");
    const peg_json_kind kind = peg_json_kind_of(id);

    *ret_id = id_in_file(in->object, buffer);
    if (kind != PEG_JSON_STRING && kind != PEG_JSON_NULL && (in->is_strict || !ret_id->len))
        return peg__in_fail(in, "id", "must be of type string");
    if (ret_id->len > (size_t)max)
        return peg__in_fail(in, "id", "has more than %d bytes", max);
    return PEG_OK;
}

static peg_status check_block_id(struct reading *r, const peg_json *block, const char *at,
                                 peg_str id)
{
    struct peg__in in = {block, at, r->options->strict, PEG_OK, r->reterr};
    char buffer[ID_SIZE];
    peg_str text;

    if (!read_id(&in, PEG_LIMIT_BLOCK_ID_BYTES, buffer, &text) && in.is_strict && text.len &&
        !peg__str_eq(text, id))
        peg__in_fail(&in, "id", "is that of another block too");
    return in.status;
}

static peg_status keep_block(struct reading *r, peg_block *block, const char *at)
{
    peg_status status = peg_turn_add(r->turn, block, r->reterr);

    if (status)
        return peg__in_refused(status, at, r->reterr);
    if (peg_block_kind_of(block) == PEG_BLOCK_CALL && peg__call_match_add(&r->calls, block))
        status = peg__fail_nomem(r->reterr);
    return status;
}

static peg_status read_block(struct reading *r, const peg_json *value, size_t i)
{
    PEG_CLEANUP(peg_block_unrefp) peg_block *block = NULL;
    const struct peg__block_read how = {.options = r->options, .calls = &r->calls};
    char at[PEG__IN_AT];
    char buffer[ID_SIZE];
    peg_str id;
    peg_status status = choose_id(&r->ids, value, i, buffer, &id, r->reterr);

    if (status)
        return status;
    snprintf(at, sizeof(at), "%s/blocks/%zu", r->at, i);
    if ((status = check_block_id(r, value, at, id)))
        return status;
    status = peg__block_read(&how, value, id, &block, r->reterr);
    if (status) {
        peg__in_below(r->reterr, at);
        return status;
    }
    return keep_block(r, block, at);
}

static peg_status read_blocks(struct reading *r, const peg_json *blocks)
{
    size_t i = 0;
    peg_status status;

    if (peg_json_len(blocks) > PEG_LIMIT_TURN_BLOCKS) {
        peg__fail(r->reterr, PEG_ELIMIT, "E_TURN_TOO_LARGE", "the turn has more than %d blocks",
                  PEG_LIMIT_TURN_BLOCKS);
        peg__error_where(r->reterr, peg__str("/blocks"));
        return PEG_ELIMIT;
    }
    status = gather_ids(&r->ids, blocks, r->reterr);
    if (status)
        return status;
    PEG_JSON_EACH_ITEM (blocks, block) {
        status = read_block(r, block, i++);
        if (status)
            break;
    }
    return status;
}

/* ---- turns -------------------------------------------------------------------------------- */

static peg_status read_members(struct peg__in *in, struct peg__shared **ret_members)
{
    peg_json_doc *doc = NULL;

    if (peg__in_keep_others(in, turn_members, &doc) || !doc)
        return in->status;
    *ret_members = peg__shared_new(doc);
    if (!*ret_members)
        in->status = peg__fail_nomem(in->reterr);
    return in->status;
}

/* An object without blocks is a turn only if it has nothing else that a turn does not have. */
static peg_status check_shape(struct peg__in *in, const peg_json *blocks)
{
    peg__in_only(in, turn_members);
    if (!in->status && !blocks && peg__in_has_others(in->object, turn_members))
        peg__in_fail(in, NULL, "is no turn: there is no member 'blocks'");
    return in->status;
}

static peg_status begin_turn(struct peg__in *in, peg_turn **ret_turn)
{
    char buffer[ID_SIZE];
    struct peg__turn_parts parts = {{NULL, 0}, NULL, NULL, NULL};

    if (!read_id(in, PEG_LIMIT_ID_BYTES, buffer, &parts.id) &&
        !peg__in_bag(in, "metadata", &parts.metadata) && !peg__in_bag(in, "data", &parts.data) &&
        !read_members(in, &parts.members))
        in->status = peg__turn_from_parts(&parts, ret_turn, in->reterr);
    if (in->status) {
        peg_bag_unref(parts.data);
        peg_bag_unref(parts.metadata);
        peg__shared_unref(parts.members);
    }
    return in->status;
}

static peg_status read_turn(struct peg__in *in, const peg_turn_read_options *options,
                            peg_turn **ret_turn)
{
    struct reading r = {.options = options,
                        .at = in->at,
                        .reterr = in->reterr,
                        .ids = PEG__MAP((size_t)2 * PEG_LIMIT_TURN_BLOCKS),
                        .calls = PEG__CALL_MATCH};
    const peg_json *blocks = peg__in_kind(in, "blocks", PEG_JSON_ARRAY);
    peg_status status = check_shape(in, blocks);

    if (!status)
        status = begin_turn(in, &r.turn);
    if (!status && blocks)
        status = read_blocks(&r, blocks);
    peg__map_free(&r.ids);
    peg__call_match_free(&r.calls);
    if (status)
        peg_turn_free(r.turn);
    else
        *ret_turn = r.turn;
    return status;
}

/* The reference's fixtures wrap a turn: {version, turn, followups}. */
static const peg_json *unwrap_turn(const peg_json *value, bool is_strict)
{
    const peg_json *inner = is_strict ? NULL : peg_json_get(value, "turn");

    return inner && inner->kind == PEG_JSON_OBJECT && !peg_json_get(value, "blocks") ? inner : NULL;
}

peg_status peg_turn_from_json(const peg_json *value, const peg_turn_read_options *options,
                              peg_turn **ret_turn, peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_TURN_READ_OPTIONS_INIT, reterr);
    static const peg_turn_read_options defaults = {PEG_TURN_READ_OPTIONS_INIT,
                                                   .format = PEG_FORMAT_AUTO};
    struct peg__in in = {value, "", options && options->strict, PEG_OK, reterr};
    const peg_json *inner;

    if (value->kind != PEG_JSON_OBJECT)
        return peg__in_fail(&in, NULL, "must be an object with blocks, not %s",
                            peg_json_kind_name(peg_json_kind_of(value)));
    inner = unwrap_turn(value, in.is_strict);
    if (inner) {
        in.object = inner;
        in.at = "/turn";
    }
    return read_turn(&in, options ? options : &defaults, ret_turn);
}

/* ---- text ----------------------------------------------------------------------------------- */

static bool is_json(peg_str text, peg_format format)
{
    size_t i = 0;

    if (format != PEG_FORMAT_AUTO)
        return format == PEG_FORMAT_JSON;
    while (i < text.len && (text.ptr[i] == ' ' || (text.ptr[i] >= '\t' && text.ptr[i] <= '\r')))
        i++;
    return i < text.len && text.ptr[i] == '{';
}

/* Errors of the text itself know their place already. */
static void locate_error(peg_error *reterr, peg_str text, bool json,
                         const peg_json_options *options)
{
    const peg_str where = peg__str(reterr->where);

    peg__error_at(reterr, text,
                  json ? peg__json_locate(text, where) : peg__yaml_locate(text, options, where));
}

peg_status peg_turn_read(peg_str text, const peg_turn_read_options *options, peg_turn **ret_turn,
                         peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_TURN_READ_OPTIONS_INIT, reterr);
    const peg_json_options limits = {PEG_JSON_OPTIONS_INIT,
                                     .max_bytes = options ? options->max_bytes : 0,
                                     .duplicates = PEG_JSON_REFUSE};
    const bool json = is_json(text, options ? options->format : PEG_FORMAT_AUTO);
    peg_json_doc *doc = NULL;
    peg_status status = json ? peg_json_parse(text, &limits, &doc, reterr)
                             : peg_yaml_parse(text, &limits, &doc, reterr);

    if (status)
        return status;
    status = peg_turn_from_json(peg_json_root(doc), options, ret_turn, reterr);
    if (reterr && (status == PEG_EPARSE || status == PEG_ELIMIT))
        locate_error(reterr, text, json, &limits);
    peg_json_doc_free(doc);
    return status;
}

/* A turn with the options to write it with. */
struct writing {
    const peg_turn *turn;
    const peg_turn_write_options *options;
};

static peg_status write_blocks(const void *self, peg_json_builder *b, peg_error *reterr)
{
    const struct writing *w = self;
    struct peg__call_match calls = PEG__CALL_MATCH;
    const struct peg__block_write how = {.options = w->options, .calls = &calls};
    peg_status status = PEG_OK;

    peg_json_open_array(b);
    for (size_t i = 0; i < peg_turn_len(w->turn) && !status; i++)
        status = peg__block_write(&how, peg_turn_at(w->turn, i), b, reterr);
    peg_json_close(b);
    peg__call_match_free(&calls);
    return status;
}

/* Unknown members of the file, in the order of their names. */
static peg_status write_members(const peg_turn *turn, peg_json_builder *b, peg_error *reterr)
{
    struct peg__fields fields = {0};
    peg_status status;

    peg__fields_members(&fields, peg__shared_root(turn->members));
    status = peg__fields_write_members(&fields, b, reterr);
    peg__fields_free(&fields);
    return status;
}

static peg_status write_turn(const struct writing *w, peg_json_builder *b, peg_error *reterr)
{
    const peg_bag *metadata = peg_turn_metadata(w->turn);
    const peg_bag *data = w->options->omit_data ? NULL : peg_turn_data(w->turn);
    const struct turn_head head = {
        .id = peg_turn_id(w->turn),
        .blocks = {write_blocks, w},
        .metadata = {peg_bag_len(metadata) ? peg__bag_write : NULL, metadata},
        .data = {peg_bag_len(data) ? peg__bag_write : NULL, data}};
    const peg_status status = peg__members_add(turn_members, &head, b, reterr);

    return status ? status : write_members(w->turn, b, reterr);
}

/* A deeper file could not be read back. */
static peg_status check_depth(const peg_json *root, peg_error *reterr)
{
    if (peg__json_depth(root, PEG_LIMIT_JSON_DEPTH) <= PEG_LIMIT_JSON_DEPTH)
        return PEG_OK;
    return peg__fail(reterr, PEG_ELIMIT, "E_TURN_TOO_LARGE",
                     "a value in the turn nests so deep that its file would have more than %d "
                     "levels; make it flatter",
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
        status =
            write_turn(&(const struct writing){turn, options ? options : &defaults}, b, reterr);
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
