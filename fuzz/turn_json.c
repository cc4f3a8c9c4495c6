/* SPDX-License-Identifier: Apache-2.0 */

/* Input: a text, read as a turn in JSON. */

#include "turn_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_turn_file(fuzz_input(data, size), PEG_FORMAT_JSON);
    return 0;
}
