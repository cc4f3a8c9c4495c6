/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/cli.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "cli/terminal/terminal.h"
#include "json/json.h"

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

void cli_print_line(struct peg__buf *line)
{
    fprintf(stderr, "%s\n", line->status ? "pegboard: out of memory" : line->ptr);
    peg__buf_free(line);
}

void cli_put_place(struct peg__buf *out, const char *path, const peg_error *error)
{
    cli_put_safe(out, peg__str(cli_file_label(path)));
    if (error->line)
        peg__buf_printf(out, ":%u:%u", error->line, error->column);
}

/* ---- JSON ---- */

void cli_out_bool(struct peg__out *out, const char *name, bool truth)
{
    peg__out_key(out, name);
    peg__out_bool(out, truth);
}

void cli_out_integer(struct peg__out *out, const char *name, int64_t number)
{
    peg__out_key(out, name);
    peg__out_integer(out, number);
}

void cli_out_raw(struct peg__out *out, const char *name, peg_str json)
{
    peg__out_key(out, name);
    if (json.len)
        peg__out_raw(out, json);
    else
        peg__out_null(out);
}

void cli_out_file(struct peg__out *out, const char *path)
{
    const peg_str name = peg__str(path);
    struct peg__buf clean = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    for (size_t i = 0; i < name.len && !peg__utf8_is_valid(name); i++) {
        if ((unsigned char)name.ptr[i] < 0x80)
            peg__buf_putc(&clean, name.ptr[i]);
        else
            peg__buf_puts(&clean, "\xEF\xBF\xBD"); /* U+FFFD */
    }
    peg__out_member(out, "file", clean.len ? peg__buf_view(&clean) : name);
    peg__buf_free(&clean);
}

void cli_out_array(struct peg__out *out, const char *name)
{
    peg__out_key(out, name);
    peg__out_array(out);
}

void cli_out_end_line(struct peg__out *out)
{
    peg__out_end_object(out);
    peg__buf_putc(out->buf, '\n');
}
