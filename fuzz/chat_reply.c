/* SPDX-License-Identifier: Apache-2.0 */

/* Input: a stream of server-sent events, which is also taken for a whole answer. */

#include "wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const peg_str bytes = fuzz_input(data, size);

    fuzz_stream(&peg__wire_chat, bytes);
    fuzz_body(&peg__wire_chat, bytes);
    return 0;
}
