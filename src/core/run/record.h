/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_RUN_RECORD_H
#define PEG_CORE_RUN_RECORD_H

/*
 * A record while it is made: run.c fills it in, stage by stage, and hands it out when the call is
 * over. From then on nothing changes but that its checksum and its nonce are made when somebody
 * asks for them, once and for all threads: most calls are never asked. An abandoned handler keeps
 * the record of its call for the arguments; it never looks at what is written later.
 */

#include <stdatomic.h>

#include "pegboard/record.h"

struct peg_record {
    atomic_uint n_refs;
    _Atomic(char *) checksum; /* these two are made when they are asked for (record_ids.c); */
    _Atomic(char *) nonce;    /* NULL until then, and in a copy, which asks the original */
    bool is_error;
    bool is_trusted;
    bool is_inline;
    bool is_from_artifact_tool;
    peg_result_kind result_kind;
    unsigned n_attempts;
    peg_str key; /* these five are behind the struct, each NUL-terminated */
    peg_str call_id;
    peg_str handle;
    peg_str tool;
    peg_str args_text;
    peg_json_doc *args; /* NULL where what was sent cannot be used: stands for {} */
    const char *code;   /* "" if it succeeded; static, or own_code */
    char *own_code;     /* owned; NULL but for records made by hand */
    char *cause;        /* owned; NULL if none */
    char *text;         /* owned; TEXT */
    size_t text_len;
    peg_artifact *artifact;
    peg_media **media; /* owned array of references */
    size_t n_media;
    peg_json_doc *server_data;       /* NULL if none */
    struct peg__record_extra *extra; /* what only records made by hand have; NULL if nothing */
    peg_record *original;            /* owns all but the handle; NULL: this one does */
    int64_t created_ms;
    int64_t completed_ms;
    int64_t duration_ns;
};

/* What a record starts with; all is copied. Empty strings get what run.h says. */
struct peg__record_start {
    peg_str key;
    peg_str call_id;
    peg_str handle;
    peg_str tool;
    peg_str args;
    int64_t now_ms;
};

/* One reference. PEG_ENOMEM, PEG_EIO (E_NO_RANDOMNESS). */
peg_status peg__record_start(const struct peg__record_start *start, peg_record **ret_record,
                             peg_error *reterr);

/* The same record under another handle; it holds the original. PEG_ENOMEM. */
peg_status peg__record_rename(peg_record *record, peg_str handle, peg_record **ret_record,
                              peg_error *reterr);

/* As peg_record_checksum() and peg_record_nonce(), for those who can return why there is none.
 * PEG_ENOMEM; the checksum: PEG_ELIMIT; the nonce: PEG_EIO (E_NO_RANDOMNESS). */
peg_status peg__record_checksum(const peg_record *record, const char **ret_hex, peg_error *reterr);
peg_status peg__record_nonce(const peg_record *record, const char **ret_hex, peg_error *reterr);
/* While the record is made: the nonce that it had elsewhere. PEG_ENOMEM. */
peg_status peg__record_set_nonce(peg_record *record, const char *nonce, peg_error *reterr);
/* Frees both; the record is about to be freed. */
void peg__record_forget_made(peg_record *record);

/* The name under which a call without one is recorded. */
#define PEG__UNNAMED_TOOL "(unnamed tool call)"

#endif
