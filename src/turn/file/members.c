/* SPDX-License-Identifier: Apache-2.0 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "turn/file/internal.h"
#include "json/json.h"

/* ---- gathering ------------------------------------------------------------------- */

static void add_field(struct peg__fields *fields, const struct peg__field *field)
{
    if (!PEG__RESERVE(fields->items, fields->n + 1, fields->capacity)) {
        fields->is_out_of_memory = true;
        return;
    }
    fields->items[fields->n++] = *field;
}

void peg__fields_string(struct peg__fields *fields, const char *name, peg_str string)
{
    add_field(fields, &(const struct peg__field){
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
        add_field(fields, &(const struct peg__field){.name = peg__str(name),
                                                     .type = PEG__FIELD_INTEGER,
                                                     .u.integer = integer});
}

void peg__fields_bool(struct peg__fields *fields, const char *name, bool truth)
{
    add_field(fields, &(const struct peg__field){
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
    add_field(fields, &(const struct peg__field){
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
    add_field(fields, &field);
}

void peg__fields_made(struct peg__fields *fields, const char *name, peg__field_fn make,
                      const void *self)
{
    add_field(fields, &(const struct peg__field){.name = peg__str(name),
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

static int compare_names(const void *a, const void *b)
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
        qsort(fields->items, fields->n, sizeof(*fields->items), compare_names);
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

/* ---- errors ------------------------------------------------------------------------ */

peg_status peg__in_fail(struct peg__in *in, const char *name, const char *fmt, ...)
{
    char words[200];
    char where[PEG__IN_AT + 64];
    va_list args;

    if (in->status)
        return in->status;
    va_start(args, fmt);
    vsnprintf(words, sizeof(words), fmt, args);
    va_end(args);
    snprintf(where, sizeof(where), "%s%s%s", in->at, name ? "/" : "", name ? name : "");
    peg__fail(in->reterr, PEG_EPARSE, "E_TURN_FORMAT", "%s %s", name ? name : "this", words);
    peg__error_where(in->reterr, peg__str(where));
    in->status = PEG_EPARSE;
    return in->status;
}

void peg__in_below(peg_error *reterr, const char *at)
{
    char where[sizeof(reterr->where) + PEG__IN_AT];

    if (!reterr)
        return;
    snprintf(where, sizeof(where), "%s%s", at, reterr->where);
    peg__error_where(reterr, peg__str(where));
}

peg_status peg__in_refused(peg_status status, const char *at, peg_error *reterr)
{
    if (status == PEG_EINVAL || status == PEG_EEXISTS) {
        const peg_error why =
            reterr ? *reterr : (peg_error){.code = "", .cause = "", .message = ""};

        peg__fail_because(reterr, PEG_EPARSE, "E_TURN_FORMAT", &why, "this is no part of a turn");
        status = PEG_EPARSE;
    }
    if (status == PEG_EPARSE || status == PEG_ELIMIT)
        peg__error_where(reterr, peg__str(at));
    return status;
}

/* ---- members ------------------------------------------------------------------------- */

const peg_json *peg__in_any(const struct peg__in *in, const char *name)
{
    const peg_json *value = in->status ? NULL : peg_json_get(in->object, name);

    return value && value->kind != PEG_JSON_NULL ? value : NULL;
}

static const peg_json *get_kind(struct peg__in *in, const char *name, peg_json_kind kind)
{
    const peg_json *value = peg__in_any(in, name);

    if (!value || value->kind == kind)
        return value;
    peg__in_fail(in, name, "must be of type %s, not %s", peg_json_kind_name(kind),
                 peg_json_kind_name(peg_json_kind_of(value)));
    return NULL;
}

const peg_json *peg__in_object(struct peg__in *in, const char *name)
{
    return get_kind(in, name, PEG_JSON_OBJECT);
}

const peg_json *peg__in_array(struct peg__in *in, const char *name)
{
    return get_kind(in, name, PEG_JSON_ARRAY);
}

peg_str peg__in_string(struct peg__in *in, const char *name)
{
    const peg_json *value = get_kind(in, name, PEG_JSON_STRING);

    return value ? peg_json_str(value) : (peg_str){NULL, 0};
}

const char *peg__in_cstring(struct peg__in *in, const char *name)
{
    const peg_str s = peg__in_string(in, name);

    if (!s.ptr || !memchr(s.ptr, '\0', s.len))
        return s.ptr;
    peg__in_fail(in, name, "must have no NUL character in it");
    return NULL;
}

int64_t peg__in_integer(struct peg__in *in, const char *name, int64_t most)
{
    const peg_json *value = peg__in_any(in, name);
    int64_t number = 0;

    if (!value)
        return 0;
    if (peg_json_int64(value, &number) && number >= 0 && number <= most)
        return number;
    peg__in_fail(in, name, "must be a whole number from 0 to %lld", (long long)most);
    return 0;
}

bool peg__in_bool(struct peg__in *in, const char *name)
{
    const peg_json *value = get_kind(in, name, PEG_JSON_BOOL);

    return value && peg_json_is_true(value);
}

/* ---- members that nobody knows ----------------------------------------------------------- */

bool peg__in_list(const char *const *list, peg_str name)
{
    for (; *list; list++)
        if (peg__str_is(name, *list))
            return true;
    return false;
}

void peg__in_only(struct peg__in *in, const char *const *list)
{
    if (!in->is_strict || in->status)
        return;
    PEG_JSON_EACH_MEMBER (in->object, key) {
        const peg_str name = peg_json_str(key);
        struct peg__buf pointer = PEG__BUF(PEG__IN_AT + 1000);

        if (peg__in_list(list, name))
            continue;
        peg__in_fail(in, NULL,
                     "has a member '%.*s' that nobody here knows: remove it, or read "
                     "without strict",
                     (int)(name.len < 64 ? name.len : 64), name.ptr);
        peg__buf_puts(&pointer, in->at);
        peg__json_pointer_push(name, &pointer);
        if (!pointer.status)
            peg__error_where(in->reterr, peg__buf_view(&pointer));
        peg__buf_free(&pointer);
        return;
    }
}

bool peg__in_has_others(const peg_json *object, const char *const *list)
{
    if (!object || object->kind != PEG_JSON_OBJECT)
        return false;
    PEG_JSON_EACH_MEMBER (object, key) {
        if (!peg__in_list(list, peg_json_str(key)))
            return true;
    }
    return false;
}

void peg__in_copy_others(const peg_json *object, const char *const *list, peg_json_builder *b)
{
    PEG_JSON_EACH_MEMBER (object, key) {
        if (peg__in_list(list, peg_json_str(key)))
            continue;
        peg_json_add_key(b, peg_json_str(key));
        peg_json_add_copy(b, key + 1);
    }
}
