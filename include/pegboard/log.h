/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_LOG_H
#define PEGBOARD_LOG_H

/*
 * The one way in which the library speaks without being asked. It never writes
 * to a file or a terminal: a host that wants to hear sets a hook.
 *
 * A message is about the library's own work, and holds names, ids, sizes and
 * durations. Arguments, results and other payload are never part of it. What
 * a function returns as an error it does not log.
 */

#include <pegboard/common.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum peg_log_level {
    PEG_LOG_DEBUG = 0, /* for those who work on pegboard */
    PEG_LOG_INFO,      /* something began, ended or changed */
    PEG_LOG_WARN,      /* it went on, but somebody should look */
    PEG_LOG_ERROR,     /* something was lost or given up */
} peg_log_level;

/* Receives one message. `code` is a stable name such as "E_POOL_ABANDONED" for programs, or "" ;
 * `message` is one sentence without a newline. Both are borrowed for the time of the call. May be
 * called from several threads at once. What the hook itself causes to be logged is dropped. */
typedef void (*peg_log_fn)(peg_log_level level, const char *code, const char *message, void *user);

/* Sets the hook of the process, for messages of `least` and above; NULL unsets it. Any thread.
 * When it returns, the former hook is not running and will not be called again, so that
 * its `user` may be freed. PEG_EINVAL when called from within a hook, which could never
 * keep that promise, or with a level that does not exist. */
PEG_API peg_status peg_log_set(peg_log_fn hook, peg_log_level least, void *user);

/* A short English name of a level, such as "warn"; static. */
PEG_API const char *peg_log_level_name(peg_log_level level);

#ifdef __cplusplus
}
#endif
#endif
