/* SPDX-License-Identifier: Apache-2.0 */

/* Sockets that listen, the files of unix sockets, and sockets from systemd. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "net/listener.h"

static const char *advice_for(const struct net_address *address, int error)
{
    const bool is_file = address->at.any.sa_family == AF_UNIX;

    switch (error) {
    case EADDRINUSE:
        return "; stop the process that uses it, or choose another one";
    case EADDRNOTAVAIL:
        return "; listen on an address of this machine, such as 127.0.0.1";
    case EEXIST:
        return "; remove it, or choose another path";
    case ENOENT:
    case ENOTDIR:
        return "; make its folder, or choose another path";
    case EACCES:
        return is_file ? "; let the user that runs this write to its folder, or choose another path"
                       : "; choose a port from 1024 on, or allow this program the lower ones";
    case EROFS:
        return "; choose a path that can be written to";
    default:
        return "";
    }
}

static peg_status fail_to_listen(const struct net_address *address, const char *what, int error,
                                 peg_error *reterr)
{
    char text[NET_ADDRESS_TEXT];
    char message[128];

    net_address_format(address, text);
    return peg__fail(reterr, PEG_EIO, "E_LISTEN", "cannot listen on %s: %s: %s (%s)%s", text, what,
                     strerror_r(error, message, sizeof(message)), strerrorname_np(error),
                     advice_for(address, error));
}

static bool is_any6(const struct net_address *address)
{
    return address->at.any.sa_family == AF_INET6 &&
           IN6_IS_ADDR_UNSPECIFIED(&address->at.ip6.sin6_addr);
}

static struct net_address any4(uint16_t port_be)
{
    struct net_address address = {.len = sizeof(struct sockaddr_in)};

    address.at.ip4.sin_family = AF_INET;
    address.at.ip4.sin_port = port_be;
    return address;
}

static bool has_path(const struct net_address *address)
{
    return address->at.any.sa_family == AF_UNIX && address->at.unix_path.sun_path[0] != '\0';
}

/* Held until the new socket listens: before that it looks stale to another process, which would
 * remove it. Others that can read the folder can hold this lock too, so the wait is bounded. Less
 * than 0: there is none. */
static int lock_folder(const struct net_address *address)
{
    enum { MAX_TRIES = 1000 };
    const struct timespec pause = {.tv_nsec = PEG_NS_PER_MS};
    const char *path = address->at.unix_path.sun_path;
    const char *slash = strrchr(path, '/');
    char folder[sizeof(address->at.unix_path.sun_path)] = ".";
    int fd;

    if (slash) {
        const size_t len = slash == path ? 1 : (size_t)(slash - path);

        memcpy(folder, path, len);
        folder[len] = '\0';
    }
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; fd >= 0 && i < MAX_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            break;
        nanosleep(&pause, NULL);
    }
    return fd;
}

/* A file of a process that has ended: connections are refused. */
static bool is_stale(const struct net_address *address)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool is_refused;

    if (fd < 0)
        return false;
    is_refused = connect(fd, &address->at.any, address->len) != 0 && errno == ECONNREFUSED;
    close(fd);
    return is_refused;
}

/* EEXIST: what is there is not a socket, and not ours to remove. */
static int bind_to(int fd, const struct net_address *address)
{
    struct stat found;

    if (bind(fd, &address->at.any, address->len) == 0)
        return 0;
    if (errno != EADDRINUSE || !has_path(address))
        return errno;
    if (lstat(address->at.unix_path.sun_path, &found) != 0)
        return EADDRINUSE;
    if (!S_ISSOCK(found.st_mode))
        return EEXIST;
    if (!is_stale(address) || unlink(address->at.unix_path.sun_path) != 0)
        return EADDRINUSE;
    return bind(fd, &address->at.any, address->len) == 0 ? 0 : errno;
}

static void set_listening_options(int fd, const struct net_address *address)
{
    const int on = 1;
    const int off = 0;

    if (address->at.any.sa_family == AF_UNIX)
        return;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->at.any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, is_any6(address) ? &off : &on, sizeof(on));
}

/* The mode is set before anybody can connect: that is refused until it listens. */
static int claim_file(struct net_listening *listening, mode_t mode)
{
    const char *path = listening->address.at.unix_path.sun_path;
    struct stat made;

    if (lstat(path, &made) != 0)
        return errno;
    listening->has_file = true;
    listening->device = made.st_dev;
    listening->inode = made.st_ino;
    return chmod(path, mode) == 0 ? 0 : errno;
}

static peg_status listen_at(struct net_listening *listening, const struct net_address *address,
                            int backlog, mode_t unix_mode, peg_error *reterr)
{
    int error = bind_to(listening->fd, address);

    if (error)
        return fail_to_listen(address,
                              error == EEXIST ? "what is there is not a socket"
                                              : "the address cannot be taken",
                              error, reterr);
    listening->address.len = sizeof(listening->address.at);
    if (getsockname(listening->fd, &listening->address.at.any, &listening->address.len) != 0)
        return fail_to_listen(address, "its name is unknown", errno, reterr);
    if (has_path(address)) {
        listening->address = *address;
        error = claim_file(listening, unix_mode);
        if (error)
            return fail_to_listen(address, "its mode cannot be set", error, reterr);
    }
    if (backlog != NET_BACKLOG_NONE && listen(listening->fd, backlog) != 0)
        return fail_to_listen(address, "the socket does not listen", errno, reterr);
    return PEG_OK;
}

static peg_status open_at(const struct net_address *address, int backlog, mode_t unix_mode,
                          struct net_listening *ret_listening, peg_error *reterr)
{
    struct net_listening listening = {0};
    peg_status status;
    int lock;

    listening.fd = socket(address->at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listening.fd < 0)
        return fail_to_listen(address, "there is no such socket", errno, reterr);
    set_listening_options(listening.fd, address);
    lock = has_path(address) ? lock_folder(address) : -1;
    status = listen_at(&listening, address, backlog, unix_mode, reterr);
    if (status)
        net_listening_close(&listening);
    else
        *ret_listening = listening;
    if (lock >= 0)
        close(lock);
    return status;
}

/* Some machines have no IPv6 at all. */
static bool has_ip6(void)
{
    struct net_address loopback = {.len = sizeof(struct sockaddr_in6)};
    const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_there;

    if (fd < 0)
        return false;
    loopback.at.ip6.sin6_family = AF_INET6;
    is_there = bind(fd, &loopback.at.any, loopback.len) == 0;
    close(fd);
    return is_there;
}

peg_status net_listening_open(const struct net_address *address, int backlog, mode_t unix_mode,
                              struct net_listening *ret_listening, peg_error *reterr)
{
    struct net_address instead;

    if (!is_any6(address) || has_ip6())
        return open_at(address, backlog, unix_mode, ret_listening, reterr);
    instead = any4(address->at.ip6.sin6_port);
    return open_at(&instead, backlog, unix_mode, ret_listening, reterr);
}

peg_status net_listening_adopt(int fd, struct net_listening *ret_listening, peg_error *reterr)
{
    struct net_listening listening = {.fd = fd, .address = {.len = sizeof(listening.address.at)}};
    int is_listening = 0;
    socklen_t len = sizeof(is_listening);

    if (getsockname(fd, &listening.address.at.any, &listening.address.len) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &len) != 0 || !is_listening)
        return peg__fail(reterr, PEG_EIO, "E_LISTEN",
                         "descriptor %d is not a listening socket: pass one that listens", fd);
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0)
        return fail_to_listen(&listening.address, "its flags cannot be set", errno, reterr);
    *ret_listening = listening;
    return PEG_OK;
}

static atomic_size_t n_expected; /* by all listeners */

/* When the descriptor table of a process with threads has to grow, accept(2) does not return for 10
 * to 25 ms. So it grows to its final size before the first connection. */
void net_listening_expect(const struct net_listening *listening, size_t n_connections)
{
    enum { OTHERS = 64 };
    struct rlimit limit;
    rlim_t top = atomic_fetch_add(&n_expected, n_connections) + n_connections + OTHERS;
    int high;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == 0)
        return;
    if (top >= limit.rlim_cur)
        top = limit.rlim_cur - 1;
    high = top <= INT_MAX ? fcntl(listening->fd, F_DUPFD_CLOEXEC, (int)top) : -1;
    if (high >= 0)
        close(high);
}

void net_listening_expect_no_more(size_t n_connections)
{
    atomic_fetch_sub(&n_expected, n_connections);
}

void net_listening_close(struct net_listening *listening)
{
    const char *path = listening->address.at.unix_path.sun_path;
    struct stat found;

    if (listening->has_file && lstat(path, &found) == 0 && found.st_dev == listening->device &&
        found.st_ino == listening->inode)
        unlink(path);
    close(listening->fd);
    listening->fd = -1;
}

/* ---- sockets from systemd: LISTEN_FDS of them, for the process LISTEN_PID ------------------- */

enum { FIRST_FD = 3 };

/* A plain number above 0, or 0. */
static long parse_positive(const char *text)
{
    char *end;
    long number;

    if (!text || *text < '0' || *text > '9')
        return 0;
    errno = 0;
    number = strtol(text, &end, 10);
    return errno || *end ? 0 : number;
}

/* NOLINTBEGIN(concurrency-mt-unsafe) */
size_t net_activated_sockets(int *ret_fds, size_t max)
{
    const bool is_ours = parse_positive(getenv("LISTEN_PID")) == (long)getpid();
    const long n_announced = is_ours ? parse_positive(getenv("LISTEN_FDS")) : 0;
    size_t n = 0;

    /* They are not for our children. */
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");

    for (int fd = FIRST_FD; fd - FIRST_FD < n_announced; fd++) {
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
            break; /* there are fewer than announced */
        if (n < max)
            ret_fds[n] = fd;
        n++;
    }
    return n;
}
/* NOLINTEND(concurrency-mt-unsafe) */
