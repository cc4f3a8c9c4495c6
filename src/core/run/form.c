/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A gate as a question that goes out, and its answer that comes back, as the Model Context Protocol
 * writes them. A question to a person is a form. Forms are flat objects: a gate whose answer is one
 * is asked as it is, any other answer is the only field of a form, by name `answer`, and written as
 * JSON if there is no field for it. What peg_call_ask() asks goes out as it is.
 */

#include "core/run/ask.h"

#include <stdio.h>

#include "base/text/str.h"
#include "pegboard/schema.h"

enum form { FORM_OBJECT, FORM_FIELD, FORM_JSON, FORM_CONFIRM };

/* ---- what can be asked ---- */

static bool is_field(const peg_json *schema)
{
    const peg_str type = peg_json_str(peg_json_get(schema, "type"));

    return peg__str_is(type, "string") || peg__str_is(type, "boolean") ||
           peg__str_is(type, "number") || peg__str_is(type, "integer");
}

static bool is_flat(const peg_json *schema)
{
    const peg_json *properties = peg_json_get(schema, "properties");

    if (!peg__str_is(peg_json_str(peg_json_get(schema, "type")), "object") ||
        peg_json_kind_of(properties) != PEG_JSON_OBJECT)
        return false;
    PEG_JSON_EACH_MEMBER (properties, key) {
        if (!is_field(key + 1))
            return false;
    }
    return true;
}

static enum form gate_form(const peg_gate *gate)
{
    const peg_schema *schema = peg_gate_schema(gate);
    const peg_json *source = schema ? peg_schema_source(schema) : NULL;

    if (!schema)
        return FORM_CONFIRM;
    return is_flat(source) ? FORM_OBJECT : is_field(source) ? FORM_FIELD : FORM_JSON;
}

/* Keywords that a field of a form may have; others are checked when the answer comes. */
static void add_form_field(peg_json_builder *b, const peg_json *schema)
{
    static const char *const kept[] = {"type",      "title",     "description", "default",
                                       "minLength", "maxLength", "minimum",     "maximum",
                                       "enum",      "oneOf"};
    static const char *const formats[] = {"email", "uri", "date", "date-time"};
    const peg_json *format = peg_json_get(schema, "format");

    peg_json_open_object(b);
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        const peg_json *value = peg_json_get(schema, kept[i]);

        if (value) {
            peg_json_add_key(b, peg__str(kept[i]));
            peg_json_add_copy(b, value);
        }
    }
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (peg__str_is(peg_json_str(format), formats[i])) {
            peg_json_add_key(b, peg__str("format"));
            peg_json_add_copy(b, format);
        }
    }
    peg_json_close(b);
}

static void add_named(peg_json_builder *b, const char *name, const char *text)
{
    peg_json_add_key(b, peg__str(name));
    peg_json_add_string(b, peg__str(text));
}

static void add_object_form(peg_json_builder *b, const peg_json *schema)
{
    const peg_json *required = peg_json_get(schema, "required");

    peg_json_open_object(b);
    PEG_JSON_EACH_MEMBER (peg_json_get(schema, "properties"), key) {
        peg_json_add_key(b, peg_json_str(key));
        add_form_field(b, key + 1);
    }
    peg_json_close(b);
    if (peg_json_kind_of(required) == PEG_JSON_ARRAY) {
        peg_json_add_key(b, peg__str("required"));
        peg_json_add_copy(b, required);
    }
}

static void add_single_form(peg_json_builder *b, const peg_json *schema, enum form form)
{
    peg_json_open_object(b);
    peg_json_add_key(b, peg__str("answer"));
    if (form == FORM_FIELD) {
        add_form_field(b, schema);
    } else {
        peg_json_open_object(b);
        add_named(b, "type", "string");
        add_named(b, "description", "the answer, as JSON");
        peg_json_close(b);
    }
    peg_json_close(b);
    peg_json_add_key(b, peg__str("required"));
    peg_json_open_array(b);
    peg_json_add_string(b, peg__str("answer"));
    peg_json_close(b);
}

static void add_form(peg_json_builder *b, const peg_gate *gate)
{
    const enum form form = gate_form(gate);
    const peg_json *schema = form == FORM_CONFIRM ? NULL : peg_schema_source(peg_gate_schema(gate));

    peg_json_open_object(b);
    add_named(b, "mode", "form");
    add_named(b, "message", peg_gate_reason(gate));
    peg_json_add_key(b, peg__str("requestedSchema"));
    peg_json_open_object(b);
    add_named(b, "type", "object");
    peg_json_add_key(b, peg__str("properties"));
    if (form == FORM_OBJECT) {
        add_object_form(b, schema);
    } else if (form == FORM_CONFIRM) { /* a form without fields: to accept it is the answer */
        peg_json_open_object(b);
        peg_json_close(b);
    } else {
        add_single_form(b, schema, form);
    }
    peg_json_close(b);
    peg_json_close(b);
}

static peg_status make_form(const peg_gate *gate, unsigned number, peg_json_doc **ret_doc)
{
    peg_json_builder *b = peg_json_builder_new();
    char key[32];

    snprintf(key, sizeof(key), "gate-%u", number);
    peg_json_open_object(b);
    peg_json_add_key(b, peg__str(key));
    peg_json_open_object(b);
    add_named(b, "method", "elicitation/create");
    peg_json_add_key(b, peg__str("params"));
    add_form(b, gate);
    peg_json_close(b);
    peg_json_close(b);
    return peg_json_builder_finish(b, ret_doc, NULL);
}

peg_status peg__gate_question(const peg_gate *gate, unsigned number, peg_json_doc **ret_doc)
{
    const peg_json *requests = peg__gate_requests(gate);
    peg_json_builder *b;

    if (!requests)
        return make_form(gate, number, ret_doc);
    b = peg_json_builder_new();
    peg_json_add_copy(b, requests);
    return peg_json_builder_finish(b, ret_doc, NULL);
}

/* ---- answering ---- */

/* What a person wrote as JSON. */
static peg_status resolve_with_text(peg_gate *gate, peg_str text, peg_error *reterr)
{
    peg_json_doc *doc = NULL;
    peg_status status = peg_json_parse(text, NULL, &doc, reterr);

    if (!status)
        status = peg_gate_resolve(gate, peg_json_root(doc), reterr);
    peg_json_doc_free(doc);
    return status;
}

static peg_status resolve_with_form(peg_gate *gate, const peg_json *content, peg_error *reterr)
{
    static const peg_json yes = {.kind = PEG_JSON_BOOL, .u.truth = 1};
    const peg_json *answer = peg_json_get(content, "answer");

    switch (gate_form(gate)) {
    case FORM_OBJECT:
        return peg_gate_resolve(gate, content, reterr);
    case FORM_FIELD:
        return peg_gate_resolve(gate, answer, reterr);
    case FORM_JSON:
        return resolve_with_text(gate, peg_json_str(answer), reterr);
    case FORM_CONFIRM:
        break;
    }
    return peg_gate_resolve(gate, &yes, reterr);
}

/* True: it is settled. False: the answer does not fit, and is asked for again. */
static bool take_form(peg_gate *gate, const peg_json *answer)
{
    const peg_str action = peg_json_str(peg_json_get(answer, "action"));
    peg_error error;
    peg_status status;

    if (!peg__str_is(action, "accept")) {
        peg_gate_reject(gate, "E_DECLINED", "the user %s",
                        peg__str_is(action, "decline") ? "declined" : "canceled the question");
        return true;
    }
    status = resolve_with_form(gate, peg_json_get(answer, "content"), &error);
    if (status == PEG_ESCHEMA || status == PEG_EPARSE)
        return false;
    if (status)
        peg_gate_reject(gate, "E_GATE_ANSWER", "%s", error.message);
    return true;
}

static bool take_requests(peg_gate *gate, const peg_json *answers)
{
    peg_error error;
    const peg_status status = peg_gate_resolve(gate, answers, &error);

    if (status == PEG_ESCHEMA)
        return false;
    if (status)
        peg_gate_reject(gate, "E_GATE_ANSWER", "%s", error.message);
    return true;
}

bool peg__gate_take_answer(peg_gate *gate, const peg_json *answers)
{
    const peg_json *first = NULL;

    if (peg__gate_requests(gate))
        return take_requests(gate, answers);
    PEG_JSON_EACH_MEMBER (answers, key) /* there is one */
        first = first ? first : key + 1;
    return first && take_form(gate, first);
}
