/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_RESULT_MEDIA_H
#define PEG_CORE_RESULT_MEDIA_H

#include "base/mem.h"
#include "pegboard/media.h"

PEG_DEFINE_CLEANUP(peg_media, peg_media_unref)

#endif
