/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_TOOL_CONFIG_H
#define PEGBOARD_TOOL_CONFIG_H

/*
 * How a loop uses tools, as data on the turn (pegboard.tool_config@v1), so that it is written and
 * read with it:
 *
 *   {"enabled": true, "tool_choice": "auto", "max_iterations": 20, "execution_timeout": "30s",
 *    "max_parallel_tools": 4, "tool_error_handling": "continue",
 *    "retry_config": {"max_retries": 2, "backoff_base": "1s", "backoff_factor": 2}}
 *
 * Members that are missing have their default. Durations are text such as "1m30s", or whole
 * nanoseconds. peg_run_settings tells which place counts; a turn, which may come from a file, gets
 * at most 1,000 iterations and an hour a call.
 */

#include <pegboard/run.h>
#include <pegboard/turn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum peg_tool_choice {
    PEG_CHOICE_AUTO = 0,
    PEG_CHOICE_NONE,     /* no tool is offered, none is run */
    PEG_CHOICE_REQUIRED, /* the model must call one; from the first result on: auto */
} peg_tool_choice;

typedef enum peg_error_handling {
    PEG_ERRORS_CONTINUE = 0, /* the model gets the error */
    PEG_ERRORS_ABORT,        /* the first failed call ends the loop; later ones are not run */
    PEG_ERRORS_RETRY,        /* the handler is run again, then the model gets the error */
} peg_error_handling;

/* A value. Zero is not the default everywhere: start from peg_tool_config_default(). */
typedef struct peg_tool_config {
    bool is_enabled; /* [true] */
    peg_tool_choice choice;
    peg_error_handling errors;
    /* [2 retries, after 1 s and then twice as long]: of PEG_ERRORS_RETRY alone. No timeout and no
     * limit of iterations can be negative. */
    peg_run_settings settings;
} peg_tool_config;

PEG_API peg_tool_config peg_tool_config_default(void);
/* *ret_is_there (may be NULL) is false if the turn has none: then it is the default. PEG_ESCHEMA
 * (E_TOOL_CONFIG), `where` names the member. Unknown members are ignored. */
PEG_API PEG_MUST_USE peg_status peg_turn_tool_config(const peg_turn *turn,
                                                     peg_tool_config *ret_config,
                                                     bool *ret_is_there, peg_error *reterr);
/* Keeps members that are not ours. PEG_EINVAL (E_TOOL_CONFIG) for values that cannot be. */
PEG_API PEG_MUST_USE peg_status peg_turn_set_tool_config(peg_turn *turn,
                                                         const peg_tool_config *config,
                                                         peg_error *reterr);

/* ---- durations ----------------------------------------------------------------------- */

/* As Go writes them: "1h2m3.5s", "100ms", "-1.5us", "0"; units ns, us (also with the micro sign),
 * ms, s, m, h. PEG_EPARSE (E_DURATION). */
PEG_API PEG_MUST_USE peg_status peg_duration_parse(peg_str text, int64_t *ret_ns,
                                                   peg_error *reterr);
enum { PEG_DURATION_TEXT = 64 };
PEG_API void peg_duration_text(int64_t ns, char ret_text[PEG_DURATION_TEXT]);

#ifdef __cplusplus
}
#endif
#endif
