/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_TURN_FILE_H
#define PEGBOARD_TURN_FILE_H

/*
 * A turn as text: JSON or YAML, the same names in both, the same bytes for the same turn always.
 *
 *   id: orders-1
 *   blocks:
 *     - id: b1
 *       kind: user    # system, llm_text, reasoning, tool_call, tool_use (a result), other
 *       role: user
 *       payload: {text: how many open orders?}
 *   metadata: {...}
 *   data: {...}
 *
 * What a reader does not know (members, kinds, keys, versions of a key) it keeps and writes again.
 * docs/turn-format.md has every member.
 *
 * Bytes of artifacts and media are written into the text while they are small, else as a reference
 * to a spool store, by their SHA-256; a reader never holds anything live.
 *
 * Pure functions; any thread.
 */

#include <pegboard/spool.h>
#include <pegboard/turn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum peg_format {
    PEG_FORMAT_AUTO = 0, /* reading: JSON if the first character is '{', else YAML; writing: JSON */
    PEG_FORMAT_JSON,
    PEG_FORMAT_YAML,
} peg_format;

/* Zero means the default, told here in brackets. */
typedef struct peg_turn_write_options {
    size_t size; /* set by PEG_TURN_WRITE_OPTIONS_INIT */
    peg_format format;
    bool pretty;            /* JSON with line ends */
    bool omit_data;         /* leave the data bag out */
    peg_spool_store *bytes; /* where bytes go that are not written into the text [nowhere] */
    int64_t inline_below;   /* bytes written into the text [4,096 with a store, else 8 MiB] */
    /* Bytes that find no place are left out, with their digest and length; reading them back fails.
     * Without this they are PEG_ELIMIT (E_TURN_BYTES). */
    bool allow_missing;
} peg_turn_write_options;
#define PEG_TURN_WRITE_OPTIONS_INIT .size = sizeof(peg_turn_write_options)

/* options may be NULL; turn may be NULL, which writes {}. The text is NUL-terminated and freed with
 * peg_free(); ret_len may be NULL. PEG_ELIMIT, what the spool store or a reader fails with,
 * PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_turn_write(const peg_turn *turn,
                                               const peg_turn_write_options *options,
                                               char **ret_text, size_t *ret_len, peg_error *reterr);
/* The same as a document. */
PEG_API PEG_MUST_USE peg_status peg_turn_to_json(const peg_turn *turn,
                                                 const peg_turn_write_options *options,
                                                 peg_json_doc **ret_doc, peg_error *reterr);

typedef struct peg_turn_read_options {
    size_t size; /* set by PEG_TURN_READ_OPTIONS_INIT */
    peg_format format;
    /* Refuse unknown members, kinds, roles and keys, and ids that come twice.
     * Members of a payload belong to the maker of the block: they stay. */
    bool strict;
    peg_spool_store *bytes; /* where references lead [nowhere: reading such bytes fails] */
    const peg_artifact_kind *const *kinds; /* the host's, beside text, json and markdown */
    size_t n_kinds;
    size_t max_bytes; /* of text [64 MiB] */
    /* The file is somebody else's, and may say more about itself than is so. Claims count as left
     * out: no result is trusted or shown whole because the file says so, media, notes and blocks of
     * kind other are third-party-public, hazards follow from the kind, nonces are made anew and
     * replays dropped. The words stay, also those of a system prompt, and so do calls without a
     * result: run such a turn with PEG_PENDING_UNKNOWN (dispatch.h). */
    bool untrusted;
} peg_turn_read_options;
#define PEG_TURN_READ_OPTIONS_INIT .size = sizeof(peg_turn_read_options)

/*
 * options may be NULL. PEG_EPARSE and PEG_ELIMIT as peg_json_parse() and peg_yaml_parse() tell;
 * PEG_EPARSE (E_TURN_FORMAT) for JSON or YAML that is no turn: `where` is the member, line and
 * column its place. Nothing is made of a file that is damaged anywhere.
 */
PEG_API PEG_MUST_USE peg_status peg_turn_read(peg_str text, const peg_turn_read_options *options,
                                              peg_turn **ret_turn, peg_error *reterr);
/* From a value; without line and column. */
PEG_API PEG_MUST_USE peg_status peg_turn_from_json(const peg_json *value,
                                                   const peg_turn_read_options *options,
                                                   peg_turn **ret_turn, peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
