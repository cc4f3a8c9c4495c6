/* SPDX-License-Identifier: Apache-2.0 */

/* Each case runs in a child, whose descriptors and environment are its own. */

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/listener.h"
#include "t.h"

/* The exit code is what `run` returns; 0 means that all was as expected. */
static int in_child(int (*run)(void))
{
    int status = 0;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0)
        _exit(run());
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void set_variables(const char *n, const char *pid)
{
    char own[32];

    snprintf(own, sizeof(own), "%d", (int)getpid());
    setenv("LISTEN_FDS", n, 1);
    setenv("LISTEN_PID", pid ? pid : own, 1);
    setenv("LISTEN_FDNAMES", "a:b", 1);
}

/* Sockets at 3, 4 and so on, and nothing after them. */
static void open_sockets(int n)
{
    for (int fd = 3; fd < 3 + n; fd++) {
        const int socket_fd = socket(AF_UNIX, SOCK_STREAM, 0);

        if (socket_fd != fd) {
            dup2(socket_fd, fd);
            close(socket_fd);
        }
    }
    for (int fd = 3 + n; fd < 64; fd++)
        close(fd);
}

static bool has_variables(void)
{
    return getenv("LISTEN_FDS") || getenv("LISTEN_PID") || getenv("LISTEN_FDNAMES");
}

static int take_two(void)
{
    int fds[4] = {0};

    open_sockets(2);
    set_variables("2", NULL);
    if (net_activated_sockets(fds, 4) != 2 || fds[0] != 3 || fds[1] != 4 || fds[2] != 0)
        return 1;
    if (!(fcntl(3, F_GETFD) & FD_CLOEXEC) || !(fcntl(4, F_GETFD) & FD_CLOEXEC))
        return 2;
    return has_variables() || net_activated_sockets(fds, 4) != 0 ? 3 : 0;
}

static int take_one_of_two(void)
{
    int fds[2] = {0};

    open_sockets(2);
    set_variables("2", NULL);
    return net_activated_sockets(fds, 1) == 2 && fds[0] == 3 && fds[1] == 0 ? 0 : 1;
}

static int take_those_of_another(void)
{
    int fds[2] = {0};

    open_sockets(2);
    set_variables("2", "1");
    return net_activated_sockets(fds, 2) == 0 && fds[0] == 0 && !has_variables() ? 0 : 1;
}

static int take_nothing(void)
{
    static const char *const numbers[] = {"", "0", "-1", "2x", " 2", "99999999999999999999", "x"};
    int fds[2] = {0};

    open_sockets(2);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        set_variables(numbers[i], NULL);
        if (net_activated_sockets(fds, 2) != 0 || has_variables())
            return 1 + (int)i;
    }
    return 0;
}

static int take_fewer_than_told(void)
{
    int fds[4] = {0};

    open_sockets(1);
    set_variables("2147483647", NULL);
    return net_activated_sockets(fds, 4) == 1 && fds[0] == 3 ? 0 : 1;
}

TEST(sockets_are_taken_once_and_not_inherited)
{
    CHECK_INT(in_child(take_two), 0);
}

TEST(more_sockets_than_asked_for_are_counted)
{
    CHECK_INT(in_child(take_one_of_two), 0);
}

TEST(sockets_of_another_process_are_left_alone)
{
    CHECK_INT(in_child(take_those_of_another), 0);
}

TEST(numbers_that_are_none_mean_no_sockets)
{
    CHECK_INT(in_child(take_nothing), 0);
}

TEST(sockets_that_are_not_there_are_not_counted)
{
    CHECK_INT(in_child(take_fewer_than_told), 0);
}
