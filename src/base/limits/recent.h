/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_LIMITS_RECENT_H
#define PEG_BASE_LIMITS_RECENT_H

/* Beside base/limits.h: what a gateway keeps of calls that ended and of changes. */

enum {
    /* Calls of a loop that have ended and are still listed (ListCalls), and bytes of their names:
     * 128 each, 350 KiB in all. */
    PEG_LIMIT_GATEWAY_RECENT_CALLS = 1024,
    PEG_LIMIT_GATEWAY_RECENT_BYTES = 128 << 10,
    /* A provider chooses the codes of its errors: long ones would leave no room for other calls.
     * A longer one is not listed. */
    PEG_LIMIT_GATEWAY_RECENT_CODE_BYTES = 256,
    /* Calls that ended whose memory a loop keeps for the next ones, and as many assignments: 330
     * KiB in all. */
    PEG_LIMIT_GATEWAY_SPARE_CALLS = 256,
    /* Calls of a loop that are not over and are looked at for one list, the newest: to look at so
     * many takes about a millisecond. */
    PEG_LIMIT_GATEWAY_LISTED_CALLS = 10000,
    /* Changes of the catalog that a node keeps for watchers that come back, as each loop notes
     * them, and bytes of their names: 250 KiB in all. A watcher that missed more than may wait for
     * a reader (PEG_LIMIT_GATEWAY_WATCH_EVENTS) starts over. */
    PEG_LIMIT_GATEWAY_WATCH_HISTORY = 4096,
    PEG_LIMIT_GATEWAY_WATCH_HISTORY_BYTES = 128 << 10,
    /* By so much one loop of a node may learn of a change later than another. */
    PEG_LIMIT_GATEWAY_LOOP_LAG_MS = 10 * 1000,
};

#endif
