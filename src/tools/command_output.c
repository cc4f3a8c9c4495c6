/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/internal.h"

#include <string.h>

#include "base/text/str.h"
#include "json/json.h"

enum {
    /* Of one piece: all that is read at once, had it to be replaced byte by byte, and a note. */
    PIECE_BYTES = 64 << 10,
    /* What is made of bytes that are no UTF-8. */
    REPLACED_BYTES = 3,
};

/* ---- as text ------------------------------------------------------------------------------- */

/* How long the character is that begins with this byte; 1 if none does. */
static size_t len_by_lead(unsigned char lead)
{
    if (lead >= 0xC2 && lead <= 0xDF)
        return 2;
    if (lead >= 0xE0 && lead <= 0xEF)
        return 3;
    return lead >= 0xF0 && lead <= 0xF4 ? 4 : 1;
}

/* Are these all the bytes that have come of a character? */
static bool is_begun(peg_str bytes)
{
    if (bytes.len >= len_by_lead((unsigned char)bytes.ptr[0]))
        return false;
    for (size_t i = 1; i < bytes.len; i++) {
        if (((unsigned char)bytes.ptr[i] & 0xC0) != 0x80)
            return false;
    }
    return true;
}

/* Adds what is a text, and U+FFFD for what is none; returns what may become one with more. */
static peg_str add_utf8(struct peg__buf *out, peg_str bytes)
{
    while (bytes.len) {
        const size_t len = bytes.ptr[0] ? peg__utf8_char_len(bytes) : 0;

        if (!len && is_begun(bytes))
            break;
        if (len)
            peg__buf_add(out, bytes.ptr, len);
        else
            peg__buf_add(out, "\xEF\xBF\xBD", REPLACED_BYTES);
        bytes = peg__str_from(bytes, len ? len : 1);
    }
    return bytes;
}

/* With what was held before it; what it ends in the middle of is held. */
static void add_bytes(struct peg__output_stream *stream, struct peg__buf *out, peg_str bytes)
{
    /* One by one until the held character is whole, or turns out to be none. */
    while (stream->n_held && bytes.len) {
        peg_str rest;

        stream->held[stream->n_held++] = bytes.ptr[0];
        bytes = peg__str_from(bytes, 1);
        rest = add_utf8(out, peg__strn(stream->held, stream->n_held));
        memmove(stream->held, rest.ptr, rest.len);
        stream->n_held = rest.len;
    }
    bytes = add_utf8(out, bytes);
    if (bytes.len) {
        memcpy(stream->held, bytes.ptr, bytes.len);
        stream->n_held = bytes.len;
    }
}

/* ---- saying it ----------------------------------------------------------------------------- */

static void note_omission(const struct peg__output_stream *stream, struct peg__buf *out)
{
    if (stream->n_left_out)
        peg__buf_printf(out, "\n[%llu bytes left out: they came faster than they were taken]\n",
                        (unsigned long long)stream->n_left_out);
}

/* n_bytes: of the command, of which the text was made. */
static void send_text(struct peg__output_relay *relay, struct peg__output_stream *stream,
                      struct peg__buf *text, size_t n_bytes)
{
    const bool is_told = !text->status && relay->listener->say(relay->call, stream->name,
                                                               peg__buf_view(text)) == PEG_OK;

    stream->n_left_out = is_told ? 0 : stream->n_left_out + n_bytes;
    peg__buf_free(text);
}

static void relay_bytes(struct peg__output_relay *relay, struct peg__output_stream *stream,
                        peg_str bytes)
{
    struct peg__buf text = PEG__BUF(PIECE_BYTES);

    note_omission(stream, &text);
    add_bytes(stream, &text, bytes);
    if (text.len || text.status)
        send_text(relay, stream, &text, bytes.len);
}

/* What is left at the end: a character that never became whole, or a gap that nothing follows. */
static void finish_stream(struct peg__output_relay *relay, struct peg__output_stream *stream)
{
    struct peg__buf text = PEG__BUF(PIECE_BYTES);

    note_omission(stream, &text);
    if (stream->n_held)
        peg__buf_add(&text, "\xEF\xBF\xBD", REPLACED_BYTES);
    if (text.len)
        send_text(relay, stream, &text, stream->n_held);
}

/* ---- reports ----------------------------------------------------------------------------- */

enum peg__output_kind peg__output_kind_of(peg_str output)
{
    size_t i = 0;

    while (i < output.len && memchr("\n\r \t", output.ptr[i], sizeof("\n\r \t")))
        i++;
    if (i == output.len)
        return PEG__OUTPUT_MAYBE;
    return output.ptr[i] == '{' || output.ptr[i] == '[' ? PEG__OUTPUT_JSON : PEG__OUTPUT_TEXT;
}

bool peg__output_relay_begin(struct peg__output_relay *relay, peg_call *call,
                             enum peg__output_kind output)
{
    *relay = (struct peg__output_relay){.call = call,
                                        .listener = peg__ctx_listener(peg_call_ctx(call)),
                                        .output = output,
                                        .out = {.name = "stdout"},
                                        .err = {.name = "stderr"}};
    return relay->listener;
}

void peg__output_relay_handle(enum peg__process_stream stream, peg_str bytes, void *user)
{
    struct peg__output_relay *relay = user;

    if (stream == PEG__PROCESS_STDERR) {
        relay_bytes(relay, &relay->err, bytes);
        return;
    }
    /* White space alone decides nothing, and is not worth keeping for it. */
    if (relay->output == PEG__OUTPUT_MAYBE)
        relay->output = peg__output_kind_of(bytes);
    if (relay->output == PEG__OUTPUT_TEXT)
        relay_bytes(relay, &relay->out, bytes);
}

void peg__output_relay_end(struct peg__output_relay *relay)
{
    finish_stream(relay, &relay->out);
    finish_stream(relay, &relay->err);
}
