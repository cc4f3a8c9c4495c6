/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TURN_FILE_BYTES_H
#define PEG_TURN_FILE_BYTES_H

/*
 * The bytes of artifacts and media in a file: in its text while they are few, else in a spool store
 * under "sha256-" and their digest, and in the text a reference to there.
 */

#include "base/hash.h"
#include "pegboard/turn_file.h"
#include "turn/file/fields.h"

struct peg__bytes_ref {
    char sha256[PEG_SHA256_HEX];
    int64_t n_bytes;
};

/* A reader over what a reference leads to: looked up when it is read, and compared with the length,
 * and with the digest where all of it is read at once. It fails with PEG_ENOTFOUND
 * (E_REFERENCE_MISSING) or PEG_EIO (E_REFERENCE_WRONG). Takes a reference to the store, which may
 * be NULL. PEG_ENOMEM. */
peg_status peg__bytes_ref_reader(const struct peg__bytes_ref *ref, peg_spool_store *store,
                                 peg_reader **ret_reader, peg_error *reterr) PEG_MUST_USE;
/* The reference behind such a reader, or NULL if it is another; borrowed. */
const struct peg__bytes_ref *peg__bytes_ref_of(const peg_reader *reader);

/* How bytes are written. Owned, but the text may be borrowed from the reader. */
struct peg__bytes {
    enum {
        PEG__BYTES_TEXT,
        PEG__BYTES_BASE64,
        PEG__BYTES_REF,
    } form;
    peg_str text; /* as it is, or in base 64 */
    struct peg__bytes_ref ref;
    char *owned; /* the text's; NULL: it is the reader's */
};

/* Decides, and puts what does not fit into the text into the store. PEG_ELIMIT (E_TURN_BYTES), what
 * reader and store fail with, PEG_ENOMEM. */
peg_status peg__bytes_place(peg_reader *reader, const peg_turn_write_options *options,
                            struct peg__bytes *ret_bytes, peg_error *reterr) PEG_MUST_USE;
/* Adds the member text, base64 or ref; the bytes must outlive the fields. */
void peg__bytes_fields(const struct peg__bytes *bytes, struct peg__fields *fields);
void peg__bytes_free(struct peg__bytes *bytes);

/* A text in base 64, freed with peg__free(); ret_len may be NULL. PEG_ENOMEM. */
peg_status peg__bytes_base64(peg_str bytes, char **ret_text, size_t *ret_len,
                             peg_error *reterr) PEG_MUST_USE;

#endif
