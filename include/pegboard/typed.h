/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_TYPED_H
#define PEGBOARD_TYPED_H

/*
 * What the code that `pegboard generate` writes is made of: JSON to structs of C and back.
 *
 *   peg_arena    memory that dies together: arrays and strings of a struct
 *   peg_decoder  one decoding: a value to a struct, whose strings stay in the document
 *   peg_encoder  JSON text, written value by value
 *
 * Most programs use only the arena, from their handlers:
 *
 *   int weather_get_run(const weather_get_args *args, weather_get_result *result, peg_call *call,
 *                       void *user)
 *   {
 *       result->summary = peg_arena_printf(result->arena, "%d degrees", 21);
 *       return 0;
 *   }
 *
 * Threads: each of the three is used by one thread at a time.
 */

#include <string.h>

#include <pegboard/call.h>
#include <pegboard/json.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- memory ------------------------------------------------------------------------------- */

/* Owned. The first failure sticks: what is made of the arena then fails with PEG_ENOMEM, so that a
 * handler checks only the pointers it writes to. */
typedef struct peg_arena peg_arena;

/* NULL: out of memory. */
PEG_API peg_arena *peg_arena_new(void);
PEG_API peg_arena *peg_arena_free(peg_arena *arena);
/* n items of a size, all zero. NULL: out of memory, or n is 0. */
PEG_API void *peg_arena_alloc(peg_arena *arena, size_t n, size_t size);
/* A copy with a NUL behind it, and printed text; "" when out of memory. */
PEG_API peg_str peg_arena_copy(peg_arena *arena, peg_str text);
PEG_API peg_str peg_arena_printf(peg_arena *arena, const char *fmt, ...) PEG_PRINTF(2, 3);
/* Was memory missing? */
PEG_API bool peg_arena_has_failed(const peg_arena *arena);
/* Parses text into a document that dies with the arena. As peg_json_parse(), a member that is there
 * twice is refused. */
PEG_API PEG_MUST_USE peg_status peg_arena_parse(peg_arena *arena, peg_str text,
                                                const peg_json **ret_value, peg_error *reterr);

/* ---- decoding ----------------------------------------------------------------------------- */

/*
 * All functions return false if the value is something else; the first failure is in *reterr:
 * PEG_ESCHEMA (E_DECODE: another kind, a member that is missing, no such alternative;
 * E_DECODE_RANGE: a number that the type cannot hold), with the pointer of the value; PEG_ELIMIT
 * (E_DECODE_LIMIT: what is decoded with one arena takes more than 64 MiB); PEG_ENOMEM.
 */
typedef struct peg_decoder {
    peg_arena *arena;     /* of arrays */
    const peg_json *root; /* what pointers start from */
    peg_error *reterr;    /* may be NULL */
    peg_status status;    /* PEG_OK until something fails */
} peg_decoder;

/* Fails: `expected` is what should stand there, such as "an object". */
PEG_API bool peg_decode_fail(peg_decoder *decoder, const peg_json *value, const char *expected);
/* Fails: names the first of the members that the object does not have. */
PEG_API bool peg_decode_fail_missing(peg_decoder *decoder, const peg_json *object,
                                     const char *const *names, size_t n);
/* Zeroed items of the arena; NULL: out of memory, the limit, or n is 0. */
PEG_API void *peg_decode_alloc(peg_decoder *decoder, size_t n, size_t size);

/* Whole numbers in any form (3, 3.0, 30e-1) that fit. */
PEG_API bool peg_decode_integer(peg_decoder *decoder, const peg_json *value, int64_t *ret_number);
/* The nearest double. Whole numbers have to be exact, others finite. */
PEG_API bool peg_decode_number(peg_decoder *decoder, const peg_json *value, double *ret_number);
PEG_API bool peg_decode_bool(peg_decoder *decoder, const peg_json *value, bool *ret_truth);
PEG_API bool peg_decode_string(peg_decoder *decoder, const peg_json *value, peg_str *ret_text);
PEG_API bool peg_decode_null(peg_decoder *decoder, const peg_json *value);
/* The index of a string among n. */
PEG_API bool peg_decode_enum(peg_decoder *decoder, const peg_json *value, const peg_str *names,
                             size_t n, unsigned *ret_index);
PEG_API bool peg_decode_is_object(peg_decoder *decoder, const peg_json *value);
PEG_API bool peg_decode_is_array(peg_decoder *decoder, const peg_json *value);

/* Is a key this name? */
#define PEG_DECODE_IS(key, name)                                                                   \
    ((key)->len == sizeof(name) - 1 && memcmp((key)->u.ptr, name, sizeof(name) - 1) == 0)

/* ---- encoding ----------------------------------------------------------------------------- */

/* Owned. The first failure sticks: PEG_EINVAL (E_JSON_UTF8, E_JSON_NUMBER, E_ENCODE: no such
 * alternative), PEG_ELIMIT (E_JSON_TOO_DEEP), PEG_ENOMEM. Commas are the encoder's. */
typedef struct peg_encoder peg_encoder;

/* NULL: out of memory. All functions accept NULL for the encoder, and text() reports it. */
PEG_API peg_encoder *peg_encoder_new(void);
PEG_API peg_encoder *peg_encoder_free(peg_encoder *encoder);
/* The text, borrowed from the encoder, or why there is none. */
PEG_API PEG_MUST_USE peg_status peg_encoder_text(peg_encoder *encoder, peg_str *ret_text,
                                                 peg_error *reterr);
/* Empty again; its memory is used again. */
PEG_API void peg_encoder_clear(peg_encoder *encoder);

/* False: something has failed, and what contains itself is to be left. */
PEG_API bool peg_encode_open_object(peg_encoder *encoder);
PEG_API bool peg_encode_open_array(peg_encoder *encoder);
PEG_API void peg_encode_close_object(peg_encoder *encoder);
PEG_API void peg_encode_close_array(peg_encoder *encoder);
PEG_API void peg_encode_key(peg_encoder *encoder, peg_str name);
/* A name as JSON has it, with quotes and the colon: "\"city\":". */
PEG_API void peg_encode_quoted_key(peg_encoder *encoder, const char *quoted, size_t len);
PEG_API void peg_encode_null(peg_encoder *encoder);
PEG_API void peg_encode_bool(peg_encoder *encoder, bool truth);
PEG_API void peg_encode_integer(peg_encoder *encoder, int64_t number);
PEG_API void peg_encode_number(peg_encoder *encoder, double number);
PEG_API void peg_encode_string(peg_encoder *encoder, peg_str text);
/* Any value; NULL is null. */
PEG_API void peg_encode_json(peg_encoder *encoder, const peg_json *value);
PEG_API void peg_encode_enum(peg_encoder *encoder, unsigned index, const peg_str *names, size_t n);
/* Fails: `what` says which member of a struct has a value that is none. */
PEG_API void peg_encode_fail(peg_encoder *encoder, const char *what);

#define PEG_ENCODE_KEY(encoder, quoted) peg_encode_quoted_key(encoder, quoted, sizeof(quoted) - 1)

/* ---- in a handler, and in a call ---------------------------------------------------------- */

/* Answers a call with what was encoded, or fails it with what went wrong. The encoder is empty
 * afterwards. The errors of call.h. */
PEG_API peg_status peg_call_reply_encoded(peg_call *call, peg_encoder *encoder);
/* peg_call_add_server_data() with what was encoded; the encoder is empty afterwards. */
PEG_API peg_status peg_call_add_server_data_encoded(peg_call *call, const char *kind,
                                                    const char *audience, peg_encoder *encoder);

/* What a call came to; borrowed from the arena. */
typedef struct peg_typed_answer {
    const peg_json *value;       /* the result; text that is no JSON is a string */
    const peg_json *server_data; /* an array of {kind, audience, data}; NULL if there is none */
} peg_typed_answer;

/*
 * Calls a tool of the context's registry, which may be an imported one, with what was encoded.
 * PEG_EHOST (E_TYPED_CALL: the call has failed; the message is what a model would read, `cause` its
 * code if it is one of the library's), PEG_EINVAL, PEG_ENOMEM, and those of peg_call_run().
 */
PEG_API PEG_MUST_USE peg_status peg_typed_call(peg_ctx *ctx, const char *tool, peg_encoder *args,
                                               peg_arena *arena, peg_typed_answer *ret_answer,
                                               peg_error *reterr);
/* The data of a kind in server_data, or NULL. */
PEG_API const peg_json *peg_typed_server_data(const peg_typed_answer *answer, const char *kind);

#ifdef __cplusplus
}
#endif
#endif
