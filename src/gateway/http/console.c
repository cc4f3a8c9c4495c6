/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GET / and GET /console/{file}: the console, a page that uses the HTTP API like any other client.
 *
 * Everybody may have the files, which are the same for all: what the page shows comes from the API,
 * which asks for credentials. A browser keeps them, and asks each time whether they have changed.
 */

#include <stdio.h>
#include <string.h>

#include "base/text/str.h"
#include "gateway/http/console.h"
#include "gateway/http/internal.h"

/* Nothing inline, nothing of another host, no page around it, and text cannot become elements
 * (trusted types): what a provider wrote is shown and never run. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

static const struct gw_console_file *find_file(peg_str name)
{
    for (size_t i = 0; i < gw_n_console_files; i++) {
        if (peg__str_is(name, gw_console_files[i].name))
            return &gw_console_files[i];
    }
    return NULL;
}

/* Does a field with a list have this in it? Weights are not looked at: who sends "gzip;q=0" gets
 * what browsers ask for. */
static bool has_item(const struct net_http_request *request, const char *field, const char *item)
{
    const peg_str list = net_http_field(request, field);

    return list.len && memmem(list.ptr, list.len, item, strlen(item));
}

enum { ETAG_BYTES = 80 };

static peg_str write_etag(char etag[ETAG_BYTES], const struct gw_console_file *file, bool is_packed)
{
    const int len = snprintf(etag, ETAG_BYTES, "\"%s%s\"", file->digest, is_packed ? "-gzip" : "");

    return peg__strn(etag, (size_t)len);
}

static void send_file(struct net_http_request *request, const struct gw_console_file *file)
{
    const bool is_packed = has_item(request, "accept-encoding", "gzip");
    char etag[ETAG_BYTES];
    const struct net_http_field fields[] = {
        {PEG_LIT("etag"), write_etag(etag, file, is_packed)},
        {PEG_LIT("cache-control"), PEG_LIT("no-cache")},
        {PEG_LIT("vary"), PEG_LIT("accept-encoding")},
        {PEG_LIT("content-security-policy"), peg__str(policy)},
        {PEG_LIT("x-content-type-options"), PEG_LIT("nosniff")},
        {PEG_LIT("x-frame-options"), PEG_LIT("DENY")},
        {PEG_LIT("referrer-policy"), PEG_LIT("no-referrer")},
        {PEG_LIT("cross-origin-opener-policy"), PEG_LIT("same-origin")},
        {PEG_LIT("cross-origin-resource-policy"), PEG_LIT("same-origin")},
        {PEG_LIT("content-encoding"), PEG_LIT("gzip")}, /* the last: only if it is */
    };
    const size_t n_fields = sizeof(fields) / sizeof(fields[0]);
    struct net_http_answer answer = {
        .status = 200,
        .content_type = file->content_type,
        .fields = fields,
        .n_fields = is_packed ? n_fields : n_fields - 1,
    };
    peg_str body =
        is_packed ? peg__strn(file->packed, file->packed_len) : peg__strn(file->bytes, file->len);

    if (has_item(request, "if-none-match", etag)) {
        answer.status = 304;
        answer.content_type = NULL;
        answer.n_fields = n_fields - 1;
        body = peg__strn("", 0);
    }
    net_http_reply(request, &answer, body);
}

static void reply_with(struct net_http_request *request, const struct gw_node *node, peg_str name)
{
    const struct gw_console_file *file = node->http.has_console ? find_file(name) : NULL;

    if (file)
        send_file(request, file);
    else if (node->http.has_console)
        net_http_reply_text(request, 404, "the console has no such file");
    else
        net_http_reply_text(request, 404,
                            "the console is off (--no-console): the API is below /v1");
}

static void send_page(struct net_http_request *request, peg_str body, void *node)
{
    (void)body;
    reply_with(request, node, peg__str("index.html"));
}

static void send_part(struct net_http_request *request, peg_str body, void *node)
{
    (void)body;
    reply_with(request, node, request->params[0]);
}

const struct net_http_handler gw_console_page = {.on_request = send_page,
                                                 .max_body = GW_API_NO_BODY};
const struct net_http_handler gw_console_part = {.on_request = send_part,
                                                 .max_body = GW_API_NO_BODY};
