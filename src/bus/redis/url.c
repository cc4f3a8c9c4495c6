/* SPDX-License-Identifier: Apache-2.0 */

/* No message shows the text: a password may be anywhere in it, above all where it is malformed. */

#include "bus/redis/url.h"

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"

enum { MAX_DB = 1 << 20, DEFAULT_PORT = 6379, PATH_TEXT = 512 };

static const peg_str plain_scheme = PEG_LIT("redis://");
static const peg_str tls_scheme = PEG_LIT("rediss://");
static const peg_str unix_scheme = PEG_LIT("unix://");

static peg_status reject(peg_error *reterr, const char *why)
{
    return peg__fail(reterr, PEG_EPARSE, "E_REDIS_URL",
                     "the address of Redis (REDIS_URL) is malformed: %s; write host:port, "
                     "redis://user:password@host:port/db, rediss://... or unix:///path",
                     why);
}

/* What stands before and behind the first (or last) such character; false: it is not there. */
static bool split_at(peg_str text, char c, bool is_last, peg_str *ret_before, peg_str *ret_behind)
{
    const char *at = NULL;

    if (text.len)
        at = is_last ? (const char *)memrchr(text.ptr, c, text.len)
                     : (const char *)memchr(text.ptr, c, text.len);
    if (!at)
        return false;
    *ret_before = peg__strn(text.ptr, (size_t)(at - text.ptr));
    *ret_behind = peg__str_from(text, (size_t)(at - text.ptr) + 1);
    return true;
}

/* Percent-decoded and with a NUL. False: malformed, or too long, or it has a NUL itself. */
static bool decode_text(peg_str text, char *ret_text, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (c == '%') {
            const int high = i + 2 < text.len ? peg__hex_value(text.ptr[i + 1]) : -1;
            const int low = high >= 0 ? peg__hex_value(text.ptr[i + 2]) : -1;

            if (low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (c == '\0' || n + 1 >= size)
            return false;
        ret_text[n++] = c;
    }
    ret_text[n] = '\0';
    return true;
}

static bool read_db(peg_str text, unsigned *ret_db)
{
    unsigned db = 0;

    if (text.len == 0)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!peg__is_digit(text.ptr[i]))
            return false;
        db = db * 10 + (unsigned)(text.ptr[i] - '0');
        if (db > MAX_DB)
            return false;
    }
    *ret_db = db;
    return true;
}

/* Takes `?db=N` off the end of the text. */
static peg_status take_query(peg_str *text, struct redis_url *url, peg_error *reterr)
{
    static const peg_str name = PEG_LIT("db=");
    peg_str query;

    if (!split_at(*text, '?', false, text, &query))
        return PEG_OK;
    if (!peg__str_starts(query, name) || !read_db(peg__str_from(query, name.len), &url->db))
        return reject(reterr, "only ?db=NUMBER may follow");
    return PEG_OK;
}

/* Takes `user:password@` off its beginning. */
static peg_status take_user(peg_str *text, struct redis_url *url, peg_error *reterr)
{
    peg_str user;
    peg_str password = {NULL, 0};

    if (!split_at(*text, '@', true, &user, text))
        return PEG_OK;
    url->has_password = split_at(user, ':', false, &user, &password);
    if (!decode_text(user, url->user, sizeof(url->user)) ||
        !decode_text(password, url->password, sizeof(url->password)))
        return reject(reterr, "user or password is too long, or has a '%' without two "
                              "hexadecimal digits (write %25 for it)");
    return PEG_OK;
}

static bool has_port(peg_str host)
{
    const char *colon = host.len ? (const char *)memrchr(host.ptr, ':', host.len) : NULL;
    const char *bracket = host.len ? (const char *)memrchr(host.ptr, ']', host.len) : NULL;

    return colon && (!bracket || bracket < colon);
}

static peg_status read_host(peg_str host, struct redis_url *url, peg_error *reterr)
{
    char text[NET_HOST_BYTES + 16];
    peg_error error;

    if (host.len == 0 || host.len >= NET_HOST_BYTES)
        return reject(reterr, "the host is missing or too long");
    snprintf(text, sizeof(text), has_port(host) ? PEG_FMT : PEG_FMT ":%d", PEG_ARG(host),
             DEFAULT_PORT);
    if (net_endpoint_parse(peg__str(text), &url->endpoint, &error) || url->endpoint.is_unix ||
        url->endpoint.port == 0)
        return reject(reterr, "the host or its port is wrong");
    if (url->endpoint.host[0] == '\0')
        snprintf(url->endpoint.host, sizeof(url->endpoint.host), "localhost");
    return PEG_OK;
}

static peg_status read_tcp(peg_str text, struct redis_url *url, peg_error *reterr)
{
    peg_str db;
    peg_status status = take_user(&text, url, reterr);

    if (!status)
        status = take_query(&text, url, reterr);
    if (status)
        return status;
    if (split_at(text, '/', false, &text, &db) && db.len && !read_db(db, &url->db))
        return reject(reterr, "behind the host stands the number of a database");
    return read_host(text, url, reterr);
}

static peg_status read_unix(peg_str text, struct redis_url *url, peg_error *reterr)
{
    char path[PATH_TEXT] = "unix:";
    peg_status status = take_query(&text, url, reterr);

    if (!status && text.len && text.ptr[0] != '/')
        status = take_user(&text, url, reterr);
    if (status)
        return status;
    if (text.len == 0 || text.ptr[0] != '/')
        return reject(reterr, "the path of a unix socket begins with a slash");
    if (!decode_text(text, path + 5, sizeof(path) - 5) ||
        net_endpoint_parse(peg__str(path), &url->endpoint, NULL))
        return reject(reterr, "the path of a unix socket is too long or malformed");
    return PEG_OK;
}

static bool take_scheme(peg_str *text, peg_str scheme)
{
    if (!peg__str_starts(*text, scheme))
        return false;
    *text = peg__str_from(*text, scheme.len);
    return true;
}

static peg_status read_any(peg_str text, struct redis_url *url, peg_error *reterr)
{
    if (take_scheme(&text, unix_scheme))
        return read_unix(text, url, reterr);
    url->is_tls = take_scheme(&text, tls_scheme);
    if (url->is_tls || take_scheme(&text, plain_scheme))
        return read_tcp(text, url, reterr);
    if (memmem(text.ptr, text.len, "://", 3))
        return reject(reterr, "the scheme is none of redis, rediss, unix");
    return read_host(text, url, reterr);
}

peg_status redis_url_parse(const char *text, const char *password, struct redis_url *ret_url,
                           peg_error *reterr)
{
    struct redis_url url = {.db = 0};
    peg_status status;

    if (!text || !text[0] || strlen(text) > PEG_LIMIT_REDIS_URL_BYTES)
        return reject(reterr, "it is empty or too long");
    status = read_any(peg__str(text), &url, reterr);
    if (status)
        return status;
    if (!url.has_password && password && password[0]) {
        if (strlen(password) >= sizeof(url.password))
            return reject(reterr, "the password (REDIS_PASSWORD) is too long");
        snprintf(url.password, sizeof(url.password), "%s", password);
        url.has_password = true;
    }
    *ret_url = url;
    return PEG_OK;
}
