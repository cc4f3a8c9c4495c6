/* SPDX-License-Identifier: Apache-2.0 */

/* The contract of every bus, held by the one on Redis. */

#include "redis_world.h"

#include "contract_tests.h"
