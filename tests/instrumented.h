/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_INSTRUMENTED_H
#define PEG_TESTS_INSTRUMENTED_H

/* For tests that look at memory: a sanitizer and valgrind need more of it, and keep it longer. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

struct t_memory {
    size_t address_space; /* bytes; 0: not known */
    size_t resident;
};

static inline struct t_memory t_memory(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned long all = 0;
    unsigned long resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file) {
        if (fscanf(file, "%lu %lu", &all, &resident) != 2)
            all = resident = 0;
        fclose(file);
    }
    return (struct t_memory){all * page, resident * page};
}

#endif
