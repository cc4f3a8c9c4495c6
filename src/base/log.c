/* SPDX-License-Identifier: Apache-2.0 */

#include "base/error.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/text/str.h"

enum { NOTHING_WANTED = PEG_LOG_ERROR + 1 };

/* Read-locked while a hook runs, so that peg_log_set() can wait for it to end. Writers first:
 * threads that log without a pause would otherwise keep it waiting for seconds. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static peg_log_fn hook_fn; /* under lock */
static void *hook_user;    /* under lock */

/* What the hook wants to hear; a hint outside the lock, so that silence costs one load. */
static atomic_int least_wanted = NOTHING_WANTED;

/* Set while this thread is in the hook: a second read lock could wait for a writer that waits
 * for the first. */
static _Thread_local bool in_hook;

peg_status peg_log_set(peg_log_fn hook, peg_log_level least, void *user)
{
    if (in_hook || (int)least < PEG_LOG_DEBUG || least > PEG_LOG_ERROR)
        return PEG_EINVAL;
    pthread_rwlock_wrlock(&lock);
    hook_fn = hook;
    hook_user = user;
    atomic_store_explicit(&least_wanted, hook ? (int)least : NOTHING_WANTED, memory_order_relaxed);
    pthread_rwlock_unlock(&lock);
    return PEG_OK;
}

bool peg__log_wants(peg_log_level level)
{
    return (int)level >= atomic_load_explicit(&least_wanted, memory_order_relaxed) && !in_hook;
}

static void call_hook(peg_log_level level, const char *code, const char *message)
{
    pthread_rwlock_rdlock(&lock);
    in_hook = true;
    /* Asked again: the hook may have changed since the hint was read. */
    if (hook_fn && (int)level >= atomic_load_explicit(&least_wanted, memory_order_relaxed))
        hook_fn(level, code, message, hook_user);
    in_hook = false;
    pthread_rwlock_unlock(&lock);
}

void peg__log(peg_log_level level, const char *code, const char *fmt, ...)
{
    char message[PEG_LOG_MESSAGE_BYTES];
    va_list args;
    int len;

    if (!peg__log_wants(level))
        return;
    va_start(args, fmt);
    len = vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    if (len < 0)
        return;
    if (len >= (int)sizeof(message))
        memcpy(message + peg__utf8_cut(message, sizeof(message) - 4), "...", 4);
    call_hook(level, code, message);
}

const char *peg_log_level_name(peg_log_level level)
{
    switch (level) {
    case PEG_LOG_DEBUG:
        return "debug";
    case PEG_LOG_INFO:
        return "info";
    case PEG_LOG_WARN:
        return "warn";
    case PEG_LOG_ERROR:
        return "error";
    }
    return "unknown";
}
