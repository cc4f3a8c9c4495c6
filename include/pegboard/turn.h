/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_TURN_H
#define PEGBOARD_TURN_H

/*
 * A turn: the conversation as a list of blocks. It is the one state of a run; messages, thoughts
 * and tool calls are its blocks by kind.
 *
 *   peg_block  shared, immutable, reference counted; any thread
 *   peg_turn   owned; one thread at a time
 */

#include <pegboard/artifact.h>
#include <pegboard/bag.h>
#include <pegboard/media.h>
#include <pegboard/record.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- blocks ------------------------------------------------------------------- */

typedef enum peg_block_kind {
    PEG_BLOCK_SYSTEM = 0,
    PEG_BLOCK_USER,
    PEG_BLOCK_ASSISTANT,
    PEG_BLOCK_REASONING,
    PEG_BLOCK_CALL,   /* what the model asks for: call id, tool, arguments */
    PEG_BLOCK_RESULT, /* what came of it: a record */
    PEG_BLOCK_OTHER,  /* anything else, told apart by type: "retrieved", "memory", the host's */
} peg_block_kind;

/* Sets of kinds, for views. */
#define PEG_BLOCKS(kind) (1U << (kind))
#define PEG_BLOCKS_ALL 0x7fU
#define PEG_BLOCKS_MESSAGES (PEG_BLOCKS(PEG_BLOCK_USER) | PEG_BLOCKS(PEG_BLOCK_ASSISTANT))
#define PEG_BLOCKS_THOUGHTS PEG_BLOCKS(PEG_BLOCK_REASONING)
#define PEG_BLOCKS_CALLS (PEG_BLOCKS(PEG_BLOCK_CALL) | PEG_BLOCKS(PEG_BLOCK_RESULT))

/* Strings are copied, counted things referenced. What a kind does not use must be empty. */
typedef struct peg_block_def {
    size_t size; /* set by PEG_BLOCK_DEF_INIT */
    peg_block_kind kind;
    peg_str id;              /* unique in its turn; empty: a fresh UUID */
    peg_str type;            /* OTHER: required */
    peg_str text;            /* SYSTEM: required; REASONING, USER, ASSISTANT, OTHER */
    peg_media *const *media; /* USER, ASSISTANT: required without text; OTHER */
    size_t n_media;
    peg_artifact *artifact; /* OTHER: content kept out of the prompt, queried by its handle */
    peg_trust_tier tier;    /* OTHER: required with text, media or artifact */
    peg_str call_id;        /* CALL: the vendor's; empty gets one of ours */
    peg_str tool;           /* CALL: as the model wrote it, perhaps empty */
    peg_str args;           /* CALL: JSON text as the model wrote it, perhaps broken */
    peg_record *record;     /* RESULT: required; its key is the id of its call block */
    int64_t created_ms;     /* 0: now */
    peg_bag *metadata;      /* a PEG_BAG_BLOCK; may be NULL */
    /* Members of an object that only their maker reads, such as the sealed thoughts of a
     * vendor ("encrypted_content", "signature", "item_id"); copied, may be NULL. A thought needs
     * this or text. Names that pegboard itself uses are refused. */
    const peg_json *payload;
} peg_block_def;
#define PEG_BLOCK_DEF_INIT .size = sizeof(peg_block_def)

/* PEG_EINVAL (E_INVALID_BLOCK) and PEG_ELIMIT (E_BLOCK_TOO_LARGE) with the field as `where`;
 * PEG_EIO (E_NO_RANDOMNESS), PEG_ENOMEM. Strings are UTF-8, but args may be anything. */
PEG_API PEG_MUST_USE peg_status peg_block_new(const peg_block_def *def, peg_block **ret_block,
                                              peg_error *reterr);
PEG_API peg_block *peg_block_ref(peg_block *block);
PEG_API peg_block *peg_block_unref(peg_block *block);

/* All borrowed from the block; "" or NULL where the kind has no such thing. */
PEG_API peg_block_kind peg_block_kind_of(const peg_block *block);
PEG_API peg_str peg_block_id(const peg_block *block);
PEG_API peg_str peg_block_type(const peg_block *block);
PEG_API peg_str peg_block_text(const peg_block *block);
PEG_API size_t peg_block_n_media(const peg_block *block);             /* its own, or the record's */
PEG_API peg_media *peg_block_media(const peg_block *block, size_t i); /* NULL beyond the last */
PEG_API peg_artifact *peg_block_artifact(const peg_block *block);     /* OTHER's, or the record's */
PEG_API peg_trust_tier peg_block_tier(const peg_block *block);
PEG_API peg_str peg_block_call_id(const peg_block *block);    /* CALL and RESULT */
PEG_API peg_str peg_block_tool(const peg_block *block);       /* CALL and RESULT */
PEG_API peg_str peg_block_args(const peg_block *block);       /* CALL */
PEG_API peg_record *peg_block_record(const peg_block *block); /* RESULT */
PEG_API int64_t peg_block_created_ms(const peg_block *block); /* 0: not known, read from a file */
PEG_API peg_bag *peg_block_metadata(const peg_block *block);  /* NULL: empty */
PEG_API const peg_json *peg_block_payload(const peg_block *block); /* the object, or NULL */
/* The same block with other metadata, for peg_turn_put(). A new reference. */
PEG_API PEG_MUST_USE peg_status peg_block_with_metadata(peg_block *block, peg_bag *metadata,
                                                        peg_block **ret_block, peg_error *reterr);
PEG_API const char *peg_block_kind_name(peg_block_kind kind); /* "system", ...; static */

/* ---- turns --------------------------------------------------------------------- */

PEG_API PEG_MUST_USE peg_status peg_turn_new(peg_turn **ret_turn, peg_error *reterr);
/* Shares blocks and bags; costs the same however many there are. What is done to one of them, the
 * other does not see. */
PEG_API PEG_MUST_USE peg_status peg_turn_copy(const peg_turn *turn, peg_turn **ret_turn,
                                              peg_error *reterr);
/* A copy to go on with: under a new id, with one more user block unless the prompt is empty. */
PEG_API PEG_MUST_USE peg_status peg_turn_follow(const peg_turn *turn, peg_str prompt,
                                                peg_turn **ret_turn, peg_error *reterr);
PEG_API peg_turn *peg_turn_free(peg_turn *turn);

/* What it is kept under: a UUID from peg_turn_new() on. */
PEG_API peg_str peg_turn_id(const peg_turn *turn);
/* At most 256 bytes of UTF-8, perhaps none; PEG_EINVAL (E_INVALID_ARGUMENT), PEG_ESTATE,
 * PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_turn_set_id(peg_turn *turn, peg_str id, peg_error *reterr);

PEG_API size_t peg_turn_len(const peg_turn *turn);
/* Borrowed from the turn until it changes; NULL beyond the last. */
PEG_API peg_block *peg_turn_at(const peg_turn *turn, size_t i);
PEG_API peg_block *peg_turn_find(const peg_turn *turn, peg_str id); /* or NULL */
/* The first block of these kinds at or after i; peg_turn_len() if there is none. */
PEG_API size_t peg_turn_next(const peg_turn *turn, unsigned kinds, size_t i);
PEG_API size_t peg_turn_count(const peg_turn *turn, unsigned kinds);
/* The last block of these kinds, such as a model's answer; borrowed as above, NULL if there is
 * none.
 */
PEG_API peg_block *peg_turn_last(const peg_turn *turn, unsigned kinds);
/* The first block at or after i whose id the baseline does not have; peg_turn_len() if there is
 * none. baseline may be NULL, which has none. */
PEG_API size_t peg_turn_next_new(const peg_turn *turn, const peg_turn *baseline, size_t i);

/*
 * Changes. The turn of a run or dispatch hands each to the storage first; what that refuses
 * changes nothing and is returned as it is. Each takes its own reference. PEG_ESTATE (E_TURN_BUSY)
 * from within a function of the storage, and while a dispatch works on a copy of the turn.
 */
/* At the end. PEG_EEXISTS (E_BLOCK_ID_TAKEN), PEG_ELIMIT (E_TURN_TOO_LARGE), PEG_ENOMEM;
 * PEG_EEXISTS (E_ARTIFACT_ID_COLLISION): an artifact that a host put there and a result have one
 * handle. Of two results with an artifact and one handle, as runs that did not know each other
 * leave them, the later one is added as a copy whose record has another handle. */
PEG_API PEG_MUST_USE peg_status peg_turn_add(peg_turn *turn, peg_block *block, peg_error *reterr);
/* Before the block that stands at an index now; at the end if there is none. */
PEG_API PEG_MUST_USE peg_status peg_turn_insert(peg_turn *turn, size_t at, peg_block *block,
                                                peg_error *reterr);
/* In place of the block with its id, at the end if there is none. */
PEG_API PEG_MUST_USE peg_status peg_turn_put(peg_turn *turn, peg_block *block, peg_error *reterr);
/* Silent if there is none. A call whose result goes is pending again: remove both, or the tool is
 * run once more. */
PEG_API PEG_MUST_USE peg_status peg_turn_remove(peg_turn *turn, peg_str id, peg_error *reterr);

/* Short forms of peg_turn_add(). */
PEG_API PEG_MUST_USE peg_status peg_turn_add_text(peg_turn *turn, peg_block_kind kind, peg_str text,
                                                  peg_error *reterr);
PEG_API PEG_MUST_USE peg_status peg_turn_add_call(peg_turn *turn, peg_str call_id, peg_str tool,
                                                  peg_str args, peg_error *reterr);

/* The words of the first system block, which gets others, or of a new one at the front; marked as
 * "systemprompt" (pegboard.middleware@v1) where something changed. An empty prompt changes nothing,
 * nor does the one that is there. */
PEG_API PEG_MUST_USE peg_status peg_turn_set_system(peg_turn *turn, peg_str prompt,
                                                    peg_error *reterr);

/* ---- bags ------------------------------------------------------------------------ */

/* NULL: empty. Borrowed from the turn until it changes. */
PEG_API peg_bag *peg_turn_data(const peg_turn *turn);
PEG_API peg_bag *peg_turn_metadata(const peg_turn *turn);
/* Of whichever bag the key belongs to; see peg_bag_get() for the three outcomes. Borrowed from the
 * turn until that bag changes. */
PEG_API PEG_MUST_USE peg_status peg_turn_get(const peg_turn *turn, const peg_key *key,
                                             const peg_json **ret_value, peg_error *reterr);
/* The string of a PEG_KEY_STRING; ptr NULL if it is missing. */
PEG_API PEG_MUST_USE peg_status peg_turn_get_string(const peg_turn *turn, const peg_key *key,
                                                    peg_str *ret_string, peg_error *reterr);
/* Fail as peg_bag_with() and peg_bag_without() do, and with PEG_ESTATE (E_TURN_BUSY), and change
 * nothing then. A storage is not asked: it keeps blocks. */
PEG_API PEG_MUST_USE peg_status peg_turn_set(peg_turn *turn, const peg_key *key,
                                             const peg_json *value, peg_error *reterr);
PEG_API PEG_MUST_USE peg_status peg_turn_set_string(peg_turn *turn, const peg_key *key,
                                                    peg_str string, peg_error *reterr);
PEG_API PEG_MUST_USE peg_status peg_turn_set_built(peg_turn *turn, const peg_key *key,
                                                   peg_json_builder *builder, peg_error *reterr);
PEG_API PEG_MUST_USE peg_status peg_turn_unset(peg_turn *turn, const peg_key *key,
                                               peg_error *reterr);
PEG_API PEG_MUST_USE peg_status peg_turn_upgrade(peg_turn *turn, const peg_key *key,
                                                 peg_error *reterr);

/* ---- calls ----------------------------------------------------------------------- */

/* The first call block at or after i that no result answers; peg_turn_len() if there is none. */
PEG_API size_t peg_turn_next_pending(const peg_turn *turn, size_t i);
/* The result of a call block, by its block id, or NULL. */
PEG_API peg_record *peg_turn_result_of(const peg_turn *turn, peg_str block_id);
/* How many results are of a call with this checksum: a guard against loops. */
PEG_API size_t peg_turn_call_count(const peg_turn *turn, const char *checksum);

#ifdef __cplusplus
}
#endif
#endif
