/* SPDX-License-Identifier: Apache-2.0 */

/* Server-sent events (the HTML standard, 9.2): lines of "field: value", and an empty one. */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "net/http/http.h"

peg_status net_http_begin_events(struct net_http_request *request, peg_error *reterr)
{
    /* nginx, which many put before a server, buffers a stream without this. */
    static const struct net_http_field fields[] = {
        {PEG_LIT("cache-control"), PEG_LIT("no-store")},
        {PEG_LIT("x-accel-buffering"), PEG_LIT("no")},
    };
    const struct net_http_answer answer = {
        .status = 200,
        .content_type = "text/event-stream",
        .fields = fields,
        .n_fields = sizeof(fields) / sizeof(fields[0]),
    };

    return net_http_begin(request, &answer, NET_HTTP_STREAM, reterr);
}

static bool is_line(const char *text)
{
    return !text || !strpbrk(text, "\r\n");
}

static void put_line(struct peg__buf *out, const char *field, peg_str value)
{
    peg__buf_puts(out, field);
    peg__buf_str(out, value);
    peg__buf_putc(out, '\n');
}

/* CRLF, LF and CR all end a line of an event. */
static void put_data(struct peg__buf *out, peg_str data)
{
    for (;;) {
        size_t n = 0;
        const char *end;

        while (n < data.len && data.ptr[n] != '\r' && data.ptr[n] != '\n')
            n++;
        put_line(out, "data: ", peg__strn(data.ptr, n));
        if (n == data.len)
            return;
        end = data.ptr + n;
        n += end[0] == '\r' && n + 1 < data.len && end[1] == '\n' ? 2 : 1;
        data = peg__str_from(data, n);
    }
}

peg_status net_http_send_event(struct net_http_request *request, const char *event, const char *id,
                               peg_str data, peg_error *reterr)
{
    struct peg__buf out = PEG__BUF(SIZE_MAX / 2);
    peg_status status;

    if (!is_line(event) || !is_line(id))
        return peg__fail(reterr, PEG_EINVAL, "E_HTTP_ANSWER",
                         "the name and the id of an event have no line breaks");
    if (event)
        put_line(&out, "event: ", peg__str(event));
    if (id)
        put_line(&out, "id: ", peg__str(id));
    put_data(&out, data);
    peg__buf_putc(&out, '\n');
    status =
        out.status ? peg__fail_nomem(reterr) : net_http_send(request, peg__buf_view(&out), reterr);
    peg__buf_free(&out);
    return status;
}

peg_status net_http_send_comment(struct net_http_request *request, peg_error *reterr)
{
    return net_http_send(request, (peg_str)PEG_LIT(":\n\n"), reterr);
}
