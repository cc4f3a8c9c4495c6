/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/reading.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"

static peg_status fail_nomem(struct peg__reply *reply)
{
    if (!reply->status)
        reply->status = peg__fail_nomem(&reply->error);
    return reply->status;
}

peg_status peg__reading_parse(struct peg__reply *reply, peg_str text, peg_json_doc **ret_doc)
{
    const peg_json_options options = {.max_bytes = PEG_LIMIT_TEXT_BYTES};
    peg_json_doc *doc;
    peg_error error;
    const peg_status status = peg_json_parse(text, &options, &doc, &error);

    if (status == PEG_ENOMEM)
        return fail_nomem(reply);
    if (status)
        return peg__reply_fail(reply, "it is no JSON: %s", error.message);
    if (peg_json_kind_of(peg_json_root(doc)) != PEG_JSON_OBJECT) {
        peg__reply_fail(reply, "%s stands where an object is expected",
                        peg_json_kind_name(peg_json_kind_of(peg_json_root(doc))));
        peg_json_doc_free(doc);
        return reply->status;
    }
    *ret_doc = doc;
    return PEG_OK;
}

static const peg_json *member(struct peg__reply *reply, const peg_json *object, const char *name,
                              peg_json_kind kind)
{
    const peg_json *value = object && !reply->status ? peg_json_get(object, name) : NULL;

    if (!value || peg_json_kind_of(value) == PEG_JSON_NULL)
        return NULL;
    if (peg_json_kind_of(value) == kind)
        return value;
    peg__reply_fail(reply, "\"%s\" is of type %s, not %s", name,
                    peg_json_kind_name(peg_json_kind_of(value)), peg_json_kind_name(kind));
    return NULL;
}

const peg_json *peg__reading_object(struct peg__reply *reply, const peg_json *object,
                                    const char *name)
{
    return member(reply, object, name, PEG_JSON_OBJECT);
}

const peg_json *peg__reading_array(struct peg__reply *reply, const peg_json *object,
                                   const char *name)
{
    return member(reply, object, name, PEG_JSON_ARRAY);
}

peg_str peg__reading_string(struct peg__reply *reply, const peg_json *object, const char *name)
{
    const peg_json *value = member(reply, object, name, PEG_JSON_STRING);

    return value ? peg_json_str(value) : peg__strn(NULL, 0);
}

peg_status peg__reading_end(const struct peg__reply *reply, peg_error *reterr)
{
    if (reply->status && reterr)
        *reterr = reply->error;
    return reply->status;
}
