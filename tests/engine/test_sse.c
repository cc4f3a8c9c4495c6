/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/transport/transport.h"

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"

/* ---- fixture: events written down as "name=data|" --------------------------------- */

struct world {
    struct peg__sse sse;
    char told[1024];
    size_t len;
    size_t last_len;   /* of the last data */
    peg_status answer; /* what the listener says */
    peg_error error;
};

static peg_status read_event(peg_str name, peg_str data, void *user, peg_error *reterr)
{
    struct world *w = user;

    (void)reterr;
    w->last_len = data.len;
    w->len += (size_t)snprintf(w->told + w->len, sizeof(w->told) - w->len, "%.*s=%.*s|",
                               PEG_ARG(name), PEG_ARG(data));
    return w->answer;
}

static void open_world(struct world *w, size_t max_bytes)
{
    *w = (struct world){.told = ""};
    peg__sse_init(&w->sse, max_bytes);
}

/* In pieces of so many bytes; 0: in one. */
static peg_status feed(struct world *w, peg_str text, size_t piece)
{
    peg_status status = PEG_OK;

    while (text.len && !status) {
        const size_t n = piece && piece < text.len ? piece : text.len;

        status = peg__sse_feed(&w->sse, peg__strn(text.ptr, n), read_event, w, &w->error);
        text = peg__str_from(text, n);
    }
    return status ? status : peg__sse_end(&w->sse, read_event, w, &w->error);
}

static const char *told_of(struct world *w, const char *text, size_t piece)
{
    peg_status status;

    open_world(w, 1 << 16);
    status = feed(w, peg__str(text), piece);
    peg__sse_free(&w->sse);
    CHECK_STATUS(status, PEG_OK, w->error);
    return w->told;
}

#define CHECK_BLOCKS(text, expected)                                                               \
    do {                                                                                           \
        struct world w_;                                                                           \
        CHECK_STR(peg__str(told_of(&w_, text, 0)), expected);                                      \
        CHECK_STR(peg__str(told_of(&w_, text, 1)), expected);                                      \
    } while (0)

/* ---- tests ------------------------------------------------------------------------- */

TEST(an_event_has_a_name_and_data)
{
    CHECK_BLOCKS("event: delta\ndata: {\"a\":1}\n\n", "delta={\"a\":1}|");
}

TEST(an_event_without_a_name_is_a_message)
{
    CHECK_BLOCKS("data: x\n\n", "message=x|");
}

TEST(the_name_of_an_event_does_not_stay_for_the_next)
{
    CHECK_BLOCKS("event: a\ndata: 1\n\ndata: 2\n\n", "a=1|message=2|");
}

TEST(lines_end_with_lf_cr_or_crlf)
{
    CHECK_BLOCKS("data: 1\n\ndata: 2\n\n", "message=1|message=2|");
    CHECK_BLOCKS("data: 1\r\rdata: 2\r\r", "message=1|message=2|");
    CHECK_BLOCKS("data: 1\r\n\r\ndata: 2\r\n\r\n", "message=1|message=2|");
    CHECK_BLOCKS("data: 1\r\ndata: 2\n\rdata: 3\r\n\n", "message=1\n2|message=3|");
}

TEST(a_stream_may_be_split_anywhere)
{
    static const char text[] = "\xEF\xBB\xBF"
                               "event: a\r\ndata: x\r\ndata: y\r\n\r\n: note\r"
                               "data:z\r\rid: 7\ndata: \xC3\xA9\n\n";
    const peg_str whole = peg__strn(text, sizeof(text) - 1);

    for (size_t at = 0; at <= whole.len; at++) {
        struct world w;
        peg_status status;

        open_world(&w, 1 << 16);
        status = peg__sse_feed(&w.sse, peg__strn(text, at), read_event, &w, &w.error);
        if (!status)
            status = feed(&w, peg__str_from(whole, at), 0);
        peg__sse_free(&w.sse);
        CHECK_STATUS(status, PEG_OK, w.error);
        CHECK_STR(peg__str(w.told), "a=x\ny|message=z|message=\xC3\xA9|");
    }
}

TEST(a_last_event_without_its_blank_line_is_told)
{
    CHECK_BLOCKS("data: 1\n\ndata: 2\n", "message=1|message=2|");
    CHECK_BLOCKS("data: 1\n\nevent: end\ndata: 2", "message=1|end=2|");
    CHECK_BLOCKS("data: 1\r", "message=1|");
}

TEST(a_byte_order_mark_is_passed_over_only_at_the_start)
{
    CHECK_BLOCKS("\xEF\xBB\xBF"
                 "data: 1\n\n\xEF\xBB\xBF"
                 "data: 2\n\n",
                 "message=1|");
    CHECK_BLOCKS("\xEF\xBB\xBF\n\ndata: 1\n\n", "message=1|");
}

TEST(comments_and_unknown_fields_are_ignored)
{
    CHECK_BLOCKS(": OPENROUTER PROCESSING\n\nid: 3\nretry: 100\nfoo: bar\ndata: 1\n:\n\n",
                 "message=1|");
}

TEST(lines_of_data_are_joined_by_lf)
{
    CHECK_BLOCKS("data: a\ndata:\ndata: b\n\n", "message=a\n\nb|");
}

TEST(one_space_after_the_colon_is_left_out)
{
    CHECK_BLOCKS("data:a\n\ndata:  b\n\ndata: \n\n", "message=a|message= b|message=|");
}

TEST(a_field_without_a_colon_is_one_without_a_value)
{
    CHECK_BLOCKS("data\n\ndatax: 1\n\nevent\ndata: 2\n\n", "message=|message=2|");
}

TEST(an_event_without_data_is_not_told)
{
    CHECK_BLOCKS("event: ping\n\n\n\n", "");
    CHECK_BLOCKS("event: a\nevent: b\ndata: 1\n\n", "b=1|");
}

TEST(nothing_tells_nothing)
{
    CHECK_BLOCKS("", "");
    CHECK_BLOCKS("\n\r\n\r", "");
}

TEST(bytes_that_are_no_text_go_through_as_they_are)
{
    static const char text[] = "data: a\0b\xFF\n\n";
    struct world w;

    open_world(&w, 100);
    CHECK_STATUS(feed(&w, peg__strn(text, sizeof(text) - 1), 0), PEG_OK, w.error);

    CHECK_INT(w.last_len, 4);
    peg__sse_free(&w.sse);
}

TEST(a_line_that_is_too_long_is_refused)
{
    for (size_t piece = 0; piece < 4; piece++) {
        struct world w;

        open_world(&w, 10);
        CHECK_INT(feed(&w, peg__str("data: 12345\n\n"), piece), PEG_ELIMIT);

        CHECK_STR(peg__str(w.error.code), "E_ENGINE_TOO_LARGE");
        CHECK_STR(peg__str(w.told), "");
        peg__sse_free(&w.sse);
    }
}

TEST(a_line_that_just_fits_is_taken)
{
    for (size_t piece = 0; piece < 4; piece++) {
        struct world w;

        open_world(&w, 11);
        CHECK_STATUS(feed(&w, peg__str("data: 12345\n\n"), piece), PEG_OK, w.error);

        CHECK_STR(peg__str(w.told), "message=12345|");
        peg__sse_free(&w.sse);
    }
}

TEST(data_of_many_lines_that_is_too_long_is_refused)
{
    struct world w;

    open_world(&w, 16);
    CHECK_INT(feed(&w, peg__str("data: 1234567\ndata: 1234567\ndata: 8\n\n"), 0), PEG_ELIMIT);

    CHECK_STR(peg__str(w.error.code), "E_ENGINE_TOO_LARGE");
    peg__sse_free(&w.sse);
}

TEST(what_the_listener_says_ends_feeding)
{
    struct world w;

    open_world(&w, 100);
    w.answer = PEG_EPARSE;
    CHECK_INT(feed(&w, peg__str("data: 1\n\ndata: 2\n\n"), 0), PEG_EPARSE);

    CHECK_STR(peg__str(w.told), "message=1|");
    peg__sse_free(&w.sse);
}

TEST(what_the_listener_says_at_the_end_is_returned)
{
    struct world w;

    open_world(&w, 100);
    w.answer = PEG_EPARSE;
    CHECK_INT(feed(&w, peg__str("data: 1"), 0), PEG_EPARSE);
    peg__sse_free(&w.sse);
}

/* ---- taking a stream up again ---- */

TEST(the_id_of_the_last_whole_event_is_kept)
{
    struct world w;

    open_world(&w, 100);
    CHECK_INT(feed(&w, peg__str("id: one\ndata: 1\n\ndata: 2\n\nid: three\ndata: 3"), 1), PEG_OK);

    CHECK_STR(peg__buf_view(&w.sse.id), "one"); /* the third was cut off, and comes again */
    peg__sse_free(&w.sse);
}

TEST(an_id_that_is_no_header_is_passed_over)
{
    struct world w;

    open_world(&w, 4096);
    CHECK_INT(feed(&w, peg__str("id: a\n\nid: b\tc\n\nid: d\x7F\n\n"), 0), PEG_OK);

    CHECK_STR(peg__buf_view(&w.sse.id), "a");
    peg__sse_free(&w.sse);
}

TEST(an_empty_id_means_none)
{
    struct world w;

    open_world(&w, 100);
    CHECK_INT(feed(&w, peg__str("id: a\n\nid\n\n"), 0), PEG_OK);

    CHECK_STR(peg__buf_view(&w.sse.id), "");
    peg__sse_free(&w.sse);
}

TEST(the_time_to_wait_is_kept_if_it_is_a_number)
{
    struct world w;

    open_world(&w, 100);
    CHECK_INT(w.sse.retry_ms, -1);
    CHECK_INT(feed(&w, peg__str("retry: 250\nretry: soon\nretry: -1\nretry:\n\n"), 0), PEG_OK);

    CHECK_INT(w.sse.retry_ms, 250);
    CHECK_INT(feed(&w, peg__str("retry: 99999999999999999999\n\n"), 0), PEG_OK);
    CHECK_INT(w.sse.retry_ms, PEG_LIMIT_RETRY_AFTER_MS);
    peg__sse_free(&w.sse);
}

TORTURE(reading_survives_any_allocation_failure)
{
    struct world w;
    peg_status status;

    open_world(&w, 1 << 16);
    status = feed(&w, peg__str("id: 1\nevent: a\ndata: x\ndata: y\n\ndata: z"), 3);
    peg__sse_free(&w.sse);
    return status;
}
