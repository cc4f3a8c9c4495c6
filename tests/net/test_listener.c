/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Listeners accept on one loop and hand out to several, so these tests have threads. What an
 * accepted stream does is told to the test under a lock.
 */

#include "net/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text/str.h"
#include "pegboard/log.h"
#include "t.h"

enum { MAX_LOOPS = 4 };

struct world {
    struct net_loops *loops;
    struct net_listener *listener;
    char folder[64];
    bool drops; /* each stream as soon as it comes */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t n_streams;
    size_t n_opened;
    size_t n_closed;
    size_t n_bytes;
    size_t n_on[MAX_LOOPS];
    size_t n_logged;
};

/* A stream and whose it is. Owned by itself. */
struct guest {
    struct world *world;
    struct net_stream *stream;
};

#define TELL(w, what)                                                                              \
    do {                                                                                           \
        pthread_mutex_lock(&(w)->lock);                                                            \
        what;                                                                                      \
        pthread_cond_broadcast(&(w)->changed);                                                     \
        pthread_mutex_unlock(&(w)->lock);                                                          \
    } while (0)

#define AWAIT(w, condition)                                                                        \
    do {                                                                                           \
        pthread_mutex_lock(&(w)->lock);                                                            \
        while (!(condition))                                                                       \
            pthread_cond_wait(&(w)->changed, &(w)->lock);                                          \
        pthread_mutex_unlock(&(w)->lock);                                                          \
    } while (0)

static void on_open(void *user)
{
    const struct guest *guest = (const struct guest *)user;

    TELL(guest->world, guest->world->n_opened++);
}

static void on_bytes(void *user, const uint8_t *bytes, size_t len)
{
    const struct guest *guest = (const struct guest *)user;

    (void)net_stream_write(guest->stream, bytes, len, NULL);
    TELL(guest->world, guest->world->n_bytes += len);
}

static void on_closed(void *user, const peg_error *error)
{
    struct guest *guest = (struct guest *)user;

    (void)error;
    TELL(guest->world, guest->world->n_closed++);
    free(guest);
}

static const struct net_stream_events events = {
    .on_open = on_open,
    .on_bytes = on_bytes,
    .on_closed = on_closed,
};

static void on_stream(void *user, struct net_stream *stream)
{
    struct world *w = (struct world *)user;
    unsigned i = 0;

    if (w->drops) {
        net_stream_drop(stream);
    } else {
        struct guest *guest = (struct guest *)malloc(sizeof(*guest));

        *guest = (struct guest){.world = w, .stream = stream};
        net_stream_set_events(stream, &events, guest);
    }
    while (!net_loop_is_here(net_loops_at(w->loops, i)))
        i++;
    TELL(w, (w->n_streams++, w->n_on[i]++));
}

static void world_init(struct world *w, unsigned n_loops)
{
    peg_error error;

    *w = (struct world){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    CHECK_STATUS(net_loops_new(n_loops, &w->loops, &error), PEG_OK, error);
    snprintf(w->folder, sizeof(w->folder), "/tmp/pegboard-listener-XXXXXX");
    CHECK(mkdtemp(w->folder) != NULL);
}

static void world_done(struct world *w)
{
    w->listener = net_listener_free(w->listener);
    w->loops = net_loops_free(w->loops);
    CHECK(rmdir(w->folder) == 0); /* no file is left behind */
}

static struct net_address address_of(const char *text)
{
    struct net_endpoint endpoint;
    struct net_address address;

    CHECK_INT(net_endpoint_parse(peg__str(text), &endpoint, NULL), PEG_OK);
    CHECK(net_endpoint_is_numeric(&endpoint, &address));
    return address;
}

static struct net_address file_of(const struct world *w)
{
    char text[128];

    snprintf(text, sizeof(text), "unix:%s/socket", w->folder);
    return address_of(text);
}

static peg_status listen_to(struct world *w, const struct net_address *address,
                            const struct net_listener_options *options, peg_error *reterr)
{
    return net_listen(w->loops, address, options, on_stream, w, &w->listener, reterr);
}

static void listen_on_loopback(struct world *w, const struct net_listener_options *options)
{
    const struct net_address address = address_of("127.0.0.1:0");
    peg_error error;

    CHECK_STATUS(listen_to(w, &address, options, &error), PEG_OK, error);
}

static int try_connect(const struct net_address *address)
{
    const int fd = socket(address->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(fd, &address->at.any, address->len) == 0)
        return fd;
    close(fd);
    return -1;
}

static int connect_to(const struct world *w)
{
    const int fd = try_connect(net_listener_address(w->listener));

    CHECK(fd >= 0);
    return fd;
}

static void check_echo(int fd)
{
    char back = 0;

    CHECK_INT(write(fd, "x", 1), 1);
    CHECK_INT(read(fd, &back, 1), 1);
    CHECK_INT(back, 'x');
}

/* ---- accepting ---------------------------------------------------------------------------- */

TEST(a_listener_takes_connections)
{
    struct world w;
    int fd;

    world_init(&w, 1);
    listen_on_loopback(&w, NULL);
    CHECK(net_listener_address(w.listener)->at.ip4.sin_port != 0);
    fd = connect_to(&w);
    check_echo(fd);

    CHECK_INT(net_listener_n_connections(w.listener), 1);
    close(fd);
    AWAIT(&w, w.n_closed == 1);
    CHECK_INT(w.n_opened, 1);
    CHECK_INT(net_listener_n_connections(w.listener), 0);
    world_done(&w);
}

TEST(connections_are_spread_over_all_loops)
{
    enum { N = 40 };
    struct world w;
    int fds[N];

    world_init(&w, MAX_LOOPS);
    listen_on_loopback(&w, NULL);
    for (size_t i = 0; i < N; i++)
        fds[i] = connect_to(&w);
    for (size_t i = 0; i < N; i++)
        check_echo(fds[i]);

    /* Loads are read while they change: a loop may get one more or less than its share. */
    for (size_t i = 0; i < MAX_LOOPS; i++)
        CHECK(w.n_on[i] + 2 >= N / MAX_LOOPS && w.n_on[i] <= N / MAX_LOOPS + 2);
    for (unsigned i = 0; i < MAX_LOOPS; i++)
        CHECK_INT(net_loop_load(net_loops_at(w.loops, i)), w.n_on[i]);
    for (size_t i = 0; i < N; i++)
        close(fds[i]);
    AWAIT(&w, w.n_closed == N);
    world_done(&w);
}

/* How many descriptors the system has room for, before it has to make more of it. */
static long descriptors(void)
{
    char line[256];
    long n = -1;
    FILE *file = fopen("/proc/self/status", "re");

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "FDSize: %ld", &n) == 1)
            break;
    if (file)
        fclose(file);
    return n;
}

TEST(there_is_room_for_descriptors_before_connections_come)
{
    const struct net_listener_options options = {.max_connections = 700};
    struct net_listener *second = NULL;
    struct world w;
    int fd;

    world_init(&w, 1);
    listen_on_loopback(&w, &options);
    CHECK(descriptors() >= 700);
    CHECK_INT(net_listen(w.loops, net_listener_address(w.listener), &options, on_stream, &w,
                         &second, NULL),
              PEG_EIO); /* and nothing is left of what it would have needed */
    fd = connect_to(&w);
    check_echo(fd);
    close(fd);
    AWAIT(&w, w.n_closed == 1);
    world_done(&w);
}

TEST(every_interface_is_listened_on_with_both_protocols)
{
    struct world w;
    const struct net_address any = address_of(":0");
    struct net_address address;
    char text[64];
    peg_error error;
    int fd;

    world_init(&w, 1);
    CHECK_STATUS(listen_to(&w, &any, NULL, &error), PEG_OK, error);
    address = *net_listener_address(w.listener);
    snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(address.at.ip4.sin_port));
    address = address_of(text);
    fd = try_connect(&address);
    CHECK(fd >= 0);
    check_echo(fd);
    close(fd);
    world_done(&w);
}

TEST(a_stream_may_be_dropped_as_soon_as_it_comes)
{
    struct world w;
    char byte;
    int fd;

    world_init(&w, 2);
    w.drops = true;
    listen_on_loopback(&w, NULL);
    for (size_t i = 0; i < 10; i++) {
        fd = connect_to(&w);
        CHECK_INT(read(fd, &byte, 1), 0);
        close(fd);
    }
    AWAIT(&w, w.n_streams == 10);
    CHECK_INT(net_listener_n_connections(w.listener), 0);
    world_done(&w);
}

TEST(connections_beyond_the_most_wait_for_one_to_end)
{
    struct world w;
    const struct net_listener_options options = {.max_connections = 2};
    int fds[4];

    world_init(&w, 2);
    listen_on_loopback(&w, &options);
    for (size_t i = 0; i < 4; i++)
        fds[i] = connect_to(&w); /* the kernel takes those that wait */
    check_echo(fds[0]);
    check_echo(fds[1]);
    CHECK_INT(net_listener_n_connections(w.listener), 2);

    close(fds[0]);
    check_echo(fds[2]);
    CHECK_INT(net_listener_n_connections(w.listener), 2);
    close(fds[1]);
    check_echo(fds[3]);
    close(fds[2]);
    close(fds[3]);
    AWAIT(&w, w.n_closed == 4);
    world_done(&w);
}

static void on_log(peg_log_level level, const char *code, const char *message, void *user)
{
    struct world *w = (struct world *)user;

    (void)level;
    (void)message;
    if (strcmp(code, "E_LISTEN") == 0)
        TELL(w, w->n_logged++);
}

/* Nothing is accepted, it is told once, and goes on when there are descriptors again. */
TEST(a_process_without_descriptors_accepts_later)
{
    enum { MAX_FILLERS = 4096 };
    static int fillers[MAX_FILLERS];
    struct world w;
    struct rlimit before;
    struct rlimit few;
    size_t n = 0;
    int fd;

    world_init(&w, 1);
    listen_on_loopback(&w, NULL);
    CHECK_INT(peg_log_set(on_log, PEG_LOG_ERROR, &w), PEG_OK);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    few = (struct rlimit){.rlim_cur = 64, .rlim_max = before.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    while (n < MAX_FILLERS && (fillers[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        n++;
    CHECK(connect(fd, &net_listener_address(w.listener)->at.any,
                  net_listener_address(w.listener)->len) == 0);
    AWAIT(&w, w.n_logged == 1);
    CHECK_INT(w.n_streams, 0);

    while (n > 0)
        close(fillers[--n]);
    close(fd); /* it came in meanwhile, but under valgrind it was lost */
    fd = connect_to(&w);
    check_echo(fd);
    CHECK_INT(w.n_logged, 1);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK_INT(peg_log_set(NULL, PEG_LOG_ERROR, NULL), PEG_OK);
    close(fd);
    world_done(&w);
}

/* In place of the system's, which has more ways to fail than can be brought about here. */
static atomic_int accept_error;

int accept4(int fd, __SOCKADDR_ARG address, socklen_t *restrict len, int flags)
{
    if (atomic_load(&accept_error)) {
        errno = atomic_load(&accept_error);
        return -1;
    }
    return (int)syscall(SYS_accept4, fd, address.__sockaddr__, len, flags);
}

/* Trying again at once would take all of a processor. */
TEST(a_failure_that_nobody_knows_is_told_and_tried_later)
{
    struct world w;
    int fd;

    world_init(&w, 1);
    listen_on_loopback(&w, NULL);
    CHECK_INT(peg_log_set(on_log, PEG_LOG_ERROR, &w), PEG_OK);
    atomic_store(&accept_error, ENOSYS);
    fd = connect_to(&w);
    AWAIT(&w, w.n_logged == 1);

    atomic_store(&accept_error, 0);
    check_echo(fd);
    CHECK_INT(peg_log_set(NULL, PEG_LOG_ERROR, NULL), PEG_OK);
    close(fd);
    world_done(&w);
}

/* ---- addresses ---------------------------------------------------------------------------- */

TEST(a_port_that_is_taken_is_told)
{
    struct world w;
    struct net_listener *other = NULL;
    peg_error error;

    world_init(&w, 1);
    listen_on_loopback(&w, NULL);
    CHECK_INT(
        net_listen(w.loops, net_listener_address(w.listener), NULL, on_stream, &w, &other, &error),
        PEG_EIO);
    CHECK_STR(peg__str(error.code), "E_LISTEN");
    CHECK(strstr(error.message, "127.0.0.1:"));
    CHECK(strstr(error.message, "EADDRINUSE"));
    CHECK(!other);
    world_done(&w);
}

TEST(a_unix_socket_is_for_its_owner_only)
{
    struct world w;
    struct stat made;
    peg_error error;
    const struct net_listener_options shared = {.unix_mode = 0666};

    world_init(&w, 1);
    for (size_t i = 0; i < 2; i++) {
        const struct net_address address = file_of(&w);
        int fd;

        CHECK_STATUS(listen_to(&w, &address, i ? &shared : NULL, &error), PEG_OK, error);
        CHECK(stat(address.at.unix_path.sun_path, &made) == 0);
        CHECK_INT(made.st_mode & 0777, i ? 0666 : 0600);
        fd = connect_to(&w);
        check_echo(fd);
        close(fd);
        w.listener = net_listener_free(w.listener);
        CHECK(stat(address.at.unix_path.sun_path, &made) != 0 && errno == ENOENT);
    }
    world_done(&w);
}

TEST(an_old_unix_socket_is_replaced)
{
    struct world w;
    struct net_address address;
    peg_error error;
    int old;

    world_init(&w, 1);
    address = file_of(&w);
    old = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(old, &address.at.any, address.len) == 0);
    close(old); /* the file stays */

    CHECK_STATUS(listen_to(&w, &address, NULL, &error), PEG_OK, error);
    check_echo(old = connect_to(&w));
    close(old);
    world_done(&w);
}

/* Several programs that start at once: each finds the old file, or that of another one which does
 * not listen yet. */
struct rival {
    pthread_t thread;
    pthread_barrier_t *start;
    const struct net_address *address;
    struct net_listening listening;
    peg_status status;
};

static void *run_rival(void *user)
{
    struct rival *rival = (struct rival *)user;

    pthread_barrier_wait(rival->start);
    rival->status = net_listening_open(rival->address, 1, 0600, &rival->listening, NULL);
    return NULL;
}

static void leave_old_file(const struct net_address *address)
{
    const int old = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(bind(old, &address->at.any, address->len) == 0);
    close(old);
}

TEST(an_old_unix_socket_is_replaced_by_one_of_many)
{
    enum { N_RIVALS = 4, N_TIMES = 500 };
    struct world w;
    struct net_address address;
    pthread_barrier_t start;

    world_init(&w, 1);
    address = file_of(&w);
    pthread_barrier_init(&start, NULL, N_RIVALS);
    for (unsigned i = 0; i < N_TIMES; i++) {
        struct rival rivals[N_RIVALS];
        unsigned n_won = 0;

        leave_old_file(&address);
        for (unsigned k = 0; k < N_RIVALS; k++) {
            rivals[k] = (struct rival){.start = &start, .address = &address};
            CHECK(pthread_create(&rivals[k].thread, NULL, run_rival, &rivals[k]) == 0);
        }
        for (unsigned k = 0; k < N_RIVALS; k++)
            pthread_join(rivals[k].thread, NULL);
        for (unsigned k = 0; k < N_RIVALS; k++)
            if (!rivals[k].status) {
                n_won++;
                net_listening_close(&rivals[k].listening);
            }
        CHECK_INT(n_won, 1);
        CHECK(access(address.at.unix_path.sun_path, F_OK) != 0);
    }
    pthread_barrier_destroy(&start);
    world_done(&w);
}

TEST(a_unix_socket_in_use_is_not_replaced)
{
    struct world w;
    struct net_listener *other = NULL;
    struct net_address address;
    peg_error error;
    int fd;

    world_init(&w, 1);
    address = file_of(&w);
    CHECK_STATUS(listen_to(&w, &address, NULL, &error), PEG_OK, error);
    CHECK_INT(net_listen(w.loops, &address, NULL, on_stream, &w, &other, &error), PEG_EIO);

    CHECK(strstr(error.message, "EADDRINUSE"));
    fd = connect_to(&w);
    check_echo(fd);
    close(fd);
    world_done(&w);
}

TEST(a_file_that_is_no_socket_is_not_replaced)
{
    struct world w;
    struct net_address address;
    peg_error error;

    world_init(&w, 1);
    address = file_of(&w);
    close(open(address.at.unix_path.sun_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    CHECK_INT(listen_to(&w, &address, NULL, &error), PEG_EIO);

    CHECK(strstr(error.message, "what is there is not a socket"));
    CHECK(strstr(error.message, "; remove it, or choose another path"));
    CHECK(!strstr(error.message, "stop whoever"));
    CHECK(unlink(address.at.unix_path.sun_path) == 0);
    world_done(&w);
}

TEST(an_address_that_cannot_be_taken_says_what_to_do)
{
    const struct net_address missing = address_of("unix:/nonexistent-folder/s");
    const struct net_address elsewhere = address_of("192.0.2.1:0"); /* RFC 5737: nobody's */
    peg_error error;

    CHECK_INT(net_listen_try(&missing, &error), PEG_EIO);
    CHECK(strstr(error.message, "; make its folder, or choose another path"));
    CHECK_INT(net_listen_try(&elsewhere, &error), PEG_EIO);
    CHECK(strstr(error.message, "; listen on an address of this machine"));
}

TEST(trying_an_address_takes_nothing_and_fails_as_listening_would)
{
    struct world w;
    struct net_address address;
    peg_error error;

    world_init(&w, 1);
    address = file_of(&w);
    CHECK_STATUS(net_listen_try(&address, &error), PEG_OK, error);
    CHECK(access(address.at.unix_path.sun_path, F_OK) != 0 && errno == ENOENT);

    listen_on_loopback(&w, NULL);
    CHECK_INT(net_listen_try(net_listener_address(w.listener), &error), PEG_EIO);
    CHECK(strstr(error.message, "EADDRINUSE"));
    address = *net_listener_address(w.listener);
    w.listener = net_listener_free(w.listener);
    CHECK_STATUS(net_listen_try(&address, &error), PEG_OK, error);
    CHECK_STATUS(listen_to(&w, &address, NULL, &error), PEG_OK, error);
    world_done(&w);
}

TEST(the_file_of_another_listener_is_not_removed)
{
    struct world w;
    struct net_address address;
    peg_error error;

    world_init(&w, 1);
    address = file_of(&w);
    CHECK_STATUS(listen_to(&w, &address, NULL, &error), PEG_OK, error);
    CHECK(unlink(address.at.unix_path.sun_path) == 0);
    close(open(address.at.unix_path.sun_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    w.listener = net_listener_free(w.listener);

    CHECK(unlink(address.at.unix_path.sun_path) == 0);
    world_done(&w);
}

TEST(an_abstract_name_can_be_listened_on)
{
    struct world w;
    char text[64];
    struct net_address address;
    peg_error error;
    int fd;

    world_init(&w, 1);
    snprintf(text, sizeof(text), "unix:@pegboard-test-%d", (int)getpid());
    address = address_of(text);
    CHECK_STATUS(listen_to(&w, &address, NULL, &error), PEG_OK, error);
    CHECK(net_address_eq(net_listener_address(w.listener), &address));
    fd = connect_to(&w);
    check_echo(fd);
    close(fd);
    world_done(&w);
}

TEST(a_socket_that_listens_already_is_taken_over)
{
    struct world w;
    const struct net_address any = address_of("127.0.0.1:0");
    peg_error error;
    int fd;

    world_init(&w, 1);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(fd, &any.at.any, any.len) == 0);
    CHECK_INT(net_listen_on(w.loops, fd, NULL, on_stream, &w, &w.listener, &error), PEG_EIO);
    CHECK(strstr(error.message, "not a listening socket"));

    CHECK(listen(fd, 8) == 0);
    CHECK_STATUS(net_listen_on(w.loops, fd, NULL, on_stream, &w, &w.listener, &error), PEG_OK,
                 error);
    fd = connect_to(&w);
    check_echo(fd);
    close(fd);
    world_done(&w);
}

/* ---- the end ------------------------------------------------------------------------------ */

TEST(connections_outlive_their_listener)
{
    struct world w;
    struct net_address address;
    int fds[8];

    world_init(&w, 2);
    listen_on_loopback(&w, NULL);
    address = *net_listener_address(w.listener);
    for (size_t i = 0; i < 8; i++)
        check_echo(fds[i] = connect_to(&w));
    w.listener = net_listener_free(w.listener);

    CHECK(try_connect(&address) < 0);
    for (size_t i = 0; i < 8; i++) {
        check_echo(fds[i]);
        close(fds[i]);
    }
    AWAIT(&w, w.n_closed == 8);
    world_done(&w);
}

/* Whether a connection still came in or not: nothing is called after the end, nothing is lost. */
TEST(a_listener_may_end_while_connections_come)
{
    enum { N = 32 };

    for (size_t round = 0; round < 20; round++) {
        struct world w;
        int fds[N];
        size_t n_streams;

        world_init(&w, 3);
        listen_on_loopback(&w, NULL);
        for (size_t i = 0; i < N; i++)
            fds[i] = connect_to(&w);
        w.listener = net_listener_free(w.listener);
        n_streams = w.n_streams; /* on_stream does not run any more */
        for (size_t i = 0; i < N; i++)
            close(fds[i]);
        AWAIT(&w, w.n_closed == n_streams);
        CHECK_INT(w.n_streams, n_streams);
        world_done(&w);
    }
}

TEST(loops_may_end_before_the_listener)
{
    struct world w;
    int fds[8];

    world_init(&w, 2);
    listen_on_loopback(&w, NULL);
    for (size_t i = 0; i < 8; i++)
        fds[i] = connect_to(&w);
    check_echo(fds[0]);
    w.loops = net_loops_free(w.loops);
    w.listener = net_listener_free(w.listener);

    CHECK_INT(w.n_closed, w.n_streams);
    for (size_t i = 0; i < 8; i++)
        close(fds[i]);
    CHECK(rmdir(w.folder) == 0);
}

/* ---- out of memory ------------------------------------------------------------------------ */

struct failing {
    struct net_message message; /* first */
    struct world *world;
    unsigned nth;
    bool is_set;
};

static void on_failing(struct net_message *message)
{
    struct failing *failing = (struct failing *)(void *)message;

    peg__mem_fail_at(failing->nth);
    TELL(failing->world, failing->is_set = true);
}

/* On the thread that accepts. */
static void fail_at(struct world *w, unsigned nth)
{
    struct failing failing = {.message = {.fn = on_failing}, .world = w, .nth = nth};

    net_loop_post(net_loops_at(w->loops, 0), &failing.message);
    AWAIT(w, failing.is_set);
}

TEST(a_connection_without_memory_is_closed_and_the_next_one_is_not)
{
    for (unsigned n_loops = 1; n_loops <= 2; n_loops++) {
        struct world w;
        char byte;
        int fd;

        world_init(&w, n_loops);
        listen_on_loopback(&w, NULL);
        fail_at(&w, 1);
        for (unsigned i = 0; i < n_loops; i++) {
            fd = connect_to(&w);
            CHECK_INT(read(fd, &byte, 1), 0);
            close(fd);
        }
        fail_at(&w, 0);
        check_echo(fd = connect_to(&w));
        CHECK_INT(w.n_streams, 1);
        CHECK_INT(net_listener_n_connections(w.listener), 1);
        close(fd);
        AWAIT(&w, w.n_closed == 1);
        world_done(&w);
    }
}

TORTURE(listening_survives_any_allocation_failure)
{
    const struct net_address address = address_of("127.0.0.1:0");
    struct net_loops *loops = NULL;
    struct net_listener *listener = NULL;
    peg_status status = net_loops_new(2, &loops, NULL);

    if (!status)
        status = net_listen(loops, &address, NULL, on_stream, NULL, &listener, NULL);
    net_listener_free(listener);
    net_loops_free(loops);
    return status;
}
