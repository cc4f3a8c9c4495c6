/* SPDX-License-Identifier: Apache-2.0 */

#define PARSE_VALUES peg__parse_values
#include "json/parse/values.h"
