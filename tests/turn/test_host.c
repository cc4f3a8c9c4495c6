/* SPDX-License-Identifier: Apache-2.0 */

#include "turn/turn.h"

#include "../t.h"
#include "base/text/str.h"

TEST(host_error_that_is_whole_goes_on_as_it_is)
{
    const peg_error error = {.status = PEG_EIO,
                             .code = "E_DISK",
                             .cause = "E_OLD",
                             .where = "/a",
                             .message = "the disk is full"};
    peg_error out;

    CHECK_INT(peg__host_failed(PEG_EIO, &error, "E_STORAGE_FAILED", "the storage", &out), PEG_EIO);

    CHECK_INT(out.status, PEG_EIO);
    CHECK_STR(peg__str(out.code), "E_DISK");
    CHECK_STR(peg__str(out.cause), "E_OLD");
    CHECK_STR(peg__str(out.where), "/a");
    CHECK_STR(peg__str(out.message), "the disk is full");
}

TEST(host_error_without_a_word_gets_a_code_and_a_sentence)
{
    peg_error error = PEG__HOST_ERROR;

    CHECK(peg__host_is_silent(&error));
    CHECK_INT(peg__host_failed(PEG_EHOST, &error, "E_X", "the engine", &error), PEG_EHOST);

    CHECK_INT(error.status, PEG_EHOST);
    CHECK_STR(peg__str(error.code), "E_X");
    CHECK_STR(peg__str(error.cause), "");
    CHECK(strstr(error.message, "the engine failed") == error.message);
}

TEST(host_error_with_a_code_alone_keeps_it)
{
    peg_error error = PEG__HOST_ERROR;

    error.code = "E_MINE";
    CHECK(!peg__host_is_silent(&error));
    CHECK_INT(peg__host_failed(PEG_EHOST, &error, "E_X", "the engine", &error), PEG_EHOST);

    CHECK_STR(peg__str(error.code), "E_MINE");
    CHECK(error.message[0] != '\0');
}

TEST(host_error_is_mended_where_it_breaks_the_rules)
{
    peg_error error = {.status = PEG_OK};

    memset(error.message, 'm', sizeof(error.message));
    memset(error.where, 'w', sizeof(error.where));
    CHECK_INT(peg__host_failed(PEG_EIO, &error, "E_X", "the engine", &error), PEG_EIO);

    CHECK_INT(error.status, PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_X");
    CHECK_STR(peg__str(error.cause), "");
    CHECK_INT(strlen(error.message), sizeof(error.message) - 1);
    CHECK_INT(strlen(error.where), sizeof(error.where) - 1);
}

TEST(host_error_may_be_of_no_interest)
{
    const peg_error error = PEG__HOST_ERROR;

    CHECK_INT(peg__host_failed(PEG_EIO, &error, "E_X", "the engine", NULL), PEG_EIO);
}
