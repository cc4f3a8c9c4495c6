/* SPDX-License-Identifier: Apache-2.0 */

/* The endpoint of a collector. As OTEL_EXPORTER_OTLP_ENDPOINT it is a base, to which /v1/traces is
 * added; one that has it already is taken as it is. */

#include <stdio.h>

#include "base/error.h"
#include "base/text/str.h"
#include "otlp/internal.h"

static peg_status reject_url(const char *text, const char *why, peg_error *reterr)
{
    return peg__fail(reterr, PEG_EINVAL, "E_OTLP",
                     "the OTLP endpoint '%.120s' %s: write http://HOST:PORT, such as "
                     "http://localhost:4318",
                     text, why);
}

static bool has_url_characters(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text >= 0x7f)
            return false;
    return true;
}

/* host, host:port, [ipv6] or [ipv6]:port. */
static bool has_port(peg_str authority)
{
    const char *colon = memrchr(authority.ptr, ':', authority.len);
    const char *bracket = memrchr(authority.ptr, ']', authority.len);

    return colon && (!bracket || colon > bracket);
}

static bool read_authority(peg_str authority, struct otlp__url *url)
{
    char text[sizeof(url->authority) + 8];
    const unsigned port = url->is_tls ? 443 : 80;

    if (!authority.len || authority.len >= sizeof(url->authority) ||
        memchr(authority.ptr, '@', authority.len))
        return false;
    snprintf(url->authority, sizeof(url->authority), "%.*s", PEG_ARG(authority));
    if (has_port(authority))
        snprintf(text, sizeof(text), "%s", url->authority);
    else
        snprintf(text, sizeof(text), "%s:%u", url->authority, port);
    return !net_endpoint_parse(peg__str(text), &url->endpoint, NULL) && !url->endpoint.is_unix &&
           url->endpoint.host[0] && url->endpoint.port;
}

static void read_path(peg_str path, struct otlp__url *url)
{
    static const peg_str suffix = PEG_LIT("/v1/traces");

    while (path.len && path.ptr[path.len - 1] == '/')
        path.len--;
    if (path.len >= suffix.len && peg__str_eq(peg__str_from(path, path.len - suffix.len), suffix))
        path.len -= suffix.len;
    snprintf(url->path, sizeof(url->path), "%.*s%s", PEG_ARG(path), suffix.ptr);
}

peg_status otlp__url_parse(const char *text, struct otlp__url *ret_url, peg_error *reterr)
{
    static const peg_str schemes[] = {PEG_LIT("http://"), PEG_LIT("https://")};
    struct otlp__url url = {.is_tls = peg__str_starts(peg__str(text), schemes[1])};
    const peg_str scheme = schemes[url.is_tls];
    peg_str rest = peg__str(text);
    size_t n;

    if (rest.len > PEG_LIMIT_OTLP_URL_BYTES)
        return reject_url(text, "is longer than 1024 bytes (PEG_LIMIT_OTLP_URL_BYTES)", reterr);
    if (!peg__str_starts(rest, scheme))
        return reject_url(text, "does not begin with http:// or https://", reterr);
    if (!has_url_characters(text) || strpbrk(text, "?#"))
        return reject_url(text, "has a query, a fragment, or characters that no URL has", reterr);
    rest = peg__str_from(rest, scheme.len);
    n = strcspn(rest.ptr, "/");
    if (!read_authority(peg__strn(rest.ptr, n), &url))
        return reject_url(text, "names no host, or has a port that is none", reterr);
    read_path(peg__str_from(rest, n), &url);
    *ret_url = url;
    return PEG_OK;
}
