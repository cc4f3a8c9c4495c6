/* SPDX-License-Identifier: Apache-2.0 */

/* What is wrong with a turn that can be read. */

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/turn/turn.h"
#include "pegboard/definitions.h"
#include "pegboard/tool_config.h"
#include "pegboard/yaml.h"
#include "turn/file/file.h"
#include "json/json.h"

/* Owned. */
struct checking {
    const struct turn_file *file;
    const peg_turn *turn;
    struct turn_findings *findings;
    peg_error *reterr;
    peg_json_doc *doc;    /* the file as it is */
    const peg_json *root; /* the turn in it */
    const char *at;       /* where that stands: "" or "/turn" */
    struct peg__map call_ids;
    struct peg__map calls; /* ids of their blocks */
    struct peg__map answered;
};

/* As much of a name as a message has room for, whole characters. */
#define SHOWN(s) shown_len(s), (s).ptr

static int shown_len(peg_str s)
{
    enum { MOST = 64 };

    return (int)(s.len <= MOST ? s.len : peg__utf8_cut(s.ptr, MOST));
}

/* Room for the place of a finding. */
enum { WHERE_SIZE = sizeof(((peg_error *)0)->where) };

/* ---- findings --------------------------------------------------------------------------- */

void turn_found(struct turn_findings *findings, bool is_error, const peg_error *error)
{
    is_error = is_error || findings->is_strict;
    if (is_error)
        findings->n_errors++;
    else
        findings->n_warnings++;
    if (findings->n < TURN_FINDINGS)
        findings->items[findings->n++] = (struct turn_finding){is_error, *error};
}

/* With the place of a member, which only reported findings need. */
static void found_at(struct checking *c, bool is_error, peg_error *error, const char *where)
{
    static const peg_json_options limits = {PEG_JSON_OPTIONS_INIT,
                                            .max_bytes = PEG_LIMIT_JSON_BYTES_MAX};
    const peg_str text = peg__buf_view(&c->file->text);
    char at[sizeof(error->where) + 64];

    snprintf(at, sizeof(at), "%s%s", c->at, where);
    peg__error_where(error, peg__str(at));
    if (c->findings->n < TURN_FINDINGS)
        peg__error_at(error, text,
                      c->file->format == PEG_FORMAT_JSON
                          ? peg__json_locate(text, peg__str(error->where))
                          : peg__yaml_locate(text, &limits, peg__str(error->where)));
    turn_found(c->findings, is_error, error);
}

static void found_in_block(struct checking *c, bool is_error, size_t i, peg_error *error)
{
    char where[64];

    snprintf(where, sizeof(where), "/blocks/%zu", i);
    found_at(c, is_error, error, where);
}

/* "/data/namespace.slug@v1", and what is behind it; cut where it does not fit. PEG_ENOMEM. */
static peg_status name_member(const char *bag, peg_str id, const char *behind,
                              char ret_where[WHERE_SIZE], peg_error *reterr)
{
    struct peg__buf where = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    PEG_CLEANUP(peg__freep) char *text = NULL;
    peg_status status;

    peg__buf_puts(&where, bag);
    peg__json_pointer_push(id, &where);
    peg__buf_puts(&where, behind);
    status = peg__buf_take(&where, &text, NULL, reterr);
    if (!status)
        snprintf(ret_where, WHERE_SIZE, "%s", text);
    return status;
}

/* ---- calls and results ------------------------------------------------------------------ */

static void check_pending(struct checking *c, size_t i, const peg_block *call)
{
    const bool has_begun = turn_has_begun(c->file, peg_block_id(call));
    peg_error error;

    if (peg_turn_result_of(c->turn, peg_block_id(call)))
        return;
    peg__fail(&error, PEG_ESTATE, has_begun ? "E_CALL_BEGUN" : "E_CALL_PENDING",
              has_begun ? "the call '%.*s' of '%.*s' had begun and has no result: its outcome "
                          "is unknown"
                        : "the call '%.*s' of '%.*s' has no result: resuming the turn runs it",
              SHOWN(peg_block_call_id(call)), SHOWN(peg_block_tool(call)));
    found_in_block(c, false, i, &error);
}

/* PEG_ENOMEM. */
static peg_status check_call(struct checking *c, size_t i, const peg_block *call)
{
    const peg_status status = peg__map_add(&c->call_ids, peg_block_call_id(call), NULL);
    peg_error error;

    if (status == PEG_EEXISTS) {
        peg__fail(&error, PEG_EEXISTS, "E_CALL_ID_TAKEN",
                  "the call id '%.*s' is that of another call too: results are matched in order",
                  SHOWN(peg_block_call_id(call)));
        found_in_block(c, false, i, &error);
    } else if (status) {
        return peg__fail_nomem(c->reterr);
    }
    if (peg__map_add(&c->calls, peg_block_id(call), NULL))
        return peg__fail_nomem(c->reterr);
    check_pending(c, i, call);
    return PEG_OK;
}

/* Calls that stand before are known: blocks are checked in order. */
static peg_status check_result_block(struct checking *c, size_t i, const peg_record *record)
{
    const peg_str key = peg_record_key(record);
    peg_status status;
    peg_error error;

    if (!peg__map_find(&c->calls, key)) {
        peg__fail(&error, PEG_ENOTFOUND, "E_RESULT_WITHOUT_CALL",
                  "the result '%.*s' of '%.*s' answers no call before it: providers refuse it",
                  SHOWN(peg_record_call_id(record)), SHOWN(peg_record_tool(record)));
        found_in_block(c, true, i, &error);
        return PEG_OK;
    }
    status = peg__map_add(&c->answered, key, NULL);
    if (status && status != PEG_EEXISTS)
        return peg__fail_nomem(c->reterr);
    if (status) {
        peg__fail(&error, PEG_EEXISTS, "E_RESULT_TAKEN",
                  "the call '%.*s' has a result already: only the first counts",
                  SHOWN(peg_record_call_id(record)));
        found_in_block(c, false, i, &error);
    }
    return PEG_OK;
}

/* ---- bytes that are elsewhere ----------------------------------------------------------- */

static peg_status check_reader(struct checking *c, size_t i, peg_reader *reader)
{
    PEG_CLEANUP(peg__freep) char *bytes = NULL;
    peg_status status;
    peg_error error;

    if (!peg__bytes_ref_of(reader))
        return PEG_OK;
    status = peg_reader_read_all(reader, PEG_LIMIT_ARTIFACT_BYTES, &bytes, NULL, &error);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(c->reterr);
    if (status && !c->file->bytes)
        peg__fail(&error, PEG_ENOTFOUND, "E_REFERENCE_MISSING",
                  "the %lld bytes with SHA-256 %.12s... are not in the file: say with --bytes "
                  "where they are",
                  (long long)peg__bytes_ref_of(reader)->n_bytes, peg__bytes_ref_of(reader)->sha256);
    /* With --bytes, bytes that are missing are an error. */
    if (status)
        found_in_block(c, c->file->bytes != NULL, i, &error);
    return PEG_OK;
}

static peg_status check_bytes(struct checking *c, size_t i, const peg_block *block)
{
    peg_artifact *artifact = peg_block_artifact(block);
    peg_status status = artifact ? check_reader(c, i, peg_artifact_reader(artifact)) : PEG_OK;

    for (size_t m = 0; !status && m < peg_block_n_media(block); m++) {
        peg_media *media = peg_block_media(block, m);

        if (peg_media_has_bytes(media))
            status = check_reader(c, i, peg_media_reader(media));
    }
    return status;
}

/* ---- keys ------------------------------------------------------------------------------- */

/* namespace.slug of namespace.slug@vN. */
static peg_str without_version(peg_str id)
{
    const char *at = id.len ? memchr(id.ptr, '@', id.len) : NULL;

    return peg__strn(id.ptr, at ? (size_t)(at - id.ptr) : id.len);
}

static bool is_older_of(const peg_key *key, peg_str id)
{
    for (size_t i = 0; i < key->n_older; i++)
        if (peg__str_is(id, key->older[i].id))
            return true;
    return false;
}

/* What one of the library's keys makes of an id; PEG_OK if nothing. */
static peg_status compare_key(const peg_key *key, const peg_bag *bag, peg_str id, peg_error *error)
{
    const peg_json *value;

    if (peg__str_is(id, key->id))
        return peg_bag_get(bag, key->bag, key, &value, error);
    if (is_older_of(key, id)) {
        if (!peg_bag_find(bag, peg__str(key->id)) && peg_bag_get(bag, key->bag, key, &value, error))
            return error->status;
        return peg__fail(error, PEG_ESTATE, "E_KEY_OLD",
                         "this is an older name of '%s', as which it %s", key->id,
                         peg_bag_find(bag, peg__str(key->id)) ? "is there too, so it is not read"
                                                              : "is read");
    }
    if (peg__str_eq(without_version(id), without_version(peg__str(key->id))))
        return peg__fail(error, PEG_EUNSUPPORTED, "E_KEY_VERSION",
                         "this is another version of '%s', which cannot be read here", key->id);
    return PEG_OK;
}

static void check_bag_key(struct checking *c, peg_bag_kind kind, const peg_bag *bag, peg_str id,
                          const char *where)
{
    peg_error error;

    if (!peg__key_id_is_canonical(id)) {
        peg__fail(&error, PEG_EINVAL, "E_KEY",
                  "this is no key: write namespace.slug@vN, such as myapp.user_name@v1, in lower "
                  "case");
        found_at(c, false, &error, where);
        return;
    }
    for (const peg_key *const *key = peg__own_keys; *key; key++) {
        const bool has_own_check =
            *key == &peg_key_tool_config || *key == &peg_key_tool_definitions;
        const peg_status status = (*key)->bag == kind ? compare_key(*key, bag, id, &error) : PEG_OK;

        if (status && (status != PEG_ESCHEMA || !has_own_check))
            found_at(c, status == PEG_ESCHEMA, &error, where);
    }
}

static peg_status check_bag(struct checking *c, peg_bag_kind kind, const peg_bag *bag,
                            const char *at)
{
    peg_status status = PEG_OK;
    peg_str id;

    for (size_t i = 0; !status && peg_bag_at(bag, i, &id, NULL); i++) {
        char where[WHERE_SIZE];

        status = name_member(at, id, "", where, c->reterr);
        if (!status)
            check_bag_key(c, kind, bag, id, where);
    }
    return status;
}

/* ---- tools ------------------------------------------------------------------------------ */

/* An error about the value of a key in data, which may stand under an older id. PEG_ENOMEM. */
static peg_status found_in_data(struct checking *c, const peg_key *key, peg_error *error)
{
    const bool is_new = peg_bag_find(peg_turn_data(c->turn), peg__str(key->id));
    char where[WHERE_SIZE];
    const peg_status status =
        name_member("/data", peg__str(is_new || !key->n_older ? key->id : key->older[0].id),
                    error->where, where, c->reterr);

    if (!status)
        found_at(c, true, error, where);
    return status;
}

static peg_status check_definition_schema(struct checking *c, const peg_json *definition, size_t i,
                                          const char *member)
{
    const peg_json *schema = peg_json_get(definition, member);
    const peg_json *name = peg_json_get(definition, "name");
    peg_schema *compiled = NULL;
    char at[sizeof(((peg_error *)0)->where) + 64];
    peg_status status;
    peg_error error;

    if (!schema || schema->kind == PEG_JSON_NULL)
        return PEG_OK;
    status = peg_schema_compile_value(schema, NULL, &compiled, &error);
    peg_schema_unref(compiled);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(c->reterr);
    if (!status)
        return PEG_OK;
    snprintf(at, sizeof(at), "/%zu/%s%s", i, member, error.where);
    peg__fail_because(&error, status, "E_DEFINITION_SCHEMA", &error,
                      "the schema of '%.*s' does not compile", SHOWN(peg_json_str(name)));
    peg__error_where(&error, peg__str(at));
    return found_in_data(c, &peg_key_tool_definitions, &error);
}

static peg_status check_definitions(struct checking *c)
{
    PEG_CLEANUP(peg__freep) char *text = NULL;
    const peg_definitions_options neutral = {PEG_DEFINITIONS_OPTIONS_INIT,
                                             .vendor = PEG_VENDOR_NEUTRAL};
    const peg_json *definitions = NULL;
    size_t i = 0;
    peg_error error;
    peg_status status = peg_turn_definitions(c->turn, &definitions, &error);

    if (!status && definitions)
        status = peg_definitions_render(definitions, &neutral, &text, NULL, NULL, &error);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(c->reterr);
    if (status)
        return found_in_data(c, &peg_key_tool_definitions, &error);
    if (!definitions)
        return PEG_OK;
    PEG_JSON_EACH_ITEM (definitions, definition) {
        if ((status = check_definition_schema(c, definition, i, "parameters")) ||
            (status = check_definition_schema(c, definition, i, "output")))
            return status;
        i++;
    }
    return PEG_OK;
}

static peg_status check_config(struct checking *c)
{
    peg_tool_config config;
    peg_error error;

    if (peg_turn_tool_config(c->turn, &config, NULL, &error))
        return found_in_data(c, &peg_key_tool_config, &error);
    return PEG_OK;
}

/* ---- blocks ----------------------------------------------------------------------------- */

static peg_status check_block(struct checking *c, size_t i)
{
    const peg_block *block = peg_turn_at(c->turn, i);
    peg_status status = PEG_OK;
    char at[64];

    if (peg_block_kind_of(block) == PEG_BLOCK_CALL)
        status = check_call(c, i, block);
    else if (peg_block_kind_of(block) == PEG_BLOCK_RESULT)
        status = check_result_block(c, i, peg_block_record(block));
    snprintf(at, sizeof(at), "/blocks/%zu/metadata", i);
    if (!status)
        status = check_bag(c, PEG_BAG_BLOCK, peg_block_metadata(block), at);
    return status ? status : check_bytes(c, i, block);
}

/* ---- the file as a whole ---------------------------------------------------------------- */

/* Unknown members, kinds and ids, which only a strict reader rejects. */
static peg_status check_strictly(struct checking *c)
{
    const peg_turn_read_options strict = {PEG_TURN_READ_OPTIONS_INIT, .format = c->file->format,
                                          .strict = true, .bytes = c->file->bytes,
                                          .max_bytes = c->file->text.max};
    peg_turn *turn = NULL;
    peg_error error;
    const peg_status status = peg_turn_read(peg__buf_view(&c->file->text), &strict, &turn, &error);

    peg_turn_free(turn);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(c->reterr);
    if (!status)
        return PEG_OK;
    for (size_t i = 0; i < c->findings->n; i++)
        if (strcmp(c->findings->items[i].error.where, error.where) == 0)
            return PEG_OK;
    turn_found(c->findings, false, &error);
    return PEG_OK;
}

/* ---- what re-writing the file would change ---- */

static bool is_same_value(const peg_json *a, const peg_json *b)
{
    return a && b ? peg_json_equal(a, b) : a == b;
}

/* The first block that differs; the number of blocks if none does, or if there are more or fewer.
 */
static size_t find_block(const peg_json *before, const peg_json *after)
{
    const peg_json *block = before + 1;
    size_t i = 0;

    if (peg_json_len(before) != peg_json_len(after))
        return peg_json_len(after);
    PEG_JSON_EACH_ITEM (after, other) {
        if (!peg_json_equal(block, other))
            break;
        block = peg_json_next(block);
        i++;
    }
    return i;
}

/* The first block, or else the first member of the turn, that re-writing changes. */
static void find_difference(const struct checking *c, const peg_json *written)
{
    const peg_json *before = peg_json_get(c->root, "blocks");
    const peg_json *after = peg_json_get(written, "blocks");
    const size_t i = before ? find_block(before, after) : peg_json_len(after);
    char *place = c->findings->rewritten;
    const size_t size = sizeof(c->findings->rewritten);

    if (i < peg_json_len(after)) {
        snprintf(place, size, "%s/blocks/%zu", c->at, i);
        return;
    }
    PEG_JSON_EACH_MEMBER (written, key) {
        if (!is_same_value(peg_json_get_str(c->root, peg_json_str(key)), key + 1)) {
            snprintf(place, size, "%s/%.40s", c->at, peg_json_str(key).ptr);
            return;
        }
    }
    snprintf(place, size, "%s/", c->at);
}

static peg_str without_line_end(peg_str text)
{
    if (text.len && text.ptr[text.len - 1] == '\n')
        text.len--;
    return text;
}

/* Is it what we would write? */
static peg_status compare_bytes(const struct checking *c, const peg_turn *turn, bool is_pretty,
                                bool *ret_same)
{
    const peg_turn_write_options options = {PEG_TURN_WRITE_OPTIONS_INIT, .format = c->file->format,
                                            .pretty = is_pretty, .inline_below = INT64_MAX};
    PEG_CLEANUP(peg__freep) char *text = NULL;
    size_t len = 0;
    const peg_status status = peg_turn_write(turn, &options, &text, &len, c->reterr);

    if (!status)
        *ret_same = peg__str_eq(without_line_end(peg__strn(text, len)),
                                without_line_end(peg__buf_view(&c->file->text)));
    return status;
}

static peg_status compare_values(const struct checking *c, const peg_turn *turn)
{
    const peg_turn_write_options options = {PEG_TURN_WRITE_OPTIONS_INIT, .inline_below = INT64_MAX};
    peg_json_doc *written = NULL;
    const peg_status status = peg_turn_to_json(turn, &options, &written, c->reterr);

    if (status)
        return status;
    if (!*c->at && peg_json_equal(c->root, peg_json_root(written))) {
        c->findings->rewrite = TURN_REWRITE_LAYOUT;
    } else {
        c->findings->rewrite = TURN_REWRITE_CONTENT;
        find_difference(c, peg_json_root(written));
    }
    peg_json_doc_free(written);
    return PEG_OK;
}

static peg_status compare_turn(const struct checking *c, const peg_turn *turn)
{
    bool is_same_text = false;
    peg_status status = compare_bytes(c, turn, false, &is_same_text);

    if (!status && !is_same_text && c->file->format == PEG_FORMAT_JSON)
        status = compare_bytes(c, turn, true, &is_same_text);
    if (!status && !is_same_text)
        status = compare_values(c, turn);
    if (status != PEG_ELIMIT)
        return status;
    /* It can be read, but what is written of it could not. */
    c->findings->rewrite = TURN_REWRITE_CONTENT;
    turn_found(c->findings, true, c->reterr);
    return PEG_OK;
}

/* Sets `rewrite` and `rewritten`; what cannot be written is a finding. PEG_ENOMEM. */
static peg_status check_rewriting(const struct checking *c)
{
    const peg_turn_read_options options = {PEG_TURN_READ_OPTIONS_INIT, .format = c->file->format,
                                           .max_bytes = c->file->text.max};
    peg_turn *turn = NULL;
    peg_status status;

    if (!c->file->bytes)
        return compare_turn(c, c->turn);
    /* A turn that does not know where its bytes are: references stay what they are, whatever is
     * behind them. */
    status = peg_turn_read(peg__buf_view(&c->file->text), &options, &turn, c->reterr);
    if (!status)
        status = compare_turn(c, turn);
    peg_turn_free(turn);
    return status;
}

/* ---- all of it -------------------------------------------------------------------------- */

static peg_status parse_turn_file(struct checking *c)
{
    const peg_json_options limits = {PEG_JSON_OPTIONS_INIT, .max_bytes = c->file->text.max};
    const peg_str text = peg__buf_view(&c->file->text);
    const peg_json *inner;
    const peg_status status = c->file->format == PEG_FORMAT_JSON
                                  ? peg_json_parse(text, &limits, &c->doc, c->reterr)
                                  : peg_yaml_parse(text, &limits, &c->doc, c->reterr);

    if (status)
        return status;
    c->root = peg_json_root(c->doc);
    inner = peg_json_get(c->root, "turn");
    if (inner && inner->kind == PEG_JSON_OBJECT && !peg_json_get(c->root, "blocks")) {
        c->root = inner;
        c->at = "/turn";
    }
    return PEG_OK;
}

static peg_status check_all(struct checking *c)
{
    peg_status status = parse_turn_file(c);

    for (size_t i = 0; !status && i < peg_turn_len(c->turn); i++)
        status = check_block(c, i);
    if (status ||
        (status = check_bag(c, PEG_BAG_METADATA, peg_turn_metadata(c->turn), "/metadata")) ||
        (status = check_bag(c, PEG_BAG_DATA, peg_turn_data(c->turn), "/data")) ||
        (status = check_config(c)) || (status = check_definitions(c)) ||
        (status = check_strictly(c)))
        return status;
    return check_rewriting(c);
}

static bool stands_before(const peg_error *a, const peg_error *b)
{
    return a->line != b->line ? a->line < b->line : a->column < b->column;
}

/* In the order of the text; what has no place comes first. */
static void sort_findings(struct turn_findings *findings)
{
    for (size_t i = 1; i < findings->n; i++) {
        const struct turn_finding finding = findings->items[i];
        size_t to = i;

        for (; to && stands_before(&finding.error, &findings->items[to - 1].error); to--)
            findings->items[to] = findings->items[to - 1];
        findings->items[to] = finding;
    }
}

peg_status turn_check(const struct turn_file *file, struct turn_findings *findings,
                      peg_error *reterr)
{
    struct checking c = {.file = file,
                         .turn = file->turn,
                         .findings = findings,
                         .reterr = reterr,
                         .at = "",
                         .call_ids = PEG__MAP(PEG_LIMIT_TURN_BLOCKS),
                         .calls = PEG__MAP(PEG_LIMIT_TURN_BLOCKS),
                         .answered = PEG__MAP(PEG_LIMIT_TURN_BLOCKS)};
    const peg_status status = check_all(&c);

    sort_findings(findings);
    peg__map_free(&c.call_ids);
    peg__map_free(&c.calls);
    peg__map_free(&c.answered);
    peg_json_doc_free(c.doc);
    return status;
}
