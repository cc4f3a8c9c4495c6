/* SPDX-License-Identifier: Apache-2.0 */

/* The id of a turn and its bags. Each change makes another bag and puts it in the place of the old
 * one, which copies of the turn may still have. */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "turn/file/file.h"
#include "turn/turn.h"
#include "json/json.h"

peg_status peg_turn_set_id(peg_turn *turn, peg_str id, peg_error *reterr)
{
    peg_status status = peg__turn_check_busy(turn, reterr);
    char *copy;

    if (status)
        return status;
    if (id.len > PEG_LIMIT_ID_BYTES || !peg__utf8_is_valid(id))
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "the id of a turn has at most %d bytes of UTF-8", PEG_LIMIT_ID_BYTES);
    copy = peg__alloc(id.len + 1);
    if (!copy)
        return peg__fail_nomem(reterr);
    if (id.len)
        memcpy(copy, id.ptr, id.len);
    copy[id.len] = '\0';
    peg__free(turn->other_id);
    turn->other_id = copy;
    turn->id = (peg_str){copy, id.len};
    return PEG_OK;
}

peg_bag *peg_turn_data(const peg_turn *turn)
{
    return turn->data;
}

peg_bag *peg_turn_metadata(const peg_turn *turn)
{
    return turn->metadata;
}

/* ---- reading -------------------------------------------------------------------- */

/* A block's key is refused here: peg_bag_get() then sees a bag of another kind. */
static peg_bag_kind kind_of(const peg_key *key)
{
    return key && key->bag == PEG_BAG_METADATA ? PEG_BAG_METADATA : PEG_BAG_DATA;
}

static peg_bag **bag_of(peg_turn *turn, const peg_key *key)
{
    return kind_of(key) == PEG_BAG_METADATA ? &turn->metadata : &turn->data;
}

peg_status peg_turn_get(const peg_turn *turn, const peg_key *key, const peg_json **ret_value,
                        peg_error *reterr)
{
    const peg_bag_kind kind = kind_of(key);

    return peg_bag_get(kind == PEG_BAG_METADATA ? turn->metadata : turn->data, kind, key, ret_value,
                       reterr);
}

peg_status peg_turn_get_string(const peg_turn *turn, const peg_key *key, peg_str *ret_string,
                               peg_error *reterr)
{
    const peg_json *value;
    const peg_status status = peg_turn_get(turn, key, &value, reterr);

    if (status)
        return status;
    if (value && value->kind != PEG_JSON_STRING)
        return peg__fail(reterr, PEG_ESCHEMA, "E_KEY_VALUE", "%s: '%s' has to be a string",
                         peg__bag_kind_name(kind_of(key)), key->id);
    *ret_string = value ? peg_json_str(value) : (peg_str){NULL, 0};
    return PEG_OK;
}

/* ---- changing ------------------------------------------------------------------- */

static peg_status check(const peg_turn *turn, const peg_key *key, peg_error *reterr)
{
    const peg_status status = peg__key_check_bag(key, kind_of(key), reterr);

    return status ? status : peg__turn_check_busy(turn, reterr);
}

/* Puts a new bag, which it takes over, in the place of the old one. */
static peg_status settle(peg_bag **bag, peg_status status, peg_bag *next)
{
    if (!status) {
        peg_bag_unref(*bag);
        *bag = next;
    }
    return status;
}

peg_status peg_turn_set(peg_turn *turn, const peg_key *key, const peg_json *value,
                        peg_error *reterr)
{
    peg_bag **bag = bag_of(turn, key);
    peg_bag *next = NULL;
    peg_status status = check(turn, key, reterr);

    if (!status)
        status = peg_bag_with(*bag, key, value, &next, reterr);
    return settle(bag, status, next);
}

peg_status peg_turn_set_built(peg_turn *turn, const peg_key *key, peg_json_builder *builder,
                              peg_error *reterr)
{
    peg_bag **bag = bag_of(turn, key);
    peg_bag *next = NULL;
    peg_status status = check(turn, key, reterr);

    if (status)
        peg_json_builder_free(builder);
    else
        status = peg_bag_with_built(*bag, key, builder, &next, reterr);
    return settle(bag, status, next);
}

peg_status peg_turn_set_string(peg_turn *turn, const peg_key *key, peg_str string,
                               peg_error *reterr)
{
    peg_json_builder *b = peg_json_builder_new();

    peg_json_add_string(b, string);
    return peg_turn_set_built(turn, key, b, reterr);
}

peg_status peg__turn_set_shared(peg_turn *turn, const peg_key *key, struct peg__shared *shared,
                                peg_error *reterr)
{
    peg_bag **bag = bag_of(turn, key);
    peg_bag *next = NULL;
    peg_status status = check(turn, key, reterr);

    if (!status)
        status = peg__bag_with_shared(*bag, key, shared, &next, reterr);
    return settle(bag, status, next);
}

typedef peg_status (*change_fn)(peg_bag *bag, const peg_key *key, peg_bag **ret_bag,
                                peg_error *reterr);

static peg_status change_bag(peg_turn *turn, const peg_key *key, change_fn change,
                             peg_error *reterr)
{
    peg_bag **bag = bag_of(turn, key);
    peg_bag *next = NULL;
    peg_status status = check(turn, key, reterr);

    if (!status)
        status = change(*bag, key, &next, reterr);
    return settle(bag, status, next);
}

peg_status peg_turn_unset(peg_turn *turn, const peg_key *key, peg_error *reterr)
{
    return change_bag(turn, key, peg_bag_without, reterr);
}

peg_status peg_turn_upgrade(peg_turn *turn, const peg_key *key, peg_error *reterr)
{
    return change_bag(turn, key, peg_bag_upgraded, reterr);
}
