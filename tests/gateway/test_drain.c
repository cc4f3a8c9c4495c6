/* SPDX-License-Identifier: Apache-2.0 */

/* The end of a node, where connections do not go by themselves. */

#include <semaphore.h>

#include "gateway/node.h"

#include "t.h"

/* A loop that takes no message: what is said to its connections is not heard. */
struct hold {
    struct net_message message;
    sem_t goes_on;
};

static void stand_still(struct net_message *message)
{
    struct hold *hold = (struct hold *)(void *)message; /* its first member */

    while (sem_wait(&hold->goes_on) != 0)
        ;
}

static bool count_and_hurry(void *user)
{
    unsigned *n_asked = user;

    (*n_asked)++;
    return true;
}

TEST(a_second_stop_does_not_wait_for_connections)
{
    static struct gw_node node; /* without loops: there are no calls */
    struct hold hold = {.message = {.fn = stand_still}};
    unsigned n_asked = 0;
    bool is_clean;

    sem_init(&hold.goes_on, 0, 0);
    CHECK_INT(net_loops_new(1, &node.loops, NULL), PEG_OK);
    CHECK_INT(grpc_server_new(node.loops, NULL, &node.server, NULL), PEG_OK);
    net_loop_post(net_loops_at(node.loops, 0), &hold.message);
    is_clean = gw_node_drain(&node, NULL, 60000, count_and_hurry, &n_asked);
    sem_post(&hold.goes_on);
    grpc_server_free(node.server);
    net_loops_free(node.loops);
    sem_destroy(&hold.goes_on);

    CHECK(!is_clean);
    CHECK_INT(n_asked, 1);
}
