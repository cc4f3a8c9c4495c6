/* SPDX-License-Identifier: Apache-2.0 */

#include "base/blob.h"

#include <string.h>

#include "../t.h"

TEST(a_blob_holds_a_copy_of_its_bytes_and_ends_with_a_nul)
{
    char text[] = "a\0b";
    struct peg__blob *blob = peg__blob_copy((peg_str){text, 3});

    text[0] = 'x';
    CHECK(blob != NULL);
    CHECK(peg__blob_str(blob).len == 3);
    CHECK(memcmp(blob->bytes, "a\0b", 4) == 0);
    peg__blob_unref(blob);
}

TEST(a_blob_joins_parts_of_which_some_are_empty)
{
    const peg_str parts[] = {peg_cstr("a"), {NULL, 0}, peg_cstr("bc")};
    struct peg__blob *blob = peg__blob_join(parts, 3);

    CHECK_STR(peg__blob_str(blob), "abc");
    CHECK(blob->bytes[3] == '\0');
    peg__blob_unref(blob);
}

TEST(a_blob_lives_as_long_as_its_last_reference)
{
    struct peg__blob *blob = peg__blob_copy(peg_cstr("kept"));
    struct peg__blob *other = peg__blob_ref(blob);

    peg__blob_unref(blob);
    CHECK(memcmp(other->bytes, "kept", 5) == 0);
    peg__blob_unref(other);
}

TEST(a_blob_takes_the_memory_of_a_buffer)
{
    struct peg__buf buf = PEG__BUF(1000);
    struct peg__blob *blob;

    peg__buf_repeat(&buf, 'x', PEG__BLOB_CAPACITY);
    peg__buf_puts(&buf, "kept");
    blob = peg__blob_take(&buf);

    CHECK(blob);
    CHECK_STR(peg__blob_str(blob), "kept");
    CHECK(blob->bytes[4] == '\0');
    CHECK(!buf.ptr && !buf.len && buf.max == 1000);
    peg__blob_unref(blob);
}

TEST(a_buffer_that_failed_makes_no_blob)
{
    struct peg__buf buf = PEG__BUF(PEG__BLOB_CAPACITY + 1);

    CHECK(!peg__blob_take(&buf));
    peg__buf_repeat(&buf, 'x', PEG__BLOB_CAPACITY);
    peg__buf_puts(&buf, "too long");
    CHECK(!peg__blob_take(&buf));
    peg__buf_free(&buf);
}

TEST(no_blob_is_empty_and_can_be_dropped)
{
    CHECK(peg__blob_ref(NULL) == NULL);
    CHECK(peg__blob_unref(NULL) == NULL);
    CHECK(peg__blob_str(NULL).len == 0);
}

TEST(a_length_that_no_memory_holds_is_refused)
{
    CHECK(peg__blob_new(SIZE_MAX) == NULL);
}
