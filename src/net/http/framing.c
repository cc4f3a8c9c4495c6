/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where the body of a request ends (RFC 9112, 6 and 7.1). Each byte of a chunk's frame has one
 * meaning or is refused: sizes are hexadecimal digits alone, lines end with CRLF alone. Extensions
 * and trailers are checked, counted and dropped.
 */

#include "base/limits.h"
#include "base/text/str.h"
#include "net/http/internal.h"

enum { BAD_REQUEST = 400, CONTENT_TOO_LARGE = 413, FIELDS_TOO_LARGE = 431 };

void net_http_framing_begin(struct net_http_framing *framing, const struct net_http_head *head)
{
    *framing = (struct net_http_framing){0};
    if (head->is_chunked) {
        framing->state = NET_HTTP_CHUNK_SIZE;
    } else if (head->content_length > 0) {
        framing->state = NET_HTTP_LENGTH;
        framing->left = (uint64_t)head->content_length;
    }
}

/* ---- the size of a chunk ------------------------------------------------------------------- */

static int expect_byte(struct net_http_framing *framing, char c, char wanted,
                       enum net_http_framing_state next)
{
    framing->state = next;
    return c == wanted ? 0 : BAD_REQUEST;
}

static int take_digit(struct net_http_framing *framing, char c)
{
    enum { MAX_DIGITS = 15 }; /* no sum of sizes that a body may have is near it */
    const int digit = peg__hex_value(c);

    if (digit >= 0) {
        framing->left = framing->left << 4 | (unsigned)digit;
        return ++framing->n_digits <= MAX_DIGITS ? 0 : CONTENT_TOO_LARGE;
    }
    if (framing->n_digits == 0)
        return BAD_REQUEST;
    framing->n_digits = 0;
    framing->state = c == ';' ? NET_HTTP_CHUNK_EXTENSION : NET_HTTP_CHUNK_LF;
    return c == ';' || c == '\r' ? 0 : BAD_REQUEST;
}

/* ---- what is dropped ----------------------------------------------------------------------- */

static bool is_text(char c)
{
    return (unsigned char)c >= 0x20 ? c != 0x7F : c == '\t';
}

/* A byte of a line that is not used; at its end `next`. */
static int take_extra(struct net_http_framing *framing, char c, enum net_http_framing_state next)
{
    if (c == '\r') {
        framing->state = next;
        return 0;
    }
    if (!is_text(c))
        return BAD_REQUEST;
    return ++framing->n_extra <= PEG_LIMIT_NET_HTTP_CHUNK_EXTRA_BYTES ? 0 : FIELDS_TOO_LARGE;
}

static int take_trailer_name(struct net_http_framing *framing, char c)
{
    if (c == ':' && framing->state == NET_HTTP_TRAILER_NAME) {
        framing->state = NET_HTTP_TRAILER_VALUE;
        return 0;
    }
    if (c == '\r' && framing->state == NET_HTTP_TRAILER) {
        framing->state = NET_HTTP_LAST_LF;
        return 0;
    }
    framing->state = NET_HTTP_TRAILER_NAME;
    if (!net_http_is_token(peg__strn(&c, 1)))
        return BAD_REQUEST;
    return ++framing->n_extra <= PEG_LIMIT_NET_HTTP_CHUNK_EXTRA_BYTES ? 0 : FIELDS_TOO_LARGE;
}

/* ---- bytes --------------------------------------------------------------------------------- */

static int take_byte(struct net_http_framing *framing, char c)
{
    switch (framing->state) {
    case NET_HTTP_CHUNK_SIZE:
        return take_digit(framing, c);
    case NET_HTTP_CHUNK_EXTENSION:
        return take_extra(framing, c, NET_HTTP_CHUNK_LF);
    case NET_HTTP_CHUNK_LF:
        return expect_byte(framing, c, '\n',
                           framing->left ? NET_HTTP_CHUNK_DATA : NET_HTTP_TRAILER);
    case NET_HTTP_DATA_CR:
        return expect_byte(framing, c, '\r', NET_HTTP_DATA_LF);
    case NET_HTTP_DATA_LF:
        return expect_byte(framing, c, '\n', NET_HTTP_CHUNK_SIZE);
    case NET_HTTP_TRAILER:
    case NET_HTTP_TRAILER_NAME:
        return take_trailer_name(framing, c);
    case NET_HTTP_TRAILER_VALUE:
        return take_extra(framing, c, NET_HTTP_TRAILER_LF);
    case NET_HTTP_TRAILER_LF:
        return expect_byte(framing, c, '\n', NET_HTTP_TRAILER);
    case NET_HTTP_LAST_LF:
        return expect_byte(framing, c, '\n', NET_HTTP_NO_BODY);
    default:
        return BAD_REQUEST;
    }
}

static peg_str take_piece(struct net_http_framing *framing, peg_str *bytes)
{
    const size_t n = framing->left < bytes->len ? (size_t)framing->left : bytes->len;
    const peg_str piece = peg__strn(bytes->ptr, n);

    *bytes = peg__str_from(*bytes, n);
    framing->left -= n;
    if (framing->left == 0)
        framing->state = framing->state == NET_HTTP_LENGTH ? NET_HTTP_NO_BODY : NET_HTTP_DATA_CR;
    return piece;
}

int net_http_framing_next(struct net_http_framing *framing, peg_str *bytes, peg_str *ret_piece)
{
    *ret_piece = peg__strn("", 0);
    while (bytes->len > 0 && !net_http_framing_is_done(framing)) {
        int status;

        if (framing->state == NET_HTTP_LENGTH || framing->state == NET_HTTP_CHUNK_DATA) {
            *ret_piece = take_piece(framing, bytes);
            return 0;
        }
        status = take_byte(framing, bytes->ptr[0]);
        if (status)
            return status;
        *bytes = peg__str_from(*bytes, 1);
    }
    return 0;
}
