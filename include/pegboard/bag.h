/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_BAG_H
#define PEGBOARD_BAG_H

/*
 * What a turn and its blocks carry beside the conversation: JSON values by key. A key is
 * "namespace.slug@vN": whose it is, what it is, and which shape it has. There are three bags, and a
 * key belongs to one of them: a turn's data, a turn's metadata, a block's metadata.
 *
 * Only JSON fits in, so a bag can always be written and read back; nothing live ever gets into one.
 * Unknown keys stay as they are.
 *
 *   peg_key  plain data, usually static const
 *   peg_bag  shared, immutable, reference counted; any thread
 */

#include <pegboard/json.h>
#include <pegboard/schema.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- keys ---------------------------------------------------------------------- */

typedef enum peg_bag_kind {
    PEG_BAG_DATA = 1, /* of a turn: what engines and tools work with */
    PEG_BAG_METADATA, /* of a turn: what is known about it */
    PEG_BAG_BLOCK,    /* of a block: what is known about it */
} peg_bag_kind;

typedef enum peg_key_type {
    PEG_KEY_ANY = 0, /* null too */
    PEG_KEY_STRING,
    PEG_KEY_INTEGER,
    PEG_KEY_NUMBER,
    PEG_KEY_BOOL,
    PEG_KEY_STRINGS, /* an array of nothing but strings */
    PEG_KEY_ARRAY,
    PEG_KEY_OBJECT,
} peg_key_type;

/* Another id under which the value may stand: an older version, or somebody else's name for it. */
typedef struct peg_key_older {
    const char *id;
    /* Adds the new value to the builder. NULL: the value is the same. */
    peg_status (*upgrade)(const peg_json *old, peg_json_builder *into, peg_error *reterr);
} peg_key_older;

typedef struct peg_key {
    peg_bag_kind bag;
    const char *id; /* [a-z0-9_-]+(.[a-z0-9_-]+)*.[a-z0-9_-]+@v[1-9][0-9]*, at most 128 bytes */
    peg_key_type type;
    const peg_schema *schema; /* what values have to satisfy beside the type; NULL: nothing more */
    const peg_key_older *older; /* the first one there counts; may be NULL */
    size_t n_older;
} peg_key;

/* PEG_EINVAL (E_KEY): what is wrong with it. */
PEG_API PEG_MUST_USE peg_status peg_key_check(const peg_key *key, peg_error *reterr);

/* ---- bags: NULL is the empty one -------------------------------------------------- */

PEG_API peg_bag *peg_bag_ref(peg_bag *bag);
PEG_API peg_bag *peg_bag_unref(peg_bag *bag);
PEG_API size_t peg_bag_len(const peg_bag *bag);
/* In the order of their ids, byte by byte; borrowed from the bag. ret_* may be NULL. False beyond
 * the last. */
PEG_API bool peg_bag_at(const peg_bag *bag, size_t i, peg_str *ret_id, const peg_json **ret_value);
/* The value under an id as it stands there, or NULL; borrowed from the bag. */
PEG_API const peg_json *peg_bag_find(const peg_bag *bag, peg_str id);

/*
 * Three outcomes. Missing: PEG_OK with NULL. Present: PEG_OK with the value, borrowed from the bag.
 * Present but wrong: PEG_ESCHEMA (E_KEY_VALUE) names bag, key and what was expected; the same with
 * E_KEY_OLD if only an older version is there that needs an upgrade. PEG_EINVAL (E_KEY): it is no
 * key, or one of another bag.
 */
PEG_API PEG_MUST_USE peg_status peg_bag_get(const peg_bag *bag, peg_bag_kind kind,
                                            const peg_key *key, const peg_json **ret_value,
                                            peg_error *reterr);

/* A bag with one value more, or another; older ids of the key go. `bag` stays as it is and may be
 * NULL; *ret_bag is a new reference. The value is copied. PEG_ESCHEMA (E_KEY_VALUE): the key does
 * not take it; PEG_ELIMIT (E_BAG_TOO_LARGE): more than 1,000 keys or 64 MiB, or a value that nests
 * deeper than 128, so that the turn could not be read back; PEG_EINVAL; PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_bag_with(peg_bag *bag, const peg_key *key,
                                             const peg_json *value, peg_bag **ret_bag,
                                             peg_error *reterr);
/* The same with what a builder has made, which it frees in any case. What cannot be written as
 * JSON, such as NaN, is PEG_EINVAL (E_KEY_VALUE), with the builder's code as cause. */
PEG_API PEG_MUST_USE peg_status peg_bag_with_built(peg_bag *bag, const peg_key *key,
                                                   peg_json_builder *builder, peg_bag **ret_bag,
                                                   peg_error *reterr);
/* Without the key and its older ids; *ret_bag is NULL if nothing is left. */
PEG_API PEG_MUST_USE peg_status peg_bag_without(peg_bag *bag, const peg_key *key, peg_bag **ret_bag,
                                                peg_error *reterr);
/* Under its newest id, upgraded where it is older; the same bag if there is nothing to do. Fails as
 * the upgrade does (PEG_EHOST, E_KEY_UPGRADE) and leaves everything as it was. */
PEG_API PEG_MUST_USE peg_status peg_bag_upgraded(peg_bag *bag, const peg_key *key,
                                                 peg_bag **ret_bag, peg_error *reterr);

/* ---- keys of the library ------------------------------------------------------------- */

/* Of a turn's data: what the model is offered (definitions.h), and how its calls are run
 * (tool_config.h). */
PEG_API extern const peg_key peg_key_tool_definitions; /* pegboard.tool_definitions@v1, array */
PEG_API extern const peg_key peg_key_tool_config;      /* pegboard.tool_config@v1, object */
/* Of a turn's metadata. */
PEG_API extern const peg_key peg_key_session_id;       /* pegboard.session_id@v1, string */
PEG_API extern const peg_key peg_key_inference_id;     /* pegboard.inference_id@v1, string: the last
                                                        * dispatch, as events have it */
PEG_API extern const peg_key peg_key_inference_result; /* pegboard.inference_result@v1, object */
PEG_API extern const peg_key peg_key_calls_started;    /* pegboard.calls_started@v1, strings */
/* Of a block's metadata. */
PEG_API extern const peg_key peg_key_block_inference; /* pegboard.inference_result@v1, object */
PEG_API extern const peg_key peg_key_middleware;      /* pegboard.middleware@v1, string */
PEG_API extern const peg_key peg_key_gemini_thought;  /* gemini.thought_signature@v1, string */

#ifdef __cplusplus
}
#endif
#endif
