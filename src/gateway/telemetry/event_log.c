/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines gather in one buffer while the thread writes the other; they change places when it is done.
 * The lock is held to add a line or to change the buffers, never while anything is written.
 */

#include "gateway/telemetry/event_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/text/writer.h"
#include "gateway/telemetry/event_line.h"

/* How often an event may be told: at once, and per second afterwards. Calls come from anybody;
 * what providers do needs a stream and a principal. */
static const struct {
    unsigned burst;
    unsigned per_s;
} rates[GW_N_EVENTS] = {
    [GW_EVENT_START] = {100, 10},         [GW_EVENT_STOP] = {100, 10},
    [GW_EVENT_DRAIN] = {100, 10},         [GW_EVENT_RELOAD] = {100, 10},
    [GW_EVENT_HEALTH] = {20000, 200},     [GW_EVENT_REGISTER] = {10000, 100},
    [GW_EVENT_UNREGISTER] = {10000, 100}, [GW_EVENT_ATTACH] = {10000, 100},
    [GW_EVENT_DETACH] = {10000, 100},     [GW_EVENT_REFUSED] = {100, 10},
    [GW_EVENT_CALL] = {100, 10},          [GW_EVENT_LATE] = {20, 1},
    [GW_EVENT_STORE] = {100, 10},         [GW_EVENT_LIBRARY] = {100, 10},
};

/* Owned; any thread. */
struct gw_event_log {
    const peg_clock *clock;
    peg_log_level least;
    bool is_json;
    char *path; /* NULL: fd is somebody else's */
    struct peg__writer writer;
    atomic_uint_fast64_t n_dropped;

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t has_lines;
    pthread_cond_t has_written;
    int fd;
    int next_fd; /* opened again: the thread takes it; -1: none */
    struct peg__buf waiting;
    struct peg__buf writing; /* the thread's while is_writing */
    bool is_writing;
    uint64_t n_told; /* lines that were added, and that have been written or given up */
    uint64_t n_done;
    uint64_t n_without_room; /* to be told */
    struct {
        double left; /* lines that may be told now */
        int64_t at_ns;
        uint64_t n_suppressed; /* to be told */
    } rates[GW_N_EVENTS];
};

static void count_dropped(struct gw_event_log *journal, uint64_t n)
{
    atomic_fetch_add_explicit(&journal->n_dropped, n, memory_order_relaxed);
}

/* ---- the thread ----------------------------------------------------------------------------- */

static uint64_t count_lines(peg_str text)
{
    uint64_t n = 0;

    for (size_t i = 0; i < text.len; i++)
        n += text.ptr[i] == '\n';
    return n;
}

/* A full disk, or nobody who reads: there is nobody else to tell. */
static void write_out(struct gw_event_log *journal, int fd, peg_str text)
{
    const size_t n = peg__writer_write(&journal->writer, fd, text);

    if (n < text.len)
        count_dropped(journal, count_lines(peg__str_from(text, n)));
}

/* With the lock. What is told from now on goes to the file that was opened again. */
static void change_files(struct gw_event_log *journal)
{
    if (journal->next_fd < 0)
        return;
    close(journal->fd);
    journal->fd = journal->next_fd;
    journal->next_fd = -1;
}

static void *write_lines(void *user)
{
    struct gw_event_log *journal = user;

    pthread_mutex_lock(&journal->lock);
    for (;;) {
        const struct peg__buf full = journal->waiting;
        uint64_t n_told;
        int fd;

        change_files(journal);
        if (!full.len && atomic_load(&journal->writer.is_over))
            break;
        if (!full.len) {
            pthread_cond_wait(&journal->has_lines, &journal->lock);
            continue;
        }
        journal->waiting = journal->writing;
        journal->writing = full;
        journal->is_writing = true;
        n_told = journal->n_told;
        fd = journal->fd;
        pthread_mutex_unlock(&journal->lock);

        write_out(journal, fd, peg__buf_view(&journal->writing));

        pthread_mutex_lock(&journal->lock);
        peg__buf_clear(&journal->writing);
        journal->is_writing = false;
        journal->n_done = n_told;
        pthread_cond_broadcast(&journal->has_written);
    }
    pthread_mutex_unlock(&journal->lock);
    return NULL;
}

/* ---- its life ------------------------------------------------------------------------------- */

static peg_status open_file(const char *path, int *ret_fd, peg_error *reterr)
{
    const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);
    char reason[128];

    if (fd < 0)
        return peg__fail(
            reterr, PEG_EIO, "E_LOG_FILE",
            "the log file '%.120s' cannot be opened: %s; make its folder, and let the user "
            "that runs this write there",
            path, strerror_r(errno, reason, sizeof(reason)));
    *ret_fd = fd;
    return PEG_OK;
}

static void drop(struct gw_event_log *journal)
{
    if (journal->path && journal->fd >= 0)
        close(journal->fd);
    if (journal->next_fd >= 0)
        close(journal->next_fd);
    peg__buf_free(&journal->waiting);
    peg__buf_free(&journal->writing);
    pthread_mutex_destroy(&journal->lock);
    pthread_cond_destroy(&journal->has_lines);
    pthread_cond_destroy(&journal->has_written);
    peg__free(journal->path);
    peg__free(journal);
}

static peg_status open_target(struct gw_event_log *journal,
                              const struct gw_event_log_options *options, peg_error *reterr)
{
    if (!options->path) {
        journal->fd = options->fd ? options->fd : STDERR_FILENO;
        return PEG_OK;
    }
    journal->path = peg__alloc(strlen(options->path) + 1);
    if (!journal->path)
        return peg__fail_nomem(reterr);
    memcpy(journal->path, options->path, strlen(options->path) + 1);
    return open_file(journal->path, &journal->fd, reterr);
}

peg_status gw_event_log_new(const struct gw_event_log_options *options,
                            struct gw_event_log **ret_journal, peg_error *reterr)
{
    struct gw_event_log *journal = peg__alloc_zero(1, sizeof(*journal));
    peg_status status;

    if (!journal)
        return peg__fail_nomem(reterr);
    journal->clock = options->clock ? options->clock : peg_clock_system();
    journal->least = options->least;
    journal->is_json = options->is_json;
    journal->fd = -1;
    journal->next_fd = -1;
    journal->waiting.max = PEG_LIMIT_GATEWAY_LOG_BYTES;
    journal->writing.max = PEG_LIMIT_GATEWAY_LOG_BYTES;
    pthread_mutex_init(&journal->lock, NULL);
    pthread_cond_init(&journal->has_lines, NULL);
    pthread_cond_init(&journal->has_written, NULL);
    for (int i = 0; i < GW_N_EVENTS; i++) {
        journal->rates[i].left = rates[i].burst;
        journal->rates[i].at_ns = peg_clock_mono_ns(journal->clock);
    }
    status = open_target(journal, options, reterr);
    if (!status && !peg__writer_start(&journal->writer, write_lines, journal))
        status = peg__fail(reterr, PEG_EIO, "E_LOG_FILE",
                           "there is no thread for the log: the system has no more of them");
    if (status) {
        drop(journal);
        return status;
    }
    *ret_journal = journal;
    return PEG_OK;
}

static void tell_suppressed(struct gw_event_log *journal, enum gw_event event);

struct gw_event_log *gw_event_log_free(struct gw_event_log *journal)
{
    int fd;

    if (!journal)
        return NULL;
    pthread_mutex_lock(&journal->lock);
    for (int event = 0; event < GW_N_EVENTS; event++)
        tell_suppressed(journal, (enum gw_event)event);
    atomic_store(&journal->writer.is_over, true);
    fd = journal->fd;
    pthread_cond_signal(&journal->has_lines);
    pthread_mutex_unlock(&journal->lock);
    if (peg__writer_join(&journal->writer, fd))
        drop(journal);
    return NULL;
}

peg_status gw_event_log_reopen(struct gw_event_log *journal, peg_error *reterr)
{
    peg_status status;
    int fd = -1;

    if (!journal || !journal->path)
        return PEG_OK;
    status = open_file(journal->path, &fd, reterr);
    if (status)
        return status;
    pthread_mutex_lock(&journal->lock);
    if (journal->next_fd >= 0)
        close(journal->next_fd);
    journal->next_fd = fd;
    pthread_cond_signal(&journal->has_lines);
    pthread_mutex_unlock(&journal->lock);
    return PEG_OK;
}

void gw_event_log_flush(struct gw_event_log *journal)
{
    uint64_t n;

    if (!journal)
        return;
    pthread_mutex_lock(&journal->lock);
    n = journal->n_told;
    while (journal->n_done < n)
        pthread_cond_wait(&journal->has_written, &journal->lock);
    pthread_mutex_unlock(&journal->lock);
}

/* ---- telling: with the lock ----------------------------------------------------------------- */

static bool add_line(struct gw_event_log *journal, const struct gw_line *line)
{
    struct peg__buf *buf = &journal->waiting;

    peg__buf_add(buf, line->bytes, line->len);
    if (buf->status) {
        buf->status = PEG_OK; /* there may be room again later */
        return false;
    }
    journal->n_told++;
    pthread_cond_signal(&journal->has_lines);
    return true;
}

static struct gw_line_head head_of(const struct gw_event_log *journal, peg_log_level level,
                                   const char *event)
{
    return (struct gw_line_head){
        .is_json = journal->is_json,
        .now_ms = peg_clock_now_ms(journal->clock),
        .level = level,
        .event = event,
    };
}

static bool add_count(struct gw_event_log *journal, const char *event, const char *key, uint64_t n)
{
    const struct gw_line_head head = head_of(journal, PEG_LOG_WARN, event);
    const struct gw_field field = gw_field_number(key, (int64_t)n);
    struct gw_line line;

    gw_line_make(&line, &head, &field, 1);
    return add_line(journal, &line);
}

static void tell_suppressed(struct gw_event_log *journal, enum gw_event event)
{
    uint64_t *n = &journal->rates[event].n_suppressed;

    if (*n && add_count(journal, gw_event_name(event), "suppressed", *n))
        *n = 0;
}

static bool may_tell(struct gw_event_log *journal, enum gw_event event)
{
    const int64_t now_ns = peg_clock_mono_ns(journal->clock);
    double *left = &journal->rates[event].left;

    *left +=
        (double)(now_ns - journal->rates[event].at_ns) / (double)PEG_NS_PER_S * rates[event].per_s;
    journal->rates[event].at_ns = now_ns;
    if (*left > rates[event].burst)
        *left = rates[event].burst;
    if (*left < 1) {
        journal->rates[event].n_suppressed++;
        count_dropped(journal, 1);
        return false;
    }
    *left -= 1;
    return true;
}

static void add_or_drop(struct gw_event_log *journal, const struct gw_line *line)
{
    if (journal->n_without_room && add_count(journal, "log", "dropped", journal->n_without_room))
        journal->n_without_room = 0;
    if (add_line(journal, line))
        return;
    journal->n_without_room++;
    count_dropped(journal, 1);
}

bool gw_event_log_wants(const struct gw_event_log *journal, peg_log_level level)
{
    return journal && level >= journal->least;
}

void gw_event_log_write(struct gw_event_log *journal, peg_log_level level, enum gw_event event,
                        const struct gw_field *fields, size_t n_fields)
{
    struct gw_line_head head;
    struct gw_line line;
    bool is_told;

    if (!gw_event_log_wants(journal, level) || (unsigned)event >= GW_N_EVENTS)
        return;
    pthread_mutex_lock(&journal->lock);
    is_told = may_tell(journal, event);
    pthread_mutex_unlock(&journal->lock);
    if (!is_told)
        return;
    head = head_of(journal, level, gw_event_name(event));
    gw_line_make(&line, &head, fields, n_fields);
    pthread_mutex_lock(&journal->lock);
    tell_suppressed(journal, event);
    add_or_drop(journal, &line);
    pthread_mutex_unlock(&journal->lock);
}

struct gw_field gw_field_text(const char *key, const char *text)
{
    return gw_field_str(key, peg_cstr(text));
}

void gw_event_log_hook(peg_log_level level, const char *code, const char *message, void *journal)
{
    gw_event_log_write(journal, level, GW_EVENT_LIBRARY,
                       GW_FIELDS(gw_field_text("code", code), gw_field_text("message", message)));
}

uint64_t gw_event_log_n_dropped(const struct gw_event_log *journal)
{
    return journal ? atomic_load_explicit(&journal->n_dropped, memory_order_relaxed) : 0;
}
