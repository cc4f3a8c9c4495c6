/* SPDX-License-Identifier: Apache-2.0 */

/* What is known of each name. In the map a toolset is its JSON, and one that was removed a line
 * "removed REVISION MILLISECONDS": so that a node which has not seen it can tell it from one
 * that was lost. */

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/catalog/internal.h"
#include "wire/wire.h"

enum { END_BYTES = 64, MAX_JSON = 8 * PEG_LIMIT_GATEWAY_TOOLSET_BYTES };

struct gw_record *record_find(const struct gw_catalog *catalog, peg_str name)
{
    return peg__map_get(&catalog->records, name);
}

uint16_t record_quota_key(const struct gw_catalog *catalog, peg_str owner)
{
    return catalog->has_principals ? peg__quota_key(catalog->secret, owner) : 0;
}

/* From now on this is what stands under the name. */
static void count_record(struct gw_catalog *catalog, struct gw_record *record,
                         const struct gw_toolset *toolset)
{
    const uint16_t quota_key =
        toolset ? record_quota_key(catalog, toolset->owner) : record->quota_key;

    if (record->toolset)
        peg__quota_give_back(&catalog->n_toolsets, record->quota_key, 1);
    peg__quota_give_back(&catalog->n_bytes, record->quota_key, record->n_bytes);
    peg__quota_move(&catalog->n_records, record->quota_key, quota_key, 1);
    record->quota_key = quota_key;
    record->n_bytes = toolset ? toolset->stored_bytes : 0;
    peg__quota_add(&catalog->n_bytes, quota_key, record->n_bytes);
    if (toolset)
        peg__quota_add(&catalog->n_toolsets, quota_key, 1);
}

peg_status record_get(struct gw_catalog *catalog, peg_str name, struct gw_record **ret_record)
{
    struct gw_record *record = record_find(catalog, name);
    peg_status status;

    if (!record) {
        record = peg__alloc_zero(1, sizeof(*record));
        if (!record)
            return PEG_ENOMEM;
        status = peg__map_add(&catalog->records, name, record);
        if (status) {
            peg__free(record);
            return status;
        }
        record->name = peg__map_find(&catalog->records, name)->name;
        peg__quota_add(&catalog->n_records, 0, 1);
    }
    *ret_record = record;
    return PEG_OK;
}

/* Where a name stands among the toolsets, or would. */
static size_t find_place_of_name(const struct gw_catalog *catalog, peg_str name, bool *ret_is_there)
{
    size_t low = 0;
    size_t high = catalog->n;

    *ret_is_there = false;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(name.ptr, catalog->toolsets[middle]->name.ptr);

        if (order == 0) {
            *ret_is_there = true;
            return middle;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

peg_status record_reserve(struct gw_catalog *catalog)
{
    return PEG__RESERVE(catalog->toolsets, catalog->n + 1, catalog->capacity) ? PEG_OK : PEG_ENOMEM;
}

static void take_out(struct gw_catalog *catalog, size_t place)
{
    gw_toolset_unref(catalog->toolsets[place]);
    memmove(&catalog->toolsets[place], &catalog->toolsets[place + 1],
            (catalog->n - place - 1) * sizeof(*catalog->toolsets));
    catalog->n--;
}

static peg_status put_in(struct gw_catalog *catalog, size_t place, struct gw_toolset *toolset)
{
    if (record_reserve(catalog))
        return PEG_ENOMEM;
    memmove(&catalog->toolsets[place + 1], &catalog->toolsets[place],
            (catalog->n - place) * sizeof(*catalog->toolsets));
    catalog->toolsets[place] = gw_toolset_ref(toolset);
    catalog->n++;
    return PEG_OK;
}

peg_status record_apply(struct gw_catalog *catalog, struct gw_record *record,
                        struct gw_toolset *toolset)
{
    bool is_there;
    const size_t place = find_place_of_name(catalog, record->name, &is_there);

    if (toolset && is_there) {
        gw_toolset_ref(toolset);
        gw_toolset_unref(catalog->toolsets[place]);
        catalog->toolsets[place] = toolset;
    } else if (toolset) {
        if (put_in(catalog, place, toolset))
            return PEG_ENOMEM;
    } else if (is_there) {
        take_out(catalog, place);
    }
    count_record(catalog, record, toolset);
    record->toolset = toolset; /* the array has the reference */
    catalog->is_dirty = true;
    return PEG_OK;
}

void record_remove(struct gw_catalog *catalog, struct gw_record *record)
{
    (void)record_apply(catalog, record, NULL);
    peg__quota_give_back(&catalog->n_records, record->quota_key, 1);
    peg__map_remove(&catalog->records, record->name, NULL);
    peg__free(record);
}

void record_free_all(struct gw_catalog *catalog)
{
    PEG__MAP_EACH(&catalog->records, entry)
    peg__free(entry->value);
    peg__map_free(&catalog->records);
    for (size_t i = 0; i < catalog->n; i++)
        gw_toolset_unref(catalog->toolsets[i]);
    peg__free(catalog->toolsets);
    catalog->toolsets = NULL;
    catalog->n = catalog->capacity = 0;
}

/* ---- values ---- */

struct peg__blob *record_value(const struct gw_toolset *toolset, uint64_t revision, int64_t at_ms)
{
    struct peg__buf buf = PEG__BUF(MAX_JSON);
    struct peg__blob *blob = NULL;

    if (toolset)
        (void)gw_toolset_write(toolset, &buf, NULL);
    else
        peg__buf_printf(&buf, "removed %" PRIu64 " %" PRId64, revision, at_ms);
    if (!buf.status)
        blob = peg__blob_copy(peg__buf_view(&buf));
    peg__buf_free(&buf);
    return blob;
}

static bool read_tombstone(peg_str value, struct gw_value *ret_value)
{
    char text[END_BYTES];
    int end = 0;

    if (value.len >= sizeof(text) || memchr(value.ptr, '\0', value.len))
        return false;
    memcpy(text, value.ptr, value.len);
    text[value.len] = '\0';
    /* A number that is too large is cut by the library, and then older than it should be. */
    *ret_value = (struct gw_value){.toolset = NULL};
    /* NOLINTNEXTLINE(cert-err34-c): it is looked at whether everything was read */
    return sscanf(text, "removed %" SCNu64 " %" SCNd64 "%n", &ret_value->revision,
                  &ret_value->at_ms, &end) == 2 &&
           (size_t)end == value.len;
}

peg_status record_read_value(peg_str name, peg_str value, struct gw_value *ret_value,
                             peg_error *reterr)
{
    struct gw_toolset *toolset;
    peg_status status;

    if (read_tombstone(value, ret_value))
        return PEG_OK;
    status = gw_toolset_read(value, &toolset, reterr);
    if (status)
        return status;
    if (!peg__str_eq(toolset->name, name)) {
        gw_toolset_unref(toolset);
        return peg__fail(reterr, PEG_EPARSE, "E_TOOLSET_RECORD",
                         "the record says that it is of another toolset: register it again");
    }
    toolset->stored_bytes = value.len;
    *ret_value = (struct gw_value){
        .toolset = toolset, .revision = toolset->revision, .at_ms = toolset->registered_at_ms};
    return PEG_OK;
}

/* ---- the store ---- */

static peg_status read_stored_toolset(const peg_store_record *stored,
                                      struct gw_toolset **ret_toolset, peg_error *reterr)
{
    struct gw_value value = {.toolset = NULL};
    peg_status status;

    if (stored->is_removed)
        return PEG_OK;
    status = record_read_value(stored->name, stored->body, &value, reterr);
    if (status)
        return status;
    if (value.toolset)
        value.toolset->revision = stored->revision; /* the store's word counts */
    *ret_toolset = value.toolset;
    return PEG_OK;
}

static void log_unreadable(const peg_store_record *stored, const peg_error *error)
{
    char name[WIRE_PRINTABLE];

    wire_printable(stored->name, name);
    peg__log(PEG_LOG_ERROR, "record_unreadable",
             "the record of toolset '%s' in the store is left alone, because it cannot be read: %s",
             name, error->message);
}

static peg_status read_record(const peg_store_record *stored, void *user, peg_error *reterr)
{
    struct gw_catalog *catalog = user;
    struct gw_toolset *toolset = NULL;
    struct gw_record *record;
    peg_error why = {.message = ""};
    peg_status status = read_stored_toolset(stored, &toolset, &why);
    const bool is_unreadable = status && status != PEG_ENOMEM;

    if (is_unreadable)
        log_unreadable(stored, &why);
    else if (status)
        return peg__fail_nomem(reterr);
    status = record_get(catalog, stored->name, &record);
    if (!status && toolset)
        status = record_apply(catalog, record, toolset);
    gw_toolset_unref(toolset);
    if (status == PEG_ELIMIT)
        return peg__fail(reterr, PEG_ELIMIT, "E_TOOLSETS",
                         "the store has more than %d records: use another data directory",
                         PEG_LIMIT_GATEWAY_RECORDS);
    if (status)
        return peg__fail_nomem(reterr);
    record->revision = record->stored = stored->revision;
    record->at_ms = stored->at_ms;
    record->is_unreadable = is_unreadable;
    return PEG_OK;
}

peg_status record_read_store(struct gw_catalog *catalog, peg_error *reterr)
{
    return catalog->store.read(catalog->store.self, read_record, catalog, reterr);
}
