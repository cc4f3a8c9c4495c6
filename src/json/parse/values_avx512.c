/* SPDX-License-Identifier: Apache-2.0 */

/* The same for processors with AVX-512 as of Ice Lake, by the compiler's flags for this file. */

#define PARSE_VALUES peg__parse_values_avx512
#include "json/parse/values.h"
