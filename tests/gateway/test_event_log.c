/* SPDX-License-Identifier: Apache-2.0 */

#include "t.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text/str.h"
#include "gateway/telemetry/event_log.h"
#include "json/json.h"

/* 2026-02-22T09:30:00.125Z */
static const int64_t then_ms = INT64_C(1771752600125);

static peg_str line_of(struct gw_line *line, bool is_json, const struct gw_field *fields, size_t n)
{
    const struct gw_line_head head = {is_json, then_ms, PEG_LOG_INFO, "health"};

    gw_line_make(line, &head, fields, n);
    return peg__strn(line->bytes, line->len);
}

/* ---- lines ---- */

TEST(a_line_is_key_and_value)
{
    struct gw_line line;

    CHECK_STR(
        line_of(&line, false,
                GW_FIELDS(gw_field_text("toolset", "weather"), gw_field_text("state", "healthy"),
                          gw_field_number("providers", 1))),
        "time=2026-02-22T09:30:00.125Z level=info event=health toolset=weather "
        "state=healthy providers=1\n");
    CHECK_STR(line_of(&line, true,
                      GW_FIELDS(gw_field_text("toolset", "weather"), gw_field_number("n", -5))),
              "{\"time\":\"2026-02-22T09:30:00.125Z\",\"level\":\"info\",\"event\":\"health\","
              "\"toolset\":\"weather\",\"n\":-5}\n");
}

TEST(a_value_that_is_not_plain_is_a_json_string)
{
    struct gw_line line;

    CHECK_STR(line_of(&line, false,
                      GW_FIELDS(gw_field_text("a", "two words"), gw_field_text("b", ""),
                                gw_field_text("c", "x=y"), gw_field_text("d", NULL))),
              "time=2026-02-22T09:30:00.125Z level=info event=health a=\"two words\" b=\"\" "
              "c=\"x=y\" d=\"\"\n");
}

TEST(hostile_bytes_stay_in_their_line)
{
    struct gw_line line;
    const peg_str text = line_of(
        &line, false,
        GW_FIELDS(
            gw_field_str("a", peg__strn("x\nlevel=error\r\0\x1b[31m\"\\\xff\xc2\x9b\x7f\xc3", 27)),
            gw_field_str("b", peg__str("\xc3\xa4"))));

    CHECK_STR(text, "time=2026-02-22T09:30:00.125Z level=info event=health "
                    "a=\"x\\u000alevel=error\\u000d\\u0000\\u001b[31m\\\"\\\\?\\u009b\\u007f?\" "
                    "b=\"\xc3\xa4\"\n");
    CHECK(peg__utf8_is_valid(text));
}

TEST(a_long_value_is_cut_and_what_has_no_room_is_left_out)
{
    static char large[5000];
    struct gw_line line;
    peg_json_doc *doc = NULL;
    struct gw_field fields[GW_EVENT_LOG_FIELDS + 4];
    peg_str text;

    memset(large, '\x01', sizeof(large));
    for (size_t i = 0; i < GW_EVENT_LOG_FIELDS + 4; i++)
        fields[i] = gw_field_str("key", peg__strn(large, sizeof(large)));
    text = line_of(&line, true, fields, GW_EVENT_LOG_FIELDS + 4);

    CHECK(text.len <= PEG_LIMIT_GATEWAY_LOG_LINE_BYTES);
    CHECK(memchr(text.ptr, '\n', text.len) == text.ptr + text.len - 1);
    CHECK(memmem(text.ptr, text.len, "...\"", 4) != NULL);
    fields[0] = gw_field_str("one", peg__strn(large, sizeof(large)));
    fields[1] = gw_field_number("two", 2);
    text = line_of(&line, true, fields, 2);
    CHECK_INT(peg_json_parse(text, NULL, &doc, NULL), PEG_OK);
    peg_json_doc_free(doc);
    CHECK(memmem(text.ptr, text.len, "\"two\":2", 7) != NULL);
}

TEST(every_event_has_a_name)
{
    for (int event = 0; event < GW_N_EVENTS; event++)
        CHECK(gw_event_name((enum gw_event)event) != NULL);
    CHECK_STR(peg__str(gw_event_name(GW_N_EVENTS)), "unknown");
}

/* ---- a journal in a file ---- */

struct place {
    char folder[64];
    char path[96];
    peg_clock *clock;
    struct gw_event_log *journal;
    char text[1 << 18];
};

static void open_journal(struct place *p, peg_log_level least)
{
    struct gw_event_log_options options = {.least = least};

    snprintf(p->folder, sizeof(p->folder), "/tmp/peg-journal-XXXXXX");
    CHECK(mkdtemp(p->folder) != NULL);
    snprintf(p->path, sizeof(p->path), "%s/log", p->folder);
    CHECK_INT(peg_clock_manual_new(then_ms, &p->clock, NULL), PEG_OK);
    options.path = p->path;
    options.clock = p->clock;
    CHECK_INT(gw_event_log_new(&options, &p->journal, NULL), PEG_OK);
}

static const char *contents(struct place *p, const char *path)
{
    FILE *file = fopen(path, "r");
    size_t n;

    CHECK(file != NULL);
    n = fread(p->text, 1, sizeof(p->text) - 1, file);
    p->text[n] = '\0';
    fclose(file);
    return p->text;
}

static void close_journal(struct place *p)
{
    p->journal = gw_event_log_free(p->journal);
    p->clock = peg_clock_manual_free(p->clock);
}

static void remove_place(struct place *p)
{
    unlink(p->path);
    rmdir(p->folder);
}

static struct place p;

TEST(events_are_written_to_the_file)
{
    open_journal(&p, PEG_LOG_INFO);
    CHECK(gw_event_log_wants(p.journal, PEG_LOG_INFO));
    CHECK(!gw_event_log_wants(p.journal, PEG_LOG_DEBUG));
    gw_event_log_write(p.journal, PEG_LOG_INFO, GW_EVENT_HEALTH,
                       GW_FIELDS(gw_field_text("toolset", "a"), gw_field_text("state", "healthy")));
    gw_event_log_write(p.journal, PEG_LOG_DEBUG, GW_EVENT_CALL, NULL, 0);
    gw_event_log_flush(p.journal);
    CHECK_STR(peg__str(contents(&p, p.path)),
              "time=2026-02-22T09:30:00.125Z level=info event=health toolset=a state=healthy\n");
    gw_event_log_write(p.journal, PEG_LOG_WARN, GW_EVENT_STOP, NULL, 0);
    close_journal(&p);
    CHECK_INT(t_count(contents(&p, p.path), "\n"), 2);
    remove_place(&p);
}

TEST(the_file_is_opened_again)
{
    char moved[128];

    open_journal(&p, PEG_LOG_INFO);
    gw_event_log_write(p.journal, PEG_LOG_INFO, GW_EVENT_START, NULL, 0);
    gw_event_log_flush(p.journal);
    snprintf(moved, sizeof(moved), "%s/log.1", p.folder);
    CHECK_INT(rename(p.path, moved), 0);

    CHECK_INT(gw_event_log_reopen(p.journal, NULL), PEG_OK);
    CHECK_INT(gw_event_log_reopen(p.journal, NULL), PEG_OK);
    gw_event_log_write(p.journal, PEG_LOG_INFO, GW_EVENT_STOP, NULL, 0);
    close_journal(&p);

    CHECK(strstr(contents(&p, moved), "event=start") != NULL);
    CHECK(strstr(contents(&p, moved), "event=stop") == NULL);
    CHECK(strstr(contents(&p, p.path), "event=stop") != NULL);
    unlink(moved);
    remove_place(&p);
}

TEST(a_file_that_cannot_be_opened_again_leaves_the_old_one)
{
    peg_error error;

    open_journal(&p, PEG_LOG_INFO);
    unlink(p.path);
    CHECK_INT(mkdir(p.path, 0700), 0);
    CHECK_INT(gw_event_log_reopen(p.journal, &error), PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_LOG_FILE");
    gw_event_log_write(p.journal, PEG_LOG_INFO, GW_EVENT_STOP, NULL, 0);
    gw_event_log_flush(p.journal);
    CHECK_INT(gw_event_log_n_dropped(p.journal), 0);
    close_journal(&p);
    rmdir(p.path);
    rmdir(p.folder);
}

/* In a process of its own: the thread stays in its write until the process ends. Killed if all is
 * well: what looks for leaks at an exit would take the thread for one. */
static int end_on_a_terminal(int terminal)
{
    const struct gw_event_log_options options = {
        .least = PEG_LOG_INFO, .fd = terminal, .clock = peg_clock_system()};
    struct gw_event_log *journal;
    char words[4000];

    alarm(60);
    memset(words, 'x', sizeof(words) - 1);
    words[sizeof(words) - 1] = '\0';
    if (gw_event_log_new(&options, &journal, NULL))
        return 2;
    for (int i = 0; i < 100; i++)
        gw_event_log_write(journal, PEG_LOG_WARN, GW_EVENT_HEALTH,
                           GW_FIELDS(gw_field_text("words", words)));
    gw_event_log_free(journal);
    kill(getpid(), SIGKILL);
    return 1;
}

TEST(a_terminal_that_nobody_reads_holds_nobody_up)
{
    const int unread = posix_openpt(O_RDWR | O_NOCTTY);
    int terminal;
    int status;
    pid_t child;

    CHECK(unread >= 0 && grantpt(unread) == 0 && unlockpt(unread) == 0);
    terminal = open(ptsname(unread), O_RDWR | O_NOCTTY);
    CHECK(terminal >= 0);
    child = fork();
    if (child == 0)
        _exit(end_on_a_terminal(terminal));
    CHECK(child > 0);
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, SIGKILL);
    close(terminal);
    close(unread);
}

TEST(a_journal_needs_a_place)
{
    const struct gw_event_log_options options = {.path = "/nonexistent/log"};
    struct gw_event_log *journal = NULL;
    peg_error error;

    CHECK_INT(gw_event_log_new(&options, &journal, &error), PEG_EIO);
    CHECK(strstr(error.message, "/nonexistent/log") != NULL);
    CHECK(journal == NULL);
}

TEST(no_journal_tells_nobody)
{
    gw_event_log_write(NULL, PEG_LOG_ERROR, GW_EVENT_STOP, NULL, 0);
    gw_event_log_flush(NULL);
    CHECK_INT(gw_event_log_reopen(NULL, NULL), PEG_OK);
    CHECK_INT(gw_event_log_n_dropped(NULL), 0);
    CHECK(gw_event_log_free(NULL) == NULL);
}

/* ---- floods ---- */

TEST(a_flood_of_bad_calls_is_told_in_part_and_counted)
{
    open_journal(&p, PEG_LOG_INFO);
    for (int i = 0; i < 10000; i++)
        gw_event_log_write(p.journal, PEG_LOG_WARN, GW_EVENT_REFUSED,
                           GW_FIELDS(gw_field_text("error", "validation_error")));
    gw_event_log_flush(p.journal);
    CHECK_INT(t_count(contents(&p, p.path), "event=refused"), 100);
    CHECK_INT(gw_event_log_n_dropped(p.journal), 9900);
    /* Others are not held up by it. */
    gw_event_log_write(p.journal, PEG_LOG_WARN, GW_EVENT_CALL, NULL, 0);

    peg_clock_manual_advance(p.clock, 1000);
    for (int i = 0; i < 100; i++)
        gw_event_log_write(p.journal, PEG_LOG_WARN, GW_EVENT_REFUSED, NULL, 0);
    gw_event_log_flush(p.journal);
    CHECK_INT(t_count(contents(&p, p.path), "event=refused"), 100 + 1 + 10);
    CHECK_INT(t_count(contents(&p, p.path), "event=refused suppressed=9900"), 1);
    CHECK_INT(t_count(contents(&p, p.path), "event=call"), 1);
    close_journal(&p);
    CHECK_INT(t_count(contents(&p, p.path), "event=refused suppressed=90\n"), 1);
    remove_place(&p);
}

TEST(each_health_change_of_ten_thousand_toolsets_is_told)
{
    open_journal(&p, PEG_LOG_INFO);
    for (int i = 0; i < 10000; i++) {
        gw_event_log_write(p.journal, PEG_LOG_INFO, GW_EVENT_HEALTH, NULL, 0);
        if (i % 1000 == 0)
            gw_event_log_flush(p.journal);
    }
    CHECK_INT(gw_event_log_n_dropped(p.journal), 0);
    close_journal(&p);
    remove_place(&p);
}

/* A pipe that nobody reads: whoever tells does not wait, and the end comes all the same. */
TEST(a_reader_that_does_not_read_holds_up_nobody)
{
    struct gw_event_log_options options = {.least = PEG_LOG_INFO};
    struct gw_event_log *journal = NULL;
    static char large[500];
    int ends[2];

    memset(large, 'x', sizeof(large));
    CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
    options.fd = ends[1];
    CHECK_INT(gw_event_log_new(&options, &journal, NULL), PEG_OK);
    for (int i = 0; i < 10000; i++)
        gw_event_log_write(journal, PEG_LOG_INFO, GW_EVENT_HEALTH,
                           GW_FIELDS(gw_field_str("x", peg__strn(large, sizeof(large)))));
    CHECK(gw_event_log_n_dropped(journal) > 5000);
    gw_event_log_free(journal);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_reader_that_goes_away_ends_nothing)
{
    struct gw_event_log_options options = {.least = PEG_LOG_INFO};
    struct gw_event_log *journal = NULL;
    int ends[2];

    CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
    options.fd = ends[1];
    CHECK_INT(gw_event_log_new(&options, &journal, NULL), PEG_OK);
    close(ends[0]);
    gw_event_log_write(journal, PEG_LOG_INFO, GW_EVENT_START, NULL, 0);
    gw_event_log_flush(journal);
    CHECK_INT(gw_event_log_n_dropped(journal), 1);
    gw_event_log_free(journal);
    close(ends[1]);
}

TEST(a_slow_reader_is_told_what_it_missed)
{
    struct gw_event_log_options options = {.least = PEG_LOG_INFO};
    struct gw_event_log *journal = NULL;
    static char large[500];
    static char read_back[4 << 20];
    size_t len = 0;
    int ends[2];

    memset(large, 'x', sizeof(large));
    CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
    options.fd = ends[1];
    CHECK_INT(gw_event_log_new(&options, &journal, NULL), PEG_OK);
    while (gw_event_log_n_dropped(journal) == 0)
        gw_event_log_write(journal, PEG_LOG_INFO, GW_EVENT_HEALTH,
                           GW_FIELDS(gw_field_str("x", peg__strn(large, sizeof(large)))));
    while (!memmem(read_back, len, "event=log dropped=", 18)) {
        const ssize_t n = read(ends[0], read_back + len, sizeof(read_back) - len);

        CHECK(n > 0);
        len += (size_t)n;
        gw_event_log_write(journal, PEG_LOG_INFO, GW_EVENT_ATTACH, NULL, 0);
    }
    close(ends[0]);
    gw_event_log_free(journal);
    close(ends[1]);
}

/* ---- threads ---- */

static void *tell_much(void *user)
{
    for (int i = 0; i < 500; i++)
        gw_event_log_write(p.journal, PEG_LOG_INFO, GW_EVENT_HEALTH,
                           GW_FIELDS(gw_field_text("who", user), gw_field_number("n", i)));
    return NULL;
}

TEST(threads_tell_at_the_same_time_as_the_file_is_opened_again)
{
    static char names[3][2] = {"a", "b", "c"};
    pthread_t threads[3];

    open_journal(&p, PEG_LOG_INFO);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, tell_much, names[i]);
    for (int i = 0; i < 20; i++) {
        CHECK_INT(gw_event_log_reopen(p.journal, NULL), PEG_OK);
        gw_event_log_flush(p.journal);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(gw_event_log_n_dropped(p.journal), 0);
    close_journal(&p);
    CHECK_INT(t_count(contents(&p, p.path), "who=a"), t_count(contents(&p, p.path), "who=b"));
    remove_place(&p);
}

TEST(the_library_speaks_through_the_journal)
{
    open_journal(&p, PEG_LOG_WARN);
    CHECK_INT(peg_log_set(gw_event_log_hook, PEG_LOG_WARN, p.journal), PEG_OK);
    gw_event_log_hook(PEG_LOG_WARN, "E_X", "it went on", p.journal);
    CHECK_INT(peg_log_set(NULL, PEG_LOG_WARN, NULL), PEG_OK);
    close_journal(&p);
    CHECK(strstr(contents(&p, p.path), "event=library code=E_X message=\"it went on\"\n") != NULL);
    remove_place(&p);
}

TORTURE(a_journal_is_made_or_not_at_all)
{
    struct gw_event_log_options options = {.path = "/dev/null"};
    struct gw_event_log *journal = NULL;
    const peg_status status = gw_event_log_new(&options, &journal, NULL);

    gw_event_log_free(journal);
    return status;
}

TORTURE(a_line_without_memory_is_counted)
{
    struct gw_event_log_options options = {.path = "/dev/null"};
    struct gw_event_log *journal = NULL;
    peg_status status = gw_event_log_new(&options, &journal, NULL);

    if (status)
        return status;
    gw_event_log_write(journal, PEG_LOG_INFO, GW_EVENT_START, NULL, 0);
    status = gw_event_log_n_dropped(journal) ? PEG_ENOMEM : PEG_OK;
    gw_event_log_free(journal);
    return status;
}
