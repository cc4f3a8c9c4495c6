/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "json/json.h"

/* ---- failing: the first one sticks ------------------------------------------------- */

void peg__reply_fail_with(struct peg__reply *reply, peg_status status, const peg_error *error)
{
    if (reply->status)
        return;
    reply->status = status;
    reply->error = *error;
}

void peg__reply_nomem(struct peg__reply *reply)
{
    peg_error error;

    peg__fail_nomem(&error);
    peg__reply_fail_with(reply, PEG_ENOMEM, &error);
}

static void reject_size(struct peg__reply *reply)
{
    peg_error error;

    peg__fail(&error, PEG_ELIMIT, "E_ENGINE_TOO_LARGE",
              "the reply of %s has more than %zu bytes: raise max_reply_bytes, or ask for less",
              reply->vendor, reply->max_bytes);
    peg__reply_fail_with(reply, PEG_ELIMIT, &error);
}

peg_status peg__reply_fail(struct peg__reply *reply, const char *fmt, ...)
{
    char reason[sizeof(((peg_error *)0)->message)];
    peg_error error;
    va_list args;

    va_start(args, fmt);
    vsnprintf(reason, sizeof(reason), fmt, args);
    va_end(args);
    peg__fail(&error, PEG_EPARSE, "E_ENGINE_REPLY", "the reply of %s: %s", reply->vendor, reason);
    peg__reply_fail_with(reply, PEG_EPARSE, &error);
    return reply->status;
}

/* Whether n more bytes are within the maximum; they are counted then. */
static bool take_quota(struct peg__reply *reply, size_t n)
{
    if (reply->status)
        return false;
    if (n > reply->max_bytes - reply->n_bytes) {
        reject_size(reply);
        return false;
    }
    reply->n_bytes += n;
    return true;
}

static bool append_bytes(struct peg__reply *reply, struct peg__buf *buf, peg_str bytes)
{
    if (!take_quota(reply, bytes.len))
        return false;
    peg__buf_str(buf, bytes);
    if (buf->status == PEG_ENOMEM)
        peg__reply_nomem(reply);
    else if (buf->status)
        reject_size(reply);
    return !buf->status;
}

peg_status peg__reply_status(const struct peg__reply *reply, peg_error *reterr)
{
    if (reply->status && reterr)
        *reterr = reply->error;
    return reply->status;
}

/* ---- replies ------------------------------------------------------------------------ */

const peg_clock *peg__reply_clock(const struct peg__reply *reply)
{
    return reply->dispatch ? peg_ctx_clock(peg_dispatch_ctx(reply->dispatch)) : peg_clock_system();
}

void peg__reply_init(struct peg__reply *reply, const struct peg__reply_def *def)
{
    *reply = (struct peg__reply){
        .turn = def->turn,
        .dispatch = def->dispatch,
        .names = def->names,
        .strict = def->strict,
        .vendor = peg_vendor_name(def->vendor),
        .usage = {-1, -1, -1, -1, -1, -1},
        .max_bytes = def->max_bytes ? def->max_bytes : PEG_LIMIT_REPLY_BYTES,
    };
    reply->started_ns = peg_clock_mono_ns(peg__reply_clock(reply));
    if (def->model)
        peg__reply_set(reply, &reply->model, peg__str(def->model));
}

static void free_part(struct peg__part *part)
{
    peg__buf_free(&part->text);
    peg__buf_free(&part->name);
    for (struct peg__part_member *m = part->payload; m; m = m->next)
        peg_json_doc_free(m->value);
    peg_bag_unref(part->metadata);
}

void peg__reply_free(struct peg__reply *reply)
{
    for (size_t i = 0; i < reply->n_parts; i++)
        free_part(reply->parts[i]);
    peg__free(reply->parts);
    peg__arena_free(&reply->arena);
    reply->parts = NULL;
    reply->n_parts = 0;
}

bool peg__reply_has_content(const struct peg__reply *reply)
{
    for (size_t i = 0; i < reply->n_parts; i++)
        if (!peg__part_is_empty(reply->parts[i]))
            return true;
    return false;
}

bool peg__reply_has_calls(const struct peg__reply *reply)
{
    for (size_t i = 0; i < reply->n_parts; i++)
        if (reply->parts[i]->kind == PEG__PART_CALL && !peg__part_is_empty(reply->parts[i]))
            return true;
    return false;
}

/* ---- about it ------------------------------------------------------------ */

/* Vendors repeat themselves in every event: only what is new takes memory. */
void peg__reply_set(struct peg__reply *reply, const char **string, peg_str value)
{
    const char *copy;

    if (!value.len || (*string && peg__str_is(value, *string)))
        return;
    if (!take_quota(reply, value.len))
        return;
    copy = peg__arena_copy(&reply->arena, value);
    if (copy)
        *string = copy;
    else
        peg__reply_nomem(reply);
}

void peg__reply_count(int64_t *count, const peg_json *object, const char *name)
{
    const peg_json *value = object ? peg_json_get(object, name) : NULL;
    int64_t number;

    if (value && peg_json_int64(value, &number) && number >= 0)
        *count = number;
}

/* ---- parts ------------------------------------------------------------------------------ */

/* Where the part of a rank stands, or would stand: readers mostly open them in order. */
static size_t find_place(const struct peg__reply *reply, uint32_t rank)
{
    size_t low = 0;
    size_t high = reply->n_parts;

    if (high && reply->parts[high - 1]->rank < rank)
        return high;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (reply->parts[middle]->rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct peg__part *new_part(struct peg__reply *reply, uint32_t rank, enum peg__part_kind kind)
{
    struct peg__part *part = peg__arena_alloc_zero(&reply->arena, sizeof(*part));
    peg_error error;

    if (!part) {
        peg__reply_nomem(reply);
        return NULL;
    }
    if (!peg__uuid7(peg__reply_clock(reply), part->id)) {
        peg__reply_fail_with(reply, peg__fail_no_randomness(&error), &error);
        return NULL;
    }
    part->rank = rank;
    part->kind = kind;
    part->text.max = PEG_LIMIT_BLOCK_BYTES;
    part->name.max = PEG_LIMIT_BLOCK_BYTES;
    return part;
}

static struct peg__part *open_part(struct peg__reply *reply, size_t at, uint32_t rank,
                                   enum peg__part_kind kind)
{
    struct peg__part *part;
    struct peg__part **parts;

    if (reply->n_parts == PEG_LIMIT_REPLY_PARTS) {
        peg__reply_fail(reply, "it has more than %d parts", PEG_LIMIT_REPLY_PARTS);
        return NULL;
    }
    if (!PEG__RESERVE(reply->parts, reply->n_parts + 1, reply->parts_capacity)) {
        peg__reply_nomem(reply);
        return NULL;
    }
    parts = reply->parts;
    part = new_part(reply, rank, kind);
    if (!part)
        return NULL;
    memmove(parts + at + 1, parts + at, (reply->n_parts - at) * sizeof(struct peg__part *));
    parts[at] = part;
    reply->n_parts++;
    return part;
}

struct peg__part *peg__reply_part(struct peg__reply *reply, uint32_t rank, enum peg__part_kind kind)
{
    const size_t at = find_place(reply, rank);

    if (reply->status)
        return NULL;
    if (at == reply->n_parts || reply->parts[at]->rank != rank)
        return open_part(reply, at, rank, kind);
    if (reply->parts[at]->kind != kind) {
        peg__reply_fail(reply, "part %u begins as one thing and goes on as another",
                        (unsigned)rank);
        return NULL;
    }
    return reply->parts[at];
}

bool peg__part_is_empty(const struct peg__part *part)
{
    if (part->text.len)
        return false;
    switch (part->kind) {
    case PEG__PART_THOUGHT:
        return !part->payload;
    case PEG__PART_CALL:
        return !part->name.len && !part->call_id;
    default:
        return true;
    }
}

/* ---- reporting ------------------------------------------------------------------------------ */

peg_str peg__part_tool(const struct peg__reply *reply, const struct peg__part *part)
{
    const peg_str wire = peg__buf_view(&part->name);

    return reply->names ? peg__names_in(reply->names, wire) : wire;
}

static peg_status report_delta(struct peg__reply *reply, const struct peg__part *part,
                               peg_str delta, peg_error *reterr)
{
    const peg_str id = peg__str(part->id);

    switch (part->kind) {
    case PEG__PART_TEXT:
        return peg_dispatch_report_message(reply->dispatch, id, delta, false, reterr);
    case PEG__PART_THOUGHT:
        return peg_dispatch_report_thought(reply->dispatch, id, delta, false, reterr);
    default:
        return peg_dispatch_report_args(reply->dispatch, peg__str(part->call_id),
                                        peg__part_tool(reply, part), delta, reterr);
    }
}

void peg__part_report(struct peg__reply *reply, struct peg__part *part)
{
    const peg_str delta = peg__str_from(peg__buf_view(&part->text), part->n_reported);
    peg_error error;
    peg_status status;

    if (!reply->dispatch || !delta.len)
        return;
    if (part->kind == PEG__PART_CALL && (!part->call_id || !part->name.len))
        return;
    status = report_delta(reply, part, delta, &error);
    if (status)
        peg__reply_fail_with(reply, status, &error);
    else
        part->n_reported = part->text.len;
}

/* ---- adding --------------------------------------------------------------------------------- */

void peg__part_add(struct peg__reply *reply, struct peg__part *part, peg_str delta)
{
    if (part && append_bytes(reply, &part->text, delta))
        peg__part_report(reply, part);
}

void peg__part_set(struct peg__reply *reply, struct peg__part *part, peg_str whole)
{
    const peg_str reported =
        part ? peg__strn(peg__buf_view(&part->text).ptr, part->n_reported) : peg__strn("", 0);

    if (!part || reply->status)
        return;
    if (peg__str_starts(whole, peg__buf_view(&part->text))) {
        peg__part_add(reply, part, peg__str_from(whole, part->text.len));
        return;
    }
    if (!peg__str_starts(whole, reported))
        part->n_reported = whole.len; /* what was reported cannot be taken back */
    reply->n_bytes -= part->text.len;
    peg__buf_clear(&part->text);
    if (append_bytes(reply, &part->text, whole))
        peg__part_report(reply, part);
}

void peg__part_set_json(struct peg__reply *reply, struct peg__part *part, const peg_json *value)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_BLOCK_BYTES);

    if (value)
        peg__json_write(value, PEG_JSON_COMPACT, &text);
    else
        peg__buf_puts(&text, "{}");
    if (!text.status)
        peg__part_set(reply, part, peg__buf_view(&text));
    else if (text.status == PEG_ENOMEM)
        peg__reply_nomem(reply);
    else
        peg__reply_fail(reply, "the arguments of a call have more than %zu bytes", text.max);
    peg__buf_free(&text);
}

void peg__part_set_call_id(struct peg__reply *reply, struct peg__part *part, peg_str id)
{
    if (!part || part->call_id)
        return;
    if (id.len > PEG_LIMIT_CALL_ID_BYTES) {
        peg__reply_fail(reply, "the id of a call has %zu bytes, at most %d are taken", id.len,
                        PEG_LIMIT_CALL_ID_BYTES);
        return;
    }
    peg__reply_set(reply, &part->call_id, id);
}

void peg__part_add_name(struct peg__reply *reply, struct peg__part *part, peg_str delta)
{
    if (part)
        append_bytes(reply, &part->name, delta);
}

static struct peg__part_member *member_of(struct peg__reply *reply, struct peg__part *part,
                                          const char *name)
{
    struct peg__part_member **at = &part->payload;

    while (*at && !peg__str_is((*at)->name, name))
        at = &(*at)->next;
    if (!*at) {
        struct peg__part_member *member = peg__arena_alloc_zero(&reply->arena, sizeof(*member));
        const char *copy = peg__arena_copy(&reply->arena, peg__str(name));

        if (!member || !copy)
            return NULL;
        member->name = peg__str(copy);
        *at = member;
    }
    return *at;
}

void peg__part_payload(struct peg__reply *reply, struct peg__part *part, const char *name,
                       const peg_json *value)
{
    struct peg__part_member *member;
    peg_json_builder *b;
    peg_json_doc *doc = NULL;
    peg_error error;
    peg_status status;

    if (!part || reply->status)
        return;
    b = peg_json_builder_new();
    peg_json_add_copy(b, value);
    status = peg_json_builder_finish(b, &doc, &error);
    if (status) {
        peg__reply_fail_with(reply, status, &error);
        return;
    }
    member = take_quota(reply, peg_json_doc_bytes(doc)) ? member_of(reply, part, name) : NULL;
    if (!member) {
        peg_json_doc_free(doc);
        peg__reply_nomem(reply); /* unless it was the quota: the first failure counts */
        return;
    }
    peg_json_doc_free(member->value);
    member->value = doc;
}

void peg__part_metadata(struct peg__reply *reply, struct peg__part *part, const peg_key *key,
                        peg_str string)
{
    peg_json_builder *b;
    peg_bag *bag = NULL;
    peg_error error;
    peg_status status;

    if (!part || !take_quota(reply, string.len))
        return;
    b = peg_json_builder_new();
    peg_json_add_string(b, string);
    status = peg_bag_with_built(part->metadata, key, b, &bag, &error);
    if (status) {
        peg__reply_fail_with(reply, status, &error);
        return;
    }
    peg_bag_unref(part->metadata);
    part->metadata = bag;
}
