/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_DEFINITIONS_H
#define PEGBOARD_DEFINITIONS_H

/*
 * What is advertised of tools to a model. The neutral form is what a turn holds under
 * pegboard.tool_definitions@v1, an array in registry order of
 *
 *   {"name", "description", "parameters": {schema}, "output"?, "examples"?, "tags"?, "version"?,
 *    "hints"?, "ephemeral"?}
 *
 * and each vendor's form is rendered from it, with a report of what that vendor does not take.
 *
 * Pure functions; any thread. peg_definition_losses is owned.
 */

#include <pegboard/registry.h>
#include <pegboard/turn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the neutral form ----------------------------------------------------------------- */

/* The visible tools of a registry, in order. */
PEG_API PEG_MUST_USE peg_status peg_registry_definitions(peg_registry *registry,
                                                         peg_json_doc **ret_doc, peg_error *reterr);
/* Those that a turn holds; NULL if none. PEG_ESCHEMA (E_KEY_VALUE) if it is not an array of objects
 * with names. Borrowed from the turn until its data changes. */
PEG_API PEG_MUST_USE peg_status peg_turn_definitions(const peg_turn *turn,
                                                     const peg_json **ret_defs, peg_error *reterr);
/* Takes the visible tools of a registry as the turn's definitions: what a dispatch does before each
 * engine call. */
PEG_API PEG_MUST_USE peg_status peg_turn_sync_definitions(peg_turn *turn, peg_registry *registry,
                                                          peg_error *reterr);

/* ---- a vendor's form ------------------------------------------------------------------ */

typedef enum peg_vendor {
    PEG_VENDOR_NEUTRAL = 0,
    PEG_VENDOR_OPENAI_CHAT,
    PEG_VENDOR_OPENAI_RESPONSES,
    PEG_VENDOR_ANTHROPIC,
    PEG_VENDOR_GEMINI,
    PEG_N_VENDORS,
} peg_vendor;

/* "neutral", "openai-chat", "openai-responses", "anthropic", "gemini"; static. */
PEG_API const char *peg_vendor_name(peg_vendor vendor);
/* PEG_ENOTFOUND (E_DEFINITIONS) lists the names there are. */
PEG_API PEG_MUST_USE peg_status peg_vendor_from_name(peg_str name, peg_vendor *ret_vendor,
                                                     peg_error *reterr);

/* One thing that the vendor does not take as the schema says it. Borrowed from its list. */
typedef struct peg_definition_loss {
    peg_str tool;     /* as registered */
    peg_str where;    /* JSON Pointer into its parameters; "" for the tool itself */
    peg_str keyword;  /* "pattern", "oneOf", ..., or "name" */
    const char *what; /* "dropped", "rewritten", "described" (moved into the description) */
    peg_str note;     /* a sentence */
} peg_definition_loss;

typedef struct peg_definition_losses peg_definition_losses;
PEG_API size_t peg_definition_losses_len(const peg_definition_losses *losses);
PEG_API const peg_definition_loss *peg_definition_losses_at(const peg_definition_losses *losses,
                                                            size_t i); /* or NULL */
PEG_API peg_definition_losses *peg_definition_losses_free(peg_definition_losses *losses);

/* Zero means the default, told here in brackets. */
typedef struct peg_definitions_options {
    size_t size; /* set by PEG_DEFINITIONS_OPTIONS_INIT */
    peg_vendor vendor;
    /* OpenAI: promise that arguments fit the schema. Optional members become nullable and required,
     * as its strict mode wants; a tool that cannot be said so is sent without. */
    bool strict;
    /* Gemini: send parametersJsonSchema, which takes most of JSON Schema, instead of parameters, an
     * OpenAPI subset. */
    bool json_schema;
    size_t max_tools;      /* [OpenAI 128, Anthropic and Gemini 512; neutral: no limit] */
    size_t max_name_bytes; /* [64; neutral 256] */
} peg_definitions_options;
#define PEG_DEFINITIONS_OPTIONS_INIT .size = sizeof(peg_definitions_options)

/*
 * The array that goes under "tools" of a request (Gemini: its one entry with functionDeclarations
 * included), compact JSON, the same bytes each time; "[]" for no definitions. Names that the
 * vendor does not take are made acceptable, and reported as losses ("fs.read" becomes "fs_read";
 * two names that would become one are told apart, always the same way). ret_losses may be NULL. The
 * text is freed with peg_free(), ret_len may be NULL.
 *
 * PEG_EINVAL (E_DEFINITIONS, `where` "/3/name") for definitions that are none; PEG_ELIMIT
 * (E_DEFINITIONS): too many, or a name too long; PEG_ENOMEM.
 */
PEG_API PEG_MUST_USE peg_status peg_definitions_render(const peg_json *definitions,
                                                       const peg_definitions_options *options,
                                                       char **ret_text, size_t *ret_len,
                                                       peg_definition_losses **ret_losses,
                                                       peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
