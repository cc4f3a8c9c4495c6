/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs a fuzz target over a corpus without libFuzzer: every file as it is, then cut short at every
 * place and with every byte damaged, since most mistakes show at an end or at a wrong byte. Prints
 * TAP; a property that does not hold aborts, and the last "# running" line says on what.
 */

#include <dirent.h>

#include "fuzz.h"

enum { MAX_FILE = 1 << 20, MAX_MUTATED = 400 };

static unsigned char bytes[MAX_FILE];

/* In memory of exactly that size, so that a sanitizer sees a read past the end. */
static void run_exact(const unsigned char *data, size_t size)
{
    unsigned char *exact = malloc(size ? size : 1);

    if (!exact)
        abort();
    if (size)
        memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static void run_mutated(size_t size)
{
    static const unsigned char damage[] = {0x00, 0x22, 0x5C, 0x80, 0xFF};

    for (size_t cut = 0; cut < size; cut++)
        run_exact(bytes, cut);
    for (size_t at = 0; at < size; at++) {
        const unsigned char was = bytes[at];

        bytes[at] = damage[at % sizeof(damage)];
        run_exact(bytes, size);
        bytes[at] = was;
    }
}

static void run_all(size_t size)
{
    run_exact(bytes, size);
    if (size <= MAX_MUTATED)
        run_mutated(size);
}

/* Twice: what a target keeps and warms up between inputs is there after the first time. */
static bool run_file(const char *path)
{
    FILE *file = fopen(path, "rbe");
    size_t size;
    size_t live;

    if (!file)
        return false;
    size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    run_all(size);
    live = peg__mem_live();
    run_all(size);
    if (peg__mem_live() != live)
        printf("# %zd blocks were not freed\n", (ssize_t)(peg__mem_live() - live));
    return peg__mem_live() == live;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    struct dirent **entries = NULL;
    const int n = argc == 2 ? scandir(argv[1], &entries, is_visible, alphasort) : -1;
    int n_failed = 0;

    if (n <= 0) {
        fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
        return EXIT_FAILURE;
    }
    for (int i = 0; i < n; i++) {
        char path[4096];
        bool passed;

        snprintf(path, sizeof(path), "%s/%s", argv[1], entries[i]->d_name);
        printf("# running %s\n", entries[i]->d_name);
        fflush(stdout);
        passed = run_file(path);
        n_failed += !passed;
        printf("%s %d - %s\n", passed ? "ok" : "not ok", i + 1, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    printf("1..%d\n", n);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
