/* SPDX-License-Identifier: Apache-2.0 */

#include "turn/file/fields.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "json/json.h"

/* ---- gathering ------------------------------------------------------------------- */

static void add(struct peg__fields *fields, const struct peg__field *field)
{
    if (!PEG__RESERVE(fields->items, fields->n + 1, fields->capacity)) {
        fields->is_out_of_memory = true;
        return;
    }
    fields->items[fields->n++] = *field;
}

void peg__fields_string(struct peg__fields *fields, const char *name, peg_str string)
{
    add(fields, &(const struct peg__field){
                    .name = peg__str(name), .type = PEG__FIELD_STRING, .u.string = string});
}

void peg__fields_text(struct peg__fields *fields, const char *name, peg_str string)
{
    if (string.len)
        peg__fields_string(fields, name, string);
}

void peg__fields_integer(struct peg__fields *fields, const char *name, int64_t integer)
{
    if (integer)
        add(fields, &(const struct peg__field){
                        .name = peg__str(name), .type = PEG__FIELD_INTEGER, .u.integer = integer});
}

void peg__fields_bool(struct peg__fields *fields, const char *name, bool truth)
{
    add(fields, &(const struct peg__field){
                    .name = peg__str(name), .type = PEG__FIELD_BOOL, .u.truth = truth});
}

void peg__fields_true(struct peg__fields *fields, const char *name, bool truth)
{
    if (truth)
        peg__fields_bool(fields, name, true);
}

void peg__fields_null(struct peg__fields *fields, const char *name)
{
    peg__fields_json(fields, name, NULL);
}

void peg__fields_json(struct peg__fields *fields, const char *name, const peg_json *value)
{
    add(fields, &(const struct peg__field){
                    .name = peg__str(name), .type = PEG__FIELD_JSON, .u.json = value});
}

void peg__fields_member(struct peg__fields *fields, const peg_json *key, size_t n_before)
{
    const struct peg__field field = {
        .name = peg_json_str(key), .type = PEG__FIELD_JSON, .u.json = key + 1};

    for (size_t i = 0; i < n_before; i++) {
        if (peg__str_eq(fields->items[i].name, field.name)) {
            fields->items[i] = field;
            return;
        }
    }
    add(fields, &field);
}

void peg__fields_made(struct peg__fields *fields, const char *name, peg__field_fn make,
                      const void *self)
{
    add(fields, &(const struct peg__field){.name = peg__str(name),
                                           .type = PEG__FIELD_MADE,
                                           .u.made = {.make = make, .self = self}});
}

void peg__fields_members(struct peg__fields *fields, const peg_json *object)
{
    /* Those of the object differ from each other, so only the few before can be meant. */
    const size_t n_before = fields->n;

    if (!object || object->kind != PEG_JSON_OBJECT)
        return;
    PEG_JSON_EACH_MEMBER (object, key)
        peg__fields_member(fields, key, n_before);
}

/* ---- writing --------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const struct peg__field *left = a;
    const struct peg__field *right = b;

    return peg__json_compare_names(left->name, right->name);
}

static peg_status write_field(const struct peg__field *field, peg_json_builder *b,
                              peg_error *reterr)
{
    peg_json_add_key(b, field->name);
    switch (field->type) {
    case PEG__FIELD_STRING:
        peg_json_add_string(b, field->u.string);
        break;
    case PEG__FIELD_INTEGER:
        peg_json_add_integer(b, field->u.integer);
        break;
    case PEG__FIELD_BOOL:
        peg_json_add_bool(b, field->u.truth);
        break;
    case PEG__FIELD_JSON:
        if (field->u.json)
            return peg__json_add_sorted(b, field->u.json, reterr);
        peg_json_add_null(b);
        break;
    case PEG__FIELD_MADE:
        return field->u.made.make(field->u.made.self, b, reterr);
    }
    return PEG_OK;
}

peg_status peg__fields_write_members(struct peg__fields *fields, peg_json_builder *b,
                                     peg_error *reterr)
{
    peg_status status = PEG_OK;

    if (fields->is_out_of_memory)
        return peg__fail_nomem(reterr);
    if (fields->n)
        qsort(fields->items, fields->n, sizeof(*fields->items), by_name);
    for (size_t i = 0; i < fields->n && !status; i++)
        status = write_field(&fields->items[i], b, reterr);
    return status;
}

peg_status peg__fields_write(struct peg__fields *fields, peg_json_builder *b, peg_error *reterr)
{
    peg_status status;

    peg_json_open_object(b);
    status = peg__fields_write_members(fields, b, reterr);
    peg_json_close(b);
    return status;
}

void peg__fields_free(struct peg__fields *fields)
{
    peg__free(fields->items);
    *fields = (struct peg__fields){0};
}
