/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/terminal/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text/str.h"

static const struct cli_style plain = {"", "", "", "", ""};
static const struct cli_style coloured = {"\033[1m", "\033[2m", "\033[32m", "\033[31m", "\033[0m"};

bool cli_color_read(const char *text, enum cli_color *ret_color)
{
    static const char *const names[] = {"auto", "always", "never"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_color = (enum cli_color)i;
            return true;
        }
    }
    return false;
}

static bool terminal_takes_colour(int fd)
{
    const char *no_color = secure_getenv("NO_COLOR");
    const char *term = secure_getenv("TERM");

    return isatty(fd) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
}

const struct cli_style *cli_style_for(enum cli_color color, int fd)
{
    if (color == CLI_COLOR_ALWAYS || (color == CLI_COLOR_AUTO && terminal_takes_colour(fd)))
        return &coloured;
    return &plain;
}

unsigned cli_width(int fd)
{
    enum { USUAL = 80, NARROWEST = 20 };
    struct winsize size = {.ws_col = 0};

    if (!isatty(fd))
        return 0;
    if (ioctl(fd, TIOCGWINSZ, &size) || !size.ws_col)
        return USUAL;
    return size.ws_col < NARROWEST ? NARROWEST : size.ws_col;
}

/* U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069: they make text look like other text. Reads
 * three bytes. */
static bool turns_text_around(const char *text)
{
    const unsigned char last = (unsigned char)text[2];

    if (memcmp(text, "\xE2\x80", 2) == 0)
        return last == 0x8E || last == 0x8F || (last >= 0xAA && last <= 0xAE);
    return memcmp(text, "\xE2\x81", 2) == 0 && last >= 0xA6 && last <= 0xA9;
}

/* C0, DEL, and in their UTF-8 form C1 and what controls the direction of writing: returns how many
 * bytes to write out, or 0. */
static size_t control_at(peg_str text, size_t i)
{
    const unsigned char c = (unsigned char)text.ptr[i];

    if (c < 0x20 || c == 0x7F)
        return 1;
    if (c == 0xC2 && i + 1 < text.len && (unsigned char)text.ptr[i + 1] < 0xA0)
        return 2;
    if (c == 0xE2 && i + 2 < text.len && turns_text_around(text.ptr + i))
        return 3;
    return 0;
}

void cli_put_safe(struct peg__buf *out, peg_str text)
{
    size_t start = 0;
    size_t i = 0;

    while (i < text.len) {
        const size_t n = control_at(text, i);

        if (n == 0) {
            i++;
            continue;
        }
        peg__buf_add(out, text.ptr + start, i - start);
        for (start = i + n; i < start; i++)
            peg__buf_printf(out, "\\x%02X", (unsigned)(unsigned char)text.ptr[i]);
    }
    peg__buf_add(out, text.ptr + start, text.len - start);
}

void cli_put_safe_lines(struct peg__buf *out, peg_str text)
{
    while (text.len) {
        size_t len = 0;

        while (len < text.len && text.ptr[len] != '\n' && text.ptr[len] != '\t')
            len++;
        cli_put_safe(out, peg__strn(text.ptr, len));
        if (len < text.len)
            peg__buf_putc(out, text.ptr[len++]);
        text = peg__str_from(text, len);
    }
}

void cli_put_error(struct peg__buf *out, const char *before, const peg_error *error)
{
    if (error->where[0]) {
        peg__buf_puts(out, before);
        cli_put_safe(out, peg__str(error->where));
        peg__buf_puts(out, ": ");
    }
    cli_put_safe(out, peg__str(error->message));
}

int64_t cli_now_ns(void)
{
    const peg_clock *clock = peg_clock_system();

    return clock->mono_ns(clock);
}

/* ---- progress --------------------------------------------------------------- */

enum {
    PROGRESS_DELAY_NS = 1000000000,
    PROGRESS_EVERY_NS = 200000000,
    PROGRESS_LOOK_EVERY = 64, /* instances between two looks at the clock */
};

void cli_progress_start(struct cli_progress *progress)
{
    *progress = (struct cli_progress){.wanted = isatty(STDERR_FILENO)};
    if (progress->wanted)
        progress->next_ns = cli_now_ns() + PROGRESS_DELAY_NS;
}

static void show_progress(struct cli_progress *progress, const struct cli_progress_state *state)
{
    struct peg__buf line = PEG__BUF(4096);

    cli_put_safe(&line, peg__str(state->file));
    peg__buf_puts(&line, ": ");
    if (state->size)
        peg__buf_printf(&line, "%u%%, ",
                        (unsigned)(100.0 * (double)state->bytes / (double)state->size));
    peg__buf_printf(&line, "%llu checked, %llu invalid", (unsigned long long)state->n_done,
                    (unsigned long long)state->n_invalid);
    if (line.status == PEG_OK) {
        fprintf(stderr, "\r%s\033[K", line.ptr);
        fflush(stderr);
        progress->shown = true;
    }
    peg__buf_free(&line);
}

void cli_progress_tick(struct cli_progress *progress, const struct cli_progress_state *state)
{
    int64_t now;

    if (!progress->wanted || state->n_done % PROGRESS_LOOK_EVERY)
        return;
    now = cli_now_ns();
    if (now < progress->next_ns)
        return;
    progress->next_ns = now + PROGRESS_EVERY_NS;
    show_progress(progress, state);
}

void cli_progress_clear(struct cli_progress *progress)
{
    if (!progress->shown)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    progress->shown = false;
}
