/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_ENGINE_H
#define PEGBOARD_ENGINE_H

/*
 * Engines: models behind HTTP. Link libpegboard-engine.
 *
 *   peg_model *model;
 *   peg_model_new(&(peg_model_config){PEG_MODEL_CONFIG_INIT, .vendor = PEG_VENDOR_OPENAI_CHAT,
 *                                     .model.model = "gpt-4.1"},
 *                 &model, &error);
 *   config.loop.engine = peg_model_engine(model);
 *
 * The key comes from the environment. Any server that speaks a vendor's protocol works with
 * base_url ("http://127.0.0.1:11434/v1").
 *
 * Shared, immutable, reference counted; any number of runs on any thread. Starts no thread of its
 * own; libcurl may, to resolve a name.
 */

#include <pegboard/definitions.h>
#include <pegboard/dispatch.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What to do with a call without an answer: vendors refuse such a request. */
typedef enum peg_unanswered {
    PEG_UNANSWERED_SAY_SO = 0, /* answered with a sentence that the outcome is not known */
    PEG_UNANSWERED_REFUSE,     /* PEG_ESTATE (E_ENGINE_UNANSWERED) before anything is sent */
} peg_unanswered;

/* How results are put before the model. */
typedef enum peg_result_style {
    PEG_RESULTS_ENVELOPED = 0, /* envelope.h: what is not trusted says so */
    PEG_RESULTS_PLAIN,         /* the text itself; {"error": ...} of a failure */
} peg_result_style;

/* What a model is asked for beside the conversation. Zero means that it is not said. */
typedef struct peg_model_options {
    size_t size;        /* set by PEG_MODEL_OPTIONS_INIT */
    const char *model;  /* required */
    int64_t max_tokens; /* of the answer [Anthropic 4,096, which wants one] */
    const double *temperature;
    const double *top_p;
    const char *const *stop; /* NULL-terminated; may be NULL */
    const char *reasoning;   /* "low", "medium", "high": how hard to think */
    int64_t thinking_tokens; /* Anthropic and Gemini: budget for thoughts */
    bool strict;             /* see peg_definitions_options */
    bool json_schema;        /* see peg_definitions_options */
    const char *extra;       /* JSON object: members of the request as the vendor has them, last */
    peg_unanswered unanswered;
    peg_result_style results;
    int64_t max_media_bytes; /* of one media sent as bytes [20 MiB]; larger: its fallback text */
} peg_model_options;
#define PEG_MODEL_OPTIONS_INIT .size = sizeof(peg_model_options)

/* Everything but vendor and model.model has a default, told here in brackets. Copied. */
typedef struct peg_model_config {
    size_t size; /* set by PEG_MODEL_CONFIG_INIT */
    peg_model_options model;
    peg_vendor vendor;
    const char *base_url;    /* [the vendor's own] */
    const char *api_key;     /* [the environment variable] */
    const char *api_key_env; /* [OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY]; "": no key */
    const char *const *headers; /* more of them, "Name: value", NULL-terminated; may be NULL */
    bool no_stream;             /* ask for the whole answer at once */
    int64_t connect_ms;         /* [10,000] */
    int64_t idle_ms;            /* without a byte [120,000]; negative: for ever */
    int64_t total_ms;           /* of one try [600,000]; negative: for ever */
    int max_tries;           /* [4]; tries again before anything was heard: 408, 409, 429, 500, 502,
                              * 503, 504, 529, and connections that failed */
    int64_t backoff_ms;      /* before the second try, then twice as long, +-10 % [500] */
    int64_t backoff_max_ms;  /* also of what Retry-After asks for: longer gives up [30,000] */
    int64_t max_reply_bytes; /* [64 MiB] */
} peg_model_config;
#define PEG_MODEL_CONFIG_INIT .size = sizeof(peg_model_config), .model = {PEG_MODEL_OPTIONS_INIT}

typedef struct peg_model peg_model;

/* PEG_EINVAL (E_ENGINE_CONFIG) names the field; PEG_ENOTFOUND (E_ENGINE_CONFIG): the variable is
 * not set; PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_model_new(const peg_model_config *config, peg_model **ret_model,
                                              peg_error *reterr);
PEG_API peg_model *peg_model_ref(peg_model *model);
PEG_API peg_model *peg_model_unref(peg_model *model);

/*
 * The engine of a peg_dispatch_options, borrowed: the model outlives the runs. It asks the model
 * and adds the answer to the turn, with events while it comes in. It fails with PEG_EIO
 * (E_ENGINE_TRANSPORT), PEG_EHOST (E_ENGINE_AUTH, E_ENGINE_QUOTA, E_ENGINE_RATE_LIMITED,
 * E_ENGINE_OVERLOADED, E_ENGINE_REQUEST, E_ENGINE_FAILED, with the vendor's own words),
 * PEG_EPARSE (E_ENGINE_REPLY), PEG_ELIMIT (E_ENGINE_TOO_LARGE), PEG_ETIMEOUT (E_ENGINE_TIMEOUT), or
 * as peg_ctx_check() tells.
 */
PEG_API peg_engine peg_model_engine(peg_model *model);

/* ---- in libpegboard itself: what would be sent ------------------------------------------ */

/* The body of a request for a turn with its definitions and tool config: JSON text, the same bytes
 * each time, freed with peg_free(). No registry is asked: what a record says about trust counts.
 * definitions NULL: the turn's. is_streaming adds what asks for a stream. ret_len may be NULL. */
PEG_API PEG_MUST_USE peg_status peg_engine_render(peg_vendor vendor,
                                                  const peg_model_options *options,
                                                  const peg_turn *turn, const peg_json *definitions,
                                                  bool is_streaming, char **ret_text,
                                                  size_t *ret_len, peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
