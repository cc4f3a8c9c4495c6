/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Signals are blocked in all threads but taken by one, which cancels what runs and wakes the thread
 * that reads. That one polls, so that ^C ends a prompt at any moment.
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "cli/chat/chat.h"
#include "cli/serve/serve.h"
#include "pegboard/cancel.h"

enum { REPEAT_NS = 20000000 };

/* ---- signals ---- */

static void interrupt_read(int number)
{
    (void)number; /* that it came is all: a read() ends with EINTR */
}

static void cancel_running(struct chat_input *in)
{
    peg_cancel *running;

    pthread_mutex_lock(&in->lock);
    running = in->running ? peg_cancel_ref(in->running) : NULL;
    pthread_mutex_unlock(&in->lock);
    if (running)
        peg_cancel_fire(running, "the user interrupted it");
    peg_cancel_unref(running);
}

static void *await_signals(void *user)
{
    struct chat_input *in = user;
    int number;

    while (!atomic_load(&in->is_closing)) {
        if (sigwait(&in->signals, &number) || number == SIGUSR2)
            continue;
        if (number != SIGINT)
            atomic_store(&in->is_ending, true);
        cancel_running(in);
        (void)!eventfd_write(in->wake, 1);
        /* Again and again: a signal that comes before the read begins does not end it. */
        while (atomic_load(&in->is_interruptible)) {
            pthread_kill(in->reader, SIGUSR1);
            nanosleep(&(struct timespec){.tv_nsec = REPEAT_NS}, NULL);
        }
    }
    return NULL;
}

static peg_status fail_open(struct chat_input *in, peg_error *reterr)
{
    if (in->wake >= 0)
        close(in->wake);
    return peg__fail(reterr, PEG_EIO, "E_FILE",
                     "the system has no thread or file for signals: end some, or raise its limits");
}

peg_status chat_input_open(struct chat_input *in, peg_error *reterr)
{
    const struct sigaction wakes = {.sa_handler = interrupt_read}; /* without SA_RESTART */

    in->text = (struct peg__buf)PEG__BUF(PEG_LIMIT_CHAT_LINE_BYTES);
    in->is_terminal = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
    in->reader = pthread_self();
    sigaction(SIGUSR1, &wakes, NULL);
    cli_block_signals(&in->signals);
    pthread_mutex_init(&in->lock, NULL);
    in->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (in->wake < 0 || pthread_create(&in->thread, NULL, await_signals, in))
        return fail_open(in, reterr);
    return PEG_OK;
}

void chat_input_close(struct chat_input *in)
{
    atomic_store(&in->is_closing, true);
    pthread_kill(in->thread, SIGUSR2);
    pthread_join(in->thread, NULL);
    pthread_mutex_destroy(&in->lock);
    close(in->wake);
    peg__buf_free(&in->text);
}

void chat_input_set_running(struct chat_input *in, peg_cancel *cancel)
{
    pthread_mutex_lock(&in->lock);
    in->running = cancel;
    pthread_mutex_unlock(&in->lock);
    if (cancel && atomic_load(&in->is_ending))
        peg_cancel_fire(cancel, "the chat ends");
}

void chat_input_forget_signals(struct chat_input *in)
{
    eventfd_t n;

    (void)!eventfd_read(in->wake, &n);
}

/* ---- lines ---- */

static void complain_of_line(const struct chat_input *in)
{
    if (in->text.status == PEG_ENOMEM)
        fputs("pegboard: out of memory\n", stderr);
    else
        fprintf(stderr,
                "pegboard: a message is longer than %d MiB, which is PEG_LIMIT_CHAT_LINE_BYTES: "
                "send less at once\n",
                PEG_LIMIT_CHAT_LINE_BYTES >> 20);
}

/* CHAT_LINE: there is more text. */
static enum chat_line read_more(struct chat_input *in)
{
    enum { PIECE = 4096 };
    struct pollfd on[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                          {.fd = in->wake, .events = POLLIN}};
    const size_t room = in->text.max - in->text.len;
    const size_t max = room && room < PIECE ? room : PIECE; /* without room it fails */
    char *to;
    ssize_t n;

    if (atomic_load(&in->is_ending))
        return CHAT_LINE_END;
    if (poll(on, 2, -1) < 0)
        return errno == EINTR ? CHAT_LINE : CHAT_LINE_END;
    if (on[1].revents)
        return atomic_load(&in->is_ending) ? CHAT_LINE_END : CHAT_LINE_INTERRUPTED;
    to = peg__buf_reserve(&in->text, max);
    if (!to) {
        complain_of_line(in);
        return CHAT_LINE_FAILED;
    }
    n = read(STDIN_FILENO, to, max);
    if (n <= 0)
        return n < 0 && (errno == EINTR || errno == EAGAIN) ? CHAT_LINE : CHAT_LINE_END;
    in->text.len += (size_t)n;
    return CHAT_LINE;
}

static void drop_taken(struct chat_input *in)
{
    if (in->n_taken)
        memmove(in->text.ptr, in->text.ptr + in->n_taken, in->text.len - in->n_taken);
    in->text.len -= in->n_taken;
    in->n_taken = 0;
}

static peg_str hand_out_line(struct chat_input *in, size_t len, size_t n_taken)
{
    in->n_taken = n_taken;
    if (len && in->text.ptr[len - 1] == '\r')
        len--;
    return peg__strn(in->text.ptr, len);
}

enum chat_line chat_input_line(struct chat_input *in, const char *prompt, peg_str *ret_line)
{
    enum chat_line found = CHAT_LINE;

    (void)cli_flush();
    if (in->is_terminal)
        fputs(prompt, stderr);
    drop_taken(in);
    while (found == CHAT_LINE) {
        const char *end = in->text.len ? memchr(in->text.ptr, '\n', in->text.len) : NULL;
        const size_t len = end ? (size_t)(end - in->text.ptr) : 0;

        if (end) {
            *ret_line = hand_out_line(in, len, len + 1);
            return CHAT_LINE;
        }
        found = read_more(in);
    }
    if (in->is_terminal)
        fputc('\n', stderr);
    if (found == CHAT_LINE_INTERRUPTED)
        in->text.len = 0; /* the terminal forgets the line, too */
    if (found == CHAT_LINE_END && in->text.len && !in->text.status) {
        *ret_line = hand_out_line(in, in->text.len, in->text.len);
        return CHAT_LINE;
    }
    return found;
}

void chat_input_discard(struct chat_input *in)
{
    (void)tcflush(STDIN_FILENO, TCIFLUSH);
    in->text.len = 0;
    in->n_taken = 0;
}
