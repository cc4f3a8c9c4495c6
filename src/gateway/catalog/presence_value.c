/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An entry as it stands in the map: key "toolset#incarnation", value
 *
 *   {"at":"9f86d081884c7d65.0","pong_ms":1700000000000,"credits":4,"revision":7,"draining":true}
 *
 * and "awaited":true while its schemas are younger than its pong.
 * Others may have written it, so everything is looked at.
 */

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/catalog/presence_internal.h"
#include "wire/name.h"
#include "json/json.h"

enum { VALUE_BYTES = 512 };

PEG_DEFINE_CLEANUP(peg_json_doc, peg_json_doc_free)

peg_str presence_key(peg_str toolset, const char *incarnation, char ret_key[PRESENCE_KEY + 1])
{
    const size_t len = strlen(incarnation);

    memcpy(ret_key, toolset.ptr, toolset.len);
    ret_key[toolset.len] = '#';
    memcpy(ret_key + toolset.len + 1, incarnation, len + 1);
    return peg__strn(ret_key, toolset.len + 1 + len);
}

struct peg__blob *presence_write(const struct gw_provider_entry *entry)
{
    struct peg__buf buf = PEG__BUF(VALUE_BYTES);
    struct peg__out out = {.buf = &buf};
    struct peg__blob *blob;
    char address[BUS_ADDRESS_TEXT];

    bus_address_print(entry->address, address);
    peg__out_object(&out);
    peg__out_cmember(&out, "at", address);
    peg__out_key(&out, "pong_ms");
    peg__out_integer(&out, entry->last_pong_ms);
    peg__out_key(&out, "credits");
    peg__out_integer(&out, entry->credits);
    peg__out_key(&out, "revision");
    peg__out_integer(&out, (int64_t)entry->serves);
    if (entry->is_draining) {
        peg__out_key(&out, "draining");
        peg__out_bool(&out, true);
    }
    if (entry->is_awaited) {
        peg__out_key(&out, "awaited");
        peg__out_bool(&out, true);
    }
    peg__out_end_object(&out);
    blob = buf.status ? NULL : peg__blob_copy(peg__buf_view(&buf));
    peg__buf_free(&buf);
    return blob;
}

bool presence_read_key(peg_str key, peg_str *ret_toolset, struct gw_provider_entry *ret_entry)
{
    const char *mark = key.len <= PRESENCE_KEY ? memchr(key.ptr, '#', key.len) : NULL;
    peg_str toolset;
    peg_str incarnation;

    if (!mark)
        return false;
    toolset = peg__strn(key.ptr, (size_t)(mark - key.ptr));
    incarnation = peg__str_from(key, toolset.len + 1);
    if (wire_check_name(toolset, "toolset", NULL) || wire_check_incarnation(incarnation, NULL))
        return false;
    memcpy(ret_entry->incarnation, incarnation.ptr, incarnation.len);
    ret_entry->incarnation[incarnation.len] = '\0';
    *ret_toolset = toolset;
    return true;
}

static bool read_number(const peg_json *object, const char *member, int64_t max,
                        int64_t *ret_number)
{
    const peg_json *value = peg_json_get(object, member);

    return value && peg_json_int64(value, ret_number) && *ret_number >= 0 && *ret_number <= max;
}

static bool read_value(const peg_json *root, struct gw_provider_entry *ret_entry)
{
    const peg_json *address = peg_json_get(root, "at");
    const peg_json *is_draining = peg_json_get(root, "draining");
    const peg_json *is_awaited = peg_json_get(root, "awaited");
    const peg_json *revision = peg_json_get(root, "revision");
    int64_t credits;
    int64_t serves = 0;

    if (!address || address->kind != PEG_JSON_STRING ||
        !bus_address_parse(peg_json_str(address), &ret_entry->address) ||
        !read_number(root, "pong_ms", INT64_MAX, &ret_entry->last_pong_ms) ||
        !read_number(root, "credits", PEG_LIMIT_GATEWAY_CREDITS, &credits) ||
        (revision && !read_number(root, "revision", INT64_MAX, &serves)))
        return false;
    ret_entry->credits = (uint32_t)credits;
    ret_entry->serves = (uint64_t)serves;
    ret_entry->is_draining = is_draining && peg_json_is_true(is_draining);
    ret_entry->is_awaited = is_awaited && peg_json_is_true(is_awaited);
    return true;
}

peg_status presence_read(peg_str key, const struct peg__blob *value, peg_str *ret_toolset,
                         struct gw_provider_entry *ret_entry)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    const peg_json_options options = {PEG_JSON_OPTIONS_INIT, .max_bytes = VALUE_BYTES,
                                      .max_depth = 4};
    struct gw_provider_entry entry = {.sent = 0};
    peg_status status;

    if (!presence_read_key(key, ret_toolset, &entry))
        return PEG_EPARSE;
    status = peg_json_parse(peg__blob_str(value), &options, &doc, NULL);
    if (status)
        return status == PEG_ENOMEM ? PEG_ENOMEM : PEG_EPARSE;
    if (!read_value(peg_json_root(doc), &entry))
        return PEG_EPARSE;
    *ret_entry = entry;
    return PEG_OK;
}
