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

TEST(a_blob_lives_as_long_as_its_last_reference)
{
    struct peg__blob *blob = peg__blob_copy(peg_cstr("kept"));
    struct peg__blob *other = peg__blob_ref(blob);

    peg__blob_unref(blob);
    CHECK(memcmp(other->bytes, "kept", 5) == 0);
    peg__blob_unref(other);
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
