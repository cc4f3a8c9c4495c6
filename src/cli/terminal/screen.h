/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_TERMINAL_SCREEN_H
#define PEG_CLI_TERMINAL_SCREEN_H

/*
 * The whole terminal, for what is drawn again and again: keys come at once and are not shown, and
 * the screen that was there comes back at the end, also by ^\ (SIGQUIT), and while ^Z has stopped
 * us. A process has one.
 */

#include "pegboard/common.h"

/* False, and nothing has changed: standard input is no terminal. */
bool cli_screen_open(void);
/* Less of it, or nothing, where the terminal has gone away, or what ends the screen came meanwhile.
 */
void cli_screen_draw(peg_str picture);
/* Gives the terminal back. */
void cli_screen_close(void);

/* Until time is over, a key came, or the screen has to be drawn anew; false if the key is q, there
 * are no more, or SIGINT, SIGTERM or SIGHUP came. */
bool cli_screen_wait(int64_t ms);

#endif
