/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_ENGINE_H
#define PEG_ENGINE_ENGINE_H

/*
 * An engine: what engine_config.c makes of a config and engine.c asks a model with.
 */

#include <stdatomic.h>

#include "base/arena.h"
#include "engine/transport/http.h"
#include "engine/transport/retry.h"
#include "engine/transport/wire.h"

/* Shared, immutable once made; any thread. */
struct peg_engine {
    atomic_uint n_refs;
    peg_engine_config config; /* in the arena, with its defaults; headers and the key are below */
    const struct peg__wire *wire;
    struct peg__transport transport;
    struct peg__retry retry;
    struct peg__buf url;
    struct peg__buf headers; /* lines, with the key; wiped before it is freed */
    struct peg__arena arena;
};

#endif
