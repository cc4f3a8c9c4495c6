/* SPDX-License-Identifier: Apache-2.0 */

/* Which ids are keys, which values a key takes, and the keys that the library itself uses. */

#include "turn/file/file.h"
#include "turn/turn.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"

const char *peg__bag_kind_name(peg_bag_kind kind)
{
    switch (kind) {
    case PEG_BAG_DATA:
        return "data";
    case PEG_BAG_METADATA:
        return "metadata";
    case PEG_BAG_BLOCK:
        return "block metadata";
    }
    return "unknown bag";
}

/* ---- ids ------------------------------------------------------------------------ */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* "v1", "v20"; what is left of an id behind the '@'. */
static bool is_version(peg_str s)
{
    if (s.len < 2 || s.len > 10 || s.ptr[0] != 'v' || s.ptr[1] == '0')
        return false;
    for (size_t i = 1; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
    }
    return true;
}

bool peg__key_id_is_canonical(peg_str id)
{
    const char *at = id.len ? memchr(id.ptr, '@', id.len) : NULL;
    const size_t len = at ? (size_t)(at - id.ptr) : 0;
    size_t n_words = 1;
    bool is_in_word = false;

    if (!len || id.len > PEG_LIMIT_KEY_BYTES || !is_version(peg__str_from(id, len + 1)))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (id.ptr[i] == '.' && is_in_word) {
            is_in_word = false;
            n_words++;
        } else if (is_word(id.ptr[i])) {
            is_in_word = true;
        } else {
            return false;
        }
    }
    return is_in_word && n_words >= 2;
}

static peg_status fail_id(const char *id, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EINVAL, "E_KEY",
                     "'%.64s' is no key: write namespace.slug@vN, such as myapp.user_name@v1, in "
                     "lower case, at most %d bytes",
                     id ? id : "", PEG_LIMIT_KEY_BYTES);
}

peg_status peg_key_check(const peg_key *key, peg_error *reterr)
{
    if (!key)
        return peg__fail(reterr, PEG_EINVAL, "E_KEY", "there is no key: give one");
    if (key->bag < PEG_BAG_DATA || key->bag > PEG_BAG_BLOCK)
        return peg__fail(reterr, PEG_EINVAL, "E_KEY",
                         "the key '%.64s' belongs to no bag: set .bag to one of peg_bag_kind",
                         key->id ? key->id : "");
    if (!key->id || !peg__key_id_is_canonical(peg__str(key->id)))
        return fail_id(key->id, reterr);
    if ((unsigned)key->type > PEG_KEY_OBJECT)
        return peg__fail(reterr, PEG_EINVAL, "E_KEY", "the type of '%.64s' is no peg_key_type",
                         key->id);
    if (key->n_older && !key->older)
        return peg__fail(reterr, PEG_EINVAL, "E_KEY", "'%.64s': n_older is set but older is NULL",
                         key->id);
    for (size_t i = 0; i < key->n_older; i++) {
        if (!key->older[i].id || !key->older[i].id[0])
            return peg__fail(reterr, PEG_EINVAL, "E_KEY", "'%.64s': older[%zu] has no id", key->id,
                             i);
    }
    return PEG_OK;
}

peg_status peg__key_check_bag(const peg_key *key, peg_bag_kind kind, peg_error *reterr)
{
    const peg_status status = peg_key_check(key, reterr);

    if (status || key->bag == kind)
        return status;
    return peg__fail(reterr, PEG_EINVAL, "E_KEY",
                     "'%.64s' is a key of %s and was used on %s: use it where it belongs", key->id,
                     peg__bag_kind_name(key->bag), peg__bag_kind_name(kind));
}

/* ---- values --------------------------------------------------------------------- */

static bool is_strings(const peg_json *value)
{
    if (value->kind != PEG_JSON_ARRAY)
        return false;
    PEG_JSON_EACH_ITEM (value, item) {
        if (item->kind != PEG_JSON_STRING)
            return false;
    }
    return true;
}

static bool fits_type(peg_key_type type, const peg_json *value)
{
    switch (type) {
    case PEG_KEY_ANY:
        return true;
    case PEG_KEY_STRING:
        return value->kind == PEG_JSON_STRING;
    case PEG_KEY_INTEGER:
        return peg_json_is_whole(value);
    case PEG_KEY_NUMBER:
        return peg_json_is_number(value);
    case PEG_KEY_BOOL:
        return value->kind == PEG_JSON_BOOL;
    case PEG_KEY_STRINGS:
        return is_strings(value);
    case PEG_KEY_ARRAY:
        return value->kind == PEG_JSON_ARRAY;
    case PEG_KEY_OBJECT:
        return value->kind == PEG_JSON_OBJECT;
    }
    return false;
}

static const char *type_name(peg_key_type type)
{
    static const char *const names[] = {"anything", "a string",  "an integer",
                                        "a number", "a boolean", "a list of strings",
                                        "a list",   "an object"};

    return names[type];
}

static peg_status fail_unfit(const peg_key *key, peg_verdict verdict, const peg_report *report,
                             peg_error *reterr)
{
    const peg_failure *first = peg_report_len(report) ? peg_report_at(report, 0) : NULL;

    if (verdict == PEG_VALID)
        return PEG_OK;
    peg__fail(reterr, PEG_ESCHEMA, "E_KEY_VALUE", "%s: the value of '%s' does not fit: %.*s",
              peg__bag_kind_name(key->bag), key->id,
              PEG_ARG(first ? first->message : peg__str("the check reached a limit")));
    if (first)
        peg__error_where(reterr, first->instance);
    return PEG_ESCHEMA;
}

static peg_status check_schema(const peg_key *key, const peg_json *value, peg_error *reterr)
{
    peg_checker *checker;
    peg_report *report;
    peg_status status = peg_checker_new(NULL, &checker, reterr);

    if (status)
        return status;
    status = peg_report_new(&report, reterr);
    if (!status) {
        status =
            fail_unfit(key, peg_schema_report(key->schema, checker, value, report), report, reterr);
        peg_report_free(report);
    }
    peg_checker_free(checker);
    return status;
}

peg_status peg__key_check_value(const peg_key *key, const peg_json *value, peg_error *reterr)
{
    if (!fits_type(key->type, value))
        return peg__fail(reterr, PEG_ESCHEMA, "E_KEY_VALUE", "%s: '%s' has to be %s, this is %s",
                         peg__bag_kind_name(key->bag), key->id, type_name(key->type),
                         value->kind == PEG_JSON_ARRAY && key->type == PEG_KEY_STRINGS
                             ? "a list with something else in it"
                             : peg_json_kind_name(peg_json_kind_of(value)));
    return key->schema ? check_schema(key, value, reterr) : PEG_OK;
}

/* ---- the library's own ---------------------------------------------------------- */

#define OLDER(name, text) static const peg_key_older name[] = {{.id = (text)}}

OLDER(older_definitions, "geppetto.tool_definitions@v1");
OLDER(older_config, "geppetto.tool_config@v1");
OLDER(older_session, "geppetto.session_id@v1");
OLDER(older_inference, "geppetto.inference_id@v1");
OLDER(older_result, "geppetto.inference_result@v1");
OLDER(older_middleware, "geppetto.middleware@v1");

#define KEY(kind, name, kind_of_value, former)                                                     \
    {                                                                                              \
        .bag = (kind), .id = (name), .type = (kind_of_value), .older = (former), .n_older = 1      \
    }

const peg_key peg_key_tool_definitions =
    KEY(PEG_BAG_DATA, "pegboard.tool_definitions@v1", PEG_KEY_ARRAY, older_definitions);
const peg_key peg_key_tool_config =
    KEY(PEG_BAG_DATA, "pegboard.tool_config@v1", PEG_KEY_OBJECT, older_config);
const peg_key peg_key_session_id =
    KEY(PEG_BAG_METADATA, "pegboard.session_id@v1", PEG_KEY_STRING, older_session);
const peg_key peg_key_inference_id =
    KEY(PEG_BAG_METADATA, "pegboard.inference_id@v1", PEG_KEY_STRING, older_inference);
const peg_key peg_key_inference_result =
    KEY(PEG_BAG_METADATA, "pegboard.inference_result@v1", PEG_KEY_OBJECT, older_result);
const peg_key peg_key_calls_started = {
    .bag = PEG_BAG_METADATA, .id = "pegboard.calls_started@v1", .type = PEG_KEY_STRINGS};
const peg_key peg_key_block_inference =
    KEY(PEG_BAG_BLOCK, "pegboard.inference_result@v1", PEG_KEY_OBJECT, older_result);
const peg_key peg_key_middleware =
    KEY(PEG_BAG_BLOCK, "pegboard.middleware@v1", PEG_KEY_STRING, older_middleware);
const peg_key peg_key_gemini_thought = {
    .bag = PEG_BAG_BLOCK, .id = "gemini.thought_signature@v1", .type = PEG_KEY_STRING};

const peg_key *const peg__own_keys[] = {
    &peg_key_tool_definitions, &peg_key_tool_config,
    &peg_key_session_id,       &peg_key_inference_id,
    &peg_key_inference_result, &peg_key_calls_started,
    &peg_key_block_inference,  &peg_key_middleware,
    &peg_key_gemini_thought,   NULL,
};
