/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the head of a request, line by line, always from its start: it is below 16 KiB, and so
 * there is no state between two reads. Syntax is rejected in the order of the bytes, fields
 * together when the head is whole: the first bytes are never rejected for another reason than the
 * whole.
 *
 * Also rejected are forms that RFC 9112 allows, where readers are known to disagree: folded lines,
 * LF without CR, empty lines before the request, codings beside chunked.
 */

#include <string.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "net/http/internal.h"

enum {
    OK = 0,
    BAD_REQUEST = 400,
    CONTENT_TOO_LARGE = 413,
    EXPECTATION_FAILED = 417,
    FIELDS_TOO_LARGE = 431,
    NOT_IMPLEMENTED = 501,
    VERSION_NOT_SUPPORTED = 505,
};

struct reader {
    peg_str bytes; /* no more of them than a head may have */
    size_t at;
    bool needs_more;
    struct net_http_head *head;
};

/* ---- characters --------------------------------------------------------------------------- */

bool net_http_is_token(peg_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];

        if (!peg__is_alnum(c) && (c == 0 || !strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return s.len > 0;
}

bool net_http_is_same_word(peg_str a, const char *b)
{
    if (a.len != strlen(b))
        return false;
    for (size_t i = 0; i < a.len; i++) {
        if (peg__to_lower(a.ptr[i]) != peg__to_lower(b[i]))
            return false;
    }
    return true;
}

/* What comes before the first `end`; *rest is what comes after it. False if there is none. */
static bool cut_at(peg_str *rest, char end, peg_str *ret_part)
{
    const char *found = rest->len ? memchr(rest->ptr, end, rest->len) : NULL;

    if (!found)
        return false;
    *ret_part = peg__strn(rest->ptr, (size_t)(found - rest->ptr));
    *rest = peg__str_from(*rest, ret_part->len + 1);
    return true;
}

/* ---- lines -------------------------------------------------------------------------------- */

/* The next line without its CRLF. */
static int next_line(struct reader *reader, peg_str *ret_line)
{
    const peg_str rest = peg__str_from(reader->bytes, reader->at);

    for (size_t i = 0; i < rest.len; i++) {
        const unsigned char c = (unsigned char)rest.ptr[i];

        if (c == '\r' && i + 1 == rest.len)
            break;
        if (c == '\r' && rest.ptr[i + 1] == '\n') {
            *ret_line = peg__strn(rest.ptr, i);
            reader->at += i + 2;
            return OK;
        }
        if ((c < 0x20 && c != '\t') || c == 0x7F)
            return BAD_REQUEST;
    }
    if (reader->bytes.len >= PEG_LIMIT_NET_HTTP_HEAD_BYTES)
        return FIELDS_TOO_LARGE;
    reader->needs_more = true;
    return OK;
}

/* ---- the first line ----------------------------------------------------------------------- */

bool net_http_is_target(peg_str target)
{
    for (size_t i = 0; i < target.len; i++) {
        const char c = target.ptr[i];

        if (c <= 0x20 || c >= 0x7F || strchr("\"#<>\\^`{|}", c))
            return false;
        if (c != '%')
            continue;
        if (target.len - i < 3 || peg__hex_value(target.ptr[i + 1]) < 0 ||
            peg__hex_value(target.ptr[i + 2]) < 0)
            return false;
    }
    return target.len > 0 && target.ptr[0] == '/';
}

static int read_version(struct net_http_head *head, peg_str version)
{
    static const peg_str start = PEG_LIT("HTTP/");
    const char *digits = version.ptr + start.len;

    if (version.len != 8 || !peg__str_starts(version, start) || !peg__is_digit(digits[0]) ||
        digits[1] != '.' || !peg__is_digit(digits[2]))
        return BAD_REQUEST;
    head->is_1_0 = peg__str_is(version, "HTTP/1.0");
    return head->is_1_0 || peg__str_is(version, "HTTP/1.1") ? OK : VERSION_NOT_SUPPORTED;
}

static int read_request_line(struct reader *reader)
{
    struct net_http_head *head = reader->head;
    peg_str rest = {0};
    int status = next_line(reader, &rest);

    if (status || reader->needs_more)
        return status;
    if (!cut_at(&rest, ' ', &head->method) || !net_http_is_token(head->method) ||
        !cut_at(&rest, ' ', &head->target))
        return BAD_REQUEST;
    status = read_version(head, rest);
    if (!status && !net_http_is_target(head->target))
        status = BAD_REQUEST;
    return status;
}

/* ---- fields ------------------------------------------------------------------------------- */

static int read_field(struct net_http_head *head, peg_str line)
{
    struct net_http_field field = {.value = line};

    /* A folded line begins with a blank, which is in no token, nor is one before the colon. */
    if (!cut_at(&field.value, ':', &field.name) || !net_http_is_token(field.name))
        return BAD_REQUEST;
    if (head->n_fields == NET_HTTP_MAX_FIELDS)
        return FIELDS_TOO_LARGE;
    field.value = peg__str_trim(field.value, " \t");
    head->fields[head->n_fields++] = field;
    return OK;
}

static int read_fields(struct reader *reader)
{
    for (;;) {
        peg_str line = {0};
        int status = next_line(reader, &line);

        if (status || reader->needs_more || line.len == 0)
            return status;
        status = read_field(reader->head, line);
        if (status)
            return status;
    }
}

/* ---- what the fields say ------------------------------------------------------------------ */

/* The fields that decide where the request ends, and for whom it is; NULL: it did not come. */
struct known {
    const peg_str *host;
    const peg_str *length;
    const peg_str *encoding;
    const peg_str *expect;
};

/* False: one of them came twice. */
static bool find_known(const struct net_http_head *head, struct known *ret_known)
{
    const struct {
        const char *name;
        const peg_str **value;
    } names[] = {
        {"host", &ret_known->host},
        {"content-length", &ret_known->length},
        {"transfer-encoding", &ret_known->encoding},
        {"expect", &ret_known->expect},
    };

    for (size_t i = 0; i < head->n_fields; i++) {
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
            if (!net_http_is_same_word(head->fields[i].name, names[k].name))
                continue;
            if (*names[k].value)
                return false;
            *names[k].value = &head->fields[i].value;
        }
    }
    return true;
}

/* A name, an address, a port: no path and no user can hide in it. */
static bool is_host(peg_str host)
{
    for (size_t i = 0; i < host.len; i++) {
        const unsigned char c = (unsigned char)host.ptr[i];

        if (!peg__is_alnum(c) && (c == 0 || !strchr("-._~%:[]", c)))
            return false;
    }
    return true;
}

static int check_host(const struct net_http_head *head, const peg_str *host)
{
    if (!host)
        return head->is_1_0 ? OK : BAD_REQUEST;
    return is_host(*host) ? OK : BAD_REQUEST;
}

/* Digits alone: "+5", "5, 5" and "0x5" are read differently by different readers. */
static int read_length(struct net_http_head *head, peg_str text)
{
    enum { MAX_DIGITS = 18 };
    int64_t length = 0;

    if (text.len == 0)
        return BAD_REQUEST;
    for (size_t i = 0; i < text.len; i++) {
        if (!peg__is_digit(text.ptr[i]))
            return BAD_REQUEST;
        if (i < MAX_DIGITS)
            length = length * 10 + (text.ptr[i] - '0');
    }
    head->content_length = length;
    return text.len > MAX_DIGITS ? CONTENT_TOO_LARGE : OK;
}

static int read_body_length(struct net_http_head *head, const struct known *known)
{
    head->content_length = -1;
    head->is_chunked = known->encoding != NULL;
    if (known->encoding && (known->length || head->is_1_0))
        return BAD_REQUEST;
    if (known->encoding)
        return net_http_is_same_word(*known->encoding, "chunked") ? OK : NOT_IMPLEMENTED;
    return known->length ? read_length(head, *known->length) : OK;
}

static int read_expect(struct net_http_head *head, const peg_str *expect)
{
    if (!expect)
        return OK;
    head->awaits_continue = !head->is_1_0; /* which does not know it */
    return net_http_is_same_word(*expect, "100-continue") ? OK : EXPECTATION_FAILED;
}

/* Is the word in one of the Connection fields, which are lists? */
static bool has_connection(const struct net_http_head *head, const char *word)
{
    for (size_t i = 0; i < head->n_fields; i++) {
        peg_str rest = head->fields[i].value;
        peg_str part;

        if (!net_http_is_same_word(head->fields[i].name, "connection"))
            continue;
        while (cut_at(&rest, ',', &part)) {
            if (net_http_is_same_word(peg__str_trim(part, " \t"), word))
                return true;
        }
        if (net_http_is_same_word(peg__str_trim(rest, " \t"), word))
            return true;
    }
    return false;
}

static int check_together(struct net_http_head *head)
{
    struct known known = {0};
    int status = find_known(head, &known) ? check_host(head, known.host) : BAD_REQUEST;

    if (!status)
        status = read_body_length(head, &known);
    if (!status)
        status = read_expect(head, known.expect);
    head->keeps_alive =
        !has_connection(head, "close") && (!head->is_1_0 || has_connection(head, "keep-alive"));
    return status;
}

/* ---- the face ----------------------------------------------------------------------------- */

int net_http_head_read(peg_str bytes, struct net_http_head *ret_head, size_t *ret_used)
{
    const size_t most = bytes.len < PEG_LIMIT_NET_HTTP_HEAD_BYTES
                            ? bytes.len
                            : (size_t)PEG_LIMIT_NET_HTTP_HEAD_BYTES;
    struct reader reader = {.bytes = peg__strn(bytes.ptr, most), .head = ret_head};
    int status;

    memset(ret_head, 0, offsetof(struct net_http_head, fields));
    status = read_request_line(&reader);
    if (!status && !reader.needs_more)
        status = read_fields(&reader);
    if (!status && !reader.needs_more)
        status = check_together(ret_head);
    if (!status)
        *ret_used = reader.needs_more ? 0 : reader.at;
    return status;
}
