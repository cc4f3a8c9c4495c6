/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_TURN_H
#define PEG_TURN_TURN_H

/* Shared by the rooms of turns, beyond the public API. */

#include "base/map.h"
#include "pegboard/bag.h"
#include "pegboard/common.h"
#include "pegboard/definitions.h"
#include "pegboard/storage.h"
#include "pegboard/tool_config.h"
#include "pegboard/turn.h"
#include "json/json.h"

/*
 * Errors of a host's callbacks. A callback may fail without a message, or with half an error;
 * peg__host_failed() completes it.
 *
 *   peg_error error = PEG__HOST_ERROR;
 *   status = storage->store(user, ctx, block, &error);
 *   if (status)
 *       return peg__host_failed(status, &error, "E_STORAGE_FAILED", "the storage", reterr);
 */

#define PEG__HOST_ERROR                                                                            \
    {                                                                                              \
        .code = "", .cause = ""                                                                    \
    }

/* Did the callback leave it as it was? */
bool peg__host_is_silent(const peg_error *error);

/* Returns status, with the callback's error in *reterr (may be NULL, may be `error` itself). An
 * empty one gets `code` and a sentence about `subject`. */
peg_status peg__host_failed(peg_status status, const peg_error *error, const char *code,
                            const char *subject, peg_error *reterr);

/* Bags from files and to files, and documents that several things hold. */

/* Every member of an object as it is: keys are not checked, unless is_strict. NULL for an empty
 * one. PEG_EPARSE (E_TURN_FORMAT) with the member as `where` (a pointer below the object);
 * PEG_ELIMIT, PEG_ENOMEM. */
peg_status peg__bag_from_json(const peg_json *object, bool is_strict, peg_bag **ret_bag,
                              peg_error *reterr);

/* A bag with a document in place of what stands under the key, of which only the size is checked:
 * for values that the library made itself. Takes a reference. */
peg_status peg__bag_with_shared(peg_bag *bag, const peg_key *key, struct peg__shared *shared,
                                peg_bag **ret_bag, peg_error *reterr);
/* The document under the key's own id, or NULL; borrowed. */
struct peg__shared *peg__bag_shared(const peg_bag *bag, const peg_key *key);

/* "data", "metadata", "block metadata"; static. */
const char *peg__bag_kind_name(peg_bag_kind kind);

/* NULL also for null: a member that is null counts as missing. */
static inline const peg_json *peg__present(const peg_json *object, const char *name)
{
    const peg_json *value = peg_json_get(object, name);

    return peg_json_kind_of(value) != PEG_JSON_NULL ? value : NULL;
}

/* Parts of a block that only readers and writers of files know. */

struct peg__block_origin {
    /* The members of the block in its file that we do not read, as an object: unknown ones, and
     * "kind" and "role" where they are not what we would write. Copied; NULL: none. */
    const peg_json *members;
    bool has_no_time; /* created_ms 0 means that the file has none */
};

/* As peg_block_new(); names that pegboard uses may stand in the payload of a block with a foreign
 * "kind". */
peg_status peg__block_read_new(const peg_block_def *def, const struct peg__block_origin *origin,
                               peg_block **ret_block, peg_error *reterr);
/* The object, or NULL. */
const peg_json *peg__block_members(const peg_block *block);

/*
 * A list of blocks with an index of their names, shared copy on write. It has no opinion about
 * what may stand in it: that is the business of turn.c and storage_memory.c.
 *
 * NULL is the empty list. Reference counted; lists that share may be used from several threads, a
 * pointer to one by one thread at a time. Changing takes two steps, with the storage in
 * between: peg__blocks_reserve() may fail and has no visible effect, the change itself cannot fail.
 */

struct peg__blocks;

enum peg__block_name {
    PEG__NAME_ID,     /* the block's own */
    PEG__NAME_ANSWER, /* RESULT: the id of the call block it answers */
    PEG__NAME_HANDLE, /* RESULT: the record's handle; OTHER with an artifact: its id */
};

#define PEG__NO_BLOCK SIZE_MAX

struct peg__blocks *peg__blocks_ref(struct peg__blocks *list);
struct peg__blocks *peg__blocks_unref(struct peg__blocks *list);

size_t peg__blocks_len(const struct peg__blocks *list);
/* Borrowed from the list. Requires i < len. */
peg_block *peg__blocks_at(const struct peg__blocks *list, size_t i);
/* Where the block of that name stands, or PEG__NO_BLOCK. If there are several it is the first; of
 * those with one handle, one that has an artifact. */
size_t peg__blocks_find(const struct peg__blocks *list, enum peg__block_name which, peg_str name);
/* The same as if block `except` were not there. Linear, but for PEG__NAME_ID, which is unique. */
size_t peg__blocks_find_other(const struct peg__blocks *list, enum peg__block_name which,
                              peg_str name, size_t except);

/* "" if the block has no such name; borrowed from the block. */
peg_str peg__block_name(const peg_block *block, enum peg__block_name which);

/* Makes *list the caller's alone, with capacity for one block more or another one in its place. */
peg_status peg__blocks_reserve(struct peg__blocks **list) PEG_MUST_USE;
/* After peg__blocks_reserve(). These take a reference of their own. */
void peg__blocks_insert(struct peg__blocks *list, size_t i,
                        peg_block *block); /* i <= len; linear */
void peg__blocks_append(struct peg__blocks *list, peg_block *block);
void peg__blocks_replace(struct peg__blocks *list, size_t i, peg_block *block);
void peg__blocks_remove(struct peg__blocks *list, size_t i);

/*
 * What a turn has beyond its public face: the storage of a run, the flush of a dispatch, handles.
 */

/* Owned; one thread at a time. */
struct peg_turn {
    struct peg__blocks *blocks;
    peg_str id; /* first_id or other_id; NUL-terminated */
    peg_bag *data;
    peg_bag *metadata;
    struct peg__shared *members; /* unknown ones of its file: an object; NULL: none */
    const peg_storage *storage;  /* borrowed; NULL: none */
    peg_ctx *ctx;                /* borrowed; what the storage is called with */
    bool is_storing;             /* the storage is being asked: the turn may not be changed */
    bool is_lent;                /* a dispatch works on a copy and will replace the blocks */
    char *other_id;              /* owned; NULL: it has the one that it was made with */
    char first_id[];
};

/* An empty turn as a file has it: these may all be NULL, and references are taken over. id may be
 * empty. On failure they stay the caller's. */
struct peg__turn_parts {
    peg_str id;
    peg_bag *data;
    peg_bag *metadata;
    struct peg__shared *members;
};
peg_status peg__turn_from_parts(const struct peg__turn_parts *parts, peg_turn **ret_turn,
                                peg_error *reterr);

/* The document is what stands under the key, unchecked: for what the library made itself. Takes a
 * reference. PEG_ESTATE (E_TURN_BUSY), PEG_ELIMIT, PEG_ENOMEM. */
peg_status peg__turn_set_shared(peg_turn *turn, const peg_key *key, struct peg__shared *shared,
                                peg_error *reterr);

/* From now on each change goes to the storage first, which outlives the attachment, as ctx does.
 * NULL ends it. A copy of a turn is not attached. */
void peg__turn_attach(peg_turn *turn, const peg_storage *storage, peg_ctx *ctx);

/* PEG_ESTATE (E_TURN_BUSY) while a dispatch works on a copy: what is done here would be lost. */
peg_status peg__turn_check_lent(const peg_turn *turn, peg_error *reterr);
/* The same, and while the storage is being asked. */
peg_status peg__turn_check_busy(const peg_turn *turn, peg_error *reterr);

/* Gives turn the blocks and bags of `from`, which keeps them too; the storage is not asked. Cannot
 * fail: the flush of a dispatch, whose turn was a copy of this one. */
void peg__turn_swap_in(peg_turn *turn, const peg_turn *from);

/*
 * A handle for the result of a call: its id if nothing in the turn has that handle, else "id~2",
 * "id~3", ... also_taken (may be NULL) has handles that were given out and are not in the turn
 * yet. Freed with peg__free(), NUL-terminated; ret_len may be NULL. PEG_ENOMEM only.
 */
peg_status peg__turn_handle(const peg_turn *turn, peg_str call_id,
                            const struct peg__map *also_taken, char **ret_handle, size_t *ret_len);

/* PEG_EINVAL (E_INVALID_TURN_RUNNER_CONFIG, `where` "/storage") names every function that is
 * missing. NULL is no storage, which is fine. */
peg_status peg__storage_check(const peg_storage *storage, peg_error *reterr);

/* Takes a reference; nothing happens if it is there already. */
peg_status peg__turn_put_definitions(peg_turn *turn, struct peg__shared *shared, peg_error *reterr);

/* Those that a turn stored, without what was forged then, and on top of them what is live now. */
peg_status peg__definitions_overlay(const peg_json *stored, const peg_json *live,
                                    struct peg__shared **ret_shared, peg_error *reterr);

/* Takes the definitions of ephemeral tools off a turn. */
peg_status peg__turn_drop_ephemeral(peg_turn *turn, peg_error *reterr);

/* PEG_ESTATE (E_DEFINITIONS_DIFFER) names the first tool of which name, description, parameters or
 * version differ. The order and ephemeral tools do not count. Quadratic in the number of tools that
 * differ in their place: lists in the same order take one comparison a tool. */
peg_status peg__definitions_compare(const peg_json *stored, const peg_json *live,
                                    peg_error *reterr);

/* PEG_EINVAL (E_TOOL_CONFIG) for values that cannot be. */
peg_status peg__tool_config_check(const peg_tool_config *config, peg_error *reterr);

#endif
