/* SPDX-License-Identifier: Apache-2.0 */

#include "schema/compile/compile.h"

#include <string.h>

#include "base/text/str.h"

struct parts {
    peg_str scheme;    /* with ':' */
    peg_str authority; /* with '//' */
    peg_str path;
    peg_str query; /* with '?' */
};

static size_t find_stop(peg_str s, size_t start, const char *stops)
{
    while (start < s.len && (s.ptr[start] == '\0' || !strchr(stops, s.ptr[start])))
        start++;
    return start;
}

static bool is_scheme(peg_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        const bool letter = peg__is_letter(c);

        if (!letter && (i == 0 || !(peg__is_digit(c) || c == '+' || c == '-' || c == '.')))
            return false;
    }
    return s.len > 0;
}

static struct parts split_parts(peg_str uri)
{
    struct parts parts = {0};
    size_t at = 0;
    size_t end = find_stop(uri, 0, ":/?");

    if (end < uri.len && uri.ptr[end] == ':' && is_scheme(peg__strn(uri.ptr, end))) {
        parts.scheme = peg__strn(uri.ptr, end + 1);
        at = end + 1;
    }
    if (uri.len - at >= 2 && uri.ptr[at] == '/' && uri.ptr[at + 1] == '/') {
        end = find_stop(uri, at + 2, "/?");
        parts.authority = peg__strn(uri.ptr + at, end - at);
        at = end;
    }
    end = find_stop(uri, at, "?");
    parts.path = peg__strn(uri.ptr + at, end - at);
    parts.query = peg__strn(uri.ptr + end, uri.len - end);
    return parts;
}

struct peg__reference peg__uri_split(peg_str reference)
{
    const size_t hash = find_stop(reference, 0, "#");
    struct peg__reference split = {.uri = peg__strn(reference.ptr, hash), .fragment = {"", 0}};

    if (hash < reference.len) {
        split.fragment = peg__str_from(reference, hash + 1);
        split.has_fragment = true;
    }
    return split;
}

bool peg__uri_is_absolute(peg_str uri)
{
    const struct peg__reference split_uri = peg__uri_split(uri);

    return split_uri.fragment.len == 0 && split_parts(split_uri.uri).scheme.len > 0;
}

static char *put_part(char *to, peg_str s)
{
    if (s.len)
        memcpy(to, s.ptr, s.len);
    return to + s.len;
}

/* Drops the last segment that was written, back to its '/'. */
static char *drop_segment(char *start, char *to)
{
    while (to > start && *--to != '/')
        ;
    return to;
}

/* RFC 3986 5.2.4, in place over `path`, which is at most as long afterwards. */
static char *remove_dots(char *path, char *end)
{
    char *to = path;
    char *from = path;

    while (from < end) {
        char *next = from + 1;
        size_t len;

        while (next < end && *next != '/')
            next++;
        len = (size_t)(next - from);
        if (len == 2 && memcmp(from, "/.", 2) == 0) {
            if (next == end)
                *to++ = '/';
        } else if (len == 3 && memcmp(from, "/..", 3) == 0) {
            to = drop_segment(path, to);
            if (next == end)
                *to++ = '/';
        } else {
            memmove(to, from, len);
            to += len;
        }
        from = next;
    }
    return to;
}

static peg_str join_parts(struct peg__arena *arena, struct parts p, peg_str directory)
{
    const size_t len = p.scheme.len + p.authority.len + directory.len + p.path.len + p.query.len;
    char *text = peg__arena_alloc(arena, len + 1);
    char *to = text;
    char *path;

    if (!text)
        return (peg_str){NULL, 0};
    to = put_part(to, p.scheme);
    to = put_part(to, p.authority);
    path = to;
    to = put_part(to, directory);
    to = put_part(to, p.path);
    if (to > path && (*path == '/' || directory.len))
        to = remove_dots(path, to);
    to = put_part(to, p.query);
    return peg__strn(text, (size_t)(to - text));
}

/* What stands before the last segment of the base's path. */
static peg_str directory_of(const struct parts *base)
{
    peg_str directory = base->path;

    if (base->authority.len && base->path.len == 0)
        return peg__str("/");
    while (directory.len > 0 && directory.ptr[directory.len - 1] != '/')
        directory.len--;
    return directory;
}

peg_str peg__uri_resolve(struct peg__arena *arena, peg_str base, peg_str reference)
{
    const struct parts b = split_parts(base);
    struct parts r = split_parts(reference);
    peg_str directory = {"", 0};

    if (reference.len == 0)
        return base;
    if (r.scheme.len)
        return memmem(reference.ptr, reference.len, "/.", 2) ? join_parts(arena, r, directory)
                                                             : reference;
    r.scheme = b.scheme;
    if (r.authority.len == 0) {
        r.authority = b.authority;
        if (r.path.len == 0)
            r.path = b.path;
        else if (r.path.ptr[0] != '/')
            directory = directory_of(&b);
    }
    return join_parts(arena, r, directory);
}

peg_str peg__uri_decode(struct peg__arena *arena, peg_str fragment)
{
    char *text;
    size_t n = 0;

    if (fragment.len == 0 || !memchr(fragment.ptr, '%', fragment.len))
        return fragment;
    text = peg__arena_alloc(arena, fragment.len);
    if (!text)
        return (peg_str){NULL, 0};
    for (size_t i = 0; i < fragment.len; i++) {
        const bool escaped = fragment.ptr[i] == '%' && i + 2 < fragment.len &&
                             peg__hex_value(fragment.ptr[i + 1]) >= 0 &&
                             peg__hex_value(fragment.ptr[i + 2]) >= 0;

        if (escaped) {
            text[n++] = (char)(peg__hex_value(fragment.ptr[i + 1]) * 16 +
                               peg__hex_value(fragment.ptr[i + 2]));
            i += 2;
        } else {
            text[n++] = fragment.ptr[i];
        }
    }
    return peg__strn(text, n);
}
