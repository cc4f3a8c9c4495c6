/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_VENDORS_INTERNAL_H
#define PEG_ENGINE_VENDORS_INTERNAL_H

/*
 * What the vendors' protocols share: the skeleton of a request (request.c), reading JSON that a
 * vendor sent (read.c), and OpenAI's models, data URLs and slots (openai.c).
 */

#include "engine/engine.h"
#include "engine/reply.h"
#include "json/json.h"

/* ---- requests --------------------------------------------------------------------------- */

enum peg__role { PEG__NO_ROLE, PEG__SYSTEM, PEG__USER, PEG__MODEL };

/* A request while it is written. */
struct peg__writer {
    const struct peg__request *request;
    const struct peg__format *format;
    struct peg__out out;
    enum peg__role role;      /* whose message is open */
    struct peg__buf thoughts; /* of the model, which wait for what they led to */
    bool starts_with_thought; /* the model's last message */
    bool answers_calls;       /* the user's last message */
    peg_error *reterr;
};

/* What a vendor's requests have of their own. Functions that may be NULL say so. */
struct peg__format {
    const char *list;       /* the member that has the messages */
    const char *parts;      /* the member of a message that has its parts */
    const char *model_role; /* what the model is called */
    bool is_alternating;   /* the user and the model take turns, the user first; the system apart */
    bool has_string_parts; /* a message of text alone has a string for its parts */
    bool trims_model;      /* text of the model may not end with white space */
    bool has_media_results; /* put_result() writes the media of a result, too */
    const struct peg__media_rules *media;
    const struct peg__media_rules *images; /* NULL: as media */
    const char *text_type;                 /* the "type" of a text part; NULL: put_text() */
    bool has_model;                        /* "model" is a member */
    /* Members before the messages. The first n passages are the system's, if it stands apart. NULL:
     * none. */
    peg_status (*write_head)(struct peg__writer *w, size_t n);
    /* Parts. */
    void (*put_text)(struct peg__writer *w, peg_str text, const peg_block *block);
    peg_status (*put_media)(struct peg__writer *w, const peg_media *media, enum peg__media_way way);
    /* Passage i, a thought or a message of the model's. NULL: left out; as a user's. */
    void (*put_thought)(struct peg__writer *w, size_t i);
    peg_status (*put_assistant)(struct peg__writer *w, size_t i);
    /* Opens an object and in it an array of the calls of round i. NULL: they are no array. */
    void (*begin_calls)(struct peg__writer *w, size_t i);
    void (*put_call)(struct peg__writer *w, const struct peg__exchange *exchange, peg_str args,
                     bool is_first);
    peg_status (*put_result)(struct peg__writer *w, const struct peg__exchange *exchange,
                             peg_str text);
    /* Behind the tools, if any are offered. */
    void (*put_choice)(struct peg__writer *w);
    void (*put_settings)(struct peg__writer *w);
};

extern const struct peg__format peg__chat_format;
extern const struct peg__format peg__responses_format;
extern const struct peg__format peg__anthropic_format;
extern const struct peg__format peg__gemini_format;

/* A part. `block`: the text is its own; NULL: it is not. */
void peg__put_text_part(struct peg__writer *w, peg_str text, const peg_block *block);
/* Opens a message of a role, unless one is open, with the thoughts that wait. */
void peg__speak_as(struct peg__writer *w, enum peg__role role);
/* A message that is text alone, with a string for its parts. */
void peg__put_string_message(struct peg__writer *w, enum peg__role role, peg_str text);
/* What the model itself said: text, and its media in text. */
peg_status peg__spoken_text(const peg_block *block, struct peg__buf *out, peg_error *reterr);
enum peg__media_way peg__choose_media(const struct peg__writer *w, const peg_media *media);
/* A member: the bytes of media in base 64. */
peg_status peg__put_base64(struct peg__writer *w, const char *name, const peg_media *media);
/* Whether the model has to call a tool: it was asked to, and no result has come since the user last
 * spoke. */
bool peg__must_call(const struct peg__request *request);
/* A member of a block's payload that is a string; else ptr is NULL. */
peg_str peg__payload_string(const peg_block *block, const char *name);
/* What we call a tool, as the vendor calls it. */
void peg__put_tool_name(struct peg__writer *w, const struct peg__exchange *exchange);
/* A failure of a buffer that was written on the side is one of the request. */
void peg__take_status(struct peg__writer *w, const struct peg__buf *buf);
/* A member with the stop sequences, if there are any. */
void peg__put_stop(struct peg__writer *w, const char *name);

static inline void peg__put_integer(struct peg__writer *w, const char *name, int64_t number)
{
    peg__out_key(&w->out, name);
    peg__out_integer(&w->out, number);
}

static inline void peg__put_true(struct peg__writer *w, const char *name)
{
    peg__out_key(&w->out, name);
    peg__out_bool(&w->out, true);
}

/* NULL: nothing. */
static inline void peg__put_double(struct peg__writer *w, const char *name, const double *number)
{
    if (!number)
        return;
    peg__out_key(&w->out, name);
    peg__out_double(&w->out, *number);
}

static inline void peg__open_object(struct peg__writer *w, const char *name)
{
    peg__out_key(&w->out, name);
    peg__out_object(&w->out);
}

static inline void peg__open_array(struct peg__writer *w, const char *name)
{
    peg__out_key(&w->out, name);
    peg__out_array(&w->out);
}

/* An object of a "type", which stays open. */
static inline void peg__open_typed(struct peg__writer *w, const char *type)
{
    peg__out_object(&w->out);
    peg__out_cmember(&w->out, "type", type);
}

/* ---- payloads that go back as they came ---------------------------------------------------- */

/*
 * Of a thought:  Anthropic   "signature", "redacted_data"
 *                Responses   "item_id", "encrypted_content", "summary" (a list)
 *                Chat        "wire_field", the member that it came in: one of these
 * Of a message or a call:
 *                Responses   "item_id"
 */
enum { PEG__CHAT_THOUGHT_FIELDS = 2 };
extern const char *const peg__chat_thought_fields[PEG__CHAT_THOUGHT_FIELDS];

/* ---- OpenAI ----------------------------------------------------------------------------- */

/* A model that thinks first, by its name (o1, o3, o4, gpt-5, also behind "openai/"): it takes no
 * sampling parameters. */
bool peg__openai_reasons(const char *model);
/* One that is known not to think: it refuses to be asked for sealed thoughts. */
bool peg__openai_never_reasons(const char *model);

/* Members tool_choice and parallel_tool_calls. */
void peg__openai_put_choice(struct peg__writer *w);
/* Members temperature and top_p, for models that take them. */
void peg__openai_put_sampling(struct peg__writer *w);
/* A member: "data:image/png;base64,...". */
peg_status peg__openai_put_data_url(struct peg__writer *w, const char *name,
                                    const peg_media *media);
/* Members "filename" and "file_data". */
peg_status peg__openai_put_file_data(struct peg__writer *w, const peg_media *media);

/* A member that is an index; -1 if it is missing or null. Anything else fails the reply. */
int64_t peg__openai_index(struct peg__reply *reply, const peg_json *object, const char *name);

/*
 * Which part a fragment belongs to. Fragments name their part by an index, by an id, or by both;
 * servers leave out the one or the other, and some give several parts one index.
 *
 * A value; what it points to is in the reply's arena.
 */
struct peg__slots {
    struct peg__slot *items;
    size_t n;
    size_t capacity;
};
enum peg__slots_rule {
    PEG__SLOTS_BY_BOTH,  /* another id under one index is another part */
    PEG__SLOTS_BY_INDEX, /* an index decides; the id counts only where there is none */
};
/* The rank of the part among its kind: its index if that is free. index -1: none; id empty: none.
 * With neither it is the last one. PEG_EPARSE sticks to the reply beyond PEG_LIMIT_REPLY_SLOTS;
 * 0 then. */
uint32_t peg__slots_rank(struct peg__slots *slots, struct peg__reply *reply,
                         enum peg__slots_rule rule, int64_t index, peg_str id);
/* Whether the part of a rank was marked before; it is from now on. */
bool peg__slots_mark(struct peg__slots *slots, uint32_t rank);

/* ---- replies ---------------------------------------------------------------------------- */

/* A member that is missing or null is not there; one of another type than it has to be fails the
 * reply (E_ENGINE_REPLY). NULL, or ptr NULL: not there, or the reply has failed. */
const peg_json *peg__read_object(struct peg__reply *reply, const peg_json *object,
                                 const char *name);
const peg_json *peg__read_array(struct peg__reply *reply, const peg_json *object, const char *name);
peg_str peg__read_string(struct peg__reply *reply, const peg_json *object, const char *name);
/* An item of an array, which has to be an object: `what` names it. */
bool peg__read_is_object(struct peg__reply *reply, const peg_json *item, const char *what);

/* Whether a member is a certain string. */
bool peg__member_is(const peg_json *object, const char *name, const char *text);
/* Whether a member is there and not null. */
bool peg__has_member(const peg_json *object, const char *name);

#endif
