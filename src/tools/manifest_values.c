/* SPDX-License-Identifier: Apache-2.0 */

/* What members of a manifest say, and where one says what it cannot mean. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/text/str.h"
#include "pegboard/tool_config.h"
#include "pegboard/yaml.h"
#include "tools/internal.h"
#include "json/json.h"

const peg_json_options peg__manifest_limits = {
    PEG_JSON_OPTIONS_INIT, .max_bytes = PEG_LIMIT_MANIFEST_BYTES, .duplicates = PEG_JSON_REFUSE};

/* ---- failing with a place ---- */

typedef size_t (*locate_fn)(peg_str text, const peg_json_options *options, peg_str pointer);

static peg_status fail_at(const struct peg__manifest_reader *r, peg_str pointer,
                          const char *message, locate_fn locate)
{
    const peg_status status = peg__fail(r->reterr, PEG_EPARSE, "E_MANIFEST", "%s", message);

    if (!r->reterr)
        return status;
    peg__error_at(r->reterr, r->text, locate(r->text, &peg__manifest_limits, pointer));
    peg__error_where(r->reterr, pointer);
    return status;
}

peg_status peg__manifest_fail_at(const struct peg__manifest_reader *r, peg_str pointer,
                                 const char *message)
{
    return fail_at(r, pointer, message, peg__yaml_locate);
}

peg_status peg__manifest_fail_key(const struct peg__manifest_reader *r, peg_str pointer,
                                  const char *message)
{
    return fail_at(r, pointer, message, peg__yaml_locate_key);
}

/* At a member of the tool that is read. */
peg_status peg__manifest_fail_tool(const struct peg__manifest_reader *r, const char *member,
                                   const char *message)
{
    char pointer[160];
    const int n = snprintf(pointer, sizeof(pointer), "/tools/%zu%s", r->tool, member);

    return peg__manifest_fail_at(r, peg__strn(pointer, n < (int)sizeof(pointer) ? (size_t)n : 0),
                                 message);
}

/* At a member of what is read: the toolset, its MCP server or its tool. */
static peg_status reject_member(const struct peg__manifest_reader *r, const peg_json *object,
                                const char *name, const char *message)
{
    const peg_json *mcp = peg_json_get(r->root, "mcp");
    char member[64];
    char pointer[96];

    snprintf(member, sizeof(member), "/%s", name);
    if (object == r->root)
        return peg__manifest_fail_at(r, peg__str(member), message);
    if (object != mcp && object != peg_json_get(mcp, "tools"))
        return peg__manifest_fail_tool(r, member, message);
    snprintf(pointer, sizeof(pointer), "/mcp%s%s", object == mcp ? "" : "/tools", member);
    return peg__manifest_fail_at(r, peg__str(pointer), message);
}

#define NUL_INSIDE "a text must not contain a NUL: take it out"

/* ---- values ---- */

/* The text of a member, or NULL if there is none. Strings of a document end with a NUL; what comes
 * behind one of their own would be lost. */
peg_status peg__manifest_text(const struct peg__manifest_reader *r, const peg_json *object,
                              const char *name, const char **ret_text)
{
    const peg_json *value = peg_json_get(object, name);

    *ret_text = value ? value->u.ptr : NULL;
    if (!value || strlen(value->u.ptr) == value->len)
        return PEG_OK;
    return reject_member(r, object, name, NUL_INSIDE);
}

/* An array of strings, NULL-terminated, in the arena; *ret_list is NULL if there is none. */
peg_status peg__manifest_list(const struct peg__manifest_reader *r, const peg_json *object,
                              const char *name, const char ***ret_list)
{
    const peg_json *array = peg_json_get(object, name);
    const char **list;
    size_t n = 0;
    char member[64];

    *ret_list = NULL;
    if (!array || array->kind != PEG_JSON_ARRAY)
        return PEG_OK;
    list = peg__arena_alloc_zero(&r->manifest->arena, (peg_json_len(array) + 1) * sizeof(*list));
    if (!list)
        return peg__fail_nomem(r->reterr);
    PEG_JSON_EACH_ITEM (array, item) {
        list[n++] = peg__arena_copy(&r->manifest->arena, peg_json_str(item));
        if (!list[n - 1])
            return peg__fail_nomem(r->reterr);
        if (strlen(list[n - 1]) == item->len)
            continue;
        snprintf(member, sizeof(member), "%s/%zu", name, n - 1);
        return reject_member(r, object, member, NUL_INSIDE);
    }
    *ret_list = list;
    return PEG_OK;
}

/* A bare number does not say what it counts: elsewhere 3 is 3 seconds. */
static peg_status reject_bare_number(const struct peg__manifest_reader *r, const peg_json *tool,
                                     const char *name, int64_t number)
{
    char message[160];

    snprintf(message, sizeof(message),
             "%s needs a unit: write %llds (which is %lld000ms) or %lldms", name, (long long)number,
             (long long)number, (long long)number);
    return reject_member(r, tool, name, message);
}

/* A duration in milliseconds; 0 if there is none. */
peg_status peg__manifest_ms(const struct peg__manifest_reader *r, const peg_json *tool,
                            const char *name, int64_t most_ms, int64_t *ret_ms)
{
    enum { NS_PER_MS = 1000000 };
    const peg_json *value = peg_json_get(tool, name);
    char message[160];
    int64_t ms = 0;

    *ret_ms = 0;
    if (!value)
        return PEG_OK;
    if (peg_json_int64(value, &ms) && ms > 0)
        return reject_bare_number(r, tool, name, ms);
    if (value->kind == PEG_JSON_STRING &&
        peg_duration_parse(peg_json_str(value), &ms, NULL) == PEG_OK)
        ms /= NS_PER_MS;
    if (ms >= 1 && ms <= most_ms) {
        *ret_ms = ms;
        return PEG_OK;
    }
    snprintf(message, sizeof(message), "%s is between 1ms and %lldms: write 30s, 1m30s or 500ms",
             name, (long long)most_ms);
    return reject_member(r, tool, name, message);
}

static const struct {
    peg_str name;
    uint64_t bytes;
} size_units[] = {
    {PEG_LIT(""), 1},          {PEG_LIT("B"), 1},           {PEG_LIT("KiB"), 1 << 10},
    {PEG_LIT("K"), 1 << 10},   {PEG_LIT("MiB"), 1 << 20},   {PEG_LIT("M"), 1 << 20},
    {PEG_LIT("GiB"), 1 << 30}, {PEG_LIT("G"), 1 << 30},     {PEG_LIT("KB"), 1000},
    {PEG_LIT("MB"), 1000000},  {PEG_LIT("GB"), 1000000000},
};

/* "64MiB", "64 MiB"; 0 if it is none. */
static uint64_t read_size(peg_str text)
{
    uint64_t number = 0;
    size_t i = 0;

    for (; i < text.len && i < 12 && text.ptr[i] >= '0' && text.ptr[i] <= '9'; i++)
        number = number * 10 + (uint64_t)(text.ptr[i] - '0');
    if (i == 0)
        return 0;
    text = peg__str_from(text, i);
    if (text.len && text.ptr[0] == ' ')
        text = peg__str_from(text, 1);
    for (i = 0; i < sizeof(size_units) / sizeof(size_units[0]); i++) {
        if (peg__str_eq(text, size_units[i].name))
            return number * size_units[i].bytes; /* below 2^70 / 2^30: it fits */
    }
    return 0;
}

peg_status peg__manifest_size(const struct peg__manifest_reader *r, const peg_json *tool,
                              const char *name, uint64_t most, size_t *ret_size)
{
    const peg_json *value = peg_json_get(tool, name);
    char message[160];
    int64_t number = 0;
    uint64_t size;

    *ret_size = 0;
    if (!value)
        return PEG_OK;
    if (value->kind == PEG_JSON_STRING)
        size = read_size(peg_json_str(value));
    else
        size = peg_json_int64(value, &number) && number > 0 ? (uint64_t)number : 0;
    if (size >= 1 && size <= most) {
        *ret_size = (size_t)size;
        return PEG_OK;
    }
    snprintf(message, sizeof(message), "%s is between 1 and %lluMiB: write 1MiB, 512KiB or bytes",
             name, (unsigned long long)(most >> 20));
    return reject_member(r, tool, name, message);
}

peg_status peg__manifest_schema_text(const struct peg__manifest_reader *r, const peg_json *tool,
                                     const char *name, const char **ret_text)
{
    const peg_json *schema = peg_json_get(tool, name);
    struct peg__buf out = PEG__BUF(PEG_LIMIT_SCHEMA_BYTES);

    *ret_text = NULL;
    if (!schema)
        return PEG_OK;
    peg__json_write(schema, PEG_JSON_COMPACT, &out);
    if (out.status == PEG_ELIMIT) {
        peg__buf_free(&out);
        return reject_member(r, tool, name, "the schema is larger than 1 MiB");
    }
    if (!out.status)
        *ret_text = peg__arena_copy(&r->manifest->arena, peg__buf_view(&out));
    peg__buf_free(&out);
    return *ret_text ? PEG_OK : peg__fail_nomem(r->reterr);
}

/* ---- where and with what a program runs ---- */

static bool note_unset(const struct peg__manifest_reader *r, const peg_json *tool, const char *name)
{
    peg_manifest *manifest = r->manifest;
    struct peg__manifest_unset *unset = peg__arena_alloc_zero(&manifest->arena, sizeof(*unset));

    if (!unset)
        return false;
    unset->name = name;
    unset->tool =
        peg__arena_copy(&manifest->arena, peg_json_str_or(peg_json_get(tool, "name"), "mcp"));
    *manifest->last_unset = unset;
    manifest->last_unset = &unset->next;
    return unset->tool;
}

/* What a name of the host stands for is looked up now. */
peg_status peg__manifest_env(const struct peg__manifest_reader *r, const peg_json *tool,
                             const char ***ret_env)
{
    struct peg__arena *arena = &r->manifest->arena;
    peg_status status = peg__manifest_list(r, tool, "env", ret_env);
    size_t n = 0;

    for (size_t i = 0; !status && *ret_env && (*ret_env)[i]; i++) {
        const char *name = (*ret_env)[i];
        const char *value;
        char *entry;
        size_t size;

        if (strchr(name, '=')) {
            (*ret_env)[n++] = name;
            continue;
        }
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): hosts do not change them while they make tools */
        value = getenv(name);
        if (!value) {
            if (!note_unset(r, tool, name))
                return peg__fail_nomem(r->reterr);
            continue;
        }
        size = strlen(name) + strlen(value) + 2;
        entry = peg__arena_alloc(arena, size);
        if (!entry)
            return peg__fail_nomem(r->reterr);
        snprintf(entry, size, "%s=%s", name, value);
        (*ret_env)[n++] = entry;
    }
    if (!status && *ret_env)
        (*ret_env)[n] = NULL;
    return status;
}

peg_status peg__manifest_directory(const struct peg__manifest_reader *r, const peg_json *tool,
                                   const char **ret_directory)
{
    const char *directory;
    peg_status status = peg__manifest_text(r, tool, "directory", &directory);
    size_t size;
    char *joined;

    if (status)
        return status;
    if (!directory || directory[0] == '/' || !r->folder) {
        *ret_directory = directory ? directory : r->folder;
        return PEG_OK;
    }
    size = strlen(r->folder) + strlen(directory) + 2;
    joined = peg__arena_alloc(&r->manifest->arena, size);
    if (!joined)
        return peg__fail_nomem(r->reterr);
    snprintf(joined, size, "%s/%s", r->folder, directory);
    *ret_directory = joined;
    return PEG_OK;
}
