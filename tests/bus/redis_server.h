/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_BUS_REDIS_SERVER_H
#define PEG_TESTS_BUS_REDIS_SERVER_H

/*
 * A redis-server of the test's own: on a unix socket in a temporary folder, stopped by its process
 * id. And a client for looking behind the bus, which waits for each reply.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../t.h"
#include "base/text/str.h"
#include "bus/redis/resp.h"

struct rs_server {
    char dir[64];
    char path[96];
    char url[128];
    pid_t pid; /* 0: it does not run */
};

static struct rs_server rs;

/* ---- a client ------------------------------------------------------------------------------- */

struct rs_client {
    int fd;
    struct resp_reader reader;
    char bytes[65536];
    peg_str rest;
};

static int rs_connect(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(at.sun_path, sizeof(at.sun_path), "%s", rs.path);
    if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Words apart by spaces. The reply is borrowed until the next one. */
static const struct resp_value *rs_ask(struct rs_client *client, const char *words)
{
    const struct resp_value *value = NULL;
    char line[4096];
    const int len = snprintf(line, sizeof(line), "%s\r\n", words);

    CHECK(write(client->fd, line, (size_t)len) == len);
    while (!value) {
        if (client->rest.len == 0) {
            const ssize_t n = read(client->fd, client->bytes, sizeof(client->bytes));

            CHECK(n > 0);
            client->rest = peg__strn(client->bytes, (size_t)n);
        }
        CHECK_INT(resp_reader_next(&client->reader, &client->rest, &value, NULL), PEG_OK);
    }
    return value;
}

static struct rs_client *rs_client_new(void)
{
    struct rs_client *client = (struct rs_client *)calloc(1, sizeof(*client));

    CHECK(client);
    client->fd = rs_connect();
    CHECK(client->fd >= 0);
    return client;
}

static void rs_client_free(struct rs_client *client)
{
    close(client->fd);
    resp_reader_free(&client->reader);
    free(client);
}

/* One command on a connection of its own; its integer, or 0. */
static long long rs_do(const char *words)
{
    struct rs_client *client = rs_client_new();
    const long long integer = rs_ask(client, words)->integer;

    rs_client_free(client);
    return integer;
}

/* The same, and its text; "" if it is none. */
static const char *rs_text(const char *words)
{
    static char text[8192];
    struct rs_client *client = rs_client_new();
    const struct resp_value *value = rs_ask(client, words);

    snprintf(text, sizeof(text), "%.*s",
             value->kind == RESP_TEXT || value->kind == RESP_ERROR ? (int)value->text.len : 0,
             value->text.ptr);
    rs_client_free(client);
    return text;
}

/* ---- the server ----------------------------------------------------------------------------- */

static bool rs_is_installed(void)
{
    return access("/usr/bin/redis-server", X_OK) == 0 ||
           access("/usr/local/bin/redis-server", X_OK) == 0;
}

static void rs_stop_with(int signal_number)
{
    if (!rs.pid)
        return;
    kill(rs.pid, SIGCONT);
    kill(rs.pid, signal_number);
    while (waitpid(rs.pid, NULL, 0) < 0 && errno == EINTR)
        ;
    rs.pid = 0;
}

static void rs_stop(void)
{
    rs_stop_with(SIGKILL);
}

static void rs_remove(void)
{
    char command[128];

    rs_stop();
    snprintf(command, sizeof(command), "rm -rf %s", rs.dir);
    if (rs.dir[0] && system(command)) // NOLINT(concurrency-mt-unsafe): at the end of the process
        perror(command);
}

/* `more`: options, each a word, and NULL; or NULL. Returns when it answers. */
static void rs_start(const char *const *more)
{
    const char *args[40] = {"redis-server", "--port",    "0",        "--unixsocket", rs.path,
                            "--save",       "",          "--dir",    rs.dir,         "--loglevel",
                            "warning",      "--logfile", "redis.log"};
    size_t n = 13;
    int fd;

    while (more && *more)
        args[n++] = *more++;
    rs.pid = fork();
    CHECK(rs.pid >= 0);
    if (rs.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(args[0], (char *const *)(uintptr_t)args);
        _exit(127);
    }
    while ((fd = rs_connect()) < 0) {
        CHECK(waitpid(rs.pid, NULL, WNOHANG) == 0);
        usleep(1000);
    }
    close(fd);
    while (strcmp(rs_text("PING"), "PONG") != 0)
        usleep(1000);
}

/* At the beginning of a test: one server serves all tests of a program. */
static void rs_open(void)
{
    if (!rs_is_installed())
        SKIP("redis-server is not installed (tools/setup --test installs it)");
    if (!rs.dir[0]) {
        snprintf(rs.dir, sizeof(rs.dir), "/tmp/pegboard-redis-XXXXXX");
        CHECK(mkdtemp(rs.dir));
        snprintf(rs.path, sizeof(rs.path), "%s/s", rs.dir);
        snprintf(rs.url, sizeof(rs.url), "unix://%s", rs.path);
        atexit(rs_remove);
    }
    if (!rs.pid)
        rs_start(NULL);
}

#endif
