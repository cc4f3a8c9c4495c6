/* SPDX-License-Identifier: Apache-2.0 */

#include "base/buf.h"

#include "../t.h"
#include "base/str.h"

TEST(buf_collects_text)
{
    struct peg__buf buf = PEG__BUF(1000);

    peg__buf_puts(&buf, "a");
    peg__buf_putc(&buf, 'b');
    peg__buf_str(&buf, peg__str("cd"));
    peg__buf_repeat(&buf, '-', 3);
    peg__buf_printf(&buf, "%d", 42);

    CHECK_STR(peg__buf_view(&buf), "abcd---42");
    peg__buf_free(&buf);
}

TEST(buf_stops_at_its_maximum_and_says_so)
{
    struct peg__buf buf = PEG__BUF(4);
    char *text = NULL;
    peg_error error;

    peg__buf_puts(&buf, "1234");
    CHECK_INT(buf.status, PEG_OK);
    peg__buf_puts(&buf, "5");
    peg__buf_clear(&buf);
    peg__buf_puts(&buf, "12345");

    CHECK_INT(peg__buf_take(&buf, &text, NULL, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_TEXT_TOO_LARGE");
    CHECK(!text);
}

TEST(buf_hands_over_an_empty_text)
{
    struct peg__buf buf = PEG__BUF(4);
    char *text;
    size_t len;

    CHECK_INT(peg__buf_take(&buf, &text, &len, NULL), PEG_OK);

    CHECK_INT(len, 0);
    CHECK_STR(peg__str(text), "");
    peg_free(text);
}

TORTURE(buf_survives_any_allocation_failure)
{
    struct peg__buf buf = PEG__BUF(100000);
    char *text = NULL;
    peg_status status;

    for (int i = 0; i < 100; i++)
        peg__buf_puts(&buf, "0123456789");
    status = peg__buf_take(&buf, &text, NULL, NULL);
    peg_free(text);
    return status;
}
