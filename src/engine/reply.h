/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_REPLY_H
#define PEG_ENGINE_REPLY_H

/*
 * What a model answers, while it comes in and when it is whole. A vendor's reader opens parts and
 * adds to them; each addition is reported as an event at once; peg__reply_finish() makes blocks of
 * them, in the order of their ranks, and puts them on the turn.
 *
 * The first failure sticks (reply->status): additions after it do nothing.
 *
 * Lives on a stack. Used by one thread.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/id.h"
#include "engine/dialects/dialects.h"
#include "pegboard/dispatch.h"

enum peg__part_kind { PEG__PART_TEXT, PEG__PART_THOUGHT, PEG__PART_CALL };

/* The last one of a name counts. In the reply's arena, but for the document. */
struct peg__part_member {
    peg_str name;
    peg_json_doc *value;
    struct peg__part_member *next;
};

/* Fields are for reply.c and reply_finish.c. In the reply's arena, but for the buffers, the
 * documents and the bag. */
struct peg__part {
    enum peg__part_kind kind;
    uint32_t rank;
    struct peg__buf text; /* text, or arguments */
    struct peg__buf name; /* of the tool, as the vendor calls it */
    const char *call_id;  /* NULL: none yet */
    size_t n_reported;    /* bytes of text that an event has reported */
    struct peg__part_member *payload;
    peg_bag *metadata;
    char id[PEG_UUID_TEXT]; /* of the events, and of the block that it becomes */
};

struct peg__usage {
    int64_t input_tokens; /* all of these -1: unknown */
    int64_t output_tokens;
    int64_t cached_tokens;         /* OpenAI, Gemini: part of input */
    int64_t cache_creation_tokens; /* Anthropic: beside input */
    int64_t cache_read_tokens;
    int64_t reasoning_tokens; /* part of output */
};

struct peg__reply {
    peg_turn *turn;
    peg_dispatch *dispatch;         /* NULL: no events */
    const struct peg__names *names; /* NULL: names are as they come */
    const peg_json *strict; /* definitions of strict mode; NULL: arguments are as they come */
    const char *vendor;     /* "openai-chat", ... */
    int64_t started_ns;
    struct peg__usage usage;
    peg_status status;
    peg_error error;
    size_t max_bytes;
    void *reader;  /* what the vendor's reader keeps between events, in the arena; NULL at first */
    bool is_ended; /* nothing is missing */
    /* The rest is reply.c's own. */
    struct peg__arena arena;
    struct peg__part **parts;
    size_t n_parts;
    size_t parts_capacity;
    size_t n_bytes;
    const char *model; /* in the arena, as the next three; NULL: unknown */
    const char *stop_reason;
    bool has_refused; /* it declines, whatever the stop reason says */
    const char *response_id;
    const char *request_id;
};

struct peg__reply_def {
    peg_turn *turn;
    peg_dispatch *dispatch; /* may be NULL */
    const struct peg__names *names;
    peg_vendor vendor;
    const char *model;      /* as asked for; what the vendor answers with counts more */
    size_t max_bytes;       /* 0: 64 MiB */
    const peg_json *strict; /* definitions that were sent in strict mode, see dialects.h; or NULL */
};
void peg__reply_init(struct peg__reply *reply, const struct peg__reply_def *def);
void peg__reply_free(struct peg__reply *reply);

/* The part of a rank, opened if there is none; NULL after a failure, which everything below takes.
 * A rank that stands for another kind of part is PEG_EPARSE (E_ENGINE_REPLY). At most 100,000. */
struct peg__part *peg__reply_part(struct peg__reply *reply, uint32_t rank,
                                  enum peg__part_kind kind);
/* Text, text of a thought, or arguments. */
void peg__part_add(struct peg__reply *reply, struct peg__part *part, peg_str delta);
/* In place of what was added: a vendor's final word. Reported only as far as it continues what was
 * reported before. */
void peg__part_set(struct peg__reply *reply, struct peg__part *part, peg_str whole);
/* The same with the text of a JSON value; NULL: {}. */
void peg__part_set_json(struct peg__reply *reply, struct peg__part *part, const peg_json *value);
/* The first that is not empty counts; a call that never gets one gets one of ours. Arguments are
 * reported once the call has an id and a name, at the end otherwise. */
void peg__part_set_call_id(struct peg__reply *reply, struct peg__part *part, peg_str id);
void peg__part_add_name(struct peg__reply *reply, struct peg__part *part, peg_str delta);
/* A member of the block's payload ("signature", "item_id", "summary"); the last one counts. */
void peg__part_payload(struct peg__reply *reply, struct peg__part *part, const char *name,
                       const peg_json *value);
/* A value of the block's metadata. */
void peg__part_metadata(struct peg__reply *reply, struct peg__part *part, const peg_key *key,
                        peg_str string);
bool peg__part_is_empty(const struct peg__part *part);

/* Sets one of its strings (&reply->model, ...). Empty ones count for nothing; else the last one
 * does. */
void peg__reply_set(struct peg__reply *reply, const char **string, peg_str value);
/* A count, if the member is there and is one: takes the value that the vendor names. */
void peg__reply_count(int64_t *count, const peg_json *object, const char *name);
/* Why it cannot be read: PEG_EPARSE (E_ENGINE_REPLY), the message after "the reply of X: ". Returns
 * the first failure, perhaps another one. */
peg_status peg__reply_fail(struct peg__reply *reply, const char *fmt, ...) PEG_PRINTF(2, 3);
void peg__reply_fail_with(struct peg__reply *reply, peg_status status, const peg_error *error);
void peg__reply_nomem(struct peg__reply *reply);
/* What the reply failed with, or PEG_OK. */
peg_status peg__reply_status(const struct peg__reply *reply, peg_error *reterr);

const peg_clock *peg__reply_clock(const struct peg__reply *reply);
/* Reports what was not reported yet. Arguments wait until the call has an id and a name. */
void peg__part_report(struct peg__reply *reply, struct peg__part *part);
/* Our name for the tool of a call. */
peg_str peg__part_tool(const struct peg__reply *reply, const struct peg__part *part);
bool peg__reply_has_content(const struct peg__reply *reply); /* anything at all */
/* At least one call that is not empty. */
bool peg__reply_has_calls(const struct peg__reply *reply);

/*
 * Adds the blocks: thoughts, text, calls with our names for the tools; each with
 * pegboard.inference_result@v1 as metadata, and the turn's own metadata too: {vendor, model,
 * stop_reason, finish_class, truncated, usage{input_tokens, output_tokens, ...}, duration_ms,
 * response_id, request_id, sequence}. What is unknown is left out. Blocks that were there before
 * keep theirs. Empty parts are left out, thoughts with a payload are not empty. Messages and
 * thoughts that were reported are reported as complete; their ids are those of the blocks.
 *
 * is_whole false: it broke off (finish_class "interrupted"). The text that came is kept, no call
 * is. A reply that failed is treated so too, and its failure returned; but without memory, or where
 * the turn refuses, nothing is added.
 */
peg_status peg__reply_finish(struct peg__reply *reply, bool is_whole, peg_error *reterr);

/* How many inferences the turn has seen: the largest `sequence` of its results, on the turn or on a
 * block. Blocks whose result has none, from elsewhere, count as one inference as long as no user
 * and no result stands between them. */
uint32_t peg__reply_n_inferences(const peg_turn *turn);
/* The number of an inference in its result (may be NULL); 0: it has none. */
uint32_t peg__reply_sequence(const peg_json *result);

#endif
