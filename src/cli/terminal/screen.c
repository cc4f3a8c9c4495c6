/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/terminal/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/text/str.h"

/* Written by the open screen's thread before its signals are caught, read by their handlers. */
static struct termios before;
static struct termios during;

static volatile sig_atomic_t is_stopped;

/* ---- from within handlers too: nothing but what POSIX allows there ---- */

static void put_sequence(const char *sequence)
{
    const ssize_t n = write(STDOUT_FILENO, sequence, strlen(sequence));

    (void)n; /* a terminal that has gone away needs none */
}

/* The modes first: in the background that stops us, before anything is drawn over the shell. */
static void enter_screen(void)
{
    tcsetattr(STDIN_FILENO, TCSANOW, &during);
    put_sequence("\033[?1049h\033[?25l");
}

static void leave_screen(void)
{
    put_sequence("\033[?25h\033[?1049l");
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/* Also for SIGALRM, again and again from here on: a write that began before the look at is_stopped
 * and after the signal would wait for the terminal for ever. */
static void on_stop_signal(int number)
{
    (void)number;
    is_stopped = 1;
    alarm(1);
}

static void suspend(int number);

static void catch_suspend(void)
{
    /* Once and not blocked, so that raising it in its own handler stops us. */
    const struct sigaction action = {.sa_handler = suspend,
                                     .sa_flags = SA_RESETHAND | SA_NODEFER | SA_RESTART};

    sigaction(SIGTSTP, &action, NULL);
}

static void suspend(int number)
{
    const int saved = errno;

    leave_screen();
    raise(number); /* returns when we go on, or at once without job control */
    catch_suspend();
    enter_screen();
    errno = saved;
}

/* Caught once and not blocked, as above: raised again it ends us as it would have, and a second one
 * does so where the terminal takes nothing. */
static void quit(int number)
{
    leave_screen();
    raise(number);
}

/* Also after SIGSTOP, which cannot be caught: the shell has set the terminal meanwhile. */
static void resume(int number)
{
    const int saved = errno;

    (void)number;
    enter_screen();
    errno = saved;
}

/* ---- the face ---- */

/* A shell without job control has SIGTSTP ignored: it could not bring us back. Who has SIGHUP or
 * SIGQUIT ignored means it. */
static bool is_ignored(int number)
{
    struct sigaction given;

    return sigaction(number, NULL, &given) == 0 && given.sa_handler == SIG_IGN;
}

/* What ends us interrupts what is being drawn, too: the terminal may take nothing. */
bool cli_screen_open(void)
{
    const struct sigaction ending = {.sa_handler = on_stop_signal};
    const struct sigaction resuming = {.sa_handler = resume, .sa_flags = SA_RESTART};
    const struct sigaction quitting = {.sa_handler = quit, .sa_flags = SA_RESETHAND | SA_NODEFER};

    if (tcgetattr(STDIN_FILENO, &before))
        return false;
    during = before;
    during.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    if (tcsetattr(STDIN_FILENO, TCSANOW, &during))
        return false;
    sigaction(SIGALRM, &ending, NULL);
    sigaction(SIGINT, &ending, NULL);
    sigaction(SIGTERM, &ending, NULL);
    if (!is_ignored(SIGHUP))
        sigaction(SIGHUP, &ending, NULL);
    if (!is_ignored(SIGQUIT))
        sigaction(SIGQUIT, &quitting, NULL);
    sigaction(SIGCONT, &resuming, NULL);
    if (!is_ignored(SIGTSTP))
        catch_suspend();
    enter_screen();
    return true;
}

/* Not through stdio: what is left of a picture when it has to end is no output that failed. */
void cli_screen_draw(peg_str picture)
{
    while (picture.len && !is_stopped) {
        const ssize_t n = write(STDOUT_FILENO, picture.ptr, picture.len);

        if (n < 0 && errno != EINTR)
            return; /* as above */
        if (n > 0)
            picture = peg__str_from(picture, (size_t)n);
    }
}

/* As the system does at ^C: discards unread output, so that leaving the screen cannot block. */
static void discard_unread(void)
{
    struct pollfd terminal = {.fd = STDOUT_FILENO, .events = POLLOUT};

    if (is_stopped && poll(&terminal, 1, 0) == 0)
        tcflush(STDOUT_FILENO, TCOFLUSH);
}

void cli_screen_close(void)
{
    signal(SIGTSTP, SIG_IGN); /* the few instructions that are left need no pause */
    signal(SIGCONT, SIG_DFL);
    discard_unread();
    leave_screen();
    signal(SIGALRM, SIG_IGN);
    if (!is_ignored(SIGQUIT))
        signal(SIGQUIT, SIG_DFL); /* there is no screen to leave any more */
}

bool cli_screen_wait(int64_t ms)
{
    struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
    char key;

    if (is_stopped)
        return false;
    if (poll(&keys, 1, (int)ms) <= 0)
        return !is_stopped;
    return read(STDIN_FILENO, &key, 1) == 1 && key != 'q' && key != 'Q' && !is_stopped;
}
