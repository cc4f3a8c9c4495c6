/* SPDX-License-Identifier: Apache-2.0 */

#include "core/artifact/artifact.h"

#include <pthread.h>
#include <stdatomic.h>

#include "../t.h"
#include "base/text/str.h"
#include "core/result/result.h"

/* ---- fixture: artifacts over memory, and over a host's bytes that count their reads ------------
 */

static peg_artifact *artifact_of(peg_str bytes)
{
    peg_reader *reader = NULL;
    peg_artifact *artifact = NULL;

    CHECK_INT(peg_reader_from_bytes(bytes, &reader, NULL), PEG_OK);
    CHECK_INT(peg_artifact_new(NULL, reader, &artifact, NULL), PEG_OK);
    peg_reader_unref(reader);
    return artifact;
}

struct host {
    peg_str bytes;
    int64_t says;
    bool is_broken;
    atomic_int n_reads;
    size_t largest_read;
};

static peg_status host_read_at(void *user, uint64_t offset, void *buffer, size_t n, size_t *ret_n,
                               peg_error *reterr)
{
    struct host *host = user;
    const size_t left = offset < host->bytes.len ? host->bytes.len - (size_t)offset : 0;

    (void)reterr;
    if (host->is_broken)
        return PEG_EIO;
    if (atomic_fetch_add(&host->n_reads, 1) == 0 || n > host->largest_read)
        host->largest_read = n;
    *ret_n = n < left ? n : left;
    if (*ret_n)
        memcpy(buffer, host->bytes.ptr + offset, *ret_n);
    return PEG_OK;
}

static int64_t host_byte_length(void *user)
{
    const struct host *host = user;

    return host->says;
}

static peg_status new_over_host(const peg_artifact_kind *kind, struct host *host,
                                peg_artifact **ret_artifact)
{
    const peg_reader_ops ops = {.read_at = host_read_at, .byte_length = host_byte_length};
    peg_reader *reader = NULL;
    peg_status status = peg_reader_new(&ops, host, &reader, NULL);

    if (status == PEG_OK)
        status = peg_artifact_new(kind, reader, ret_artifact, NULL);
    peg_reader_unref(reader);
    return status;
}

static peg_artifact *artifact_of_host(const peg_artifact_kind *kind, struct host *host)
{
    peg_artifact *artifact = NULL;

    CHECK_INT(new_over_host(kind, host, &artifact), PEG_OK);
    return artifact;
}

/* All lines, each followed by '|'. */
static void check_lines(peg_str bytes, const char *expected)
{
    peg_artifact *artifact = artifact_of(bytes);
    char joined[256];
    size_t len = 0;
    size_t n = 99;
    peg_str line;

    CHECK_INT(peg_artifact_line_count(artifact, &n, NULL), PEG_OK);
    for (size_t i = 0; i < n; i++) {
        CHECK_INT(peg_artifact_line(artifact, i, &line, NULL), PEG_OK);
        CHECK(line.ptr);
        len += (size_t)snprintf(joined + len, sizeof(joined) - len, "%.*s|", PEG_ARG(line));
    }
    CHECK_STR(peg__strn(joined, len), expected);
    CHECK_INT(peg_artifact_line(artifact, n, &line, NULL), PEG_OK);
    CHECK(!line.ptr);
    CHECK_INT(peg_artifact_line(artifact, SIZE_MAX, &line, NULL), PEG_OK);
    CHECK(!line.ptr);
    peg_artifact_unref(artifact);
}

/* ---- making one -------------------------------------------------------------------------- */

/* T117 */
TEST(artifact_refuses_to_be_made_without_a_reader)
{
    peg_artifact *artifact = NULL;
    peg_error error;

    CHECK_INT(peg_artifact_new(NULL, NULL, &artifact, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_NOT_A_SPOOL_READER");
    CHECK(!artifact);
}

TEST(artifact_is_text_unless_it_is_told_otherwise)
{
    peg_artifact *artifact = artifact_of(peg__str("x"));
    struct host host = {.bytes = PEG_LIT("{}"), .says = 2};
    peg_artifact *json = artifact_of_host(&peg_artifact_json, &host);

    CHECK(peg_artifact_kind_of(artifact) == &peg_artifact_text);
    CHECK(peg_artifact_kind_of(json) == &peg_artifact_json);
    peg_artifact_unref(artifact);
    peg_artifact_unref(json);
}

TEST(artifact_references_its_reader)
{
    peg_reader *reader = NULL;
    peg_artifact *artifact = NULL;
    peg_str bytes;

    CHECK_INT(peg_reader_from_bytes(peg__str("hello"), &reader, NULL), PEG_OK);
    CHECK_INT(peg_artifact_new(NULL, reader, &artifact, NULL), PEG_OK);
    CHECK(peg_artifact_reader(artifact) == reader);
    peg_reader_unref(reader);

    CHECK(peg_artifact_ref(artifact) == artifact);
    CHECK(!peg_artifact_unref(artifact));
    CHECK_INT(peg_artifact_bytes(artifact, &bytes, NULL), PEG_OK);
    CHECK_STR(bytes, "hello");
    CHECK(!peg_artifact_unref(artifact));
    CHECK(!peg_artifact_unref(NULL));
    CHECK(!peg_artifact_ref(NULL));
}

/* ---- bytes ------------------------------------------------------------------------------- */

TEST(artifact_in_memory_hands_out_the_bytes_of_its_reader)
{
    peg_artifact *artifact = artifact_of(peg__str("hello"));
    peg_str bytes;
    peg_str view;

    CHECK_INT(peg_artifact_bytes(artifact, &bytes, NULL), PEG_OK);

    CHECK(peg__reader_view(peg_artifact_reader(artifact), &view));
    CHECK(bytes.ptr == view.ptr);
    CHECK_INT(bytes.len, 5);
    peg_artifact_unref(artifact);
}

TEST(artifact_is_read_once_however_often_it_is_asked)
{
    struct host host = {.bytes = PEG_LIT("a\nb"), .says = 3};
    peg_artifact *artifact = artifact_of_host(NULL, &host);
    peg_str bytes;
    size_t n;

    CHECK_INT(host.n_reads, 0);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(peg_artifact_bytes(artifact, &bytes, NULL), PEG_OK);
        CHECK_STR(bytes, "a\nb");
        CHECK_INT(peg_artifact_line_count(artifact, &n, NULL), PEG_OK);
        CHECK_INT(n, 2);
    }

    CHECK_INT(host.n_reads, 1);
    peg_artifact_unref(artifact);
}

/* T104 */
TEST(artifact_keeps_bytes_that_are_no_text)
{
    peg_artifact *artifact = artifact_of(peg__strn("\xFF\0\r\n\xC0\x80", 6));
    peg_str bytes;

    CHECK_INT(peg_artifact_byte_length(artifact), 6);
    CHECK_INT(peg_artifact_bytes(artifact, &bytes, NULL), PEG_OK);
    CHECK(peg__str_eq(bytes, peg__strn("\xFF\0\r\n\xC0\x80", 6)));
    peg_artifact_unref(artifact);
}

TEST(artifact_tells_its_length_without_being_read_if_the_reader_knows_it)
{
    struct host known = {.bytes = PEG_LIT("abc"), .says = 3};
    struct host unknown = {.bytes = PEG_LIT("abc"), .says = -1};
    peg_artifact *artifact = artifact_of_host(NULL, &known);
    peg_artifact *other = artifact_of_host(NULL, &unknown);

    CHECK_INT(peg_artifact_byte_length(artifact), 3);
    CHECK_INT(known.n_reads, 0);
    CHECK_INT(peg_artifact_byte_length(other), 3);
    CHECK(unknown.n_reads > 0);
    peg_artifact_unref(artifact);
    peg_artifact_unref(other);
}

TEST(artifact_that_cannot_be_read_says_so_and_is_tried_again)
{
    struct host host = {.bytes = PEG_LIT("a\nb"), .says = -1, .is_broken = true};
    peg_artifact *artifact = artifact_of_host(NULL, &host);
    peg_error error;
    peg_str bytes = {0};
    size_t n = 7;

    CHECK_INT(peg_artifact_byte_length(artifact), -1);
    CHECK_INT(peg_artifact_bytes(artifact, &bytes, &error), PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_CALLBACK");
    CHECK_INT(peg_artifact_line_count(artifact, &n, &error), PEG_EIO);
    CHECK_INT(peg_artifact_line(artifact, 0, &bytes, &error), PEG_EIO);
    CHECK_INT(n, 7);
    CHECK(!bytes.ptr);

    host.is_broken = false;

    CHECK_INT(peg_artifact_line_count(artifact, &n, &error), PEG_OK);
    CHECK_INT(n, 2);
    peg_artifact_unref(artifact);
}

TEST(artifact_beyond_64_mib_is_not_read)
{
    struct host host = {.bytes = PEG_LIT("x"), .says = PEG_LIMIT_ARTIFACT_BYTES + 1};
    peg_artifact *artifact = artifact_of_host(NULL, &host);
    peg_error error;
    peg_str bytes;
    size_t n;

    CHECK_INT(peg_artifact_bytes(artifact, &bytes, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_READER_TOO_LARGE");
    CHECK(strstr(error.message, "(artifact_bytes)"));
    CHECK_INT(peg_artifact_line_count(artifact, &n, &error), PEG_ELIMIT);
    CHECK_INT(peg_artifact_byte_length(artifact), PEG_LIMIT_ARTIFACT_BYTES + 1);
    CHECK_INT(host.n_reads, 0);
    peg_artifact_unref(artifact);
}

/* ---- lines ------------------------------------------------------------------------------- */

/* A handle tells how many there are, and a turn may have many handles of large results. */
TEST(artifact_counts_lines_that_are_not_in_memory_without_keeping_them)
{
    static const size_t lengths[] = {1, 65535, 65536, 65537, 300000};
    static char text[300000];

    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < sizeof(text); i += 7)
        text[i] = '\n';
    text[65535] = text[65536] = '\n';
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        struct host host = {.bytes = {text, lengths[i]}, .says = i % 2 ? -1 : (int64_t)lengths[i]};
        peg_artifact *artifact = artifact_of_host(NULL, &host);
        peg_artifact *whole = artifact_of(host.bytes);
        size_t n = 0;
        size_t expected = 0;
        peg_str line;

        CHECK_INT(peg_artifact_line_count(whole, &expected, NULL), PEG_OK);
        CHECK_INT(peg_artifact_line_count(artifact, &n, NULL), PEG_OK);
        CHECK_INT(n, expected);
        CHECK(host.largest_read <= 65536);

        CHECK_INT(peg_artifact_line(artifact, n - 1, &line, NULL), PEG_OK);
        CHECK(line.ptr);
        CHECK_INT(peg_artifact_line(artifact, n, &line, NULL), PEG_OK);
        CHECK(!line.ptr);
        peg_artifact_unref(artifact);
        peg_artifact_unref(whole);
    }
}

/* T118 */
TEST(artifact_lines_end_at_lf_alone)
{
    check_lines(peg__str("one"), "one|");
    check_lines(peg__str("one\ntwo"), "one|two|");
    check_lines(peg__str("one\r\ntwo\r\n"), "one\r|two\r||");
    check_lines(peg__str("one\rtwo"), "one\rtwo|");
    check_lines(peg__str("one\v\f\xC2\x85\xE2\x80\xA8two"), "one\v\f\xC2\x85\xE2\x80\xA8two|");
}

/* T118 */
TEST(artifact_that_ends_with_lf_has_an_empty_last_line)
{
    check_lines(peg__str("one\n"), "one||");
    check_lines(peg__str("\n"), "||");
    check_lines(peg__str("\n\n"), "|||");
    check_lines(peg__str("\none"), "|one|");
}

/* T118 */
TEST(artifact_of_nothing_has_no_lines)
{
    check_lines(peg__str(""), "");
}

/* Every line against the plainest way to find it. */
static void check_against_plain(peg_str bytes)
{
    peg_artifact *artifact = artifact_of(bytes);
    struct peg__lines lines;
    size_t n_lines = 0;
    size_t start = 0;
    peg_str line;
    size_t n;

    CHECK_INT(peg__artifact_lines(artifact, 0, &lines, NULL), PEG_OK);
    for (size_t i = 0; bytes.len > 0 && i <= bytes.len; i++) {
        peg_str expected = {bytes.ptr + start, i - start};

        if (i < bytes.len && bytes.ptr[i] != '\n')
            continue;
        CHECK_INT(peg_artifact_line(artifact, n_lines++, &line, NULL), PEG_OK);
        CHECK(peg__str_eq(line, expected));
        CHECK(peg__lines_next(&lines, &line));
        CHECK(peg__str_eq(line, expected));
        start = i + 1;
    }
    CHECK(!peg__lines_next(&lines, &line));
    CHECK_INT(peg_artifact_line_count(artifact, &n, NULL), PEG_OK);
    CHECK_INT(n, n_lines);
    peg_artifact_unref(artifact);
}

/* T118 */
TEST(artifact_finds_every_line_of_texts_of_many_shapes)
{
    static char bytes[5000];

    for (unsigned every = 1; every < 80; every++) {
        for (size_t len = 0; len < sizeof(bytes); len += 1 + len / 3) {
            unsigned random = every * 2654435761u;

            for (size_t i = 0; i < len; i++) {
                random = random * 1664525 + 1013904223;
                bytes[i] = (random >> 16) % every == 0 ? '\n' : (char)(random >> 24);
            }
            check_against_plain(peg__strn(bytes, len));
        }
    }
}

/* T118 */
TEST(artifact_finds_the_lines_around_each_mark_of_its_index)
{
    enum { N = 64 * 5 };
    char bytes[N];

    memset(bytes, '\n', sizeof(bytes));
    for (size_t len = 0; len <= N; len++)
        check_against_plain(peg__strn(bytes, len));
}

TEST(artifact_lines_can_be_walked_from_any_line)
{
    char bytes[2000];
    struct peg__lines lines;
    peg_artifact *artifact;
    peg_str line;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = i % 2 ? '\n' : (char)('a' + i / 2 % 26);
    artifact = artifact_of(peg__strn(bytes, sizeof(bytes)));

    for (size_t first = 0; first < 1000; first += 37) {
        CHECK_INT(peg__artifact_lines(artifact, first, &lines, NULL), PEG_OK);
        CHECK(peg__lines_next(&lines, &line));
        CHECK_INT(line.len, 1);
        CHECK_INT(line.ptr[0], 'a' + first % 26);
    }
    CHECK_INT(peg__artifact_lines(artifact, 1000, &lines, NULL), PEG_OK);
    CHECK(peg__lines_next(&lines, &line));
    CHECK_STR(line, "");
    CHECK(!peg__lines_next(&lines, &line));
    CHECK_INT(peg__artifact_lines(artifact, 1001, &lines, NULL), PEG_OK);
    CHECK(!peg__lines_next(&lines, &line));
    peg_artifact_unref(artifact);
}

/* ---- a parsed form ----------------------------------------------------------------------- */

static int n_parses;
static int n_parsed_freed;
static peg_status parse_fails_with;

/* Counts lines: parsing may ask the artifact for them. */
static peg_status parse_lines(peg_artifact *artifact, void **ret_parsed, peg_error *reterr)
{
    static size_t n;

    n_parses++;
    if (parse_fails_with)
        return parse_fails_with;
    *ret_parsed = &n;
    return peg_artifact_line_count(artifact, &n, reterr);
}

static void count_freed(void *parsed)
{
    (void)parsed;
    n_parsed_freed++;
}

static const peg_artifact_kind counted = {
    .name = "counted", .parse = parse_lines, .parsed_free = count_freed};
static const peg_artifact_kind derived = {.name = "derived", .base = &counted};

static void reset_counts(void)
{
    n_parses = 0;
    n_parsed_freed = 0;
    parse_fails_with = PEG_OK;
}

TEST(artifact_is_parsed_once_and_gives_the_parsed_form_back)
{
    struct host host = {.bytes = PEG_LIT("a\nb\nc"), .says = 5};
    peg_artifact *artifact = artifact_of_host(&counted, &host);
    void *parsed = NULL;
    void *again = NULL;

    reset_counts();
    CHECK_INT(peg_artifact_parsed(artifact, &parsed, NULL), PEG_OK);
    CHECK_INT(peg_artifact_parsed(artifact, &again, NULL), PEG_OK);

    CHECK_INT(*(const size_t *)parsed, 3);
    CHECK(parsed == again);
    CHECK_INT(n_parses, 1);
    peg_artifact_unref(artifact);
    CHECK_INT(n_parsed_freed, 1);
}

TEST(artifact_that_nobody_asked_for_its_parsed_form_has_nothing_to_free)
{
    struct host host = {.bytes = PEG_LIT("a"), .says = 1};

    reset_counts();
    peg_artifact_unref(artifact_of_host(&counted, &host));

    CHECK_INT(n_parses, 0);
    CHECK_INT(n_parsed_freed, 0);
}

TEST(artifact_of_a_kind_without_a_parse_uses_that_of_its_base)
{
    struct host host = {.bytes = PEG_LIT("a\nb"), .says = 3};
    peg_artifact *artifact = artifact_of_host(&derived, &host);
    void *parsed = NULL;

    reset_counts();
    CHECK_INT(peg_artifact_parsed(artifact, &parsed, NULL), PEG_OK);

    CHECK_INT(*(const size_t *)parsed, 2);
    peg_artifact_unref(artifact);
    CHECK_INT(n_parsed_freed, 1);
}

TEST(artifact_of_a_kind_that_has_no_parse_at_all_says_so)
{
    peg_artifact *artifact = artifact_of(peg__str("x"));
    peg_error error;
    void *parsed = NULL;

    CHECK_INT(peg_artifact_parsed(artifact, &parsed, &error), PEG_EUNSUPPORTED);
    CHECK_STR(peg__str(error.code), "E_ARTIFACT_NOT_PARSED");
    peg_artifact_unref(artifact);
}

TEST(artifact_whose_parse_failed_is_parsed_again)
{
    struct host host = {.bytes = PEG_LIT("a"), .says = 1};
    peg_artifact *artifact = artifact_of_host(&counted, &host);
    peg_error error;
    void *parsed = NULL;

    reset_counts();
    parse_fails_with = PEG_ENOMEM;
    CHECK_INT(peg_artifact_parsed(artifact, &parsed, &error), PEG_ENOMEM);
    CHECK_STR(peg__str(error.code), "E_CALLBACK");
    CHECK(!parsed);
    parse_fails_with = PEG_OK;

    CHECK_INT(peg_artifact_parsed(artifact, &parsed, &error), PEG_OK);
    CHECK_INT(n_parses, 2);
    peg_artifact_unref(artifact);
    CHECK_INT(n_parsed_freed, 1);
}

static peg_status parse_in_a_circle(peg_artifact *artifact, void **ret_parsed, peg_error *reterr)
{
    return peg_artifact_parsed(artifact, ret_parsed, reterr);
}

TEST(artifact_whose_parse_asks_for_its_own_result_fails_instead_of_waiting)
{
    static const peg_artifact_kind circular = {.name = "circular", .parse = parse_in_a_circle};
    struct host host = {.bytes = PEG_LIT("a"), .says = 1};
    peg_artifact *artifact = artifact_of_host(&circular, &host);
    peg_error error;
    void *parsed = NULL;

    CHECK_INT(peg_artifact_parsed(artifact, &parsed, &error), PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_WRONG_STATE");
    peg_artifact_unref(artifact);
}

/* ---- threads ----------------------------------------------------------------------------- */

static void *ask_everything(void *user)
{
    peg_artifact *artifact = user;
    peg_str line;
    void *parsed = NULL;
    size_t n = 0;

    if (peg_artifact_line(artifact, 900, &line, NULL) || !peg__str_is(line, "b") ||
        peg_artifact_parsed(artifact, &parsed, NULL) || *(const size_t *)parsed != 1001 ||
        peg_artifact_line_count(artifact, &n, NULL) || n != 1001)
        return user;
    peg_artifact_unref(artifact);
    return NULL;
}

TEST(artifact_asked_by_many_threads_is_read_and_parsed_once)
{
    enum { N_THREADS = 8 };
    static char bytes[2000];
    struct host host = {.bytes = {bytes, sizeof(bytes)}, .says = sizeof(bytes)};
    pthread_t threads[N_THREADS];
    peg_artifact *artifact;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = i % 2 ? '\n' : 'b';
    reset_counts();
    artifact = artifact_of_host(&counted, &host);

    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, ask_everything, peg_artifact_ref(artifact)), 0);
    peg_artifact_unref(artifact);
    for (int i = 0; i < N_THREADS; i++) {
        void *failed = NULL;

        CHECK_INT(pthread_join(threads[i], &failed), 0);
        CHECK(!failed);
    }

    CHECK_INT(host.n_reads, 1);
    CHECK_INT(n_parses, 1);
    CHECK_INT(n_parsed_freed, 1);
}

/* ---- memory that runs out ---------------------------------------------------------------- */

TORTURE(artifact_survives_any_allocation_failure)
{
    static char bytes[40000];
    struct host host = {.bytes = {bytes, sizeof(bytes)}, .says = -1};
    peg_artifact *artifact = NULL;
    peg_str line = {0};
    void *parsed = NULL;
    peg_status status;

    memset(bytes, '\n', sizeof(bytes));
    reset_counts();
    status = new_over_host(&counted, &host, &artifact);
    if (status == PEG_OK)
        status = peg_artifact_line(artifact, 30000, &line, NULL);
    if (status == PEG_OK)
        status = peg_artifact_parsed(artifact, &parsed, NULL);
    if (status == PEG_OK)
        CHECK(line.ptr && parsed);
    peg_artifact_unref(artifact);
    return status;
}

TORTURE(artifact_can_be_asked_again_after_memory_ran_out)
{
    static char bytes[40000];
    struct host host = {.bytes = {bytes, sizeof(bytes)}, .says = -1};
    peg_artifact *artifact = NULL;
    size_t n = 0;
    peg_status status;

    memset(bytes, '\n', sizeof(bytes));
    status = new_over_host(NULL, &host, &artifact);
    if (status)
        return status;
    status = peg_artifact_line_count(artifact, &n, NULL);
    peg__mem_fail_at(0);
    CHECK_INT(peg_artifact_line_count(artifact, &n, NULL), PEG_OK);
    CHECK_INT(n, sizeof(bytes) + 1);
    peg_artifact_unref(artifact);
    return status;
}
