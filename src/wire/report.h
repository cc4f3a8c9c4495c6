/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_WIRE_REPORT_H
#define PEG_WIRE_REPORT_H

#include "pegboard/common.h"

/* How many failures these lines of a report are: a line "and 7 more" counts for 7. */
size_t wire_report_count(peg_str lines);

#endif
