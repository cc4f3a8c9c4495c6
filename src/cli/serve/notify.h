/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_CLI_NOTIFY_H
#define PEGBOARD_CLI_NOTIFY_H

/* Sends a state such as "READY=1" to the service manager that started this process (sd_notify(3)).
 * Does nothing without NOTIFY_SOCKET. The manager may be slow or gone: that is never an error here.
 * From any thread. */
void cli_notify(const char *state);

/* The same before and after a reload, as systemd wants it: with the monotonic time of its start. */
void cli_notify_reloading(void);

#endif
