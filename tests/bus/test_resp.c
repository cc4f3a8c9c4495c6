/* SPDX-License-Identifier: Apache-2.0 */

#include "bus/redis/resp.h"

#include "../t.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"

/* ---- fixture: what a wire gives, as text ---------------------------------------------------- */

// NOLINTNEXTLINE(misc-no-recursion): RESP_MAX_DEPTH
static void tell_value(const struct resp_value *value, struct peg__buf *told)
{
    static const char *const names[] = {"null", "text", "error", "int", "list", "map", "push"};
    const struct resp_value *item = value + 1;

    peg__buf_printf(told, "%s", names[value->kind]);
    if (value->kind == RESP_TEXT || value->kind == RESP_ERROR)
        peg__buf_printf(told, " '" PEG_FMT "'", PEG_ARG(value->text));
    if (value->kind == RESP_INTEGER)
        peg__buf_printf(told, " %lld", (long long)value->integer);
    if (resp_is_list(value)) {
        peg__buf_puts(told, " [");
        for (size_t i = 0; i < value->n_items; i++) {
            tell_value(item, told);
            item = resp_next(item);
        }
        peg__buf_puts(told, "]");
    }
    peg__buf_puts(told, ";");
}

static peg_status read_wire(peg_str wire, size_t piece, struct peg__buf *told, peg_error *reterr)
{
    struct resp_reader reader = {0};
    peg_status status = PEG_OK;

    while (wire.len && !status) {
        peg_str bytes = peg__strn(wire.ptr, piece < wire.len ? piece : wire.len);

        wire = peg__str_from(wire, bytes.len);
        while (bytes.len && !status) {
            const struct resp_value *value = NULL;

            status = resp_reader_next(&reader, &bytes, &value, reterr);
            if (!status && value)
                tell_value(value, told);
        }
    }
    resp_reader_free(&reader);
    return status;
}

static void check_wire(const char *wire, const char *expected)
{
    for (size_t piece = 1; piece <= strlen(wire); piece++) {
        struct peg__buf told = PEG__BUF(1 << 20);
        peg_error error;

        CHECK_STATUS(read_wire(peg__str(wire), piece, &told, &error), PEG_OK, error);
        CHECK_STR(peg__buf_view(&told), expected);
        peg__buf_free(&told);
    }
}

static void check_refused(const char *wire, peg_status expected, const char *words)
{
    for (size_t piece = 1; piece <= strlen(wire); piece += 7) {
        struct peg__buf told = PEG__BUF(1 << 20);
        peg_error error;
        const peg_status status = read_wire(peg__str(wire), piece, &told, &error);

        peg__buf_free(&told);
        CHECK_INT(status, expected);
        CHECK_STR(peg__str(error.code), "E_REDIS_PROTOCOL");
        CHECK(strstr(error.message, words));
    }
}

/* ---- reading -------------------------------------------------------------------------------- */

TEST(a_reply_is_read_in_pieces_of_any_length)
{
    check_wire("+OK\r\n:12\r\n:-3\r\n$5\r\nhello\r\n$0\r\n\r\n",
               "text 'OK';int 12;int -3;text 'hello';text '';");
    check_wire("$-1\r\n*-1\r\n_\r\n#t\r\n#f\r\n", "null;null;null;int 1;int 0;");
    check_wire("-ERR no\r\n!5\r\nERR x\r\n", "error 'ERR no';error 'ERR x';");
    check_wire(",1.5\r\n(123\r\n=7\r\ntxt:abc\r\n", "text '1.5';text '123';text 'abc';");
}

TEST(lists_are_read_with_all_inside_them)
{
    check_wire("*3\r\n$1\r\na\r\n*2\r\n:1\r\n*0\r\n+b\r\n",
               "list [text 'a';list [int 1;list [];];text 'b';];");
    check_wire("%1\r\n+k\r\n*1\r\n_\r\n~1\r\n:7\r\n",
               "map [text 'k';list [null;];];list [int 7;];");
    check_wire(">2\r\n+message\r\n$2\r\nhi\r\n+OK\r\n",
               "push [text 'message';text 'hi';];text 'OK';");
}

TEST(items_and_members_are_found)
{
    struct resp_reader reader = {0};
    const struct resp_value *value = NULL;
    peg_str bytes = peg__str("%3\r\n+list\r\n*2\r\n:1\r\n:2\r\n+mode\r\n+cluster\r\n+n\r\n:5\r\n");

    CHECK_INT(resp_reader_next(&reader, &bytes, &value, NULL), PEG_OK);

    CHECK_STR(resp_member(value, "mode"), "cluster");
    CHECK_STR(resp_member(value, "list"), "");
    CHECK_STR(resp_member(value, "none"), "");
    CHECK_INT(resp_item(resp_item(value, 1), 1)->integer, 2);
    CHECK(!resp_item(resp_item(value, 1), 2));
    CHECK(!resp_item(resp_item(value, 0), 0));
    resp_reader_free(&reader);
}

TEST(an_error_is_known_by_its_first_word)
{
    const struct resp_value error = {.kind = RESP_ERROR, .extent = 1, .text = PEG_LIT("OOM no")};
    const struct resp_value text = {.kind = RESP_TEXT, .extent = 1, .text = PEG_LIT("OOM")};

    CHECK(resp_is_error(&error, "OOM"));
    CHECK(!resp_is_error(&error, "OO"));
    CHECK(!resp_is_error(&text, "OOM"));
}

TEST(what_is_no_redis_is_refused)
{
    check_refused("HTTP/1.1 400 Bad Request\r\n\r\n", PEG_EPARSE, "unknown type");
    check_refused("\r\n\r\n\r\n", PEG_EPARSE, "CR LF");
    check_refused("+OK\n:1\r\n", PEG_EPARSE, "CR LF");
    check_refused(":12a\r\n", PEG_EPARSE, "no number");
    check_refused(":\r\n\r\n", PEG_EPARSE, "no number");
    check_refused("$x\r\n", PEG_EPARSE, "no number");
    check_refused("$-2\r\n", PEG_EPARSE, "no number");
    check_refused("$?\r\n", PEG_EPARSE, "no number");
    check_refused("$3\r\nabcdef\r\n", PEG_EPARSE, "as long as it says");
    check_refused("=3\r\nabc\r\n", PEG_EPARSE, "as long as it says");
    check_refused("#x\r\n", PEG_EPARSE, "boolean");
    check_refused("_x\r\n", PEG_EPARSE, "null");
    check_refused("|1\r\n+a\r\n+b\r\n", PEG_EPARSE, "unknown type");
}

TEST(a_reply_beyond_a_limit_is_refused)
{
    char line[PEG_LIMIT_REDIS_LINE_BYTES + 2];

    check_refused("$134217729\r\n", PEG_ELIMIT, "bytes");
    check_refused("*1000001\r\n", PEG_ELIMIT, "values");
    check_refused("$99999999999999999999\r\n", PEG_EPARSE, "no number");
    check_refused("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", PEG_ELIMIT,
                  "lists");
    memset(line, '+', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    check_refused(line, PEG_ELIMIT, "one line");
}

TEST(an_announced_length_takes_no_memory)
{
    struct resp_reader reader = {0};
    const struct resp_value *value = NULL;
    peg_str bytes = peg__str("*1000000\r\n$134217728\r\nabc");

    CHECK_INT(resp_reader_next(&reader, &bytes, &value, NULL), PEG_OK);

    CHECK(!value);
    CHECK(reader.piece.capacity < 4096 && reader.capacity < 64);
    resp_reader_free(&reader);
}

TEST(a_reader_gives_back_the_memory_of_a_large_reply)
{
    enum { N = 4 << 20 };
    struct resp_reader reader = {0};
    const struct resp_value *value = NULL;
    struct peg__buf wire = PEG__BUF(2 * N);
    peg_str bytes;

    resp_begin(&wire, N);
    peg__buf_repeat(&wire, 'x', N);
    resp_end(&wire);
    peg__buf_puts(&wire, "+OK\r\n");
    bytes = peg__strn(wire.ptr, 100);
    CHECK_INT(resp_reader_next(&reader, &bytes, &value, NULL), PEG_OK);
    CHECK(!value);
    bytes = peg__str_from(peg__buf_view(&wire), 100);
    CHECK_INT(resp_reader_next(&reader, &bytes, &value, NULL), PEG_OK);
    CHECK_INT(value->text.len, N);
    CHECK_INT(resp_reader_next(&reader, &bytes, &value, NULL), PEG_OK);

    CHECK_STR(value->text, "OK");
    CHECK_INT(bytes.len, 0);
    CHECK(reader.piece.capacity <= PEG_LIMIT_REDIS_SPARE_BYTES);
    resp_reader_free(&reader);
    peg__buf_free(&wire);
}

TORTURE(reading_survives_any_allocation_failure)
{
    struct peg__buf told = PEG__BUF(1 << 20);
    peg_status status =
        read_wire(peg__str("*2\r\n$5\r\nhello\r\n*3\r\n:1\r\n:2\r\n:3\r\n"), 5, &told, NULL);

    if (!status)
        status = told.status;
    peg__buf_free(&told);
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

TEST(a_command_is_written_with_the_length_of_each_argument)
{
    const peg_str wanted = PEG_LIT("*4\r\n$3\r\nSET\r\n$3\r\na\0b\r\n$3\r\n-12\r\n$3\r\nxyz\r\n");
    struct peg__buf out = PEG__BUF(1024);

    resp_put_command(&out, 4);
    resp_puts(&out, "SET");
    resp_put(&out, peg__strn("a\0b", 3));
    resp_put_number(&out, -12);
    resp_begin(&out, 3);
    peg__buf_puts(&out, "xyz");
    resp_end(&out);

    CHECK(peg__str_eq(peg__buf_view(&out), wanted));
    peg__buf_free(&out);
}
