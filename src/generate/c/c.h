/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GENERATE_C_C_H
#define PEG_GENERATE_C_C_H

/*
 * Types of a toolset as C99, for one toolset:
 *
 *   types.h, types.c        structs, and how they are decoded and encoded
 *   provider.h, provider.c  a function to write for each tool, and a registry of them
 *   client.h, client.c      a function to call for each tool
 */

#include "generate/language.h"

extern const struct gen_language gen_c;

#endif
