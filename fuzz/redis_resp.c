/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: a byte that says how long pieces are, and what a server sends. Read in one piece, byte by
 * byte or in pieces of that length, it gives the same values and ends in the same way.
 */

#include "bus/redis/resp.h"
#include "fuzz.h"

enum { MAX_TOLD = 1 << 26 };

/* The value as text; every list must have the items that it says. Bounded by RESP_MAX_DEPTH. */
// NOLINTNEXTLINE(misc-no-recursion): RESP_MAX_DEPTH
static const struct resp_value *tell_value(const struct resp_value *value, struct peg__buf *told)
{
    const struct resp_value *item = value + 1;

    peg__buf_printf(told, "%d:%u:%lld(", (int)value->kind, value->n_items,
                    (long long)value->integer);
    if (value->kind == RESP_TEXT || value->kind == RESP_ERROR)
        peg__buf_str(told, value->text);
    for (size_t i = 0; resp_is_list(value) && i < value->n_items; i++)
        item = tell_value(item, told);
    peg__buf_puts(told, ")");
    REQUIRE(item == resp_next(value), "a list ends behind its last item");
    return item;
}

static peg_status read_piece(struct resp_reader *reader, peg_str bytes, struct peg__buf *told)
{
    while (bytes.len) {
        const struct resp_value *value = NULL;
        peg_error error;
        const peg_status status = resp_reader_next(reader, &bytes, &value, &error);

        if (status) {
            fuzz_check_error(&error, peg__str(""));
            return status;
        }
        REQUIRE(value || bytes.len == 0, "all bytes are taken");
        if (value)
            tell_value(value, told);
    }
    return PEG_OK;
}

static peg_status read_all(peg_str wire, size_t piece, struct peg__buf *told)
{
    struct resp_reader reader = {0};
    peg_status status = PEG_OK;

    while (wire.len && !status) {
        const size_t n = piece < wire.len ? piece : wire.len;
        /* A copy that is gone afterwards: what is held must have been copied. */
        char *copy = malloc(n);

        REQUIRE(copy, "memory");
        memcpy(copy, wire.ptr, n);
        status = read_piece(&reader, peg__strn(copy, n), told);
        free(copy);
        wire = peg__str_from(wire, n);
    }
    resp_reader_free(&reader);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const peg_str wire = size ? fuzz_input(data + 1, size - 1) : peg__str("");
    const size_t pieces[] = {1, size ? data[0] % 64 + 2U : 2};
    struct peg__buf told = PEG__BUF(MAX_TOLD);
    const peg_status expected = read_all(wire, wire.len + 1, &told);

    REQUIRE(expected != PEG_ENOMEM && expected != PEG_EINVAL, "status %d", expected);
    for (size_t i = 0; i < 2; i++) {
        struct peg__buf again = PEG__BUF(MAX_TOLD);

        REQUIRE(read_all(wire, pieces[i], &again) == expected, "pieces of %zu end otherwise",
                pieces[i]);
        REQUIRE(peg__str_eq(peg__buf_view(&again), peg__buf_view(&told)),
                "pieces of %zu give other values", pieces[i]);
        peg__buf_free(&again);
    }
    peg__buf_free(&told);
    return 0;
}
