/* SPDX-License-Identifier: Apache-2.0 */

/* Reading values: names of kinds, members and items. Numbers are in number.c and double.c. */

#include <string.h>

#include "base/text/str.h"
#include "pegboard/json.h"

const char *peg_json_kind_name(peg_json_kind kind)
{
    switch (kind) {
    case PEG_JSON_NULL:
        return "null";
    case PEG_JSON_BOOL:
        return "boolean";
    case PEG_JSON_INTEGER:
        return "integer";
    case PEG_JSON_DECIMAL:
        return "number";
    case PEG_JSON_STRING:
        return "string";
    case PEG_JSON_ARRAY:
        return "array";
    case PEG_JSON_OBJECT:
        return "object";
    }
    return "unknown";
}

const peg_json *peg_json_get_str(const peg_json *object, peg_str name)
{
    PEG_JSON_EACH_MEMBER (object, key) {
        if (peg__str_eq(peg_json_str(key), name))
            return key + 1;
    }
    return NULL;
}

const peg_json *peg_json_get(const peg_json *object, const char *name)
{
    return peg_json_get_str(object, peg__str(name));
}

const peg_json *peg_json_at(const peg_json *array, size_t index)
{
    if (peg_json_kind_of(array) != PEG_JSON_ARRAY || index >= array->len)
        return NULL;
    /* As many values as items: none of them contains another. */
    if (array->u.extent == (uint64_t)array->len + 1)
        return array + 1 + index;
    PEG_JSON_EACH_ITEM (array, item) {
        if (index-- == 0)
            return item;
    }
    return NULL;
}

/* ---- with a fallback ------------------------------------------------------------ */

peg_str peg_json_str_or(const peg_json *value, const char *fallback)
{
    return peg_json_kind_of(value) == PEG_JSON_STRING ? peg_json_str(value) : peg__str(fallback);
}

bool peg_json_bool_or(const peg_json *value, bool fallback)
{
    return peg_json_kind_of(value) == PEG_JSON_BOOL ? peg_json_is_true(value) : fallback;
}

int64_t peg_json_int64_or(const peg_json *value, int64_t fallback)
{
    int64_t number;

    return peg_json_int64(value, &number) ? number : fallback;
}

double peg_json_double_or(const peg_json *value, double fallback)
{
    return peg_json_is_number(value) ? peg_json_double(value) : fallback;
}
