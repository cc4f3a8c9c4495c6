/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Waits for signals and for changes of files. Folders are watched, not files: an editor that saves
 * by renaming puts another file there. Any event in a folder has the files looked at, once it has
 * been quiet for a moment; a file that is another than before is reported.
 */

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "cli/tools/manifests.h"

enum {
    QUIET_MS = 100,  /* an editor writes, renames and removes within this */
    LATEST_MS = 1000 /* in a folder that is never quiet */
};

static int64_t monotonic_ms(void)
{
    return peg__mono_ns() / PEG_NS_PER_MS;
}

/* ---- files ---- */

static struct file_identity identify_file(const char *path)
{
    struct stat about;

    if (stat(path, &about) < 0)
        return (struct file_identity){0};
    return (struct file_identity){
        .dev = about.st_dev, .ino = about.st_ino, .size = about.st_size, .changed = about.st_mtim};
}

static bool is_same_file(const struct file_identity *a, const struct file_identity *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* A file that is gone is about to come back, or else SIGHUP will say what is wrong. */
static void report_changes(struct reload *r)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct file_identity now = identify_file(r->paths[i]);

        if (!now.ino || is_same_file(&now, &r->seen[i]))
            continue;
        r->seen[i] = now;
        r->on_change(i, r->user);
    }
}

static bool watch_folder(const struct reload *r, const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const int n = slash ? (int)(slash - path) + (slash == path) : 1;

    snprintf(folder, sizeof(folder), "%.*s", n, slash ? path : ".");
    return inotify_add_watch(r->inotify, folder, IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE) >= 0;
}

/* Also where it is if its name is a link. Twice the same folder is one watch. */
static bool watch_file(const struct reload *r, const char *path)
{
    char resolved[PATH_MAX];

    return watch_folder(r, path) && (!realpath(path, resolved) || watch_folder(r, resolved));
}

static bool watch_files(struct reload *r)
{
    r->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    for (size_t i = 0; i < r->n && r->inotify >= 0; i++) {
        if (!watch_file(r, r->paths[i]) && errno != ENOENT)
            return false;
    }
    return r->inotify >= 0;
}

/* What they say does not matter. */
static void take_events(struct reload *r)
{
    char events[4096] __attribute__((aligned(8)));

    while (read(r->inotify, events, sizeof(events)) > 0)
        continue;
    r->last_ms = monotonic_ms();
    if (!r->first_ms)
        r->first_ms = r->last_ms;
}

/* ---- waiting ---- */

/* Milliseconds until files are looked at; -1: no event has come. */
static int wait_ms(const struct reload *r)
{
    const int64_t quiet_ms = r->last_ms + QUIET_MS;
    const int64_t latest_ms = r->first_ms + LATEST_MS;
    const int64_t left_ms = (quiet_ms < latest_ms ? quiet_ms : latest_ms) - monotonic_ms();

    if (!r->first_ms)
        return -1;
    return left_ms > 0 ? (int)left_ms : 0;
}

static void reload_all(struct reload *r)
{
    for (size_t i = 0; i < r->n; i++) {
        r->seen[i] = identify_file(r->paths[i]);
        r->on_change(i, r->user);
    }
}

/* False: SIGUSR2. */
static bool take_signal(struct reload *r, int signals)
{
    struct signalfd_siginfo about;

    if (read(signals, &about, sizeof(about)) != (ssize_t)sizeof(about))
        return true;
    if (about.ssi_signo == SIGHUP)
        reload_all(r);
    else if (about.ssi_signo != SIGUSR2)
        r->on_stop(r->user);
    return about.ssi_signo != SIGUSR2;
}

/* The system has no descriptor for more. False: SIGUSR2. */
static bool wait_for_signal(struct reload *r)
{
    const int number = sigwaitinfo(&r->signals, NULL);

    if (number == SIGHUP)
        reload_all(r);
    else if (number > 0 && number != SIGUSR2)
        r->on_stop(r->user);
    return number != SIGUSR2;
}

void reload_run(struct reload *r)
{
    const int signals = signalfd(-1, &r->signals, SFD_CLOEXEC);
    struct pollfd polled[2] = {{.fd = signals, .events = POLLIN},
                               {.fd = r->inotify, .events = POLLIN}};
    bool goes_on = true;

    while (signals < 0 && goes_on)
        goes_on = wait_for_signal(r);
    while (goes_on) {
        const int n = poll(polled, 2, wait_ms(r));

        if (n > 0 && polled[1].revents)
            take_events(r);
        if (n > 0 && polled[0].revents)
            goes_on = take_signal(r, signals);
        if (goes_on && wait_ms(r) == 0) {
            r->first_ms = 0;
            report_changes(r);
        }
    }
    if (signals >= 0)
        close(signals);
}

peg_status reload_open(struct reload *r, char *const *paths, size_t n, bool watches,
                       peg_error *reterr)
{
    r->paths = paths;
    r->n = n;
    r->inotify = -1;
    r->seen = peg__alloc_zero(n + 1, sizeof(*r->seen));
    if (!r->seen)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < n; i++)
        r->seen[i] = identify_file(paths[i]);
    if (watches && !watch_files(r)) {
        fprintf(stderr, "pegboard: files cannot be watched (%m): SIGHUP has them read again\n");
        if (r->inotify >= 0)
            close(r->inotify);
        r->inotify = -1;
    }
    return PEG_OK;
}

void reload_close(struct reload *r)
{
    if (r->inotify >= 0)
        close(r->inotify);
    r->inotify = -1;
    peg__free(r->seen);
    r->seen = NULL;
}
