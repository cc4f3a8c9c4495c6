/* SPDX-License-Identifier: Apache-2.0 */

/* The same for processors with AVX2, by the compiler's flags for this file. */

#define PARSE_VALUES peg__parse_values_avx2
#include "json/parse/values.h"
