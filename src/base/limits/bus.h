/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_LIMITS_BUS_H
#define PEG_BASE_LIMITS_BUS_H

/* A part of base/limits.h, which includes it: what the bus may take, in the process and on
 * Redis. */

enum {
    /* Registers of calls that are in flight or kept for those who ask again, over all loops, and
     * their bytes: what their memory may take beside that of calls. A register alone takes some
     * 150 bytes. These bounds hold twice: for calls with an identity, whose ends are kept, and
     * for those without, so that what is kept of the first never refuses the second. */
    PEG_LIMIT_BUS_REGISTERS = 1000000,
    PEG_LIMIT_BUS_REGISTER_BYTES = 256 << 20,
    /* Values larger than the first have room of their own, the second: large results never refuse
     * what is small. 32 results of the largest kind. */
    PEG_LIMIT_BUS_SMALL_BYTES = 16 << 10,
    PEG_LIMIT_BUS_LARGE_BYTES = 256 << 20,
    /* A name, which admits a call, is written only while less than this of the room is taken: the
     * rest is for claims, ends and waiters of calls that were admitted. */
    PEG_LIMIT_BUS_NAME_PERCENT = 90,
    /* Shares are no matter for values up to this: claims, and outcomes in a few words. A call that
     * was admitted cannot do without. */
    PEG_LIMIT_BUS_REASON_BYTES = 512,
    /* Ended ones whose memory is kept for the next, at most: those of some 1,000 calls. */
    PEG_LIMIT_BUS_SPARE_REGISTERS = 4096,
    /* Removed in one round of a loop when their time is over: below 1 ms. */
    PEG_LIMIT_BUS_SWEEP = 2048,
    /* Names that are alive: providers and nodes. */
    PEG_LIMIT_BUS_LEASES = 100000,
    /* Keys of one map, and bytes of their values: every toolset that there can be. */
    PEG_LIMIT_BUS_MAP_KEYS = 200000,
    PEG_LIMIT_BUS_MAP_BYTES = 256 << 20,
    /* Nodes of a registry, some 500 bytes each on every loop. */
    PEG_LIMIT_GATEWAY_NODES = 1000,
    /* How long a node that starts waits until it is one of the registry. */
    PEG_LIMIT_GATEWAY_JOIN_MS = 15000,
    /* Messages of a loop to itself that one pass delivers, and ended ones that it keeps. */
    PEG_LIMIT_BUS_MESSAGES_A_PASS = 1000,
    PEG_LIMIT_BUS_SPARE_MESSAGES = 256,

    /* ---- a server of Redis ---- */
    /* A line of the protocol: a number, an error in a sentence. */
    PEG_LIMIT_REDIS_LINE_BYTES = 4096,
    /* One reply: the index of the largest map, or the largest value. */
    PEG_LIMIT_REDIS_REPLY_BYTES = 128 << 20,
    /* Values in one reply: the keys of a map and their revisions, and as many again. */
    PEG_LIMIT_REDIS_VALUES = 1000000,
    /* What a reader keeps of its memory between two replies. */
    PEG_LIMIT_REDIS_SPARE_BYTES = 64 << 10,
    PEG_LIMIT_REDIS_SPARE_VALUES = 256,
    /* REDIS_URL, with a password and a path. */
    PEG_LIMIT_REDIS_URL_BYTES = 2048,
    /* Commands of one loop that wait for their replies, and bytes that wait to be sent: what a
     * server that stands still for a few seconds may leave behind. */
    PEG_LIMIT_REDIS_PENDING = 200000,
    PEG_LIMIT_REDIS_OUT_BYTES = 64 << 20,
    /* Written at once: TLS takes PEG_LIMIT_TLS_WIRE_BYTES. */
    PEG_LIMIT_REDIS_WRITE_BYTES = 256 << 10,
    /* Commands whose ended memory a loop keeps for the next. */
    PEG_LIMIT_REDIS_SPARE_COMMANDS = 256,
    /* Registers that are answered together: behind each such group the epoch is read once. */
    PEG_LIMIT_REDIS_GROUP = 128,
    /* Commands that need not go at once wait so long for others, and at most so many: a fraction of
     * what registers live, and as many as make a command's share of a write small. */
    PEG_LIMIT_REDIS_LATE_MS = 20,
    PEG_LIMIT_REDIS_LATE = 64,
    /* A request waits so long for a connection, and a command for its reply: half a lease. */
    PEG_LIMIT_REDIS_HOLD_MS = 1000,
    PEG_LIMIT_REDIS_TIMEOUT_MS = 5000,
    /* Between two attempts to connect: the first time, and at most. */
    PEG_LIMIT_REDIS_BACKOFF_MS = 50,
    PEG_LIMIT_REDIS_BACKOFF_MAX_MS = 5000,
    /* How often each loop looks for lost ones, and at the epoch. */
    PEG_LIMIT_REDIS_CHECK_MS = 1000,
    /* Leases in one script: some 300 us of the server's time. */
    PEG_LIMIT_REDIS_LEASES = 128,
    /* The longest lease: ten years, which is as good as none. */
    PEG_LIMIT_REDIS_LEASE_DAYS = 3650,
    /* Bodies of messages and values of maps up to this travel in the message itself. */
    PEG_LIMIT_REDIS_INLINE_BYTES = 64 << 10,
    /* A larger body waits so long for the loop that is to read it. */
    PEG_LIMIT_REDIS_BODY_MS = 60000,
    /* A value of a map: the largest toolset that a gateway takes, and half as much. So many are
     * read at once: Redis cuts a subscriber for whom more than 32 MiB wait, by default. */
    PEG_LIMIT_REDIS_MAP_VALUE_BYTES = 6 << 20,
    PEG_LIMIT_REDIS_FETCH = 2,
    /* Bodies of messages and results of more than PEG_LIMIT_REDIS_INLINE_BYTES that a loop fetches
     * at once, for the same reason: with the values of maps they are 28 MiB at most. */
    PEG_LIMIT_REDIS_LARGE = 2,
    /* A result stream, as the reference has it; one of a longer call, and the mapping to it, live
     * so much longer than the call. */
    PEG_LIMIT_DIRECT_RESULT_S = 900,
    PEG_LIMIT_DIRECT_LATE_MS = 60000,
    /* Reads of result streams of direct toolsets at once: as many as hide a round trip. */
    PEG_LIMIT_REDIS_READS = 64,
    /* What may wait for a subscriber: less than this is a warning. The default of Redis. */
    PEG_LIMIT_REDIS_BUFFER_BYTES = 32 << 20,
    /* Loops that wait for one call: as many as a registry may have. */
    PEG_LIMIT_REDIS_WAITERS = 1024,

    /* One entry of a stream of direct toolsets: a result of PEG_LIMIT_GATEWAY_RESULT_BYTES, its
     * server data, and what Go's escapes add. */
    PEG_LIMIT_PULSE_ENTRY_BYTES = 16 << 20,
    /* Direct providers. How long an entry may be idle before another provider takes it, and
     * between signs of life: what the reference has, whose providers share the group. */
    PEG_LIMIT_DIRECT_GRACE_MS = 20000,
    PEG_LIMIT_DIRECT_GRACE_MIN_MS = 500,
    PEG_LIMIT_DIRECT_GRACE_MAX_MS = 60 * 60 * 1000,
    /* Between looks for entries that dead providers left. */
    PEG_LIMIT_DIRECT_TICK_MS = 1000,
    /* Entries of one read: payloads of a gateway stay well below PEG_LIMIT_REDIS_REPLY_BYTES. */
    PEG_LIMIT_DIRECT_READ = 32,
    /* How long one read waits; what the reference has. */
    PEG_LIMIT_DIRECT_BLOCK_MS = 5000,
    /* Entries that one command renews or gives up. */
    PEG_LIMIT_DIRECT_IDS = 128,
    /* Pongs on their way, and how long one may take: what the reference has. */
    PEG_LIMIT_DIRECT_PONGS = 16,
    PEG_LIMIT_DIRECT_PONG_MS = 2000,
    /* Register, and EmitToolResult. */
    PEG_LIMIT_DIRECT_RPC_MS = 10000,
    /* How often Redis may refuse a result before it is dropped. */
    PEG_LIMIT_DIRECT_REFUSALS = 30,
};

#endif
