/* SPDX-License-Identifier: Apache-2.0 */

/* Owners that free what they own when their scope ends. */

#include "pegboard/cleanup.h"

#include "base/mem.h"
#include "t.h"

static peg_status read_number(const char *text, int64_t *ret_number)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    const peg_status status = peg_json_parse(peg_cstr(text), NULL, &doc, NULL);

    if (status)
        return status;
    return peg_json_int64(peg_json_root(doc), ret_number) ? PEG_OK : PEG_EINVAL;
}

TEST(a_scope_frees_what_it_owns_on_every_way_out)
{
    const size_t live = peg__mem_live();
    int64_t number = 0;

    CHECK_INT(read_number("7", &number), PEG_OK);
    CHECK_INT(number, 7);
    CHECK_INT(read_number("\"x\"", &number), PEG_EINVAL);
    CHECK_INT(read_number("]", &number), PEG_EPARSE);
    CHECK_INT(peg__mem_live(), live);
}

TEST(a_scope_frees_text_of_the_library)
{
    const size_t live = peg__mem_live();

    {
        PEG_CLEANUP(peg_reader_unrefp) peg_reader *reader = NULL;
        PEG_CLEANUP(peg_freep) char *text = NULL;
        size_t len = 0;

        CHECK_INT(peg_reader_from_bytes(peg_cstr("abc"), &reader, NULL), PEG_OK);
        CHECK_INT(peg_reader_read_all(reader, 100, &text, &len, NULL), PEG_OK);
        CHECK_INT(len, 3);
    }
    CHECK_INT(peg__mem_live(), live);
}

static peg_artifact *new_artifact(void)
{
    PEG_CLEANUP(peg_reader_unrefp) peg_reader *reader = NULL;
    PEG_CLEANUP(peg_artifact_unrefp) peg_artifact *artifact = NULL;
    peg_artifact *ret;

    CHECK_INT(peg_reader_from_bytes(peg_cstr("abc"), &reader, NULL), PEG_OK);
    CHECK_INT(peg_artifact_new(NULL, reader, &artifact, NULL), PEG_OK);
    ret = artifact;
    artifact = NULL; /* handed on */
    return ret;
}

TEST(ownership_that_is_handed_on_outlives_the_scope)
{
    const size_t live = peg__mem_live();
    peg_artifact *artifact = new_artifact();

    CHECK_INT(peg_artifact_byte_length(artifact), 3);
    peg_artifact_unref(artifact);
    CHECK_INT(peg__mem_live(), live);
}

TEST(an_owner_without_a_value_frees_nothing)
{
    PEG_CLEANUP(peg_freep) char *text = NULL;
    PEG_CLEANUP(peg_registry_unrefp) peg_registry *registry = NULL;
    PEG_CLEANUP(peg_tool_list_free) peg_tool_list tools = {0};

    CHECK(!text && !registry && !tools.len);
}
