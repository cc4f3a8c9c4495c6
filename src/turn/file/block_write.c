/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One block as JSON: id, kind, role, payload, metadata, created_ms, then what its file had beside
 * them. Names inside of these are in order, so that the same block has the same bytes.
 */

#include "base/error.h"
#include "base/text/str.h"
#include "turn/block.h"
#include "turn/call_match.h"
#include "turn/file/result.h"
#include "json/json.h"

/* ---- names --------------------------------------------------------------------------- */

/* The names of the reference, whose "tool_use" is the result. */
static const struct {
    const char *kind;
    const char *role;
} names[] = {
    [PEG_BLOCK_SYSTEM] = {"system", "system"},
    [PEG_BLOCK_USER] = {"user", "user"},
    [PEG_BLOCK_ASSISTANT] = {"llm_text", "assistant"},
    [PEG_BLOCK_REASONING] = {"reasoning", ""},
    [PEG_BLOCK_CALL] = {"tool_call", ""},
    [PEG_BLOCK_RESULT] = {"tool_use", ""},
    [PEG_BLOCK_OTHER] = {"other", ""},
};

enum { N_NAMES = sizeof(names) / sizeof(names[0]) };

const char *peg__block_file_kind(peg_block_kind kind)
{
    return names[kind].kind;
}

const char *peg__block_file_role(peg_block_kind kind)
{
    return names[kind].role;
}

static bool is_name(peg_str text, const char *name)
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
    for (int kind = 0; kind < N_NAMES; kind++) {
        if (is_name(name, names[kind].kind)) {
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
        .rest = payload->rest ? peg_json_get(payload->rest, "media") : NULL,
    };
    if (peg_block_n_media(payload->block))
        peg__fields_made(&payload->fields, "media", peg__media_file_write, &payload->media);
}

peg_status peg__payload_place_artifact(struct peg__payload *payload, peg_error *reterr)
{
    return peg__bytes_place(peg_artifact_reader(peg_block_artifact(payload->block)),
                            payload->how->options, &payload->bytes, reterr);
}

void peg__payload_artifact(struct peg__payload *payload, bool has_bytes)
{
    payload->artifact = (struct peg__artifact_out){
        .kind = peg_artifact_kind_of(peg_block_artifact(payload->block))->name,
        .bytes = has_bytes ? &payload->bytes : NULL,
        .rest = payload->rest ? peg_json_get(payload->rest, "artifact") : NULL,
    };
    peg__fields_made(&payload->fields, "artifact", peg__artifact_file_write, &payload->artifact);
}

static void payload_free(struct peg__payload *payload)
{
    peg__fields_free(&payload->fields);
    peg__args_out_free(&payload->args);
    peg__bytes_free(&payload->bytes);
    peg__free(payload->base64);
}

static peg_status call_fields(struct peg__payload *payload, peg_error *reterr)
{
    const peg_block *block = payload->block;

    peg__fields_string(&payload->fields, "id", peg_block_call_id(block));
    peg__fields_string(&payload->fields, "name", peg_block_tool(block));
    return peg__args_fields(peg_block_args(block), &payload->args, &payload->fields, reterr);
}

static peg_status other_fields(struct peg__payload *payload, peg_error *reterr)
{
    const peg_block *block = payload->block;
    peg_status status;

    if (!peg__str_is(peg_block_type(block), "other"))
        peg__fields_string(&payload->fields, "type", peg_block_type(block));
    if (peg_block_tier(block))
        peg__fields_string(&payload->fields, "trust_tier",
                           peg__str(peg_trust_tier_name(peg_block_tier(block))));
    if (!peg_block_artifact(block))
        return PEG_OK;
    status = peg__payload_place_artifact(payload, reterr);
    if (!status)
        peg__payload_artifact(payload, true);
    return status;
}

/* What the file had goes before what we would write, but for lists that are joined already. */
static void rest_fields(struct peg__payload *payload)
{
    const peg_json *rest = payload->rest;

    if (!rest)
        return;
    PEG_JSON_EACH_MEMBER (rest, key) {
        const peg_str name = peg_json_str(key);

        if (peg__str_is(name, "media") ||
            (peg__str_is(name, "artifact") && peg_block_artifact(payload->block)))
            continue;
        peg__fields_member(&payload->fields, key, payload->fields.n);
    }
}

static peg_status fill(struct peg__payload *payload, bool is_foreign, peg_error *reterr)
{
    const peg_block *block = payload->block;
    const peg_block_kind kind = peg_block_kind_of(block);
    peg_status status = PEG_OK;

    if (!is_foreign && kind == PEG_BLOCK_CALL)
        status = call_fields(payload, reterr);
    else if (!is_foreign && kind == PEG_BLOCK_RESULT)
        status = peg__result_fields(payload, reterr);
    else if (!is_foreign && kind == PEG_BLOCK_OTHER)
        status = other_fields(payload, reterr);
    if (!is_foreign && kind != PEG_BLOCK_RESULT) {
        peg__fields_text(&payload->fields, "text", peg_block_text(block));
        peg__payload_media(payload);
    }
    if (status)
        return status;
    rest_fields(payload);
    peg__fields_members(&payload->fields, peg_block_payload(block));
    return PEG_OK;
}

static peg_status write_payload(const struct peg__block_write *how, const peg_block *block,
                                const peg_json *members, peg_json_builder *b, peg_error *reterr)
{
    struct peg__payload payload = {
        .how = how, .block = block, .rest = members ? peg_json_get(members, "payload") : NULL};
    const bool is_foreign = members && peg_json_get(members, "kind");
    peg_status status = fill(&payload, is_foreign, reterr);

    if (!status && (payload.fields.n || payload.fields.is_out_of_memory)) {
        peg_json_add_key(b, peg__str("payload"));
        status = peg__fields_write(&payload.fields, b, reterr);
    }
    payload_free(&payload);
    return status;
}

/* ---- blocks ---------------------------------------------------------------------------- */

peg_status peg__bag_write(const peg_bag *bag, peg_json_builder *b, peg_error *reterr)
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

static void add_text(peg_json_builder *b, const char *name, peg_str text)
{
    if (!text.len)
        return;
    peg_json_add_key(b, peg__str(name));
    peg_json_add_string(b, text);
}

/* Of the file if that had another one, else ours. */
static peg_str kept_or(const peg_json *members, const char *name, const char *ours)
{
    const peg_json *kept = members ? peg_json_get(members, name) : NULL;

    return kept && kept->kind == PEG_JSON_STRING ? peg_json_str(kept) : peg__str(ours);
}

static peg_status write_others(const peg_json *members, peg_json_builder *b, peg_error *reterr)
{
    static const char *const ours[] = {"kind", "role", "payload", NULL};
    struct peg__fields others = {0};
    peg_status status;

    if (!members)
        return PEG_OK;
    PEG_JSON_EACH_MEMBER (members, key) {
        if (!peg__in_list(ours, peg_json_str(key)))
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
    peg_status status;

    if (how->calls && kind == PEG_BLOCK_CALL && peg__call_match_add(how->calls, block))
        return peg__fail_nomem(reterr);
    peg_json_open_object(b);
    add_text(b, "id", peg_block_id(block));
    add_text(b, "kind", kept_or(members, "kind", names[kind].kind));
    add_text(b, "role", kept_or(members, "role", names[kind].role));
    status = write_payload(how, block, members, b, reterr);
    if (!status && peg_bag_len(metadata)) {
        peg_json_add_key(b, peg__str("metadata"));
        status = peg__bag_write(metadata, b, reterr);
    }
    if (!status && peg_block_created_ms(block)) {
        peg_json_add_key(b, peg__str("created_ms"));
        peg_json_add_integer(b, peg_block_created_ms(block));
    }
    if (!status)
        status = write_others(members, b, reterr);
    peg_json_close(b);
    return status;
}
