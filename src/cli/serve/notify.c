/* SPDX-License-Identifier: Apache-2.0 */

/* What services share: signals, and the protocol of sd_notify(3), one datagram a state, too little
 * to link libsystemd for. */

#include "cli/serve/serve.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* The address that NOTIFY_SOCKET names: a path, or '@' and a name without a file. */
static socklen_t read_address(struct sockaddr_un *ret_address)
{
    const char *name = secure_getenv("NOTIFY_SOCKET");
    const size_t len = name ? strlen(name) : 0;

    if ((len < 2) || (name[0] != '/' && name[0] != '@') || len >= sizeof(ret_address->sun_path))
        return 0;
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret_address->sun_path, name, len);
    if (name[0] == '@')
        ret_address->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

void cli_notify(const char *state)
{
    struct sockaddr_un address;
    const socklen_t len = read_address(&address);
    int fd;

    if (!len)
        return;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
                  (const struct sockaddr *)&address, len);
    close(fd);
}

void cli_notify_reloading(void)
{
    struct timespec now;
    char state[64];

    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
             (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
    cli_notify(state);
}

void cli_block_signals(sigset_t *ret_signals)
{
    sigemptyset(ret_signals);
    sigaddset(ret_signals, SIGINT);
    sigaddset(ret_signals, SIGTERM);
    sigaddset(ret_signals, SIGHUP);
    sigaddset(ret_signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, ret_signals, NULL);
}
