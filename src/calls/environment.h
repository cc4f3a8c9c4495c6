/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_ENVIRONMENT_H
#define PEG_CALLS_ENVIRONMENT_H

/*
 * What calls need and do not have: the toolsets of the registry, where providers are and whether
 * they are well, who is a principal, and counters. A gateway has it (gateway/routing/), and so may
 * a test. All of it is of one loop, and called on its thread.
 */

#include "base/buf.h"
#include "base/hash.h"
#include "base/limits.h"
#include "bus/bus.h"
#include "calls/outcome.h"
#include "pegboard/schema.h"

enum { CALLS_INCARNATION = 65 }; /* bytes of the name of a provider, with its NUL */

/* What calls read of a toolset and of a tool. The environment's own structs begin with these
 * members. Immutable; a toolset is reference counted, its tools live as long as it does. */
#define CALLS_TOOLSET_MEMBERS                                                                      \
    peg_str name;                                                                                  \
    peg_str owner; /* the principal */                                                             \
    uint64_t revision
struct calls_toolset {
    CALLS_TOOLSET_MEMBERS;
};

#define CALLS_TOOL_MEMBERS                                                                         \
    peg_str name;                                                                                  \
    int64_t timeout_ms; /* 0: the gateway's */                                                     \
    bool is_idempotent
struct calls_tool {
    CALLS_TOOL_MEMBERS;
};

enum calls_schema { CALLS_INPUT, CALLS_OUTPUT };

/* Counts the calls of one toolset; the environment's. NULL: nothing is counted. */
struct calls_meter;

/* Providers that did not take a call, or took it and gave it back. */
struct calls_refusals {
    uint64_t by[PEG_LIMIT_GATEWAY_ATTEMPTS]; /* hashes */
    bool was_given_back[PEG_LIMIT_GATEWAY_ATTEMPTS];
    unsigned n;
    bool met_outdated; /* a provider served another revision, which the call did not fit */
};

/* A call that looks for a provider. */
struct calls_choice {
    const struct calls_toolset *toolset;
    const struct calls_refusals *refusals;
    bool is_node_local;   /* its registers are not seen by other nodes */
    const char *released; /* the provider that it had before; NULL: none */
};

/* Has it refused the call? One that gave it back has, unless that is forgiven. */
bool calls_choice_has_refused(const struct calls_choice *choice, const char *incarnation,
                              struct bus_address address, bool is_forgiven);

struct calls_chosen {
    char incarnation[CALLS_INCARNATION];
    struct bus_address address; /* the loop that has its stream */
};

/* A provider of this loop, as all loops and nodes are to see it. */
struct calls_presence {
    const struct calls_toolset *toolset;
    const char *incarnation;
    uint32_t credits;
    uint64_t serves; /* the revision that its stream has spoken of */
    bool is_draining;
};

/* Toolsets that are returned are borrowed until the catalog changes, or the caller takes a
 * reference. None may be NULL. */
struct calls_environment {
    /* ---- toolsets ---- */
    struct calls_toolset *(*find_toolset)(void *user, peg_str name); /* NULL: there is none */
    const struct calls_tool *(*find_tool)(void *user, const struct calls_toolset *toolset,
                                          peg_str name); /* likewise */
    struct calls_toolset *(*ref_toolset)(void *user, struct calls_toolset *toolset);
    struct calls_toolset *(*unref_toolset)(void *user, struct calls_toolset *toolset); /* or NULL */
    /* The same tools, taking and giving the same? */
    bool (*has_same_schemas)(void *user, const struct calls_toolset *toolset,
                             const struct calls_toolset *other);
    /* A reference, or NULL where there is no output schema. False: no memory. */
    bool (*get_schema)(void *user, const struct calls_tool *tool, enum calls_schema which,
                       peg_schema **ret_schema);
    /* Do both take, or give, the same? A tool without output schema gives what any other does. */
    bool (*is_same_schema)(void *user, const struct calls_tool *tool,
                           const struct calls_tool *other, enum calls_schema which);

    /* ---- providers, of all loops and nodes ---- */
    bool (*is_healthy)(void *user, peg_str toolset);
    void (*explain_health)(void *user, peg_str toolset, struct peg__buf *ret_text);
    /* Are all providers of the toolset on this node? */
    bool (*is_served_here)(void *user, peg_str toolset);
    bool (*is_attached)(void *user, peg_str toolset, peg_str incarnation);
    /* The best provider for the call, which has one call more from now on, the one before one less.
     * False: no provider can run it, and nothing else has changed. */
    bool (*choose)(void *user, const struct calls_choice *choice, struct calls_chosen *ret_chosen);
    /* Where that provider is, if it may run the call still. */
    bool (*locate)(void *user, const struct calls_choice *choice, const char *incarnation,
                   struct bus_address *ret_address);
    /* It has one call less. */
    void (*release)(void *user, peg_str toolset, const char *incarnation);
    /* It gave a call back that did not fit the revision it serves. */
    void (*note_outdated)(void *user, peg_str toolset, const char *incarnation);

    /* ---- providers of this loop ---- */
    /* PEG_ENOMEM, PEG_ELIMIT. */
    peg_status (*put_presence)(void *user, const struct calls_presence *presence,
                               peg_error *reterr);
    void (*remove_presence)(void *user, peg_str toolset, const char *incarnation);
    void (*note_pong)(void *user, peg_str toolset, const char *incarnation);
    /* It is not healthy until its next pong. */
    void (*await_pong)(void *user, peg_str toolset, const char *incarnation);
    void (*note_serves)(void *user, peg_str toolset, const char *incarnation, uint64_t revision);
    bool (*knows_principal)(void *user, peg_str principal);

    /* ---- counters; a meter lives as long as the environment, and may be NULL ---- */
    struct calls_meter *(*get_meter)(void *user, peg_str toolset);
    void (*count_admitted)(struct calls_meter *meter);
    void (*count_refused)(struct calls_meter *meter);
    void (*count_ended)(struct calls_meter *meter, enum calls_outcome_kind kind, int64_t ns);
    void (*count_queued)(struct calls_meter *meter, int by);
    void (*count_late_result)(struct calls_meter *meter);
};

#endif
