/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TOOLS_TOOLS_H
#define PEG_TOOLS_TOOLS_H

#include <stdbool.h>

/* Makes this process the parent of what its commands leave behind (tools/internal.h). For the whole
 * process, once, before any command runs. False: the kernel cannot (errno). */
bool peg__descendants_adopt(void);

#endif
