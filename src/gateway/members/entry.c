/* SPDX-License-Identifier: Apache-2.0 */

/* Others may have written an entry, and nodes of other versions do: everything is checked. */

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/text/str.h"
#include "gateway/members/members.h"
#include "pegboard/cleanup.h"
#include "json/json.h"

enum { VALUE_BYTES = 4096 };

static const char *const state_names[] = {
    [GW_MEMBER_STARTING] = "starting",
    [GW_MEMBER_SERVING] = "serving",
    [GW_MEMBER_DRAINING] = "draining",
};
enum { N_STATES = sizeof(state_names) / sizeof(state_names[0]) };

static const struct {
    const char *name;
    size_t at;
} numbers[] = {
    {"protocol", offsetof(struct gw_member, protocol)},
    {"started_ms", offsetof(struct gw_member, started_ms)},
    {"written_ms", offsetof(struct gw_member, written_ms)},
    {"lease_ms", offsetof(struct gw_member, lease_ms)},
    {"threads", offsetof(struct gw_member, threads)},
    {"providers", offsetof(struct gw_member, providers)},
    {"in_flight", offsetof(struct gw_member, in_flight)},
    {"queued", offsetof(struct gw_member, queued)},
    {"settled", offsetof(struct gw_member, settled)},
    {"results", offsetof(struct gw_member, results)},
    {"errors", offsetof(struct gw_member, errors)},
    {"timeouts", offsetof(struct gw_member, timeouts)},
    {"canceled", offsetof(struct gw_member, canceled)},
    {"unknown", offsetof(struct gw_member, unknown)},
    {"refused", offsetof(struct gw_member, refused)},
    {"rate", offsetof(struct gw_member, rate)},
    {"lag_us", offsetof(struct gw_member, lag_us)},
};

static const struct {
    const char *name;
    size_t at;
    size_t size;
} texts[] = {
    {"version", offsetof(struct gw_member, version), sizeof(((struct gw_member *)0)->version)},
    {"address", offsetof(struct gw_member, address), sizeof(((struct gw_member *)0)->address)},
    {"store", offsetof(struct gw_member, store), sizeof(((struct gw_member *)0)->store)},
};

const char *gw_member_state_name(enum gw_member_state state)
{
    return state_names[state];
}

void gw_member_key(uint64_t node, char ret_key[GW_MEMBER_KEY])
{
    snprintf(ret_key, GW_MEMBER_KEY, "%016" PRIx64, node);
}

bool gw_member_parse_key(peg_str key, uint64_t *ret_node)
{
    uint64_t node = 0;

    if (key.len != GW_MEMBER_KEY - 1)
        return false;
    for (size_t i = 0; i < key.len; i++) {
        const int digit = peg__hex_value(key.ptr[i]);

        if (digit < 0)
            return false;
        node = node << 4 | (uint64_t)digit;
    }
    *ret_node = node;
    return node != 0;
}

struct peg__blob *gw_member_write(const struct gw_member *member)
{
    struct peg__buf buf = PEG__BUF(VALUE_BYTES);
    struct peg__out out = {.buf = &buf};
    struct peg__blob *blob;

    peg__out_object(&out);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        int64_t number;

        memcpy(&number, (const char *)member + numbers[i].at, sizeof(number));
        peg__out_key(&out, numbers[i].name);
        peg__out_integer(&out, number);
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        peg__out_cmember(&out, texts[i].name, (const char *)member + texts[i].at);
    peg__out_cmember(&out, "state", state_names[member->state]);
    peg__out_end_object(&out);
    blob = buf.status ? NULL : peg__blob_copy(peg__buf_view(&buf));
    peg__buf_free(&buf);
    return blob;
}

static bool read_numbers(const peg_json *root, struct gw_member *member)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        const peg_json *value = peg_json_get(root, numbers[i].name);
        int64_t number;

        if (!value)
            continue;
        if (!peg_json_int64(value, &number) || number < 0)
            return false;
        memcpy((char *)member + numbers[i].at, &number, sizeof(number));
    }
    return member->protocol > 0 && member->lease_ms > 0;
}

/* They are shown on terminals. */
static bool is_printable(peg_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < ' ' || text.ptr[i] > '~')
            return false;
    return true;
}

static bool read_texts(const peg_json *root, struct gw_member *member)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const peg_json *value = peg_json_get(root, texts[i].name);
        peg_str text;

        if (!value)
            continue;
        if (value->kind != PEG_JSON_STRING)
            return false;
        text = peg_json_str(value);
        if (text.len >= texts[i].size || !is_printable(text))
            return false;
        memcpy((char *)member + texts[i].at, text.ptr, text.len);
    }
    return true;
}

/* A state of a later version is one in which it runs. */
static void read_state(const peg_json *root, struct gw_member *member)
{
    const peg_json *value = peg_json_get(root, "state");

    member->state = GW_MEMBER_SERVING;
    for (unsigned i = 0; i < N_STATES && value && value->kind == PEG_JSON_STRING; i++)
        if (peg__str_is(peg_json_str(value), state_names[i]))
            member->state = (enum gw_member_state)i;
}

peg_status gw_member_read(peg_str key, const struct peg__blob *value, struct gw_member *ret_member)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    const peg_json_options options = {PEG_JSON_OPTIONS_INIT, .max_bytes = VALUE_BYTES,
                                      .max_depth = 8};
    struct gw_member member = {.node = 0};
    peg_status status;

    if (!gw_member_parse_key(key, &member.node))
        return PEG_EPARSE;
    status = peg_json_parse(peg__blob_str(value), &options, &doc, NULL);
    if (status)
        return status == PEG_ENOMEM ? PEG_ENOMEM : PEG_EPARSE;
    if (!read_numbers(peg_json_root(doc), &member) || !read_texts(peg_json_root(doc), &member))
        return PEG_EPARSE;
    read_state(peg_json_root(doc), &member);
    *ret_member = member;
    return PEG_OK;
}
