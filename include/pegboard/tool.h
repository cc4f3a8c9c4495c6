/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_TOOL_H
#define PEGBOARD_TOOL_H

/*
 * A tool: a name and a description that a model reads, a JSON Schema that checks what the
 * model sends, and a handler. The schema is compiled once; what the model reads and what the
 * handler gets come from that one object.
 *
 * Shared, immutable, reference counted; a tool may be used from any thread. Its handler is
 * called from whatever thread runs a call, perhaps from several at once.
 */

#include <pegboard/schema.h>
#include <pegboard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs one call. args is an object that the tool's schema has accepted, defaults filled in, and
 * lives as long as the call. Answer once, with a peg_call_reply...() or peg_call_fail(); answering
 * nothing is a failure. */
typedef void (*peg_tool_fn)(peg_call *call, const peg_json *args, void *user);

/* What happens when this tool comes into a registry that has its name already: see
 * peg_registry_merge(). */
typedef enum peg_collision {
    PEG_COLLISION_FAIL = 0, /* the merge decides */
    PEG_COLLISION_REPLACE,
    PEG_COLLISION_KEEP,
} peg_collision;

/* Only name, description and run are required. Everything is copied but user. */
typedef struct peg_tool_def {
    size_t size;               /* set by PEG_TOOL_DEF_INIT */
    const char *name;          /* [A-Za-z0-9_.:/-]{1,256}; lower snake_case suits every model */
    const char *description;   /* what it does and when to use it, for the model */
    const char *input_schema;  /* JSON Schema text, root type "object"; NULL: takes no arguments */
    const char *output_schema; /* JSON Schema text; NULL: results are not checked */
    peg_tool_fn run;
    void *user;                /* passed to run */
    void (*user_free)(void *); /* called once with user when the tool dies; NULL if not owned */

    bool ephemeral;      /* gone when the dispatch is acked */
    bool trusted;        /* its text results are rendered as trusted */
    bool inline_result;  /* render its results whole, whatever their size */
    bool open_arguments; /* keep input_schema as it is, open if it is silent about other members */
    /* Hints, for hosts and gateways. Here only resuming acts on them: a call that may have run is
     * run again if its tool is one of the first two (peg_pending_policy). */
    bool read_only;
    bool idempotent;
    bool destructive; /* may remove or overwrite what was there */
    bool additive;    /* changes something, but only adds: known not to be destructive */
    peg_collision on_collision;

    const peg_artifact_kind *artifact_kind; /* of text results; NULL: text, or JSON for JSON */
    int64_t timeout_ms;                     /* 0: the run's; negative: none */
    const char *version;                    /* such as "1.2"; NULL: none */
    const char *const *tags;                /* NULL-terminated; may be NULL */
    const char *examples; /* JSON array of argument objects, each valid; may be NULL */
    const char *meta;     /* JSON object for the handler, read with peg_call_meta(); may be NULL */

    const peg_schema_options *schema_options; /* documents, dialect, formats; may be NULL */
    peg_schema_cache *schema_cache;           /* shares equal schemas between tools; may be NULL */
} peg_tool_def;
#define PEG_TOOL_DEF_INIT .size = sizeof(peg_tool_def)

/*
 * Makes a tool. PEG_EINVAL (E_INVALID_INITIAL_TOOL_VALUE) for what cannot work, with the field
 * as `where` ("/name", "/input_schema/properties/x"), the schema's own code as `cause`;
 * PEG_ENOMEM. On failure user_free is not called: user stays the caller's.
 *
 * The root of input_schema says "type": "object", or has references or branches that may be one. If
 * it is silent about other members, it is closed: with additionalProperties, or beside references
 * and branches with unevaluatedProperties. Drafts before 2019-09 cannot say the latter: then it
 * stays open, and the log says so (E_TOOL_ARGUMENTS_OPEN).
 */
PEG_API PEG_MUST_USE peg_status peg_tool_new(const peg_tool_def *def, peg_tool **ret_tool,
                                             peg_error *reterr);
/* The same for a tool whose text answers are shown to the model as they are and never become
 * artifacts, such as the queries of an artifact. artifact_kind must be NULL. */
PEG_API PEG_MUST_USE peg_status peg_artifact_tool_new(const peg_tool_def *def, peg_tool **ret_tool,
                                                      peg_error *reterr);
PEG_API peg_tool *peg_tool_ref(peg_tool *tool);
PEG_API peg_tool *peg_tool_unref(peg_tool *tool);

/* ---- what it is: all borrowed from the tool ---------------------------------- */

PEG_API const char *peg_tool_name(const peg_tool *tool);
PEG_API const char *peg_tool_description(const peg_tool *tool);
PEG_API const char *peg_tool_version(const peg_tool *tool);           /* "" if none */
PEG_API const peg_json *peg_tool_input_schema(const peg_tool *tool);  /* as enforced */
PEG_API const peg_json *peg_tool_output_schema(const peg_tool *tool); /* NULL if none */
PEG_API const peg_json *peg_tool_examples(const peg_tool *tool);      /* NULL if none */
PEG_API const peg_json *peg_tool_meta(const peg_tool *tool);          /* an object, perhaps empty */
PEG_API const char *const *peg_tool_tags(const peg_tool *tool);       /* NULL-terminated */
PEG_API const peg_artifact_kind *peg_tool_artifact_kind(const peg_tool *tool); /* NULL if unset */
PEG_API peg_collision peg_tool_on_collision(const peg_tool *tool);
PEG_API int64_t peg_tool_timeout_ms(const peg_tool *tool);
PEG_API bool peg_tool_is_ephemeral(const peg_tool *tool);
PEG_API bool peg_tool_is_trusted(const peg_tool *tool);
PEG_API bool peg_tool_is_inline(const peg_tool *tool);
PEG_API bool peg_tool_is_artifact_tool(const peg_tool *tool);
PEG_API bool peg_tool_is_read_only(const peg_tool *tool);
PEG_API bool peg_tool_is_idempotent(const peg_tool *tool);
PEG_API bool peg_tool_is_destructive(const peg_tool *tool);
PEG_API bool peg_tool_is_additive(const peg_tool *tool);

/* Plain data that every vendor's definition is rendered from: name, description, inputSchema,
 * and outputSchema, version, tags, examples, hints where there are any. A new document each time.
 */
PEG_API PEG_MUST_USE peg_status peg_tool_describe(const peg_tool *tool, peg_json_doc **ret_doc,
                                                  peg_error *reterr);

/* Checks arguments as a call would. PEG_OK: *ret_filled is a new document with defaults filled in,
 * or NULL if none was missing. PEG_ESCHEMA (E_INVALID_TOOL_ARGS) names the first failures; the
 * record of a call names all. */
PEG_API PEG_MUST_USE peg_status peg_tool_validate(const peg_tool *tool, const peg_json *args,
                                                  peg_json_doc **ret_filled, peg_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
