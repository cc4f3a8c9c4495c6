/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_FILE_RESULT_H
#define PEG_TURN_FILE_RESULT_H

/* The payload of a result: a record, as far as its call does not tell it already. */

#include "turn/file/args.h"
#include "turn/file/block.h"
#include "turn/file/media.h"

/* The payload of a block while it is written. Owned; see peg__payload_free(). */
struct peg__payload {
    const struct peg__block_write *how;
    const peg_block *block;
    const peg_json *rest; /* members of its file that go before ours, or NULL */
    struct peg__fields fields;
    struct peg__args_out args;
    struct peg__bytes bytes; /* of the artifact */
    struct peg__artifact_out artifact;
    struct peg__media_list media;
    char *base64; /* of a text that is no UTF-8 */
};

/* Adds the fields `media` and `artifact`. An artifact's bytes have been placed before. */
void peg__payload_media(struct peg__payload *payload);
void peg__payload_artifact(struct peg__payload *payload, bool has_bytes);
peg_status peg__payload_place_artifact(struct peg__payload *payload,
                                       peg_error *reterr) PEG_MUST_USE;

peg_status peg__result_fields(struct peg__payload *payload, peg_error *reterr) PEG_MUST_USE;

/* Makes the record of a result block with this id. */
peg_status peg__result_read(const struct peg__block_read *how, struct peg__in *payload, peg_str id,
                            peg_record **ret_record) PEG_MUST_USE;
/* What of its payload cannot be expressed by a record. */
bool peg__result_has_rest(const peg_json *payload, const peg_turn_read_options *options);
void peg__result_copy_rest(const peg_json *payload, const peg_turn_read_options *options,
                           peg_json_builder *b);

/* What a result has that does not say otherwise; call may be NULL. */
peg_str peg__expected_name(const peg_block *call);
peg_str peg__expected_args(const peg_block *call);

/* The code of a failure that does not say. */
#define PEG__DEFAULT_CODE "E_TOOL_DOWNSTREAM_ERROR"

#endif
