/* SPDX-License-Identifier: Apache-2.0 */

#include "turn/file/args.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "turn/file/bytes.h"
#include "json/json.h"

/* *ret_doc is the object that the text is, or NULL: a reader would not see what its author wrote if
 * names came twice. */
static peg_status parse(peg_str text, peg_json_doc **ret_doc, peg_error *reterr)
{
    static const peg_json_options options = {PEG_JSON_OPTIONS_INIT,
                                             .max_depth = PEG_LIMIT_TURN_ARGS_DEPTH,
                                             .duplicates = PEG_JSON_REFUSE};
    peg_json_doc *doc = NULL;
    const peg_status status = peg_json_parse(text, &options, &doc, NULL);

    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (!status && peg_json_root(doc)->kind != PEG_JSON_OBJECT)
        doc = peg_json_doc_free(doc);
    *ret_doc = doc;
    return PEG_OK;
}

peg_status peg__args_fields(peg_str text, struct peg__args_out *out, struct peg__fields *fields,
                            peg_error *reterr)
{
    size_t len = 0;
    peg_status status;

    if (!text.len)
        return PEG_OK;
    if (!peg__utf8_is_valid(text)) {
        status = peg__bytes_base64(text, &out->base64, &len, reterr);
        if (!status)
            peg__fields_string(fields, "args_base64", peg__strn(out->base64, len));
        return status;
    }
    status = parse(text, &out->doc, reterr);
    if (status)
        return status;
    if (out->doc)
        peg__fields_json(fields, "args", peg_json_root(out->doc));
    else
        peg__fields_string(fields, "args", text);
    return PEG_OK;
}

void peg__args_out_free(struct peg__args_out *out)
{
    out->doc = peg_json_doc_free(out->doc);
    peg__free(out->base64);
    out->base64 = NULL;
}

peg_status peg__args_same(peg_str a, peg_str b, bool *ret_same, peg_error *reterr)
{
    peg_json_doc *left = NULL;
    peg_json_doc *right = NULL;
    peg_status status;

    *ret_same = peg__str_eq(a, b);
    if (*ret_same)
        return PEG_OK;
    status = parse(a, &left, reterr);
    if (!status && left)
        status = parse(b, &right, reterr);
    if (!status && left && right)
        *ret_same = peg_json_equal(peg_json_root(left), peg_json_root(right));
    peg_json_doc_free(left);
    peg_json_doc_free(right);
    return status;
}

peg_status peg__args_usable(peg_str text, bool *ret_usable, peg_error *reterr)
{
    peg_json_doc *doc = NULL;
    const peg_status status = peg_json_parse(text, &peg__json_refuse_duplicates, &doc, NULL);

    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    *ret_usable = !status && peg_json_root(doc)->kind == PEG_JSON_OBJECT;
    peg_json_doc_free(doc);
    return PEG_OK;
}

/* ---- reading --------------------------------------------------------------------- */

static peg_status decode(struct peg__in *payload, peg_str base64, peg_str *ret_text,
                         char **ret_owned)
{
    char *bytes = peg__alloc(peg__base64_bytes(base64.len));
    size_t len = 0;

    if (!bytes)
        return payload->status = peg__fail_nomem(payload->reterr);
    if (!peg__base64_decode(base64, bytes, &len)) {
        peg__free(bytes);
        return peg__in_fail(payload, "args_base64", "is no base 64");
    }
    *ret_text = peg__strn(bytes, len);
    *ret_owned = bytes;
    return PEG_OK;
}

peg_status peg__args_read(struct peg__in *payload, peg_str *ret_text, char **ret_owned)
{
    const peg_json *args = peg__in_any(payload, "args");
    const peg_str base64 = peg__in_string(payload, "args_base64");
    char *text = NULL;
    size_t len = 0;
    peg_status status;

    *ret_text = (peg_str){NULL, 0};
    *ret_owned = NULL;
    if (payload->status)
        return payload->status;
    if (args && base64.ptr)
        return peg__in_fail(payload, "args_base64", "says again what args says: keep one of them");
    if (base64.ptr)
        return decode(payload, base64, ret_text, ret_owned);
    if (!args || args->kind == PEG_JSON_STRING) {
        if (args)
            *ret_text = peg_json_str(args);
        return PEG_OK;
    }
    status = peg_json_write(args, PEG_JSON_COMPACT, &text, &len, payload->reterr);
    if (status)
        return payload->status = status;
    *ret_text = peg__strn(text, len);
    *ret_owned = text;
    return PEG_OK;
}
