/* SPDX-License-Identifier: Apache-2.0 */

/* The text of /metrics on a node of two loops without toolsets: when it is made, and for whom. */

#include "t.h"

#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/blob.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/node.h"
#include "gateway/telemetry/metrics.h"

enum { N_ASKERS = 4 };

/* Somebody who asks on a loop. */
struct asker {
    struct gw_page_waiter waiter; /* first */
    unsigned loop;
    atomic_bool has_waited; /* stays: whoever waits may be served before it is looked at */
    struct peg__blob *text; /* a reference */
};

static struct {
    struct gw_node node;
    struct calls_loop *calls[2];
    struct asker askers[N_ASKERS];
    sem_t answered;
} w;

static void take_text(struct gw_page_waiter *waiter, struct peg__blob *text)
{
    struct asker *asker = (struct asker *)waiter;

    peg__blob_unref(asker->text);
    asker->text = peg__blob_ref(text);
    if (atomic_load(&asker->has_waited))
        sem_post(&w.answered);
}

static void ask(void *user)
{
    struct asker *asker = user;

    gw_metrics_page_ask(w.node.metrics_page, asker->loop, &asker->waiter);
    if (asker->waiter.is_waiting)
        atomic_store(&asker->has_waited, true);
}

static void open_node(void)
{
    memset(&w, 0, sizeof(w));
    sem_init(&w.answered, 0, 0);
    w.node.bus_kind = w.node.store_kind = "memory";
    w.node.calls = w.calls;
    CHECK_INT(net_loops_new(2, &w.node.loops, NULL), PEG_OK);
    CHECK_INT(gw_metrics_new(2, &w.node.metrics, NULL), PEG_OK);
    CHECK_INT(gw_metrics_page_new(&w.node, &w.node.metrics_page, NULL), PEG_OK);
    for (unsigned i = 0; i < N_ASKERS; i++) {
        w.askers[i].waiter.fn = take_text;
        w.askers[i].loop = i % 2;
    }
}

static void shut_node(void)
{
    for (unsigned i = 0; i < N_ASKERS; i++)
        peg__blob_unref(w.askers[i].text);
    gw_metrics_page_stop(w.node.metrics_page);
    net_loops_free(w.node.loops);
    gw_metrics_page_free(w.node.metrics_page);
    gw_metrics_free(w.node.metrics);
    sem_destroy(&w.answered);
}

static void ask_on_loop(struct asker *asker)
{
    gw_on_loop(net_loops_at(w.node.loops, asker->loop), ask, asker);
}

static void stop_waiting(void *user)
{
    struct asker *asker = user;

    gw_metrics_page_leave(w.node.metrics_page, asker->loop, &asker->waiter);
    gw_metrics_page_leave(w.node.metrics_page, asker->loop, &asker->waiter); /* harmless */
}

/* On loop 0: it is not made while this runs, so that all of them wait for one text. */
static void ask_all(void *user)
{
    (void)user;
    ask(&w.askers[0]);
    ask_on_loop(&w.askers[1]);
    ask(&w.askers[2]);
    ask_on_loop(&w.askers[3]);
    stop_waiting(&w.askers[2]);
}

TEST(all_who_ask_while_the_text_is_made_share_it_on_all_loops)
{
    open_node();
    gw_on_loop(net_loops_at(w.node.loops, 0), ask_all, NULL);
    for (int i = 0; i < N_ASKERS - 1; i++)
        sem_wait(&w.answered);
    CHECK_INT(gw_metrics_page_n_made(w.node.metrics_page), 1);
    CHECK(w.askers[0].text);
    CHECK(strstr(w.askers[0].text->bytes, "\npegboard_toolsets 0\n"));
    CHECK(w.askers[1].text == w.askers[0].text && w.askers[3].text == w.askers[0].text);
    CHECK(!w.askers[2].text); /* it has gone, and got none */
    shut_node();
}

/* Another one asks while those who waited are served. */
static void take_and_ask(struct gw_page_waiter *waiter, struct peg__blob *text)
{
    ask(&w.askers[2]);
    take_text(waiter, text);
}

TEST(a_text_is_kept_for_those_who_ask_soon_and_made_again_for_those_who_ask_late)
{
    const struct peg__blob *first;

    open_node();
    w.askers[0].waiter.fn = take_and_ask;
    ask_on_loop(&w.askers[0]);
    CHECK(atomic_load(&w.askers[0].has_waited));
    sem_wait(&w.answered);
    first = w.askers[0].text;
    CHECK(first && w.askers[2].text == first);
    do {
        sched_yield();
        ask_on_loop(&w.askers[1]);
        CHECK(atomic_load(&w.askers[1].has_waited) || w.askers[1].text == first);
    } while (!atomic_load(&w.askers[1].has_waited));
    sem_wait(&w.answered);
    CHECK(w.askers[1].text && w.askers[1].text != first);
    CHECK_INT(gw_metrics_page_n_made(w.node.metrics_page), 2);
    shut_node();
}

TEST(a_node_may_end_while_the_text_is_made)
{
    open_node();
    ask_on_loop(&w.askers[1]);
    gw_on_loop(net_loops_at(w.node.loops, 1), stop_waiting, &w.askers[1]);
    shut_node();
}
