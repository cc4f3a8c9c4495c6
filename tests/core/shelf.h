/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_CORE_SHELF_H
#define PEG_TESTS_CORE_SHELF_H

/* A shelf: artifacts with their handles, and a world whose registry gets the tools. */

#include "base/buf.h"
#include "core/artifact/artifact.h"
#include "fixture.h"

enum { MAX_ITEMS = 8 };

struct shelf {
    struct world w;
    struct peg__forge_item items[MAX_ITEMS];
    size_t n;
    size_t n_shadowed;
};

static inline peg_status put(struct shelf *s, const peg_artifact_kind *kind, const char *handle,
                             const char *text)
{
    struct peg__forge_item *item = &s->items[s->n];
    peg_reader *reader = NULL;
    peg_status status = peg_reader_from_bytes(peg__str(text), &reader, NULL);

    item->handle = peg__str(handle);
    if (!status)
        status = peg_artifact_new(kind, reader, &item->artifact, NULL);
    s->n += !status;
    peg_reader_unref(reader);
    return status;
}

static inline peg_status forge(struct shelf *s)
{
    return peg__forge(s->w.registry, s->items, s->n, &s->n_shadowed, NULL);
}

static inline void drop(struct shelf *s)
{
    for (size_t i = 0; i < s->n; i++)
        peg_artifact_unref(s->items[i].artifact);
    world_close(&s->w);
}

/* Two texts and a JSON. */
static inline void fill(struct shelf *s)
{
    memset(s, 0, sizeof(*s));
    CHECK_INT(world_open(&s->w), PEG_OK);
    CHECK_INT(put(s, NULL, "call_a", "one\ntwo\nthree"), PEG_OK);
    CHECK_INT(put(s, &peg_artifact_json, "call_j", "{\"n\":[1,2]}"), PEG_OK);
    CHECK_INT(put(s, NULL, "call_b", "Error\nfine"), PEG_OK);
    CHECK_INT(forge(s), PEG_OK);
}

static inline const peg_json *ids_of(struct shelf *s, const char *name)
{
    peg_tool *tool = peg_registry_get(s->w.registry, peg__str(name));
    const peg_json *ids = NULL;

    if (!tool)
        T_FAIL("there is no tool %s", name);
    CHECK_INT(peg_json_pointer(peg_tool_input_schema(tool), peg__str("/properties/callId/enum"),
                               &ids, NULL),
              PEG_OK);
    peg_tool_unref(tool); /* the registry keeps it */
    return ids;
}

static inline bool lists(const peg_json *ids, const char *const *handles, size_t n)
{
    size_t i = 0;

    if (peg_json_len(ids) != n)
        return false;
    PEG_JSON_EACH_ITEM (ids, id) {
        if (!peg__str_is(peg_json_str(id), handles[i++]))
            return false;
    }
    return true;
}

#define CHECK_IDS(shelf, name, ...)                                                                \
    CHECK(lists(ids_of(shelf, name), (const char *const[]){__VA_ARGS__},                           \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

/* The text of what a call is answered with; its code before it if it failed. */
static inline void check_call(struct shelf *s, const char *tool, const char *args,
                              const char *expected)
{
    struct peg__buf text = PEG__BUF(100000);
    peg_record *record = NULL;

    CHECK_INT(world_call(&s->w, tool, args, NULL, &record), PEG_OK);
    if (peg_record_is_error(record))
        peg__buf_printf(&text, "%s: ", peg_record_code(record));
    peg__buf_str(&text, peg_record_text(record));
    peg_record_unref(record);
    if (!strstr(text.ptr ? text.ptr : "", expected))
        T_FAIL("%s %s answers \"%s\", expected \"%s\"", tool, args, text.ptr, expected);
    peg__buf_free(&text);
}

#endif
