/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: a byte that says how compressed messages are packed and how long the pieces are, and a
 * stream of messages. Read in one piece, byte by byte or in pieces of that length, it gives the
 * same messages and ends in the same way. Taken for a message, the same bytes come back packed and
 * unpacked; taken for gzip, they unpack within the limit or not at all.
 */

#include "base/error.h"
#include "base/limits.h"
#include "fuzz.h"
#include "grpc/message.h"

enum { MAX_MESSAGE = 4096, MAX_TOLD = 1 << 26 };

/* Takes what there is, writes down the messages. */
static peg_status read_piece(struct grpc_reader *reader, peg_str bytes, struct peg__buf *told)
{
    bool has_message = true;

    while (has_message) {
        peg_str message = {NULL, 0};
        peg_error error;
        const peg_status status = grpc_reader_next(reader, &bytes, &has_message, &message, &error);

        if (status) {
            fuzz_check_error(&error, peg__str(""));
            return status;
        }
        if (has_message) {
            REQUIRE(message.ptr && message.len <= MAX_MESSAGE, "a message has %zu", message.len);
            REQUIRE(grpc_reader_held(reader) == 0, "a whole message is not held");
            peg__buf_printf(told, "%zu ", message.len);
            peg__buf_str(told, message);
        }
    }
    REQUIRE(bytes.len == 0, "all bytes are taken");
    REQUIRE(reader->piece.capacity <= 2 * grpc_reader_held(reader) + 1024 ||
                reader->piece.capacity <= PEG_LIMIT_GRPC_READER_SPARE_BYTES,
            "%zu bytes for %zu", reader->piece.capacity, grpc_reader_held(reader));
    REQUIRE(reader->unpacked.capacity <= 2 * MAX_MESSAGE, "%zu bytes", reader->unpacked.capacity);
    REQUIRE(!reader->inflater || grpc_reader_held(reader) > GRPC_INFLATER_BYTES,
            "what unpacks is held");
    return PEG_OK;
}

static peg_status read_all(peg_str wire, enum grpc_encoding encoding, size_t piece,
                           struct peg__buf *told)
{
    struct grpc_reader reader = {0};
    peg_status status = PEG_OK;

    grpc_reader_init(&reader, MAX_MESSAGE);
    reader.encoding = encoding;
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
    if (!status)
        peg__buf_printf(told, "held %zu", grpc_reader_held(&reader));
    grpc_reader_free(&reader);
    return status;
}

static void check_pieces(peg_str wire, enum grpc_encoding encoding, size_t piece)
{
    struct peg__buf told = PEG__BUF(MAX_TOLD);
    const peg_status expected = read_all(wire, encoding, wire.len + 1, &told);
    const size_t sizes[] = {1, piece};

    REQUIRE(expected != PEG_ENOMEM && expected != PEG_EINVAL, "status %d", expected);
    for (size_t i = 0; i < 2; i++) {
        struct peg__buf again = PEG__BUF(MAX_TOLD);

        REQUIRE(read_all(wire, encoding, sizes[i], &again) == expected,
                "pieces of %zu end otherwise", sizes[i]);
        REQUIRE(peg__str_eq(peg__buf_view(&again), peg__buf_view(&told)),
                "pieces of %zu give other messages", sizes[i]);
        peg__buf_free(&again);
    }
    peg__buf_free(&told);
}

/* All of it in one piece; a failure leaves `out` as it was. */
static peg_status gunzip(peg_str bytes, size_t max, struct peg__buf *out, peg_error *reterr)
{
    const size_t len = out->len;
    struct grpc_inflater *inflater = grpc_inflater_new(max < out->max - len ? max : out->max - len);
    peg_status status;

    if (!inflater)
        return peg__fail_nomem(reterr);
    status = grpc_inflater_feed(inflater, bytes, true, out, reterr);
    grpc_inflater_free(inflater);
    if (status) {
        out->len = len;
        out->status = PEG_OK;
        if (out->ptr)
            out->ptr[len] = '\0';
    }
    return status;
}

static void check_gunzip(peg_str bytes)
{
    struct peg__buf out = PEG__BUF(MAX_TOLD);
    peg_error error;
    const peg_status status = gunzip(bytes, MAX_MESSAGE, &out, &error);

    REQUIRE(out.len <= MAX_MESSAGE && out.capacity <= 2 * MAX_MESSAGE, "%zu bytes", out.capacity);
    REQUIRE(!status || out.len == 0, "a failure adds nothing");
    if (status)
        fuzz_check_error(&error, bytes);
    peg__buf_free(&out);
}

static void check_there_and_back(peg_str bytes)
{
    struct peg__buf packed = PEG__BUF(MAX_TOLD);
    struct peg__buf out = PEG__BUF(MAX_TOLD);

    REQUIRE(grpc_gzip(bytes, &packed, NULL) == PEG_OK, "anything can be packed");
    REQUIRE(gunzip(peg__buf_view(&packed), bytes.len, &out, NULL) == PEG_OK, "and unpacked");
    REQUIRE(peg__str_eq(peg__buf_view(&out), bytes), "and is the same");
    peg__buf_free(&packed);
    peg__buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const unsigned choice = size ? data[0] : 0;
    const peg_str wire = size ? fuzz_input(data + 1, size - 1) : peg__str("");

    check_pieces(wire, (enum grpc_encoding)(choice % 3), choice / 3 % 64 + 2);
    check_gunzip(wire);
    check_there_and_back(wire);
    return 0;
}
