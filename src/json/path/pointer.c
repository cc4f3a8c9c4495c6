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

enum { SHOWN_BYTES = 60 };

/* ---- tokens of a pointer ---------------------------------------------------------------- */

bool peg__pointer_next(peg_str *pointer, peg_str *ret_token)
{
    const char *slash;

    if (!pointer->len || pointer->ptr[0] != '/')
        return false;
    *pointer = peg__str_from(*pointer, 1);
    slash = pointer->len ? memchr(pointer->ptr, '/', pointer->len) : NULL;
    *ret_token = peg__strn(pointer->ptr, slash ? (size_t)(slash - pointer->ptr) : pointer->len);
    *pointer = peg__str_from(*pointer, ret_token->len);
    return true;
}

bool peg__pointer_is_name(peg_str token, peg_str name)
{
    size_t n = 0;

    for (size_t i = 0; i < token.len; i++, n++) {
        char c = token.ptr[i];

        if (c == '~' && i + 1 < token.len)
            c = token.ptr[++i] == '1' ? '/' : '~';
        if (n >= name.len || name.ptr[n] != c)
            return false;
    }
    return n == name.len;
}

size_t peg__pointer_index(peg_str token)
{
    size_t index = 0;

    if (!token.len || token.len > 10)
        return SIZE_MAX;
    for (size_t i = 0; i < token.len; i++) {
        if (token.ptr[i] < '0' || token.ptr[i] > '9')
            return SIZE_MAX;
        index = index * 10 + (size_t)(token.ptr[i] - '0');
    }
    return index;
}

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

static const peg_json *find_pointed_member(const peg_json *object, peg_str token)
{
    PEG_JSON_EACH_MEMBER (object, key) {
        if (peg__pointer_is_name(token, peg_json_str(key)))
            return key + 1;
    }
    return NULL;
}

static const peg_json *find_item(const peg_json *array, peg_str token)
{
    if (token.len > 1 && token.ptr[0] == '0')
        return NULL;
    return peg_json_at(array, peg__pointer_index(token)); /* SIZE_MAX is past every end */
}

static peg_status fail_not_found(const peg_json *value, peg_str found, peg_str token,
                                 peg_error *reterr)
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
    const peg_status status = check_syntax(pointer, reterr);
    peg_str rest = pointer;
    peg_str token;

    if (status)
        return status;
    value = peg__json_or_null(value);
    while (peg__pointer_next(&rest, &token)) {
        const peg_json *child = NULL;

        if (peg_json_kind_of(value) == PEG_JSON_OBJECT)
            child = find_pointed_member(value, token);
        else if (peg_json_kind_of(value) == PEG_JSON_ARRAY)
            child = find_item(value, token);
        if (!child)
            return fail_not_found(value,
                                  peg__strn(pointer.ptr, pointer.len - rest.len - token.len - 1),
                                  token, reterr);
        value = child;
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

/* ---- from a pointer to a place in the text ----------------------------------------------
 *
 * The text has been parsed before, so this scanner trusts it; it still never reads beyond the
 * end. */

struct scanner {
    peg_str text;
    size_t at;
};

static char current_byte(const struct scanner *s)
{
    return (char)(s->at < s->text.len ? s->text.ptr[s->at] : '\0');
}

static void skip_space(struct scanner *s)
{
    while (current_byte(s) == ' ' || current_byte(s) == '\t' || current_byte(s) == '\n' ||
           current_byte(s) == '\r')
        s->at++;
}

/* Behind the next ',' or ':', and the space around it. */
static void skip_past(struct scanner *s)
{
    skip_space(s);
    s->at++;
    skip_space(s);
}

static void skip_string(struct scanner *s)
{
    s->at++;
    while (s->at < s->text.len && current_byte(s) != '"')
        s->at += current_byte(s) == '\\' ? 2 : 1;
    s->at++;
}

static void skip_value(struct scanner *s)
{
    size_t depth = 0;

    do {
        const char c = current_byte(s);

        if (c == '"') {
            skip_string(s);
            continue;
        }
        if (c == '{' || c == '[')
            depth++;
        else if (c == '}' || c == ']')
            depth--;
        s->at++;
    } while (s->at < s->text.len && (depth || (current_byte(s) != ',' && current_byte(s) != '}' &&
                                               current_byte(s) != ']')));
}

/* The name is quoted text; only one with escapes has to be read. */
static bool is_named(peg_str quoted, peg_str token)
{
    const peg_str raw = peg__strn(quoted.ptr + 1, quoted.len - 2);
    peg_json_doc *doc = NULL;
    bool is_same;

    if (!memchr(raw.ptr, '\\', raw.len))
        return peg__pointer_is_name(token, raw);
    if (peg_json_parse(quoted, NULL, &doc, NULL))
        return false;
    is_same = peg__pointer_is_name(token, peg_json_str(peg_json_root(doc)));
    peg_json_doc_free(doc);
    return is_same;
}

/* From '{' or '[' to the value of a token within; false if there is none. */
static bool enter_value(struct scanner *s, peg_str token)
{
    const bool is_object = current_byte(s) == '{';
    const char end = (char)(is_object ? '}' : ']');
    size_t index = is_object ? 0 : peg__pointer_index(token);

    if (!is_object && (current_byte(s) != '[' || index == SIZE_MAX))
        return false;
    for (skip_past(s); s->at < s->text.len && current_byte(s) != end;) {
        if (is_object) {
            const size_t start = s->at;

            skip_string(s);
            if (s->at > s->text.len)
                return false;
            index = !is_named(peg__strn(s->text.ptr + start, s->at - start), token);
            skip_past(s);
        }
        if (index-- == 0)
            return true;
        skip_value(s);
        skip_space(s);
        if (current_byte(s) == ',')
            skip_past(s);
    }
    return false;
}

size_t peg__json_locate(peg_str text, peg_str pointer)
{
    struct scanner s = {text, 0};
    size_t found;
    peg_str token;

    skip_space(&s);
    found = s.at;
    while (peg__pointer_next(&pointer, &token) && enter_value(&s, token))
        found = s.at;
    return found < text.len ? found : text.len;
}
