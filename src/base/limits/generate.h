/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_LIMITS_GENERATE_H
#define PEG_BASE_LIMITS_GENERATE_H

/* Limits of `pegboard generate` and of what it writes, with their reasons. */

enum {
    /* Schemas that describe one place by references and allOf; as for filling defaults in. */
    PEG_LIMIT_GENERATE_TOGETHER = 32,
    /* Alternatives of one place. A person reads the switch over them. */
    PEG_LIMIT_GENERATE_BRANCHES = 64,
    /* Levels of types; the stack holds some 1 KiB for each. */
    PEG_LIMIT_GENERATE_DEPTH = 64,
    /* Types of a toolset; the largest public schemas have some 2,000. */
    PEG_LIMIT_GENERATE_TYPES = 10000,
    /* Declarations of server-data of one tool. */
    PEG_LIMIT_GENERATE_SERVER_DATA = 16,
    /* Bytes of one generated file. */
    PEG_LIMIT_GENERATE_BYTES = 64 << 20,
    /* Bytes of structs that are decoded with one arena: 100 KB of "{}" could otherwise be gigabytes
     * of a struct with many members. As much as the largest document. */
    PEG_LIMIT_TYPED_BYTES = 64 << 20,
};

#endif
