/* SPDX-License-Identifier: Apache-2.0 */

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "turn/file/internal.h"
#include "turn/turn.h"
#include "json/json.h"

/* ---- gathering ------------------------------------------------------------------- */

static void append_field(struct peg__fields *fields, const struct peg__field *field)
{
    if (!PEG__RESERVE(fields->items, fields->n + 1, fields->capacity)) {
        fields->is_out_of_memory = true;
        return;
    }
    fields->items[fields->n++] = *field;
}

void peg__fields_string(struct peg__fields *fields, const char *name, peg_str string)
{
    append_field(fields, &(const struct peg__field){.name = peg__str(name),
                                                    .type = PEG__FIELD_STRING,
                                                    .u.string = string});
}

void peg__fields_json(struct peg__fields *fields, const char *name, const peg_json *value)
{
    append_field(fields, &(const struct peg__field){
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
    append_field(fields, &field);
}

void peg__fields_made(struct peg__fields *fields, const char *name, peg__field_fn make,
                      const void *self)
{
    append_field(fields, &(const struct peg__field){.name = peg__str(name),
                                                    .type = PEG__FIELD_MADE,
                                                    .u.made = {.make = make, .self = self}});
}

void peg__fields_members(struct peg__fields *fields, const peg_json *object)
{
    /* Those of the object differ from each other, so only the few before can be meant. */
    const size_t n_before = fields->n;

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
    char message[200];
    char where[PEG__IN_AT + 64];
    va_list args;

    if (in->status)
        return in->status;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    snprintf(where, sizeof(where), "%s%s%s", in->at, name ? "/" : "", name ? name : "");
    peg__fail(in->reterr, PEG_EPARSE, "E_TURN_FORMAT", "%s %s", name ? name : "this", message);
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

        peg__fail_because(reterr, PEG_EPARSE, "E_TURN_FORMAT", &why, "this is not part of a turn");
        status = PEG_EPARSE;
    }
    if (status == PEG_EPARSE || status == PEG_ELIMIT)
        peg__error_where(reterr, peg__str(at));
    return status;
}

/* ---- members ------------------------------------------------------------------------- */

const peg_json *peg__in_any(const struct peg__in *in, const char *name)
{
    return in->status ? NULL : peg__present(in->object, name);
}

const peg_json *peg__in_kind(struct peg__in *in, const char *name, peg_json_kind kind)
{
    const peg_json *value = peg__in_any(in, name);

    if (!value || value->kind == kind)
        return value;
    peg__in_fail(in, name, "must be of type %s, not %s", peg_json_kind_name(kind),
                 peg_json_kind_name(peg_json_kind_of(value)));
    return NULL;
}

peg_str peg__in_string(struct peg__in *in, const char *name)
{
    const peg_json *value = peg__in_kind(in, name, PEG_JSON_STRING);

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

peg_status peg__in_bag(struct peg__in *in, const char *name, peg_bag **ret_bag)
{
    const peg_json *object = peg__in_kind(in, name, PEG_JSON_OBJECT);
    char at[PEG__IN_AT];

    if (!object || in->status)
        return in->status;
    in->status = peg__bag_from_json(object, in->is_strict, ret_bag, in->reterr);
    snprintf(at, sizeof(at), "%s/%s", in->at, name);
    if (in->status)
        peg__in_below(in->reterr, at);
    return in->status;
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

/* ---- unknown members --------------------------------------------------------------------- */

void peg__in_only(struct peg__in *in, const struct peg__member *table)
{
    if (!in->is_strict || in->status)
        return;
    PEG_JSON_EACH_MEMBER (in->object, key) {
        const peg_str name = peg_json_str(key);
        struct peg__buf pointer = PEG__BUF(PEG__IN_AT + 1000);

        if (peg__member_is_known(table, name))
            continue;
        peg__in_fail(in, NULL, "has an unknown member '%.*s': remove it, or read without strict",
                     (int)(name.len < 64 ? name.len : 64), name.ptr);
        peg__buf_puts(&pointer, in->at);
        peg__json_pointer_push(name, &pointer);
        if (!pointer.status)
            peg__error_where(in->reterr, peg__buf_view(&pointer));
        peg__buf_free(&pointer);
        return;
    }
}

bool peg__in_has_others(const peg_json *object, const struct peg__member *table)
{
    PEG_JSON_EACH_MEMBER (object, key) {
        if (!peg__member_is_known(table, peg_json_str(key)))
            return true;
    }
    return false;
}

bool peg__member_copy(const char *name, const peg_json *value, peg_json_builder *b)
{
    if (value && b) {
        peg_json_add_key(b, peg__str(name));
        peg_json_add_copy(b, value);
    }
    return value != NULL;
}

void peg__in_copy_others(const peg_json *object, const struct peg__member *table,
                         peg_json_builder *b)
{
    PEG_JSON_EACH_MEMBER (object, key) {
        if (peg__member_is_known(table, peg_json_str(key)))
            continue;
        peg_json_add_key(b, peg_json_str(key));
        peg_json_add_copy(b, key + 1);
    }
}

peg_status peg__in_keep_others(struct peg__in *in, const struct peg__member *table,
                               peg_json_doc **ret_doc)
{
    peg_json_builder *b;

    if (in->status || !peg__in_has_others(in->object, table))
        return in->status;
    b = peg_json_builder_new();
    peg_json_open_object(b);
    peg__in_copy_others(in->object, table, b);
    peg_json_close(b);
    return in->status = peg_json_builder_finish(b, ret_doc, in->reterr);
}

/* ---- enums ------------------------------------------------------------------------------- */

static const char *name_tier(unsigned value)
{
    return peg_trust_tier_name((peg_trust_tier)value);
}

const struct peg__enum peg__tiers = {name_tier, PEG_TIER_THIRD_PARTY_PUBLIC};

/* 0 if none has this name. */
static unsigned find_enum(const struct peg__enum *names, peg_str name)
{
    unsigned value = names->last;

    while (value && !peg__str_is(name, names->name(value)))
        value--;
    return value;
}

bool peg__enum_is_foreign(const peg_json *object, const struct peg__member *member)
{
    const peg_str name = peg_json_str(peg_json_get(object, member->name));

    return name.len && !find_enum(member->names, name);
}

/* Strict readers refuse an unknown name; for others it counts as missing. */
static unsigned read_enum(struct peg__in *in, const struct peg__member *member)
{
    const peg_str text = peg__in_string(in, member->name);
    const unsigned value = text.len ? find_enum(member->names, text) : 0;

    if (text.len && !value && in->is_strict)
        peg__in_fail(in, member->name, "is '%.*s', which is unknown",
                     (int)(text.len < 64 ? text.len : 64), text.ptr);
    return value;
}

/* ---- tables ------------------------------------------------------------------------------ */

static const struct peg__member text_members[] = {
    PEG__ROW(peg_block_def, text, "text", TEXT),
    {0},
};

static const struct peg__member message_members[] = {
    PEG__ROW(peg_block_def, text, "text", TEXT),
    PEG__ODD_ROW("media"),
    PEG__ODD_ROW("images"),
    {0},
};

static const struct peg__member call_members[] = {
    PEG__ROW(peg_block_def, call_id, "id", STRING),
    PEG__ROW(peg_block_def, tool, "name", STRING),
    PEG__ODD_ROW("args"),
    PEG__ODD_ROW("args_base64"),
    {0},
};

static const struct peg__member other_members[] = {
    PEG__ROW(peg_block_def, type, "type", STRING),
    PEG__ROW(peg_block_def, text, "text", TEXT),
    PEG__ENUM_ROW(peg_block_def, tier, "trust_tier", &peg__tiers),
    PEG__ODD_ROW("media"),
    PEG__ODD_ROW("artifact"),
    {0},
};

static const struct peg__member result_members[] = {
    PEG__ROW(peg_record_def, call_id, "id", STRING),
    PEG__ROW(peg_record_def, key, "call", STRING),
    PEG__ROW(peg_record_def, tool, "name", STRING),
    PEG__ODD_ROW("args"),
    PEG__ODD_ROW("args_base64"),
    PEG__FULL_ROW("result", "/text", ODD, 0, NULL),
    PEG__ODD_ROW("error"),
    PEG__ODD_ROW("text_base64"),
    PEG__ROW(peg_record_def, code, "code", CSTRING),
    PEG__ROW(peg_record_def, cause, "cause", CSTRING),
    PEG__ROW(peg_record_def, handle, "handle", STRING),
    PEG__ODD_ROW("artifact"),
    PEG__ODD_ROW("media"),
    PEG__FULL_ROW("replay", "/payload", ODD, 0, NULL),
    PEG__ROW(peg_record_def, replay_compatibility, "replay_compatibility", CSTRING),
    PEG__ROW(peg_record_def, is_trusted, "trusted", BOOL),
    PEG__ROW(peg_record_def, is_inline, "inline", BOOL),
    PEG__ROW(peg_record_def, is_from_artifact_tool, "artifact_tool", BOOL),
    PEG__ROW(peg_record_def, attempts, "attempts", COUNT),
    PEG__ROW(peg_record_def, created_ms, "created_ms", INTEGER),
    PEG__ROW(peg_record_def, completed_ms, "completed_ms", INTEGER),
    PEG__ROW(peg_record_def, duration_ns, "duration_ns", INTEGER),
    PEG__ROW(peg_record_def, nonce, "nonce", CSTRING),
    PEG__ROW(peg_record_def, server_data, "server_data", ARRAY),
    {0},
};

const struct peg__member *const peg__payload_members[] = {
    [PEG_BLOCK_SYSTEM] = text_members,       [PEG_BLOCK_USER] = message_members,
    [PEG_BLOCK_ASSISTANT] = message_members, [PEG_BLOCK_REASONING] = text_members,
    [PEG_BLOCK_CALL] = call_members,         [PEG_BLOCK_RESULT] = result_members,
    [PEG_BLOCK_OTHER] = other_members,
};

const char *peg__payload_reserved(peg_block_kind kind, const peg_json *payload)
{
    const struct peg__member *member = peg__payload_members[kind];

    while (member->name && !peg_json_get(payload, member->name))
        member++;
    return member->name;
}

bool peg__member_is_known(const struct peg__member *table, peg_str name)
{
    while (table->name && (name.len != table->len || memcmp(name.ptr, table->name, name.len) != 0))
        table++;
    return table->name != NULL;
}

const char *peg__member_of_field(const struct peg__member *table, const char *field)
{
    while (table->name && strcmp(table->field, field) != 0)
        table++;
    return table->name;
}

/* ---- values ------------------------------------------------------------------------------ */

static void read_plain_value(struct peg__in *in, const struct peg__member *member, void *into)
{
    const char *text;
    const peg_json *truth;

    switch (member->kind) {
    case PEG__MEMBER_ODD:
    case PEG__MEMBER_MADE:
    case PEG__MEMBER_ID:
        break;
    case PEG__MEMBER_STRING:
    case PEG__MEMBER_TEXT:
        *(peg_str *)into = peg__in_string(in, member->name);
        break;
    case PEG__MEMBER_CSTRING:
    case PEG__MEMBER_OPTION:
        text = peg__in_cstring(in, member->name);
        *(const char **)into = text && (*text || member->kind == PEG__MEMBER_CSTRING) ? text : NULL;
        break;
    case PEG__MEMBER_BOOL:
        truth = peg__in_kind(in, member->name, PEG_JSON_BOOL);
        *(bool *)into = truth && peg_json_is_true(truth);
        break;
    case PEG__MEMBER_COUNT:
        *(unsigned *)into = (unsigned)peg__in_integer(in, member->name, UINT_MAX);
        break;
    case PEG__MEMBER_INTEGER:
    case PEG__MEMBER_LENGTH:
        *(int64_t *)into = peg__in_integer(in, member->name, INT64_MAX);
        break;
    case PEG__MEMBER_ENUM:
        *(unsigned *)into = read_enum(in, member);
        break;
    case PEG__MEMBER_ARRAY:
        *(const peg_json **)into = peg__in_kind(in, member->name, PEG_JSON_ARRAY);
        break;
    }
}

void peg__members_read(struct peg__in *in, const struct peg__member *table, void *def)
{
    for (; table->name && !in->status; table++)
        read_plain_value(in, table, (char *)def + table->offset);
}

/* False if it is left out. */
static bool describe_value(const struct peg__member *member, const void *from,
                           struct peg__field *field)
{
    switch (member->kind) {
    case PEG__MEMBER_ODD:
        return false;
    case PEG__MEMBER_MADE:
        field->type = PEG__FIELD_MADE;
        field->u.made = *(const struct peg__made *)from;
        return field->u.made.make != NULL;
    case PEG__MEMBER_STRING:
    case PEG__MEMBER_TEXT:
    case PEG__MEMBER_ID:
        field->u.string = *(const peg_str *)from;
        return member->kind == PEG__MEMBER_STRING ? field->u.string.ptr != NULL
                                                  : field->u.string.len > 0;
    case PEG__MEMBER_CSTRING:
    case PEG__MEMBER_OPTION:
        field->u.string = peg_cstr(*(const char *const *)from);
        return *(const char *const *)from &&
               (field->u.string.len || member->kind == PEG__MEMBER_CSTRING);
    case PEG__MEMBER_BOOL:
        field->type = PEG__FIELD_BOOL;
        return field->u.truth = *(const bool *)from;
    case PEG__MEMBER_COUNT:
        field->type = PEG__FIELD_INTEGER;
        return (field->u.integer = *(const unsigned *)from) != 0;
    case PEG__MEMBER_INTEGER:
    case PEG__MEMBER_LENGTH:
        field->type = PEG__FIELD_INTEGER;
        field->u.integer = *(const int64_t *)from;
        return field->u.integer || member->kind == PEG__MEMBER_LENGTH;
    case PEG__MEMBER_ENUM:
        field->u.string = peg__str(member->names->name(*(const unsigned *)from));
        return *(const unsigned *)from;
    case PEG__MEMBER_ARRAY:
        field->type = PEG__FIELD_JSON;
        return (field->u.json = *(const peg_json *const *)from) != NULL;
    }
    return false;
}

void peg__members_write(const struct peg__member *table, const void *def,
                        struct peg__fields *fields)
{
    for (; table->name; table++) {
        struct peg__field field = {.name = peg__strn(table->name, table->len),
                                   .type = PEG__FIELD_STRING};

        if (describe_value(table, (const char *)def + table->offset, &field))
            append_field(fields, &field);
    }
}

peg_status peg__members_add(const struct peg__member *table, const void *def, peg_json_builder *b,
                            peg_error *reterr)
{
    peg_status status = PEG_OK;

    for (; table->name && !status; table++) {
        struct peg__field field = {.name = peg__strn(table->name, table->len),
                                   .type = PEG__FIELD_STRING};

        if (describe_value(table, (const char *)def + table->offset, &field))
            status = write_field(&field, b, reterr);
    }
    return status;
}
