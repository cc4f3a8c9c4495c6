/* SPDX-License-Identifier: Apache-2.0 */

/* Lines for a standard error that nobody reads, and that somebody reads later. */

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "cli/terminal/terminal.h"

enum {
    LINE_BYTES = 1000,
    N_LINES = 3 * PEG_LIMIT_REMOTE_LINES_BYTES / LINE_BYTES,
    DEADLINE_S = 60,
};

/* A pipe in place of standard error, or a terminal. */
struct world {
    int before;
    int unread;
    struct cli_line_queue *lines;
    pthread_t reader;
    uint64_t n_read;    /* lines */
    uint64_t n_dropped; /* that were told */
};

static void put_dropped(struct peg__buf *line, uint64_t n)
{
    peg__buf_printf(line, "dropped=%llu", (unsigned long long)n);
}

static void put_in_place(struct world *w, int reading_end, int writing_end)
{
    memset(w, 0, sizeof(*w));
    w->before = dup(STDERR_FILENO);
    CHECK_INT(dup2(writing_end, STDERR_FILENO), STDERR_FILENO);
    close(writing_end);
    w->unread = reading_end;
}

static void world_open(struct world *w)
{
    int ends[2];

    CHECK_INT(pipe(ends), 0);
    CHECK(fcntl(ends[1], F_SETPIPE_SZ, 4096) >= 4096);
    put_in_place(w, ends[0], ends[1]);
    w->lines = cli_line_queue_new(put_dropped);
    CHECK(w->lines);
}

/* Whoever reads hears of the end. */
static void put_stderr_back(struct world *w)
{
    dup2(w->before, STDERR_FILENO);
    close(w->before);
}

static void *read_all(void *user)
{
    struct world *w = user;
    FILE *in = fdopen(w->unread, "r");
    char line[LINE_BYTES + 2];

    while (fgets(line, sizeof(line), in)) {
        w->n_read += line[0] == 'x';
        if (strncmp(line, "dropped=", 8) == 0)
            w->n_dropped += strtoull(line + 8, NULL, 10);
    }
    fclose(in);
    return NULL;
}

static void put_many(struct world *w)
{
    char line[LINE_BYTES - 1];

    memset(line, 'x', sizeof(line));
    for (unsigned i = 0; i < N_LINES; i++)
        cli_line_queue_put(w->lines, peg__strn(line, sizeof(line)));
}

TEST(lines_that_are_not_read_block_no_writer)
{
    struct world w;

    world_open(&w);
    put_many(&w);

    CHECK(!cli_line_queue_free(w.lines));
    put_stderr_back(&w);
    close(w.unread);
}

/* In a process of its own: there the thread stays in its write until the process ends. Killed if
 * all is well: what looks for leaks at an exit would take the thread for one. */
static int end_on_a_terminal(struct world *w)
{
    alarm(DEADLINE_S);
    w->lines = cli_line_queue_new(put_dropped);
    if (!w->lines)
        return 2;
    put_many(w);
    if (!cli_line_queue_free(w->lines))
        kill(getpid(), SIGKILL);
    return 1;
}

static void terminal_open(struct world *w)
{
    const int reading_end = posix_openpt(O_RDWR | O_NOCTTY);
    int writing_end;

    CHECK(reading_end >= 0);
    CHECK_INT(grantpt(reading_end), 0);
    CHECK_INT(unlockpt(reading_end), 0);
    writing_end = open(ptsname(reading_end), O_RDWR | O_NOCTTY);
    CHECK(writing_end >= 0);
    put_in_place(w, reading_end, writing_end);
}

TEST(a_terminal_that_is_not_read_blocks_no_writer)
{
    struct world w;
    int status;
    pid_t child;

    terminal_open(&w);
    child = fork();
    if (child == 0)
        _exit(end_on_a_terminal(&w));
    put_stderr_back(&w);

    CHECK(child > 0);
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, SIGKILL);
    close(w.unread);
}

TEST(dropped_lines_are_counted_when_there_is_capacity)
{
    struct world w;

    world_open(&w);
    put_many(&w);
    CHECK_INT(pthread_create(&w.reader, NULL, read_all, &w), 0);

    CHECK(cli_line_queue_free(w.lines));
    put_stderr_back(&w);
    pthread_join(w.reader, NULL);
    CHECK(w.n_dropped > 0);
    CHECK_INT(w.n_read + w.n_dropped, N_LINES);
}
