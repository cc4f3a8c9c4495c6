/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_LISTENER_H
#define PEG_NET_LISTENER_H

/*
 * A socket that takes connections. One loop accepts; each connection is handed to the loop with the
 * least load, and on_stream is called there.
 */

#include <sys/stat.h>

#include "net/stream/stream.h"

struct net_listener;

struct net_listener_options {
    int backlog;                      /* 0: PEG_LIMIT_NET_BACKLOG */
    unsigned unix_mode;               /* of the socket's file; 0: 0600 */
    size_t max_connections;           /* 0: PEG_LIMIT_NET_CONNECTIONS; beyond it, nothing is
                                       * accepted until one ends */
    struct net_stream_options stream; /* of each connection */
};

/* On the loop of the stream, which is now the callee's: it sets its events before it returns, or
 * drops it. Called before on_open. */
typedef void (*net_accept_fn)(void *user, struct net_stream *stream);

/* Any thread. PEG_EIO (E_LISTEN) with the address and the system's message; port 0 takes a free
 * one. A stale unix socket is replaced; one that is in use is not. */
peg_status net_listen(struct net_loops *loops, const struct net_address *address,
                      const struct net_listener_options *options, net_accept_fn on_stream,
                      void *user, struct net_listener **ret_listener, peg_error *reterr);
/* The same on a socket that listens already: it is the listener's then, but not on failure. The
 * file of a unix socket stays: it is somebody else's. */
peg_status net_listen_on(struct net_loops *loops, int fd,
                         const struct net_listener_options *options, net_accept_fn on_stream,
                         void *user, struct net_listener **ret_listener, peg_error *reterr);
/* Can it listen there? Fails as net_listen(), and listens on nothing afterwards. */
peg_status net_listen_try(const struct net_address *address, peg_error *reterr);
/* Any thread but the loops' own; before the loops end or after. Accepts nothing more when it
 * returns; on_stream is not running. Connections live on. A unix socket's file is removed. */
struct net_listener *net_listener_free(struct net_listener *listener);
/* Where it listens, with the port that was chosen; borrowed. */
const struct net_address *net_listener_address(const struct net_listener *listener);
/* Any thread. Connections that are open now, or on their way to their loop. */
size_t net_listener_n_connections(const struct net_listener *listener);

/* Sockets that systemd passed to this process (LISTEN_FDS, LISTEN_PID): fills at most `max`,
 * returns how many there are, marks them close-on-exec and removes the variables. At the start of a
 * program, before it has threads. */
size_t net_activated_sockets(int *ret_fds, size_t max);

/* ---- listener_socket.c, for listener.c ------------------------------------------------------ */

/* A value: a socket that listens, and the file that it made, if any. */
struct net_listening {
    int fd;
    struct net_address address; /* with the port that was chosen */
    bool has_file;
    dev_t device; /* of that file: another one at its place is not ours to remove */
    ino_t inode;
};

enum { NET_BACKLOG_NONE = -1 }; /* only takes the address: connections are refused */

/* PEG_EIO (E_LISTEN). */
peg_status net_listening_open(const struct net_address *address, int backlog, mode_t unix_mode,
                              struct net_listening *ret_listening, peg_error *reterr);
/* On a socket that was passed in, whose file is not ours. On failure it stays the caller's. */
peg_status net_listening_adopt(int fd, struct net_listening *ret_listening, peg_error *reterr);
/* So many connections may come to it, besides those to others; or no more. */
void net_listening_expect(const struct net_listening *listening, size_t n_connections);
void net_listening_expect_no_more(size_t n_connections);
void net_listening_close(struct net_listening *listening);

#endif
