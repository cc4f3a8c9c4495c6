/* SPDX-License-Identifier: Apache-2.0 */

/* What only streams that take turns do: leave a rest for the next one, wait, be kept. The tests of
 * all streams run with turns, too (side.h). */

#include <sys/socket.h>
#include <unistd.h>

#include "base/text/str.h"
#include "net/stream/stream.h"
#include "t.h"

/* An owner who takes a few bytes a turn, and a socket at the other end. */
struct world {
    struct net_loop *loop;
    struct net_stream *stream;
    int peer;
    size_t bite;
    char got[64];
    size_t got_len;
    unsigned n_turns;
    peg_status unread;
    bool pauses;
    bool drops;
    bool keeps;
    struct net_stream *kept;
    unsigned n_closed;
    peg_error error;
};

static peg_str said(const struct world *w)
{
    return peg__strn(w->got, w->got_len);
}

static void on_bytes(void *user, const uint8_t *bytes, size_t len)
{
    struct world *w = user;
    size_t n = len < w->bite ? len : w->bite;

    w->n_turns++;
    if (n < len)
        w->unread = net_stream_unread(w->stream, bytes + n, len - n);
    if (w->unread)
        n = len;
    CHECK(w->got_len + n <= sizeof(w->got));
    memcpy(w->got + w->got_len, bytes, n);
    w->got_len += n;
    if (w->pauses)
        net_stream_pause(w->stream);
    if (w->drops)
        net_stream_drop(w->stream);
    net_loop_stop(w->loop);
}

static void on_closed(void *user, const peg_error *error)
{
    struct world *w = user;

    if (w->keeps) {
        net_stream_keep(w->stream);
        w->kept = w->stream;
    }
    w->stream = NULL;
    w->n_closed++;
    w->error = *error;
    net_loop_stop(w->loop);
}

static const struct net_stream_events events = {.on_bytes = on_bytes, .on_closed = on_closed};

static peg_status world_begin(struct world *w, size_t bite)
{
    peg_status status;
    int fds[2];

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    *w = (struct world){.peer = fds[1], .bite = bite};
    status = net_loop_new(&w->loop, NULL);
    if (status) {
        close(fds[0]);
        return status;
    }
    status = net_stream_take(w->loop, fds[0], NULL, &events, w, &w->stream, NULL);
    if (!status)
        net_stream_set_fair_queue(w->stream, NET_FAIR_QUEUE_READS);
    return status;
}

static void world_end(struct world *w)
{
    net_loop_free(w->loop);
    if (w->peer >= 0)
        close(w->peer);
}

static void peer_says(const struct world *w, const char *text)
{
    CHECK_INT(send(w->peer, text, strlen(text), 0), (ssize_t)strlen(text));
}

static void peer_goes(struct world *w)
{
    close(w->peer);
    w->peer = -1;
}

static void run_until_got(struct world *w, size_t len)
{
    while (w->got_len < len && w->n_closed == 0)
        net_loop_run(w->loop);
}

static void run_rounds(struct world *w, unsigned n)
{
    while (n-- > 0) {
        net_loop_stop(w->loop);
        net_loop_run(w->loop);
    }
}

TEST(what_was_left_comes_again_in_the_next_turn)
{
    struct world w;

    CHECK_INT(world_begin(&w, 3), PEG_OK);
    peer_says(&w, "hello world");
    run_until_got(&w, 11);
    CHECK_STR(said(&w), "hello world");
    CHECK_INT(w.n_turns, 4);
    peer_says(&w, " again");
    run_until_got(&w, 17);
    CHECK_STR(said(&w), "hello world again");
    world_end(&w);
}

TEST(what_was_left_comes_before_the_end)
{
    struct world w;

    CHECK_INT(world_begin(&w, 2), PEG_OK);
    peer_says(&w, "hello");
    peer_goes(&w);
    while (w.n_closed == 0)
        net_loop_run(w.loop);
    CHECK_STR(said(&w), "hello");
    CHECK_STR(peg__str(w.error.code), "E_STREAM_ENDED");
    CHECK_INT(w.n_closed, 1);
    world_end(&w);
}

TEST(what_was_left_waits_while_the_stream_is_paused)
{
    struct world w;

    CHECK_INT(world_begin(&w, 2), PEG_OK);
    w.pauses = true;
    peer_says(&w, "hello");
    run_until_got(&w, 1);
    run_rounds(&w, 5);
    CHECK_STR(said(&w), "he");
    w.pauses = false;
    net_stream_resume(w.stream);
    run_until_got(&w, 5);
    CHECK_STR(said(&w), "hello");
    world_end(&w);
}

TEST(the_last_words_of_a_peer_that_was_lost_are_heard_in_turns)
{
    struct world w;

    CHECK_INT(world_begin(&w, 2), PEG_OK);
    CHECK_INT(net_stream_write(w.stream, (const uint8_t *)"unread", 6, NULL), PEG_OK);
    peer_says(&w, "hello");
    peer_goes(&w); /* with bytes that it did not read: a reset */
    while (w.n_closed == 0)
        net_loop_run(w.loop);
    CHECK_STR(said(&w), "hello");
    CHECK_INT(w.n_turns, 3);
    CHECK_STR(peg__str(w.error.code), "E_STREAM");
    CHECK_INT(w.n_closed, 1);
    world_end(&w);
}

TEST(one_that_is_told_to_be_quick_reads_at_once_and_ends_in_its_turn)
{
    struct world w;

    CHECK_INT(world_begin(&w, 100), PEG_OK);
    net_stream_set_fair_queue(w.stream, NET_FAIR_QUEUE_ENDS);
    peer_says(&w, "hello");
    run_until_got(&w, 5);
    peer_goes(&w);
    while (w.n_closed == 0)
        net_loop_run(w.loop);
    CHECK_STR(peg__str(w.error.code), "E_STREAM_ENDED");
    world_end(&w);
}

TEST(one_that_is_dropped_with_a_rest_says_nothing_more)
{
    struct world w;

    CHECK_INT(world_begin(&w, 2), PEG_OK);
    w.drops = true;
    peer_says(&w, "hello");
    run_until_got(&w, 1);
    run_rounds(&w, 5);
    CHECK_STR(said(&w), "he");
    CHECK_INT(w.n_closed, 0);
    world_end(&w);
}

TEST(one_that_is_kept_can_be_asked_for_its_peer)
{
    struct world w;

    CHECK_INT(world_begin(&w, 100), PEG_OK);
    w.keeps = true;
    peer_goes(&w);
    while (w.n_closed == 0)
        net_loop_run(w.loop);
    run_rounds(&w, 5);
    CHECK(net_stream_peer(w.kept));
    CHECK(net_stream_is_local(w.kept));
    net_stream_forget(w.kept);
    world_end(&w);
}

TORTURE(leaving_a_rest_survives_any_allocation_failure)
{
    struct world w;
    peg_status status = world_begin(&w, 3);

    if (!status) {
        peer_says(&w, "hello world");
        run_until_got(&w, 11);
        CHECK_STR(said(&w), "hello world");
        status = w.unread;
    }
    world_end(&w);
    return status;
}
