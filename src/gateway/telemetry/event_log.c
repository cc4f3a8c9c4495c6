/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines gather in one buffer while the thread writes the other; they change places when it is done.
 * The lock is held to add a line or to change the buffers, never while anything is written.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/text/writer.h"
#include "gateway/telemetry/event_log.h"
#include "wire/wire.h"
#include "json/json.h"

/* How often an event may be logged: at once, and per second afterwards. Any program may call;
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
    uint64_t n_written; /* lines that were added, and that have been written or given up */
    uint64_t n_done;
    uint64_t n_without_room; /* to be logged */
    struct {
        double left; /* lines that may be logged now */
        int64_t at_ns;
        uint64_t n_suppressed; /* to be logged */
    } rates[GW_N_EVENTS];
};

static void count_dropped(struct gw_event_log *log, uint64_t n)
{
    atomic_fetch_add_explicit(&log->n_dropped, n, memory_order_relaxed);
}

/* ---- the thread ---- */

static uint64_t count_lines(peg_str text)
{
    uint64_t n = 0;

    for (size_t i = 0; i < text.len; i++)
        n += text.ptr[i] == '\n';
    return n;
}

/* The disk is full, or the reader is gone: there is no other place to report it. */
static void write_to_file(struct gw_event_log *log, int fd, peg_str text)
{
    const size_t n = peg__writer_write(&log->writer, fd, text);

    if (n < text.len)
        count_dropped(log, count_lines(peg__str_from(text, n)));
}

/* With the lock. Later lines go to the file that was opened again. */
static void change_files(struct gw_event_log *log)
{
    if (log->next_fd < 0)
        return;
    close(log->fd);
    log->fd = log->next_fd;
    log->next_fd = -1;
}

static void *write_lines(void *user)
{
    struct gw_event_log *log = user;

    pthread_mutex_lock(&log->lock);
    for (;;) {
        const struct peg__buf full = log->waiting;
        uint64_t n_written;
        int fd;

        change_files(log);
        if (!full.len && atomic_load(&log->writer.is_over))
            break;
        if (!full.len) {
            pthread_cond_wait(&log->has_lines, &log->lock);
            continue;
        }
        log->waiting = log->writing;
        log->writing = full;
        log->is_writing = true;
        n_written = log->n_written;
        fd = log->fd;
        pthread_mutex_unlock(&log->lock);

        write_to_file(log, fd, peg__buf_view(&log->writing));

        pthread_mutex_lock(&log->lock);
        peg__buf_clear(&log->writing);
        log->is_writing = false;
        log->n_done = n_written;
        pthread_cond_broadcast(&log->has_written);
    }
    pthread_mutex_unlock(&log->lock);
    return NULL;
}

/* ---- its life ---- */

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

static void free_log(struct gw_event_log *log)
{
    if (log->path && log->fd >= 0)
        close(log->fd);
    if (log->next_fd >= 0)
        close(log->next_fd);
    peg__buf_free(&log->waiting);
    peg__buf_free(&log->writing);
    pthread_mutex_destroy(&log->lock);
    pthread_cond_destroy(&log->has_lines);
    pthread_cond_destroy(&log->has_written);
    peg__free(log->path);
    peg__free(log);
}

static peg_status open_target(struct gw_event_log *log, const struct gw_event_log_options *options,
                              peg_error *reterr)
{
    if (!options->path) {
        log->fd = options->fd ? options->fd : STDERR_FILENO;
        return PEG_OK;
    }
    log->path = peg__alloc(strlen(options->path) + 1);
    if (!log->path)
        return peg__fail_nomem(reterr);
    memcpy(log->path, options->path, strlen(options->path) + 1);
    return open_file(log->path, &log->fd, reterr);
}

peg_status gw_event_log_new(const struct gw_event_log_options *options,
                            struct gw_event_log **ret_log, peg_error *reterr)
{
    struct gw_event_log *log = peg__alloc_zero(1, sizeof(*log));
    peg_status status;

    if (!log)
        return peg__fail_nomem(reterr);
    log->clock = options->clock ? options->clock : peg_clock_system();
    log->least = options->least;
    log->is_json = options->is_json;
    log->fd = -1;
    log->next_fd = -1;
    log->waiting.max = PEG_LIMIT_GATEWAY_LOG_BYTES;
    log->writing.max = PEG_LIMIT_GATEWAY_LOG_BYTES;
    pthread_mutex_init(&log->lock, NULL);
    pthread_cond_init(&log->has_lines, NULL);
    pthread_cond_init(&log->has_written, NULL);
    for (int i = 0; i < GW_N_EVENTS; i++) {
        log->rates[i].left = rates[i].burst;
        log->rates[i].at_ns = peg_clock_mono_ns(log->clock);
    }
    status = open_target(log, options, reterr);
    if (!status && !peg__writer_start(&log->writer, write_lines, log))
        status = peg__fail(reterr, PEG_EIO, "E_LOG_FILE",
                           "there is no thread for the log: the system has no more of them");
    if (status) {
        free_log(log);
        return status;
    }
    *ret_log = log;
    return PEG_OK;
}

static void log_suppressed(struct gw_event_log *log, enum gw_event event);

struct gw_event_log *gw_event_log_free(struct gw_event_log *log)
{
    int fd;

    if (!log)
        return NULL;
    pthread_mutex_lock(&log->lock);
    for (int event = 0; event < GW_N_EVENTS; event++)
        log_suppressed(log, (enum gw_event)event);
    atomic_store(&log->writer.is_over, true);
    fd = log->fd;
    pthread_cond_signal(&log->has_lines);
    pthread_mutex_unlock(&log->lock);
    if (peg__writer_join(&log->writer, fd))
        free_log(log);
    return NULL;
}

peg_status gw_event_log_reopen(struct gw_event_log *log, peg_error *reterr)
{
    peg_status status;
    int fd = -1;

    if (!log || !log->path)
        return PEG_OK;
    status = open_file(log->path, &fd, reterr);
    if (status)
        return status;
    pthread_mutex_lock(&log->lock);
    if (log->next_fd >= 0)
        close(log->next_fd);
    log->next_fd = fd;
    pthread_cond_signal(&log->has_lines);
    pthread_mutex_unlock(&log->lock);
    return PEG_OK;
}

void gw_event_log_flush(struct gw_event_log *log)
{
    uint64_t n;

    if (!log)
        return;
    pthread_mutex_lock(&log->lock);
    n = log->n_written;
    while (log->n_done < n)
        pthread_cond_wait(&log->has_written, &log->lock);
    pthread_mutex_unlock(&log->lock);
}

/* ---- telling: with the lock ---- */

static bool append_line(struct gw_event_log *log, const struct gw_line *line)
{
    struct peg__buf *buf = &log->waiting;

    peg__buf_add(buf, line->bytes, line->len);
    if (buf->status) {
        buf->status = PEG_OK; /* there may be room again later */
        return false;
    }
    log->n_written++;
    pthread_cond_signal(&log->has_lines);
    return true;
}

static struct gw_line_head head_of(const struct gw_event_log *log, peg_log_level level,
                                   const char *event)
{
    return (struct gw_line_head){
        .is_json = log->is_json,
        .now_ms = peg_clock_now_ms(log->clock),
        .level = level,
        .event = event,
    };
}

static bool add_count(struct gw_event_log *log, const char *event, const char *key, uint64_t n)
{
    const struct gw_line_head head = head_of(log, PEG_LOG_WARN, event);
    const struct gw_field field = gw_field_number(key, (int64_t)n);
    struct gw_line line;

    gw_line_make(&line, &head, &field, 1);
    return append_line(log, &line);
}

static void log_suppressed(struct gw_event_log *log, enum gw_event event)
{
    uint64_t *n = &log->rates[event].n_suppressed;

    if (*n && add_count(log, gw_event_name(event), "suppressed", *n))
        *n = 0;
}

static bool take_allowance(struct gw_event_log *log, enum gw_event event)
{
    const int64_t now_ns = peg_clock_mono_ns(log->clock);
    double *left = &log->rates[event].left;

    *left += (double)(now_ns - log->rates[event].at_ns) / (double)PEG_NS_PER_S * rates[event].per_s;
    log->rates[event].at_ns = now_ns;
    if (*left > rates[event].burst)
        *left = rates[event].burst;
    if (*left < 1) {
        log->rates[event].n_suppressed++;
        count_dropped(log, 1);
        return false;
    }
    *left -= 1;
    return true;
}

static void add_or_drop(struct gw_event_log *log, const struct gw_line *line)
{
    if (log->n_without_room && add_count(log, "log", "dropped", log->n_without_room))
        log->n_without_room = 0;
    if (append_line(log, line))
        return;
    log->n_without_room++;
    count_dropped(log, 1);
}

bool gw_event_log_wants(const struct gw_event_log *log, peg_log_level level)
{
    return log && level >= log->least;
}

void gw_event_log_write(struct gw_event_log *log, peg_log_level level, enum gw_event event,
                        const struct gw_field *fields, size_t n_fields)
{
    struct gw_line_head head;
    struct gw_line line;
    bool is_told;

    if (!gw_event_log_wants(log, level) || (unsigned)event >= GW_N_EVENTS)
        return;
    pthread_mutex_lock(&log->lock);
    is_told = take_allowance(log, event);
    pthread_mutex_unlock(&log->lock);
    if (!is_told)
        return;
    head = head_of(log, level, gw_event_name(event));
    gw_line_make(&line, &head, fields, n_fields);
    pthread_mutex_lock(&log->lock);
    log_suppressed(log, event);
    add_or_drop(log, &line);
    pthread_mutex_unlock(&log->lock);
}

void gw_event_log_hook(peg_log_level level, const char *code, const char *message, void *log)
{
    gw_event_log_write(log, level, GW_EVENT_LIBRARY,
                       GW_FIELDS(gw_field_text("code", code), gw_field_text("message", message)));
}

uint64_t gw_event_log_n_dropped(const struct gw_event_log *log)
{
    return log ? atomic_load_explicit(&log->n_dropped, memory_order_relaxed) : 0;
}

enum {
    VALUE_BYTES = 600, /* of one value as it is written */
    END_BYTES = 4,     /* a quote, a brace, a line feed */
    ESCAPE_BYTES = 6,  /* \u001f */
};

const char *gw_event_name(enum gw_event event)
{
    static const char *const names[GW_N_EVENTS] = {
        [GW_EVENT_START] = "start",
        [GW_EVENT_STOP] = "stop",
        [GW_EVENT_DRAIN] = "drain",
        [GW_EVENT_RELOAD] = "reload",
        [GW_EVENT_HEALTH] = "health",
        [GW_EVENT_REGISTER] = "register",
        [GW_EVENT_UNREGISTER] = "unregister",
        [GW_EVENT_ATTACH] = "attach",
        [GW_EVENT_DETACH] = "detach",
        [GW_EVENT_REFUSED] = "refused",
        [GW_EVENT_CALL] = "call",
        [GW_EVENT_LATE] = "late",
        [GW_EVENT_STORE] = "store",
        [GW_EVENT_LIBRARY] = "library",
    };

    return (unsigned)event < GW_N_EVENTS ? names[event] : "unknown";
}

struct writer {
    char *to;
    size_t len;
    size_t max;
};

/* All of it or nothing. */
static bool put_line_bytes(struct writer *w, const char *bytes, size_t n)
{
    if (n > w->max - w->len)
        return false;
    memcpy(w->to + w->len, bytes, n);
    w->len += n;
    return true;
}

static bool put_line_text(struct writer *w, const char *text)
{
    return put_line_bytes(w, text, strlen(text));
}

/* ---- values ---- */

/* May it stand without quotes? */
static bool is_bare_value(peg_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];

        if (!peg__is_alnum(c) && (c == '\0' || !strchr("_.:/@+-[]", c)))
            return false;
    }
    return text.len > 0;
}

/* One character of a string: as it is, escaped, or '?' if it is no UTF-8. */
static bool put_log_character(struct writer *w, const char *at, size_t n)
{
    const unsigned char c = (unsigned char)at[0];
    char escape[ESCAPE_BYTES + 1];

    if (n == 0)
        return put_line_bytes(w, "?", 1);
    if (c == '"' || c == '\\') {
        escape[0] = '\\';
        escape[1] = (char)c;
        return put_line_bytes(w, escape, 2);
    }
    /* C0, DEL, and C1: what a terminal would obey. */
    if (c < 0x20 || c == 0x7f || (c == 0xC2 && (unsigned char)at[1] < 0xA0)) {
        snprintf(escape, sizeof(escape), "\\u%04x", c == 0xC2 ? (unsigned char)at[1] : c);
        return put_line_bytes(w, escape, ESCAPE_BYTES);
    }
    return put_line_bytes(w, at, n);
}

/* Cut at VALUE_BYTES, which "..." tells. */
static bool put_quoted(struct writer *w, peg_str text)
{
    const size_t start = w->len;
    peg_str rest = text;

    if (!put_line_bytes(w, "\"", 1))
        return false;
    while (rest.len) {
        const size_t n = peg__utf8_char_len(rest);

        if (w->len - start > VALUE_BYTES)
            return put_line_text(w, "...\"");
        if (!put_log_character(w, rest.ptr, n))
            return false;
        rest = peg__str_from(rest, n ? n : 1);
    }
    return put_line_bytes(w, "\"", 1);
}

static bool put_field_value(struct writer *w, const struct gw_field *field, bool is_json)
{
    const peg_str text = {field->text ? field->text : "", field->len};
    char number[24];

    if (field->is_number) {
        snprintf(number, sizeof(number), "%lld", (long long)field->number);
        return put_line_text(w, number);
    }
    if (!is_json && text.len < VALUE_BYTES && is_bare_value(text))
        return put_line_bytes(w, text.ptr, text.len);
    return put_quoted(w, text);
}

static void put_log_field(struct writer *w, const struct gw_field *field, bool is_json)
{
    const size_t before = w->len;
    const bool fits = is_json ? put_line_text(w, ",\"") && put_line_text(w, field->key) &&
                                    put_line_text(w, "\":") && put_field_value(w, field, true)
                              : put_line_text(w, " ") && put_line_text(w, field->key) &&
                                    put_line_text(w, "=") && put_field_value(w, field, false);

    if (!fits)
        w->len = before;
}

void gw_line_make(struct gw_line *ret_line, const struct gw_line_head *head,
                  const struct gw_field *fields, size_t n_fields)
{
    struct writer w = {.to = ret_line->bytes, .max = sizeof(ret_line->bytes) - END_BYTES};
    char time[WIRE_TIME_TEXT];
    char text[128];

    wire_time_print_ms(head->now_ms, time);
    snprintf(text, sizeof(text),
             head->is_json ? "{\"time\":\"%s\",\"level\":\"%s\",\"event\":\"%s\""
                           : "time=%s level=%s event=%s",
             time, peg_log_level_name(head->level), head->event);
    put_line_text(&w, text);
    for (size_t i = 0; i < n_fields && i < GW_EVENT_LOG_FIELDS; i++)
        put_log_field(&w, &fields[i], head->is_json);
    w.max += END_BYTES;
    put_line_text(&w, head->is_json ? "}\n" : "\n");
    ret_line->len = w.len;
}
