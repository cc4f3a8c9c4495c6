/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/terminal.h"

#include "../t.h"

TEST(a_terminal_is_read_as_it_was_written)
{
    const struct gw_terminal written = {
        .outcome = GW_ERROR,
        .error = WIRE_OVERLOADED,
        .message = peg_cstr("try again"),
        .was_started = true,
        .retry_after_ms = 250,
        .response = peg_cstr("bytes"),
    };
    struct peg__blob *blob = gw_terminal_write(&written);
    struct gw_terminal read;

    CHECK(gw_terminal_read(blob, &read));
    CHECK(read.outcome == GW_ERROR && read.error == WIRE_OVERLOADED);
    CHECK_STR(read.message, "try again");
    CHECK_STR(read.response, "bytes");
    CHECK(read.was_started && !read.is_stand_in);
    CHECK_INT(read.retry_after_ms, 250);
    peg__blob_unref(blob);
}

TEST(a_terminal_that_stands_for_another_says_so)
{
    const struct gw_terminal written = {
        .outcome = GW_OUTCOME_UNKNOWN, .was_started = true, .is_stand_in = true};
    struct peg__blob *blob = gw_terminal_write(&written);
    struct gw_terminal read;

    CHECK(gw_terminal_read(blob, &read));
    CHECK(read.is_stand_in && read.was_started);
    peg__blob_unref(blob);
}

TEST(bytes_that_are_no_terminal_are_refused)
{
    struct gw_terminal terminal = {.outcome = GW_RESULT, .message = peg_cstr("words")};
    struct peg__blob *blob = gw_terminal_write(&terminal);
    struct peg__blob *cut = peg__blob_copy((peg_str){blob->bytes, blob->len - 1});
    struct peg__blob *tiny = peg__blob_copy(peg_cstr("x"));
    struct peg__blob *later = peg__blob_copy(peg__blob_str(blob));

    later->bytes[0] = 9;
    CHECK(!gw_terminal_read(cut, &terminal));
    CHECK(!gw_terminal_read(tiny, &terminal));
    CHECK(!gw_terminal_read(later, &terminal));
    CHECK(!gw_terminal_read(NULL, &terminal));
    peg__blob_unref(blob);
    peg__blob_unref(cut);
    peg__blob_unref(tiny);
    peg__blob_unref(later);
}
