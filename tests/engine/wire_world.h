/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_ENGINE_WIRE_WORLD_H
#define PEG_TESTS_ENGINE_WIRE_WORLD_H

/*
 * A protocol without a network: what would be sent for a turn, and what becomes of the bytes that
 * come back.
 *
 *   struct ask a = ask_new(&peg__wire_gemini, "gemini-2.5-pro");
 *   t_text(&a.t, PEG_BLOCK_USER, "u1", "hello");
 *   CHECK_BODY(&a, "{...}");
 *   ask_free(&a);
 *
 *   struct answer h = answer_new(&peg__wire_gemini);
 *   answer_events(&h, "{...}", "{...}");
 *   CHECK_BLOCKS(&h, "text:Hello call:c1,add,{} ");
 *   answer_free(&h);
 */

#include "../t.h"
#include "turns.h"

#include "base/buf.h"
#include "engine/engine.h"
#include "engine/reply.h"
#include "engine/transport/transport.h"

/* ---- requests ---------------------------------------------------------------------------- */

struct ask {
    const struct peg__wire *wire;
    struct t_turn t;
    peg_model_options options;
    peg_tool_config config;
    peg_json_doc *definitions; /* NULL: no tools */
    bool is_streaming;
    struct peg__buf body;
};

static inline struct ask ask_new(const struct peg__wire *wire, const char *model)
{
    struct ask a = {.wire = wire, .t = t_turn_new(), .options = {PEG_MODEL_OPTIONS_INIT}};

    a.options.model = model;
    a.options.results = PEG_RESULTS_PLAIN;
    a.config = peg_tool_config_default();
    a.body.max = 1 << 24;
    return a;
}

static inline void ask_free(struct ask *a)
{
    t_turn_free(&a->t);
    peg_json_doc_free(a->definitions);
    peg__buf_free(&a->body);
}

/* Definitions as a turn holds them. */
static inline void ask_offer(struct ask *a, const char *definitions)
{
    if (!a->t.status)
        a->t.status = peg_json_parse(peg_cstr(definitions), NULL, &a->definitions, &a->t.error);
}

/* A block with a payload (JSON text, NULL: none) and a signature of Gemini's (NULL: none). */
static inline void t_sealed(struct t_turn *t, peg_block_def def, const char *payload,
                            const char *signature)
{
    peg_json_doc *doc = NULL;
    peg_bag *bag = NULL;

    if (payload && !t->status)
        t->status = peg_json_parse(peg_cstr(payload), NULL, &doc, &t->error);
    if (signature && !t->status) {
        peg_json_builder *b = peg_json_builder_new();

        peg_json_add_string(b, peg_cstr(signature));
        t->status = peg_bag_with_built(NULL, &peg_key_gemini_thought, b, &bag, &t->error);
    }
    def.payload = doc ? peg_json_root(doc) : NULL;
    def.metadata = bag;
    t_block(t, &def);
    peg_bag_unref(bag);
    peg_json_doc_free(doc);
}

static inline peg_status ask_write(struct ask *a)
{
    const peg_definitions_options of_names = {PEG_DEFINITIONS_OPTIONS_INIT,
                                              .vendor = a->wire->vendor};
    struct peg__request request = {.options = &a->options,
                                   .turn = a->t.turn,
                                   .config = &a->config,
                                   .is_streaming = a->is_streaming};
    struct peg__history history = {0};
    struct peg__names *names = NULL;
    peg_status status = a->t.status;

    request.definitions = a->definitions ? peg_json_root(a->definitions) : NULL;
    request.history = &history;
    peg__buf_clear(&a->body);
    if (!status)
        status = peg__names_new(request.definitions, a->t.turn, &of_names, &names, &a->t.error);
    request.names = names;
    if (!status)
        status = peg__history_make(a->t.turn, a->options.unanswered, &history, &a->t.error);
    if (!status)
        status = peg__wire_write_body(a->wire, &request, &a->body, &a->t.error);
    if (!status)
        status = a->body.status;
    peg__history_free(&history);
    peg__names_free(names);
    return status;
}

/* The body is what it should be, and JSON. */
#define CHECK_BODY(a, expected)                                                                    \
    do {                                                                                           \
        peg_json_doc *t_doc = NULL;                                                                \
        CHECK_STATUS(ask_write(a), PEG_OK, (a)->t.error);                                          \
        CHECK_STR(peg__buf_view(&(a)->body), expected);                                            \
        CHECK_STATUS(peg_json_parse(peg__buf_view(&(a)->body), NULL, &t_doc, &(a)->t.error),       \
                     PEG_OK, (a)->t.error);                                                        \
        peg_json_doc_free(t_doc);                                                                  \
    } while (0)

static inline bool ask_has(const struct ask *a, const char *words)
{
    return a->body.ptr && strstr(a->body.ptr, words);
}

/* ---- replies ----------------------------------------------------------------------------- */

struct answer {
    const struct peg__wire *wire;
    struct t_turn t;
    struct peg__reply reply;
    bool is_end;
    peg_status status;
    peg_error error;
    char blocks[4096]; /* what became of it */
};

static inline struct answer answer_new(const struct peg__wire *wire)
{
    struct answer h = {.wire = wire, .t = t_turn_new()};
    const struct peg__reply_def def = {.turn = h.t.turn, .vendor = wire->vendor, .model = "asked"};

    h.status = h.t.status;
    peg__reply_init(&h.reply, &def);
    return h;
}

static inline void answer_free(struct answer *h)
{
    peg__reply_free(&h->reply);
    t_turn_free(&h->t);
}

static inline peg_status answer_event(peg_str name, peg_str data, void *user, peg_error *reterr)
{
    struct answer *h = user;

    return peg__wire_read_event(h->wire, &h->reply, name, data, &h->is_end, reterr);
}

static inline void answer_list(struct answer *h, const char *const *events)
{
    for (; *events && !h->status; events++)
        h->status = answer_event(peg_cstr("message"), peg_cstr(*events), h, &h->error);
}
#define answer_events(h, ...) answer_list(h, (const char *const[]){__VA_ARGS__, NULL})

static inline void answer_body(struct answer *h, const char *body)
{
    if (!h->status)
        h->status = peg__wire_read_body(h->wire, &h->reply, peg_cstr(body), &h->error);
}

/* The bytes of a stream, with a cut after the first n. */
static inline void answer_stream(struct answer *h, peg_str bytes, size_t n)
{
    struct peg__sse sse;

    peg__sse_init(&sse, 1 << 20);
    if (!h->status)
        h->status = peg__sse_feed(&sse, peg__strn(bytes.ptr, n), answer_event, h, &h->error);
    if (!h->status)
        h->status = peg__sse_feed(&sse, peg__str_from(bytes, n), answer_event, h, &h->error);
    if (!h->status)
        h->status = peg__sse_end(&sse, answer_event, h, &h->error);
    peg__sse_free(&sse);
}

static inline void describe_block(struct answer *h, const peg_block *block)
{
    const size_t len = strlen(h->blocks);
    char *end = h->blocks + len;
    const size_t left = sizeof(h->blocks) - len;

    switch (peg_block_kind_of(block)) {
    case PEG_BLOCK_CALL:
        snprintf(end, left, "call:%.*s,%.*s,%.*s ", PEG_ARG(peg_block_call_id(block)),
                 PEG_ARG(peg_block_tool(block)), PEG_ARG(peg_block_args(block)));
        break;
    case PEG_BLOCK_REASONING:
        snprintf(end, left, "thought:%.*s ", PEG_ARG(peg_block_text(block)));
        break;
    default:
        snprintf(end, left, "text:%.*s ", PEG_ARG(peg_block_text(block)));
    }
}

static inline void answer_finish(struct answer *h, bool is_whole)
{
    peg_error error;
    const peg_status status = peg__reply_finish(&h->reply, is_whole, &error);

    if (!h->status && status) {
        h->status = status;
        h->error = error;
    }
    h->blocks[0] = '\0';
    for (size_t i = 0; i < peg_turn_len(h->t.turn); i++)
        describe_block(h, peg_turn_at(h->t.turn, i));
}

/* It was read well, and this is what the turn has now. */
#define CHECK_BLOCKS(h, expected)                                                                  \
    do {                                                                                           \
        CHECK_STATUS((h)->status, PEG_OK, (h)->error);                                             \
        answer_finish(h, (h)->reply.is_ended);                                                     \
        CHECK_STATUS((h)->status, PEG_OK, (h)->error);                                             \
        CHECK_STR(peg_cstr((h)->blocks), expected);                                                \
    } while (0)

/* A member of the turn's inference result, as JSON; "" if there is none. */
static inline void answer_result(const struct answer *h, const char *name, char *ret_text,
                                 size_t size)
{
    const peg_json *result = NULL;
    const peg_json *value;
    char *text = NULL;

    ret_text[0] = '\0';
    if (peg_turn_get(h->t.turn, &peg_key_inference_result, &result, NULL) || !result ||
        !(value = peg_json_get(result, name)) ||
        peg_json_write(value, PEG_JSON_COMPACT, &text, NULL, NULL))
        return;
    snprintf(ret_text, size, "%s", text);
    peg_free(text);
}

#define CHECK_RESULT(h, name, expected)                                                            \
    do {                                                                                           \
        char t_text[1024];                                                                         \
        answer_result(h, name, t_text, sizeof(t_text));                                            \
        CHECK_STR(peg_cstr(t_text), expected);                                                     \
    } while (0)

/* One event or body that is refused, and leaves the turn as it was. */
static inline void check_refused(const struct peg__wire *wire, const char *text, bool is_body)
{
    struct answer h = answer_new(wire);

    if (is_body)
        answer_body(&h, text);
    else
        answer_events(&h, text);

    if (h.status != PEG_EPARSE || strcmp(h.error.code, "E_ENGINE_REPLY") != 0)
        T_FAIL("%s gave %d (%s)", text, (int)h.status, h.status ? h.error.message : "");
    CHECK_INT(peg_turn_len(h.t.turn), 0);
    answer_free(&h);
}

#endif
