/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_INSTRUMENTED_H
#define PEG_TESTS_INSTRUMENTED_H

/* For tests that look at memory: a sanitizer and valgrind need more of it, and keep it longer. */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define T_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define T_SANITIZED 1
#endif
#endif
#ifndef T_SANITIZED
#define T_SANITIZED 0
#endif

static inline bool t_is_instrumented(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return T_SANITIZED || (preload && strstr(preload, "vgpreload"));
}

#endif
