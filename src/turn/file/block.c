/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Blocks as JSON and back: id, kind, role, payload, metadata, created_ms, then the other members of
 * the file. Names inside of these are in order, so that the same block has the same bytes.
 *
 * A block that cannot be of its kind (an unknown kind, a message without content) is foreign: it is
 * read as a block of kind OTHER, keeps its payload whole, and is written as it was.
 */

#include <stdio.h>

#include "base/error.h"
#include "base/text/str.h"
#include "turn/file/internal.h"
#include "turn/turn.h"
#include "json/json.h"

/* ---- names --------------------------------------------------------------------------- */

/* The names of the reference, whose "tool_use" is the result. */
static const struct {
    const char *kind;
    const char *role;
} kind_names[] = {
    [PEG_BLOCK_SYSTEM] = {"system", "system"},
    [PEG_BLOCK_USER] = {"user", "user"},
    [PEG_BLOCK_ASSISTANT] = {"llm_text", "assistant"},
    [PEG_BLOCK_REASONING] = {"reasoning", ""},
    [PEG_BLOCK_CALL] = {"tool_call", ""},
    [PEG_BLOCK_RESULT] = {"tool_use", ""},
    [PEG_BLOCK_OTHER] = {"other", ""},
};

/* The members of a block, in the order in which they are written. */
struct block_head {
    peg_str id;
    peg_str kind;
    peg_str role;
    struct peg__made payload;
    struct peg__made metadata;
    int64_t created_ms;
};

static const struct peg__member block_members[] = {
    PEG__ROW(struct block_head, id, "id", ID),
    PEG__ROW(struct block_head, kind, "kind", TEXT),
    PEG__ROW(struct block_head, role, "role", TEXT),
    PEG__ROW(struct block_head, payload, "payload", MADE),
    PEG__ROW(struct block_head, metadata, "metadata", MADE),
    PEG__ROW(struct block_head, created_ms, "created_ms", INTEGER),
    {0},
};

enum { N_KIND_NAMES = sizeof(kind_names) / sizeof(kind_names[0]) };

const char *peg__block_file_kind(peg_block_kind kind)
{
    return kind_names[kind].kind;
}

static bool is_kind_name(peg_str text, const char *name)
{
    if (text.len != strlen(name))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (peg__to_lower(text.ptr[i]) != name[i])
            return false;
    return true;
}

bool peg__block_file_kind_named(peg_str name, peg_block_kind *ret_kind)
{
    while (name.len && peg__is_space(name.ptr[0]))
        name = peg__str_from(name, 1);
    while (name.len && peg__is_space(name.ptr[name.len - 1]))
        name.len--;
    for (int kind = 0; kind < N_KIND_NAMES; kind++) {
        if (is_kind_name(name, kind_names[kind].kind)) {
            *ret_kind = (peg_block_kind)kind;
            return true;
        }
    }
    return false;
}

/* ---- payloads ------------------------------------------------------------------------- */

void peg__payload_media(struct peg__payload *payload)
{
    payload->media = (struct peg__media_list){
        .block = payload->block,
        .options = payload->how->options,
        .rest = peg_json_get(payload->rest, "media"),
    };
    if (peg_block_n_media(payload->block))
        peg__fields_made(&payload->fields, "media", peg__media_file_write, &payload->media);
}

peg_status peg__payload_artifact(struct peg__payload *payload, bool without_text, peg_error *reterr)
{
    peg_artifact *artifact = peg_block_artifact(payload->block);
    struct peg__bytes *bytes = &payload->bytes;
    const peg_status status =
        peg__bytes_place(peg_artifact_reader(artifact), payload->how->options, bytes, reterr);

    if (status)
        return status;
    payload->artifact = (struct peg__artifact_out){
        .kind = peg_artifact_kind_of(artifact)->name,
        .bytes = without_text && bytes->form == PEG__BYTES_TEXT ? NULL : bytes,
        .rest = peg_json_get(payload->rest, "artifact"),
    };
    peg__fields_made(&payload->fields, "artifact", peg__artifact_file_write, &payload->artifact);
    return PEG_OK;
}

static void payload_free(struct peg__payload *payload)
{
    peg__fields_free(&payload->fields);
    peg__args_out_free(&payload->args);
    peg__bytes_free(&payload->bytes);
    peg__free(payload->base64);
}

static peg_status add_odd_fields(struct peg__payload *payload, peg_error *reterr)
{
    const peg_block *block = payload->block;

    if (peg_block_kind_of(block) == PEG_BLOCK_CALL)
        return peg__args_fields(peg_block_args(block), &payload->args, &payload->fields, reterr);
    peg__payload_media(payload);
    return peg_block_artifact(block) ? peg__payload_artifact(payload, false, reterr) : PEG_OK;
}

static peg_status add_fields(struct peg__payload *payload, peg_error *reterr)
{
    const peg_block *block = payload->block;
    peg_block_def def = {.type = peg_block_type(block),
                         .text = peg_block_text(block),
                         .tier = peg_block_tier(block),
                         .call_id = peg_block_call_id(block),
                         .tool = peg_block_tool(block)};

    if (peg__str_is(def.type, "other"))
        def.type = (peg_str){NULL, 0};
    peg__members_write(peg__payload_members[peg_block_kind_of(block)], &def, &payload->fields);
    return add_odd_fields(payload, reterr);
}

/* Members of the file replace those that we would write, but for lists that are joined already. */
static void rest_fields(struct peg__payload *payload)
{
    const peg_json *rest = payload->rest;

    PEG_JSON_EACH_MEMBER (rest, key) {
        const peg_str name = peg_json_str(key);

        if (peg__str_is(name, "media") ||
            (peg__str_is(name, "artifact") && peg_block_artifact(payload->block)))
            continue;
        peg__fields_member(&payload->fields, key, payload->fields.n);
    }
}

static peg_status fill_payload(struct peg__payload *payload, bool is_foreign, peg_error *reterr)
{
    const peg_block *block = payload->block;
    peg_status status = PEG_OK;

    if (!is_foreign)
        status = peg_block_kind_of(block) == PEG_BLOCK_RESULT ? peg__result_fields(payload, reterr)
                                                              : add_fields(payload, reterr);
    if (status)
        return status;
    rest_fields(payload);
    peg__fields_members(&payload->fields, peg_block_payload(block));
    return PEG_OK;
}

static peg_status write_fields(const void *fields, peg_json_builder *b, peg_error *reterr)
{
    return peg__fields_write(peg__unconst(fields), b, reterr);
}

/* ---- blocks ---------------------------------------------------------------------------- */

peg_status peg__bag_write(const void *bag, peg_json_builder *b, peg_error *reterr)
{
    const peg_json *value = NULL;
    peg_status status = PEG_OK;
    peg_str id;

    peg_json_open_object(b);
    for (size_t i = 0; !status && peg_bag_at(bag, i, &id, &value); i++) {
        peg_json_add_key(b, id);
        status = peg__json_add_sorted(b, value, reterr);
    }
    peg_json_close(b);
    return status;
}

static void add_string_member(peg_json_builder *b, const char *name, peg_str text)
{
    if (!text.len)
        return;
    peg_json_add_key(b, peg__str(name));
    peg_json_add_string(b, text);
}

static peg_status write_others(const peg_json *members, peg_json_builder *b, peg_error *reterr)
{
    struct peg__fields others = {0};
    peg_status status;

    PEG_JSON_EACH_MEMBER (members, key) {
        if (!peg__member_is_known(block_members, peg_json_str(key)))
            peg__fields_member(&others, key, 0);
    }
    status = peg__fields_write_members(&others, b, reterr);
    peg__fields_free(&others);
    return status;
}

peg_status peg__block_write(const struct peg__block_write *how, const peg_block *block,
                            peg_json_builder *b, peg_error *reterr)
{
    const peg_block_kind kind = peg_block_kind_of(block);
    const peg_json *members = peg__block_members(block);
    const peg_bag *metadata = peg_block_metadata(block);
    struct peg__payload payload = {
        .how = how, .block = block, .rest = peg_json_get(members, "payload")};
    /* The kind and role of the file where these were others. */
    struct block_head head = {
        .id = peg_block_id(block),
        .kind = peg_json_str_or(peg_json_get(members, "kind"), kind_names[kind].kind),
        .role = peg_json_str_or(peg_json_get(members, "role"), kind_names[kind].role),
        .metadata = {peg_bag_len(metadata) ? peg__bag_write : NULL, metadata},
        .created_ms = peg_block_created_ms(block)};
    peg_status status;

    if (how->calls && kind == PEG_BLOCK_CALL && peg__call_match_add(how->calls, block))
        return peg__fail_nomem(reterr);
    status = fill_payload(&payload, peg_json_get(members, "kind") != NULL, reterr);
    if (payload.fields.n || payload.fields.is_out_of_memory)
        head.payload = (struct peg__made){write_fields, &payload.fields};
    peg_json_open_object(b);
    if (!status)
        status = peg__members_add(block_members, &head, b, reterr);
    if (!status)
        status = write_others(members, b, reterr);
    peg_json_close(b);
    payload_free(&payload);
    return status;
}

/* ---- a block while it is read ---------------------------------------------------------- */

/* Owned; borrows from the file. */
struct reading {
    const struct peg__block_read *how;
    struct peg__in in;      /* the block */
    struct peg__in payload; /* its payload */
    peg_block_kind kind;
    bool is_foreign;
    struct block_head head; /* as the file has it */
    peg_str kind_text;      /* foreign: what stands there */
    peg_str kept_role;      /* another than we would write; ptr NULL: none */
    peg_block_def def;
    struct peg__media_in media;
    peg_artifact *artifact;
    peg_record *record;
    peg_bag *metadata;
    char *args;
    peg_json_doc *others;  /* unknown members of the payload */
    peg_json_doc *members; /* what the block's origin is */
};

static void reading_free(struct reading *r)
{
    peg__media_in_free(&r->media);
    peg_artifact_unref(r->artifact);
    peg_record_unref(r->record);
    peg_bag_unref(r->metadata);
    peg__free(r->args);
    peg_json_doc_free(r->others);
    peg_json_doc_free(r->members);
}

/* Both objects stop at what is wrong with one of them. */
static peg_status join_status(struct reading *r)
{
    if (r->payload.status)
        r->in.status = r->payload.status;
    return r->in.status;
}

static bool has_images(const struct reading *r)
{
    return r->kind == PEG_BLOCK_USER || r->kind == PEG_BLOCK_ASSISTANT;
}

/* ---- payloads by kind ------------------------------------------------------------------- */

/* It cannot be of its kind. Strict readers refuse it, with this reason. */
static peg_status make_foreign(struct reading *r, peg_str kind_text, const char *name,
                               const char *why)
{
    if (r->in.is_strict)
        return peg__in_fail(&r->in, name, "%s", why);
    r->is_foreign = true;
    r->kind_text = kind_text;
    return PEG_OK;
}

static peg_status read_message(struct reading *r)
{
    const bool is_message = has_images(r);
    bool is_empty;

    peg__members_read(&r->payload, peg__payload_members[r->kind], &r->def);
    if (is_message && !r->payload.status &&
        peg__media_file_read(&r->payload, r->def.id, true, r->how->options, &r->media))
        return join_status(r);
    if (join_status(r))
        return r->in.status;
    is_empty = !r->def.text.len && !r->media.n;
    if (r->kind == PEG_BLOCK_REASONING &&
        peg__in_has_others(r->payload.object, peg__payload_members[r->kind]))
        is_empty = false;
    if (is_empty)
        return make_foreign(r, peg__str(peg__block_file_kind(r->kind)), "payload",
                            "is empty: a block of this kind needs text or media");
    return PEG_OK;
}

/* A call without an id is called as its block is. */
static peg_status read_call(struct reading *r)
{
    peg__members_read(&r->payload, peg__payload_members[PEG_BLOCK_CALL], &r->def);
    if (!r->def.call_id.len)
        r->def.call_id = r->def.id;
    if (!r->payload.status)
        r->payload.status = peg__args_read(&r->payload, &r->def.args, &r->args);
    return join_status(r);
}

static peg_status read_result(struct reading *r)
{
    if (!peg__result_read(r->how, &r->payload, r->def.id, &r->record))
        r->def.record = r->record;
    return join_status(r);
}

static bool is_kind_or_missing(const peg_json *object, const char *name, peg_json_kind kind)
{
    const peg_json_kind found = peg_json_kind_of(peg_json_get(object, name));

    return found == kind || found == PEG_JSON_NULL;
}

/* The reference's payload of `other` is free: only what has our form is ours. */
static bool is_our_other(const peg_json *payload)
{
    if (!is_kind_or_missing(payload, "type", PEG_JSON_STRING) ||
        !is_kind_or_missing(payload, "text", PEG_JSON_STRING) ||
        !is_kind_or_missing(payload, "trust_tier", PEG_JSON_STRING) ||
        !is_kind_or_missing(payload, "artifact", PEG_JSON_OBJECT) ||
        !is_kind_or_missing(payload, "media", PEG_JSON_ARRAY))
        return false;
    PEG_JSON_EACH_ITEM (peg_json_get(payload, "media"), item) {
        if (item->kind != PEG_JSON_OBJECT)
            return false;
    }
    return true;
}

static peg_status read_artifact(struct reading *r)
{
    const peg_json *artifact = peg__in_kind(&r->payload, "artifact", PEG_JSON_OBJECT);
    struct peg__in in = {artifact, "/payload/artifact", r->in.is_strict, PEG_OK, r->in.reterr};

    if (!artifact || r->payload.status)
        return r->payload.status;
    r->payload.status =
        peg__artifact_file_read(&in, (peg_str){NULL, 0}, r->how->options, &r->artifact);
    r->def.artifact = r->artifact;
    return r->payload.status;
}

static peg_status read_other(struct reading *r)
{
    const peg_json *tier = peg_json_get(r->payload.object, "trust_tier");

    if (!is_our_other(r->payload.object))
        return make_foreign(r, peg__str("other"), "payload", "has an unknown form");
    peg__members_read(&r->payload, peg__payload_members[PEG_BLOCK_OTHER], &r->def);
    if (!r->def.type.len)
        r->def.type = peg__str("other");
    if (join_status(r) || read_artifact(r) ||
        peg__media_file_read(&r->payload, r->def.id, false, r->how->options, &r->media))
        return join_status(r);
    if (r->def.tier && r->how->options->untrusted)
        r->def.tier = PEG_TIER_THIRD_PARTY_PUBLIC;
    if (!r->def.tier && (r->def.text.len || r->media.n || r->artifact || (tier && tier->len)))
        r->def.tier = PEG_TIER_THIRD_PARTY_PUBLIC;
    return PEG_OK;
}

static peg_status read_payload(struct reading *r)
{
    switch (r->kind) {
    case PEG_BLOCK_CALL:
        return read_call(r);
    case PEG_BLOCK_RESULT:
        return read_result(r);
    case PEG_BLOCK_OTHER:
        return read_other(r);
    case PEG_BLOCK_SYSTEM:
    case PEG_BLOCK_USER:
    case PEG_BLOCK_ASSISTANT:
    case PEG_BLOCK_REASONING:
        break;
    }
    return read_message(r);
}

/* The text of an unknown block is not trusted. */
static void define_foreign(struct reading *r)
{
    r->def = (peg_block_def){PEG_BLOCK_DEF_INIT,
                             .kind = PEG_BLOCK_OTHER,
                             .id = r->def.id,
                             .type = r->kind_text,
                             .text = peg_json_str(peg_json_get(r->payload.object, "text")),
                             .tier = PEG_TIER_THIRD_PARTY_PUBLIC,
                             .created_ms = r->def.created_ms,
                             .payload = r->payload.object};
}

/* ---- what is kept ------------------------------------------------------------------------ */

static bool add_rest(const struct reading *r, peg_json_builder *b)
{
    static const struct peg__member tier =
        PEG__FULL_ROW("trust_tier", "/tier", ENUM, 0, &peg__tiers);
    const peg_json *payload = r->payload.object;
    bool has_rest = false;

    if (r->is_foreign)
        return false;
    if (r->kind == PEG_BLOCK_RESULT)
        return peg__result_rest(payload, r->how->options, b);
    if (r->kind == PEG_BLOCK_OTHER && peg__enum_is_foreign(payload, &tier))
        has_rest = peg__member_copy("trust_tier", peg_json_get(payload, "trust_tier"), b);
    if (r->artifact)
        has_rest |= peg__artifact_rest(peg_json_get(payload, "artifact"), r->how->options, b);
    if (r->media.n)
        has_rest |= peg__media_rest(payload, has_images(r), b);
    return has_rest;
}

static peg_status keep_members(struct reading *r)
{
    const bool has_others = peg__in_has_others(r->in.object, block_members);
    const bool keeps_rest = add_rest(r, NULL);
    peg_json_builder *b;

    if (!r->is_foreign && !r->kept_role.ptr && !has_others && !keeps_rest)
        return PEG_OK;
    b = peg_json_builder_new();
    peg_json_open_object(b);
    if (r->is_foreign)
        add_string_member(b, "kind", r->kind_text);
    add_string_member(b, "role", r->kept_role);
    if (keeps_rest) {
        peg_json_add_key(b, peg__str("payload"));
        peg_json_open_object(b);
        add_rest(r, b);
        peg_json_close(b);
    }
    peg__in_copy_others(r->in.object, block_members, b);
    peg_json_close(b);
    return r->in.status = peg_json_builder_finish(b, &r->members, r->in.reterr);
}

static peg_status keep_payload(struct reading *r)
{
    if (r->is_foreign)
        return PEG_OK;
    if (!peg__in_keep_others(&r->payload, peg__payload_members[r->kind], &r->others) && r->others)
        r->def.payload = peg_json_root(r->others);
    return join_status(r);
}

/* ---- the block ---------------------------------------------------------------------------- */

static peg_status read_head(struct reading *r)
{
    static const peg_json empty = {.kind = PEG_JSON_OBJECT, .u.extent = 1};
    const peg_str *kind = &r->head.kind;
    const peg_json *payload;

    peg__members_read(&r->in, block_members, &r->head);
    payload = peg__in_kind(&r->in, "payload", PEG_JSON_OBJECT);
    peg__in_only(&r->in, block_members);
    r->kind = PEG_BLOCK_OTHER;
    if (!peg__str_is_blank(*kind) && !peg__block_file_kind_named(*kind, &r->kind))
        make_foreign(r, *kind, "kind", "is not a known kind");
    r->payload = (struct peg__in){payload ? payload : &empty, "/payload", r->in.is_strict,
                                  r->in.status, r->in.reterr};
    r->def.kind = r->kind;
    r->def.created_ms = r->head.created_ms;
    return join_status(r);
}

/* Keeps a role that does not follow from the kind. */
static peg_status read_role(struct reading *r)
{
    const peg_str role = r->head.role;
    const char *ours = r->is_foreign ? "" : kind_names[r->kind].role;

    if (peg__str_is_blank(role) || peg__str_is(role, ours))
        return r->in.status;
    if (r->in.is_strict)
        return peg__in_fail(&r->in, "role", "is not that of a block of this kind");
    r->kept_role = role;
    return PEG_OK;
}

/* Where the file has what a definition calls otherwise. */
static void find_member_place(const struct reading *r, const char *field, char at[PEG__IN_AT])
{
    const char *name = peg__member_of_field(peg__payload_members[r->kind], field);
    const char *ours = peg__member_of_field(block_members, field);

    if (r->is_foreign && strcmp(field, "/type") == 0)
        snprintf(at, PEG__IN_AT, "/kind");
    else if (name)
        snprintf(at, PEG__IN_AT, "/payload/%s", name);
    else
        snprintf(at, PEG__IN_AT, "/%s", ours ? ours : "payload");
}

static peg_status make_read_block(struct reading *r, peg_block **ret_block)
{
    const struct peg__block_origin origin = {
        .members = r->members ? peg_json_root(r->members) : NULL, .has_no_time = true};
    peg_error error = {.where = ""};
    char at[PEG__IN_AT];
    peg_status status;

    r->def.media = r->media.items;
    r->def.n_media = r->media.n;
    r->def.metadata = r->metadata;
    status = peg__block_read_new(&r->def, &origin, ret_block, &error);
    if (!status)
        return PEG_OK;
    if (r->in.reterr)
        *r->in.reterr = error;
    find_member_place(r, error.where, at);
    return peg__in_refused(status, at, r->in.reterr);
}

static peg_status read_block(struct reading *r, peg_block **ret_block)
{
    peg_status status = read_head(r);

    if (!status && !r->is_foreign)
        status = read_payload(r);
    if (!status && r->is_foreign) {
        peg__media_in_free(&r->media);
        define_foreign(r);
    }
    if (status || (status = read_role(r)) ||
        (status = peg__in_bag(&r->in, "metadata", &r->metadata)) || (status = keep_payload(r)) ||
        (status = keep_members(r)))
        return status;
    return make_read_block(r, ret_block);
}

peg_status peg__block_read(const struct peg__block_read *how, const peg_json *value, peg_str id,
                           peg_block **ret_block, peg_error *reterr)
{
    struct reading r = {
        .how = how, .in = {value, "", how->options->strict, PEG_OK, reterr}, .def = {.id = id}};
    peg_status status;

    if (value->kind != PEG_JSON_OBJECT)
        return peg__in_fail(&r.in, NULL, "must be an object with kind and payload, not %s",
                            peg_json_kind_name(peg_json_kind_of(value)));
    status = read_block(&r, ret_block);
    reading_free(&r);
    return status;
}
