/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A block is one allocation: the struct, its references to media, and behind them its strings,
 * each with a NUL.
 */

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "pegboard/clock.h"
#include "turn/file/file.h"
#include "turn/turn.h"
#include "json/json.h"

/* Shared immutable. */
struct peg_block {
    atomic_uint n_refs;
    peg_block_kind kind;
    peg_trust_tier tier;
    int64_t created_ms;
    peg_str id;
    peg_str type;
    peg_str text;
    peg_str call_id;
    peg_str tool;
    peg_str args;
    peg_artifact *artifact;
    peg_record *record;
    peg_bag *metadata;
    struct peg__shared *payload; /* an object; NULL: none */
    struct peg__shared *members; /* see turn/block.h; NULL: none */
    size_t n_media;
    peg_media *media[];
};

/* ---- what a kind may have ------------------------------------------------------- */

enum {
    HAS_TYPE = 1 << 0,
    HAS_TEXT = 1 << 1,
    HAS_MEDIA = 1 << 2,
    HAS_ARTIFACT = 1 << 3,
    HAS_TIER = 1 << 4,
    HAS_CALL = 1 << 5, /* call_id, tool, args */
    HAS_RECORD = 1 << 6,
};

static const struct {
    const char *name;
    unsigned has;
} kinds[] = {
    [PEG_BLOCK_SYSTEM] = {"system", HAS_TEXT},
    [PEG_BLOCK_USER] = {"user", HAS_TEXT | HAS_MEDIA},
    [PEG_BLOCK_ASSISTANT] = {"assistant", HAS_TEXT | HAS_MEDIA},
    [PEG_BLOCK_REASONING] = {"reasoning", HAS_TEXT},
    [PEG_BLOCK_CALL] = {"call", HAS_CALL},
    [PEG_BLOCK_RESULT] = {"result", HAS_RECORD},
    [PEG_BLOCK_OTHER] = {"other", HAS_TYPE | HAS_TEXT | HAS_MEDIA | HAS_ARTIFACT | HAS_TIER},
};

enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

const char *peg_block_kind_name(peg_block_kind kind)
{
    return (unsigned)kind < N_KINDS ? kinds[kind].name : "unknown";
}

static peg_status refuse(peg_error *reterr, const char *where, const char *why)
{
    peg__fail(reterr, PEG_EINVAL, "E_INVALID_BLOCK", "%s: %s", where, why);
    peg__error_where(reterr, peg__str(where));
    return PEG_EINVAL;
}

static peg_status too_large(peg_error *reterr, const char *where, size_t max, const char *unit)
{
    peg__fail(reterr, PEG_ELIMIT, "E_BLOCK_TOO_LARGE", "%s: more than %zu%s", where, max, unit);
    peg__error_where(reterr, peg__str(where));
    return PEG_ELIMIT;
}

/* A field that the kind does not use must be empty: setting it is a mistake. */
static peg_status check_unused(const peg_block_def *def, peg_error *reterr)
{
    const struct {
        const char *where;
        unsigned has;
        bool is_given;
    } fields[] = {
        {"/type", HAS_TYPE, def->type.len > 0},
        {"/text", HAS_TEXT, def->text.len > 0},
        {"/media", HAS_MEDIA, def->n_media > 0},
        {"/artifact", HAS_ARTIFACT, def->artifact != NULL},
        {"/tier", HAS_TIER, def->tier != PEG_TIER_UNSET},
        {"/call_id", HAS_CALL, def->call_id.len > 0},
        {"/tool", HAS_CALL, def->tool.len > 0},
        {"/args", HAS_CALL, def->args.len > 0},
        {"/record", HAS_RECORD, def->record != NULL},
    };

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (!fields[i].is_given || (kinds[def->kind].has & fields[i].has))
            continue;
        peg__fail(reterr, PEG_EINVAL, "E_INVALID_BLOCK",
                  "%s: a block of kind '%s' has no such thing, leave it empty", fields[i].where,
                  kinds[def->kind].name);
        peg__error_where(reterr, peg__str(fields[i].where));
        return PEG_EINVAL;
    }
    return PEG_OK;
}

/* Everything but the arguments, which may be as broken as the model made them: the
 * model gets the error when they are parsed. */
static peg_status check_strings(const peg_block_def *def, peg_error *reterr)
{
    const struct {
        const char *where;
        peg_str s;
    } fields[] = {
        {"/id", def->id},           {"/type", def->type}, {"/text", def->text},
        {"/call_id", def->call_id}, {"/tool", def->tool},
    };
    size_t n_bytes = def->args.len;

    if (def->id.len > PEG_LIMIT_BLOCK_ID_BYTES)
        return too_large(reterr, "/id", PEG_LIMIT_BLOCK_ID_BYTES, " bytes");
    if (def->call_id.len > PEG_LIMIT_CALL_ID_BYTES)
        return too_large(reterr, "/call_id", PEG_LIMIT_CALL_ID_BYTES, " bytes");
    if (def->type.len > PEG_LIMIT_NAME_BYTES)
        return too_large(reterr, "/type", PEG_LIMIT_NAME_BYTES, " bytes");
    if (def->args.len > PEG_LIMIT_BLOCK_BYTES)
        return too_large(reterr, "/args", PEG_LIMIT_BLOCK_BYTES, " bytes");
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (fields[i].s.len > PEG_LIMIT_BLOCK_BYTES - n_bytes)
            return too_large(reterr, fields[i].where, PEG_LIMIT_BLOCK_BYTES, " bytes in all");
        n_bytes += fields[i].s.len;
        if (!peg__utf8_is_valid(fields[i].s))
            return refuse(reterr, fields[i].where, "must be UTF-8");
    }
    return PEG_OK;
}

static peg_status check_media(const peg_block_def *def, peg_error *reterr)
{
    if (def->n_media > PEG_LIMIT_BLOCK_MEDIA)
        return too_large(reterr, "/media", PEG_LIMIT_BLOCK_MEDIA, " items");
    if (def->n_media && !def->media)
        return refuse(reterr, "/media", "n_media is set but media is NULL");
    for (size_t i = 0; i < def->n_media; i++) {
        char where[32];

        if (def->media[i])
            continue;
        snprintf(where, sizeof(where), "/media/%zu", i);
        return refuse(reterr, where, "is NULL, give a media or a shorter list");
    }
    return PEG_OK;
}

/* Fields that the kind requires. */
static peg_status check_needed(const peg_block_def *def, peg_error *reterr)
{
    const bool has_content = def->text.len || def->n_media || def->artifact;

    switch (def->kind) {
    case PEG_BLOCK_SYSTEM:
        return def->text.len ? PEG_OK : refuse(reterr, "/text", "is required for this kind");
    case PEG_BLOCK_REASONING:
        return def->text.len || def->payload
                   ? PEG_OK
                   : refuse(reterr, "/text", "a thought needs text or a payload");
    case PEG_BLOCK_USER:
    case PEG_BLOCK_ASSISTANT:
        return has_content ? PEG_OK : refuse(reterr, "/text", "a message needs text or media");
    case PEG_BLOCK_CALL:
        return PEG_OK;
    case PEG_BLOCK_RESULT:
        return def->record ? PEG_OK : refuse(reterr, "/record", "is required for this kind");
    case PEG_BLOCK_OTHER:
        break;
    }
    if (!def->type.len)
        return refuse(reterr, "/type", "is required, such as 'memory'");
    if (has_content && def->tier == PEG_TIER_UNSET)
        return refuse(reterr, "/tier", "is required: how far is the author trusted?");
    return PEG_OK;
}

/* The members of a file that pegboard has itself are not the host's. */
static peg_status check_payload(const peg_block_def *def, peg_error *reterr)
{
    const char *name;

    if (!def->payload)
        return PEG_OK;
    if (def->payload->kind != PEG_JSON_OBJECT)
        return refuse(reterr, "/payload", "must be a JSON object");
    name = peg__payload_reserved(def->kind, def->payload);
    if (name) {
        peg__fail(reterr, PEG_EINVAL, "E_INVALID_BLOCK",
                  "/payload: the member '%s' is pegboard's own, call it something else", name);
        peg__error_where(reterr, peg__str("/payload"));
        return PEG_EINVAL;
    }
    return PEG_OK;
}

static peg_status check(const peg_block_def *def, peg_error *reterr)
{
    peg_status status;

    if ((unsigned)def->kind >= N_KINDS)
        return refuse(reterr, "/kind", "is not one of peg_block_kind");
    if ((unsigned)def->tier > PEG_TIER_THIRD_PARTY_PUBLIC)
        return refuse(reterr, "/tier", "is not one of peg_trust_tier");
    if (def->created_ms < 0)
        return refuse(reterr, "/created_ms", "is before 1970");
    if ((status = check_unused(def, reterr)) || (status = check_strings(def, reterr)) ||
        (status = check_media(def, reterr)))
        return status;
    return check_needed(def, reterr);
}

/* ---- life ----------------------------------------------------------------------- */

/* Writes a copy at *at and moves it behind. */
static peg_str put(char **at, peg_str s)
{
    const peg_str copy = {*at, s.len};

    if (s.len)
        memcpy(*at, s.ptr, s.len);
    (*at)[s.len] = '\0';
    *at += s.len + 1;
    return copy;
}

/* The documents that a block keeps: copies of what the definition and the file have. */
struct documents {
    struct peg__shared *payload;
    struct peg__shared *members;
};

static void drop_documents(struct documents *documents)
{
    peg__shared_unref(documents->payload);
    peg__shared_unref(documents->members);
}

static peg_status copy_documents(const peg_json *payload, const peg_json *members,
                                 struct documents *ret_documents, peg_error *reterr)
{
    struct documents documents = {NULL, NULL};
    peg_status status = PEG_OK;

    if (payload && peg_json_len(payload))
        status = peg__shared_copy(payload, &documents.payload, reterr);
    if (!status && members && peg_json_len(members))
        status = peg__shared_copy(members, &documents.members, reterr);
    if (status)
        drop_documents(&documents);
    else
        *ret_documents = documents;
    return status;
}

/* Takes the documents over if it succeeds. */
static peg_block *build(const peg_block_def *def, const struct documents *documents)
{
    const peg_str strings[] = {def->id, def->type, def->text, def->call_id, def->tool, def->args};
    const size_t head = sizeof(peg_block) + def->n_media * sizeof(peg_media *);
    size_t size = head;
    peg_block *block;
    char *at;

    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
        size += strings[i].len + 1;
    block = peg__alloc(size);
    if (!block)
        return NULL;
    at = (char *)block + head;
    *block = (peg_block){
        .kind = def->kind,
        .tier = def->tier,
        .created_ms = def->created_ms,
        .id = put(&at, def->id),
        .type = put(&at, def->type),
        .text = put(&at, def->text),
        .call_id = put(&at, def->call_id),
        .tool = put(&at, def->tool),
        .args = put(&at, def->args),
        .artifact = def->artifact ? peg_artifact_ref(def->artifact) : NULL,
        .record = def->record ? peg_record_ref(def->record) : NULL,
        .metadata = peg_bag_ref(def->metadata),
        .payload = documents->payload,
        .members = documents->members,
        .n_media = def->n_media,
    };
    atomic_init(&block->n_refs, 1);
    for (size_t i = 0; i < def->n_media; i++)
        block->media[i] = peg_media_ref(def->media[i]);
    return block;
}

/* Gives `id` a name of ours in `text` if it has none. */
static peg_status fill_id(peg_str *id, char text[PEG_UUID_TEXT], peg_error *reterr)
{
    if (id->len)
        return PEG_OK;
    if (!peg__uuid7(peg_clock_system(), text))
        return peg__fail_no_randomness(reterr);
    *id = peg__str(text);
    return PEG_OK;
}

static peg_status make(const peg_block_def *def, const struct peg__block_origin *origin,
                       peg_block **ret_block, peg_error *reterr)
{
    char id[PEG_UUID_TEXT];
    char call_id[PEG_UUID_TEXT];
    struct documents documents;
    peg_block_def filled = *def;
    peg_status status = check(def, reterr);
    peg_block *block;

    if (!status)
        status = fill_id(&filled.id, id, reterr);
    if (!status && def->kind == PEG_BLOCK_CALL)
        status = fill_id(&filled.call_id, call_id, reterr);
    if (!status)
        status = copy_documents(def->payload, origin->members, &documents, reterr);
    if (status)
        return status;
    if (!def->created_ms && !origin->has_no_time)
        filled.created_ms = peg_clock_now_ms(peg_clock_system());
    block = build(&filled, &documents);
    if (!block) {
        drop_documents(&documents);
        return peg__fail_nomem(reterr);
    }
    *ret_block = block;
    return PEG_OK;
}

peg_status peg_block_new(const peg_block_def *def, peg_block **ret_block, peg_error *reterr)
{
    PEG__READ_OR_RETURN(def, PEG_BLOCK_DEF_INIT, reterr);
    static const struct peg__block_origin nowhere = {NULL, false};
    const peg_status status = check_payload(def, reterr);

    return status ? status : make(def, &nowhere, ret_block, reterr);
}

peg_status peg__block_read_new(const peg_block_def *def, const struct peg__block_origin *origin,
                               peg_block **ret_block, peg_error *reterr)
{
    const bool is_foreign = origin->members && peg_json_get(origin->members, "kind");
    const peg_status status = is_foreign ? PEG_OK : check_payload(def, reterr);

    return status ? status : make(def, origin, ret_block, reterr);
}

peg_status peg_block_with_metadata(peg_block *block, peg_bag *metadata, peg_block **ret_block,
                                   peg_error *reterr)
{
    const peg_block_def def = {
        PEG_BLOCK_DEF_INIT,        .kind = block->kind,
        .id = block->id,           .type = block->type,
        .text = block->text,       .media = block->media,
        .n_media = block->n_media, .artifact = block->artifact,
        .tier = block->tier,       .call_id = block->call_id,
        .tool = block->tool,       .args = block->args,
        .record = block->record,   .created_ms = block->created_ms,
        .metadata = metadata,
    };
    struct documents documents = {peg__shared_ref(block->payload), peg__shared_ref(block->members)};
    peg_block *other = build(&def, &documents);

    if (!other) {
        drop_documents(&documents);
        return peg__fail_nomem(reterr);
    }
    *ret_block = other;
    return PEG_OK;
}

peg_block *peg_block_ref(peg_block *block)
{
    if (block)
        atomic_fetch_add_explicit(&block->n_refs, 1, memory_order_relaxed);
    return block;
}

peg_block *peg_block_unref(peg_block *block)
{
    if (!block || !peg__refs_drop(&block->n_refs))
        return NULL;
    for (size_t i = 0; i < block->n_media; i++)
        peg_media_unref(block->media[i]);
    peg_artifact_unref(block->artifact);
    peg_record_unref(block->record);
    peg_bag_unref(block->metadata);
    peg__shared_unref(block->payload);
    peg__shared_unref(block->members);
    peg__free(block);
    return NULL;
}

/* ---- reading -------------------------------------------------------------------- */

peg_block_kind peg_block_kind_of(const peg_block *block)
{
    return block->kind;
}

peg_str peg_block_id(const peg_block *block)
{
    return block->id;
}

peg_str peg_block_type(const peg_block *block)
{
    return block->type;
}

peg_str peg_block_text(const peg_block *block)
{
    return block->text;
}

size_t peg_block_n_media(const peg_block *block)
{
    return block->record ? peg_record_n_media(block->record) : block->n_media;
}

peg_media *peg_block_media(const peg_block *block, size_t i)
{
    if (i >= peg_block_n_media(block))
        return NULL;
    return block->record ? peg_record_media(block->record, i) : block->media[i];
}

peg_artifact *peg_block_artifact(const peg_block *block)
{
    return block->record ? peg_record_artifact(block->record) : block->artifact;
}

peg_trust_tier peg_block_tier(const peg_block *block)
{
    return block->tier;
}

peg_str peg_block_call_id(const peg_block *block)
{
    return block->record ? peg_record_call_id(block->record) : block->call_id;
}

peg_str peg_block_tool(const peg_block *block)
{
    return block->record ? peg_record_tool(block->record) : block->tool;
}

peg_str peg_block_args(const peg_block *block)
{
    return block->args;
}

peg_record *peg_block_record(const peg_block *block)
{
    return block->record;
}

int64_t peg_block_created_ms(const peg_block *block)
{
    return block->created_ms;
}

peg_bag *peg_block_metadata(const peg_block *block)
{
    return block->metadata;
}

const peg_json *peg_block_payload(const peg_block *block)
{
    return peg__shared_root(block->payload);
}

const peg_json *peg__block_members(const peg_block *block)
{
    return peg__shared_root(block->members);
}
