/* SPDX-License-Identifier: Apache-2.0 */

#include "calls/outcome.h"

#include <string.h>

#include "../t.h"
#include "base/text/str.h"
#include "wire/pack.h"

TEST(an_outcome_is_read_as_it_was_written)
{
    const struct calls_outcome written = {
        .kind = CALLS_KIND_ERROR,
        .error = CALLS_OVERLOADED,
        .message = peg_cstr("try again"),
        .was_started = true,
        .retry_after_ms = 250,
        .response = peg_cstr("bytes"),
    };
    struct peg__blob *blob = calls_outcome_write(&written);
    struct calls_outcome read;

    CHECK(calls_outcome_read(blob, &read));
    CHECK(read.kind == CALLS_KIND_ERROR && read.error == CALLS_OVERLOADED);
    CHECK_STR(read.message, "try again");
    CHECK_STR(read.response, "bytes");
    CHECK(read.was_started && !read.is_placeholder);
    CHECK_INT(read.retry_after_ms, 250);
    peg__blob_unref(blob);
}

TEST(a_placeholder_says_so)
{
    const struct calls_outcome written = {
        .kind = CALLS_KIND_UNKNOWN, .was_started = true, .is_placeholder = true};
    struct peg__blob *blob = calls_outcome_write(&written);
    struct calls_outcome read;

    CHECK(calls_outcome_read(blob, &read));
    CHECK(read.is_placeholder && read.was_started);
    peg__blob_unref(blob);
}

static struct peg__blob *outcome_of(const char *json, const char *rest)
{
    struct peg__buf bytes = PEG__BUF(1000);

    peg__buf_repeat(&bytes, 'x', CALLS_OUTCOME_CAPACITY);
    peg__buf_puts(&bytes, json);
    peg__buf_puts(&bytes, rest);
    return calls_outcome_of_result(&bytes, strlen(json));
}

TEST(an_outcome_made_of_a_result_reads_as_one_that_was_written)
{
    struct peg__blob *blob = outcome_of("[1,2]", "\x1a\x01y");
    struct calls_outcome read;

    CHECK(calls_outcome_read(blob, &read));
    CHECK(read.kind == CALLS_KIND_RESULT && read.error == CALLS_OK && read.was_started);
    CHECK(!read.is_placeholder && !read.message.len && read.blob == blob);
    CHECK_STR(wire_find_bytes(read.response, 2), "[1,2]");
    CHECK_STR(wire_find_bytes(read.response, 3), "y");
    CHECK_STR(peg__str_from(read.response, CALLS_OUTCOME_RESULT), "[1,2]\x1a\x01y");
    peg__blob_unref(blob);
}

TEST(a_length_of_four_bytes_tells_any_size)
{
    static char json[300001];
    struct peg__buf bytes = PEG__BUF(1 << 20);
    struct calls_outcome read = {0};
    struct peg__blob *blob;

    memset(json, '1', sizeof(json) - 1);
    peg__buf_repeat(&bytes, 'x', CALLS_OUTCOME_CAPACITY);
    peg__buf_puts(&bytes, json);
    blob = calls_outcome_of_result(&bytes, strlen(json));

    CHECK(calls_outcome_read(blob, &read));
    CHECK_STR(wire_find_bytes(read.response, 2), json);
    peg__blob_unref(blob);
}

TEST(bytes_that_are_no_outcome_are_refused)
{
    struct calls_outcome outcome = {.kind = CALLS_KIND_RESULT, .message = peg_cstr("words")};
    struct peg__blob *blob = calls_outcome_write(&outcome);
    struct peg__blob *cut = peg__blob_copy((peg_str){blob->bytes, blob->len - 1});
    struct peg__blob *tiny = peg__blob_copy(peg_cstr("x"));
    struct peg__blob *later = peg__blob_copy(peg__blob_str(blob));

    later->bytes[0] = 9;
    CHECK(!calls_outcome_read(cut, &outcome));
    CHECK(!calls_outcome_read(tiny, &outcome));
    CHECK(!calls_outcome_read(later, &outcome));
    CHECK(!calls_outcome_read(NULL, &outcome));
    peg__blob_unref(blob);
    peg__blob_unref(cut);
    peg__blob_unref(tiny);
    peg__blob_unref(later);
}
