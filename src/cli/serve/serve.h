/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_SERVE_SERVE_H
#define PEG_CLI_SERVE_SERVE_H

/* What `pegboard serve` was asked for. */

#include <signal.h>

#include "cli/cli.h"
#include "pegboard/gateway.h"

enum serve_store { SERVE_ANY, SERVE_SQLITE, SERVE_MEMORY, SERVE_MONGO };

/* Strings are borrowed from argv and the environment; `path` is its own. */
struct serve_options {
    peg_gateway_config config;
    const char *addr;       /* NULL: the default */
    enum serve_store store; /* chosen when all is read, if --store was not given */
    peg_mongo_store_options mongo;
    const char *data_dir; /* NULL: the default */
    char path[4096];      /* of the store, once the folder is there */
};

extern const struct cli_option serve_option_table[];

/* Options, and variables of the environment where these are missing. False: exit with args->exit.
 */
bool serve_read(struct cli_args *args, struct serve_options *o);
/* The folder of the store, made if it is not there (0700), and o->path. */
peg_status serve_make_data_dir(struct serve_options *o, peg_error *reterr);

/* ---- memory: serve_memory.c ---- */

/* How often to check. */
enum { SERVE_CHECK_MS = 10000 };

/* Begins with zeros. */
struct serve_memory {
    int64_t checked_ms; /* CPU time of the process at the last check */
    int64_t gave_ms;    /* and when it gave back */
    unsigned n_checks;  /* since then */
};

/* Before there are threads: as many pools of memory as loops. */
void serve_share_memory(unsigned n_loops);
int64_t serve_cpu_ms(void);
/* Is it quiet, and was it busy since it gave back, or is that a minute ago? */
bool serve_should_give_back(struct serve_memory *memory, int64_t cpu_ms);
/* Is more than half of its memory unused, and much? */
bool serve_keeps_much(void);
/* Gives unused pages back to the system. */
void serve_give_back(void);

/* ---- the service manager: notify.c ---- */

/* Sends a state such as "READY=1" to the service manager that started this process (sd_notify(3)).
 * Does nothing without NOTIFY_SOCKET. The manager may be slow or gone: that is never an error here.
 * From any thread. */
void cli_notify(const char *state);

/* The same before and after a reload, as systemd wants it: with the monotonic time of its start. */
void cli_notify_reloading(void);

/* Blocks SIGINT, SIGTERM, SIGHUP and SIGUSR2 for all threads that are made from here on. */
void cli_block_signals(sigset_t *ret_signals);

#endif
