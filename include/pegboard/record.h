/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_RECORD_H
#define PEGBOARD_RECORD_H

/*
 * The record of one call: what was asked, what came of it. Shared, immutable, reference counted;
 * any thread. All that is handed out is borrowed from the record.
 */

#include <pegboard/call.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum peg_result_kind {
    PEG_RESULT_TEXT = 0, /* shown as it is: failures, and answers of artifact tools */
    PEG_RESULT_ARTIFACT,
    PEG_RESULT_MEDIA, /* one or several */
} peg_result_kind;

PEG_API peg_record *peg_record_ref(peg_record *record);
PEG_API peg_record *peg_record_unref(peg_record *record);

/* Unique, made by us: what results, bytes and blocks are keyed by. */
PEG_API peg_str peg_record_key(const peg_record *record);
/* The vendor's; may repeat. */
PEG_API peg_str peg_record_call_id(const peg_record *record);
/* What the model calls its artifact by: the call id, made unique within the turn. */
PEG_API peg_str peg_record_handle(const peg_record *record);
PEG_API peg_str peg_record_tool(const peg_record *record);         /* never empty */
PEG_API const peg_json *peg_record_args(const peg_record *record); /* as sent; {} if unusable */
PEG_API peg_str peg_record_args_text(const peg_record *record);    /* as sent, byte for byte */
/* These two are made when they are first asked for, and are "" where that fails: out of memory; for
 * the checksum a canonical form beyond 256 MiB, for the nonce a system without randomness. */
PEG_API const char *peg_record_checksum(const peg_record *record); /* 64 hex digits */
PEG_API const char *peg_record_nonce(const peg_record *record);    /* 32 random hex digits */

PEG_API bool peg_record_is_error(const peg_record *record);
/* "" if it succeeded; else E_TOOL_NOT_FOUND, E_INVALID_TOOL_ARGS, E_TOOL_DOWNSTREAM_ERROR,
 * E_TOOL_TIMEOUT, ... */
PEG_API const char *peg_record_code(const peg_record *record);
/* The code behind it, "" if none: for E_TOOL_DOWNSTREAM_ERROR what the handler failed with. */
PEG_API const char *peg_record_cause(const peg_record *record);

PEG_API peg_result_kind peg_record_result_kind(const peg_record *record);
PEG_API peg_str peg_record_text(const peg_record *record);           /* TEXT, else "" */
PEG_API peg_artifact *peg_record_artifact(const peg_record *record); /* ARTIFACT, else NULL */
/* What the call answered, for the host's own eyes: the text, or the bytes of the artifact; "" for
 * media. Fails as peg_artifact_bytes(). What a model may see, peg_render_result() makes of it. */
PEG_API PEG_MUST_USE peg_status peg_record_answer(const peg_record *record, peg_str *ret_answer,
                                                  peg_error *reterr);
PEG_API size_t peg_record_n_media(const peg_record *record);
PEG_API peg_media *peg_record_media(const peg_record *record, size_t i);

PEG_API bool peg_record_is_trusted(const peg_record *record); /* as the tool was when it ran */
PEG_API bool peg_record_is_inline(const peg_record *record);
PEG_API bool peg_record_is_from_artifact_tool(const peg_record *record);
PEG_API unsigned peg_record_attempts(const peg_record *record); /* handler runs; 0 if none */
PEG_API int64_t peg_record_created_ms(const peg_record *record);
PEG_API int64_t peg_record_completed_ms(const peg_record *record);
PEG_API int64_t peg_record_duration_ns(const peg_record *record); /* of the handler */

/* Server-data, an array of {kind, audience, data}; NULL if there is none. */
PEG_API const peg_json *peg_record_server_data(const peg_record *record);

/* ---- made by hand: replays, imports, tests ------------------------------------------- */

/* Strings are copied, counted things referenced. */
typedef struct peg_record_def {
    size_t size;     /* set by PEG_RECORD_DEF_INIT */
    peg_str key;     /* empty: a new one */
    peg_str call_id; /* required */
    peg_str handle;  /* empty: the call id */
    peg_str tool;    /* required */
    peg_str args;    /* JSON text of an object; of a failure, whatever the model wrote */
    bool is_error;
    const char *code;  /* of a failure; NULL: E_TOOL_DOWNSTREAM_ERROR */
    const char *cause; /* the code behind it; may be NULL */
    peg_str text;      /* exactly one of text (ptr not NULL), artifact, media */
    peg_artifact *artifact;
    peg_media *const *media;
    size_t n_media;
    bool is_trusted;
    bool is_inline;
    bool is_from_artifact_tool;
    const char *payload;              /* opaque to us, JSON text; needs replay_compatibility */
    const char *replay_compatibility; /* which vendor may get the payload back */
    int64_t created_ms;
    int64_t completed_ms;
    int64_t duration_ns;
    unsigned attempts;
    const char *nonce;           /* [0-9a-f]{32}; NULL: a new one */
    const peg_json *server_data; /* copied; may be NULL */
} peg_record_def;
#define PEG_RECORD_DEF_INIT .size = sizeof(peg_record_def)

/* PEG_EINVAL (E_INVALID_INITIAL_TOOL_CALL_VALUE) with the field as `where`; PEG_ENOMEM.
 * PEG_EIO (E_NO_RANDOMNESS). */
PEG_API PEG_MUST_USE peg_status peg_record_new(const peg_record_def *def, peg_record **ret_record,
                                               peg_error *reterr);
PEG_API const peg_json *peg_record_payload(const peg_record *record);          /* NULL if none */
PEG_API const char *peg_record_replay_compatibility(const peg_record *record); /* "" if none */

/* The checksum of a call: lowercase hex SHA-256 of the canonical {"args":...,"tool":...}. */
PEG_API PEG_MUST_USE peg_status peg_call_digest(peg_str tool, const peg_json *args,
                                                char ret_hex[65], peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
