/* SPDX-License-Identifier: Apache-2.0 */

#include "core/result/result.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../t.h"
#include "base/text/str.h"

/* ---- fixture: a host's bytes, with all that a host can do wrong -------------------------- */

struct host {
    peg_str bytes;
    int64_t says; /* its byte_length */
    bool is_broken;
    bool is_mute; /* fails without a word */
    bool claims_too_much;
    int n_freed;
};

static peg_status host_read_at(void *user, uint64_t offset, void *buffer, size_t n, size_t *ret_n,
                               peg_error *reterr)
{
    struct host *host = user;
    size_t left = offset < host->bytes.len ? host->bytes.len - (size_t)offset : 0;

    if (host->is_broken) {
        if (!host->is_mute)
            *reterr =
                (peg_error){.status = PEG_EIO, .code = "E_HOST", .cause = "", .message = "no"};
        return PEG_EIO;
    }
    if (n > left)
        n = left;
    if (n)
        memcpy(buffer, host->bytes.ptr + offset, n);
    *ret_n = host->claims_too_much ? n + 1000 : n;
    return PEG_OK;
}

static int64_t host_byte_length(void *user)
{
    struct host *host = user;

    return host->says;
}

static void host_free(void *user)
{
    struct host *host = user;

    host->n_freed++;
}

static const peg_reader_ops host_ops = {host_read_at, host_byte_length, host_free};

static peg_reader *reader_of_host(struct host *host)
{
    peg_reader *reader = NULL;

    CHECK_INT(peg_reader_new(&host_ops, host, &reader, NULL), PEG_OK);
    return reader;
}

static peg_reader *reader_of(peg_str bytes)
{
    peg_reader *reader = NULL;

    CHECK_INT(peg_reader_from_bytes(bytes, &reader, NULL), PEG_OK);
    return reader;
}

static char path[64];

static void write_file(const char *text)
{
    int fd;

    snprintf(path, sizeof(path), "/tmp/peg-reader-XXXXXX");
    fd = mkstemp(path);
    CHECK(fd >= 0);
    CHECK_INT(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void fill(char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(i * 7 + i / 251);
}

/* ---- memory ------------------------------------------------------------------------------ */

TEST(reader_over_bytes_has_a_copy_of_them)
{
    char bytes[] = "hello";
    peg_reader *reader = reader_of(peg__str(bytes));
    char got[8] = "";
    size_t n = 0;

    bytes[0] = 'X';

    CHECK_INT(peg_reader_byte_length(reader), 5);
    CHECK_INT(peg_reader_read_at(reader, 0, got, sizeof(got), &n, NULL), PEG_OK);
    CHECK_STR(peg__strn(got, n), "hello");
    peg_reader_unref(reader);
}

TEST(reader_reads_any_part_and_nothing_beyond_the_end)
{
    peg_reader *reader = reader_of(peg__str("hello"));
    char got[8];
    size_t n = 99;

    CHECK_INT(peg_reader_read_at(reader, 1, got, 3, &n, NULL), PEG_OK);
    CHECK_STR(peg__strn(got, n), "ell");
    CHECK_INT(peg_reader_read_at(reader, 4, got, 8, &n, NULL), PEG_OK);
    CHECK_STR(peg__strn(got, n), "o");
    CHECK_INT(peg_reader_read_at(reader, 5, got, 8, &n, NULL), PEG_OK);
    CHECK_INT(n, 0);
    CHECK_INT(peg_reader_read_at(reader, UINT64_MAX, got, 8, &n, NULL), PEG_OK);
    CHECK_INT(n, 0);
    CHECK_INT(peg_reader_read_at(reader, 2, got, 0, &n, NULL), PEG_OK);
    CHECK_INT(n, 0);
    peg_reader_unref(reader);
}

TEST(reader_over_no_bytes_is_empty)
{
    peg_reader *reader = reader_of(peg__strn(NULL, 0));
    char *all = NULL;
    size_t len = 99;
    peg_str view;

    CHECK_INT(peg_reader_byte_length(reader), 0);
    CHECK(peg__reader_view(reader, &view));
    CHECK_INT(view.len, 0);
    CHECK_INT(peg_reader_read_all(reader, 0, &all, &len, NULL), PEG_OK);
    CHECK_INT(len, 0);
    CHECK_STR(peg__str(all), "");
    peg_free(all);
    peg_reader_unref(reader);
}

TEST(reader_in_memory_shows_its_bytes_without_copying)
{
    char *bytes = peg__alloc(6);
    peg_reader *reader = NULL;
    peg_str view;

    memcpy(bytes, "hello", 6);
    CHECK_INT(peg__reader_from_owned(bytes, 5, &reader, NULL), PEG_OK);

    CHECK(peg__reader_view(reader, &view));
    CHECK(view.ptr == bytes);
    CHECK_INT(view.len, 5);
    peg_reader_unref(reader);
}

TEST(reader_over_bytes_is_one_allocation)
{
    const size_t live = peg__mem_live();
    peg_reader *reader = reader_of(peg__str("hello"));

    CHECK_INT(peg__mem_live(), live + 1);
    peg_reader_unref(reader);
}

TEST(reader_lives_until_its_last_reference_is_gone)
{
    struct host host = {.bytes = PEG_LIT("x"), .says = 1};
    peg_reader *reader = reader_of_host(&host);

    CHECK(peg_reader_ref(reader) == reader);
    CHECK(!peg_reader_unref(reader));
    CHECK_INT(host.n_freed, 0);
    CHECK(!peg_reader_unref(reader));
    CHECK_INT(host.n_freed, 1);
    CHECK(!peg_reader_ref(NULL));
    CHECK(!peg_reader_unref(NULL));
}

/* ---- a host's own -----------------------------------------------------------------------------
 */

TEST(reader_of_a_host_names_the_function_that_is_missing)
{
    peg_reader_ops ops = host_ops;
    peg_reader *reader = NULL;
    peg_error error;

    ops.read_at = NULL;
    CHECK_INT(peg_reader_new(&ops, NULL, &reader, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_INVALID_ARGUMENT");
    CHECK(strstr(error.message, "missing: read_at"));
    ops = host_ops;
    ops.byte_length = NULL;
    CHECK_INT(peg_reader_new(&ops, NULL, &reader, &error), PEG_EINVAL);
    CHECK(strstr(error.message, "missing: byte_length"));
    CHECK_INT(peg_reader_new(NULL, NULL, &reader, &error), PEG_EINVAL);
    CHECK(strstr(error.message, "missing: read_at, byte_length"));
    CHECK(!reader);
}

TEST(reader_of_a_host_may_have_no_free)
{
    struct host host = {.bytes = PEG_LIT("x"), .says = 1};
    peg_reader_ops ops = host_ops;
    peg_reader *reader = NULL;

    ops.free = NULL;
    CHECK_INT(peg_reader_new(&ops, &host, &reader, NULL), PEG_OK);
    peg_reader_unref(reader);

    CHECK_INT(host.n_freed, 0);
}

TEST(reader_of_a_host_has_no_view)
{
    struct host host = {.bytes = PEG_LIT("x"), .says = 1};
    peg_reader *reader = reader_of_host(&host);
    peg_str view;

    CHECK(!peg__reader_view(reader, &view));
    peg_reader_unref(reader);
}

TEST(reader_passes_on_what_a_host_failed_with)
{
    struct host host = {.bytes = PEG_LIT("x"), .says = 1, .is_broken = true};
    peg_reader *reader = reader_of_host(&host);
    peg_error error;
    char byte;
    size_t n = 7;

    CHECK_INT(peg_reader_read_at(reader, 0, &byte, 1, &n, &error), PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_HOST");
    CHECK_INT(n, 7);
    CHECK_INT(peg_reader_read_at(reader, 0, &byte, 1, &n, NULL), PEG_EIO);
    peg_reader_unref(reader);
}

TEST(reader_finds_words_for_a_host_that_fails_without_any)
{
    struct host host = {.bytes = PEG_LIT("x"), .says = 1, .is_broken = true, .is_mute = true};
    peg_reader *reader = reader_of_host(&host);
    peg_error error;
    char byte;
    size_t n;

    CHECK_INT(peg_reader_read_at(reader, 0, &byte, 1, &n, &error), PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_CALLBACK");
    CHECK_INT(error.status, PEG_EIO);
    CHECK_STR(peg__str(error.cause), "");
    peg_reader_unref(reader);
}

TEST(reader_does_not_believe_a_host_that_claims_more_than_was_asked_for)
{
    struct host host = {.bytes = PEG_LIT("x"), .says = 1, .claims_too_much = true};
    peg_reader *reader = reader_of_host(&host);
    peg_error error;
    char byte;
    size_t n = 7;

    CHECK_INT(peg_reader_read_at(reader, 0, &byte, 1, &n, &error), PEG_EHOST);
    CHECK_STR(peg__str(error.code), "E_CALLBACK");
    CHECK_INT(n, 7);
    peg_reader_unref(reader);
}

TEST(reader_takes_any_negative_length_for_unknown)
{
    struct host host = {.bytes = PEG_LIT("x"), .says = INT64_MIN};
    peg_reader *reader = reader_of_host(&host);

    CHECK_INT(peg_reader_byte_length(reader), -1);
    peg_reader_unref(reader);
}

/* ---- all of it --------------------------------------------------------------------------------
 */

static void check_read_all(size_t n, int64_t says)
{
    char *bytes = peg__alloc(n);
    struct host host = {.bytes = {bytes, n}, .says = says};
    peg_reader *reader = reader_of_host(&host);
    char *all = NULL;
    size_t len = 0;

    fill(bytes, n);

    CHECK_INT(peg_reader_read_all(reader, n, &all, &len, NULL), PEG_OK);

    CHECK_INT(len, n);
    CHECK(memcmp(all, bytes, n) == 0);
    CHECK_INT(all[n], 0);
    peg_free(all);
    peg_reader_unref(reader);
    peg__free(bytes);
}

TEST(reader_reads_all_bytes_of_any_length_known_or_not)
{
    static const size_t lens[] = {0, 1, 100, (16 << 10) - 1, 16 << 10, (16 << 10) + 1, 300000};

    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        check_read_all(lens[i], (int64_t)lens[i]);
        check_read_all(lens[i], -1);
    }
}

TEST(reader_refuses_to_read_more_than_the_maximum)
{
    static const int64_t says[] = {6, -1};

    for (size_t i = 0; i < 2; i++) {
        struct host host = {.bytes = PEG_LIT("secret"), .says = says[i]};
        peg_reader *reader = reader_of_host(&host);
        char *all = NULL;
        size_t len = 7;
        peg_error error;

        CHECK_INT(peg_reader_read_all(reader, 5, &all, &len, &error), PEG_ELIMIT);
        CHECK_STR(peg__str(error.code), "E_READER_TOO_LARGE");
        CHECK(strstr(error.message, "more than 5 bytes (max)"));
        CHECK(!all);
        CHECK_INT(len, 7);
        CHECK_INT(peg_reader_read_all(reader, SIZE_MAX, &all, NULL, &error), PEG_OK);
        CHECK_STR(peg__str(all), "secret");
        peg_free(all);
        peg_reader_unref(reader);
    }
}

TEST(reader_refuses_a_length_that_no_memory_has)
{
    struct host host = {.bytes = PEG_LIT("x"), .says = INT64_MAX};
    peg_reader *reader = reader_of_host(&host);
    char *all = NULL;
    peg_error error;

    CHECK_INT(peg_reader_read_all(reader, SIZE_MAX, &all, NULL, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_READER_TOO_LARGE");
    peg_reader_unref(reader);
}

TEST(reader_says_so_when_a_host_has_less_than_it_said)
{
    struct host host = {.bytes = PEG_LIT("x"), .says = 3};
    peg_reader *reader = reader_of_host(&host);
    char *all = NULL;
    peg_error error;

    CHECK_INT(peg_reader_read_all(reader, 10, &all, NULL, &error), PEG_EHOST);
    CHECK_STR(peg__str(error.code), "E_CALLBACK");
    CHECK(strstr(error.message, "has 3 bytes and gave 1"));
    peg_reader_unref(reader);
}

/* ---- files ------------------------------------------------------------------------------------
 */

TEST(reader_over_a_file_reads_it_again_and_again)
{
    peg_reader *reader = NULL;
    char *all = NULL;

    write_file("on disk");
    CHECK_INT(peg_reader_from_file(path, &reader, NULL), PEG_OK);

    CHECK_INT(peg_reader_byte_length(reader), 7);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(peg_reader_read_all(reader, 100, &all, NULL, NULL), PEG_OK);
        CHECK_STR(peg__str(all), "on disk");
        all = peg_free(all);
    }
    unlink(path);
    peg_reader_unref(reader);
}

TEST(reader_over_a_file_outlives_its_name_and_what_is_appended)
{
    peg_reader *reader = NULL;
    char *all = NULL;
    FILE *more;

    write_file("on disk");
    CHECK_INT(peg_reader_from_file(path, &reader, NULL), PEG_OK);
    more = fopen(path, "a");
    fputs(", and more", more);
    fclose(more);
    unlink(path);

    CHECK_INT(peg_reader_read_all(reader, 100, &all, NULL, NULL), PEG_OK);
    CHECK_STR(peg__str(all), "on disk");
    peg_free(all);
    peg_reader_unref(reader);
}

TEST(reader_says_so_when_a_file_got_shorter)
{
    peg_reader *reader = NULL;
    peg_error error;
    char got[16];
    size_t n;

    write_file("on disk");
    CHECK_INT(peg_reader_from_file(path, &reader, NULL), PEG_OK);
    CHECK_INT(truncate(path, 3), 0);

    CHECK_INT(peg_reader_read_at(reader, 0, got, sizeof(got), &n, &error), PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_FILE");
    unlink(path);
    peg_reader_unref(reader);
}

TEST(reader_refuses_what_is_no_regular_file)
{
    char fifo[] = "/tmp/peg-fifo-XXXXXX";
    peg_reader *reader = NULL;
    peg_error error;

    CHECK(mkdtemp(fifo));
    CHECK_INT(rmdir(fifo), 0);
    CHECK_INT(mkfifo(fifo, 0600), 0);

    CHECK_INT(peg_reader_from_file(fifo, &reader, &error), PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_FILE");
    CHECK_INT(peg_reader_from_file("/tmp", &reader, &error), PEG_EIO);
    CHECK_INT(peg_reader_from_file("/tmp/peg-there-is-no-such-file", &reader, &error), PEG_EIO);
    CHECK(strstr(error.message, "peg-there-is-no-such-file"));
    CHECK_INT(peg_reader_from_file(NULL, &reader, &error), PEG_EINVAL);
    CHECK(!reader);
    unlink(fifo);
}

TEST(reader_closes_its_file_and_does_not_leave_it_to_children)
{
    peg_reader *reader = NULL;
    int before;
    int after;

    write_file("x");
    before = open("/", O_RDONLY | O_CLOEXEC);
    close(before);
    CHECK_INT(peg_reader_from_file(path, &reader, NULL), PEG_OK);
    CHECK_INT(fcntl(before, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC); /* the lowest free one */
    peg_reader_unref(reader);

    after = open("/", O_RDONLY | O_CLOEXEC);
    CHECK_INT(after, before);
    close(after);
    unlink(path);
}

/* ---- memory that runs out ----------------------------------------------------------------------
 */

TORTURE(reader_over_bytes_survives_any_allocation_failure)
{
    peg_reader *reader = NULL;
    char *all = NULL;
    peg_status status = peg_reader_from_bytes(peg_cstr("hello"), &reader, NULL);

    if (status == PEG_OK)
        status = peg_reader_read_all(reader, 100, &all, NULL, NULL);
    peg_free(all);
    peg_reader_unref(reader);
    return status;
}

TORTURE(reader_of_unknown_length_survives_any_allocation_failure)
{
    static char bytes[100000];
    struct host host = {.bytes = {bytes, sizeof(bytes)}, .says = -1};
    peg_reader *reader = NULL;
    char *all = NULL;
    peg_status status = peg_reader_new(&host_ops, &host, &reader, NULL);

    if (status == PEG_OK)
        status = peg_reader_read_all(reader, sizeof(bytes), &all, NULL, NULL);
    peg_free(all);
    peg_reader_unref(reader);
    return status;
}

TORTURE(reader_over_a_file_survives_any_allocation_failure)
{
    peg_reader *reader = NULL;
    peg_status status;

    write_file("x");
    status = peg_reader_from_file(path, &reader, NULL);
    unlink(path);
    peg_reader_unref(reader);
    return status;
}

TORTURE(reader_leaves_owned_bytes_to_the_caller_when_memory_runs_out)
{
    char *bytes = peg__alloc(1);
    peg_reader *reader = NULL;
    peg_status status;

    if (!bytes)
        return PEG_ENOMEM;
    bytes[0] = 'x';
    status = peg__reader_from_owned(bytes, 1, &reader, NULL);
    if (status)
        peg__free(bytes);
    peg_reader_unref(reader);
    return status;
}
