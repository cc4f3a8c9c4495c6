/* SPDX-License-Identifier: Apache-2.0 */

/*
 * JSON Pointer, RFC 6901, both ways.
 *
 * From a pointer to a value: tokens are compared with the keys as they stand,
 * unescaped on the fly, so that nothing is allocated. From a value to its
 * pointer: a subtree is a run of memory, so the child that leads to the value
 * is the one whose run contains its address.
 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "json/json.h"

/* As much of a stranger's token as an error message repeats. */
enum { SHOWN_BYTES = 60 };

/* ---- from a pointer to a value --------------------------------------------- */

static peg_status check_syntax(peg_str pointer, peg_error *reterr)
{
    size_t bad;

    if (pointer.len && pointer.ptr[0] != '/') {
        peg__fail(reterr, PEG_EPARSE, "E_JSON_POINTER_SYNTAX",
                  "a JSON Pointer is empty or starts with '/'");
        peg__error_at(reterr, pointer, 0);
        return PEG_EPARSE;
    }
    for (bad = 0; bad < pointer.len; bad++)
        if (pointer.ptr[bad] == '~' && (bad + 1 == pointer.len || (pointer.ptr[bad + 1] != '0' &&
                                                                   pointer.ptr[bad + 1] != '1')))
            break;
    if (bad == pointer.len)
        return PEG_OK;

    peg__fail(reterr, PEG_EPARSE, "E_JSON_POINTER_SYNTAX",
              "'~' in a JSON Pointer must be followed by 0 or 1: write '~0' for '~', '~1' for '/'");
    peg__error_at(reterr, pointer, bad);
    return PEG_EPARSE;
}

/* Is this the key that the token names? Requires a token that check_syntax() passed. */
static bool token_names(peg_str token, peg_str key)
{
    size_t k = 0;

    for (size_t t = 0; t < token.len; t++, k++) {
        char c = token.ptr[t];

        if (c == '~')
            c = token.ptr[++t] == '0' ? '~' : '/';
        if (k == key.len || key.ptr[k] != c)
            return false;
    }
    return k == key.len;
}

static const peg_json *find_member(const peg_json *object, peg_str token)
{
    PEG_JSON_EACH_MEMBER (object, key) {
        if (token_names(token, peg_json_str(key)))
            return key + 1;
    }
    return NULL;
}

static const peg_json *find_item(const peg_json *array, peg_str token)
{
    uint64_t index = 0;

    /* Lengths have 32 bits, so ten digits say all, and "-" is past the end by definition. */
    if (token.len == 0 || token.len > 10 || (token.ptr[0] == '0' && token.len > 1))
        return NULL;
    for (size_t i = 0; i < token.len; i++) {
        if (token.ptr[i] < '0' || token.ptr[i] > '9')
            return NULL;
        index = index * 10 + (uint64_t)(token.ptr[i] - '0');
    }
    return peg_json_at(array, (size_t)index);
}

static peg_status missing(const peg_json *value, peg_str found, peg_str token, peg_error *reterr)
{
    const int shown = token.len > SHOWN_BYTES ? SHOWN_BYTES : (int)token.len;
    const char *more = token.len > SHOWN_BYTES ? "..." : "";

    if (peg_json_kind_of(value) == PEG_JSON_OBJECT)
        peg__fail(reterr, PEG_ENOTFOUND, "E_JSON_POINTER_MISSING",
                  "the object has no member '%.*s%s'", shown, token.ptr, more);
    else if (peg_json_kind_of(value) == PEG_JSON_ARRAY)
        peg__fail(reterr, PEG_ENOTFOUND, "E_JSON_POINTER_MISSING",
                  "the array has no item '%.*s%s': it has %zu, counted from 0", shown, token.ptr,
                  more, peg_json_len(value));
    else
        peg__fail(reterr, PEG_ENOTFOUND, "E_JSON_POINTER_MISSING",
                  "there is nothing at '%.*s%s' inside of %s %s", shown, token.ptr, more,
                  peg_json_kind_of(value) == PEG_JSON_INTEGER ? "an" : "a",
                  peg_json_kind_name(peg_json_kind_of(value)));
    peg__error_where(reterr, found);
    return PEG_ENOTFOUND;
}

peg_status peg_json_pointer(const peg_json *value, peg_str pointer, const peg_json **ret_value,
                            peg_error *reterr)
{
    peg_status status = check_syntax(pointer, reterr);

    if (status)
        return status;

    value = peg__json_or_null(value);
    for (size_t at = 0; at < pointer.len;) {
        const peg_str rest = peg__str_from(pointer, at + 1); /* behind the '/' */
        const char *slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
        const peg_str token = {rest.ptr, slash ? (size_t)(slash - rest.ptr) : rest.len};
        const peg_json *child = NULL;

        if (peg_json_kind_of(value) == PEG_JSON_OBJECT)
            child = find_member(value, token);
        else if (peg_json_kind_of(value) == PEG_JSON_ARRAY)
            child = find_item(value, token);
        if (!child)
            return missing(value, peg__strn(pointer.ptr, at), token, reterr);

        value = child;
        at += 1 + token.len;
    }

    *ret_value = value;
    return PEG_OK;
}

/* ---- from a value to its pointer ------------------------------------------- */

void peg__json_pointer_push(peg_str token, struct peg__buf *out)
{
    size_t done = 0;

    peg__buf_putc(out, '/');
    for (size_t i = 0; i < token.len; i++) {
        if (token.ptr[i] != '~' && token.ptr[i] != '/')
            continue;
        peg__buf_add(out, token.ptr + done, i - done);
        peg__buf_puts(out, token.ptr[i] == '~' ? "~0" : "~1");
        done = i + 1;
    }
    peg__buf_add(out, token.ptr + done, token.len - done);
}

static bool contains(const peg_json *tree, const peg_json *value)
{
    return tree <= value && value < peg_json_next(tree);
}

/* Appends the index of the item that contains value and returns the item. */
static const peg_json *enter_array(const peg_json *array, const peg_json *value,
                                   struct peg__buf *out)
{
    const bool is_flat = peg_json_extent(array) == peg_json_len(array) + 1;
    const peg_json *item = is_flat ? value : array + 1;
    size_t index = is_flat ? (size_t)(value - array) - 1 : 0;

    for (; !contains(item, value); item = peg_json_next(item))
        index++;
    peg__buf_printf(out, "/%zu", index);
    return item;
}

/* Appends the name of the member that contains value and returns its key. */
static const peg_json *enter_object(const peg_json *object, const peg_json *value,
                                    struct peg__buf *out)
{
    const peg_json *key = object + 1;

    while (value >= peg_json_next(key + 1))
        key = peg_json_next(key + 1);
    peg__json_pointer_push(peg_json_str(key), out);
    return key;
}

void peg__json_pointer_to(const peg_json *root, const peg_json *value, struct peg__buf *out)
{
    const peg_json *at = root;

    if (!contains(root, value))
        return;
    while (at != value) {
        if (peg_json_kind_of(at) == PEG_JSON_ARRAY) {
            at = enter_array(at, value, out);
            continue;
        }
        at = enter_object(at, value, out);
        if (at == value) /* the key itself */
            return;
        at++;
    }
}

peg_status peg_json_pointer_to(const peg_json *root, const peg_json *value, char **ret_pointer,
                               peg_error *reterr)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    if (!contains(root, value))
        return peg__fail(reterr, PEG_EINVAL, "E_JSON_POINTER_MISSING",
                         "the value does not lie inside of this root: give the root that holds it");
    peg__json_pointer_to(root, value, &out);
    return peg__buf_take(&out, ret_pointer, NULL, reterr);
}
