/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads the head of a request, line by line, always from its start: it is below 8 KiB, and so there
 * is no state between two reads. Syntax is rejected in the order of the bytes, fields together when
 * the head is whole: the first bytes are never rejected for another reason than the whole.
 *
 * Also rejected are forms that RFC 9112 allows, where readers are known to disagree: folded lines,
 * LF without CR, empty lines before the request, bodies of GET.
 */

#include <string.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "net/http1/http1.h"

enum {
    OK = 0,
    BAD_REQUEST = 400,
    METHOD_NOT_ALLOWED = 405,
    CONTENT_TOO_LARGE = 413,
    EXPECTATION_FAILED = 417,
    FIELDS_TOO_LARGE = 431,
    NOT_IMPLEMENTED = 501,
    VERSION_NOT_SUPPORTED = 505,
};

struct reader {
    peg_str bytes; /* no more of them than a head may have */
    size_t at;
    bool is_1_0;
    bool needs_more;
    struct net_http1_request request;
};

/* ---- characters --------------------------------------------------------------------------- */

static bool is_token(peg_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];

        if (!peg__is_alnum(c) && (c == 0 || !strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return s.len > 0;
}

static bool is_same_word(peg_str a, const char *b)
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
    if (reader->bytes.len >= PEG_LIMIT_HTTP1_HEAD_BYTES)
        return FIELDS_TOO_LARGE;
    reader->needs_more = true;
    return OK;
}

/* ---- the first line ----------------------------------------------------------------------- */

static bool is_target(peg_str target)
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

static int read_version(struct reader *reader, peg_str version)
{
    static const peg_str start = PEG_LIT("HTTP/");
    const char *digits = version.ptr + start.len;

    if (version.len != 8 || !peg__str_starts(version, start) || digits[0] < '0' ||
        digits[0] > '9' || digits[1] != '.' || digits[2] < '0' || digits[2] > '9')
        return BAD_REQUEST;
    reader->is_1_0 = peg__str_is(version, "HTTP/1.0");
    return reader->is_1_0 || peg__str_is(version, "HTTP/1.1") ? OK : VERSION_NOT_SUPPORTED;
}

static int read_request_line(struct reader *reader)
{
    struct net_http1_request *request = &reader->request;
    peg_str rest = {0};
    int status = next_line(reader, &rest);

    if (status || reader->needs_more)
        return status;
    if (!cut_at(&rest, ' ', &request->method) || !is_token(request->method) ||
        !cut_at(&rest, ' ', &request->target))
        return BAD_REQUEST;
    status = read_version(reader, rest);
    if (status)
        return status;
    if (!peg__str_is(request->method, "GET") && !peg__str_is(request->method, "HEAD"))
        return METHOD_NOT_ALLOWED;
    if (!is_target(request->target))
        return BAD_REQUEST;

    request->query = request->target;
    if (!cut_at(&request->query, '?', &request->path)) {
        request->path = request->target;
        request->query = peg__strn(request->target.ptr + request->target.len, 0);
    }
    return OK;
}

/* ---- fields ------------------------------------------------------------------------------- */

static int read_field(struct net_http1_request *request, peg_str line)
{
    struct net_http1_field field = {.value = line};

    /* A folded line begins with a blank, which is in no token. */
    if (!cut_at(&field.value, ':', &field.name) || !is_token(field.name))
        return BAD_REQUEST;
    if (request->n_fields == NET_HTTP1_MAX_FIELDS)
        return FIELDS_TOO_LARGE;
    field.value = peg__str_trim(field.value, " \t");
    request->fields[request->n_fields++] = field;
    return OK;
}

static int read_fields(struct reader *reader)
{
    for (;;) {
        peg_str line = {0};
        int status = next_line(reader, &line);

        if (status || reader->needs_more || line.len == 0)
            return status;
        status = read_field(&reader->request, line);
        if (status)
            return status;
    }
}

/* ---- what the fields say ------------------------------------------------------------------ */

static const struct net_http1_field *find_http1_field(const struct net_http1_request *request,
                                                      const char *name, size_t *ret_n)
{
    const struct net_http1_field *found = NULL;
    size_t n = 0;

    for (size_t i = 0; i < request->n_fields; i++) {
        if (!is_same_word(request->fields[i].name, name))
            continue;
        if (n++ == 0)
            found = &request->fields[i];
    }
    *ret_n = n;
    return found;
}

static bool has_one_each(const struct net_http1_request *request)
{
    static const char *const names[] = {"host", "content-length", "transfer-encoding", "expect",
                                        "authorization"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t n;

        find_http1_field(request, names[i], &n);
        if (n > 1)
            return false;
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

static int check_host(const struct reader *reader)
{
    size_t n;
    const struct net_http1_field *host = find_http1_field(&reader->request, "host", &n);

    if (!host)
        return reader->is_1_0 ? OK : BAD_REQUEST;
    return is_host(host->value) ? OK : BAD_REQUEST;
}

/* There is no body, whatever length is given. */
static int check_body(const struct reader *reader)
{
    size_t n;
    const struct net_http1_field *encoding =
        find_http1_field(&reader->request, "transfer-encoding", &n);
    const struct net_http1_field *length = find_http1_field(&reader->request, "content-length", &n);
    bool is_zero = true;

    if (encoding)
        return length || reader->is_1_0 ? BAD_REQUEST : NOT_IMPLEMENTED;
    if (!length)
        return OK;
    for (size_t i = 0; i < length->value.len; i++) {
        const char c = length->value.ptr[i];

        if (c < '0' || c > '9')
            return BAD_REQUEST;
        is_zero &= c == '0';
    }
    if (length->value.len == 0)
        return BAD_REQUEST;
    return is_zero ? OK : CONTENT_TOO_LARGE;
}

static int check_expect(const struct reader *reader)
{
    size_t n;
    const struct net_http1_field *expect = find_http1_field(&reader->request, "expect", &n);

    return !expect || is_same_word(expect->value, "100-continue") ? OK : EXPECTATION_FAILED;
}

/* Is the word in one of the Connection fields, which are lists? */
static bool has_connection(const struct net_http1_request *request, const char *word)
{
    for (size_t i = 0; i < request->n_fields; i++) {
        peg_str rest = request->fields[i].value;
        peg_str part;

        if (!is_same_word(request->fields[i].name, "connection"))
            continue;
        while (cut_at(&rest, ',', &part)) {
            if (is_same_word(peg__str_trim(part, " \t"), word))
                return true;
        }
        if (is_same_word(peg__str_trim(rest, " \t"), word))
            return true;
    }
    return false;
}

static int check_together(struct reader *reader)
{
    struct net_http1_request *request = &reader->request;
    int status = has_one_each(request) ? check_host(reader) : BAD_REQUEST;

    if (!status)
        status = check_body(reader);
    if (!status)
        status = check_expect(reader);
    request->keeps_alive = !has_connection(request, "close") &&
                           (!reader->is_1_0 || has_connection(request, "keep-alive"));
    return status;
}

/* ---- the face ----------------------------------------------------------------------------- */

int net_http1_read(const uint8_t *bytes, size_t len, struct net_http1_request *ret_request,
                   size_t *ret_used)
{
    const size_t most = len < PEG_LIMIT_HTTP1_HEAD_BYTES ? len : PEG_LIMIT_HTTP1_HEAD_BYTES;
    struct reader reader = {.bytes = peg__strn(most ? (const char *)bytes : "", most)};
    int status = read_request_line(&reader);

    if (!status && !reader.needs_more)
        status = read_fields(&reader);
    if (!status && !reader.needs_more)
        status = check_together(&reader);
    if (status)
        return status;
    if (!reader.needs_more)
        *ret_request = reader.request;
    *ret_used = reader.needs_more ? 0 : reader.at;
    return OK;
}

peg_str net_http1_field(const struct net_http1_request *request, const char *name)
{
    size_t n;
    const struct net_http1_field *field = find_http1_field(request, name, &n);

    return field ? field->value : peg__strn("", 0);
}
