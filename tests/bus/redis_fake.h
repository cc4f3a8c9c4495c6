/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_BUS_REDIS_FAKE_H
#define PEG_TESTS_BUS_REDIS_FAKE_H

/*
 * A server in a thread that answers commands as a test says: each by its name, else as an empty
 * Redis would. Or it passes whole commands on to a real one, and cuts the connection behind the
 * n-th of them.
 */

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "redis_server.h"

enum { FK_MAX_RULES = 16, FK_MAX_CONNS = 16, FK_REPLY = 4096 };

struct fk_conn {
    int fd;     /* -1: none */
    int server; /* of a real one, or -1 */
    bool is_silent;
    unsigned n_commands;
    struct resp_reader reader;
};

struct fk_rule {
    char command[32];
    char reply[FK_REPLY]; /* "": it closes the connection; "(silence)": no more replies */
};

static struct {
    pthread_mutex_t lock; /* of the rules */
    struct fk_rule rules[FK_MAX_RULES];
    size_t n_rules;
    char dir[64];
    char path[96];
    char url[128];
    int listener;
    pthread_t thread;
    atomic_bool is_over;
    bool passes_on;
    atomic_long cut_behind; /* so many commands; < 0: never */
    atomic_uint n_accepted;
    atomic_uint n_evals; /* EVAL, which is not EVALSHA */
    atomic_uint random;  /* not 0: replies of chance, behind the first commands of a connection */
    atomic_uint n_honest;
    struct fk_conn conns[FK_MAX_CONNS];
} fk = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define FK_RUN_ID "0123456789abcdef0123456789abcdef01234567"

static const struct fk_rule fk_defaults[] = {
    {"HELLO", "%3\r\n+version\r\n+7.0.15\r\n+mode\r\n+standalone\r\n+role\r\n+master\r\n"},
    {"INFO", "+run_id:" FK_RUN_ID "\r\n"}, /* see fk_info() */
    {"SELECT", "+OK\r\n"},
    {"SCRIPT", "$40\r\n" FK_RUN_ID "\r\n"},
    {"SUBSCRIBE", ">3\r\n+subscribe\r\n+x\r\n:1\r\n"},
    {"SET", "_\r\n"},
    {"GET", "_\r\n"},
    {"GETRANGE", "$0\r\n\r\n"},
    {"EXISTS", ":0\r\n"},
    {"TIME", "*2\r\n+1700000000\r\n+5\r\n"},
    {"EVAL", "_\r\n"},
    {"EVALSHA", "_\r\n"},
    {"PUBLISH", ":0\r\n"},
};

static const char *fk_info(const char *lines)
{
    static char reply[FK_REPLY];

    snprintf(reply, sizeof(reply), "$%zu\r\n%s\r\n", strlen(lines), lines);
    return reply;
}

#define FK_GOOD_INFO                                                                               \
    "run_id:" FK_RUN_ID "\r\nrole:master\r\nloading:0\r\nmaxmemory:0\r\n"                          \
    "maxmemory_policy:noeviction\r\n"

/* What the server answers from now on. */
static void fk_say(const char *command, const char *reply)
{
    size_t i = 0;

    pthread_mutex_lock(&fk.lock);
    while (i < fk.n_rules && strcmp(fk.rules[i].command, command) != 0)
        i++;
    if (i == fk.n_rules)
        fk.n_rules++;
    snprintf(fk.rules[i].command, sizeof(fk.rules[i].command), "%s", command);
    snprintf(fk.rules[i].reply, sizeof(fk.rules[i].reply), "%s", reply);
    pthread_mutex_unlock(&fk.lock);
}

static void fk_forget_rules(void)
{
    pthread_mutex_lock(&fk.lock);
    fk.n_rules = 0;
    pthread_mutex_unlock(&fk.lock);
    fk_say("INFO", fk_info(FK_GOOD_INFO));
}

static void fk_find(peg_str command, char ret_reply[FK_REPLY])
{
    snprintf(ret_reply, FK_REPLY, "_\r\n");
    for (size_t i = 0; i < sizeof(fk_defaults) / sizeof(fk_defaults[0]); i++) {
        if (peg__str_is(command, fk_defaults[i].command))
            snprintf(ret_reply, FK_REPLY, "%s", fk_defaults[i].reply);
    }
    pthread_mutex_lock(&fk.lock);
    for (size_t i = 0; i < fk.n_rules; i++) {
        if (peg__str_is(command, fk.rules[i].command))
            snprintf(ret_reply, FK_REPLY, "%s", fk.rules[i].reply);
    }
    pthread_mutex_unlock(&fk.lock);
}

static void fk_close(struct fk_conn *conn)
{
    close(conn->fd);
    if (conn->server >= 0)
        close(conn->server);
    resp_reader_free(&conn->reader);
    *conn = (struct fk_conn){.fd = -1, .server = -1};
}

/* Replies of chance, most of them well formed and of a wrong type. */
static void fk_chance(char ret_reply[FK_REPLY])
{
    static const char *const replies[] = {
        "_\r\n",
        ":1\r\n",
        ":-7\r\n",
        "+x\r\n",
        "$0\r\n\r\n",
        "*0\r\n",
        "*1\r\n_\r\n",
        "*2\r\n+1\r\n:2\r\n",
        "%1\r\n+a\r\n+b\r\n",
        "-ERR what\r\n",
        "-OOM no\r\n",
        "*4\r\n:1\r\n:5\r\n:4\r\n:5\r\n",
        "*4\r\n:1\r\n:99\r\n:4\r\n:99\r\n",
        "$4\r\n12:x\r\n",
        "*2\r\n*2\r\n+ka\r\n,5\r\n*2\r\n+r\r\n,5\r\n",
        "*1\r\n$16\r\n0000000000000abc\r\n",
        ">3\r\n+message\r\n+x\r\n+y\r\n_\r\n",
        "#t\r\n",
        "-BUSY wait\r\n",
        "-NOPERM no\r\n",
        "*1\r\n-ERR inside\r\n",
        "*2\r\n*0\r\n*1\r\n+k\r\n",
        "-READONLY no\r\n",
        "garbage\r\n",
    };

    const unsigned random = atomic_load(&fk.random) * 1103515245U + 12345U;

    atomic_store(&fk.random, random | 1U);
    snprintf(ret_reply, FK_REPLY, "%s",
             replies[(random >> 16) % (sizeof(replies) / sizeof(replies[0]))]);
}

/* False: the connection is closed. */
static bool fk_answer(struct fk_conn *conn, const struct resp_value *command)
{
    const struct resp_value *name = resp_item(command, 0);
    char reply[FK_REPLY];

    fk_find(name ? name->text : peg__str(""), reply);
    if (name && peg__str_is(name->text, "EVAL"))
        atomic_fetch_add(&fk.n_evals, 1);
    if (fk.random && conn->n_commands++ >= fk.n_honest)
        fk_chance(reply);
    conn->is_silent |= strcmp(reply, "(silence)") == 0;
    if (conn->is_silent)
        return true;
    if (reply[0] && write(conn->fd, reply, strlen(reply)) == (ssize_t)strlen(reply))
        return true;
    fk_close(conn);
    return false;
}

/* False: it was the last one before the cut. */
static bool fk_pass_on(struct fk_conn *conn, peg_str command)
{
    while (command.len) {
        const ssize_t n = write(conn->server, command.ptr, command.len);

        if (n <= 0)
            break;
        command = peg__str_from(command, (size_t)n);
    }
    if (atomic_load(&fk.cut_behind) < 0 || atomic_fetch_sub(&fk.cut_behind, 1) > 1)
        return true;
    atomic_store(&fk.cut_behind, -1);
    fk_close(conn);
    return false;
}

static void fk_read(struct fk_conn *conn)
{
    char bytes[65536];
    const ssize_t n = read(conn->fd, bytes, sizeof(bytes));
    peg_str rest = peg__strn(bytes, n > 0 ? (size_t)n : 0);

    if (n <= 0) {
        fk_close(conn);
        return;
    }
    while (rest.len) {
        const peg_str before = rest;
        const struct resp_value *command = NULL;

        if (resp_reader_next(&conn->reader, &rest, &command, NULL)) {
            fk_close(conn);
            return;
        }
        /* A command that came in pieces is passed on as the pieces come: only its end counts. */
        if (fk.passes_on && !command)
            (void)!write(conn->server, before.ptr, before.len);
        if (command && fk.passes_on &&
            !fk_pass_on(conn, peg__strn(before.ptr, before.len - rest.len)))
            return;
        if (command && !fk.passes_on && !fk_answer(conn, command))
            return;
    }
}

static void fk_return(struct fk_conn *conn)
{
    char bytes[65536];
    const ssize_t n = read(conn->server, bytes, sizeof(bytes));

    if (n <= 0 || write(conn->fd, bytes, (size_t)n) != n)
        fk_close(conn);
}

static void fk_accept(void)
{
    const int fd = accept4(fk.listener, NULL, NULL, SOCK_CLOEXEC);

    for (size_t i = 0; fd >= 0 && i < FK_MAX_CONNS; i++) {
        if (fk.conns[i].fd >= 0)
            continue;
        fk.conns[i] = (struct fk_conn){.fd = fd, .server = fk.passes_on ? rs_connect() : -1};
        atomic_fetch_add(&fk.n_accepted, 1);
        return;
    }
    close(fd);
}

static void *fk_run(void *user)
{
    (void)user;
    while (!atomic_load(&fk.is_over)) {
        struct pollfd polls[1 + 2 * FK_MAX_CONNS] = {{.fd = fk.listener, .events = POLLIN}};

        for (size_t i = 0; i < FK_MAX_CONNS; i++) {
            polls[1 + 2 * i] = (struct pollfd){.fd = fk.conns[i].fd, .events = POLLIN};
            polls[2 + 2 * i] = (struct pollfd){.fd = fk.conns[i].server, .events = POLLIN};
        }
        poll(polls, 1 + 2 * FK_MAX_CONNS, 20);
        for (size_t i = 0; i < FK_MAX_CONNS; i++) {
            if (polls[1 + 2 * i].revents && fk.conns[i].fd == polls[1 + 2 * i].fd)
                fk_read(&fk.conns[i]);
            if (polls[2 + 2 * i].revents && fk.conns[i].server == polls[2 + 2 * i].fd)
                fk_return(&fk.conns[i]);
        }
        if (polls[0].revents)
            fk_accept();
    }
    return NULL;
}

/* Needs a folder: rs_open() before, if it passes on. */
static void fk_start(bool passes_on)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    snprintf(fk.dir, sizeof(fk.dir), "/tmp/pegboard-fake-XXXXXX");
    CHECK(mkdtemp(fk.dir));
    signal(SIGPIPE, SIG_IGN);
    snprintf(fk.path, sizeof(fk.path), "%s/s", fk.dir);
    snprintf(fk.url, sizeof(fk.url), "unix://%s", fk.path);
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", fk.path);
    for (size_t i = 0; i < FK_MAX_CONNS; i++)
        fk.conns[i] = (struct fk_conn){.fd = -1, .server = -1};
    fk.passes_on = passes_on;
    fk.random = 0;
    atomic_store(&fk.cut_behind, -1);
    atomic_store(&fk.n_evals, 0);
    atomic_store(&fk.is_over, false);
    fk_forget_rules();
    fk.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(fk.listener, (const struct sockaddr *)&at, sizeof(at)) == 0);
    CHECK(listen(fk.listener, 64) == 0);
    CHECK(pthread_create(&fk.thread, NULL, fk_run, NULL) == 0);
}

static void fk_stop(void)
{
    atomic_store(&fk.is_over, true);
    pthread_join(fk.thread, NULL);
    for (size_t i = 0; i < FK_MAX_CONNS; i++) {
        if (fk.conns[i].fd >= 0)
            fk_close(&fk.conns[i]);
    }
    close(fk.listener);
    unlink(fk.path);
    rmdir(fk.dir);
}

#endif
