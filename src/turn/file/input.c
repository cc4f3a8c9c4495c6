/* SPDX-License-Identifier: Apache-2.0 */

#include "turn/file/input.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/text/str.h"
#include "json/json.h"

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

static const peg_json *of_kind(struct peg__in *in, const char *name, peg_json_kind kind)
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
    return of_kind(in, name, PEG_JSON_OBJECT);
}

const peg_json *peg__in_array(struct peg__in *in, const char *name)
{
    return of_kind(in, name, PEG_JSON_ARRAY);
}

peg_str peg__in_string(struct peg__in *in, const char *name)
{
    const peg_json *value = of_kind(in, name, PEG_JSON_STRING);

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
    const peg_json *value = of_kind(in, name, PEG_JSON_BOOL);

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
