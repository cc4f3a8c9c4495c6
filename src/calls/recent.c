/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two rings: records of one size, and their texts. Places in the ring of texts are counted from the
 * beginning of time, so a record whose texts were overwritten is known by its place.
 */

#include "calls/recent.h"

#include <string.h>

#include "base/limits.h"
#include "base/limits/recent.h"
#include "base/mem.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"

enum { CODE, PRINCIPAL, TOOLSET, TOOL, PROVIDER, N_TEXTS };

struct record {
    struct calls_summary summary; /* but for its strings */
    uint64_t place;               /* of the texts, one behind the other */
    uint16_t lens[N_TEXTS];
};

struct calls_recent {
    uint64_t n; /* records so far */
    uint64_t n_bytes;
    struct record records[PEG_LIMIT_GATEWAY_RECENT_CALLS];
    char texts[PEG_LIMIT_GATEWAY_RECENT_BYTES];
};

/* Principals and names are shorter; a longer code of a tool's error is left out. */
enum { MAX_TEXT = 2 * PEG_LIMIT_TLS_NAME_BYTES, MAX_CODE = PEG_LIMIT_GATEWAY_RECENT_CODE_BYTES };

void calls_summary_set_outcome(struct calls_summary *summary, const struct calls_outcome *outcome)
{
    summary->has_ended = true;
    summary->kind = outcome->kind;
    summary->error = outcome->error;
    if (outcome->kind == CALLS_KIND_ERROR && outcome->error == CALLS_OK)
        summary->code = wire_find_bytes(
            wire_find_bytes(outcome->response, PEGBOARD_V1_CALL_TOOL_RESPONSE_ERROR_FIELD),
            PEGBOARD_V1_TOOL_ERROR_CODE_FIELD);
}

struct calls_recent *calls_recent_new(void)
{
    struct calls_recent *recent = (struct calls_recent *)peg__alloc(sizeof(*recent));

    if (recent) {
        recent->n = 0;
        recent->n_bytes = 0;
    }
    return recent;
}

struct calls_recent *calls_recent_free(struct calls_recent *recent)
{
    peg__free(recent);
    return NULL;
}

/* The texts of one record do not wrap around. */
static uint64_t take_text_bytes(struct calls_recent *recent, size_t len)
{
    const size_t at = recent->n_bytes % PEG_LIMIT_GATEWAY_RECENT_BYTES;
    uint64_t place;

    if (len > PEG_LIMIT_GATEWAY_RECENT_BYTES - at)
        recent->n_bytes += PEG_LIMIT_GATEWAY_RECENT_BYTES - at;
    place = recent->n_bytes;
    recent->n_bytes += len;
    return place;
}

void calls_recent_add(struct calls_recent *recent, const struct calls_summary *summary)
{
    struct record *record = &recent->records[recent->n % PEG_LIMIT_GATEWAY_RECENT_CALLS];
    const peg_str texts[N_TEXTS] = {summary->code, summary->principal, summary->toolset,
                                    summary->tool, summary->provider};
    size_t len = 0;
    char *at;

    if (summary->principal.len > MAX_TEXT)
        return; /* no principal has such a name */
    recent->n++;
    record->summary = *summary;
    for (unsigned i = 0; i < N_TEXTS; i++) {
        const size_t max = i == CODE ? MAX_CODE : MAX_TEXT;

        record->lens[i] = (uint16_t)(texts[i].len <= max ? texts[i].len : 0);
        len += record->lens[i];
    }
    record->place = take_text_bytes(recent, len);
    at = recent->texts + record->place % PEG_LIMIT_GATEWAY_RECENT_BYTES;
    for (unsigned i = 0; i < N_TEXTS; i++) {
        if (record->lens[i])
            memcpy(at, texts[i].ptr, record->lens[i]);
        at += record->lens[i];
    }
}

bool calls_recent_get(const struct calls_recent *recent, size_t number,
                      struct calls_summary *ret_summary)
{
    const struct record *record;
    peg_str texts[N_TEXTS];
    const char *at;

    if (number >= recent->n || number >= PEG_LIMIT_GATEWAY_RECENT_CALLS)
        return false;
    record = &recent->records[(recent->n - 1 - number) % PEG_LIMIT_GATEWAY_RECENT_CALLS];
    if (recent->n_bytes - record->place > PEG_LIMIT_GATEWAY_RECENT_BYTES)
        return false; /* and so are those before it */
    at = recent->texts + record->place % PEG_LIMIT_GATEWAY_RECENT_BYTES;
    for (unsigned i = 0; i < N_TEXTS; i++) {
        texts[i] = (peg_str){at, record->lens[i]};
        at += record->lens[i];
    }
    *ret_summary = record->summary;
    ret_summary->code = texts[CODE];
    ret_summary->principal = texts[PRINCIPAL];
    ret_summary->toolset = texts[TOOLSET];
    ret_summary->tool = texts[TOOL];
    ret_summary->provider = texts[PROVIDER];
    return true;
}
