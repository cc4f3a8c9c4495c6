/* SPDX-License-Identifier: Apache-2.0 */

#include "grpc/http2/session.h"

#include <strings.h>

#include "base/text/str.h"

#define IS(s, literal)                                                                             \
    ((s).len == sizeof(literal) - 1 && memcmp((s).ptr, (literal), sizeof(literal) - 1) == 0)

/* ---- letters ------------------------------------------------------------------------------ */

/* A bit for each letter of ASCII. */
struct letters {
    uint64_t low;
    uint64_t high;
};

/* !#$%&'*+-.^_`|~ and digits: what a token of HTTP has beside letters. */
#define TOKEN_LOW UINT64_C(0x03ff6cfa00000000)
#define TOKEN_HIGH UINT64_C(0x50000001c0000000)
#define CAPITALS UINT64_C(0x0000000007fffffe)
#define SMALL UINT64_C(0x07fffffe00000000)

static const struct letters of_names = {TOKEN_LOW, TOKEN_HIGH | SMALL};
static const struct letters of_methods = {TOKEN_LOW, TOKEN_HIGH | CAPITALS | SMALL};
/* Letters, digits and +-. */
static const struct letters of_schemes = {UINT64_C(0x03ff680000000000), CAPITALS | SMALL};
/* Letters, digits and !$%&'()*+,-.:;=@[]_~ */
static const struct letters of_authorities = {UINT64_C(0x2fff7ff200000000),
                                              UINT64_C(0x40000000a8000001) | CAPITALS | SMALL};

static bool consists_of(peg_str s, struct letters letters)
{
    for (size_t i = 0; i < s.len; i++) {
        const uint8_t c = (uint8_t)s.ptr[i];

        if (c >= 128 || !((c < 64 ? letters.low >> c : letters.high >> (c - 64)) & 1))
            return false;
    }
    return true;
}

/* Everything but control characters; bytes above ASCII go through as they are. */
static bool is_text(peg_str s)
{
    unsigned n_bad = 0;

    for (size_t i = 0; i < s.len; i++) {
        const uint8_t c = (uint8_t)s.ptr[i];

        n_bad |= (unsigned)((c < ' ') & (c != '\t')) | (unsigned)(c == 127);
    }
    return n_bad == 0;
}

static bool is_path(peg_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        const uint8_t c = (uint8_t)s.ptr[i];

        if (c <= ' ' || c == 127)
            return false;
    }
    return s.len > 0 && (s.ptr[0] == '/' || IS(s, "*"));
}

static bool is_number(peg_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
    }
    return s.len > 0;
}

static bool is_scheme(peg_str s)
{
    return s.len > 0 && peg__is_letter(s.ptr[0]) && consists_of(s, of_schemes);
}

/* ---- kinds -------------------------------------------------------------------------------- */

static enum grpc_field_kind if_good(bool is_good, enum grpc_field_kind kind)
{
    return is_good ? kind : GRPC_FIELD_BAD;
}

static enum grpc_field_kind kind_of_pseudo(peg_str name, peg_str value)
{
    if (IS(name, ":path"))
        return if_good(is_path(value), GRPC_FIELD_PATH);
    if (IS(name, ":method"))
        return if_good(value.len > 0 && consists_of(value, of_methods), GRPC_FIELD_METHOD);
    if (IS(name, ":scheme"))
        return if_good(is_scheme(value), GRPC_FIELD_SCHEME);
    if (IS(name, ":authority"))
        return if_good(consists_of(value, of_authorities), GRPC_FIELD_AUTHORITY);
    if (IS(name, ":status"))
        return if_good(value.len == 3 && is_number(value), GRPC_FIELD_STATUS);
    return GRPC_FIELD_BAD;
}

/* Fields that are about the connection of HTTP/1.1. */
static bool is_of_connection(peg_str name)
{
    switch (name.len) {
    case 7:
        return IS(name, "upgrade");
    case 10:
        return IS(name, "connection") || IS(name, "keep-alive");
    case 16:
        return IS(name, "proxy-connection");
    case 17:
        return IS(name, "transfer-encoding");
    default:
        return false;
    }
}

enum grpc_field_kind grpc_field_kind_of(peg_str name, peg_str value)
{
    if (name.len == 0)
        return GRPC_FIELD_BAD;
    if (name.ptr[0] == ':')
        return kind_of_pseudo(name, value);
    value = grpc_field_trim(value);
    if (!consists_of(name, of_names) || is_of_connection(name) || !is_text(value))
        return GRPC_FIELD_BAD;
    if (IS(name, "te"))
        return if_good(value.len == 8 && strncasecmp(value.ptr, "trailers", 8) == 0,
                       GRPC_FIELD_PLAIN);
    if (IS(name, "host"))
        return if_good(consists_of(value, of_authorities), GRPC_FIELD_HOST);
    if (IS(name, "content-length"))
        return if_good(value.len < 19 && is_number(value), GRPC_FIELD_CONTENT_LENGTH);
    return GRPC_FIELD_PLAIN;
}

/* ---- blocks ------------------------------------------------------------------------------- */

void grpc_block_check_begin(struct grpc_block_check *check, enum grpc_block_kind kind)
{
    *check = (struct grpc_block_check){.kind = kind, .content_length = -1};
}

static int64_t to_number(peg_str s)
{
    int64_t n = 0;

    for (size_t i = 0; i < s.len; i++)
        n = n * 10 + (s.ptr[i] - '0');
    return n;
}

static bool may_be_in(const struct grpc_block_check *check, enum grpc_field_kind kind)
{
    if (kind < GRPC_FIELD_AUTHORITY)
        return true;
    if (check->has_plain || check->kind == GRPC_BLOCK_TRAILERS)
        return false;
    return (kind == GRPC_FIELD_STATUS) == (check->kind == GRPC_BLOCK_RESPONSE);
}

static void note(struct grpc_block_check *check, enum grpc_field_kind kind, peg_str value)
{
    switch (kind) {
    case GRPC_FIELD_METHOD:
        check->is_connect = IS(value, "CONNECT");
        check->is_options = IS(value, "OPTIONS");
        break;
    case GRPC_FIELD_PATH:
        check->is_star = value.ptr[0] == '*';
        break;
    case GRPC_FIELD_STATUS:
        check->http_status = (int)to_number(value);
        break;
    case GRPC_FIELD_CONTENT_LENGTH:
        check->content_length = to_number(value);
        break;
    default:
        break;
    }
}

bool grpc_block_check_add(struct grpc_block_check *check, enum grpc_field_kind kind, peg_str value)
{
    const unsigned bit = 1U << kind;

    if (kind == GRPC_FIELD_PLAIN) {
        check->has_plain = true;
        return true;
    }
    if (kind == GRPC_FIELD_BAD || (check->seen & bit) || !may_be_in(check, kind)) {
        check->is_bad = true;
        return false;
    }
    check->has_plain |= kind < GRPC_FIELD_AUTHORITY;
    check->seen |= (uint16_t)bit;
    note(check, kind, value);
    return true;
}

#define BIT(kind) (1U << (kind))

static bool is_request(const struct grpc_block_check *check)
{
    const unsigned needed = BIT(GRPC_FIELD_METHOD) | BIT(GRPC_FIELD_PATH) | BIT(GRPC_FIELD_SCHEME);

    /* A request need not name its authority (8.3.1), but for CONNECT (8.5). */
    if (check->is_connect)
        return (check->seen & needed) == BIT(GRPC_FIELD_METHOD) &&
               check->seen & BIT(GRPC_FIELD_AUTHORITY);
    return (check->seen & needed) == needed && (!check->is_star || check->is_options);
}

/* 101 changes the protocol, which HTTP/2 does not; 1xx have no length and end nothing. */
static bool is_response(const struct grpc_block_check *check, bool ends_stream)
{
    if (check->http_status < 100 || check->http_status == 101)
        return false;
    return check->http_status >= 200 || (!ends_stream && check->content_length < 0);
}

bool grpc_block_check_end(const struct grpc_block_check *check, bool ends_stream)
{
    if (check->is_bad)
        return false;
    switch (check->kind) {
    case GRPC_BLOCK_REQUEST:
        return is_request(check);
    case GRPC_BLOCK_RESPONSE:
        return is_response(check, ends_stream);
    case GRPC_BLOCK_TRAILERS:
        return ends_stream;
    default:
        return true;
    }
}
