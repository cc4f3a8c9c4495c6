/* SPDX-License-Identifier: Apache-2.0 */

/* What a busy time needed is given back to the system when it is over. Of itself the C library does
 * that only with the very end of its memory, and one small piece that lives on there keeps
 * megabytes before it. How a process treats its memory is not for a library to say; this is a
 * program. */

#include "cli/serve/serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum {
    /* Of a core. Giving back locks the allocator, and then few wait for it. */
    QUIET_PER_CENT = 10,
    /* Less is what an idle gateway takes for its pings, and there is little new to give. */
    BUSY_MS = 20,
    /* But kept results expire without any work. */
    IDLE_CHECKS = 6,
};

void serve_share_memory(unsigned n_loops)
{
#ifdef __GLIBC__
    /* Of itself one of its own for each thread, also for those that do next to nothing; and of
     * these only the first is ever given back to its end. */
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there are no threads yet */
    (void)mallopt(M_ARENA_MAX, n_loops ? (int)n_loops : 1);
#else
    (void)n_loops;
#endif
}

int64_t serve_cpu_ms(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
        return 0;
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Also of a gateway that is never quiet: what it keeps for later is most of what it has. */
bool serve_keeps_much(void)
{
#ifdef __GLIBC__
    enum { MUCH = 64 << 20, DECIMAL = 10 };
    const struct mallinfo2 info = mallinfo2();
    const size_t used = info.uordblks + info.hblkhd;
    char line[128] = "";
    FILE *file = fopen("/proc/self/statm", "re");
    char *resident = NULL;
    size_t bytes = 0;

    if (file && fgets(line, sizeof(line), file))
        resident = strchr(line, ' ');
    if (resident)
        bytes = strtoul(resident, NULL, DECIMAL) * (size_t)sysconf(_SC_PAGESIZE);
    if (file)
        fclose(file);
    return bytes > MUCH + 2 * used;
#else
    return false;
#endif
}

bool serve_should_give_back(struct serve_memory *memory, int64_t cpu_ms)
{
    const int64_t used_ms = cpu_ms - memory->checked_ms;

    memory->checked_ms = cpu_ms;
    memory->n_checks++;
    if (used_ms * 100 > (int64_t)SERVE_CHECK_MS * QUIET_PER_CENT ||
        (cpu_ms - memory->gave_ms < BUSY_MS && memory->n_checks < IDLE_CHECKS))
        return false;
    memory->gave_ms = cpu_ms;
    memory->n_checks = 0;
    return true;
}

void serve_give_back(void)
{
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}
