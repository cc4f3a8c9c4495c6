/* SPDX-License-Identifier: Apache-2.0 */

/* What waits to be sent on a connection of HTTP/1.1: heads of answers and their bodies, as bytes. A
 * failure to add leaves what was there. */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/text/str.h"
#include "net/http/internal.h"

enum { PIECE_BYTES = 64 << 10 };

/* ---- heads --------------------------------------------------------------------------------- */

/* As HTTP writes it, whatever the locale is: Sun, 06 Nov 1994 08:49:37 GMT. */
static const char *date_now(void)
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    static _Thread_local time_t made_at = -1;
    static _Thread_local char text[64];
    const time_t now = time(NULL);
    struct tm tm;

    if (now != made_at && gmtime_r(&now, &tm)) {
        snprintf(text, sizeof(text), "%s, %02d %s %d %02d:%02d:%02d GMT", days[tm.tm_wday],
                 tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
                 tm.tm_sec);
        made_at = now;
    }
    return text;
}

static void put_number(struct peg__buf *out, uint64_t n)
{
    enum { DECIMAL = 20 };
    char digits[DECIMAL];

    peg__buf_add(out, digits, (size_t)(peg__put_decimal(digits, n) - digits));
}

static void put_field(struct peg__buf *out, peg_str name, peg_str value)
{
    peg__buf_str(out, name);
    peg__buf_puts(out, ": ");
    peg__buf_str(out, value);
    peg__buf_puts(out, "\r\n");
}

static void put_status(struct peg__buf *out, int status)
{
    peg__buf_puts(out, "HTTP/1.1 ");
    put_number(out, (uint64_t)status);
    peg__buf_putc(out, ' ');
    peg__buf_puts(out, net_http_reason(status));
    peg__buf_puts(out, "\r\n");
    put_field(out, (peg_str)PEG_LIT("Date"), peg__str(date_now()));
}

/* Takes back what was added since `len`, if that failed. */
static peg_status check_added(struct peg__buf *out, size_t len, peg_error *reterr)
{
    if (!out->status)
        return PEG_OK;
    out->len = len;
    out->status = PEG_OK;
    return peg__fail_nomem(reterr);
}

peg_status net_http_output_head(struct net_http_output *output,
                                const struct net_http_answer *answer, int64_t length, bool is_last,
                                peg_error *reterr)
{
    enum { USUAL_BYTES = 256 };
    struct peg__buf *out = &output->bytes;
    const size_t len = out->len;

    /* Room for all of a small answer at once. */
    peg__buf_reserve(out, USUAL_BYTES + (length > 0 && length < PIECE_BYTES ? (size_t)length : 0));
    put_status(out, answer->status);
    if (answer->content_type)
        put_field(out, (peg_str)PEG_LIT("Content-Type"), peg__str(answer->content_type));
    if (output->is_chunked) {
        peg__buf_puts(out, "Transfer-Encoding: chunked\r\n");
    } else if (length >= 0 && answer->status != 204 && answer->status != 304) {
        peg__buf_puts(out, "Content-Length: ");
        put_number(out, (uint64_t)length);
        peg__buf_puts(out, "\r\n");
    }
    for (size_t i = 0; i < answer->n_fields; i++)
        put_field(out, answer->fields[i].name, answer->fields[i].value);
    peg__buf_puts(out, is_last ? "Connection: close\r\n\r\n" : "Connection: keep-alive\r\n\r\n");
    return check_added(out, len, reterr);
}

/* ---- bodies -------------------------------------------------------------------------------- */

/* What is gone makes room before more memory is asked for. */
static void forget_gone(struct net_http_output *output)
{
    struct peg__buf *out = &output->bytes;

    if (output->n_sent == 0)
        return;
    memmove(out->ptr, out->ptr + output->n_sent, out->len - output->n_sent);
    out->len -= output->n_sent;
    output->n_sent = 0;
}

peg_status net_http_output_body(struct net_http_output *output, peg_str bytes, peg_error *reterr)
{
    struct peg__buf *out = &output->bytes;
    char size[32];
    size_t len;

    forget_gone(output);
    len = out->len;
    if (output->is_chunked)
        peg__buf_add(out, size, (size_t)snprintf(size, sizeof(size), "%zx\r\n", bytes.len));
    peg__buf_str(out, bytes);
    if (output->is_chunked)
        peg__buf_puts(out, "\r\n");
    return check_added(out, len, reterr);
}

peg_status net_http_output_text(struct net_http_output *output, const char *text)
{
    const size_t len = output->bytes.len;

    peg__buf_puts(&output->bytes, text);
    return check_added(&output->bytes, len, NULL);
}

/* ---- sending ------------------------------------------------------------------------------- */

size_t net_http_output_pending(const struct net_http_output *output)
{
    return output->bytes.len - output->n_sent + peg__blob_str(output->blob).len -
           output->n_blob_sent;
}

static peg_str next_piece(const struct net_http_output *output)
{
    peg_str left = peg__str_from(peg__buf_view(&output->bytes), output->n_sent);

    if (left.len == 0)
        left = peg__str_from(peg__blob_str(output->blob), output->n_blob_sent);
    return peg__strn(left.ptr, left.len < PIECE_BYTES ? left.len : (size_t)PIECE_BYTES);
}

static void forget_all(struct net_http_output *output)
{
    enum { KEPT_BYTES = 4 << 10 };

    if (output->bytes.capacity > KEPT_BYTES)
        peg__buf_free(&output->bytes);
    peg__buf_clear(&output->bytes);
    output->n_sent = 0;
    output->blob = peg__blob_unref(output->blob);
    output->n_blob_sent = 0;
}

peg_status net_http_output_send(struct net_http_output *output, struct net_stream *stream,
                                bool *ret_moved)
{
    *ret_moved = false;
    while (net_http_output_pending(output) > 0) {
        const peg_str piece = next_piece(output);
        peg_status status;

        if (net_stream_is_blocked(stream))
            return PEG_OK;
        status = net_stream_write(stream, (const uint8_t *)piece.ptr, piece.len, NULL);
        if (status)
            return status;
        *ret_moved = true;
        if (output->n_sent < output->bytes.len)
            output->n_sent += piece.len;
        else
            output->n_blob_sent += piece.len;
    }
    forget_all(output);
    return PEG_OK;
}

void net_http_output_free(struct net_http_output *output)
{
    forget_all(output);
    peg__buf_free(&output->bytes);
}

size_t net_http_output_memory(const struct net_http_output *output)
{
    return output->bytes.capacity + peg__blob_str(output->blob).len;
}
