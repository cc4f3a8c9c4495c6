/* SPDX-License-Identifier: Apache-2.0 */

/* Reading JSON that a vendor sent: an event or a body, and members of a certain type. */

#include "base/limits.h"
#include "base/text/str.h"
#include "engine/vendors/internal.h"

static const peg_json *find_member_of(struct peg__reply *reply, const peg_json *object,
                                      const char *name, peg_json_kind kind)
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

const peg_json *peg__read_object(struct peg__reply *reply, const peg_json *object, const char *name)
{
    return find_member_of(reply, object, name, PEG_JSON_OBJECT);
}

const peg_json *peg__read_array(struct peg__reply *reply, const peg_json *object, const char *name)
{
    return find_member_of(reply, object, name, PEG_JSON_ARRAY);
}

peg_str peg__read_string(struct peg__reply *reply, const peg_json *object, const char *name)
{
    const peg_json *value = find_member_of(reply, object, name, PEG_JSON_STRING);

    return value ? peg_json_str(value) : peg__strn(NULL, 0);
}

bool peg__read_is_object(struct peg__reply *reply, const peg_json *item, const char *what)
{
    if (peg_json_kind_of(item) == PEG_JSON_OBJECT)
        return true;
    peg__reply_fail(reply, "%s is no object", what);
    return false;
}

bool peg__member_is(const peg_json *object, const char *name, const char *text)
{
    const peg_json *value = peg_json_get(object, name);

    return value && peg_json_kind_of(value) == PEG_JSON_STRING &&
           peg__str_is(peg_json_str(value), text);
}

bool peg__has_member(const peg_json *object, const char *name)
{
    const peg_json *value = peg_json_get(object, name);

    return value && peg_json_kind_of(value) != PEG_JSON_NULL;
}

/* ---- events and bodies ------------------------------------------------------------------- */

/* An event or a body has to be an object. */
static peg_status parse_object(struct peg__reply *reply, peg_str text, peg_json_doc **ret_doc)
{
    const peg_json_options options = {PEG_JSON_OPTIONS_INIT, .max_bytes = PEG_LIMIT_TEXT_BYTES};
    peg_json_doc *doc;
    peg_error error;
    const peg_status status = peg_json_parse(text, &options, &doc, &error);

    if (status == PEG_ENOMEM)
        peg__reply_nomem(reply);
    else if (status)
        peg__reply_fail(reply, "it is no JSON: %s", error.message);
    if (status)
        return reply->status;
    if (peg_json_kind_of(peg_json_root(doc)) != PEG_JSON_OBJECT) {
        peg__reply_fail(reply, "%s stands where an object is expected",
                        peg_json_kind_name(peg_json_kind_of(peg_json_root(doc))));
        peg_json_doc_free(doc);
        return reply->status;
    }
    *ret_doc = doc;
    return PEG_OK;
}

static bool make_reader(const struct peg__wire *wire, struct peg__reply *reply)
{
    if (!reply->reader)
        reply->reader = peg__arena_alloc_zero(&reply->arena, wire->reader_size);
    if (!reply->reader)
        peg__reply_nomem(reply);
    return !reply->status;
}

static peg_status read_object_text(const struct peg__wire *wire, struct peg__reply *reply,
                                   peg_str type, peg_str text, peg_error *reterr)
{
    peg_status status = PEG_OK;
    peg_json_doc *doc = NULL;

    if (!make_reader(wire, reply) || parse_object(reply, text, &doc))
        return peg__reply_status(reply, reterr);
    if (wire->is_error(peg_json_root(doc), type))
        status = peg__wire_error(wire, 0, text, reterr);
    else
        wire->read(reply, type, peg_json_root(doc));
    peg_json_doc_free(doc);
    return status ? status : peg__reply_status(reply, reterr);
}

peg_status peg__wire_read_event(const struct peg__wire *wire, struct peg__reply *reply,
                                peg_str name, peg_str data, bool *ret_is_end, peg_error *reterr)
{
    peg_status status;

    *ret_is_end = false;
    if (wire->ends_with_done && peg__str_is(data, "[DONE]")) {
        *ret_is_end = true;
        reply->is_ended = reply->is_ended || !wire->ends_at_once;
        return peg__reply_status(reply, reterr);
    }
    status = read_object_text(wire, reply, name, data, reterr);
    *ret_is_end = !status && wire->ends_at_once && reply->is_ended;
    return status;
}

peg_status peg__wire_read_body(const struct peg__wire *wire, struct peg__reply *reply, peg_str body,
                               peg_error *reterr)
{
    return read_object_text(wire, reply, peg__strn(NULL, 0), body, reterr);
}
