/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/transport/transport.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"

/* Where events go. */
struct listener {
    peg__sse_fn fn;
    void *user;
};

void peg__sse_init(struct peg__sse *sse, size_t max_bytes)
{
    *sse = (struct peg__sse){
        .line = PEG__BUF(max_bytes),
        .event = PEG__BUF(max_bytes),
        .data = PEG__BUF(max_bytes),
        .id = PEG__BUF(max_bytes),
        .next_id = PEG__BUF(max_bytes),
        .retry_ms = -1,
    };
}

void peg__sse_free(struct peg__sse *sse)
{
    peg__buf_free(&sse->line);
    peg__buf_free(&sse->event);
    peg__buf_free(&sse->data);
    peg__buf_free(&sse->id);
    peg__buf_free(&sse->next_id);
}

static peg_status check_buf(const struct peg__buf *buf, peg_error *reterr)
{
    if (!buf->status)
        return PEG_OK;
    if (buf->status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return peg__fail(reterr, PEG_ELIMIT, "E_ENGINE_TOO_LARGE",
                     "a line or an event of the stream has more than %zu bytes: raise "
                     "max_reply_bytes, or ask for less",
                     buf->max);
}

/* ---- lines ------------------------------------------------------------------------ */

static peg_status emit_event(struct peg__sse *sse, const struct listener *to, peg_error *reterr)
{
    const peg_str name = sse->event.len ? peg__buf_view(&sse->event) : peg_cstr("message");
    peg_status status = PEG_OK;

    if (sse->has_data)
        status = to->fn(name, peg__buf_view(&sse->data), to->user, reterr);
    peg__buf_clear(&sse->event);
    peg__buf_clear(&sse->data);
    sse->has_data = false;
    return status;
}

/* One that is sent back as a header must be one. */
static peg_status take_id(struct peg__sse *sse, peg_str value, peg_error *reterr)
{
    for (size_t i = 0; i < value.len; i++) {
        if ((unsigned char)value.ptr[i] < ' ' || value.ptr[i] == 0x7F)
            return PEG_OK;
    }
    if (value.len > PEG_LIMIT_SSE_ID_BYTES)
        return PEG_OK;
    peg__buf_clear(&sse->next_id);
    peg__buf_str(&sse->next_id, value);
    sse->has_next_id = true;
    return check_buf(&sse->next_id, reterr);
}

/* An event that is cut off does not count: it comes again. */
static void commit_id(struct peg__sse *sse)
{
    const struct peg__buf last = sse->id;

    if (!sse->has_next_id)
        return;
    sse->id = sse->next_id;
    sse->next_id = last;
    sse->has_next_id = false;
}

/* Digits only, says the standard. */
static void take_retry(struct peg__sse *sse, peg_str value)
{
    int64_t ms = 0;

    if (!value.len || peg__str_span(value, "0123456789") != value.len)
        return;
    for (size_t i = 0; i < value.len && ms < PEG_LIMIT_RETRY_AFTER_MS; i++)
        ms = ms * 10 + (value.ptr[i] - '0');
    sse->retry_ms = ms < PEG_LIMIT_RETRY_AFTER_MS ? ms : PEG_LIMIT_RETRY_AFTER_MS;
}

static peg_status take_sse_field(struct peg__sse *sse, peg_str name, peg_str value,
                                 peg_error *reterr)
{
    if (peg__str_is(name, "id"))
        return take_id(sse, value, reterr);
    if (peg__str_is(name, "retry"))
        take_retry(sse, value);
    if (peg__str_is(name, "event")) {
        peg__buf_clear(&sse->event);
        peg__buf_str(&sse->event, value);
        return check_buf(&sse->event, reterr);
    }
    if (!peg__str_is(name, "data"))
        return PEG_OK;
    if (sse->has_data)
        peg__buf_putc(&sse->data, '\n');
    sse->has_data = true;
    peg__buf_str(&sse->data, value);
    return check_buf(&sse->data, reterr);
}

static peg_status take_sse_line(struct peg__sse *sse, peg_str line, const struct listener *to,
                                peg_error *reterr)
{
    static const peg_str bom = PEG_LIT("\xEF\xBB\xBF");
    const char *colon;
    peg_str value = {"", 0};

    if (!sse->is_past_start && peg__str_starts(line, bom))
        line = peg__str_from(line, bom.len);
    sse->is_past_start = true;
    if (!line.len) {
        commit_id(sse);
        return emit_event(sse, to, reterr);
    }
    colon = memchr(line.ptr, ':', line.len);
    if (colon) {
        value = peg__str_from(line, (size_t)(colon - line.ptr) + 1);
        line.len = (size_t)(colon - line.ptr);
    }
    if (value.len && value.ptr[0] == ' ')
        value = peg__str_from(value, 1);
    return take_sse_field(sse, line, value, reterr);
}

/* ---- bytes -------------------------------------------------------------------------- */

static size_t line_len(peg_str bytes)
{
    const char *lf = memchr(bytes.ptr, '\n', bytes.len);
    const size_t before_lf = lf ? (size_t)(lf - bytes.ptr) : bytes.len;
    const char *cr = memchr(bytes.ptr, '\r', before_lf);

    return cr ? (size_t)(cr - bytes.ptr) : before_lf;
}

/* A line that came whole is read where it is; else its pieces are put together. */
static peg_status end_sse_line(struct peg__sse *sse, peg_str piece, const struct listener *to,
                               peg_error *reterr)
{
    peg_status status;

    if (!sse->line.len && piece.len <= sse->line.max)
        return take_sse_line(sse, piece, to, reterr);
    peg__buf_str(&sse->line, piece);
    status = check_buf(&sse->line, reterr);
    if (!status)
        status = take_sse_line(sse, peg__buf_view(&sse->line), to, reterr);
    peg__buf_clear(&sse->line);
    return status;
}

peg_status peg__sse_feed(struct peg__sse *sse, peg_str bytes, peg__sse_fn fn, void *user,
                         peg_error *reterr)
{
    const struct listener to = {fn, user};

    while (bytes.len) {
        size_t len;
        peg_status status;

        if (sse->was_cr && bytes.ptr[0] == '\n')
            bytes = peg__str_from(bytes, 1);
        sse->was_cr = false;
        len = bytes.len ? line_len(bytes) : 0;
        if (len == bytes.len) {
            peg__buf_str(&sse->line, bytes);
            return check_buf(&sse->line, reterr);
        }
        sse->was_cr = bytes.ptr[len] == '\r';
        status = end_sse_line(sse, peg__strn(bytes.ptr, len), &to, reterr);
        if (status)
            return status;
        bytes = peg__str_from(bytes, len + 1);
    }
    return PEG_OK;
}

peg_status peg__sse_end(struct peg__sse *sse, peg__sse_fn fn, void *user, peg_error *reterr)
{
    const struct listener to = {fn, user};
    peg_status status = PEG_OK;

    if (sse->line.len)
        status = end_sse_line(sse, peg__strn("", 0), &to, reterr);
    return status ? status : emit_event(sse, &to, reterr);
}
