/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_FILE_MEDIA_H
#define PEG_TURN_FILE_MEDIA_H

/* Media and artifacts in a file: docs/turn-format.md has their members. */

#include "pegboard/turn_file.h"
#include "turn/file/bytes.h"
#include "turn/file/input.h"

/* ---- writing ---------------------------------------------------------------------- */

/* Value; borrows all. */
struct peg__media_list {
    const peg_block *block;
    const peg_turn_write_options *options;
    const peg_json *rest; /* an array: for each media the members of its file to write; or NULL */
};
/* Adds an array: a peg__field_fn over a peg__media_list. */
peg_status peg__media_file_write(const void *self, peg_json_builder *b, peg_error *reterr);

/* Value; borrows all. */
struct peg__artifact_out {
    const char *kind;
    const struct peg__bytes *bytes; /* NULL: they stand elsewhere */
    const peg_json *rest;           /* members of its file to write; or NULL */
};
/* Adds an object: a peg__field_fn over a peg__artifact_out. */
peg_status peg__artifact_file_write(const void *self, peg_json_builder *b, peg_error *reterr);

/* ---- reading ---------------------------------------------------------------------- */

/* Owned. */
struct peg__media_in {
    peg_media **items;
    size_t n;
};
void peg__media_in_free(struct peg__media_in *media);

/* The member `media` of a payload, and `images` behind it where the kind of block has these; none
 * is fine. The block's id names media that have no id. */
peg_status peg__media_file_read(struct peg__in *payload, peg_str block_id, bool has_images,
                                const peg_turn_read_options *options,
                                struct peg__media_in *ret_media) PEG_MUST_USE;
/* The members of these that nobody here knows or can express: has_rest tells whether there are any,
 * the other adds the array for peg__media_list. */
bool peg__media_has_rest(const peg_json *payload, bool has_images);
void peg__media_copy_rest(const peg_json *payload, bool has_images, peg_json_builder *b);

/* An artifact, from the object that describes it; `text` are its bytes if it does not have them
 * itself (ptr NULL: none). */
peg_status peg__artifact_file_read(struct peg__in *in, peg_str text,
                                   const peg_turn_read_options *options,
                                   peg_artifact **ret_artifact) PEG_MUST_USE;
bool peg__artifact_has_rest(const peg_json *artifact, const peg_turn_read_options *options);
void peg__artifact_copy_rest(const peg_json *artifact, const peg_turn_read_options *options,
                             peg_json_builder *b);

/* The bytes of an object's text, base64 or ref; *ret_reader is NULL if it has none of them. */
peg_status peg__bytes_read(struct peg__in *in, const peg_turn_read_options *options,
                           peg_reader **ret_reader) PEG_MUST_USE;
/* A reader over what is written in base 64; fails at the member. */
peg_status peg__bytes_decode(struct peg__in *in, const char *name, peg_str base64,
                             peg_reader **ret_reader) PEG_MUST_USE;

/* The tier of that name, or PEG_TIER_UNSET. */
peg_trust_tier peg__trust_tier_named(peg_str name);

#endif
