/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/cli.h"

#include <errno.h>
#include <stdatomic.h>

static atomic_int first_errno;

static void keep_errno(void)
{
    int none = 0;

    (void)atomic_compare_exchange_strong(&first_errno, &none, errno);
}

void cli_write(FILE *to, peg_str text)
{
    if (text.len && fwrite(text.ptr, 1, text.len, to) != text.len && to == stdout)
        keep_errno();
}

bool cli_flush(void)
{
    if (fflush(stdout))
        keep_errno();
    return !ferror(stdout);
}

int cli_output_errno(void)
{
    return atomic_load(&first_errno);
}
