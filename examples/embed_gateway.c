/* SPDX-License-Identifier: Apache-2.0 */

/* A gateway inside a program, which keeps its toolsets in a file: embed_gateway [ADDRESS] */

#include <pegboard/gateway.h>
#include <signal.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const char *address = argc > 1 ? argv[1] : NULL; /* NULL: 127.0.0.1:9090 */
    peg_gateway_config config = {PEG_GATEWAY_CONFIG_INIT, .name = "tools",
                                 .log_level = PEG_LOG_ERROR};
    peg_gateway *gateway = NULL;
    peg_store store;
    sigset_t ends;
    peg_error e;
    int which;

    sigemptyset(&ends), sigaddset(&ends, SIGTERM), sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, NULL); /* before there are threads */

    if (peg_sqlite_store_new("toolsets.db", &store, &e))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    config.store = &store; /* the gateway's from here on */
    if (peg_gateway_new(&config, &gateway, &e) || peg_gateway_listen(gateway, address, &e))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    printf("tools are at %s\n", peg_gateway_address(gateway)), fflush(stdout);

    sigwait(&ends, &which); /* or whatever else the program does */

    if (peg_gateway_drain(gateway, &e))
        fprintf(stderr, "%s: %s\n", e.code, e.message);
    return peg_gateway_free(gateway), 0;
}
