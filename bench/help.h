/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_HELP_H
#define BENCH_HELP_H

/* --help and -h of the programs of the bench. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints the text and ends the program if one of its arguments asks for help. */
static inline void bench_help(int argc, char **argv, const char *text)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") != 0 && strcmp(argv[i], "-h") != 0)
            continue;
        fputs(text, stdout);
        exit(0);
    }
}

#endif
