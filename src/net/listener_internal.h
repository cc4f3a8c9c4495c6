/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_NET_LISTENER_INTERNAL_H
#define PEG_NET_LISTENER_INTERNAL_H

/* The socket below a listener; listener.c and listener_socket.c. */

#include <sys/stat.h>

#include "net/listener.h"

/* A value: a socket that listens, and the file that it made, if any. */
struct net_listening {
    int fd;
    struct net_address address; /* with the port that was chosen */
    bool has_file;
    dev_t device; /* of that file: another one at its place is not ours to remove */
    ino_t inode;
};

enum { NET_BACKLOG_NONE = -1 }; /* only takes the address: whoever connects is refused */

/* PEG_EIO (E_LISTEN). */
peg_status net_listening_open(const struct net_address *address, int backlog, mode_t unix_mode,
                              struct net_listening *ret_listening, peg_error *reterr);
/* On a socket of somebody else, whose file is not ours. On failure it stays the caller's. */
peg_status net_listening_adopt(int fd, struct net_listening *ret_listening, peg_error *reterr);
/* So many connections may come to it, besides those to others; or no more. */
void net_listening_expect(const struct net_listening *listening, size_t n_connections);
void net_listening_expect_no_more(size_t n_connections);
void net_listening_close(struct net_listening *listening);

#endif
