/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_REMOTE_RELAY_H
#define PEG_TESTS_REMOTE_RELAY_H

/*
 * A port that hands bytes on to a gateway, until its connections are cut. It may lead to another
 * gateway then: to a client that is a gateway which was killed and has started anew. Include it
 * behind t.h.
 */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { RELAY_PAIRS = 8 };

/* Until somebody else has counted that far; false after a minute. */
static inline bool await_count(atomic_uint *counter, unsigned at_least)
{
    const struct timespec moment = {.tv_nsec = 1000000};

    for (unsigned i = 0; i < 60000 && atomic_load(counter) < at_least; i++)
        nanosleep(&moment, NULL);
    return atomic_load(counter) >= at_least;
}

struct relay {
    int listener;
    char address[32]; /* "127.0.0.1:40123" */
    atomic_uint port; /* where it leads */
    atomic_uint n_accepted;
    atomic_bool must_cut;
    atomic_bool is_away; /* who comes is refused */
    atomic_bool must_stop;
    int fds[2 * RELAY_PAIRS]; /* client and gateway in turn; -1: none */
    pthread_t thread;
};

static struct sockaddr_in relay_sockaddr(unsigned port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void relay_close_pair(struct relay *relay, unsigned i)
{
    i -= i % 2;
    close(relay->fds[i]);
    close(relay->fds[i + 1]);
    relay->fds[i] = relay->fds[i + 1] = -1;
}

static void relay_accept(struct relay *relay)
{
    const struct sockaddr_in to = relay_sockaddr(atomic_load(&relay->port));
    const int client = accept(relay->listener, NULL, NULL);
    const int gateway = socket(AF_INET, SOCK_STREAM, 0);
    unsigned i = 0;

    while (i < 2 * RELAY_PAIRS && relay->fds[i] >= 0)
        i += 2;
    if (client < 0 || i == 2 * RELAY_PAIRS ||
        connect(gateway, (const struct sockaddr *)&to, sizeof(to))) {
        close(client);
        close(gateway);
        return;
    }
    relay->fds[i] = client;
    relay->fds[i + 1] = gateway;
    atomic_fetch_add(&relay->n_accepted, 1);
}

static void relay_move(struct relay *relay, unsigned i)
{
    char bytes[65536];
    const ssize_t n = read(relay->fds[i], bytes, sizeof(bytes));
    ssize_t n_sent = 0;

    while (n_sent < n) {
        const ssize_t sent =
            send(relay->fds[i ^ 1], bytes + n_sent, (size_t)(n - n_sent), MSG_NOSIGNAL);

        if (sent <= 0)
            break;
        n_sent += sent;
    }
    if (n <= 0 || n_sent < n)
        relay_close_pair(relay, i);
}

static void relay_cut_all(struct relay *relay)
{
    for (unsigned i = 0; i < 2 * RELAY_PAIRS; i += 2) {
        if (relay->fds[i] >= 0)
            relay_close_pair(relay, i);
    }
}

/* Its port, or 0 for any: -1 if there is none. */
static int relay_listen(unsigned port)
{
    const struct sockaddr_in at = relay_sockaddr(port);
    const int yes = 1;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 16) == 0)
        return fd;
    close(fd);
    return -1;
}

static unsigned relay_port_of(const char *address)
{
    return (unsigned)strtoul(strrchr(address, ':') + 1, NULL, 10);
}

static void relay_stop_reading(struct relay *relay)
{
    const bool is_away = atomic_load(&relay->is_away);

    if (is_away && relay->listener >= 0) {
        close(relay->listener);
        relay->listener = -1;
        relay_cut_all(relay);
    } else if (!is_away && relay->listener < 0) {
        relay->listener = relay_listen(relay_port_of(relay->address));
    }
}

static void *relay_run(void *user)
{
    struct relay *relay = user;

    while (!atomic_load(&relay->must_stop)) {
        struct pollfd polls[1 + 2 * RELAY_PAIRS] = {{.events = POLLIN}};

        relay_stop_reading(relay);
        polls[0].fd = relay->listener;
        if (atomic_exchange(&relay->must_cut, false))
            relay_cut_all(relay);
        for (unsigned i = 0; i < 2 * RELAY_PAIRS; i++)
            polls[1 + i] = (struct pollfd){.fd = relay->fds[i], .events = POLLIN};
        if (poll(polls, 1 + 2 * RELAY_PAIRS, 5) <= 0)
            continue;
        for (unsigned i = 0; i < 2 * RELAY_PAIRS; i++) {
            if (polls[1 + i].revents && relay->fds[i] >= 0)
                relay_move(relay, i);
        }
        if (polls[0].revents)
            relay_accept(relay);
    }
    relay_cut_all(relay);
    return NULL;
}

static void relay_open(struct relay *relay, const char *gateway)
{
    struct sockaddr_in at;
    socklen_t len = sizeof(at);

    memset(relay, 0, sizeof(*relay));
    memset(relay->fds, 0xff, sizeof(relay->fds));
    atomic_store(&relay->port, relay_port_of(gateway));
    relay->listener = relay_listen(0);
    CHECK(relay->listener >= 0);
    CHECK_INT(getsockname(relay->listener, (struct sockaddr *)&at, &len), 0);
    snprintf(relay->address, sizeof(relay->address), "127.0.0.1:%u", ntohs(at.sin_port));
    CHECK_INT(pthread_create(&relay->thread, NULL, relay_run, relay), 0);
}

/* Every connection breaks; those that come lead to the gateway at this address. */
static inline void relay_cut(struct relay *relay, const char *gateway)
{
    atomic_store(&relay->port, relay_port_of(gateway));
    atomic_store(&relay->must_cut, true);
}

/* True: every connection breaks, and nobody listens. False: somebody does again. */
static inline void relay_go_away(struct relay *relay, bool is_away)
{
    atomic_store(&relay->is_away, is_away);
}

static void relay_close(struct relay *relay)
{
    atomic_store(&relay->must_stop, true);
    pthread_join(relay->thread, NULL);
    close(relay->listener);
}

#endif
