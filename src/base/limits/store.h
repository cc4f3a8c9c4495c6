/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_LIMITS_STORE_H
#define PEG_BASE_LIMITS_STORE_H

/* The limits of stores, a part of base/limits.h. */

enum {
    /* Names in a store: toolsets have at most 256 bytes of them, hosts may have longer ones. */
    PEG_LIMIT_GATEWAY_STORE_NAME_BYTES = 1024,
    /* A record: 10,000 tools of some KiB each. */
    PEG_LIMIT_GATEWAY_STORE_BODY_BYTES = 64 << 20,
    /* Records of a store in memory, tombstones too. */
    PEG_LIMIT_GATEWAY_STORE_RECORDS = 1000000,
    /* A record in MongoDB, whose documents have at most 16 MiB; the rest is for the other fields.
     * A toolset has less (PEG_LIMIT_GATEWAY_TOOLSET_BYTES), unless most of its bytes are escaped.
     */
    PEG_LIMIT_GATEWAY_STORE_MONGO_BYTES = (16 << 20) - (16 << 10),
    /* A MongoDB that is lost is asked again for so long: it may be starting. Registrations wait
     * behind each other meanwhile. */
    PEG_LIMIT_GATEWAY_STORE_RETRY_MS = 5000,
    /* To connect, and to answer, where the URL does not say. libmongoc's own are 10 s and five
     * minutes, for which a worker would wait. */
    PEG_LIMIT_GATEWAY_STORE_CONNECT_MS = 5000,
    PEG_LIMIT_GATEWAY_STORE_ANSWER_MS = 10000,
};

#endif
