/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_FUZZ_WIRE_H
#define PEG_FUZZ_WIRE_H

/*
 * Whatever a vendor answers, as a stream or at once: it is read or refused with a reason, a
 * stream that was refused or broke off leaves no call, and what was read can be asked with again.
 */

#include "engine/engine.h"
#include "engine/reply.h"
#include "engine/transport/transport.h"
#include "fuzz.h"

struct fuzz_reply {
    const struct peg__wire *wire;
    peg_turn *turn;
    struct peg__reply reply;
};

static inline void fuzz_reply_init(struct fuzz_reply *f, const struct peg__wire *wire)
{
    struct peg__reply_def def = {.vendor = wire->vendor, .model = "m", .max_bytes = 1 << 20};

    f->wire = wire;
    REQUIRE(peg_turn_new(&f->turn, NULL) == PEG_OK, "turn");
    REQUIRE(peg_turn_add_text(f->turn, PEG_BLOCK_USER, peg_cstr("hello"), NULL) == PEG_OK, "text");
    def.turn = f->turn;
    peg__reply_init(&f->reply, &def);
}

static inline peg_status fuzz_read_event(peg_str name, peg_str data, void *user, peg_error *reterr)
{
    struct fuzz_reply *f = user;
    bool is_end;

    return peg__wire_read_event(f->wire, &f->reply, name, data, &is_end, reterr);
}

/* The turn as it is now is a request. */
static inline void fuzz_ask_again(struct fuzz_reply *f)
{
    const peg_model_options options = {PEG_MODEL_OPTIONS_INIT, .model = "gemini-3",
                                       .results = PEG_RESULTS_PLAIN};
    char *text;
    size_t len;
    peg_error error;

    REQUIRE(peg_engine_render(f->wire->vendor, &options, f->turn, NULL, true, &text, &len,
                              &error) == PEG_OK,
            "%s", error.message);
    peg_json_doc_free(fuzz_parse_own(text, len));
    peg_free(text);
}

static inline void fuzz_reply_end(struct fuzz_reply *f, peg_status status, bool is_whole)
{
    const peg_status finished = peg__reply_finish(&f->reply, !status && is_whole, NULL);

    if (status || !is_whole)
        REQUIRE(peg_turn_count(f->turn, PEG_BLOCKS(PEG_BLOCK_CALL)) == 0, "no call is left");
    else if (finished)
        REQUIRE(peg_turn_len(f->turn) == 1, "all blocks or none");
    fuzz_ask_again(f);
    peg__reply_free(&f->reply);
    peg_turn_free(f->turn);
}

static inline void fuzz_stream(const struct peg__wire *wire, peg_str bytes)
{
    struct fuzz_reply f;
    struct peg__sse sse;
    peg_error error;
    peg_status status;

    fuzz_reply_init(&f, wire);
    peg__sse_init(&sse, 1 << 20);
    status = peg__sse_feed(&sse, bytes, fuzz_read_event, &f, &error);
    if (!status)
        status = peg__sse_end(&sse, fuzz_read_event, &f, &error);
    peg__sse_free(&sse);
    if (status)
        fuzz_check_error(&error, bytes);
    fuzz_reply_end(&f, status, f.reply.is_ended);
}

static inline void fuzz_body(const struct peg__wire *wire, peg_str bytes)
{
    struct fuzz_reply f;
    peg_error error;
    peg_status status;

    fuzz_reply_init(&f, wire);
    status = peg__wire_read_body(wire, &f.reply, bytes, &error);
    if (status)
        fuzz_check_error(&error, bytes);
    fuzz_reply_end(&f, status, true);
}

#endif
