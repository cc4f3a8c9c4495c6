/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Following a JSON Pointer from reference to reference: a schema may have thousands of $defs and
 * as many references to them, and looking through all of them each time would take minutes. An
 * object with many members gets a table when something first points into it.
 */

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "schema/compile/index.h"
#include "schema/compile/names.h"

enum { FEW_MEMBERS = 32, MAX_TABLES = 100000, MAX_TOKEN = 240, PADDING = 16 };

static bool fill_table(struct peg__index *index, const peg_json *object, struct peg__names *names)
{
    struct peg__name *list = peg__alloc_zero(object->len, sizeof(*list));
    uint32_t n = 0;
    bool filled;

    if (!list)
        return false;
    PEG_JSON_EACH_MEMBER (object, key)
        list[n++] =
            (struct peg__name){.text = peg_json_str(key), .node = (uint32_t)(key + 1 - object)};
    filled = peg__names_init(names, list, n, &index->arena);
    peg__free(list);
    return filled;
}

/* NULL when out of memory. */
static struct peg__names *table_of(struct peg__index *index, const peg_json *object)
{
    const peg_str address = {(const char *)&object, sizeof(object)};
    struct peg__names *names = peg__map_get(&index->tables, address);

    if (names)
        return names;
    index->tables.max = MAX_TABLES;
    names = peg__arena_alloc(&index->arena, sizeof(*names));
    if (!names || !fill_table(index, object, names) || peg__map_add(&index->tables, address, names))
        return NULL;
    return names;
}

peg_status peg__index_step(struct peg__index *index, const peg_json *value, peg_str token,
                           const peg_json **ret_value)
{
    char padded[MAX_TOKEN + PADDING] = {0};
    const struct peg__names *names;
    const struct peg__slot *slot;
    peg_json key = {.kind = PEG_JSON_STRING, .len = (uint32_t)token.len - 1};

    if (value->kind != PEG_JSON_OBJECT || value->len <= FEW_MEMBERS || token.len > MAX_TOKEN ||
        memchr(token.ptr, '~', token.len))
        return peg_json_pointer(value, token, ret_value, NULL);
    names = table_of(index, value);
    if (!names)
        return PEG_ENOMEM;
    memcpy(padded, token.ptr + 1, key.len);
    key.u.ptr = padded;
    slot = peg__names_find(names, &key);
    if (!slot)
        return PEG_ENOTFOUND;
    *ret_value = value + slot->node;
    return PEG_OK;
}
