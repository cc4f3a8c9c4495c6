/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_CALL_H
#define PEGBOARD_CALL_H

/*
 * A call as its handler sees it. Valid until the handler returns; used by the thread that the
 * handler runs on.
 *
 * The first answer counts; a second one returns PEG_ESTATE and changes nothing. PEG_ELIMIT: the
 * answer is larger than the run's max_result_bytes, and the call fails for that reason.
 * What is handed to a reply is copied, or referenced if it is counted.
 */

#include <pegboard/ctx.h>
#include <pegboard/tool.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- answering ---------------------------------------------------------------- */

/* UTF-8 text; becomes an artifact of the tool's kind. */
PEG_API peg_status peg_call_reply(peg_call *call, peg_str text);
PEG_API peg_status peg_call_replyf(peg_call *call, const char *fmt, ...) PEG_PRINTF(2, 3);
/* Any bytes; becomes an artifact of the tool's kind. */
PEG_API peg_status peg_call_reply_bytes(peg_call *call, peg_str bytes);
/* Compact text of the value; becomes a JSON artifact unless the tool has a kind. */
PEG_API peg_status peg_call_reply_json(peg_call *call, const peg_json *value);
/* One or several; stays media. At least one: PEG_EINVAL otherwise. */
PEG_API peg_status peg_call_reply_media(peg_call *call, peg_media *const *media, size_t n_media);
/* Passes through untouched; its own kind decides its queries. */
PEG_API peg_status peg_call_reply_artifact(peg_call *call, peg_artifact *artifact);
/* What a query answers with: NULL "(undefined)", a string as it is, strings one a line, an empty
 * list "(empty list)", anything else as JSON with two spaces. */
PEG_API peg_status peg_call_reply_value(peg_call *call, const peg_json *value);

/* The tool failed; the sentence is for the model. */
PEG_API peg_status peg_call_fail(peg_call *call, const char *fmt, ...) PEG_PRINTF(2, 3);
/* The same with the code and words of an error, which becomes the failure's cause. */
PEG_API peg_status peg_call_fail_with(peg_call *call, const peg_error *error);

/* Data for the host beside the result, never shown to the model. All three are required, data is
 * copied. Malformed server-data voids the result: the call fails with E_TOOL_OUTPUT_INVALID. */
PEG_API peg_status peg_call_add_server_data(peg_call *call, const char *kind, const char *audience,
                                            const peg_json *data);

/* ---- what it is: borrowed from the call ----------------------------------------- */

/* Carries the call's cancellation and deadline; gates open on it (gate.h). */
PEG_API peg_ctx *peg_call_ctx(const peg_call *call);
PEG_API const peg_tool *peg_call_tool(const peg_call *call);
PEG_API peg_str peg_call_id(const peg_call *call);           /* the vendor's */
PEG_API const char *peg_call_checksum(const peg_call *call); /* as peg_record_checksum() */
PEG_API unsigned peg_call_attempt(const peg_call *call);     /* from 1 */
/* A value of the tool's meta by dotted path, such as "db.pool.size"; NULL if there is none. */
PEG_API const peg_json *peg_call_meta(const peg_call *call, const char *path);
/* Long handlers ask this now and then: canceled, or past the deadline. */
PEG_API bool peg_call_should_stop(const peg_call *call);

#ifdef __cplusplus
}
#endif
#endif
