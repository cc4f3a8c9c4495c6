/* SPDX-License-Identifier: Apache-2.0 */

/* What stands in the headers of a request, and where it goes. */

#include <arpa/inet.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "mcp/client/internal.h"

/* ---- values ---- */

static bool is_plain_header(peg_str value)
{
    static const peg_str head = PEG_LIT("=?base64?");

    if (value.len && (peg__is_blank(value.ptr[0]) || peg__is_blank(value.ptr[value.len - 1])))
        return false;
    if (peg__str_starts(value, head) && !memcmp(value.ptr + value.len - 2, "?=", 2))
        return false; /* it would be taken for what it is not */
    for (size_t i = 0; i < value.len; i++) {
        const unsigned char c = (unsigned char)value.ptr[i];

        if ((c < ' ' && c != '\t') || c >= 0x7F)
            return false;
    }
    return true;
}

static void put_encoded(struct peg__buf *out, peg_str value)
{
    const size_t len = peg__base64_len(value.len);
    char *at;

    peg__buf_puts(out, "=?base64?");
    at = peg__buf_reserve(out, len);
    if (!at)
        return;
    peg__base64_encode(value, at);
    out->len += len;
    peg__buf_puts(out, "?=");
}

/* Curl leaves out what ends with a colon, and takes a semicolon for an empty value. */
void mcp__put_header(struct peg__buf *out, const char *name, peg_str value)
{
    peg__buf_puts(out, name);
    peg__buf_puts(out, value.len ? ": " : ";");
    if (is_plain_header(value))
        peg__buf_str(out, value);
    else
        put_encoded(out, value);
    peg__buf_putc(out, '\n');
}

bool mcp__is_header(const char *line)
{
    size_t n = 0;

    while (peg__is_alnum(line[n]) || (line[n] && strchr("!#$%&'*+-.^_`|~", line[n])))
        n++;
    if (!n || line[n] != ':')
        return false;
    for (const char *at = line; *at; at++) {
        if (((unsigned char)*at < ' ' && *at != '\t') || *at == 0x7F)
            return false;
    }
    return true;
}

/* ---- a request ---- */

static void put_modern(struct peg__buf *out, const struct mcp__exchange *x)
{
    mcp__put_header(out, "MCP-Protocol-Version", peg__str(MCP_VERSION_MODERN));
    mcp__put_header(out, "Mcp-Method", peg__str(x ? x->method : "subscriptions/listen"));
    if (x && x->name)
        mcp__put_header(out, "Mcp-Name", peg__str(x->name));
    if (x)
        peg__buf_str(out, x->headers);
}

/* Which version it is, is said from the answer to initialize on. */
static void put_legacy(struct peg__buf *out, const peg_mcp_client *client,
                       const struct mcp__request_http *r, const char *session)
{
    if (r->x && !strcmp(r->x->method, "initialize"))
        return;
    mcp__put_header(out, "MCP-Protocol-Version", peg__str(client->state.version));
    if (session[0])
        mcp__put_header(out, "Mcp-Session-Id", peg__str(session));
}

void mcp__write_headers(struct peg__buf *out, const peg_mcp_client *client,
                        const struct mcp__request_http *r, const char *session)
{
    const char *const *line = client->options.headers;

    peg__buf_puts(out, r->verb ? "Accept: text/event-stream\n"
                               : "Accept: application/json, text/event-stream\n");
    for (; line && *line; line++) {
        peg__buf_puts(out, *line);
        peg__buf_putc(out, '\n');
    }
    if (client->era == MCP_MODERN)
        put_modern(out, r->x);
    else
        put_legacy(out, client, r, session);
    if (r->verb && r->sse.id.len)
        mcp__put_header(out, "Last-Event-ID", peg__buf_view(&r->sse.id));
}

/* ---- the URL ---- */

static peg_status reject_url(peg_error *reterr, const char *why)
{
    peg__fail(reterr, PEG_EINVAL, "E_MCP", "url: %s", why);
    peg__error_where(reterr, peg__str("/url"));
    return PEG_EINVAL;
}

/* The host of what follows the scheme, without its port; empty if there is none. */
static peg_str read_host(peg_str authority)
{
    const char *end;

    if (authority.len && authority.ptr[0] == '[') {
        end = memchr(authority.ptr, ']', authority.len);
        return end ? peg__strn(authority.ptr, (size_t)(end - authority.ptr) + 1) : peg__strn("", 0);
    }
    end = memchr(authority.ptr, ':', authority.len);
    return end ? peg__strn(authority.ptr, (size_t)(end - authority.ptr)) : authority;
}

/* Forms of addresses that only some libraries know, such as 127.1, are names here. */
static bool is_host_name(peg_str host)
{
    char text[64];
    struct in_addr address;

    if (host.ptr[0] == '[')
        return false;
    if (host.len >= sizeof(text))
        return true;
    memcpy(text, host.ptr, host.len);
    text[host.len] = '\0';
    return strcmp(text, "localhost") != 0 && inet_pton(AF_INET, text, &address) != 1;
}

peg_status mcp__check_url(const char *url, bool *ret_is_name, peg_error *reterr)
{
    const char *rest = !strncmp(url, "http://", 7)    ? url + 7
                       : !strncmp(url, "https://", 8) ? url + 8
                                                      : NULL;
    peg_str host;

    if (!rest)
        return reject_url(reterr, "it begins with http:// or https://");
    if (strlen(url) > PEG_LIMIT_MCP_IMPORT_URL_BYTES)
        return reject_url(reterr, "it has more than 8 KiB");
    for (const char *at = url; *at; at++) {
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7F || *at == '\\')
            return reject_url(reterr, "it has characters that must be written as %XX");
    }
    host = peg__strn(rest, strcspn(rest, "/?#"));
    if (memchr(host.ptr, '@', host.len))
        return reject_url(reterr, "credentials belong into a header");
    host = read_host(host);
    if (!host.len)
        return reject_url(reterr, "it names no host");
    *ret_is_name = is_host_name(host);
    return PEG_OK;
}
