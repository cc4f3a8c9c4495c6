/* SPDX-License-Identifier: Apache-2.0 */

#include "calls/machine/states.h"

void (*calls_on_step)(enum calls_state from, int event, enum calls_state to);

const char *calls_state_name(enum calls_state state)
{
#define STATE_NAME(name, text) text,
    static const char *const names[] = {CALLS_COORDINATOR_STATES(STATE_NAME)};

    return state < CALLS_N_STATES ? names[state] : "?";
}

bool calls_state_may_become(enum calls_state from, enum calls_state to)
{
#define TRANSITION(from, to) [CALLS_##from][CALLS_##to] = true,
    static const bool legal[CALLS_N_STATES][CALLS_N_STATES] = {
        CALLS_COORDINATOR_TRANSITIONS(TRANSITION)};

    return from == to || legal[from][to];
}

bool calls_state_follows(enum calls_state state)
{
    return state >= CALLS_LISTING && state <= CALLS_CONFIRMING;
}
