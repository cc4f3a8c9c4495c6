/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GENERATE_TS_TS_H
#define PEG_GENERATE_TS_TS_H

/*
 * Types of a toolset as TypeScript, for one toolset, over the package `pegboard` for Node:
 *
 *   types.ts      interfaces and unions; nothing of it is there at run time
 *   provider.ts   an interface to implement, and a provider of an implementation
 *   client.ts     a class with a method to call for each tool
 */

#include "generate/language.h"

extern const struct gen_language gen_ts;

#endif
