/* SPDX-License-Identifier: Apache-2.0 */

/* Runs for every field of every call: names differ by their length and one comparison, and values
 * that nearly every call has ("POST", "application/grpc") are not copied. */

#include "grpc/http2/http2.h"

#include <strings.h>

#include "base/error.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "grpc/status.h"

#define IS(s, literal)                                                                             \
    ((s).len == sizeof(literal) - 1 && memcmp((s).ptr, (literal), sizeof(literal) - 1) == 0)

static const peg_str post = PEG_LIT("POST");
static const peg_str grpc_type = PEG_LIT("application/grpc");
static const peg_str gzip_name = PEG_LIT("gzip");
static const peg_str identity_name = PEG_LIT("identity");

void grpc_head_init(struct grpc_head *head, struct peg__arena *arena, size_t max_bytes)
{
    *head = (struct grpc_head){.arena = arena, .max_bytes = max_bytes, .timeout_ns = -1};
}

/* ---- values --------------------------------------------------------------------------------- */

/* The first of several fields of one name counts. */
static peg_status keep_text(struct grpc_head *head, peg_str value, peg_str *ret_value,
                            peg_error *reterr)
{
    char *copy;

    if (ret_value->ptr)
        return PEG_OK;
    copy = peg__arena_copy(head->arena, value);
    if (!copy)
        return peg__fail_nomem(reterr);
    *ret_value = peg__strn(copy, value.len);
    return PEG_OK;
}

/* The same for a value that is nearly always `usual`, which is static. */
static peg_status keep_usual(struct grpc_head *head, peg_str value, peg_str usual,
                             peg_str *ret_value, peg_error *reterr)
{
    if (!peg__str_eq(value, usual))
        return keep_text(head, value, ret_value, reterr);
    if (!ret_value->ptr)
        *ret_value = usual;
    return PEG_OK;
}

static int parse_http_status(peg_str value)
{
    int status = 0;

    if (value.len != 3)
        return 0;
    for (size_t i = 0; i < 3; i++) {
        if (value.ptr[i] < '0' || value.ptr[i] > '9')
            return 0;
        status = status * 10 + (value.ptr[i] - '0');
    }
    return status;
}

static bool lists_gzip(peg_str list)
{
    size_t at = 0;

    while (at < list.len) {
        size_t end = at;
        size_t next;

        while (end < list.len && list.ptr[end] != ',')
            end++;
        next = end + 1;
        while (at < end && list.ptr[at] == ' ')
            at++;
        while (end > at && list.ptr[end - 1] == ' ')
            end--;
        if (end - at == gzip_name.len && memcmp(list.ptr + at, gzip_name.ptr, gzip_name.len) == 0)
            return true;
        at = next;
    }
    return false;
}

static peg_status set_encoding(struct grpc_head *head, peg_str value, peg_error *reterr)
{
    const bool is_gzip = peg__str_eq(value, gzip_name);
    peg_status status;

    if (head->encoding_name.ptr)
        return PEG_OK;
    status =
        keep_usual(head, value, is_gzip ? gzip_name : identity_name, &head->encoding_name, reterr);
    if (status)
        return status;
    if (is_gzip)
        head->encoding = GRPC_GZIP;
    else if (head->encoding_name.ptr != identity_name.ptr)
        head->encoding = GRPC_ENCODING_UNKNOWN;
    return PEG_OK;
}

static void set_timeout(struct grpc_head *head, peg_str value)
{
    if (head->timeout_ns < 0 && !head->has_bad_timeout)
        head->has_bad_timeout = !grpc_timeout_parse(value, &head->timeout_ns);
}

static void set_status(struct grpc_head *head, peg_str value)
{
    if (head->has_status)
        return;
    head->has_status = true;
    head->code = grpc_code_from_wire(value);
}

static peg_status set_message(struct grpc_head *head, peg_str value, peg_error *reterr)
{
    char *text;

    if (head->message.ptr)
        return PEG_OK;
    text = peg__arena_alloc(head->arena, 3 * value.len + 1);
    if (!text)
        return peg__fail_nomem(reterr);
    head->message = peg__strn(text, grpc_percent_decode(value, text));
    return PEG_OK;
}

static peg_status set_details(struct grpc_head *head, peg_str value, peg_error *reterr)
{
    char *bytes;
    size_t len;

    if (head->details.ptr)
        return PEG_OK;
    bytes = peg__arena_alloc(head->arena, peg__base64_bytes(value.len));
    if (!bytes)
        return peg__fail_nomem(reterr);
    if (!peg__base64_decode(value, bytes, &len))
        return peg__fail(reterr, PEG_EPARSE, "E_METADATA",
                         "grpc-status-details-bin is not base 64; correct the peer");
    head->details = peg__strn(bytes, len);
    return PEG_OK;
}

/* ---- fields --------------------------------------------------------------------------------- */

static peg_status add_pseudo(struct grpc_head *head, peg_str name, peg_str value, peg_error *reterr)
{
    switch (name.len) {
    case 5:
        return IS(name, ":path") ? keep_text(head, value, &head->path, reterr) : PEG_OK;
    case 7:
        if (IS(name, ":method"))
            return keep_usual(head, value, post, &head->method, reterr);
        if (IS(name, ":status") && !head->http_status)
            head->http_status = parse_http_status(value);
        return PEG_OK;
    case 10:
        return IS(name, ":authority") ? keep_text(head, value, &head->authority, reterr) : PEG_OK;
    default: /* :scheme says nothing that we need */
        return PEG_OK;
    }
}

static peg_status add_head_metadata(struct grpc_head *head, peg_str name, peg_str value,
                                    peg_error *reterr)
{
    if (!grpc_metadata_is_ours(name))
        return PEG_OK;
    return grpc_metadata_add_wire(&head->metadata, head->arena, name, value, reterr);
}

/* Those that begin with "grpc-". */
static peg_status add_grpc(struct grpc_head *head, peg_str name, peg_str value, peg_error *reterr)
{
    switch (name.len) {
    case 11:
        if (IS(name, "grpc-status"))
            set_status(head, value);
        return PEG_OK;
    case 12:
        if (IS(name, "grpc-timeout"))
            set_timeout(head, value);
        else if (IS(name, "grpc-message"))
            return set_message(head, value, reterr);
        return PEG_OK;
    case 20:
        if (IS(name, "grpc-accept-encoding") && !head->accepts_gzip)
            head->accepts_gzip = lists_gzip(value);
        return PEG_OK;
    case 23:
        return IS(name, "grpc-status-details-bin") ? set_details(head, value, reterr) : PEG_OK;
    default:
        if (IS(name, "grpc-encoding"))
            return set_encoding(head, value, reterr);
        return add_head_metadata(head, name, value, reterr);
    }
}

static peg_status add_field(struct grpc_head *head, peg_str name, peg_str value, peg_error *reterr)
{
    switch (name.len) {
    case 2:
        if (!IS(name, "te"))
            break;
        head->has_te_trailers |= value.len == 8 && strncasecmp(value.ptr, "trailers", 8) == 0;
        return PEG_OK;
    case 4:
        /* HTTP/2 allows it in place of :authority, which comes before it if it comes. */
        return IS(name, "host") ? keep_text(head, value, &head->authority, reterr)
                                : add_head_metadata(head, name, value, reterr);
    case 10:
        return IS(name, "user-agent") ? keep_text(head, value, &head->user_agent, reterr)
                                      : add_head_metadata(head, name, value, reterr);
    case 12:
        return IS(name, "content-type")
                   ? keep_usual(head, value, grpc_type, &head->content_type, reterr)
                   : add_head_metadata(head, name, value, reterr);
    default:
        break;
    }
    return add_head_metadata(head, name, value, reterr);
}

peg_status grpc_head_add(struct grpc_head *head, peg_str name, peg_str value, peg_error *reterr)
{
    const size_t n_bytes = grpc_metadata_wire_bytes(name, value);
    peg_status status;

    if (n_bytes > head->max_bytes - head->n_bytes)
        return peg__fail(reterr, PEG_ELIMIT, "E_METADATA",
                         "the headers have more than max_header_bytes = %zu bytes; send less "
                         "metadata or raise it",
                         head->max_bytes);
    if (name.len >= 5 && memcmp(name.ptr, "grpc-", 5) == 0)
        status = add_grpc(head, name, value, reterr);
    else if (name.len > 0 && name.ptr[0] == ':')
        status = add_pseudo(head, name, value, reterr);
    else
        status = add_field(head, name, value, reterr);
    if (!status)
        head->n_bytes += n_bytes;
    return status;
}

bool grpc_head_is_grpc(const struct grpc_head *head)
{
    const peg_str type = head->content_type;

    if (type.ptr == grpc_type.ptr)
        return true;
    if (type.len < grpc_type.len || strncasecmp(type.ptr, grpc_type.ptr, grpc_type.len) != 0)
        return false;
    return type.len == grpc_type.len || type.ptr[grpc_type.len] == '+' ||
           type.ptr[grpc_type.len] == ';';
}
