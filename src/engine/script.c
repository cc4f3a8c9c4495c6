/* SPDX-License-Identifier: Apache-2.0 */

/* A script is a checked document; its steps are read again each time that one is played. */

#include "pegboard/script.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "engine/reply.h"
#include "pegboard/schema.h"
#include "pegboard/yaml.h"
#include "json/json.h"

struct peg_script {
    atomic_uint n_refs;
    peg_json_doc *doc;
    const peg_json **steps; /* of the document */
    size_t n_steps;
};

/* ---- codes that a step may fail with ------------------------------------------------- */

/* An error's code outlives the script, so it is one of ours. */
static const struct failure {
    const char *code;
    peg_status status;
} failures[] = {
    {"E_ENGINE_FAILED", PEG_EHOST},       {"E_ENGINE_AUTH", PEG_EHOST},
    {"E_ENGINE_RATE_LIMITED", PEG_EHOST}, {"E_ENGINE_OVERLOADED", PEG_EHOST},
    {"E_ENGINE_REQUEST", PEG_EHOST},      {"E_ENGINE_TRANSPORT", PEG_EIO},
    {"E_ENGINE_TIMEOUT", PEG_ETIMEOUT},   {"E_ENGINE_REPLY", PEG_EPARSE},
    {"E_ENGINE_TOO_LARGE", PEG_ELIMIT},
};

static const char schema_text[] =
    "{\"$defs\":{"
    " \"name\":{\"type\":\"string\"},\"id\":{\"type\":\"string\",\"minLength\":1},\"args\":{},"
    " \"count\":{\"type\":\"integer\",\"minimum\":0},"
    " \"call\":{\"type\":\"object\",\"required\":[\"name\"],\"additionalProperties\":false,"
    "  \"properties\":{\"name\":{\"$ref\":\"#/$defs/name\"},\"id\":{\"$ref\":\"#/$defs/id\"},"
    "   \"args\":{}}},"
    " \"part\":{\"type\":\"object\",\"minProperties\":1,\"additionalProperties\":false,"
    "  \"properties\":{\"name\":{\"$ref\":\"#/$defs/name\"},\"id\":{\"$ref\":\"#/$defs/id\"},"
    "   \"args\":{},\"text\":{\"type\":\"string\"},\"reasoning\":{\"type\":\"string\"}},"
    "  \"oneOf\":[{\"required\":[\"name\"]},{\"required\":[\"text\"]},"
    "   {\"required\":[\"reasoning\"]}]}},"
    " \"type\":\"array\",\"items\":{\"type\":\"object\",\"additionalProperties\":false,"
    "  \"properties\":{\"text\":{\"type\":\"string\"},\"reasoning\":{\"type\":\"string\"},"
    "   \"model\":{\"type\":\"string\"},\"stop_reason\":{\"type\":\"string\"},"
    "   \"stream\":{\"type\":\"integer\",\"minimum\":1},"
    "   \"calls\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/call\"}},"
    "   \"parts\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/part\"}},"
    "   \"usage\":{\"type\":\"object\",\"additionalProperties\":{\"$ref\":\"#/$defs/count\"}},"
    "   \"error\":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
    "    \"message\":{\"type\":\"string\"},\"code\":{\"enum\":[\"E_ENGINE_FAILED\","
    "     \"E_ENGINE_AUTH\",\"E_ENGINE_RATE_LIMITED\",\"E_ENGINE_OVERLOADED\","
    "     \"E_ENGINE_REQUEST\",\"E_ENGINE_TRANSPORT\",\"E_ENGINE_TIMEOUT\",\"E_ENGINE_REPLY\","
    "     \"E_ENGINE_TOO_LARGE\"]}}}}}}";

/* ---- checking ---------------------------------------------------------------------------- */

static peg_status fail_first(const peg_report *report, peg_error *reterr)
{
    const peg_failure *first = peg_report_at(report, 0);
    const peg_status status = peg__fail(reterr, PEG_EPARSE, "E_SCRIPT", "the script: %s",
                                        first ? first->message.ptr : "it is no list of steps");

    if (first)
        peg__error_where(reterr, first->instance);
    return status;
}

static peg_status check_script(const peg_json *root, peg_error *reterr)
{
    peg_schema *schema = NULL;
    peg_checker *checker = NULL;
    peg_report *report = NULL;
    peg_status status = peg_schema_compile(peg_cstr(schema_text), NULL, &schema, reterr);

    if (!status)
        status = peg_checker_new(NULL, &checker, reterr);
    if (!status)
        status = peg_report_new(&report, reterr);
    if (!status) {
        const peg_verdict verdict = peg_schema_report(schema, checker, root, report);

        if (verdict == PEG_INVALID)
            status = fail_first(report, reterr);
        else if (verdict != PEG_VALID)
            status = peg__fail_nomem(reterr);
    }
    peg_report_free(report);
    peg_checker_free(checker);
    peg_schema_unref(schema);
    return status;
}

/* ---- life -------------------------------------------------------------------------------- */

peg_script *peg_script_ref(peg_script *script)
{
    if (script)
        peg__refs_take(&script->n_refs);
    return script;
}

peg_script *peg_script_unref(peg_script *script)
{
    if (!script || !peg__refs_drop(&script->n_refs))
        return NULL;
    peg_json_doc_free(script->doc);
    peg__free(script->steps);
    peg__free(script);
    return NULL;
}

size_t peg_script_len(const peg_script *script)
{
    return script->n_steps;
}

static peg_status list_steps(peg_script *script, const peg_json *root, peg_error *reterr)
{
    const size_t n = peg_json_len(root);

    if (n > PEG_LIMIT_SCRIPT_STEPS)
        return peg__fail(reterr, PEG_ELIMIT, "E_SCRIPT", "a script has at most %d steps",
                         PEG_LIMIT_SCRIPT_STEPS);
    script->steps = peg__alloc((n + 1) * sizeof(*script->steps));
    if (!script->steps)
        return peg__fail_nomem(reterr);
    PEG_JSON_EACH_ITEM (root, step)
        script->steps[script->n_steps++] = step;
    return PEG_OK;
}

/* Takes the document over, also where it fails. */
static peg_status make_script(peg_json_doc *doc, peg_script **ret_script, peg_error *reterr)
{
    peg_script *script = peg__alloc_zero(1, sizeof(*script));
    peg_status status;

    if (!script) {
        peg_json_doc_free(doc);
        return peg__fail_nomem(reterr);
    }
    atomic_init(&script->n_refs, 1);
    script->doc = doc;
    status = check_script(peg_json_root(doc), reterr);
    if (!status)
        status = list_steps(script, peg_json_root(doc), reterr);
    if (status) {
        peg_script_unref(script);
        return status;
    }
    *ret_script = script;
    return PEG_OK;
}

peg_status peg_script_new(peg_str text, peg_script **ret_script, peg_error *reterr)
{
    peg_json_doc *doc = NULL;
    peg_error error;
    peg_status status = peg_json_parse(text, NULL, &doc, &error);

    if (status == PEG_EPARSE)
        status = peg_yaml_parse(text, NULL, &doc, &error);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status) {
        peg__fail_because(reterr, status, "E_SCRIPT", &error, "the script cannot be read");
        if (reterr) {
            reterr->offset = error.offset;
            reterr->line = error.line;
            reterr->column = error.column;
        }
        return status;
    }
    return make_script(doc, ret_script, reterr);
}

/* ---- from a turn ---------------------------------------------------------------------------- */

/* Steps while they are written. */
struct writing {
    peg_json_builder *b;
    uint32_t n;       /* steps begun; the last one is open */
    bool is_answered; /* what comes without a number begins a step */
};

static void end_step(struct writing *w)
{
    if (!w->n)
        return;
    peg_json_close(w->b);
    peg_json_close(w->b);
}

static void copy_known(struct writing *w, const peg_json *result, const char *name,
                       peg_json_kind kind)
{
    const peg_json *value = result ? peg_json_get(result, name) : NULL;

    if (!value || peg_json_kind_of(value) != kind)
        return;
    peg_json_add_key(w->b, peg_cstr(name));
    peg_json_add_copy(w->b, value);
}

/* Up to this one: an inference that left no block is an empty step. */
static void begin_steps(struct writing *w, uint32_t number, const peg_json *result)
{
    while (w->n < number) {
        const peg_json *known = w->n + 1 == number ? result : NULL;

        end_step(w);
        w->n++;
        peg_json_open_object(w->b);
        copy_known(w, known, "model", PEG_JSON_STRING);
        copy_known(w, known, "stop_reason", PEG_JSON_STRING);
        copy_known(w, known, "usage", PEG_JSON_OBJECT);
        peg_json_add_key(w->b, peg_cstr("parts"));
        peg_json_open_array(w->b);
    }
}

static void write_part_string(struct writing *w, const char *name, peg_str value)
{
    peg_json_add_key(w->b, peg_cstr(name));
    peg_json_add_string(w->b, value);
}

/* Arguments that are no JSON stay the text that they are; so does JSON, byte by byte. */
static void write_part(struct writing *w, const peg_block *block)
{
    const peg_block_kind kind = peg_block_kind_of(block);

    if (kind != PEG_BLOCK_CALL && !peg_block_text(block).len)
        return;
    peg_json_open_object(w->b);
    if (kind == PEG_BLOCK_CALL) {
        write_part_string(w, "name", peg_block_tool(block));
        write_part_string(w, "id", peg_block_call_id(block));
        write_part_string(w, "args", peg_block_args(block));
    } else {
        write_part_string(w, kind == PEG_BLOCK_REASONING ? "reasoning" : "text",
                          peg_block_text(block));
    }
    peg_json_close(w->b);
}

static void write_block(struct writing *w, const peg_block *block)
{
    const unsigned said = PEG_BLOCKS(PEG_BLOCK_ASSISTANT) | PEG_BLOCKS(PEG_BLOCK_REASONING) |
                          PEG_BLOCKS(PEG_BLOCK_CALL);
    const unsigned answers = PEG_BLOCKS(PEG_BLOCK_USER) | PEG_BLOCKS(PEG_BLOCK_RESULT);
    const unsigned kind = PEG_BLOCKS(peg_block_kind_of(block));
    const peg_json *result =
        peg_bag_find(peg_block_metadata(block), peg_cstr(peg_key_block_inference.id));
    uint32_t number = peg__reply_sequence(result);

    if (kind & answers)
        w->is_answered = true;
    if (!(kind & said))
        return;
    if (!number)
        number = w->is_answered ? w->n + 1 : w->n;
    w->is_answered = false;
    begin_steps(w, number, result);
    write_part(w, block);
}

peg_status peg_script_from_turn(const peg_turn *turn, peg_script **ret_script, peg_error *reterr)
{
    const uint32_t n_inferences = peg__reply_n_inferences(turn);
    struct writing w = {.b = NULL, .is_answered = true};
    peg_json_doc *doc;
    peg_status status;

    if (n_inferences > PEG_LIMIT_SCRIPT_STEPS)
        return peg__fail(reterr, PEG_ELIMIT, "E_SCRIPT", "a script has at most %d steps",
                         PEG_LIMIT_SCRIPT_STEPS);
    w.b = peg_json_builder_new();
    peg_json_open_array(w.b);
    for (size_t i = 0; i < peg_turn_len(turn); i++)
        write_block(&w, peg_turn_at(turn, i));
    begin_steps(&w, n_inferences, NULL);
    end_step(&w);
    peg_json_close(w.b);
    status = peg_json_builder_finish(w.b, &doc, reterr);
    return status ? status : make_script(doc, ret_script, reterr);
}

/* ---- playing a step ---------------------------------------------------------------------- */

/* One step while it is played. */
struct playback {
    struct peg__reply *reply;
    const peg_json *step;
    uint32_t number; /* from 1 */
    uint32_t rank;   /* of the next part */
    uint32_t n_calls;
    size_t piece; /* bytes; SIZE_MAX: all at once */
};

static void add_pieces(struct playback *s, struct peg__part *part, peg_str text)
{
    while (text.len) {
        size_t n = text.len <= s->piece ? text.len : peg__utf8_cut(text.ptr, s->piece);

        if (!n) /* a piece has one character at least */
            for (n = 1; n < text.len && peg__utf8_is_tail(text.ptr[n]);)
                n++;
        peg__part_add(s->reply, part, peg__strn(text.ptr, n));
        text = peg__str_from(text, n);
    }
}

static void play_text(struct playback *s, const peg_json *text, enum peg__part_kind kind)
{
    if (text)
        add_pieces(s, peg__reply_part(s->reply, s->rank++, kind), peg_json_str(text));
}

static void play_args(struct playback *s, struct peg__part *part, const peg_json *args)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    if (args && args->kind == PEG_JSON_STRING) {
        add_pieces(s, part, peg_json_str(args));
        return;
    }
    if (args)
        peg__json_write(args, PEG_JSON_COMPACT, &text);
    else
        peg__buf_puts(&text, "{}");
    if (text.status)
        peg__reply_nomem(s->reply);
    else
        add_pieces(s, part, peg__buf_view(&text));
    peg__buf_free(&text);
}

static void play_call(struct playback *s, const peg_json *call)
{
    struct peg__part *part = peg__reply_part(s->reply, s->rank++, PEG__PART_CALL);
    const peg_json *id = peg_json_get(call, "id");
    char ours[48];

    snprintf(ours, sizeof(ours), "call_%u_%u", (unsigned)s->number, (unsigned)++s->n_calls);
    peg__part_set_call_id(s->reply, part, id ? peg_json_str(id) : peg_cstr(ours));
    peg__part_add_name(s->reply, part, peg_json_str(peg_json_get(call, "name")));
    play_args(s, part, peg_json_get(call, "args"));
}

static void play_part(struct playback *s, const peg_json *part)
{
    play_text(s, peg_json_get(part, "reasoning"), PEG__PART_THOUGHT);
    play_text(s, peg_json_get(part, "text"), PEG__PART_TEXT);
    if (peg_json_get(part, "name"))
        play_call(s, part);
}

static void play_result(struct playback *s)
{
    const peg_json *model = peg_json_get(s->step, "model");
    const peg_json *reason = peg_json_get(s->step, "stop_reason");
    const peg_json *usage = peg_json_get(s->step, "usage");
    struct peg__usage *counts = &s->reply->usage;
    const char *otherwise = peg__reply_has_calls(s->reply) ? "tool_calls" : "stop";

    if (model)
        peg__reply_set(s->reply, &s->reply->model, peg_json_str(model));
    peg__reply_set(s->reply, &s->reply->stop_reason,
                   reason ? peg_json_str(reason) : peg_cstr(otherwise));
    peg__reply_count(&counts->input_tokens, usage, "input_tokens");
    peg__reply_count(&counts->output_tokens, usage, "output_tokens");
    peg__reply_count(&counts->cached_tokens, usage, "cached_tokens");
    peg__reply_count(&counts->cache_creation_tokens, usage, "cache_creation_input_tokens");
    peg__reply_count(&counts->cache_read_tokens, usage, "cache_read_input_tokens");
    peg__reply_count(&counts->reasoning_tokens, usage, "reasoning_tokens");
}

static void play_step(struct playback *s)
{
    const peg_json *stream = peg_json_get(s->step, "stream");
    const peg_json *calls = peg_json_get(s->step, "calls");
    const peg_json *parts = peg_json_get(s->step, "parts");
    int64_t piece;

    s->piece = SIZE_MAX;
    if (stream && peg_json_int64(stream, &piece))
        s->piece = (size_t)piece;
    play_text(s, peg_json_get(s->step, "reasoning"), PEG__PART_THOUGHT);
    play_text(s, peg_json_get(s->step, "text"), PEG__PART_TEXT);
    if (calls)
        PEG_JSON_EACH_ITEM (calls, call)
            play_call(s, call);
    if (parts)
        PEG_JSON_EACH_ITEM (parts, part)
            play_part(s, part);
    play_result(s);
}

static peg_status fail_step(const peg_json *error, peg_error *reterr)
{
    const peg_json *message = peg_json_get(error, "message");
    const peg_json *code = peg_json_get(error, "code");
    const struct failure *failure = failures;

    for (size_t i = 0; code && i < sizeof(failures) / sizeof(failures[0]); i++)
        if (peg__str_is(peg_json_str(code), failures[i].code))
            failure = &failures[i];
    return peg__fail(reterr, failure->status, failure->code, "%s",
                     message ? peg_json_str(message).ptr : "the script fails here");
}

static peg_status follow_script(peg_dispatch *dispatch, void *script, peg_error *reterr)
{
    const peg_script *steps = script;
    const struct peg__reply_def def = {.turn = peg_dispatch_turn(dispatch), .dispatch = dispatch};
    const uint32_t n_seen = peg__reply_n_inferences(def.turn);
    const peg_json *error;
    struct peg__reply reply;
    struct playback playback = {.reply = &reply, .number = n_seen + 1};
    peg_status status;

    if (n_seen >= steps->n_steps)
        return peg__fail(reterr, PEG_ENOTFOUND, "E_SCRIPT_ENDED",
                         "the script has %zu steps, and this would be step %u", steps->n_steps,
                         (unsigned)n_seen + 1);
    playback.step = steps->steps[n_seen];
    error = peg_json_get(playback.step, "error");
    peg__reply_init(&reply, &def);
    reply.vendor = "script";
    play_step(&playback);
    status = peg__reply_finish(&reply, !error, reterr);
    peg__reply_free(&reply);
    return status || !error ? status : fail_step(error, reterr);
}

peg_engine peg_script_engine(peg_script *script)
{
    return (peg_engine){follow_script, script};
}
